//! Table of the offered rates of a load study.

use super::rate_state::RateState;
use super::{PERCENTILES, is_judged, latency, latency_bar, longest, percent_of, percentile};
use crate::axis_numbers::value_range;
use crate::text_table::{column_widths, columns, hidden_columns};
use iosonde_study::load::{LoadMeasurement, LoadResult};
use iosonde_study::words;

/// Headings of the table of rates.
const HEAD: [&str; 9] = [
    "load", "offered", "done/s ", "p50", "p95", "p99", "p99.9", "max", "p99",
];
/// Index of the column of bars.
const BAR_COLUMN: usize = 8;
/// Usual widths of the columns.
const USUAL_WIDTHS: [usize; HEAD.len()] = [5, 8, 9, 8, 8, 8, 8, 8, 8];
/// Columns that a narrow terminal does not show, the least important first: p95, bar, maximum,
/// p99.9, share of the capacity, p50, completed rate.
const LEAST_IMPORTANT: [usize; 7] = [4, BAR_COLUMN, 7, 6, 0, 3, 2];

/// Table of the offered rates, after an empty line.
pub(super) fn curve(result: &LoadResult) -> String {
    let kept_up = result.points.iter().filter(|point| is_judged(point));
    let range = value_range(kept_up.filter_map(|point| point.percentile_ns(99.0)));
    let rows = result.points.iter();
    let rows = rows.map(|point| cells(point, result.capacity_iops, range));
    let rows: Vec<RateCells> = std::iter::once(HEAD.map(str::to_owned))
        .chain(rows)
        .collect();
    let (widths, hidden) = shown_columns(&rows);
    let mut text = "\n".to_owned();
    for row in &rows {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            let width = widths[index];
            match index {
                _ if hidden.contains(&index) => {}
                BAR_COLUMN => line.push_str(&format!(" {cell}")),
                _ => line.push_str(&format!("{cell:>width$} ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Cells of a row of the table of rates.
type RateCells = [String; HEAD.len()];

fn cells(point: &LoadMeasurement, capacity: Option<f64>, range: (f64, f64)) -> RateCells {
    let mark = match RateState::of_measurement(point) {
        RateState::Sustained => ' ',
        RateState::FellBehind => '*',
        RateState::Interrupted => '/',
        RateState::Failed => '!',
    };
    let [p50, p95, p99, p99_9] = PERCENTILES.map(|percent| percentile(point, percent));
    let load = capacity.map(|capacity| percent_of(point.offered.total(), capacity));
    let bar = is_judged(point).then(|| latency_bar(point.percentile_ns(99.0), range));
    [
        load.map_or(String::new(), |percent| format!("{percent}%")),
        words::iops_text(point.offered.total()),
        format!("{}{mark}", words::iops_text(point.achieved_per_s())),
        p50,
        p95,
        p99,
        p99_9,
        latency(longest(point)),
        bar.unwrap_or_default(),
    ]
}

/// Widths of the columns, and the columns that do not fit the terminal. The usual widths give way
/// first.
fn shown_columns(rows: &[RateCells]) -> ([usize; HEAD.len()], Vec<usize>) {
    let widths = column_widths(rows);
    let mut usual = widths;
    for (width, least) in usual.iter_mut().zip(USUAL_WIDTHS) {
        *width = least.max(*width);
    }
    let needed = |widths: [usize; HEAD.len()]| widths.map(|width| width + 1);
    let room = columns();
    if needed(usual).iter().sum::<usize>() <= room {
        return (usual, Vec::new());
    }
    (
        widths,
        hidden_columns(&needed(widths), &LEAST_IMPORTANT, room),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_table::set_columns;

    fn row(p50: &str) -> RateCells {
        let cells = [
            "100%", "10.0k", "10.0k*", p50, p50, p50, p50, "9.99 ms", "########",
        ];
        cells.map(str::to_owned)
    }

    #[test]
    fn narrow_terminal_hides_columns_of_rates_in_their_order() {
        assert!(shown_columns(&[row("1.23 ms")]).1.is_empty());
        let wide = [row("~12345.6 ms")];
        // At 80 columns, a line that is longer keeps its columns.
        assert!(shown_columns(&wide).1.is_empty());
        set_columns(79);
        assert_eq!(shown_columns(&wide).1, [4]);
        set_columns(60);
        assert_eq!(shown_columns(&wide).1, [4, BAR_COLUMN, 7]);
        set_columns(40);
        let (widths, hidden) = shown_columns(&wide);
        assert!(!hidden.contains(&1) && !hidden.contains(&5), "{hidden:?}");
        let shown = (0..HEAD.len()).filter(|index| !hidden.contains(index));
        let width: usize = shown.map(|index| widths[index] + 1).sum();
        assert!(width <= 41, "{hidden:?}");
    }
}
