//! Remaining time of a study, which changes while the study runs.

use iosonde_study::TimeRange;
use std::time::Instant;

/// A line is printed if the estimate exceeds that of the last line by this factor.
const LONGER: f64 = 1.25;

/// Remaining time as last printed, and as estimated now.
#[derive(Debug, Default)]
pub(crate) struct TimeLeft {
    /// Latest estimate.
    now: Option<TimeLeftEstimate>,
    /// Estimate of the last line printed.
    printed: Option<TimeLeftEstimate>,
}

#[derive(Debug, Clone, Copy)]
struct TimeLeftEstimate {
    left: TimeRange,
    at: Instant,
}

impl TimeLeftEstimate {
    /// Remaining time at a later moment.
    fn at(self, now: Instant) -> TimeRange {
        let elapsed_ns = now.duration_since(self.at).as_nanos() as u64;
        TimeRange {
            least_ns: self.left.least_ns.saturating_sub(elapsed_ns),
            most_ns: self.left.most_ns.saturating_sub(elapsed_ns),
        }
    }
}

impl TimeLeft {
    /// Records the announced time, for which another function has printed a line.
    pub(crate) fn announce(&mut self, left: TimeRange) {
        let at = Instant::now();
        self.printed = Some(TimeLeftEstimate { left, at });
    }

    /// Records an estimate. Returns a line if it is the first, or much longer than the last line.
    pub(crate) fn take(&mut self, left: TimeRange) -> Option<String> {
        self.take_at(left, Instant::now())
    }

    fn take_at(&mut self, left: TimeRange, at: Instant) -> Option<String> {
        self.now = Some(TimeLeftEstimate { left, at });
        let line = match self.printed {
            None => Some(format!("{} left", left.words())),
            Some(printed) => {
                let is_longer = left.most_ns as f64 > LONGER * printed.at(at).most_ns as f64;
                is_longer.then(|| format!("longer than announced: {} left", left.words()))
            }
        };
        if line.is_some() {
            self.printed = self.now;
        }
        line
    }

    /// Remaining time by now: `27 s to 2 min`. `None` without an estimate.
    pub(crate) fn words(&self) -> Option<String> {
        let now = self.now?.at(Instant::now());
        Some(now.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_left_is_printed_again_only_when_it_grows() {
        let began = Instant::now();
        let second = |seconds: u64| began + Duration::from_secs(seconds);
        let range = |least: u64, most: u64| TimeRange::from_steps(least, most, 1_000_000_000);
        let mut left = TimeLeft::default();
        let mut take = |range: TimeRange, at: u64| left.take_at(range, second(at));
        assert_eq!(
            take(range(40, 100), 0).as_deref(),
            Some("40 s to 1 min 40 s left")
        );
        assert_eq!(take(range(20, 80), 20), None);
        assert_eq!(take(range(30, 70), 40), None);
        assert_eq!(
            take(range(120, 120), 60).as_deref(),
            Some("longer than announced: about 2 min left")
        );
        assert_eq!(take(range(90, 100), 80), None);
    }
}
