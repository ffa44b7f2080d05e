//! Result of a knee search, and the statements that its intervals support.

use super::cell::CurveCell;
use super::curve::Curve;
use super::estimate::{LatencySummary, RateEstimate};
use super::search_rules::{Ended, SearchRules};
use crate::words;
use iosonde_result::run::IoFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Saturation of a pattern: its maximum, its knee and the cells behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saturation {
    /// Budget and stopping rules of the search.
    pub rules: SearchRules,
    /// All measured cells, ordered by jobs and depth.
    pub cells: Vec<CurveCell>,
    /// Fewest jobs that reach the maximum. `knee` and the fields after it are for this number.
    pub jobs: u32,
    /// Highest rate at any depth, in I/Os per second: the mean of depths that do not differ.
    pub maximum: RateEstimate,
    /// Maximum in bytes per second.
    pub maximum_bytes_per_s: RateEstimate,
    /// Shallowest and deepest measured depth averaged in `maximum`. `None` for a single depth. A
    /// single depth may be faster than the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plateau: Option<(u32, u32)>,
    /// Longer measurement at one depth that was faster than the search, and so is the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_run: Option<LongerRun>,
    /// Lowest depth that reaches the maximum.
    pub knee: DepthPoint,
    /// Lowest depth beyond which the rate grows by less than 1 %, so that deeper queues only add
    /// latency. `None` if the rate still grew at the deepest depth of the query.
    pub latency_only: Option<DepthPoint>,
    /// Model curve over depth through the cells with `jobs` jobs.
    pub curve: Option<Curve>,
    /// Time of all runs together, including ramps and the drain of the last I/Os.
    pub spent_ns: u64,
    /// Reason for the end of the search.
    pub ended: Ended,
    /// I/O error that ended the search, if any.
    pub failure: Option<IoFailure>,
}

/// Rate and latency at one depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthPoint {
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// I/Os per second of all jobs.
    pub iops: f64,
    /// Latency of one I/O.
    pub latency: LatencySummary,
}

/// Measurement outside the search, at one of its depths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LongerRun {
    /// I/Os in flight.
    pub iodepth: u32,
    /// I/Os per second.
    pub iops: RateEstimate,
}

/// Largest relative error of a known maximum.
const MAXIMUM_KNOWN: f64 = 0.2;
/// Largest possible relative gain of a deeper cell for "deeper only adds latency".
const PLATEAU_GAIN: f64 = 0.1;

/// Statements supported by the intervals of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// The highest rate is a known maximum: its interval is at most +-20 %, no other cell appeared
    /// faster, and the search did not end before the depths that may be faster.
    pub maximum: bool,
    /// Each cell shallower than the knee is significantly slower than the maximum.
    pub knee: bool,
    /// Deeper queues only add latency: the intervals of deeper cells exclude a large gain.
    pub plateau: bool,
    /// The deepest cell is significantly faster than the one before it.
    pub rises: bool,
}

/// Formats a relative half-width after its sign: `+-0.4 %`, `±12 %`.
fn within(relative_error: f64, plus_minus: &str) -> String {
    format!("{plus_minus}{}", percent(relative_error))
}

/// Formats a relative half-width without its sign.
fn percent(relative_error: f64) -> String {
    let percent = (relative_error * 100.0).max(0.1);
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Unit of a rate in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateUnit {
    /// I/Os per second.
    Iops,
    /// Bytes per second, in the unit that suits the figure.
    Bandwidth,
}

/// Reason why the fastest measured rate is not a known maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MaximumDoubt {
    /// The measurement was too short to have an interval.
    TooShort,
    /// The interval of the rate is wide: its relative half-width.
    Wide(f64),
    /// The rate has a narrow interval, but the search measured at most `searched` I/Os per second.
    SlowerSearch { error: f64, searched: f64 },
    /// The rate has a narrow interval, but the search ended before it measured deeper queues.
    NotDeeper { error: f64 },
    /// The rate has a narrow interval, but other depths of the plateau disagree with it.
    OtherDepths { error: f64 },
}

