//! Matrix of read and write rates as text: a heat map of the 99th percentile.

use crate::text_table::wrapped;
use iosonde_study::load::{CellState, Matrix, MatrixCell};
use iosonde_study::words;

/// Maximum number of steps for which cells with figures fit into 80 columns.
const WITH_FIGURES: usize = 10;
/// Shades from light to dark, on a logarithmic scale of latency.
const SHADES: [char; 6] = ['.', ':', '-', '=', '#', '@'];

/// Rows are write rates, the highest first. Columns are read rates, the lowest first.
pub(super) fn text(matrix: &Matrix) -> String {
    let steps = matrix.reads_per_s.len() - 1;
    let shown: fn(&MatrixCell, (f64, f64)) -> String = if steps <= WITH_FIGURES {
        |cell, _| figure(cell)
    } else {
        shade
    };
    let width = if steps <= WITH_FIGURES { 6 } else { 1 };
    let range = range(matrix);
    let mut text = "p99 over reads/s (across) and writes/s (up)\n\n".to_owned();
    for (row, writes) in matrix.writes_per_s.iter().enumerate().rev() {
        text.push_str(&format!("{:>7} ", words::iops(*writes)));
        for cell in &matrix.cells[row] {
            text.push_str(&format!("{:>width$}", shown(cell, range)));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push_str(&axis(matrix, width));
    let (measured, all) = matrix.measured();
    let mut legend = if steps <= WITH_FIGURES {
        "~ predicted from neighbouring cells; x fell behind; (x) not measured, beyond a cell that \
         fell behind"
            .to_owned()
    } else {
        format!(
            "From . ({}) to @ ({}); x fell behind, or is beyond a cell that fell behind",
            words::latency(range.0),
            words::latency(range.1)
        )
    };
    if matrix.cells.iter().flatten().any(|cell| cell.of_few) {
        legend.push_str(match steps <= WITH_FIGURES {
            true => "; ? too few I/Os, use a longer --runtime",
            false => "; some cells have too few I/Os, use a longer --runtime",
        });
    }
    text.push_str(&format!(
        "\n{}",
        wrapped(&format!(
            "{measured} of {all} cells were measured. {legend}"
        ))
    ));
    text
}

fn axis(matrix: &Matrix, width: usize) -> String {
    let mut text = " ".repeat(8);
    for (index, reads) in matrix.reads_per_s.iter().enumerate() {
        if width >= 6 {
            text.push_str(&format!("{:>width$}", words::iops(*reads)));
        } else if index == 0 || index + 1 == matrix.reads_per_s.len() {
            text.push_str(&words::iops(*reads));
        } else {
            text.push(' ');
        }
    }
    text.push('\n');
    text
}

/// Lowest and highest known latency.
fn range(matrix: &Matrix) -> (f64, f64) {
    let known = || matrix.cells.iter().flatten().filter_map(|cell| cell.p99_ns);
    (
        known().fold(f64::INFINITY, f64::min),
        known().fold(0.0, f64::max),
    )
}

/// Formats the latency of a cell in at most five characters.
fn figure(cell: &MatrixCell) -> String {
    let mark = if cell.state == CellState::Predicted {
        "~"
    } else {
        ""
    };
    match (cell.state, cell.p99_ns) {
        (CellState::NotReached, _) => "x".to_owned(),
        (CellState::PredictedNotReached, _) => "(x)".to_owned(),
        (_, Some(ns)) if cell.of_few => format!("{}?", brief(ns)),
        (_, Some(ns)) => format!("{mark}{}", brief(ns)),
        _ => String::new(),
    }
}

/// Formats a latency with two digits and a unit.
fn brief(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "n"),
        ns if ns < 9.995e5 => (ns / 1e3, "u"),
        ns if ns < 9.995e8 => (ns / 1e6, "m"),
        ns => (ns / 1e9, "s"),
    };
    if value < 9.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

fn shade(cell: &MatrixCell, (lowest, highest): (f64, f64)) -> String {
    match (cell.state, cell.p99_ns) {
        (CellState::NotReached | CellState::PredictedNotReached, _) => "x".to_owned(),
        (_, Some(ns)) => {
            let share = if highest > lowest {
                (ns / lowest).ln() / (highest / lowest).ln()
            } else {
                0.0
            };
            let index = (share * SHADES.len() as f64) as usize;
            SHADES[index.min(SHADES.len() - 1)].to_string()
        }
        _ => " ".to_owned(),
    }
}
