//! Time, real or simulated.

use crate::worker::process_stops::{LONG_GAP_NS, Stops};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A source of monotonic time in nanoseconds.
pub trait Clock {
    /// Whether time goes on while a worker spins. Where it does not, spinning would never end.
    const GOES_ON: bool = true;

    /// Now.
    fn now_ns(&self) -> u64;

    /// Just after the process went on from the last stop that this clock leaves out; 0 where there was none. An I/O that was
    /// submitted before was in flight in the stop: how long it took is not known.
    #[inline(always)]
    fn resumed_ns(&self) -> u64 {
        0
    }
}

/// CLOCK_MONOTONIC, counted from an origin that all workers of a run share. It may leave out the time in which the process was
/// stopped (`crate::worker::process_stops`): that time is noticed by each clock at its next reading, so each thread has a clock of its own.
#[derive(Debug, Clone)]
pub struct RealClock {
    origin_ns: u64,
    /// The last reading of CLOCK_MONOTONIC.
    read_ns: Cell<u64>,
    /// The origin and all stops that were noticed.
    left_out_ns: Cell<u64>,
    resumed_ns: Cell<u64>,
    /// Stops that are left out, and their length when they were noticed.
    stops: Option<(Arc<Stops>, Cell<u64>)>,
}

impl RealClock {
    /// A clock that reads 0 now, and counts all time.
    pub fn starting_now() -> RealClock {
        let now_ns = monotonic_ns();
        RealClock {
            origin_ns: now_ns,
            read_ns: Cell::new(now_ns),
            left_out_ns: Cell::new(now_ns),
            resumed_ns: Cell::new(0),
            stops: None,
        }
    }

    /// The same clock; from now on it leaves out these stops.
    pub(crate) fn without(mut self, stops: Arc<Stops>) -> RealClock {
        let known_ns = Cell::new(stops.so_far_ns());
        self.stops = Some((stops, known_ns));
        self
    }

    /// The origin on CLOCK_MONOTONIC.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Sleeps until `until_ns`, at most `most`.
    pub fn sleep_until(&self, until_ns: u64, most: Duration) {
        let left = until_ns.saturating_sub(self.now_ns());
        std::thread::sleep(Duration::from_nanos(left).min(most));
    }

    /// The clock was not read for `gap_ns`: leaves out the stop in it, if there was one.
    #[cold]
    fn leave_out_stops(&self, now_ns: u64, gap_ns: u64) {
        let Some((stops, known_ns)) = &self.stops else {
            return;
        };
        let total_ns = stops.total_ns(now_ns, gap_ns);
        let new_ns = total_ns - known_ns.replace(total_ns);
        if new_ns > 0 {
            // The watching thread knows the stop to one beat; it lay within this gap, and time goes on after it.
            let stop_ns = new_ns.min(gap_ns - 1);
            self.left_out_ns.set(self.left_out_ns.get() + stop_ns);
            // An I/O with this reading as its time was submitted before the stop.
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
