//! The time that a study will still take, as it changes while the study goes on.

use iosonde_study::TimeRange;
use std::time::Instant;

/// An estimate that exceeds the last line by this factor is worth another line.
const LONGER: f64 = 1.25;

/// What was said of the time left, and what is known of it now.
#[derive(Debug, Default)]
pub(crate) struct TimeLeft {
    /// The last estimate.
    now: Option<Estimate>,
    /// The one of which a line was printed.
    told: Option<Estimate>,
}

#[derive(Debug, Clone, Copy)]
struct Estimate {
    left: TimeRange,
    at: Instant,
}

impl Estimate {
    /// What is left of it later.
    fn at(self, now: Instant) -> TimeRange {
        let elapsed_ns = now.duration_since(self.at).as_nanos() as u64;
        TimeRange {
            least_ns: self.left.least_ns.saturating_sub(elapsed_ns),
            most_ns: self.left.most_ns.saturating_sub(elapsed_ns),
        }
    }
}

impl TimeLeft {
    /// What was announced, of which a line was printed elsewhere.
    pub(crate) fn announce(&mut self, left: TimeRange) {
        let at = Instant::now();
        self.told = Some(Estimate { left, at });
    }

    /// A new estimate. Returns a line if it is the first, or much longer than the last line said.
    pub(crate) fn take(&mut self, left: TimeRange) -> Option<String> {
        self.take_at(left, Instant::now())
    }

    fn take_at(&mut self, left: TimeRange, at: Instant) -> Option<String> {
        self.now = Some(Estimate { left, at });
        let line = match self.told {
            None => Some(format!("{} left", left.words())),
            Some(told) => {
                let is_longer = left.most_ns as f64 > LONGER * told.at(at).most_ns as f64;
                is_longer.then(|| format!("takes longer than announced: {} left", left.words()))
            }
        };
        if line.is_some() {
            self.told = self.now;
        }
        line
    }

    /// For the line that is redrawn: `  27 s to 2 min left`; nothing as long as nothing is known.
    pub(crate) fn words(&self) -> String {
        let now = self.now.map(|now| now.at(Instant::now()));
        now.map_or(String::new(), |left| format!("  {} left", left.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_left_is_told_again_only_when_it_grows() {
        let began = Instant::now();
        let second = |seconds: u64| began + Duration::from_secs(seconds);
        let range = |least: u64, most: u64| TimeRange::of_steps(least, most, 1_000_000_000);
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
            Some("takes longer than announced: about 2 min left")
        );
        assert_eq!(take(range(90, 100), 80), None);
    }
}
