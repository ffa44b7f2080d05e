//! Runs the programs that map, format and mount an image.

use iosonde_engine::interrupt::Interrupt;
use iosonde_job::quote_shell_word;
use iosonde_result::run_error::ProgramEnding;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::SIGINT;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time between two checks whether a program has ended.
const END_POLL: Duration = Duration::from_millis(20);
/// Time that a program has to end after SIGTERM, before it gets SIGKILL.
const TERMINATION_MAX: Duration = Duration::from_secs(5);
/// Time for the output of a program that has ended. Its children may hold the pipe open.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Longest output of a program that is kept.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// Longest message of a program in an error.
const MESSAGE_CHARS_MAX: usize = 300;
/// Directories of programs for root, which the search path of a user may lack.
const ROOT_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramCall {
    pub(super) program: &'static str,
    pub(super) arguments: Vec<String>,
    /// Time after which the program is stopped.
    pub(super) limit: Duration,
    /// Whether the call undoes an earlier one. Ctrl-C does not stop it.
    pub(super) is_undo: bool,
}

impl fmt::Display for ProgramCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.program)?;
        let words = self.arguments.iter();
        words
            .map(|word| quote_shell_word(word))
            .try_for_each(|word| write!(formatter, " {word}"))
    }
}

/// A program that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramFailure {
    pub(super) ending: ProgramEnding,
    /// Message of the program in one line, or empty.
    pub(super) said: String,
}

/// Runs programs: on this machine, or in a test, which records them.
pub(super) trait ProgramRunner {
    /// Whether a program is installed.
    fn is_installed(&self, program: &str) -> bool;

    /// Runs a program to its end, and returns its standard output.
    fn run(&mut self, call: &ProgramCall) -> Result<String, ProgramFailure>;

    /// Waits before another attempt.
    fn pause(&mut self, time: Duration);
}

/// The programs of this machine.
#[derive(Debug, Default)]
pub(super) struct SystemPrograms {
    /// Stops programs that undo nothing.
    interrupt: Arc<Interrupt>,
}

impl SystemPrograms {
    /// Programs that a stop request stops.
    pub(super) fn stopped_by(interrupt: Arc<Interrupt>) -> SystemPrograms {
        SystemPrograms { interrupt }
    }

    /// Waits for the end of a program. `None`: it has succeeded.
    fn wait_for_end(&self, child: &mut Child, call: &ProgramCall) -> Option<ProgramEnding> {
        let group = Pid::from_child(child);
        let deadline = Instant::now() + call.limit;
        let mut terminated: Option<Instant> = None;
        let mut is_late = false;
        let timed_out = ProgramEnding::TimedOut {
            limit_s: call.limit.as_secs(),
        };
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(_)) if is_late => return Some(timed_out),
                Ok(Some(status)) => return Some(ending(status)),
                Ok(None) => {}
                Err(error) => return Some(not_started(&error)),
            }
            match terminated {
                // The kernel does not end a program that waits for an unreachable cluster.
                Some(at) if at.elapsed() >= TERMINATION_MAX => {
                    let _ = kill_process_group(group, Signal::KILL);
                    return Some(timed_out);
                }
                Some(_) => {}
                None => {
                    is_late = Instant::now() >= deadline;
                    if is_late || !call.is_undo && self.interrupt.is_requested() {
                        let _ = kill_process_group(group, Signal::TERM);
                        terminated = Some(Instant::now());
                    }
                }
            }
            std::thread::sleep(END_POLL);
        }
    }
}

impl ProgramRunner for SystemPrograms {
    fn is_installed(&self, program: &str) -> bool {
        find_program(program).is_some()
    }

