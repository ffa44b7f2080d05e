//! Predicts cells that were not measured from measured ones.

use super::curve_result::{CellBasis, CellRate, CurveResult, SweepCell};
use crate::figures::cell::CurveCell;
use crate::figures::saturation_result::Saturation;
use crate::sweep_axis::Axis;
use iosonde_job::value::{Bytes, bytes};

/// Smallest relative error of a prediction beyond the deepest measured cell.
const BEYOND: f64 = 0.1;

/// Returns the cells of a curve. The fitted curve predicts rates, within the bounds of the measured
/// neighbours, which hold if the rate does not fall with the depth. Where the rate still rises at
/// the deepest measured cell, nothing bounds deeper ones: they stay unknown.
pub(super) fn along(depths: &[u32], found: &Saturation) -> Vec<SweepCell> {
    let known: Vec<&CurveCell> = found.cells.iter().collect();
    depths
        .iter()
        .map(
            |depth| match known.iter().find(|cell| cell.iodepth == *depth) {
                Some(cell) => SweepCell::measured(cell),
                None => between(*depth, &known, found),
            },
        )
        .collect()
}

/// Returns the cells of a curve without predictions.
pub(super) fn measured(depths: &[u32], found: &Saturation) -> Vec<SweepCell> {
    let cell = |depth: &u32| match found.cells.iter().find(|cell| cell.iodepth == *depth) {
        Some(cell) => SweepCell::measured(cell),
        None => SweepCell::unknown(*depth),
    };
    depths.iter().map(cell).collect()
}

fn between(iodepth: u32, known: &[&CurveCell], found: &Saturation) -> SweepCell {
    let below = known.iter().rev().find(|cell| cell.iodepth < iodepth);
    let above = known.iter().find(|cell| cell.iodepth > iodepth);
    let depth = f64::from(iodepth);
    let bounds = match (below, above) {
        (Some(below), Some(above)) => (
            lowest_rate(below).min(lowest_rate(above)),
            highest_rate(below).max(highest_rate(above)),
        ),
        (Some(_), None) if found.is_open_ended() => return SweepCell::unknown(iodepth),
        (Some(below), None) => (
            below.iops.mean * (1.0 - BEYOND),
            highest_rate(below) * (1.0 + BEYOND),
        ),
        // At least in proportion to the depth, at most the rate of the deeper cell.
        (None, Some(above)) => (
            lowest_rate(above) * depth / f64::from(above.iodepth),
            highest_rate(above),
        ),
        (None, None) => return SweepCell::unknown(iodepth),
    };
    let model = found.curve.map(|curve| curve.at(depth));
    let mean = model
        .unwrap_or((bounds.0 + bounds.1) / 2.0)
        .clamp(bounds.0, bounds.1);
    let value = CellRate {
        mean,
        error: Some((mean - bounds.0).max(bounds.1 - mean)),
    };
    let block = found.maximum_bytes_per_s.mean / found.maximum.mean.max(f64::MIN_POSITIVE);
    SweepCell::predicted(iodepth, found.jobs, block, value)
}

fn lowest_rate(cell: &CurveCell) -> f64 {
    cell.iops.mean - cell.iops.error.unwrap_or(0.0)
}

fn highest_rate(cell: &CurveCell) -> f64 {
    cell.iops.mean + cell.iops.error.unwrap_or(0.0)
}

/// Fills curves without measurements from both neighbours along a numeric axis: interpolated in
/// logarithms, by steps of the axis. Curves without two neighbours stay unknown.
pub(super) fn across(curves: &mut [CurveResult], axes: &[Axis]) {
    let is_number = |axis: &Axis| axis.values.iter().all(|v| bytes(v, Bytes::Binary).is_ok());
    let places: Vec<Vec<usize>> = curves.iter().map(|curve| place(curve, axes)).collect();
    let filled: Vec<Option<Vec<SweepCell>>> = (0..curves.len())
        .map(|index| {
            let empty = curves[index]
                .cells
                .iter()
                .all(|cell| cell.basis == CellBasis::Unknown);
            let candidates = axes.iter().enumerate().filter(|(_, axis)| is_number(axis));
            let each = candidates.filter_map(|(axis, _)| along_axis(index, axis, curves, &places));
            let best = each.min_by(|a, b| doubt(a).total_cmp(&doubt(b)));
            best.filter(|_| empty)
        })
        .collect();
    for (curve, cells) in curves.iter_mut().zip(filled) {
        if let Some(cells) = cells {
            curve.cells = cells;
        }
    }
}

/// Returns the index of each value along its axis.
fn place(curve: &CurveResult, axes: &[Axis]) -> Vec<usize> {
    let index = |(axis, value): (&Axis, &String)| axis.values.iter().position(|v| v == value);
    let pairs = axes.iter().zip(&curve.values);
    pairs.map(|pair| index(pair).unwrap_or(0)).collect()
}

fn along_axis(
    index: usize,
    axis: usize,
    curves: &[CurveResult],
    places: &[Vec<usize>],
) -> Option<Vec<SweepCell>> {
    let here = places[index][axis];
    let is_beside = |other: usize| {
        let mut pairs = places[index].iter().zip(&places[other]).enumerate();
        pairs.all(|(at, (a, b))| at == axis || a == b) && curves[other].saturation.is_some()
    };
    let neighbours = || (0..curves.len()).filter(|other| is_beside(*other));
    let below = neighbours().filter(|other| places[*other][axis] < here);
    let above = neighbours().filter(|other| places[*other][axis] > here);
    let below = below.max_by_key(|other| places[*other][axis])?;
    let above = above.min_by_key(|other| places[*other][axis])?;
    let (first, last) = (places[below][axis], places[above][axis]);
    let share = (here - first) as f64 / (last - first) as f64;
    let curve = &curves[index];
    let cells = curves[below].cells.iter().zip(&curves[above].cells);
    Some(cells.map(|(a, b)| mixed(a, b, share, curve)).collect())
}

fn mixed(a: &SweepCell, b: &SweepCell, share: f64, curve: &CurveResult) -> SweepCell {
    let (Some(x), Some(y)) = (a.iops, b.iops) else {
        return SweepCell::unknown(a.iodepth);
    };
    let mean = (x.mean.ln() * (1.0 - share) + y.mean.ln() * share).exp();
    let own = x.error.unwrap_or(0.0).max(y.error.unwrap_or(0.0));
    let value = CellRate {
        mean,
        error: Some((mean - x.mean).abs().max((mean - y.mean).abs()).max(own)),
    };
    SweepCell::predicted(a.iodepth, curve.numjobs, curve.block_bytes as f64, value)
}

/// Returns the mean relative error of the cells.
fn doubt(cells: &[SweepCell]) -> f64 {
    let errors = cells.iter().map(|cell| {
        let value = cell.iops?;
        Some(value.error? / value.mean.max(f64::MIN_POSITIVE))
    });
    errors.map(|error| error.unwrap_or(1.0)).sum::<f64>() / cells.len().max(1) as f64
}
