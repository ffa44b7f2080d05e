//! Heat maps: a figure over two axes of a sweep, or over the read and write rate of a load study.

use super::chart_data::{ChartPanel, HeatCell, TimeMoments};
use super::chart_scales::{names_axis, tick_text};
use super::figure_rows::LARGE_BYTES;
use super::plot_input::{ChartParts, PlotInput};
use crate::axis_numbers::{log_share, value_range};
use crate::html::document::{LoadMatrix, PageSweep, PageSweepCell, PageUnit, SweepAxis};
use crate::known_digits::{APPROXIMATE_MARK, PREDICTED_LEGEND, lacks_interval};
use crate::unique;
use iosonde_study::load::CellState;
use iosonde_study::sweep::CellBasis;

/// Text of a cell without a figure.
const UNKNOWN_MARK: &str = "–";
/// Explains the mark of a sweep's cell without an interval.
const SHORT_CELL_WORDS: &str = "measured too shortly";
/// Explains the mark of a matrix's cell without an interval.
const NO_INTERVAL_WORDS: &str = "has no known interval";

/// A value of a map. `None` if it is unknown.
struct MapValue {
    column: usize,
    row: usize,
    value: Option<f64>,
    predicted: bool,
    /// Text of the cell as all screens print it. `None`: the value is shown like a tick.
    shown: Option<String>,
}

/// Sources of the results that have a map.
pub(super) fn mapped_sources(input: &PlotInput) -> Vec<String> {
    let report = &input.report;
    let sweeps = report.sweeps.iter();
    let sweeps = sweeps.filter(|sweep| sweep_map(sweep).is_some());
    let loads = report.loads.iter();
    let loads = loads.filter(|load| load.matrix.as_ref().and_then(load_map).is_some());
    let of_sweeps = sweeps.map(|sweep| sweep.source.clone());
    unique(of_sweeps.chain(loads.map(|load| load.source.clone())))
}

/// The first sweep with two axes that vary, or the first matrix of a load study.
pub(super) fn heat_plot(input: &PlotInput) -> Option<ChartParts> {
    let report = &input.report;
    let on = |parts: ChartParts, source: &str, target: &str| ChartParts {
        subjects: vec![input.subject_of_result(source, target)],
        ..parts
    };
    let of_sweeps = report.sweeps.iter().filter_map(|sweep| {
        let parts = sweep_map(sweep)?;
        Some(on(parts, &sweep.source, &sweep.target))
    });
    let matrices = report.loads.iter().filter_map(|load| {
        let parts = load_map(load.matrix.as_ref()?)?;
        Some(on(parts, &load.source, &load.target))
    });
    let mut maps: Vec<ChartParts> = of_sweeps.chain(matrices).collect();
    let total = maps.len();
    maps.truncate(1);
    let mut first = maps.pop()?;
    if total > 1 {
        first.notes.push(format!("1 of {total} results with a map"));
    }
    Some(first)
}

