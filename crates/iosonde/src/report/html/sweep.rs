//! Sweeps, as the page draws them.

use super::document::{Rate, Sweep, SweepAxis, SweepCell, SweepCurve};
use crate::report::sweep::{headline, is_anything, knee, notes, sentence, sentences};
use iosonde_study::sweep::{CurveResult, SweepResult};

/// A sweep from `source`.
pub(super) fn of(source: &str, result: &SweepResult) -> Sweep {
    let axes = result.axes.iter().map(|axis| SweepAxis {
        name: axis.name.clone(),
        values: axis.values.clone(),
    });
    Sweep {
        source: source.to_owned(),
        headline: headline(result),
        axes: axes.collect(),
        curves: result
            .curves
            .iter()
            .map(|each| curve(result, each))
            .collect(),
        notes: sentences(result).into_iter().chain(notes(result)).collect(),
    }
}

fn curve(result: &SweepResult, curve: &CurveResult) -> SweepCurve {
    // Of a prediction that could be anything no number is shown.
    let shown = |cell: &iosonde_study::sweep::SweepCell, value: Option<f64>| {
        value.filter(|_| !is_anything(cell))
    };
    let cells = curve.cells.iter().map(|cell| SweepCell {
        iodepth: cell.iodepth,
        basis: cell.basis,
        iops: cell.iops.filter(|_| !is_anything(cell)).map(|iops| Rate {
            mean: iops.mean,
            error: iops.error,
        }),
        bytes_per_s: shown(cell, cell.bytes_per_s),
        mean_ns: shown(cell, cell.mean_latency_ns),
        percentiles_ns: cell.latency.map_or([None; 3], |latency| {
            [latency.p50_ns, latency.p99_ns, latency.p99_9_ns]
        }),
        max_ns: cell.latency.map(|latency| latency.max_ns),
    });
    SweepCurve {
        values: curve.values.clone(),
        block_bytes: curve.block_bytes,
        sentence: sentence(result, curve),
        knee: knee(curve),
        cells: cells.collect(),
    }
}
