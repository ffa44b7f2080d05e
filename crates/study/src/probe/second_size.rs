//! A second block size on a plateau: whether the limit counts I/Os or bytes.

use super::knee::SUFFIX;
use super::phase::{self, ProbeJobs};
use crate::ceiling;
use crate::driver::StudyDriver;
use crate::figures::pattern_knee::{Knee, SecondBlockSize};
use crate::probe_budget::ProbeBudget;
use crate::probe_phase::ProbePhase;
use crate::saturation::{CurveLog, measure_cell, record_option};
use iosonde_job::plan::{BlockSize, PerDirection};
use iosonde_result::run_error::RunError;

/// Factor to the phase's block size. Clouds count 16 KiB, four times 4 KiB, as one I/O.
const TIMES: u64 = 4;
/// The measurement takes this fraction of the time of the search before it.
const PART_OF_SEARCH: u64 = 8;
/// The fraction for sequential patterns, whose search is short.
const PART_OF_SEQUENTIAL: u64 = 4;
/// Runs last whole samples: the kernel's throttle releases I/Os ten times a second.
const SAMPLE_NS: u64 = 100_000_000;
/// As deep as a search.
const DEEPEST: u32 = 256;

/// Measures a second block size for a knee, if it has a plateau that the size can explain.
pub(super) fn measure_second_size(
    driver: &mut StudyDriver<'_>,
    knee: &Knee,
    jobs: &ProbeJobs<'_>,
    budget: &ProbeBudget,
) -> Result<Option<SecondBlockSize>, RunError> {
    let phase = knee.phase;
    let block_bytes = block_bytes(phase);
    let Some(iodepth) = iodepth(knee, block_bytes, jobs) else {
        return Ok(None);
    };
    let mut job = phase::phase_job(
        phase,
        &format!("{}_size{SUFFIX}", phase.key()),
        jobs,
        budget,
    );
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(block_bytes));
    record_option(&mut job, "bs", block_bytes.to_string());
    let times = times(phase, budget);
    // The cell is not on the curve, so that its log is not used.
    let run = measure_cell(driver, &job, iodepth, times, &mut CurveLog::default())?;
    let cell = run.record.cell();
    let is_good = run.failure.is_none() && cell.iops.mean > 0.0;
    Ok(is_good.then_some(SecondBlockSize {
        block_bytes,
        cell,
        spent_ns: run.elapsed_ns,
    }))
}

/// Smaller blocks for sequential patterns: the kernel splits larger ones.
fn block_bytes(phase: ProbePhase) -> u64 {
    match phase.is_random() {
        true => phase.block_bytes() * TIMES,
        false => phase.block_bytes() / TIMES,
    }
}

/// The depth to measure at; `None` without a plateau, or if the depth would be too low to reach it.
fn iodepth(knee: &Knee, block_bytes: u64, jobs: &ProbeJobs<'_>) -> Option<u32> {
    let flat_from = ceiling::flat_from(knee)?;
    // Several jobs are faster only where processors are the limit.
    if knee.saturation.jobs > 1 {
        return None;
    }
    let needed = match block_bytes < knee.phase.block_bytes() {
        // Keeps as many bytes in flight.
        true => flat_from * TIMES as u32,
        false => flat_from,
    };
    let usual = knee.phase.iodepth().max(needed).min(DEEPEST);
    let depth = match jobs.slow {
        Some(slow) => slow.depth(block_bytes, usual),
        None => usual,
    };
    (depth >= flat_from).then_some(depth)
}

/// Ramp and measured time.
fn times(phase: ProbePhase, budget: &ProbeBudget) -> (u64, u64) {
    let part = match phase.is_random() {
        true => PART_OF_SEARCH,
        false => PART_OF_SEQUENTIAL,
    };
    let most_ns = budget.search_ns(phase) / part;
    let ramp_ns = most_ns / 6;
    let samples = ((most_ns - ramp_ns) / SAMPLE_NS).max(1);
    (ramp_ns, samples * SAMPLE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceiling::{CeilingCause, LimitUnit};
    use crate::probe::ProbeResult;
    use crate::test_targets::probe_simulated;

    fn probed(device: &str, budget: ProbeBudget) -> ProbeResult {
        probe_simulated(device, budget, Some(1 << 30))
    }

    /// For each ceiling: whether it is random, what it counts, and its cause.
    fn found(result: &ProbeResult) -> Vec<(bool, LimitUnit, CeilingCause)> {
        let each = result.ceilings.iter();
        each.map(|each| (each.random, each.counted, each.holder))
            .collect()
    }

    const FAST: &str = "read_us=200,write_us=200,parallel=64";

    #[test]
    fn iops_cap_holds_larger_blocks_at_same_rate() {
        let result = probed(&format!("{FAST},cap_iops=2000"), ProbeBudget::NORMAL);
        let of_random: Vec<_> = found(&result).into_iter().filter(|each| each.0).collect();
        let throttled = (true, LimitUnit::Iops, CeilingCause::Throttle);
        assert_eq!(of_random, [throttled; 2], "{:#?}", result.ceilings);
        let size = result.knees[0].second_size.as_ref().expect("a second size");
        assert_eq!(size.block_bytes, 16 << 10);
        assert!((size.cell.iops.mean - 2000.0).abs() < 60.0, "{size:?}");
    }

    #[test]
    fn bandwidth_cap_is_counted_in_bytes() {
        let result = probed(&format!("{FAST},cap_bw=20m"), ProbeBudget::NORMAL);
        let found = found(&result);
        assert_eq!(found.len(), 4, "{:#?}", result.ceilings);
        assert!(found.iter().all(|each| each.1 == LimitUnit::Bytes));
        let of_random = found.iter().filter(|each| each.0);
        assert!(of_random.clone().count() == 2);
        assert!(
            of_random
                .clone()
                .all(|each| each.2 == CeilingCause::Throttle)
        );
    }

    #[test]
    fn volume_with_both_caps_shows_the_cap_of_each_pattern() {
        let result = probed(
            &format!("{FAST},cap_iops=3000,cap_bw=125m"),
            ProbeBudget::NORMAL,
        );
        for (random, counted, _) in found(&result) {
            let expected = if random {
                LimitUnit::Iops
            } else {
                LimitUnit::Bytes
            };
            assert_eq!(counted, expected, "{:#?}", result.ceilings);
        }
        assert_eq!(result.ceilings.len(), 4, "{:#?}", result.ceilings);
    }

    #[test]
    fn larger_blocks_that_take_longer_are_no_throttle() {
        // Eight servers, each with a bandwidth of its own.
        let device = "read_us=1000,write_us=1000,parallel=8,read_bw=16m,write_bw=16m";
        let result = probed(device, ProbeBudget::NORMAL);
        let held = found(&result);
        let throttled = held
            .iter()
            .any(|each| each.2 == CeilingCause::Throttle && each.0);
        assert!(!throttled, "{:#?}", result.ceilings);
    }

    #[test]
    fn quick_probe_skips_second_block_size() {
        let result = probed(&format!("{FAST},cap_iops=300"), ProbeBudget::QUICK);
        assert!(result.knees.is_empty());
        // The phases alone show 300 IOPS, with one and with 64 I/Os in flight.
        let counted: Vec<_> = result.ceilings.iter().map(|each| each.counted).collect();
        assert_eq!(counted, [LimitUnit::Iops; 2], "{:#?}", result.ceilings);
    }
}
