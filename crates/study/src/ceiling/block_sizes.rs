//! [`BlockSizeComparison`]: rates of other block sizes, which tell what a limit counts.

use super::plateau::Plateau;
use super::{APART, CeilingMeasurement, SAME, direction_noun, is_same};
use crate::words;
use iosonde_job::plan::Direction;

/// Rates of other block sizes in the same direction and order.
#[derive(Debug, Default)]
pub(super) struct BlockSizeComparison {
    /// Block size with the same IOPS.
    pub(super) same_iops: Option<u64>,
    /// Block size with the same bandwidth.
    pub(super) same_bytes: Option<u64>,
    /// Larger blocks have fewer IOPS but more bandwidth: each takes longer, as on a device.
    pub(super) falls: bool,
    /// The other block size reaches the bandwidth of sequential I/O. Its lower IOPS decide nothing:
    /// a throttle of IOPS beside a limit of bandwidth looks like a device.
    pub(super) is_at_bandwidth: bool,
    /// Measurement of the block size that decides.
    size: Option<CeilingMeasurement>,
}

impl BlockSizeComparison {
    /// Describes the block size that decides. `direction` is that of all measurements.
    pub(super) fn words(&self, direction: Direction) -> Option<String> {
        let measured = self.size?;
        let size = words::bytes(measured.block_bytes);
        let bytes = measured.iops * measured.block_bytes as f64;
        Some(if self.same_iops.is_some() {
            format!(
                "blocks of {size} reach the same {} IOPS",
                words::iops_text(measured.iops)
            )
        } else if self.same_bytes.is_some() {
            format!(
                "blocks of {size} reach the same {}",
                words::bandwidth(bytes)
            )
        } else {
            let reason = match self.is_at_bandwidth {
                true => format!(
                    ", as sequential {} do: bandwidth limits them",
                    direction_noun(direction)
                ),
                false => ": latency grows with the block size".to_owned(),
            };
            format!(
                "blocks of {size} reach {} IOPS and {}{reason}",
                words::iops_text(measured.iops),
                words::bandwidth(bytes)
            )
        })
    }
}

/// Compares the plateau with measurements of other block sizes.
pub(super) fn across_sizes(
    plateau: &Plateau,
    measured: &[CeilingMeasurement],
) -> BlockSizeComparison {
    let own = plateau.to;
    let ratio = |each: &CeilingMeasurement| {
        let (a, b) = (each.block_bytes as f64, own.block_bytes as f64);
        (a / b).max(b / a)
    };
    // At a shallower depth than the plateau, the other size may not be saturated.
    let others = measured.iter().filter(|each| {
        each.direction == own.direction
            && each.random == own.random
            && each.in_flight >= plateau.from.in_flight
            && ratio(each) >= APART
    });
    // Of each size the deepest first, of all sizes the nearest first.
    let mut others: Vec<&CeilingMeasurement> = others.collect();
    others.sort_by(|a, b| {
        let by_size = ratio(a).total_cmp(&ratio(b));
        by_size.then(b.in_flight.cmp(&a.in_flight))
    });
    let same_iops = |each: &CeilingMeasurement| is_same(each.iops, plateau.iops(), SAME);
    let same_bytes = |each: &CeilingMeasurement| {
        let bytes = each.iops * each.block_bytes as f64;
        is_same(bytes, plateau.bytes(), SAME)
    };
    // A byte limit may hide an IOPS limit at some sizes, so any size with an equal rate decides.
    let telling = others
        .iter()
        .find(|each| same_iops(each) || same_bytes(each));
    let Some(other) = telling.or(others.first()) else {
        return BlockSizeComparison::default();
    };
    let same_iops = same_iops(other).then_some(other.block_bytes);
    let same_bytes = same_bytes(other).then_some(other.block_bytes);
    let is_other_rate = same_iops.is_none() && same_bytes.is_none();
    let is_at_bandwidth = is_other_rate && own.random && is_at_bandwidth(other, measured);
    BlockSizeComparison {
        same_iops,
        same_bytes,
        falls: is_other_rate && !is_at_bandwidth,
        is_at_bandwidth,
        size: Some(**other),
    }
}

/// Whether a measurement has the highest bandwidth of sequential I/O in its direction.
fn is_at_bandwidth(other: &CeilingMeasurement, measured: &[CeilingMeasurement]) -> bool {
    let bytes = |each: &CeilingMeasurement| each.iops * each.block_bytes as f64;
    let sequential = measured
        .iter()
        .filter(|each| !each.random && each.direction == other.direction);
    let most = sequential.map(bytes).fold(0.0, f64::max);
    is_same(bytes(other), most, SAME)
}
