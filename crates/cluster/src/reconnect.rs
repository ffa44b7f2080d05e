//! Replaces a broken connection, as long as the pod runs and the user does not interrupt.

use crate::connection::{AgentEvent, Connection, unreadable};
use crate::node_readiness::{NODE_NOT_READY_TIMEOUT, NodeReadiness, node_not_ready};
use crate::run_objects::RunObjects;
use crate::setup_observer::{ANSWER_TIMEOUT, TICK};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunEvent;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::wire::{AgentMessage, AgentRequest, PathInfo};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Time for attempts to reconnect.
const RECONNECT: Duration = Duration::from_secs(120);

// A node that is gone is recognized while the attempts last.
const _: () = assert!(NODE_NOT_READY_TIMEOUT.as_secs() < RECONNECT.as_secs());

/// Reason why a lost connection was not replaced.
pub(crate) struct ReconnectError {
    pub(crate) error: RunError,
    /// The run may continue unobserved. It is kept for its result, and cleans up after itself.
    pub(crate) may_go_on: bool,
}

impl From<RunError> for ReconnectError {
    fn from(error: RunError) -> ReconnectError {
        ReconnectError {
            error,
            may_go_on: false,
        }
    }
}

/// Replaces a lost connection, as long as the pod runs.
pub(crate) fn reconnected(
    runtime: &Runtime,
    objects: &RunObjects,
    pod: &str,
    interrupts: &dyn Fn() -> u32,
    observer: &mut dyn Observer,
) -> Result<Connection, ReconnectError> {
    let begun = Instant::now();
    let mut nodes = NodeReadiness::default();
    observer.event(&RunEvent {
        at_ns: 0,
        message: "the connection to the pod is lost; the run goes on, connecting again".to_owned(),
    });
    loop {
        let attempt = runtime.block_on(async {
            if let Ok(Some(lost)) = objects.why_pod_lost(pod).await {
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
                    return Err(runtime.block_on(given_up(objects, pod, error)));
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        }
    }
}

/// Returns the error after all attempts to reconnect have failed.
async fn given_up(objects: &RunObjects, pod: &str, error: RunError) -> ReconnectError {
    let dead = objects.dead_node(pod).await;
    // An agent in a pod of the user cannot be attached to.
    let may_go_on = dead.is_none() && objects.selected.is_none();
    let condition = match dead {
        Some(dead) => node_not_ready(dead),
        None if !may_go_on => FailureCondition::NoAnswer,
        None => FailureCondition::Unreachable {
            seconds: RECONNECT.as_secs(),
            error: Box::new(error),
            run: objects.id.clone(),
        },
    };
    let error = RunError::lost(FailedObject::Connection { pod: None }, condition);
    ReconnectError { error, may_go_on }
}

/// Returns the first request on a new connection. An agent that has sent nothing of a run may not
/// have received its request. Otherwise it continues sending its messages.
pub(crate) fn first_request(
    begin: Option<&AgentRequest>,
    is_known: bool,
    run: u64,
    have: usize,
) -> AgentRequest {
    match begin {
        Some(begin) if !is_known => begin.clone(),
        _ => AgentRequest::Follow { run, have },
    }
}

/// Has the agent of this pod inspect a path. A connection that broke while idle is replaced once.
///
/// # Errors
/// The reason why there is no answer, if it is known.
pub(crate) fn inspect_path_in_pod(
    (runtime, objects, pod): (&Runtime, &RunObjects, &str),
    connection: &mut Connection,
    path: String,
    interrupts: &dyn Fn() -> u32,
) -> Result<Result<PathInfo, RunError>, Option<RunError>> {
    let look = AgentRequest::Look { path };
    connection.ask(&look);
    let mut begun = Instant::now();
    let mut is_new = false;
    loop {
        match connection.events.recv_timeout(TICK) {
            Ok(AgentEvent::Message(AgentMessage::Place(place))) => return Ok(place),
            Ok(AgentEvent::Message(_)) => {}
            Ok(AgentEvent::Unreadable(problem)) => return Err(Some(unreadable(problem))),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < ANSWER_TIMEOUT => {}
            Ok(AgentEvent::Ended) | Err(RecvTimeoutError::Disconnected) if !is_new => {
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
