//! `exec_prerun` and `exec_postrun`: commands of a job before and after its measured I/O.

use crate::files::target_error;
use iosonde_job::plan::Job;
use iosonde_result::run_error::{PathAction, RunError, UnsupportedFeature};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// A command that has run.
pub(super) struct CommandRun {
    /// The output file, and how the command failed.
    pub(super) note: String,
    pub(super) has_failed: bool,
}

/// Runs `exec_prerun`, if the job has one. As in fio, a job whose command fails does no I/O.
pub(super) fn run_before(job: &Job, directory: &Path) -> Result<Option<CommandRun>, RunError> {
    let Some(command) = job.schedule.exec_prerun.as_deref() else {
        return Ok(None);
    };
    let mut ran = run(job, "prerun", command, directory)?;
    if ran.has_failed {
        ran.note.push_str(": the job does no I/O");
    }
    Ok(Some(ran))
}

/// Runs `exec_postrun`, if any, and returns a note on it. The job's result does not depend on it.
pub(super) fn run_after(job: &Job, directory: &Path) -> Option<String> {
    let command = job.schedule.exec_postrun.as_deref()?;
    let note = run(job, "postrun", command, directory).map(|ran| ran.note);
    Some(note.unwrap_or_else(|error| error.to_string()))
}

/// As in fio, the shell runs the command, with output to JOB.prerun.txt or JOB.postrun.txt.
fn run(job: &Job, moment: &str, command: &str, directory: &Path) -> Result<CommandRun, RunError> {
    let name = format!("{}.{moment}.txt", job.name.replace('/', "."));
    let path = &directory.join(&name);
    let unwritable = |error| target_error(path, PathAction::Write, &error);
    if !directory.as_os_str().is_empty() {
        fs::create_dir_all(directory).map_err(unwritable)?;
    }
    let output = File::create(path).map_err(unwritable)?;
    let errors = output.try_clone().map_err(unwritable)?;
    // As in fio, a command has no deadline: Ctrl-C reaches it too and ends it.
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status();
    let status = status.map_err(|error| {
        RunError::from(UnsupportedFeature::NoShell {
            moment: moment.to_owned(),
            command: command.to_owned(),
            failure: (&error).into(),
        })
    })?;
    let outcome = if status.success() {
        String::new()
    } else {
        format!(", which failed ({status})")
    };
    Ok(CommandRun {
        note: format!("Saving output of {moment} in {}{outcome}", path.display()),
        has_failed: !status.success(),
    })
}
