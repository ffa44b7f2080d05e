//! What a search found.

use super::{Cell, Curve, Rules};
use crate::probe::{Estimate, Latency};
use crate::words;
use iosonde_result::run::IoFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a pattern saturates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saturation {
    /// How much was to be done.
    pub rules: Rules,
    /// Every cell measured, by jobs and depth.
    pub cells: Vec<Cell>,
    /// Jobs at once: the fewest that reach the maximum. `knee` and what follows are of this number.
    pub jobs: u32,
    /// The highest rate of any depth, in I/Os per second: where neighbouring depths cannot be told apart, the mean of them.
    pub maximum: Estimate,
    /// The same in bytes per second.
    pub maximum_bytes_per_s: Estimate,
    /// The shallowest and the deepest measured depth that `maximum` is the mean of, where it is that of several. Each of them
    /// may be faster than their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plateau: Option<(u32, u32)>,
    /// A longer measurement at one depth that was faster than all of the search, which then is the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_run: Option<LongerRun>,
    /// The lowest depth that reaches it.
    pub knee: Point,
    /// From here on deeper queues only add latency: the lowest depth past which the rate grows by less than 1 %. `None`
    /// where it still grew at the deepest that was asked for.
    pub latency_only: Option<Point>,
    /// The curve through the cells of this number of jobs, over depth.
    pub curve: Option<Curve>,
    /// Time of all runs together, ramps and the ends of the last I/Os included.
    pub spent_ns: u64,
    /// Why it ended.
    pub ended: Ended,
    /// The I/O error that ended it, if one did.
    pub failure: Option<IoFailure>,
}

/// A depth and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// I/Os per second of all jobs.
    pub iops: f64,
    /// Latency.
    pub latency: Latency,
}

/// A measurement beside a search, at one of its depths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LongerRun {
    /// I/Os in flight.
    pub iodepth: u32,
    /// I/Os per second.
    pub iops: Estimate,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All that was asked is as sure as was asked.
    Sure,
    /// The time was spent.
    OutOfTime,
    /// The user wanted it.
    Interrupted,
    /// An I/O failed.
    Failed,
}

/// No maximum is claimed that is known worse than this share.
const MAXIMUM_KNOWN: f64 = 0.2;
/// Deeper queues only add latency where no measured one can be faster than the maximum by more than this share.
const PLATEAU_GAIN: f64 = 0.1;

/// What the intervals of the cells carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// The maximum: it is known to 20 %, and no cell looked faster.
    pub maximum: bool,
    /// The knee: each shallower cell is surely slower than the maximum.
    pub knee: bool,
    /// Deeper queues only add latency: no deeper cell can be much faster.
    pub plateau: bool,
    /// The rate still rises at the deepest cell, which is surely faster than the one before it.
    pub rises: bool,
}

/// Half the width of an interval in words: `+-0.4 %`, `+-12 %`.
fn within(relative_error: f64) -> String {
    let percent = (relative_error * 100.0).max(0.1);
    if percent < 9.95 {
        format!("+-{percent:.1} %")
    } else {
        format!("+-{percent:.0} %")
    }
}

/// Why the fastest rate that was measured is no known maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Doubt {
    /// It was measured too shortly to have an interval.
    TooShort,
    /// Its own interval is wide: half the width, as a share of it.
    Wide(f64),
    /// Its own interval is narrow, but the search measured this many I/Os per second at most.
    SlowerSearch { error: f64, searched: f64 },
    /// Its own interval is narrow, but depths that may have the same rate were slower by more than that.
    OtherDepths { error: f64 },
}

