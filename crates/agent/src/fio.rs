//! Mode `fio`: the command line and the outputs of fio, without a status line.

use crate::Failure;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::cmdline::Action;
use iosonde_job::{CommandLine, Plan, help, parse};
use iosonde_machine::consent::Consent;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::fio::{self, Formats};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

/// Runs fio's command line.
pub(crate) fn run(words: &[OsString]) -> Result<(), Failure> {
    let mut parsed =
        parse(words, &SystemEnv::default()).map_err(|all| Failure::new(2, all.render(false)))?;
    if !parsed.warnings.list.is_empty() {
        eprintln!("{}", parsed.warnings);
    }
    if let Some(text) = told(&parsed.command.action)? {
        print!("{text}");
        return Ok(());
    }
    if parsed.command.showcmd {
        println!("{}", parsed.command_lines.join("\n"));
        return Ok(());
    }
    if parsed.plan.jobs.is_empty() {
        return Err(Failure::new(2, "error: no jobs are defined"));
    }
    if parsed.command.parse_only {
        return Ok(());
    }
    parsed.plan.count_stops();
    measure(&parsed.plan, &parsed.command)
}

fn told(action: &Action) -> Result<Option<String>, Failure> {
    let unknown = |problem| Failure::new(2, problem);
    Ok(Some(match action {
        Action::Run => return Ok(None),
        Action::Version => format!("{}\n", fio::VERSION),
        Action::Help => help::usage("fio"),
        Action::CommandHelp(name) => help::command_help(name.as_deref()).map_err(unknown)?,
        Action::EngineHelp(name) => help::engine_help(name.as_deref()).map_err(unknown)?,
    }))
}

fn measure(plan: &Plan, command: &CommandLine) -> Result<(), Failure> {
    let formats = Formats::asked(command);
    let mut out: Box<dyn Write> = match &command.output {
        Some(path) => Box::new(
            File::create(path).map_err(|error| Failure::new(5, format!("{path}: {error}")))?,
        ),
        None => Box::new(io::stdout()),
    };
    if let Some(directory) = &command.aux_path {
        std::env::set_current_dir(directory)
            .map_err(|error| Failure::new(2, format!("--aux-path={directory}: {error}")))?;
    }
    let interrupt = crate::serve::signals()?;
    let runner = LocalRunner {
        consent: Consent {
            by_jobs: true,
            ..Consent::to_overwrite(&command.allow_overwrite).and_in_use(&command.allow_in_use)
        },
        interrupt: interrupt.clone(),
        keep_files: true,
        ..LocalRunner::default()
    };
    let mut session = runner.open();
    let outcome = session.run(plan, &mut ());
    let _ = Box::new(session).close();
    let result = outcome.map_err(|error| refused(&error))?;
    write(&mut out, plan, &result, &formats)
        .map_err(|error| Failure::new(5, format!("the result cannot be written: {error}")))?;
    conclude(&result, interrupt.is_requested())
}

/// Returns the failure for a plan that was not run.
pub(crate) fn refused(error: &RunError) -> Failure {
    Failure::new(3, format!("error: {error}\nhelp: {}", error.remedy()))
}

/// Writes the outputs of fio.
pub(crate) fn write(
    out: &mut impl Write,
    plan: &Plan,
    result: &RunResult,
    formats: &Formats,
) -> io::Result<()> {
    if formats.normal {
        out.write_all(fio::header(plan).as_bytes())?;
    }
    fio::write(out, result, formats)?;
    out.flush()
}

/// Returns the failure, with exit status, for an interrupt or an error of a worker.
pub(crate) fn conclude(result: &RunResult, is_interrupted: bool) -> Result<(), Failure> {
    if is_interrupted {
        return Err(Failure::new(130, "interrupted"));
    }
    match result
        .workers
        .iter()
        .find_map(|worker| worker.error.as_ref())
    {
        Some(error) => Err(Failure::new(1, format!("error: {}", error.message))),
        None => Ok(()),
    }
}