    fn run(&mut self, call: &ProgramCall) -> Result<String, ProgramFailure> {
        let failed = |ending, said| Err(ProgramFailure { ending, said });
        if !call.is_undo && self.interrupt.is_requested() {
            return failed(ProgramEnding::Signal(SIGINT), String::new());
        }
        let path = find_program(call.program).unwrap_or_else(|| PathBuf::from(call.program));
        let started = Command::new(path)
            .args(&call.arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal reaches only the group of iosonde.
            .process_group(0)
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return failed(not_started(&error), String::new()),
        };
        let printed = child.stdout.take().map(read_in_thread);
        let messages = child.stderr.take().map(read_in_thread);
        let text = |reader: Option<Receiver<String>>| {
            let text = reader.and_then(|reader| reader.recv_timeout(DRAIN_MAX).ok());
            text.unwrap_or_default()
        };
        match self.wait_for_end(&mut child, call) {
            None => Ok(text(printed)),
            Some(ending) => failed(ending, one_line(&text(messages))),
        }
    }

    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

fn not_started(error: &io::Error) -> ProgramEnding {
    ProgramEnding::NotStarted {
        errno: error.raw_os_error().unwrap_or_default(),
    }
}

fn ending(status: ExitStatus) -> ProgramEnding {
    match status.signal() {
        Some(signal) => ProgramEnding::Signal(signal),
        None => ProgramEnding::Status(status.code().unwrap_or_default()),
    }
}

/// Reads the output of a program to its end. The first part of a long output is kept.
fn read_in_thread(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, text) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let read = from.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut kept);
        // The program would wait for a reader of the rest.
        let _ = read.and_then(|_| io::copy(&mut from, &mut io::sink()));
        // The receiver is dropped after its timeout.
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    text
}

/// Joins the lines of a message, and cuts a long message off.
fn one_line(message: &str) -> String {
    let lines: Vec<&str> = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let line: String = lines.join("; ");
    match line.chars().count() > MESSAGE_CHARS_MAX {
        true => line
            .chars()
            .take(MESSAGE_CHARS_MAX)
            .chain("...".chars())
            .collect(),
        false => line,
    }
}

/// Finds a program in the search path and in the directories of programs for root.
fn find_program(program: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let searched: Vec<PathBuf> = std::env::split_paths(&search)
        .filter(|directory| directory.is_absolute())
        .collect();
    let of_root = ROOT_DIRECTORIES.map(Path::new);
    let mut directories = searched.iter().map(PathBuf::as_path).chain(of_root);
    directories.find_map(|directory| {
        let path = directory.join(program);
        path.is_file().then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> ProgramCall {
        ProgramCall {
            program: "sh",
            arguments: vec!["-c".to_owned(), script.to_owned()],
            limit,
            is_undo: false,
        }
    }

    #[test]
    fn program_output_and_failure_are_returned() {
        let mut programs = SystemPrograms::default();
        let limit = Duration::from_secs(60);
        assert_eq!(
            programs.run(&shell("echo /dev/rbd0", limit)).unwrap(),
            "/dev/rbd0\n"
        );
        let failure = programs.run(&shell("echo a >&2; echo >&2; echo b >&2; exit 5", limit));
        let expected = ProgramFailure {
            ending: ProgramEnding::Status(5),
            said: "a; b".to_owned(),
        };
        assert_eq!(failure, Err(expected));
        let missing = ProgramCall {
            program: "iosonde-no-such-program",
            ..shell("", limit)
        };
        assert!(!programs.is_installed(missing.program) && programs.is_installed("sh"));
        assert!(matches!(
            programs.run(&missing).unwrap_err().ending,
            ProgramEnding::NotStarted { .. }
        ));
    }

    #[test]
    fn program_after_its_limit_is_stopped() {
        let mut programs = SystemPrograms::default();
        let begun = Instant::now();
        let failure = programs.run(&shell("exec sleep 600", Duration::ZERO));
        assert_eq!(
            failure.unwrap_err().ending,
            ProgramEnding::TimedOut { limit_s: 0 }
        );
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn stop_request_stops_programs_that_undo_nothing() {
        let interrupt = Arc::new(Interrupt::default());
        interrupt.request();
        let mut programs = SystemPrograms::stopped_by(interrupt);
        let call = shell("true", Duration::from_secs(60));
        let failure = programs.run(&call).unwrap_err();
        assert_eq!(failure.ending, ProgramEnding::Signal(SIGINT));
        let undo = ProgramCall {
            is_undo: true,
            ..call
        };
        assert_eq!(programs.run(&undo).unwrap(), "");
    }

    #[test]
    fn command_lines_are_quoted_for_shells() {
        let call = ProgramCall {
            program: "rbd",
            arguments: vec!["map".to_owned(), "--image=a b'c".to_owned()],
            ..shell("", Duration::ZERO)
        };
        assert_eq!(call.to_string(), r"rbd map '--image=a b'\''c'");
    }
}
