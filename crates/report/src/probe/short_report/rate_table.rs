//! The table of a short report: one line per phase, with the digits that are known.

use super::run_shape::{RunShape, rates, sparkline};
use crate::known_digits::{RATE_UNITS, bandwidth_of_rate, known_percentile, with_interval};
use crate::probe::row;
use crate::text_style::TextStyle;
use crate::text_table::COLUMNS;
use iosonde_job::plan::Direction;
use iosonde_study::probe::{PhaseFigure, ProbePhase, ProbeResult};

/// Heading of each column. Only the first and the last are aligned to the left.
const HEAD: [&str; 7] = ["", "depth", "rate", "bandwidth", "p50", "p99", "over time"];

/// Name of a phase, without its depth: `4k random read`, `1M seq. write`, `4k fdatasync`.
pub(super) fn short_label(figure: &PhaseFigure) -> String {
    let block = match figure.block_bytes {
        bytes if bytes >= 1 << 20 => format!("{}M", bytes >> 20),
        bytes => format!("{}k", bytes >> 10),
    };
    if figure.phase == ProbePhase::SyncedWrite {
        return format!("{block} fdatasync");
    }
    let order = if figure.phase.is_random() {
        "random"
    } else {
        "seq."
    };
    let direction = match figure.phase.direction() {
        Direction::Read => "read",
        _ => "write",
    };
    format!("{block} {order} {direction}")
}

/// The lines of the table. The word for the shape of the rate is painted.
pub(super) fn lines(result: &ProbeResult, style: TextStyle) -> Vec<String> {
    let figures = row::ORDER.iter().filter_map(|phase| result.figure(*phase));
    let mut rows = vec![(HEAD.map(str::to_owned), None)];
    for figure in figures {
        let run = result.runs.iter().find(|run| run.phase == figure.phase);
        let rates = run.map_or(Vec::new(), |run| rates(&run.result, run.phase));
        let shape = RunShape::from_figure(figure, &rates);
        rows.push((cells(figure, &rates, style), Some(shape)));
    }
    let mut widths = [0; HEAD.len()];
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = cell.chars().count().max(*width);
        }
    }
    let gap = gap(&widths, &rows);
    let line = |(cells, shape): (&[String; HEAD.len()], Option<RunShape>)| {
        let mut line = format!("{:<width$}", cells[0], width = widths[0]);
        for (cell, width) in cells.iter().zip(widths).take(HEAD.len() - 1).skip(1) {
            line.push_str(&format!("{gap}{cell:>width$}"));
        }
        match shape {
            None => format!("{line}{gap}{}", cells[HEAD.len() - 1]),
            Some(shape) => {
                let spark = &cells[HEAD.len() - 1];
                let blank = if spark.is_empty() { "" } else { " " };
                let word = style.paint(shape.meaning(), shape.word());
                format!("{line}{gap}{spark}{blank}{word}")
            }
        }
    };
    rows.iter()
        .map(|(cells, shape)| line((cells, *shape)))
        .collect()
}

/// Blanks between columns: two if the table fits the screen, else one.
fn gap(
    widths: &[usize; HEAD.len()],
    rows: &[([String; HEAD.len()], Option<RunShape>)],
) -> &'static str {
    let words = rows.iter().filter_map(|(_, shape)| *shape);
    let longest = words.map(|shape| shape.word().len() + 1).max();
    let wide = widths.iter().sum::<usize>() + longest.unwrap_or(0) + 2 * (HEAD.len() - 1);
    if wide <= usize::from(COLUMNS) {
        "  "
    } else {
        " "
    }
}

fn cells(figure: &PhaseFigure, rates: &[f64], style: TextStyle) -> [String; HEAD.len()] {
    let latency = row::latency(figure);
    let (iops, bytes) = (figure.iops, figure.bytes_per_s);
    [
        short_label(figure),
        figure.iodepth.to_string(),
        with_interval(iops.mean, iops.error, RATE_UNITS, style.plus_minus()),
        bandwidth_of_rate(bytes.mean, iops.mean, iops.error),
        known_percentile(latency.p50_ns, latency.p50_between_ns),
        known_percentile(latency.p99_ns, latency.p99_between_ns),
        sparkline(rates, style.bars()),
    ]
}

/// Explains the cells of missing percentiles and of unknown intervals, if there are any.
pub(super) fn legend(result: &ProbeResult, style: TextStyle) -> Option<&'static str> {
    let figures = || row::ORDER.iter().filter_map(|phase| result.figure(*phase));
    let is_missing = figures().any(|figure| {
        let latency = row::latency(figure);
        latency.p50_ns.is_none() || latency.p99_ns.is_none()
    });
    let is_unknown = figures().any(|figure| {
        let cells = cells(figure, &[], style);
        cells.iter().any(|cell| cell.starts_with('~'))
    });
    match (is_missing, is_unknown) {
        (false, false) => None,
        (true, false) => Some("A latency of - is not known: fewer than ten I/Os were slower."),
        (false, true) => Some("A figure with ~ has no known interval."),
        (true, true) => {
            Some("- is not known: fewer than ten I/Os were slower; ~ has no known interval.")
        }
    }
}
