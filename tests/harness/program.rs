//! Runs fio and iosonde with fio's command line.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::Scratch;
use crate::throttle::Throttle;

/// Returns the exit status, standard output and standard error of a command.
#[must_use]
pub fn status_and_output(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A program with fio's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The installed fio, the reference.
    Fio,
    /// `iosonde fio`, built from this checkout.
    Iosonde,
}

impl Program {
    /// The program under test: iosonde, or fio itself with `IOSONDE_E2E_PEER=fio`.
    #[must_use]
    pub fn subject() -> Program {
        if env::var("IOSONDE_E2E_PEER").as_deref() == Ok("fio") {
            Program::Fio
        } else {
            Program::Iosonde
        }
    }

    /// The reference and the subject, in this order.
    #[must_use]
    pub fn both() -> [Program; 2] {
        [Program::Fio, Program::subject()]
    }

    /// Whether this is the reference.
    #[must_use]
    pub fn is_fio(self) -> bool {
        self == Program::Fio
    }

    /// The words of the command line that start the program.
    #[must_use]
    pub fn command(self) -> Vec<OsString> {
        match self {
            Program::Fio => vec!["fio".into()],
            Program::Iosonde => vec![iosonde().into(), "fio".into()],
        }
    }

    /// A run of the program with fio's arguments in the scratch directory.
    pub fn args<A: AsRef<OsStr>>(
        self,
        scratch: &Scratch,
        args: impl IntoIterator<Item = A>,
    ) -> Invocation {
        let mut words = self.command();
        words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        Invocation::new(scratch, words)
    }

    /// As [`Program::args`], from one line. Words are split at blanks, without quoting.
    pub fn line(self, scratch: &Scratch, line: &str) -> Invocation {
        self.args(scratch, line.split_whitespace())
    }
}

/// The iosonde under test: `IOSONDE_BIN`, or a build made on first use. Its profile `dev` has debug
/// assertions and an optimised engine.
#[must_use]
pub fn iosonde() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = env::var_os("IOSONDE_BIN") {
            return path.into();
        }
        let exe = env::current_exe().expect("the path of the running test");
        let target = exe
            .ancestors()
            .nth(3)
            .expect("a test below TARGET/PROFILE/deps");
        let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "--quiet", "--package", "iosonde", "--target-dir"])
            .arg(target)
            .status()
            .expect("cargo starts");
        assert!(status.success(), "iosonde does not build");
        target.join("debug/iosonde")
    })
}

/// Time limit of a program. Each ends within two minutes on a quiet machine, so a longer run hangs.
pub const PROGRAM_TIMEOUT: Duration = Duration::from_secs(600);

/// Environment variable of iosonde that skips the wait for idle storage before a run.
pub const NO_IDLE_WAIT: &str = "IOSONDE_NO_IDLE_WAIT";

/// One run before its start.
#[derive(Debug)]
pub struct Invocation {
    pub(crate) words: Vec<OsString>,
    pub(crate) envs: Vec<(OsString, OsString)>,
    pub(crate) dir: PathBuf,
    out: PathBuf,
    input: PathBuf,
    pub(crate) timeout: Duration,
}

impl Invocation {
    /// A run of any command in the scratch directory, with the scratch state directory as its home.
    /// Runs of sweeps start without a wait for idle storage: others use the disk of this machine
    /// all the time, and other devices of tests have no other users.
    #[must_use]
    pub fn new(scratch: &Scratch, words: Vec<OsString>) -> Invocation {
        let state = scratch.state();
        let homes = [
            "HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
        ]
        .map(|name| (OsString::from(name), OsString::from(state.clone())));
        let mut envs = Vec::from(homes);
        envs.push((NO_IDLE_WAIT.into(), "1".into()));
        Invocation {
            words,
            envs,
            dir: scratch.work(),
            out: scratch.out(),
            input: "/dev/null".into(),
            timeout: PROGRAM_TIMEOUT,
        }
    }

