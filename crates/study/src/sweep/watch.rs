//! Seeing a sweep while it goes on.

use super::announce::Announcement;
use super::grid::CurvePlan;
use crate::TimeRange;
use crate::saturation::{Record, Saturation};
use iosonde_result::observer::Progress;

/// Sees a sweep while it goes on.
pub trait SweepWatcher {
    /// Nothing has been written yet.
    fn begin(&mut self, announcement: &Announcement<'_>) {
        let _ = announcement;
    }

    /// The working set of a target is being written.
    fn layout(&mut self, target: &str) {
        let _ = target;
    }

    /// A curve, or a cell of one, comes next.
    fn unit(&mut self, done: usize, of: usize, plan: &CurvePlan) {
        let _ = (done, of, plan);
    }

    /// How long all of it will still take, waiting and preparing not included: during layout, and before a unit.
    fn left(&mut self, left: TimeRange) {
        let _ = left;
    }

    /// A cell is about to be measured, for this long at most.
    fn cell(&mut self, iodepth: u32, most_ns: u64) {
        let _ = (iodepth, most_ns);
    }

    /// Called several times a second.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// All that is known of a cell, to go on from later, and the time that its curve has taken so far.
    fn record(&mut self, curve: usize, record: &Record, spent_ns: u64) {
        let _ = (curve, record, spent_ns);
    }

    /// A curve has been searched to its end, or a cell measured.
    fn done(&mut self, plan: &CurvePlan, found: &Found<'_>) {
        let _ = (plan, found);
    }

    /// Something that the user should know.
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Whether the user wants it to end now.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// What a unit found.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    /// A curve.
    Curve(&'a Saturation),
    /// A cell.
    Cell(&'a Record),
}

/// Watches nothing.
impl SweepWatcher for () {}
