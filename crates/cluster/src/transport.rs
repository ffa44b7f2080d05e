//! Messages of the agent, over exec in its pod.

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

/// How long sending the agent may take: megabytes over a bad line.
pub(crate) const UPLOAD: Duration = Duration::from_secs(180);
/// How long the agent may take to say its first word.
const HELLO: Duration = Duration::from_secs(30);
/// How often the agent is told that its client lives, and answers that it does, while nothing else is asked.
const ALIVE: Duration = Duration::from_secs(5);
/// A connection on which nothing is said for so long has no other end: one whose server vanished may never be told so.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);
/// How long after the end of a connection another stands in for it.
const STAND_IN: Duration = Duration::from_secs(5);
/// Bytes on their way in each direction.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Messages that wait for the session. When they are as many, nothing is read until it takes one: an agent sends a whole week at once
/// to a client that connects late.
const WAITING_MESSAGES_MAX: usize = 64;

pub(crate) async fn read_to_end(from: Option<impl AsyncRead + Unpin>, text: &mut String) {
    if let Some(mut from) = from {
        // What was read until a connection broke is all there is to say.
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

/// What comes from the agent.
#[derive(Debug)]
pub(crate) enum Heard {
    Message(Message),
    /// Something that is no message, and why. Nothing else follows.
    Unreadable(String),
    /// The connection has ended.
    Ended,
}

/// A connection to the agent. It ends when it is dropped; the agent then goes on.
pub(crate) struct Connection {
    asked: UnboundedSender<String>,
    pub(crate) heard: Receiver<Heard>,
    /// None where a test speaks for the agent.
    process: Option<Process>,
    /// What hears the agent.
    hearing: Option<JoinHandle<()>>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct OpenFailure {
    pub(crate) error: RunError,
    /// Whether the API server was away, or the connection broke: another attempt may succeed.
    pub(crate) is_passing: bool,
}

impl From<RunError> for OpenFailure {
    fn from(error: RunError) -> OpenFailure {
        OpenFailure {
            error,
            is_passing: false,
        }
    }
}

/// A process of the pod, as far as this client is concerned: over when it is dropped.
struct Process(AttachedProcess);

impl Process {
    /// What passes on everything between this client and the agent.
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
    /// Connects with the agent that serves in the pod.
    pub(crate) async fn open(objects: &Objects, pod: &str) -> Result<Connection, RunError> {
        Connection::try_open(objects, pod)
            .await
            .map_err(|failure| failure.error)
    }

    /// Connects with the agent that serves in the pod. The failure tells whether another attempt may succeed.
    pub(crate) async fn try_open(objects: &Objects, pod: &str) -> Result<Connection, OpenFailure> {
        let mut process = Process::call(objects, pod)
            .await
            .map_err(|error| OpenFailure {
                is_passing: api::is_away(&error),
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
            // The connection broke before the agent said anything.
            is_passing: matches!(read, Ok(Ok(0) | Err(_))),
            error,
        })?;
        let (objects, pod) = (objects.clone(), pod.to_owned());
        let hearing = tokio::spawn(async move {
            if listen(from, SILENCE, tell).await {
                stand_in(&objects, &pod).await;
            }
        });
        Ok(Connection {
            asked,
            heard,
            process: Some(process),
            hearing: Some(hearing),
        })
    }

    /// A connection, what is asked over it, and a way to be its agent.
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

    /// Asks for something. If the connection has ended, that is heard.
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

/// Whether the first line is of an agent that this client understands.
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

/// The agent said something that is no message.
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

/// How long it waits before it looks again whether the session has taken a message.
const ROOM_POLL: Duration = Duration::from_millis(5);

/// Gives a message to the session, once it has room for one. `false`: the session is gone.
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

/// Passes one line on; `false` if nobody listens.
async fn hear(text: &str, tell: &SyncSender<Heard>) -> bool {
    match serde_json::from_str(text) {
        Ok(Message::Alive) => true,
        Ok(message) => deliver(tell, Heard::Message(message)).await,
        Err(error) if is_document(text) => {
            deliver(tell, Heard::Unreadable(error.to_string())).await;
            false
        }
        // Not of the agent: a line that the runtime has mixed in.
        Err(_) => true,
    }
}

/// Whether a line looks like a message, whatever is in it.
fn is_document(text: &str) -> bool {
    text.starts_with(['{', '"', '\0']) || text.contains('\u{fffd}')
}

/// A session that waits for its turn listens to nobody, and an agent that hears of no client ends: over other connections it is
/// told that there is one, until the session itself has another.
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

/// Reads what an agent says for nobody, until the connection ends.
async fn read_all(from: impl AsyncBufRead + Unpin) {
    let mut lines = Lines::new(from, SILENCE);
    while lines.next().await.is_ok() {}
}

/// Tells what the agent says, and at last that the connection has ended; `false` if nobody wants to know before. Whoever listens
/// after that finds nobody there.
async fn listen(
    from: impl AsyncBufRead + Unpin,
    silence: Duration,
    tell: SyncSender<Heard>,
) -> bool {
    let mut lines = Lines::new(from, silence);
    loop {
        match lines.next().await {
            Ok(line) if hear(&line, &tell).await => {}
            Ok(_) => return false,
            Err(LinesEnd::Ended) => return deliver(&tell, Heard::Ended).await,
            Err(LinesEnd::TooLong) => {
                deliver(&tell, Heard::Unreadable(too_long(LONGEST_MESSAGE_BYTES))).await;
                return false;
            }
        }
    }
}

/// Why there are no more lines.
#[derive(Debug, PartialEq, Eq)]
enum LinesEnd {
    /// The connection has ended, or was silent for too long.
    Ended,
    /// A line is longer than any message.
    TooLong,
}

fn too_long(longest: usize) -> String {
    format!("a line of more than {} MiB", longest >> 20)
}

/// The lines of a connection, which ends when it is silent for too long: a long line over a slow connection is not silence.
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::TryRecvError;

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
                // A line that takes longer than silence may, in pieces that do not.
                for piece in ready.as_bytes().chunks(1) {
                    sleep(SILENCE / 4).await;
                    agent.write_all(piece).await.unwrap();
                }
            };
            let hearing = listen(BufReader::new(client), SILENCE, tell);
            tokio::join!(saying, hearing).1
        });
        assert!(wanted, "though its other end is open");
        assert!(ready.len() > 4, "{ready}");
        let told: Vec<Heard> = heard.try_iter().collect();
        let expected = matches!(told[..], [Heard::Message(Message::Ready), Heard::Ended]);
        assert!(expected, "{told:?}");
        // Whoever has taken that, and asks again, is not left to wait.
        assert_eq!(heard.try_recv().unwrap_err(), TryRecvError::Disconnected);
        drop(agent);
    }

    /// What is heard of these bytes until their connection ends.
    fn heard_of(bytes: &[u8]) -> Vec<Heard> {
        let runtime = crate::runner::runtime().unwrap();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        runtime.block_on(listen(BufReader::new(bytes), Duration::from_secs(60), tell));
        heard.try_iter().collect()
    }

    /// More messages than wait anywhere between an agent and a session that takes nothing.
    const WEEK: usize = 10_000;

    #[test]
    fn connection_reads_no_more_than_its_session_takes() {
        let runtime = crate::runner::runtime().unwrap();
        let (tell, heard) = sync_channel(WAITING_MESSAGES_MAX);
        let (mut agent, client) = tokio::io::duplex(1024);
        let ready = line(&Message::Ready);
        runtime.spawn(listen(
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
        assert!((1..2000).contains(&most), "{most} of {WEEK}");
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
        // Half a line is one whose connection broke: the agent is asked again.
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

    /// As the agent of commit 1b19c80 says it.
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
