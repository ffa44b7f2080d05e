//! Figures by two labels: tables for people, CSV, Markdown, JSON.

use super::csv::text_cell;
use super::probe::table::{plain, render, right, wrapped};
use crate::args::PivotOf;
use crate::failure::Failure;
use comfy_table::Cell as TableCell;
use iosonde_study::limits::Verdict;
use iosonde_study::suite::Unit;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A table of one figure.
pub(crate) struct Pivot {
    /// The figure, as it was asked for.
    pub(crate) figure: String,
    /// The same for people: `randread highest IOPS`.
    pub(crate) title: String,
    /// Its unit.
    pub(crate) unit: Unit,
    /// The label of the rows.
    pub(crate) rows: String,
    /// The label of the columns.
    pub(crate) columns: String,
    /// How several results of a cell become one figure.
    pub(crate) of: PivotOf,
    /// By value of both.
    pub(crate) cells: BTreeMap<(String, String), Cell>,
    /// Whether any of it was simulated.
    pub(crate) simulated: bool,
}

/// The results of one pair of labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// What they are together ([`Pivot::of`]).
    pub(crate) value: f64,
    /// Its 95 % interval, where it is known.
    pub(crate) bounds: Option<(f64, f64)>,
    /// How many, each repetition for itself.
    pub(crate) results: usize,
    /// The lowest and the highest of them.
    pub(crate) range: (f64, f64),
    /// What was promised of it.
    pub(crate) promised: Option<Promised>,
}

/// A promise beside what was measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Promised {
    /// In the unit of the figure, for I/O of the size that was measured.
    pub(crate) value: f64,
    /// Measured over promised.
    pub(crate) ratio: f64,
    /// What came of it.
    pub(crate) verdict: Verdict,
    /// The product.
    pub(crate) product: String,
    /// Where it was published.
    pub(crate) source: String,
}

/// What is said of figures that are none of real storage.
pub(crate) const SIMULATED: &str = "simulated devices: these are no figures of real storage";

impl Cell {
    /// How far the farthest of several results lies from their figure, as a share of it.
    fn farthest(&self) -> f64 {
        let (lowest, highest) = self.range;
        (1.0 - lowest / self.value).max(highest / self.value - 1.0)
    }
}

impl Pivot {
    /// The values of both labels, sorted as people count: 9 before 10.
    pub(crate) fn headers(&self) -> (Vec<&str>, Vec<&str>) {
        let rows: BTreeSet<&str> = self.cells.keys().map(|(row, _)| row.as_str()).collect();
        let columns = self.cells.keys().map(|(_, column)| column.as_str());
        let columns: BTreeSet<&str> = columns.collect();
        (by_number(rows), by_number(columns))
    }

    /// One cell.
    pub(crate) fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        self.cells.get(&(row.to_owned(), column.to_owned()))
    }

    fn shown(&self, row: &str, column: &str) -> String {
        let Some(cell) = self.cell(row, column) else {
            return String::new();
        };
        let mut text = self.unit.show(cell.value);
        if cell.results > 1 {
            let percent = match 100.0 * cell.farthest() {
                percent if percent > 100.0 => ">100".to_owned(),
                percent => format!("{percent:.0}"),
            };
            text.push_str(&format!(" ({}, ±{percent}%)", cell.results));
        }
        if let Some(promised) = &cell.promised {
            text.push_str(&format!(" {:.0}%", 100.0 * promised.ratio));
        }
        text
    }

    /// What has to be known to read a table of it.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.cells.values().any(|cell| cell.results > 1) {
            notes.push(format!(
                "In brackets: how many results, repetitions among them, a figure is the {} of, and how far the farthest of them \
                 lies from it",
                self.of.words()
            ));
        }
        if self.cells.values().any(|cell| cell.promised.is_some()) {
            notes.push("In per cent: of what is promised for I/O of that size".to_owned());
        }
        notes
    }
}

/// All in their order as text, but where all are numbers, or a number with a unit behind it, by that number.
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
    }
    values
}

fn any_simulated(pivots: &[Pivot]) -> bool {
    pivots.iter().any(|pivot| pivot.simulated)
}

