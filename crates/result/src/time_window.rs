//! Figures of a slice of a run's time, from the intervals that are stored with the run.
//!
//! An interval counts if its middle lies in the window, because the ends of intervals are some
//! microseconds late. The figures name the time that the counted intervals really cover.

use crate::compare::has_enough_samples;
use crate::interval::Interval;
use crate::run::RunResult;
use std::fmt;

/// A slice of a run's time, relative to the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeWindow {
    /// Start of the slice. `None`: the start of the run.
    pub from_ns: Option<u64>,
    /// End of the slice. `None`: the end of the run.
    pub to_ns: Option<u64>,
}

/// Sums of the intervals in a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowFigures {
    /// Start of the first interval.
    pub from_ns: u64,
    /// End of the last interval.
    pub to_ns: u64,
    /// Time that the intervals cover, without gaps.
    pub measured_ns: u64,
    /// Number of intervals.
    pub intervals: usize,
    /// Intervals of the window that are left out because they belong to the ramp.
    pub ramp_intervals: usize,
    /// Counts and latencies of all workers and, for latencies, of all directions together.
    pub sum: Interval,
}

/// Why a window has no figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeWindowError {
    /// The start is not before the end.
    Reversed {
        /// Start of the window.
        from_ns: u64,
        /// End of the window.
        to_ns: u64,
    },
    /// The run is stored without intervals.
    NoSeries,
    /// A bound of the window lies after the end of the run.
    AfterEnd {
        /// The bound.
        at_ns: u64,
        /// End of the last interval.
        end_ns: u64,
    },
    /// The window contains the middle of no interval.
    NoInterval {
        /// Length of the longest interval.
        longest_ns: u64,
    },
    /// The window contains only intervals of the ramp.
    OnlyRamp {
        /// End of the ramp's last interval in the window.
        ramp_end_ns: u64,
    },
}

impl TimeWindow {
    /// Sums the measured intervals of a run that lie in the window.
    ///
    /// # Errors
    /// Fails if the window is empty, outside of the run's time, or has no measured interval.
    pub fn figures(&self, run: &RunResult) -> Result<WindowFigures, TimeWindowError> {
        let from_ns = self.from_ns.unwrap_or(0);
        if let Some(to_ns) = self.to_ns
            && from_ns >= to_ns
        {
            return Err(TimeWindowError::Reversed { from_ns, to_ns });
        }
        let mut found = WindowFigures::default();
        let (mut longest_ns, mut end_ns, mut ramp_end_ns) = (0, 0, 0);
        for interval in &run.intervals {
            longest_ns = interval.length_ns.max(longest_ns);
            let interval_end_ns = interval.start_ns.saturating_add(interval.length_ns);
            end_ns = interval_end_ns.max(end_ns);
            let middle_ns = interval.start_ns.saturating_add(interval.length_ns / 2);
            if middle_ns < from_ns || self.to_ns.is_some_and(|to_ns| middle_ns >= to_ns) {
                continue;
            }
            if interval.ramp {
                found.ramp_intervals += 1;
                ramp_end_ns = interval_end_ns;
            } else {
                found.add(&interval);
            }
        }
        if end_ns == 0 {
            return Err(TimeWindowError::NoSeries);
        }
        // A run of 60 s may end some milliseconds before 60 s.
        let bounds = [
            (self.from_ns, end_ns),
            (self.to_ns, end_ns.saturating_add(longest_ns)),
        ];
        for (bound, most_ns) in bounds {
            if let Some(at_ns) = bound.filter(|at_ns| *at_ns > most_ns) {
                return Err(TimeWindowError::AfterEnd { at_ns, end_ns });
            }
        }
        match (found.intervals, found.ramp_intervals) {
            (0, 0) => Err(TimeWindowError::NoInterval { longest_ns }),
            (0, _) => Err(TimeWindowError::OnlyRamp { ramp_end_ns }),
            _ => Ok(found),
        }
    }
}

impl WindowFigures {
    fn add(&mut self, interval: &Interval) {
        if self.intervals == 0 {
            self.from_ns = interval.start_ns;
        }
        self.to_ns = interval.start_ns.saturating_add(interval.length_ns);
        self.intervals += 1;
        self.measured_ns += interval.length_ns;
        self.sum.add(interval);
    }

    /// Converts a count of the window to a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.measured_ns.max(1) as f64
    }
}

/// Number of values that a percentile needs: ten must lie beyond it.
pub fn values_needed(percent: f64) -> u64 {
    if percent >= 100.0 {
        return 1;
    }
    let needed = (1000.0 / (100.0 - percent) - 1e-6).ceil().max(1.0) as u64;
    debug_assert!(has_enough_samples(needed, percent), "{percent} of {needed}");
    needed
}

impl TimeWindowError {
    /// Returns the action that helps.
    pub fn remedy(&self) -> String {
        match self {
            TimeWindowError::Reversed { .. } => "give --from an earlier time than --to".to_owned(),
            TimeWindowError::NoSeries => {
                "leave out --from and --to: the figures of the whole run are stored".to_owned()
            }
            TimeWindowError::AfterEnd { end_ns, .. } => {
                format!("choose times before {}", seconds(*end_ns))
            }
            TimeWindowError::NoInterval { longest_ns } => format!(
                "choose a window of at least {}, the length of an interval",
                seconds(*longest_ns)
            ),
            TimeWindowError::OnlyRamp { ramp_end_ns } => {
                format!("choose a window that ends after {}", seconds(*ramp_end_ns))
            }
        }
    }
}

