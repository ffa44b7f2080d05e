//! The plans of a test: purge, fill, one workload.

use super::preset::Workload;
use iosonde_job::plan::{
    BlockSize, Engine, Extent, Job, Mode, PerDirection, Plan, RandomMap, ReadWrite,
};

/// Depth of purge and fill.
const FILL_DEPTH: u32 = 32;
/// Most that one discard covers: as much as a buffer of the job has, which it does not use.
const MOST_DISCARD_BYTES: u64 = 64 << 20;

/// What all runs of a test have in common.
#[derive(Debug, Clone)]
pub(super) struct Ground<'a> {
    /// File or device.
    pub(super) path: &'a str,
    /// Bytes from its start that are used.
    pub(super) bytes: u64,
    pub(super) direct: bool,
    pub(super) seed: u64,
    /// The simulated device, if it is one.
    pub(super) sim: Option<&'a str>,
    /// Consent to write to a device in use.
    pub(super) consent: bool,
}

impl Ground<'_> {
    /// Discards so many bytes from the start.
    pub(super) fn purge(&self, bytes: u64) -> Plan {
        let rest = bytes % MOST_DISCARD_BYTES;
        let part = |name: &str, from: u64, bytes: u64, block_bytes: u64| {
            let mut job = self.job(name, Mode::Trim, false);
            job.files.offset = Extent::Bytes(from);
            job.files.size = Some(Extent::Bytes(bytes));
            job.workload.block_size = fixed(block_bytes);
            job
        };
        // Large discards: a device may free nothing for small ones, and each takes its time.
        let parts = [
            part("purge", 0, bytes - rest, MOST_DISCARD_BYTES),
            part("purge", bytes - rest, rest, rest),
        ];
        let is_some = |job: &Job| job.files.size != Some(Extent::Bytes(0));
        Plan {
            jobs: parts.into_iter().filter(is_some).collect(),
            global_options: Vec::new(),
        }
    }

    /// Writes so many bytes from the start.
    pub(super) fn fill(&self, bytes: u64, block_bytes: u64) -> Plan {
        let mut job = self.job("fill", Mode::Write, false);
        job.files.size = Some(Extent::Bytes(bytes));
        job.workload.block_size = fixed(block_bytes);
        job.workload.end_fsync = true;
        job.io.iodepth = FILL_DEPTH;
        plan(job)
    }

    /// A workload, for as long as whoever runs it says.
    pub(super) fn workload(&self, workload: Workload, random: bool, numjobs: u32) -> Job {
        let mode = match workload.read_percent {
            100 => Mode::Read,
            0 => Mode::Write,
            _ => Mode::ReadWrite,
        };
        let order = if random { "random" } else { "sequential" };
        let name = format!("{order}-{}-{}", workload.read_percent, workload.block_bytes);
        let mut job = self.job(&name, mode, random);
        job.workload.rwmix_read_percent = workload.read_percent;
        job.workload.block_size = fixed(workload.block_bytes);
        job.workload.random_map = RandomMap::None;
        job.numjobs = numjobs;
        job
    }

    fn job(&self, name: &str, mode: Mode, random: bool) -> Job {
        let mut job = Job::new(name);
        job.files.filenames = vec![self.path.to_owned()];
        job.files.size = Some(Extent::Bytes(self.bytes));
        job.files.allow_mounted_write = self.consent;
        job.workload.rw = ReadWrite { mode, random };
        job.workload.randseed = Some(self.seed);
        job.io.direct = self.direct;
        job.io.engine = match self.sim {
            Some(_) => Engine::Sim,
            None => Engine::Auto,
        };
        job.io.sim = self.sim.map(str::to_owned);
        job
    }
}

fn fixed(bytes: u64) -> PerDirection<BlockSize> {
    PerDirection::all(BlockSize::Fixed(bytes))
}

fn plan(job: Job) -> Plan {
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk of 1 TB is no multiple of anything large.
    #[test]
    fn everything_is_discarded_in_large_pieces() {
        let ground = Ground {
            path: "/dev/x",
            bytes: 4096,
            direct: true,
            seed: 1,
            sim: None,
            consent: false,
        };
        let parts = |bytes: u64| -> Vec<(u64, u64, u64)> {
            let number = |extent: &Extent| match extent {
                Extent::Bytes(bytes) => *bytes,
                other => panic!("{other:?}"),
            };
            let jobs = ground.purge(bytes).jobs;
            let part = |job: &Job| {
                let block = match job.workload.block_size.trim {
                    BlockSize::Fixed(bytes) => bytes,
                    ref other => panic!("{other:?}"),
                };
                let size = job.files.size.as_ref().map_or(0, number);
                (number(&job.files.offset), size, block)
            };
            jobs.iter().map(part).collect()
        };
        let piece = 64 << 20;
        let disk = 1_000_204_886_016;
        let whole = disk / piece * piece;
        assert_eq!(
            parts(disk),
            [(0, whole, piece), (whole, disk - whole, disk - whole)]
        );
        assert_eq!(parts(4 << 30), [(0, 4 << 30, piece)]);
        assert_eq!(parts(32 << 20), [(0, 32 << 20, 32 << 20)]);
    }
}
