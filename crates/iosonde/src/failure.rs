//! All errors that end the program with an exit status other than 0, and their statuses.
//!
//! docs/exit-status.md is the table for users; a test compares the two.

mod failure_remedy;
mod role_note;
mod step_failure;

pub(crate) use role_note::role_note;

use crate::last_signal;
use crate::terminal_text;
use iosonde_history::StoreError;
use iosonde_job::control_characters::is_escaped;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::errno::describe;
use iosonde_result::run_error::{ClusterObstacle, RunError, UnsupportedFeature};
use iosonde_study::StudyError;
use iosonde_study::probe::WorkingSetError;
use iosonde_suite::CommandFailure;
use signal_hook::consts::{SIGINT, SIGPIPE};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use step_failure::SuiteStepFailure;

/// Why the program fails.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Help of clap, requested or shown for missing arguments.
    Arguments(clap::Error),
    /// An error in the arguments that clap does not detect.
    Usage {
        /// The error.
        problem: String,
        /// The arguments to use instead.
        help: String,
    },
    /// Errors in job files or in fio's arguments.
    Jobs(Box<Diagnostics>),
    /// A run has no result.
    Run(RunError),
    /// A probe, sweep, load study or SNIA test has no result.
    Study(StudyError),
    /// A step of a suite has no result, and its remedy is that of a suite.
    Step(Box<SuiteStepFailure>),
    /// The result has been printed and contains this error.
    Io(String),
    /// A command of a suite failed or printed no figure.
    Command(CommandFailure),
    /// A result cannot be written to its file.
    Output(PathBuf, std::io::Error),
    /// A result cannot be written to standard output.
    StandardOutput(std::io::Error),
    /// A signal or the user ended the run. The measurements so far have been printed.
    Interrupted(i32),
    /// An operation on the history failed.
    Store(StoreError),
    /// `compare --fail-if-slower`: one side is slower.
    Slower(String),
    /// `probe --fail-if-broken`: a promise is broken.
    Broken(String),
    /// `doctor --fail-on`: a finding has this severity or a worse one.
    Unfit(String),
    /// An expectation of a suite is not met.
    Missed(String),
    /// The measurements do not decide an expectation of a suite, or `compare --fail-if-slower`.
    Undecided(String),
    /// An internal error.
    Other(anyhow::Error),
}

/// Prints all failures but the last, without repetitions, and returns the last.
pub(crate) fn report_all(mut failures: Vec<CommandError>) -> Result<(), CommandError> {
    let mut met = HashSet::new();
    failures.retain(|failure| met.insert(failure.text(false)));
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    failures.iter().for_each(CommandError::print);
    Err(last)
}

/// The exit statuses.
pub(crate) mod status {
    /// An I/O error in a job, or a figure that could not be measured.
    pub(crate) const IO: u8 = 1;
    /// Invalid arguments or an invalid job file: nothing was run.
    pub(crate) const USAGE: u8 = 2;
    /// The target is unusable or write-protected, or this machine lacks a required feature.
    pub(crate) const TARGET: u8 = 3;
    /// Not enough space: nothing was laid out.
    pub(crate) const NO_SPACE: u8 = 4;
    /// A result could not be written, or an internal error.
    pub(crate) const INTERNAL: u8 = 5;
    /// `compare --fail-if-slower`: one side is slower.
    pub(crate) const SLOWER: u8 = 6;
    /// `probe --fail-if-broken`: a promise is broken.
    pub(crate) const BROKEN: u8 = 7;
    /// `doctor --fail-on`: a finding has this severity or a worse one.
    pub(crate) const UNFIT: u8 = 8;
    /// A pod did not become ready, or objects of a run in a cluster could not be removed.
    pub(crate) const UNREADY: u8 = 9;
    /// A pod was lost during the measurement.
    pub(crate) const LOST: u8 = 10;
    /// An expectation of a suite is not met, or its figure could not be measured.
    pub(crate) const MISSED: u8 = 11;
    /// The measurements do not decide an expectation of a suite, or `compare --fail-if-slower`.
    pub(crate) const UNDECIDED: u8 = 12;
    /// Added to the signal number: 130 is SIGINT (Ctrl-C).
    pub(crate) const SIGNAL: u8 = 128;
}

