//! Advice on depth, number of jobs and block size, from the measured curves.

use super::curve_result::{CellBasis, CurveResult, SweepCell};
use crate::sweep_axis::Axis;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative difference below which latencies count as equal.
const ALIKE: f64 = 0.05;
/// A rate reaches a maximum if it is lower by at most this share.
const REACHED: f64 = 0.03;
/// A block size is bound by a limit if it reaches this share of the best rate of any size.
const HELD: f64 = 0.9;

/// Largest relative error of a cell that is advised.
const KNOWN: f64 = 0.5;
/// Largest relative error of advised cells that do not differ significantly.
const UNSURE: f64 = 0.2;
/// Largest possible relative gain of more jobs for the statement that they gain nothing.
const SAME: f64 = 0.2;

/// Advice of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Advice {
    /// Best depth and number of jobs, for each combination of the other axes.
    pub choices: Vec<WorkloadAdvice>,
    /// Comparison of jobs and depth, for each combination with several numbers of jobs.
    pub parallel: Vec<ParallelAdvice>,
    /// Limit of each block size, for each combination with several block sizes.
    pub blocks: Vec<BlocksAdvice>,
    /// Workloads without advice on depth and jobs, because their figures are too uncertain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<Vec<String>>,
}

/// Best measured cells of one workload, by criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadAdvice {
    /// The workload: values of all axes but `numjobs` and `iodepth`.
    pub values: Vec<String>,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// Lowest mean latency: of the cells within 5 % of it, the one with the highest rate.
    pub latency: AdvisedCell,
    /// Fewest I/Os in flight that reach the maximum.
    pub throughput: AdvisedCell,
}

/// A measured cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdvisedCell {
    /// Number of jobs.
    pub numjobs: u32,
    /// I/Os in flight of each job.
    pub iodepth: u32,
    /// I/Os per second of all jobs.
    pub iops: f64,
    /// Bytes per second of all jobs.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub mean_latency_ns: f64,
    /// 99th percentile of the latency. `None` with too few I/Os.
    pub p99_ns: Option<u64>,
}

impl AdvisedCell {
    fn from_cell(curve: &CurveResult, cell: &SweepCell) -> Option<AdvisedCell> {
        let latency = cell.latency?;
        Some(AdvisedCell {
            numjobs: curve.numjobs,
            iodepth: cell.iodepth,
            iops: cell.iops?.mean,
            bytes_per_s: cell.bytes_per_s?,
            mean_latency_ns: latency.mean_ns,
            p99_ns: latency.p99_ns,
        })
    }

    fn in_flight(&self) -> u64 {
        u64::from(self.numjobs) * u64::from(self.iodepth)
    }
}

/// Better way to have more I/Os in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// Several jobs reach a rate that one job does not reach at any depth.
    Jobs,
    /// One job reaches a higher rate than several jobs with as many I/Os in flight.
    Depth,
    /// Both reach the same rate.
    Same,
}

/// Comparison of jobs and depth for one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelAdvice {
    /// The workload: values of all axes but `numjobs` and `iodepth`.
    pub values: Vec<String>,
    /// The better way.
    pub better: Parallel,
    /// Evidence, as one sentence.
    pub evidence: String,
}

/// Limit of a block size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// IOPS: no block size gets more I/Os per second.
    Iops,
    /// Bandwidth: no block size gets more bytes per second.
    Bandwidth,
    /// Both limits, or neither although the rate does not rise.
    Both,
    /// No limit was reached: the rate still rises at the deepest queue that was measured.
    Depth,
}

/// Best rates of one block size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockSizeMaximum {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// Highest I/Os per second at any depth and number of jobs.
    pub iops: f64,
    /// Highest bytes per second.
    pub bytes_per_s: f64,
    /// Limit of the block size.
    pub bound_by: BoundBy,
}

/// Limits of all block sizes of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlocksAdvice {
    /// The workload: values of all axes but `bs`, `numjobs` and `iodepth`.
    pub values: Vec<String>,
    /// Block sizes, ascending.
    pub blocks: Vec<BlockSizeMaximum>,
    /// Block size that would reach both limits at once, in bytes. The limits are not known if the
    /// rate of a block size still rises.
    pub turning_bytes: f64,
}

