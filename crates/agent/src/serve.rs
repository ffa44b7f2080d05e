//! Mode `serve`: a session for clients that connect to a socket.
//!
//! The session lives in the first thread. Each connection has two threads: one reads requests, one
//! sends messages. A run continues without its client, and another connection can follow it. An
//! idle agent without requests removes its files and exits, so dead clients leave nothing behind.

use crate::inspect::{inspect_node, inspect_target};
use crate::message_log::{LogPosition, MessageLog};
use crate::node_caches::drop_caches;
use crate::queued_run::QueuedRun;
use crate::run_logs::RunLogs;
use crate::serve_options::ServeOptions;
use crate::shared_file_steps::SharedFileSteps;
use crate::{AgentFailure, program, scratch, termination_message, volume};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::runner::{LocalRunner, LocalSession};
use iosonde_job::errno::describe;
use iosonde_machine::device_watch::MachineSampler;
use iosonde_machine::proc_root::System;
use iosonde_result::machine::MachineSlice;
use iosonde_result::session::Session;
use iosonde_result::wire::{
    AgentMessage, AgentRequest, LONGEST_REQUEST_BYTES, PROTOCOL, StopMode, json_line,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval of waiting threads.
const TICK: Duration = Duration::from_millis(100);

/// Most bytes of the logs of a run in a container of other programs, whose disk is not ours.
const FOREIGN_LOG_BYTES_MAX: u64 = 256 << 20;

/// Turns SIGTERM and SIGINT into interrupts.
pub(crate) fn interrupt_on_signals() -> Result<Arc<Interrupt>, AgentFailure> {
    let interrupt = Arc::new(Interrupt::default());
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| {
        AgentFailure::new(
            5,
            format!("signals cannot be handled: {}", describe(&error)),
        )
    })?;
    let signalled = interrupt.clone();
    thread::spawn(move || {
        for _ in &mut signals {
            signalled.request();
        }
    });
    Ok(interrupt)
}

/// State shared by the connections and the session.
struct ServerState {
    log: MessageLog,
    interrupt: Arc<Interrupt>,
    /// Number of interrupts requested by clients. The others are signals.
    client_interrupts: AtomicU32,
    begun: Instant,
    /// Time of the last request, in milliseconds since `begun`. 0 before the first.
    last_request_ms: AtomicU64,
    idle: Duration,
    first: Duration,
    /// Duration of the last run in milliseconds. 0 during a run.
    last_run_ms: AtomicU64,
    is_closing: AtomicBool,
    /// Plans to run. `None` wakes the session, which may have to end.
    queue: Mutex<Sender<Option<QueuedRun>>>,
    logs: RunLogs,
    shared_file: SharedFileSteps,
}

impl ServerState {
    fn record_request(&self) {
        let now_ms = self.begun.elapsed().as_millis() as u64;
        self.last_request_ms.store(now_ms.max(1), Relaxed);
    }

    fn interrupt(&self) {
        self.client_interrupts.fetch_add(1, Relaxed);
        self.interrupt.request();
    }

    /// Sends a run to the session, or wakes it.
    fn send_to_session(&self, queued: Option<QueuedRun>) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // The session's thread ends only with the process.
        let _ = queue.send(queued);
    }

    fn has_signal(&self) -> bool {
        self.interrupt.count() > self.client_interrupts.load(Relaxed)
    }

    /// Returns the idle timeout, if it has passed since the last request.
    fn expired_timeout(&self) -> Option<Duration> {
        let last_request_ms = self.last_request_ms.load(Relaxed);
        let silence = self
            .begun
            .elapsed()
            .saturating_sub(Duration::from_millis(last_request_ms));
        let timeout = match last_request_ms {
            0 => self.first,
            // The result of a long run is kept for as long as the run took.
            _ => self
                .idle
                .max(Duration::from_millis(self.last_run_ms.load(Relaxed))),
        };
        (silence >= timeout).then_some(timeout)
    }
}

