//! Several targets: the main figures of all, and a comparison of each with the first.

use super::limits::MOST;
use super::{device, maximum_depth, row};
use crate::comparison::ComparisonDocument;
use crate::format::TextFormat;
use crate::hanging_lines::fitted;
use crate::known_digits::known_percentile;
use crate::markdown_table::markdown_table;
use crate::text_table::{
    TableColumn, aligned_columns, columns, fill_table, is_narrow, plain, render, wrapped,
};
use iosonde_result::compare::{
    Comparison, ComparisonNote, ComparisonRow, Measure, MeasuredResult, ResultPart, Subject,
    compare, parts,
};
use iosonde_study::probe::{PhaseFigure, ProbePhase, ProbeResult, maximum_rate_parts, most_of};

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
    let runs = row::measured_runs(result);
    let mut measured: Vec<ResultPart> = runs.flat_map(|run| parts(&run.result)).collect();
    measured.extend(maximum_rate_parts(result, &measured));
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
        text.push_str(&format!("{}\n", maxima_table(results, maxima)));
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
        let columns = target_columns(MOST, results);
        text.push_str(&(markdown_table(&columns, maxima) + "\n"));
    }
    let each = headline_comparisons(results, TextFormat::Markdown);
    text.push_str(&each.join("\n"));
    text
}

/// Maxima at any depth, which one depth can hide: per pattern, a title and a cell per target.
fn maxima(results: &[ProbeResult]) -> Vec<Vec<String>> {
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
        let title = phase.title().to_owned();
        let cells = results.iter().map(cell);
        std::iter::once(title).chain(cells).collect()
    };
    let searched = row::ORDER.into_iter().filter(is_searched);
    searched.map(cells).collect()
}

fn maxima_table(results: &[ProbeResult], maxima: Vec<Vec<String>>) -> String {
    render(&fill_table(plain(), &target_columns(MOST, results), maxima))
}

/// Columns of a title and of all targets.
fn target_columns<'a>(title: &'a str, results: &'a [ProbeResult]) -> Vec<TableColumn<'a>> {
    let targets = results.iter().map(|result| result.target.as_str());
    let head: Vec<&str> = [title].into_iter().chain(targets).collect();
    aligned_columns(&head, 1)
}

/// The comparisons, with one figure per phase.
fn headline_comparisons(results: &[ProbeResult], format: TextFormat) -> Vec<String> {
    let found = comparisons(results).into_iter();
    let text = |(other, comparison): (&ProbeResult, Comparison)| {
        headline_comparison((&results[0], other), comparison, format)
    };
    found.map(text).collect()
}

/// The text of a comparison of two targets, with one figure per phase.
pub(super) fn headline_comparison(
    (first, other): (&ProbeResult, &ProbeResult),
    comparison: Comparison,
    format: TextFormat,
) -> String {
    let headline = of_headlines(first, comparison);
    let mut document = ComparisonDocument::new(&first.target, &other.target, &headline);
    document.titles = row::titles_of_probes(&[first, other]);
    document.text(format)
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
    for figure in row::figures(first) {
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
        notes.push(ComparisonNote::Other(format!(
            "{} of {all} figures; `iosonde compare --details` shows all of them",
            rows.len()
        )));
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
    let rows = row::ORDER.into_iter().filter_map(|phase| {
        let found = results.iter().map(|result| result.figure(phase));
        let label = row::label(found.clone().flatten().next()?);
        let figures = found.map(|figure| figure.map_or("-".to_owned(), figure_side_text));
        Some(std::iter::once(label).chain(figures).collect::<Vec<_>>())
    });
    render(&fill_table(plain(), &target_columns("", results), rows))
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
            let figure = figure_side_text(figure);
            let room = columns().saturating_sub(figure.chars().count() + 4);
            let target = fitted(&result.target, room);
            text.push_str(&format!("  {target:<room$}  {figure}\n"));
        }
    }
    text
}

fn figure_side_text(figure: &PhaseFigure) -> String {
    match (figure.iodepth, row::latency(figure).p50_ns) {
        (1, Some(p50)) => {
            let interval = row::latency(figure).p50_between_ns;
            format!("p50 {}", known_percentile(Some(p50), interval))
        }
        _ => row::headline(figure),
    }
}
