//! Injected faults: the I/Os that fail or move only part of their bytes.

use super::spec::{Failing, Faults};
use iosonde_job::plan::Direction;
use iosonde_workload::rng::Rng;

/// Short transfers end at a multiple of this.
pub(super) const SECTOR: u64 = 512;

/// Decides the fault of each I/O in turn.
#[derive(Debug)]
pub(super) struct FaultInjector {
    rules: Faults,
    rng: Rng,
    ios: u64,
}

impl FaultInjector {
    pub(super) fn new(rules: Faults, rng: Rng) -> FaultInjector {
        FaultInjector { rules, rng, ios: 0 }
    }

    /// The bytes that an I/O moves, or the errno of its failure.
    pub(super) fn io(
        &mut self,
        direction: Direction,
        address: u64,
        bytes: u64,
    ) -> Result<u64, i32> {
        self.ios += 1;
        if let Some(Failing { what, errno }) = self.rules.at
            && what == self.ios
        {
            return Err(errno);
        }
        if let Some(Failing {
            what: (from, to),
            errno,
        }) = self.rules.range
            && address < to
            && from < address + bytes
        {
            return Err(errno);
        }
        draw_fault(&mut self.rng, self.rules.rate[direction])?;
        Ok(self.shorten(bytes))
    }

    /// Whether a flush succeeds.
    pub(super) fn flush(&mut self) -> Result<(), i32> {
        draw_fault(&mut self.rng, self.rules.flush_rate)
    }

    fn shorten(&mut self, bytes: u64) -> u64 {
        if self.rules.short == 0.0 || bytes <= SECTOR || self.rng.unit() >= self.rules.short {
            return bytes;
        }
        SECTOR * (1 + self.rng.below(bytes.div_ceil(SECTOR) - 1))
    }
}

fn draw_fault(rng: &mut Rng, rule: Option<Failing<f64>>) -> Result<(), i32> {
    match rule {
        Some(Failing { what, errno }) if rng.unit() < what => Err(errno),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_workload::rng::Rng;
    use proptest::prelude::*;

    fn fault_injector(rules: Faults) -> FaultInjector {
        FaultInjector::new(rules, Rng::new(1))
    }

    #[test]
    fn fault_at_an_index_fails_only_that_io() {
        let at = Some(Failing { what: 3, errno: 28 });
        let mut fault_injector = fault_injector(Faults {
            at,
            ..Faults::default()
        });
        let verdicts: Vec<_> = (0..5)
            .map(|_| fault_injector.io(Direction::Write, 0, 512))
            .collect();
        assert_eq!(verdicts, [Ok(512), Ok(512), Err(28), Ok(512), Ok(512)]);
    }

    #[test]
    fn fault_range_fails_overlapping_io() {
        let range = Some(Failing {
            what: (1000, 2000),
            errno: 5,
        });
        let mut fault_injector = fault_injector(Faults {
            range,
            ..Faults::default()
        });
        assert_eq!(fault_injector.io(Direction::Read, 500, 500), Ok(500));
        assert_eq!(fault_injector.io(Direction::Read, 500, 501), Err(5));
        assert_eq!(fault_injector.io(Direction::Read, 1999, 1), Err(5));
        assert_eq!(fault_injector.io(Direction::Read, 2000, 1), Ok(1));
    }

    #[test]
    fn fault_rate_fails_the_given_share() {
        let mut rules = Faults::default();
        rules.rate.read = Some(Failing {
            what: 0.1,
            errno: 5,
        });
        let mut fault_injector = fault_injector(rules);
        let failed = (0..100_000)
            .filter(|_| fault_injector.io(Direction::Read, 0, 512).is_err())
            .count();
        // The limit is five standard deviations of a binomial.
        assert!(failed.abs_diff(10_000) < 475, "{failed}");
        assert!((0..1000).all(|_| fault_injector.io(Direction::Write, 0, 512).is_ok()));
    }

    proptest! {
        #[test]
        fn short_io_moves_some_whole_sectors(bytes in 1u64..100_000, seed: u64) {
            let rules = Faults { short: 1.0, ..Faults::default() };
            let mut fault_injector = FaultInjector::new(rules, Rng::new(seed));
            let moved = fault_injector.io(Direction::Read, 0, bytes).unwrap();
            if bytes <= SECTOR {
                prop_assert_eq!(moved, bytes);
            } else {
                prop_assert!(moved > 0 && moved < bytes && moved.is_multiple_of(SECTOR));
            }
        }
    }
}
