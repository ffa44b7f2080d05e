//! Several targets side by side: the headlines of all, and each held against the first.

use super::limits::MOST;
use super::table::{plain, render, right, wrapped};
use super::{device, row};
use crate::args::TextFormat;
use crate::report::comparison::Document;
use comfy_table::Cell;
use iosonde_result::compare::{Comparison, Measure, Measured, Part, Row, Subject, compare, parts};
use iosonde_study::probe::{Figure, Phase, ProbeResult, most, most_of};
use iosonde_study::words;

/// Each target but the first, held against the first: its name and what was found.
pub(super) fn comparisons(results: &[ProbeResult]) -> Vec<(&ProbeResult, Comparison)> {
    let Some((first, others)) = results.split_first() else {
        return Vec::new();
    };
    let a = [measured(first)];
    let against = |other| (other, compare(&a, &[measured(other)]));
    others.iter().map(against).collect()
}

fn measured(result: &ProbeResult) -> Measured {
    let runs = result.runs.iter().filter(|run| run.phase != Phase::Layout);
    let mut measured: Vec<Part> = runs.flat_map(|run| parts(&run.result)).collect();
    measured.extend(most(result, &measured));
    Measured {
        name: result.target.clone(),
        machine: None,
        parts: measured,
    }
}

/// For people, below the tables of each target.
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

/// For a report or an issue.
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

/// The most at any depth of each pattern and target, which one depth alone may hide: a title, and a cell for each target.
fn maxima(results: &[ProbeResult]) -> Vec<(&'static str, Vec<String>)> {
    let is_searched = |phase: &Phase| {
        results
            .iter()
            .any(|result| result.knees.iter().any(|k| k.phase == *phase))
    };
    let cells = |phase: Phase| -> Vec<String> {
        let cell = |result: &ProbeResult| {
            let knee = result.knees.iter().find(|knee| knee.phase == phase);
            knee.map_or("-".to_owned(), row::most_and_knee)
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
    let names: Vec<&str> = results
        .iter()
        .map(|result| result.target.as_str())
        .collect();
    let mut text = format!("| {MOST} | {} |\n", names.join(" | "));
    text.push_str(&format!("| --- |{}\n", " ---: |".repeat(results.len())));
    for (title, cells) in maxima {
        text.push_str(&format!("| {title} | {} |\n", cells.join(" | ")));
    }
    text.push('\n');
    text
}

/// The comparisons, with one figure for each phase.
fn headline_comparisons(results: &[ProbeResult], format: TextFormat) -> Vec<String> {
    let found = comparisons(results).into_iter();
    let text = |(other, comparison): (&ProbeResult, Comparison)| {
        let headline = of_headlines(&results[0], comparison);
        let mut document = Document::of(&results[0].target, &other.target, &headline);
        document.titles = row::titles(other);
        document.titles.extend(row::titles(&results[0]));
        document.text(format)
    };
    found.map(text).collect()
}

/// The most at any depth, and then only the figure that each phase is about, in the order of the table.
fn of_headlines(first: &ProbeResult, comparison: Comparison) -> Comparison {
    let all = comparison.rows.len();
    let mut rows: Vec<Row> = Vec::new();
    for phase in row::ORDER {
        let part = most_of(phase);
        let found = comparison.rows.iter().find(|row| row.part == part);
        rows.extend(found.cloned());
    }
    for figure in row::ORDER.iter().filter_map(|phase| first.figure(*phase)) {
        let measure = measure(figure);
        let is_sync = figure.phase == Phase::SyncedWrite;
        let found = comparison.rows.iter().find(|row| {
            let of_sync = row.subject == Subject::Sync;
            row.part == figure.phase.key() && row.measure == measure && of_sync == is_sync
        });
        rows.extend(found.cloned());
    }
    let mut notes = comparison.notes;
    if rows.len() < all {
        notes.push(format!(
            "These are {} of {all} figures; `iosonde compare` shows all of them",
            rows.len()
        ));
    }
    Comparison {
        rows,
        notes,
        ..comparison
    }
}

/// One at a time, the wait is what counts.
fn measure(figure: &Figure) -> Measure {
    match figure.iodepth {
        1 => Measure::LatP50,
        _ => Measure::Iops,
    }
}

/// The headlines of all targets.
fn headlines(results: &[ProbeResult]) -> String {
    let mut table = plain();
    let mut head = vec![Cell::new("")];
    head.extend(results.iter().map(|result| right(&result.target)));
    table.set_header(head);
    for phase in row::ORDER {
        let found: Vec<Option<&Figure>> =
            results.iter().map(|result| result.figure(phase)).collect();
        let Some(first) = found.iter().flatten().next() else {
            continue;
        };
        let mut cells = vec![Cell::new(row::label(first))];
        let side = |figure: &Option<&Figure>| right(figure.map_or("-".to_owned(), side));
        cells.extend(found.iter().map(side));
        table.add_row(cells);
    }
    render(&table)
}

fn side(figure: &Figure) -> String {
    match (figure.iodepth, row::latency(figure).p50_ns) {
        (1, Some(p50)) => format!("p50 {}", words::latency(p50 as f64)),
        _ => row::headline(figure),
    }
}
