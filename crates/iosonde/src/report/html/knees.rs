//! The searches of a probe for the most at any depth, as the page draws them: a curve for each pattern and number of jobs.

use super::document::{Rate, Sweep, SweepAxis, SweepCell, SweepCurve};
use crate::report::probe::row;
use iosonde_study::probe::{Knee, ProbeResult};
use iosonde_study::saturation::Cell;
use iosonde_study::sweep::Basis;
use std::collections::BTreeSet;

/// The searches of a probe from `source`; `None` where there were none.
pub(super) fn of(source: &str, result: &ProbeResult) -> Option<Sweep> {
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
    Some(Sweep {
        source: source.to_owned(),
        headline: result.target.clone(),
        axes: vec![
            axis("rw", patterns),
            axis("iodepth", depths.iter().map(u32::to_string).collect()),
        ],
        curves,
        notes: Vec::new(),
    })
}

/// One for each number of jobs that was tried at more than one depth.
fn curves(knee: &Knee) -> Vec<SweepCurve> {
    let found = &knee.saturation;
    let jobs: BTreeSet<u32> = found.cells.iter().map(|cell| cell.jobs).collect();
    let of_jobs = |jobs: u32| -> Vec<SweepCell> {
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

fn cell(cell: &Cell) -> SweepCell {
    let latency = &cell.latency;
    SweepCell {
        iodepth: cell.iodepth,
        basis: Basis::Measured,
        iops: Some(Rate::of(cell.iops.mean, cell.iops.error)),
        bytes_per_s: Some(cell.bytes_per_s.mean),
        mean_ns: Some(latency.mean_ns),
        percentiles_ns: [latency.p50_ns, latency.p99_ns, latency.p99_9_ns],
        max_ns: Some(latency.max_ns),
    }
}
