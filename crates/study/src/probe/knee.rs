//! Where the patterns of a probe bend: how deep a queue is worth it.

use super::phase::{self, Budget, Common, Phase, SEARCH_LEAST};
use super::second_size::SecondSize;
use super::slow::TRIAL;
use super::watcher::Watcher;
use crate::saturation::{
    self, Cell, Question, Rules, Saturation, SoFar, doubling, go_on, recorded,
};
use iosonde_job::plan::Plan;
use iosonde_result::observer::Progress;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The deepest queue that is tried.
const DEEPEST: u32 = 256;
/// The deepest with large blocks, of which a few in flight are enough everywhere.
const DEEPEST_SEQUENTIAL: u32 = 32;
/// Jobs at once that are tried, where more gain something. Several jobs that each read in sequence are another pattern.
const JOBS: [u32; 3] = [1, 2, 4];
/// The shortest look at a cell, in nanoseconds.
const LEAST_LOOK_NS: u64 = 300_000_000;
/// What the jobs of a search are called after their phase.
pub(super) const SUFFIX: &str = "_knee";

/// Where one phase's pattern saturates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The phase whose pattern was searched at other depths.
    pub phase: Phase,
    /// What was found.
    pub saturation: Saturation,
    /// What blocks of another size reach, where the rate has a flat top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_size: Option<SecondSize>,
}

impl Knee {
    /// What finding it took, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.saturation.spent_ns + self.second_size.as_ref().map_or(0, |size| size.spent_ns)
    }
}

/// Whether a run is one of the short ones beside the phases: of a search, whose figures are a cell of its knee, or the first look
/// at how fast a target is.
pub fn is_search(plan: &Plan) -> bool {
    let is_one = |name: &str| name.ends_with(SUFFIX) || name == TRIAL;
    plan.jobs.iter().any(|job| is_one(&job.name))
}

/// Searches the knee of a phase that has run; its run is what the search begins with. Beside it, what was told to the watcher
/// meanwhile.
pub(super) fn search(
    session: &mut dyn Session,
    phase: Phase,
    common: &Common<'_>,
    budget: &Budget,
    known: &RunResult,
    watcher: &mut dyn Watcher,
) -> Result<(Knee, Vec<String>), RunError> {
    let job = phase::job(phase, &format!("{}{SUFFIX}", phase.key()), common, budget);
    let (deepest, jobs) = match phase.is_random() {
        true => (DEEPEST, &JOBS[..]),
        false => (DEEPEST_SEQUENTIAL, &JOBS[..1]),
    };
    let (deepest, jobs) = match common.slow {
        Some(slow) => (slow.depth(phase.block_bytes(), deepest), &JOBS[..1]),
        None => (deepest, jobs),
    };
    let question = Question {
        job: &job,
        depths: &doubling(deepest),
        jobs,
        rules: rules(phase, budget),
        most_cell_ns: None,
        goes_on: false,
    };
    let mut passing = Passing {
        phase,
        watcher,
        notes: Vec::new(),
    };
    let so_far = SoFar {
        records: recorded(known).into_iter().collect(),
        spent_ns: 0,
    };
    let saturation = go_on(session, &question, so_far, &mut passing)?;
    let knee = Knee {
        phase,
        saturation,
        second_size: None,
    };
    Ok((knee, passing.notes))
}

/// A search that ends in the time of a probe.
fn rules(phase: Phase, budget: &Budget) -> Rules {
    let budget_ns = budget.search_ns(phase);
    // Fewer depths have more of the time each; large blocks need it.
    let looks = if phase.is_random() { 25 } else { 10 };
    Rules {
        budget_ns,
        ramp_ns: budget_ns / 100,
        // The fewest samples that leave an interval: the first is of the ramp too.
        look_ns: (budget_ns / looks).max(LEAST_LOOK_NS),
        least_ns: (SEARCH_LEAST * budget_ns as f64) as u64,
        precision: budget.width.max(0.005),
        ..Rules::THOROUGH
    }
}

/// Passes on what happens in a search.
struct Passing<'a> {
    phase: Phase,
    watcher: &'a mut dyn Watcher,
    notes: Vec<String>,
}

