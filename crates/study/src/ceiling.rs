//! What a rate that does not rise any more stands at: a throttle's bound, or what the device can do.
//!
//! From inside of one run the two look alike: the rate is flat, and latency rises with the number of I/Os in flight (Little's
//! law leaves it nothing else). What tells them apart is what does *not* change the rate. A throttle counts I/Os or bytes and
//! knows nothing of what they cost: the same IOPS for blocks of another size, the same bandwidth for blocks of another size,
//! the same for reads and for writes, hardly any change from moment to moment, and the figure that a provider publishes. A
//! device takes longer for larger blocks, and another time for writes than for reads.
//!
//! Everything here is pure: the rules are asked about described measurements.

use crate::limits::{Held, Metric};
use crate::probe::{Figure, Knee, Phase, PhaseRun};
use crate::saturation::Cell;
use crate::sweep::CurveResult;
use crate::words;
use iosonde_job::plan::Direction;
use iosonde_result::run::VerdictKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rates that differ by no more than this share are the same.
const SAME: f64 = 0.03;
/// As near as this to a promised figure is at it.
const AS_PROMISED: f64 = 0.02;
/// A plateau reaches over so many times the I/Os in flight, and blocks that are to tell something differ by as much.
const APART: f64 = 4.0;
/// A throttle lets the rate vary by no more than this, as a standard deviation from moment to moment.
const STEADY: f64 = 0.03;
/// Blocks of this size and more are counted by bandwidth.
const LARGE_BYTES: u64 = 64 << 10;
/// Below so many I/Os a second, the time that a head takes to get there is the same for all small blocks, too.
const SEEKS_PER_S: f64 = 500.0;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Which way.
    pub direction: Direction,
    /// Whether offsets were random.
    pub random: bool,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// I/Os in flight, of all jobs.
    pub in_flight: u32,
    /// I/Os per second.
    pub iops: f64,
    /// Standard deviation from moment to moment, as a share of the rate.
    pub spread: Option<f64>,
    /// Mean latency in nanoseconds.
    pub latency_ns: f64,
    /// Whether a throttle was seen to hold it back.
    pub throttled: bool,
}

/// What is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bytes,
}

/// Who holds the rate there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A throttle: of a provider, an array, a hypervisor.
    Throttle,
    /// The device itself.
    Device,
    /// It cannot be told.
    Unclear,
}

/// A rate that more I/Os in flight do not raise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Of reads or of writes.
    pub direction: Direction,
    /// Whether offsets were random.
    pub random: bool,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// What is bounded, as far as it shows.
    pub counted: Counted,
    /// Where it stands: I/Os or bytes per second.
    pub per_s: f64,
    /// Who holds it there.
    pub holder: Holder,
    /// What tells so, in one sentence.
    pub evidence: String,
}

/// A pattern's flat top.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plateau {
    /// The cell with the fewest I/Os in flight, and the one with the most.
    from: Seen,
    to: Seen,
}

impl Plateau {
    fn iops(&self) -> f64 {
        (self.from.iops + self.to.iops) / 2.0
    }

    fn bytes(&self) -> f64 {
        self.iops() * self.to.block_bytes as f64
    }

    fn is_steady(&self) -> bool {
        let spread = |seen: &Seen| seen.spread.is_some_and(|spread| spread <= STEADY);
        spread(&self.from) || spread(&self.to)
    }

    fn is_large(&self) -> bool {
        self.to.block_bytes >= LARGE_BYTES
    }

    /// `3.00k IOPS with 8 and with 64 in flight, which wait 8.0 times as long`.
    fn words(&self) -> String {
        let rate = match self.is_large() {
            true => words::bandwidth(self.bytes()),
            false => format!("{} IOPS", words::iops(self.iops())),
        };
        format!(
            "{rate} with {} and with {} in flight, which wait {} times as long",
            self.from.in_flight,
            self.to.in_flight,
            words::three_digits(self.to.latency_ns / self.from.latency_ns.max(1.0)),
        )
    }
}

