//! Dry checks of a suite on local targets: errors of steps, found without changing anything.

use super::job_target::JobTarget;
use crate::args::RunArgs;
use crate::commands::ceph::remote_storage;
use crate::commands::outside::Outside;
use crate::commands::target::check;
use crate::commands::{ceph, cluster};
use crate::failure::CommandError;
use iosonde_engine::runner::{LocalRunner, PlannedFiles};
use iosonde_job::plan::{BytesOrPercent, CephAccess, Engine, Job, Plan};
use iosonde_result::run_error::{AccessPurpose, RunError, SystemFailure, TargetProblem};
use iosonde_study::StudyNeighbour;
use iosonde_study::load::{self, LoadOptions};
use iosonde_study::probe::{self, StudyTarget, StudyTargetKind};
use iosonde_study::sweep::{self, SweepTarget};
use iosonde_suite::{StepKind, Suite, SuiteStep};
use rustix::fs::{Access, access};
use std::collections::BTreeSet;
use std::path::Path;

/// All distinct errors of a suite's steps on local targets. Targets in clusters are skipped.
pub(super) fn check_local_targets(
    names: &[&str],
    suite: &Suite,
    args: &RunArgs,
    outside: &Outside,
) -> Result<Vec<CommandError>, CommandError> {
    let mut failures: Vec<CommandError> = Vec::new();
    let mut checks = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(target_check) = LocalTargetCheck::prepare(name, index, args, outside)? else {
            continue;
        };
        // All steps need the device and the access.
        match target_check.device().and_then(|()| target_check.access()) {
            Ok(()) => checks.push(target_check),
            Err(failure) => failures.push(failure),
        }
    }
    // Steps in run order: files of a step exist for the next and use its space.
    let mut planned_files = PlannedFiles::default();
    let mut refused = BTreeSet::new();
    let most = suite.steps.iter().map(|step| step.repetitions).max();
    for repetition in 1..=most.unwrap_or(1) {
        for (index, step) in suite.steps.iter().enumerate() {
            for (target, target_check) in checks.iter().enumerate() {
                if repetition > step.repetitions || refused.contains(&(index, target)) {
                    continue;
                }
                if let Err(failure) = target_check.step(step, &mut planned_files) {
                    refused.insert((index, target));
                    failures.push(failure.in_step(suite, step));
                }
            }
        }
    }
    let mut texts = BTreeSet::new();
    failures.retain(|failure| texts.insert(failure.text(false)));
    Ok(failures)
}

struct LocalTargetCheck {
    runner: LocalRunner,
    job_target: JobTarget,
    target: StudyTarget,
    outside: Outside,
}

impl LocalTargetCheck {
    /// Prepares the check of a target. `None` if it is not local.
    fn prepare(
        name: &str,
        index: usize,
        args: &RunArgs,
        outside: &Outside,
    ) -> Result<Option<LocalTargetCheck>, CommandError> {
        if cluster::target_within(name, &args.cluster)?.is_some() || ceph::target(name)?.is_some() {
            return Ok(None);
        }
        let kind = check(
            name,
            &args.written.consent.allow_overwrite,
            &args.ceph.access(),
        )?;
        let job_target = JobTarget::without_scratch(name, index, kind.clone());
        Ok(Some(LocalTargetCheck {
            runner: LocalRunner {
                consent: args.written.consent.noted(),
                only_read: job_target.only_read().into_iter().collect(),
                permissions: Some(outside.permissions(Some(job_target.permitted()))),
                remote: remote_storage(CephAccess::default()),
                ..LocalRunner::default()
            },
            target: StudyTarget {
                name: name.to_owned(),
                path: name.to_owned(),
                kind,
            },
            job_target,
            outside: outside.clone(),
        }))
    }

    /// The target as a study will find it: planned files reduce the free space.
    fn studied(&self, planned_files: &PlannedFiles) -> StudyTarget {
        let mut target = self.target.clone();
        if let StudyTargetKind::Directory { free_bytes } = &mut target.kind {
            let taken = planned_files.taken_bytes(Path::new(&target.path));
            *free_bytes = free_bytes.saturating_sub(taken);
        }
        target
    }

    /// Checks the options of a simulated device.
    fn device(&self) -> Result<(), CommandError> {
        let StudyTargetKind::Simulated { options } = &self.target.kind else {
            return Ok(());
        };
        let mut job = Job::new("check");
        job.files.size = Some(BytesOrPercent::Bytes(1 << 20));
        job.io.engine = Engine::Sim;
        job.io.sim = Some(options.clone());
        let plan = Plan {
            jobs: vec![job],
            global_options: Vec::new(),
        };
        Ok(self.runner.check(&plan, &mut PlannedFiles::default())?)
    }

    /// Checks for write access, if the target may be written.
    fn access(&self) -> Result<(), CommandError> {
        let (wanted, purpose) = match self.target.kind {
            StudyTargetKind::Directory { .. } => (
                Access::WRITE_OK | Access::EXEC_OK,
                AccessPurpose::ScratchDirectory,
            ),
            StudyTargetKind::Existing { consent: true, .. } => {
                (Access::WRITE_OK, AccessPurpose::Overwrite)
            }
            _ => return Ok(()),
        };
        access(Path::new(&self.target.path), wanted).map_err(|errno| {
            CommandError::Run(RunError::unusable_target(
                self.target.name.clone(),
                TargetProblem::NotAccessible {
                    failure: SystemFailure::Errno(errno.raw_os_error()),
                    purpose,
                },
            ))
        })
    }

    fn step(&self, step: &SuiteStep, planned_files: &mut PlannedFiles) -> Result<(), CommandError> {
        // The plan of jobs has its neighbour.
        let is_study = !matches!(step.what, StepKind::Jobs(_));
        if let Some(neighbour) = step.beside.as_ref().filter(|_| is_study) {
            StudyNeighbour::new(neighbour, &self.target)?;
        }
        match &step.what {
            StepKind::Jobs(plan) => self.jobs(plan.as_ref().clone(), planned_files),
            StepKind::Sweep(wanted) => {
                let reach = wanted.grid.reach();
                let target = self.studied(planned_files);
                let target = SweepTarget::for_jobs(&target, reach, wanted.size_bytes, None)?;
                let grid = wanted.grid.on(&target)?;
                Ok(sweep::consent(&[target], &grid)?)
            }
            StepKind::Load(options) => {
                let options: &LoadOptions = options;
                Ok(load::working_set(&self.studied(planned_files), options).map(drop)?)
            }
            StepKind::Probe(options) => {
                Ok(probe::working_set(&self.studied(planned_files), options).map(drop)?)
            }
            // `refused_commands` checks the target. The needs of a command are not known.
            StepKind::Command(_) => Ok(()),
        }
    }

    fn jobs(&self, mut plan: Plan, planned_files: &mut PlannedFiles) -> Result<(), CommandError> {
        // Not checked: an earlier step may create traces and directories, and a pipe is read once.
        let is_open = |job: &Job| job.replay.is_some() || !job.files.opendir.is_empty();
        let is_unknown = plan.jobs.iter().any(is_open);
        // Forbidden accesses are reported once for the suite, not for each target.
        if !self.outside.refused(plan.jobs.iter()).is_empty() {
            return Ok(());
        }
        self.job_target.put(&mut plan)?;
        plan.jobs
            .iter_mut()
            .for_each(|job| self.outside.relocate(job));
        if is_unknown {
            return Ok(());
        }
        Ok(self.runner.check(&plan, planned_files)?)
    }
}
