//! Cause of a plateau: a throttle, or the device itself.
//!
//! Within one run both look alike: the rate is flat, and latency rises with the I/Os in flight
//! (Little's law). They differ in what leaves the rate unchanged. A throttle counts I/Os or bytes,
//! not their cost. It gives the same IOPS or the same bandwidth for other block sizes, the same for
//! reads and writes, little variance, and the figure that a provider publishes. A device takes
//! longer for larger blocks, and reads and writes differ. Larger blocks that reach the bandwidth of
//! sequential I/O decide nothing: both have a limit of bandwidth too.
//!
//! All rules are pure functions of measurements.

mod block_sizes;
mod plateau;

use crate::figures::cell::CurveCell;
use crate::figures::pattern_knee::Knee;
use crate::figures::phase_figure::PhaseFigure;
use crate::figures::phase_run::PhaseRun;
use crate::figures::saturation_result::Saturation;
use crate::probe_phase::ProbePhase;
use crate::promise_check::PromiseCheck;
use crate::words;
use block_sizes::{BlockSizeComparison, across_sizes};
use iosonde_job::plan::Direction;
use iosonde_limits::Metric;
use iosonde_result::run::VerdictKind;
use plateau::{Plateau, plateau};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest relative difference of rates that count as equal.
const SAME: f64 = 0.03;
/// Largest relative difference from a promised figure that counts as equal.
const AS_PROMISED: f64 = 0.02;
/// Minimum ratio of the I/Os in flight across a plateau, and of block sizes that are compared.
const APART: f64 = 4.0;
/// Largest standard deviation of a throttled rate over time, as a share of the rate.
const STEADY: f64 = 0.03;
/// Smallest block size whose rate is shown as bandwidth instead of IOPS.
pub const LARGE_BYTES: u64 = 64 << 10;
/// IOPS up to which seek time may dominate, which is the same for all small block sizes.
const SEEKS_PER_S: f64 = 500.0;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CeilingMeasurement {
    /// Direction of the I/O.
    pub direction: Direction,
    /// Whether offsets were random.
    pub random: bool,
    /// Bytes per I/O.
    pub block_bytes: u64,
    /// I/Os in flight of all jobs.
    pub in_flight: u32,
    /// I/Os per second.
    pub iops: f64,
    /// The known maximum of the pattern if `iops` is near it, else `iops`.
    pub plateau_iops: f64,
    /// I/Os in flight at which one measurement gave the known maximum. `None`: `plateau_iops` is
    /// `iops`, or a mean of several depths.
    pub maximum_in_flight: Option<u32>,
    /// Standard deviation of the rate over time, as a share of the rate.
    pub spread: Option<f64>,
    /// Mean latency in nanoseconds.
    pub latency_ns: f64,
    /// Whether a throttle was observed during the measurement.
    pub throttled: bool,
}

/// Quantity that a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bytes,
}

/// Cause of a plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingCause {
    /// A throttle of a provider, an array or a hypervisor.
    Throttle,
    /// The device itself.
    Device,
    /// The measurements do not decide.
    Unclear,
}

/// A rate that a deeper queue does not raise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Direction of the I/O.
    pub direction: Direction,
    /// Whether offsets were random.
    pub random: bool,
    /// Bytes per I/O.
    pub block_bytes: u64,
    /// Quantity that is limited, as far as the measurements show.
    pub counted: LimitUnit,
    /// Limit in I/Os or bytes per second.
    pub per_s: f64,
    /// Cause of the limit.
    pub holder: CeilingCause,
    /// Evidence for the cause, in one sentence.
    pub evidence: String,
}

