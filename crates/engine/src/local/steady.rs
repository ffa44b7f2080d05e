//! `steadystate`: ending a job when its rate holds still.

use iosonde_job::plan::{SteadyMetric, SteadyState};
use iosonde_result::run::SteadyStateResult;
use std::collections::VecDeque;

/// One second (or `ss_interval`) of a job.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    iops: u64,
    bytes: u64,
    latency_ns: u64,
}

/// Watches one job.
#[derive(Debug)]
pub(super) struct SteadyWatch {
    rule: SteadyState,
    /// When samples begin to count.
    from_ns: u64,
    last_ns: u64,
    before: [u64; 3],
    window: VecDeque<Second>,
    criterion: f64,
    max_deviation: f64,
    slope: f64,
    attained: bool,
}

impl SteadyWatch {
    /// Watches a job that is measured from `start_ns` on.
    pub(super) fn new(rule: SteadyState, start_ns: u64) -> SteadyWatch {
        SteadyWatch {
            rule,
            from_ns: start_ns + rule.ramp_ns,
            last_ns: start_ns,
            before: [0; 3],
            window: VecDeque::new(),
            criterion: 0.0,
            max_deviation: 0.0,
            slope: 0.0,
            attained: false,
        }
    }

    /// Looks at the counts so far: I/Os, bytes, and the sum of their latencies. True once the state is attained.
    pub(super) fn look(&mut self, now_ns: u64, ios: u64, bytes: u64, latency_sum_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        if self.attained || elapsed_ns < self.rule.interval_ns.max(1) {
            return self.attained;
        }
        let [ios_before, bytes_before, latency_before] = self.before;
        (self.before, self.last_ns) = ([ios, bytes, latency_sum_ns], now_ns);
        if now_ns < self.from_ns + self.rule.interval_ns {
            return false;
        }
        let per_second = |amount: u64| (amount as f64 * 1e9 / elapsed_ns as f64).round() as u64;
        let moved = ios - ios_before;
        self.window.push_back(Second {
            iops: per_second(moved),
            bytes: per_second(bytes - bytes_before),
            latency_ns: (latency_sum_ns - latency_before) / moved.max(1),
        });
        let wanted = (self.rule.duration_ns / self.rule.interval_ns.max(1)).max(1) as usize;
        if self.window.len() > wanted {
            self.window.pop_front();
        }
        if self.window.len() == wanted {
            self.judge();
        }
        self.attained
    }

    fn judge(&mut self) {
        let values: Vec<f64> = self
            .window
            .iter()
            .map(|second| match self.rule.metric {
                SteadyMetric::Iops => second.iops as f64,
                SteadyMetric::Bandwidth => second.bytes as f64,
            })
            .collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        self.max_deviation = values
            .iter()
            .map(|value| (value - mean).abs())
            .fold(0.0, f64::max);
        self.slope = slope(&values);
        let measured = if self.rule.slope {
            self.slope.abs()
        } else {
            self.max_deviation
        };
        self.criterion = if self.rule.percent && mean > 0.0 {
            100.0 * measured / mean
        } else {
            measured
        };
        self.attained = mean > 0.0 && self.criterion < self.rule.limit;
    }

    /// What was found, in the end.
    pub(super) fn result(&self) -> SteadyStateResult {
        SteadyStateResult {
            attained: self.attained,
            criterion: self.criterion,
            max_deviation: self.max_deviation,
            slope: self.slope,
            iops: self.window.iter().map(|second| second.iops).collect(),
            bw_bytes: self.window.iter().map(|second| second.bytes).collect(),
            lat_ns: self.window.iter().map(|second| second.latency_ns).collect(),
        }
    }
}

/// Slope of the least-squares line through equally spaced values.
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let (mut above, mut below) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    if below == 0.0 { 0.0 } else { above / below }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(slope: bool, limit: f64) -> SteadyState {
        let second = 1_000_000_000;
        SteadyState {
            metric: SteadyMetric::Iops,
            slope,
            limit,
            percent: true,
            duration_ns: 4 * second,
            ramp_ns: 0,
            interval_ns: second,
        }
    }

    fn attained_after(rule: SteadyState, rates: &[u64]) -> Option<usize> {
        let mut watch = SteadyWatch::new(rule, 0);
        let mut total = 0;
        for (index, rate) in rates.iter().enumerate() {
            total += rate;
            if watch.look((index as u64 + 1) * 1_000_000_000, total, total, total) {
                return Some(index + 1);
            }
        }
        None
    }

    #[test]
    fn attained_when_the_last_window_deviates_little() {
        assert_eq!(
            attained_after(rule(false, 10.0), &[10, 50, 100, 101, 99, 100, 100]),
            Some(6)
        );
        assert_eq!(
            attained_after(rule(false, 10.0), &[10, 90, 20, 80, 10, 90]),
            None
        );
    }

    #[test]
    fn a_trend_is_seen_by_the_slope() {
        assert_eq!(
            attained_after(rule(true, 1.0), &[100, 110, 120, 130, 140, 150, 160]),
            None
        );
        assert_eq!(
            attained_after(rule(true, 1.0), &[100, 110, 100, 110]),
            None,
            "slope 2 of 105"
        );
        assert_eq!(
            attained_after(rule(true, 3.0), &[100, 110, 100, 110]),
            Some(4)
        );
    }

    #[test]
    fn an_idle_job_is_not_steady() {
        assert_eq!(attained_after(rule(false, 10.0), &[0; 10]), None);
    }
}
