//! Time, real or simulated.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// A source of monotonic time in nanoseconds.
pub trait Clock {
    /// Whether time goes on while a worker spins. Where it does not, spinning would never end.
    const GOES_ON: bool = true;

    /// Now.
    fn now_ns(&self) -> u64;
}

/// CLOCK_MONOTONIC, counted from an origin that all workers of a run share.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    origin_ns: u64,
}

impl RealClock {
    /// A clock that reads 0 now.
    pub fn starting_now() -> RealClock {
        RealClock {
            origin_ns: monotonic_ns(),
        }
    }

    /// Sleeps until `until_ns`, at most `most`.
    pub fn sleep_until(&self, until_ns: u64, most: Duration) {
        let left = until_ns.saturating_sub(self.now_ns());
        std::thread::sleep(Duration::from_nanos(left).min(most));
    }
}

#[inline(always)]
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Clock for RealClock {
    #[inline(always)]
    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.origin_ns
    }
}

/// The clock of a simulation: it stands still until the event loop moves it.
#[derive(Debug, Clone, Default)]
pub struct SimClock {
    now_ns: Rc<Cell<u64>>,
}

impl SimClock {
    /// Moves time on; never back.
    pub fn advance_to(&self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns.get());
        self.now_ns.set(now_ns.max(self.now_ns.get()));
    }
}

impl Clock for SimClock {
    const GOES_ON: bool = false;

    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }
}
