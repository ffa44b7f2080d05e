//! Options of the program itself: where output goes, in which format, and what else to do than run.

mod table;

pub use table::{OPTIONS, ProgramOption};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::options::Status;
use crate::source::Spanned;
use crate::syntax::Entry;
use crate::syntax::command_line::{Known, Owner};
use crate::value::ValueError;
use table::Word;

/// What the program's options say.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandLine {
    /// What to do.
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
    /// `--eta-interval` in nanoseconds: how often progress is shown.
    pub eta_interval_ns: u64,
    /// `--eta-newline` in nanoseconds: how often it begins a new line.
    pub eta_newline_ns: Option<u64>,
    /// `--status-interval` in nanoseconds: how often a full report is printed.
    pub status_interval_ns: Option<u64>,
    /// `--parse-only`: stop before any I/O.
    pub parse_only: bool,
    /// `--showcmd`: print job files as command lines.
    pub showcmd: bool,
    /// `--readonly`: refuse jobs that write.
    pub readonly: bool,
    /// `--bandwidth-log`: write a log of all jobs' bandwidth together; the value starts the files' names.
    pub bandwidth_log: Option<String>,
    /// `--idle-prof`: report how idle the processors were.
    pub idle_profile: Option<IdleProfile>,
    /// `--section`: run these sections only.
    pub sections: Vec<Spanned>,
    /// `--warnings-fatal`.
    pub warnings_fatal: bool,
    /// `--max-jobs`: how many clones are allowed, where that is more than usual.
    pub max_jobs: Option<u32>,
    /// `--aux-path`: where files that a run makes beside its data go.
    pub aux_path: Option<String>,
    /// `--allow-overwrite`: block devices that may be overwritten whatever they carry.
    pub allow_overwrite: Vec<String>,
    /// `--allow-in-use`: those of them that may be written even while others use them.
    pub allow_in_use: Vec<String>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run the jobs.
    Run,
    /// `--version`
    Version,
    /// `--help`
    Help,
    /// `--cmdhelp`: help on one option, or on all.
    CommandHelp(Option<String>),
    /// `--enghelp`: help on one engine and perhaps one of its options, or a list of engines.
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
    /// All processors together.
    System,
    /// Each processor too.
    PerCpu,
}

/// `--eta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eta {
    /// When the output is a terminal.
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
        }
    }
}

/// The program's names, for the parser of command lines. Letters come first, so that they are exact matches.
pub fn known() -> impl Iterator<Item = Known> {
    OPTIONS.iter().flat_map(|option| {
        [option.short, option.name]
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(|name| Known {
                name,
                canonical: option.name,
                whole: false,
                arity: option.arity,
                owner: Owner::Program,
            })
    })
}

/// What the entries say; errors go to `diagnostics`.
pub fn interpret(entries: &[Entry], diagnostics: &mut Diagnostics) -> CommandLine {
    let mut command = CommandLine::default();
    for entry in entries {
        let name = entry.name.text.as_str();
        let Some(option) = OPTIONS
            .iter()
            .find(|option| option.name == name || option.short == name)
        else {
            continue;
        };
        if let Status::Unsupported { reason, instead } = option.status {
            let message = format!("`--{}` is not supported: {reason}", option.name);
            let error = Diagnostic::error(message).at(entry.span());
            diagnostics.push(match instead {
                "" => error,
                _ => error.help(format!("the nearest way: {instead}")),
            });
            continue;
        }
        if let Err(error) = (option.apply)(&mut command, &Word(entry.value.as_ref())) {
            diagnostics.push(wrong(entry, option.name, error));
        }
    }
    if command.formats.is_empty() {
        command.formats.push(OutputFormat::Normal);
    }
    command
}

fn wrong(entry: &Entry, name: &str, error: ValueError) -> Diagnostic {
    let span = match (&entry.value, error.part) {
        (Some(value), Some(part)) => value.part(part),
        (Some(value), None) if value.span.start < value.span.end => value.span,
        _ => entry.span(),
    };
    let diagnostic = Diagnostic::error(format!("`--{name}`: {}", error.message)).at(span);
    match error.help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}
