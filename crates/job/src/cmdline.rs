//! Options of the program itself: output file, output format, and actions other than a run.

mod table;

pub(crate) use table::OPTIONS;

use crate::diagnostic::{Diagnostic, Diagnostics, OptionProblem};
use crate::options::OptionSupport;
use crate::source::Spanned;
use crate::syntax::OptionEntry;
use crate::syntax::command_line::{KnownOption, Owner};
use crate::value::ValueError;
use table::ProgramOptionValue;

/// The values of the program's options.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandLine {
    /// The action of the program.
    pub action: Action,
    /// `--output-format`, `--minimal`: the formats to print, in this order.
    pub formats: Vec<OutputFormat>,
    /// `--append-terse`: print the terse line after everything else.
    pub append_terse: bool,
    /// `--terse-version`: 2 to 5.
    pub terse_version: u8,
    /// `--output`: the file to print to.
    pub output: Option<String>,
    /// `--eta`: whether progress is shown.
    pub eta: Eta,
    /// `--eta-interval`: interval between updates of the progress, in nanoseconds.
    pub eta_interval_ns: u64,
    /// `--eta-newline`: interval between new lines of the progress, in nanoseconds.
    pub eta_newline_ns: Option<u64>,
    /// `--status-interval`: interval between full reports, in nanoseconds.
    pub status_interval_ns: Option<u64>,
    /// `--parse-only`: stop before any I/O.
    pub parse_only: bool,
    /// `--showcmd`: print job files as command lines.
    pub showcmd: bool,
    /// `--readonly`: refuse jobs that write.
    pub readonly: bool,
    /// `--bandwidth-log`: log the bandwidth of all jobs together; the value is the prefix of the
    /// file names.
    pub bandwidth_log: Option<String>,
    /// `--idle-prof`: report the idle time of the CPUs.
    pub idle_profile: Option<IdleProfile>,
    /// `--section`: run these sections only.
    pub sections: Vec<Spanned>,
    /// `--warnings-fatal`.
    pub warnings_fatal: bool,
    /// `--max-jobs`: limit on clones, if higher than the default.
    pub max_jobs: Option<u32>,
    /// `--aux-path`: directory of the files that a run writes besides its data.
    pub aux_path: Option<String>,
    /// `--allow-overwrite`: block devices that may be overwritten regardless of their contents.
    pub allow_overwrite: Vec<String>,
    /// `--allow-in-use`: devices of `--allow-overwrite` that may be written even while in use.
    pub allow_in_use: Vec<String>,
    /// `--cold`: lists of layers whose caches are dropped before the jobs.
    pub cold: Vec<String>,
}

/// The action of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run the jobs.
    Run,
    /// `--version`.
    Version,
    /// `--help`.
    Help,
    /// `--cmdhelp`: help for one option, or for all.
    CommandHelp(Option<String>),
    /// `--enghelp`: help for one engine or one of its options, or a list of engines.
    EngineHelp(Option<String>),
}

/// `--output-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text for people.
    Normal,
    /// Fields separated by semicolons.
    Terse,
    /// JSON.
    Json,
    /// JSON with every bin of the histograms.
    JsonPlus,
}

/// `--idle-prof`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleProfile {
    /// All CPUs together.
    System,
    /// Each CPU as well.
    PerCpu,
}

/// `--eta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eta {
    /// If the output is a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Default for CommandLine {
    fn default() -> Self {
        CommandLine {
            action: Action::Run,
            formats: Vec::new(),
            append_terse: false,
            terse_version: 3,
            output: None,
            eta: Eta::Auto,
            eta_interval_ns: 1_000_000_000,
            eta_newline_ns: None,
            status_interval_ns: None,
            parse_only: false,
            showcmd: false,
            readonly: false,
            bandwidth_log: None,
            idle_profile: None,
            sections: Vec::new(),
            warnings_fatal: false,
            max_jobs: None,
            aux_path: None,
            allow_overwrite: Vec::new(),
            allow_in_use: Vec::new(),
            cold: Vec::new(),
        }
    }
}

/// Returns the program's option names, for the command line parser. The short name precedes the
/// long name.
pub(crate) fn list_known_options() -> impl Iterator<Item = KnownOption> {
    OPTIONS.iter().flat_map(|option| {
        [option.short, option.name]
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(|name| KnownOption {
                name,
                canonical: option.name,
                whole: false,
                arity: option.arity,
                owner: Owner::Program,
            })
    })
}

/// Interprets the entries; errors go to `diagnostics`.
pub(crate) fn interpret(entries: &[OptionEntry], diagnostics: &mut Diagnostics) -> CommandLine {
    let mut command = CommandLine::default();
    for entry in entries {
        let name = entry.name.text.as_str();
        let Some(option) = OPTIONS
            .iter()
            .find(|option| option.name == name || option.short == name)
        else {
            continue;
        };
        if let OptionSupport::Unsupported { reason, instead } = option.status {
            let unsupported = OptionProblem::UnsupportedProgramOption {
                option: option.name,
                reason,
                instead,
            };
            diagnostics.push(Diagnostic::error_from(unsupported).at(entry.span()));
            continue;
        }
        if let Err(error) = (option.apply)(&mut command, &ProgramOptionValue(entry.value.as_ref()))
        {
            diagnostics.push(wrong(entry, option.name, error));
        }
    }
    if command.formats.is_empty() {
        command.formats.push(OutputFormat::Normal);
    }
    command
}

fn wrong(entry: &OptionEntry, option: &'static str, error: ValueError) -> Diagnostic {
    let span = match (&entry.value, error.part) {
        (Some(value), Some(part)) => value.part(part),
        (Some(value), None) if value.span.start < value.span.end => value.span,
        _ => entry.span(),
    };
    let wrong = OptionProblem::WrongProgramValue {
        option,
        problem: error.message,
        help: error.help,
    };
    Diagnostic::error_from(wrong).at(span)
}
