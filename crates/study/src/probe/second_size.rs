//! Blocks of a second size, where a rate does not rise any more: whether I/Os are counted or bytes.

use super::knee::{Knee, SUFFIX};
use super::phase::{self, Budget, Common, Phase};
use super::watcher::Watcher;
use crate::ceiling;
use crate::saturation::{self, Cell, give, measure_cell};
use iosonde_job::plan::{BlockSize, PerDirection};
use iosonde_result::observer::Progress;
use iosonde_result::session::{RunError, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many times larger or smaller than the phase's own blocks. 16 KiB beside 4 KiB is as much as clouds count as one I/O.
const TIMES: u64 = 4;
/// The look takes this part of the search before it.
const PART_OF_SEARCH: u64 = 8;
/// That of a sequential pattern is longer beside its short search.
const PART_OF_SEQUENTIAL: u64 = 4;
/// Runs last whole samples: the kernel's throttle lets I/Os through ten times a second.
const SAMPLE_NS: u64 = 100_000_000;
/// As deep as any other cell.
const DEEPEST: u32 = 256;

/// What was measured with blocks of another size than the phase's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondSize {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// What was found.
    pub cell: Cell,
    /// How long it took, ramp and end included, in nanoseconds.
    pub spent_ns: u64,
}

/// Looks at blocks of another size than those of a knee, if it has a flat top whose nature that can tell.
pub(super) fn look(
    session: &mut dyn Session,
    knee: &Knee,
    common: &Common<'_>,
    budget: &Budget,
    watcher: &mut dyn Watcher,
) -> Result<Option<SecondSize>, RunError> {
    let phase = knee.phase;
    let block_bytes = block_bytes(phase);
    let Some(iodepth) = iodepth(knee, block_bytes, common) else {
        return Ok(None);
    };
    let mut job = phase::job(
        phase,
        &format!("{}_size{SUFFIX}", phase.key()),
        common,
        budget,
    );
    job.workload.block_size = PerDirection::all(BlockSize::Fixed(block_bytes));
    give(&mut job, "bs", block_bytes.to_string());
    let mut passing = Passing { phase, watcher };
    let run = measure_cell(session, &job, iodepth, times(phase, budget), &mut passing)?;
    let cell = run.record.cell();
    let is_good = run.failure.is_none() && cell.iops.mean > 0.0;
    Ok(is_good.then_some(SecondSize {
        block_bytes,
        cell,
        spent_ns: run.elapsed_ns,
    }))
}

/// Large blocks are compared with smaller ones: larger ones are cut up by the kernel.
fn block_bytes(phase: Phase) -> u64 {
    match phase.is_random() {
        true => phase.block_bytes() * TIMES,
        false => phase.block_bytes() / TIMES,
    }
}

/// The depth at which the other blocks show all they can; `None` where they cannot, or where there is nothing to be told.
fn iodepth(knee: &Knee, block_bytes: u64, common: &Common<'_>) -> Option<u32> {
    let flat_from = ceiling::flat_from(knee)?;
    // Several jobs are faster where processors are what counts.
    if knee.saturation.jobs > 1 {
        return None;
    }
    let needed = match block_bytes < knee.phase.block_bytes() {
        // As many bytes in flight.
        true => flat_from * TIMES as u32,
        false => flat_from,
    };
    let usual = knee.phase.iodepth().max(needed).min(DEEPEST);
    let depth = match common.slow {
        Some(slow) => slow.depth(block_bytes, usual),
        None => usual,
    };
    (depth >= flat_from).then_some(depth)
}

/// Ramp and measured time.
fn times(phase: Phase, budget: &Budget) -> (u64, u64) {
    let part = match phase.is_random() {
        true => PART_OF_SEARCH,
        false => PART_OF_SEQUENTIAL,
    };
    let most_ns = budget.search_ns(phase) / part;
    let ramp_ns = most_ns / 6;
    let samples = ((most_ns - ramp_ns) / SAMPLE_NS).max(1);
    (ramp_ns, samples * SAMPLE_NS)
}

