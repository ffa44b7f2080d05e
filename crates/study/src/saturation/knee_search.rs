//! The search itself: selects the next cell and decides when the result is precise enough.

use super::KneeQuery;
use super::curve_log::CurveLog;
use super::known_curve::KnownCurve;
use super::measure::{CellRunLength, measure};
use super::search_progress::SearchProgress;
use super::search_tuning::SearchTuning;
use crate::driver::StudyDriver;
use crate::event::StudyEvent;
use crate::figures::cell::CellRecord;
use crate::figures::curve::Curve;
use crate::figures::saturation_result::Saturation;
use crate::figures::search_rules::Ended;
use crate::run_hook::RunPurpose;
use iosonde_result::run::IoFailure;
use iosonde_result::run_error::RunError;

const TUNING: SearchTuning = SearchTuning::DEFAULT;

/// Finds the depth at which a workload saturates. An interrupted search resumes from its log, which
/// continues; a new search has an empty one.
///
/// # Errors
/// If nothing could be measured. An I/O error only ends the search: see [`Saturation::failure`].
pub(crate) fn resume_search(
    driver: &mut StudyDriver<'_>,
    query: &KneeQuery<'_>,
    log: &mut CurveLog,
) -> Result<Saturation, RunError> {
    let SearchProgress {
        mut records,
        spent_ns,
    } = log.so_far.clone();
    records.sort_by_key(|record| (record.jobs, record.iodepth));
    let mut search = KneeSearch {
        driver,
        query,
        log,
        records,
        spent_ns,
        stopped: None,
        failure: None,
    };
    search.run_search()?;
    let interrupted = search.driver.is_interrupted();
    let nothing = RunError::without_figures(interrupted);
    search.conclude().ok_or(nothing)
}

/// A search that runs.
pub(super) struct KneeSearch<'a, 'd> {
    driver: &'a mut StudyDriver<'d>,
    pub(super) query: &'a KneeQuery<'a>,
    log: &'a mut CurveLog,
    pub(super) records: Vec<CellRecord>,
    pub(super) spent_ns: u64,
    /// Reason why the search may not measure any more.
    pub(super) stopped: Option<Ended>,
    pub(super) failure: Option<IoFailure>,
}

impl KneeSearch<'_, '_> {
    fn run_search(&mut self) -> Result<(), RunError> {
        let Some(mut jobs) = self.query.jobs.first().copied() else {
            return Ok(());
        };
        self.climb(jobs)?;
        let most = self.jobs_that_help(jobs)?;
        if most != jobs {
            jobs = most;
            self.climb(jobs)?;
        }
        self.bracket(jobs)?;
        self.sharpen(jobs, TUNING.knee_budget_share)?;
        self.bracket(jobs)?;
        if self.query.rules.between {
            self.between(jobs)?;
        }
        self.sharpen(jobs, 0.0)
    }

    // --- measuring ---

    fn left_ns(&self) -> f64 {
        TUNING.planned_budget_share * self.query.rules.budget_ns as f64 - self.spent_ns as f64
    }

    /// Whether runs may be as long as those of a grid.
    fn is_long(&self) -> bool {
        self.query.most_cell_ns.is_some() && self.query.rules.budget_ns >= TUNING.long_budget_ns
    }

    pub(super) fn record(&self, jobs: u32, iodepth: u32) -> Option<&CellRecord> {
        let same = |record: &&CellRecord| record.jobs == jobs && record.iodepth == iodepth;
        self.records.iter().find(same)
    }

