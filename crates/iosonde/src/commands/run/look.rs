//! What would be refused of a suite on a target of this machine, found without making or changing anything.

use super::place::Ground;
use crate::args::RunArgs;
use crate::commands::outside::Outside;
use crate::commands::target::check;
use crate::commands::{ceph, cluster};
use crate::failure::Failure;
use iosonde_engine::runner::{LocalRunner, ToBe};
use iosonde_job::plan::{Engine, Extent, Job, Plan};
use iosonde_result::session::RunError;
use iosonde_study::load::{self, LoadOptions};
use iosonde_study::probe::{self, ProbeTarget, TargetKind};
use iosonde_study::suite::{Suite, SuiteStep, What};
use iosonde_study::sweep::{self, SweepTarget};
use rustix::fs::{Access, access};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Everything that steps of a suite would be refused for on targets, each once. Clusters are asked elsewhere.
pub(super) fn all(
    names: &[&str],
    suite: &Suite,
    args: &RunArgs,
    outside: &Outside,
) -> Result<Vec<Failure>, Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let mut looks = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(look) = Look::at(name, index, args, outside)? else {
            continue;
        };
        // No step could do without them.
        match look.device().and_then(|()| look.access()) {
            Ok(()) => looks.push(look),
            Err(failure) => failures.push(failure),
        }
    }
    // What a step leaves is there for the next, and takes room from it, in the order in which they run.
    let mut to_be = ToBe::default();
    let mut refused = BTreeSet::new();
    let most = suite.steps.iter().map(|step| step.repetitions).max();
    for repetition in 1..=most.unwrap_or(1) {
        for (index, step) in suite.steps.iter().enumerate() {
            for (target, look) in looks.iter().enumerate() {
                if repetition > step.repetitions || refused.contains(&(index, target)) {
                    continue;
                }
                if let Err(failure) = look.step(step, &mut to_be) {
                    refused.insert((index, target));
                    failures.push(failure);
                }
            }
        }
    }
    let mut told = BTreeSet::new();
    failures.retain(|failure| told.insert(failure.text(false)));
    Ok(failures)
}

struct Look {
    runner: LocalRunner,
    ground: Ground,
    target: ProbeTarget,
    outside: Outside,
}

impl Look {
    /// A look at one of the targets, if it is on this machine.
    fn at(
        name: &str,
        index: usize,
        args: &RunArgs,
        outside: &Outside,
    ) -> Result<Option<Look>, Failure> {
        if cluster::target_within(name, &args.cluster)?.is_some() || ceph::target(name)?.is_some() {
            return Ok(None);
        }
        let kind = check(
            name,
            &args.written.consent.allow_overwrite,
            &args.ceph.access(),
        )?;
        let ground = Ground::without_scratch(name, index, kind.clone());
        Ok(Some(Look {
            runner: LocalRunner {
                consent: args.written.consent.noted(),
                only_read: ground.only_read().into_iter().collect(),
                permissions: Some(outside.permissions(Some(ground.permitted()))),
                ..LocalRunner::default()
            },
            target: ProbeTarget {
                name: name.to_owned(),
                path: name.to_owned(),
                kind,
            },
            ground,
            outside: outside.clone(),
        }))
    }

    /// The target as a study finds it, which looks for its room when its turn comes.
    fn studied(&self, to_be: &ToBe) -> ProbeTarget {
        let mut target = self.target.clone();
        if let TargetKind::Directory { free_bytes } = &mut target.kind {
            let taken = to_be.taken_bytes(Path::new(&target.path));
            *free_bytes = free_bytes.saturating_sub(taken);
        }
        target
    }

    /// Whether a simulated device can be.
    fn device(&self) -> Result<(), Failure> {
        let TargetKind::Simulated { options } = &self.target.kind else {
            return Ok(());
        };
        let mut job = Job::new("check");
        job.files.size = Some(Extent::Bytes(1 << 20));
        job.io.engine = Engine::Sim;
        job.io.sim = Some(options.clone());
        let plan = Plan {
            jobs: vec![job],
            global_options: Vec::new(),
        };
        Ok(self.runner.check(&plan, &mut ToBe::default())?)
    }

    /// Whether what is written to may be.
    fn access(&self) -> Result<(), Failure> {
        let (wanted, remedy) = match self.target.kind {
            TargetKind::Directory { .. } => (
                Access::WRITE_OK | Access::EXEC_OK,
                "name a directory that can be written",
            ),
            TargetKind::Existing { consent: true, .. } => {
                (Access::WRITE_OK, "name a target that can be written")
            }
            _ => return Ok(()),
        };
        access(Path::new(&self.target.path), wanted).map_err(|errno| {
            Failure::Run(RunError::Target {
                path: self.target.name.clone(),
                problem: io::Error::from(errno).to_string(),
                remedy: remedy.to_owned(),
            })
        })
    }

    fn step(&self, step: &SuiteStep, to_be: &mut ToBe) -> Result<(), Failure> {
        match &step.what {
            What::Jobs(plan) => self.jobs(plan.as_ref().clone(), to_be),
            What::Sweep(wanted) => {
                let reach = wanted.grid.reach();
                let target = self.studied(to_be);
                let target = SweepTarget::of_jobs(&target, reach, wanted.size_bytes, None)?;
                let grid = wanted.grid.on(&target)?;
                Ok(sweep::consent(&[target], &grid)?)
            }
            What::Load(options) => {
                let options: &LoadOptions = options;
                Ok(load::working_set(&self.studied(to_be), options).map(drop)?)
            }
            What::Probe(options) => {
                Ok(probe::working_set(&self.studied(to_be), options).map(drop)?)
            }
        }
    }

    fn jobs(&self, mut plan: Plan, to_be: &mut ToBe) -> Result<(), Failure> {
        // What is in a trace or in a directory is known when its turn comes: a step before may make them, and a pipe is read once.
        let is_open = |job: &Job| job.replay.is_some() || !job.files.opendir.is_empty();
        let is_unknown = plan.jobs.iter().any(is_open);
        // What jobs must not do anywhere is an error of the suite, not of each target.
        if !self.outside.refused(plan.jobs.iter()).is_empty() {
            return Ok(());
        }
        self.ground.put(&mut plan)?;
        plan.jobs
            .iter_mut()
            .for_each(|job| self.outside.relocate(job));
        if is_unknown {
            return Ok(());
        }
        Ok(self.runner.check(&plan, to_be)?)
    }
}
