//! A load study as parts of a comparison with another study: latencies at the same offered rates.
//!
//! The rates of a study depend on the capacity of its target, so two studies seldom share them.
//! Latencies between two offered rates are interpolated linearly on logarithmic scales.

use super::load_study::{LoadResult, ObjectiveAnswer};
use crate::figures::load_measurement::LoadMeasurement;
use crate::words;
use iosonde_job::plan::Direction;
use iosonde_result::compare::{
    Bounds, Figure, IntervalBasis, IoPattern, Measure, PartRole, ResultPart, Subject,
};

/// Largest relative difference of equal rates: each thread offers a whole number of I/Os.
const SAME_RATE: f64 = 0.005;
/// Compared latencies and their percentiles.
const MEASURES: [(Measure, f64); 3] = [
    (Measure::LatP50, 50.0),
    (Measure::LatP99, 99.0),
    (Measure::LatP999, 99.9),
];

/// Degrees of freedom of the ends of a limit's interval: the batches of two runs.
const LIMIT_FREEDOM: f64 = 19.0;

/// Returns the latency of one run of a point, if the runs of the study are stored.
pub type PointFigureLookup<'a> = &'a dyn Fn(&LoadMeasurement, Subject, Measure) -> Option<Figure>;

/// Latencies over the offered rates that the target sustained.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyCurve {
    pattern: IoPattern,
    /// Rates and their figures, in ascending order.
    points: Vec<(f64, Vec<Figure>)>,
    /// Parts without a rate: the capacity, and the highest rate of each objective.
    alone: Vec<ResultPart>,
}

