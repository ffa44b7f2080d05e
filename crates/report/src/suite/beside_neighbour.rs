//! Figures of a suite alone and beside a neighbour, and their ratios.

use crate::figures::known_figure;
use crate::markdown_table::markdown_table;
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{TableColumn, fill_table, hide_columns, plain, render, wrapped};
use crate::unique;
use iosonde_result::compare::{Measure, Subject};
use iosonde_suite::{BesideFigure, SuiteResult};

const COLUMNS: [TableColumn<'_>; 5] = [
    Left(""),
    Left("figure"),
    Right("alone"),
    Right("beside"),
    Right("beside / alone"),
];

/// Columns that a narrow terminal does not show, the least important first: alone, beside. The
/// ratio stays.
const LEAST_IMPORTANT: [usize; 2] = [2, 3];

/// Returns the figures as text. Empty if nothing was measured beside a neighbour. `plus_minus`
/// stands before half an interval.
pub(super) fn table(result: &SuiteResult, plus_minus: &str) -> String {
    let Some(title) = title(result) else {
        return String::new();
    };
    let mut table = fill_table(plain(), &COLUMNS, neighbour_rows(result, plus_minus));
    hide_columns(&mut table, &LEAST_IMPORTANT);
    format!("\n{}{}", wrapped(&title), render(&table))
}

/// Returns the figures as a Markdown table. Empty if nothing was measured beside a neighbour.
pub(super) fn markdown(result: &SuiteResult) -> String {
    let Some(title) = title(result) else {
        return String::new();
    };
    let table = markdown_table(&COLUMNS, neighbour_rows(result, "±"));
    format!("\n{title}\n\n{table}")
}

/// Names the neighbours.
fn title(result: &SuiteResult) -> Option<String> {
    let steps = result.steps.iter();
    let options = unique(steps.filter_map(|step| step.beside.as_deref()));
    let is_shown = !result.beside.is_empty() && !options.is_empty();
    is_shown.then(|| {
        format!(
            "Alone, and beside a neighbour ({}), whose own I/O is in no figure:",
            options.join("; ")
        )
    })
}

fn neighbour_rows(result: &SuiteResult, plus_minus: &str) -> Vec<[String; 5]> {
    let shown = result.beside.iter().filter(|figure| is_shown(figure));
    let mut before = "";
    let mut rows = Vec::new();
    for figure in shown {
        let part = match before == figure.part {
            true => String::new(),
            false => figure.part.clone(),
        };
        before = &figure.part;
        rows.push([
            part,
            format!("{} {}", figure.subject.name(), figure.measure.title()),
            known_figure(figure.measure, figure.alone, figure.alone_interval),
            known_figure(figure.measure, figure.beside, figure.beside_interval),
            figure.times(plus_minus),
        ]);
    }
    rows
}

/// Whether the table shows a figure: rates, and the latencies that suites show elsewhere.
fn is_shown(figure: &BesideFigure) -> bool {
    match figure.measure {
        Measure::Iops | Measure::BytesPerS => figure.subject != Subject::Sync,
        Measure::LatP50 | Measure::LatP99 | Measure::ClatP50 | Measure::ClatP99 => true,
        _ => false,
    }
}