impl CommandError {
    /// A usage error with its remedy.
    pub(crate) fn usage(problem: impl Into<String>, help: impl Into<String>) -> CommandError {
        CommandError::Usage {
            problem: problem.into(),
            help: help.into(),
        }
    }

    /// The exit status of the failure.
    pub(crate) fn status(&self) -> u8 {
        match self {
            CommandError::Arguments(error) if !error.use_stderr() => 0,
            CommandError::Arguments(_) | CommandError::Usage { .. } | CommandError::Jobs(_) => {
                status::USAGE
            }
            CommandError::Run(error) | CommandError::Study(StudyError::Run(error)) => {
                run_status(error)
            }
            CommandError::Study(StudyError::WorkingSet { source, .. }) => match source {
                WorkingSetError::NoSpace { .. } => status::NO_SPACE,
                WorkingSetError::TooSmall { .. } => status::USAGE,
            },
            CommandError::Step(failure) => failure.cause.status(),
            CommandError::Study(StudyError::WriteRefused { .. }) => status::TARGET,
            CommandError::Study(StudyError::Relocation(_)) => status::USAGE,
            CommandError::Study(_) | CommandError::Io(_) | CommandError::Command(_) => status::IO,
            CommandError::Store(error) if error.is_usage() => status::USAGE,
            CommandError::Output(..)
            | CommandError::StandardOutput(_)
            | CommandError::Store(_)
            | CommandError::Other(_) => status::INTERNAL,
            CommandError::Slower(_) => status::SLOWER,
            CommandError::Broken(_) => status::BROKEN,
            CommandError::Unfit(_) => status::UNFIT,
            CommandError::Missed(_) => status::MISSED,
            CommandError::Undecided(_) => status::UNDECIDED,
            CommandError::Interrupted(signal) => status::SIGNAL.saturating_add(*signal as u8),
        }
    }

    /// Prints the failure to standard error.
    pub(crate) fn print(&self) {
        if let CommandError::Arguments(error) = self {
            let words: Vec<_> = std::env::args_os().collect();
            let is_hostile = |word: &OsString| word.to_string_lossy().contains(is_escaped);
            match error.use_stderr() && words.iter().any(is_hostile) {
                // clap repeats arguments unescaped; `eprint` escapes them.
                true => eprint!("{error}"),
                // clap prints help to standard output, errors to standard error.
                false => drop(error.print()),
            }
            return;
        }
        if matches!(self, CommandError::Interrupted(SIGPIPE)) {
            // Like fio, ends silently when the reader of standard output has closed it.
            let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
            return;
        }
        let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let plain = self.text(false);
        let wrapped = |text: String| match terminal_text::columns(std::io::stderr()) {
            Some(columns) => terminal_text::wrapped_messages(&text, columns),
            None => text,
        };
        match color && !plain.contains(is_escaped) {
            true => drop(writeln!(std::io::stderr(), "{}", wrapped(self.text(true)))),
            // Control characters must be escaped, and `eprintln` escapes colours as well.
            false => eprintln!("{}", wrapped(plain)),
        }
    }

    /// Prints the failure as a warning, when another failure is the error with the exit status.
    pub(crate) fn warn(&self) {
        if matches!(self, CommandError::Interrupted(SIGPIPE)) {
            return;
        }
        eprintln!("{}", self.warning());
    }

    /// Returns the text of the failure as a warning.
    fn warning(&self) -> String {
        let role = self.role_to_apply().map(role_note).unwrap_or_default();
        format!("warning: {}{role}", self.stored_text())
    }

    /// Returns the text of the failure and its remedy.
    pub(crate) fn text(&self, color: bool) -> String {
        let (error, help) = if color {
            ("\x1b[1;31merror\x1b[0m", "\x1b[1;36mhelp\x1b[0m")
        } else {
            ("error", "help")
        };
        if let CommandError::Jobs(diagnostics) = self {
            return diagnostics.render(color);
        }
        let mut text = format!("{error}: {}", self.problem());
        if let Some(remedy) = self.remedy() {
            text.push_str(&format!("\n{help}: {remedy}"));
        }
        if let Some(role) = self.role_to_apply() {
            text.push_str(&role_note(role));
        }
        text
    }

