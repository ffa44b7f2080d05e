//! [`KnownCurve`]: the curve of one number of jobs, as far as a search has measured it.

use super::search_tuning::SearchTuning;
use crate::figures::cell::CellRecord;
use crate::figures::curve::{CurvePoint, RatePlateau, highest_plateau, steps};

const TUNING: SearchTuning = SearchTuning::DEFAULT;

/// Curve of one number of jobs, as measured so far.
pub(super) struct KnownCurve {
    pub(super) points: Vec<CurvePoint>,
    steps: Vec<RatePlateau>,
    pub(super) top: Option<RatePlateau>,
}

impl KnownCurve {
    /// Returns the curve of the records of one number of jobs, in the order of their depths.
    pub(super) fn from_records(records: &[&CellRecord]) -> KnownCurve {
        let points: Vec<CurvePoint> = records
            .iter()
            .map(|record| CurvePoint {
                iodepth: record.iodepth,
                rate: record.rate(),
                error: record.error().max(plausible_error(record, records)),
            })
            .collect();
        let steps = steps(&points);
        let top = highest_plateau(&steps);
        KnownCurve { points, steps, top }
    }

    /// Returns the first depth whose plateau reaches a rate, and the depth before it.
    pub(super) fn reaching(&self, rate: f64) -> Option<(Option<u32>, u32)> {
        let top = self.top.iter();
        let below = |step: &&RatePlateau| top.clone().all(|top| step.end <= top.first);
        let mut steps = self.steps.iter().take_while(below).chain(top.clone());
        let step = steps.find(|step| step.rate >= rate)?;
        let before = step.first.checked_sub(1);
        Some((
            before.map(|index| self.points[index].iodepth),
            self.points[step.first].iodepth,
        ))
    }
}

/// Smallest plausible error of a short cell, whose few samples may agree by chance: the error of
/// the best longer cell, scaled to the shorter time.
fn plausible_error(record: &CellRecord, others: &[&CellRecord]) -> f64 {
    if record.measured_ns() >= TUNING.many_samples_ns {
        return 0.0;
    }
    let longer = others
        .iter()
        .filter(|other| other.measured_ns() >= TUNING.many_samples_ns);
    let scaled = longer.map(|other| {
        let times = other.measured_ns() as f64 / record.measured_ns().max(1) as f64;
        other.error() * times.sqrt()
    });
    scaled.reduce(f64::min).unwrap_or(0.0)
}
