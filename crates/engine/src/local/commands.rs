//! `exec_prerun` and `exec_postrun`: what a job runs before and after its I/O, outside of what is measured.

use crate::prepare::target_error;
use iosonde_job::plan::Job;
use iosonde_result::session::RunError;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the command that belongs before the I/O, if there is one. What is to be said of it.
pub(super) fn before(job: &Job) -> Result<Option<String>, RunError> {
    let command = job.schedule.exec_prerun.as_deref();
    command
        .map(|command| run(job, "prerun", command))
        .transpose()
}

/// Runs the command that belongs behind the I/O, if there is one. What is to be said of it; what was measured stands in any case.
pub(super) fn after(job: &Job) -> Option<String> {
    let command = job.schedule.exec_postrun.as_deref()?;
    Some(run(job, "postrun", command).unwrap_or_else(|error| error.to_string()))
}

/// As in fio, the shell runs it, its output goes to JOB.prerun.txt, and a job goes on whatever its status.
fn run(job: &Job, moment: &str, command: &str) -> Result<String, RunError> {
    let name = format!("{}.{moment}.txt", job.name.replace('/', "."));
    let path = Path::new(&name);
    let unwritable = |error| target_error(path, "write", &error);
    let output = File::create(path).map_err(unwritable)?;
    let errors = output.try_clone().map_err(unwritable)?;
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status();
    let status = status.map_err(|error| RunError::Unsupported {
        problem: format!("exec_{moment}={command}: sh cannot be started: {error}"),
        remedy: format!("leave exec_{moment} out, or run it where there is a shell"),
    })?;
    let outcome = if status.success() {
        String::new()
    } else {
        format!(", which failed ({status})")
    };
    Ok(format!("Saving output of {moment} in {name}{outcome}"))
}
