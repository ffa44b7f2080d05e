//! Messages of the agent, over exec in its pod.

use crate::api;
use crate::lifecycle::Objects;
use crate::manifest::{AGENT_DIRECTORY, CONTAINER};
use iosonde_result::session::RunError;
use iosonde_result::wire::{LONGEST_MESSAGE_BYTES, Message, PROTOCOL, Request, line};
use kube::api::{AttachParams, AttachedProcess};
use std::sync::mpsc::{Receiver, Sender, channel};
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
        let mut process = Process::call(objects, pod)
            .await
            .map_err(|error| api::failed("connecting with the agent", &error))?;
        let (asked, to_ask) = unbounded_channel();
        let (tell, heard) = channel();
        if let Some(stdin) = process.0.stdin() {
            tokio::spawn(ask(stdin, to_ask));
        }
        let mut from = match process.0.stdout() {
            Some(stdout) => BufReader::new(stdout),
            None => return Err(mute("it has no output")),
        };
        let mut first = String::new();
        let read = timeout(HELLO, from.read_line(&mut first)).await;
        let first = matches!(read, Ok(Ok(1..))).then_some(first);
        greeted(first.as_deref())?;
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
    pub(crate) fn fake() -> (Connection, UnboundedReceiver<String>, Sender<Heard>) {
        let (asked, to_ask) = unbounded_channel();
        let (tell, heard) = channel();
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

/// Passes one line on; `false` if nobody listens.
fn hear(text: &str, tell: &Sender<Heard>) -> bool {
    match serde_json::from_str(text) {
        Ok(Message::Alive) => true,
        Ok(message) => tell.send(Heard::Message(message)).is_ok(),
        Err(error) if is_document(text) => {
            // Fails where the session is gone.
            let _ = tell.send(Heard::Unreadable(error.to_string()));
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
            _ = lines(BufReader::new(stdout), (SILENCE, LONGEST_MESSAGE_BYTES), |_| true) => {}
        }
    }
}

/// Tells what the agent says, and at last that the connection has ended; `false` if nobody wants to know before. Whoever listens
/// after that finds nobody there.
async fn listen(from: impl AsyncBufRead + Unpin, silence: Duration, tell: Sender<Heard>) -> bool {
    // Sending fails where the session is gone.
    match lines(from, (silence, LONGEST_MESSAGE_BYTES), |text| {
        hear(text, &tell)
    })
    .await
    {
        Lines::Ended => tell.send(Heard::Ended).is_ok(),
        Lines::TooLong => {
            let _ = tell.send(Heard::Unreadable(too_long(LONGEST_MESSAGE_BYTES)));
            false
        }
        Lines::Unwanted => false,
    }
}

/// Why no more lines are passed on.
#[derive(Debug, PartialEq, Eq)]
enum Lines {
    /// The connection has ended, or was silent for too long.
    Ended,
    /// A line is longer than any message.
    TooLong,
    /// Nobody wants them.
    Unwanted,
}

fn too_long(longest: usize) -> String {
    format!("a line of more than {} MiB", longest >> 20)
}

/// Passes lines on until the connection ends, or is silent for so long that it has: a long line over a slow connection is not
/// silence.
async fn lines(
    mut from: impl AsyncBufRead + Unpin,
    (silence, longest): (Duration, usize),
    pass_on: impl Fn(&str) -> bool,
) -> Lines {
    let mut line = Vec::new();
    loop {
        let bytes = match timeout(silence, from.fill_buf()).await {
            Ok(Ok(bytes @ [_, ..])) => bytes,
            _ => return Lines::Ended,
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        line.extend_from_slice(&bytes[..used]);
        from.consume(used);
        if line.len() > longest {
            return Lines::TooLong;
        }
        if end.is_some() {
            if !pass_on(String::from_utf8_lossy(&line).trim_end()) {
                return Lines::Unwanted;
            }
            line.clear();
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
    use std::sync::mpsc::TryRecvError;

    #[test]
    fn a_connection_that_says_nothing_any_more_has_ended() {
        const SILENCE: Duration = Duration::from_millis(400);
        let runtime = crate::runner::runtime().unwrap();
        let (tell, heard) = channel();
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
        let (tell, heard) = channel();
        runtime.block_on(listen(BufReader::new(bytes), Duration::from_secs(60), tell));
        heard.try_iter().collect()
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
        let within = (Duration::from_secs(60), 1 << 20);
        let ended = runtime.block_on(lines(endless, within, |_| true));
        assert_eq!(ended, Lines::TooLong);
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