    /// Predicts the latency by Little's law from the best rate so far.
    fn latency_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let best = self
            .records
            .iter()
            .map(CellRecord::rate)
            .fold(0.0, f64::max);
        if best > 0.0 {
            f64::from(jobs) * f64::from(iodepth) * 1e9 / best
        } else {
            TUNING.unknown_latency_ns
        }
    }

    fn ramp_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let times = if self.is_long() {
            TUNING.ramp_turnovers
        } else {
            TUNING.short_ramp_turnovers
        };
        let turnover_ns = times * self.latency_ns(jobs, iodepth);
        let least_ns = (self.query.rules.ramp_ns as f64).min(TUNING.ramp_ns_max);
        let ramp_ns = turnover_ns.clamp(least_ns, TUNING.ramp_ns_max);
        (ramp_ns / TUNING.sample_ns).ceil() * TUNING.sample_ns
    }

    /// Longest affordable measured time of a cell. The cell needs at least `look_ns`.
    fn affordable_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let drain_ns = TUNING.drain_latencies * self.latency_ns(jobs, iodepth);
        let left_ns = self.left_ns() - self.ramp_ns(jobs, iodepth) - drain_ns;
        left_ns.min(self.room_ns(jobs, iodepth))
    }

    /// Measured time still allowed for a cell, regardless of the budget.
    fn room_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let Some(most_ns) = self.query.most_cell_ns else {
            return f64::INFINITY;
        };
        let known_ns = self
            .record(jobs, iodepth)
            .map_or(0, CellRecord::measured_ns);
        let fewest_ns = TUNING.cell_looks_min * self.query.rules.look_ns as f64;
        fewest_ns.max(most_ns as f64) - known_ns as f64
    }

    /// Whether a cell may be measured for `affordable_ns`. Stops the search that is out of time.
    fn may_measure(&mut self, jobs: u32, iodepth: u32, affordable_ns: f64) -> bool {
        let look_ns = self.query.rules.look_ns as f64;
        // The first cell is measured even beyond the budget.
        let possible = self.records.is_empty() || affordable_ns >= look_ns;
        // A cell that has reached its own limit does not end the search: others may have time.
        if !possible && self.stopped.is_none() && self.room_ns(jobs, iodepth) >= look_ns {
            self.stopped = Some(Ended::OutOfTime);
        }
        possible && self.stopped.is_none()
    }

    /// Measures a cell for `least_ns` to `most_ns`. False: out of time, or the search is stopped.
    fn measure(
        &mut self,
        jobs: u32,
        iodepth: u32,
        least_ns: f64,
        most_ns: f64,
        enough: f64,
    ) -> Result<bool, RunError> {
        let least_ramp_ns = self.ramp_ns(jobs, iodepth);
        let affordable_ns = self.affordable_ns(jobs, iodepth);
        let share = if self.is_long() {
            TUNING.long_ramp_share
        } else {
            0.0
        };
        let long_ns = (share * most_ns.min(affordable_ns)).min(TUNING.ramp_ns_max);
        let ramp_ns = least_ramp_ns.max((long_ns / TUNING.sample_ns).floor() * TUNING.sample_ns);
        let affordable_ns = affordable_ns + least_ramp_ns - ramp_ns;
        if !self.may_measure(jobs, iodepth, affordable_ns) {
            return Ok(false);
        }
        let look_ns = self.query.rules.look_ns as f64;
        let most_ns = most_ns.min(affordable_ns).max(look_ns);
        let most_ns = (most_ns / TUNING.sample_ns).floor().max(1.0) * TUNING.sample_ns;
        let effort = CellRunLength {
            ramp_ns: ramp_ns as u64,
            least_ns: least_ns.min(most_ns) as u64,
            most_ns: most_ns as u64,
            enough,
            continues_region: self.query.continues_region,
        };
        let found = self
            .records
            .iter()
            .position(|r| r.jobs == jobs && r.iodepth == iodepth);
        let before = found.map(|index| self.records.swap_remove(index));
        let mut record = match &before {
            Some(known) => known.clone(),
            None => CellRecord::new(jobs, iodepth),
        };
        let spent = measure(
            self.driver,
            self.query.job,
            &mut record,
            (effort, RunPurpose::SearchCell),
            self.log,
        )?;
        self.driver.emit(&StudyEvent::CellMeasured(&record.cell()));
        self.spent_ns += spent.elapsed_ns;
        if spent.failure.is_some() {
            // The device may have stalled before it failed: restore the cell's old record.
            self.records.extend(before);
        } else if record.found.ios > 0 {
            self.log.record(self.driver, &record, self.spent_ns);
            self.records.push(record);
        }
        self.records
            .sort_by_key(|record| (record.jobs, record.iodepth));
        if let Some(failure) = spent.failure {
            self.log.failure = Some(failure.clone());
            self.failure = Some(failure);
            self.stopped = Some(Ended::Failed);
        } else if self.driver.is_interrupted() {
            self.stopped = Some(Ended::Interrupted);
        }
        Ok(self.stopped.is_none())
    }

    /// Measures a cell briefly if it is new. Returns whether the search may measure more.
    fn measure_briefly(&mut self, jobs: u32, iodepth: u32) -> Result<bool, RunError> {
        if self.record(jobs, iodepth).is_some() {
            return Ok(self.stopped.is_none());
        }
        let rules = &self.query.rules;
        let look_ns = rules.look_ns as f64;
        let most_ns = look_ns.max(rules.budget_ns as f64 * TUNING.look_budget_share);
        let may_go_on =
            self.measure(jobs, iodepth, look_ns, most_ns, TUNING.look_relative_error)?;
        let disagrees = |record: &CellRecord| record.unexplained_share() > 0.0;
        // Little's law shows lost time that is in no latency: check this in a second run.
        if may_go_on && self.record(jobs, iodepth).is_some_and(disagrees) {
            self.measure(jobs, iodepth, look_ns, most_ns, TUNING.look_relative_error)?;
        }
        Ok(self.stopped.is_none())
    }

    // --- known curve ---

    pub(super) fn known(&self, jobs: u32) -> KnownCurve {
        let of_jobs = self.records.iter().filter(|record| record.jobs == jobs);
        KnownCurve::from_records(&of_jobs.collect::<Vec<_>>())
    }

    pub(super) fn maximum(&self, jobs: u32) -> f64 {
        self.known(jobs).top.map_or(0.0, |top| top.rate)
    }

    /// Returns the rate from which a depth counts as one that reaches the maximum.
    fn rate_to_reach(&self, jobs: u32) -> f64 {
        self.maximum(jobs) * (1.0 - self.query.rules.tolerance)
    }

    // --- climb ---

    /// Raises the depth until the rate stops rising, then measures the deepest cell if cheap.
    fn climb(&mut self, jobs: u32) -> Result<(), RunError> {
        let depths = self.query.depths;
        let (mut index, mut flat, mut last) = (0, 0, None);
        while let Some(&iodepth) = depths.get(index) {
            if !self.measure_briefly(jobs, iodepth)? {
                return Ok(());
            }
            let Some(record) = self.record(jobs, iodepth) else {
                return Ok(());
            };
            let (rate, error) = (record.rate(), record.error());
            let mut stride = 1;
            if let Some((before, rate_before, error_before)) = last {
                let gain = rate / rate_before;
                flat = if gain < TUNING.rise_ratio {
                    flat + 1
                } else {
                    0
                };
                let sure = error.max(error_before) <= TUNING.negligible_difference;
                if flat == 2 || (flat == 1 && sure) {
                    break;
                }
                if gain >= TUNING.linear_growth_share * f64::from(iodepth) / f64::from(before) {
                    stride = 2;
                }
            }
            last = Some((iodepth, rate, error));
            if index + 1 == depths.len() {
                return Ok(());
            }
            index = (index + stride).min(depths.len() - 1);
        }
        self.measure_deepest(jobs)
    }

    /// Measures the deepest cell if it is cheap: a rate constant over two steps may rise later.
    fn measure_deepest(&mut self, jobs: u32) -> Result<(), RunError> {
        let Some(&deepest) = self.query.depths.last() else {
            return Ok(());
        };
        let cost_ns = self.ramp_ns(jobs, deepest)
            + self.latency_ns(jobs, deepest)
            + self.query.rules.look_ns as f64;
        if cost_ns <= TUNING.deepest_budget_share * self.query.rules.budget_ns as f64 {
            self.measure_briefly(jobs, deepest)?;
        }
        Ok(())
    }

    /// Returns the most jobs that gain over fewer, at the depth where `first` jobs peak.
    fn jobs_that_help(&mut self, first: u32) -> Result<u32, RunError> {
        let (mut best, mut rate) = (first, self.maximum(first));
        let Some((_, iodepth)) = self.known(first).reaching(self.rate_to_reach(first)) else {
            return Ok(first);
        };
        for &jobs in self.query.jobs.iter().filter(|jobs| **jobs > first) {
            if !self.measure_briefly(jobs, iodepth)? {
                break;
            }
            let found = self.record(jobs, iodepth).map_or(0.0, CellRecord::rate);
            if found < rate * TUNING.jobs_rise_ratio {
                break;
            }
            (best, rate) = (jobs, found);
        }
        Ok(best)
    }

    // --- the knee ---

    /// Bisects the range of given depths that contains the knee, until none is left inside.
    fn bracket(&mut self, jobs: u32) -> Result<(), RunError> {
        while let Some((Some(below), at)) = self.known(jobs).reaching(self.rate_to_reach(jobs)) {
            let depths = self.query.depths;
            let inside: Vec<u32> = depths
                .iter()
                .copied()
                .filter(|depth| (below + 1..at).contains(depth))
                .collect();
            let Some(&middle) = inside.get(inside.len() / 2) else {
                break;
            };
            if !self.measure_briefly(jobs, middle)? {
                break;
            }
        }
        Ok(())
    }

    /// Tries depths between the given ones, where the model predicts the knee.
    fn between(&mut self, jobs: u32) -> Result<(), RunError> {
        while let Some((Some(below), at)) = self.known(jobs).reaching(self.rate_to_reach(jobs)) {
            if at - below < 2 || f64::from(at) <= TUNING.depth_ratio_max * f64::from(below) {
                break;
            }
            let low = f64::from(below) * 1.2;
            let high = (f64::from(at) / 1.2).max(low);
            let rate_to_reach = self.rate_to_reach(jobs);
            let curve = Curve::fit(&self.known(jobs).points);
            let likely = (below + 1..at).find(|depth| {
                curve.is_some_and(|curve| curve.at(f64::from(*depth)) >= rate_to_reach)
            });
            let wanted = likely.map_or((low * high).sqrt(), f64::from);
            let iodepth = (wanted.clamp(low, high).round() as u32).clamp(below + 1, at - 1);
            if self.record(jobs, iodepth).is_some() || !self.measure_briefly(jobs, iodepth)? {
                break;
            }
        }
        Ok(())
    }

    // --- precision ---

    /// Measures the least certain cells until they are precise enough or only `reserve` is left.
    fn sharpen(&mut self, jobs: u32, reserve: f64) -> Result<(), RunError> {
        while let Some(wanted) = self.least_sure(jobs, &|_| true) {
            // Too little time to drain a deep queue: measure a shallower cell of the plateau.
            let look_ns = self.query.rules.look_ns as f64;
            let is_affordable = |iodepth| self.affordable_ns(jobs, iodepth) >= look_ns;
            let instead = || self.least_sure(jobs, &is_affordable);
            // In a short search, a result from the time left is more likely to be chance.
            let (iodepth, least_ns, enough) = match !self.is_long() || is_affordable(wanted.0) {
                true => wanted,
                false => instead().unwrap_or(wanted),
            };
            let kept_ns = reserve * self.query.rules.budget_ns as f64;
            let free_ns = self.left_ns() - kept_ns;
            if free_ns < look_ns + self.ramp_ns(jobs, iodepth) && reserve > 0.0 {
                break;
            }
            let needed_ns = self.record(jobs, iodepth).map_or(look_ns, |record| {
                let times = (record.error() / enough).powi(2) - 1.0;
                record.found.measured_ns as f64 * times.max(0.0)
            });
            // Time is spent in parts, as each may change which cell is least certain.
            let overhead_ns = self.ramp_ns(jobs, iodepth) + self.latency_ns(jobs, iodepth);
            let worth_ns = (TUNING.run_ramps * self.ramp_ns(jobs, iodepth)).max(look_ns);
            let known_ns = self
                .record(jobs, iodepth)
                .map_or(0, CellRecord::measured_ns) as f64;
            let grown_ns = (TUNING.run_growth * known_ns).min(free_ns / 4.0);
            let least_ns = match self.is_long() {
                true => least_ns.max(worth_ns).max(grown_ns),
                false => least_ns.max(look_ns),
            };
            let most_ns = needed_ns.max(least_ns).max(overhead_ns);
            // A remainder too short to be halved is spent in one run.
            let half_ns = free_ns / 2.0;
            let is_rest = self.is_long() && half_ns < least_ns;
            let part_ns = if is_rest { free_ns } else { half_ns };
            let most_ns = most_ns.min(part_ns).max(look_ns);
            if !self.measure(jobs, iodepth, least_ns, most_ns, enough)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the cell whose uncertainty matters most among those that `may` allows, with the
    /// shortest time to measure it and the error to reach.
    fn least_sure(&self, jobs: u32, may: &dyn Fn(u32) -> bool) -> Option<(u32, f64, f64)> {
        let rules = &self.query.rules;
        let known = self.known(jobs);
        let top = known.top.as_ref()?;
        let of_jobs: Vec<&CellRecord> = self.records.iter().filter(|r| r.jobs == jobs).collect();
        let members = &of_jobs[top.first..top.end];
        let rival = of_jobs
            .iter()
            .filter(|record| record.upper() > top.rate * (1.0 + TUNING.negligible_difference))
            .filter(|record| record.error() > rules.precision && may(record.iodepth))
            .max_by(|a, b| a.upper().total_cmp(&b.upper()));
        if let Some(rival) = rival {
            let enough = (rival.error() / 2.0).max(rules.precision);
            return Some((rival.iodepth, 0.0, enough));
        }
        let measured_ns: u64 = members.iter().map(|member| member.found.measured_ns).sum();
        let missing_ns = (rules.least_ns as f64 - measured_ns as f64).max(0.0);
        let possible = members.iter().filter(|member| may(member.iodepth));
        let cheapest = possible.min_by_key(|member| member.iodepth);
        if let Some(cheapest) = cheapest.filter(|_| top.error > rules.precision || missing_ns > 0.0)
        {
            // The other cells of the plateau contribute to the precision.
            let enough = rules.precision * (cheapest.error() / top.error).clamp(1.0, 4.0);
            return Some((cheapest.iodepth, missing_ns, enough));
        }
        let rate_to_reach = self.rate_to_reach(jobs);
        let undecided = of_jobs.iter().filter(|record| {
            let decided = record.lower() > rate_to_reach || record.upper() < rate_to_reach;
            !decided && record.error() > rules.precision && may(record.iodepth)
        });
        let shallowest = undecided.min_by_key(|record| record.iodepth)?;
        Some((
            shallowest.iodepth,
            0.0,
            (shallowest.error() / 2.0).max(rules.precision),
        ))
    }
}
