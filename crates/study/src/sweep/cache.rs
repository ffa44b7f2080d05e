//! A cache, from the latency over the working set.
//!
//! What a cache of C bytes serves of a working set of W is known ([`popularity`]): of uniform draws the share C / W. The mean
//! latency is that of a hit for this share and that of a miss for the rest. The three unknowns, size, hit and miss, are fitted
//! to the measured latencies ([`fit`]); `docs/caches.md` is the same for users.

mod fit;
mod popularity;

use super::axis::Axis;
use super::grid::CurvePlan;
use super::outcome::{Basis, CurveResult, SweepCell};
use fit::{Fit, Hits, Sample, fitted};
use iosonde_job::plan::{BlockSize, Direction, Extent, Job, Mode};
use popularity::HitCurve;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the option that a working set is.
pub const WORKING_SET: &str = "size";
/// Latencies that differ by less than this share do not show a cache.
const FLAT: f64 = 0.1;
/// Three unknowns need more points than that.
const FEWEST: usize = 4;
/// A fit that is off by more than this share on average describes something else.
const WORST_MISFIT: f64 = 0.25;

/// What the latencies over the working set tell about a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFinding {
    /// The value of each axis but the depth; that of `size` is empty.
    pub values: Vec<String>,
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// What they tell.
    pub answer: CacheAnswer,
}

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Between {
    /// The most likely.
    pub mean: f64,
    /// The interval's lower end; `None` where the measured working sets do not bound it.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// Whether a cache was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheAnswer {
    /// It was.
    Found {
        /// How many bytes of the working set it holds.
        size_bytes: Between,
        /// Mean latency of what it serves.
        hit_ns: Between,
        /// Mean latency of what it does not.
        miss_ns: Between,
        /// By how much the latencies are off from what such a cache would show, as a share: root of the mean square.
        misfit: f64,
    },
    /// The latency is the same at every working set: all of them fit into a cache, or none is in a cache.
    Flat {
        /// The smallest.
        from_bytes: u64,
        /// The largest.
        to_bytes: u64,
    },
    /// It cannot be told, and why.
    Unknown {
        /// In words.
        why: String,
    },
}

/// What there is to tell of each combination of the other axes. `plans` are those of `curves`.
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
        .any(|(job, _)| job.workload.rw.mode != Mode::Read)
    {
        return unknown("a cache is told from reads alone");
    }
    let measured = cells
        .iter()
        .filter(|(_, cell)| cell.basis == Basis::Measured);
    let is_warm = |cell: &SweepCell| cell.warmup.is_none_or(|warmup| warmup.complete);
    let warm: Vec<_> = measured.filter(|(_, cell)| is_warm(cell)).collect();
    if warm.len() < FEWEST {
        return unknown(format!(
            "{} of {} working sets were measured warm, and it takes {FEWEST}",
            warm.len(),
            cells.len()
        ));
    }
    let samples: Option<Vec<Sample>> = warm.iter().map(|(job, cell)| sample(job, cell)).collect();
    let Some(samples) = samples else {
        return unknown("it takes blocks of one size, and zones that hold at least one");
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
            "the latencies are off by {:.0} % from what a cache would show",
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

/// A cell as a point of the curve; `None` where what a cache serves of it is not known.
fn sample(job: &Job, cell: &SweepCell) -> Option<Sample> {
    let Some(Extent::Bytes(bytes)) = job.files.size else {
        return None;
    };
    let BlockSize::Fixed(block_bytes) = job.workload.block_size[Direction::Read] else {
        return None;
    };
    let blocks = bytes / block_bytes.max(1);
    let hits = match job.workload.rw.random {
        true => Hits::Drawn(HitCurve::of(
            &job.workload.distribution,
            blocks,
            block_bytes,
        )?),
        // In turn, the least recently used is what comes next: all or nothing.
        false => Hits::Whole(blocks),
    };
    Some(Sample {
        bytes,
        block_bytes,
        latency_ns: cell.mean_latency_ns?,
        error: cell.iops.and_then(|iops| iops.relative_error()),
        hits,
    })
}
