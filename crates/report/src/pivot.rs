//! Pivot tables: figures by two labels, as text, CSV, Markdown and JSON.

use super::csv::csv_line;
use crate::column_groups::{FigureColumn, grouped_tables};
use crate::figures::{UNKNOWN_LEGEND, has_known_digits, known_figure};
use crate::format::PivotOf;
use crate::json_document::json_text;
use crate::markdown_table::{markdown_legends, markdown_table};
use crate::text_style::TextStyle;
use crate::text_table::{
    aligned_columns, fill_table, fit_lines, is_narrow, plain, render, wrapped,
};
use crate::unique;
use iosonde_limits::PromiseVerdict;
use iosonde_result::compare::Measure;
use iosonde_suite::FigureUnit;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Pivot table of one figure.
pub struct PivotTable {
    /// The figure as requested.
    pub figure: String,
    /// Title of the figure: `randread highest IOPS`.
    pub title: String,
    /// Unit of the figure.
    pub unit: FigureUnit,
    /// Label of the rows.
    pub rows: String,
    /// Label of the columns.
    pub columns: String,
    /// Function that reduces several results of a cell to one figure.
    pub of: PivotOf,
    /// Cells by the values of the row label and the column label.
    pub cells: BTreeMap<(String, String), PivotTableCell>,
    /// Whether a result is simulated.
    pub simulated: bool,
}

/// Results of a pair of label values.
#[derive(Debug, Clone, PartialEq)]
pub struct PivotTableCell {
    /// Figure of all results, by [`PivotTable::of`].
    pub value: f64,
    /// 95 % interval, if known.
    pub bounds: Option<(f64, f64)>,
    /// Number of results. Each repetition counts.
    pub results: usize,
    /// Lowest and highest result.
    pub range: (f64, f64),
    /// Published figure.
    pub promised: Option<CellPromise>,
}

/// A published figure and its ratio to the measured one.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPromise {
    /// Published value in the unit of the figure, for I/O of the measured size.
    pub value: f64,
    /// Measured value divided by the published one.
    pub ratio: f64,
    /// Verdict on the promise.
    pub verdict: PromiseVerdict,
    /// Product of the vendor.
    pub product: String,
    /// Source of the published figure.
    pub source: String,
}

/// Note on results of simulated devices.
pub(crate) const SIMULATED: &str = "simulated devices: not figures of real storage";

impl PivotTableCell {
    /// Largest deviation of a result from the figure, as a share of the figure.
    fn farthest(&self) -> f64 {
        let (lowest, highest) = self.range;
        (1.0 - lowest / self.value).max(highest / self.value - 1.0)
    }
}

impl PivotTable {
    /// Values of both labels in natural order: 9 before 10.
    pub(crate) fn headers(&self) -> (Vec<&str>, Vec<&str>) {
        let rows: BTreeSet<&str> = self.cells.keys().map(|(row, _)| row.as_str()).collect();
        let columns = self.cells.keys().map(|(_, column)| column.as_str());
        let columns: BTreeSet<&str> = columns.collect();
        (by_number(rows), by_number(columns))
    }

    /// Returns the cell of two label values.
    pub fn cell(&self, row: &str, column: &str) -> Option<&PivotTableCell> {
        self.cells.get(&(row.to_owned(), column.to_owned()))
    }

    /// The text of a cell. `plus_minus` stands before the largest deviation of a result.
    fn shown(&self, row: &str, column: &str, plus_minus: &str) -> String {
        let Some(cell) = self.cell(row, column) else {
            return String::new();
        };
        let mut text = known_in_unit(self.unit, cell.value, cell.bounds);
        if cell.results > 1 {
            let percent = match 100.0 * cell.farthest() {
                percent if percent > 100.0 => ">100".to_owned(),
                percent => format!("{percent:.0}"),
            };
            text.push_str(&format!(" ({}, {plus_minus}{percent}%)", cell.results));
        }
        if let Some(promised) = &cell.promised {
            text.push_str(&format!(" {:.0}%", 100.0 * promised.ratio));
        }
        text
    }

