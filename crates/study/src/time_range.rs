//! [`TimeRange`]: predicted duration of a study, a range if the duration depends on its results.

use crate::words;
use serde::Serialize;
use std::ops::Add;

/// Bounds whose ratio is at most this are shown as one time.
const SAME: f64 = 1.1;

/// Shortest and longest duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TimeRange {
    /// Shortest duration in nanoseconds.
    pub least_ns: u64,
    /// Longest duration in nanoseconds.
    pub most_ns: u64,
}

impl TimeRange {
    /// A known duration.
    pub(crate) fn exactly(ns: u64) -> TimeRange {
        TimeRange {
            least_ns: ns,
            most_ns: ns,
        }
    }

    /// Multiplies both bounds by `count`.
    pub fn times(self, count: u64) -> TimeRange {
        TimeRange {
            least_ns: self.least_ns.saturating_mul(count),
            most_ns: self.most_ns.saturating_mul(count),
        }
    }

    /// Duration of `least` to `most` steps of equal length.
    pub fn from_steps(least: u64, most: u64, step_ns: u64) -> TimeRange {
        debug_assert!(least <= most);
        TimeRange {
            least_ns: least.saturating_mul(step_ns),
            most_ns: most.saturating_mul(step_ns),
        }
    }

    /// Formats the range: `about 40 s`, `27 s to 2 min 15 s`, or `at most 40 s`.
    pub fn words(self) -> String {
        let duration_words = |ns: u64| words::duration((ns as f64 / 1e9).max(1.0));
        let is_same = self.most_ns as f64 <= SAME * self.least_ns as f64;
        if self.least_ns == 0 && self.most_ns > 0 {
            return format!("at most {}", duration_words(self.most_ns));
        }
        match is_same || duration_words(self.least_ns) == duration_words(self.most_ns) {
            true => format!("about {}", duration_words(self.most_ns)),
            false => format!(
                "{} to {}",
                duration_words(self.least_ns),
                duration_words(self.most_ns)
            ),
        }
    }
}

impl Add for TimeRange {
    type Output = TimeRange;

    fn add(self, other: TimeRange) -> TimeRange {
        TimeRange {
            least_ns: self.least_ns.saturating_add(other.least_ns),
            most_ns: self.most_ns.saturating_add(other.most_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_words_name_one_time_where_bounds_agree() {
        let range_words = |least_s: u64, most_s: u64| {
            TimeRange::from_steps(least_s, most_s, 1_000_000_000).words()
        };
        assert_eq!(range_words(27, 135), "27 s to 2 min 15 s");
        assert_eq!(range_words(100, 105), "about 1 min 45 s");
        assert_eq!(range_words(0, 40), "at most 40 s");
        assert_eq!(range_words(0, 0), "about 1 s");
        assert_eq!(TimeRange::exactly(400_000_000).words(), "about 1 s");
    }
}
