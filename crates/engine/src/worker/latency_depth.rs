//! `latency_target`: finds the largest depth at which latency stays below the target.

use iosonde_job::plan::LatencyTarget;

/// Searches the depth by doubling, then bisection, one window per step.
#[derive(Debug, Clone)]
pub(crate) struct DepthControl {
    rule: LatencyTarget,
    depth: u32,
    /// Largest depth known to meet the target; 0 if none is known.
    good: u32,
    /// Smallest depth known to miss the target; iodepth + 1 if none is known.
    bad: u32,
    window_start_ns: u64,
    ios: u64,
    late: u64,
    /// I/Os in flight from the previous depth: their latencies say nothing about this depth.
    left_over: u32,
    settled: bool,
    missed: bool,
}

impl DepthControl {
    /// Starts the search at depth 1.
    pub(crate) fn new(rule: LatencyTarget, iodepth: u32, start_ns: u64) -> DepthControl {
        DepthControl {
            rule,
            depth: 1,
            good: 0,
            bad: iodepth + 1,
            window_start_ns: start_ns,
            ios: 0,
            late: 0,
            left_over: 0,
            settled: false,
            missed: false,
        }
    }

    /// Returns the depth in force.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the search is over and the job ends with it.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether the job fails: the percentile is 100 and a single I/O missed the target at depth 1.
    /// As in fio, with a lower percentile the job continues at depth 1 until the target is met.
    pub(crate) fn is_missed(&self) -> bool {
        self.missed
    }

    /// Records a completed I/O.
    pub(crate) fn completed(&mut self, latency_ns: u64, now_ns: u64) {
        if self.left_over > 0 {
            self.left_over -= 1;
            self.window_start_ns = now_ns;
            return;
        }
        self.ios += 1;
        let is_late = latency_ns > self.rule.target_ns;
        self.late += u64::from(is_late);
        self.missed |= is_late && self.depth == 1 && self.rule.percentile >= 100.0;
        if now_ns.saturating_sub(self.window_start_ns) < self.rule.window_ns {
            return;
        }
        assert!(
            self.late <= self.ios,
            "{} of {} I/Os were late",
            self.late,
            self.ios
        );
        let in_time_percent = 100.0 * (self.ios - self.late) as f64 / self.ios as f64;
        let kept = in_time_percent >= self.rule.percentile;
        if kept {
            self.good = self.depth;
        } else {
            self.bad = self.depth;
        }
        let last = self.depth;
        self.next_depth(kept);
        self.left_over = if self.depth == last { 0 } else { last };
        (self.window_start_ns, self.ios, self.late) = (now_ns, 0, 0);
    }

    fn next_depth(&mut self, kept: bool) {
        if self.bad <= self.good {
            // A good depth became bad (`latency_run`, or depth 1): search again below it.
            self.good = 0;
        }
        if self.bad - self.good <= 1 {
            self.depth = self.good.max(1);
            self.settled = !self.rule.run && (kept || self.good > 0);
        } else {
            let doubled = (self.good * 2).max(1);
            self.depth = if doubled < self.bad {
                doubled
            } else {
                self.good + (self.bad - self.good) / 2
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET_NS: u64 = 1_000;

    fn control(percentile: f64, iodepth: u32) -> DepthControl {
        let rule = LatencyTarget {
            target_ns: TARGET_NS,
            window_ns: 10,
            percentile,
            run: false,
        };
        DepthControl::new(rule, iodepth, 0)
    }

    /// Returns the depth found, if any, where I/Os are in time up to depth `limit`.
    fn settle(limit: u32, iodepth: u32, percentile: f64) -> Option<u32> {
        let mut control = control(percentile, iodepth);
        for window in 1..2_000 {
            if control.is_settled() {
                break;
            }
            let is_late = control.depth() > limit;
            let latency_ns = if is_late {
                2 * TARGET_NS
            } else {
                TARGET_NS / 2
            };
            control.completed(latency_ns, window * 20);
        }
        control.is_settled().then(|| control.depth())
    }

    #[test]
    fn search_finds_the_largest_depth_within_the_target() {
        for limit in 1..=64 {
            assert_eq!(settle(limit, 64, 100.0), Some(limit));
        }
        assert_eq!(settle(500, 64, 100.0), Some(64), "never above iodepth");
        assert_eq!(
            settle(1, 1, 100.0),
            Some(1),
            "nothing to search, but one window"
        );
    }

    #[test]
    fn latency_target_missed_at_every_depth_finds_none() {
        for percentile in [90.0, 100.0] {
            assert_eq!(settle(0, 64, percentile), None);
            assert_eq!(settle(0, 1, percentile), None);
        }
    }

    #[test]
    fn late_io_misses_a_target_of_100_percent() {
        for (percentile, misses) in [(100.0, true), (99.0, false)] {
            let mut control = control(percentile, 4);
            control.completed(TARGET_NS, 1);
            assert!(!control.is_missed());
            control.completed(TARGET_NS + 1, 2);
            assert_eq!(control.is_missed(), misses, "{percentile}");
        }
    }

    #[test]
    fn search_stays_at_depth_one_until_the_target_is_met() {
        let mut control = control(90.0, 4);
        control.completed(2 * TARGET_NS, 20);
        assert!(!control.is_settled());
        control.completed(TARGET_NS, 40);
        assert!(control.is_settled());
        assert_eq!(control.depth(), 1);
    }
}
