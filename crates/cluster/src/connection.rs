//! Connection to the agent: messages over exec in its pod.

use crate::api;
use crate::connect::SILENT_BODY;
use crate::event_signal::EventSignal;
use crate::run_objects::RunObjects;
use iosonde_job::read_json;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterRequest, RunError};
use iosonde_result::wire::{
    AgentMessage, AgentRequest, LONGEST_MESSAGE_BYTES, PROTOCOL, json_line,
};
use kube::api::{AttachParams, AttachedProcess};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Timeout for the upload of the agent: megabytes, possibly over a slow connection.
pub(crate) const UPLOAD: Duration = Duration::from_secs(180);
/// Timeout for the greeting of the agent.
const HELLO: Duration = Duration::from_secs(30);
/// Interval of keep-alive messages on an idle connection. The agent answers each.
const ALIVE: Duration = Duration::from_secs(5);
/// Time of silence after which a connection counts as broken: a vanished server may never close it.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);
/// Delay before the keep-alive connection replaces a connection that has ended.
const KEEP_ALIVE_DELAY: Duration = Duration::from_secs(5);
/// Buffer size of the streams in each direction.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Limit of queued messages for the session. Reading pauses while the queue is full: an agent may
/// send the messages of a week to a client that connects late.
const WAITING_MESSAGES_MAX: usize = 1024;

// An idle connection is not silent, even if some of its keep-alive messages are lost.
const _: () = assert!(SILENCE.as_secs() >= 3 * ALIVE.as_secs());
// An upload is not cut off by the timeout of the client.
const _: () = assert!(UPLOAD.as_secs() < SILENT_BODY.as_secs());

pub(crate) async fn read_to_end(from: Option<impl AsyncRead + Unpin>, text: &mut String) {
    if let Some(mut from) = from {
        // A broken connection ends the text: the part read so far is used.
        let _ = from.read_to_string(text).await;
    }
}

pub(crate) async fn exec_in_pod(
    objects: &RunObjects,
    pod: &str,
    command: &[&str],
    stderr: bool,
) -> Result<AttachedProcess, kube::Error> {
    let params = AttachParams::default()
        .container(objects.container(pod))
        .stdin(true)
        .stdout(true)
        .stderr(stderr)
        .max_stdin_buf_size(BUFFER_BYTES)
        .max_stdout_buf_size(BUFFER_BYTES);
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    objects.pods().exec(pod, command, &params).await
}

/// Event of the connection to the agent.
#[derive(Debug)]
pub(crate) enum AgentEvent {
    Message(AgentMessage),
    /// Input that is not a message, with the reason. It is the last event.
    Unreadable(String),
    /// The connection has ended.
    Ended,
}

/// A connection to the agent. Dropping it closes it, and the agent continues.
pub(crate) struct Connection {
    asked: UnboundedSender<String>,
    pub(crate) events: Receiver<AgentEvent>,
    /// `None` if a test acts as the agent.
    process: Option<AgentCall>,
    /// Task that reads the messages of the agent.
    reader: Option<JoinHandle<()>>,
}

/// Reason why the connection was not opened.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    pub(crate) error: RunError,
    pub(crate) retry: Retry,
}

/// Whether another attempt to connect may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The API server refused it, or the agent is of another build.
    Never,
    /// The connection ended before the greeting: it broke, or the pod has no agent.
    FewTimes,
    /// The API server is away.
    WhileAway,
}

impl From<RunError> for ConnectFailure {
    fn from(error: RunError) -> ConnectFailure {
        ConnectFailure {
            error,
            retry: Retry::Never,
        }
    }
}

/// A process in the pod. Dropping it closes its streams.
struct AgentCall(AttachedProcess);

impl AgentCall {
    /// Starts `call` in the pod, which relays between this client and the agent's socket.
    async fn call(objects: &RunObjects, pod: &str) -> Result<AgentCall, kube::Error> {
        let (agent, socket) = (objects.agent_program(pod), objects.agent_socket(pod));
        let command = [agent.as_str(), "call", "--socket", &socket];
        exec_in_pod(objects, pod, &command, false)
            .await
            .map(AgentCall)
    }
}

impl Drop for AgentCall {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Connects to the agent that runs in the pod.
    pub(crate) async fn open(objects: &RunObjects, pod: &str) -> Result<Connection, RunError> {
        Connection::try_open(objects, pod)
            .await
            .map_err(|failure| failure.error)
    }

