//! Outcome of the runs at an offered rate, for tables and charts.

use super::is_judged;
use super::knee_rate::has_fallen_behind;
use iosonde_study::load::LoadMeasurement;
use serde::Serialize;

/// Outcome of the runs at an offered rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RateState {
    /// The target sustained the rate.
    Sustained,
    /// The target did not keep up with the rate.
    FellBehind,
    /// The user stopped the run.
    Interrupted,
    /// An I/O error ended the run.
    Failed,
}

impl RateState {
    pub(crate) fn of_measurement(point: &LoadMeasurement) -> RateState {
        if is_judged(point) {
            RateState::Sustained
        } else if has_fallen_behind(point) {
            RateState::FellBehind
        } else if point.interrupted {
            RateState::Interrupted
        } else {
            RateState::Failed
        }
    }

    /// Whether charts draw the latencies of the rate.
    pub(crate) fn is_drawn(self) -> bool {
        matches!(self, RateState::Sustained | RateState::FellBehind)
    }

    /// Returns the word in a column that says whether the target kept up.
    pub(crate) fn word(self) -> &'static str {
        match self {
            RateState::Sustained => "yes",
            RateState::FellBehind => "no",
            RateState::Interrupted => "interrupted",
            RateState::Failed => "failed",
        }
    }
}
