//! [`Plateau`]: the measurements of a pattern that have its maximum rate.

use super::{APART, CeilingMeasurement, LARGE_BYTES, SAME, STEADY, is_same};
use crate::words;
use iosonde_job::plan::Direction;

/// Plateau of a pattern: neighbouring depths of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plateau {
    /// Cells with the fewest and with the most I/Os in flight.
    pub(super) from: CeilingMeasurement,
    pub(super) to: CeilingMeasurement,
}

impl Plateau {
    /// Returns the known maximum if one depth gave it, else the mean of both ends.
    pub(super) fn iops(&self) -> f64 {
        match self.measured_maximum() {
            Some((iops, _)) => iops,
            None => (self.from.plateau_iops + self.to.plateau_iops) / 2.0,
        }
    }

    /// The known maximum that one depth gave, with its I/Os in flight.
    fn measured_maximum(&self) -> Option<(f64, u32)> {
        let mut ends = [self.from, self.to].into_iter();
        ends.find_map(|end| Some((end.plateau_iops, end.maximum_in_flight?)))
    }

    pub(super) fn bytes(&self) -> f64 {
        self.iops() * self.to.block_bytes as f64
    }

    pub(super) fn is_steady(&self) -> bool {
        let spread =
            |measured: &CeilingMeasurement| measured.spread.is_some_and(|spread| spread <= STEADY);
        spread(&self.from) || spread(&self.to)
    }

    pub(super) fn is_large(&self) -> bool {
        self.to.block_bytes >= LARGE_BYTES
    }

    /// Formats `3.00k IOPS with 8 and with 64 I/Os in flight, at 8.0 times the latency of 8`. If
    /// the rates of both depths differ in their digits, each depth has its own: `753k IOPS with 64
    /// and 763k IOPS with 256 I/Os in flight`. If one is above the known maximum, the maximum
    /// stands for both: `402 IOPS with 64 I/Os in flight, about the same with 32 to 128` if it was
    /// measured at another depth, `about 402 IOPS with 32 to 128 I/Os in flight` if it was measured
    /// at one of both or is a mean of depths.
    pub(super) fn words(&self) -> String {
        let rate = |iops: f64| match self.is_large() {
            true => words::bandwidth(iops * self.to.block_bytes as f64),
            false => format!("{} IOPS", words::iops_text(iops)),
        };
        let is_above_maximum = |measured: &CeilingMeasurement| {
            let CeilingMeasurement {
                iops, plateau_iops, ..
            } = *measured;
            iops > plateau_iops && rate(iops) != rate(plateau_iops)
        };
        let (first, last) = (rate(self.from.iops), rate(self.to.iops));
        let (from, to) = (self.from.in_flight, self.to.in_flight);
        let rates = if is_above_maximum(&self.from) || is_above_maximum(&self.to) {
            let most = rate(self.iops());
            let maximum_in_flight = self.measured_maximum().map(|(_, at)| at);
            match maximum_in_flight.filter(|at| ![from, to].contains(at)) {
                Some(at) => {
                    format!("{most} with {at} I/Os in flight, about the same with {from} to {to}")
                }
                None => format!("about {most} with {from} to {to} I/Os in flight"),
            }
        } else if first == last {
            format!("{first} with {from} and with {to} I/Os in flight")
        } else {
            format!("{first} with {from} and {last} with {to} I/Os in flight")
        };
        format!(
            "{rates}, at {} times the latency of {from}",
            words::three_digits(self.to.latency_ns / self.from.latency_ns.max(1.0)),
        )
    }
}

/// Returns the cells at the maximum rate of a pattern, if their depths lie far enough apart and
/// latency rises with depth.
pub(super) fn plateau(
    measured: &[CeilingMeasurement],
    (direction, random, block_bytes): (Direction, bool, u64),
) -> Option<Plateau> {
    let of_pattern = measured.iter().filter(|each| {
        (each.direction, each.random, each.block_bytes) == (direction, random, block_bytes)
    });
    let cells: Vec<&CeilingMeasurement> = of_pattern.collect();
    let most = cells.iter().map(|each| each.plateau_iops);
    let most = most.fold(0.0, f64::max);
    let mut at_most: Vec<&CeilingMeasurement> = cells
        .into_iter()
        .filter(|each| is_same(each.plateau_iops, most, SAME))
        .collect();
    at_most.sort_by_key(|each| each.in_flight);
    let (from, to) = (**at_most.first()?, **at_most.last()?);
    let deeper = f64::from(to.in_flight) / f64::from(from.in_flight.max(1));
    let longer = to.latency_ns / from.latency_ns.max(1.0);
    (deeper >= APART && longer >= 0.8 * deeper).then_some(Plateau { from, to })
}