impl Saturation {
    /// Returns the statements that the intervals of the cells support.
    pub fn claims(&self) -> Claims {
        let most = self.maximum;
        let error = most.error.unwrap_or(f64::INFINITY);
        let is_known = most.relative_error().is_some_and(|e| e <= MAXIMUM_KNOWN);
        let maximum = is_known && self.rival().is_none() && !self.is_open_ended();
        let of_jobs = || self.cells.iter().filter(|cell| cell.jobs == self.jobs);
        let is_surely_slower = |cell: &CurveCell| {
            let own = cell.iops.error;
            own.is_some_and(|own| cell.iops.mean + own.hypot(error) < most.mean)
        };
        let mut shallower = of_jobs().filter(|cell| cell.iodepth < self.knee.iodepth);
        let least = self.latency_only.map(|point| point.iodepth);
        let least = least.map_or(u32::MAX, |least| least.max(self.knee.iodepth));
        let deeper = || of_jobs().filter(|cell| cell.iodepth > least);
        let highest = (most.mean + error) * (1.0 + PLATEAU_GAIN);
        let gains_little = |cell: &CurveCell| {
            let own = cell.iops.error;
            own.is_some_and(|own| cell.iops.mean + own <= highest)
        };
        // A longer run may have raised the maximum at a lower depth.
        let is_deepest = self.maximum_depths().1 == self.deepest();
        let before = of_jobs().filter(|cell| cell.iodepth < self.deepest());
        let before = before.max_by_key(|cell| cell.iodepth);
        let rises = is_deepest && before.is_some_and(is_surely_slower);
        Claims {
            maximum,
            knee: maximum && shallower.all(is_surely_slower),
            plateau: maximum && deeper().next().is_some() && deeper().all(gains_little),
            rises: maximum && self.latency_only.is_none() && rises,
        }
    }

    /// Returns the maximum if the intervals support one.
    pub fn known_maximum(&self) -> Option<RateEstimate> {
        self.claims().maximum.then_some(self.maximum)
    }

    /// Returns the reason why no maximum is known, without a subject and without the fastest rate:
    /// `uncertain: +-82 %`, `deeper was not measured`. `None` if a maximum is known. `large`
    /// selects bandwidth instead of IOPS. `plus_minus` is the sign before half an interval.
    #[must_use]
    pub fn maximum_doubt(&self, large: bool, plus_minus: &str) -> Option<String> {
        if self.claims().maximum {
            return None;
        }
        let fastest = self.fastest_measured();
        let rate = fastest.map_or(self.maximum, |(rate, _)| rate);
        let unit = match large {
            true => RateUnit::Bandwidth,
            false => RateUnit::Iops,
        };
        let doubt = self.doubt(rate);
        // The interval is that of a rate, which this text does not name.
        Some(match doubt {
            MaximumDoubt::Wide(error) if error <= 1.0 => {
                format!("uncertain: {plus_minus}{}", percent(error))
            }
            MaximumDoubt::SlowerSearch { searched, .. } => {
                let searched = self.rate_in_words(searched, unit);
                format!("the search reached only {searched}")
            }
            MaximumDoubt::NotDeeper { .. } => "deeper was not measured".to_owned(),
            MaximumDoubt::OtherDepths { .. } => "other depths disagree".to_owned(),
            MaximumDoubt::TooShort | MaximumDoubt::Wide(_) => {
                self.doubt_in_words(doubt, unit, plus_minus)
            }
        })
    }

    /// Returns the shallowest and the deepest depth at which the maximum was measured: those of the
    /// plateau, else that of the longer run, else that of the cell with this rate.
    #[must_use]
    pub fn maximum_depths(&self) -> (u32, u32) {
        let run = || self.longer_run.map(|run| (run.iodepth, run.iodepth));
        let difference = |cell: &CurveCell| (cell.iops.mean - self.maximum.mean).abs();
        let nearest = || {
            let of_jobs = self.cells.iter().filter(|cell| cell.jobs == self.jobs);
            of_jobs.min_by(|a, b| difference(a).total_cmp(&difference(b)))
        };
        let depths = self.plateau.or_else(run);
        let depths = depths.or_else(|| nearest().map(|cell| (cell.iodepth, cell.iodepth)));
        depths.unwrap_or((self.knee.iodepth, self.knee.iodepth))
    }

    /// Returns the measured rate of the knee in per cent of the maximum, rounded down. At most 99:
    /// a knee with the whole rate needs no share.
    #[must_use]
    pub fn knee_percent(&self) -> f64 {
        let share = self.knee.iops / self.maximum.mean.max(f64::MIN_POSITIVE);
        words::whole_percent(share).min(99.0)
    }

    /// Returns the rate that was measured at a depth of each of `jobs` jobs.
    #[must_use]
    pub fn rate_at(&self, iodepth: u32) -> Option<RateEstimate> {
        let is_at = |cell: &&CurveCell| cell.jobs == self.jobs && cell.iodepth == iodepth;
        let run = self.longer_run.filter(|run| run.iodepth == iodepth);
        let cell = || self.cells.iter().find(is_at).map(|cell| cell.iops);
        run.map(|run| run.iops).or_else(cell)
    }

    /// Returns the knee if the intervals support one.
    pub fn known_knee(&self) -> Option<DepthPoint> {
        self.claims().knee.then_some(self.knee)
    }