/// For people.
pub(crate) fn tables(pivots: &[Pivot]) -> String {
    let tables: Vec<String> = pivots.iter().map(table).collect();
    let mut text = tables.join("\n");
    let mut notes: Vec<String> = Vec::new();
    for note in pivots.iter().flat_map(Pivot::notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.iter().for_each(|note| text.push_str(&wrapped(note)));
    if any_simulated(pivots) {
        text.push_str(&format!("{SIMULATED}\n"));
    }
    text
}

fn table(pivot: &Pivot) -> String {
    let (rows, columns) = pivot.headers();
    let mut table = plain();
    let head = TableCell::new(format!("{} \\ {}", pivot.rows, pivot.columns));
    let mut header = vec![head];
    header.extend(columns.iter().map(right));
    table.set_header(header);
    for row in rows {
        let mut cells = vec![TableCell::new(row)];
        cells.extend(columns.iter().map(|column| right(pivot.shown(row, column))));
        table.add_row(cells);
    }
    format!("{}\n{}", pivot.figure, render(&table))
}

/// One line for each pair of labels.
pub(crate) fn csv(pivots: &[Pivot]) -> String {
    let mut text = String::new();
    for pivot in pivots {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!(
            "{},{},{},low,high,results,promised,of,lowest,highest\n",
            text_cell(&pivot.rows),
            text_cell(&pivot.columns),
            text_cell(&pivot.figure)
        ));
        let (rows, columns) = pivot.headers();
        for row in rows {
            for column in &columns {
                let Some(cell) = pivot.cell(row, column) else {
                    continue;
                };
                let number =
                    |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                text.push_str(&format!(
                    "{},{},{},{},{},{},{},{},{},{}\n",
                    text_cell(row),
                    text_cell(column),
                    cell.value,
                    number(cell.bounds.map(|bounds| bounds.0)),
                    number(cell.bounds.map(|bounds| bounds.1)),
                    cell.results,
                    number(cell.promised.as_ref().map(|promised| promised.value)),
                    pivot.of.words(),
                    cell.range.0,
                    cell.range.1,
                ));
            }
        }
    }
    text
}

/// Tables for a report or an issue.
pub(crate) fn markdown(pivots: &[Pivot]) -> String {
    let escaped = |text: &str| text.replace('|', "\\|");
    let mut text = String::new();
    for pivot in pivots {
        if !text.is_empty() {
            text.push('\n');
        }
        let (rows, columns) = pivot.headers();
        let names: Vec<String> = columns.iter().map(|column| escaped(column)).collect();
        text.push_str(&format!(
            "{}:\n\n| {} | {} |\n",
            pivot.figure,
            escaped(&pivot.rows),
            names.join(" | ")
        ));
        text.push_str(&format!("| ---{} |\n", " | ---:".repeat(columns.len())));
        for row in rows {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| pivot.shown(row, column))
                .collect();
            text.push_str(&format!("| {} | {} |\n", escaped(row), cells.join(" | ")));
        }
        for note in pivot.notes() {
            text.push_str(&format!("\n{note}\n"));
        }
    }
    if any_simulated(pivots) {
        text.push_str(&format!("\n{SIMULATED}\n"));
    }
    text
}

/// All that is known.
pub(crate) fn json(pivots: &[Pivot]) -> Result<String, Failure> {
    let documents: Vec<Value> = pivots.iter().map(document).collect();
    // A single figure is not wrapped into a list.
    let document = match &documents[..] {
        [one] => one.clone(),
        all => json!({"format": 1, "kind": "pivots", "pivots": all}),
    };
    let text = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}

fn document(pivot: &Pivot) -> Value {
    let promised = |promised: &Promised| {
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

    #[test]
    fn numbers_are_sorted_as_people_count() {
        let sorted = |values: &[&'static str]| by_number(values.iter().copied().collect());
        assert_eq!(sorted(&["375 GiB", "1000 GiB"]), ["375 GiB", "1000 GiB"]);
        assert_eq!(sorted(&["9", "10", "2"]), ["2", "9", "10"]);
        assert_eq!(sorted(&["ssd", "hdd", "10"]), ["10", "hdd", "ssd"]);
        assert_eq!(sorted(&["4k", "1m", "64k"]), ["1m", "4k", "64k"]);
    }
}
