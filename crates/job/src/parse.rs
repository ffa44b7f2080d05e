//! Parses the arguments of a command line into the program's options and a plan.

use crate::cmdline::{self, Action, CommandLine};
use crate::diagnostic::{Diagnostic, Diagnostics, JobListProblem, SyntaxProblem};
use crate::env::Env;
use crate::options;
use crate::plan::Plan;
use crate::resolve::{self, CommandLineSettings, SectionGroup};
use crate::showcmd;
use crate::syntax::command_line::{self, KnownOption};
use crate::syntax::ini;
use std::ffi::OsString;

/// Limit on the clones of all jobs together, as in fio. More are probably a typing error;
/// `--max-jobs` raises the limit.
const MOST_JOBS: u32 = 4096;

/// A parsed command line with its job files.
#[derive(Debug, Clone)]
pub struct ParsedCommand {
    /// The program's options.
    pub command: CommandLine,
    /// The jobs; empty if the action is not a run.
    pub plan: Plan,
    /// For `--showcmd`: one command line for the jobs of the command line with the first file, and
    /// one for each further file.
    pub command_lines: Vec<String>,
    /// The same jobs as job files, with all includes and variables expanded.
    pub job_files: Vec<String>,
    /// Names of the job files. Empty if the command line has options of jobs too.
    pub file_names: Vec<String>,
    /// Warnings to show before the run.
    pub warnings: Diagnostics,
}

/// Parses the arguments after the program's name. The error holds every diagnostic.
pub fn parse(args: &[OsString], env: &dyn Env) -> Result<ParsedCommand, Diagnostics> {
    parse_for(args, false, env)
}

/// Parses as [`parse`] does, for a target that may determine the engine. Then `iodepth` is not
/// checked against the job's `ioengine`.
pub fn parse_for(
    args: &[OsString],
    engine_of_target: bool,
    env: &dyn Env,
) -> Result<ParsedCommand, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let args = utf8_arguments(args, &mut diagnostics);
    let known: Vec<KnownOption> = cmdline::list_known_options()
        .chain(options::list_known_options())
        .collect();
    let words = command_line::parse(&args, &known, env, &mut diagnostics);
    let command = cmdline::interpret(&words.program, &mut diagnostics);
    if command.action != Action::Run {
        return finish(command, Plan::default(), &[], diagnostics);
    }
    let are_files_alone = words.sections.is_empty();
    let mut units: Vec<SectionGroup> = vec![words.sections];
    for (index, file) in words.files.iter().enumerate() {
        let sections = ini::read_job_file(&file.text, Some(file.span), env, &mut diagnostics);
        match index {
            0 => units[0].extend(sections),
            _ => units.push(sections),
        }
    }
    let settings = CommandLineSettings {
        sections: command.sections.clone(),
        readonly: command.readonly,
        engine_of_target,
        parse_only: command.parse_only,
    };
    let plan = resolve::resolve(&units, &settings, env, &mut diagnostics);
    check_max_jobs(&command, &plan, &mut diagnostics);
    let parsed = finish(command, plan, &units, diagnostics)?;
    let files = words.files.into_iter().filter(|_| are_files_alone);
    Ok(ParsedCommand {
        file_names: files.map(|file| file.text).collect(),
        ..parsed
    })
}

fn finish(
    command: CommandLine,
    plan: Plan,
    units: &[SectionGroup],
    mut diagnostics: Diagnostics,
) -> Result<ParsedCommand, Diagnostics> {
    diagnostics.sort();
    if command.warnings_fatal {
        diagnostics.promote_warnings();
    }
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(ParsedCommand {
        command,
        plan,
        command_lines: units
            .iter()
            .map(|unit| showcmd::render("fio", unit))
            .collect(),
        job_files: units.iter().map(|unit| showcmd::job_file(unit)).collect(),
        file_names: Vec::new(),
        warnings: diagnostics,
    })
}

fn utf8_arguments(args: &[OsString], diagnostics: &mut Diagnostics) -> Vec<String> {
    args.iter()
        .map(|arg| match arg.to_str() {
            Some(text) => text.to_owned(),
            None => {
                let argument = arg.to_string_lossy().into_owned();
                diagnostics.push(Diagnostic::error_from(SyntaxProblem::InvalidUtf8 {
                    argument: argument.clone(),
                }));
                argument
            }
        })
        .collect()
}

fn check_max_jobs(command: &CommandLine, plan: &Plan, diagnostics: &mut Diagnostics) {
    let clones: u64 = plan.jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    let limit = command.max_jobs.unwrap_or(0).max(MOST_JOBS);
    if clones > u64::from(limit) {
        let too_many = JobListProblem::TooManyClones { clones, limit };
        diagnostics.push(Diagnostic::error_from(too_many));
    }
}
