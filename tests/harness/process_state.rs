//! State of a process as the kernel reports it, for tests that must act at the right moment.

use std::fs;

use rustix::process::Signal;

/// Whether a process has a handler for a signal. Without one, the signal kills the process.
#[must_use]
pub fn handles_signal(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal.as_raw() - 1)) & 1 == 1)
}

/// Whether SIGSTOP has stopped all threads of a process.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut statuses = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .peekable();
    statuses.peek().is_some() && statuses.all(|status| status.contains("\nState:\tT"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, kill_process};
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Waits at most a minute until the condition holds.
    fn must_hold(condition: impl Fn() -> bool) {
        let started = Instant::now();
        while !condition() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "a minute has passed"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn process_without_handler_handles_no_signal() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        assert!(!handles_signal(child.id(), Signal::INT));
        child.kill().expect("a process");
        child.wait().expect("its end");
    }

    #[test]
    fn shell_with_trap_handles_its_signal() {
        let script = "trap 'exit 0' USR1; while :; do sleep 0.1; done";
        let mut child = Command::new("sh").args(["-c", script]).spawn().expect("sh");
        must_hold(|| handles_signal(child.id(), Signal::USR1));
        assert!(!handles_signal(child.id(), Signal::USR2));
        child.kill().expect("a process");
        child.wait().expect("its end");
    }

    #[test]
    fn stopped_process_runs_after_continuing() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let until = |expected: bool| must_hold(|| is_stopped(child.id()) == expected);
        until(false);
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::STOP).expect("a process");
        until(true);
        kill_process(pid, Signal::CONT).expect("a process");
        until(false);
        child.kill().expect("a process");
        child.wait().expect("its end");
    }
}