/// Maps the depth and another axis. Of further axes, the first value is shown.
fn sweep_map(sweep: &PageSweep) -> Option<ChartParts> {
    let (depth, others) = sweep.axes.split_last()?;
    let varying = others
        .iter()
        .enumerate()
        .filter(|(_, axis)| axis.values.len() > 1);
    // Patterns differ most: a map of each pattern says more than one over patterns.
    let mut varying: Vec<(usize, &SweepAxis)> = varying.collect();
    varying.sort_by_key(|(_, axis)| axis.name == "rw");
    let (down, rows) = *varying.first()?;
    if depth.values.len() < 2 {
        return None;
    }
    let first = sweep.curves.first()?;
    let same = sweep.curves.iter().filter(|curve| {
        let mut pairs = curve.values.iter().zip(&first.values).enumerate();
        pairs.all(|(axis, (value, wanted))| axis == down || value == wanted)
    });
    let curves: Vec<_> = same.collect();
    let is_large = curves.iter().all(|curve| curve.block_bytes >= LARGE_BYTES);
    let (measure, unit) = match is_large {
        true => ("Bandwidth", PageUnit::BytesPerS),
        false => ("IOPS", PageUnit::Iops),
    };
    let cells = curves
        .iter()
        .flat_map(|curve| curve.cells.iter().map(move |cell| (curve, cell)));
    let cells = cells.filter(|(_, cell)| !matches!(cell.basis, CellBasis::Unknown));
    let is_unsure = cells.clone().any(|(_, cell)| is_approximate(cell));
    let values: Vec<MapValue> = cells
        .filter_map(|(curve, cell)| {
            let depth_text = cell.iodepth.to_string();
            Some(MapValue {
                column: depth.values.iter().position(|value| *value == depth_text)?,
                row: rows
                    .values
                    .iter()
                    .position(|value| *value == curve.values[down])?,
                value: match is_large {
                    true => cell.bytes_per_s,
                    false => cell.iops.map(|rate| rate.mean),
                },
                predicted: matches!(cell.basis, CellBasis::Predicted),
                shown: cell.shown.as_ref().and_then(|shown| match is_large {
                    true => shown.bandwidth.clone(),
                    false => shown.iops.clone(),
                }),
            })
        })
        .collect();
    let fixed = varying.iter().skip(1);
    let fixed = fixed.map(|(axis, about)| format!("{}={}", about.name, first.values[*axis]));
    let fixed: Vec<String> = fixed.collect();
    let title = format!("{measure} over {} and {}", depth.name, rows.name);
    let title = match fixed.is_empty() {
        true => title,
        false => format!("{title}, {}", fixed.join(", ")),
    };
    let labels = (axis_title(depth), axis_title(rows));
    map_parts(
        title,
        labels,
        (depth.values.as_slice(), rows.values.as_slice()),
        (unit, is_unsure.then_some(SHORT_CELL_WORDS)),
        &values,
    )
}

/// Whether the rate and the bandwidth of a cell have the mark of an unknown interval.
fn is_approximate(cell: &PageSweepCell) -> bool {
    let rate = cell.iops.filter(|_| cell.shown.is_some());
    let is_measured = matches!(cell.basis, CellBasis::Measured);
    is_measured && rate.is_some_and(|rate| lacks_interval(rate.mean, rate.error))
}

/// Title of an axis, as below the charts of the page.
fn axis_title(axis: &SweepAxis) -> &str {
    match axis.name.as_str() {
        "iodepth" => "I/Os in flight of each job",
        "bs" => "block size",
        "numjobs" => "jobs",
        "rw" => "pattern",
        name => name,
    }
}

fn load_map(matrix: &LoadMatrix) -> Option<ChartParts> {
    let names = |rates: &[f64]| -> Vec<String> {
        let rates = rates.iter();
        rates.map(|rate| tick_text(*rate, PageUnit::Iops)).collect()
    };
    let (columns, mut rows) = (names(&matrix.reads_per_s), names(&matrix.writes_per_s));
    // Rows of names run from top to bottom, and rates rise from bottom to top.
    rows.reverse();
    let last = rows.len().saturating_sub(1);
    let cells = matrix.cells.iter().enumerate().flat_map(|(row, cells)| {
        let cells = cells.iter().enumerate();
        cells.map(move |(column, cell)| MapValue {
            column,
            row: last.saturating_sub(row),
            value: cell.p99_ns,
            predicted: matches!(
                cell.state,
                CellState::Predicted | CellState::PredictedNotReached
            ),
            shown: cell.shown.clone(),
        })
    });
    let values: Vec<MapValue> = cells.collect();
    let title = "99th percentile of latency over read and write rate".to_owned();
    let labels = ("reads/s", "writes/s");
    let names = (columns.as_slice(), rows.as_slice());
    let mut parts = map_parts(
        title,
        labels,
        names,
        (
            PageUnit::Ns,
            matrix.lacks_interval.then_some(NO_INTERVAL_WORDS),
        ),
        &values,
    )?;
    let has_fallen_behind = |state: CellState| {
        matches!(
            state,
            CellState::NotReached | CellState::PredictedNotReached
        )
    };
    let mut cells = matrix.cells.iter().flatten();
    if cells.any(|cell| has_fallen_behind(cell.state)) {
        parts
            .notes
            .push("x fell behind the offered rate".to_owned());
    }
    Some(parts)
}

