//! Where does it bend? The lowest depth and number of jobs that reach a pattern's maximum, and the depth past which only
//! latency grows.
//!
//! A grid measures every cell alike. [`find_knee`] measures few, and each only until it is sure enough for what is asked
//! of it: it climbs by doubling, in steps of four while the rate grows with the depth, ends soon after the rate does not
//! grow any more, looks once at the deepest cell, halves the range of depths in which the knee must lie, and spends what is
//! left of its time where the answer is least sure. `docs/saturation.md` says how, and whose models these are.

mod cell;
mod curve;
mod measure;
mod outcome;
mod search;
mod series;
mod warm;

pub use cell::{Cell, Record, Warmup};
pub use curve::Curve;
pub(crate) use measure::give;
pub use measure::{CellRun, measure_cell, recorded};
pub use outcome::{Claims, Ended, LongerRun, Point, Saturation};
pub use search::{SoFar, find_knee, go_on};
pub use warm::{WarmTimes, measure_warm_cell};

use iosonde_job::plan::Job;
use iosonde_result::observer::Progress;
use iosonde_result::run::{IoFailure, RunResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;

/// What is searched.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The workload; its depth, clones, run and ramp times are the search's to choose.
    pub job: &'a Job,
    /// Depths that may be measured, ascending; others between them are tried when `rules.between` is set.
    pub depths: &'a [u32],
    /// Numbers of jobs that may be measured, ascending.
    pub jobs: &'a [u32],
    /// How much, and how sure.
    pub rules: Rules,
    /// Most measured time of a cell, in nanoseconds: what a grid gives to each is enough. Where it is said, a cell is measured as a
    /// grid would: in few long runs.
    pub most_cell_ns: Option<u64>,
    /// Whether sequential I/O goes on in each run of a cell where the last one ended. The job's region must be there as it says.
    pub goes_on: bool,
}

/// How long a search may take, and what it must know to end before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Time of all runs together, in nanoseconds: ramps and the ends of the last I/Os included.
    pub budget_ns: u64,
    /// Least ramp of a run, in nanoseconds. It is longer where the queue takes longer to turn over.
    pub ramp_ns: u64,
    /// Least measured time of a cell, in nanoseconds.
    pub look_ns: u64,
    /// Least measured time behind the maximum, in nanoseconds.
    pub least_ns: u64,
    /// Half the width of the maximum's 95 % interval at which the search ends, as a share of it.
    pub precision: f64,
    /// A depth reaches the maximum when its rate lacks no more than this share of it.
    pub tolerance: f64,
    /// Whether depths between the given ones are tried to find the knee more exactly.
    pub between: bool,
}

impl Rules {
    /// A minute for a curve: the tenth of a grid of ten cells of a minute each.
    pub const THOROUGH: Rules = Rules {
        budget_ns: 60 * SECOND_NS,
        ramp_ns: SECOND_NS / 5,
        look_ns: 3 * SECOND_NS / 5,
        least_ns: 8 * SECOND_NS,
        precision: 0.005,
        tolerance: 0.03,
        between: true,
    };
}

/// Depths by doubling, from 1 to `most` at most.
pub fn doubling(most: u32) -> Vec<u32> {
    std::iter::successors(Some(1u32), |depth| depth.checked_mul(2))
        .take_while(|depth| *depth <= most)
        .collect()
}

/// Sees a search while it goes on.
pub trait Watcher {
    /// A cell is about to be measured, for this long at most.
    fn begin(&mut self, jobs: u32, iodepth: u32, most_ns: u64) {
        let _ = (jobs, iodepth, most_ns);
    }

    /// Called several times a second.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// A cell was measured, perhaps not for the first time.
    fn cell(&mut self, cell: &Cell) {
        let _ = cell;
    }

    /// The same, with all that it takes to go on later, and the time of all runs so far.
    fn record(&mut self, record: &Record, spent_ns: u64) {
        let _ = (record, spent_ns);
    }

    /// A run has ended, whatever is taken of it.
    fn ended(&mut self, result: &RunResult) {
        let _ = result;
    }

    /// The process was stopped while a cell was measured.
    fn stopped(&mut self, note: String) {
        let _ = note;
    }

    /// An I/O error ends the search.
    fn failed(&mut self, failure: &IoFailure) {
        let _ = failure;
    }

    /// Whether the user wants the search to end now.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl Watcher for () {}
