//! `iosonde compare`: is B faster than A?

mod sides;

use super::expect::promises;
use crate::args::{CompareArgs, TextFormat};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::comparison::{Document, Expected, beside};
use crate::report::figures::{label, percent};
use crate::report::history::time;
use crate::store::KeptStudy;
use iosonde_result::compare::{Comparison, compare_with_earlier_runs};
use jiff::tz::TimeZone;
use sides::{Chosen, Studies, earlier_runs};

/// Prints the comparison; fails if it is asked to and B is slower.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let store = args.store.store.as_deref();
    let promises = promises(&args.expect)?;
    if args.format == TextFormat::Csv && !promises.is_empty() {
        return Err(Failure::usage(
            "CSV has one line for each figure, and no place for what was promised",
            "write --format json, markdown or table with --expect",
        ));
    }
    let mut a = Chosen::of(&args.a, store)?;
    let mut b = Chosen::of(&args.b, store)?;
    let studies = Studies::of(&mut a, &mut b);
    let earlier = earlier_runs(&a, &b, store)?;
    let earlier = earlier.each_ref().map(Vec::as_slice);
    let mut comparison = compare_with_earlier_runs(&a.results, &b.results, earlier);
    comparison.notes.extend(studies.notes);
    comparison.notes.extend(a.other_way(&b));
    let mut document = Document::of(&a.name, &b.name, &comparison);
    document.sweep = &studies.sweep;
    document.titles = studies.titles;
    document.expected = promises
        .iter()
        .map(|promise| {
            let beside = |side: &Chosen| beside(promise, side.probe().as_ref(), &side.results);
            Expected::of(promise, beside(&a), beside(&b))
        })
        .collect();
    Output::Standard.write(&document.text(args.format))?;
    if comparison.rows.is_empty() {
        return Err(Failure::usage(
            "the two have no figure in common",
            "compare results of the same kind of job",
        ));
    }
    args.fail_if_slower
        .map_or(Ok(()), |share| judge(&comparison, share))
}

/// `probe of /data on n1, 2026-11-21 03:01`.
fn described(study: &KeptStudy) -> String {
    let machine = study
        .machine
        .as_ref()
        .map_or(String::new(), |name| format!(" on {name}"));
    let started = time(study.started_at_ms, &TimeZone::system());
    format!("{} of {}{machine}, {started}", study.kind, study.target)
}

/// The exit status for CI.
fn judge(comparison: &Comparison, share: f64) -> Result<(), Failure> {
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
    Err(Failure::Slower(format!(
        "B is slower by {} or more: {}",
        percent(share),
        named.join(", ")
    )))
}

#[cfg(test)]
mod tests;
