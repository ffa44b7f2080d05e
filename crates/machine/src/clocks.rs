//! Disturbances of the clocks during a run: suspends of the machine and clock steps.
//!
//! Runs are timed by CLOCK_MONOTONIC. This clock does not advance while the machine is suspended
//! and ignores clock steps, so rates stay right. A suspend affects I/Os in flight and caches; a
//! clock step affects the time of day of each figure.

use crate::sys::linux;
use iosonde_result::bottleneck::verdict;
use iosonde_result::run::Verdict;
use iosonde_result::verdict_cause::VerdictCause;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_BOOTTIME. In a build that measures nothing on this machine, CLOCK_MONOTONIC.
pub const BOOTTIME: ClockId = linux::BOOTTIME;

/// Three clocks at one instant, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// CLOCK_MONOTONIC: time that the machine was awake.
    pub monotonic_ns: i128,
    /// CLOCK_BOOTTIME: the same including suspends.
    pub boottime_ns: i128,
    /// CLOCK_REALTIME: the time of day.
    pub realtime_ns: i128,
}

/// Shorter sleeps are the time between two clock readings.
const LEAST_SLEEP_NS: i128 = 50_000_000;
/// Smaller steps are corrections by a time server.
const LEAST_STEP_NS: i128 = 500_000_000;
/// Maximum rate at which the kernel slews the clock, in parts per million.
const MOST_SLEW_PPM: i128 = 500;

impl Clocks {
    /// This machine's clocks now.
    pub fn now() -> Self {
        let read = |clock: ClockId| {
            let time = clock_gettime(clock);
            i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
        };
        Self {
            monotonic_ns: read(ClockId::Monotonic),
            boottime_ns: read(BOOTTIME),
            realtime_ns: read(ClockId::Realtime),
        }
    }

    /// The disturbances since an earlier reading.
    pub fn disturbances_since(&self, before: &Self) -> Vec<Verdict> {
        let awake_ns = self.monotonic_ns - before.monotonic_ns;
        let asleep_ns = self.boottime_ns - before.boottime_ns - awake_ns;
        let step_ns = self.realtime_ns - before.realtime_ns - awake_ns - asleep_ns;
        let mut verdicts = Vec::new();
        if asleep_ns > LEAST_SLEEP_NS {
            verdicts.push(verdict(VerdictCause::MachineSuspended {
                suspended_ns: asleep_ns as u64,
            }));
        }
        if step_ns.abs() > LEAST_STEP_NS + awake_ns * MOST_SLEW_PPM / 1_000_000 {
            verdicts.push(verdict(VerdictCause::ClockSet {
                step_ns: step_ns as i64,
            }));
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run::VerdictKind;

    const SECOND: i128 = 1_000_000_000;

    fn after(awake: i128, asleep: i128, step: i128) -> Vec<Verdict> {
        let before = Clocks {
            monotonic_ns: 5 * SECOND,
            boottime_ns: 7 * SECOND,
            realtime_ns: 1_795_225_508 * SECOND,
        };
        let now = Clocks {
            monotonic_ns: before.monotonic_ns + awake,
            boottime_ns: before.boottime_ns + awake + asleep,
            realtime_ns: before.realtime_ns + awake + asleep + step,
        };
        now.disturbances_since(&before)
    }

    #[test]
    fn steady_clocks_report_no_disturbance() {
        assert_eq!(after(60 * SECOND, 0, 0), []);
        assert_eq!(after(60 * SECOND, 1_000_000, 3_000_000), []);
        assert_eq!(after(3600 * SECOND, 0, SECOND), [], "slewed for an hour");
        let now = Clocks::now();
        assert_eq!(Clocks::now().disturbances_since(&now), []);
    }

    #[test]
    fn suspend_and_clock_steps_are_distinguished() {
        let slept = after(60 * SECOND, 90 * SECOND, 0);
        assert_eq!(slept.len(), 1);
        assert_eq!(slept[0].kind, VerdictKind::ClockDisturbed);
        let suspended_ns = 90_000_000_000;
        assert_eq!(
            slept[0].cause,
            Some(VerdictCause::MachineSuspended { suspended_ns })
        );
        let set = after(60 * SECOND, 0, -3600 * SECOND);
        assert_eq!(set.len(), 1);
        let step_ns = -3_600_000_000_000;
        assert_eq!(set[0].cause, Some(VerdictCause::ClockSet { step_ns }));
        assert_eq!(after(SECOND, SECOND, 2 * SECOND).len(), 2);
    }
}
