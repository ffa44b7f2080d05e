//! One figure for each phase: rate, bandwidth and latency, with what is known about their error.

use super::phase::Phase;
use iosonde_job::plan::{Direction, Engine};
use iosonde_result::interval::Interval;
use iosonde_result::run::{IoFailure, RunResult, VerdictKind};
use iosonde_result::stats::LatencyStats;
use serde::{Deserialize, Serialize};

/// What one phase found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The phase.
    pub phase: Phase,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// I/Os kept in flight.
    pub iodepth: u32,
    /// What issued the I/O.
    pub engine: Engine,
    /// Whether O_DIRECT was in force.
    pub direct: bool,
    /// I/Os per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub bytes_per_s: Estimate,
    /// Completion latency of the reads or writes.
    pub latency: Latency,
    /// Latency of fdatasync(2), where the phase calls it.
    pub sync_latency: Option<Latency>,
    /// Whether the rate held still: `None` when the phase was too short to tell.
    pub settled: Option<bool>,
    /// The error that ended the phase early.
    pub failure: Option<IoFailure>,
}

/// A mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct Estimate {
    /// The mean over the whole phase.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` when there are too few intervals to tell.
    pub error: Option<f64>,
    /// Standard deviation from interval to interval, as a share of the mean; `None` as above.
    pub spread: Option<f64>,
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median; percentiles are `None` where too few were measured for them to mean anything.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// The longest.
    pub max_ns: f64,
}

impl Latency {
    /// Summary of what was recorded.
    pub fn of(stats: &LatencyStats) -> Latency {
        let count = stats.moments.count;
        // A percentile needs at least ten values beyond it, or one outlier decides it.
        let percentile = |percent: f64| {
            let beyond = count as f64 * (100.0 - percent) / 100.0;
            let histogram = stats.histogram.as_ref()?;
            if beyond + 1e-6 < 10.0 {
                return None;
            }
            histogram.percentile(percent)
        };
        Latency {
            count,
            mean_ns: stats.moments.mean,
            p50_ns: percentile(50.0),
            p99_ns: percentile(99.0),
            p99_9_ns: percentile(99.9),
            max_ns: stats.moments.max,
        }
    }
}

impl Figure {
    /// The figure of a run of one phase; `None` when nothing was measured.
    pub(super) fn of(phase: Phase, result: &RunResult) -> Option<Figure> {
        let direction = phase.direction();
        let worker = result.workers.first()?;
        let stats = &worker.directions[direction];
        if stats.total_ios == 0 || worker.runtime_ns == 0 {
            return None;
        }
        let seconds = worker.runtime_ns as f64 / 1e9;
        let complete = complete_intervals(&result.intervals);
        let unsteady = result
            .verdicts
            .iter()
            .any(|verdict| verdict.kind == VerdictKind::Unsteady);
        let rates = rates(&complete, direction, |counts| counts.ios);
        let ios = stats.total_ios as f64 / seconds;
        let bytes = stats.io_bytes as f64 / seconds;
        Some(Figure {
            phase,
            block_bytes: phase.block_bytes(),
            iodepth: phase.iodepth(),
            engine: worker.backend.engine,
            direct: worker.backend.direct,
            iops: Estimate::of(ios, &rates),
            bytes_per_s: Estimate::of(bytes, &self::rates(&complete, direction, |c| c.bytes)),
            latency: Latency::of(&stats.clat),
            sync_latency: (worker.sync.total_ios > 0).then(|| Latency::of(&worker.sync.lat)),
            settled: held_still(&rates).map(|settled| settled && !unsteady),
            failure: worker.error.clone(),
        })
    }
}

/// Intervals of the measured part that are not the cut-off last one.
fn complete_intervals(intervals: &[Interval]) -> Vec<&Interval> {
    let longest = intervals.iter().map(|i| i.length_ns).max().unwrap_or(0);
    intervals
        .iter()
        .filter(|interval| !interval.ramp && interval.length_ns > longest / 2)
        .collect()
}

fn rates(
    intervals: &[&Interval],
    direction: Direction,
    count: impl Fn(&iosonde_result::interval::IntervalCounts) -> u64,
) -> Vec<f64> {
    intervals
        .iter()
        .map(|interval| {
            count(&interval.directions[direction]) as f64 * 1e9 / interval.length_ns as f64
        })
        .collect()
}

