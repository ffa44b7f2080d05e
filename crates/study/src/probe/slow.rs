//! Targets so slow that what is in flight takes longer than a phase.
//!
//! I/O that has been asked for cannot be taken back: eight blocks of 1 MiB take almost three minutes at 50 kB/s. So before anything
//! large is asked for, a few small blocks tell how fast the target is. Where it is slow, no more is kept in flight than ends in
//! two seconds, and phases whose single I/O takes longer than that are left out.

use super::phase::{Common, Phase};
use crate::words;
use iosonde_job::plan::{BlockSize, Direction, Extent, Job, Mode, PerDirection, Plan, ReadWrite};
use iosonde_result::run::RunResult;

/// What the job of the first look is called.
pub(super) const TRIAL: &str = "trial";
/// Its blocks, one at a time, and how many bytes of them at most.
const BLOCK_BYTES: u64 = 64 << 10;
const TRIAL_BYTES: u64 = 4 << 20;
/// And for how long.
const TRIAL_NS: u64 = 500_000_000;
/// What is in flight shall end in this time.
const DRAIN_S: f64 = 2.0;
/// From here on eight blocks of 1 MiB do, or nearly.
const SLOW_BYTES_PER_S: f64 = 2.0 * 1_048_576.0;

/// How fast a slow target is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slow {
    bytes_per_s: f64,
}

impl Slow {
    /// What the first look says; `None` for targets that are fast enough, or that nothing is known of.
    pub(super) fn of(result: &RunResult) -> Option<Slow> {
        let worker = result
            .workers
            .first()
            .filter(|worker| worker.error.is_none())?;
        let moved: u64 = worker
            .directions
            .iter()
            .map(|(_, each)| each.io_bytes)
            .sum();
        // With what was in flight at the end.
        let seconds = worker.elapsed_ns.max(worker.runtime_ns) as f64 / 1e9;
        let bytes_per_s = moved as f64 / seconds.max(1e-9);
        (moved > 0 && bytes_per_s < SLOW_BYTES_PER_S).then_some(Slow { bytes_per_s })
    }

    /// How many blocks of this size may be in flight, if there are to be no more than `usual`.
    pub(super) fn depth(self, block_bytes: u64, usual: u32) -> u32 {
        let most = (self.bytes_per_s * DRAIN_S / block_bytes as f64) as u32;
        most.clamp(1, usual)
    }

    /// Whether a phase's single I/O takes too long.
    pub(super) fn is_too_large(self, phase: Phase) -> bool {
        phase != Phase::Layout && phase.block_bytes() as f64 > self.bytes_per_s * DRAIN_S
    }

    /// The block that the working set is laid out with.
    pub(super) fn layout_block(self) -> u64 {
        BLOCK_BYTES
    }

    /// What of the working set has been laid out, in whole blocks.
    pub(super) fn laid_out_bytes(self, written: u64) -> u64 {
        written / BLOCK_BYTES * BLOCK_BYTES
    }

    /// What the user is told.
    pub(super) fn note(self) -> String {
        format!(
            "slow: {} with blocks of 64 KiB, one at a time. I/O in flight cannot be taken back, so no more of it is kept there than ends in {DRAIN_S} s",
            words::bandwidth(self.bytes_per_s)
        )
    }

    /// What the user is told of a phase that is left out.
    pub(super) fn left_out(self, phase: Phase) -> String {
        format!(
            "{}: not measured, as one I/O of {} takes {} here",
            phase.title(),
            words::bytes(phase.block_bytes()),
            words::duration(phase.block_bytes() as f64 / self.bytes_per_s),
        )
    }
}

/// The first look: it writes where the working set will be written, and else reads.
pub(super) fn trial(common: &Common<'_>, direction: Direction) -> Plan {
    let mut job: Job = super::phase::target_job(TRIAL, common);
    job.files.size = Some(Extent::Bytes(common.bytes.min(TRIAL_BYTES)));
    job.workload.rw = ReadWrite {
        mode: match direction {
            Direction::Read => Mode::Read,
            _ => Mode::Write,
        },
        random: false,
    };
    job.workload.block_size = PerDirection::all(BlockSize::Fixed(BLOCK_BYTES));
    job.schedule.runtime_ns = TRIAL_NS;
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Budget, ProbeOptions, ProbeResult, ProbeTarget, TargetKind, probe};
    use iosonde_engine::runner::LocalRunner;

    fn probed(device: &str, budget: Budget) -> ProbeResult {
        let target = ProbeTarget {
            name: format!("sim:{device}"),
            path: "sim".into(),
            kind: TargetKind::Simulated {
                options: device.into(),
            },
        };
        let options = ProbeOptions {
            budget,
            size_bytes: None,
            direct: true,
            seed: 1,
        };
        let mut session = LocalRunner::default().open();
        probe(&mut session, &target, &options, &mut ()).unwrap()
    }

    #[test]
    fn the_time_is_kept_at_50_kb_a_second() {
        let device = |rate: &str| format!("read_us=500,write_us=500,parallel=64,cap_bw={rate}");
        for (rate, budget, most_s) in [
            ("50k", Budget::NORMAL, 90.0),
            ("100k", Budget::NORMAL, 90.0),
            ("1m", Budget::NORMAL, 95.0),
            ("50k", Budget::QUICK, 30.0),
        ] {
            let result = probed(&device(rate), budget);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(|knee| knee.spent_ns());
            let total_s = runs.chain(searches).sum::<u64>() as f64 / 1e9;
            assert!(total_s < most_s, "{rate}: {total_s} s");
            assert!(!result.interrupted);
            assert!(result.notes[0].starts_with("slow: "), "{:?}", result.notes);
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
            let read = result.figure(Phase::RandomRead).unwrap();
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
    fn targets_that_are_fast_enough_are_measured_as_ever() {
        for device in ["hdd", "read_us=10ms,write_us=10ms", "net-bw-cap"] {
            let result = probed(device, Budget::QUICK);
            assert!(
                !result.notes.iter().any(|note| note.contains("slow")),
                "{device}"
            );
            assert_eq!(result.figure(Phase::RandomRead).unwrap().iodepth, 64);
            assert_eq!(result.figure(Phase::SequentialRead).unwrap().iodepth, 8);
        }
    }
}
