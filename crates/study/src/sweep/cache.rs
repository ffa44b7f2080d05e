//! Infers a cache from the latency over the working set.
//!
//! [`popularity`] gives the hit ratio of a cache of C bytes for a working set of W bytes: C / W for
//! uniform draws. The mean latency is that of hits and misses in this ratio. [`fit`] fits size, hit
//! and miss latency to the measured latencies. `docs/caches.md` is the description for users.

mod fit;
mod popularity;

use super::axis::WORKING_SET;
use super::curve_result::{CellBasis, CurveResult, SweepCell};
use crate::figures::curve_plan::CurvePlan;
use crate::sweep_axis::Axis;
use fit::{Fit, Hits, WorkingSetLatency, fitted};
use iosonde_job::plan::{BlockSize, BytesOrPercent, Direction, Job, ReadWriteMode};
use popularity::HitCurve;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative difference below which latencies do not show a cache.
const FLAT: f64 = 0.1;
/// Fewest points for a fit of three unknowns.
const FEWEST: usize = 4;
/// Largest relative misfit of a cache: root mean square.
const WORST_MISFIT: f64 = 0.25;

/// Cache inferred from the latencies over the working set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFinding {
    /// Value of each axis but the depth. The value of `size` is empty.
    pub values: Vec<String>,
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// Result of the inference.
    pub answer: CacheAnswer,
}

/// Estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Between {
    /// Most likely value.
    pub mean: f64,
    /// Lower end of the interval. `None` if the measured working sets do not bound it.
    pub low: Option<f64>,
    /// Upper end of the interval. `None` if the measured working sets do not bound it.
    pub high: Option<f64>,
}

/// Whether the latencies show a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheAnswer {
    /// They show a cache.
    Found {
        /// Bytes of the working set that the cache holds.
        size_bytes: Between,
        /// Mean latency of a hit.
        hit_ns: Between,
        /// Mean latency of a miss.
        miss_ns: Between,
        /// Root mean square of the relative differences between latencies and model.
        misfit: f64,
    },
    /// The latency does not depend on the working set: a cache holds all of them, or none.
    Flat {
        /// Smallest working set in bytes.
        from_bytes: u64,
        /// Largest working set in bytes.
        to_bytes: u64,
    },
    /// The measurements do not allow an answer.
    Unknown {
        /// Reason, in words.
        why: String,
    },
}

/// Infers the caches for each combination of the other axes. `plans` belong to `curves`.
pub(super) fn infer(
    plans: &[CurvePlan],
    curves: &[CurveResult],
    axes: &[Axis],
) -> Vec<CacheFinding> {
    let Some(size) = axes.iter().position(|axis| axis.name == WORKING_SET) else {
        return Vec::new();
    };
    let others = |curve: &CurveResult| {
        let mut values = curve.values.clone();
        values[size].clear();
        values
    };
    let mut findings: Vec<CacheFinding> = Vec::new();
    for curve in curves {
        let values = others(curve);
        if findings.iter().any(|finding| finding.values == values) {
            continue;
        }
        let same = |(_, other): &(&CurvePlan, &CurveResult)| others(other) == values;
        let group: Vec<(&CurvePlan, &CurveResult)> =
            plans.iter().zip(curves).filter(same).collect();
        for (index, cell) in curve.cells.iter().enumerate() {
            let cells = group
                .iter()
                .map(|(plan, curve)| (&plan.job, &curve.cells[index]));
            findings.push(CacheFinding {
                values: values.clone(),
                iodepth: cell.iodepth,
                answer: answer(&cells.collect::<Vec<_>>()),
            });
        }
    }
    findings
}

fn unknown(why: impl Into<String>) -> CacheAnswer {
    CacheAnswer::Unknown { why: why.into() }
}

fn answer(cells: &[(&Job, &SweepCell)]) -> CacheAnswer {
    if cells
        .iter()
        .any(|(job, _)| job.workload.rw.mode != ReadWriteMode::Read)
    {
        return unknown("only reads show a cache");
    }
    let measured = cells
        .iter()
        .filter(|(_, cell)| cell.basis == CellBasis::Measured);
    let is_warm = |cell: &SweepCell| cell.warmup.is_none_or(|warmup| warmup.complete);
    let warm: Vec<_> = measured.filter(|(_, cell)| is_warm(cell)).collect();
    if warm.len() < FEWEST {
        return unknown(format!(
            "{} of {} working sets were measured warm, but {FEWEST} are needed",
            warm.len(),
            cells.len()
        ));
    }
    let samples: Option<Vec<WorkingSetLatency>> =
        warm.iter().map(|(job, cell)| sample(job, cell)).collect();
    let Some(samples) = samples else {
        return unknown("the estimate needs one block size, and zones of at least one block");
    };
    let latencies = || samples.iter().map(|sample| sample.latency_ns);
    let (least, most) = (
        latencies().fold(f64::MAX, f64::min),
        latencies().fold(0.0, f64::max),
    );
    let sizes = || samples.iter().map(|sample| sample.bytes);
    if most < least * (1.0 + FLAT) {
        return CacheAnswer::Flat {
            from_bytes: sizes().min().unwrap_or(0),
            to_bytes: sizes().max().unwrap_or(0),
        };
    }
    match fitted(&samples) {
        Some(Fit { misfit, .. }) if misfit > WORST_MISFIT => unknown(format!(
            "the latencies differ by {:.0} % from those of a cache",
            misfit * 100.0
        )),
        Some(fit) => CacheAnswer::Found {
            size_bytes: fit.size_bytes,
            hit_ns: fit.hit_ns,
            miss_ns: fit.miss_ns,
            misfit: fit.misfit,
        },
        None => unknown("the latency does not rise with the working set"),
    }
}

/// Converts a cell to a sample. `None` if its hit ratio cannot be predicted.
fn sample(job: &Job, cell: &SweepCell) -> Option<WorkingSetLatency> {
    let Some(BytesOrPercent::Bytes(bytes)) = job.files.size else {
        return None;
    };
    let BlockSize::Fixed(block_bytes) = job.workload.block_size[Direction::Read] else {
        return None;
    };
    let blocks = bytes / block_bytes.max(1);
    let hits = match job.workload.rw.random {
        true => Hits::Drawn(HitCurve::from_distribution(
            &job.workload.distribution,
            blocks,
            block_bytes,
        )?),
        // Sequential reads hit an LRU cache always or never: the block read next is the oldest.
        false => Hits::Whole(blocks),
    };
    Some(WorkingSetLatency {
        bytes,
        block_bytes,
        latency_ns: cell.mean_latency_ns?,
        error: cell.iops.and_then(|iops| iops.relative_error()),
        hits,
    })
}