/// Passes on what happens, but not the cell: it is none of the curve.
struct Passing<'a> {
    phase: Phase,
    watcher: &'a mut dyn Watcher,
}

impl saturation::Watcher for Passing<'_> {
    fn begin(&mut self, jobs: u32, iodepth: u32, most_ns: u64) {
        self.watcher.cell_begins(self.phase, jobs, iodepth, most_ns);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.watcher.progress(self.phase, progress);
    }

    fn is_interrupted(&self) -> bool {
        self.watcher.is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceiling::{Counted, Holder};
    use crate::probe::{ProbeOptions, ProbeResult, ProbeTarget, TargetKind, probe};
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
            size_bytes: Some(1 << 30),
            direct: true,
            seed: 1,
        };
        let mut session = LocalRunner::default().open();
        probe(&mut session, &target, &options, &mut ()).unwrap()
    }

    /// What is counted of each phase's pattern that has a flat top, and who holds it.
    fn found(result: &ProbeResult) -> Vec<(bool, Counted, Holder)> {
        let each = result.ceilings.iter();
        each.map(|each| (each.random, each.counted, each.holder))
            .collect()
    }

    const FAST: &str = "read_us=200,write_us=200,parallel=64";

    #[test]
    fn a_bound_on_ios_holds_larger_blocks_at_the_same_rate() {
        let result = probed(&format!("{FAST},cap_iops=2000"), Budget::NORMAL);
        let of_random: Vec<_> = found(&result).into_iter().filter(|each| each.0).collect();
        let throttled = (true, Counted::Iops, Holder::Throttle);
        assert_eq!(of_random, [throttled; 2], "{:#?}", result.ceilings);
        let size = result.knees[0].second_size.as_ref().expect("a second size");
        assert_eq!(size.block_bytes, 16 << 10);
        assert!((size.cell.iops.mean - 2000.0).abs() < 60.0, "{size:?}");
    }

    #[test]
    fn a_bound_on_bytes_makes_larger_blocks_fewer() {
        let result = probed(&format!("{FAST},cap_bw=20m"), Budget::NORMAL);
        let found = found(&result);
        assert_eq!(found.len(), 4, "{:#?}", result.ceilings);
        assert!(found.iter().all(|each| each.1 == Counted::Bytes));
        let of_random = found.iter().filter(|each| each.0);
        assert!(of_random.clone().count() == 2);
        assert!(of_random.clone().all(|each| each.2 == Holder::Throttle));
    }

    #[test]
    fn a_volume_with_both_bounds_shows_each_where_it_holds() {
        let result = probed(&format!("{FAST},cap_iops=3000,cap_bw=125m"), Budget::NORMAL);
        for (random, counted, _) in found(&result) {
            let expected = if random {
                Counted::Iops
            } else {
                Counted::Bytes
            };
            assert_eq!(counted, expected, "{:#?}", result.ceilings);
        }
        assert_eq!(result.ceilings.len(), 4, "{:#?}", result.ceilings);
    }

    #[test]
    fn a_device_takes_longer_for_larger_blocks() {
        // Eight servers, each with a bandwidth of its own.
        let device = "read_us=1000,write_us=1000,parallel=8,read_bw=16m,write_bw=16m";
        let result = probed(device, Budget::NORMAL);
        let held = found(&result);
        let throttled = held.iter().any(|each| each.2 == Holder::Throttle && each.0);
        assert!(!throttled, "{:#?}", result.ceilings);
    }

    #[test]
    fn a_quick_probe_looks_at_no_second_size() {
        let result = probed(&format!("{FAST},cap_iops=300"), Budget::QUICK);
        assert!(result.knees.is_empty());
        // But what its phases show by themselves is told: 300 a second one at a time and with 64 in flight.
        let counted: Vec<_> = result.ceilings.iter().map(|each| each.counted).collect();
        assert_eq!(counted, [Counted::Iops; 2], "{:#?}", result.ceilings);
    }
}