impl LatencyCurve {
    /// Returns the curve of a study.
    pub fn from_result(result: &LoadResult, known: PointFigureLookup<'_>) -> LatencyCurve {
        let pattern = pattern(result);
        let whole = result.points.iter().filter(|point| !point.interrupted);
        let kept_up = whole.filter(|point| point.kept_up);
        let mut points: Vec<(f64, Vec<Figure>)> = kept_up
            .map(|point| (point.offered.total(), figures(point, known)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        LatencyCurve {
            alone: alone(result, &pattern),
            pattern,
            points,
        }
    }

    /// Returns the offered rates that the target sustained, in I/Os per second.
    pub fn rates(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(rate, _)| *rate)
    }

    /// Returns the parts at these rates, and how many of them are interpolated.
    pub fn at(&self, rates: &[f64]) -> (Vec<ResultPart>, usize) {
        let mut parts = self.alone.clone();
        let mut drawn = 0;
        for rate in rates {
            let Some((figures, is_drawn)) = self.at_one(*rate) else {
                continue;
            };
            drawn += usize::from(is_drawn);
            parts.push(ResultPart {
                name: format!("at {} IOPS", words::iops_text(*rate)),
                pattern: self.pattern.clone(),
                figures,
                role: PartRole::Alone,
            });
        }
        (parts, drawn)
    }

    fn at_one(&self, rate: f64) -> Option<(Vec<Figure>, bool)> {
        let is_same = |other: f64| (other / rate - 1.0).abs() <= SAME_RATE;
        if let Some((_, figures)) = self.points.iter().find(|(other, _)| is_same(*other)) {
            return Some((figures.clone(), false));
        }
        let above = self.points.iter().position(|(other, _)| *other > rate)?;
        let below = above.checked_sub(1)?;
        let ((low, before), (high, after)) = (&self.points[below], &self.points[above]);
        let share = (rate / low).ln() / (high / low).ln();
        let both = before.iter().filter_map(|a| {
            let is_it = |b: &&Figure| (b.subject, b.measure) == (a.subject, a.measure);
            Some(between(a, after.iter().find(is_it)?, share))
        });
        Some((both.collect(), true))
    }
}

/// Interpolates a figure between two others. `share` is the position, from 0 to 1.
fn between(a: &Figure, b: &Figure, share: f64) -> Figure {
    let line = |a: f64, b: f64| {
        let (a, b) = (a.max(f64::MIN_POSITIVE), b.max(f64::MIN_POSITIVE));
        (a.ln() + share * (b.ln() - a.ln())).exp()
    };
    Figure {
        value: line(a.value, b.value),
        bounds: a.bounds.zip(b.bounds).map(|(a, b)| Bounds {
            low: line(a.low, b.low),
            high: line(a.high, b.high),
            freedom: a.freedom.min(b.freedom),
            repeat_factor: a.repeat_factor.max(b.repeat_factor),
            basis: IntervalBasis::Predicted,
        }),
        ..*a
    }
}

fn figures(point: &LoadMeasurement, known: PointFigureLookup<'_>) -> Vec<Figure> {
    let sides = [
        (Direction::Read, &point.read),
        (Direction::Write, &point.write),
    ];
    let mut figures = Vec::new();
    for (direction, side) in sides {
        let Some(side) = side else { continue };
        let subject = Subject::from(direction);
        for (measure, percent) in MEASURES {
            let Some(value) = side.latency.percentile_ns(percent) else {
                continue;
            };
            figures.push(Figure {
                subject,
                measure,
                value,
                bounds: known(point, subject, measure).and_then(|run| bounds_of_all(value, &run)),
                settled: None,
            });
        }
    }
    figures
}

/// Returns the interval of a latency of all runs of a point, as wide as that of one run.
fn bounds_of_all(value: f64, run: &Figure) -> Option<Bounds> {
    let scale = value / run.value;
    run.bounds.map(|bounds| Bounds {
        low: bounds.low * scale,
        high: bounds.high * scale,
        ..bounds
    })
}

fn pattern(result: &LoadResult) -> IoPattern {
    let options = &result.options;
    let kind = match options.mix.read_percent {
        100 => "read",
        0 => "write",
        _ => "rw",
    };
    let order = if options.pattern.random { "rand" } else { "" };
    IoPattern {
        rw: format!("{order}{kind}"),
        bs: options.pattern.block_bytes.to_string(),
        iodepth: options.iodepth,
        numjobs: options.numjobs,
    }
}

/// Returns the capacity, whose error is unknown, and the highest rate of each objective.
fn alone(result: &LoadResult, pattern: &IoPattern) -> Vec<ResultPart> {
    let subject = match result.options.mix.read_percent {
        100 => Subject::Read,
        0 => Subject::Write,
        _ => Subject::Mixed,
    };
    let part = |name: String, iops: f64, bounds: Option<Bounds>| ResultPart {
        name,
        pattern: pattern.clone(),
        figures: vec![Figure {
            subject,
            measure: Measure::Iops,
            value: iops,
            bounds,
            settled: None,
        }],
        role: PartRole::Alone,
    };
    let capacity = result.capacity_iops.filter(|iops| *iops > 0.0);
    let capacity = capacity.map(|iops| part("capacity in closed loop".to_owned(), iops, None));
    let objectives = result.objectives.iter().filter_map(|answer| {
        let held = answer.answer.held.filter(|iops| *iops > 0.0)?;
        let bounds = bounds_of_limit(answer, held);
        Some(part(
            format!("maximum with {}", answer.objective),
            held,
            bounds,
        ))
    });
    capacity.into_iter().chain(objectives).collect()
}

/// Returns the interval of an objective's rate. Its lower end is the rate: none above is decided.
fn bounds_of_limit(found: &ObjectiveAnswer, held: f64) -> Option<Bounds> {
    let answer = found.answer;
    let high = answer.failed.filter(|_| answer.is_interval)?;
    Some(Bounds {
        low: held,
        high,
        freedom: LIMIT_FREEDOM,
        repeat_factor: 1.0,
        basis: IntervalBasis::Runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64) -> Figure {
        Figure {
            subject: Subject::Read,
            measure: Measure::LatP99,
            value,
            bounds: Some(Bounds {
                low: value * 0.9,
                high: value * 1.1,
                freedom: 5.0,
                repeat_factor: 1.0,
                basis: IntervalBasis::Series,
            }),
            settled: None,
        }
    }

    #[test]
    fn latencies_are_interpolated_between_rates_only() {
        let curve = LatencyCurve {
            pattern: IoPattern::default(),
            points: [(1000.0, 1e6), (4000.0, 4e6)]
                .map(|(rate, ns)| (rate, vec![figure(ns)]))
                .into(),
            alone: Vec::new(),
        };
        let (parts, drawn) = curve.at(&[500.0, 1002.0, 2000.0, 4000.0, 4100.0]);
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["at 1.00k IOPS", "at 2.00k IOPS", "at 4.00k IOPS"]);
        assert_eq!(drawn, 1);
        let middle = parts[1].figures[0];
        assert!((middle.value / 2e6 - 1.0).abs() < 1e-9, "{middle:?}");
        let bounds = middle.bounds.unwrap();
        assert!((bounds.low / 1.8e6 - 1.0).abs() < 1e-9, "{bounds:?}");
        assert_eq!(bounds.basis, IntervalBasis::Predicted);
    }
}
