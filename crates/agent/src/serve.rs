//! Mode `serve`: a session for clients that connect to a socket.
//!
//! The session lives in the first thread. Each connection has two threads: one reads requests, one
//! sends messages. A run continues without its client, and another connection can follow it. An
//! idle agent without requests removes its files and exits, so dead clients leave nothing behind.

use crate::arguments::read_options;
use crate::feed::{Feed, Position};
use crate::look::look;
use crate::{Failure, program, scratch, volume};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::runner::{LocalRunner, LocalSession};
use iosonde_job::Plan;
use iosonde_machine::consent::Consent;
use iosonde_machine::device_watch::MachineSampler;
use iosonde_machine::proc_root::System;
use iosonde_result::machine::MachineSlice;
use iosonde_result::session::Session;
use iosonde_result::wire::{
    DeviceConsent, LONGEST_REQUEST_BYTES, Message, PROTOCOL, Request, Stop, line,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval of waiting threads.
const TICK: Duration = Duration::from_millis(100);

/// Parameters of the mode `serve`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Path of the socket.
    pub(crate) socket: PathBuf,
    /// Time without requests after which an idle agent exits.
    idle: Duration,
    /// Time to wait for the first request: the client may first wait for all of its pods.
    first: Option<Duration>,
    /// Block device that plans write to.
    device: Option<PathBuf>,
    /// Directory of the run, created at the start and removed at the end with its contents.
    scratch: Option<PathBuf>,
}

impl Options {
    /// Parses the arguments after `serve`.
    pub(crate) fn read(words: &[OsString]) -> Result<Options, Failure> {
        let mut options = Options {
            socket: crate::SOCKET.into(),
            idle: Duration::from_secs(120),
            first: None,
            device: None,
            scratch: None,
        };
        let operands = read_options(words, |name, words| {
            match name {
                "--socket" => options.socket = words.value(name)?.into(),
                "--scratch" => options.scratch = Some(words.value(name)?.into()),
                "--device" => options.device = Some(words.value(name)?.into()),
                "--idle" => options.idle = seconds(name, words.value(name)?)?,
                "--first" => options.first = Some(seconds(name, words.value(name)?)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match operands.first() {
            Some(word) => {
                let word = word.to_string_lossy();
                Err(Failure::new(2, format!("{word} is no option")))
            }
            None => Ok(options),
        }
    }

    /// Returns the volume that plans use.
    fn volume(&self) -> impl Iterator<Item = &Path> {
        self.scratch
            .iter()
            .chain(&self.device)
            .map(PathBuf::as_path)
    }
}

fn seconds(name: &str, value: &OsString) -> Result<Duration, Failure> {
    let seconds = value.to_str().and_then(|text| text.parse().ok());
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| Failure::new(2, format!("{name} needs whole seconds")))
}

/// Turns SIGTERM and SIGINT into interrupts.
pub(crate) fn signals() -> Result<Arc<Interrupt>, Failure> {
    let interrupt = Arc::new(Interrupt::default());
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::new(5, format!("signals cannot be handled: {error}")))?;
    let heard = interrupt.clone();
    thread::spawn(move || {
        for _ in &mut signals {
            heard.request();
        }
    });
    Ok(interrupt)
}

/// State shared by the connections and the session.
struct Shared {
    feed: Feed,
    interrupt: Arc<Interrupt>,
    /// Number of interrupts requested by clients. The others are signals.
    asked_interrupts: AtomicU32,
    begun: Instant,
    /// Time of the last request, in milliseconds since `begun`. 0 before the first.
    heard_ms: AtomicU64,
    idle: Duration,
    first: Duration,
    /// Duration of the last run in milliseconds. 0 during a run.
    took_ms: AtomicU64,
    is_closing: AtomicBool,
    work: Mutex<Sender<Work>>,
}

/// A plan to run, and its client's consent for the block device.
struct Work {
    plan: Plan,
    consent: Option<DeviceConsent>,
}

impl Shared {
    fn hear(&self) {
        let now_ms = self.begun.elapsed().as_millis() as u64;
        self.heard_ms.store(now_ms.max(1), Relaxed);
    }

    fn interrupt(&self) {
        self.asked_interrupts.fetch_add(1, Relaxed);
        self.interrupt.request();
    }

    fn has_signal(&self) -> bool {
        self.interrupt.count() > self.asked_interrupts.load(Relaxed)
    }

    /// Returns the idle timeout, if it has passed since the last request.
    fn is_forsaken(&self) -> Option<Duration> {
        let heard_ms = self.heard_ms.load(Relaxed);
        let silence = self
            .begun
            .elapsed()
            .saturating_sub(Duration::from_millis(heard_ms));
        let patience = match heard_ms {
            0 => self.first,
            // The result of a long run is kept for as long as the run took.
            _ => self
                .idle
                .max(Duration::from_millis(self.took_ms.load(Relaxed))),
        };
        (silence >= patience).then_some(patience)
    }
}

/// Serves until a client closes the session, a signal arrives, or the agent is idle too long.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = signals()?;
    let runner = LocalRunner {
        interrupt: interrupt.clone(),
        permissions: Some(volume::permissions(options.volume())),
        ..LocalRunner::default()
    };
    // Socket of an earlier agent.
    let _ = std::fs::remove_file(&options.socket);
    if let Some(scratch) = &options.scratch {
        scratch::make(scratch).map_err(|error| {
            let path = scratch.display();
            Failure::new(3, format!("{path} cannot be made in the volume: {error}"))
        })?;
    }
    let listener = UnixListener::bind(&options.socket)
        .map_err(|error| Failure::new(5, format!("{}: {error}", options.socket.display())))?;
    let (work, plans) = channel();
    let shared = Arc::new(Shared {
        feed: Feed::default(),
        interrupt,
        asked_interrupts: AtomicU32::new(0),
        begun: Instant::now(),
        heard_ms: AtomicU64::new(0),
        idle: options.idle,
        first: options.first.unwrap_or(options.idle),
        took_ms: AtomicU64::new(0),
        is_closing: AtomicBool::new(false),
        work: Mutex::new(work),
    });
    let accepting = shared.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = accepting.clone();
            thread::spawn(move || serve_client(&shared, stream));
        }
    });
    let held = shared.clone();
    thread::spawn(move || give_up_waiting(&held));
    let session = session_loop(runner.open(), options, &shared, &plans);
    let closed = Box::new(session).close();
    let _ = std::fs::remove_file(&options.socket);
    if let Some(scratch) = &options.scratch {
        std::fs::remove_dir_all(scratch).map_err(|error| {
            Failure::new(5, format!("{} is left behind: {error}", scratch.display()))
        })?;
    }
    closed.map_err(|error| Failure::new(5, error.to_string()))
}

