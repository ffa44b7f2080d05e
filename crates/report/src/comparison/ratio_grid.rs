//! Comparison of two sweeps: rows of depths, columns of curves, the ratio of each cell.

use super::ratio_text::{interval, number};
use crate::text_table::columns;
use iosonde_result::compare::{Comparison, ComparisonRow, ComparisonVerdict, Measure};
use iosonde_study::sweep::ComparedPart;

/// Width of the depth column.
const FIRST: usize = 7;
/// Width of a ratio with its marks and interval.
const CELL: usize = 20;

/// Legend of the marks.
pub(super) const LEGEND: &str = "+ B is faster, - slower, = no difference shown, ? undecided";

/// Returns the tables of all measures, none wider than a terminal.
pub(super) fn ratio_tables(comparison: &Comparison, parts: &[ComparedPart]) -> String {
    let curves = curves(parts);
    let mut text = String::new();
    for measure in Measure::ALL {
        let of_measure = |row: &&ComparisonRow| row.measure == measure;
        let rows: Vec<&ComparisonRow> = comparison.rows.iter().filter(of_measure).collect();
        if rows.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}, B / A\n", measure.title()));
        for some in side_by_side(&curves) {
            text.push_str(&table(some, parts, &rows));
        }
    }
    text
}

/// Names of the curves in their order.
fn curves(parts: &[ComparedPart]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for each in parts {
        if names.last() != Some(&each.curve.as_str()) {
            names.push(&each.curve);
        }
    }
    names
}

/// Splits curves into groups that fit beside each other.
fn side_by_side<'a, 'b>(curves: &'a [&'b str]) -> impl Iterator<Item = &'a [&'b str]> {
    curves.chunks(((columns() - FIRST) / width(curves)).max(1))
}

fn width(curves: &[&str]) -> usize {
    let longest = curves.iter().map(|name| name.chars().count() + 2).max();
    longest.unwrap_or(0).max(CELL)
}

fn table(curves: &[&str], parts: &[ComparedPart], rows: &[&ComparisonRow]) -> String {
    let width = width(curves);
    let mut text = String::new();
    let mut line = |first: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>width$}")).collect();
        text.push_str(format!("{first:>FIRST$}{cells}").trim_end());
        text.push('\n');
    };
    let names: Vec<String> = curves.iter().map(|name| (*name).to_owned()).collect();
    line("iodepth", &names);
    for depth in depths(parts) {
        let cells: Vec<String> = curves
            .iter()
            .map(|curve| ratio_cell(curve, depth, parts, rows))
            .collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let first = depth.map_or("most".to_owned(), |depth| depth.to_string());
        line(&first, &cells);
    }
    text
}

/// All depths. The maximum at any depth (`None`) is first.
fn depths(parts: &[ComparedPart]) -> Vec<Option<u32>> {
    let mut depths: Vec<Option<u32>> = parts.iter().map(|each| each.iodepth).collect();
    depths.sort_unstable();
    depths.dedup();
    depths
}

fn ratio_cell(
    curve: &str,
    depth: Option<u32>,
    parts: &[ComparedPart],
    rows: &[&ComparisonRow],
) -> String {
    let part = parts
        .iter()
        .find(|each| each.curve == curve && each.iodepth == depth);
    let row = part.and_then(|each| rows.iter().find(|row| row.part == each.part.name));
    row.map_or(String::new(), |row| {
        let ratio = number(row.ratio.value);
        let verdict = verdict_mark(row.verdict);
        format!("{ratio}{verdict} {:>11}", interval(&row.ratio))
    })
}

fn verdict_mark(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Faster => "+",
        ComparisonVerdict::Slower => "-",
        ComparisonVerdict::NoDifferenceShown => "=",
        ComparisonVerdict::Undecided => "?",
    }
}
