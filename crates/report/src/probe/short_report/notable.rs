//! Lines below the table of a short report: maximum, bottleneck, promises, and notes.

use crate::hanging_lines::text_columns;
use crate::known_digits::known_digits;
use crate::probe::maximum_depth::MaximumDepthWords;
use crate::probe::{conditions, limits, row, table};
use crate::promise;
use crate::text_style::TextStyle;
use iosonde_job::plan::Direction;
use iosonde_result::compare::Subject;
use iosonde_result::run::VerdictKind;
use iosonde_study::probe::{Knee, PhaseRun, ProbePhase, ProbeResult, RateEstimate};
use iosonde_study::promise_check::{PromiseCheck, PromiseOutcome};
use iosonde_study::sweep::LARGE_BYTES;

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
    (VerdictKind::Generator, "CPUs of the client"),
    (VerdictKind::ClusterDegraded, "OSDs down"),
    (VerdictKind::ClusterBusy, "recovery or scrub"),
];

fn is_doubtful(kind: VerdictKind) -> bool {
    DOUBTFUL_KINDS.iter().any(|(doubtful, _)| *doubtful == kind)
}

/// The maximum of each pattern, with its share at the knee if `has_shares`. `None` if the probe
/// ended before the search.
pub(super) fn maximum(result: &ProbeResult, has_shares: bool, style: TextStyle) -> Option<String> {
    if result.options.budget.knee_ns == 0 {
        return Some("not searched: --quick skips it".to_owned());
    }
    let found = |phase| result.knees.iter().find(move |knee| knee.phase == phase);
    // Reads and writes of one text share it.
    let mut patterns: Vec<(bool, String, String)> = Vec::new();
    for knee in row::ORDER.into_iter().filter_map(found) {
        let text = maximum_of_pattern(knee, result, has_shares, style);
        let is_random = knee.phase.is_random();
        match patterns.last_mut() {
            Some((same_order, title, same)) if *same_order == is_random && *same == text => {
                title.push_str(" and write");
            }
            _ => {
                let order = if is_random { "random" } else { "seq." };
                let direction = Subject::from(knee.phase.direction()).name();
                let title = format!("{order} {direction}");
                patterns.push((is_random, title, text));
            }
        }
    }
    let texts = patterns.iter();
    let texts: Vec<String> = texts
        .map(|(_, title, text)| format!("{title} {text}"))
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// `763k at depth 128 (98 % at depth 64)`, the rate that was measured at depth 128 and the share of
/// it at the knee; `at depth 256, still rising` if the rate rises there. `in short runs, 80k in a
/// longer one` if the target did not keep it up. An unknown maximum has its reason.
fn maximum_of_pattern(
    knee: &Knee,
    result: &ProbeResult,
    has_shares: bool,
    style: TextStyle,
) -> String {
    let found = &knee.saturation;
    let is_large = knee.phase.block_bytes() >= LARGE_BYTES;
    if let Some(doubt) = found.maximum_doubt(is_large, style.plus_minus()) {
        return format!("not known ({doubt})");
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
    let rising = if found.claims().rises {
        ", still rising"
    } else {
        ""
    };
    let depths = MaximumDepthWords::from_knee(knee);
    let at = match has_shares {
        true => depths.with_share(),
        false => depths.at,
    };
    format!("{} {at}{rising}{sustained}", rate(found.maximum))
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

/// A reason to doubt figures in a word or two, with these figures in words.
type FigureDoubt = (String, &'static str);

/// Kinds of findings that make figures wrong with their figures, if `is_wanted` accepts them.
fn doubts(
    result: &ProbeResult,
    is_wanted: impl Fn(&PhaseRun, VerdictKind) -> bool,
) -> Vec<FigureDoubt> {
    let has = |run: &PhaseRun, kind: VerdictKind| {
        let mut kinds = run.result.verdicts.iter().map(|verdict| verdict.kind);
        kinds.any(|found| found == kind) && is_wanted(run, kind)
    };
    let phases_of = |kind: VerdictKind| {
        let is_found = |phase: &ProbePhase| {
            let mut runs = result.runs.iter().filter(|run| run.phase == *phase);
            runs.any(|run| has(run, kind))
        };
        let phases: Vec<ProbePhase> = row::ORDER.into_iter().filter(is_found).collect();
        phases
    };
    let doubt = |(kind, words): &(VerdictKind, &'static str)| {
        let phases = phases_of(*kind);
        (!phases.is_empty()).then(|| (phases_in_words(result, &phases), *words))
    };
    DOUBTFUL_KINDS.iter().filter_map(doubt).collect()
}

/// Names the figures of these phases: `all`, `all but random read at depth 64`, or each. Random
/// phases differ by their depths.
fn phases_in_words(result: &ProbeResult, phases: &[ProbePhase]) -> String {
    let is_measured = |phase: &ProbePhase| result.runs.iter().any(|run| run.phase == *phase);
    let name = |phase: ProbePhase| {
        // A comma separates the names.
        let title = phase.plain_title();
        let figure = result.figure(phase);
        let iodepth = figure.map_or(phase.iodepth(), |figure| figure.iodepth);
        match phase.is_random() {
            true => format!("{title} at depth {iodepth}"),
            false => title.to_owned(),
        }
    };
    let measured = row::ORDER.into_iter().filter(is_measured);
    let others = measured.filter(|phase| !phases.contains(phase));
    let others: Vec<String> = others.map(name).collect();
    let named: Vec<String> = phases.iter().map(|phase| name(*phase)).collect();
    match (others.len(), named.len()) {
        (_, 1) => named.concat(),
        (0, _) => "all".to_owned(),
        (few, many) if few < many => format!("all but {}", others.join(", ")),
        _ => named.join(", "),
    }
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

/// Names early endings and the figures in doubt, each set of figures once with all its reasons.
fn doubts_in_words(endings: &[&str], doubts: &[FigureDoubt]) -> String {
    let sets = crate::grouped(doubts.iter().map(|(figures, reason)| (figures, *reason)));
    let named = sets
        .iter()
        .map(|(figures, reasons)| format!("{figures} ({})", reasons.join(", ")));
    let endings = endings.iter().map(|ending| (*ending).to_owned());
    let parts: Vec<String> = endings.chain(named).collect();
    format!("Doubtful figures: {}", parts.join("; "))
}

/// Everything that makes figures wrong, for a report without notes. `None` if there is nothing. The
/// figures are named if the text fits into a line.
pub(super) fn brief_warning(result: &ProbeResult) -> Option<String> {
    let answered = table::answered_instead(result);
    let kinds = doubts(result, |run, kind| !is_answered_instead(result, run, kind));
    let endings: Vec<&str> = endings(result).collect();
    if kinds.is_empty() && endings.is_empty() {
        return answered;
    }
    let source = answered.map(|_| match result.classification.unwritten {
        true => UNWRITTEN_WORDS,
        false => CACHE_WORDS,
    });
    let source = source.map(|words| ("all reads".to_owned(), words));
    let all: Vec<FigureDoubt> = source.into_iter().chain(kinds).collect();
    let named = doubts_in_words(&endings, &all);
    if named.chars().count() <= text_columns() {
        return Some(named);
    }
    let reasons = all.iter().map(|(_, reason)| *reason);
    let unnamed = crate::unique(endings.into_iter().chain(reasons));
    Some(format!("Doubtful figures: {}", unnamed.join(", ")))
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
        notes.insert(endings, doubts_in_words(&[], &doubts));
    }
    // The word for the shape of the rate says that a rate is not steady.
    notes.extend(conditions::findings(result, |kind| {
        kind != VerdictKind::Unsteady && !is_doubtful(kind)
    }));
    notes.extend(limits::write_cache_notes(result));
    notes.extend(result.notes.iter().cloned());
    notes.extend(other.into_iter().map(|(text, _)| text));
    notes
}