/// Runs the plans that clients send.
fn session_loop(
    mut session: LocalSession,
    options: &Options,
    shared: &Shared,
    plans: &Receiver<Work>,
) -> LocalSession {
    let mut agreed = None;
    while !shared.is_closing.load(Relaxed) && !shared.interrupt.is_requested() {
        match plans.recv_timeout(TICK) {
            Ok(Work { plan, consent }) => {
                // The disk is identified when consent is given, and compared at each later run.
                if agreed != consent {
                    agreed = consent;
                    session.agree_to(consent_to(options.device.as_deref(), consent));
                }
                let begun = Instant::now();
                shared.took_ms.store(0, Relaxed);
                let outcome = session.run(&plan, &mut &shared.feed);
                shared
                    .took_ms
                    .store(begun.elapsed().as_millis() as u64, Relaxed);
                if shared.has_signal() {
                    shared.feed.ending();
                }
                shared.feed.end(outcome);
                // Restarts the idle timeout, so that the client can fetch the result.
                shared.hear();
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(patience) = shared.is_forsaken() {
                    let seconds = patience.as_secs();
                    eprintln!("no client has asked for anything for {seconds} s");
                    return session;
                }
            }
            // All senders of plans are gone.
            Err(RecvTimeoutError::Disconnected) => return session,
        }
    }
    if shared.interrupt.is_requested() {
        // Clients receive the end of the run before the process exits.
        thread::sleep(TICK);
    }
    session
}

/// Returns the consent: for the device only, and as far as the client gave it.
fn consent_to(device: Option<&Path>, agreed: Option<DeviceConsent>) -> Consent {
    let device = device.filter(|_| agreed.is_some());
    let shared = device.filter(|_| agreed == Some(DeviceConsent::Shared));
    Consent::to_overwrite(device).and_in_use(shared)
}

/// Interrupts jobs that wait at the start barrier for a client that is gone.
fn give_up_waiting(shared: &Shared) {
    loop {
        thread::sleep(TICK);
        if shared.feed.is_held() && shared.is_forsaken().is_some() {
            shared.interrupt.request();
            return;
        }
    }
}

