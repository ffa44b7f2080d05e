//! The knee of each phase's pattern, the lowest depth that reaches the maximum rate: sets up the
//! search by the probe's budget and calls it. The search itself is in the module `saturation`.

use super::phase::{self, ProbeJobs};
use crate::driver::StudyDriver;
use crate::figures::pattern_knee::Knee;
use crate::figures::search_rules::SearchRules;
use crate::probe_budget::{ProbeBudget, SEARCH_LEAST};
use crate::probe_phase::ProbePhase;
use crate::saturation::{CurveLog, KneeQuery, SearchProgress, doubling, recorded, resume_search};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;

/// The deepest queue that a search tries.
const DEEPEST: u32 = 256;
/// The deepest for sequential I/O, where a few large blocks in flight suffice.
const DEEPEST_SEQUENTIAL: u32 = 32;
/// Numbers of jobs to try. Only random patterns: several sequential jobs are another pattern.
const JOBS: [u32; 3] = [1, 2, 4];
/// The shortest measurement of a cell, in nanoseconds.
const LEAST_LOOK_NS: u64 = 300_000_000;
/// Suffix of the job names of a search, after the key of the phase.
pub(super) const SUFFIX: &str = "_knee";

/// Searches the knee of a phase, beginning with the phase's own run `known`.
pub(super) fn search(
    driver: &mut StudyDriver<'_>,
    phase: ProbePhase,
    jobs: &ProbeJobs<'_>,
    budget: &ProbeBudget,
    known: &RunResult,
) -> Result<Knee, RunError> {
    let job = phase::phase_job(phase, &format!("{}{SUFFIX}", phase.key()), jobs, budget);
    let (deepest, numbers) = match phase.is_random() {
        true => (DEEPEST, &JOBS[..]),
        false => (DEEPEST_SEQUENTIAL, &JOBS[..1]),
    };
    let (deepest, numbers) = match jobs.slow {
        Some(slow) => (slow.depth(phase.block_bytes(), deepest), &JOBS[..1]),
        None => (deepest, numbers),
    };
    let query = KneeQuery {
        job: &job,
        depths: &doubling(deepest),
        jobs: numbers,
        rules: rules(phase, budget),
        most_cell_ns: None,
        continues_region: false,
    };
    let mut log = CurveLog::resuming(SearchProgress {
        records: recorded(known).into_iter().collect(),
        spent_ns: 0,
    });
    log.name = Some(format!("{}, ", phase.title()));
    let saturation = resume_search(driver, &query, &mut log)?;
    Ok(Knee {
        phase,
        saturation,
        second_size: None,
    })
}

