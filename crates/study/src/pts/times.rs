//! How long a test takes: what is said before it begins, and what is left while it goes on.

use super::outcome::{SeriesResult, WINDOW};
use super::preset::{PtsTest, Series};
use super::study::{PtsOptions, SATURATION_FILLS, longest_rounds};
use crate::TimeRange;
use crate::layout_time::LayoutTime;

/// What a test will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtsAnnouncement {
    /// Bytes of the active range.
    pub bytes: u64,
    /// Bytes that are discarded, before the fills of all series together; 0 where nothing is purged.
    pub purge_bytes: u64,
    /// Bytes that are written to fill it, before the rounds of all series together.
    pub fill_bytes: u64,
    /// Time of all rounds, purge and fill not included.
    pub rounds: TimeRange,
    /// Bytes after which the rounds end, where these decide.
    pub most_written_bytes: Option<u64>,
}

/// How fast the target has been so far, from which the time left follows.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// What a byte of the fill takes, in nanoseconds.
    fill_ns_per_byte: Option<f64>,
    /// What the last purge took, in nanoseconds.
    purge_ns: Option<u64>,
}

impl Pace {
    /// A fill of so many bytes takes so long.
    pub(super) fn take_fill(&mut self, bytes: u64, elapsed_ns: u64) {
        if bytes > 0 {
            self.fill_ns_per_byte = Some(elapsed_ns as f64 / bytes as f64);
        }
    }

    /// A purge takes so long.
    pub(super) fn take_purge(&mut self, elapsed_ns: u64) {
        self.purge_ns = Some(elapsed_ns);
    }

    /// Time of so many purges; `None` as long as nothing is known.
    fn purges_ns(&self, purges: u64) -> Option<u64> {
        match purges {
            0 => Some(0),
            _ => Some(self.purge_ns?.saturating_mul(purges)),
        }
    }

    /// Time of a fill of so many bytes; `None` as long as nothing is known.
    pub(super) fn fill_ns(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return Some(0);
        }
        Some((bytes as f64 * self.fill_ns_per_byte?) as u64)
    }
}

/// What is still to be done after what runs now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// Purges, each of all that the target holds.
    purges: u64,
    /// Bytes that are filled.
    fill_bytes: u64,
    /// Time of the rounds; `None` where it cannot be told.
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
    /// The same with more to fill and more rounds.
    pub(super) fn with(self, fill_bytes: u64, rounds: Option<TimeRange>) -> Ahead {
        Ahead {
            fill_bytes: self.fill_bytes + fill_bytes,
            rounds: self.rounds.zip(rounds).map(|(one, other)| one + other),
            ..self
        }
    }

    /// The same with so many more purges.
    pub(super) fn with_purges(self, purges: u64) -> Ahead {
        Ahead {
            purges: self.purges + purges,
            ..self
        }
    }

    /// What it takes to see how long all of it lasts while a fill of so many bytes runs before it.
    pub(super) fn after_fill(self, bytes: u64, pace: &Pace) -> LayoutTime {
        LayoutTime::new(bytes, self.fill_bytes, self.rest(pace))
    }

    /// How long all but the fills takes, if that can be told.
    fn rest(self, pace: &Pace) -> Option<TimeRange> {
        let purges_ns = pace.purges_ns(self.purges)?;
        Some(TimeRange::exactly(purges_ns) + self.rounds?)
    }

    /// How long it takes, if that can be told.
    pub(super) fn time(self, pace: &Pace) -> Option<TimeRange> {
        let fill_ns = pace.fill_ns(self.fill_bytes)?;
        Some(TimeRange::exactly(fill_ns) + self.rest(pace)?)
    }
}

/// Time of the rounds of a series that has not begun; `None` where the amount that is written decides.
pub(super) fn rounds_of(series: &Series, options: &PtsOptions) -> Option<TimeRange> {
    if options.test == PtsTest::WriteSaturation {
        return None;
    }
    let round_ns = series.workloads().len() as u64 * options.cell_ns();
    Some(rounds_after(0, round_ns, options))
}

/// Time of the rounds that are left after some, where a steady state ends them.
fn rounds_after(done: u64, round_ns: u64, options: &PtsOptions) -> TimeRange {
    let most = u64::from(longest_rounds(options)).saturating_sub(done);
    let least = (WINDOW as u64).saturating_sub(done).max(1).min(most);
    TimeRange::of_steps(least, most, round_ns)
}

/// Time of the rounds that are left of a series, by what those took that are done.
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

/// Bytes after which write saturation ends.
pub(super) fn most_written_bytes(options: &PtsOptions, capacity: u64) -> f64 {
    SATURATION_FILLS * options.time_scale * capacity as f64
}