/// Returns the plateaus of the measurements, at most one per direction, order and block size.
/// `held` has the promises of vendors.
pub fn ceilings(measured: &[CeilingMeasurement], held: &[PromiseCheck]) -> Vec<Ceiling> {
    let mut patterns: Vec<(Direction, bool, u64)> = Vec::new();
    for each in measured {
        let pattern = (each.direction, each.random, each.block_bytes);
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let found = patterns.into_iter().filter_map(|pattern| {
        let plateau = plateau(measured, pattern)?;
        Some(ceiling(&plateau, measured, held))
    });
    found.collect()
}

/// Returns the plateaus of a probe's patterns. Phases with a bottleneck outside the target are
/// skipped: their plateaus are not those of the target.
pub(crate) fn probe_ceilings(
    knees: &[Knee],
    figures: &[PhaseFigure],
    runs: &[PhaseRun],
    held: &[PromiseCheck],
) -> Vec<Ceiling> {
    let limit = |phase: ProbePhase| {
        let run = runs.iter().find(|run| run.phase == phase)?;
        Some(run.result.bottleneck()?.kind)
    };
    let is_targets = |phase: ProbePhase| !limit(phase).is_some_and(is_on_this_side);
    let of_knees = knees.iter().flat_map(|knee| {
        let cells = knee.saturation.cells.iter();
        let cells = cells.map(|cell| (knee.phase.block_bytes(), cell));
        let second = knee.second_size.iter();
        let second = second.map(|size| (size.block_bytes, &size.cell));
        cells.chain(second).map(|(block_bytes, cell)| {
            let phase = knee.phase;
            let measured = from_cell(phase.direction(), phase.is_random(), block_bytes, cell);
            (phase, measured)
        })
    });
    // I/O through the page cache is a different pattern.
    let of_figures = figures
        .iter()
        .filter(|figure| figure.phase != ProbePhase::SyncedWrite)
        .map(|figure| (figure.phase, from_figure(figure, limit(figure.phase))));
    let all = of_knees.chain(of_figures);
    let maximum = |phase: ProbePhase, block_bytes: u64| {
        let is_it = |knee: &&Knee| knee.phase == phase && phase.block_bytes() == block_bytes;
        KnownMaximum::from_search(&knees.iter().find(is_it)?.saturation)
    };
    let measured: Vec<CeilingMeasurement> = all
        .filter(|(phase, _)| is_targets(*phase))
        .map(|(phase, found)| with_known_maximum(found, maximum(phase, found.block_bytes)))
        .collect();
    ceilings(&measured, held)
}

/// Known maximum of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
struct KnownMaximum {
    /// I/Os per second.
    iops: f64,
    /// I/Os in flight of all jobs. `None`: the maximum is a mean of several depths.
    in_flight: Option<u32>,
}

impl KnownMaximum {
    /// Returns `None` if the search proves no maximum.
    fn from_search(found: &Saturation) -> Option<KnownMaximum> {
        let iops = found.known_maximum()?.mean;
        let (from, to) = found.maximum_depths();
        let in_flight = match found.longer_run {
            // It has one job.
            Some(run) => Some(run.iodepth),
            None => (from == to).then_some(found.jobs * from),
        };
        Some(KnownMaximum { iops, in_flight })
    }
}

/// Sets the rate of a plateau to the known maximum if the measured rate is near it, so that a
/// report has one figure for a limit.
fn with_known_maximum(
    measured: CeilingMeasurement,
    maximum: Option<KnownMaximum>,
) -> CeilingMeasurement {
    match maximum.filter(|maximum| is_same(measured.iops, maximum.iops, SAME)) {
        Some(maximum) => CeilingMeasurement {
            plateau_iops: maximum.iops,
            maximum_in_flight: maximum.in_flight,
            ..measured
        },
        None => measured,
    }
}

fn is_on_this_side(limit: VerdictKind) -> bool {
    matches!(
        limit,
        VerdictKind::Generator
            | VerdictKind::LockContention
            | VerdictKind::Interference
            | VerdictKind::ServedFromCache
            | VerdictKind::JobLimit
    )
}

fn from_figure(figure: &PhaseFigure, limit: Option<VerdictKind>) -> CeilingMeasurement {
    CeilingMeasurement {
        direction: figure.phase.direction(),
        random: figure.phase.is_random(),
        block_bytes: figure.block_bytes,
        in_flight: figure.iodepth,
        iops: figure.iops.mean,
        plateau_iops: figure.iops.mean,
        maximum_in_flight: None,
        spread: figure.iops.spread,
        latency_ns: figure.latency.mean_ns,
        throttled: limit.is_some_and(VerdictKind::is_throttle),
    }
}

/// Returns the fewest I/Os in flight, of all jobs, on the plateau of a knee search.
pub(crate) fn flat_from(knee: &Knee) -> Option<u32> {
    let phase = knee.phase;
    let pattern = (phase.direction(), phase.is_random(), phase.block_bytes());
    let cells = knee.saturation.cells.iter();
    let measured: Vec<CeilingMeasurement> = cells
        .map(|cell| from_cell(pattern.0, pattern.1, pattern.2, cell))
        .collect();
    plateau(&measured, pattern).map(|plateau| plateau.from.in_flight)
}

/// Returns the start of a plateau that no deeper cell of the same jobs leaves, in I/Os in flight of
/// all jobs. `None` if the rate falls again, or differs from the maximum.
#[must_use]
pub fn level_from(knee: &Knee) -> Option<u32> {
    let from = flat_from(knee)?;
    let found = &knee.saturation;
    let in_flight = |cell: &CurveCell| cell.jobs * cell.iodepth;
    let cells = found.cells.iter().filter(|cell| cell.jobs == found.jobs);
    let cells: Vec<&CurveCell> = cells.filter(|cell| in_flight(cell) >= from).collect();
    let rates = cells.iter().map(|cell| cell.iops.mean);
    let most = rates.fold(found.maximum.mean, f64::max);
    let is_start_measured = cells.iter().any(|cell| in_flight(cell) == from);
    let mut rates = cells.iter().map(|cell| cell.iops.mean);
    (is_start_measured && rates.all(|rate| is_same(rate, most, SAME))).then_some(from)
}

fn from_cell(
    direction: Direction,
    random: bool,
    block_bytes: u64,
    cell: &CurveCell,
) -> CeilingMeasurement {
    CeilingMeasurement {
        direction,
        random,
        block_bytes,
        in_flight: cell.jobs * cell.iodepth,
        iops: cell.iops.mean,
        plateau_iops: cell.iops.mean,
        maximum_in_flight: None,
        spread: cell.iops.spread,
        latency_ns: cell.latency.mean_ns,
        throttled: false,
    }
}

impl Ceiling {
    /// Names the pattern: `random reads of 4 KiB`.
    pub fn name(&self) -> String {
        let order = if self.random { "random" } else { "sequential" };
        let size = words::bytes(self.block_bytes);
        format!("{order} {} of {size}", direction_noun(self.direction))
    }
}

fn is_same(a: f64, b: f64, share: f64) -> bool {
    a > 0.0 && b > 0.0 && (a / b - 1.0).abs() <= share
}

fn ceiling(plateau: &Plateau, measured: &[CeilingMeasurement], held: &[PromiseCheck]) -> Ceiling {
    let own = plateau.to;
    let sizes = across_sizes(plateau, measured);
    let counted = match (sizes.same_iops, sizes.same_bytes) {
        (Some(_), _) => LimitUnit::Iops,
        (None, Some(_)) => LimitUnit::Bytes,
        (None, None) if plateau.is_large() => LimitUnit::Bytes,
        (None, None) => LimitUnit::Iops,
    };
    let per_s = match counted {
        LimitUnit::Iops => plateau.iops(),
        LimitUnit::Bytes => plateau.bytes(),
    };
    let mut evidence = vec![plateau.words()];
    evidence.extend(sizes.words(own.direction));
    let both_ways = both_ways(plateau, measured);
    if let Some(other) = &both_ways {
        evidence.push(format!(
            "{} reach the same",
            direction_noun(other.direction)
        ));
    }
    let throttled = measured.iter().any(|each| {
        let is_of_pattern = (each.direction, each.random, each.block_bytes)
            == (own.direction, own.random, own.block_bytes);
        is_of_pattern && each.throttled
    });
    let promised = promised(own.direction, counted, per_s, held);
    evidence.extend(promised.clone());
    let holder = if promised.is_some() || throttled {
        CeilingCause::Throttle
    } else if sizes.falls {
        CeilingCause::Device
    } else if !plateau.is_steady() {
        CeilingCause::Unclear
    } else if is_throttle_proved(counted, plateau, &sizes, both_ways.is_some()) {
        CeilingCause::Throttle
    } else {
        CeilingCause::Unclear
    };
    evidence.insert(0, conclusion(holder, counted));
    Ceiling {
        direction: own.direction,
        random: own.random,
        block_bytes: own.block_bytes,
        counted,
        per_s,
        holder,
        evidence: evidence.join("; "),
    }
}

/// Returns whether the invariants of a steady rate prove a throttle. Equal sequential reads and
/// writes also occur on an HDD and over a link, so equality counts for random I/O only. It does not
/// count beside larger blocks at the sequential bandwidth: an SSD behind a link has both too.
fn is_throttle_proved(
    counted: LimitUnit,
    plateau: &Plateau,
    sizes: &BlockSizeComparison,
    both_ways: bool,
) -> bool {
    let random = plateau.to.random;
    match counted {
        LimitUnit::Iops if sizes.same_iops.is_some() => both_ways || plateau.iops() > SEEKS_PER_S,
        LimitUnit::Iops => both_ways && random && !sizes.is_at_bandwidth,
        LimitUnit::Bytes => both_ways && random && sizes.same_bytes.is_some(),
    }
}

fn conclusion(holder: CeilingCause, counted: LimitUnit) -> String {
    let cause = match (holder, counted) {
        (CeilingCause::Throttle, LimitUnit::Iops) => "a throttle of IOPS",
        (CeilingCause::Throttle, LimitUnit::Bytes) => "a throttle of bandwidth",
        (CeilingCause::Device, _) => "the device itself",
        (CeilingCause::Unclear, LimitUnit::Iops) => "a throttle or the device itself",
        (CeilingCause::Unclear, LimitUnit::Bytes) => "a throttle, the link, or the device itself",
    };
    let is_throttle = holder == CeilingCause::Throttle;
    let excluded = if is_throttle { ", not the device" } else { "" };
    format!("{cause}{excluded}")
}

fn direction_noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Trim => "trims",
    }
}

