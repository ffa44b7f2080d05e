//! Depth at which a knee search measured its maximum, and the time for which the maximum held.

use super::row::{cell_range, jobs_and_depth_text, phase_rate_text, within};
use iosonde_job::plan::Direction;
use iosonde_study::ceiling::{Ceiling, CeilingCause, level_from};
use iosonde_study::probe::{Knee, PhaseFigure, ProbeResult, RateEstimate};
use iosonde_study::saturation::{CurveCell, DepthPoint};
use iosonde_study::sweep::LARGE_BYTES;
use iosonde_study::words;

/// Depths of a search at which the maximum was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaximumDepths {
    /// Shallowest depth.
    from: u32,
    /// Deepest depth.
    to: u32,
}

impl MaximumDepths {
    /// Returns the shallowest depth whose own rate has the digits of the maximum: the knee, or the
    /// first depth of a plateau. Else the whole plateau, since its maximum is a mean.
    fn from_knee(knee: &Knee) -> MaximumDepths {
        let found = &knee.saturation;
        let (from, to) = found.maximum_depths();
        let digits = |mean: f64| {
            let maximum = found.maximum;
            phase_rate_text(knee.phase, RateEstimate { mean, ..maximum })
        };
        let has_digits = |depth: &u32| {
            let own = found.rate_at(*depth);
            own.is_some_and(|own| digits(own.mean) == digits(found.maximum.mean))
        };
        let mut candidates = [found.knee.iodepth.min(from), from].into_iter();
        match candidates.find(has_digits) {
            Some(depth) => MaximumDepths {
                from: depth,
                to: depth,
            },
            None => MaximumDepths { from, to },
        }
    }

    /// Whether the rate stays level from the shallowest depth on: a deeper queue than the deepest
    /// that was averaged adds nothing either.
    fn is_level(self, knee: &Knee) -> bool {
        self.from != self.to && knee.saturation.claims().plateau
    }

    /// Formats `depth 64`, `2 jobs x depth 64`, `depths 16 to 32`, or `from depth 16 on` and
    /// `from depth 16 on with 2 jobs` if the rate stays level. `lower` follows the depth.
    fn words(self, knee: &Knee, lower: &str) -> String {
        let jobs = knee.saturation.jobs;
        let with_jobs = match jobs {
            1 => String::new(),
            jobs => format!(" with {jobs} jobs"),
        };
        match self.is_level(knee) {
            true => format!("from depth {}{lower} on{with_jobs}", self.from),
            false => format!("{}{lower}", cell_range(jobs, self.from, self.to)),
        }
    }

    /// Formats `about the same from depth 32 on`, if a lower depth of a plateau was measured faster
    /// than the maximum, within its interval.
    fn faster_plateau(self, knee: &Knee) -> Option<String> {
        let found = &knee.saturation;
        let from = level_from(knee).filter(|_| !self.is_level(knee))?;
        let text = |mean: f64| {
            let maximum = found.maximum;
            phase_rate_text(knee.phase, RateEstimate { mean, ..maximum })
        };
        let is_faster = |cell: &CurveCell| {
            let (own, most) = (cell.iops.mean, found.maximum.mean);
            own > most && text(own) != text(most)
        };
        let is_on_plateau = |cell: &&CurveCell| {
            cell.jobs == found.jobs && cell.iodepth < self.from && cell.iodepth * cell.jobs >= from
        };
        let mut cells = found.cells.iter().filter(is_on_plateau);
        cells.any(is_faster).then(|| same_from(knee, from))
    }
}

/// Describes a plateau that begins at this number of I/Os in flight.
fn same_from(knee: &Knee, in_flight: u32) -> String {
    match knee.saturation.jobs {
        1 => format!("about the same from depth {in_flight} on"),
        _ => format!("about the same from {in_flight} I/Os in flight on"),
    }
}

/// Depths of a maximum in words. Short texts leave some of them out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MaximumDepthWords {
    /// `at depth 128`, `at depth 16 or lower`, `from depth 16 or lower on`.
    pub(super) at: String,
    /// Plateau with a faster depth: `about the same from depth 32 on`.
    same: Option<String>,
    /// Share of the maximum at a knee of a lower depth: `98 % at depth 64`.
    share: Option<String>,
    /// Averaged depths of a level rate: `mean of depths 16 to 32`.
    mean: Option<String>,
}

