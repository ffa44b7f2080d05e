//! Everything that ends the program with another exit status than 0, and the one place that says which.
//!
//! docs/exit-status.md is the same table for users; a test holds the two together.

use crate::signals;
use crate::store::StoreError;
use iosonde_engine::worker::io_failure::errno_name;
use iosonde_job::control_characters::is_escaped;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_machine::write_obstacles::lasting_name;
use iosonde_result::session::RunError;
use iosonde_study::load::LoadError;
use iosonde_study::probe::{ProbeError, WorkingSetError};
use iosonde_study::pts::PtsError;
use iosonde_study::sweep::SweepError;
use signal_hook::consts::{SIGINT, SIGPIPE};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Why the program fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// clap has an error, or help that was asked for.
    Arguments(clap::Error),
    /// Arguments that clap cannot judge.
    Usage {
        /// What is wrong.
        problem: String,
        /// What to write instead.
        help: String,
    },
    /// Job files or fio arguments with errors.
    Jobs(Box<Diagnostics>),
    /// There is no result.
    Run(RunError),
    /// A probe has no result.
    Probe(ProbeError),
    /// A load study has no result.
    Load(LoadError),
    /// A test of SNIA's specification has no result.
    Pts(PtsError),
    /// A sweep has no result.
    Sweep(SweepError),
    /// There is a result, and it has been printed, but this error is in it.
    Io(String),
    /// A result could not be written to its file.
    Output(PathBuf, std::io::Error),
    /// The user or the system ended the run; what was measured has been printed.
    Interrupted(i32),
    /// The history cannot do what is asked.
    Store(StoreError),
    /// A comparison was to fail if one side is slower, and it is.
    Slower(String),
    /// A probe was to fail if a promise is broken, and it is.
    Broken(String),
    /// `doctor --fail-on`: something was found.
    Unfit(String),
    /// A suite expects what is not so.
    Missed(String),
    /// Whether a suite's expectations are met is not shown.
    Undecided(String),
    /// Nothing that a user can cause.
    Other(anyhow::Error),
}

/// Tells of all that is wrong, each once, and ends with the last of it.
pub(crate) fn told_at_once(mut failures: Vec<Failure>) -> Result<(), Failure> {
    let mut met = HashSet::new();
    failures.retain(|failure| met.insert(failure.text(false)));
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    failures.iter().for_each(Failure::print);
    Err(last)
}

/// The exit statuses.
pub(crate) mod status {
    /// A job ran into an I/O error, or a figure could not be measured.
    pub(crate) const IO: u8 = 1;
    /// Wrong arguments or a bad job file: nothing was run.
    pub(crate) const USAGE: u8 = 2;
    /// The target cannot be used, or must not be written, or this machine cannot do what is asked.
    pub(crate) const TARGET: u8 = 3;
    /// Not enough space: nothing was laid out.
    pub(crate) const NO_SPACE: u8 = 4;
    /// A result could not be written, or an error inside the program.
    pub(crate) const INTERNAL: u8 = 5;
    /// `compare --fail-if-slower`: it is slower.
    pub(crate) const SLOWER: u8 = 6;
    /// `probe --fail-if-broken`: a promise is broken.
    pub(crate) const BROKEN: u8 = 7;
    /// `doctor --fail-on`: something was found that would spoil a measurement.
    pub(crate) const UNFIT: u8 = 8;
    /// A pod did not become ready, or what was made in a cluster could not be removed.
    pub(crate) const UNREADY: u8 = 9;
    /// A pod was lost while it measured.
    pub(crate) const LOST: u8 = 10;
    /// A suite expects what is shown not to be so, or what could not be measured.
    pub(crate) const MISSED: u8 = 11;
    /// Whether an expectation of a suite is met is not shown by what was measured.
    pub(crate) const UNDECIDED: u8 = 12;
    /// Added to the number of a signal: 130 is Ctrl-C.
    pub(crate) const SIGNAL: u8 = 128;
}

/// Targets as arguments of `--allow-overwrite`, devices by the names that stay with their disks.
fn lasting_names(targets: &[String]) -> String {
    let name = |target: &String| match target.contains("://") {
        true => target.clone(),
        false => lasting_name(Path::new(target)).display().to_string(),
    };
    let names: Vec<String> = targets.iter().map(name).collect();
    names.join(" --allow-overwrite ")
}

impl Failure {
    /// Usage error with its remedy.
    pub(crate) fn usage(problem: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage {
            problem: problem.into(),
            help: help.into(),
        }
    }

