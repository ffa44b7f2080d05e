//! Tables of a sweep: rows of depths, columns of another axis, a table per combination of the rest.

use super::cell_text::{
    bandwidth_unit, cell_bandwidth, cell_bandwidth_in_unit, cell_mean_latency, cell_rate,
    rate_header,
};
use super::recommendation::label;
use super::several_values;
use crate::known_digits::{BANDWIDTH_UNITS, LATENCY_UNITS, NamedUnit, RATE_UNITS};
use crate::markdown_table::markdown_table;
use crate::text_table::{aligned_columns, columns};
use iosonde_study::sweep::{CurveResult, LARGE_BYTES, SweepCell, SweepResult};

/// Largest number of columns beside the depths.
const CURVES_MAX: usize = 4;
/// Width of the depths.
const DEPTH_COLUMNS: usize = 7;
/// Smallest widths of a rate and of a latency.
const RATE_COLUMNS_MIN: usize = 7;
const LATENCY_COLUMNS_MIN: usize = 8;

/// Widths of the rates and of the latencies of a sweep.
#[derive(Debug, Clone, Copy)]
struct CellWidths {
    rate: usize,
    latency: usize,
}

/// A table.
pub(super) struct SweepTable<'a> {
    /// Values that all its cells share.
    pub(super) title: String,
    /// Header of each column.
    headers: Vec<String>,
    /// Curve of each column.
    pub(super) curves: Vec<&'a CurveResult>,
    /// Unit of the bandwidths of each column. `None`: its rates are I/Os per second.
    units: Vec<Option<NamedUnit>>,
    widths: CellWidths,
}

impl CellWidths {
    fn new(result: &SweepResult) -> CellWidths {
        let mut widths = CellWidths {
            rate: RATE_COLUMNS_MIN,
            latency: LATENCY_COLUMNS_MIN,
        };
        for curve in &result.curves {
            let unit = curve_bandwidth_unit(curve);
            for cell in &curve.cells {
                widths.rate = cell_rate_text(cell, unit).chars().count().max(widths.rate);
                widths.latency = latency(cell).chars().count().max(widths.latency);
            }
        }
        widths
    }

    /// Columns of a curve: its rates and latencies with a blank between them.
    fn of_curve(self) -> usize {
        self.rate + 1 + self.latency
    }

    /// Number of curves that fit the terminal beside the depths.
    fn curves(self) -> usize {
        let room = columns().saturating_sub(DEPTH_COLUMNS);
        (room / (self.of_curve() + 1)).clamp(1, CURVES_MAX)
    }
}

/// Returns the tables of a sweep, each with as many curves as fit the terminal.
pub(super) fn tables(result: &SweepResult) -> Vec<SweepTable<'_>> {
    let axes = &result.axes[..result.axes.len() - 1];
    let column = column_axis(result);
    let widths = CellWidths::new(result);
    let mut tables: Vec<SweepTable<'_>> = Vec::new();
    for curve in &result.curves {
        let rest = axes.iter().zip(&curve.values).enumerate();
        let rest = rest.filter(|(index, _)| Some(*index) != column);
        let title = several_values(rest.map(|(_, pair)| pair));
        let header = match column {
            Some(index) => axes[index].value_text(&curve.values[index]),
            None => String::new(),
        };
        let open = tables.iter_mut().rev().find(|table| table.title == title);
        match open {
            Some(table) if table.curves.len() < widths.curves() => {
                table.headers.push(header);
                table.curves.push(curve);
                table.units.push(curve_bandwidth_unit(curve));
            }
            _ => tables.push(SweepTable {
                title,
                headers: vec![header],
                curves: vec![curve],
                units: vec![curve_bandwidth_unit(curve)],
                widths,
            }),
        }
    }
    tables
}

/// Axis of the columns: jobs or blocks if there are several, else the last one with several values.
fn column_axis(result: &SweepResult) -> Option<usize> {
    let axes = &result.axes[..result.axes.len() - 1];
    let several = |index: &usize| axes[*index].values.len() > 1;
    let named = |name: &str| {
        axes.iter()
            .position(|axis| axis.name == name)
            .filter(several)
    };
    named("numjobs")
        .or_else(|| named("bs"))
        .or_else(|| (0..axes.len()).rev().find(several))
}

/// Returns a table as wide as a paragraph.
pub(super) fn sweep_grid_text(table: &SweepTable<'_>) -> String {
    let width = table.widths.of_curve();
    let (of_rate, of_latency) = (table.widths.rate, table.widths.latency);
    let mut text = String::new();
    if !table.title.is_empty() {
        text.push_str(&format!("{}\n", label(&table.title, columns())));
    }
    let mut line = |first: &str, cells: Vec<String>| {
        let cells: String = cells
            .iter()
            .map(|cell| format!(" {cell:>width$}"))
            .collect();
        text.push_str(format!("{first:>DEPTH_COLUMNS$}{cells}").trim_end());
        text.push('\n');
    };
    if table.headers.iter().any(|header| !header.is_empty()) {
        let headers = table.headers.iter().map(|header| label(header, width));
        line("", headers.collect());
    }
    let units = table.units.iter().map(|unit| rate_header(*unit));
    let units = units.map(|unit| format!("{unit:>of_rate$} {:>of_latency$}", "latency"));
    line("iodepth", units.collect());
    for (row, depth) in depths(table).into_iter().enumerate() {
        let cells = table.curves.iter().zip(&table.units).map(|(curve, unit)| {
            let cell = &curve.cells[row];
            let (rate, latency) = (cell_rate_text(cell, *unit), latency(cell));
            format!("{rate:>of_rate$} {latency:>of_latency$}")
        });
        line(&depth.to_string(), cells.collect());
    }
    text
}

