//! Latency objectives: `p99=2ms`.

use super::point::{ENOUGH, LoadLatency, Point};
use iosonde_job::value::{TimeUnit, time_ns};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Standard deviations of the number of slow I/Os that chance may explain.
const CHANCE: f64 = 3.0;

/// A latency that a share of the I/Os must keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The share, in per cent; 100 is the longest of all.
    pub percentile: f64,
    /// The latency, in nanoseconds.
    pub latency_ns: u64,
}

/// A text that is no objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a latency objective: {problem}; write for example p99=2ms or max=50ms")]
pub struct ObjectiveError {
    text: String,
    problem: String,
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Objective, ObjectiveError> {
        let error = |problem: &str| ObjectiveError {
            text: text.to_owned(),
            problem: problem.to_owned(),
        };
        let (share, latency) = text
            .split_once("<=")
            .or_else(|| text.split_once('='))
            .ok_or_else(|| error("there is no `=`"))?;
        let percentile = match share.trim() {
            "max" => 100.0,
            share => share
                .strip_prefix('p')
                .and_then(|number| number.parse::<f64>().ok())
                .filter(|percent| (0.0..100.0).contains(percent) && *percent > 0.0)
                .ok_or_else(|| error("its left side is neither max nor a percentile"))?,
        };
        let latency = latency.trim();
        // fio's times are in microseconds where they have no unit; here a bare number would be a guess.
        if latency.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(error("its time has no unit"));
        }
        let latency_ns = time_ns(latency, TimeUnit::Microseconds)
            .ok()
            .filter(|ns| *ns > 0)
            .ok_or_else(|| error("its right side is not a time"))?;
        Ok(Objective {
            percentile,
            latency_ns,
        })
    }
}

impl Objective {
    /// As it is asked for: `p99=2ms`.
    pub fn as_given(&self) -> String {
        let ns = self.latency_ns;
        let latency = match ns {
            _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
            _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
            _ => format!("{ns}ns"),
        };
        format!("{}={latency}", self.measure())
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latency = crate::words::latency(self.latency_ns as f64);
        write!(f, "{} <= {latency}", self.measure())
    }
}

/// What a point says of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Kept in each direction, at the rate that was offered.
    Kept,
    /// Too few I/Os to tell.
    TooFew,
    /// Not kept, or the offered rate was not reached.
    Broken,
}

impl Objective {
    /// What a point says of it; `None` where the point was interrupted.
    pub fn judge(&self, point: &Point) -> Option<Judgement> {
        if point.interrupted {
            return None;
        }
        if !point.kept_up {
            return Some(Judgement::Broken);
        }
        let worst = point.sides().map(|side| self.judge_one(&side.latency));
        worst.max()
    }

    /// By the percentile where it can be told. Where it cannot, the objective is kept if all I/Os were within it, or with no
    /// more beyond than it allows, and broken if more were beyond than chance explains.
    fn judge_one(&self, latency: &LoadLatency) -> Judgement {
        let limit = self.latency_ns as f64;
        let allowed = latency.count as f64 * self.beyond();
        match latency.count {
            0 => Judgement::TooFew,
            _ if latency.max_ns <= limit => Judgement::Kept,
            _ if self.beyond() == 0.0 => Judgement::Broken,
            _ if allowed >= 1.0 && latency.at_ns(self.percentile) <= limit => Judgement::Kept,
            _ if allowed + 1e-6 >= ENOUGH => Judgement::Broken,
            // So many I/Os were slower than allowed that the percentile lies beyond however few there are.
            _ if latency.at_ns(self.surely_beyond(allowed, latency.count)) > limit => {
                Judgement::Broken
            }
            _ => Judgement::TooFew,
        }
    }

    /// The share of the I/Os that may be slower.
    fn beyond(&self) -> f64 {
        1.0 - self.percentile / 100.0
    }

