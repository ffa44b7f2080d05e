//! Several targets: the main figures of all, and a comparison of each with the first.

use super::limits::MOST;
use super::{device, maximum_depth, row};
use crate::comparison::ComparisonDocument;
use crate::format::TextFormat;
use crate::hanging_lines::fitted;
use crate::known_digits::known_percentile;
use crate::markdown_table::MarkdownColumn::{Left, Right};
use crate::markdown_table::markdown_table;
use crate::text_table::{columns, is_narrow, plain, render, right, wrapped};
use comfy_table::Cell;
use iosonde_result::compare::{
    Comparison, ComparisonRow, Measure, MeasuredResult, ResultPart, Subject, compare, parts,
};
use iosonde_study::probe::{PhaseFigure, ProbePhase, ProbeResult, most, most_of};

/// Compares each further target with the first.
pub(super) fn comparisons(results: &[ProbeResult]) -> Vec<(&ProbeResult, Comparison)> {
    let Some((first, others)) = results.split_first() else {
        return Vec::new();
    };
    let a = [measured(first)];
    let against = |other| (other, compare(&a, &[measured(other)]));
    others.iter().map(against).collect()
}

/// Returns the parts of a probe that are compared.
pub(crate) fn measured(result: &ProbeResult) -> MeasuredResult {
    let runs = result
        .runs
        .iter()
        .filter(|run| run.phase != ProbePhase::Layout);
    let mut measured: Vec<ResultPart> = runs.flat_map(|run| parts(&run.result)).collect();
    measured.extend(most(result, &measured));
    MeasuredResult {
        name: result.target.clone(),
        machine: None,
        parts: measured,
    }
}

/// Returns the text below the tables of all targets.
pub(super) fn table(results: &[ProbeResult]) -> String {
    let mut text = "\nSide by side\n\n".to_owned();
    for line in device::shared_sentences(results) {
        text.push_str(&format!("{}\n", wrapped(&line)));
    }
    let maxima = maxima(results);
    if !maxima.is_empty() {
        text.push_str(&format!("{}\n", maxima_table(results, &maxima)));
    }
    if results.len() > 2 {
        text.push_str(&headlines(results));
        text.push('\n');
    }
    let each: Vec<String> = headline_comparisons(results, TextFormat::Table);
    text.push_str(&each.join("\n"));
    text
}

/// Returns Markdown for a report or an issue.
pub(super) fn markdown(results: &[ProbeResult]) -> String {
    let mut text = "\n## Side by side\n\n".to_owned();
    for line in device::shared_sentences(results) {
        text.push_str(&format!("{line}\n\n"));
    }
    let maxima = maxima(results);
    if !maxima.is_empty() {
        text.push_str(&maxima_markdown(results, &maxima));
    }
    let each = headline_comparisons(results, TextFormat::Markdown);
    text.push_str(&each.join("\n"));
    text
}

/// Maxima at any depth, which one depth can hide: per pattern, a title and a cell per target.
fn maxima(results: &[ProbeResult]) -> Vec<(&'static str, Vec<String>)> {
    let is_searched = |phase: &ProbePhase| {
        results
            .iter()
            .any(|result| result.knees.iter().any(|k| k.phase == *phase))
    };
    let cells = |phase: ProbePhase| -> Vec<String> {
        let cell = |result: &ProbeResult| {
            let knee = result.knees.iter().find(|knee| knee.phase == phase);
            let most =
                |knee| maximum_depth::most_and_depth(knee, result.sustained_rate(knee).is_some());
            knee.map_or("-".to_owned(), most)
        };
        results.iter().map(cell).collect()
    };
    let searched = row::ORDER.into_iter().filter(is_searched);
    searched
        .map(|phase| (phase.title(), cells(phase)))
        .collect()
}