/// Serves until a client closes the session, a signal arrives, or the agent is idle too long.
pub(crate) fn run(options: &ServeOptions) -> Result<(), AgentFailure> {
    let interrupt = interrupt_on_signals()?;
    let logs = RunLogs::new();
    let mut permissions = volume::permissions(options.volume());
    permissions.logs = Some(logs.directory().to_owned());
    permissions.log_bytes_max = options.is_foreign.then_some(FOREIGN_LOG_BYTES_MAX);
    let runner = LocalRunner {
        interrupt: interrupt.clone(),
        permissions: Some(permissions),
        keeps_caches_of_others: true,
        ..LocalRunner::default()
    };
    // Socket of an earlier agent.
    let _ = std::fs::remove_file(&options.socket);
    if let Some(scratch) = &options.scratch {
        make_scratch(scratch, options.is_foreign)?;
    }
    let listener = UnixListener::bind(&options.socket).map_err(|error| {
        AgentFailure::new(
            5,
            format!("{}: {}", options.socket.display(), describe(&error)),
        )
    })?;
    let (queue, plans) = channel();
    let shared = Arc::new(ServerState {
        log: MessageLog::default(),
        interrupt,
        client_interrupts: AtomicU32::new(0),
        begun: Instant::now(),
        last_request_ms: AtomicU64::new(0),
        idle: options.idle,
        first: options.first.unwrap_or(options.idle),
        last_run_ms: AtomicU64::new(0),
        is_closing: AtomicBool::new(false),
        queue: Mutex::new(queue),
        logs,
        shared_file: SharedFileSteps::new(options.scratch.as_deref()),
    });
    let accepting = shared.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = accepting.clone();
            thread::spawn(move || serve_client(&shared, stream));
        }
    });
    let watched = shared.clone();
    thread::spawn(move || interrupt_abandoned_jobs(&watched));
    let session = session_loop(runner.open(), options, &shared, &plans);
    let closed = Box::new(session).close();
    shared.logs.remove();
    let _ = std::fs::remove_file(&options.socket);
    shared.shared_file.close();
    if let Some(scratch) = &options.scratch {
        std::fs::remove_dir_all(scratch).map_err(|error| {
            AgentFailure::new(
                5,
                format!("{} is left behind: {}", scratch.display(), describe(&error)),
            )
        })?;
    }
    closed.map_err(|error| AgentFailure::new(5, error.to_string()))
}

/// Creates the scratch directory. A failure in a pod of the run is also its termination message.
fn make_scratch(scratch: &Path, is_foreign: bool) -> Result<(), AgentFailure> {
    let made = match is_foreign {
        true => scratch::make_in_existing(scratch),
        false => scratch::create_scratch(scratch),
    };
    made.map_err(|error| {
        let error = scratch::creation_error(scratch, &error);
        if !is_foreign {
            termination_message::write(&error);
        }
        AgentFailure::new(3, error.to_string())
    })
}

/// Runs the plans that clients send.
fn session_loop(
    mut session: LocalSession,
    options: &ServeOptions,
    shared: &ServerState,
    plans: &Receiver<Option<QueuedRun>>,
) -> LocalSession {
    let mut agreed = None;
    while !shared.is_closing.load(Relaxed) && !shared.interrupt.is_requested() {
        match plans.recv_timeout(TICK) {
            Ok(None) => {}
            Ok(Some(queued)) => {
                let (mut plan, consent) = (queued.plan, queued.consent);
                shared.logs.prepare(&mut plan);
                session.set_cold(queued.cold);
                // The disk is identified when consent is given, and compared at each later run.
                if agreed != consent {
                    agreed = consent;
                    session.set_consent(volume::consent_to(options.device.as_deref(), consent));
                }
                let begun = Instant::now();
                shared.last_run_ms.store(0, Relaxed);
                let outcome = session.run(&plan, &mut &shared.log);
                shared
                    .last_run_ms
                    .store(begun.elapsed().as_millis() as u64, Relaxed);
                if shared.has_signal() {
                    shared.log.add_termination();
                }
                shared.log.finish_run(outcome);
                // Restarts the idle timeout, so that the client can fetch the result.
                shared.record_request();
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(timeout) = shared.expired_timeout() {
                    let seconds = timeout.as_secs();
                    eprintln!("no client has asked for anything for {seconds} s");
                    return session;
                }
            }
            // All senders of plans are gone.
            Err(RecvTimeoutError::Disconnected) => return session,
        }
    }
    if shared.interrupt.is_requested() && !shared.is_closing.load(Relaxed) {
        // Clients receive the end of the run before the process exits.
        thread::sleep(TICK);
    }
    session
}

