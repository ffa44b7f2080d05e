//! `steadystate`: ends a job once its rate is stable.

use crate::counters::WorkerCounters;
use iosonde_job::plan::{Direction, Job, SteadyMetric, SteadyState};
use iosonde_result::run::SteadyStateResult;
use std::collections::VecDeque;
use std::sync::Arc;

/// fio's clock of checks starts with the program, about 0.1 s before its jobs. The first check of a
/// job is early by the check interval divided by this.
const LEAD_OF_CHECKS: u64 = 10;

/// Wait after `ss_ramp` in fio, whatever the check interval is.
const AFTER_RAMP_NS: u64 = 1_000_000_000;

/// Rates of one check interval: a second, or `ss_interval`.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    iops: u64,
    bytes: u64,
    latency_ns: u64,
}

/// Counts so far: I/Os, bytes, and the sum of the latencies.
#[derive(Debug, Clone, Copy, Default)]
struct SteadyCounts {
    ios: u64,
    bytes: u64,
    latency_sum_ns: u64,
}

impl SteadyCounts {
    fn add(&mut self, shared: &WorkerCounters) {
        self.latency_sum_ns += shared.latency_sum_ns.get();
        for direction in Direction::ALL {
            let counts = shared.counts(direction);
            self.ios += counts.ios;
            self.bytes += counts.bytes;
        }
    }
}

/// All watches: one per worker, or with `group_reporting` one per group, as in fio.
#[derive(Debug, Default)]
pub(super) struct SteadyWatches {
    watches: Vec<SteadyWatch>,
    /// Start of the first jobs of the run.
    first_start_ns: Option<u64>,
}

impl SteadyWatches {
    /// Adds a worker of `job` that starts at `start_ns`.
    pub(super) fn start(&mut self, number: usize, job: &Job, start_ns: u64) {
        let first_start_ns = *self.first_start_ns.get_or_insert(start_ns);
        let Some(rule) = job.schedule.steady_state else {
            return;
        };
        let group = job.measure.group_reporting.then_some(job.groupid);
        let of_group = |watch: &&mut SteadyWatch| group.is_some() && watch.group == group;
        if let Some(watch) = self.watches.iter_mut().find(of_group) {
            watch.members.push(number);
            return;
        }
        let mut watch = SteadyWatch::new(rule, start_ns, job.schedule.ramp_time_ns);
        if job.schedule.ramp_time_ns == 0 {
            watch.align(first_start_ns);
        }
        (watch.group, watch.members) = (group, vec![number]);
        self.watches.push(watch);
    }

    /// Returns when the next check is due.
    pub(super) fn next_check_ns(&self) -> Option<u64> {
        let open = self.watches.iter().filter(|watch| !watch.is_over);
        open.map(|watch| watch.next_ns).min()
    }

    /// Checks the workers' counts. Returns the workers to stop, whose steady state is attained.
    pub(super) fn check_counts(
        &mut self,
        now_ns: u64,
        shared: &[Arc<WorkerCounters>],
        is_running: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut attained = Vec::new();
        for watch in &mut self.watches {
            watch.is_over = watch.attained || !watch.members.iter().any(|it| is_running(*it));
            if watch.is_over {
                continue;
            }
            let mut moved = SteadyCounts::default();
            for member in &watch.members {
                moved.add(&shared[*member]);
            }
            if watch.check_rates(now_ns, moved) {
                attained.extend(watch.members.iter().filter(|it| is_running(**it)));
            }
        }
        attained
    }

    /// Returns the result for a worker or its group.
    pub(super) fn result(&self, number: usize, job: &Job) -> Option<SteadyStateResult> {
        let rule = job.schedule.steady_state?;
        let watch = (self.watches.iter()).find(|watch| watch.members.contains(&number));
        let result = watch.map(SteadyWatch::result);
        Some(result.unwrap_or_else(|| SteadyWatch::new(rule, 0, 0).result()))
    }
}

/// Watches one worker or group.
#[derive(Debug)]
struct SteadyWatch {
    rule: SteadyState,
    /// The watched reporting group; `None` stands for one worker.
    group: Option<u32>,
    members: Vec<usize>,
    is_over: bool,
    /// Start of the measured time.
    start_ns: u64,
    /// Start of the samples that count.
    from_ns: u64,
    /// Time of the next check.
    next_ns: u64,
    /// Time of the last check.
    last_ns: u64,
    /// Whether the ramp of the job is over.
    has_begun: bool,
    before: SteadyCounts,
    window: VecDeque<Second>,
    criterion: f64,
    max_deviation: f64,
    slope: f64,
    attained: bool,
}

