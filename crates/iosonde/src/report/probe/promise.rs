//! What was promised beside what was measured.

use super::table::{plain, render, right, wrapped};
use crate::report::intervals::NOT_KNOWN;
use comfy_table::Cell;
use iosonde_study::limits::{Doubt, Held, HeldFigure, Judged, Promise, Unit, Verdict, exact};

/// For people: a table, what speaks against it, and what was not measured.
pub(super) fn table(held: &Held) -> String {
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

/// Of what: `Google Cloud SSD persistent disk, 375 GiB, n1 with 8 vCPUs`.
pub(crate) fn title(promise: &Promise) -> String {
    let subject = promise.subject();
    match subject.is_empty() {
        true => promise.title.clone(),
        false => format!("{}, {subject}", promise.title),
    }
}

fn figures(held: &Held) -> String {
    let mut table = plain();
    let bursts = held.rows.iter().any(|row| row.judged.burst_per_s.is_some());
    let mut head = vec![Cell::new(""), right("promised")];
    if bursts {
        head.push(right("for a while"));
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

/// What speaks against the verdicts, each with the figures that it is about.
fn doubts(held: &Held) -> Vec<(Doubt, Vec<String>)> {
    let mut found: Vec<(Doubt, Vec<String>)> = Vec::new();
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

/// One line of a list, wrapped below itself.
fn listed(text: &str) -> String {
    let mut table = plain();
    table.add_row(["-", text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    render(&table)
}

/// In the vendor's unit, as exact as it is published.
pub(crate) fn promised(judged: &Judged) -> String {
    judged.promised.unit.show(judged.promised_per_s)
}

fn burst(row: &HeldFigure) -> String {
    let show = |per_s| row.judged.promised.unit.show(per_s);
    row.judged.burst_per_s.map_or("-".to_owned(), show)
}

/// In the same unit, as exact as is worth reading.
pub(crate) fn measured(judged: &Judged) -> String {
    let unit = judged.promised.unit;
    let number = judged.measured_per_s / unit.factor();
    let rounded = match number < 100.0 {
        true => (number * 10.0).round() / 10.0,
        false => number.round(),
    };
    match unit {
        Unit::Iops => exact(rounded),
        _ => format!("{} {}", exact(rounded), unit.text()),
    }
}

pub(super) fn error(row: &HeldFigure) -> String {
    let share = row
        .error_per_s
        .map(|error| error / row.judged.measured_per_s);
    let telling = share.filter(|share| *share < 1.0);
    telling.map_or(NOT_KNOWN.to_owned(), |share| {
        format!("{:.1} %", share * 100.0)
    })
}

pub(crate) fn share(judged: &Judged) -> String {
    format!("{:.0} %", judged.ratio * 100.0)
}

/// The verdict, with a mark where something speaks against it.
pub(super) fn verdict(row: &HeldFigure) -> String {
    let doubted = if row.doubts.is_empty() { "" } else { "?" };
    format!("{}{doubted}", word(row.judged.verdict))
}

/// The verdict as programs read it.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Bursting => "bursting",
        Verdict::Below => "below",
        Verdict::Above => "above",
    }
}
