//! Runs a step of a suite that is a command, and watches the target's devices meanwhile.

use super::command_watch::CommandWatch;
use crate::args::RunArgs;
use crate::commands::cluster;
use crate::commands::target::check;
use crate::failure::CommandError;
use crate::signals::StopSignal;
use iosonde_job::plan::Plan;
use iosonde_job::quote_shell_word;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::probe::StudyTargetKind;
use iosonde_suite::{
    CommandFailure, CommandOutput, CommandResult, CommandStep, StepKind, Suite, SuiteTarget,
};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use signal_hook::consts::SIGINT;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Longest time between two checks of the command and of the interrupt.
const POLL: Duration = Duration::from_millis(50);
/// Time for the output of a command that has ended. Its children may hold the pipe open.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Time that a command has to end after a signal, before it gets the next one.
const SIGNAL_MAX: Duration = Duration::from_secs(5);
/// Time between two checks whether it has ended.
const END_POLL: Duration = Duration::from_millis(5);
/// Longest line that is read as one.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Lines that wait to be read.
const WAITING_LINES_MAX: usize = 1024;

/// A signal to the process group of a command, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GroupSignal {
    /// The first Ctrl-C.
    Interrupt,
    /// The second Ctrl-C, another signal, or the timeout of the command.
    Terminate,
    /// The third Ctrl-C, with which iosonde ends.
    Kill,
}

impl GroupSignal {
    fn signal(self) -> Signal {
        match self {
            GroupSignal::Interrupt => Signal::INT,
            GroupSignal::Terminate => Signal::TERM,
            GroupSignal::Kill => Signal::KILL,
        }
    }

    /// Returns the signal for a command that has not ended after this one.
    fn next(self) -> GroupSignal {
        match self {
            GroupSignal::Interrupt => GroupSignal::Terminate,
            GroupSignal::Terminate | GroupSignal::Kill => GroupSignal::Kill,
        }
    }

    /// Returns the signal that the user has asked for so far.
    fn asked_for(stop: &StopSignal) -> GroupSignal {
        let is_other = stop.signal().is_some_and(|signal| signal != SIGINT);
        match stop.interrupt.count() {
            _ if stop.is_ending() => GroupSignal::Kill,
            0 | 1 if !is_other => GroupSignal::Interrupt,
            _ => GroupSignal::Terminate,
        }
    }
}

/// A line of the output, with its time since the start of the command.
type TimedLine = (u64, String);

/// Runs one command as if it were a plan, so that the history stores it like any run.
pub(super) struct CommandSession<'a> {
    step: &'a CommandStep,
    /// Value of `$IOSONDE_TARGET` for the command.
    target: String,
    stop: &'a StopSignal,
    /// The outcome, once the command has ended by itself or in error.
    pub(super) ended: Option<Result<CommandResult, CommandFailure>>,
}

impl<'a> CommandSession<'a> {
    /// A session on a target: its scratch directory, file or URI.
    pub(super) fn new(
        step: &'a CommandStep,
        target: String,
        stop: &'a StopSignal,
    ) -> CommandSession<'a> {
        CommandSession {
            step,
            target,
            stop,
            ended: None,
        }
    }

    /// Runs the command to its end. `None`: the user has interrupted it.
    fn measure(&self, plan: &Plan) -> Result<Option<(CommandResult, RunResult)>, CommandFailure> {
        let mut watch = CommandWatch::begin(&self.target);
        let begun = Instant::now();
        let mut child = self.spawn()?;
        let lines = read_lines(&mut child, begun);
        let mut output = CommandOutput::new(self.step);
        let timeout = Duration::from_nanos(self.step.timeout_ns);
        while !has_ended(&child) {
            match lines.recv_timeout(POLL) {
                Ok((at_ns, line)) => output.take_line(at_ns, &line),
                Err(RecvTimeoutError::Timeout) => {}
                // The command has closed its output, but may go on.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL),
            }
            watch.sample_if_due();
            if self.stop.interrupt.is_requested() {
                let _ = stop_group(&mut child, GroupSignal::Interrupt, self.stop);
                return Ok(None);
            }
            if begun.elapsed() > timeout {
                let _ = stop_group(&mut child, GroupSignal::Terminate, self.stop);
                return Err(CommandFailure::TimedOut {
                    timeout_ns: self.step.timeout_ns,
                    last_lines: output.last_lines(),
                });
            }
        }
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        watch.finish();
        drain(&lines, &mut output);
        // Processes in the background would disturb the next measurement.
        let stopped = stop_group(&mut child, GroupSignal::Terminate, self.stop);
        let status = stopped.map_err(|error| not_started(&error))?;
        if !status.success() {
            return Err(CommandFailure::Failed {
                ending: ending(status),
                last_lines: output.last_lines(),
            });
        }
        let mut result = output.conclude(elapsed_ns)?;
        result.devices = watch.devices();
        let run = watch.into_run(plan, elapsed_ns, result.findings());
        Ok(Some((result, run)))
    }

    /// Starts the shell in the target's directory, in a process group of its own.
    fn spawn(&self) -> Result<Child, CommandFailure> {
        let path = Path::new(&self.target);
        let directory = match path.is_dir() {
            true => path.to_path_buf(),
            false => PathBuf::from("."),
        };
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &self.step.run])
            .current_dir(directory)
            .env("IOSONDE_TARGET", &self.target)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command.spawn().map_err(|error| not_started(&error))
    }
}

