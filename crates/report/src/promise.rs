//! Comparison of promised with measured figures.

use crate::grouped;
use crate::intervals::{NOT_KNOWN, error_share};
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{
    TableColumn, UNBROKEN_BLANK, fill_table, hide_columns, plain, render, set_gap,
    unbroken_figures, wrapped, wrapped_table,
};
use iosonde_limits::{Metric, Promise, PromiseComparison, PromiseVerdict, VendorUnit, exact};
use iosonde_result::compare::Subject;
use iosonde_study::promise_check::{CheckedFigure, PromiseCheck, PromiseDoubt};

/// Columns of the figures. The last has the verdict.
const FIGURE_COLUMNS: [TableColumn<'_>; 6] = [
    Left(""),
    Right("promised"),
    Right("measured"),
    Right("95 %+-"),
    Right("of it"),
    Left(""),
];

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
    let bursts = held.rows.iter().any(|row| row.judged.burst_per_s.is_some());
    let mut columns = FIGURE_COLUMNS.to_vec();
    if bursts {
        columns.insert(2, Right("burst"));
    }
    let rows = held.rows.iter().map(|row| {
        let mut cells = [figure_cells(row).to_vec(), vec![verdict(row)]].concat();
        if bursts {
            cells.insert(2, burst(row));
        }
        cells
    });
    let mut table = fill_table(plain(), &columns, rows);
    set_gap(&mut table, 2);
    // A narrow terminal shows the share and the verdict.
    let least_important: &[usize] = match bursts {
        true => &[4, 2, 1, 3],
        false => &[3, 1, 2],
    };
    hide_columns(&mut table, least_important);
    render(&table)
}

/// Metric, promised and measured value, interval and share of a figure.
pub(crate) fn figure_cells(row: &CheckedFigure) -> [String; 5] {
    [
        row.judged.metric.to_string(),
        promised(&row.judged),
        measured(&row.judged),
        error(row),
        share(&row.judged),
    ]
}

/// Doubts about the verdicts, each with its metrics.
fn doubts(held: &PromiseCheck) -> Vec<(PromiseDoubt, Vec<String>)> {
    let of_row = |row: &CheckedFigure| {
        let metric = row.judged.metric.to_string();
        let doubts = row.doubts.clone().into_iter();
        doubts.map(move |doubt| (doubt, metric.clone()))
    };
    grouped(held.rows.iter().flat_map(of_row))
}

/// List item, wrapped with a hanging indent.
fn listed(text: &str) -> String {
    let mut table = wrapped_table();
    table.add_row(["-", &unbroken_figures(text)]);
    set_gap(&mut table, 1);
    render(&table).replace(UNBROKEN_BLANK, " ")
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

fn error(row: &CheckedFigure) -> String {
    let share = row
        .error_per_s
        .map(|error| error / row.judged.measured_per_s);
    let telling = share.filter(|share| *share < 1.0);
    telling.map_or(NOT_KNOWN.to_owned(), error_share)
}

/// Returns the measured share of the promise.
pub(crate) fn share(judged: &PromiseComparison) -> String {
    format!("{:.0} %", judged.ratio * 100.0)
}

/// Verdict, with a mark if there are doubts.
fn verdict(row: &CheckedFigure) -> String {
    let doubted = if row.doubts.is_empty() { "" } else { "?" };
    format!("{}{doubted}", verdict_keyword(row.judged.verdict))
}

/// Keyword of the verdict, as in CSV.
pub(crate) fn verdict_keyword(verdict: PromiseVerdict) -> &'static str {
    match verdict {
        PromiseVerdict::Kept => "kept",
        PromiseVerdict::Bursting => "bursting",
        PromiseVerdict::Below => "below",
        PromiseVerdict::Above => "above",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_limits::{Limits, MeasuredFigure};
    use iosonde_study::probe::ProbePhase;
    use iosonde_study::promise_check::PromiseOutcome;

    /// A volume with bursts, whose figures are doubted.
    fn doubted_check() -> PromiseCheck {
        let query = "aws-gp2:100GiB,machine=m5.large".parse().unwrap();
        let promise = Limits::published().evaluate(&query).unwrap();
        let measured = |metric, per_s| MeasuredFigure {
            metric,
            per_s,
            error: Some(per_s / 50.0),
            block_bytes: None,
        };
        let judged = promise.judge(&[
            measured(Metric::ReadIops, 2_500.0),
            measured(Metric::WriteIops, 250.0),
            measured(Metric::ReadBandwidth, 120e6),
            measured(Metric::WriteBandwidth, 70e6),
        ]);
        let check = |judged: PromiseComparison| CheckedFigure {
            phase: ProbePhase::RandomRead,
            error_per_s: Some(judged.measured_per_s / 50.0),
            judged,
            at: None,
            doubts: vec![PromiseDoubt::NotFirm],
        };
        PromiseCheck {
            rows: judged.into_iter().map(check).collect(),
            promise,
            outcome: PromiseOutcome::Unclear,
            conditions: vec!["Not checked whether /dev/disk/by-id/x is an m5.large.".to_owned()],
        }
    }

    #[test]
    fn narrow_terminal_shows_shares_and_verdicts_of_a_promise() {
        let check = doubted_check();
        assert_eq!(check.rows.len(), 4);
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = table(&check);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            for row in &check.rows {
                let name = row.judged.metric.to_string();
                let line = text.lines().find(|line| line.starts_with(&name)).unwrap();
                assert!(line.contains(&share(&row.judged)), "{text}");
                assert!(line.ends_with(&verdict(row)), "{text}");
            }
            assert!(text.contains("\n- Not checked"), "{text}");
        }
        crate::text_table::set_columns(80);
    }
}
