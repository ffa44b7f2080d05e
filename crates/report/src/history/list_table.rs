//! List of stored results for a terminal.

use super::list_rates::{ListedRate, legends};
use super::{CUT_OFF, list_time_text, reached, shown_labels, unfinished};
use crate::figures::LegendMarks;
use crate::text_style::TextStyle;
use crate::text_table::{
    aligned_columns, fill_table, hidden_columns, plain, render_left, wide_columns, wrapped,
};
use comfy_table::{ColumnConstraint, ContentArrangement};
use iosonde_history::StudySummary;
use jiff::tz::TimeZone;

/// Line of a result, and the texts below its figures.
struct ListRow {
    cells: [String; TABLE_HEAD.len()],
    /// Workloads of the rate and of the bandwidth, which stand below them.
    workloads: [String; 2],
    /// Marks of both.
    marks: [LegendMarks; 2],
}

impl ListRow {
    /// Returns the higher rate of both directions, or the figure of a command, and the bandwidth.
    /// Both are the highest of all workloads.
    fn new(study: &StudySummary, zone: &TimeZone, style: TextStyle) -> ListRow {
        let headline = &study.headline;
        let highest = ListedRate::from_headline(headline, style.plus_minus());
        let bandwidth = headline.bandwidth.as_ref().map(ListedRate::from_bandwidth);
        let unknown = || "-".to_owned();
        let listed = [&highest, &bandwidth];
        let workloads = listed.map(|rate| rate.clone().unwrap_or_default().workload);
        let marks = listed.map(|rate| rate.as_ref().map(|rate| rate.marks).unwrap_or_default());
        // The state of an unfinished study is below its kind.
        let what = match study.finished_at_ms {
            Some(_) => study.kind.clone(),
            None => format!("{:<1$}", study.kind, CUT_OFF.len()),
        };
        ListRow {
            cells: [
                study.short_id.clone(),
                list_time_text(study.started_at_ms, zone),
                what,
                study.target.clone(),
                (highest.map(|highest| highest.figure))
                    .or_else(|| headline.command.clone())
                    .unwrap_or_else(unknown),
                bandwidth.map_or_else(unknown, |bandwidth| bandwidth.figure),
            ],
            workloads,
            marks,
        }
    }
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
const LEAST_IMPORTANT: [usize; 3] = [BANDWIDTH, 1, RATE];
/// Index of the column for the kind.
const WHAT: usize = 2;
/// Index of the column for the target.
pub(super) const TARGET: usize = 3;
/// Indices of the columns of figures.
const RATE: usize = 4;
const BANDWIDTH: usize = 5;

/// Width of a column, with the gap behind it.
fn width(rows: &[ListRow], column: usize) -> usize {
    let cells = rows.iter().map(|row| row.cells[column].chars().count());
    cells.max().unwrap_or(0).max(TABLE_HEAD[column].len()) + GAP
}

/// Shortens targets to the width left over, also that of a wide terminal. Workloads, long labels
/// and unfinished states are on lines below.
pub(super) fn list_table(studies: &[StudySummary], zone: &TimeZone, style: TextStyle) -> String {
    let rows = studies.iter().map(|study| ListRow::new(study, zone, style));
    let mut rows: Vec<ListRow> = rows.collect();
    // The last column has no gap, so that of the target is left out.
    let widths: Vec<usize> = (0..TABLE_HEAD.len())
        .map(|at| match at {
            TARGET => TARGET_COLUMNS_MIN,
            _ => width(&rows, at),
        })
        .collect();
    let hidden = hidden_columns(&widths, &LEAST_IMPORTANT, wide_columns());
    let is_shown = |at: &usize| !hidden.contains(at);
    let shown = (0..TABLE_HEAD.len()).filter(is_shown);
    let used: usize = shown.map(|at| widths[at]).sum();
    let room = TARGET_COLUMNS_MIN + wide_columns().saturating_sub(used);
    for row in &mut rows {
        row.cells[TARGET] = shortened(&row.cells[TARGET], room, style.ellipsis());
    }
    let start = |column: usize| {
        let before = (0..column).filter(is_shown);
        before.map(|at| width(&rows, at)).sum::<usize>()
    };
    let indents = [WHAT, TARGET].map(start);
    let figures = [RATE, BANDWIDTH].into_iter().enumerate();
    let figures = figures.filter(|(_, column)| is_shown(column));
    // Each figure ends before the gap of its column.
    let end = |column: usize| start(column) + width(&rows, column) - GAP;
    let ends = figures.map(|(index, column)| (index, end(column)));
    let ends: Vec<(usize, usize)> = ends.collect();
    let workloads: Vec<Vec<String>> = (rows.iter())
        .map(|row| {
            let texts = ends.iter().map(|(index, end)| {
                let text = shortened(
                    &row.workloads[*index],
                    wide_columns() - GAP,
                    style.ellipsis(),
                );
                (text, *end)
            });
            aligned(&texts.collect::<Vec<_>>(), wide_columns())
        })
        .collect();
    let legend = legend(&rows, &hidden);
    let mut output = String::new();
    let below = studies.iter().zip(&workloads);
    let below = below.map(|(study, workloads)| lines_below(study, indents, workloads));
    let below = std::iter::once(String::new()).chain(below);
    for (line, below) in rendered(rows, &hidden).lines().zip(below) {
        output.push_str(&format!("{line}\n{below}"));
    }
    output + &legend
}

/// Renders the header and a line for each row.
fn rendered(rows: Vec<ListRow>, hidden: &[usize]) -> String {
    let columns = aligned_columns(&TABLE_HEAD, TARGET + 1);
    let mut table = fill_table(plain(), &columns, rows.into_iter().map(|row| row.cells));
    table.set_content_arrangement(ContentArrangement::Disabled);
    for at in hidden {
        if let Some(column) = table.column_mut(*at) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    render_left(&mut table)
}

/// Explains the marks of the figures that are shown.
fn legend(rows: &[ListRow], hidden: &[usize]) -> String {
    let columns = [RATE, BANDWIDTH].into_iter().enumerate();
    let shown = columns.filter(|(_, column)| !hidden.contains(column));
    let marks = shown.flat_map(|(index, _)| rows.iter().map(move |row| row.marks[index]));
    let legends = legends(marks).into_iter();
    legends.map(wrapped).collect()
}

/// Line of texts, each with the column at which it ends. A text that has no room there ends before
/// the next one, which moves to the right if both have no room. If they do not fit into `room`
/// columns, each has its own line. Lines begin with a gap: only an ID begins in the first column.
fn aligned(texts: &[(String, usize)], room: usize) -> Vec<String> {
    let mut starts = Vec::new();
    let mut before = usize::MAX;
    for (text, end) in texts.iter().rev().filter(|(text, _)| !text.is_empty()) {
        let indented = |end: usize| end.saturating_sub(text.chars().count()).max(GAP);
        let start = indented((*end).min(before));
        starts.push((start, indented(*end), text));
        before = start - GAP;
    }
    starts.reverse();
    let mut line = String::new();
    for (start, _, text) in &starts {
        let used = line.chars().count();
        let start = (*start).max(used + GAP);
        line = format!("{line:<start$}{text}");
    }
    match starts.len() {
        0 => Vec::new(),
        _ if line.chars().count() <= room => vec![line],
        _ => {
            let lines = starts.into_iter();
            let lines = lines.map(|(_, own_start, text)| format!("{:<own_start$}{text}", ""));
            lines.collect()
        }
    }
}

/// Lines below the line of a study: the workloads of its figures, its state and its labels. The
/// last workloads are on the line of the state if they have room there.
fn lines_below(study: &StudySummary, [what, target]: [usize; 2], workloads: &[String]) -> String {
    let (workloads, above) = match workloads.split_last() {
        Some((last, above)) => (last.as_str(), above),
        None => ("", workloads),
    };
    let start = workloads.chars().take_while(|sign| *sign == ' ').count();
    let first_room = match workloads.is_empty() {
        true => wide_columns(),
        false => start.saturating_sub(GAP),
    };
    let mut lines = vec![" ".repeat(what)];
    if let Some(why) = unfinished(study) {
        lines[0].push_str(why);
        lines[0].push_str(&reached(study));
    }
    for (key, value) in shown_labels(&study.labels) {
        let label = format!("{key}={value}");
        let last = lines.len() - 1;
        let begun = lines[last].chars().count();
        let room = if last == 0 {
            first_room
        } else {
            wide_columns()
        };
        let at = if begun <= target { target } else { begun + 1 };
        let is_whole_line = begun <= target && room == wide_columns();
        match is_whole_line || at + label.chars().count() <= room {
            true => lines[last] = format!("{:<at$}{label}", lines[last]),
            false => lines.push(format!("{:<target$}{label}", "")),
        }
    }
    let used = lines[0].trim_end().chars().count();
    match used <= first_room || workloads.is_empty() {
        true => lines[0] = format!("{:<start$}{}", lines[0].trim_end(), workloads.trim_start()),
        false => lines.insert(0, workloads.to_owned()),
    }
    let lines = above.iter().chain(&lines);
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_below_figures_end_at_their_columns_or_before_the_next() {
        let texts = |first: &str, second: &str| {
            let texts = [(first, 20), (second, 30)];
            aligned(&texts.map(|(text, end)| (text.to_owned(), end)), 40)
        };
        let line = texts("randread", "depth 8");
        assert_eq!(line, ["            randread   depth 8"]);
        let line = texts("randread", "read, depth 8");
        assert_eq!(line, ["       randread  read, depth 8"]);
        assert_eq!(texts("", "depth 8"), ["                       depth 8"]);
        assert_eq!(texts("randread", ""), ["            randread"]);
        assert_eq!(texts("", ""), [""; 0]);
        let indented = aligned(&[("long text".to_owned(), 4)], 40);
        assert_eq!(indented, ["  long text"]);
    }

    #[test]
    fn texts_without_room_move_to_the_right_or_have_their_own_lines() {
        let texts = |first: &str, second: &str| {
            let texts = [(first, 20), (second, 30)];
            aligned(&texts.map(|(text, end)| (text.to_owned(), end)), 40)
        };
        let moved = texts("randread, depth 8", "randwrite, depth 8");
        assert_eq!(moved, ["  randread, depth 8  randwrite, depth 8"]);
        let own = texts("randread, depth 64", "randwrite, depths 16 to 32");
        let first = "  randread, depth 64";
        assert_eq!(own, [first, "    randwrite, depths 16 to 32"]);
    }
}
