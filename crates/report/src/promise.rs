//! Comparison of promised with measured figures.

use crate::intervals::NOT_KNOWN;
use crate::text_table::{plain, render, right, wrapped};
use comfy_table::Cell;
use iosonde_limits::{Metric, Promise, PromiseComparison, PromiseVerdict, VendorUnit, exact};
use iosonde_result::compare::Subject;
use iosonde_study::promise_check::{CheckedFigure, PromiseCheck, PromiseDoubt};

/// Returns the table, the doubts, and the conditions that were not measured.
pub(crate) fn table(held: &PromiseCheck) -> String {
    let mut text = wrapped(&format!("Promised: {}", title(&held.promise)));
    text.push('\n');
    if held.is_of_cache() {
        text.push_str(&wrapped(&held.sentence()));
        for condition in &held.conditions {
            text.push_str(&listed(condition));
        }
        return text;
    }
    if !held.rows.is_empty() {
        text.push_str(&figures(held));
        text.push('\n');
    }
    for (doubt, metrics) in doubts(held) {
        text.push_str(&wrapped(&format!(
            "{}: {}.",
            metrics.join(", "),
            doubt.words()
        )));
    }
    text.push_str(&wrapped(&held.sentence()));
    for condition in &held.conditions {
        text.push_str(&listed(condition));
    }
    text
}

/// Name of the promise: `Google Cloud SSD persistent disk, 375 GiB, n1 with 8 vCPUs`.
pub(crate) fn title(promise: &Promise) -> String {
    let subject = promise.subject();
    match subject.is_empty() {
        true => promise.title.clone(),
        false => format!("{}, {subject}", promise.title),
    }
}

/// Direction of a metric. `None`: the metric is of both directions, but a figure has one.
pub(crate) fn subject_of_metric(metric: Metric) -> Option<Subject> {
    match metric {
        Metric::ReadIops | Metric::ReadBandwidth => Some(Subject::Read),
        Metric::WriteIops | Metric::WriteBandwidth => Some(Subject::Write),
        Metric::Iops | Metric::Bandwidth => None,
    }
}

fn figures(held: &PromiseCheck) -> String {
    let mut table = plain();
    let bursts = held.rows.iter().any(|row| row.judged.burst_per_s.is_some());
    let mut head = vec![Cell::new(""), right("promised")];
    if bursts {
        head.push(right("burst"));
    }
    head.extend(["measured", "95 %+-", "of it"].map(right));
    head.push(Cell::new(""));
    table.set_header(head);
    for row in &held.rows {
        let mut cells = vec![Cell::new(row.judged.metric), right(promised(&row.judged))];
        if bursts {
            cells.push(right(burst(row)));
        }
        cells.extend([measured(&row.judged), error(row), share(&row.judged)].map(right));
        cells.push(Cell::new(verdict(row)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(&table)
}

/// Doubts about the verdicts, each with its metrics.
fn doubts(held: &PromiseCheck) -> Vec<(PromiseDoubt, Vec<String>)> {
    let mut found: Vec<(PromiseDoubt, Vec<String>)> = Vec::new();
    for row in &held.rows {
        for doubt in &row.doubts {
            let metric = row.judged.metric.to_string();
            match found.iter_mut().find(|(known, _)| known == doubt) {
                Some((_, metrics)) => metrics.push(metric),
                None => found.push((*doubt, vec![metric])),
            }
        }
    }
    found
}

/// List item, wrapped with a hanging indent.
fn listed(text: &str) -> String {
    let mut table = plain();
    table.add_row(["-", text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    render(&table)
}

/// Promised value in the vendor's unit, as exact as published.
pub(crate) fn promised(judged: &PromiseComparison) -> String {
    judged.promised.unit.show(judged.promised_per_s)
}

fn burst(row: &CheckedFigure) -> String {
    let show = |per_s| row.judged.promised.unit.show(per_s);
    row.judged.burst_per_s.map_or("-".to_owned(), show)
}

/// Measured value in the same unit, rounded to a readable precision.
pub(crate) fn measured(judged: &PromiseComparison) -> String {
    let unit = judged.promised.unit;
    let number = judged.measured_per_s / unit.factor();
    let rounded = match number < 100.0 {
        true => (number * 10.0).round() / 10.0,
        false => number.round(),
    };
    match unit {
        VendorUnit::Iops => exact(rounded),
        _ => format!("{} {}", exact(rounded), unit.text()),
    }
}

pub(crate) fn error(row: &CheckedFigure) -> String {
    let share = row
        .error_per_s
        .map(|error| error / row.judged.measured_per_s);
    let telling = share.filter(|share| *share < 1.0);
    telling.map_or(NOT_KNOWN.to_owned(), |share| {
        format!("{:.1} %", share * 100.0)
    })
}

/// Returns the measured share of the promise.
pub(crate) fn share(judged: &PromiseComparison) -> String {
    format!("{:.0} %", judged.ratio * 100.0)
}

/// Verdict, with a mark if there are doubts.
pub(crate) fn verdict(row: &CheckedFigure) -> String {
    let doubted = if row.doubts.is_empty() { "" } else { "?" };
    format!("{}{doubted}", word(row.judged.verdict))
}

/// Keyword of the verdict, as in CSV.
pub(crate) fn word(verdict: PromiseVerdict) -> &'static str {
    match verdict {
        PromiseVerdict::Kept => "kept",
        PromiseVerdict::Bursting => "bursting",
        PromiseVerdict::Below => "below",
        PromiseVerdict::Above => "above",
    }
}
