//! Markdown tables for a report or an issue.

use super::{conditions, device, limits, row, side_by_side};
use crate::known_digits::{
    RATE_UNITS, bandwidth_of_rate, digits_beside_interval, known_percentile,
};
use crate::markdown_table::MarkdownColumn::{Left, Right};
use crate::markdown_table::{MarkdownColumn, markdown_table};
use crate::promise;
use iosonde_study::probe::ProbeResult;
use iosonde_study::promise_check::PromiseCheck;
use iosonde_study::words;

pub(super) fn text(results: &[ProbeResult]) -> String {
    let each = results.iter().map(|result| one(result, results));
    let mut text = each.collect::<Vec<_>>().join("\n");
    if results.len() > 1 {
        text.push_str(&side_by_side::markdown(results));
    }
    text
}

const FIGURE_COLUMNS: [MarkdownColumn<'_>; 8] = [
    Left(""),
    Right("per second"),
    Right("95 % +-"),
    Right("bandwidth"),
    Right("p50"),
    Right("p99"),
    Right("p99.9"),
    Left(""),
];

fn one(result: &ProbeResult, results: &[ProbeResult]) -> String {
    let size = words::bytes(result.working_set.bytes);
    let mut text = format!("## {}\n\n", result.target);
    if !device::is_shared(result, results) {
        text.push_str(&format!("{}\n\n", result.classification.sentence));
    }
    let figures = row::ORDER.iter().filter_map(|phase| result.figure(*phase));
    let rows = figures.map(|figure| {
        let latency = row::latency(figure);
        let (iops, bytes) = (figure.iops, figure.bytes_per_s);
        let [p50, p99, p99_9] = row::intervals(figure);
        [
            row::label(figure),
            digits_beside_interval(iops.mean, iops.error, RATE_UNITS),
            row::error(figure),
            bandwidth_of_rate(bytes.mean, iops.mean, iops.error),
            known_percentile(latency.p50_ns, p50),
            known_percentile(latency.p99_ns, p99),
            known_percentile(latency.p99_9_ns, p99_9),
            row::doubts(figure).join("; "),
        ]
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
    let figures = row::ORDER.iter().filter_map(|phase| result.figure(*phase));
    let mut rows = Vec::new();
    for figure in figures {
        let all = row::intervals(figure);
        if all.iter().any(Option::is_some) {
            let [p50, p99, p99_9] = all.map(row::between);
            rows.push([row::label(figure), p50, p99, p99_9]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let columns = [
        Left("95 % intervals of latency"),
        Right("p50"),
        Right("p99"),
        Right("p99.9"),
    ];
    format!("\n{}", markdown_table(&columns, rows))
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
        let mut verdict = vec![promise::word(row.judged.verdict)];
        verdict.extend(row.doubts.iter().map(|doubt| doubt.words()));
        [
            row.judged.metric.to_string(),
            promise::promised(&row.judged),
            promise::measured(&row.judged),
            promise::error(row),
            promise::share(&row.judged),
            verdict.join("; "),
        ]
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
