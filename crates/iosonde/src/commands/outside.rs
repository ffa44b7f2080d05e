//! What jobs of a study do outside of their target: it is refused, permitted, or listed.

use crate::args::OutsideArgs;
use crate::failure::Failure;
use crate::store::random_id;
use iosonde_engine::runner::Permissions;
use iosonde_job::outside_access::{AccessKind, outside_accesses, relocate_logs};
use iosonde_job::plan::Job;
use std::collections::BTreeSet;
use std::path::{self, PathBuf};

/// What jobs of a study may do outside of their target.
#[derive(Debug, Clone)]
pub(super) struct Outside {
    logs: PathBuf,
    commands: bool,
    /// Traces that jobs of the study record, by the names that they give.
    recorded: BTreeSet<String>,
}

impl Outside {
    /// As the command line says it, for all jobs of a study.
    pub(super) fn of<'a>(
        args: &OutsideArgs,
        jobs: impl Iterator<Item = &'a Job>,
    ) -> Result<Outside, Failure> {
        let logs = match &args.logs {
            Some(directory) => directory.clone(),
            None => format!("iosonde-{}", random_id().map_err(anyhow::Error::from)?).into(),
        };
        Ok(Outside {
            // Whatever the current directory is by then.
            logs: path::absolute(logs).map_err(anyhow::Error::from)?,
            commands: args.allow_commands,
            recorded: jobs
                .filter_map(|job| job.measure.logs.trace.clone())
                .collect(),
        })
    }

    /// What jobs must not do, each once.
    pub(super) fn refused<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Vec<Failure> {
        let mut failures = Vec::new();
        for job in jobs {
            if job.files.allow_mounted_write {
                failures.push(Failure::usage(
                    format!(
                        "the job `{}` has allow_mounted_write=1: whether a device may be overwritten is not for a job file to say",
                        job.name
                    ),
                    "leave it out of the job, and name what may be overwritten with --allow-overwrite PATH",
                ));
            }
            let accesses = outside_accesses(job).into_iter();
            let refused = accesses.filter(|access| access.needs_trust() && !self.commands);
            failures.extend(refused.map(|access| {
                Failure::usage(
                    access.to_string(),
                    "add --allow-commands if you trust the job, or leave the option out",
                )
            }));
        }
        failures
    }

    /// Puts the logs of a job where they belong.
    pub(super) fn relocate(&self, job: &mut Job) {
        relocate_logs(job, &self.logs.to_string_lossy(), &self.recorded);
    }

    /// What a session permits.
    pub(super) fn permissions(&self, targets: Option<Vec<String>>) -> Permissions {
        Permissions {
            targets,
            logs: Some(self.logs.clone()),
            commands: self.commands,
        }
    }

    /// Where logs are, and what commands print.
    pub(super) fn logs(&self) -> PathBuf {
        self.logs.clone()
    }

    /// Whether jobs may run commands.
    pub(super) fn commands(&self) -> bool {
        self.commands
    }

    /// A line for each command, setting and path of jobs outside of their target, each once.
    pub(super) fn listed<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> String {
        let mut lines = Vec::new();
        for job in jobs {
            let mut job = job.clone();
            self.relocate(&mut job);
            for access in outside_accesses(&job) {
                let line = match access.kind {
                    // The name of a log is the start of several.
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
