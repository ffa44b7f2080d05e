//! Latency objectives: `p99=2ms`.

use crate::figures::load_measurement::ENOUGH;
use iosonde_job::value::{TimeUnit, time_ns};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A latency that a share of the I/Os must not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The share in per cent. 100: the maximum latency.
    pub percentile: f64,
    /// The latency in nanoseconds.
    pub latency_ns: u64,
}

/// Error: a text is not an objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a latency objective: {problem}; use e.g. p99=2ms or max=50ms")]
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
            .ok_or_else(|| error("`=` is missing"))?;
        let percentile = match share.trim() {
            "max" => 100.0,
            share => share
                .strip_prefix('p')
                .and_then(|number| number.parse::<f64>().ok())
                .filter(|percent| (0.0..100.0).contains(percent) && *percent > 0.0)
                .ok_or_else(|| error("the left side is neither max nor a percentile"))?,
        };
        let latency = latency.trim();
        // fio takes bare numbers as microseconds. An objective requires a unit, to be unambiguous.
        if latency.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(error("the time has no unit"));
        }
        let latency_ns = time_ns(latency, TimeUnit::Microseconds)
            .ok()
            .filter(|ns| *ns > 0)
            .ok_or_else(|| error("the right side is not a time"))?;
        Ok(Objective {
            percentile,
            latency_ns,
        })
    }
}

impl Objective {
    /// Formats the objective as an argument: `p99=2ms`.
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
    /// Returns the share of I/Os that may be slower.
    pub(super) fn allowed_share(&self) -> f64 {
        1.0 - self.percentile / 100.0
    }

    /// Returns the lowest offered rate (I/Os per second) at which `runtime_ns` has enough I/Os for
    /// the percentile, if `share` of them are in the rarer direction.
    pub(super) fn least_rate(&self, runtime_ns: u64, share: f64) -> f64 {
        let seconds = runtime_ns as f64 / 1e9;
        let ios = match self.allowed_share() {
            0.0 => 1.0,
            beyond => ENOUGH / beyond,
        };
        ios / (seconds * share).max(f64::MIN_POSITIVE)
    }

    /// Returns the measure: `p99`, or `max`.
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
    fn objective_text_is_parsed_and_formatted() {
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
    fn invalid_objective_is_refused_with_example() {
        let (left, right) = (
            "the left side is neither max nor a percentile",
            "the right side is not a time",
        );
        for (text, problem) in [
            ("p99", "`=` is missing"),
            ("p99=2", "the time has no unit"),
            ("p99=", right),
            ("q99=2ms", left),
            ("p100=2ms", left),
            ("p0=2ms", left),
            ("p99=ms", right),
            ("99=2ms", left),
            ("p99=0ms", right),
        ] {
            let expected = ObjectiveError {
                text: text.to_owned(),
                problem: problem.to_owned(),
            };
            assert_eq!(text.parse::<Objective>(), Err(expected));
        }
        let error = "p99".parse::<Objective>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`p99` is not a latency objective: `=` is missing; use e.g. p99=2ms or max=50ms"
        );
    }
}