impl fmt::Display for TimeWindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeWindowError::Reversed { from_ns, to_ns } => write!(
                f,
                "the window begins at {}, which is not before its end at {}",
                seconds(*from_ns),
                seconds(*to_ns)
            ),
            TimeWindowError::NoSeries => {
                f.write_str("the run is stored without a series, so no window has figures")
            }
            TimeWindowError::AfterEnd { at_ns, end_ns } => write!(
                f,
                "{} is outside of the run, whose series ends at {}",
                seconds(*at_ns),
                seconds(*end_ns)
            ),
            TimeWindowError::NoInterval { .. } => {
                f.write_str("the window contains no interval of the series")
            }
            TimeWindowError::OnlyRamp { ramp_end_ns } => write!(
                f,
                "the window lies in the ramp, which is not measured and lasts until {} or longer",
                seconds(*ramp_end_ns)
            ),
        }
    }
}

impl std::error::Error for TimeWindowError {}

/// Formats a time in seconds, as users give it: `30 s`, `4.1 s`.
pub fn seconds(ns: u64) -> String {
    let text = format!("{:.3}", ns as f64 / 1e9);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::IntervalCounts;
    use crate::nodes::tests::empty;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Ten intervals of a second, the first two in the ramp. Interval `n` has `n` reads of `n` ms.
    fn ten_seconds() -> RunResult {
        let mut run = empty();
        run.intervals = (0..10)
            .map(|second| {
                let mut interval = Interval {
                    start_ns: second * (SECOND_NS + 1000),
                    length_ns: SECOND_NS,
                    ramp: second < 2,
                    ..Interval::default()
                };
                interval.directions.read = IntervalCounts {
                    ios: second,
                    bytes: second * 4096,
                };
                interval.latency.record_n(second * 1_000_000, second);
                interval
            })
            .collect();
        run
    }

    fn window(from_s: u64, to_s: u64) -> TimeWindow {
        TimeWindow {
            from_ns: Some(from_s * SECOND_NS),
            to_ns: Some(to_s * SECOND_NS),
        }
    }

    #[test]
    fn window_sums_the_intervals_whose_middle_it_contains() {
        let run = ten_seconds();
        let found = window(3, 6).figures(&run).unwrap();
        assert_eq!((found.intervals, found.ramp_intervals), (3, 0));
        assert_eq!(found.from_ns, 3 * (SECOND_NS + 1000));
        assert_eq!(found.sum.directions.read.ios, 3 + 4 + 5);
        assert_eq!(found.per_second(12), 4.0);
        assert_eq!(found.sum.latency.total(), 12);
        let slowest = found.sum.latency.percentile(100.0).unwrap();
        assert!(slowest.abs_diff(5_000_000) < 25_000, "{slowest}");
    }

    #[test]
    fn window_without_bounds_is_the_run_without_its_ramp() {
        let found = TimeWindow::default().figures(&ten_seconds()).unwrap();
        assert_eq!((found.intervals, found.ramp_intervals), (8, 2));
    }

    #[test]
    fn window_without_figures_is_refused_with_its_cause() {
        let run = ten_seconds();
        let refused = |from_s, to_s| window(from_s, to_s).figures(&run).unwrap_err();
        assert!(matches!(refused(6, 3), TimeWindowError::Reversed { .. }));
        assert!(matches!(refused(3, 3), TimeWindowError::Reversed { .. }));
        assert!(matches!(refused(11, 12), TimeWindowError::AfterEnd { .. }));
        assert!(matches!(refused(3, 12), TimeWindowError::AfterEnd { .. }));
        assert!(matches!(refused(0, 2), TimeWindowError::OnlyRamp { .. }));
        let short = TimeWindow {
            from_ns: Some(4_100_000_000),
            to_ns: Some(4_200_000_000),
        };
        let short = short.figures(&run).unwrap_err();
        assert!(matches!(short, TimeWindowError::NoInterval { .. }));
        let none = TimeWindow::default().figures(&empty()).unwrap_err();
        assert_eq!(none, TimeWindowError::NoSeries);
        let texts = [refused(6, 3), refused(11, 12), refused(0, 2), short, none]
            .map(|error| format!("{error}; {}", error.remedy()));
        insta::assert_snapshot!(texts.join("\n"), @r#"
        the window begins at 6 s, which is not before its end at 3 s; give --from an earlier time than --to
        11 s is outside of the run, whose series ends at 10 s; choose times before 10 s
        the window lies in the ramp, which is not measured and lasts until 2 s or longer; choose a window that ends after 2 s
        the window contains no interval of the series; choose a window of at least 1 s, the length of an interval
        the run is stored without a series, so no window has figures; leave out --from and --to: the figures of the whole run are stored
        "#);
    }

    #[test]
    fn times_are_shown_in_seconds() {
        assert_eq!(seconds(30_000_000_000), "30 s");
        assert_eq!(seconds(4_100_000_000), "4.1 s");
        assert_eq!(seconds(1_000_000), "0.001 s");
    }

    #[test]
    fn percentile_needs_ten_values_beyond_it() {
        assert_eq!(values_needed(50.0), 20);
        assert_eq!(values_needed(99.0), 1000);
        assert_eq!(values_needed(99.9), 10_000);
        assert_eq!(values_needed(99.99), 100_000);
        assert_eq!(values_needed(99.999), 1_000_000);
        assert_eq!(values_needed(100.0), 1);
        assert!(!has_enough_samples(999, 99.0));
    }
}
