//! Lines below the table of a short report: maximum, bottleneck, promises, and notes.

use crate::known_digits::known_digits;
use crate::probe::{conditions, limits, row, table};
use crate::promise;
use iosonde_job::plan::Direction;
use iosonde_result::run::VerdictKind;
use iosonde_study::probe::{Knee, PhaseRun, ProbePhase, ProbeResult, RateEstimate};
use iosonde_study::promise_check::{PromiseCheck, PromiseOutcome};

/// Words for a cache that served I/O, in a list of doubts.
const CACHE_WORDS: &str = "cache";
/// Words for reads of blocks that were never written, in a list of doubts.
const UNWRITTEN_WORDS: &str = "unwritten blocks";
/// Kinds of findings that make a figure wrong, or no figure of the target alone, each with its
/// words in a list of doubts.
const DOUBTFUL_KINDS: [(VerdictKind, &str); 10] = [
    (VerdictKind::ServedFromCache, CACHE_WORDS),
    (VerdictKind::UnwrittenData, UNWRITTEN_WORDS),
    (VerdictKind::ClockDisturbed, "disturbed clock"),
    (VerdictKind::Stopped, "stopped process"),
    (VerdictKind::Interference, "other users"),
    (VerdictKind::Steal, "stolen CPU time"),
    (VerdictKind::Fallback, "another engine"),
    (VerdictKind::Generator, "CPUs of this machine"),
    (VerdictKind::ClusterDegraded, "OSDs down"),
    (VerdictKind::ClusterBusy, "recovery or scrub"),
];

fn is_doubtful(kind: VerdictKind) -> bool {
    DOUBTFUL_KINDS.iter().any(|(doubtful, _)| *doubtful == kind)
}

/// The maximum of each pattern with its knee. `None` if the probe ended before the search.
pub(super) fn maximum(result: &ProbeResult) -> Option<String> {
    if result.options.budget.knee_ns == 0 {
        return Some("not searched: --quick skips it".to_owned());
    }
    let found = |phase| result.knees.iter().find(move |knee| knee.phase == phase);
    let knees: Vec<String> = row::ORDER
        .into_iter()
        .filter_map(found)
        .map(|knee| maximum_of_pattern(knee, result))
        .collect();
    (!knees.is_empty()).then(|| knees.join("; "))
}

/// `random read 97.7k from depth 32`; `by depth 32` if a lower depth may suffice, `over 97.7k at
/// depth 256` if the rate still rises there. `in short runs, 80k in a longer one` if the target did
/// not keep it up.
fn maximum_of_pattern(knee: &Knee, result: &ProbeResult) -> String {
    let title = knee.phase.title().replace("sequential", "seq.");
    let found = &knee.saturation;
    let claims = found.claims();
    if !claims.maximum {
        return format!("{title} not known");
    }
    let rate = |iops: RateEstimate| {
        let (rate, units) = row::in_main_unit(knee.phase, iops);
        known_digits(rate.mean, rate.error, units)
    };
    let sustained = result.sustained_rate(knee).map(|figure| {
        let sustained = rate(figure.iops);
        format!(" in short runs, {sustained} in a longer one")
    });
    let sustained = sustained.unwrap_or_default();
    let rate = rate(found.maximum);
    let at = match found.jobs {
        1 => format!("depth {}", found.knee.iodepth),
        jobs => format!("{jobs} jobs x {}", found.knee.iodepth),
    };
    match (claims.rises, claims.knee) {
        (true, _) => format!("{title} over {rate} at {at}{sustained}"),
        (false, true) => format!("{title} {rate} from {at}{sustained}"),
        (false, false) => format!("{title} {rate} by {at}{sustained}"),
    }
}

/// The bottleneck of most figures with its evidence, else a rate that no depth raises.
pub(super) fn bottleneck(result: &ProbeResult) -> Option<String> {
    let bottlenecks = limits::bottlenecks(result).into_iter();
    let found = bottlenecks.chain(limits::ceilings(result));
    found.map(|(_, text)| text).next()
}

/// The known suitability. Results of older versions have only the whole sentence.
pub(super) fn verdict(result: &ProbeResult) -> &str {
    let classification = &result.classification;
    match classification.suitability.is_empty() {
        true => &classification.sentence,
        false => &classification.suitability,
    }
}

/// Checked promises, the broken ones first.
pub(super) fn promises(result: &ProbeResult) -> Vec<&PromiseCheck> {
    let mut checks: Vec<&PromiseCheck> = result.expected.iter().collect();
    checks.sort_by_key(|check| match check.outcome {
        PromiseOutcome::Broken => 0,
        PromiseOutcome::Unclear => 1,
        PromiseOutcome::Kept => 2,
    });
    checks
}

