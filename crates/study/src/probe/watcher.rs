//! Who sees a probe while it goes on.

use super::figure::Figure;
use super::knee::Knee;
use super::phase::{Budget, Phase};
use super::target::ProbeTarget;
use crate::saturation::Cell;
use iosonde_result::interval::Interval;
use iosonde_result::observer::Progress;

/// What is about to happen.
#[derive(Debug, Clone)]
pub struct Announcement<'a> {
    /// What is probed.
    pub target: &'a ProbeTarget,
    /// Bytes of the working set.
    pub bytes: u64,
    /// The phases to come.
    pub phases: &'a [Phase],
    /// How long each takes at most, and which are followed by a search for the knee.
    pub budget: &'a Budget,
    /// Whether O_DIRECT will be asked for.
    pub direct: bool,
}

/// Sees a probe while it goes on.
pub trait Watcher {
    /// Nothing has been written yet.
    fn begin(&mut self, announcement: &Announcement<'_>) {
        let _ = announcement;
    }

    /// A phase begins, which takes this long at most.
    fn phase(&mut self, phase: Phase, planned_ns: u64) {
        let _ = (phase, planned_ns);
    }

    /// Called several times a second.
    fn progress(&mut self, phase: Phase, progress: &Progress<'_>) {
        let _ = (phase, progress);
    }

    /// A slice of the phase's run is complete, perhaps one of its ramp. Searches tell none.
    fn interval(&mut self, phase: Phase, interval: &Interval) {
        let _ = (phase, interval);
    }

    /// The rate of the phase is known to this share of itself by now, with 95 % confidence.
    fn confidence(&mut self, phase: Phase, relative_error: f64) {
        let _ = (phase, relative_error);
    }

    /// A phase has ended with this figure.
    fn figure(&mut self, figure: &Figure) {
        let _ = figure;
    }

    /// The search for the knee of a phase's pattern begins, which takes this long at most.
    fn search(&mut self, phase: Phase, planned_ns: u64) {
        let _ = (phase, planned_ns);
    }

    /// It measures a cell, for this long at most.
    fn cell_begins(&mut self, phase: Phase, jobs: u32, iodepth: u32, most_ns: u64) {
        let _ = (phase, jobs, iodepth, most_ns);
    }

    /// It has measured a cell, perhaps not for the first time.
    fn cell(&mut self, phase: Phase, cell: &Cell) {
        let _ = (phase, cell);
    }

    /// It has found this.
    fn knee(&mut self, knee: &Knee) {
        let _ = knee;
    }

    /// Something that the user should know.
    fn note(&mut self, note: &str) {
        let _ = note;
    }

    /// Whether the user wants the probe to end now.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl Watcher for () {}