    /// Like [`open`](Self::open), but the error includes whether a retry may succeed.
    pub(crate) async fn try_open(
        objects: &RunObjects,
        pod: &str,
    ) -> Result<Connection, ConnectFailure> {
        let mut process = AgentCall::call(objects, pod)
            .await
            .map_err(|error| ConnectFailure {
                retry: match api::is_away(&error) {
                    true => Retry::WhileAway,
                    false => Retry::Never,
                },
                error: api::failed(ClusterRequest::ConnectAgent, &error),
            })?;
        let (asked, to_ask) = unbounded_channel();
        let (sender, events) = sync_channel(WAITING_MESSAGES_MAX);
        let signal = objects.event_signal.clone();
        let queue = EventSender { sender, signal };
        if let Some(stdin) = process.0.stdin() {
            tokio::spawn(write_requests(stdin, to_ask));
        }
        let mut from = match process.0.stdout() {
            Some(stdout) => BufReader::new(stdout),
            None => return Err(agent_not_ready(FailureCondition::NoOutput).into()),
        };
        let mut first = String::new();
        let read = timeout(HELLO, from.read_line(&mut first)).await;
        let first = matches!(read, Ok(Ok(1..))).then_some(first);
        check_greeting(first.as_deref()).map_err(|error| ConnectFailure {
            retry: match read {
                Ok(Ok(0) | Err(_)) => Retry::FewTimes,
                _ => Retry::Never,
            },
            error,
        })?;
        let (objects, pod) = (objects.clone(), pod.to_owned());
        let reader = tokio::spawn(async move {
            if listen(from, SILENCE, &queue).await {
                // The session may be busy elsewhere while its queue is full.
                tokio::join!(queue.send_end(), keep_agent_alive(&objects, &pod));
            }
        });
        Ok(Connection {
            asked,
            events,
            process: Some(process),
            reader: Some(reader),
        })
    }

    /// Returns a connection, the requests sent over it, and a sender of its agent's messages.
    #[cfg(test)]
    pub(crate) fn fake() -> (
        Connection,
        UnboundedReceiver<String>,
        SyncSender<AgentEvent>,
    ) {
        let (asked, to_ask) = unbounded_channel();
        let (queue, events) = sync_channel(WAITING_MESSAGES_MAX);
        let connection = Connection {
            asked,
            events,
            process: None,
            reader: None,
        };
        (connection, to_ask, queue)
    }

    /// Sends a request. A closed connection is reported by the receiver, not here.
    pub(crate) fn ask(&self, request: &AgentRequest) {
        let text = json_line(request);
        debug_assert_eq!(text.matches('\n').count(), 1, "one request per line");
        let _ = self.asked.send(text);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
        self.process = None;
    }
}

/// Takes the requests that were sent over a fake connection.
#[cfg(test)]
pub(crate) fn take_requests(sent: &mut UnboundedReceiver<String>) -> Vec<AgentRequest> {
    std::iter::from_fn(|| sent.try_recv().ok())
        .map(|text| read_json(text).unwrap())
        .collect()
}

/// Checks that the first line is the greeting of an agent with this protocol.
fn check_greeting(first: Option<&str>) -> Result<(), RunError> {
    match first.map(read_json) {
        Some(Ok(AgentMessage::Hello {
            protocol: PROTOCOL, ..
        })) => Ok(()),
        Some(Ok(AgentMessage::Hello { program, .. })) => {
            Err(agent_not_ready(FailureCondition::OtherBuild { program }))
        }
        _ => Err(agent_not_ready(FailureCondition::NoGreeting)),
    }
}

/// Returns the error for input from the agent that is not a message.
pub(crate) fn unreadable(problem: String) -> RunError {
    RunError::lost(
        FailedObject::Run,
        FailureCondition::MessageUnreadable { problem },
    )
}

fn agent_not_ready(condition: FailureCondition) -> RunError {
    RunError::not_ready(FailedObject::Agent, condition)
}

/// Interval of the retries while the session's queue is full.
const ROOM_POLL: Duration = Duration::from_millis(5);

/// Queue of a connection's events. Each event wakes the session.
struct EventSender {
    sender: SyncSender<AgentEvent>,
    signal: EventSignal,
}

impl EventSender {
    fn try_send(&self, event: AgentEvent) -> Result<(), TrySendError<AgentEvent>> {
        let sent = self.sender.try_send(event);
        self.signal.set();
        sent
    }

    /// Queues an event. Waits for room as long as the session exists, and returns `false` if it is
    /// gone.
    async fn deliver(&self, mut event: AgentEvent) -> bool {
        loop {
            event = match self.try_send(event) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(event)) => event,
            };
            sleep(ROOM_POLL).await;
        }
    }

    /// Queues the end of the connection as the last event.
    async fn send_end(self) {
        self.deliver(AgentEvent::Ended).await;
    }
}

