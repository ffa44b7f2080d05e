//! Which cell next, and when it is enough.

use super::cell::Record;
use super::curve::{Curve, Dot, Step, disagreement, steps, top};
use super::measure::{Effort, measure};
use super::outcome::{Ended, Point, Saturation};
use super::series::SAMPLE_S;
use super::{Question, Watcher};
use crate::probe::Estimate;
use iosonde_result::run::IoFailure;
use iosonde_result::session::{RunError, Session};
use serde::{Deserialize, Serialize};

/// A first look ends at this error.
const LOOK_ERROR: f64 = 0.02;
/// The share of the budget that one first look takes at most.
const LOOK_SHARE: f64 = 0.04;
/// A step that gains less does not rise.
const RISE: f64 = 1.02;
/// A step that gains this share of what the depth gained is linear.
const LINEAR: f64 = 0.85;
/// More jobs must gain this.
const JOBS_RISE: f64 = 1.03;
/// A rate that lacks less of the maximum is not worth more depth.
const NEARLY: f64 = 0.01;
/// The share of the budget that the deepest cell may cost only to be looked at.
const DEEPEST_SHARE: f64 = 0.15;
/// Samples of so much time do not agree by luck.
const MANY_SAMPLES_NS: u64 = 2_000_000_000;
/// What is kept back for finding the knee while the maximum is made sure.
const RESERVE: f64 = 0.1;
/// Depths are tried between two that differ by more than this.
const FINE: f64 = 1.5;
/// The share of the budget that is given out: no run ends exactly when it should.
const KEPT: f64 = 0.98;
/// The last I/Os of a run take up to this many times the mean latency.
const DRAIN: f64 = 2.0;
/// A cell's ramp and its measured time are whole samples. Throttles let I/O through in lumps, the kernel's ten times a second:
/// what is cut between two of them has a lump's time and not its I/Os.
const SAMPLE_NS: f64 = SAMPLE_S * 1e9;
/// I/Os that are all begun at once come back in waves: so many times the queue turns over before they are spread evenly.
const RAMP: f64 = 4.0;
/// The same for a search that has no time for that.
const SHORT_RAMP: f64 = 2.0;
/// A search of so much time has enough for long runs.
const LONG_NS: u64 = 30_000_000_000;
/// A long run's ramp is at least this share of it: queues of members that get a little more than others fill slowly.
const LONG_RAMP: f64 = 0.05;
/// A run is this many times as long as its ramp: what is left of waves then counts for little.
const WORTH: f64 = 3.0;
/// A run is at least this share of what was measured of its cell before, as far as there is time: each has a beginning that is not like the rest, as a
/// throttle lets through more to who was idle, and many short ones would be made of beginnings.
const GROWTH: f64 = 1.0;
/// A cell may be looked at so often, however short those of a grid are.
const FEWEST_LOOKS: f64 = 4.0;
/// Longest ramp.
const MOST_RAMP_NS: f64 = 3e9;
/// Latency of an I/O before anything is known.
const UNKNOWN_LATENCY_NS: f64 = 10e6;

/// What a search that was ended early has found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SoFar {
    /// Of each cell.
    pub records: Vec<Record>,
    /// Time of all runs.
    pub spent_ns: u64,
}

/// Finds where a workload saturates.
///
/// # Errors
/// When nothing could be measured at all. An I/O error ends the search with what is known; see [`Saturation::failure`].
pub fn find_knee(
    session: &mut dyn Session,
    question: &Question<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Saturation, RunError> {
    go_on(session, question, SoFar::default(), watcher)
}

/// The same from where an earlier search was ended.
///
/// # Errors
/// As [`find_knee`].
pub fn go_on(
    session: &mut dyn Session,
    question: &Question<'_>,
    mut so_far: SoFar,
    watcher: &mut dyn Watcher,
) -> Result<Saturation, RunError> {
    so_far
        .records
        .sort_by_key(|record| (record.jobs, record.iodepth));
    let mut search = Search {
        session,
        question,
        watcher,
        records: so_far.records,
        spent_ns: so_far.spent_ns,
        stopped: None,
        failure: None,
    };
    search.go()?;
    let interrupted = search.watcher.is_interrupted();
    let nothing = RunError::without_figures(interrupted);
    search.conclude().ok_or(nothing)
}

struct Search<'a> {
    session: &'a mut dyn Session,
    question: &'a Question<'a>,
    watcher: &'a mut dyn Watcher,
    records: Vec<Record>,
    spent_ns: u64,
    /// Why nothing more is to be measured.
    stopped: Option<Ended>,
    failure: Option<IoFailure>,
}

