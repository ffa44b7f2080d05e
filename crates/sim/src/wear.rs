//! Wear of a flash device: the loss of write speed over hours of writing.
//!
//! An empty flash device has erased blocks to write to. A full device must first move the valid
//! data out of the blocks that it erases. The gain of an empty device shrinks exponentially with
//! the bytes written (`fresh`, `fresh_bytes`), down to a steady level. Discarding a share of the
//! held data reduces the wear by the same share.

/// The effect of earlier writes and discards on a device. The wear outlives a run: see
/// [`super::device::SimDevice::wear`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wear {
    /// Bytes written that still slow the device down.
    worn_bytes: f64,
    /// Bytes of the device that hold data, at most its capacity. This is an estimate: without a
    /// map, overwrites count as new data.
    held_bytes: u64,
}

impl Wear {
    pub(super) fn write(&mut self, bytes: u64, capacity: Option<u64>) {
        self.worn_bytes += bytes as f64;
        self.held_bytes = (self.held_bytes + bytes).min(capacity.unwrap_or(u64::MAX));
    }

    pub(super) fn discard(&mut self, bytes: u64) {
        let left = self.held_bytes.saturating_sub(bytes);
        self.worn_bytes *= left as f64 / self.held_bytes.max(1) as f64;
        self.held_bytes = left;
    }

    /// The remaining share of a fresh device's gain, from 1 down to 0.
    pub(super) fn freshness(&self, fresh_bytes: u64) -> f64 {
        libm::exp(-self.worn_bytes / fresh_bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_discard_restores_freshness_in_any_steps() {
        for step in [100, 10, 1] {
            let mut wear = Wear::default();
            for _ in 0..7 {
                wear.write(100, Some(100));
            }
            assert!((wear.freshness(350) - libm::exp(-2.0)).abs() < 1e-12);
            (0..50 / step.min(50)).for_each(|_| wear.discard(step.min(50)));
            assert!(
                (wear.freshness(350) - libm::exp(-1.0)).abs() < 1e-12,
                "half of it"
            );
            (0..100 / step).for_each(|_| wear.discard(step));
            assert_eq!(wear.freshness(350), 1.0);
        }
    }
}
