//! Mode `fio`: the command line and the outputs of fio, without a status line.

use crate::AgentFailure;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::cmdline::Action;
use iosonde_job::errno::describe;
use iosonde_job::{CommandLine, Plan, help, parse};
use iosonde_machine::consent::Consent;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::fio::{self, Formats};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

/// Runs fio's command line.
pub(crate) fn run(words: &[OsString]) -> Result<(), AgentFailure> {
    let mut parsed = parse(words, &SystemEnv::default())
        .map_err(|all| AgentFailure::new(2, all.render(false)))?;
    if !parsed.warnings.list.is_empty() {
        eprintln!("{}", parsed.warnings);
    }
    if let Some(text) = action_text(&parsed.command.action)? {
        print!("{text}");
        return Ok(());
    }
    if parsed.command.showcmd {
        println!("{}", parsed.command_lines.join("\n"));
        return Ok(());
    }
    if parsed.plan.jobs.is_empty() {
        return Err(AgentFailure::new(2, "error: no jobs are defined"));
    }
    if parsed.command.parse_only {
        return Ok(());
    }
    parsed.plan.count_stops();
    measure(&parsed.plan, &parsed.command)
}

fn action_text(action: &Action) -> Result<Option<String>, AgentFailure> {
    let unknown = |problem| AgentFailure::new(2, problem);
    Ok(Some(match action {
        Action::Run => return Ok(None),
        Action::Version => format!("{}\n", fio::VERSION),
        Action::Help => help::usage("fio"),
        Action::CommandHelp(name) => help::command_help(name.as_deref()).map_err(unknown)?,
        Action::EngineHelp(name) => help::engine_help(name.as_deref(), false).map_err(unknown)?,
    }))
}

fn measure(plan: &Plan, command: &CommandLine) -> Result<(), AgentFailure> {
    let formats = Formats::asked(command);
    let mut out: Box<dyn Write> = match &command.output {
        Some(path) => Box::new(
            File::create(path)
                .map_err(|error| AgentFailure::new(5, format!("{path}: {}", describe(&error))))?,
        ),
        None => Box::new(io::stdout()),
    };
    if let Some(directory) = &command.aux_path {
        std::env::set_current_dir(directory).map_err(|error| {
            AgentFailure::new(2, format!("--aux-path={directory}: {}", describe(&error)))
        })?;
    }
    let interrupt = crate::serve::interrupt_on_signals()?;
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
    let result = outcome.map_err(|error| refusal_failure(&error))?;
    write(&mut out, plan, &result, &formats).map_err(|error| {
        AgentFailure::new(
            5,
            format!("the result cannot be written: {}", describe(&error)),
        )
    })?;
    conclude(&result, interrupt.is_requested())
}

/// Returns the failure for a plan that was not run.
pub(crate) fn refusal_failure(error: &RunError) -> AgentFailure {
    AgentFailure::new(3, format!("error: {error}\nhelp: {}", error.remedy()))
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
pub(crate) fn conclude(result: &RunResult, is_interrupted: bool) -> Result<(), AgentFailure> {
    if is_interrupted {
        return Err(AgentFailure::new(130, "interrupted"));
    }
    match result
        .workers
        .iter()
        .find_map(|worker| worker.error.as_ref())
    {
        Some(error) => Err(AgentFailure::new(1, format!("error: {}", error.message))),
        None => Ok(()),
    }
}
