//! One fact in two rows: in closed loop the mean latency is the I/Os in flight over the rate (Little's law).
//!
//! The rows of a comparison have intervals of their own, symmetric on their own scales: a rate 0.811 times as high was "slower"
//! (0.649 to 0.999), and its mean latency, 1.233 times as long, showed no difference (0.985 to 1.520). Where the ratios of
//! both are reciprocal they get one interval and one verdict.

use super::{Measure, Ratio, Row};

/// Ratios whose product differs from 1 by less than this share are of one fact.
const RECIPROCAL_WITHIN: f64 = 0.005;

/// Gives the mean latency of each part the interval and the verdict of its rate where both are one fact; the other way round
/// where only the latency has an interval.
pub(super) fn join_rates_and_latencies(rows: &mut [Row]) {
    let rates: Vec<Row> = rows.iter().filter(|row| is_rate(row)).cloned().collect();
    for rate in rates {
        let of_same_io = |row: &Row| row.part == rate.part && row.subject == rate.subject;
        let is_latency = |row: &Row| of_same_io(row) && is_mean_latency(row) && agree(row, &rate);
        let is_own = |row: &Row| of_same_io(row) && row.measure == rate.measure;
        let latency = rows.iter().position(is_latency);
        let own = rows.iter().position(is_own);
        let (Some(latency), Some(own)) = (latency, own) else {
            continue;
        };
        let (from, to) = match rate.ratio.interval {
            Some(_) => (own, latency),
            None => (latency, own),
        };
        let source = rows[from].clone();
        if !is_bounded(&source.ratio) {
            continue;
        }
        let target = &mut rows[to];
        target.ratio.interval = reciprocal(&source.ratio);
        target.joint.interval = reciprocal(&source.joint);
        target.verdict = source.verdict;
    }
}

fn is_rate(row: &Row) -> bool {
    matches!(row.measure, Measure::Iops | Measure::BytesPerS)
}

fn is_mean_latency(row: &Row) -> bool {
    matches!(row.measure, Measure::LatMean | Measure::ClatMean)
}

/// Whether one row is the reciprocal of the other.
fn agree(latency: &Row, rate: &Row) -> bool {
    (latency.ratio.value * rate.ratio.value - 1.0).abs() < RECIPROCAL_WITHIN
}

/// Whether an interval says anything: one that reaches zero does not.
fn is_bounded(ratio: &Ratio) -> bool {
    const FACTOR_MAX: f64 = 1000.0;
    ratio
        .interval
        .is_some_and(|(low, high)| low * FACTOR_MAX > 1.0 && high < FACTOR_MAX)
}

fn reciprocal(ratio: &Ratio) -> Option<(f64, f64)> {
    let (low, high) = ratio.interval?;
    // An end at zero is that of a joint interval: nothing bounds its reciprocal.
    Some((1.0 / high, 1.0 / low.max(f64::MIN_POSITIVE)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::matching::matching;
    use crate::compare::sides::rows;
    use crate::compare::{
        Basis, Bounds, Figure, Measured, Part, Pattern, Subject, Verdict, compare,
    };

    /// A figure that is known to this share.
    fn figure(measure: Measure, value: f64, share: Option<f64>) -> Figure {
        let bounds = share.map(|share| Bounds {
            low: value * (1.0 - share),
            high: value * (1.0 + share),
            freedom: 20.0,
            repeat_factor: 1.0,
            basis: Basis::Series,
        });
        Figure {
            subject: Subject::Read,
            measure,
            value,
            bounds,
            settled: None,
        }
    }

    fn measured(iops: f64, mean_ns: f64, shares: [Option<f64>; 2]) -> [Measured; 1] {
        let part = Part {
            name: "random_read".into(),
            pattern: Pattern::default(),
            figures: vec![
                figure(Measure::Iops, iops, shares[0]),
                figure(Measure::LatMean, mean_ns, shares[1]),
            ],
        };
        [Measured {
            name: "one".into(),
            machine: None,
            parts: vec![part],
        }]
    }

    /// The rows with their own intervals, and as `compare` has them.
    fn joined(shares: [Option<f64>; 2], mean_ns: f64) -> (Vec<Row>, Vec<Row>) {
        let a = measured(2000.0, 500e3, shares);
        let b = measured(1620.0, mean_ns, shares);
        let apart = rows(&a, &b, &matching(&a, &b).pairs);
        (apart, compare(&a, &b).rows)
    }

    #[test]
    fn rate_and_mean_latency_of_a_closed_loop_have_one_verdict() {
        let (before, after) = joined([Some(0.125), Some(0.16)], 500e3 / 0.81);
        let verdicts = |rows: &[Row]| [rows[0].verdict, rows[1].verdict];
        assert_eq!(
            verdicts(&before),
            [Verdict::Slower, Verdict::NoDifferenceShown]
        );
        assert_eq!(verdicts(&after), [Verdict::Slower; 2]);
        let [rate, latency] = [0, 1].map(|row| after[row].ratio.interval.unwrap());
        assert!((rate.0 * latency.1 - 1.0).abs() < 1e-9, "{latency:?}");
        assert_eq!(after[0], before[0]);
    }

    #[test]
    fn rate_without_interval_has_that_of_its_latency() {
        let (before, after) = joined([None, Some(0.05)], 500e3 / 0.81);
        assert_eq!(before[0].verdict, Verdict::Undecided);
        assert_eq!(after[0].verdict, Verdict::Slower);
        assert_eq!(after[1], before[1]);
    }

    /// At an offered rate, and where jobs think between their I/Os, they are two facts.
    #[test]
    fn latency_that_does_not_follow_from_the_rate_keeps_its_own() {
        let (before, after) = joined([Some(0.125), Some(0.16)], 500e3);
        assert_eq!(before, after);
    }
}
