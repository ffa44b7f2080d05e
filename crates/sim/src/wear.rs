//! How fresh a device still is: the part of flash that matters over hours.
//!
//! An empty flash device has blocks to write to; a full one must first move what is still valid in those that it erases. How
//! much faster the former is shrinks as more is written (`fresh`, `fresh_bytes`), down to a level that stays. Discarding what
//! is held takes the same share off.

/// What writes and discards have made of a device. It outlives a run: see [`super::device::SimDevice::wear`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wear {
    /// Bytes written that still tell.
    worn_bytes: f64,
    /// Bytes of the device that hold something, as far as can be told without a map: no more than its capacity.
    held_bytes: u64,
}

impl Wear {
    /// Takes in a write.
    pub(super) fn write(&mut self, bytes: u64, capacity: Option<u64>) {
        self.worn_bytes += bytes as f64;
        self.held_bytes = (self.held_bytes + bytes).min(capacity.unwrap_or(u64::MAX));
    }

    /// Takes in a discard.
    pub(super) fn discard(&mut self, bytes: u64) {
        let left = self.held_bytes.saturating_sub(bytes);
        self.worn_bytes *= left as f64 / self.held_bytes.max(1) as f64;
        self.held_bytes = left;
    }

    /// What is left of a fresh device's gain, from 1 down to 0.
    pub(super) fn freshness(&self, fresh_bytes: u64) -> f64 {
        libm::exp(-self.worn_bytes / fresh_bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarding_everything_makes_it_fresh_in_whatever_steps() {
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
