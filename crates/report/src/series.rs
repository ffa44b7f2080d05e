//! Time series of a run with its devices and its machine, for `show` and `export`: sparklines as
//! text, CSV for programs. `html/page_series.rs` has those of the report.

mod columns;
mod network_columns;
mod series_column;
mod series_csv;
#[cfg(test)]
mod tests;

use crate::text_table::{plain, render, right};
use columns::columns;
use comfy_table::Cell;
use iosonde_result::interval::Interval;
use iosonde_result::machine::MachineSlice;
use iosonde_result::run::RunResult;
use iosonde_study::words;
use series_column::{Column, Quantity};
use std::borrow::Cow;

pub use series_csv::csv;

/// Width of a sparkline, in characters.
const WIDTH: usize = 20;
/// A run with fewer intervals has no sparkline.
const LEAST_INTERVALS: usize = 3;

/// Returns a table of 80 columns: each quantity's sparkline, least and most, and for machine and
/// devices the mean. It is empty if the run is too short.
pub fn table(result: &RunResult) -> String {
    let longest_ns = result.intervals.iter().map(|interval| interval.length_ns);
    let longest_ns = longest_ns.max().unwrap_or(0);
    // The drain at the end lasts microseconds, so its rate does not belong to the time series.
    let whole = |row: &IntervalRow<'_>| !row.0.ramp && row.0.length_ns * 2 >= longest_ns;
    let measured = rows(result).filter(whole).count();
    if measured < LEAST_INTERVALS {
        return String::new();
    }
    let mut table = plain();
    let head = format!("over time ({measured} intervals)");
    table.set_header([
        Cell::new(head),
        Cell::new(""),
        right("least"),
        right("mean"),
        right("most"),
    ]);
    for column in columns(&[result]).iter().filter(|column| column.shown) {
        let values: Vec<(f64, u64)> = rows(result)
            .filter(whole)
            .filter_map(|(interval, slice)| {
                Some((
                    (column.value)(&interval, slice.as_deref())?,
                    interval.length_ns,
                ))
            })
            .collect();
        if values.len() < LEAST_INTERVALS {
            continue;
        }
        table.add_row(cells(column, &values));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(&table)
}

type IntervalRow<'a> = (Cow<'a, Interval>, Option<Cow<'a, MachineSlice>>);

/// Returns the intervals, each with the machine's slice of the same time.
fn rows(result: &RunResult) -> impl Iterator<Item = IntervalRow<'_>> {
    // Both are sorted by time.
    let mut slices = result.series.slices.iter().peekable();
    result.intervals.iter().map(move |interval| {
        let is_before = |slice: &Cow<'_, MachineSlice>| slice.start_ns < interval.start_ns;
        while slices.next_if(is_before).is_some() {}
        let slice = slices.next_if(|slice| slice.start_ns == interval.start_ns);
        (interval, slice)
    })
}

fn cells(column: &Column, values: &[(f64, u64)]) -> Vec<Cell> {
    let all = values.iter().map(|(value, _)| *value);
    let (least, most) = all.fold((f64::INFINITY, 0.0f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let text = |value: f64| right(column.quantity.text(value));
    // A mean of percentiles is no percentile. The run's own rate differs: it includes idle times.
    let mean = match column.of_run {
        true => Cell::new(""),
        false => text(mean(values)),
    };
    vec![
        Cell::new(format!("  {}", column.title)),
        Cell::new(sparkline(values, column.quantity.top(most))),
        text(least),
        mean,
        text(most),
    ]
}

/// Mean weighted by time.
fn mean(values: &[(f64, u64)]) -> f64 {
    let total: f64 = values.iter().map(|(_, length_ns)| *length_ns as f64).sum();
    let sum: f64 = values
        .iter()
        .map(|(value, length_ns)| value * *length_ns as f64)
        .sum();
    sum / total.max(1.0)
}

/// Sparkline from zero to `top`. Adjacent values are merged if they exceed the width. Each value
/// has the length of its interval, by which it is weighted.
pub(crate) fn sparkline(values: &[(f64, u64)], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let together = values.len().div_ceil(WIDTH).max(1);
    let bar = |group: &[(f64, u64)]| {
        let share = if top > 0.0 { mean(group) / top } else { 0.0 };
        // The lowest bar is for values near zero.
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    values.chunks(together).map(bar).collect()
}

impl Quantity {
    fn text(self, value: f64) -> String {
        match self {
            Quantity::Iops => words::iops(value),
            Quantity::BytesPerS => words::bandwidth(value),
            Quantity::Ns => words::latency(value),
            Quantity::Ms => words::latency(value * 1e6),
            Quantity::Percent => format!("{value:.0} %"),
            Quantity::Count => words::three_digits(value),
        }
    }

    /// Value of a full bar: 100 for a share, the maximum for other quantities.
    fn top(self, most: f64) -> f64 {
        match self {
            Quantity::Percent => 100.0,
            _ => most,
        }
    }
}
