//! The read x write matrix as text: a heat map of the 99th percentile.

use crate::report::probe::table::wrapped;
use iosonde_study::load::{Cell, CellState, Matrix};
use iosonde_study::words;

/// Steps that still fit into 80 columns with figures in the cells.
const WITH_FIGURES: usize = 10;
/// Light to dark; each step is the same ratio of latencies.
const SHADES: [char; 6] = ['.', ':', '-', '=', '#', '@'];

/// Rows of writes from most to none, columns of reads from none to most.
pub(super) fn text(matrix: &Matrix) -> String {
    let steps = matrix.reads_per_s.len() - 1;
    let shown: fn(&Cell, (f64, f64)) -> String = if steps <= WITH_FIGURES {
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
        "~ predicted from its neighbours; x not kept up with; (x) not measured, beyond what is kept up with".to_owned()
    } else {
        format!(
            "From . ({}) to @ ({}); x not kept up with, measured or beyond what is",
            words::latency(range.0),
            words::latency(range.1)
        )
    };
    if matrix.cells.iter().flatten().any(|cell| cell.of_few) {
        legend.push_str(match steps <= WITH_FIGURES {
            true => "; ? of too few I/Os to be sure: a longer --runtime",
            false => "; some are of too few I/Os to be sure: a longer --runtime",
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

/// Lowest and highest latency that is known.
fn range(matrix: &Matrix) -> (f64, f64) {
    let known = || matrix.cells.iter().flatten().filter_map(|cell| cell.p99_ns);
    (
        known().fold(f64::INFINITY, f64::min),
        known().fold(0.0, f64::max),
    )
}

/// A latency in five characters.
fn figure(cell: &Cell) -> String {
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

/// Two digits and a unit.
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

fn shade(cell: &Cell, (lowest, highest): (f64, f64)) -> String {
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
