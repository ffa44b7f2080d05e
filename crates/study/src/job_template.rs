//! [`JobTemplate`]: the parameters that all jobs of a study on one target share.

use crate::study_target::{StudyTarget, StudyTargetKind};
use iosonde_job::plan::{
    BlockSize, BytesOrPercent, Engine, Job, PerDirection, Plan, ReadWrite, ReadWriteMode,
};

/// Block size of a layout.
pub(crate) const LAYOUT_BLOCK_BYTES: u64 = 1 << 20;
/// I/Os in flight of a layout.
pub(crate) const LAYOUT_DEPTH: u32 = 8;

/// Parameters that all jobs of a study on one target share.
#[derive(Debug, Clone)]
pub(crate) struct JobTemplate<'a> {
    /// File or device.
    pub(crate) path: &'a str,
    /// Bytes that are used, from the start.
    pub(crate) bytes: u64,
    /// Whether to use O_DIRECT.
    pub(crate) direct: bool,
    /// Seed of the offsets. `None`: the default of the engine.
    pub(crate) seed: Option<u64>,
    /// Options of a simulated device, if the target is one.
    pub(crate) sim: Option<&'a str>,
    /// Consent to write to a device in use.
    pub(crate) consent: bool,
}

impl<'a> JobTemplate<'a> {
    /// Returns the template of jobs that use the first `bytes` of a target.
    pub(crate) fn on(target: &'a StudyTarget, bytes: u64, direct: bool, seed: u64) -> Self {
        JobTemplate {
            path: &target.path,
            bytes,
            direct,
            seed: Some(seed),
            sim: match &target.kind {
                StudyTargetKind::Simulated { options } => Some(options),
                _ => None,
            },
            consent: matches!(target.kind, StudyTargetKind::Existing { consent: true, .. }),
        }
    }

    /// Returns a job on the target, without a workload yet.
    pub(crate) fn job(&self, name: &str) -> Job {
        let mut job = Job::new(name);
        job.files.filenames = vec![self.path.to_owned()];
        job.files.size = Some(BytesOrPercent::Bytes(self.bytes));
        job.files.allow_mounted_write = self.consent;
        job.workload.randseed = self.seed;
        job.io.direct = self.direct;
        job.io.engine = match self.sim {
            Some(_) => Engine::Sim,
            None => Engine::Auto,
        };
        job.io.sim = self.sim.map(str::to_owned);
        job
    }

    /// Returns a plan that writes the used bytes sequentially, and flushes them.
    pub(crate) fn sequential_write(&self, name: &str, block_bytes: u64, iodepth: u32) -> Plan {
        let mut job = self.job(name);
        job.workload.rw = ReadWrite {
            mode: ReadWriteMode::Write,
            random: false,
        };
        job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(block_bytes));
        job.workload.end_fsync = true;
        job.io.iodepth = iodepth;
        single_job(job)
    }
}

/// Returns a plan of one job.
pub(crate) fn single_job(job: Job) -> Plan {
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}
