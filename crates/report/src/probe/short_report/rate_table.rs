//! The table of a short report: one line per phase, with the digits that are known.

use super::run_shape::{RunShape, rates, sparkline_of_rates};
use crate::figures::UNKNOWN_LEGEND;
use crate::known_digits::{
    RATE_UNITS, bandwidth_of_rate, known_percentile, lacks_interval, percentile_lacks_interval,
    with_interval,
};
use crate::probe::row;
use crate::text_style::TextStyle;
use crate::text_table::{column_widths, columns, hidden_columns, wide_columns};
use iosonde_study::probe::{PhaseFigure, ProbeResult};

/// Heading of each column. Only the first and the last are aligned to the left.
const HEAD: [&str; 7] = ["", "depth", "rate", "bandwidth", "p50", "p99", "over time"];
/// Index of the column of sparklines, and of the words beside them.
const SPARK: usize = 6;
const WORD: usize = 7;
/// Columns that a narrow terminal does not show, the least important first: sparkline, bandwidth,
/// p50, word, p99.
const LEAST_IMPORTANT: [usize; 5] = [SPARK, 3, 4, WORD, 5];

/// Cells of a row, and the shape of its rate. The header has none.
type RateRow = ([String; HEAD.len()], Option<RunShape>);

/// Columns that are shown, with their widths.
struct RateColumns {
    widths: [usize; HEAD.len()],
    gap: &'static str,
    hidden: Vec<usize>,
}

/// The lines of the table. The word for the shape of the rate is painted.
pub(super) fn lines(result: &ProbeResult, style: TextStyle) -> Vec<String> {
    let figures = row::figures(result);
    let mut rows = vec![(HEAD.map(str::to_owned), None)];
    for figure in figures {
        let run = result.runs.iter().find(|run| run.phase == figure.phase);
        let rates = run.map_or(Vec::new(), |run| rates(&run.result, run.phase));
        let shape = RunShape::from_figure(figure, &rates);
        rows.push((cells(figure, &rates, style), Some(shape)));
    }
    let columns = RateColumns::new(&rows);
    rows.iter().map(|row| columns.line(row, style)).collect()
}

impl RateColumns {
    /// Selects the columns that fit the terminal. Two blanks stand between them if all fit, else
    /// one.
    fn new(rows: &[RateRow]) -> RateColumns {
        let widths = column_widths(rows.iter().map(|(cells, _)| cells));
        let shapes = rows.iter().filter_map(|(_, shape)| *shape);
        let words = shapes.map(|shape| shape.word().len()).max().unwrap_or(0);
        let wide = widths.iter().sum::<usize>() + words + 1 + 2 * (HEAD.len() - 1);
        let gap = if wide <= wide_columns() { "  " } else { " " };
        // The heading of the last column extends over sparklines and words.
        let sparks = rows.iter().skip(1).map(|(cells, _)| &cells[SPARK]);
        let sparks = sparks.map(|spark| spark.chars().count()).max();
        let heading = HEAD[SPARK].len();
        let with_sparks = (sparks.unwrap_or(0) + 1 + words).max(heading);
        let without_sparks = words.max(heading);
        let mut needed: Vec<usize> = widths.iter().map(|width| width + 1).collect();
        needed[SPARK] = with_sparks.saturating_sub(without_sparks);
        needed.push(without_sparks);
        let hidden = match gap.len() {
            1 => hidden_columns(&needed, &LEAST_IMPORTANT, columns()),
            _ => Vec::new(),
        };
        RateColumns {
            widths,
            gap,
            hidden,
        }
    }

    fn is_shown(&self, column: usize) -> bool {
        !self.hidden.contains(&column)
    }

    fn line(&self, (cells, shape): &RateRow, style: TextStyle) -> String {
        let gap = self.gap;
        let mut line = format!("{:<width$}", cells[0], width = self.widths[0]);
        for column in (1..SPARK).filter(|column| self.is_shown(*column)) {
            let (cell, width) = (&cells[column], self.widths[column]);
            line.push_str(&format!("{gap}{cell:>width$}"));
        }
        if !self.is_shown(WORD) {
            return line;
        }
        let Some(shape) = shape else {
            return format!("{line}{gap}{}", cells[SPARK]);
        };
        let word = style.paint(shape.meaning(), shape.word());
        let spark = &cells[SPARK];
        match self.is_shown(SPARK) && !spark.is_empty() {
            true => format!("{line}{gap}{spark} {word}"),
            false => format!("{line}{gap}{word}"),
        }
    }
}

fn cells(figure: &PhaseFigure, rates: &[f64], style: TextStyle) -> [String; HEAD.len()] {
    let latency = row::latency(figure);
    let (iops, bytes) = (figure.iops, figure.bytes_per_s);
    [
        row::short_label(figure),
        figure.iodepth.to_string(),
        with_interval(iops.mean, iops.error, RATE_UNITS, style.plus_minus()),
        bandwidth_of_rate(bytes.mean, iops.mean, iops.error),
        known_percentile(latency.p50_ns, latency.p50_between_ns),
        known_percentile(latency.p99_ns, latency.p99_between_ns),
        sparkline_of_rates(rates, style),
    ]
}

/// Explains the cells of missing percentiles and of unknown intervals, if there are any.
pub(super) fn legend(result: &ProbeResult) -> Option<&'static str> {
    let figures = || row::figures(result);
    let is_missing = figures().any(|figure| {
        let latency = row::latency(figure);
        latency.p50_ns.is_none() || latency.p99_ns.is_none()
    });
    // The bandwidth has the interval of the rate.
    let is_unknown = figures().any(|figure| {
        let (rate, latency) = (figure.iops, row::latency(figure));
        lacks_interval(rate.mean, rate.error)
            || percentile_lacks_interval(latency.p50_ns, latency.p50_between_ns)
            || percentile_lacks_interval(latency.p99_ns, latency.p99_between_ns)
    });
    match (is_missing, is_unknown) {
        (false, false) => None,
        (true, false) => Some("A latency of - is not known: fewer than ten I/Os were slower."),
        (false, true) => Some(UNKNOWN_LEGEND),
        (true, true) => {
            Some("- is not known: fewer than ten I/Os were slower; ~ has no known interval.")
        }
    }
}

/// Explains the row whose rate and latency are of different calls, if it was measured.
pub(super) fn sync_legend(result: &ProbeResult) -> Option<&'static str> {
    let mut figures = row::figures(result);
    let has_row = figures.any(|figure| figure.sync_latency.is_some());
    has_row.then_some("fdatasync: rate of writes, each with fdatasync; latency of fdatasync alone.")
}
