//! Where the random patterns of a probe bend: how deep a queue is worth it.

use super::phase::{self, Budget, Common, Phase};
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
/// Jobs at once that are tried, where more gain something.
const JOBS: [u32; 3] = [1, 2, 4];
/// What the jobs of a search are called after their phase.
const SUFFIX: &str = "_knee";

/// Where one phase's pattern saturates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The phase whose pattern was searched at other depths.
    pub phase: Phase,
    /// What was found.
    pub saturation: Saturation,
}

/// Whether a run is one of the many short ones of a search, whose figures are a cell of its knee.
pub fn is_search(plan: &Plan) -> bool {
    plan.jobs.iter().any(|job| job.name.ends_with(SUFFIX))
}

/// Searches the knee of a phase that has run; its run is what the search begins with.
pub(super) fn search(
    session: &mut dyn Session,
    phase: Phase,
    common: &Common<'_>,
    budget: &Budget,
    known: &RunResult,
    watcher: &mut dyn Watcher,
) -> Result<Knee, RunError> {
    let job = phase::job(phase, &format!("{}{SUFFIX}", phase.key()), common, budget);
    let question = Question {
        job: &job,
        depths: &doubling(DEEPEST),
        jobs: &JOBS,
        rules: rules(budget),
    };
    let mut passing = Passing { phase, watcher };
    let so_far = SoFar {
        records: recorded(known).into_iter().collect(),
        spent_ns: 0,
    };
    let saturation = go_on(session, &question, so_far, &mut passing)?;
    Ok(Knee { phase, saturation })
}

/// A search that ends in the time of a probe.
fn rules(budget: &Budget) -> Rules {
    let budget_ns = budget.knee_ns;
    Rules {
        budget_ns,
        ramp_ns: budget_ns / 100,
        look_ns: budget_ns / 25,
        least_ns: budget_ns / 5,
        precision: budget.width.max(0.005),
        ..Rules::THOROUGH
    }
}

/// Passes on what happens in a search.
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

    fn cell(&mut self, cell: &Cell) {
        self.watcher.cell(self.phase, cell);
    }

    fn is_interrupted(&self) -> bool {
        self.watcher.is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeOptions, ProbeResult, ProbeTarget, TargetKind, probe};
    use iosonde_engine::local::LocalRunner;

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

    #[test]
    fn the_lowest_depth_that_gives_the_most_is_found() {
        // Eight servers of 1.6 ms for reads and sixteen of 2 ms for writes.
        let device = "read_us=1600,write_us=4000,parallel=8,read_dist=exp";
        let result = probed(device, Budget::NORMAL);
        let phases: Vec<Phase> = result.knees.iter().map(|knee| knee.phase).collect();
        assert_eq!(phases, [Phase::RandomRead, Phase::RandomWrite]);
        for (knee, most, depth) in [
            (&result.knees[0], 5000.0, 8..=16),
            (&result.knees[1], 2000.0, 8..=8),
        ] {
            let found = &knee.saturation;
            let mean = found.maximum.mean;
            assert!(
                (mean - most).abs() < 0.02 * most,
                "{}: {mean}",
                phases[0].key()
            );
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
    fn the_whole_takes_no_longer_than_announced() {
        let target = TargetKind::Directory { free_bytes: 0 };
        for device in ["hdd", "read_us=2ms,noise=0.1", "net-iops-cap"] {
            let result = probed(device, Budget::NORMAL);
            let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
            let searches = result.knees.iter().map(|knee| knee.saturation.spent_ns);
            let total = runs.chain(searches).sum::<u64>();
            let most = Budget::NORMAL.total_ns(&target.phases());
            assert!(total < most + 1_000_000_000, "{device}: {total} of {most}");
        }
        assert!(probed("hdd", Budget::QUICK).knees.is_empty());
    }
}