/// Returns the other direction, if its plateau has the same rate.
fn both_ways(plateau: &Plateau, measured: &[CeilingMeasurement]) -> Option<CeilingMeasurement> {
    let own = plateau.to;
    let other = match own.direction {
        Direction::Read => Direction::Write,
        _ => Direction::Read,
    };
    let theirs = plateau::plateau(measured, (other, own.random, own.block_bytes))?;
    is_same(theirs.iops(), plateau.iops(), AS_PROMISED).then_some(theirs.to)
}

/// Names a promised figure near the rate: `gp3 promises 3,000 read IOPS: within 0.3 %`.
fn promised(
    direction: Direction,
    counted: LimitUnit,
    per_s: f64,
    held: &[PromiseCheck],
) -> Option<String> {
    let metrics = match (counted, direction) {
        (LimitUnit::Iops, Direction::Read) => [Metric::ReadIops, Metric::Iops],
        (LimitUnit::Iops, _) => [Metric::WriteIops, Metric::Iops],
        (LimitUnit::Bytes, Direction::Read) => [Metric::ReadBandwidth, Metric::Bandwidth],
        (LimitUnit::Bytes, _) => [Metric::WriteBandwidth, Metric::Bandwidth],
    };
    held.iter().find_map(|held| {
        let mut figures = held.promise.figures.iter();
        let figure = figures.find(|figure| {
            metrics.contains(&figure.metric) && is_same(per_s, figure.per_s, AS_PROMISED)
        })?;
        Some(format!(
            "{} promises {}: within {:.1} %",
            held.promise.title,
            figure.unit.show(figure.per_s),
            100.0 * (per_s / figure.per_s - 1.0).abs()
        ))
    })
}

#[cfg(test)]
mod tests;