    /// Cells of a row, after its name.
    fn line(&self, row: &str, columns: &[&str], plus_minus: &str) -> Vec<String> {
        let cells = columns
            .iter()
            .map(|column| self.shown(row, column, plus_minus));
        std::iter::once(row.to_owned()).chain(cells).collect()
    }

    /// Whether a cell has the mark of an unknown interval.
    fn has_unknown_interval(&self) -> bool {
        let is_unknown = |cell: &PivotTableCell| {
            measure(self.unit).is_some_and(|it| !has_known_digits(it, cell.value, cell.bounds))
        };
        self.cells.values().any(is_unknown)
    }

    /// Notes that explain the table.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.cells.values().any(|cell| cell.results > 1) {
            notes.push(format!(
                "In brackets: number of results (with repetitions) whose {} is shown, and the \
                 largest deviation of a result from it",
                self.of.words()
            ));
        }
        if self.cells.values().any(|cell| cell.promised.is_some()) {
            notes.push("In per cent: of the promised value for I/O of that size".to_owned());
        }
        if self.has_unknown_interval() {
            notes.push(UNKNOWN_LEGEND.to_owned());
        }
        notes
    }
}

/// A measure with this unit. `None`: figures of this unit are printed as they are.
fn measure(unit: FigureUnit) -> Option<Measure> {
    match unit {
        FigureUnit::PerSecond => Some(Measure::Iops),
        FigureUnit::BytesPerSecond => Some(Measure::BytesPerS),
        FigureUnit::Nanoseconds => Some(Measure::LatMean),
        FigureUnit::Depth | FigureUnit::OfCommand => None,
    }
}

/// Formats a figure with the digits that its interval supports. `~13k`: the interval is not known.
fn known_in_unit(unit: FigureUnit, value: f64, interval: Option<(f64, f64)>) -> String {
    match measure(unit) {
        Some(measure) => known_figure(measure, value, interval),
        None => unit.show(value),
    }
}

/// Sorts values by number if all are numbers of one unit, else as text with numbers: 6.8 is
/// before 6.10.
fn by_number(values: BTreeSet<&str>) -> Vec<&str> {
    let mut values: Vec<&str> = values.into_iter().collect();
    let number = |text: &str| {
        let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.');
        text[..end.unwrap_or(text.len())].parse::<f64>().ok()
    };
    let unit = |text: &str| {
        text.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.')
            .to_owned()
    };
    let same_unit = values.windows(2).all(|pair| unit(pair[0]) == unit(pair[1]));
    if same_unit && values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|a, b| {
            number(a)
                .unwrap_or(0.0)
                .total_cmp(&number(b).unwrap_or(0.0))
        });
    } else {
        values.sort_by_key(|value| parts_by_number(value));
    }
    values
}

/// Splits a text into its numbers and what is between them. A number sorts before other text.
fn parts_by_number(text: &str) -> Vec<(bool, u64, &str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|sign: char| sign.is_ascii_digit() != is_number);
        let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let number = part.parse::<u64>().unwrap_or(u64::MAX);
        parts.push((!is_number, number, part));
        rest = behind;
    }
    parts
}

fn any_simulated(pivots: &[PivotTable]) -> bool {
    pivots.iter().any(|pivot| pivot.simulated)
}

/// Returns the tables as text, in the characters of `style`.
pub fn tables(pivots: &[PivotTable], style: TextStyle) -> String {
    let plus_minus = style.plus_minus();
    let tables = pivots.iter().map(|pivot| table(pivot, plus_minus));
    let tables: Vec<String> = tables.collect();
    let mut text = tables.join("\n");
    let notes = unique(pivots.iter().flat_map(PivotTable::notes));
    notes.iter().for_each(|note| text.push_str(&wrapped(note)));
    if any_simulated(pivots) {
        text.push_str(&wrapped(SIMULATED));
    }
    text
}

