//! Joins rows of a comparison that express one fact: in closed loop, the mean latency is the number
//! of I/Os in flight divided by the rate (Little's law).
//!
//! The rows of a comparison have intervals of their own, each symmetric on its own scale. Without
//! joining, a rate 0.811 times as high was "slower" (0.649 to 0.999), but its mean latency, 1.233
//! times as long, showed no difference (0.985 to 1.520). If the ratios of both are reciprocal, they
//! get one interval and one verdict.
//!
//! If each write is followed by an fsync or fdatasync and nothing else is in flight, the period of
//! a write is its latency plus that of its sync: rate = clones / (write + sync). Rate and sync
//! latency are then nearly one fact, except that the write latency is part of the rate only.
//! [`join_rates_and_syncs`] gives both one verdict.

use super::{ComparisonRow, ComparisonVerdict, Measure, Ratio, ResultPart, Subject};

/// Two ratios express one fact if their product differs from 1 by less than this share.
const RECIPROCAL_WITHIN: f64 = 0.005;

/// Gives the mean latency of each part the interval and verdict of its rate, or the reverse if only
/// the latency has an interval, if both express one fact.
///
/// [`RECIPROCAL_WITHIN`] can be wider than an interval. Ratios that differ by more than the
/// interval allows are two facts: each keeps its own interval, which contains it.
pub(super) fn join_rates_and_latencies(rows: &mut [ComparisonRow]) {
    let rates: Vec<ComparisonRow> = rows.iter().filter(|row| is_rate(row)).cloned().collect();
    for rate in rates {
        let of_same_io = |row: &ComparisonRow| row.part == rate.part && row.subject == rate.subject;
        let is_latency =
            |row: &ComparisonRow| of_same_io(row) && is_mean_latency(row) && agree(row, &rate);
        let is_own = |row: &ComparisonRow| of_same_io(row) && row.measure == rate.measure;
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
        let interval = reciprocal(&source.ratio);
        if !is_bounded(&source.ratio) || !contains(interval, rows[to].ratio.value) {
            continue;
        }
        let target = &mut rows[to];
        target.ratio.interval = interval;
        target.joint.interval = reciprocal(&source.joint);
        target.verdict = source.verdict;
    }
}

/// Largest difference between the period of a write and write plus sync latency, as a share.
const PERIOD_WITHIN: f64 = 0.05;
/// The sync determines the rate if it takes at least this share of the period.
const SYNC_SHARE_MIN: f64 = 0.5;
/// Plausible factors between the logarithms of the ratios of rate and sync: 1 if the write latency
/// changes as the sync does, higher if it stays constant, lower if it changes more.
const POWER_MIN: f64 = 0.8;
const POWER_MAX: f64 = 2.0;

/// Gives the rate of writes and the mean latency of their syncs one verdict. The interval is that
/// of the rate, or that of the sync if the rate has none.
///
/// Both express one fact if on both sides one I/O is in flight, the period is the sum of write and
/// sync, and the sync is most of it. With several syncs per write, or several writes per sync, the
/// period would not be their sum.
///
/// The write is part of the period, so the ratios are not reciprocal: `ln sync = -c ln rate`, with
/// `c` near 1. The interval is raised to the power `c`, so that its end reaches 1 when that of the
/// other does. For ratios near 1, `c` is random. The interval of the sync is then wider than that
/// of the rate by the inverse of the sync's share of the period.
pub(super) fn join_rates_and_syncs(
    rows: &mut [ComparisonRow],
    pairs: &[(&ResultPart, &ResultPart)],
) {
    for (mine, theirs) in pairs {
        let place = |subject, measure| {
            let is_it = |row: &ComparisonRow| {
                row.part == mine.name && row.subject == subject && row.measure == measure
            };
            rows.iter().position(is_it)
        };
        let rate = place(Subject::Write, Measure::Iops);
        let sync = place(Subject::Sync, Measure::LatMean);
        let write = place(Subject::Write, Measure::LatMean)
            .or_else(|| place(Subject::Write, Measure::ClatMean));
        let (Some(rate), Some(write), Some(sync)) = (rate, write, sync) else {
            continue;
        };
        let values = |row: usize| [rows[row].a.value, rows[row].b.value];
        let (rates, writes, syncs) = (values(rate), values(write), values(sync));
        let share = |side: usize, part: &ResultPart| {
            let period_ns = f64::from(part.pattern.numjobs) * 1e9 / rates[side];
            let is_sum = ((writes[side] + syncs[side]) / period_ns - 1.0).abs() < PERIOD_WITHIN;
            let share = syncs[side] / period_ns;
            let is_it = part.pattern.iodepth == 1 && is_sum && share >= SYNC_SHARE_MIN;
            is_it.then_some(share.min(1.0))
        };
        let (Some(of_mine), Some(of_theirs)) = (share(0, mine), share(1, theirs)) else {
            continue;
        };
        let share = of_mine.min(of_theirs);
        let (from, to, link) = match rows[rate].ratio.interval {
            Some(_) => (rate, sync, RatioRelation::to_sync(share)),
            None => (sync, rate, RatioRelation::to_rate(share)),
        };
        let source = rows[from].clone();
        if !is_bounded(&source.ratio) {
            continue;
        }
        let target = &mut rows[to];
        let value = target.ratio.value;
        target.ratio.interval = link.interval_around(value, &source.ratio);
        target.joint.interval = link.interval_around(value, &source.joint);
        target.verdict = ComparisonVerdict::from_ratio(&target.ratio, target.measure);
    }
}

