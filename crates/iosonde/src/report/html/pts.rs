//! Tests after SNIA's specification, as the page draws them: each series as a grid of mixes, block sizes and rounds.

use super::document::{Rate, Sweep, SweepAxis, SweepCell, SweepCurve};
use crate::report::pts::{headline, notes, settled};
use iosonde_study::pts::{PtsCell, PtsResult, SeriesResult, Workload};
use iosonde_study::sweep::{Basis, size_name};

/// Rounds that a chart has room for: of more, some are left out.
const MOST_ROUNDS: usize = 300;

/// The series of a test from `source`.
pub(super) fn of(source: &str, result: &PtsResult) -> Vec<Sweep> {
    let series = result.series.iter();
    series.map(|one| grid(source, result, one)).collect()
}

fn grid(source: &str, result: &PtsResult, series: &SeriesResult) -> Sweep {
    let step = series.rounds.len().div_ceil(MOST_ROUNDS).max(1);
    let shown: Vec<usize> = (0..series.rounds.len()).step_by(step).collect();
    let axis = |name: &str, values: Vec<String>| SweepAxis {
        name: name.to_owned(),
        values,
    };
    let of_workloads =
        |say: fn(&Workload) -> String| unique(series.workloads.iter().map(say).collect());
    let curve = |(index, workload): (usize, &Workload)| SweepCurve {
        values: vec![mix(workload), block(workload)],
        block_bytes: workload.block_bytes,
        sentence: None,
        knee: None,
        cells: shown
            .iter()
            .filter_map(|round| Some(cell(*round, series.rounds[*round].cells[index].as_ref()?)))
            .collect(),
    };
    let told = std::iter::once(settled(result, series));
    Sweep {
        source: source.to_owned(),
        headline: headline(result),
        axes: vec![
            axis("rw", of_workloads(mix)),
            axis("bs", of_workloads(block)),
            axis(
                "round",
                shown.iter().map(|at| (at + 1).to_string()).collect(),
            ),
        ],
        curves: series.workloads.iter().enumerate().map(curve).collect(),
        notes: told.chain(notes(result)).collect(),
    }
}

fn mix(workload: &Workload) -> String {
    match workload.read_percent {
        0 => "writes".to_owned(),
        100 => "reads".to_owned(),
        percent => format!("{percent} % reads"),
    }
}

fn block(workload: &Workload) -> String {
    size_name(workload.block_bytes)
}

fn unique(values: Vec<String>) -> Vec<String> {
    let mut met: Vec<String> = Vec::new();
    for value in values {
        if !met.contains(&value) {
            met.push(value);
        }
    }
    met
}

/// One workload of one round, which takes the place of a depth.
fn cell(round: usize, cell: &PtsCell) -> SweepCell {
    SweepCell {
        iodepth: u32::try_from(round + 1).unwrap_or(u32::MAX),
        basis: Basis::Measured,
        iops: Some(Rate {
            mean: cell.iops,
            error: None,
        }),
        bytes_per_s: Some(cell.bytes_per_s),
        mean_ns: Some(cell.mean_ns),
        percentiles_ns: [None, cell.p99_ns, cell.p99_9_ns],
        max_ns: Some(cell.max_ns),
    }
}