/// Outcome of a promise, with its product if there are several promises.
pub(super) fn promise_in_words(check: &PromiseCheck, is_single: bool) -> String {
    match is_single {
        true => check.sentence(),
        false => format!("{} ({})", check.sentence(), promise::title(&check.promise)),
    }
}

/// Early endings in a word or two each, for a report without notes: each has its own note.
fn endings(result: &ProbeResult) -> impl Iterator<Item = &'static str> {
    let endings = [
        (result.interrupted, "interrupted"),
        (result.error.is_some(), "ended by an error"),
        (!table::failures(result).is_empty(), "failed phases"),
    ];
    let endings = endings.into_iter().filter(|(is_true, _)| *is_true);
    endings.map(|(_, words)| words)
}

/// Kinds of findings that make figures wrong, in a word or two each, if `is_wanted` accepts them.
fn doubts(
    result: &ProbeResult,
    is_wanted: impl Fn(&PhaseRun, VerdictKind) -> bool,
) -> Vec<&'static str> {
    let measured = || {
        result
            .runs
            .iter()
            .filter(|run| run.phase != ProbePhase::Layout)
    };
    let is_found = |kind: VerdictKind| {
        measured().any(|run| {
            let mut kinds = run.result.verdicts.iter().map(|verdict| verdict.kind);
            kinds.any(|found| found == kind) && is_wanted(run, kind)
        })
    };
    let kinds = DOUBTFUL_KINDS.iter().filter(|(kind, _)| is_found(*kind));
    kinds.map(|(_, words)| *words).collect()
}

/// Whether [`table::answered_instead`] reports the finding of this kind.
fn is_answered_instead(result: &ProbeResult, run: &PhaseRun, kind: VerdictKind) -> bool {
    let is_of_source = matches!(
        kind,
        VerdictKind::ServedFromCache | VerdictKind::UnwrittenData
    );
    is_of_source
        && run.phase.direction() == Direction::Read
        && table::answered_instead(result).is_some()
}

fn doubts_in_words(doubts: &[&str]) -> String {
    format!("Doubtful figures: {}", doubts.join(", "))
}

/// Everything that makes figures wrong, for a report without notes. `None` if there is nothing.
pub(super) fn brief_warning(result: &ProbeResult) -> Option<String> {
    let answered = table::answered_instead(result);
    let kinds = doubts(result, |run, kind| !is_answered_instead(result, run, kind));
    let others: Vec<&str> = endings(result).chain(kinds).collect();
    if others.is_empty() {
        return answered;
    }
    let source = answered.map(|_| match result.classification.unwritten {
        true => UNWRITTEN_WORDS,
        false => CACHE_WORDS,
    });
    let all = crate::unique(source.into_iter().chain(others));
    Some(doubts_in_words(&all))
}

/// Notes on the figures: how the probe ended, then all that makes figures wrong. If there are
/// several of these, their first note names them all.
pub(super) fn notes(result: &ProbeResult) -> Vec<String> {
    let kinds = limits::bottleneck_kinds(result);
    let further = limits::bottlenecks(result).into_iter().zip(kinds.clone());
    let in_words = |((name, text), kind): ((&str, String), VerdictKind)| {
        (format!("{name}: {text}"), is_doubtful(kind))
    };
    // The first bottleneck has its own line.
    let (doubtful, other): (Vec<_>, Vec<_>) = further
        .skip(1)
        .map(in_words)
        .partition(|(_, is_doubtful)| *is_doubtful);
    let mut notes = crate::early_ending(result.interrupted, result.error.as_ref());
    notes.extend(table::failures(result));
    let endings = notes.len();
    notes.extend(conditions::findings(result, is_doubtful));
    notes.extend(doubtful.into_iter().map(|(text, _)| text));
    let reported = kinds.first().copied();
    let doubts = doubts(result, |run, kind| {
        Some(kind) != reported && !is_answered_instead(result, run, kind)
    });
    if notes.len() > endings + 1 && !doubts.is_empty() {
        notes.insert(endings, doubts_in_words(&doubts));
    }
    // The word for the shape of the rate says that a rate is not steady.
    notes.extend(conditions::findings(result, |kind| {
        kind != VerdictKind::Unsteady && !is_doubtful(kind)
    }));
    notes.extend(result.notes.iter().cloned());
    notes.extend(other.into_iter().map(|(text, _)| text));
    notes
}