impl MaximumDepthWords {
    /// Describes the depths of a known maximum. A depth is `or lower`, and a share has a `perhaps
    /// lower`, if a lower depth than the knee may reach as much.
    pub(super) fn from_knee(knee: &Knee) -> MaximumDepthWords {
        let found = &knee.saturation;
        let claims = found.claims();
        let depths = MaximumDepths::from_knee(knee);
        let is_level = depths.is_level(knee);
        let is_deeper = found.knee.iodepth < depths.from;
        let has_share = is_deeper && found.knee.iops < found.maximum.mean;
        let share = has_share.then(|| {
            let at_knee = jobs_and_depth_text(found.jobs, found.knee.iodepth);
            let perhaps = if claims.knee { "" } else { ", perhaps lower" };
            format!("{} % at {at_knee}{perhaps}", found.knee_percent())
        });
        // A rate that still rises is not reached at a lower depth.
        let may_be_lower = !has_share && !claims.rises && (!claims.knee || is_deeper);
        let lower = if may_be_lower { " or lower" } else { "" };
        let at = if is_level { "" } else { "at " };
        let mean = is_level.then(|| format!("mean of depths {} to {}", depths.from, depths.to));
        MaximumDepthWords {
            at: format!("{at}{}", depths.words(knee, lower)),
            same: depths.faster_plateau(knee).filter(|_| !claims.rises),
            share,
            mean,
        }
    }

    /// Returns the depth and the share at the knee: `at depth 128 (98 % at depth 64)`. A plateau
    /// with a faster depth stands for the share: `at depth 64, about the same from depth 32 on`.
    pub(super) fn with_share(&self) -> String {
        let share = self.share.iter().filter(|_| self.same.is_none());
        self.with_brackets(share)
    }

    /// Returns all words: `from depth 16 on (98 % at depth 8; mean of depths 16 to 32)`.
    pub(super) fn whole(&self) -> String {
        self.with_brackets(self.share.iter().chain(&self.mean))
    }

    fn with_brackets<'a>(&self, bracketed: impl Iterator<Item = &'a String>) -> String {
        let bracketed: Vec<&str> = bracketed.map(String::as_str).collect();
        let same = self.same.as_ref();
        let same = same.map_or(String::new(), |same| format!(", {same}"));
        match bracketed.is_empty() {
            true => format!("{}{same}", self.at),
            false => format!("{}{same} ({})", self.at, bracketed.join("; ")),
        }
    }
}

/// Effect of depths beyond the one from which the rate hardly grows: `more depth only adds latency`
/// if the maximum was measured there.
pub(super) fn gain_beyond(knee: &Knee, nearly: DepthPoint) -> String {
    let found = &knee.saturation;
    let least = match nearly.iodepth > found.knee.iodepth {
        true => nearly,
        false => found.knee,
    };
    let depths = MaximumDepths::from_knee(knee);
    let (depth, most) = (least.iodepth, found.maximum.mean);
    if depths.from == depths.to && depths.from == depth {
        return "more depth only adds latency".to_owned();
    }
    match depths.from > depth && most > least.iops {
        true => {
            let growth = most / least.iops.max(f64::MIN_POSITIVE) - 1.0;
            let percent = (100.0 * growth).floor() + 1.0;
            format!("above depth {depth} the rate grows by less than {percent} %")
        }
        false => format!("above depth {depth} only latency grows"),
    }
}

/// Maximum and its depth for a table cell: `763k IOPS, depth 128`, or `not known` if no maximum is
/// proven. `in short runs` is added if a longer run did not keep it up.
pub(super) fn most_and_depth(knee: &Knee, is_of_short_runs: bool) -> String {
    let found = &knee.saturation;
    let Some(maximum) = found.known_maximum() else {
        return "not known".to_owned();
    };
    let at = MaximumDepths::from_knee(knee).words(knee, "");
    let runs = if is_of_short_runs {
        ", in short runs"
    } else {
        ""
    };
    format!("{}, {at}{runs}", phase_rate_text(knee.phase, maximum))
}