    /// The percentile that lies so far below this one that an I/O there that is too slow cannot be chance.
    fn surely_beyond(&self, allowed: f64, count: u64) -> f64 {
        let slower = allowed + CHANCE * allowed.max(1.0).sqrt();
        (100.0 * (1.0 - slower / count as f64)).max(0.0)
    }

    /// The least offered rate, in I/Os per second, at which enough I/Os come in `runtime_ns` for the percentile to be told, if
    /// `share` of them are in the direction with the fewest.
    pub(super) fn least_rate(&self, runtime_ns: u64, share: f64) -> f64 {
        let seconds = runtime_ns as f64 / 1e9;
        let ios = match self.beyond() {
            0.0 => 1.0,
            beyond => ENOUGH / beyond,
        };
        ios / (seconds * share).max(f64::MIN_POSITIVE)
    }

    /// What it speaks of: `p99`, or `max`.
    pub fn measure(&self) -> String {
        match self.percentile {
            100.0 => "max".to_owned(),
            percentile => format!("p{percentile}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_shown() {
        let objective: Objective = "p99=2ms".parse().unwrap();
        assert_eq!(
            (objective.percentile, objective.latency_ns),
            (99.0, 2_000_000)
        );
        assert_eq!(objective.to_string(), "p99 <= 2.00 ms");
        let objective: Objective = "p99.9<=500us".parse().unwrap();
        assert_eq!(
            (objective.percentile, objective.latency_ns),
            (99.9, 500_000)
        );
        let objective: Objective = "max=1s".parse().unwrap();
        assert_eq!(
            (objective.percentile, objective.latency_ns),
            (100.0, 1_000_000_000)
        );
    }

    /// A point of I/Os that took 1 ms, and some that took 10 ms.
    fn point(fast: u64, slow: u64) -> Point {
        let mut histogram = iosonde_result::histogram::Histogram::default();
        (0..fast).for_each(|_| histogram.record(1_000_000));
        (0..slow).for_each(|_| histogram.record(10_000_000));
        let latency = LoadLatency {
            count: fast + slow,
            mean_ns: 0.0,
            max_ns: if slow > 0 { 1e7 } else { 1e6 },
            histogram,
        };
        Point {
            offered: super::super::point::Offered {
                reads_per_s: 100.0,
                writes_per_s: 0.0,
            },
            read: Some(super::super::point::Side {
                offered_per_s: 100.0,
                achieved_per_s: 100.0,
                latency,
            }),
            write: None,
            kept_up: true,
            interrupted: false,
            verdicts: Vec::new(),
            kinds: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn few_ios_are_judged_only_where_they_leave_no_doubt() {
        let p99: Objective = "p99=2ms".parse().unwrap();
        let judge = |fast, slow| p99.judge(&point(fast, slow)).unwrap();
        assert_eq!(judge(0, 0), Judgement::TooFew);
        assert_eq!(judge(20, 0), Judgement::Kept);
        assert_eq!(judge(38, 2), Judgement::TooFew);
        assert_eq!(judge(30, 10), Judgement::Broken);
        assert_eq!(judge(298, 2), Judgement::Kept);
        assert_eq!(judge(296, 4), Judgement::TooFew);
        assert_eq!(judge(980, 20), Judgement::Broken);
        assert_eq!(judge(995, 5), Judgement::Kept);
        let max: Objective = "max=2ms".parse().unwrap();
        assert_eq!(max.judge(&point(9999, 1)), Some(Judgement::Broken));
        assert_eq!(max.judge(&point(2, 0)), Some(Judgement::Kept));
        let cut = Point {
            interrupted: true,
            ..point(0, 1000)
        };
        assert_eq!(p99.judge(&cut), None);
    }

    #[test]
    fn what_is_no_objective_is_refused_with_an_example() {
        for text in [
            "p99", "p99=2", "p99=", "q99=2ms", "p100=2ms", "p0=2ms", "p99=ms", "99=2ms", "p99=0ms",
        ] {
            let error = text.parse::<Objective>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("p99=2ms"), "{error}");
        }
    }
}