    /// Whether the search ended before it measured depths of its query that may be faster: none
    /// deeper than the fastest was measured, and no two depths of a plateau agree.
    pub fn is_open_ended(&self) -> bool {
        let Some(nearly) = self.latency_only else {
            return false;
        };
        let fastest = nearly.iodepth.max(self.knee.iodepth);
        let has_longer_run = self.longer_run.is_some_and(|run| run.iodepth > fastest);
        self.plateau.is_none() && self.deepest() <= fastest && !has_longer_run
    }

    /// Returns a cell that appeared faster than the maximum, but not significantly.
    pub(crate) fn rival(&self) -> Option<&CurveCell> {
        let most = self.maximum.mean + self.maximum.error.unwrap_or_default();
        let fastest = self.fastest()?;
        (fastest.iops.mean > most * (1.0 + self.rules.tolerance)).then_some(fastest)
    }

    /// Returns the cell with the highest rate, whatever its error.
    fn fastest(&self) -> Option<&CurveCell> {
        let of_jobs = self.cells.iter().filter(|cell| cell.jobs == self.jobs);
        of_jobs.max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean))
    }

    /// Returns the highest depth that was measured with this number of jobs.
    #[must_use]
    pub fn deepest(&self) -> u32 {
        let of_jobs = self.cells.iter().filter(|cell| cell.jobs == self.jobs);
        of_jobs.map(|cell| cell.iodepth).max().unwrap_or(1)
    }

    /// Raises the maximum to a measured rate in a table. Its interval contains the old interval.
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
        self.maximum = RateEstimate { error, ..measured };
        (self.plateau, self.longer_run) = (None, Some(run));
    }

    /// Returns the highest measured rate with its error, and its depth.
    fn fastest_measured(&self) -> Option<(RateEstimate, u32)> {
        let cell = self.fastest().map(|cell| (cell.iops, cell.iodepth));
        let run = self.longer_run.map(|run| (run.iops, run.iodepth));
        let all = cell.into_iter().chain(run);
        all.max_by(|a, b| a.0.mean.total_cmp(&b.0.mean))
    }

    /// Returns the reason why the fastest measured rate is not a known maximum.
    fn doubt(&self, fastest: RateEstimate) -> MaximumDoubt {
        let own = match fastest.relative_error() {
            None => return MaximumDoubt::TooShort,
            Some(error) if error > MAXIMUM_KNOWN => return MaximumDoubt::Wide(error),
            Some(error) => error,
        };
        let searched = self.fastest().map_or(0.0, |cell| cell.iops.mean);
        if searched < fastest.mean * (1.0 - own) {
            return MaximumDoubt::SlowerSearch {
                error: own,
                searched,
            };
        }
        if self.is_open_ended() {
            return MaximumDoubt::NotDeeper { error: own };
        }
        if self.rival().is_some() || self.is_plateau_uneven() {
            return MaximumDoubt::OtherDepths { error: own };
        }
        // The error from the whole search exceeds the error from one cell's few samples.
        let error = self.maximum.relative_error();
        error.map_or(MaximumDoubt::TooShort, |error| {
            MaximumDoubt::Wide(error.max(own))
        })
    }

    /// Whether a depth of the plateau differs from the maximum by more than [`MAXIMUM_KNOWN`].
    fn is_plateau_uneven(&self) -> bool {
        let Some((from, to)) = self.plateau else {
            return false;
        };
        let of_plateau =
            |cell: &&CurveCell| cell.jobs == self.jobs && (from..=to).contains(&cell.iodepth);
        let most = self.maximum.mean;
        let is_apart = |cell: &CurveCell| (cell.iops.mean - most).abs() > MAXIMUM_KNOWN * most;
        self.cells.iter().filter(of_plateau).any(is_apart)
    }

    fn doubt_in_words(&self, doubt: MaximumDoubt, unit: RateUnit, plus_minus: &str) -> String {
        let within = |error: f64| within(error, plus_minus);
        match doubt {
            MaximumDoubt::TooShort => "interval unknown: measured too shortly".to_owned(),
            MaximumDoubt::Wide(error) if error > 1.0 => "uncertain by more than 100 %".to_owned(),
            MaximumDoubt::Wide(error) => format!("uncertain: {}", within(error)),
            MaximumDoubt::SlowerSearch { error, searched } => {
                let searched = self.rate_in_words(searched, unit);
                format!("{}, but the search measured {searched}", within(error))
            }
            MaximumDoubt::NotDeeper { error } => {
                format!("{}, but deeper was not measured", within(error))
            }
            MaximumDoubt::OtherDepths { error } => {
                format!("{}, but other depths disagree", within(error))
            }
        }
    }

    fn rate_in_words(&self, iops: f64, unit: RateUnit) -> String {
        let block = self.maximum_bytes_per_s.mean / self.maximum.mean.max(f64::MIN_POSITIVE);
        match unit {
            RateUnit::Iops => format!("{} IOPS", words::iops_text(iops)),
            RateUnit::Bandwidth => words::bandwidth(iops * block),
        }
    }

    /// Returns the depths of the plateau if a table shows a higher rate for one of them.
    fn exceeded_plateau(&self, unit: RateUnit) -> Option<(u32, u32)> {
        let (rate, most) = (self.fastest()?.iops.mean, self.maximum.mean);
        let is_shown = self.rate_in_words(rate, unit) != self.rate_in_words(most, unit);
        self.plateau.filter(|_| rate > most && is_shown)
    }

    /// Returns the highest rate, its interval or the doubt about it, and its depth: `84.2k IOPS`,
    /// `(+-0.4 %)`, `depth 16`. `plus_minus` is the sign before half an interval.
    pub fn most_in_words(&self, large: bool, plus_minus: &str) -> (String, String, String) {
        let unit = match large {
            true => RateUnit::Bandwidth,
            false => RateUnit::Iops,
        };
        let (most, known, iodepth) = self.most_in_unit(unit, plus_minus);
        (most, known, self.depth_in_words(iodepth, true))
    }

    /// Names a depth of each job: `depth 16`, `depth 16 in each of 4 jobs`.
    fn depth_in_words(&self, iodepth: u32, names_jobs: bool) -> String {
        match self.jobs {
            jobs if names_jobs && jobs != 1 => format!("depth {iodepth} in each of {jobs} jobs"),
            _ => format!("depth {iodepth}"),
        }
    }

    fn most_in_unit(&self, unit: RateUnit, plus_minus: &str) -> (String, String, u32) {
        let within = |error: f64| within(error, plus_minus);
        let is_known = self.claims().maximum;
        let (rate, iodepth) = match self.fastest_measured() {
            Some(fastest) if !is_known => fastest,
            _ => (self.maximum, self.knee.iodepth),
        };
        let most = self.rate_in_words(rate.mean, unit);
        let error = rate.relative_error().filter(|_| is_known);
        let known = match (error, self.exceeded_plateau(unit)) {
            (Some(error), Some((from, to))) => {
                format!("({}, the mean of depths {from} to {to})", within(error))
            }
            (Some(error), None) => format!("({})", within(error)),
            (None, _) => {
                let doubt = self.doubt_in_words(self.doubt(rate), unit, plus_minus);
                format!("({doubt})")
            }
        };
        (most, known, iodepth)
    }

    /// Returns the result as a sentence without subject, limited to statements that the intervals
    /// support. `large` selects bandwidth instead of IOPS. `names_jobs` adds the number of jobs to
    /// the depth, if there are several. `plus_minus` is the sign before half an interval.
    #[must_use]
    pub fn sentence(&self, large: bool, names_jobs: bool, plus_minus: &str) -> String {
        let unit = match large {
            true => RateUnit::Bandwidth,
            false => RateUnit::Iops,
        };
        let (most, known, iodepth) = self.most_in_unit(unit, plus_minus);
        let claims = self.claims();
        let at = self.depth_in_words(iodepth, names_jobs);
        if !claims.maximum {
            return format!("has no known maximum; the fastest was {at} with {most} {known}");
        }
        if self.latency_only.is_none() {
            // The knee may be shallower than the depth with this rate.
            let (_, iodepth) = self.maximum_depths();
            let at = self.depth_in_words(iodepth, names_jobs);
            return match claims.rises {
                _ if iodepth < self.deepest() => format!("is highest at {at}, with {most} {known}"),
                true => format!("still rises at {at}, with {most} {known}"),
                false => {
                    format!("is highest at {at}, with {most} {known}; deeper was not measured")
                }
            };
        }
        let at = match claims.knee {
            true => at,
            false => format!("{at} or lower"),
        };
        let beyond = match self.latency_only {
            Some(_) if !claims.plateau => "; more depth may raise the rate".to_owned(),
            Some(point) if point.iodepth > self.knee.iodepth => {
                format!("; above depth {} only latency grows", point.iodepth)
            }
            _ => "; more depth only adds latency".to_owned(),
        };
        let rate = |iops: f64| self.rate_in_words(iops, unit);
        let is_slower = self.knee.iops < self.maximum.mean;
        let part = match is_slower && rate(self.knee.iops) != rate(self.maximum.mean) {
            true => format!("{} % of ", self.knee_percent()),
            false => String::new(),
        };
        // The mean of a plateau is not called a maximum if one of its depths is faster.
        match self.exceeded_plateau(unit) {
            Some(_) => format!("levels off at {most} {known} from {at} on{beyond}"),
            None => format!("reaches {part}its maximum of {most} {known} at {at}{beyond}"),
        }
    }
}

#[cfg(test)]
mod tests;