/// Rules of a search that ends in the time of a probe.
fn rules(phase: ProbePhase, budget: &ProbeBudget) -> SearchRules {
    let budget_ns = budget.search_ns(phase);
    // Fewer depths get more time each: large blocks need it.
    let looks = if phase.is_random() { 25 } else { 10 };
    SearchRules {
        budget_ns,
        ramp_ns: budget_ns / 100,
        // The fewest samples that give an interval. The first also covers the end of the ramp.
        look_ns: (budget_ns / looks).max(LEAST_LOOK_NS),
        least_ns: (SEARCH_LEAST * budget_ns as f64) as u64,
        precision: budget.width.max(0.005),
        ..SearchRules::THOROUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeResult;
    use crate::study_target::StudyTargetKind;
    use crate::test_targets::probe_simulated;

    fn probed(device: &str, budget: ProbeBudget) -> ProbeResult {
        probe_simulated(device, budget, Some(1 << 30))
    }

    fn knee_of(result: &ProbeResult, phase: ProbePhase) -> &Knee {
        let mut knees = result.knees.iter();
        knees.find(|knee| knee.phase == phase).unwrap()
    }

    #[test]
    fn search_of_long_phase_finds_all_knees() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let device = "read_us=20000,write_us=20000,parallel=4,read_dist=exp";
        let result = probed(device, ProbeBudget::NORMAL.with_runtime(HOUR_NS));
        assert_eq!(result.knees.len(), 4);
    }

    #[test]
    fn knee_is_lowest_depth_of_maximum_rate() {
        // Eight servers of 1.6 ms for reads and of 4 ms for writes.
        let device = "read_us=1600,write_us=4000,parallel=8,read_dist=exp";
        let result = probed(device, ProbeBudget::NORMAL);
        let phases: Vec<ProbePhase> = result.knees.iter().map(|knee| knee.phase).collect();
        let searched = [
            ProbePhase::RandomRead,
            ProbePhase::SequentialRead,
            ProbePhase::RandomWrite,
            ProbePhase::SequentialWrite,
        ];
        assert_eq!(phases, searched);
        for (phase, most, depth) in [
            (ProbePhase::RandomRead, 5000.0, 8..=16),
            (ProbePhase::RandomWrite, 2000.0, 8..=8),
        ] {
            let knee = knee_of(&result, phase);
            let found = &knee.saturation;
            let mean = found.maximum.mean;
            assert!((mean - most).abs() < 0.02 * most, "{}: {mean}", phase.key());
            assert!(depth.contains(&found.knee.iodepth), "{:?}", found.knee);
            assert!(found.spent_ns <= ProbeBudget::NORMAL.knee_ns);
            assert_eq!(found.jobs, 1);
            // The run of the phase itself is one of the cells.
            assert!(
                found
                    .cells
                    .iter()
                    .any(|cell| cell.iodepth == knee.phase.iodepth())
            );
        }
        let mut jobs = result.runs.iter().flat_map(|run| &run.result.plan.jobs);
        assert!(jobs.all(|job| !job.name.ends_with(SUFFIX)));
    }

    #[test]
    fn sequential_knee_is_where_bandwidth_cap_is_reached() {
        // 10 ms per block and at most 400 MiB/s: four in flight are enough.
        let result = probed(
            "read_us=10ms,write_us=10ms,parallel=64,cap_bw=400m",
            ProbeBudget::NORMAL,
        );
        for phase in [ProbePhase::SequentialRead, ProbePhase::SequentialWrite] {
            let knee = knee_of(&result, phase);
            let found = &knee.saturation;
            let mean = found.maximum.mean;
            assert!((mean - 400.0).abs() < 8.0, "{}: {mean}", phase.key());
            assert!((4..=8).contains(&found.knee.iodepth), "{:?}", found.knee);
            assert!(
                found
                    .cells
                    .iter()
                    .all(|cell| cell.jobs == 1 && cell.iodepth <= 32)
            );
            assert!(found.spent_ns <= ProbeBudget::NORMAL.search_ns(phase));
        }
    }

    /// Like the kernel's throttle, `cap_slice` releases I/Os ten times a second.
    #[test]
    fn throttle_slices_widen_interval_of_maximum() {
        let mut held = (0, 0);
        for number in 0..6 {
            let cap = 91.0 + 5.0 * f64::from(number);
            let device = format!(
                "read_us=500,write_us=500,parallel=64,cap_iops={cap},cap_bw=20m,\
                 cap_slice=100ms,seed={number}"
            );
            let result = probed(&device, ProbeBudget::NORMAL);
            for phase in [ProbePhase::RandomRead, ProbePhase::RandomWrite] {
                let maximum = knee_of(&result, phase).saturation.maximum;
                // A maximum without an interval claims nothing.
                let Some(error) = maximum.error else { continue };
                held.1 += 1;
                held.0 += u32::from((maximum.mean - cap).abs() <= error);
                assert!((maximum.mean / cap - 1.0).abs() < 0.1, "{cap}: {maximum:?}");
            }
        }
        assert!(
            held.1 >= 6 && f64::from(held.0) >= 0.9 * f64::from(held.1),
            "{held:?}"
        );
    }

    #[test]
    fn probe_keeps_time_on_slowly_draining_devices() {
        // 100 IOPS and 10 MB/s: I/O in flight at the end of a phase takes most of a second.
        let device = "read_us=500,write_us=500,parallel=64,cap_iops=100,cap_bw=10m";
        let target = StudyTargetKind::Directory { free_bytes: 0 };
        for (budget, most_s) in [(ProbeBudget::QUICK, 20.0), (ProbeBudget::NORMAL, 90.0)] {
            let result = probed(device, budget);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(Knee::spent_ns);
            let total_s = runs.chain(searches).sum::<u64>() as f64 / 1e9;
            assert_eq!(result.figures.len(), target.phases().len() - 1);
            assert!(total_s < most_s, "{total_s} of {most_s}");
        }
    }

    #[test]
    fn probe_takes_no_longer_than_announced() {
        let target = StudyTargetKind::Directory { free_bytes: 0 };
        for device in ["hdd", "read_us=2ms,noise=0.1", "net-iops-cap"] {
            let result = probed(device, ProbeBudget::NORMAL);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(Knee::spent_ns);
            let total = runs.chain(searches).sum::<u64>();
            let most = ProbeBudget::NORMAL.total_ns(&target.phases());
            assert!(total < most + 1_000_000_000, "{device}: {total} of {most}");
        }
        assert!(probed("hdd", ProbeBudget::QUICK).knees.is_empty());
    }
}