    /// Returns the manifest of roles for the rights that the user lacks.
    fn role_to_apply(&self) -> Option<&str> {
        match self {
            CommandError::Run(error) | CommandError::Study(StudyError::Run(error)) => {
                error.role_to_apply()
            }
            CommandError::Step(failure) => failure.cause.role_to_apply(),
            _ => None,
        }
    }

    /// Returns the text of the failure without the word `error` before it, as results store it.
    pub(crate) fn stored_text(&self) -> String {
        if let CommandError::Jobs(diagnostics) = self {
            return diagnostics.sentences().join("\n");
        }
        match self.remedy() {
            Some(remedy) => format!("{}\nhelp: {remedy}", self.problem()),
            None => self.problem(),
        }
    }

    fn problem(&self) -> String {
        match self {
            CommandError::Arguments(error) => error.to_string(),
            CommandError::Usage { problem, .. } => problem.clone(),
            CommandError::Jobs(diagnostics) => diagnostics.to_string(),
            CommandError::Run(error) => run_problem(error),
            CommandError::Study(StudyError::Run(error)) => run_problem(error),
            CommandError::Study(error) => error.to_string(),
            CommandError::Step(failure) => failure.cause.problem(),
            CommandError::Io(problem)
            | CommandError::Slower(problem)
            | CommandError::Broken(problem)
            | CommandError::Missed(problem)
            | CommandError::Undecided(problem)
            | CommandError::Unfit(problem) => problem.clone(),
            CommandError::Store(error) => error.to_string(),
            CommandError::Command(failure) => failure.to_string(),
            CommandError::Output(path, error) => format!("{}: {}", path.display(), describe(error)),
            CommandError::StandardOutput(error) => {
                format!("standard output: {}", describe(error))
            }
            CommandError::Interrupted(_) => {
                "interrupted: figures, if there are any, cover the time until then".to_owned()
            }
            CommandError::Other(error) => describe_chain(error),
        }
    }
}

/// Describes an error and its causes.
fn describe_chain(error: &anyhow::Error) -> String {
    let describe_one = |cause: &(dyn std::error::Error + 'static)| {
        let io_error = cause.downcast_ref::<std::io::Error>();
        io_error.map_or_else(|| cause.to_string(), describe)
    };
    let causes: Vec<String> = error.chain().map(describe_one).collect();
    causes.join(": ")
}

fn run_status(error: &RunError) -> u8 {
    match error {
        RunError::NoFeature { cause } if is_lack_of_space(cause) => status::NO_SPACE,
        RunError::DirectRefused { .. }
        | RunError::PathAccess { .. }
        | RunError::UnusableTarget { .. }
        | RunError::NoFeature { .. }
        | RunError::Target { .. }
        | RunError::NoWriteConsent { .. }
        | RunError::Refused { .. }
        | RunError::Unsupported { .. } => status::TARGET,
        RunError::NoSpace { .. } => status::NO_SPACE,
        RunError::NotReady { .. } | RunError::NotRemoved { .. } => status::UNREADY,
        RunError::Lost { .. } => status::LOST,
        RunError::NoCompletions => status::IO,
        RunError::Interrupted => {
            status::SIGNAL + last_signal::received_signal().unwrap_or(SIGINT) as u8
        }
        _ => status::INTERNAL,
    }
}

/// Whether the files of the jobs do not fit into a volume.
fn is_lack_of_space(cause: &UnsupportedFeature) -> bool {
    matches!(
        cause,
        UnsupportedFeature::Cluster(
            ClusterObstacle::VolumeTooSmall { .. } | ClusterObstacle::ShareFull { .. }
        )
    )
}

/// Returns the text of the error, with sizes in words beside the exact figures.
fn run_problem(error: &RunError) -> String {
    match error {
        RunError::NoSpace {
            path,
            needed_bytes,
            available_bytes,
        } => {
            let words = iosonde_study::words::bytes;
            format!(
                "{path}: {} ({needed_bytes} bytes) are needed, but only {} ({available_bytes} \
                 bytes) are available",
                words(*needed_bytes),
                words(*available_bytes),
            )
        }
        other => other.to_string(),
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        CommandError::Run(error)
    }
}

