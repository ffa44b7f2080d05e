//! Knee and bottleneck of each pattern: pairs of a name and a sentence.

use super::{maximum_depth, row};
use iosonde_job::plan::Direction;
use iosonde_result::run::{Verdict, VerdictKind};
use iosonde_study::ceiling::Ceiling;
use iosonde_study::probe::{Knee, PhaseFigure, PhaseRun, ProbePhase, ProbeResult};

/// Ceilings whose rates differ by at most this share are the same.
const SAME: f64 = 0.03;
/// Heading of [`knees`].
pub(super) const MOST: &str = "Maximum at any depth";

/// Describes the knee of each pattern searched, or notes that none was.
pub(super) fn knees(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let found = |phase| result.knees.iter().find(move |knee| knee.phase == phase);
    for knee in row::ORDER.into_iter().filter_map(found) {
        pairs.push((knee.phase.title(), knee_in_words(result, knee)));
    }
    if result.options.budget.knee_ns == 0 {
        pairs.push(("not searched", "--quick skips it".to_owned()));
    }
    pairs
}

/// Describes a knee, and the rate of a longer run that did not keep up the maximum.
pub(crate) fn knee_in_words(result: &ProbeResult, knee: &Knee) -> String {
    let mut text = maximum_depth::knee_text(knee, "+-");
    if let Some(figure) = result.sustained_rate(knee) {
        let rate = row::phase_rate_text(figure.phase, figure.iops);
        let depth = figure.iodepth;
        text.push_str(&format!("; only {rate} in the longer run at depth {depth}"));
        if let Some(hint) = maximum_depth::write_cache_hint(result, knee, figure) {
            text.push_str(&format!(": {hint}"));
        }
    }
    text
}

/// Possible causes of maxima of writes that longer runs did not keep up.
pub(crate) fn write_cache_notes(result: &ProbeResult) -> Vec<String> {
    let knees = result.knees.iter();
    knees
        .filter_map(|knee| write_cache_note(result, knee))
        .collect()
}

/// Possible cause of a maximum of writes that a longer run did not keep up. The curve of such a
/// pattern may show how full a cache was, rather than the depth.
pub(crate) fn write_cache_note(result: &ProbeResult, knee: &Knee) -> Option<String> {
    let figure = result.sustained_rate(knee)?;
    let hint = maximum_depth::write_cache_hint(result, knee, figure)?;
    Some(format!("{}: {hint}", knee.phase.title()))
}

/// Bottlenecks of the patterns with the labels of their figures, that of most figures first.
fn group_bottlenecks(result: &ProbeResult) -> Vec<(&Verdict, Vec<String>)> {
    let mut found: Vec<(&Verdict, Vec<String>)> = Vec::new();
    for phase in row::ORDER {
        let Some((figure, verdict)) = judged_phase(result, phase) else {
            continue;
        };
        let label = row::label(figure);
        match found.iter_mut().find(|(same, _)| same.kind == verdict.kind) {
            Some((_, labels)) => labels.push(label),
            None => found.push((verdict, vec![label])),
        }
    }
    found.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.len()));
    found
}

/// Kinds of the bottlenecks, in the order of [`bottlenecks`].
pub(super) fn bottleneck_kinds(result: &ProbeResult) -> Vec<VerdictKind> {
    let found = group_bottlenecks(result).into_iter();
    found.map(|(verdict, _)| verdict.kind).collect()
}

/// Bottlenecks of the patterns. A bottleneck of several patterns is reported once.
pub(super) fn bottlenecks(result: &ProbeResult) -> Vec<(&'static str, String)> {
    // Number of figures in the table.
    let all = result.figures.len();
    let sentence = |(verdict, labels): (&Verdict, Vec<String>)| {
        let limit = verdict.kind.limit().unwrap_or_default();
        // The evidence is that of the first figure, which is named if there are several.
        let said = match &labels[..] {
            [first, _, ..] => format!("{limit} ({first}: {})", verdict.evidence),
            _ => format!("{limit} ({})", verdict.evidence),
        };
        let text = match labels.len() {
            count if count == all => said,
            count if count > 2 => format!("{count} of {all} figures: {said}"),
            _ => format!("{}: {said}", labels.join("; ")),
        };
        ("bottleneck", text)
    };
    let found = group_bottlenecks(result).into_iter();
    found.map(sentence).collect()
}

/// Rates that more I/Os in flight do not raise, with the cause; once for patterns that share it.
pub fn ceilings(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut found: Vec<Vec<&Ceiling>> = Vec::new();
    for ceiling in &result.ceilings {
        let is_same = |other: &Ceiling| {
            (other.counted, other.holder) == (ceiling.counted, ceiling.holder)
                && (other.per_s / ceiling.per_s - 1.0).abs() <= SAME
        };
        match found.iter_mut().find(|group| is_same(group[0])) {
            Some(group) => group.push(ceiling),
            None => found.push(vec![ceiling]),
        }
    }
    let sentence = |group: &Vec<&Ceiling>| {
        let text = format!("{}: {}", pattern_names(group), group[0].evidence);
        ("bottleneck", text)
    };
    found.iter().map(sentence).collect()
}

/// Names the patterns of some ceilings: `random reads and writes of 4 KiB`.
fn pattern_names(group: &[&Ceiling]) -> String {
    let other_way = |ceiling: &Ceiling, direction: Direction| {
        let pattern = (direction, ceiling.random, ceiling.block_bytes);
        let mut all = group.iter();
        all.any(|other| (other.direction, other.random, other.block_bytes) == pattern)
    };
    let name = |ceiling: &&Ceiling| match ceiling.direction {
        Direction::Read if other_way(ceiling, Direction::Write) => {
            Some(ceiling.name().replacen("reads", "reads and writes", 1))
        }
        Direction::Write if other_way(ceiling, Direction::Read) => None,
        _ => Some(ceiling.name()),
    };
    let names: Vec<String> = group.iter().filter_map(name).collect();
    names.join(", ")
}

/// Figure and bottleneck of a phase, unless reported elsewhere or implied by the phase.
fn judged_phase(result: &ProbeResult, phase: ProbePhase) -> Option<(&PhaseFigure, &Verdict)> {
    let run = result.runs.iter().find(|run| run.phase == phase)?;
    let verdict = run.result.bottleneck()?;
    (!is_reported_elsewhere(verdict) && !is_plain(run, verdict))
        .then_some((result.figure(phase)?, verdict))
}

/// A phase measures I/Os one at a time on purpose, so its queue depth is no finding.
fn is_plain(run: &PhaseRun, verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::QueueDepth && run.phase.iodepth() == 1
}

/// A cache is reported as a finding.
fn is_reported_elsewhere(verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::ServedFromCache
}

/// Whether a verdict is reported as a bottleneck, and so not among the findings.
pub(super) fn is_shown_here(run: &PhaseRun, verdict: &Verdict) -> bool {
    run.result.bottleneck() == Some(verdict) && !is_reported_elsewhere(verdict)
}