    /// The exit status for it.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Arguments(error) if !error.use_stderr() => 0,
            Failure::Arguments(_) | Failure::Usage { .. } | Failure::Jobs(_) => status::USAGE,
            Failure::Run(error)
            | Failure::Probe(ProbeError::Run(error))
            | Failure::Load(LoadError::Run(error))
            | Failure::Pts(PtsError::Run(error))
            | Failure::Sweep(SweepError::Run(error)) => run_status(error),
            Failure::Probe(ProbeError::WorkingSet { source, .. })
            | Failure::Load(LoadError::WorkingSet { source, .. })
            | Failure::Pts(PtsError::WorkingSet { source, .. })
            | Failure::Sweep(SweepError::WorkingSet { source, .. }) => match source {
                WorkingSetError::NoSpace { .. } => status::NO_SPACE,
                WorkingSetError::TooSmall { .. } => status::USAGE,
            },
            Failure::Load(LoadError::Consent { .. })
            | Failure::Pts(PtsError::Consent { .. })
            | Failure::Sweep(SweepError::Consent { .. }) => status::TARGET,
            Failure::Sweep(SweepError::Misplaced(_)) => status::USAGE,
            Failure::Probe(_)
            | Failure::Load(_)
            | Failure::Pts(_)
            | Failure::Sweep(_)
            | Failure::Io(_) => status::IO,
            Failure::Store(error) if error.is_usage() => status::USAGE,
            Failure::Output(..) | Failure::Store(_) | Failure::Other(_) => status::INTERNAL,
            Failure::Slower(_) => status::SLOWER,
            Failure::Broken(_) => status::BROKEN,
            Failure::Unfit(_) => status::UNFIT,
            Failure::Missed(_) => status::MISSED,
            Failure::Undecided(_) => status::UNDECIDED,
            Failure::Interrupted(signal) => status::SIGNAL.saturating_add(*signal as u8),
        }
    }

    /// Tells the user, on standard error.
    pub(crate) fn print(&self) {
        if let Failure::Arguments(error) = self {
            let words: Vec<_> = std::env::args_os().collect();
            let is_hostile = |word: &OsString| word.to_string_lossy().contains(is_escaped);
            match error.use_stderr() && words.iter().any(is_hostile) {
                // clap repeats words as they are.
                true => eprint!("{error}"),
                // Help goes to standard output, errors to standard error: clap knows.
                false => drop(error.print()),
            }
            return;
        }
        if matches!(self, Failure::Interrupted(SIGPIPE)) {
            // As fio does, a program ends in silence whose reader is gone.
            let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
            return;
        }
        let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let plain = self.text(false);
        match color && !plain.contains(is_escaped) {
            true => drop(writeln!(std::io::stderr(), "{}", self.text(true))),
            // Colours are control characters, too: a text that has others is written without them.
            false => eprintln!("{plain}"),
        }
    }

    /// Prints it as a warning: another failure gives the exit status, and is printed as the error.
    pub(crate) fn warn(&self) {
        if matches!(self, Failure::Interrupted(SIGPIPE)) {
            return;
        }
        let help = self.remedy().map(|remedy| format!("\nhelp: {remedy}"));
        let text = format!("warning: {}{}", self.problem(), help.unwrap_or_default());
        eprintln!("{}", with_errno_names(&text));
    }

    /// What is told.
    pub(crate) fn text(&self, color: bool) -> String {
        let (error, help) = if color {
            ("\x1b[1;31merror\x1b[0m", "\x1b[1;36mhelp\x1b[0m")
        } else {
            ("error", "help")
        };
        if let Failure::Jobs(diagnostics) = self {
            return with_errno_names(&diagnostics.render(color));
        }
        let mut text = format!("{error}: {}", self.problem());
        if let Some(remedy) = self.remedy() {
            text.push_str(&format!("\n{help}: {remedy}"));
        }
        with_errno_names(&text)
    }

    fn problem(&self) -> String {
        match self {
            Failure::Arguments(error) => error.to_string(),
            Failure::Usage { problem, .. } => problem.clone(),
            Failure::Jobs(diagnostics) => diagnostics.to_string(),
            Failure::Run(error) => run_problem(error),
            Failure::Probe(ProbeError::Run(error)) | Failure::Load(LoadError::Run(error)) => {
                run_problem(error)
            }
            Failure::Sweep(SweepError::Run(error)) | Failure::Pts(PtsError::Run(error)) => {
                run_problem(error)
            }
            Failure::Pts(error) => error.to_string(),
            Failure::Sweep(error) => error.to_string(),
            Failure::Load(error) => error.to_string(),
            Failure::Probe(error) => error.to_string(),
            Failure::Io(problem)
            | Failure::Slower(problem)
            | Failure::Broken(problem)
            | Failure::Missed(problem)
            | Failure::Undecided(problem)
            | Failure::Unfit(problem) => problem.clone(),
            Failure::Store(error) => error.to_string(),
            Failure::Output(path, error) => format!("{}: {error}", path.display()),
            Failure::Interrupted(_) => {
                "interrupted: the figures are of what ran until then".to_owned()
            }
            Failure::Other(error) => format!("{error:#}"),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Failure::Usage { help, .. } => Some(help.clone()),
            Failure::Run(error)
            | Failure::Probe(ProbeError::Run(error))
            | Failure::Load(LoadError::Run(error))
            | Failure::Pts(PtsError::Run(error))
            | Failure::Sweep(SweepError::Run(error)) => Some(error.remedy()),
            Failure::Sweep(SweepError::Consent { targets, .. }) => Some(format!(
                "name a directory, sweep only reads, or consent to lose its contents with --allow-overwrite {}",
                lasting_names(targets)
            )),
            Failure::Load(LoadError::Consent { target }) => Some(format!(
                "name a directory, only read, or consent to lose its contents with --allow-overwrite {}",
                lasting_names(std::slice::from_ref(target))
            )),
            Failure::Pts(PtsError::Consent { target }) => Some(format!(
                "name a directory, or consent to lose its contents with --allow-overwrite {}",
                lasting_names(std::slice::from_ref(target))
            )),
            Failure::Probe(ProbeError::WorkingSet { .. })
            | Failure::Load(LoadError::WorkingSet { .. })
            | Failure::Pts(PtsError::WorkingSet { .. })
            | Failure::Sweep(SweepError::WorkingSet { .. }) => {
                Some("choose another size with --size, or another directory".to_owned())
            }
            Failure::Sweep(SweepError::Misplaced(misplaced)) => Some(misplaced.remedy().to_owned()),
            Failure::Undecided(_) => Some(
                "run it for longer, more often, or on a machine with less else to do".to_owned(),
            ),
            Failure::Store(error) => error.remedy(),
            Failure::Output(..) => {
                Some("name a file that can be written, in a directory that exists".to_owned())
            }
            _ => None,
        }
    }
}

