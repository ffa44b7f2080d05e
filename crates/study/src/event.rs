//! The events of a study, and the observer that receives them.

use crate::TimeRange;
use crate::announcement::Announcement;
use crate::figures::cell::{CellRecord, CurveCell};
use crate::figures::curve_plan::CurvePlan;
use crate::figures::load_measurement::{LoadMeasurement, Offered};
use crate::figures::pattern_knee::Knee;
use crate::figures::phase_figure::PhaseFigure;
use crate::figures::pts_series::SeriesResult;
use crate::figures::saturation_result::Saturation;
use crate::probe_phase::ProbePhase;
use iosonde_result::interval::Interval;
use iosonde_result::observer::RunProgress;

/// An event of a running study.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum StudyEvent<'a> {
    /// The study is about to begin. Nothing has been written yet.
    Announced(Announcement<'a>),
    /// A step begins.
    StepStarted {
        /// The step.
        step: StudyStep<'a>,
        /// Its longest time in nanoseconds, if known.
        planned_ns: Option<u64>,
    },
    /// An estimate of the time left of the whole study.
    TimeLeft(TimeRange),
    /// Progress of a run, several times a second.
    Progress(&'a RunProgress<'a>),
    /// An interval of a run is complete, ramp included.
    Interval(&'a Interval),
    /// The confidence of the rate that is being measured.
    Confidence {
        /// Half the 95 % confidence interval, as a share of the rate.
        relative_error: f64,
    },
    /// A cell is about to be measured.
    CellStarted {
        /// Number of jobs.
        jobs: u32,
        /// I/Os in flight of each job.
        iodepth: u32,
        /// Longest time of the run in nanoseconds.
        most_ns: u64,
    },
    /// A knee search has measured a cell, possibly again.
    CellMeasured(&'a CurveCell),
    /// A knee search has data from which it can resume.
    Recorded {
        /// Index of the curve.
        curve: usize,
        /// All measurements of a cell.
        record: &'a CellRecord,
        /// Time of all runs of the curve in nanoseconds.
        spent_ns: u64,
    },
    /// The study has found a part of its result.
    Found(StudyFinding<'a>),
    /// A note for the user.
    Note(&'a str),
}

/// A step of a study.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum StudyStep<'a> {
    /// A phase of a probe.
    Phase(ProbePhase),
    /// The knee search of the phase before.
    KneeSearch(ProbePhase),
    /// Writes the working set of a target before it is read.
    Layout {
        /// The target as the user wrote it.
        target: &'a str,
    },
    /// Measures the capacity in closed loop.
    Capacity,
    /// Offers a load.
    OfferedLoad(Offered),
    /// Measures a curve of a sweep, or a cell of an exhaustive one.
    Unit {
        /// Number of units that are complete.
        done: usize,
        /// Number of all units.
        units: usize,
        /// The curve.
        plan: &'a CurvePlan,
    },
    /// Discards all blocks of the target.
    Purge,
    /// Writes the active range of a SNIA test.
    Fill {
        /// Share of all fills that is done, in per cent.
        done_percent: f64,
    },
    /// One workload of a round of a SNIA test.
    Workload {
        /// Number of the round, from 1.
        round: u32,
        /// Number of the workload in the round, from 1.
        number: usize,
        /// Number of workloads of a round.
        workloads: usize,
    },
}

/// A part of a study's result, reported as soon as it is known.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum StudyFinding<'a> {
    /// The figure of a phase.
    Figure(&'a PhaseFigure),
    /// The knee of a phase's pattern.
    Knee(&'a Knee),
    /// The capacity in closed loop.
    Capacity {
        /// I/Os per second.
        iops: f64,
    },
    /// A load was offered.
    Point(&'a LoadMeasurement),
    /// All runs at one rate of the latency curve together, after each of them.
    RateOfCurve(&'a LoadMeasurement),
    /// The search of a sweep's curve is complete.
    Curve {
        /// The curve.
        plan: &'a CurvePlan,
        /// Its knee and maximum.
        saturation: &'a Saturation,
        /// Whether the curve was found before, and measured for longer since then.
        is_again: bool,
    },
    /// A cell of an exhaustive sweep was measured.
    Cell {
        /// The curve of the cell.
        plan: &'a CurvePlan,
        /// The measurements.
        record: &'a CellRecord,
    },
    /// A round of a SNIA test is complete: the last of this series.
    Round(&'a SeriesResult),
}

/// Follows a study, and can end it.
pub trait StudyObserver {
    /// Receives an event.
    fn event(&mut self, event: &StudyEvent<'_>) {
        let _ = event;
    }

    /// Returns whether the user wants to stop the study.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Ignores all events, and never stops a study.
impl StudyObserver for () {}