impl Estimate {
    /// A mean and the rates of the intervals it is the mean of.
    pub fn of(mean: f64, rates: &[f64]) -> Estimate {
        if rates.len() < 4 || mean == 0.0 {
            return Estimate {
                mean,
                error: None,
                spread: None,
            };
        }
        let (centre, deviation) = moments(rates);
        // Neighbouring intervals resemble each other: fewer of them count as independent.
        let alike = lag_one_correlation(rates, centre).clamp(0.0, 0.9);
        let count = rates.len() as f64;
        let independent = (count * (1.0 - alike) / (1.0 + alike)).max(2.0);
        let error = student_t(independent - 1.0) * deviation / independent.sqrt();
        Estimate {
            mean,
            error: Some(error),
            spread: Some(deviation / mean),
        }
    }

    /// The error as a share of the mean.
    pub fn relative_error(&self) -> Option<f64> {
        self.error
            .filter(|_| self.mean > 0.0)
            .map(|error| error / self.mean)
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

fn lag_one_correlation(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    let products: f64 = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    products / squares
}

/// Two-sided 95 % quantile of Student's t, by the Cornish-Fisher expansion; exact to 1 % from 3 degrees of freedom on.
fn student_t(freedom: f64) -> f64 {
    const TABLE: [f64; 3] = [12.71, 4.303, 3.182];
    if freedom <= 3.0 {
        let index = (freedom.floor() as usize).clamp(1, 3) - 1;
        return TABLE[index];
    }
    let z = 1.959_964_f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// SNIA's test of a steady state: all within 20 % of the mean, and the fitted line moves by at most 10 % of it.
fn held_still(rates: &[f64]) -> Option<bool> {
    if rates.len() < 5 {
        return None;
    }
    let (mean, _) = moments(rates);
    let highest = rates.iter().copied().fold(f64::MIN, f64::max);
    let lowest = rates.iter().copied().fold(f64::MAX, f64::min);
    let middle = (rates.len() - 1) as f64 / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, rate) in rates.iter().enumerate() {
        products += (index as f64 - middle) * (rate - mean);
        squares += (index as f64 - middle).powi(2);
    }
    let excursion = (products / squares * (rates.len() - 1) as f64).abs();
    Some(highest - lowest <= 0.2 * mean && excursion <= 0.1 * mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::histogram::Histogram;

    #[test]
    fn quantiles_of_students_t() {
        for (freedom, exact) in [(1.0, 12.71), (3.0, 3.182), (4.0, 2.776), (7.0, 2.365)] {
            let ours = student_t(freedom);
            assert!((ours - exact).abs() < 0.01 * exact, "{freedom}: {ours}");
        }
    }

    #[test]
    fn neighbours_that_are_alike_widen_the_interval() {
        let back_and_forth = [9.0, 11.0, 9.0, 11.0, 9.0, 11.0, 9.0, 11.0];
        let in_steps = [9.0, 9.0, 9.0, 9.0, 11.0, 11.0, 11.0, 11.0];
        let narrow = Estimate::of(10.0, &back_and_forth).error.unwrap();
        let wide = Estimate::of(10.0, &in_steps).error.unwrap();
        assert!(wide > 1.5 * narrow, "{narrow} {wide}");
        assert_eq!(Estimate::of(10.0, &[9.0, 11.0]).error, None);
        assert_eq!(Estimate::of(10.0, &[10.0; 8]).error, Some(0.0));
    }

    #[test]
    fn drift_is_not_a_steady_state() {
        assert_eq!(held_still(&[100.0; 8]), Some(true));
        let falling: Vec<f64> = (0..8).map(|i| 100.0 - 2.0 * f64::from(i)).collect();
        assert_eq!(held_still(&falling), Some(false));
        assert_eq!(held_still(&[100.0, 70.0, 100.0, 100.0, 100.0]), Some(false));
        assert_eq!(held_still(&[100.0; 4]), None);
    }

    #[test]
    fn percentiles_need_values_beyond_them() {
        let mut stats = LatencyStats {
            histogram: Some(Histogram::default()),
            ..LatencyStats::default()
        };
        for value in 1..=1000u32 {
            stats.moments.record(f64::from(value));
            if let Some(histogram) = &mut stats.histogram {
                histogram.record(u64::from(value));
            }
        }
        let latency = Latency::of(&stats);
        assert!(latency.p50_ns.is_some() && latency.p99_ns.is_some());
        assert_eq!(latency.p99_9_ns, None);
    }
}