impl SteadyWatch {
    /// Watches a job that starts at `start_ns` and is measured from the end of `ramp_time` on.
    fn new(rule: SteadyState, start_ns: u64, ramp_time_ns: u64) -> SteadyWatch {
        let start_ns = start_ns + ramp_time_ns;
        let settle_ns = match rule.ramp_ns {
            0 => 0,
            ramp_ns => ramp_ns + AFTER_RAMP_NS,
        };
        let has_begun = ramp_time_ns == 0;
        SteadyWatch {
            rule,
            group: None,
            members: Vec::new(),
            is_over: false,
            start_ns,
            from_ns: start_ns + settle_ns,
            // As in fio, the clock of checks restarts when a ramp is over.
            next_ns: if has_begun {
                start_ns + rule.interval_ns
            } else {
                start_ns
            },
            last_ns: start_ns,
            has_begun,
            before: SteadyCounts::default(),
            window: VecDeque::new(),
            criterion: 0.0,
            max_deviation: 0.0,
            slope: 0.0,
            attained: false,
        }
    }

    /// Aligns the checks to fio's clock, which starts shortly before the first jobs.
    fn align(&mut self, first_start_ns: u64) {
        let interval_ns = self.rule.interval_ns.max(1);
        let lead_ns = interval_ns / LEAD_OF_CHECKS;
        let clock_ns = (self.start_ns + lead_ns).saturating_sub(first_start_ns);
        self.next_ns = self.start_ns + interval_ns - clock_ns % interval_ns;
    }

    /// Checks the counts so far. Returns whether the steady state is attained.
    fn check_rates(&mut self, now_ns: u64, moved: SteadyCounts) -> bool {
        if self.attained || now_ns < self.next_ns {
            return self.attained;
        }
        let interval_ns = self.rule.interval_ns.max(1);
        self.next_ns += ((now_ns - self.next_ns) / interval_ns + 1) * interval_ns;
        let elapsed_ns = now_ns.saturating_sub(self.last_ns).max(1);
        let before = std::mem::replace(&mut self.before, moved);
        self.last_ns = now_ns;
        let had_begun = std::mem::replace(&mut self.has_begun, true);
        if !had_begun || now_ns < self.from_ns {
            return false;
        }
        let per_second = |amount: u64| (amount as f64 * 1e9 / elapsed_ns as f64).round() as u64;
        let ios = moved.ios - before.ios;
        self.window.push_back(Second {
            iops: per_second(ios),
            bytes: per_second(moved.bytes - before.bytes),
            latency_ns: (moved.latency_sum_ns - before.latency_sum_ns) / ios.max(1),
        });
        let wanted = self.rule.samples();
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

    /// Returns the result at the end.
    fn result(&self) -> SteadyStateResult {
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

/// Returns the slope of the least-squares line through equally spaced values.
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

    const SECOND_NS: u64 = 1_000_000_000;

    fn rule(slope: bool, limit: f64) -> SteadyState {
        SteadyState {
            metric: SteadyMetric::Iops,
            slope,
            limit,
            percent: true,
            duration_ns: 4 * SECOND_NS,
            ramp_ns: 0,
            interval_ns: SECOND_NS,
        }
    }

    fn attained_after(rule: SteadyState, rates: &[u64]) -> Option<usize> {
        let mut watch = SteadyWatch::new(rule, 0, 0);
        let mut moved = SteadyCounts::default();
        for (index, rate) in rates.iter().enumerate() {
            moved.ios += rate;
            if watch.check_rates((index as u64 + 1) * SECOND_NS, moved) {
                return Some(index + 1);
            }
        }
        None
    }

    #[test]
    fn steady_state_is_attained_at_small_deviation() {
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
    fn slope_rule_detects_a_trend() {
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
    fn idle_job_is_not_steady() {
        assert_eq!(attained_after(rule(false, 10.0), &[0; 10]), None);
    }

    /// Returns the times of the checks until `end_ns` in seconds, and the number of samples.
    fn checks(mut watch: SteadyWatch, end_ns: u64) -> (Vec<f64>, usize) {
        let (mut checks, mut moved) = (Vec::new(), SteadyCounts::default());
        while watch.next_ns <= end_ns {
            moved.ios += 100;
            checks.push(watch.next_ns as f64 / 1e9);
            watch.check_rates(watch.next_ns, moved);
        }
        (checks, watch.window.len())
    }

    #[test]
    fn steady_state_checks_are_early_and_aligned_after_ramp() {
        let ramp = |ramp_ns| SteadyState {
            ramp_ns,
            ..rule(false, 0.0)
        };
        let aligned = |rule, start_ns| {
            let mut watch = SteadyWatch::new(rule, start_ns, 0);
            watch.align(0);
            watch
        };
        let checks_until_4 = |watch| checks(watch, 4 * SECOND_NS);
        assert_eq!(
            checks_until_4(aligned(ramp(0), 0)),
            (vec![0.9, 1.9, 2.9, 3.9], 4)
        );
        // fio: at least one second after the ramp.
        assert_eq!(
            checks_until_4(aligned(ramp(SECOND_NS), 0)),
            (vec![0.9, 1.9, 2.9, 3.9], 2)
        );
        let late = aligned(ramp(0), SECOND_NS + SECOND_NS / 2);
        assert_eq!(checks_until_4(late), (vec![1.9, 2.9, 3.9], 3));
        let after_ramp_time = SteadyWatch::new(ramp(0), 0, SECOND_NS);
        assert_eq!(
            checks_until_4(after_ramp_time),
            (vec![1.0, 2.0, 3.0, 4.0], 3)
        );
    }
}