fn maxima_table(results: &[ProbeResult], maxima: &[(&'static str, Vec<String>)]) -> String {
    let mut table = plain();
    let mut head = vec![Cell::new(MOST)];
    head.extend(results.iter().map(|result| right(&result.target)));
    table.set_header(head);
    for (title, cells) in maxima {
        let mut row = vec![Cell::new(title)];
        row.extend(cells.iter().map(right));
        table.add_row(row);
    }
    render(&table)
}

fn maxima_markdown(results: &[ProbeResult], maxima: &[(&'static str, Vec<String>)]) -> String {
    let mut columns = vec![Left(MOST)];
    columns.extend(results.iter().map(|result| Right(&result.target)));
    let rows = maxima.iter().map(|(title, cells)| {
        let title = std::iter::once((*title).to_owned());
        title.chain(cells.iter().cloned()).collect::<Vec<String>>()
    });
    markdown_table(&columns, rows) + "\n"
}

/// The comparisons, with one figure per phase.
fn headline_comparisons(results: &[ProbeResult], format: TextFormat) -> Vec<String> {
    let found = comparisons(results).into_iter();
    let text = |(other, comparison): (&ProbeResult, Comparison)| {
        let headline = of_headlines(&results[0], comparison);
        let mut document = ComparisonDocument::new(&results[0].target, &other.target, &headline);
        document.titles = row::titles_of_probes(&[&results[0], other]);
        document.text(format)
    };
    found.map(text).collect()
}

/// Keeps the maxima and the main figure of each phase, in the order of the table.
pub(crate) fn of_headlines(first: &ProbeResult, comparison: Comparison) -> Comparison {
    let all = comparison.rows.len();
    let mut rows: Vec<ComparisonRow> = Vec::new();
    for phase in row::ORDER {
        let part = most_of(phase);
        let found = comparison.rows.iter().find(|row| row.part == part);
        rows.extend(found.cloned());
    }
    for figure in row::ORDER.iter().filter_map(|phase| first.figure(*phase)) {
        let measure = measure(figure);
        let is_sync = figure.phase == ProbePhase::SyncedWrite;
        let found = comparison.rows.iter().find(|row| {
            let of_sync = row.subject == Subject::Sync;
            row.part == figure.phase.key() && row.measure == measure && of_sync == is_sync
        });
        rows.extend(found.cloned());
    }
    let mut notes = comparison.notes;
    if rows.len() < all {
        notes.push(format!(
            "{} of {all} figures; `iosonde compare --details` shows all of them",
            rows.len()
        ));
    }
    Comparison {
        rows,
        notes,
        ..comparison
    }
}

/// At depth 1, latency is the main figure.
fn measure(figure: &PhaseFigure) -> Measure {
    match figure.iodepth {
        1 => Measure::LatP50,
        _ => Measure::Iops,
    }
}

/// Table of the main figures of all targets. On a narrow terminal, the figures of a phase are on
/// lines below its name.
pub(super) fn headlines(results: &[ProbeResult]) -> String {
    if is_narrow() {
        return headline_lines(results);
    }
    let mut table = plain();
    let mut head = vec![Cell::new("")];
    head.extend(results.iter().map(|result| right(&result.target)));
    table.set_header(head);
    for phase in row::ORDER {
        let found: Vec<Option<&PhaseFigure>> =
            results.iter().map(|result| result.figure(phase)).collect();
        let Some(first) = found.iter().flatten().next() else {
            continue;
        };
        let mut cells = vec![Cell::new(row::label(first))];
        let side = |figure: &Option<&PhaseFigure>| right(figure.map_or("-".to_owned(), side));
        cells.extend(found.iter().map(side));
        table.add_row(cells);
    }
    render(&table)
}

fn headline_lines(results: &[ProbeResult]) -> String {
    let mut text = String::new();
    for phase in row::ORDER {
        let found = results
            .iter()
            .filter_map(|result| Some((result, result.figure(phase)?)));
        for (index, (result, figure)) in found.enumerate() {
            if index == 0 {
                text.push_str(&format!("{}\n", row::label(figure)));
            }
            let figure = side(figure);
            let room = columns().saturating_sub(figure.chars().count() + 4);
            let target = fitted(&result.target, room);
            text.push_str(&format!("  {target:<room$}  {figure}\n"));
        }
    }
    text
}

fn side(figure: &PhaseFigure) -> String {
    match (figure.iodepth, row::latency(figure).p50_ns) {
        (1, Some(p50)) => {
            let interval = row::latency(figure).p50_between_ns;
            format!("p50 {}", known_percentile(Some(p50), interval))
        }
        _ => row::headline(figure),
    }
}
