//! Time series of a run with its devices and its machine, for `show` and `export`: sparklines as
//! text, CSV for programs. `html/page_series.rs` has those of the report.

mod columns;
mod network_columns;
mod series_column;
mod series_csv;
#[cfg(test)]
mod tests;

use crate::axis_numbers::value_range;
use crate::text_style::{SparkScale, TextStyle};
use crate::text_table::{
    added_columns, aligned_columns, fill_table, hide_columns, is_narrow, plain, render, set_gap,
    set_wide, wrapped,
};
use columns::columns;
use iosonde_result::interval::Interval;
use iosonde_result::machine::MachineSlice;
use iosonde_result::run::RunResult;
use iosonde_study::words;
use series_column::{Column, Quantity};
use std::borrow::Cow;

pub use series_csv::intervals_csv;

/// Width of a sparkline, in characters, and its width on a terminal narrower than 80 columns. A
/// wide terminal adds a bar for each column beyond 80.
const WIDTH: usize = 20;
const NARROW_WIDTH: usize = 8;
/// A run with fewer intervals has no sparkline.
const LEAST_INTERVALS: usize = 3;

/// Columns that a narrow terminal does not show, the least important first: mean, least, most.
const LEAST_IMPORTANT: [usize; 3] = [3, 2, 4];

/// Returns a table of 80 columns, or more on a wide terminal: each quantity's sparkline, least and
/// most, and for machine and devices the mean. A narrow terminal shows fewer. It is empty if the
/// run is too short.
pub(crate) fn table(result: &RunResult, style: TextStyle) -> String {
    let longest_ns = result.intervals.iter().map(|interval| interval.length_ns);
    let longest_ns = longest_ns.max().unwrap_or(0);
    // The drain at the end lasts microseconds, so its rate does not belong to the time series.
    let whole = |row: &IntervalRow<'_>| !row.0.ramp && row.0.length_ns * 2 >= longest_ns;
    let measured = interval_rows(result).filter(whole).count();
    if measured < LEAST_INTERVALS {
        return String::new();
    }
    let title = format!("over time ({measured} intervals)");
    // The title is wider than the names of the quantities.
    let (above, head, gap) = match is_narrow() {
        true => (wrapped(&title), String::new(), 1),
        false => (String::new(), title, 2),
    };
    let all = columns(&[result]);
    let lines = all.iter().filter(|column| column.shown);
    let lines = lines.filter_map(|column| {
        let values: Vec<(f64, u64)> = interval_rows(result)
            .filter(whole)
            .filter_map(|(interval, slice)| {
                Some((
                    (column.value)(&interval, slice.as_deref())?,
                    interval.length_ns,
                ))
            })
            .collect();
        (values.len() >= LEAST_INTERVALS).then(|| cells(column, &values, style))
    });
    let head = [head.as_str(), "", "least", "mean", "most"];
    let mut table = fill_table(plain(), &aligned_columns(&head, 2), lines);
    set_gap(&mut table, gap);
    hide_columns(&mut table, &LEAST_IMPORTANT);
    set_wide(&mut table);
    above + &render(&table)
}

type IntervalRow<'a> = (Cow<'a, Interval>, Option<Cow<'a, MachineSlice>>);

/// Returns the intervals, each with the machine's slice of the same time.
fn interval_rows(result: &RunResult) -> impl Iterator<Item = IntervalRow<'_>> {
    // Both are sorted by time.
    let mut slices = result.series.slices.iter().peekable();
    result.intervals.iter().map(move |interval| {
        let is_before = |slice: &Cow<'_, MachineSlice>| slice.start_ns < interval.start_ns;
        while slices.next_if(is_before).is_some() {}
        let slice = slices.next_if(|slice| slice.start_ns == interval.start_ns);
        (interval, slice)
    })
}

fn cells(column: &Column, values: &[(f64, u64)], style: TextStyle) -> [String; 5] {
    let all = values.iter().map(|(value, _)| *value);
    let (least, most) = value_range(all);
    let text = |value: f64| column.quantity.text(value);
    // A mean of percentiles is no percentile. The run's own rate differs: it includes idle times.
    let mean = match column.of_run {
        true => String::new(),
        false => text(time_weighted_mean(values)),
    };
    [
        format!("  {}", column.title),
        sparkline_of_intervals(values, column.quantity.spark_scale(), style),
        text(least),
        mean,
        text(most),
    ]
}

/// Mean weighted by time.
fn time_weighted_mean(values: &[(f64, u64)]) -> f64 {
    let total: f64 = values.iter().map(|(_, length_ns)| *length_ns as f64).sum();
    let sum: f64 = values
        .iter()
        .map(|(value, length_ns)| value * *length_ns as f64)
        .sum();
    sum / total.max(1.0)
}

/// Sparkline of values. Adjacent values are merged if they exceed the width. Each value has the
/// length of its interval, by which it is weighted.
pub(crate) fn sparkline_of_intervals(
    values: &[(f64, u64)],
    scale: SparkScale,
    style: TextStyle,
) -> String {
    let width = match is_narrow() {
        true => NARROW_WIDTH,
        false => WIDTH + added_columns(),
    };
    let together = values.len().div_ceil(width).max(1);
    let means: Vec<f64> = values.chunks(together).map(time_weighted_mean).collect();
    style.sparkline(&means, scale)
}

impl Quantity {
    fn text(self, value: f64) -> String {
        match self {
            Quantity::Iops => words::iops_text(value),
            Quantity::BytesPerS => words::bandwidth(value),
            Quantity::Ns => words::latency(value),
            Quantity::Ms => words::latency(value * 1e6),
            Quantity::Percent => format!("{value:.0} %"),
            Quantity::Count => words::three_digits(value),
        }
    }

    fn spark_scale(self) -> SparkScale {
        match self {
            Quantity::Percent => SparkScale::Percent,
            _ => SparkScale::Amount,
        }
    }
}
