//! Markdown tables for a report or an issue.

use super::{conditions, device, limits, row, side_by_side, table};
use crate::markdown_table::markdown_table;
use crate::promise;
use crate::text_table::TableColumn;
use crate::text_table::TableColumn::{Left, Right};
use iosonde_study::probe::ProbeResult;
use iosonde_study::promise_check::PromiseCheck;
use iosonde_study::words;

pub(super) fn probe_markdown(results: &[ProbeResult]) -> String {
    let each = results
        .iter()
        .map(|result| target_markdown(result, results));
    let mut text = each.collect::<Vec<_>>().join("\n");
    if results.len() > 1 {
        text.push_str(&side_by_side::markdown(results));
    }
    text
}

const FIGURE_COLUMNS: [TableColumn<'_>; 8] = [
    Left(""),
    Right("per second"),
    Right("95 % +-"),
    Right("bandwidth"),
    Right("p50"),
    Right("p99"),
    Right("p99.9"),
    Left(""),
];

fn target_markdown(result: &ProbeResult, results: &[ProbeResult]) -> String {
    let size = words::bytes(result.working_set.bytes);
    let mut text = format!("## {}\n\n", result.target);
    if !device::is_shared(result, results) {
        text.push_str(&format!("{}\n\n", result.classification.sentence));
    }
    let rows = row::figures(result).map(|figure| {
        let doubts = vec![row::doubts(figure, "±").join("; ")];
        [row::figure_cells(figure).to_vec(), doubts].concat()
    });
    text.push_str(&markdown_table(&FIGURE_COLUMNS, rows));
    text.push_str(&intervals(result));
    let knees = limits::knees(result);
    let most = knees
        .into_iter()
        .map(|(name, value)| (format!("{}, {name}", limits::MOST), value));
    let bottlenecks = limits::bottlenecks(result).into_iter();
    let bottlenecks = bottlenecks.chain(limits::ceilings(result));
    let bottlenecks = bottlenecks.map(|(name, value)| (name.to_owned(), value));
    let lines: Vec<_> = most.chain(bottlenecks).collect();
    if !lines.is_empty() {
        text.push('\n');
    }
    for (name, value) in lines {
        text.push_str(&format!("- {name}: {value}\n"));
    }
    let working_set = std::iter::once(["working set".to_owned(), size]);
    let conditions = conditions::list_conditions(result).into_iter();
    let conditions = conditions.map(|(name, value)| [name.to_owned(), value]);
    let table = markdown_table(
        &[Left("condition"), Left("")],
        working_set.chain(conditions),
    );
    text.push_str(&format!("\n{table}"));
    for held in &result.expected {
        text.push_str(&promised(held));
    }
    text
}

/// Confidence intervals of the latency percentiles. Empty if none is known.
fn intervals(result: &ProbeResult) -> String {
    let rows = table::interval_rows(result);
    match rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", markdown_table(&table::INTERVAL_COLUMNS, rows)),
    }
}

fn promised(held: &PromiseCheck) -> String {
    let mut text = format!(
        "\n### Promised: {}\n\n{}\n\n",
        promise::title(&held.promise),
        held.sentence()
    );
    if held.is_of_cache() {
        return text;
    }
    let columns = [
        Left(""),
        Right("promised"),
        Right("measured"),
        Right("95 % +-"),
        Right("of it"),
        Left("verdict"),
    ];
    let rows = held.rows.iter().map(|row| {
        let mut verdict = vec![promise::verdict_keyword(row.judged.verdict)];
        verdict.extend(row.doubts.iter().map(|doubt| doubt.words()));
        [
            promise::figure_cells(row).to_vec(),
            vec![verdict.join("; ")],
        ]
        .concat()
    });
    text.push_str(&markdown_table(&columns, rows));
    if !held.conditions.is_empty() {
        text.push('\n');
    }
    for condition in &held.conditions {
        text.push_str(&format!("- {condition}\n"));
    }
    text
}
