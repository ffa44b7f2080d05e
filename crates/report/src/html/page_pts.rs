//! Tests of SNIA's specification for the page: each series is a grid of mixes, blocks and rounds.

use super::document::{PageRate, PageSweep, PageSweepCell, SweepAxis, SweepCurve};
use crate::pts::{headline, notes, settled};
use crate::unique;
use iosonde_study::pts::{PtsCell, PtsResult, PtsWorkload, SeriesResult};
use iosonde_study::sweep::{CellBasis, size_name};

/// Maximum number of rounds in a chart. Of more rounds, some are left out.
const MOST_ROUNDS: usize = 300;

/// Returns the series of a test from `source`.
pub(super) fn convert_pts(source: &str, result: &PtsResult) -> Vec<PageSweep> {
    let series = result.series.iter();
    series.map(|one| pts_grid(source, result, one)).collect()
}

fn pts_grid(source: &str, result: &PtsResult, series: &SeriesResult) -> PageSweep {
    let step = series.rounds.len().div_ceil(MOST_ROUNDS).max(1);
    let shown: Vec<usize> = (0..series.rounds.len()).step_by(step).collect();
    let axis = |name: &str, values: Vec<String>| SweepAxis {
        name: name.to_owned(),
        values,
    };
    let of_workloads = |say: fn(&PtsWorkload) -> String| unique(series.workloads.iter().map(say));
    let curve = |(index, workload): (usize, &PtsWorkload)| SweepCurve {
        values: vec![read_write_mix(workload), block(workload)],
        block_bytes: workload.block_bytes,
        sentence: None,
        knee: None,
        notes: Vec::new(),
        cells: shown
            .iter()
            .filter_map(|round| {
                Some(round_cell(
                    *round,
                    series.rounds[*round].cells[index].as_ref()?,
                ))
            })
            .collect(),
    };
    let steady_state = std::iter::once(settled(result, series));
    PageSweep {
        source: source.to_owned(),
        target: result.target.clone(),
        headline: headline(result),
        axes: vec![
            axis("rw", of_workloads(read_write_mix)),
            axis("bs", of_workloads(block)),
            axis(
                "round",
                shown.iter().map(|at| (at + 1).to_string()).collect(),
            ),
        ],
        curves: series.workloads.iter().enumerate().map(curve).collect(),
        notes: steady_state.chain(notes(result)).collect(),
    }
}

fn read_write_mix(workload: &PtsWorkload) -> String {
    match workload.read_percent {
        0 => "writes".to_owned(),
        100 => "reads".to_owned(),
        percent => format!("{percent} % reads"),
    }
}

fn block(workload: &PtsWorkload) -> String {
    size_name(workload.block_bytes)
}

/// Converts one workload of a round. The round replaces the depth.
fn round_cell(round: usize, cell: &PtsCell) -> PageSweepCell {
    PageSweepCell {
        iodepth: u32::try_from(round + 1).unwrap_or(u32::MAX),
        basis: CellBasis::Measured,
        iops: Some(PageRate::new(cell.iops, None)),
        bytes_per_s: Some(cell.bytes_per_s),
        mean_ns: Some(cell.mean_ns),
        percentiles_ns: [None, cell.p99_ns, cell.p99_9_ns],
        p99_between_ns: None,
        max_ns: Some(cell.max_ns),
        shown: None,
    }
}
