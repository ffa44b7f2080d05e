//! Where each pattern bends, and what held it back: pairs of a name and a sentence.

use super::row;
use iosonde_result::run::{Verdict, VerdictKind};
use iosonde_study::ceiling::Ceiling;
use iosonde_study::probe::{Figure, Phase, PhaseRun, ProbeResult};

/// Ceilings that differ by no more than this are one.
const SAME: f64 = 0.03;
/// Stands above [`knees`].
pub(super) const MOST: &str = "The most at any depth";

/// One line for each pattern whose knee was searched; or that none was.
pub(super) fn knees(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let found = |phase| result.knees.iter().find(move |knee| knee.phase == phase);
    for knee in row::ORDER.into_iter().filter_map(found) {
        pairs.push((knee.phase.title(), row::knee(knee)));
    }
    if result.options.budget.knee_ns == 0 {
        pairs.push(("not searched", "--quick skips it".to_owned()));
    }
    pairs
}

/// What held the patterns back: once where it was the same for all.
pub(super) fn held_back(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&Verdict, Vec<String>)> = Vec::new();
    // Those of the table above it.
    let all = result.figures.len();
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
    let sentence = |(verdict, labels): (&Verdict, Vec<String>)| {
        let limit = verdict.kind.limit().unwrap_or_default();
        // The evidence is of the first, which is said where there are others.
        let said = match &labels[..] {
            [first, _, ..] => format!("{limit} ({first}: {})", verdict.evidence),
            _ => format!("{limit} ({})", verdict.evidence),
        };
        let text = match labels.len() {
            count if count == all => said,
            count if count > 2 => format!("{count} of {all} figures: {said}"),
            _ => format!("{}: {said}", labels.join("; ")),
        };
        ("held back by", text)
    };
    found.into_iter().map(sentence).collect()
}

/// Rates that more in flight do not raise, and who holds them there: once for patterns of which the same is known.
pub(crate) fn ceilings(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&Ceiling, Vec<String>)> = Vec::new();
    for ceiling in &result.ceilings {
        let is_same = |other: &Ceiling| {
            (other.counted, other.holder) == (ceiling.counted, ceiling.holder)
                && (other.per_s / ceiling.per_s - 1.0).abs() <= SAME
        };
        match found.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, names)) => names.push(ceiling.name()),
            None => found.push((ceiling, vec![ceiling.name()])),
        }
    }
    let sentence = |(ceiling, names): (&Ceiling, Vec<String>)| {
        let text = format!("{}: {}", names.join(", "), ceiling.evidence);
        ("ceiling", text)
    };
    found.into_iter().map(sentence).collect()
}

/// A phase that was held back by something that is worth telling.
fn judged_phase(result: &ProbeResult, phase: Phase) -> Option<(&Figure, &Verdict)> {
    let run = result.runs.iter().find(|run| run.phase == phase)?;
    let verdict = run.result.bottleneck()?;
    (!is_told_elsewhere(verdict) && !is_plain(run, verdict))
        .then_some((result.figure(phase)?, verdict))
}

/// That I/Os one at a time are held back by being one at a time is what their phase is for.
fn is_plain(run: &PhaseRun, verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::QueueDepth && run.phase.iodepth() == 1
}

/// A cache is a finding of its own.
fn is_told_elsewhere(verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::ServedFromCache
}

/// Whether a verdict on a run is shown as what held it back, not among the findings.
pub(super) fn is_shown_here(run: &PhaseRun, verdict: &Verdict) -> bool {
    run.result.bottleneck() == Some(verdict) && !is_told_elsewhere(verdict)
}