/// Relation between the ratios of two rows: one is a power of the other's reciprocal.
struct RatioRelation {
    /// Plausible powers.
    powers: std::ops::RangeInclusive<f64>,
    /// Power for a write latency that is equal on both sides.
    usual: f64,
}

impl RatioRelation {
    fn to_sync(share: f64) -> RatioRelation {
        assert!(
            share > 0.0 && share <= 1.0,
            "the sync is a part of the period: {share}"
        );
        RatioRelation {
            powers: POWER_MIN..=POWER_MAX,
            usual: 1.0 / share,
        }
    }

    fn to_rate(share: f64) -> RatioRelation {
        RatioRelation {
            powers: 1.0 / POWER_MAX..=1.0 / POWER_MIN,
            usual: share,
        }
    }

    /// Returns the interval around the ratio `value`, derived from the interval of the other row.
    fn interval_around(&self, value: f64, source: &Ratio) -> Option<(f64, f64)> {
        let (low, high) = reciprocal(source)?;
        let power = -value.ln() / source.value.ln();
        let (low, high) = match self.powers.contains(&power) {
            true => (low.powf(power), high.powf(power)),
            false => {
                let around = |end: f64| value * (end * source.value).powf(self.usual);
                (around(low), around(high))
            }
        };
        // Powers round: an interval without width could end beside the value.
        Some((low.min(value), high.max(value)))
    }
}

fn contains(interval: Option<(f64, f64)>, value: f64) -> bool {
    interval.is_some_and(|(low, high)| (low..=high).contains(&value))
}

fn is_rate(row: &ComparisonRow) -> bool {
    matches!(row.measure, Measure::Iops | Measure::BytesPerS)
}

fn is_mean_latency(row: &ComparisonRow) -> bool {
    matches!(row.measure, Measure::LatMean | Measure::ClatMean)
}

/// Returns whether one ratio is the reciprocal of the other.
fn agree(latency: &ComparisonRow, rate: &ComparisonRow) -> bool {
    (latency.ratio.value * rate.ratio.value - 1.0).abs() < RECIPROCAL_WITHIN
}

/// Returns whether an interval is informative. An interval that reaches zero is not.
fn is_bounded(ratio: &Ratio) -> bool {
    const FACTOR_MAX: f64 = 1000.0;
    ratio
        .interval
        .is_some_and(|(low, high)| low * FACTOR_MAX > 1.0 && high < FACTOR_MAX)
}