impl Saturation {
    /// What the intervals of the cells carry.
    pub fn claims(&self) -> Claims {
        let most = self.maximum;
        let error = most.error.unwrap_or(f64::INFINITY);
        let is_known = most.relative_error().is_some_and(|e| e <= MAXIMUM_KNOWN);
        let maximum = is_known && self.rival().is_none();
        let of_jobs = || self.cells.iter().filter(|cell| cell.jobs == self.jobs);
        let is_surely_slower = |cell: &Cell| {
            let own = cell.iops.error;
            own.is_some_and(|own| cell.iops.mean + own.hypot(error) < most.mean)
        };
        let mut shallower = of_jobs().filter(|cell| cell.iodepth < self.knee.iodepth);
        let least = self.latency_only.map(|point| point.iodepth);
        let least = least.map_or(u32::MAX, |least| least.max(self.knee.iodepth));
        let deeper = || of_jobs().filter(|cell| cell.iodepth > least);
        let highest = (most.mean + error) * (1.0 + PLATEAU_GAIN);
        let gains_little = |cell: &Cell| {
            let own = cell.iops.error;
            own.is_some_and(|own| cell.iops.mean + own <= highest)
        };
        let before = of_jobs().filter(|cell| cell.iodepth < self.deepest());
        let rises = before.max_by_key(|cell| cell.iodepth);
        Claims {
            maximum,
            knee: maximum && shallower.all(is_surely_slower),
            plateau: maximum && deeper().next().is_some() && deeper().all(gains_little),
            rises: maximum && self.latency_only.is_none() && rises.is_some_and(is_surely_slower),
        }
    }

    /// The maximum, where the figures carry one.
    pub fn known_maximum(&self) -> Option<Estimate> {
        self.claims().maximum.then_some(self.maximum)
    }

    /// The knee, where the figures carry one.
    pub fn known_knee(&self) -> Option<Point> {
        self.claims().knee.then_some(self.knee)
    }

    /// A cell that looked faster than the maximum, but not for certain.
    pub fn rival(&self) -> Option<&Cell> {
        let most = self.maximum.mean + self.maximum.error.unwrap_or_default();
        let fastest = self.fastest()?;
        (fastest.iops.mean > most * (1.0 + self.rules.tolerance)).then_some(fastest)
    }