/// Interrupts jobs that wait at the start barrier for a client that is gone. The thread ends with
/// the process.
fn interrupt_abandoned_jobs(shared: &ServerState) {
    loop {
        thread::sleep(TICK);
        if shared.log.has_waiting_jobs() && shared.expired_timeout().is_some() {
            shared.interrupt.request();
            return;
        }
    }
}

fn serve_client(shared: &Arc<ServerState>, stream: UnixStream) {
    let Ok(read) = stream.try_clone() else {
        return;
    };
    let client = Arc::new(ClientConnection {
        shared: shared.clone(),
        position: Mutex::new(LogPosition::default()),
        disks: Mutex::new(None),
        stream: Mutex::new(stream),
        is_gone: AtomicBool::new(false),
    });
    let hello = AgentMessage::Hello {
        protocol: PROTOCOL,
        program: program().to_owned(),
    };
    client.send_line(&json_line(&hello));
    let sender = client.clone();
    thread::spawn(move || sender.follow());
    let mut requests = BufReader::new(read);
    while let Ok(Some(text)) = next_line(&mut requests, LONGEST_REQUEST_BYTES) {
        shared.record_request();
        if text.len() > LONGEST_REQUEST_BYTES {
            let most_mib = LONGEST_REQUEST_BYTES >> 20;
            client.refuse(format!("a request of more than {most_mib} MiB"));
            break;
        }
        match serde_json::from_slice(&text) {
            Ok(request) => client.serve(request),
            Err(error) => client.refuse(format!("this is no request: {error}")),
        }
    }
    client.is_gone.store(true, Relaxed);
    client.shut_down();
}

/// Reads a line, cut one byte after `longest`. `None` at the end, also after an incomplete line.
fn next_line(from: &mut impl BufRead, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let most = longest as u64 + 1;
    from.take(most).read_until(b'\n', &mut text)?;
    let is_whole = text.last() == Some(&b'\n') || text.len() > longest;
    Ok(is_whole.then_some(text))
}

/// A connection to a client.
struct ClientConnection {
    shared: Arc<ServerState>,
    position: Mutex<LogPosition>,
    /// Samples the machine between requests of this client. `None` before the first.
    disks: Mutex<Option<MachineSampler>>,
    stream: Mutex<UnixStream>,
    is_gone: AtomicBool,
}

