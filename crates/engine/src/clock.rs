//! Clocks, real and simulated.

use crate::process_stops::{LONG_GAP_NS, Stops};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A source of monotonic time in nanoseconds.
pub(crate) trait Clock {
    /// Whether time passes while a worker spins. If not, spinning would never end.
    const GOES_ON: bool = true;

    /// Returns the current time.
    fn now_ns(&self) -> u64;

    /// Returns the time just after the last stop of the process that this clock leaves out, or 0.
    /// An I/O submitted before it was in flight during the stop: its latency is unknown.
    #[inline(always)]
    fn resumed_ns(&self) -> u64 {
        0
    }
}

/// CLOCK_MONOTONIC from an origin common to the run, optionally without `process_stops`. A clock
/// detects a stop at its next reading, so each thread has its own clock.
#[derive(Debug, Clone)]
pub(crate) struct RealClock {
    origin_ns: u64,
    /// Last reading of CLOCK_MONOTONIC.
    read_ns: Cell<u64>,
    /// Sum of the origin and all noticed stops.
    left_out_ns: Cell<u64>,
    resumed_ns: Cell<u64>,
    /// Stops to leave out, and their total length at the last update.
    stops: Option<(Arc<Stops>, Cell<u64>)>,
}

impl RealClock {
    /// Returns a clock that reads 0 now and leaves out no time.
    pub(crate) fn starting_now() -> RealClock {
        let now_ns = monotonic_ns();
        RealClock {
            origin_ns: now_ns,
            read_ns: Cell::new(now_ns),
            left_out_ns: Cell::new(now_ns),
            resumed_ns: Cell::new(0),
            stops: None,
        }
    }

    /// Returns this clock, set to leave out `stops` from now on.
    pub(crate) fn without(mut self, stops: Arc<Stops>) -> RealClock {
        let known_ns = Cell::new(stops.so_far_ns());
        self.stops = Some((stops, known_ns));
        self
    }

    /// Returns the origin on CLOCK_MONOTONIC.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Sleeps until `until_ns`, but no longer than `most`.
    pub(crate) fn sleep_until(&self, until_ns: u64, most: Duration) {
        let left = until_ns.saturating_sub(self.now_ns());
        std::thread::sleep(Duration::from_nanos(left).min(most));
    }

    /// Leaves out the stop, if any, within the `gap_ns` since the last reading.
    #[cold]
    fn leave_out_stops(&self, now_ns: u64, gap_ns: u64) {
        let Some((stops, known_ns)) = &self.stops else {
            return;
        };
        let total_ns = stops.total_ns(now_ns, gap_ns);
        let new_ns = total_ns - known_ns.replace(total_ns);
        if new_ns > 0 {
            // The watching thread measures a stop to one beat. The stop lies within this gap.
            let stop_ns = new_ns.min(gap_ns - 1);
            self.left_out_ns.set(self.left_out_ns.get() + stop_ns);
            // An I/O stamped with this reading was submitted before the stop.
            self.resumed_ns.set(now_ns - self.left_out_ns.get() + 1);
        }
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
        let now_ns = monotonic_ns();
        let gap_ns = now_ns - self.read_ns.replace(now_ns);
        if gap_ns > LONG_GAP_NS {
            self.leave_out_stops(now_ns, gap_ns);
        }
        now_ns - self.left_out_ns.get()
    }

    #[inline(always)]
    fn resumed_ns(&self) -> u64 {
        self.resumed_ns.get()
    }
}

/// Clock of a simulation: it advances only when the event loop sets it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimClock {
    now_ns: Rc<Cell<u64>>,
}

impl SimClock {
    /// Advances the time to `now_ns`, never backwards.
    pub(crate) fn advance_to(&self, now_ns: u64) {
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