impl From<StudyError> for CommandError {
    fn from(error: StudyError) -> Self {
        CommandError::Study(error)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        CommandError::Store(error)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        CommandError::Other(error.into())
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        CommandError::Other(error)
    }
}

#[cfg(test)]
mod usage_parts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_exit_statuses_equal_returned_ones() {
        let table = include_str!("../../../docs/exit-status.md");
        for code in [
            0,
            status::IO,
            status::USAGE,
            status::TARGET,
            status::NO_SPACE,
            status::INTERNAL,
            status::SLOWER,
            status::BROKEN,
            status::UNFIT,
            status::UNREADY,
            status::LOST,
            status::MISSED,
            status::UNDECIDED,
            status::SIGNAL + 2,
            status::SIGNAL + 15,
            status::SIGNAL + 1,
        ] {
            assert!(
                table.contains(&format!("\n| {code} |")),
                "{code} is not in docs/exit-status.md"
            );
        }
        assert_eq!(CommandError::from(RunError::Interrupted).status(), 130);
        assert_eq!(CommandError::Interrupted(15).status(), 143);
    }

    #[test]
    fn errno_names_stand_in_error_texts() {
        let text = CommandError::Output(PathBuf::from("/x"), std::io::Error::from_raw_os_error(2))
            .text(false);
        assert!(
            text.contains("/x: No such file or directory (ENOENT)\n"),
            "{text}"
        );
        let other = anyhow::Error::from(std::io::Error::from_raw_os_error(5)).context("no id");
        assert_eq!(
            CommandError::from(other).text(false),
            "error: no id: Input/output error (EIO)"
        );
    }

    #[test]
    fn stored_text_has_no_label() {
        let error = CommandError::usage("no such suite", "name another");
        assert_eq!(error.stored_text(), "no such suite\nhelp: name another");
        assert_eq!(error.text(false), format!("error: {}", error.stored_text()));
    }

    #[test]
    fn error_text_includes_remedy() {
        let error = CommandError::from(RunError::NoSpace {
            path: "/data".into(),
            needed_bytes: 160 << 30,
            available_bytes: 3 << 29,
        });
        assert_eq!(error.status(), 4);
        insta::assert_snapshot!("no_space", error.text(false));
    }

    #[test]
    fn store_errors_print_with_remedy() {
        let path = || PathBuf::from("/h/history.db");
        let errors = [
            StoreError::NoPlace,
            StoreError::Newer {
                path: path(),
                found: 9,
                known: 1,
            },
            StoreError::NotAStore(path()),
            StoreError::Damaged {
                path: path(),
                problem: "the header is not that of an SQLite file".to_owned(),
            },
            StoreError::Unknown {
                name: "3fa".to_owned(),
                near: Vec::new(),
            },
            StoreError::Unknown {
                name: "lastest".to_owned(),
                near: vec!["latest".to_owned()],
            },
            StoreError::NoSuchRun {
                study: "3fa9c1".to_owned(),
                run: "99".to_owned(),
                count: 5,
                near: Vec::new(),
            },
            StoreError::TooFew {
                name: "latest~3".to_owned(),
                has: 2,
            },
            StoreError::Ambiguous {
                prefix: "3".to_owned(),
                candidates: vec!["3fa9c1".to_owned(), "3be001".to_owned()],
            },
            StoreError::UnknownLabel {
                label: "disk=old".to_owned(),
                near: vec!["disk=cold".to_owned(), "disk=new".to_owned()],
                keys: Vec::new(),
            },
            StoreError::Empty(path()),
            StoreError::ReadOnly(path(), rustix::io::Errno::ROFS.into()),
            StoreError::Unfinished(path()),
            StoreError::Full(path()),
            StoreError::OtherHost {
                id: "3fa9c1".to_owned(),
                path: PathBuf::from("/h/history.n2-7be001.db"),
            },
        ];
        let texts: Vec<String> = errors
            .into_iter()
            .map(|error| {
                let failure = CommandError::from(error);
                format!("[{}] {}", failure.status(), failure.text(false))
            })
            .collect();
        insta::assert_snapshot!("store_errors", texts.join("\n\n"));
    }
}
