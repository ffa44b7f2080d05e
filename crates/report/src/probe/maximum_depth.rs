//! Depth at which a knee search measured its maximum, and the time for which the maximum held.

use super::row::{cell_range, jobs_and_depth_text, phase_rate_text, within};
use iosonde_job::plan::Direction;
use iosonde_study::ceiling::{Ceiling, CeilingCause};
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

    /// Formats `depth 64`, `2 jobs x depth 64`, `depths 16 to 32`, or `from depth 16 on` if the
    /// rate stays level.
    fn words(self, knee: &Knee) -> String {
        let jobs = knee.saturation.jobs;
        match self.is_level(knee) {
            true => format!("from {} on", jobs_and_depth_text(jobs, self.from)),
            false => cell_range(jobs, self.from, self.to),
        }
    }
}

/// Depths of a maximum in words. Short texts leave some of them out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MaximumDepthWords {
    /// `at depth 128`, `at depth 16 or lower`, `from depth 16 on`.
    pub(super) at: String,
    /// Share of the maximum at a knee of a lower depth: `98 % at depth 64`.
    share: Option<String>,
    /// Averaged depths of a level rate: `mean of depths 16 to 32`.
    mean: Option<String>,
}

impl MaximumDepthWords {
    /// Describes the depths of a known maximum. A depth is `or lower` or has a `perhaps lower` if
    /// a lower depth than the knee may reach as much.
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
        let lower = match (may_be_lower, is_level) {
            (false, _) => "",
            (true, false) => " or lower",
            (true, true) => ", perhaps lower",
        };
        let at = if is_level { "" } else { "at " };
        let mean = is_level.then(|| format!("mean of depths {} to {}", depths.from, depths.to));
        MaximumDepthWords {
            at: format!("{at}{}{lower}", depths.words(knee)),
            share,
            mean,
        }
    }

    /// Returns the depth and the share at the knee: `at depth 128 (98 % at depth 64)`.
    pub(super) fn with_share(&self) -> String {
        self.with_brackets(self.share.iter())
    }

    /// Returns all words: `from depth 16 on (98 % at depth 8; mean of depths 16 to 32)`.
    pub(super) fn whole(&self) -> String {
        self.with_brackets(self.share.iter().chain(&self.mean))
    }

    fn with_brackets<'a>(&self, bracketed: impl Iterator<Item = &'a String>) -> String {
        let bracketed: Vec<&str> = bracketed.map(String::as_str).collect();
        match bracketed.is_empty() {
            true => self.at.clone(),
            false => format!("{} ({})", self.at, bracketed.join("; ")),
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
    let at = MaximumDepths::from_knee(knee).words(knee);
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
        let (most, known, _) = found.most_in_words(knee.phase.block_bytes() >= LARGE_BYTES);
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
        let (most, known, at) = found.most_in_words(knee.phase.block_bytes() >= LARGE_BYTES);
        return format!("not known; the fastest was {at} with {most} {known}");
    }
    let error = error_in_words(knee, plus_minus);
    let most = phase_rate_text(knee.phase, found.maximum);
    let depths = MaximumDepthWords::from_knee(knee).whole();
    let beyond = match found.latency_only {
        None if claims.rises => format!("the rate still rises at depth {}", found.deepest()),
        None => format!("depths above {} were not measured", found.deepest()),
        Some(_) if !claims.plateau => "more depth may raise the rate".to_owned(),
        Some(nearly) => gain_beyond(knee, nearly),
    };
    format!("{most} {error}{depths}; {beyond}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::row::{titles, titles_of_probes};
    use crate::probe::simulated::probed;
    use iosonde_result::run::{Verdict, VerdictKind};
    use iosonde_study::ceiling::LimitUnit;
    use iosonde_study::probe::{ProbeBudget, ProbePhase, most_of};

    /// Knee of random reads at depth 64 of one job, and the maximum at depth 128. `slow` is the
    /// rate of depth 32.
    fn knee_below_maximum(slow: f64) -> Knee {
        let result = probed("nvme", ProbeBudget::NORMAL);
        let is_read = |knee: &&Knee| knee.phase == ProbePhase::RandomRead;
        let mut read = result.knees.iter().find(is_read).unwrap().clone();
        let found = &mut read.saturation;
        let mut cells = vec![found.cells[0].clone(); 3];
        let measured = [(32, slow), (64, 752_832.0), (128, 763_424.0)];
        for (cell, (iodepth, iops)) in cells.iter_mut().zip(measured) {
            (cell.jobs, cell.iodepth, cell.iops.mean) = (1, iodepth, iops);
            cell.iops.error = Some(300.0);
        }
        (found.jobs, found.longer_run, found.plateau) = (1, None, None);
        found.maximum = cells[2].iops;
        (found.knee.iodepth, found.knee.iops) = (64, cells[1].iops.mean);
        (found.latency_only, found.cells) = (Some(found.knee), cells);
        read
    }

    /// A report named the maximum of depth 128 as the rate of depth 64, which was slower.
    #[test]
    fn maximum_names_depth_of_its_own_rate() {
        let mut read = knee_below_maximum(376_310.0);
        let words = |knee: &Knee| MaximumDepthWords::from_knee(knee).whole();
        let beyond = |knee: &Knee| gain_beyond(knee, knee.saturation.knee);
        assert_eq!(words(&read), "at depth 128 (98 % at depth 64)");
        assert_eq!(most_and_depth(&read, false), "763k IOPS, depth 128");
        let growth = "above depth 64 the rate grows by less than 2 %";
        assert_eq!(beyond(&read), growth);
        let found = &mut read.saturation;
        found.cells[0].iops.mean = 763_300.0;
        let perhaps = "at depth 128 (98 % at depth 64, perhaps lower)";
        assert_eq!(words(&read), perhaps);
        // A knee that was measured faster than the maximum has no share of it.
        read.saturation.knee.iops = 763_500.0;
        assert_eq!(words(&read), "at depth 128 or lower");
        let found = &mut read.saturation;
        found.knee.iops = 752_832.0;
        (found.cells[0].iops.mean, found.cells[1].iops.mean) = (376_310.0, 763_100.0);
        assert_eq!(words(&read), "at depth 64");
        assert_eq!(beyond(&read), "more depth only adds latency");
        // The mean of a plateau is the rate of none of its depths.
        let found = &mut read.saturation;
        found.cells[1].iops.mean = 770_000.0;
        found.plateau = Some((64, 128));
        found.maximum.mean = 766_700.0;
        let level = MaximumDepthWords::from_knee(&read);
        assert_eq!(level.with_share(), "from depth 64 on");
        let whole = "from depth 64 on (mean of depths 64 to 128)";
        assert_eq!(level.whole(), whole);
        assert_eq!(beyond(&read), "above depth 64 only latency grows");
        assert_eq!(most_and_depth(&read, false), "767k IOPS, from depth 64 on");
    }

    /// The report said "at depth 128 or lower, still rising".
    #[test]
    fn rising_maximum_is_not_at_a_lower_depth() {
        let mut read = knee_below_maximum(763_300.0);
        let found = &mut read.saturation;
        (found.knee.iodepth, found.knee.iops) = (128, 763_424.0);
        found.latency_only = None;
        let claims = found.claims();
        assert!(claims.rises && !claims.knee, "{claims:?}");
        assert_eq!(MaximumDepthWords::from_knee(&read).whole(), "at depth 128");
    }

    /// A drive whose longer run of random writes is slower, without a sign of a throttle.
    fn probed_without_throttle() -> ProbeResult {
        let mut result = probed("nvme", ProbeBudget::NORMAL);
        result.ceilings.clear();
        for run in &mut result.runs {
            run.result.verdicts.clear();
        }
        result
    }

    fn hint_for_writes(result: &ProbeResult) -> Option<String> {
        let is_write = |knee: &&Knee| knee.phase == ProbePhase::RandomWrite;
        let knee = result.knees.iter().find(is_write).unwrap();
        write_cache_hint(result, knee, result.sustained_rate(knee).unwrap())
    }

    #[test]
    fn write_cache_hint_counts_only_faster_runs() {
        let mut result = probed_without_throttle();
        let phase = ProbePhase::RandomWrite;
        let figure = result.figure(phase).unwrap().clone();
        let mut knees = result.knees.iter_mut();
        let knee = knees.find(|knee| knee.phase == phase).unwrap();
        let mut slow = knee.saturation.cells[0].clone();
        slow.jobs = 1;
        slow.iodepth = 2 * figure.iodepth + 1;
        slow.iops = figure.iops;
        slow.measured_ns = figure.measured_ns - 1;
        let slow_ns = words::latency(slow.measured_ns as f64);
        knee.saturation.cells.push(slow);
        let hint = hint_for_writes(&result).unwrap();
        assert!(!hint.contains(&format!("up to {slow_ns} in all")), "{hint}");
    }

    /// Burst credits and throttles slow longer runs too.
    #[test]
    fn write_cache_is_not_named_against_the_evidence() {
        let result = probed_without_throttle();
        assert!(hint_for_writes(&result).is_some());
        let mut throttled = result.clone();
        throttled.ceilings = vec![Ceiling {
            direction: Direction::Write,
            random: true,
            block_bytes: 4096,
            counted: LimitUnit::Iops,
            per_s: 400e3,
            holder: CeilingCause::Throttle,
            evidence: String::new(),
        }];
        assert_eq!(hint_for_writes(&throttled), None);
        let mut judged = result.clone();
        let phase = ProbePhase::RandomWrite;
        let mut runs = judged.runs.iter_mut();
        let run = runs.find(|run| run.phase == phase).unwrap();
        run.result.verdicts = vec![Verdict {
            kind: VerdictKind::Allowance,
            evidence: String::new(),
            cause: None,
        }];
        assert_eq!(hint_for_writes(&judged), None);
        // The reads were not kept up either.
        let mut burst = result;
        let written = burst.figure(phase).unwrap().clone();
        let is_write = |knee: &&Knee| knee.phase == phase;
        let searched = burst.knees.iter().find(is_write).unwrap().clone();
        let read = ProbePhase::RandomRead;
        burst.figures.retain(|figure| figure.phase != read);
        burst.knees.retain(|knee| knee.phase != read);
        burst.figures.push(PhaseFigure {
            phase: read,
            ..written
        });
        burst.knees.push(Knee {
            phase: read,
            ..searched
        });
        assert_eq!(hint_for_writes(&burst), None);
    }

    #[test]
    fn maximum_of_short_writes_names_write_cache_and_other_title() {
        let result = probed_without_throttle();
        let hint = hint_for_writes(&result).unwrap();
        assert!(hint.starts_with("a write cache may have served"), "{hint}");
        let key = most_of(ProbePhase::RandomWrite);
        let title = "4k random write, maximum of short runs";
        assert_eq!(titles(&result)[&key], title);
        let slow = probed("hdd", ProbeBudget::NORMAL);
        assert_eq!(titles_of_probes(&[&slow, &result])[&key], title);
        let read = most_of(ProbePhase::RandomRead);
        assert_eq!(
            titles(&result)[&read],
            "4k random read, maximum at any depth"
        );
    }
}
