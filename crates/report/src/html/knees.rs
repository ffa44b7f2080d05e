//! Knee searches of a probe for the page: a curve per pattern and number of jobs.

use super::document::{PageRate, PageSweep, PageSweepCell, SweepAxis, SweepCurve};
use crate::probe::row;
use iosonde_study::probe::{Knee, ProbeResult};
use iosonde_study::saturation::CurveCell;
use iosonde_study::sweep::CellBasis;
use std::collections::BTreeSet;

/// Returns the knee searches of a probe from `source`, or `None` if there are none.
pub(super) fn convert_knees(source: &str, result: &ProbeResult) -> Option<PageSweep> {
    let curves: Vec<SweepCurve> = result.knees.iter().flat_map(curves).collect();
    if curves.is_empty() {
        return None;
    }
    let depths: BTreeSet<u32> = curves
        .iter()
        .flat_map(|curve| curve.cells.iter().map(|cell| cell.iodepth))
        .collect();
    let axis = |name: &str, values: Vec<String>| SweepAxis {
        name: name.to_owned(),
        values,
    };
    let patterns = curves.iter().map(|curve| curve.values[0].clone()).collect();
    Some(PageSweep {
        source: source.to_owned(),
        target: result.target.clone(),
        headline: result.target.clone(),
        axes: vec![
            axis("rw", patterns),
            axis("iodepth", depths.iter().map(u32::to_string).collect()),
        ],
        curves,
        notes: Vec::new(),
    })
}

/// Curves of a knee search: one per number of jobs with more than one depth.
fn curves(knee: &Knee) -> Vec<SweepCurve> {
    let found = &knee.saturation;
    let jobs: BTreeSet<u32> = found.cells.iter().map(|cell| cell.jobs).collect();
    let of_jobs = |jobs: u32| -> Vec<PageSweepCell> {
        let cells = found.cells.iter().filter(|cell| cell.jobs == jobs);
        cells.map(cell).collect()
    };
    let title = knee.phase.title();
    jobs.into_iter()
        .map(|jobs| (jobs, of_jobs(jobs)))
        .filter(|(_, cells)| cells.len() > 1)
        .map(|(jobs, cells)| {
            let is_best = jobs == found.jobs;
            SweepCurve {
                values: vec![match jobs {
                    1 => title.to_owned(),
                    jobs => format!("{title}, {jobs} jobs"),
                }],
                block_bytes: knee.phase.block_bytes(),
                sentence: is_best.then(|| format!("{title}: {}", row::knee(knee))),
                knee: found
                    .known_knee()
                    .filter(|_| is_best)
                    .map(|knee| knee.iodepth),
                cells,
            }
        })
        .collect()
}

fn cell(cell: &CurveCell) -> PageSweepCell {
    let latency = &cell.latency;
    PageSweepCell {
        iodepth: cell.iodepth,
        basis: CellBasis::Measured,
        iops: Some(PageRate::new(cell.iops.mean, cell.iops.error)),
        bytes_per_s: Some(cell.bytes_per_s.mean),
        mean_ns: Some(latency.mean_ns),
        percentiles_ns: [latency.p50_ns, latency.p99_ns, latency.p99_9_ns],
        max_ns: Some(latency.max_ns),
        shown: None,
    }
}
