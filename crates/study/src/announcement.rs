//! [`Announcement`]: the extent of a study, reported before it begins.

use crate::probe_budget::ProbeBudget;
use crate::probe_phase::ProbePhase;
use crate::study_target::StudyTarget;
use crate::sweep_axis::Axis;
use crate::sweep_target::SweepTarget;
use crate::time_range::TimeRange;
use std::ops::Add;

/// The extent of a study, reported before it begins.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Announcement<'a> {
    /// A probe.
    Probe(ProbeAnnouncement<'a>),
    /// Latency over offered load.
    Load {
        /// The target.
        target: &'a StudyTarget,
        /// Bytes, steps and time of the study.
        extent: LoadAnnouncement,
    },
    /// A sweep of a grid.
    Sweep(SweepAnnouncement<'a>),
    /// A test after SNIA's specification.
    Pts {
        /// The target.
        target: &'a StudyTarget,
        /// Bytes and time of the test.
        extent: PtsAnnouncement,
    },
}

/// The extent of a probe, reported before it begins.
#[derive(Debug, Clone, Copy)]
pub struct ProbeAnnouncement<'a> {
    /// The target.
    pub target: &'a StudyTarget,
    /// Bytes of the working set.
    pub bytes: u64,
    /// The phases that will run.
    pub phases: &'a [ProbePhase],
    /// The time of each phase, and which phases are followed by a knee search.
    pub budget: &'a ProbeBudget,
    /// Whether the probe asks for O_DIRECT.
    pub direct: bool,
}

/// Announcement of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadAnnouncement {
    /// Bytes of the working set.
    pub bytes: u64,
    /// Bytes to write in the layout.
    pub layout_bytes: u64,
    /// Number of steps after the layout.
    pub steps: StepRange,
    /// Time of these steps, without the drain of their last I/Os.
    pub planned: TimeRange,
}

/// Range of a number of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepRange {
    /// Minimum number of steps.
    pub least: u64,
    /// Maximum number of steps.
    pub most: u64,
}

impl StepRange {
    pub(crate) fn exactly(count: usize) -> StepRange {
        StepRange::new(count, count)
    }

    pub(crate) fn new(least: usize, most: usize) -> StepRange {
        debug_assert!(least <= most);
        StepRange {
            least: least as u64,
            most: most as u64,
        }
    }

    /// Returns the range after one step.
    pub(crate) fn after_one(self) -> StepRange {
        StepRange {
            least: self.least.saturating_sub(1),
            most: self.most.saturating_sub(1),
        }
    }

    /// Returns the time of the steps at `step_ns` each.
    pub(crate) fn time(self, step_ns: u64) -> TimeRange {
        TimeRange::from_steps(self.least, self.most, step_ns)
    }
}

impl Add for StepRange {
    type Output = StepRange;

    fn add(self, other: StepRange) -> StepRange {
        StepRange {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }
}

/// Announcement of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtsAnnouncement {
    /// Bytes of the active range.
    pub bytes: u64,
    /// Bytes to discard in the purges of all series. 0: nothing is purged.
    pub purge_bytes: u64,
    /// Bytes to write in the fills of all series.
    pub fill_bytes: u64,
    /// Time of all rounds, without purges and fills.
    pub rounds: TimeRange,
    /// Bytes that end the rounds of write saturation.
    pub most_written_bytes: Option<u64>,
}

/// Extent of a sweep, shown before it begins.
#[derive(Debug, Clone, Copy)]
pub struct SweepAnnouncement<'a> {
    /// Targets that are laid out or overwritten.
    pub targets: &'a [SweepTarget],
    /// Axes of the grid. The last is the depth.
    pub axes: &'a [Axis],
    /// Number of curves.
    pub curves: usize,
    /// Number of cells.
    pub cells: usize,
    /// Time of all runs, without the layout and without the cells of a resumed sweep.
    pub planned: TimeRange,
    /// Cells that a resumed sweep has measured.
    pub known_cells: usize,
    /// Bytes of the layout before the first cell.
    pub layout_bytes: u64,
    /// Longest time of the runs that write.
    pub writing_ns: u64,
}
