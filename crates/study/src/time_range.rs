//! How long a study takes, as it says beforehand: a range where the length depends on what it finds.

use crate::words;
use std::ops::Add;

/// Bounds this close together are one time.
const SAME: f64 = 1.1;

/// Shortest and longest time of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// It takes this long at least, in nanoseconds.
    pub least_ns: u64,
    /// And this long at most.
    pub most_ns: u64,
}

impl TimeRange {
    /// A time that is known.
    pub fn exactly(ns: u64) -> TimeRange {
        TimeRange {
            least_ns: ns,
            most_ns: ns,
        }
    }

    /// The same so many times.
    pub fn times(self, count: u64) -> TimeRange {
        TimeRange {
            least_ns: self.least_ns.saturating_mul(count),
            most_ns: self.most_ns.saturating_mul(count),
        }
    }

    /// So many steps at least and at most, which take the same time each.
    pub fn of_steps(least: u64, most: u64, step_ns: u64) -> TimeRange {
        debug_assert!(least <= most);
        TimeRange {
            least_ns: least.saturating_mul(step_ns),
            most_ns: most.saturating_mul(step_ns),
        }
    }

    /// `about 40 s`, `27 s to 2 min 15 s`, or `at most 40 s`.
    pub fn words(self) -> String {
        let told = |ns: u64| words::duration((ns as f64 / 1e9).max(1.0));
        let is_same = self.most_ns as f64 <= SAME * self.least_ns as f64;
        if self.least_ns == 0 && self.most_ns > 0 {
            return format!("at most {}", told(self.most_ns));
        }
        match is_same || told(self.least_ns) == told(self.most_ns) {
            true => format!("about {}", told(self.most_ns)),
            false => format!("{} to {}", told(self.least_ns), told(self.most_ns)),
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
        let of =
            |least_s: u64, most_s: u64| TimeRange::of_steps(least_s, most_s, 1_000_000_000).words();
        assert_eq!(of(27, 135), "27 s to 2 min 15 s");
        assert_eq!(of(100, 105), "about 1 min 45 s");
        assert_eq!(of(0, 40), "at most 40 s");
        assert_eq!(of(0, 0), "about 1 s");
        assert_eq!(TimeRange::exactly(400_000_000).words(), "about 1 s");
    }
}
