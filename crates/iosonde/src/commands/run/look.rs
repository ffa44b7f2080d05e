//! What would be refused of a suite on a target of this machine, found without making or changing anything.

use super::place::Ground;
use crate::args::RunArgs;
use crate::commands::target::check;
use crate::commands::{ceph, cluster};
use crate::failure::Failure;
use iosonde_engine::local::{LocalRunner, ToBe};
use iosonde_job::plan::{Engine, Extent, Job, Plan};
use iosonde_result::session::RunError;
use iosonde_study::load::{self, LoadOptions};
use iosonde_study::probe::{self, ProbeTarget, TargetKind};
use iosonde_study::suite::{Suite, SuiteStep, What};
use iosonde_study::sweep::{self, SweepTarget};
use rustix::fs::{Access, access};
use std::io;
use std::path::Path;

/// Everything that steps of a suite would be refused for on a target, each once. Clusters are asked elsewhere.
pub(super) fn all(name: &str, suite: &Suite, args: &RunArgs) -> Result<Vec<Failure>, Failure> {
    if cluster::target_within(name, &args.cluster)?.is_some() || ceph::target(name)?.is_some() {
        return Ok(Vec::new());
    }
    let kind = check(name, &args.written.allow_overwrite, &args.ceph.access())?;
    let ground = Ground::without_scratch(name, kind.clone());
    let look = Look {
        runner: LocalRunner {
            consent: args.written.allow_overwrite.clone(),
            only_read: ground.only_read().into_iter().collect(),
            within: ground.bounds(),
            ..LocalRunner::default()
        },
        target: ProbeTarget {
            name: name.to_owned(),
            path: name.to_owned(),
            kind,
        },
        ground,
    };
    // No step could do without them.
    if let Err(failure) = look.device().and_then(|()| look.access()) {
        return Ok(vec![failure]);
    }
    let mut failures: Vec<Failure> = Vec::new();
    // Files that a step leaves are there for the next.
    let mut to_be = ToBe::default();
    let told = suite
        .steps
        .iter()
        .filter_map(|step| look.step(step, &mut to_be).err());
    for failure in told {
        let text = failure.text(false);
        if failures.iter().all(|known| known.text(false) != text) {
            failures.push(failure);
        }
    }
    Ok(failures)
}

struct Look {
    runner: LocalRunner,
    ground: Ground,
    target: ProbeTarget,
}

impl Look {
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
                let target = SweepTarget::of_jobs(&self.target, reach, wanted.size_bytes, None)?;
                let grid = wanted.grid.on(&target)?;
                Ok(sweep::consent(&[target], &grid)?)
            }
            What::Load(options) => {
                let options: &LoadOptions = options;
                Ok(load::working_set(&self.target, options).map(drop)?)
            }
            What::Probe(options) => Ok(probe::working_set(&self.target, options).map(drop)?),
        }
    }

    fn jobs(&self, mut plan: Plan, to_be: &mut ToBe) -> Result<(), Failure> {
        // What is in a trace or in a directory is known when its turn comes: a step before may make them, and a pipe is read once.
        let is_open = |job: &Job| job.replay.is_some() || job.files.opendir.is_some();
        let is_unknown = plan.jobs.iter().any(is_open);
        self.ground.put(&mut plan)?;
        if is_unknown {
            return Ok(());
        }
        Ok(self.runner.check(&plan, to_be)?)
    }
}
