//! `latency_target`: the largest depth at which latency stays below the target.

use iosonde_job::plan::LatencyTarget;

/// Finds the depth by bisection, one window at a time.
#[derive(Debug, Clone)]
pub struct DepthControl {
    rule: LatencyTarget,
    depth: u32,
    /// Largest depth known to keep the target; 0 is none yet.
    good: u32,
    /// Smallest depth known to break it; one more than the job's iodepth when none is.
    bad: u32,
    window_start_ns: u64,
    ios: u64,
    late: u64,
    /// Completions still to come of I/Os that were issued at the last depth: they say nothing about this one.
    left_over: u32,
    settled: bool,
}

impl DepthControl {
    /// Begins at depth 1.
    pub fn new(rule: LatencyTarget, iodepth: u32, start_ns: u64) -> DepthControl {
        let settled = iodepth == 1 && !rule.run;
        DepthControl {
            rule,
            depth: 1,
            good: 0,
            bad: iodepth + 1,
            window_start_ns: start_ns,
            ios: 0,
            late: 0,
            left_over: 0,
            settled,
        }
    }

    /// The depth to use now.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the depth is found and the job is to end with that.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// An I/O has completed.
    pub fn completed(&mut self, latency_ns: u64, now_ns: u64) {
        if self.left_over > 0 {
            self.left_over -= 1;
            self.window_start_ns = now_ns;
            return;
        }
        self.ios += 1;
        self.late += u64::from(latency_ns > self.rule.target_ns);
        if now_ns.saturating_sub(self.window_start_ns) < self.rule.window_ns {
            return;
        }
        let in_time_percent = 100.0 * (self.ios - self.late) as f64 / self.ios as f64;
        if in_time_percent >= self.rule.percentile {
            self.good = self.depth;
        } else {
            self.bad = self.depth;
        }
        let last = self.depth;
        self.next_depth();
        self.left_over = if self.depth == last { 0 } else { last };
        (self.window_start_ns, self.ios, self.late) = (now_ns, 0, 0);
    }

    fn next_depth(&mut self) {
        if self.bad <= self.good {
            // What was good has become bad, which only happens with `latency_run`: look again below.
            self.good = 0;
        }
        if self.bad - self.good <= 1 {
            self.depth = self.good.max(1);
            self.settled = !self.rule.run;
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

    fn settle(limit: u32, iodepth: u32) -> u32 {
        let rule = LatencyTarget {
            target_ns: 1_000,
            window_ns: 10,
            percentile: 100.0,
            run: false,
        };
        let mut control = DepthControl::new(rule, iodepth, 0);
        let mut now_ns = 0;
        for _ in 0..2_000 {
            if control.is_settled() {
                break;
            }
            now_ns += 20;
            control.completed(if control.depth() > limit { 2_000 } else { 500 }, now_ns);
        }
        assert!(control.is_settled());
        control.depth()
    }

    #[test]
    fn finds_the_largest_depth_that_keeps_the_target() {
        for limit in 1..=64 {
            assert_eq!(settle(limit, 64), limit);
        }
        assert_eq!(settle(500, 64), 64, "never above iodepth");
        assert_eq!(settle(0, 64), 1, "never below 1");
    }
}