impl Advice {
    /// Derives the advice from the curves. `axes` are all axes but the depth.
    pub fn from_curves(curves: &[CurveResult], axes: &[Axis]) -> Advice {
        let workloads = groups(curves, axes, &["numjobs"]);
        let over_blocks = groups(curves, axes, &["bs", "numjobs"]);
        let choices: Vec<Option<WorkloadAdvice>> = workloads.iter().map(choice).collect();
        let unsure = workloads
            .iter()
            .zip(&choices)
            .filter(|((_, curves), choice)| choice.is_none() && has_choice(curves));
        Advice {
            unsure: unsure.map(|((values, _), _)| values.clone()).collect(),
            choices: choices.into_iter().flatten().collect(),
            parallel: workloads.iter().filter_map(parallel).collect(),
            blocks: over_blocks.iter().filter_map(blocks).collect(),
        }
    }
}

type CurveGroup<'a> = (Vec<String>, Vec<&'a CurveResult>);

/// Groups curves that differ only in the axes of `without`, in the order of their first curves.
fn groups<'a>(curves: &'a [CurveResult], axes: &[Axis], without: &[&str]) -> Vec<CurveGroup<'a>> {
    let mut groups: Vec<CurveGroup<'a>> = Vec::new();
    for curve in curves.iter().filter(|curve| curve.saturation.is_some()) {
        let kept = axes
            .iter()
            .zip(&curve.values)
            .filter(|(axis, _)| !without.contains(&axis.name.as_str()));
        let values: Vec<String> = kept.map(|(_, value)| value.clone()).collect();
        match groups.iter_mut().find(|(other, _)| *other == values) {
            Some((_, group)) => group.push(curve),
            None => groups.push((values, vec![curve])),
        }
    }
    groups
}

/// Measured cell with the lower and the upper bound of its rate.
type BoundedCell<'a> = (&'a CurveResult, &'a SweepCell, f64, f64);

/// Returns the cells with a known error of at most [`KNOWN`].
fn known<'a>(curves: &[&'a CurveResult]) -> Vec<BoundedCell<'a>> {
    let all = curves
        .iter()
        .flat_map(|curve| curve.cells.iter().map(move |cell| (*curve, cell)));
    all.filter(|(_, cell)| cell.basis == CellBasis::Measured)
        .filter_map(|(curve, cell)| {
            let doubt = cell.doubt().filter(|doubt| *doubt <= KNOWN)?;
            let mean = cell.iops?.mean;
            Some((curve, cell, mean * (1.0 - doubt), mean * (1.0 + doubt)))
        })
        .collect()
}

/// Whether there are at least two measured cells.
fn has_choice(curves: &[&CurveResult]) -> bool {
    let cells = curves.iter().flat_map(|curve| &curve.cells);
    cells
        .filter(|cell| cell.basis == CellBasis::Measured)
        .nth(1)
        .is_some()
}

fn choice((values, curves): &CurveGroup<'_>) -> Option<WorkloadAdvice> {
    if !has_choice(curves) {
        return None;
    }
    let cells = known(curves);
    let spots: Vec<AdvisedCell> = cells
        .iter()
        .filter_map(|(curve, cell, ..)| AdvisedCell::from_cell(curve, cell))
        .collect();
    let lowest = spots
        .iter()
        .map(|spot| spot.mean_latency_ns)
        .min_by(f64::total_cmp)?;
    let quick = spots
        .iter()
        .filter(|spot| spot.mean_latency_ns <= lowest * (1.0 + ALIKE));
    let latency = *quick.max_by(|a, b| a.iops.total_cmp(&b.iops))?;
    let throughput = throughput(curves)?;
    is_clearly_faster(latency, throughput, &cells).then_some(WorkloadAdvice {
        values: values.clone(),
        block_bytes: curves.first()?.block_bytes,
        latency,
        throughput,
    })
}