    /// The cell with the highest rate, however well it is known.
    fn fastest(&self) -> Option<&Cell> {
        let of_jobs = self.cells.iter().filter(|cell| cell.jobs == self.jobs);
        of_jobs.max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))
    }

    fn deepest(&self) -> u32 {
        let of_jobs = self.cells.iter().filter(|cell| cell.jobs == self.jobs);
        of_jobs.map(|cell| cell.iodepth).max().unwrap_or(1)
    }

    /// Raises the maximum to a rate that was measured, so that no row of a table exceeds it. Its interval holds what it held.
    pub(crate) fn raise_to(&mut self, run: LongerRun) {
        let (most, measured) = (self.maximum, run.iops);
        if measured.mean <= most.mean {
            return;
        }
        let error = most.error.map(|error| error + measured.mean - most.mean);
        let scale = measured.mean / most.mean.max(f64::MIN_POSITIVE);
        let bytes = &mut self.maximum_bytes_per_s;
        bytes.mean *= scale;
        bytes.error = error.map(|error| error / measured.mean * bytes.mean);
        self.maximum = Estimate { error, ..measured };
        (self.plateau, self.longer_run) = (None, Some(run));
    }

    /// The highest rate that was measured, how well it is known, and at which depth.
    fn fastest_measured(&self) -> Option<(Estimate, u32)> {
        let cell = self.fastest().map(|cell| (cell.iops, cell.iodepth));
        let run = self.longer_run.map(|run| (run.iops, run.iodepth));
        let all = cell.into_iter().chain(run);
        all.max_by(|a, b| a.0.mean.total_cmp(&b.0.mean))
    }

    /// Why the figures do not carry a maximum although this is the fastest that was measured.
    fn doubt(&self, fastest: Estimate) -> Doubt {
        let own = match fastest.relative_error() {
            None => return Doubt::TooShort,
            Some(error) if error > MAXIMUM_KNOWN => return Doubt::Wide(error),
            Some(error) => error,
        };
        let searched = self.fastest().map_or(0.0, |cell| cell.iops.mean);
        if searched < fastest.mean * (1.0 - own) {
            return Doubt::SlowerSearch {
                error: own,
                searched,
            };
        }
        if self.rival().is_some() || self.is_plateau_uneven() {
            return Doubt::OtherDepths { error: own };
        }
        // The search knows the rate less well than its few samples agree.
        let error = self.maximum.relative_error();
        error.map_or(Doubt::TooShort, |error| Doubt::Wide(error.max(own)))
    }

    /// Whether depths that the maximum is the mean of differ from it by more than it may be unknown by.
    fn is_plateau_uneven(&self) -> bool {
        let Some((from, to)) = self.plateau else {
            return false;
        };
        let of_plateau =
            |cell: &&Cell| cell.jobs == self.jobs && (from..=to).contains(&cell.iodepth);
        let most = self.maximum.mean;
        let is_apart = |cell: &Cell| (cell.iops.mean - most).abs() > MAXIMUM_KNOWN * most;
        self.cells.iter().filter(of_plateau).any(is_apart)
    }

    fn doubt_in_words(&self, doubt: Doubt, large: bool) -> String {
        match doubt {
            Doubt::TooShort => "measured too shortly to tell how exactly".to_owned(),
            Doubt::Wide(error) if error > 1.0 => "uncertain by more than 100 %".to_owned(),
            Doubt::Wide(error) => format!("known to {} only", within(error)),
            Doubt::SlowerSearch { error, searched } => {
                let searched = self.rate_in_words(searched, large);
                format!("{}, but the search measured {searched}", within(error))
            }
            Doubt::OtherDepths { error } => {
                format!("{}, but other depths disagree", within(error))
            }
        }
    }

    fn rate_in_words(&self, iops: f64, large: bool) -> String {
        if large {
            let block = self.maximum_bytes_per_s.mean / self.maximum.mean.max(f64::MIN_POSITIVE);
            words::bandwidth(iops * block)
        } else {
            format!("{} IOPS", words::iops(iops))
        }
    }

    /// The depths that the maximum is the mean of, where a table shows a higher rate for one of them.
    fn exceeded_plateau(&self, large: bool) -> Option<(u32, u32)> {
        let (rate, most) = (self.fastest()?.iops.mean, self.maximum.mean);
        let is_shown = self.rate_in_words(rate, large) != self.rate_in_words(most, large);
        self.plateau.filter(|_| rate > most && is_shown)
    }

    /// The highest rate with its interval, or why it is no known maximum, and where: `84.2k IOPS`, `(+-0.4 %)`,
    /// `depth 16`.
    pub fn most_in_words(&self, large: bool) -> (String, String, String) {
        let is_known = self.claims().maximum;
        let (rate, iodepth) = match self.fastest_measured() {
            Some(fastest) if !is_known => fastest,
            _ => (self.maximum, self.knee.iodepth),
        };
        let most = self.rate_in_words(rate.mean, large);
        let error = rate.relative_error().filter(|_| is_known);
        let known = match (error, self.exceeded_plateau(large)) {
            (Some(error), Some((from, to))) => {
                format!("({}, the mean of depths {from} to {to})", within(error))
            }
            (Some(error), None) => format!("({})", within(error)),
            (None, _) => format!("({})", self.doubt_in_words(self.doubt(rate), large)),
        };
        let at = match self.jobs {
            1 => format!("depth {iodepth}"),
            jobs => format!("depth {iodepth} in each of {jobs} jobs"),
        };
        (most, known, at)
    }

    /// What it means, in one sentence without a subject; `large` blocks are counted by bandwidth. Nothing is claimed that
    /// the intervals do not carry.
    pub fn sentence(&self, large: bool) -> String {
        let (most, known, at) = self.most_in_words(large);
        let claims = self.claims();
        if !claims.maximum {
            return format!("has no known maximum; the fastest was {at} with {most} {known}");
        }
        if self.latency_only.is_none() {
            return match claims.rises {
                true => format!("still rises at {at}, with {most} {known}"),
                false => {
                    format!("has its most at {at}, with {most} {known}; deeper was not measured")
                }
            };
        }
        let at = match claims.knee {
            true => at,
            false => format!("{at} or a lower one"),
        };
        let beyond = match self.latency_only {
            Some(_) if !claims.plateau => "; whether deeper gives more is not known".to_owned(),
            Some(point) if point.iodepth > self.knee.iodepth => {
                format!("; past {} deeper only adds latency", point.iodepth)
            }
            _ => "; deeper only adds latency".to_owned(),
        };
        // Where one depth of a plateau is faster than their mean, the mean is not called a maximum.
        match self.exceeded_plateau(large) {
            Some(_) => format!("levels off at {most} {known} from {at} on{beyond}"),
            None => format!("reaches its maximum of {most} {known} at {at}{beyond}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(iodepth: u32, mean: f64, error: Option<f64>) -> Cell {
        let estimate = |mean: f64| Estimate {
            mean,
            error: error.map(|share| share * mean),
            spread: None,
        };
        Cell {
            jobs: 1,
            iodepth,
            iops: estimate(mean),
            bytes_per_s: estimate(mean * 4096.0),
            latency: Latency::default(),
            measured_ns: 1_000_000_000,
            warmup: None,
        }
    }

    fn found(cells: Vec<Cell>, knee: usize, maximum: (f64, Option<f64>)) -> Saturation {
        let point = |cell: &Cell| Point {
            iodepth: cell.iodepth,
            iops: cell.iops.mean,
            latency: cell.latency,
        };
        let last = cells.len() - 1;
        let most = cell(1, maximum.0, maximum.1);
        Saturation {
            rules: Rules::THOROUGH,
            jobs: 1,
            maximum: most.iops,
            maximum_bytes_per_s: most.bytes_per_s,
            plateau: None,
            longer_run: None,
            knee: point(&cells[knee]),
            latency_only: (knee < last).then(|| point(&cells[knee])),
            curve: None,
            spent_ns: 1,
            ended: Ended::Sure,
            failure: None,
            cells,
        }
    }

    #[test]
    fn maximum_that_is_well_known_is_claimed_with_its_interval() {
        let cells = vec![
            cell(1, 5e3, Some(0.02)),
            cell(4, 20e3, Some(0.02)),
            cell(8, 20e3, Some(0.02)),
        ];
        let sure = found(cells, 1, (20e3, Some(0.01)));
        assert_eq!(
            sure.sentence(false),
            "reaches its maximum of 20.0k IOPS (+-1.0 %) at depth 4; deeper only adds latency"
        );
    }

    /// Figures of a sweep beside a busy process: pooled with the cell of depth 32 the maximum was 1.92k.
    #[test]
    fn maximum_below_the_cells_of_its_table_is_not_claimed() {
        let cells = vec![
            cell(2, 9.97e3, Some(0.3)),
            cell(8, 18.2e3, None),
            cell(16, 26.4e3, Some(0.86)),
            cell(32, 1.12e3, Some(0.2)),
        ];
        let unsure = found(cells, 0, (1.92e3, Some(1.4)));
        assert_eq!(
            unsure.sentence(false),
            "has no known maximum; the fastest was depth 16 with 26.4k IOPS (known to +-86 % only)"
        );
        assert_eq!((unsure.known_maximum(), unsure.known_knee()), (None, None));
    }

    #[test]
    fn maximum_beside_a_faster_short_look_is_not_claimed() {
        let cells = vec![cell(2, 10e3, Some(0.02)), cell(4, 13e3, None)];
        let unsure = found(cells, 0, (10e3, Some(0.02)));
        assert!(!unsure.claims().maximum);
        let said = unsure.sentence(false);
        assert!(
            said.ends_with("depth 4 with 13.0k IOPS (measured too shortly to tell how exactly)")
        );
    }

    #[test]
    fn knee_above_a_cell_that_may_reach_the_maximum_is_not_claimed() {
        let cells = vec![
            cell(2, 18e3, Some(0.2)),
            cell(4, 20e3, Some(0.02)),
            cell(8, 20e3, Some(0.5)),
        ];
        let unsure = found(cells, 1, (20e3, Some(0.02)));
        assert_eq!(
            unsure.sentence(false),
            "reaches its maximum of 20.0k IOPS (+-2.0 %) at depth 4 or a lower one; whether deeper gives more is not known"
        );
    }

    #[test]
    fn plateau_is_named_by_its_depths_and_claims_no_maximum() {
        let cells = vec![
            cell(8, 18e3, Some(0.02)),
            cell(16, 20e3, Some(0.02)),
            cell(32, 20.4e3, Some(0.02)),
        ];
        let flat = Saturation {
            plateau: Some((16, 32)),
            ..found(cells, 1, (20.2e3, Some(0.015)))
        };
        assert_eq!(
            flat.sentence(false),
            "levels off at 20.2k IOPS (+-1.5 %, the mean of depths 16 to 32) from depth 16 on; deeper only adds latency"
        );
    }

    fn longer(mean: f64, error: f64) -> LongerRun {
        LongerRun {
            iodepth: 64,
            iops: cell(64, mean, Some(error)).iops,
        }
    }

    #[test]
    fn raised_maximum_is_not_below_a_row_and_holds_its_old_interval() {
        let mut found = found(vec![cell(4, 20e3, Some(0.02))], 0, (20e3, Some(0.02)));
        found.plateau = Some((4, 8));
        found.raise_to(longer(21e3, 0.01));
        let most = found.maximum;
        assert_eq!(most.mean, 21e3);
        assert!(
            most.mean - most.error.unwrap() <= 20e3 * 0.98 + 1e-6,
            "{most:?}"
        );
        assert_eq!(found.maximum_bytes_per_s.mean, 21e3 * 4096.0);
        assert_eq!(found.plateau, None, "it is no mean of depths");
    }

    /// A probe named depth 32 with 6.93k as the fastest below a row of depth 64 with 8.08k.
    #[test]
    fn fastest_of_an_unknown_maximum_is_the_longer_run_that_raised_it() {
        let mut found = found(vec![cell(32, 6.93e3, Some(0.3))], 0, (6.93e3, Some(0.5)));
        found.raise_to(longer(8.08e3, 0.12));
        assert_eq!(
            found.sentence(false),
            "has no known maximum; the fastest was depth 64 with 8.08k IOPS (+-12 %, but the search measured 6.93k IOPS)"
        );
    }

    /// Sweeps said "known to +-0.1 % only" of cells whose own interval is no reason for doubt.
    #[test]
    fn doubt_of_a_well_measured_rate_is_its_reason() {
        let cells = vec![cell(8, 13e3, Some(0.001)), cell(16, 9e3, Some(0.3))];
        let disagreeing = Saturation {
            plateau: Some((8, 16)),
            ..found(cells, 0, (13e3, Some(0.31)))
        };
        let ending = "depth 8 with 13.0k IOPS (+-0.1 %, but other depths disagree)";
        let said = disagreeing.sentence(false);
        assert!(said.ends_with(ending), "{said}");
        // Few samples that agree by luck: the search knows the rate as well as its longer cells.
        let lucky = found(vec![cell(8, 13e3, Some(0.001))], 0, (13e3, Some(0.4)));
        let said = lucky.sentence(false);
        assert!(
            said.ends_with("depth 8 with 13.0k IOPS (known to +-40 % only)"),
            "{said}"
        );
    }
}