fn reciprocal(ratio: &Ratio) -> Option<(f64, f64)> {
    let (low, high) = ratio.interval?;
    // A joint interval may end at zero, and its reciprocal then has no bound.
    Some((1.0 / high, 1.0 / low.max(f64::MIN_POSITIVE)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::matching::matching;
    use crate::compare::sides::comparison_rows;
    use crate::compare::{
        Bounds, ComparisonVerdict, Figure, IntervalBasis, IoPattern, MeasuredResult, ResultPart,
        Subject, compare,
    };
    use proptest::prelude::*;

    /// Returns a figure with an interval of this relative half-width.
    fn figure(measure: Measure, value: f64, share: Option<f64>) -> Figure {
        let bounds = share.map(|share| Bounds {
            low: value * (1.0 - share),
            high: value * (1.0 + share),
            freedom: 20.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        });
        Figure {
            subject: Subject::Read,
            measure,
            value,
            bounds,
            settled: None,
        }
    }

    fn measured(iops: f64, mean_ns: f64, shares: [Option<f64>; 2]) -> [MeasuredResult; 1] {
        let part = ResultPart {
            name: "random_read".into(),
            pattern: IoPattern::default(),
            figures: vec![
                figure(Measure::Iops, iops, shares[0]),
                figure(Measure::LatMean, mean_ns, shares[1]),
            ],
            role: Default::default(),
        };
        [MeasuredResult {
            name: "one".into(),
            machine: None,
            parts: vec![part],
        }]
    }

    /// Returns the rows with their own intervals, and as `compare` joins them.
    fn joined(shares: [Option<f64>; 2], mean_ns: f64) -> (Vec<ComparisonRow>, Vec<ComparisonRow>) {
        let a = measured(2000.0, 500e3, shares);
        let b = measured(1620.0, mean_ns, shares);
        let apart = comparison_rows(&a, &b, &matching(&a, &b).pairs);
        (apart, compare(&a, &b).rows)
    }

    #[test]
    fn rate_and_mean_latency_of_a_closed_loop_have_one_verdict() {
        let (before, after) = joined([Some(0.125), Some(0.16)], 500e3 / 0.81);
        let verdicts = |rows: &[ComparisonRow]| [rows[0].verdict, rows[1].verdict];
        assert_eq!(
            verdicts(&before),
            [
                ComparisonVerdict::Slower,
                ComparisonVerdict::NoDifferenceShown
            ]
        );
        assert_eq!(verdicts(&after), [ComparisonVerdict::Slower; 2]);
        let [rate, latency] = [0, 1].map(|row| after[row].ratio.interval.unwrap());
        assert!((rate.0 * latency.1 - 1.0).abs() < 1e-9, "{latency:?}");
        assert_eq!(after[0], before[0]);
    }

    #[test]
    fn rate_without_interval_has_that_of_its_latency() {
        let (before, after) = joined([None, Some(0.05)], 500e3 / 0.81);
        assert_eq!(before[0].verdict, ComparisonVerdict::Undecided);
        assert_eq!(after[0].verdict, ComparisonVerdict::Slower);
        assert_eq!(after[1], before[1]);
    }

    /// Returns [`joined_writes`] for writes of 50 us, each with a sync of `sync_us` microseconds.
    fn joined_syncs(
        shares: [Option<f64>; 2],
        sync_us: [f64; 2],
        change: f64,
    ) -> [[ComparisonRow; 2]; 2] {
        joined_writes(50.0, shares, sync_us, change)
    }

    /// Returns the rows of rate and sync for writes of `write_us` microseconds with a sync after
    /// each: first with their own intervals, then as `compare` joins them.
    fn joined_writes(
        write_us: f64,
        shares: [Option<f64>; 2],
        sync_us: [f64; 2],
        change: f64,
    ) -> [[ComparisonRow; 2]; 2] {
        let side = |sync_us: f64| {
            let rate = change * 1e6 / (write_us + sync_us);
            let mut side = measured(rate, write_us * 1e3, [shares[0], None]);
            let part = &mut side[0].parts[0];
            (part.pattern.iodepth, part.pattern.numjobs) = (1, 1);
            for figure in &mut part.figures {
                figure.subject = Subject::Write;
            }
            part.figures.push(Figure {
                subject: Subject::Sync,
                ..figure(Measure::LatMean, sync_us * 1e3, shares[1])
            });
            side
        };
        let (a, b) = (side(sync_us[0]), side(sync_us[1]));
        let both = |rows: Vec<ComparisonRow>| {
            let find = |subject, measure| {
                let is_it = |row: &&ComparisonRow| row.subject == subject && row.measure == measure;
                rows.iter().find(is_it).cloned().unwrap()
            };
            [
                find(Subject::Write, Measure::Iops),
                find(Subject::Sync, Measure::LatMean),
            ]
        };
        let apart = comparison_rows(&a, &b, &matching(&a, &b).pairs);
        [both(apart), both(compare(&a, &b).rows)]
    }

    fn verdicts(rows: &[ComparisonRow; 2]) -> [ComparisonVerdict; 2] {
        [rows[0].verdict, rows[1].verdict]
    }

    #[test]
    fn rate_and_sync_of_each_write_have_one_verdict() {
        let [before, after] = joined_syncs([Some(0.16), Some(0.12)], [950.0, 760.0], 1.0);
        assert_eq!(
            verdicts(&before),
            [
                ComparisonVerdict::NoDifferenceShown,
                ComparisonVerdict::Faster
            ]
        );
        assert_eq!(verdicts(&after), [ComparisonVerdict::NoDifferenceShown; 2]);
        assert_eq!(after[0], before[0]);
        // The rate is 46.5 times as high. A sync that takes a fiftieth is not its reciprocal.
        let [_, after] = joined_syncs([Some(0.16), Some(0.9)], [9950.0, 165.0], 1.0);
        assert_eq!(verdicts(&after), [ComparisonVerdict::Faster; 2]);
        let (low, high) = after[1].ratio.interval.unwrap();
        let value = after[1].ratio.value;
        assert!(low < value && value < high && high < 0.03, "{low} {high}");
    }

    #[test]
    fn rate_without_interval_has_that_of_its_sync() {
        let [before, after] = joined_syncs([None, Some(0.05)], [950.0, 760.0], 1.0);
        assert_eq!(before[0].verdict, ComparisonVerdict::Undecided);
        assert_eq!(verdicts(&after), [ComparisonVerdict::Faster; 2]);
        assert_eq!(after[1], before[1]);
        // The write is first a quarter and finally half of the period.
        let [before, after] = joined_writes(400.0, [None, Some(0.22)], [1100.0, 450.0], 1.0);
        assert_eq!(before[1].verdict, ComparisonVerdict::Faster);
        assert_eq!(verdicts(&after), [ComparisonVerdict::Faster; 2]);
    }

    /// For equal devices the ratios do not determine each other, but the widths of their intervals
    /// do.
    #[test]
    fn sync_interval_of_equal_devices_has_the_width_of_the_rate() {
        let [before, after] = joined_syncs([Some(0.16), Some(0.001)], [950.0, 955.0], 1.0);
        assert_eq!(before[1].verdict, ComparisonVerdict::Slower);
        assert_eq!(verdicts(&after), [ComparisonVerdict::NoDifferenceShown; 2]);
    }

    /// 32 writes per sync, or time between the calls: the rate does not follow from the sync.
    #[test]
    fn sync_that_is_not_the_period_keeps_its_own() {
        for change in [32.0, 0.8] {
            let [before, after] = joined_syncs([Some(0.16), Some(0.12)], [950.0, 760.0], change);
            assert_eq!(before, after, "{change}");
        }
    }

    /// The rate is 1.645 times as high and the latency 0.610 times as long. The reciprocal interval
    /// of the rate, 0.608 to 0.608, does not contain the ratio of the latency.
    #[test]
    fn latency_outside_of_the_rate_interval_keeps_its_own() {
        let share = 0.0003;
        let a = measured(1000.0, 1e6, [Some(share), Some(0.01)]);
        let b = measured(1645.0, 0.61e6, [Some(share), Some(0.01)]);
        let apart = comparison_rows(&a, &b, &matching(&a, &b).pairs);
        let joined = compare(&a, &b).rows;
        assert_eq!(joined, apart);
        let (low, high) = joined[1].ratio.interval.unwrap();
        assert!(
            (low..=high).contains(&joined[1].ratio.value),
            "{low} {high}"
        );
    }

    proptest! {
        #[test]
        fn joined_interval_contains_its_ratio(
            rates in (10.0f64..1e6, 0.2f64..5.0),
            latency_error in 0.99f64..1.01,
            shares in (0.0f64..0.2, 0.0f64..0.2),
            known in (any::<bool>(), any::<bool>()),
        ) {
            let shares = [known.0.then_some(shares.0), known.1.then_some(shares.1)];
            let a = measured(rates.0, 1e9 / rates.0, shares);
            let b_rate = rates.0 * rates.1;
            let b = measured(b_rate, 1e9 / b_rate * latency_error, shares);
            for row in compare(&a, &b).rows {
                for ratio in [row.ratio, row.joint] {
                    if let Some((low, high)) = ratio.interval {
                        prop_assert!((low..=high).contains(&ratio.value), "{ratio:?}");
                    }
                }
            }
        }

        #[test]
        fn joined_sync_interval_contains_its_ratio(
            sync_us in (100.0f64..10_000.0, 100.0f64..10_000.0),
            shares in (0.0f64..0.2, 0.0f64..0.2),
            known in (any::<bool>(), any::<bool>()),
        ) {
            let shares = [known.0.then_some(shares.0), known.1.then_some(shares.1)];
            let [_, joined] = joined_syncs(shares, [sync_us.0, sync_us.1], 1.0);
            for row in joined {
                if let Some((low, high)) = row.ratio.interval {
                    prop_assert!((low..=high).contains(&row.ratio.value), "{:?}", row.ratio);
                }
            }
        }
    }

    /// At an offered rate, and with think time, rate and latency are two facts.
    #[test]
    fn latency_that_does_not_follow_from_the_rate_keeps_its_own() {
        let (before, after) = joined([Some(0.125), Some(0.16)], 500e3);
        assert_eq!(before, after);
    }
}
