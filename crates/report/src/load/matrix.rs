//! Matrix of read and write rates as text: a heat map of the 99th percentile.

use crate::axis_numbers::{log_share, value_range};
use crate::intervals::half_width;
use crate::known_digits::{
    APPROXIMATE_MARK, PREDICTED_LEGEND, UNITS_IN_CELLS, UnitLadder, approximate, predicted,
    two_digits,
};
use crate::text_table::wrapped;
use iosonde_study::load::{CellState, Matrix, MatrixCell};
use iosonde_study::words;

/// Maximum number of steps of a matrix that is printed with figures.
const WITH_FIGURES: usize = 10;
/// Width of a cell with a figure: `(840us)` and a blank before it.
const FIGURE_COLUMNS: usize = 8;
/// Width of the write rates, with the blank after them.
const RATE_COLUMNS: usize = 8;
/// Most cells with figures beside each other in 80 columns.
const FIGURES_ACROSS: usize = (80 - RATE_COLUMNS) / FIGURE_COLUMNS;
/// Stands for the latency of a pair of rates that the target did not sustain.
const FELL_BEHIND: &str = "x";
/// Shades from light to dark, on a logarithmic scale of latency.
const SHADES: [char; 6] = ['.', ':', '-', '=', '#', '@'];

/// Rows are write rates, the highest first. Columns are read rates, the lowest first. A matrix that
/// is too wide for its figures has two parts, one below the other.
pub(super) fn matrix_text(matrix: &Matrix) -> String {
    let count = matrix.reads_per_s.len();
    let (measured, all) = matrix.measured();
    let (grid, legend) = if count - 1 <= WITH_FIGURES {
        let parts = count.div_ceil(FIGURES_ACROSS);
        let across = count.div_ceil(parts);
        let parts = (0..count).step_by(across).map(|first| {
            let columns = first..count.min(first + across);
            let row = |row: usize| {
                let cells = matrix.cells[row][columns.clone()].iter();
                let cells = cells.map(|cell| format!("{:>FIGURE_COLUMNS$}", figure(cell)));
                cells.collect::<String>()
            };
            let rates = matrix.reads_per_s[columns.clone()].iter();
            let rates = rates.map(|rate| format!("{:>FIGURE_COLUMNS$}", words::iops_text(*rate)));
            matrix_grid(matrix, row, &rates.collect::<String>())
        });
        let parts: Vec<String> = parts.collect();
        (parts.join("\n"), legend_of_figures(matrix))
    } else {
        let range = range(matrix);
        let row = |row: usize| {
            let cells = matrix.cells[row].iter();
            cells.map(|cell| shade(cell, range)).collect::<String>()
        };
        let grid = matrix_grid(matrix, row, &rate_range_text(&matrix.reads_per_s));
        (grid, legend_of_shades(matrix, range))
    };
    let legend = wrapped(&format!(
        "{measured} of {all} cells were measured. {legend}"
    ));
    format!("p99 over reads/s (across) and writes/s (up)\n\n{grid}\n{legend}")
}