impl saturation::Watcher for Passing<'_> {
    fn begin(&mut self, jobs: u32, iodepth: u32, most_ns: u64) {
        self.watcher.cell_begins(self.phase, jobs, iodepth, most_ns);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.watcher.progress(self.phase, progress);
    }

    fn cell(&mut self, cell: &Cell) {
        self.watcher.cell(self.phase, cell);
    }

    fn stopped(&mut self, note: String) {
        let note = format!("{}, {note}", self.phase.title());
        self.watcher.note(&note);
        self.notes.push(note);
    }

    fn is_interrupted(&self) -> bool {
        self.watcher.is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn knee_of(result: &ProbeResult, phase: Phase) -> &Knee {
        let mut knees = result.knees.iter();
        knees.find(|knee| knee.phase == phase).unwrap()
    }

    #[test]
    fn search_of_a_long_phase_has_ramps_of_usual_length() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let device = "read_us=20000,write_us=20000,parallel=4,read_dist=exp";
        let result = probed(device, Budget::NORMAL.with_runtime(HOUR_NS));
        assert_eq!(result.knees.len(), 4);
    }

    #[test]
    fn the_lowest_depth_that_gives_the_most_is_found() {
        // Eight servers of 1.6 ms for reads and sixteen of 2 ms for writes.
        let device = "read_us=1600,write_us=4000,parallel=8,read_dist=exp";
        let result = probed(device, Budget::NORMAL);
        let phases: Vec<Phase> = result.knees.iter().map(|knee| knee.phase).collect();
        let searched = [
            Phase::RandomRead,
            Phase::SequentialRead,
            Phase::RandomWrite,
            Phase::SequentialWrite,
        ];
        assert_eq!(phases, searched);
        for (phase, most, depth) in [
            (Phase::RandomRead, 5000.0, 8..=16),
            (Phase::RandomWrite, 2000.0, 8..=8),
        ] {
            let knee = knee_of(&result, phase);
            let found = &knee.saturation;
            let mean = found.maximum.mean;
            assert!((mean - most).abs() < 0.02 * most, "{}: {mean}", phase.key());
            assert!(depth.contains(&found.knee.iodepth), "{:?}", found.knee);
            assert!(found.spent_ns <= Budget::NORMAL.knee_ns);
            assert_eq!(found.jobs, 1);
            // The run of the phase itself is one of the cells.
            assert!(
                found
                    .cells
                    .iter()
                    .any(|cell| cell.iodepth == knee.phase.iodepth())
            );
        }
        assert!(result.runs.iter().all(|run| !is_search(&run.result.plan)));
    }

    #[test]
    fn streams_bend_where_the_bandwidth_is_reached() {
        // 10 ms for each block, and no more than 400 MiB/s: four in flight are enough.
        let result = probed(
            "read_us=10ms,write_us=10ms,parallel=64,cap_bw=400m",
            Budget::NORMAL,
        );
        for phase in [Phase::SequentialRead, Phase::SequentialWrite] {
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
            assert!(found.spent_ns <= Budget::NORMAL.search_ns(phase));
        }
    }

    /// As the kernel's throttle does: what it owes, ten times a second.
    #[test]
    fn a_throttle_in_lumps_is_known_no_better_than_to_a_lump() {
        let mut held = (0, 0);
        for number in 0..6 {
            let cap = 91.0 + 5.0 * f64::from(number);
            let device = format!(
                "read_us=500,write_us=500,parallel=64,cap_iops={cap},cap_bw=20m,cap_slice=100ms,seed={number}"
            );
            let result = probed(&device, Budget::NORMAL);
            for phase in [Phase::RandomRead, Phase::RandomWrite] {
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
    fn the_time_is_kept_on_devices_that_are_slow_to_end() {
        // 100 I/Os a second and 10 MB/s: what is in flight when a phase ends takes most of a second.
        let device = "read_us=500,write_us=500,parallel=64,cap_iops=100,cap_bw=10m";
        let target = TargetKind::Directory { free_bytes: 0 };
        for (budget, most_s) in [(Budget::QUICK, 20.0), (Budget::NORMAL, 90.0)] {
            let result = probed(device, budget);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(Knee::spent_ns);
            let total_s = runs.chain(searches).sum::<u64>() as f64 / 1e9;
            assert_eq!(result.figures.len(), target.phases().len() - 1);
            assert!(total_s < most_s, "{total_s} of {most_s}");
        }
    }

    #[test]
    fn the_whole_takes_no_longer_than_announced() {
        let target = TargetKind::Directory { free_bytes: 0 };
        for device in ["hdd", "read_us=2ms,noise=0.1", "net-iops-cap"] {
            let result = probed(device, Budget::NORMAL);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(Knee::spent_ns);
            let total = runs.chain(searches).sum::<u64>();
            let most = Budget::NORMAL.total_ns(&target.phases());
            assert!(total < most + 1_000_000_000, "{device}: {total} of {most}");
        }
        assert!(probed("hdd", Budget::QUICK).knees.is_empty());
    }
}
