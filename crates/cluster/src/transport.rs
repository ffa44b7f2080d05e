//! Connection to the agent: messages over exec in its pod.

use crate::api;
use crate::lifecycle::Objects;
use crate::manifest::{AGENT_DIRECTORY, CONTAINER};
use iosonde_result::session::RunError;
use iosonde_result::wire::{LONGEST_MESSAGE_BYTES, Message, PROTOCOL, Request, line};
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
const STAND_IN: Duration = Duration::from_secs(5);
/// Buffer size of the streams in each direction.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Limit of queued messages for the session. Reading pauses while the queue is full: an agent may
/// send the messages of a week to a client that connects late.
const WAITING_MESSAGES_MAX: usize = 1024;

pub(crate) async fn read_to_end(from: Option<impl AsyncRead + Unpin>, text: &mut String) {
    if let Some(mut from) = from {
        // A broken connection ends the text: the part read so far is used.
        let _ = from.read_to_string(text).await;
    }
}

pub(crate) async fn exec(
    objects: &Objects,
    pod: &str,
    command: &[&str],
    stderr: bool,
) -> Result<AttachedProcess, kube::Error> {
    let params = AttachParams::default()
        .container(CONTAINER)
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
pub(crate) enum Heard {
    Message(Message),
    /// Input that is not a message, with the reason. It is the last event.
    Unreadable(String),
    /// The connection has ended.
    Ended,
}

/// A connection to the agent. Dropping it closes it, and the agent continues.
pub(crate) struct Connection {
    asked: UnboundedSender<String>,
    pub(crate) heard: Receiver<Heard>,
    /// `None` if a test acts as the agent.
    process: Option<Process>,
    /// Task that reads the messages of the agent.
    hearing: Option<JoinHandle<()>>,
}

/// Reason why the connection was not opened.
#[derive(Debug)]
pub(crate) struct OpenFailure {
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

impl From<RunError> for OpenFailure {
    fn from(error: RunError) -> OpenFailure {
        OpenFailure {
            error,
            retry: Retry::Never,
        }
    }
}

/// A process in the pod. Dropping it closes its streams.
struct Process(AttachedProcess);

impl Process {
    /// Starts `call` in the pod, which relays between this client and the agent's socket.
    async fn call(objects: &Objects, pod: &str) -> Result<Process, kube::Error> {
        let socket = format!("{AGENT_DIRECTORY}/socket");
        let command = [objects.agent.as_str(), "call", "--socket", &socket];
        exec(objects, pod, &command, false).await.map(Process)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Connects to the agent that runs in the pod.
    pub(crate) async fn open(objects: &Objects, pod: &str) -> Result<Connection, RunError> {
        Connection::try_open(objects, pod)
            .await
            .map_err(|failure| failure.error)
    }

    /// Like [`open`](Self::open), but the error includes whether a retry may succeed.
    pub(crate) async fn try_open(objects: &Objects, pod: &str) -> Result<Connection, OpenFailure> {
        let mut process = Process::call(objects, pod)
            .await
            .map_err(|error| OpenFailure {
                retry: match api::is_away(&error) {
                    true => Retry::WhileAway,
                    false => Retry::Never,
                },
                error: api::failed("connecting with the agent", &error),
            })?;
        let (asked, to_ask) = unbounded_channel();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        if let Some(stdin) = process.0.stdin() {
            tokio::spawn(ask(stdin, to_ask));
        }
        let mut from = match process.0.stdout() {
            Some(stdout) => BufReader::new(stdout),
            None => return Err(mute("it has no output").into()),
        };
        let mut first = String::new();
        let read = timeout(HELLO, from.read_line(&mut first)).await;
        let first = matches!(read, Ok(Ok(1..))).then_some(first);
        greeted(first.as_deref()).map_err(|error| OpenFailure {
            retry: match read {
                Ok(Ok(0) | Err(_)) => Retry::FewTimes,
                _ => Retry::Never,
            },
            error,
        })?;
        let (objects, pod) = (objects.clone(), pod.to_owned());
        let hearing = tokio::spawn(async move {
            if listen(from, SILENCE, &tell).await {
                // The session may be busy elsewhere while its queue is full.
                tokio::join!(end(tell), stand_in(&objects, &pod));
            }
        });
        Ok(Connection {
            asked,
            heard,
            process: Some(process),
            hearing: Some(hearing),
        })
    }

    /// Returns a connection, the requests sent over it, and a sender of its agent's messages.
    #[cfg(test)]
    pub(crate) fn fake() -> (Connection, UnboundedReceiver<String>, SyncSender<Heard>) {
        let (asked, to_ask) = unbounded_channel();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        let connection = Connection {
            asked,
            heard,
            process: None,
            hearing: None,
        };
        (connection, to_ask, tell)
    }

    /// Sends a request. A closed connection is reported by the receiver, not here.
    pub(crate) fn ask(&self, request: &Request) {
        let _ = self.asked.send(line(request));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(hearing) = self.hearing.take() {
            hearing.abort();
        }
        self.process = None;
    }
}

/// Checks that the first line is the greeting of an agent with this protocol.
fn greeted(first: Option<&str>) -> Result<(), RunError> {
    match first.map(serde_json::from_str) {
        Some(Ok(Message::Hello {
            protocol: PROTOCOL, ..
        })) => Ok(()),
        Some(Ok(Message::Hello { program, .. })) => Err(RunError::Unready {
            what: "the agent".to_owned(),
            cause: format!("it is {program} of another build, whose messages differ from this one's"),
            remedy: "use the iosonde that made the image, make the image anew with `iosonde k8s image`, or name one without an \
                     agent with --image, which is sent then"
                .to_owned(),
        }),
        _ => Err(mute("it does not answer")),
    }
}

/// Returns the error for input from the agent that is not a message.
pub(crate) fn unreadable(problem: String) -> RunError {
    RunError::Lost {
        what: "the run".to_owned(),
        cause: format!("the agent's answer cannot be read: {problem}"),
        remedy: "run it again; if that does not help, see the agent's last words with `kubectl logs`, and whether the image has an \
                 agent of another version of iosonde"
            .to_owned(),
    }
}

fn mute(why: &str) -> RunError {
    RunError::Unready {
        what: "the agent".to_owned(),
        cause: why.to_owned(),
        remedy: "see its last words with `kubectl logs`; --run-as chooses the user that may write to the volume"
            .to_owned(),
    }
}

/// Interval of the retries while the session's queue is full.
const ROOM_POLL: Duration = Duration::from_millis(5);

/// Queues a message for the session, waiting for room. Returns `false` if the session is gone.
async fn deliver(tell: &SyncSender<Heard>, mut heard: Heard) -> bool {
    loop {
        heard = match tell.try_send(heard) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(heard)) => heard,
        };
        sleep(ROOM_POLL).await;
    }
}

/// Queues the end of the connection as the last event.
async fn end(tell: SyncSender<Heard>) {
    deliver(&tell, Heard::Ended).await;
}

/// Handles one line. Returns `false` if reading must end.
async fn hear(text: &str, tell: &SyncSender<Heard>) -> bool {
    match serde_json::from_str(text) {
        Ok(Message::Alive) => true,
        // The next progress replaces one that finds no room.
        Ok(progress @ Message::Progress(_)) => {
            let sent = tell.try_send(Heard::Message(progress));
            !matches!(sent, Err(TrySendError::Disconnected(_)))
        }
        Ok(message) => deliver(tell, Heard::Message(message)).await,
        Err(error) if is_document(text) => {
            deliver(tell, Heard::Unreadable(error.to_string())).await;
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
/// agent without a client exits, so new connections are opened until the session has one.
async fn stand_in(objects: &Objects, pod: &str) {
    loop {
        sleep(STAND_IN).await;
        let Ok(mut process) = Process::call(objects, pod).await else {
            continue;
        };
        let (Some(stdin), Some(stdout)) = (process.0.stdin(), process.0.stdout()) else {
            continue;
        };
        let (_open, nothing) = unbounded_channel();
        tokio::select! {
            () = ask(stdin, nothing) => {}
            () = read_all(BufReader::new(stdout)) => {}
        }
    }
}

/// Reads and discards the output of an agent until the connection ends.
async fn read_all(from: impl AsyncBufRead + Unpin) {
    let mut lines = Lines::new(from, SILENCE);
    while lines.next().await.is_ok() {}
}

/// Reads messages until the connection ends. Returns `false` if reading ended for another reason.
async fn listen(
    from: impl AsyncBufRead + Unpin,
    silence: Duration,
    tell: &SyncSender<Heard>,
) -> bool {
    let mut lines = Lines::new(from, silence);
    loop {
        match lines.next().await {
            Ok(line) if hear(&line, tell).await => {}
            Ok(_) => return false,
            Err(LinesEnd::Ended) => return true,
            Err(LinesEnd::TooLong) => {
                deliver(tell, Heard::Unreadable(too_long(LONGEST_MESSAGE_BYTES))).await;
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
struct Lines<R> {
    from: R,
    silence: Duration,
    longest: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    fn new(from: R, silence: Duration) -> Lines<R> {
        Lines {
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
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
        }
    }
}

async fn ask(mut stdin: impl AsyncWrite + Unpin, mut to_ask: UnboundedReceiver<String>) {
    loop {
        let text = match timeout(ALIVE, to_ask.recv()).await {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(_) => line(&Request::Alive),
        };
        let written = stdin.write_all(text.as_bytes()).await;
        if written.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Cluster;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::TryRecvError;

    /// Listens as a connection does, without an agent to keep alive.
    async fn listen_to_end(
        from: impl AsyncBufRead + Unpin,
        silence: Duration,
        tell: SyncSender<Heard>,
    ) -> bool {
        let has_ended = listen(from, silence, &tell).await;
        if has_ended {
            end(tell).await;
        }
        has_ended
    }

    /// Objects of a cluster whose API server refuses each request, or is not there.
    fn cluster(runtime: &tokio::runtime::Runtime, is_there: bool) -> Objects {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        if is_there {
            std::thread::spawn(move || {
                for stream in server.incoming() {
                    let mut stream = stream.unwrap();
                    let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
                    let answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
                    let _ = std::io::Write::write_all(&mut stream, answer);
                }
            });
        }
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let _inside = runtime.enter();
        Objects {
            made_namespace: false,
            cluster: Cluster {
                client: kube::Client::try_from(config).unwrap(),
                namespace: "bench".to_owned(),
                context: None,
            },
            id: "0a1b2c3d".to_owned(),
            job: "iosonde-0a1b2c3d".to_owned(),
            agent: String::new(),
        }
    }

    #[test]
    fn open_failure_tells_server_away_from_refusal() {
        let runtime = crate::runner::runtime().unwrap();
        for (is_there, retry) in [(true, Retry::Never), (false, Retry::WhileAway)] {
            let objects = cluster(&runtime, is_there);
            let failure = runtime
                .block_on(Connection::try_open(&objects, "pod"))
                .err();
            assert_eq!(failure.expect("no agent").retry, retry, "{is_there}");
        }
    }

    #[test]
    fn a_connection_that_says_nothing_any_more_has_ended() {
        const SILENCE: Duration = Duration::from_millis(400);
        let runtime = crate::runner::runtime().unwrap();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        let (mut agent, client) = tokio::io::duplex(1024);
        let (alive, ready) = (line(&Message::Alive), line(&Message::Ready));
        let wanted = runtime.block_on(async {
            let saying = async {
                let text = format!("{alive}mixed in\n");
                agent.write_all(text.as_bytes()).await.unwrap();
                // A line that takes longer than the silence limit, in pieces that do not.
                for piece in ready.as_bytes().chunks(1) {
                    sleep(SILENCE / 4).await;
                    agent.write_all(piece).await.unwrap();
                }
            };
            let hearing = listen_to_end(BufReader::new(client), SILENCE, tell);
            tokio::join!(saying, hearing).1
        });
        assert!(wanted, "though its other end is open");
        assert!(ready.len() > 4, "{ready}");
        let told: Vec<Heard> = heard.try_iter().collect();
        let expected = matches!(told[..], [Heard::Message(Message::Ready), Heard::Ended]);
        assert!(expected, "{told:?}");
        // A further receive returns at once.
        assert_eq!(heard.try_recv().unwrap_err(), TryRecvError::Disconnected);
        drop(agent);
    }

    /// Returns the events for these bytes and the end of their connection.
    fn heard_of(bytes: &[u8]) -> Vec<Heard> {
        let runtime = crate::runner::runtime().unwrap();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        runtime.block_on(listen_to_end(
            BufReader::new(bytes),
            Duration::from_secs(60),
            tell,
        ));
        heard.try_iter().collect()
    }

    /// More messages than all buffers between an agent and an idle session can hold.
    const WEEK: usize = 10_000;

    #[test]
    fn connection_reads_no_more_than_its_session_takes() {
        let runtime = crate::runner::runtime().unwrap();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        let (mut agent, client) = tokio::io::duplex(1024);
        let ready = line(&Message::Ready);
        runtime.spawn(listen_to_end(
            BufReader::new(client),
            Duration::from_secs(60),
            tell,
        ));
        let said = Arc::new(AtomicUsize::new(0));
        let counter = said.clone();
        let sending = runtime.spawn(async move {
            for _ in 0..WEEK {
                agent.write_all(ready.as_bytes()).await.unwrap();
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let settled = || {
            let before = said.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
            (said.load(Ordering::Relaxed) == before).then_some(before)
        };
        let most = std::iter::repeat_with(settled).flatten().next().unwrap();
        assert!((1..3000).contains(&most), "{most} of {WEEK}");
        let taken = heard
            .iter()
            .filter(|heard| matches!(heard, Heard::Message(_)));
        assert_eq!(taken.count(), WEEK);
        runtime.block_on(sending).unwrap();
    }

    #[test]
    fn a_message_that_cannot_be_read_is_heard_of_at_once() {
        let ready = line(&Message::Ready);
        for broken in [
            "{\"done\":{\"Ok\":{}}}",
            "{\"done\":{\"Ok\":",
            "{\"of_another_version\":1}",
            "\"of_another_version\"",
            "\u{0}\u{1}",
        ] {
            let heard = heard_of(format!("{ready}{broken}\n{ready}").as_bytes());
            let [Heard::Message(Message::Ready), Heard::Unreadable(problem)] = &heard[..] else {
                panic!("{broken}: {heard:?}");
            };
            let told = unreadable(problem.clone()).to_string();
            assert!(told.contains("cannot be read"), "{told}");
        }
        let noise: Vec<u8> = (0..=255).collect();
        assert!(
            matches!(heard_of(&noise)[..], [Heard::Unreadable(_)]),
            "noise"
        );
        // An incomplete line means a broken connection, so the client can reconnect.
        let half = &ready[..ready.len() - 3];
        assert!(matches!(heard_of(half.as_bytes())[..], [Heard::Ended]));
    }

    #[test]
    fn a_line_longer_than_any_message_is_not_collected() {
        let runtime = crate::runner::runtime().unwrap();
        let endless = BufReader::new(tokio::io::repeat(b'x'));
        let mut lines = Lines::new(endless, Duration::from_secs(60));
        lines.longest = 1 << 20;
        assert_eq!(runtime.block_on(lines.next()), Err(LinesEnd::TooLong));
        assert_eq!(too_long(1 << 20), "a line of more than 1 MiB");
    }

    /// Greeting of the agent of commit 1b19c80.
    const OLD_GREETING: &str = r#"{"hello":{"protocol":4,"program":"iosonde 0.1.0"}}"#;

    #[test]
    fn an_agent_of_another_version_is_named_in_one_line() {
        let error = greeted(Some(OLD_GREETING)).unwrap_err();
        let text = format!("{error}; {}", error.remedy());
        assert!(
            !text.contains('\n') && text.contains("iosonde 0.1.0 of another build"),
            "{text}"
        );
        assert!(text.contains("`iosonde k8s image`"), "{text}");
        let ours = Message::Hello {
            protocol: PROTOCOL,
            program: "iosonde 9".to_owned(),
        };
        assert_eq!(greeted(Some(&line(&ours))), Ok(()));
        for mute in [None, Some("sh: agent: not found\n"), Some("")] {
            let error = greeted(mute).unwrap_err().to_string();
            assert!(error.contains("does not answer"), "{error}");
        }
    }
}
