//! Plans of a test: purge, fill, one workload.

use crate::figures::preset::PtsWorkload;
use crate::job_template::JobTemplate;
use iosonde_job::plan::{
    BlockSize, BytesOrPercent, Job, PerDirection, Plan, RandomMap, ReadWrite, ReadWriteMode,
};

/// I/O depth of the fill.
const FILL_DEPTH: u32 = 32;
/// Largest discard: the size of the job's buffers, which discards do not use.
const MOST_DISCARD_BYTES: u64 = 64 << 20;

/// Returns a plan that discards `bytes` from the start.
pub(super) fn purge(template: &JobTemplate<'_>, bytes: u64) -> Plan {
    let rest = bytes % MOST_DISCARD_BYTES;
    let part = |name: &str, from: u64, bytes: u64, block_bytes: u64| {
        let mut job = with_pattern(template.job(name), ReadWriteMode::Trim, false);
        job.files.offset = BytesOrPercent::Bytes(from);
        job.files.size = Some(BytesOrPercent::Bytes(bytes));
        job.workload.block_size = fixed(block_bytes);
        job
    };
    // Large discards: a device may free nothing for small ones, and each discard takes time.
    let parts = [
        part("purge", 0, bytes - rest, MOST_DISCARD_BYTES),
        part("purge", bytes - rest, rest, rest),
    ];
    let is_some = |job: &Job| job.files.size != Some(BytesOrPercent::Bytes(0));
    Plan {
        jobs: parts.into_iter().filter(is_some).collect(),
        global_options: Vec::new(),
    }
}

/// Returns a plan that writes `bytes` from the start.
pub(super) fn fill_plan(template: &JobTemplate<'_>, bytes: u64, block_bytes: u64) -> Plan {
    let part = JobTemplate {
        bytes,
        ..template.clone()
    };
    part.sequential_write("fill", block_bytes, FILL_DEPTH)
}

/// Returns the job of a workload, without its runtime.
pub(super) fn workload(
    template: &JobTemplate<'_>,
    workload: PtsWorkload,
    random: bool,
    numjobs: u32,
) -> Job {
    let mode = match workload.read_percent {
        100 => ReadWriteMode::Read,
        0 => ReadWriteMode::Write,
        _ => ReadWriteMode::ReadWrite,
    };
    let order = if random { "random" } else { "sequential" };
    let name = format!("{order}-{}-{}", workload.read_percent, workload.block_bytes);
    let mut job = with_pattern(template.job(&name), mode, random);
    job.workload.rwmix_read_percent = workload.read_percent;
    job.workload.block_size = fixed(workload.block_bytes);
    job.workload.random_map = RandomMap::None;
    job.numjobs = numjobs;
    job
}

fn with_pattern(mut job: Job, mode: ReadWriteMode, random: bool) -> Job {
    job.workload.rw = ReadWrite { mode, random };
    job
}

fn fixed(bytes: u64) -> PerDirection<BlockSize> {
    PerDirection::from_value(BlockSize::Fixed(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a disk of 1 TB is no multiple of 64 MiB.
    #[test]
    fn purge_discards_device_in_64_mib_pieces() {
        let template = JobTemplate {
            path: "/dev/x",
            bytes: 4096,
            direct: true,
            seed: Some(1),
            sim: None,
            consent: false,
        };
        let parts = |bytes: u64| -> Vec<(u64, u64, u64)> {
            let number = |extent: &BytesOrPercent| match extent {
                BytesOrPercent::Bytes(bytes) => *bytes,
                other => panic!("{other:?}"),
            };
            let jobs = purge(&template, bytes).jobs;
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