impl ClientConnection {
    fn serve(self: &Arc<Self>, request: AgentRequest) {
        match request {
            AgentRequest::Alive => self.send_line(&json_line(&AgentMessage::Alive)),
            AgentRequest::Look { path } => {
                self.send_line(&json_line(&AgentMessage::Place(inspect_target(&path))))
            }
            AgentRequest::InspectNode { root, near } => {
                self.send_line(&json_line(&inspect_node(&root, near.as_deref())))
            }
            AgentRequest::Run {
                run,
                plan,
                interval_ns,
                hold,
                consent,
                cold,
            } => {
                let queued = QueuedRun::new(*plan, consent, cold);
                self.start(run, queued, interval_ns, hold);
            }
            // The client keeps the connection alive meanwhile, so its requests are read.
            AgentRequest::DropCaches => {
                let client = self.clone();
                thread::spawn(move || client.send_line(&json_line(&drop_caches())));
            }
            AgentRequest::SharedFile { directory, step } => {
                let client = self.clone();
                thread::spawn(move || {
                    let reply = client.shared.shared_file.perform(&directory, &step);
                    client.send_line(&json_line(&reply));
                });
            }
            AgentRequest::Logs => {
                let client = self.clone();
                thread::spawn(move || client.send_logs());
            }
            AgentRequest::Clock => {
                let now_ns = self.shared.begun.elapsed().as_nanos() as u64;
                self.send_line(&json_line(&AgentMessage::Clock { now_ns }));
            }
            AgentRequest::Sample => {
                let mut disks = self.disks.lock().unwrap_or_else(PoisonError::into_inner);
                let slice = match disks.as_mut() {
                    Some(sampler) => sampler.sample_with_requests(),
                    None => MachineSlice::default(),
                };
                disks.get_or_insert_with(|| MachineSampler::begin(System::live()));
                self.send_line(&json_line(&AgentMessage::Sample(Box::new(slice))));
            }
            AgentRequest::Status { run } => self.shared.log.request_status(run),
            AgentRequest::Start { run, at_ns } => {
                let at = self.shared.begun + Duration::from_nanos(at_ns);
                self.shared.log.release(run, at);
            }
            AgentRequest::Follow { run, have } => self.follow_from(run, have),
            AgentRequest::Stop { run, stop } => match stop {
                StopMode::Enough => self.shared.log.request_stop(run),
                StopMode::Interrupt => self.shared.interrupt(),
            },
            AgentRequest::Close => {
                if self.shared.log.is_running() {
                    self.shared.interrupt();
                }
                self.shared.is_closing.store(true, Relaxed);
                self.shared.send_to_session(None);
            }
        }
    }

    fn start(&self, run: u64, queued: QueuedRun, interval_ns: u64, hold: bool) {
        // The request may be a repeated one, from a client that reconnects.
        if self.shared.log.has_run(run) {
            self.follow_from(run, 0);
            return;
        }
        if !self.shared.log.begin_run(run, interval_ns, hold) {
            self.refuse("another run goes on".to_owned());
            return;
        }
        self.follow_from(run, 0);
        self.shared.send_to_session(Some(queued));
    }

    fn follow_from(&self, run: u64, have: usize) {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        *position = LogPosition::new(run, have);
    }

    /// Sends new messages until the connection ends. A client that reads slowly blocks this thread
    /// only.
    fn follow(&self) {
        while !self.is_gone.load(Relaxed) {
            let mut position = *self.position.lock().unwrap_or_else(PoisonError::into_inner);
            let before = position;
            let batch = self.shared.log.wait_for_messages(&mut position, TICK);
            {
                let mut current = self.position.lock().unwrap_or_else(PoisonError::into_inner);
                if *current != before {
                    continue;
                }
                *current = position;
            }
            for text in batch {
                self.send_line(&text);
            }
        }
    }

    /// Closes the connection, so that the client sees its end.
    fn shut_down(&self) {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        // The connection may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }

    fn send_logs(&self) {
        let logs = &self.shared.logs;
        let sent = logs.send(&mut |message| self.send_line(&json_line(message)));
        let ended = sent.map_err(|error| (&error).into());
        self.send_line(&json_line(&AgentMessage::LogsEnd(ended)));
    }

    fn refuse(&self, problem: String) {
        self.send_line(&json_line(&AgentMessage::Refused(problem)));
    }

    fn send_line(&self, text: &str) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if stream.write_all(text.as_bytes()).is_err() {
            self.is_gone.store(true, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_length_is_bounded_and_incomplete_line_is_dropped() {
        let mut from = &b"abc\nabcd\nab"[..];
        let mut next = || next_line(&mut from, 4).unwrap();
        assert_eq!(next().as_deref(), Some(&b"abc\n"[..]));
        assert_eq!(next().as_deref(), Some(&b"abcd\n"[..]));
        assert_eq!(next(), None);
    }
}