/// What is known of one number of jobs.
struct Known {
    dots: Vec<Dot>,
    steps: Vec<Step>,
    top: Option<Step>,
}

impl Known {
    /// Depth of the first dot whose step reaches a rate, and of the dot before it.
    fn reaching(&self, rate: f64) -> Option<(Option<u32>, u32)> {
        let top = self.top.iter();
        let below = |step: &&Step| top.clone().all(|top| step.end <= top.first);
        let mut steps = self.steps.iter().take_while(below).chain(top.clone());
        let step = steps.find(|step| step.rate >= rate)?;
        let before = step.first.checked_sub(1);
        Some((
            before.map(|index| self.dots[index].iodepth),
            self.dots[step.first].iodepth,
        ))
    }
}

impl Search<'_> {
    fn go(&mut self) -> Result<(), RunError> {
        let Some(mut jobs) = self.question.jobs.first().copied() else {
            return Ok(());
        };
        self.climb(jobs)?;
        let most = self.jobs_that_help(jobs)?;
        if most != jobs {
            jobs = most;
            self.climb(jobs)?;
        }
        self.bracket(jobs)?;
        self.sharpen(jobs, RESERVE)?;
        self.bracket(jobs)?;
        if self.question.rules.between {
            self.between(jobs)?;
        }
        self.sharpen(jobs, 0.0)
    }

    // --- measuring ---

    fn left_ns(&self) -> f64 {
        KEPT * self.question.rules.budget_ns as f64 - self.spent_ns as f64
    }

    /// Whether runs may be as long as those of a grid.
    fn is_long(&self) -> bool {
        self.question.most_cell_ns.is_some() && self.question.rules.budget_ns >= LONG_NS
    }

    fn record(&self, jobs: u32, iodepth: u32) -> Option<&Record> {
        let same = |record: &&Record| record.jobs == jobs && record.iodepth == iodepth;
        self.records.iter().find(same)
    }

    /// By Little's law, with the best rate so far.
    fn latency_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let best = self.records.iter().map(Record::rate).fold(0.0, f64::max);
        if best > 0.0 {
            f64::from(jobs) * f64::from(iodepth) * 1e9 / best
        } else {
            UNKNOWN_LATENCY_NS
        }
    }

    fn ramp_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let times = if self.is_long() { RAMP } else { SHORT_RAMP };
        let turnover_ns = times * self.latency_ns(jobs, iodepth);
        let least_ns = (self.question.rules.ramp_ns as f64).min(MOST_RAMP_NS);
        let ramp_ns = turnover_ns.clamp(least_ns, MOST_RAMP_NS);
        (ramp_ns / SAMPLE_NS).ceil() * SAMPLE_NS
    }

    /// The longest that a cell can be measured; less than a look where it cannot.
    fn affordable_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let drain_ns = DRAIN * self.latency_ns(jobs, iodepth);
        let left_ns = self.left_ns() - self.ramp_ns(jobs, iodepth) - drain_ns;
        left_ns.min(self.room_ns(jobs, iodepth))
    }

    /// What a cell may still be measured, whatever time there is.
    fn room_ns(&self, jobs: u32, iodepth: u32) -> f64 {
        let Some(most_ns) = self.question.most_cell_ns else {
            return f64::INFINITY;
        };
        let known_ns = self.record(jobs, iodepth).map_or(0, Record::measured_ns);
        let fewest_ns = FEWEST_LOOKS * self.question.rules.look_ns as f64;
        fewest_ns.max(most_ns as f64) - known_ns as f64
    }

    /// Measures a cell for `least_ns` to `most_ns`, as far as there is time; whether there was.
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
        let share = if self.is_long() { LONG_RAMP } else { 0.0 };
        let long_ns = (share * most_ns.min(affordable_ns)).min(MOST_RAMP_NS);
        let ramp_ns = least_ramp_ns.max((long_ns / SAMPLE_NS).floor() * SAMPLE_NS);
        let affordable_ns = affordable_ns + least_ramp_ns - ramp_ns;
        let look_ns = self.question.rules.look_ns as f64;
        // The first cell is measured whatever it takes.
        let possible = self.records.is_empty() || affordable_ns >= look_ns;
        // There may be time for others, where a cell has had what it may.
        if !possible && self.stopped.is_none() && self.room_ns(jobs, iodepth) >= look_ns {
            self.stopped = Some(Ended::OutOfTime);
        }
        if !possible || self.stopped.is_some() {
            return Ok(false);
        }
        let most_ns = most_ns.min(affordable_ns).max(look_ns);
        let most_ns = (most_ns / SAMPLE_NS).floor().max(1.0) * SAMPLE_NS;
        let effort = Effort {
            ramp_ns: ramp_ns as u64,
            least_ns: least_ns.min(most_ns) as u64,
            most_ns: most_ns as u64,
            enough,
            goes_on: self.question.goes_on,
        };
        let found = self
            .records
            .iter()
            .position(|r| r.jobs == jobs && r.iodepth == iodepth);
        let before = found.map(|index| self.records.swap_remove(index));
        let mut record = match &before {
            Some(known) => known.clone(),
            None => Record::new(jobs, iodepth),
        };
        let spent = measure(
            self.session,
            self.question.job,
            &mut record,
            effort,
            self.watcher,
        )?;
        self.spent_ns += spent.elapsed_ns;
        if spent.failure.is_some() {
            // A device that is about to fail may have stood still before: what is known of the cell stays as it was.
            self.records.extend(before);
        } else if record.found.ios > 0 {
            self.watcher.record(&record, self.spent_ns);
            self.records.push(record);
        }
        self.records
            .sort_by_key(|record| (record.jobs, record.iodepth));
        if let Some(failure) = spent.failure {
            self.watcher.failed(&failure);
            self.failure = Some(failure);
            self.stopped = Some(Ended::Failed);
        } else if self.watcher.is_interrupted() {
            self.stopped = Some(Ended::Interrupted);
        }
        Ok(self.stopped.is_none())
    }

    /// A first, short look at a cell; whether more can be measured.
    fn look(&mut self, jobs: u32, iodepth: u32) -> Result<bool, RunError> {
        if self.record(jobs, iodepth).is_some() {
            return Ok(self.stopped.is_none());
        }
        let rules = &self.question.rules;
        let look_ns = rules.look_ns as f64;
        let most_ns = look_ns.max(rules.budget_ns as f64 * LOOK_SHARE);
        let is_open = self.measure(jobs, iodepth, look_ns, most_ns, LOOK_ERROR)?;
        let disagrees = |record: &Record| record.unexplained_share() > 0.0;
        // Time was lost that shows in no latency: a second look tells whether it is lost again.
        if is_open && self.record(jobs, iodepth).is_some_and(disagrees) {
            self.measure(jobs, iodepth, look_ns, most_ns, LOOK_ERROR)?;
        }
        Ok(self.stopped.is_none())
    }

    // --- what is known ---

    fn known(&self, jobs: u32) -> Known {
        let of_jobs = self.records.iter().filter(|record| record.jobs == jobs);
        let records: Vec<&Record> = of_jobs.collect();
        let dots: Vec<Dot> = records
            .iter()
            .map(|record| Dot {
                iodepth: record.iodepth,
                rate: record.rate(),
                error: record.error().max(luck(record, &records)),
            })
            .collect();
        let steps = steps(&dots);
        let top = top(&steps);
        Known { dots, steps, top }
    }

    fn maximum(&self, jobs: u32) -> f64 {
        self.known(jobs).top.map_or(0.0, |top| top.rate)
    }

    fn reached(&self, jobs: u32) -> f64 {
        self.maximum(jobs) * (1.0 - self.question.rules.tolerance)
    }

    // --- the way up ---

    /// Doubles the depth until the rate does not rise, and looks at the deepest.
    fn climb(&mut self, jobs: u32) -> Result<(), RunError> {
        let depths = self.question.depths;
        let (mut index, mut flat, mut last) = (0, 0, None);
        while let Some(&iodepth) = depths.get(index) {
            if !self.look(jobs, iodepth)? {
                return Ok(());
            }
            let Some(record) = self.record(jobs, iodepth) else {
                return Ok(());
            };
            let (rate, error) = (record.rate(), record.error());
            let mut stride = 1;
            if let Some((before, rate_before, error_before)) = last {
                let gain = rate / rate_before;
                flat = if gain < RISE { flat + 1 } else { 0 };
                let sure = error.max(error_before) <= NEARLY;
                if flat == 2 || (flat == 1 && sure) {
                    break;
                }
                if gain >= LINEAR * f64::from(iodepth) / f64::from(before) {
                    stride = 2;
                }
            }
            last = Some((iodepth, rate, error));
            if index + 1 == depths.len() {
                return Ok(());
            }
            index = (index + stride).min(depths.len() - 1);
        }
        self.look_at_the_deepest(jobs)
    }

    /// What does not rise over two steps may rise later.
    fn look_at_the_deepest(&mut self, jobs: u32) -> Result<(), RunError> {
        let Some(&deepest) = self.question.depths.last() else {
            return Ok(());
        };
        let cost_ns = self.ramp_ns(jobs, deepest)
            + self.latency_ns(jobs, deepest)
            + self.question.rules.look_ns as f64;
        if cost_ns <= DEEPEST_SHARE * self.question.rules.budget_ns as f64 {
            self.look(jobs, deepest)?;
        }
        Ok(())
    }

    /// The number of jobs that gains over fewer, at the depth where fewer reach their maximum.
    fn jobs_that_help(&mut self, first: u32) -> Result<u32, RunError> {
        let (mut best, mut rate) = (first, self.maximum(first));
        let Some((_, iodepth)) = self.known(first).reaching(self.reached(first)) else {
            return Ok(first);
        };
        for &jobs in self.question.jobs.iter().filter(|jobs| **jobs > first) {
            if !self.look(jobs, iodepth)? {
                break;
            }
            let found = self.record(jobs, iodepth).map_or(0.0, Record::rate);
            if found < rate * JOBS_RISE {
                break;
            }
            (best, rate) = (jobs, found);
        }
        Ok(best)
    }

    // --- the knee ---

    /// Halves the range of given depths in which the knee lies until there is none between.
    fn bracket(&mut self, jobs: u32) -> Result<(), RunError> {
        while let Some((Some(below), at)) = self.known(jobs).reaching(self.reached(jobs)) {
            let depths = self.question.depths;
            let inside: Vec<u32> = depths
                .iter()
                .copied()
                .filter(|depth| (below + 1..at).contains(depth))
                .collect();
            let Some(&middle) = inside.get(inside.len() / 2) else {
                break;
            };
            if !self.look(jobs, middle)? {
                break;
            }
        }
        Ok(())
    }

    /// Tries depths between the given ones, where the model says that the knee is.
    fn between(&mut self, jobs: u32) -> Result<(), RunError> {
        while let Some((Some(below), at)) = self.known(jobs).reaching(self.reached(jobs)) {
            if at - below < 2 || f64::from(at) <= FINE * f64::from(below) {
                break;
            }
            let low = f64::from(below) * 1.2;
            let high = (f64::from(at) / 1.2).max(low);
            let reached = self.reached(jobs);
            let curve = Curve::fit(&self.known(jobs).dots);
            let likely = (below + 1..at)
                .find(|depth| curve.is_some_and(|curve| curve.at(f64::from(*depth)) >= reached));
            let wanted = likely.map_or((low * high).sqrt(), f64::from);
            let iodepth = (wanted.clamp(low, high).round() as u32).clamp(below + 1, at - 1);
            if self.record(jobs, iodepth).is_some() || !self.look(jobs, iodepth)? {
                break;
            }
        }
        Ok(())
    }

    // --- certainty ---

    /// Measures what the answer is least sure of until it is sure enough, or all but a share of the budget is spent.
    fn sharpen(&mut self, jobs: u32, reserve: f64) -> Result<(), RunError> {
        while let Some(wanted) = self.least_sure(jobs, &|_| true) {
            // A shallower cell of the same plateau can still be measured where a deep queue cannot be drained in time.
            let look_ns = self.question.rules.look_ns as f64;
            let is_affordable = |iodepth| self.affordable_ns(jobs, iodepth) >= look_ns;
            let instead = || self.least_sure(jobs, &is_affordable);
            // What a short search would find in the time that is left is more likely luck.
            let (iodepth, least_ns, enough) = match !self.is_long() || is_affordable(wanted.0) {
                true => wanted,
                false => instead().unwrap_or(wanted),
            };
            let kept_ns = reserve * self.question.rules.budget_ns as f64;
            let free_ns = self.left_ns() - kept_ns;
            if free_ns < look_ns + self.ramp_ns(jobs, iodepth) && reserve > 0.0 {
                break;
            }
            let needed_ns = self.record(jobs, iodepth).map_or(look_ns, |record| {
                let times = (record.error() / enough).powi(2) - 1.0;
                record.found.measured_ns as f64 * times.max(0.0)
            });
            // In parts: what one part shows may make another cell the one to measure.
            let overhead_ns = self.ramp_ns(jobs, iodepth) + self.latency_ns(jobs, iodepth);
            let worth_ns = (WORTH * self.ramp_ns(jobs, iodepth)).max(look_ns);
            let known_ns = self.record(jobs, iodepth).map_or(0, Record::measured_ns) as f64;
            let grown_ns = (GROWTH * known_ns).min(free_ns / 4.0);
            let least_ns = match self.is_long() {
                true => least_ns.max(worth_ns).max(grown_ns),
                false => least_ns.max(look_ns),
            };
            let most_ns = needed_ns.max(least_ns).max(overhead_ns);
            // A rest that is too short to be halved is spent at once.
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

    /// Of the cells that may be measured the one whose uncertainty matters most, the time that it needs at least, and the error
    /// to reach.
    fn least_sure(&self, jobs: u32, may: &dyn Fn(u32) -> bool) -> Option<(u32, f64, f64)> {
        let rules = &self.question.rules;
        let known = self.known(jobs);
        let top = known.top.as_ref()?;
        let of_jobs: Vec<&Record> = self.records.iter().filter(|r| r.jobs == jobs).collect();
        let members = &of_jobs[top.first..top.end];
        let rival = of_jobs
            .iter()
            .filter(|record| record.upper() > top.rate * (1.0 + NEARLY))
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
            // The others know something too.
            let enough = rules.precision * (cheapest.error() / top.error).clamp(1.0, 4.0);
            return Some((cheapest.iodepth, missing_ns, enough));
        }
        let reached = self.reached(jobs);
        let undecided = of_jobs.iter().filter(|record| {
            let decided = record.lower() > reached || record.upper() < reached;
            !decided && record.error() > rules.precision && may(record.iodepth)
        });
        let shallowest = undecided.min_by_key(|record| record.iodepth)?;
        Some((
            shallowest.iodepth,
            0.0,
            (shallowest.error() / 2.0).max(rules.precision),
        ))
    }

    // --- the answer ---

    fn conclude(self) -> Option<Saturation> {
        let jobs = self.best_jobs()?;
        let known = self.known(jobs);
        let top = known.top.as_ref()?;
        let deepest = self.question.depths.last().copied();
        let point = |iodepth: u32| {
            let record = self.record(jobs, iodepth)?;
            let cell = record.cell();
            Some(Point {
                iodepth,
                iops: cell.iops.mean,
                latency: cell.latency,
            })
        };
        let (_, knee) = known.reaching(top.rate * (1.0 - self.question.rules.tolerance))?;
        let (_, nearly) = known.reaching(top.rate * (1.0 - NEARLY))?;
        let knee = point(knee)?;
        let cell = self.record(jobs, known.dots[top.first].iodepth)?.cell();
        let block = cell.bytes_per_s.mean / cell.iops.mean.max(f64::MIN_POSITIVE);
        let estimate = |mean: f64| Estimate {
            mean,
            error: Some(top.error * disagreement(&known.dots, top) * mean),
            spread: cell.iops.spread,
        };
        Some(Saturation {
            rules: self.question.rules,
            jobs,
            maximum: estimate(top.rate),
            maximum_bytes_per_s: estimate(top.rate * block),
            plateau: (top.end > top.first + 1).then(|| {
                let depth = |index: usize| known.dots[index].iodepth;
                (depth(top.first), depth(top.end - 1))
            }),
            longer_run: None,
            knee,
            latency_only: (Some(nearly) != deepest).then(|| point(nearly)).flatten(),
            curve: Curve::fit(&known.dots),
            cells: self.records.iter().map(Record::cell).collect(),
            spent_ns: self.spent_ns,
            ended: self.stopped.unwrap_or(Ended::Sure),
            failure: self.failure,
        })
    }

    /// The fewest jobs that reach the maximum.
    fn best_jobs(&self) -> Option<u32> {
        let tried = self.question.jobs.iter().copied();
        let most = tried
            .clone()
            .map(|jobs| self.maximum(jobs))
            .fold(0.0, f64::max);
        let enough = most * (1.0 - self.question.rules.tolerance);
        tried
            .into_iter()
            .find(|jobs| most > 0.0 && self.maximum(*jobs) >= enough)
    }
}

/// The least error that a cell of few samples has: they may agree by luck. It is that of the best known longer cell, for so much
/// less time.
fn luck(record: &Record, others: &[&Record]) -> f64 {
    if record.measured_ns() >= MANY_SAMPLES_NS {
        return 0.0;
    }
    let longer = others
        .iter()
        .filter(|other| other.measured_ns() >= MANY_SAMPLES_NS);
    let scaled = longer.map(|other| {
        let times = other.measured_ns() as f64 / record.measured_ns().max(1) as f64;
        other.error() * times.sqrt()
    });
    scaled.reduce(f64::min).unwrap_or(0.0)
}