/// The flat tops among these measurements, one for each direction, order and block size that has one. `held` is what was
/// promised.
pub fn ceilings(seen: &[Seen], held: &[Held]) -> Vec<Ceiling> {
    let mut patterns: Vec<(Direction, bool, u64)> = Vec::new();
    for each in seen {
        let pattern = (each.direction, each.random, each.block_bytes);
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let found = patterns.into_iter().filter_map(|pattern| {
        let plateau = plateau(seen, pattern)?;
        Some(ceiling(&plateau, seen, held))
    });
    found.collect()
}

/// The flat tops of the patterns of a probe, with what it was held against. What something on this side held back is none of the
/// target's.
pub fn of_probe(
    knees: &[Knee],
    figures: &[Figure],
    runs: &[PhaseRun],
    held: &[Held],
) -> Vec<Ceiling> {
    let limit = |phase: Phase| {
        let run = runs.iter().find(|run| run.phase == phase)?;
        Some(run.result.bottleneck()?.kind)
    };
    let is_targets = |phase: Phase| !limit(phase).is_some_and(is_on_this_side);
    let of_knees = knees.iter().flat_map(|knee| {
        let cells = knee.saturation.cells.iter();
        let cells = cells.map(|cell| (knee.phase.block_bytes(), cell));
        let second = knee.second_size.iter();
        let second = second.map(|size| (size.block_bytes, &size.cell));
        cells.chain(second).map(|(block_bytes, cell)| {
            let phase = knee.phase;
            let seen = seen(phase.direction(), phase.is_random(), block_bytes, cell);
            (phase, seen)
        })
    });
    // What goes through the page cache is another pattern.
    let of_figures = figures
        .iter()
        .filter(|figure| figure.phase != Phase::SyncedWrite)
        .map(|figure| (figure.phase, of_figure(figure, limit(figure.phase))));
    let all = of_knees.chain(of_figures);
    let seen: Vec<Seen> = all
        .filter(|(phase, _)| is_targets(*phase))
        .map(|(_, seen)| seen)
        .collect();
    ceilings(&seen, held)
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

fn of_figure(figure: &Figure, limit: Option<VerdictKind>) -> Seen {
    Seen {
        direction: figure.phase.direction(),
        random: figure.phase.is_random(),
        block_bytes: figure.block_bytes,
        in_flight: figure.iodepth,
        iops: figure.iops.mean,
        spread: figure.iops.spread,
        latency_ns: figure.latency.mean_ns,
        throttled: limit.is_some_and(VerdictKind::is_throttle),
    }
}

/// From how many I/Os in flight on the rate of a knee's pattern is the same.
pub(crate) fn flat_from(knee: &Knee) -> Option<u32> {
    let phase = knee.phase;
    let pattern = (phase.direction(), phase.is_random(), phase.block_bytes());
    let cells = knee.saturation.cells.iter();
    let seen: Vec<Seen> = cells
        .map(|cell| seen(pattern.0, pattern.1, pattern.2, cell))
        .collect();
    plateau(&seen, pattern).map(|plateau| plateau.from.in_flight)
}

/// Those of a sweep on one target: one direction each, and blocks of one size.
pub fn of_sweep(curves: &[CurveResult]) -> Vec<Ceiling> {
    let cells = curves.iter().flat_map(|curve| {
        let random = curve.rw.starts_with("rand");
        let direction = match curve.rw.trim_start_matches("rand") {
            "read" => Some(Direction::Read),
            "write" => Some(Direction::Write),
            _ => None,
        };
        let cells = curve.saturation.iter().flat_map(|found| &found.cells);
        cells.filter_map(move |cell| Some(seen(direction?, random, curve.block_bytes, cell)))
    });
    ceilings(&cells.collect::<Vec<_>>(), &[])
}

fn seen(direction: Direction, random: bool, block_bytes: u64, cell: &Cell) -> Seen {
    Seen {
        direction,
        random,
        block_bytes,
        in_flight: cell.jobs * cell.iodepth,
        iops: cell.iops.mean,
        spread: cell.iops.spread,
        latency_ns: cell.latency.mean_ns,
        throttled: false,
    }
}

impl Ceiling {
    /// `random reads of 4 KiB`.
    pub fn name(&self) -> String {
        let order = if self.random { "random" } else { "sequential" };
        let size = words::bytes(self.block_bytes);
        format!("{order} {} of {size}", noun(self.direction))
    }
}

fn is_same(a: f64, b: f64, share: f64) -> bool {
    a > 0.0 && b > 0.0 && (a / b - 1.0).abs() <= share
}

/// The cells of a pattern that reach its most, if they lie far enough apart and latency rises between them as the I/Os in
/// flight do.
fn plateau(
    seen: &[Seen],
    (direction, random, block_bytes): (Direction, bool, u64),
) -> Option<Plateau> {
    let of_pattern = seen.iter().filter(|each| {
        (each.direction, each.random, each.block_bytes) == (direction, random, block_bytes)
    });
    let cells: Vec<&Seen> = of_pattern.collect();
    let most = cells.iter().map(|each| each.iops).fold(0.0, f64::max);
    let mut at_most: Vec<&Seen> = cells
        .into_iter()
        .filter(|each| is_same(each.iops, most, SAME))
        .collect();
    at_most.sort_by_key(|each| each.in_flight);
    let (from, to) = (**at_most.first()?, **at_most.last()?);
    let deeper = f64::from(to.in_flight) / f64::from(from.in_flight.max(1));
    let longer = to.latency_ns / from.latency_ns.max(1.0);
    (deeper >= APART && longer >= 0.8 * deeper).then_some(Plateau { from, to })
}

fn ceiling(plateau: &Plateau, seen: &[Seen], held: &[Held]) -> Ceiling {
    let own = plateau.to;
    let sizes = across_sizes(plateau, seen);
    let counted = match (sizes.same_iops, sizes.same_bytes) {
        (Some(_), _) => Counted::Iops,
        (None, Some(_)) => Counted::Bytes,
        (None, None) if plateau.is_large() => Counted::Bytes,
        (None, None) => Counted::Iops,
    };
    let per_s = match counted {
        Counted::Iops => plateau.iops(),
        Counted::Bytes => plateau.bytes(),
    };
    let mut told = vec![plateau.words()];
    told.extend(sizes.words());
    let both_ways = both_ways(plateau, seen);
    if let Some(other) = &both_ways {
        told.push(format!("{} reach the same", noun(other.direction)));
    }
    let throttled = seen.iter().any(|each| {
        let is_of_pattern = (each.direction, each.random, each.block_bytes)
            == (own.direction, own.random, own.block_bytes);
        is_of_pattern && each.throttled
    });
    let promised = promised(own.direction, counted, per_s, held);
    told.extend(promised.clone());
    let holder = if promised.is_some() || throttled {
        Holder::Throttle
    } else if sizes.falls {
        Holder::Device
    } else if !plateau.is_steady() {
        Holder::Unclear
    } else if is_told(counted, plateau, &sizes, both_ways.is_some()) {
        Holder::Throttle
    } else {
        Holder::Unclear
    };
    told.push(conclusion(holder, counted).to_owned());
    Ceiling {
        direction: own.direction,
        random: own.random,
        block_bytes: own.block_bytes,
        counted,
        per_s,
        holder,
        evidence: told.join("; "),
    }
}

/// Whether what does not change a steady rate tells that it is a throttle's. Reads and writes of a disk that turns are as fast as
/// each other in sequence, and so they are over a link; at random they are on neither.
fn is_told(counted: Counted, plateau: &Plateau, sizes: &Sizes, both_ways: bool) -> bool {
    let random = plateau.to.random;
    match counted {
        Counted::Iops if sizes.same_iops.is_some() => both_ways || plateau.iops() > SEEKS_PER_S,
        Counted::Iops => both_ways && random,
        Counted::Bytes => both_ways && random && sizes.same_bytes.is_some(),
    }
}

fn conclusion(holder: Holder, counted: Counted) -> &'static str {
    match (holder, counted) {
        (Holder::Throttle, Counted::Iops) => "a throttle of IOPS, not the device",
        (Holder::Throttle, Counted::Bytes) => "a throttle of bandwidth, not the device",
        (Holder::Device, _) => "the device itself",
        (Holder::Unclear, Counted::Iops) => "a throttle or the device itself",
        (Holder::Unclear, Counted::Bytes) => "a throttle, the link, or the device itself",
    }
}

fn noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Trim => "trims",
    }
}