    /// Appends the arguments of one line.
    #[must_use]
    pub fn and(mut self, line: &str) -> Invocation {
        self.words
            .extend(line.split_whitespace().map(OsString::from));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Invocation {
        self.envs.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Uses a file as the program's standard input.
    #[must_use]
    pub fn input(mut self, path: &Path) -> Invocation {
        self.input = path.to_owned();
        self
    }

    /// Runs the program in the control group of a throttle.
    #[must_use]
    pub fn throttled(self, throttle: &Throttle) -> Invocation {
        let procs: OsString = throttle.procs().into();
        self.behind([
            "sh".into(),
            "-c".into(),
            r#"echo $$ > "$0" && exec "$@""#.into(),
            procs,
        ])
    }

    /// Runs the program with real-time priority. Needs root; not for programs that never sleep.
    /// Without permission, as in many containers, the program runs with normal priority.
    #[must_use]
    pub fn urgent(self) -> Invocation {
        let first =
            r#"chrt --fifo 1 true 2>/dev/null && exec chrt --fifo 1 "$0" "$@"; exec "$0" "$@""#;
        self.behind(["sh", "-c", first].map(OsString::from))
    }

    /// Hides all control groups from the program, as a container hides its parents. Needs root.
    #[must_use]
    pub fn without_sight_of_groups(self) -> Invocation {
        let hide = r#"mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@""#;
        self.behind(["sh", "-c", hide].map(OsString::from))
            .behind(["unshare", "--mount", "--"].map(OsString::from))
    }

    /// Traces system calls of these names into a file. Slows the program.
    #[must_use]
    pub fn traced(self, calls: &str, file: &Path) -> Invocation {
        let words = ["strace", "-f", "-qq", "-y", "-e", calls, "-o"].map(OsString::from);
        self.behind(words.into_iter().chain([file.into()]))
    }

    /// Puts words before the program's command line.
    #[must_use]
    pub fn behind(mut self, words: impl IntoIterator<Item = OsString>) -> Invocation {
        self.words = words.into_iter().chain(self.words).collect();
        self
    }

    /// Sets the time limit; a run beyond it is killed and fails the test. Default:
    /// [`PROGRAM_TIMEOUT`].
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Invocation {
        self.timeout = timeout;
        self
    }

    /// Starts the program and returns at once.
    #[must_use]
    pub fn start(self) -> Running {
        let unique = unique();
        let stdout = self.out.join(format!("{unique}.stdout"));
        let stderr = self.out.join(format!("{unique}.stderr"));
        let child = Command::new(&self.words[0])
            .args(&self.words[1..])
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.dir)
            .stdin(File::open(&self.input).expect("standard input"))
            .stdout(File::create(&stdout).expect("a file for what the program prints"))
            .stderr(File::create(&stderr).expect("a file for what the program prints"))
            .spawn()
            .unwrap_or_else(|error| panic!("{:?} does not start: {error}", self.words));
        Running {
            child,
            words: self.words,
            stdout,
            stderr,
            deadline: Instant::now() + self.timeout,
        }
    }

    /// Runs the program until it exits with any status.
    #[must_use]
    pub fn run(self) -> Run {
        self.start().wait()
    }

    /// Runs the program until it exits successfully.
    ///
    /// # Panics
    /// If the program fails.
    #[must_use]
    pub fn ok(self) -> Run {
        let run = self.run();
        assert!(run.status.success(), "failed: {run}");
        run
    }

    /// Runs the program with JSON output to a file.
    ///
    /// # Panics
    /// If the program fails or writes no JSON.
    #[must_use]
    pub fn json(self) -> Value {
        self.json_and_run().0
    }

    /// As [`Invocation::json`], but the program may fail if it writes a result.
    #[must_use]
    pub fn json_and_run(self) -> (Value, Run) {
        let file = self.out.join(format!("{}.json", unique()));
        let run = self
            .and(&format!("--output-format=json --output={}", file.display()))
            .run();
        let text = fs::read_to_string(&file).unwrap_or_default();
        // fio prints notes before the JSON, also into a file.
        let document = text
            .find('{')
            .map(|start| &text[start..])
            .unwrap_or_default();
        let mut documents = serde_json::Deserializer::from_str(document).into_iter::<Value>();
        match documents.next() {
            Some(Ok(value)) => (value, run),
            _ => panic!("no JSON in {text:?}: {run}"),
        }
    }
}

/// A number that is unique in this process, for names of output files.
fn unique() -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.fetch_add(1, Ordering::Relaxed)
}

