//! Replaces a broken connection, as long as the pod runs and the user does not interrupt.

use crate::lifecycle::Objects;
use crate::node_watch::{NodeWatch, node_cause_and_remedy};
use crate::session::{ANSWER, TICK};
use crate::transport::{Connection, Heard, unreadable};
use iosonde_result::observer::Observer;
use iosonde_result::run::Event;
use iosonde_result::session::RunError;
use iosonde_result::wire::{Message, Place, Request};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Time for attempts to reconnect.
const RECONNECT: Duration = Duration::from_secs(120);

/// Reason why a lost connection was not replaced.
pub(crate) struct Broken {
    pub(crate) error: RunError,
    /// The run may continue unobserved. It is kept for its result, and cleans up after itself.
    pub(crate) may_go_on: bool,
}

impl From<RunError> for Broken {
    fn from(error: RunError) -> Broken {
        Broken {
            error,
            may_go_on: false,
        }
    }
}

/// Replaces a lost connection, as long as the pod runs.
pub(crate) fn reconnected(
    runtime: &Runtime,
    objects: &Objects,
    pod: &str,
    interrupts: &dyn Fn() -> u32,
    observer: &mut dyn Observer,
) -> Result<Connection, Broken> {
    let begun = Instant::now();
    let mut nodes = NodeWatch::default();
    observer.event(&Event {
        at_ns: 0,
        message: "the connection to the pod is lost; the run goes on, connecting again".to_owned(),
    });
    loop {
        let attempt = runtime.block_on(async {
            if let Ok(Some(lost)) = objects.loss(pod).await {
                return Err((lost, true));
            }
            let opened = Connection::open(objects, pod).await;
            opened.map_err(|error| (error, false))
        });
        match attempt {
            Ok(connection) => return Ok(connection),
            Err((error, true)) => return Err(error.into()),
            Err(_) if interrupts() > 0 => return Err(RunError::Interrupted.into()),
            Err((error, _)) => {
                let is_dead = runtime
                    .block_on(nodes.find_dead_node(objects, pod))
                    .is_some();
                if is_dead || begun.elapsed() > RECONNECT {
                    return Err(runtime.block_on(given_up(objects, pod, &error)));
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        }
    }
}

/// Returns the error after all attempts to reconnect have failed.
async fn given_up(objects: &Objects, pod: &str, error: &RunError) -> Broken {
    let dead = objects.dead_node(pod).await;
    let may_go_on = dead.is_none();
    let (cause, remedy) = match dead {
        Some(dead) => node_cause_and_remedy(&dead),
        None => (
            format!(
                "for {} s nothing has answered: {error}",
                RECONNECT.as_secs()
            ),
            format!(
                "the run may go on, and is left alone: `iosonde k8s attach {}` takes up that of a fio job; after its \
                 end it waits as long as it took, two minutes at least, and goes away by itself",
                objects.id
            ),
        ),
    };
    let error = RunError::Lost {
        what: "the connection to the pod".to_owned(),
        cause,
        remedy,
    };
    Broken { error, may_go_on }
}

/// Returns the first request on a new connection. An agent that has sent nothing of a run may not
/// have received its request. Otherwise it continues sending its messages.
pub(crate) fn resumed(begin: Option<&Request>, is_known: bool, run: u64, have: usize) -> Request {
    match begin {
        Some(begin) if !is_known => begin.clone(),
        _ => Request::Follow { run, have },
    }
}

/// Has the agent of this pod inspect a path. A connection that broke while idle is replaced once.
///
/// # Errors
/// The reason why there is no answer, if it is known.
pub(crate) fn found_at(
    (runtime, objects, pod): (&Runtime, &Objects, &str),
    connection: &mut Connection,
    path: String,
    interrupts: &dyn Fn() -> u32,
) -> Result<Result<Place, RunError>, Option<RunError>> {
    let look = Request::Look { path };
    connection.ask(&look);
    let mut begun = Instant::now();
    let mut is_new = false;
    loop {
        match connection.heard.recv_timeout(TICK) {
            Ok(Heard::Message(Message::Place(place))) => return Ok(place),
            Ok(Heard::Message(_)) => {}
            Ok(Heard::Unreadable(problem)) => return Err(Some(unreadable(problem))),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER => {}
            Ok(Heard::Ended) | Err(RecvTimeoutError::Disconnected) if !is_new => {
                // No run is active that would have to be kept.
                let again = reconnected(runtime, objects, pod, interrupts, &mut ());
                *connection = again.map_err(|lost| (!lost.may_go_on).then_some(lost.error))?;
                connection.ask(&look);
                begun = Instant::now();
                is_new = true;
            }
            _ => return Err(None),
        }
    }
}