impl Session for CommandSession<'_> {
    fn run(&mut self, plan: &Plan, _observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        match self.measure(plan) {
            Ok(Some((result, run))) => {
                self.ended = Some(Ok(result));
                Ok(run)
            }
            Ok(None) => Err(RunError::Interrupted),
            Err(failure) => {
                self.ended = Some(Err(failure));
                Err(RunError::NoCompletions)
            }
        }
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

fn not_started(error: &io::Error) -> CommandFailure {
    CommandFailure::NotStarted {
        errno: error.raw_os_error().unwrap_or_default(),
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

/// Reads standard output and standard error, each in a thread: pgbench writes progress to the
/// latter. The threads end with the output.
fn read_lines(child: &mut Child, begun: Instant) -> Receiver<TimedLine> {
    let (sender, lines) = sync_channel(WAITING_LINES_MAX);
    if let Some(from) = child.stdout.take() {
        let sender = sender.clone();
        std::thread::spawn(move || forward_lines(from, begun, &sender));
    }
    if let Some(from) = child.stderr.take() {
        std::thread::spawn(move || forward_lines(from, begun, &sender));
    }
    lines
}

fn forward_lines(from: impl Read, begun: Instant, to: &SyncSender<TimedLine>) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = reader.by_ref().take(LINE_BYTES_MAX);
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let at_ns = begun.elapsed().as_nanos() as u64;
                let text = String::from_utf8_lossy(&line).into_owned();
                if to.send((at_ns, text)).is_err() {
                    return;
                }
            }
        }
    }
}

/// Takes the lines that a command wrote before its end.
fn drain(lines: &Receiver<TimedLine>, output: &mut CommandOutput<'_>) {
    let deadline = Instant::now() + DRAIN_MAX;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok((at_ns, line)) => output.take_line(at_ns, &line),
            Err(_) => return,
        }
        if left.is_zero() {
            return;
        }
    }
}

/// Whether the shell has ended. It is not reaped: until then, no other process group gets its id.
fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(
        waitid(WaitId::Pid(Pid::from_child(child)), options),
        Ok(None)
    )
}

/// Stops the shell, if it has not ended, and all processes of its group, and reaps the shell. The
/// group gets stronger signals if it does not end, or as soon as the user asks for them. Returns
/// the status of the shell.
fn stop_group(child: &mut Child, first: GroupSignal, stop: &StopSignal) -> io::Result<ExitStatus> {
    let group = Pid::from_child(child);
    let mut sent = first.max(GroupSignal::asked_for(stop));
    // A group without processes cannot be stopped.
    let _ = kill_process_group(group, sent.signal());
    let mut sent_at = Instant::now();
    let mut status = None;
    loop {
        if status.is_none() && has_ended(child) {
            status = Some(child.wait()?);
        }
        // The shell may have ended before its children, which may ignore signals. While any of them
        // is left, no other group gets the id.
        if let Some(status) = status
            && (sent == GroupSignal::Kill || test_kill_process_group(group).is_err())
        {
            return Ok(status);
        }
        let mut wanted = sent.max(GroupSignal::asked_for(stop));
        if wanted == sent && sent_at.elapsed() >= SIGNAL_MAX {
            wanted = sent.next();
        }
        if wanted > sent {
            let _ = kill_process_group(group, wanted.signal());
            (sent, sent_at) = (wanted, Instant::now());
        } else {
            std::thread::sleep(END_POLL);
        }
    }
}

/// The commands of a suite, with their workloads.
fn commands(suite: &Suite) -> impl Iterator<Item = (&str, &CommandStep)> {
    suite.steps.iter().filter_map(|step| match &step.what {
        StepKind::Command(command) => Some((step.workload.as_str(), &**command)),
        _ => None,
    })
}

/// One line for each command of a suite.
pub(super) fn listed_commands(suite: &Suite) -> String {
    let lines = commands(suite).map(|(workload, command)| {
        format!(
            "workload `{workload}` runs a command on this machine: {}\n",
            command.run
        )
    });
    lines.collect()
}

/// An error for each command that cannot use a target, or that a run is not permitted to start.
pub(super) fn refused_commands(
    suite: &Suite,
    targets: &[SuiteTarget],
    args: &RunArgs,
) -> Vec<CommandError> {
    let mut failures = Vec::new();
    for (workload, command) in commands(suite) {
        if !args.outside.allow_commands && !super::runs_nothing(args) {
            failures.push(CommandError::usage(
                format!("workload `{workload}` runs a command: {}", command.run),
                "add --allow-commands if you trust the suite, or leave the workload out",
            ));
        }
        let refused = targets
            .iter()
            .filter_map(|target| refused_target(workload, &target.name, args));
        failures.extend(refused);
    }
    failures
}

/// The error for a target that a command cannot use or must not overwrite.
fn refused_target(workload: &str, target: &str, args: &RunArgs) -> Option<CommandError> {
    let elsewhere = |place: &str| {
        CommandError::usage(
            format!(
                "workload `{workload}` is a command, which runs on this machine, but {target} is \
                 {place}"
            ),
            "leave the target out, or move the workload to a suite of its own",
        )
    };
    // `check_targets` reports a target that is wrong.
    if cluster::target_within(target, &args.cluster)
        .ok()?
        .is_some()
    {
        return Some(elsewhere("in a cluster"));
    }
    let allowed = &args.written.consent.allow_overwrite;
    match check(target, allowed, &args.ceph.access()).ok()? {
        StudyTargetKind::Simulated { .. } => Some(elsewhere("simulated")),
        StudyTargetKind::Existing { consent: false, .. } => Some(CommandError::usage(
            format!("workload `{workload}` is a command, which may overwrite {target}"),
            format!(
                "permit it with --allow-overwrite {}, or use a directory",
                quote_shell_word(target)
            ),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