/// Knee with the fewest I/Os in flight at the best maximum. `None` if a maximum is unknown.
fn throughput(curves: &[&CurveResult]) -> Option<AdvisedCell> {
    let maxima: Option<Vec<f64>> = curves
        .iter()
        .map(|curve| Some(curve_maximum(curve)?.0))
        .collect();
    let maxima = maxima?;
    let highest = maxima.iter().copied().max_by(f64::total_cmp)?;
    let reaching = curves
        .iter()
        .zip(maxima)
        .filter(|(_, maximum)| *maximum >= highest * (1.0 - REACHED));
    let knees = reaching.filter_map(|(curve, _)| {
        let knee = curve.saturation.as_ref()?.knee.iodepth;
        let cell = curve.cells.iter().find(|cell| cell.iodepth == knee)?;
        AdvisedCell::from_cell(curve, cell)
    });
    knees.min_by_key(|spot| (spot.in_flight(), spot.numjobs))
}

/// Whether `fast` is significantly faster, or both rates are precise.
fn is_clearly_faster(slow: AdvisedCell, fast: AdvisedCell, cells: &[BoundedCell<'_>]) -> bool {
    let bounds = |spot: AdvisedCell| {
        let is_it = |cell: &&BoundedCell<'_>| AdvisedCell::from_cell(cell.0, cell.1) == Some(spot);
        cells.iter().find(is_it).map(|cell| (cell.2, cell.3))
    };
    let (Some((low, high)), Some((least, most))) = (bounds(slow), bounds(fast)) else {
        return false;
    };
    let is_sure = |low: f64, high: f64| high - low <= UNSURE * (high + low);
    least > high || is_sure(low, high) && is_sure(least, most)
}

/// Returns a curve's maximum and its absolute half-width. `None` if not known well enough.
fn curve_maximum(curve: &CurveResult) -> Option<(f64, f64)> {
    let maximum = curve.saturation.as_ref()?.known_maximum()?;
    Some((maximum.mean, maximum.error?))
}

fn parallel((values, curves): &CurveGroup<'_>) -> Option<ParallelAdvice> {
    let mut curves = curves.clone();
    curves.sort_by_key(|curve| curve.numjobs);
    let fewest = *curves.first().filter(|_| curves.len() > 1)?;
    let rate = |iops: f64| rate_text(iops, fewest.block_bytes);
    let (alone, alone_error) = curve_maximum(fewest)?;
    let reach: Vec<(u32, f64, f64)> = curves[1..]
        .iter()
        .filter_map(|curve| curve_maximum(curve).map(|(mean, error)| (curve.numjobs, mean, error)))
        .collect();
    let best = reach.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if best.1 - best.2 > (alone + alone_error) * (1.0 + REACHED) {
        let jobs = reach
            .iter()
            .find(|(_, mean, _)| *mean >= best.1 * (1.0 - REACHED));
        let evidence = format!(
            "{} {}, {} only {} at any depth",
            jobs_get(jobs.unwrap_or(best).0),
            rate(best.1),
            jobs_get(fewest.numjobs),
            rate(alone)
        );
        return Some(ParallelAdvice {
            values: values.clone(),
            better: Parallel::Jobs,
            evidence,
        });
    }
    let (better, evidence) = match as_many_in_flight(fewest, &curves[1..]) {
        Some((in_flight, with_depth, jobs, with_jobs)) => (
            Parallel::Depth,
            format!(
                "with {in_flight} in flight {} {}, {} only {}",
                jobs_get(fewest.numjobs),
                rate(with_depth),
                jobs_get(jobs),
                rate(with_jobs)
            ),
        ),
        // No advice if the intervals allow a clear gain from more jobs.
        None if best.1 + best.2 > (alone - alone_error) * (1.0 + SAME) => return None,
        None => (
            Parallel::Same,
            format!(
                "{} {} at depth {}, and more jobs do not raise the rate; depth needs fewer threads",
                jobs_get(fewest.numjobs),
                rate(alone),
                fewest.saturation.as_ref()?.knee.iodepth
            ),
        ),
    };
    Some(ParallelAdvice {
        values: values.clone(),
        better,
        evidence,
    })
}

fn jobs_get(jobs: u32) -> String {
    match jobs {
        1 => "1 job reaches".to_owned(),
        jobs => format!("{jobs} jobs reach"),
    }
}

/// Clearest win of depth over jobs: I/Os in flight, its rate, the number of jobs and their rate.
fn as_many_in_flight(deep: &CurveResult, wide: &[&CurveResult]) -> Option<(u64, f64, u32, f64)> {
    let measured = |curve: &CurveResult| -> Vec<(u64, f64, f64)> {
        let jobs = u64::from(curve.numjobs);
        let cells = known(&[curve]);
        let each = cells.iter().map(|(_, cell, low, high)| {
            let in_flight = jobs * u64::from(cell.iodepth);
            (in_flight, (low + high) / 2.0, (high - low) / 2.0)
        });
        each.collect()
    };
    let ours = measured(deep);
    let pairs = wide.iter().flat_map(|curve| {
        let theirs = measured(curve).into_iter();
        let ours = &ours;
        theirs.filter_map(move |(in_flight, rate, error)| {
            let (_, own, own_error) = ours.iter().find(|(same, ..)| *same == in_flight)?;
            let ahead = own - own_error > (rate + error) * (1.0 + REACHED);
            ahead.then_some((in_flight, *own, curve.numjobs, rate))
        })
    });
    pairs.max_by(|a, b| (a.1 / a.3).total_cmp(&(b.1 / b.3)))
}

/// Formats a rate as IOPS for small blocks, as bandwidth for large ones.
fn rate_text(iops: f64, block_bytes: u64) -> String {
    if block_bytes >= super::LARGE_BYTES {
        words::bandwidth(iops * block_bytes as f64)
    } else {
        format!("{} IOPS", words::iops_text(iops))
    }
}

/// Best rate of one block size, in I/Os per second.
#[derive(Debug, Clone, Copy)]
struct BlockRate {
    block_bytes: u64,
    iops: f64,
    /// Absolute half-width of the rate.
    error: f64,
    /// Whether the rate still rises at the deepest queue that was measured.
    rises: bool,
}

impl BlockRate {
    fn bytes_per_s(&self) -> f64 {
        self.block_bytes as f64 * self.iops
    }

    /// Whether the rate reaches each limit or is significantly below it.
    fn is_apart(&self, most_iops: f64, most_bytes: f64) -> bool {
        let (mean, high) = (self.iops, self.iops + self.error);
        let lacks = |mean: f64, high: f64, most: f64| mean >= most * HELD || high < most;
        let bytes = self.block_bytes as f64;
        lacks(mean, high, most_iops) && lacks(mean * bytes, high * bytes, most_bytes)
    }

    fn bound_by(&self, most_iops: f64, most_bytes: f64) -> BoundBy {
        let (of_iops, of_bytes) = (self.iops / most_iops, self.bytes_per_s() / most_bytes);
        match (of_iops >= HELD, of_bytes >= HELD) {
            _ if self.rises => BoundBy::Depth,
            (true, false) => BoundBy::Iops,
            (false, true) => BoundBy::Bandwidth,
            _ => BoundBy::Both,
        }
    }
}

fn blocks((values, curves): &CurveGroup<'_>) -> Option<BlocksAdvice> {
    let mut sizes: Vec<u64> = curves.iter().map(|curve| curve.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let best = |block_bytes: u64| {
        let same = curves
            .iter()
            .filter(|curve| curve.block_bytes == block_bytes);
        let rates = same.filter_map(|curve| {
            let (iops, error) = curve_maximum(curve)?;
            Some(BlockRate {
                block_bytes,
                iops,
                error,
                rises: curve.saturation.as_ref()?.claims().rises,
            })
        });
        let best = rates.max_by(|a, b| a.iops.total_cmp(&b.iops))?;
        (best.iops > 0.0).then_some(best)
    };
    let each: Vec<BlockRate> = sizes.into_iter().filter_map(best).collect();
    if each.len() < 2 || each.iter().all(|rate| rate.rises) {
        return None;
    }
    let most_iops = each.iter().map(|rate| rate.iops).fold(0.0, f64::max);
    let most_bytes = each.iter().map(BlockRate::bytes_per_s).fold(0.0, f64::max);
    if !(each.iter()).all(|rate| rate.is_apart(most_iops, most_bytes)) {
        return None;
    }
    let judged = |rate: &BlockRate| BlockSizeMaximum {
        block_bytes: rate.block_bytes,
        iops: rate.iops,
        bytes_per_s: rate.bytes_per_s(),
        bound_by: rate.bound_by(most_iops, most_bytes),
    };
    Some(BlocksAdvice {
        values: values.clone(),
        blocks: each.iter().map(judged).collect(),
        turning_bytes: most_bytes / most_iops,
    })
}
