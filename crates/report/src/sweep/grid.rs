//! Tables of a sweep: rows of depths, columns of another axis, a table per combination of the rest.

use super::named;
use crate::known_digits::{MEBIBYTES, RATE_UNITS, known_digits};
use crate::markdown_table::{MarkdownColumn, markdown_table};
use iosonde_study::sweep::{CellBasis, CurveResult, LARGE_BYTES, SweepCell, SweepResult};
use iosonde_study::words;

/// Maximum number of columns beside the depths, within 80 characters.
const COLUMNS: usize = 4;
/// Width of a rate with its mark, and of a latency.
const RATE: usize = 8;
const LATENCY: usize = 7;

/// A measured rate is marked if half its 95 % interval exceeds this share of it, or is unknown.
pub(super) const UNSURE: f64 = 0.2;

/// A table.
pub(super) struct SweepTable<'a> {
    /// Values that all its cells share.
    pub(super) title: String,
    /// Header of each column.
    headers: Vec<String>,
    /// Curve of each column.
    pub(super) curves: Vec<&'a CurveResult>,
}

/// Returns the tables of a sweep, with at most `COLUMNS` columns each.
pub(super) fn tables(result: &SweepResult) -> Vec<SweepTable<'_>> {
    let axes = &result.axes[..result.axes.len() - 1];
    let column = column_axis(result);
    let mut tables: Vec<SweepTable<'_>> = Vec::new();
    for curve in &result.curves {
        let rest = axes.iter().zip(&curve.values).enumerate();
        let rest =
            rest.filter(|(index, (axis, _))| Some(*index) != column && axis.values.len() > 1);
        let title: Vec<String> = rest
            .map(|(_, (axis, value))| named(&axis.name, value))
            .collect();
        let title = title.join(" ");
        let header = match column {
            Some(index) => named(&axes[index].name, &curve.values[index]),
            None => String::new(),
        };
        let open = tables.iter_mut().rev().find(|table| table.title == title);
        match open {
            Some(table) if table.curves.len() < COLUMNS => {
                table.headers.push(header);
                table.curves.push(curve);
            }
            _ => tables.push(SweepTable {
                title,
                headers: vec![header],
                curves: vec![curve],
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

/// Returns a table of at most 80 characters per line.
pub(super) fn text(table: &SweepTable<'_>) -> String {
    let width = RATE + 1 + LATENCY;
    let mut text = String::new();
    if !table.title.is_empty() {
        text.push_str(&format!("{}\n", table.title));
    }
    let mut line = |first: &str, cells: Vec<String>| {
        let cells: String = cells
            .iter()
            .map(|cell| format!(" {cell:>width$}"))
            .collect();
        text.push_str(format!("{first:>7}{cells}").trim_end());
        text.push('\n');
    };
    if table.headers.iter().any(|header| !header.is_empty()) {
        line("", table.headers.clone());
    }
    let units = table
        .curves
        .iter()
        .map(|curve| format!("{} latency", unit(curve)));
    line("iodepth", units.collect());
    for (row, depth) in depths(table).into_iter().enumerate() {
        let cells = table.curves.iter().map(|curve| {
            let cell = &curve.cells[row];
            format!("{:>RATE$} {:>LATENCY$}", rate(curve, cell), latency(cell))
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
    for (header, curve) in table.headers.iter().zip(&table.curves) {
        let space = if header.is_empty() { "" } else { " " };
        headers.push(format!("{header}{space}{}", unit(curve)));
        headers.push("latency".to_owned());
    }
    let columns: Vec<_> = (headers.iter())
        .map(|header| MarkdownColumn::Right(header))
        .collect();
    let rows = depths(table).into_iter().enumerate().map(|(row, depth)| {
        let figures = table.curves.iter().flat_map(|curve| {
            let cell = &curve.cells[row];
            let rate = rate(curve, cell).replace('~', "\\~");
            [rate, latency(cell)]
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

fn unit(curve: &CurveResult) -> &'static str {
    if curve.block_bytes >= LARGE_BYTES {
        "MiB/s"
    } else {
        "IOPS"
    }
}

fn rate(curve: &CurveResult, cell: &SweepCell) -> String {
    let (Some(iops), Some(bytes)) = (cell.iops, cell.bytes_per_s) else {
        return "-".to_owned();
    };
    if is_anything(cell) {
        return "~?".to_owned();
    }
    let mark = match cell.basis {
        CellBasis::Predicted => "~",
        _ if is_unsure(cell) => "?",
        _ => "",
    };
    let text = match unit(curve) {
        "MiB/s" => {
            let scale = bytes / iops.mean.max(f64::MIN_POSITIVE);
            known_digits(bytes, iops.error.map(|error| error * scale), MEBIBYTES)
        }
        _ => known_digits(iops.mean, iops.error, RATE_UNITS),
    };
    // The mark of the cell says that the interval is not known.
    format!("{mark}{}", text.trim_start_matches('~'))
}

/// Whether the rate of a measured cell has a wide or an unknown interval.
pub(super) fn is_unsure(cell: &SweepCell) -> bool {
    cell.basis == CellBasis::Measured && cell.doubt().is_none_or(|doubt| doubt > UNSURE)
}

/// Whether a prediction could be off by more than 100 %. Its number is not shown then.
pub(crate) fn is_anything(cell: &SweepCell) -> bool {
    cell.basis == CellBasis::Predicted && cell.doubt().is_some_and(|doubt| doubt > 1.0)
}

/// Knee of a curve, if known. A single cell has none.
pub fn knee(curve: &CurveResult) -> Option<u32> {
    let found = curve
        .saturation
        .as_ref()
        .filter(|_| curve.cells.len() > 1)?;
    found.known_knee().map(|knee| knee.iodepth)
}

fn latency(cell: &SweepCell) -> String {
    if is_anything(cell) {
        return "-".to_owned();
    }
    cell.mean_latency_ns
        .map_or("-".to_owned(), |ns| words::latency(ns).replace(' ', ""))
}
