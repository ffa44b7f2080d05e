//! Objectives of a load study as limits in charts of latency.

use crate::axis_numbers::log_bounds;
use iosonde_study::load::{LoadResult, Objective};
use iosonde_study::words;
use serde::Serialize;

/// A scale is extended to an objective that is at most this multiple of the highest latency, or of
/// which the lowest latency is at most this multiple. Farther objectives would flatten the curves.
const SCALE_EXTENSION_MAX: f64 = 10.0;

/// An objective in a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ObjectiveLimit {
    /// The percentile that the objective is about. 100: the maximum.
    pub(crate) percentile: f64,
    /// The latency in nanoseconds.
    pub(crate) latency_ns: f64,
    /// `objective p99 <= 3.00 ms`.
    pub(crate) name: String,
    /// The side of the scale on which the objective lies. `None`: the scale contains it.
    pub(crate) beyond: Option<ScaleSide>,
}

/// A side of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScaleSide {
    /// Above the highest value.
    Above,
    /// Below the lowest value.
    Below,
}

impl ScaleSide {
    /// Returns the side of a scale from `low` to `high` on which a latency lies. `None`: the scale
    /// contains it.
    pub(crate) fn of_latency(ns: f64, (low, high): (f64, f64)) -> Option<ScaleSide> {
        if ns > high {
            return Some(ScaleSide::Above);
        }
        (ns < low).then_some(ScaleSide::Below)
    }

    /// Returns the word: `above` or `below`.
    pub(super) fn word(self) -> &'static str {
        match self {
            ScaleSide::Above => "above",
            ScaleSide::Below => "below",
        }
    }

    /// Returns the note on an objective that is not drawn: `objective p99 <= 1.00 s: above the
    /// scale`.
    pub(crate) fn note(self, name: &str) -> String {
        format!("{name}: {} the scale", self.word())
    }
}

/// Returns the range within which an objective extends the scale of a chart that draws latencies
/// from `low` to `high`.
pub(super) fn extension_range((low, high): (f64, f64)) -> (f64, f64) {
    (low / SCALE_EXTENSION_MAX, high * SCALE_EXTENSION_MAX)
}

/// Returns the bounds of a logarithmic scale that contains all `latencies_ns` above zero and the
/// objectives near them. An objective that lies within the bounds belongs to the scale too. `None`:
/// no latency is above zero.
pub(crate) fn scale_with_objectives(
    latencies_ns: impl Iterator<Item = f64>,
    objectives_ns: impl Iterator<Item = f64>,
) -> Option<(f64, f64)> {
    let mut shown_ns: Vec<f64> = latencies_ns.filter(|ns| *ns > 0.0).collect();
    let low = shown_ns.iter().copied().reduce(f64::min)?;
    let high = shown_ns.iter().copied().reduce(f64::max)?;
    let mut range_ns = extension_range((low, high));
    let mut others: Vec<f64> = objectives_ns.collect();
    loop {
        let is_inside = |ns: &f64| ScaleSide::of_latency(*ns, range_ns).is_none();
        let (inside, outside): (Vec<f64>, Vec<f64>) = others.into_iter().partition(is_inside);
        let is_final = inside.is_empty();
        shown_ns.extend(inside);
        others = outside;
        range_ns = log_bounds(&shown_ns);
        if is_final {
            return Some(range_ns);
        }
    }
}

/// Returns the name of an objective in a chart.
pub(super) fn objective_name(objective: Objective) -> String {
    format!("objective {objective}")
}

/// Returns the objectives of a study for a chart that contains all `latencies_ns` above zero. A
/// chart without latencies has none.
pub(crate) fn objective_limits(
    result: &LoadResult,
    latencies_ns: impl Iterator<Item = f64>,
) -> Vec<ObjectiveLimit> {
    let objectives = result.objectives.iter().map(|found| found.objective);
    let objectives_ns = objectives
        .clone()
        .map(|objective| objective.latency_ns as f64);
    let Some(scale_ns) = scale_with_objectives(latencies_ns, objectives_ns) else {
        return Vec::new();
    };
    let limits = objectives.map(|objective| ObjectiveLimit {
        percentile: objective.percentile,
        latency_ns: objective.latency_ns as f64,
        name: format!(
            "objective {} <= {}",
            objective.measure(),
            words::latency_with_micro_sign(objective.latency_ns as f64)
        ),
        beyond: ScaleSide::of_latency(objective.latency_ns as f64, scale_ns),
    });
    limits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objective_far_from_all_latencies_is_beyond_the_scale() {
        let side = |ns: f64| {
            let scale = scale_with_objectives([0.0, 1e6, 5e6].into_iter(), [ns].into_iter());
            ScaleSide::of_latency(ns, scale.unwrap())
        };
        for ns in [3e6, 50e6, 1e5] {
            assert_eq!(side(ns), None, "{ns}");
        }
        assert_eq!(side(51e6), Some(ScaleSide::Above));
        assert_eq!(side(99e3), Some(ScaleSide::Below));
        let objective: Objective = "p99=51ms".parse().unwrap();
        assert_eq!(
            ScaleSide::Above.note(&objective_name(objective)),
            "objective p99 <= 51.0 ms: above the scale"
        );
    }

    #[test]
    fn objective_within_the_rounded_bounds_belongs_to_the_scale() {
        let scale = |objectives: &[f64]| {
            let latencies = [5e5, 1e6].into_iter();
            scale_with_objectives(latencies, objectives.iter().copied())
        };
        assert_eq!(scale(&[11e6]), Some((2e5, 2e6)));
        // The scale is extended to 10 ms and ends at 20 ms.
        assert_eq!(scale(&[11e6, 10e6]), Some((2e5, 2e7)));
        // 19.9 ms is within these bounds. With room above it the scale ends at 50 ms.
        assert_eq!(scale(&[49e6, 10e6, 19.9e6]), Some((2e5, 5e7)));
        assert_eq!(
            scale_with_objectives([0.0].into_iter(), [1e6].into_iter()),
            None
        );
    }
}
