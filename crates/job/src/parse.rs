//! From the words of a command line to what is to be done.

use crate::cmdline::{self, Action, CommandLine};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::env::Env;
use crate::options;
use crate::plan::Plan;
use crate::resolve::{self, Unit, Wishes};
use crate::showcmd;
use crate::syntax::command_line::{self, Known};
use crate::syntax::ini;
use std::ffi::OsString;

/// Most clones of all jobs together unless `--max-jobs` says otherwise, as in fio: more are a slip of the pen.
const MOST_JOBS: u32 = 4096;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// What the program's options say.
    pub command: CommandLine,
    /// The jobs; empty when the action is not to run.
    pub plan: Plan,
    /// For `--showcmd`: one command line for the command line's own jobs with the first file, and for each further file.
    pub command_lines: Vec<String>,
    /// The same as job files: each has all that its includes and variables stand for.
    pub job_files: Vec<String>,
    /// Warnings to show before anything runs.
    pub warnings: Diagnostics,
}

/// Parses the arguments that follow the program's name. Either all is well, or every error is in the diagnostics.
pub fn parse(args: &[OsString], env: &dyn Env) -> Result<Parsed, Diagnostics> {
    parse_for(args, false, env)
}

/// As [`parse`], for a target that may bring the engine with it: then nothing is said of the engine that the job names.
pub fn parse_for(
    args: &[OsString],
    engine_of_target: bool,
    env: &dyn Env,
) -> Result<Parsed, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let args = utf8(args, &mut diagnostics);
    let known: Vec<Known> = cmdline::known().chain(options::known()).collect();
    let words = command_line::parse(&args, &known, env, &mut diagnostics);
    let command = cmdline::interpret(&words.program, &mut diagnostics);
    if command.action != Action::Run {
        return finish(command, Plan::default(), &[], diagnostics);
    }
    let mut units: Vec<Unit> = vec![words.sections];
    for (index, file) in words.files.iter().enumerate() {
        let sections = ini::read(&file.text, Some(file.span), env, &mut diagnostics);
        match index {
            0 => units[0].extend(sections),
            _ => units.push(sections),
        }
    }
    let wishes = Wishes {
        sections: command.sections.clone(),
        readonly: command.readonly,
        engine_of_target,
        parse_only: command.parse_only,
    };
    let plan = resolve::resolve(&units, &wishes, env, &mut diagnostics);
    check_max_jobs(&command, &plan, &mut diagnostics);
    finish(command, plan, &units, diagnostics)
}

fn finish(
    command: CommandLine,
    plan: Plan,
    units: &[Unit],
    mut diagnostics: Diagnostics,
) -> Result<Parsed, Diagnostics> {
    diagnostics.sort();
    if command.warnings_fatal {
        diagnostics.promote_warnings();
    }
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(Parsed {
        command,
        plan,
        command_lines: units
            .iter()
            .map(|unit| showcmd::render("fio", unit))
            .collect(),
        job_files: units.iter().map(|unit| showcmd::job_file(unit)).collect(),
        warnings: diagnostics,
    })
}

fn utf8(args: &[OsString], diagnostics: &mut Diagnostics) -> Vec<String> {
    args.iter()
        .map(|arg| match arg.to_str() {
            Some(text) => text.to_owned(),
            None => {
                let text = arg.to_string_lossy().into_owned();
                let message = format!("the argument `{text}` is not valid UTF-8");
                diagnostics.push(Diagnostic::error(message));
                text
            }
        })
        .collect()
}

fn check_max_jobs(command: &CommandLine, plan: &Plan, diagnostics: &mut Diagnostics) {
    let clones: u64 = plan.jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    let max = command.max_jobs.unwrap_or(0).max(MOST_JOBS);
    if clones > u64::from(max) {
        let message =
            format!("there are {clones} clones, more than {max}; `--max-jobs` allows more");
        diagnostics.push(Diagnostic::error(message));
    }
}