/// What blocks of other sizes reach in the same direction and order.
#[derive(Debug, Default)]
struct Sizes {
    /// The size with the same IOPS.
    same_iops: Option<u64>,
    /// The size with the same bandwidth.
    same_bytes: Option<u64>,
    /// Larger blocks are fewer, but more bytes: each takes longer, as on a device.
    falls: bool,
    /// What was seen of the size that tells it.
    size: Option<Seen>,
}

impl Sizes {
    fn words(&self) -> Option<String> {
        let seen = self.size?;
        let size = words::bytes(seen.block_bytes);
        let bytes = seen.iops * seen.block_bytes as f64;
        Some(if self.same_iops.is_some() {
            format!(
                "blocks of {size} reach the same {} IOPS",
                words::iops(seen.iops)
            )
        } else if self.same_bytes.is_some() {
            format!(
                "blocks of {size} reach the same {}",
                words::bandwidth(bytes)
            )
        } else {
            format!(
                "blocks of {size} reach {} IOPS and {}: the larger a block, the longer it takes",
                words::iops(seen.iops),
                words::bandwidth(bytes)
            )
        })
    }
}

fn across_sizes(plateau: &Plateau, seen: &[Seen]) -> Sizes {
    let own = plateau.to;
    let ratio = |each: &Seen| {
        let (a, b) = (each.block_bytes as f64, own.block_bytes as f64);
        (a / b).max(b / a)
    };
    // As deep as the flat top is: else the other size may not have been asked for all it can.
    let others = seen.iter().filter(|each| {
        each.direction == own.direction
            && each.random == own.random
            && each.in_flight >= plateau.from.in_flight
            && ratio(each) >= APART
    });
    // The deepest of each size; of sizes the nearest.
    let mut others: Vec<&Seen> = others.collect();
    others.sort_by(|a, b| {
        let by_size = ratio(a).total_cmp(&ratio(b));
        by_size.then(b.in_flight.cmp(&a.in_flight))
    });
    let same_iops = |each: &Seen| is_same(each.iops, plateau.iops(), SAME);
    let same_bytes = |each: &Seen| {
        let bytes = each.iops * each.block_bytes as f64;
        is_same(bytes, plateau.bytes(), SAME)
    };
    // Where one bound ends another begins: of many sizes one that stands at the same tells.
    let telling = others
        .iter()
        .find(|each| same_iops(each) || same_bytes(each));
    let Some(other) = telling.or(others.first()) else {
        return Sizes::default();
    };
    let same_iops = same_iops(other).then_some(other.block_bytes);
    let same_bytes = same_bytes(other).then_some(other.block_bytes);
    Sizes {
        same_iops,
        same_bytes,
        falls: same_iops.is_none() && same_bytes.is_none(),
        size: Some(**other),
    }
}

/// The other direction, where its flat top is as high.
fn both_ways(plateau: &Plateau, seen: &[Seen]) -> Option<Seen> {
    let own = plateau.to;
    let other = match own.direction {
        Direction::Read => Direction::Write,
        _ => Direction::Read,
    };
    let theirs = self::plateau(seen, (other, own.random, own.block_bytes))?;
    is_same(theirs.iops(), plateau.iops(), AS_PROMISED).then_some(theirs.to)
}

/// `gp3 promises 3,000 read IOPS: within 0.3 %`.
fn promised(direction: Direction, counted: Counted, per_s: f64, held: &[Held]) -> Option<String> {
    let metrics = match (counted, direction) {
        (Counted::Iops, Direction::Read) => [Metric::ReadIops, Metric::Iops],
        (Counted::Iops, _) => [Metric::WriteIops, Metric::Iops],
        (Counted::Bytes, Direction::Read) => [Metric::ReadBandwidth, Metric::Bandwidth],
        (Counted::Bytes, _) => [Metric::WriteBandwidth, Metric::Bandwidth],
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