/// A program that is running.
#[derive(Debug)]
pub struct Running {
    child: Child,
    words: Vec<OsString>,
    stdout: PathBuf,
    stderr: PathBuf,
    deadline: Instant,
}

impl Running {
    /// Standard output of the program so far.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        lossy(&self.stdout)
    }

    /// Standard error of the program so far.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        lossy(&self.stderr)
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a condition holds. Returns false if the program ends or times out first.
    pub fn until(&mut self, mut condition: impl FnMut(&Running) -> bool) -> bool {
        loop {
            if condition(self) {
                return true;
            }
            if Instant::now() > self.deadline
                || self
                    .child
                    .try_wait()
                    .expect("a child to wait for")
                    .is_some()
            {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the program has not exited yet.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a process to send a signal to");
    }

    /// Waits until a condition holds.
    ///
    /// # Panics
    /// If the program ends or times out first.
    pub fn must_reach(&mut self, what: &str, condition: impl FnMut(&Running) -> bool) {
        assert!(
            self.until(condition),
            "{:?} never came to this: {what}\n{}{}",
            self.words,
            lossy(&self.stdout),
            lossy(&self.stderr)
        );
    }

    /// Sets the time limit of the program, from now on.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Running {
        self.deadline = Instant::now() + timeout;
        self
    }

    /// Waits until the program exits.
    ///
    /// # Panics
    /// If the program times out; it is killed first.
    #[must_use]
    pub fn wait(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child to wait for") {
                break status;
            }
            if Instant::now() > self.deadline {
                let waits = thread_states(self.pid());
                self.kill_and_wait();
                panic!(
                    "{:?} did not end in time\n{waits}{}{}",
                    self.words,
                    lossy(&self.stdout),
                    lossy(&self.stderr)
                );
            }
            thread::sleep(Duration::from_millis(10));
        };
        Run {
            words: self.words.clone(),
            status,
            stdout: lossy(&self.stdout),
            stderr: lossy(&self.stderr),
        }
    }
}

impl Running {
    /// Kills the program and waits at most 60 s: an I/O stuck in the kernel can prevent its exit.
    fn kill_and_wait(&mut self) {
        let _ = self.child.kill();
        for _ in 0..6000 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        eprintln!("left behind: process {}", self.pid());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails between start and wait must not leave its program running.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill_and_wait();
        }
    }
}

/// State, kernel wait channel and stack of each thread of a process.
fn thread_states(pid: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = tasks.into_iter().flatten().flatten().map(|task| {
        let read = |name: &str| lossy(&task.path().join(name));
        let status = read("status");
        let state = status.lines().find(|line| line.starts_with("State:"));
        format!(
            "thread {}: {}, {}, system call {}{}",
            read("comm").trim_end(),
            state.unwrap_or("ended"),
            read("wchan"),
            read("syscall"),
            read("stack"),
        )
    });
    threads.collect()
}

fn lossy(path: &Path) -> String {
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// Exit status and output of a run.
#[derive(Debug)]
pub struct Run {
    words: Vec<OsString>,
    /// The exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Standard output followed by standard error.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Asserts that the program failed and that its output has all these words, ignoring case.
    ///
    /// # Panics
    /// If it succeeded, died of a signal, panicked or omitted a word.
    pub fn refused_with(&self, needles: &[&str]) {
        assert!(!self.status.success(), "should have been refused: {self}");
        assert!(self.status.signal().is_none(), "died of a signal: {self}");
        let text = self.text().to_lowercase();
        assert!(!text.contains("panicked"), "panicked: {self}");
        for needle in needles {
            assert!(
                text.contains(&needle.to_lowercase()),
                "does not say {needle:?}: {self}"
            );
        }
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<_> = self
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        writeln!(
            f,
            "{}\n{}\n-- stdout\n{}-- stderr\n{}",
            words.join(" "),
            self.status,
            self.stdout,
            self.stderr
        )
    }
}