fn serve_client(shared: &Arc<Shared>, stream: UnixStream) {
    let Ok(read) = stream.try_clone() else {
        return;
    };
    let client = Arc::new(Client {
        shared: shared.clone(),
        position: Mutex::new(Position::default()),
        disks: Mutex::new(None),
        stream: Mutex::new(stream),
        is_gone: AtomicBool::new(false),
    });
    let hello = Message::Hello {
        protocol: PROTOCOL,
        program: program().to_owned(),
    };
    client.tell(&line(&hello));
    let telling = client.clone();
    thread::spawn(move || telling.follow());
    let mut requests = BufReader::new(read);
    while let Ok(Some(text)) = next_line(&mut requests, LONGEST_REQUEST_BYTES) {
        shared.hear();
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
    client.hang_up();
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
struct Client {
    shared: Arc<Shared>,
    position: Mutex<Position>,
    /// Samples the machine between requests of this client. `None` before the first.
    disks: Mutex<Option<MachineSampler>>,
    stream: Mutex<UnixStream>,
    is_gone: AtomicBool,
}

impl Client {
    fn serve(&self, request: Request) {
        match request {
            Request::Alive => self.tell(&line(&Message::Alive)),
            Request::Look { path } => self.tell(&line(&Message::Place(look(&path)))),
            Request::Run {
                run,
                plan,
                interval_ns,
                hold,
                consent,
            } => {
                let plan = *plan;
                self.start(run, Work { plan, consent }, interval_ns, hold);
            }
            Request::Clock => {
                let now_ns = self.shared.begun.elapsed().as_nanos() as u64;
                self.tell(&line(&Message::Clock { now_ns }));
            }
            Request::Sample => {
                let mut disks = self.disks.lock().unwrap_or_else(PoisonError::into_inner);
                let slice = match disks.as_mut() {
                    Some(sampler) => sampler.sample(),
                    None => MachineSlice::default(),
                };
                disks.get_or_insert_with(|| MachineSampler::begin(System::live()));
                self.tell(&line(&Message::Sample(Box::new(slice))));
            }
            Request::Status { run } => self.shared.feed.want_status(run),
            Request::Start { run, at_ns } => {
                let at = self.shared.begun + Duration::from_nanos(at_ns);
                self.shared.feed.release(run, at);
            }
            Request::Follow { run, have } => self.follow_from(run, have),
            Request::Stop { run, stop } => match stop {
                Stop::Enough => self.shared.feed.stop(run),
                Stop::Interrupt => self.shared.interrupt(),
            },
            Request::Close => {
                if self.shared.feed.is_running() {
                    self.shared.interrupt();
                }
                self.shared.is_closing.store(true, Relaxed);
            }
        }
    }

    fn start(&self, run: u64, wanted: Work, interval_ns: u64, hold: bool) {
        // The request may be a repeated one, from a client that reconnects.
        if self.shared.feed.has(run) {
            self.follow_from(run, 0);
            return;
        }
        if !self.shared.feed.begin(run, interval_ns, hold) {
            self.refuse("another run goes on".to_owned());
            return;
        }
        self.follow_from(run, 0);
        let work = self.shared.work.lock();
        // The session's thread ends only with the process.
        let _ = work.unwrap_or_else(PoisonError::into_inner).send(wanted);
    }

    fn follow_from(&self, run: u64, have: usize) {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        *position = Position::new(run, have);
    }

    /// Sends new messages until the connection ends.
    fn follow(&self) {
        while !self.is_gone.load(Relaxed) {
            let mut position = *self.position.lock().unwrap_or_else(PoisonError::into_inner);
            let before = position;
            let news = self.shared.feed.news(&mut position, TICK);
            {
                let mut current = self.position.lock().unwrap_or_else(PoisonError::into_inner);
                if *current != before {
                    continue;
                }
                *current = position;
            }
            for text in news {
                self.tell(&text);
            }
        }
    }

    /// Closes the connection, so that the client sees its end.
    fn hang_up(&self) {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        // The connection may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }

    fn refuse(&self, problem: String) {
        self.tell(&line(&Message::Refused(problem)));
    }

    fn tell(&self, text: &str) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if write(&mut stream, text).is_err() {
            self.is_gone.store(true, Relaxed);
        }
    }
}

fn write(stream: &mut UnixStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_off_behind_the_longest_and_half_a_line_is_none() {
        let mut from = &b"abc\nabcd\nab"[..];
        let mut next = || next_line(&mut from, 4).unwrap();
        assert_eq!(next().as_deref(), Some(&b"abc\n"[..]));
        assert_eq!(next().as_deref(), Some(&b"abcd\n"[..]));
        assert_eq!(next(), None);
    }

    #[test]
    fn options_are_read_or_named() {
        let read = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            Options::read(&words)
        };
        let options = read(&[
            "--socket", "/s", "--idle", "5", "--first", "60", "--device", "/dev/x",
        ])
        .unwrap();
        let expected = Options {
            socket: "/s".into(),
            idle: Duration::from_secs(5),
            first: Some(Duration::from_secs(60)),
            device: Some("/dev/x".into()),
            scratch: None,
        };
        assert_eq!(options, expected);
        let message = |words: &[&str]| read(words).unwrap_err().message;
        assert!(message(&["--idle", "x"]).contains("whole seconds"));
        assert!(message(&["--sock", "x"]).contains("--sock"));
        assert!(message(&["--idle"]).contains("needs a value"));
        assert!(message(&["idle", "5"]).contains("idle is no option"));
    }
}
