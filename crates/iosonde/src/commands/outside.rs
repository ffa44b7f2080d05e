//! Accesses of a study's jobs outside of their target, which are refused, permitted, or listed.

use crate::args::OutsideArgs;
use crate::failure::CommandError;
use iosonde_engine::runner::Permissions;
use iosonde_history::random_id;
use iosonde_job::outside_access::{AccessKind, outside_accesses, relocate_logs};
use iosonde_job::plan::Job;
use std::collections::BTreeSet;
use std::path::{self, PathBuf};

/// Permitted accesses of a study's jobs outside of their target.
#[derive(Debug, Clone)]
pub(super) struct Outside {
    logs: PathBuf,
    commands: bool,
    /// Names of traces that jobs of the study record.
    recorded: BTreeSet<String>,
}

impl Outside {
    /// The permissions from the command line, for all jobs of a study.
    pub(super) fn from_args<'a>(
        args: &OutsideArgs,
        jobs: impl Iterator<Item = &'a Job>,
    ) -> Result<Outside, CommandError> {
        let logs = match &args.logs {
            Some(directory) => directory.clone(),
            None => format!("iosonde-{}", random_id().map_err(anyhow::Error::from)?).into(),
        };
        Ok(Outside {
            // Absolute, so that a change of the current directory has no effect.
            logs: path::absolute(logs).map_err(anyhow::Error::from)?,
            commands: args.allow_commands,
            recorded: jobs
                .filter_map(|job| job.measure.logs.trace.clone())
                .collect(),
        })
    }

    /// The same permissions for a check or a plan, which lists the commands and runs none.
    pub(super) fn for_listing(self) -> Outside {
        Outside {
            commands: true,
            ..self
        }
    }

    /// An error for each access that is not permitted.
    pub(super) fn refused<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Vec<CommandError> {
        let mut failures = Vec::new();
        for job in jobs {
            if job.files.allow_mounted_write {
                failures.push(CommandError::usage(
                    format!(
                        "the job `{}` has allow_mounted_write=1, but a job file cannot permit \
                         overwriting a device",
                        job.name
                    ),
                    "remove it from the job, and name the device with --allow-overwrite PATH",
                ));
            }
            let accesses = outside_accesses(job).into_iter();
            let refused = accesses.filter(|access| access.needs_trust() && !self.commands);
            failures.extend(refused.map(|access| {
                CommandError::usage(
                    access.to_string(),
                    "add --allow-commands if you trust the job, or leave the option out",
                )
            }));
        }
        failures
    }

    /// Moves the logs of a job to the directory of logs.
    pub(super) fn relocate(&self, job: &mut Job) {
        relocate_logs(job, &self.logs.to_string_lossy(), &self.recorded);
    }

    /// The permissions of a session.
    pub(super) fn permissions(&self, targets: Option<Vec<String>>) -> Permissions {
        Permissions {
            targets,
            logs: Some(self.logs.clone()),
            commands: self.commands,
            ..Permissions::default()
        }
    }

    /// Directory of logs and of the output of commands.
    pub(super) fn logs(&self) -> PathBuf {
        self.logs.clone()
    }

    /// Whether jobs may run commands.
    pub(super) fn commands(&self) -> bool {
        self.commands
    }

    /// One line for each distinct command, setting and path of jobs outside of their target.
    pub(super) fn listed<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> String {
        let mut lines = Vec::new();
        for job in jobs {
            let mut job = job.clone();
            self.relocate(&mut job);
            for access in outside_accesses(&job) {
                let line = match access.kind {
                    // The option of a log is a prefix of several file names.
                    AccessKind::Log if access.option != "write_iolog" => format!("{access}*\n"),
                    _ => format!("{access}\n"),
                };
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines.concat()
    }
}
