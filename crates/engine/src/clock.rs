//! Clocks, real and simulated.

mod counter_clock;

use crate::process_stops::{LONG_GAP_NS, Stops};
use crate::sys::time_stamp;
use counter_clock::CounterClock;
use iosonde_machine::proc_root::System;
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
    /// Read instead of CLOCK_MONOTONIC, which it follows.
    counter: Option<CounterClock>,
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
            counter: None,
        }
    }

    /// Returns this clock, set to read the processor's time stamp counter if the kernel's own clock
    /// is based on it.
    pub(crate) fn with_counter(mut self, system: &System) -> RealClock {
        let is_reliable = time_stamp::HAS_COUNTER && counter_clock::is_reliable(system);
        self.counter = is_reliable.then(CounterClock::default);
        self
    }

    /// Returns the name of the counter that this clock reads, as the kernel names it.
    pub(crate) fn counter_name(&self) -> Option<&'static str> {
        self.counter.as_ref().map(|_| "tsc")
    }

    /// Returns a note for the result if the counter differed from the kernel's clock.
    pub(crate) fn counter_note(&self) -> Option<String> {
        let failure_ns = self.counter.as_ref()?.failure_ns()?;
        Some(format!(
            "the processor's time stamp counter differed from the kernel's clock by {failure_ns} \
             ns within 10 ms; since then, times were read from the kernel's clock"
        ))
    }

    /// Reads CLOCK_MONOTONIC, or the counter that follows it. Never runs backwards.
    #[inline(always)]
    fn read(&self) -> u64 {
        match &self.counter {
            Some(counter) => {
                let now_ns = counter.now_ns(time_stamp::ticks, monotonic_ns);
                now_ns.max(self.read_ns.get())
            }
            None => monotonic_ns(),
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
        let now_ns = self.read();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_by_counter_follows_the_kernel_clock() {
        let clock = RealClock::starting_now().with_counter(&System::live());
        let origin_ns = clock.origin_ns();
        let mut last_ns = 0;
        // Longer than several windows of the counter, also where it is not used.
        while last_ns < 60_000_000 {
            let before_ns = monotonic_ns() - origin_ns;
            let now_ns = clock.now_ns();
            let after_ns = monotonic_ns() - origin_ns;
            assert!(now_ns >= last_ns, "{now_ns} after {last_ns}");
            assert!(
                now_ns + 5_000 >= before_ns && now_ns <= after_ns + 5_000,
                "{now_ns}, by the kernel {before_ns} to {after_ns}"
            );
            last_ns = now_ns;
        }
        assert_eq!(clock.counter_note(), None);
    }
}
