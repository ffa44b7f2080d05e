//! Planned time of a test, and time left while it runs.

use super::pts_options::{PtsOptions, SATURATION_FILLS, longest_rounds};
use crate::TimeRange;
use crate::figures::preset::{PtsSeries, PtsTest};
use crate::figures::pts_series::{SeriesResult, WINDOW};
use crate::layout_time::LayoutTime;

/// Speed of the target so far, to estimate the time left.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Time per byte of the last fill, in nanoseconds.
    fill_ns_per_byte: Option<f64>,
    /// Time of the last purge, in nanoseconds.
    purge_ns: Option<u64>,
}

impl Pace {
    /// Records a fill of `bytes`.
    pub(super) fn take_fill(&mut self, bytes: u64, elapsed_ns: u64) {
        if bytes > 0 {
            self.fill_ns_per_byte = Some(elapsed_ns as f64 / bytes as f64);
        }
    }

    /// Records a purge.
    pub(super) fn take_purge(&mut self, elapsed_ns: u64) {
        self.purge_ns = Some(elapsed_ns);
    }

    /// Returns the time of `purges` purges. `None`: not known yet.
    fn purges_ns(&self, purges: u64) -> Option<u64> {
        match purges {
            0 => Some(0),
            _ => Some(self.purge_ns?.saturating_mul(purges)),
        }
    }

    /// Returns the time of a fill of `bytes`. `None`: not known yet.
    pub(super) fn fill_ns(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return Some(0);
        }
        Some((bytes as f64 * self.fill_ns_per_byte?) as u64)
    }
}

/// Work after the current step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// Purges of the whole target.
    purges: u64,
    /// Bytes to fill.
    fill_bytes: u64,
    /// Time of the rounds. `None`: unknown.
    rounds: Option<TimeRange>,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead {
            purges: 0,
            fill_bytes: 0,
            rounds: Some(TimeRange::default()),
        }
    }
}

impl Ahead {
    /// Adds bytes to fill and the time of rounds.
    pub(super) fn with(self, fill_bytes: u64, rounds: Option<TimeRange>) -> Ahead {
        Ahead {
            fill_bytes: self.fill_bytes + fill_bytes,
            rounds: self.rounds.zip(rounds).map(|(one, other)| one + other),
            ..self
        }
    }

    /// Adds purges.
    pub(super) fn with_purges(self, purges: u64) -> Ahead {
        Ahead {
            purges: self.purges + purges,
            ..self
        }
    }

    /// Returns the estimator of the time left during a fill of `bytes`.
    pub(super) fn after_fill(self, bytes: u64, pace: &Pace) -> LayoutTime {
        LayoutTime::new(bytes, self.fill_bytes, self.rest(pace))
    }

    /// Returns the time of all work but the fills, if known.
    fn rest(self, pace: &Pace) -> Option<TimeRange> {
        let purges_ns = pace.purges_ns(self.purges)?;
        Some(TimeRange::exactly(purges_ns) + self.rounds?)
    }

    /// Returns the time of all work, if known.
    pub(super) fn time(self, pace: &Pace) -> Option<TimeRange> {
        let fill_ns = pace.fill_ns(self.fill_bytes)?;
        Some(TimeRange::exactly(fill_ns) + self.rest(pace)?)
    }
}

/// Returns the time of a series that has not begun. `None`: the written amount ends it.
pub(super) fn rounds_of(series: &PtsSeries, options: &PtsOptions) -> Option<TimeRange> {
    if options.test == PtsTest::WriteSaturation {
        return None;
    }
    let round_ns = series.workloads().len() as u64 * options.cell_ns();
    Some(rounds_after(0, round_ns, options))
}

/// Returns the time of the rounds after the first `done`, if a steady state ends them.
fn rounds_after(done: u64, round_ns: u64, options: &PtsOptions) -> TimeRange {
    let most = u64::from(longest_rounds(options)).saturating_sub(done);
    let least = (WINDOW as u64).saturating_sub(done).max(1).min(most);
    TimeRange::from_steps(least, most, round_ns)
}

/// Returns the time of the remaining rounds of a series, from the time of its rounds so far.
pub(super) fn rounds_left(
    so_far: &SeriesResult,
    rounds_ns: u64,
    capacity: u64,
    options: &PtsOptions,
) -> Option<TimeRange> {
    let done = so_far.rounds.len() as u64;
    let round_ns = match rounds_ns.checked_div(done) {
        Some(round_ns) => round_ns,
        None => so_far.workloads.len() as u64 * options.cell_ns(),
    };
    if options.test != PtsTest::WriteSaturation {
        return Some(rounds_after(done, round_ns, options));
    }
    let written = |index: usize| so_far.rounds.get(index).map(|round| round.written_bytes);
    let last = so_far.rounds.len().checked_sub(1)?;
    let before = last.checked_sub(1).and_then(written).unwrap_or(0.0);
    let each_bytes = written(last)? - before;
    let left_bytes = most_written_bytes(options, capacity) - written(last)?;
    if each_bytes <= 0.0 {
        return None;
    }
    let most = f64::from(longest_rounds(options)) - done as f64;
    let rounds = (left_bytes / each_bytes).ceil().clamp(0.0, most.max(0.0));
    Some(TimeRange::exactly((rounds * round_ns as f64) as u64))
}

/// Returns the bytes after which write saturation ends.
pub(super) fn most_written_bytes(options: &PtsOptions, capacity: u64) -> f64 {
    SATURATION_FILLS * options.time_scale * capacity as f64
}
