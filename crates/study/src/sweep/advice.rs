//! What follows from the curves for whoever has to choose depth, jobs and block size.

use super::axis::Axis;
use super::outcome::{Basis, CurveResult, SweepCell};
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latencies that differ by less count as one, rates too.
const ALIKE: f64 = 0.05;
/// A rate that lacks no more than this share reaches a maximum.
const REACHED: f64 = 0.03;
/// A block size that reaches this share of the most that any reaches is held by that limit.
const HELD: f64 = 0.9;

/// No cell that is known worse than this share is advised.
const KNOWN: f64 = 0.5;
/// Nor any that is known worse than this one and not apart from the others.
const UNSURE: f64 = 0.2;
/// That two rates are the same is said where neither may be more than this share above the other.
const SAME: f64 = 0.2;

/// All that is advised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Advice {
    /// Depth and jobs, for each combination of the other axes.
    pub choices: Vec<Choice>,
    /// More jobs or more depth, for each combination that has several numbers of jobs.
    pub parallel: Vec<ParallelAdvice>,
    /// What limits which block size, for each combination that has several.
    pub blocks: Vec<BlocksAdvice>,
    /// Workloads on whose depth and jobs nothing is advised, as their figures are not known well enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<Vec<String>>,
}

/// Depth and jobs for one workload, by what is wanted. Each is a measured cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The workload: values of all axes but `numjobs` and `iodepth`.
    pub values: Vec<String>,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// The lowest mean latency, and the highest rate that comes with it.
    pub latency: Spot,
    /// The highest ratio of rate to latency (Kleinrock's power, ICC 1979): the most rate for the least waiting.
    pub balance: Spot,
    /// The least in flight that reaches the maximum.
    pub throughput: Spot,
}

/// A measured cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spot {
    /// Jobs at once.
    pub numjobs: u32,
    /// I/Os in flight of each.
    pub iodepth: u32,
    /// I/Os per second of all.
    pub iops: f64,
    /// Bytes per second of all.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub mean_latency_ns: f64,
    /// 99th percentile, where enough were measured.
    pub p99_ns: Option<u64>,
}

impl Spot {
    fn of(curve: &CurveResult, cell: &SweepCell) -> Option<Spot> {
        let latency = cell.latency?;
        Some(Spot {
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

/// Which way to have more in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// More jobs reach what depth alone does not.
    Jobs,
    /// Depth gives more than as much in flight of more jobs.
    Depth,
    /// Both give the same.
    Same,
}

/// More jobs or more depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelAdvice {
    /// The workload: values of all axes but `numjobs` and `iodepth`.
    pub values: Vec<String>,
    /// Which.
    pub better: Parallel,
    /// Why, in one sentence.
    pub evidence: String,
}

/// What holds a block size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// As many I/Os as any block size gets: larger blocks cost no I/Os.
    Iops,
    /// As many bytes as any block size gets: smaller blocks cost no bandwidth.
    Bandwidth,
    /// Something of both.
    Both,
}

/// One block size at its best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blocks {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// The most I/Os per second of any depth and number of jobs.
    pub iops: f64,
    /// The most bytes per second.
    pub bytes_per_s: f64,
    /// What holds it.
    pub bound_by: BoundBy,
}

/// What limits which block size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlocksAdvice {
    /// The workload: values of all axes but `bs`, `numjobs` and `iodepth`.
    pub values: Vec<String>,
    /// Each block size, ascending.
    pub blocks: Vec<Blocks>,
    /// Blocks of this size would reach both limits at once.
    pub turning_bytes: f64,
}

