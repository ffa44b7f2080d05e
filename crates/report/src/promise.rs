//! Comparison of promised with measured figures.

use crate::intervals::NOT_KNOWN;
use crate::text_table::{
    UNBROKEN_BLANK, hide_columns, plain, render, right, unbroken_figures, wrapped, wrapped_table,
};
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
    // A narrow terminal shows the share and the verdict.
    let least_important: &[usize] = match bursts {
        true => &[4, 2, 1, 3],
        false => &[3, 1, 2],
    };
    hide_columns(&mut table, least_important);
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
    let mut table = wrapped_table();
    table.add_row(["-", &unbroken_figures(text)]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
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
