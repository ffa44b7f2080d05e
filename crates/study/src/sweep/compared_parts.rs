//! Parts of a sweep for comparison with another sweep: the maximum of each curve, and each cell.

use super::axis::{JOB, TARGET};
use super::curve_result::{CellBasis, CurveResult, SweepCell};
use super::sweep_result::SweepResult;
use crate::probe::compared_figure as figure;
use iosonde_job::plan::ReadWrite;
use iosonde_result::compare::{
    self, Bounds, Figure, IoPattern, Measure, PartRole, ResultPart, Subject,
};

/// One part of a sweep: a curve's maximum or a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedPart {
    /// Name of the curve within the sweep: `randread 4k`.
    pub curve: String,
    /// Depth of the cell. `None` for the maximum at any depth.
    pub iodepth: Option<u32>,
    /// Lowest depth that reaches the maximum, if it is known.
    pub knee: Option<u32>,
    /// Figures of the part.
    pub part: ResultPart,
}

/// Returns the interval of a cell's 99th percentile by job name and depth, if its runs are known.
pub type CellBoundsLookup<'a> = &'a dyn Fn(&str, u32) -> Option<Bounds>;

/// Returns the parts by curve. Names omit a single target, so that sweeps of two targets compare.
pub fn compared(result: &SweepResult, known: CellBoundsLookup<'_>) -> Vec<ComparedPart> {
    let curve_parts = |curve: &CurveResult| {
        let name = curve_name(result, curve);
        let most = maximum_part(&name, curve);
        let job = job_name(result, curve);
        let cells = curve.cells.iter().filter_map(|cell| {
            let p99 = known(&job, cell.iodepth).filter(|_| result.targets.len() <= 1);
            cell_part(&name, curve, cell, p99)
        });
        most.into_iter().chain(cells).collect::<Vec<_>>()
    };
    result.curves.iter().flat_map(curve_parts).collect()
}

/// Names a curve by its values, independent of the order of the axes.
fn curve_name(result: &SweepResult, curve: &CurveResult) -> String {
    let is_named = |name: &str| name != TARGET || result.targets.len() > 1;
    let axes = result.axes.iter().zip(&curve.values);
    let mut named_values: Vec<(usize, &str, String)> = axes
        .filter(|(axis, _)| is_named(&axis.name))
        .map(|(axis, value)| match axis.name.as_str() {
            "rw" => (0, "rw", value.clone()),
            "bs" => (1, "bs", value.clone()),
            other => (2, other, format!("{other}={value}")),
        })
        .collect();
    named_values.sort();
    match named_values.is_empty() {
        true => curve.rw.clone(),
        false => {
            let words: Vec<String> = named_values.into_iter().map(|(_, _, word)| word).collect();
            words.join(" ")
        }
    }
}

/// Name of a curve's job in the grid.
fn job_name(result: &SweepResult, curve: &CurveResult) -> String {
    let axes = result.axes.iter().zip(&curve.values);
    let words: Vec<&str> = axes
        .filter(|(axis, _)| axis.name != TARGET && axis.name != JOB)
        .map(|(_, value)| value.as_str())
        .collect();
    match words.is_empty() {
        true => "sweep".to_owned(),
        false => words.join("-"),
    }
}

fn subject(curve: &CurveResult) -> Subject {
    let direction = ReadWrite::from_rw(&curve.rw).and_then(|rw| rw.mode.only_direction());
    direction.map_or(Subject::Mixed, Subject::from)
}

fn curve_part(name: String, curve: &CurveResult, iodepth: u32, figures: Vec<Figure>) -> ResultPart {
    ResultPart {
        name,
        pattern: IoPattern {
            rw: curve.rw.clone(),
            bs: curve.block_bytes.to_string(),
            iodepth,
            numjobs: curve.numjobs,
        },
        figures,
        role: PartRole::Alone,
    }
}

/// Returns the maximum of the search. Without a search, it is the best measured cell.
fn maximum_part(name: &str, curve: &CurveResult) -> Option<ComparedPart> {
    let (mean, error) = match &curve.saturation {
        Some(found) => {
            let maximum = found.known_maximum()?;
            (maximum.mean, maximum.error)
        }
        None => {
            let measured = curve
                .cells
                .iter()
                .filter(|cell| cell.basis == CellBasis::Measured);
            let best = measured
                .filter_map(|cell| cell.iops)
                .max_by(|a, b| a.mean.total_cmp(&b.mean))?;
            (best.mean, best.error)
        }
    };
    let between = error.map(|error| (mean - error, mean + error));
    let basis = compare::IntervalBasis::Series;
    let iops = figure(subject(curve), Measure::Iops, mean, between, basis)?;
    Some(ComparedPart {
        curve: name.to_owned(),
        iodepth: None,
        knee: curve
            .saturation
            .as_ref()
            .and_then(|found| Some(found.known_knee()?.iodepth)),
        part: curve_part(format!("{name}, maximum"), curve, 0, vec![iops]),
    })
}

fn cell_part(
    name: &str,
    curve: &CurveResult,
    cell: &SweepCell,
    p99_known: Option<Bounds>,
) -> Option<ComparedPart> {
    // A predicted cell has no information beyond the measured cells.
    let iops = cell.iops.filter(|_| cell.basis == CellBasis::Measured)?;
    let basis = compare::IntervalBasis::Series;
    let between = iops
        .error
        .map(|error| (iops.mean - error, iops.mean + error));
    let mut figures: Vec<Figure> = figure(subject(curve), Measure::Iops, iops.mean, between, basis)
        .into_iter()
        .collect();
    if let Some(latency) = &cell.latency
        && let Some(p99) = latency.p99_ns
    {
        let between = latency.p99_between_ns;
        let between = between.map(|(low, high)| (low as f64, high as f64));
        let p99 = figure(subject(curve), Measure::LatP99, p99 as f64, between, basis);
        figures.extend(p99.map(|figure| Figure {
            bounds: figure.bounds.or(p99_known),
            ..figure
        }));
    }
    Some(ComparedPart {
        curve: name.to_owned(),
        iodepth: Some(cell.iodepth),
        knee: None,
        part: curve_part(
            format!("{name}, iodepth {}", cell.iodepth),
            curve,
            cell.iodepth,
            figures,
        ),
    })
}