impl Advice {
    /// Draws it from the curves; `axes` are all but the depth.
    pub fn of(curves: &[CurveResult], axes: &[Axis]) -> Advice {
        let workloads = groups(curves, axes, &["numjobs"]);
        let over_blocks = groups(curves, axes, &["bs", "numjobs"]);
        let choices: Vec<Option<Choice>> = workloads.iter().map(choice).collect();
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

type Group<'a> = (Vec<String>, Vec<&'a CurveResult>);

/// Curves that differ only in the axes left out, in the order of the first of each.
fn groups<'a>(curves: &'a [CurveResult], axes: &[Axis], without: &[&str]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
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

/// A measured cell with the least and the most that its rate may be.
type Known<'a> = (&'a CurveResult, &'a SweepCell, f64, f64);

/// The cells that are known at all.
fn known<'a>(curves: &[&'a CurveResult]) -> Vec<Known<'a>> {
    let all = curves
        .iter()
        .flat_map(|curve| curve.cells.iter().map(move |cell| (*curve, cell)));
    all.filter(|(_, cell)| cell.basis == Basis::Measured)
        .filter_map(|(curve, cell)| {
            let doubt = cell.doubt().filter(|doubt| *doubt <= KNOWN)?;
            let mean = cell.iops?.mean;
            Some((curve, cell, mean * (1.0 - doubt), mean * (1.0 + doubt)))
        })
        .collect()
}

/// Whether there are several measured cells to choose from.
fn has_choice(curves: &[&CurveResult]) -> bool {
    let cells = curves.iter().flat_map(|curve| &curve.cells);
    cells
        .filter(|cell| cell.basis == Basis::Measured)
        .nth(1)
        .is_some()
}

fn choice((values, curves): &Group<'_>) -> Option<Choice> {
    if !has_choice(curves) {
        return None;
    }
    let cells = known(curves);
    let spots: Vec<Spot> = cells
        .iter()
        .filter_map(|(curve, cell, ..)| Spot::of(curve, cell))
        .collect();
    let lowest = spots
        .iter()
        .map(|spot| spot.mean_latency_ns)
        .min_by(f64::total_cmp)?;
    let power = |spot: &&Spot| spot.iops / spot.mean_latency_ns.max(f64::MIN_POSITIVE);
    let quick = spots
        .iter()
        .filter(|spot| spot.mean_latency_ns <= lowest * (1.0 + ALIKE));
    let latency = *quick.max_by(|a, b| a.iops.total_cmp(&b.iops))?;
    let throughput = throughput(curves)?;
    told_apart(latency, throughput, &cells).then_some(Choice {
        values: values.clone(),
        block_bytes: curves.first()?.block_bytes,
        latency,
        balance: *spots.iter().max_by(|a, b| power(a).total_cmp(&power(b)))?,
        throughput,
    })
}

/// The knee with the least in flight of those that reach the most; `None` where the most of a curve is not known.
fn throughput(curves: &[&CurveResult]) -> Option<Spot> {
    let maxima: Option<Vec<f64>> = curves.iter().map(|curve| Some(most(curve)?.0)).collect();
    let maxima = maxima?;
    let highest = maxima.iter().copied().max_by(f64::total_cmp)?;
    let reaching = curves
        .iter()
        .zip(maxima)
        .filter(|(_, maximum)| *maximum >= highest * (1.0 - REACHED));
    let knees = reaching.filter_map(|(curve, _)| {
        let knee = curve.saturation.as_ref()?.knee.iodepth;
        let cell = curve.cells.iter().find(|cell| cell.iodepth == knee)?;
        Spot::of(curve, cell)
    });
    knees.min_by_key(|spot| (spot.in_flight(), spot.numjobs))
}

