//! `iosonde compare`: is B faster than A?

mod sides;

use super::expect::promises;
use crate::args::CompareArgs;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::StudyRecord;
use iosonde_report::comparison::{ComparisonDocument, PromiseSides, judge_side};
use iosonde_report::figures::{label, percent};
use iosonde_report::format::TextFormat;
use iosonde_report::history::time;
use iosonde_result::compare::{Comparison, compare_with_earlier_runs};
use jiff::tz::TimeZone;
use sides::{Chosen, Studies, earlier_runs};

/// Prints the comparison. With `--fail-if-slower`, fails if B is slower.
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
    comparison.notes.extend(studies.notes);
    comparison.notes.extend(a.other_way(&b));
    let mut document = ComparisonDocument::new(&a.name, &b.name, &comparison);
    document.sweep = &studies.sweep;
    document.titles = studies.titles;
    document.expected = promises
        .iter()
        .map(|promise| {
            let judge = |side: &Chosen| judge_side(promise, side.probe().as_ref(), &side.results);
            PromiseSides::pair(promise, judge(&a), judge(&b))
        })
        .collect();
    Output::Standard.write(&document.text(args.format))?;
    if comparison.rows.is_empty() {
        return Err(CommandError::usage(
            "the two results have no figure in common",
            "compare results of the same kind of job",
        ));
    }
    args.fail_if_slower
        .map_or(Ok(()), |share| judge(&comparison, share))
}

/// `probe of /data on n1, 2026-11-21 03:01`.
fn described(study: &StudyRecord) -> String {
    let machine = study
        .machine
        .as_ref()
        .map_or(String::new(), |name| format!(" on {name}"));
    let started = time(study.started_at_ms, &TimeZone::system());
    format!("{} of {}{machine}, {started}", study.kind, study.target)
}

/// Fails if B is slower by `share` or more, which sets the exit status for CI.
fn judge(comparison: &Comparison, share: f64) -> Result<(), CommandError> {
    let slower = comparison.slower_by(share);
    if slower.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = slower
        .iter()
        .map(|row| {
            let name = label(row.subject.name(), row.measure);
            format!("{} {name} by {}", row.part, percent(row.slower_by()))
        })
        .collect();
    Err(CommandError::Slower(format!(
        "B is slower by {} or more: {}",
        percent(share),
        named.join(", ")
    )))
}

#[cfg(test)]
mod tests;