/// Possible cause of a maximum of writes that a longer run did not keep up, with its evidence.
/// `figure` is that of the longer run. `None` for reads, and if the evidence names another cause.
pub(super) fn write_cache_hint(
    result: &ProbeResult,
    knee: &Knee,
    figure: &PhaseFigure,
) -> Option<String> {
    if knee.phase.direction() != Direction::Write || has_other_cause(result, knee) {
        return None;
    }
    let found = &knee.saturation;
    let highest = figure.iops.mean + figure.iops.error.unwrap_or_default();
    // The cell of the same depth may contain the longer run.
    let is_of_search = |cell: &&CurveCell| {
        cell.jobs == found.jobs
            && cell.iodepth >= found.knee.iodepth
            && cell.iodepth != figure.iodepth
    };
    let is_faster = |cell: &&CurveCell| {
        let error = cell.iops.error;
        error.is_some_and(|error| cell.iops.mean - error > highest)
    };
    let faster = found.cells.iter().filter(is_of_search).filter(is_faster);
    let short_ns = faster.map(|cell| cell.measured_ns).max()?;
    let seconds = |ns: u64| words::latency(ns as f64);
    Some(format!(
        "a write cache may have served the runs of up to {} in all at each depth, but not that of \
         {}",
        seconds(short_ns),
        seconds(figure.measured_ns)
    ))
}

/// Whether a throttle explains that a longer run was slower: one was found for the pattern, or
/// reads were not kept up either, as with burst credits.
fn has_other_cause(result: &ProbeResult, knee: &Knee) -> bool {
    let is_random = knee.phase.is_random();
    let is_slower_read = |other: &Knee| {
        other.phase.direction() == Direction::Read
            && other.phase.is_random() == is_random
            && result.sustained_rate(other).is_some()
    };
    let is_throttle = |ceiling: &Ceiling| {
        ceiling.holder == CeilingCause::Throttle
            && (ceiling.direction, ceiling.random) == (Direction::Write, is_random)
    };
    let runs = result.runs.iter().filter(|run| run.phase == knee.phase);
    let mut verdicts = runs.flat_map(|run| &run.result.verdicts);
    result.knees.iter().any(is_slower_read)
        || result.ceilings.iter().any(is_throttle)
        || verdicts.any(|verdict| verdict.kind.is_throttle())
}

/// Maximum of a pattern and its depth: `763k IOPS` and `±0.4 % at depth 128 (98 % at depth 64)`.
/// `not known` if the figures prove no maximum. `plus_minus` stands before half an interval.
pub fn knee_in_short(knee: &Knee, plus_minus: &str) -> (String, String) {
    let found = &knee.saturation;
    if !found.claims().maximum {
        let is_large = knee.phase.block_bytes() >= LARGE_BYTES;
        let (most, known, _) = found.most_in_words(is_large, plus_minus);
        return ("not known".to_owned(), format!("{most} {known}"));
    }
    let error = error_in_words(knee, plus_minus);
    let most = phase_rate_text(knee.phase, found.maximum);
    let depths = MaximumDepthWords::from_knee(knee).with_share();
    (most, format!("{error}{depths}"))
}

/// Half the interval of the maximum as a share, and a blank. Empty if it is not known.
fn error_in_words(knee: &Knee, plus_minus: &str) -> String {
    let error = knee.saturation.maximum.relative_error();
    error.map_or(String::new(), |error| {
        format!("{} ", within(error, plus_minus))
    })
}

/// Describes a knee: `763k IOPS ±0.4 % at depth 128; more depth only adds latency`. The text claims
/// only what the intervals prove. `plus_minus` stands before half an interval.
pub fn knee_text(knee: &Knee, plus_minus: &str) -> String {
    let found = &knee.saturation;
    let claims = found.claims();
    if !claims.maximum {
        let is_large = knee.phase.block_bytes() >= LARGE_BYTES;
        let (most, known, at) = found.most_in_words(is_large, plus_minus);
        return format!("not known; the fastest was {at} with {most} {known}");
    }
    let error = error_in_words(knee, plus_minus);
    let most = phase_rate_text(knee.phase, found.maximum);
    let depths = MaximumDepthWords::from_knee(knee).whole();
    let beyond = match found.latency_only {
        None if claims.rises => format!("the rate still rises at depth {}", found.deepest()),
        None => format!("depths above {} were not measured", found.deepest()),
        Some(_) if !claims.plateau => match level_from(knee) {
            // The depths have it already.
            Some(from) if depths.contains(&same_from(knee, from)) => {
                return format!("{most} {error}{depths}");
            }
            Some(from) => same_from(knee, from),
            None => "more depth may raise the rate".to_owned(),
        },
        Some(nearly) => gain_beyond(knee, nearly),
    };
    format!("{most} {error}{depths}; {beyond}")
}

#[cfg(test)]
mod tests;
