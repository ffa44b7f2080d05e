//! `iosonde compare`: is B faster than A?

mod comparable;
mod mixed_targets;
mod sides;

use super::expect::promises;
use crate::args::CompareArgs;
use crate::failure::CommandError;
use crate::output::Output;
use comparable::comparable_remedy;
use iosonde_history::StudyRecord;
use iosonde_report::comparison::{ComparisonDocument, PromiseSides, judge_side};
use iosonde_report::figures::{label, percent};
use iosonde_report::format::TextFormat;
use iosonde_report::history::list_time_text;
use iosonde_result::compare::{ComparisonNote, ComparisonRow, compare_with_earlier_runs};
use jiff::tz::TimeZone;
use sides::{Chosen, Studies, earlier_runs};

/// Most figures that an error names.
const NAMED_FIGURES_MAX: usize = 3;

/// Prints the comparison. With `--fail-if-slower`, fails if B is slower, or looks slower and no
/// figure is decided.
pub(crate) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    let store = args.store.store.as_deref();
    let promises = promises(&args.expect)?;
    if args.format == TextFormat::Csv && !promises.is_empty() {
        return Err(CommandError::usage(
            "--format csv cannot show the limits of --expect",
            "use --format json, markdown or table with --expect",
        ));
    }
    let mut a = Chosen::resolve(&args.a, store)?;
    let mut b = Chosen::resolve(&args.b, store)?;
    let studies = Studies::from_sides(&mut a, &mut b);
    let earlier = earlier_runs(&a, &b, store)?;
    let earlier = earlier.each_ref().map(Vec::as_slice);
    let mut comparison = compare_with_earlier_runs(&a.results, &b.results, earlier);
    let sides = [("A", &a), ("B", &b)].into_iter();
    let warnings = sides.filter_map(|(side, chosen)| chosen.warning_of_targets(side));
    let warnings = warnings.map(ComparisonNote::Other);
    comparison.notes.splice(0..0, warnings);
    let others = studies.notes.into_iter().chain(a.other_way(&b));
    comparison.notes.extend(others.map(ComparisonNote::Other));
    let mut document = ComparisonDocument::new(&a.name, &b.name, &comparison);
    document.sweep = &studies.sweep;
    document.titles = studies.titles;
    document.is_of_two_kinds = studies.is_of_two_kinds;
    document.expected = promises
        .iter()
        .map(|promise| {
            let judge = |side: &Chosen| judge_side(promise, side.probe().as_ref(), &side.results);
            PromiseSides::pair(promise, judge(&a), judge(&b))
        })
        .collect();
    let mut output = Output::Standard;
    let style = output.style();
    match args.format {
        TextFormat::Table if !args.details => output.write_styled(&document.short_text(style))?,
        format => output.write(&document.text(format))?,
    }
    if comparison.rows.is_empty() {
        return Err(CommandError::usage(
            "the two results have no figure in common",
            comparable_remedy(a.stored.as_deref(), store),
        ));
    }
    args.fail_if_slower
        .map_or(Ok(()), |share| judge(&document, share))
}

/// `probe of /data on n1, 2026-11-21 03:01`.
fn described(study: &StudyRecord) -> String {
    let machine = study
        .machine
        .as_ref()
        .map_or(String::new(), |name| format!(" on {name}"));
    let started = list_time_text(study.started_at_ms, &TimeZone::system());
    format!("{} of {}{machine}, {started}", study.kind, study.target)
}

/// Fails if B is slower by `share` or more, which sets the exit status for CI. Also fails, with
/// another status, if no figure is decided and B looks slower by `share` or more.
fn judge(document: &ComparisonDocument<'_>, share: f64) -> Result<(), CommandError> {
    let comparison = document.comparison;
    let slower = comparison.slower_by(share);
    if !slower.is_empty() {
        return Err(CommandError::Slower(format!(
            "B is slower by {} or more: {}",
            percent(share),
            named(document, &slower)
        )));
    }
    let apparent = comparison.looks_slower_by(share);
    if apparent.is_empty() {
        return Ok(());
    }
    Err(CommandError::Undecided(format!(
        "no figure is decided, but B looks slower by {} or more: {}",
        percent(share),
        named(document, &apparent)
    )))
}

/// `job read IOPS by 9.1 %, job read p99 by 12 %`. Of many figures, the worst are named.
fn named(document: &ComparisonDocument<'_>, rows: &[&ComparisonRow]) -> String {
    let mut worst = rows.to_vec();
    let is_long = rows.len() > NAMED_FIGURES_MAX;
    if is_long {
        worst.sort_by(|one, other| other.slower_by().total_cmp(&one.slower_by()));
        worst.truncate(NAMED_FIGURES_MAX);
    }
    let named: Vec<String> = worst
        .iter()
        .map(|row| {
            let name = label(row.subject.name(), row.measure);
            let title = document.title(&row.part);
            format!("{title} {name} by {}", percent(row.slower_by()))
        })
        .collect();
    let named = named.join(", ");
    match is_long {
        true => format!(
            "{} figures, the worst {named}; the comparison has all",
            rows.len()
        ),
        false => named,
    }
}

#[cfg(test)]
mod tests;