/// A text in which errors of the system go by their names: `(ENOENT)` for `(os error 2)`.
fn with_errno_names(text: &str) -> String {
    const NUMBERED: &str = "(os error ";
    let mut pieces = text.split(NUMBERED);
    let mut named = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let number = piece.split_once(')');
        match number.and_then(|(errno, rest)| Some((errno.parse().ok()?, rest))) {
            Some((errno, rest)) => named.push_str(&format!("({}){rest}", errno_name(errno))),
            None => named.extend([NUMBERED, piece]),
        }
    }
    named
}

fn run_status(error: &RunError) -> u8 {
    match error {
        RunError::Target { .. } | RunError::Refused { .. } | RunError::Unsupported { .. } => {
            status::TARGET
        }
        RunError::NoSpace { .. } => status::NO_SPACE,
        RunError::Unready { .. } | RunError::Left { .. } => status::UNREADY,
        RunError::Lost { .. } => status::LOST,
        RunError::NothingDone => status::IO,
        RunError::Interrupted => status::SIGNAL + signals::last().unwrap_or(SIGINT) as u8,
        _ => status::INTERNAL,
    }
}

/// Sizes in words beside the exact figures.
fn run_problem(error: &RunError) -> String {
    match error {
        RunError::NoSpace {
            path,
            needed_bytes,
            available_bytes,
        } => {
            let words = iosonde_study::words::bytes;
            format!(
                "{path}: {} ({needed_bytes} bytes) are needed, but only {} ({available_bytes} bytes) are available",
                words(*needed_bytes),
                words(*available_bytes),
            )
        }
        other => other.to_string(),
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Failure::Arguments(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Run(error)
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        Failure::Probe(error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Failure::Load(error)
    }
}

impl From<PtsError> for Failure {
    fn from(error: PtsError) -> Self {
        Failure::Pts(error)
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        Failure::Sweep(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_statuses_are_those_returned() {
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
            status::SIGNAL + 2,
            status::SIGNAL + 15,
            status::SIGNAL + 1,
        ] {
            assert!(
                table.contains(&format!("\n| {code} |")),
                "{code} is not in docs/exit-status.md"
            );
        }
        assert_eq!(Failure::from(RunError::Interrupted).status(), 130);
        assert_eq!(Failure::Interrupted(15).status(), 143);
    }

    #[test]
    fn errors_of_the_system_go_by_their_names() {
        let text =
            Failure::Output(PathBuf::from("/x"), std::io::Error::from_raw_os_error(2)).text(false);
        assert!(
            text.contains("/x: No such file or directory (ENOENT)\n"),
            "{text}"
        );
        for odd in ["", "a (os error", "(os error )", "(os error x) y"] {
            assert_eq!(with_errno_names(odd), odd);
        }
        assert_eq!(
            with_errno_names("a (os error 2), b (os error 5)"),
            "a (ENOENT), b (EIO)"
        );
    }

    #[test]
    fn errors_come_with_a_remedy() {
        let error = Failure::from(RunError::NoSpace {
            path: "/data".into(),
            needed_bytes: 160 << 30,
            available_bytes: 3 << 29,
        });
        assert_eq!(error.status(), 4);
        insta::assert_snapshot!("no_space", error.text(false));
    }
}
