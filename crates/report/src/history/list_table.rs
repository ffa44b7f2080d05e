//! List of stored results for a terminal.

use super::{CUT_OFF, list_rates, reached, shown_labels, time, unfinished, what};
use crate::text_style::TextStyle;
use crate::text_table::{columns, hidden_columns, plain, render_left, right};
use comfy_table::{Cell, ColumnConstraint, ContentArrangement};
use iosonde_history::{Headline, StudySummary};
use jiff::tz::TimeZone;

/// The higher rate of both directions with its workload: `753k ±1k randread`, or `13k reads` if the
/// result does not name it. Rates with the same digits are of `both` directions.
fn highest_rate(headline: &Headline, plus_minus: &str) -> Option<String> {
    let text = |iops: Option<f64>, error: Option<f64>| {
        let iops = iops?;
        Some((iops, list_rates::rate(iops, error, plus_minus)))
    };
    let number = |text: &str| text.split(' ').next().map(str::to_owned);
    let workload = |name: Option<&str>, direction: &str| name.unwrap_or(direction).to_owned();
    let read = text(headline.read_iops, headline.read_iops_error);
    let write = text(headline.write_iops, headline.write_iops_error);
    let (text, name) = match (read, write) {
        (Some(read), Some(write)) if number(&read.1) == number(&write.1) => {
            let higher = if read.0 >= write.0 { read } else { write };
            (higher.1, "both".to_owned())
        }
        (Some((iops, read)), write) if write.as_ref().is_none_or(|(write, _)| iops > *write) => {
            (read, workload(headline.read_workload.as_deref(), "reads"))
        }
        (_, write) => (
            write?.1,
            workload(headline.write_workload.as_deref(), "writes"),
        ),
    };
    Some(format!("{text} {name}"))
}

/// Row of the table for a terminal: the higher rate of both directions, or the figure of a command,
/// and the bandwidth. Both are the highest of all workloads.
fn table_row(study: &StudySummary, zone: &TimeZone, style: TextStyle) -> [String; 6] {
    let headline = &study.headline;
    let highest = highest_rate(headline, style.plus_minus());
    let bandwidth = list_rates::bandwidth(study);
    [
        study.short_id.clone(),
        time(study.started_at_ms, zone),
        what(study),
        study.target.clone(),
        highest
            .or_else(|| headline.command.clone())
            .unwrap_or_else(|| "-".to_owned()),
        bandwidth.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Shortens a text to at most `most` characters by omitting its middle.
fn shortened(text: &str, most: usize, ellipsis: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(ellipsis.chars().count());
    // The end of a path identifies it better than its start.
    let (head, tail) = (kept / 2, kept - kept / 2);
    let end: String = letters[letters.len() - tail..].iter().collect();
    let start: String = letters[..head].iter().collect();
    format!("{start}{ellipsis}{end}")
}

/// Columns of the table for a terminal.
const TABLE_HEAD: [&str; 6] = ["id", "when", "what", "where", "rate", "bandwidth"];
/// Fewest columns of a target.
const TARGET_COLUMNS_MIN: usize = 12;
/// Spaces between two columns.
const GAP: usize = 2;
/// Columns that a narrow terminal does not show, the least important first: bandwidth, time, rate.
const LEAST_IMPORTANT: [usize; 3] = [5, 1, 4];
/// Index of the column for the kind.
const WHAT: usize = 2;
/// Index of the column for the target.
pub(super) const TARGET: usize = 3;

/// Width of a column, with the gap behind it.
fn width(rows: &[[String; 6]], column: usize) -> usize {
    let cells = rows.iter().map(|row| row[column].chars().count());
    cells.max().unwrap_or(0).max(TABLE_HEAD[column].len()) + GAP
}

/// Shortens targets to the width left over. Long labels and unfinished states are on lines below.
pub(super) fn list_table(studies: &[StudySummary], zone: &TimeZone, style: TextStyle) -> String {
    let mut rows: Vec<[String; 6]> = studies
        .iter()
        .map(|study| table_row(study, zone, style))
        .collect();
    for (study, row) in studies.iter().zip(&mut rows) {
        row[WHAT].clone_from(&study.kind);
        if study.finished_at_ms.is_none() {
            row[WHAT] = format!("{:<1$}", study.kind, CUT_OFF.len());
        }
    }
    // The last column has no gap, so that of the target is left out.
    let widths: Vec<usize> = (0..TABLE_HEAD.len())
        .map(|at| match at {
            TARGET => TARGET_COLUMNS_MIN,
            _ => width(&rows, at),
        })
        .collect();
    let hidden = hidden_columns(&widths, &LEAST_IMPORTANT, columns());
    let is_shown = |at: &usize| !hidden.contains(at);
    let shown = (0..TABLE_HEAD.len()).filter(is_shown);
    let used: usize = shown.map(|at| widths[at]).sum();
    let room = TARGET_COLUMNS_MIN + columns().saturating_sub(used);
    for row in &mut rows {
        row[TARGET] = shortened(&row[TARGET], room, style.ellipsis());
    }
    let indents = [WHAT, TARGET].map(|column| {
        let before = (0..column).filter(is_shown);
        before.map(|at| width(&rows, at)).sum::<usize>()
    });
    let mut table = plain();
    table.set_content_arrangement(ContentArrangement::Disabled);
    let cell = |(index, text): (usize, String)| {
        if index <= TARGET {
            Cell::new(text)
        } else {
            right(text)
        }
    };
    table.set_header(
        TABLE_HEAD
            .map(str::to_owned)
            .into_iter()
            .enumerate()
            .map(cell),
    );
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(cell));
    }
    for at in &hidden {
        if let Some(column) = table.column_mut(*at) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    let text = render_left(&mut table);
    let mut lines = text.lines();
    let mut output = format!("{}\n", lines.next().unwrap_or_default());
    for (line, study) in lines.zip(studies) {
        output.push_str(&format!("{line}\n{}", below(study, indents)));
    }
    output
}

/// Lines below the line of a study.
fn below(study: &StudySummary, [what, target]: [usize; 2]) -> String {
    let mut lines = vec![" ".repeat(what)];
    if let Some(why) = unfinished(study) {
        lines[0].push_str(why);
        lines[0].push_str(&reached(study));
    }
    for (key, value) in shown_labels(&study.labels) {
        let label = format!("{key}={value}");
        let last = lines.len() - 1;
        let begun = lines[last].chars().count();
        if begun <= target {
            lines[last] = format!("{:<target$}{label}", lines[last]);
        } else if begun + 1 + label.chars().count() <= columns() {
            lines[last].push_str(&format!(" {label}"));
        } else {
            lines.push(format!("{:<target$}{label}", ""));
        }
    }
    let lines = lines.iter().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_rate_names_its_workload_and_a_tie() {
        let mut headline = Headline {
            read_iops: Some(402.0),
            read_iops_error: Some(8.0),
            read_workload: Some("randread".to_owned()),
            write_iops: Some(401.8),
            write_iops_error: Some(8.0),
            ..Headline::default()
        };
        let shown = |headline: &Headline| highest_rate(headline, "+-");
        assert_eq!(shown(&headline).as_deref(), Some("402 +-8 both"));
        headline.write_iops = Some(300.0);
        assert_eq!(shown(&headline).as_deref(), Some("402 +-8 randread"));
        headline.write_iops = Some(500.0);
        assert_eq!(shown(&headline).as_deref(), Some("500 +-8 writes"));
        headline.write_iops = None;
        assert_eq!(shown(&headline).as_deref(), Some("402 +-8 randread"));
        assert_eq!(shown(&Headline::default()), None);
    }
}