/// Whether one cell is faster than another for certain, or both are known well.
fn told_apart(slow: Spot, fast: Spot, cells: &[Known<'_>]) -> bool {
    let bounds = |spot: Spot| {
        let is_it = |cell: &&Known<'_>| Spot::of(cell.0, cell.1) == Some(spot);
        cells.iter().find(is_it).map(|cell| (cell.2, cell.3))
    };
    let (Some((low, high)), Some((least, most))) = (bounds(slow), bounds(fast)) else {
        return false;
    };
    let is_sure = |low: f64, high: f64| high - low <= UNSURE * (high + low);
    least > high || is_sure(low, high) && is_sure(least, most)
}

/// The most of a curve, and half the width of its interval; `None` where it is not known well enough to speak of.
fn most(curve: &CurveResult) -> Option<(f64, f64)> {
    let maximum = curve.saturation.as_ref()?.known_maximum()?;
    Some((maximum.mean, maximum.error?))
}

fn parallel((values, curves): &Group<'_>) -> Option<ParallelAdvice> {
    let mut curves = curves.clone();
    curves.sort_by_key(|curve| curve.numjobs);
    let fewest = *curves.first().filter(|_| curves.len() > 1)?;
    let rate = |iops: f64| rate(iops, fewest.block_bytes);
    let (alone, alone_error) = most(fewest)?;
    let reach: Vec<(u32, f64, f64)> = curves[1..]
        .iter()
        .filter_map(|curve| most(curve).map(|(mean, error)| (curve.numjobs, mean, error)))
        .collect();
    let best = reach.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if best.1 - best.2 > (alone + alone_error) * (1.0 + REACHED) {
        let jobs = reach
            .iter()
            .find(|(_, mean, _)| *mean >= best.1 * (1.0 - REACHED));
        let evidence = format!(
            "{} {}, {} at any depth only {}",
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
        // Only where more jobs could not give much more.
        None if best.1 + best.2 > (alone - alone_error) * (1.0 + SAME) => return None,
        None => (
            Parallel::Same,
            format!(
                "{} {} at depth {}, more jobs no more; depth costs fewer threads",
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
        1 => "1 job gets".to_owned(),
        jobs => format!("{jobs} jobs get"),
    }
}

/// Where depth gives most more than as many in flight of more jobs: how many in flight, its rate, how many jobs, and theirs.
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

/// Small blocks are counted by I/Os, large ones by bytes.
fn rate(iops: f64, block_bytes: u64) -> String {
    if block_bytes >= super::LARGE_BYTES {
        words::bandwidth(iops * block_bytes as f64)
    } else {
        format!("{} IOPS", words::iops(iops))
    }
}

/// Whether a block size that lacks of a limit lacks it for certain.
fn is_apart((block, iops, error): &(u64, f64, f64), most_iops: f64, most_bytes: f64) -> bool {
    let (mean, high) = (*iops, iops + error);
    let lacks = |mean: f64, high: f64, most: f64| mean >= most * HELD || high < most;
    let bytes = *block as f64;
    lacks(mean, high, most_iops) && lacks(mean * bytes, high * bytes, most_bytes)
}

fn blocks((values, curves): &Group<'_>) -> Option<BlocksAdvice> {
    let mut sizes: Vec<u64> = curves.iter().map(|curve| curve.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let best = |block_bytes: u64| {
        let same = curves
            .iter()
            .filter(|curve| curve.block_bytes == block_bytes);
        let rates = same.filter_map(|curve| most(curve));
        let best = rates.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (best.0 > 0.0).then_some((block_bytes, best.0, best.1))
    };
    let each: Vec<(u64, f64, f64)> = sizes.into_iter().filter_map(best).collect();
    if each.len() < 2 {
        return None;
    }
    let bandwidth = |(block, iops, _): &(u64, f64, f64)| *block as f64 * iops;
    let most_iops = each.iter().map(|(_, iops, _)| *iops).fold(0.0, f64::max);
    let most_bytes = each.iter().map(bandwidth).fold(0.0, f64::max);
    if !each.iter().all(|one| is_apart(one, most_iops, most_bytes)) {
        return None;
    }
    let judged = |one: &(u64, f64, f64)| {
        let (of_iops, of_bytes) = (one.1 / most_iops, bandwidth(one) / most_bytes);
        Blocks {
            block_bytes: one.0,
            iops: one.1,
            bytes_per_s: bandwidth(one),
            bound_by: match (of_iops >= HELD, of_bytes >= HELD) {
                (true, false) => BoundBy::Iops,
                (false, true) => BoundBy::Bandwidth,
                _ => BoundBy::Both,
            },
        }
    };
    Some(BlocksAdvice {
        values: values.clone(),
        blocks: each.iter().map(judged).collect(),
        turning_bytes: most_bytes / most_iops,
    })
}
