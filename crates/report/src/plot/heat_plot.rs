//! Heat maps: a figure over two axes of a sweep, or over the read and write rate of a load study.

use super::chart_data::{ChartPanel, HeatCell, TimeMoments};
use super::chart_scales::{names_axis, tick_text};
use super::figure_rows::LARGE_BYTES;
use super::plot_input::{ChartParts, PlotInput};
use crate::html::document::{LoadMatrix, PageSweep, PageUnit, SweepAxis};
use iosonde_study::load::CellState;
use iosonde_study::sweep::CellBasis;

/// A value of a map. `None` if it is unknown.
struct MapValue {
    column: usize,
    row: usize,
    value: Option<f64>,
    predicted: bool,
    /// Text in place of the value.
    word: Option<&'static str>,
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
                word: None,
            })
        })
        .collect();
    let fixed = varying.iter().skip(1);
    let fixed = fixed.map(|(axis, about)| format!("{}={}", about.name, first.values[*axis]));
    let fixed: Vec<String> = fixed.collect();
    let title = format!("{measure} over {} and {}", depth.name, rows.name);
    let title = match fixed.is_empty() {
        true => title,
        false => format!("{}: {title}", fixed.join(", ")),
    };
    let labels = (axis_title(depth), axis_title(rows));
    map_parts(
        title,
        labels,
        (depth.values.as_slice(), rows.values.as_slice()),
        unit,
        &values,
    )
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
    let (columns, rows) = (names(&matrix.reads_per_s), names(&matrix.writes_per_s));
    let cells = matrix.cells.iter().enumerate().flat_map(|(row, cells)| {
        let cells = cells.iter().enumerate();
        cells.map(move |(column, cell)| MapValue {
            column,
            row,
            value: cell.p99_ns,
            predicted: matches!(
                cell.state,
                CellState::Predicted | CellState::PredictedNotReached
            ),
            word: match cell.state {
                CellState::NotReached => Some("x"),
                CellState::PredictedNotReached => Some("~x"),
                CellState::Measured | CellState::Predicted | CellState::Unknown => None,
            },
        })
    });
    let values: Vec<MapValue> = cells.collect();
    let title = "99th percentile of latency over read and write rate".to_owned();
    let labels = ("reads/s", "writes/s");
    let names = (columns.as_slice(), rows.as_slice());
    let mut parts = map_parts(title, labels, names, PageUnit::Ns, &values)?;
    if values.iter().any(|value| value.word.is_some()) {
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
    unit: PageUnit,
    values: &[MapValue],
) -> Option<ChartParts> {
    let known = values.iter().filter_map(|each| each.value);
    let known = known.filter(|value| *value > 0.0);
    let (low, high) = known.fold((f64::INFINITY, 0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if high == 0.0 {
        return None;
    }
    // Values differ by orders of magnitude, so colours are logarithmic.
    let share = |value: f64| match high > low {
        true => (value / low).ln() / (high / low).ln(),
        false => 0.5,
    };
    let cells = values.iter().map(|each| HeatCell {
        column: each.column,
        row: each.row,
        value: each.value,
        text: match (each.word, each.value) {
            (Some(word), _) => word.to_owned(),
            (None, None) => "–".to_owned(),
            (None, Some(value)) => {
                let sign = if each.predicted { "~" } else { "" };
                format!("{sign}{}", tick_text(value, unit))
            }
        },
        share: each.value.filter(|value| *value > 0.0).map(share),
        predicted: each.predicted,
    });
    let mut notes = Vec::new();
    let shows_prediction =
        |each: &MapValue| each.predicted && (each.value.is_some() || each.word.is_some());
    if values.iter().any(shows_prediction) {
        notes.push("~ predicted from the measured cells".to_owned());
    }
    Some(ChartParts {
        moments: TimeMoments::default(),
        title,
        x: names_axis(x_label, columns),
        panels: vec![ChartPanel {
            y: names_axis(y_label, rows),
            series: Vec::new(),
            cells: cells.collect(),
        }],
        notes,
        subjects: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_without_value_adds_no_note() {
        let notes = |value: Option<f64>| {
            let cell = |column, value, predicted| MapValue {
                column,
                row: 0,
                value,
                predicted,
                word: None,
            };
            let values = [cell(0, Some(1000.0), false), cell(1, value, true)];
            let names = (
                ["1", "2"].map(str::to_owned).to_vec(),
                vec!["4k".to_owned()],
            );
            let names = (names.0.as_slice(), names.1.as_slice());
            let labels = ("iodepth", "block size");
            let parts = map_parts("IOPS".to_owned(), labels, names, PageUnit::Iops, &values);
            parts.unwrap().notes
        };
        assert_eq!(notes(None), Vec::<String>::new());
        assert_eq!(notes(Some(2000.0)), ["~ predicted from the measured cells"]);
    }
}
