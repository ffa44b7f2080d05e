//! Targets so slow that I/O in flight takes longer than a phase.
//!
//! I/O in flight cannot be cancelled: eight blocks of 1 MiB take almost three minutes at 50 kB/s. A
//! trial run with small blocks therefore measures the speed first. On a slow target, no more I/O is
//! in flight than completes in two seconds, and phases whose single I/O takes longer are skipped.

use crate::job_template::{JobTemplate, single_job};
use crate::probe_phase::ProbePhase;
use crate::words;
use iosonde_job::plan::{
    BlockSize, BytesOrPercent, Direction, Engine, PerDirection, Plan, ReadWrite, ReadWriteMode,
};
use iosonde_result::run::RunResult;

/// The job name of the trial run.
const TRIAL: &str = "trial";
/// The block size of the trial run, at depth 1, and the most bytes that it moves.
const BLOCK_BYTES: u64 = 64 << 10;
const TRIAL_BYTES: u64 = 4 << 20;
/// The longest time of the trial run.
const TRIAL_NS: u64 = 500_000_000;
/// Time in which I/O in flight must complete.
const DRAIN_S: f64 = 2.0;
/// Slower targets count as slow. At this rate, eight blocks of 1 MiB take 4 s.
const SLOW_BYTES_PER_S: f64 = 2.0 * 1_048_576.0;

/// The speed of a slow target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlowTarget {
    bytes_per_s: f64,
}

impl SlowTarget {
    /// The speed in the trial run; `None` for a fast target, or if no data moved.
    pub(super) fn from_result(result: &RunResult) -> Option<SlowTarget> {
        let worker = result
            .workers
            .first()
            .filter(|worker| worker.error.is_none())?;
        let moved: u64 = worker
            .directions
            .iter()
            .map(|(_, each)| each.io_bytes)
            .sum();
        // Includes the time to drain the I/O in flight at the end.
        let seconds = worker.elapsed_ns.max(worker.runtime_ns) as f64 / 1e9;
        let bytes_per_s = moved as f64 / seconds.max(1e-9);
        (moved > 0 && bytes_per_s < SLOW_BYTES_PER_S).then_some(SlowTarget { bytes_per_s })
    }

    /// The depth for blocks of this size, at most `usual`.
    pub(super) fn depth(self, block_bytes: u64, usual: u32) -> u32 {
        let most = (self.bytes_per_s * DRAIN_S / block_bytes as f64) as u32;
        most.clamp(1, usual)
    }

    /// Whether a single I/O of a phase takes too long.
    pub(super) fn is_too_large(self, phase: ProbePhase) -> bool {
        phase != ProbePhase::Layout && phase.block_bytes() as f64 > self.bytes_per_s * DRAIN_S
    }

    /// Block size of the layout.
    pub(super) fn layout_block(self) -> u64 {
        BLOCK_BYTES
    }

    /// Bytes of the working set that layout has written, in whole blocks.
    pub(super) fn laid_out_bytes(self, written: u64) -> u64 {
        written / BLOCK_BYTES * BLOCK_BYTES
    }

    /// The note on the speed of the target.
    pub(super) fn note(self) -> String {
        format!(
            "slow target: {} with blocks of 64 KiB, one at a time. I/Os in flight are limited to \
             those that complete within {DRAIN_S} s, because they cannot be cancelled",
            words::bandwidth(self.bytes_per_s)
        )
    }

    /// The note on a skipped phase.
    pub(super) fn left_out(self, phase: ProbePhase) -> String {
        format!(
            "{}: not measured, because one I/O of {} takes {}",
            phase.title(),
            words::bytes(phase.block_bytes()),
            words::duration(phase.block_bytes() as f64 / self.bytes_per_s),
        )
    }
}

/// The trial run: writes if the working set will be written, otherwise reads.
pub(super) fn trial(template: &JobTemplate<'_>, direction: Direction) -> Plan {
    let mut job = template.job(TRIAL);
    job.files.size = Some(BytesOrPercent::Bytes(template.bytes.min(TRIAL_BYTES)));
    if template.sim.is_none() {
        // A program that waits for each I/O uses synchronous calls.
        job.io.engine = Engine::Psync;
    }
    job.workload.rw = ReadWrite {
        mode: match direction {
            Direction::Read => ReadWriteMode::Read,
            _ => ReadWriteMode::Write,
        },
        random: false,
    };
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(BLOCK_BYTES));
    job.schedule.runtime_ns = TRIAL_NS;
    single_job(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeResult;
    use crate::probe_budget::ProbeBudget;
    use crate::test_targets::probe_simulated;

    fn probed(device: &str, budget: ProbeBudget) -> ProbeResult {
        probe_simulated(device, budget, None)
    }

    #[test]
    fn probe_keeps_time_at_50_kb_per_second() {
        let device = |rate: &str| format!("read_us=500,write_us=500,parallel=64,cap_bw={rate}");
        for (rate, budget, most_s) in [
            ("50k", ProbeBudget::NORMAL, 90.0),
            ("100k", ProbeBudget::NORMAL, 90.0),
            ("1m", ProbeBudget::NORMAL, 95.0),
            ("50k", ProbeBudget::QUICK, 30.0),
        ] {
            let result = probed(&device(rate), budget);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(|knee| knee.spent_ns());
            let total_s = runs.chain(searches).sum::<u64>() as f64 / 1e9;
            assert!(total_s < most_s, "{rate}: {total_s} s");
            assert!(!result.interrupted);
            assert!(
                result.notes[0].starts_with("slow target: "),
                "{:?}",
                result.notes
            );
            let left_out = result
                .notes
                .iter()
                .filter(|note| note.contains("not measured"));
            let (sequential, figures) = match rate {
                "1m" => (0, 7),
                _ => (2, 5),
            };
            assert_eq!(left_out.count(), sequential, "{:?}", result.notes);
            assert_eq!(result.figures.len(), figures, "{:?}", result.notes);
            let read = result.figure(ProbePhase::RandomRead).unwrap();
            let bytes_per_s = read.bytes_per_s.mean;
            let asked = match rate {
                "1m" => 1_048_576.0,
                "100k" => 102_400.0,
                _ => 51_200.0,
            };
            assert!(
                (bytes_per_s / asked - 1.0).abs() < 0.1,
                "{rate}: {bytes_per_s}"
            );
        }
    }

    #[test]
    fn fast_targets_are_measured_at_usual_depths() {
        for device in ["hdd", "read_us=10ms,write_us=10ms", "net-bw-cap"] {
            let result = probed(device, ProbeBudget::QUICK);
            assert!(
                !result.notes.iter().any(|note| note.contains("slow")),
                "{device}"
            );
            assert_eq!(result.figure(ProbePhase::RandomRead).unwrap().iodepth, 64);
            assert_eq!(
                result.figure(ProbePhase::SequentialRead).unwrap().iodepth,
                8
            );
        }
    }
}