/// Returns the table as Markdown.
pub(super) fn markdown(table: &SweepTable<'_>) -> String {
    let mut text = match table.title.is_empty() {
        true => String::new(),
        false => format!("### {}\n\n", table.title),
    };
    let mut headers = vec!["iodepth".to_owned()];
    for (header, unit) in table.headers.iter().zip(&table.units) {
        let space = if header.is_empty() { "" } else { " " };
        headers.push(format!("{header}{space}{}", rate_header(*unit)));
        headers.push("latency".to_owned());
    }
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let columns = aligned_columns(&headers, 0);
    let rows = depths(table).into_iter().enumerate().map(|(row, depth)| {
        let figures = table.curves.iter().zip(&table.units);
        let figures = figures.flat_map(|(curve, unit)| {
            let cell = &curve.cells[row];
            [cell_rate_text(cell, *unit), latency(cell)]
        });
        let depth = std::iter::once(depth.to_string());
        depth.chain(figures).collect::<Vec<String>>()
    });
    text.push_str(&markdown_table(&columns, rows));
    text
}

fn depths(table: &SweepTable<'_>) -> Vec<u32> {
    let first = table.curves.first();
    first.map_or(Vec::new(), |curve| {
        curve.cells.iter().map(|cell| cell.iodepth).collect()
    })
}

/// Unit of the bandwidths of a curve. `None`: its rates are I/Os per second.
fn curve_bandwidth_unit(curve: &CurveResult) -> Option<NamedUnit> {
    is_large(curve).then(|| bandwidth_unit(curve.cells.iter()))
}

/// Whether the rates of a curve are bandwidths.
fn is_large(curve: &CurveResult) -> bool {
    curve.block_bytes >= LARGE_BYTES
}

/// Rate of a cell with its known digits, a bandwidth in this unit.
fn cell_rate_text(cell: &SweepCell, unit: Option<NamedUnit>) -> String {
    let text = match unit {
        Some(unit) => cell_bandwidth_in_unit(cell, unit),
        None => cell_rate(cell, RATE_UNITS),
    };
    text.unwrap_or_else(|| "-".to_owned())
}

/// Rate of a cell with its known digits, as a sentence has it: `3.92k IOPS`, `3.20 GiB/s`.
pub(super) fn rate_with_unit(curve: &CurveResult, cell: &SweepCell) -> String {
    let text = match is_large(curve) {
        true => cell_bandwidth(cell, BANDWIDTH_UNITS),
        false => cell_rate(cell, RATE_UNITS).map(|rate| format!("{rate} IOPS")),
    };
    text.unwrap_or_else(|| "-".to_owned())
}

/// Knee of a curve, if known. A single cell has none.
pub(crate) fn curve_knee(curve: &CurveResult) -> Option<u32> {
    let found = curve
        .saturation
        .as_ref()
        .filter(|_| curve.cells.len() > 1)?;
    found.known_knee().map(|knee| knee.iodepth)
}

/// Mean latency of a cell with its known digits.
pub(super) fn latency(cell: &SweepCell) -> String {
    cell_mean_latency(cell, LATENCY_UNITS).unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::tests::{measured, options};

    /// Texts of the tables of a sweep whose axis `name` is one of two targets with long names.
    fn texts(name: &str, axes: &[(&str, &str)]) -> Vec<String> {
        let mut result = measured("net-iops-cap", axes, &options());
        let index = result.axes.iter().position(|axis| axis.name == name);
        let index = index.unwrap();
        let targets = ["a", "b"].map(|end| format!("/mnt/{}/{end}", "x".repeat(84)));
        let axis = &mut result.axes[index];
        axis.name = "target".to_owned();
        let values = std::mem::replace(&mut axis.values, targets.to_vec());
        for curve in &mut result.curves {
            let number = values
                .iter()
                .position(|value| *value == curve.values[index]);
            curve.values[index] = targets[number.unwrap()].clone();
        }
        tables(&result).iter().map(sweep_grid_text).collect()
    }

    #[test]
    fn long_targets_stand_shortened_above_their_figures() {
        let texts = texts("bs", &[("bs", "4k,8k"), ("iodepth", "1,2")]);
        assert_eq!(texts.len(), 1);
        let lines: Vec<&str> = texts[0].lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:?}");
        let ends = lines[1].match_indices("latency");
        let ends: Vec<usize> = ends.map(|(start, word)| start + word.len()).collect();
        assert_eq!(ends.len(), 2);
        assert!(lines[0][..ends[0]].ends_with("x/a"), "{lines:?}");
        assert!(lines[0][..ends[1]].ends_with("x/b"), "{lines:?}");
    }

    #[test]
    fn long_title_is_shortened_to_the_terminal() {
        let axes = [
            ("rw", "randread,randwrite"),
            ("bs", "4k,8k"),
            ("iodepth", "1,2"),
        ];
        let texts = texts("rw", &axes);
        assert_eq!(texts.len(), 2);
        for (text, end) in texts.iter().zip(["x/a", "x/b"]) {
            let title = text.lines().next().unwrap();
            assert!(title.len() == 80 && title.ends_with(end), "{text}");
        }
    }
}
