//! The conclusion of a knee search: maximum, knee and plateau, from all measured cells.

use super::knee_search::KneeSearch;
use super::search_tuning::SearchTuning;
use crate::figures::cell::CellRecord;
use crate::figures::curve::{Curve, disagreement};
use crate::figures::estimate::RateEstimate;
use crate::figures::saturation_result::{DepthPoint, Saturation};
use crate::figures::search_rules::Ended;

const TUNING: SearchTuning = SearchTuning::DEFAULT;

impl KneeSearch<'_, '_> {
    /// Returns the result of the search. `None` if nothing was measured.
    pub(super) fn conclude(self) -> Option<Saturation> {
        let jobs = self.best_jobs()?;
        let known = self.known(jobs);
        let top = known.top.as_ref()?;
        let deepest = self.query.depths.last().copied();
        let point = |iodepth: u32| {
            let record = self.record(jobs, iodepth)?;
            let cell = record.cell();
            Some(DepthPoint {
                iodepth,
                iops: cell.iops.mean,
                latency: cell.latency,
            })
        };
        let (_, knee) = known.reaching(top.rate * (1.0 - self.query.rules.tolerance))?;
        let (_, nearly) = known.reaching(top.rate * (1.0 - TUNING.negligible_difference))?;
        let knee = point(knee)?;
        let cell = self.record(jobs, known.points[top.first].iodepth)?.cell();
        let block = cell.bytes_per_s.mean / cell.iops.mean.max(f64::MIN_POSITIVE);
        let estimate = |mean: f64| RateEstimate {
            mean,
            error: Some(top.error * disagreement(&known.points, top) * mean),
            spread: cell.iops.spread,
        };
        Some(Saturation {
            rules: self.query.rules,
            jobs,
            maximum: estimate(top.rate),
            maximum_bytes_per_s: estimate(top.rate * block),
            plateau: (top.end > top.first + 1).then(|| {
                let depth = |index: usize| known.points[index].iodepth;
                (depth(top.first), depth(top.end - 1))
            }),
            longer_run: None,
            knee,
            latency_only: (Some(nearly) != deepest).then(|| point(nearly)).flatten(),
            curve: Curve::fit(&known.points),
            cells: self.records.iter().map(CellRecord::cell).collect(),
            spent_ns: self.spent_ns,
            ended: self.stopped.unwrap_or(Ended::Sure),
            failure: self.failure,
        })
    }

    /// Returns the fewest jobs that reach the maximum rate.
    fn best_jobs(&self) -> Option<u32> {
        let tried = self.query.jobs.iter().copied();
        let most = tried
            .clone()
            .map(|jobs| self.maximum(jobs))
            .fold(0.0, f64::max);
        let enough = most * (1.0 - self.query.rules.tolerance);
        tried
            .into_iter()
            .find(|jobs| most > 0.0 && self.maximum(*jobs) >= enough)
    }
}