fn map_parts(
    title: String,
    (x_label, y_label): (&str, &str),
    (columns, rows): (&[String], &[String]),
    (unit, unsure): (PageUnit, Option<&str>),
    values: &[MapValue],
) -> Option<ChartParts> {
    let known = values.iter().filter_map(|each| each.value);
    let known = known.filter(|value| *value > 0.0);
    let (low, high) = value_range(known);
    if high == 0.0 {
        return None;
    }
    // Values differ by orders of magnitude, so colours are logarithmic.
    let share = |value: f64| match high > low {
        true => log_share(value, (low, high)),
        false => 0.5,
    };
    let cells = values.iter().map(|each| HeatCell {
        column: each.column,
        row: each.row,
        value: each.value,
        text: match (&each.shown, each.value) {
            (Some(shown), _) => shown.clone(),
            (None, None) => UNKNOWN_MARK.to_owned(),
            (None, Some(value)) => tick_text(value, unit),
        },
        share: each.value.filter(|value| *value > 0.0).map(share),
        predicted: each.predicted,
    });
    let mut notes = Vec::new();
    let is_unknown = |each: &MapValue| each.shown.is_none() && each.value.is_none();
    if values.iter().any(is_unknown) {
        notes.push(format!("{UNKNOWN_MARK} not known"));
    }
    if (values.iter()).any(|each| each.predicted && each.shown.is_some()) {
        notes.push(PREDICTED_LEGEND.to_owned());
    }
    notes.extend(unsure.map(|words| format!("{APPROXIMATE_MARK} {words}")));
    Some(ChartParts {
        moments: TimeMoments::default(),
        title,
        x: names_axis(x_label, columns),
        panels: vec![ChartPanel {
            y: names_axis(y_label, rows),
            series: Vec::new(),
            cells: cells.collect(),
            limits: Vec::new(),
        }],
        notes,
        subjects: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::document::LoadCell;

    #[test]
    fn marks_of_cells_are_explained() {
        let notes = |shown: Option<&str>, predicted: bool, unsure: Option<&str>| {
            let cell = |column, value, shown: Option<&str>| MapValue {
                column,
                row: 0,
                value,
                predicted: predicted && column == 1,
                shown: shown.map(str::to_owned),
            };
            let value = shown.map(|_| 2000.0);
            let values = [cell(0, Some(1000.0), None), cell(1, value, shown)];
            let names = (
                ["1", "2"].map(str::to_owned).to_vec(),
                vec!["4k".to_owned()],
            );
            let names = (names.0.as_slice(), names.1.as_slice());
            let labels = ("iodepth", "block size");
            let unit = (PageUnit::Iops, unsure);
            let parts = map_parts("IOPS".to_owned(), labels, names, unit, &values);
            parts.unwrap().notes
        };
        assert_eq!(notes(None, true, None), ["– not known"]);
        assert_eq!(notes(Some("2.0k"), false, None), Vec::<String>::new());
        let unsure = Some(SHORT_CELL_WORDS);
        let approximate = notes(Some("~2.0k"), false, unsure);
        assert_eq!(approximate, ["~ measured too shortly"]);
        assert_eq!(notes(Some("(2.0k)"), true, None), ["( ) predicted"]);
    }

    #[test]
    fn matrix_explains_its_mark_as_the_page_does() {
        let cell = |state, shown: &str| LoadCell {
            state,
            p99_ns: Some(1e6),
            shown: Some(shown.to_owned()),
        };
        let matrix = LoadMatrix {
            reads_per_s: vec![100.0, 200.0],
            writes_per_s: vec![100.0],
            cells: vec![vec![
                cell(CellState::Predicted, "(1.0 ms)"),
                cell(CellState::Measured, "~1.0 ms"),
            ]],
            lacks_interval: true,
        };
        let notes = load_map(&matrix).unwrap().notes;
        assert_eq!(notes, ["( ) predicted", "~ has no known interval"]);
    }

    #[test]
    fn write_rates_of_a_matrix_rise_upwards() {
        let row = |shown: &str| {
            vec![LoadCell {
                state: CellState::Measured,
                p99_ns: Some(1e6),
                shown: Some(shown.to_owned()),
            }]
        };
        let matrix = LoadMatrix {
            reads_per_s: vec![100.0],
            writes_per_s: vec![0.0, 100.0, 200.0],
            cells: vec![row("1.0 ms"), row("2.0 ms"), row("3.0 ms")],
            lacks_interval: false,
        };
        let panel = load_map(&matrix).unwrap().panels.remove(0);
        let names = panel.y.ticks.iter().map(|tick| tick.text.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["200", "100", "0"]);
        let top = panel.cells.iter().find(|cell| cell.row == 0).unwrap();
        assert_eq!(top.text, "3.0 ms");
    }
}