/// Handles one line. Returns `false` if reading must end.
async fn handle_line(text: &str, queue: &EventSender) -> bool {
    match read_json(text) {
        Ok(AgentMessage::Alive) => true,
        // The next progress replaces one that finds no room.
        Ok(progress @ AgentMessage::Progress(_)) => {
            let sent = queue.try_send(AgentEvent::Message(progress));
            !matches!(sent, Err(TrySendError::Disconnected(_)))
        }
        Ok(message) => queue.deliver(AgentEvent::Message(message)).await,
        Err(error) if is_document(text) => {
            queue
                .deliver(AgentEvent::Unreadable(error.to_string()))
                .await;
            false
        }
        // Not a message of the agent: a line that the container runtime has mixed in.
        Err(_) => true,
    }
}

/// Whether a line looks like a message, valid or not.
fn is_document(text: &str) -> bool {
    text.starts_with(['{', '"', '\0']) || text.contains('\u{fffd}')
}

/// Keeps the agent alive after a connection has ended. A waiting session does not reconnect, and an
/// agent without a client exits, so new connections are opened until the session has one. There is
/// no deadline: the task is aborted with the connection that it stands for.
async fn keep_agent_alive(objects: &RunObjects, pod: &str) {
    loop {
        sleep(KEEP_ALIVE_DELAY).await;
        let Ok(mut process) = AgentCall::call(objects, pod).await else {
            continue;
        };
        let (Some(stdin), Some(stdout)) = (process.0.stdin(), process.0.stdout()) else {
            continue;
        };
        let (_open, nothing) = unbounded_channel();
        tokio::select! {
            () = write_requests(stdin, nothing) => {}
            () = read_all(BufReader::new(stdout)) => {}
        }
    }
}

/// Reads and discards the output of an agent until the connection ends.
async fn read_all(from: impl AsyncBufRead + Unpin) {
    let mut lines = MessageLines::new(from, SILENCE);
    while lines.next().await.is_ok() {}
}

/// Reads messages until the connection ends. Returns `false` if reading ended for another reason.
async fn listen(from: impl AsyncBufRead + Unpin, silence: Duration, queue: &EventSender) -> bool {
    let mut lines = MessageLines::new(from, silence);
    loop {
        match lines.next().await {
            Ok(line) if handle_line(&line, queue).await => {}
            Ok(_) => return false,
            Err(LinesEnd::Ended) => return true,
            Err(LinesEnd::TooLong) => {
                queue
                    .deliver(AgentEvent::Unreadable(too_long(LONGEST_MESSAGE_BYTES)))
                    .await;
                return false;
            }
        }
    }
}

/// Reason why there are no more lines.
#[derive(Debug, PartialEq, Eq)]
enum LinesEnd {
    /// The connection has ended, or was silent for too long.
    Ended,
    /// A line is longer than any message may be.
    TooLong,
}

fn too_long(longest: usize) -> String {
    format!("a line of more than {} MiB", longest >> 20)
}

/// Lines of a connection. It ends after too long a silence, not for a long line that is slow.
struct MessageLines<R> {
    from: R,
    silence: Duration,
    longest: usize,
}

impl<R: AsyncBufRead + Unpin> MessageLines<R> {
    fn new(from: R, silence: Duration) -> MessageLines<R> {
        MessageLines {
            from,
            silence,
            longest: LONGEST_MESSAGE_BYTES,
        }
    }

    async fn next(&mut self) -> Result<String, LinesEnd> {
        let mut line = Vec::new();
        loop {
            let bytes = match timeout(self.silence, self.from.fill_buf()).await {
                Ok(Ok(bytes @ [_, ..])) => bytes,
                _ => return Err(LinesEnd::Ended),
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(bytes.len(), |end| end + 1);
            line.extend_from_slice(&bytes[..used]);
            self.from.consume(used);
            if line.len() > self.longest {
                return Err(LinesEnd::TooLong);
            }
            if end.is_some() {
                debug_assert!(line.len() <= self.longest);
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
        }
    }
}

async fn write_requests(mut stdin: impl AsyncWrite + Unpin, mut to_ask: UnboundedReceiver<String>) {
    loop {
        let text = match timeout(ALIVE, to_ask.recv()).await {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(_) => json_line(&AgentRequest::Alive),
        };
        let written = stdin.write_all(text.as_bytes()).await;
        if written.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
