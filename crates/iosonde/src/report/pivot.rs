//! A figure by two labels: a table for people, CSV, Markdown, JSON.

use super::probe::table::{plain, render, right, wrapped};
use super::suite::quoted;
use crate::args::TextFormat;
use crate::failure::Failure;
use comfy_table::Cell as TableCell;
use iosonde_study::suite::Unit;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A table of one figure.
pub(crate) struct Pivot {
    /// The figure, as it was asked for.
    pub(crate) figure: String,
    /// Its unit.
    pub(crate) unit: Unit,
    /// The label of the rows.
    pub(crate) rows: String,
    /// The label of the columns.
    pub(crate) columns: String,
    /// By value of both.
    pub(crate) cells: BTreeMap<(String, String), Cell>,
    /// Whether any of it was simulated.
    pub(crate) simulated: bool,
}

/// The results of one pair of labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// Their geometric mean.
    pub(crate) value: f64,
    /// How many.
    pub(crate) results: usize,
}

const SIMULATED: &str = "simulated devices: these are no figures of real storage";

/// As it is asked for.
pub(crate) fn text(pivot: &Pivot, format: TextFormat) -> Result<String, Failure> {
    Ok(match format {
        TextFormat::Table => table(pivot),
        TextFormat::Csv => csv(pivot),
        TextFormat::Markdown => markdown(pivot),
        TextFormat::Json => {
            let text = serde_json::to_string_pretty(&document(pivot));
            text.map_err(anyhow::Error::from)? + "\n"
        }
    })
}

impl Pivot {
    fn headers(&self) -> (BTreeSet<&String>, BTreeSet<&String>) {
        let rows = self.cells.keys().map(|(row, _)| row).collect();
        (rows, self.cells.keys().map(|(_, column)| column).collect())
    }

    fn shown(&self, row: &str, column: &str) -> String {
        let cell = self.cells.get(&(row.to_owned(), column.to_owned()));
        cell.map_or(String::new(), |cell| match cell.results {
            1 => self.unit.show(cell.value),
            results => format!("{} ({results})", self.unit.show(cell.value)),
        })
    }
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
    let mut text = format!("{}\n{}", pivot.figure, render(&table));
    if pivot.cells.values().any(|cell| cell.results > 1) {
        text.push_str(&wrapped(
            "In brackets: how many results a figure is the geometric mean of",
        ));
    }
    if pivot.simulated {
        text.push_str(&format!("{SIMULATED}\n"));
    }
    text
}

fn csv(pivot: &Pivot) -> String {
    let mut text = format!(
        "{},{},{},results\n",
        quoted(&pivot.rows),
        quoted(&pivot.columns),
        quoted(&pivot.figure)
    );
    for ((row, column), cell) in &pivot.cells {
        text.push_str(&format!(
            "{},{},{},{}\n",
            quoted(row),
            quoted(column),
            cell.value,
            cell.results
        ));
    }
    text
}

fn markdown(pivot: &Pivot) -> String {
    let (rows, columns) = pivot.headers();
    let escaped = |text: &str| text.replace('|', "\\|");
    let names: Vec<String> = columns.iter().map(|column| escaped(column)).collect();
    let mut text = format!(
        "{}:\n\n| {} | {} |\n",
        pivot.figure,
        escaped(&pivot.rows),
        names.join(" | ")
    );
    text.push_str(&format!("| ---{} |\n", " | ---:".repeat(columns.len())));
    for row in rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| pivot.shown(row, column))
            .collect();
        text.push_str(&format!("| {} | {} |\n", escaped(row), cells.join(" | ")));
    }
    if pivot.simulated {
        text.push_str(&format!("\n{SIMULATED}\n"));
    }
    text
}

fn document(pivot: &Pivot) -> serde_json::Value {
    let cells: Vec<_> = pivot
        .cells
        .iter()
        .map(|((row, column), cell)| {
            json!({"row": row, "column": column, "value": cell.value, "results": cell.results})
        })
        .collect();
    json!({
        "format": 1,
        "kind": "pivot",
        "figure": pivot.figure,
        "rows": pivot.rows,
        "columns": pivot.columns,
        "simulated": pivot.simulated,
        "cells": cells,
    })
}