/// Rows of cells beside their write rates, above the read rates.
fn matrix_grid(matrix: &Matrix, row: impl Fn(usize) -> String, reads: &str) -> String {
    let mut text = String::new();
    for (index, writes) in matrix.writes_per_s.iter().enumerate().rev() {
        let line = format!("{:>7} {}", words::iops_text(*writes), row(index));
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text.push_str(&format!("{:RATE_COLUMNS$}{reads}\n", ""));
    text
}

/// Lowest and highest rate below the ends of a row of shades.
fn rate_range_text(rates: &[f64]) -> String {
    let last = rates.len() - 1;
    let is_end = |index: usize| index == 0 || index == last;
    let texts = rates
        .iter()
        .enumerate()
        .map(|(index, rate)| match is_end(index) {
            true => words::iops_text(*rate),
            false => " ".to_owned(),
        });
    texts.collect()
}

fn has_few(matrix: &Matrix) -> bool {
    matrix.cells.iter().flatten().any(|cell| cell.of_few)
}

fn legend_of_figures(matrix: &Matrix) -> String {
    let mut cells = matrix.cells.iter().flatten();
    let is_unsure = |cell: &MatrixCell| cell.state == CellState::Measured && !has_interval(cell);
    let few = match has_few(matrix) {
        true => " (too few I/Os: use a longer --runtime)",
        false => "",
    };
    let unsure = match cells.any(is_unsure) {
        true => format!("; {APPROXIMATE_MARK} has no known interval{few}"),
        false => String::new(),
    };
    let beyond = predicted(FELL_BEHIND);
    format!(
        "{PREDICTED_LEGEND} from measured latencies{unsure}; {FELL_BEHIND} fell behind; {beyond} \
         beyond a cell that fell behind"
    )
}

fn legend_of_shades(matrix: &Matrix, range: (f64, f64)) -> String {
    let few = match has_few(matrix) {
        true => "; some cells have too few I/Os, use a longer --runtime",
        false => "",
    };
    format!(
        "From . ({}) to @ ({}); {FELL_BEHIND} fell behind, or is beyond a cell that fell \
         behind{few}",
        words::latency(range.0),
        words::latency(range.1)
    )
}

/// Lowest and highest known latency.
fn range(matrix: &Matrix) -> (f64, f64) {
    value_range(matrix.cells.iter().flatten().filter_map(|cell| cell.p99_ns))
}

/// Formats the latency of a cell with two digits: `1.2 ms`, `(1.2 ms)`, `x`. The terminal, the page
/// and charts show the same digits and marks, each with its units. `None`: nothing is known of the
/// cell.
pub(crate) fn cell_text(cell: &MatrixCell, units: &UnitLadder) -> Option<String> {
    let latency = |ns| two_digits(ns, units);
    match cell.state {
        CellState::NotReached => Some(FELL_BEHIND.to_owned()),
        CellState::PredictedNotReached => Some(predicted(FELL_BEHIND)),
        CellState::Predicted => cell.p99_ns.map(|ns| predicted(&latency(ns))),
        CellState::Measured | CellState::Unknown => {
            let ns = cell.p99_ns?;
            Some(match has_interval(cell) {
                true => latency(ns),
                false => approximate(&latency(ns)),
            })
        }
    }
}

/// Whether [`cell_text`] marks a cell as one of an unknown interval.
pub(crate) fn is_approximate(cell: &MatrixCell) -> bool {
    let is_measured = matches!(cell.state, CellState::Measured | CellState::Unknown);
    is_measured && cell.p99_ns.is_some() && !has_interval(cell)
}

/// Whether the interval of a measured cell is known. Runs of reads and writes together have none.
fn has_interval(cell: &MatrixCell) -> bool {
    let half = cell
        .p99_ns
        .and_then(|ns| half_width(ns, cell.p99_interval_ns));
    half.is_some() && !cell.of_few
}

/// Formats the latency of a cell without its blank, so that it fits [`FIGURE_COLUMNS`]: `(1.2ms)`.
fn figure(cell: &MatrixCell) -> String {
    cell_text(cell, UNITS_IN_CELLS).unwrap_or_default()
}

fn shade(cell: &MatrixCell, range: (f64, f64)) -> String {
    match (cell.state, cell.p99_ns) {
        (CellState::NotReached | CellState::PredictedNotReached, _) => FELL_BEHIND.to_owned(),
        (_, Some(ns)) => {
            let index = (log_share(ns, range) * SHADES.len() as f64) as usize;
            SHADES[index.min(SHADES.len() - 1)].to_string()
        }
        _ => " ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SECOND_NS, measured, options};
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::known_digits::LATENCY_UNITS;
    use iosonde_study::load::{LoadOptions, MatrixOptions};

    #[test]
    fn cell_of_matrix_reads_alike_in_terminal_and_on_page() {
        let with = LoadOptions {
            rates: vec![500.0],
            objectives: Vec::new(),
            matrix: Some(MatrixOptions { steps: 6 }),
            runtime_ns: SECOND_NS,
            ..options()
        };
        let result = measured("throttled", &with);
        let grid = matrix_text(result.matrix.as_ref().unwrap());
        let mut builder = HtmlReportBuilder::default();
        builder.load("file", &result);
        let page = builder.into_page_report(None);
        let page_matrix = page.loads[0].matrix.as_ref().unwrap();
        let shown = page_matrix.cells.iter().flatten();
        let shown: Vec<&str> = shown.filter_map(|cell| cell.shown.as_deref()).collect();
        assert!(shown.iter().any(|text| text.starts_with('(')));
        assert!(shown.iter().any(|text| !text.starts_with('(')));
        let is_marked = |text: &&str| text.starts_with(APPROXIMATE_MARK);
        assert_eq!(page_matrix.lacks_interval, shown.iter().any(is_marked));
        for text in shown {
            let short = text.replace(' ', "").replace('µ', "u");
            let mut words = grid.split_whitespace();
            assert!(words.any(|word| word == short), "{text}: {grid}");
        }
    }

    fn cell(state: CellState, p99_ns: Option<f64>, of_few: bool) -> MatrixCell {
        MatrixCell {
            state,
            p99_ns,
            p99_interval_ns: p99_ns.map(|ns| (0.9 * ns, 1.1 * ns)),
            of_few,
        }
    }

    #[test]
    fn cell_of_matrix_marks_prediction_apart_from_uncertainty() {
        let text = |state, p99_ns, of_few| cell_text(&cell(state, p99_ns, of_few), LATENCY_UNITS);
        let ns = Some(1_640_000.0);
        let measured = CellState::Measured;
        assert_eq!(text(measured, ns, false).as_deref(), Some("1.6 ms"));
        assert_eq!(text(measured, ns, true).as_deref(), Some("~1.6 ms"));
        let unknown = MatrixCell {
            p99_interval_ns: None,
            ..cell(measured, ns, false)
        };
        let text_of_unknown = cell_text(&unknown, LATENCY_UNITS);
        assert_eq!(text_of_unknown.as_deref(), Some("~1.6 ms"));
        let predicted = CellState::Predicted;
        assert_eq!(text(predicted, ns, false).as_deref(), Some("(1.6 ms)"));
        let behind = [CellState::NotReached, CellState::PredictedNotReached];
        let behind = behind.map(|state| text(state, None, false).unwrap_or_default());
        assert_eq!(behind, ["x", "(x)"]);
        assert_eq!(text(CellState::Unknown, None, false), None);
    }

    #[test]
    fn cell_of_grid_has_digits_and_unit_of_cell_text() {
        for (ns, expected) in [
            (1.0, "(1.0ns)"),
            (838.0, "(840ns)"),
            (9_960.0, "(10us)"),
            (120e6, "(120ms)"),
            (996e6, "(1.0s)"),
        ] {
            let cell = cell(CellState::Predicted, Some(ns), false);
            let text = cell_text(&cell, LATENCY_UNITS).unwrap();
            let short = figure(&cell);
            assert_eq!(short, expected);
            assert_eq!(short, text.replace(' ', ""));
            assert!(short.len() < FIGURE_COLUMNS, "{short}");
        }
    }

    /// A matrix whose cells were all measured.
    fn matrix(steps: usize) -> Matrix {
        let rates = |step: usize| (0..=steps).map(|index| (index * step) as f64).collect();
        let row = vec![cell(CellState::Measured, Some(838_000.0), true); steps + 1];
        Matrix {
            reads_per_s: rates(100),
            writes_per_s: rates(1000),
            cells: vec![row; steps + 1],
            points: Vec::new(),
        }
    }

    #[test]
    fn wide_matrix_is_printed_in_parts_of_80_columns() {
        for (steps, parts) in [(2, 1), (8, 1), (9, 2), (10, 2), (11, 1), (50, 1)] {
            let text = matrix_text(&matrix(steps));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= 80, "{text}");
            // Each part has each write rate once.
            let highest = format!("{} ", words::iops_text(steps as f64 * 1000.0));
            let rows = text
                .lines()
                .filter(|line| line.trim_start().starts_with(&highest));
            assert_eq!(rows.count(), parts, "{text}");
            let has_figures = text.contains("~840us");
            assert_eq!(has_figures, steps <= WITH_FIGURES, "{text}");
        }
        let parts = matrix_text(&matrix(10));
        let axes = "             0     100     200     300     400     500\n\n";
        assert!(parts.contains(axes), "{parts}");
        let axes = "     600     700     800     900   1.00k\n\n";
        assert!(parts.contains(axes), "{parts}");
    }
}
