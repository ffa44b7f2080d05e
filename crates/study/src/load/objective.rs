//! Latency objectives: `p99=2ms`.

use super::point::ENOUGH;
use iosonde_job::value::{TimeUnit, time_ns};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

impl Objective {
    /// The share of the I/Os that may be slower.
    pub(super) fn allowed_share(&self) -> f64 {
        1.0 - self.percentile / 100.0
    }

    /// The least offered rate, in I/Os per second, at which enough I/Os come in `runtime_ns` for the percentile to be told, if
    /// `share` of them are in the direction with the fewest.
    pub(super) fn least_rate(&self, runtime_ns: u64, share: f64) -> f64 {
        let seconds = runtime_ns as f64 / 1e9;
        let ios = match self.allowed_share() {
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