/// A table. A narrow terminal shows columns that do not fit in another table.
fn table(pivot: &PivotTable, plus_minus: &str) -> String {
    let (rows, columns) = pivot.headers();
    let head = format!("{} \\ {}", pivot.rows, pivot.columns);
    if is_narrow() {
        let figure_column = |column: &&str| FigureColumn {
            title: (*column).to_owned(),
            figures: rows
                .iter()
                .map(|row| pivot.shown(row, column, plus_minus))
                .collect(),
        };
        let figure_columns: Vec<FigureColumn> = columns.iter().map(figure_column).collect();
        let figure = fit_lines(&format!("{}\n", pivot.figure));
        return figure + &grouped_tables(&head, &rows, &figure_columns);
    }
    let titles = [&[head.as_str()][..], &columns[..]].concat();
    let rows = rows
        .into_iter()
        .map(|row| pivot.line(row, &columns, plus_minus));
    let table = fill_table(plain(), &aligned_columns(&titles, 1), rows);
    format!("{}\n{}", pivot.figure, render(&table))
}

/// CSV with one line per pair of label values.
pub fn pivot_csv(pivots: &[PivotTable]) -> String {
    let mut text = String::new();
    for pivot in pivots {
        if !text.is_empty() {
            text.push('\n');
        }
        let labels = [&pivot.rows, &pivot.columns, &pivot.figure].map(String::as_str);
        let figures = [
            "low", "high", "results", "promised", "of", "lowest", "highest",
        ];
        text.push_str(&csv_line(labels.into_iter().chain(figures)));
        let (rows, columns) = pivot.headers();
        for row in rows {
            for column in &columns {
                let Some(cell) = pivot.cell(row, column) else {
                    continue;
                };
                let number =
                    |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                text.push_str(&csv_line([
                    row.to_owned(),
                    (*column).to_owned(),
                    cell.value.to_string(),
                    number(cell.bounds.map(|bounds| bounds.0)),
                    number(cell.bounds.map(|bounds| bounds.1)),
                    cell.results.to_string(),
                    number(cell.promised.as_ref().map(|promised| promised.value)),
                    pivot.of.words().to_owned(),
                    cell.range.0.to_string(),
                    cell.range.1.to_string(),
                ]));
            }
        }
    }
    text
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(pivots: &[PivotTable]) -> String {
    let mut text = String::new();
    for pivot in pivots {
        if !text.is_empty() {
            text.push('\n');
        }
        let (rows, columns) = pivot.headers();
        let headers = [&[pivot.rows.as_str()][..], &columns[..]].concat();
        let rows = rows.into_iter().map(|row| pivot.line(row, &columns, "±"));
        let table = markdown_table(&aligned_columns(&headers, 1), rows);
        text.push_str(&format!("{}:\n\n{table}", pivot.figure));
        let notes = pivot.notes();
        let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
        text.push_str(&markdown_legends(&notes));
    }
    if any_simulated(pivots) {
        text.push_str(&format!("\n{SIMULATED}\n"));
    }
    text
}

/// Returns all data as JSON.
pub fn pivot_json(pivots: &[PivotTable]) -> serde_json::Result<String> {
    let documents: Vec<Value> = pivots.iter().map(document).collect();
    // A single figure is not wrapped in a list.
    let document = match &documents[..] {
        [one] => one.clone(),
        all => json!({"format": 1, "kind": "pivots", "pivots": all}),
    };
    json_text(&document)
}

fn document(pivot: &PivotTable) -> Value {
    let promised = |promised: &CellPromise| {
        json!({
            "value": promised.value,
            "ratio": promised.ratio,
            "verdict": promised.verdict,
            "product": promised.product,
            "source": promised.source,
        })
    };
    let cells: Vec<_> = pivot
        .cells
        .iter()
        .map(|((row, column), cell)| {
            json!({
                "row": row,
                "column": column,
                "value": cell.value,
                "interval": cell.bounds.map(|(low, high)| [low, high]),
                "results": cell.results,
                "range": [cell.range.0, cell.range.1],
                "promised": cell.promised.as_ref().map(promised),
            })
        })
        .collect();
    json!({
        "format": 1,
        "kind": "pivot",
        "figure": pivot.figure,
        "rows": pivot.rows,
        "columns": pivot.columns,
        "of": pivot.of.words(),
        "simulated": pivot.simulated,
        "cells": cells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: TextStyle = TextStyle {
        utf8: true,
        color: false,
    };

    /// A table of two kernels and three devices, with the longest figures.
    fn long_pivot() -> PivotTable {
        let devices = ["Samsung SSD 970 EVO Plus 500GB", "hdd", "sata-ssd"];
        let cell = PivotTableCell {
            value: 365.0 * f64::from(1 << 20),
            bounds: None,
            results: 12,
            range: (0.0, 900.0 * f64::from(1 << 20)),
            promised: Some(CellPromise {
                value: 400.0 * f64::from(1 << 20),
                ratio: 0.91,
                verdict: PromiseVerdict::Below,
                product: "aws-gp3".to_owned(),
                source: "https://example.com".to_owned(),
            }),
        };
        let kernels = ["6.8.0-45-generic", "6.10.3"];
        let pairs = kernels.iter().flat_map(|kernel| {
            let pair = |device: &str| ((*kernel).to_owned(), device.to_owned());
            devices.map(pair)
        });
        PivotTable {
            figure: "4k-random-read-of-the-whole-device.highest.bandwidth".to_owned(),
            title: "randread highest bandwidth".to_owned(),
            unit: FigureUnit::BytesPerSecond,
            rows: "kernel".to_owned(),
            columns: "device".to_owned(),
            of: PivotOf::Mean,
            cells: pairs.map(|pair| (pair, cell.clone())).collect(),
            simulated: true,
        }
    }

    #[test]
    fn pivot_fits_a_narrow_terminal_with_all_figures() {
        let pivots = [long_pivot()];
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = tables(&pivots, UTF8);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            let figure = "~370 MiB/s (12, ±>100%) 91%";
            assert_eq!(text.matches(figure).count(), 6, "{text}");
            assert!(text.contains("hdd") && text.contains("sata-ssd"), "{text}");
        }
        crate::text_table::set_columns(80);
    }

    #[test]
    fn pivot_without_utf8_locale_is_ascii() {
        // A narrow table keeps each figure on one line.
        crate::text_table::set_columns(60);
        let text = tables(&[long_pivot()], TextStyle::PLAIN);
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("(12, +->100%)"), "{text}");
        crate::text_table::set_columns(80);
    }

    #[test]
    fn figure_has_known_digits_and_a_mark_without_an_interval() {
        let mut pivot = long_pivot();
        let unknown = [tables(&[long_pivot()], UTF8), markdown(&[long_pivot()])];
        assert!(unknown[0].contains("~370 MiB/s (12, "), "{}", unknown[0]);
        assert!(unknown[0].contains(UNKNOWN_LEGEND), "{}", unknown[0]);
        assert!(
            unknown[1].contains("| \\~370 MiB/s (12, "),
            "{}",
            unknown[1]
        );
        let legend = "A figure with \\~ has no known interval.";
        assert!(unknown[1].contains(legend), "{}", unknown[1]);
        for cell in pivot.cells.values_mut() {
            cell.bounds = Some((cell.value * 0.9, cell.value * 1.1));
        }
        let known = tables(&[pivot], UTF8);
        assert!(known.contains(" 365 MiB/s (12, "), "{known}");
        assert!(!known.contains('~'), "{known}");
        let latency = |bounds| known_in_unit(FigureUnit::Nanoseconds, 1_364_000.0, bounds);
        assert_eq!(latency(Some((1_100_000.0, 1_600_000.0))), "1.4 ms");
        assert_eq!(latency(None), "~1.4 ms");
        assert_eq!(known_in_unit(FigureUnit::Depth, 16.0, None), "16");
    }

    #[test]
    fn label_values_sort_in_natural_order() {
        let sorted = |values: &[&'static str]| by_number(values.iter().copied().collect());
        assert_eq!(sorted(&["375 GiB", "1000 GiB"]), ["375 GiB", "1000 GiB"]);
        assert_eq!(sorted(&["9", "10", "2"]), ["2", "9", "10"]);
        assert_eq!(sorted(&["ssd", "hdd", "10"]), ["10", "hdd", "ssd"]);
        assert_eq!(sorted(&["4k", "1m", "64k"]), ["1m", "4k", "64k"]);
        assert_eq!(sorted(&["6.10.3", "6.8.0-45"]), ["6.8.0-45", "6.10.3"]);
        assert_eq!(
            sorted(&["debian 9", "debian 10"]),
            ["debian 9", "debian 10"]
        );
        assert_eq!(sorted(&["0.5", "0.25"]), ["0.25", "0.5"]);
    }
}
