//! Detects the times in which the whole process was stopped: by SIGSTOP or Ctrl-Z, in a frozen
//! control group, by a debugger, or by suspending or pausing the machine.
//!
//! A thread ([`watch`]) sleeps for [`BEAT`] in a loop, without target I/O or other waits. If it
//! wakes a second late, the process did not run, or lacked processors, which the kernel counts. The
//! clocks of workers ([`crate::clock::RealClock`]) leave stops out if the plan asks for it.

use iosonde_machine::cgroup;
use iosonde_machine::clocks::BOOTTIME;
use iosonde_machine::cpu_use;
use iosonde_machine::proc_root::System;
use iosonde_machine::processors::CpuTimes;
use iosonde_result::bottleneck::verdict;
use iosonde_result::run::Verdict;
use iosonde_result::verdict_cause::VerdictCause;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Interval at which the watching thread samples.
const BEAT: Duration = Duration::from_millis(50);
const BEAT_NS: u64 = BEAT.as_nanos() as u64;
/// Minimum delay of a sample that counts as a stop.
const LEAST_STOP_NS: u64 = 1_000_000_000;
/// A clock that was not read for this long checks for stops.
pub(crate) const LONG_GAP_NS: u64 = 100_000_000;
/// Maximum wait of a clock for the watching thread, which wakes at the same moment.
const JUDGE_WAIT: Duration = Duration::from_millis(200);
/// Interval of the counters that need a file each. They distinguish a stop from starvation.
const COUNTERS_EVERY_NS: u64 = 1_000_000_000;
/// Minimum sleep of the machine. A shorter time is the delay between two clock readings.
const LEAST_SLEEP_NS: u64 = 50_000_000;

/// A time in which the process did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStop {
    /// Start of the stop, since the start of the run's clock.
    pub(crate) at_ns: u64,
    /// Length of the stop, by the clock that does not advance while the machine sleeps.
    pub(crate) length_ns: u64,
    /// Time that the machine slept, which `length_ns` excludes.
    pub(crate) slept_ns: u64,
}

/// The stops of a run, for its clocks.
#[derive(Debug)]
pub(crate) struct Stops {
    /// Time of the last sample on CLOCK_MONOTONIC; `u64::MAX` while no thread watches.
    sampled_ns: AtomicU64,
    /// Total length of the stops.
    total_ns: AtomicU64,
    stops: Mutex<Vec<ProcessStop>>,
}

impl Default for Stops {
    fn default() -> Self {
        Stops {
            sampled_ns: AtomicU64::new(u64::MAX),
            total_ns: AtomicU64::new(0),
            stops: Mutex::default(),
        }
    }
}

impl Stops {
    /// Returns the total length of stops at `now_ns` on CLOCK_MONOTONIC, `gap_ns` after the last
    /// reading. Waits for the watching thread if the gap may hold a stop that it has not sampled.
    #[cold]
    pub(crate) fn total_ns(&self, now_ns: u64, gap_ns: u64) -> u64 {
        if gap_ns >= LEAST_STOP_NS {
            let begun = Instant::now();
            let is_late = || now_ns.saturating_sub(self.sampled_ns.load(Acquire)) > LEAST_STOP_NS;
            while is_late() && begun.elapsed() < JUDGE_WAIT {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.total_ns.load(Acquire)
    }

    /// Returns the total length of the stops so far.
    pub(crate) fn so_far_ns(&self) -> u64 {
        self.total_ns.load(Acquire)
    }

    fn add(&self, stop: ProcessStop) {
        let stops = self.stops.lock();
        stops.unwrap_or_else(PoisonError::into_inner).push(stop);
        self.total_ns.fetch_add(stop.length_ns, Relaxed);
    }

    /// Returns the verdict on the stops, or `None` if there were none.
    pub(crate) fn verdict(&self, are_left_out: bool) -> Option<Verdict> {
        let stops = self.stops.lock();
        let stops = stops.unwrap_or_else(PoisonError::into_inner);
        let first = stops.first()?;
        let length = |stop: &ProcessStop| stop.length_ns + stop.slept_ns;
        let total_ns: u64 = stops.iter().map(length).sum();
        Some(verdict(VerdictCause::ProcessStopped {
            stops: stops.len() as u64,
            stopped_ns: total_ns,
            first_ns: first.at_ns,
            was_suspended: stops.iter().any(|stop| stop.slept_ns > 0),
            is_excluded: are_left_out,
        }))
    }
}

/// A sample of the watching thread.
#[derive(Debug, Clone, Copy, Default)]
struct StopSample {
    monotonic_ns: u64,
    boottime_ns: u64,
    /// CPU time of the process.
    process_cpu_ns: u64,
    /// Time that the watching thread was runnable and waited for a processor.
    queued_ns: u64,
}

impl StopSample {
    fn now() -> StopSample {
        let read = |clock: ClockId| {
            let time = clock_gettime(clock);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        StopSample {
            monotonic_ns: read(ClockId::Monotonic),
            boottime_ns: read(BOOTTIME),
            process_cpu_ns: read(ClockId::ProcessCPUTime),
            queued_ns: cpu_use::queued_ns(),
        }
    }

    /// Returns the stop between the sample `before` and this one, if any. `withheld_ns` is the CPU
    /// time that a control group or a hypervisor withheld from the process in between.
    fn stop_since(
        &self,
        before: &StopSample,
        processors: u64,
        withheld_ns: u64,
    ) -> Option<ProcessStop> {
        let passed_ns = self.monotonic_ns.saturating_sub(before.monotonic_ns);
        let with_sleep_ns = self.boottime_ns.saturating_sub(before.boottime_ns);
        let slept_ns = match with_sleep_ns.saturating_sub(passed_ns) {
            slept_ns if slept_ns >= LEAST_SLEEP_NS => slept_ns,
            _ => 0,
        };
        let late_ns = passed_ns.saturating_sub(BEAT_NS);
        if late_ns + slept_ns < LEAST_STOP_NS {
            return None;
        }
        let used_ns = self.process_cpu_ns.saturating_sub(before.process_cpu_ns);
        let queued_ns = self.queued_ns.saturating_sub(before.queued_ns);
        // Before the stop all threads of the process may have run for the rest of a beat.
        let is_busy = used_ns > BEAT_NS * processors + late_ns / 10;
        let is_starved = queued_ns.max(withheld_ns) > late_ns / 2;
        if slept_ns == 0 && (is_busy || is_starved) {
            return None;
        }
        Some(ProcessStop {
            at_ns: before.monotonic_ns,
            length_ns: passed_ns,
            slept_ns,
        })
    }
}

/// Counters of CPU time withheld from a runnable process.
#[derive(Debug, Clone, Copy)]
struct Withheld {
    read_ns: u64,
    /// By control groups.
    throttled_ns: u64,
    /// By the hypervisor.
    processors: CpuTimes,
}

impl Withheld {
    fn now(system: &System, cpu_stat_files: &[PathBuf], now_ns: u64) -> Withheld {
        Withheld {
            read_ns: now_ns,
            throttled_ns: cgroup::cpu_throttled_ns(system, cpu_stat_files).unwrap_or(0),
            processors: CpuTimes::take(system).unwrap_or_default(),
        }
    }

    fn ns_since(&self, before: &Withheld) -> u64 {
        let passed_ns = self.read_ns.saturating_sub(before.read_ns);
        let shares = self.processors.since(&before.processors).shares();
        let stolen = shares.map_or(0.0, |shares| shares.steal / 100.0);
        let throttled_ns = self.throttled_ns.saturating_sub(before.throttled_ns);
        throttled_ns.max((passed_ns as f64 * stolen) as u64)
    }
}

/// Ends [`watch`] on drop.
#[derive(Debug)]
pub(crate) struct WatchEnd {
    thread: Option<Thread>,
    stops: Arc<Stops>,
}

impl WatchEnd {
    /// Creates the guard of the watching thread, if there is one.
    pub(crate) fn new(thread: Option<Thread>, stops: &Arc<Stops>) -> WatchEnd {
        WatchEnd {
            thread,
            stops: stops.clone(),
        }
    }
}

impl Drop for WatchEnd {
    fn drop(&mut self) {
        self.stops.sampled_ns.store(u64::MAX, Release);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl Stops {
    /// Marks the start of [`watch`], which runs while marked. Call it before its thread starts.
    pub(crate) fn begin(&self) {
        self.sampled_ns
            .store(StopSample::now().monotonic_ns, Release);
    }
}

/// Detects stops until [`WatchEnd`] is dropped. `origin_ns` is the run's start on CLOCK_MONOTONIC.
pub(crate) fn watch(stops: &Stops, origin_ns: u64) {
    let system = System::live();
    let files = cgroup::cpu_stat_files(&system);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let mut before = StopSample::now();
    let mut counters = Withheld::now(&system, &files, before.monotonic_ns);
    let mut last_ns = before.monotonic_ns;
    // `u64::MAX` ends the loop, and a plain store would overwrite it.
    while stops
        .sampled_ns
        .fetch_update(Release, Acquire, |sampled_ns| {
            (sampled_ns != u64::MAX).then_some(last_ns)
        })
        .is_ok()
    {
        std::thread::park_timeout(BEAT);
        let now = StopSample::now();
        last_ns = now.monotonic_ns;
        let is_late = last_ns - before.monotonic_ns > LEAST_STOP_NS / 2
            || now.boottime_ns - before.boottime_ns > LEAST_STOP_NS;
        if is_late || last_ns - counters.read_ns >= COUNTERS_EVERY_NS {
            let read = Withheld::now(&system, &files, last_ns);
            let withheld_ns = read.ns_since(&counters);
            counters = read;
            if let Some(stop) = now.stop_since(&before, processors, withheld_ns) {
                stops.add(ProcessStop {
                    at_ns: stop.at_ns.saturating_sub(origin_ns),
                    ..stop
                });
            }
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, RealClock};

    const SECOND_NS: u64 = 1_000_000_000;

    fn later(before: &StopSample, passed_ns: u64) -> StopSample {
        StopSample {
            monotonic_ns: before.monotonic_ns + passed_ns,
            boottime_ns: before.boottime_ns + passed_ns,
            ..*before
        }
    }

    #[test]
    fn late_heartbeat_is_a_process_stop() {
        let before = StopSample::default();
        let on_time = later(&before, BEAT_NS + 900_000_000);
        assert_eq!(on_time.stop_since(&before, 2, 0), None);
        let mut late = later(&before, 3 * SECOND_NS);
        // Two threads ran until the stop.
        late.process_cpu_ns += 2 * BEAT_NS;
        let stop = late.stop_since(&before, 2, 0);
        assert_eq!(stop.map(|stop| stop.length_ns), Some(3 * SECOND_NS));
    }

    #[test]
    fn starved_process_was_not_stopped() {
        let before = StopSample::default();
        let mut ran = later(&before, 3 * SECOND_NS);
        ran.process_cpu_ns += SECOND_NS;
        assert_eq!(ran.stop_since(&before, 2, 0), None, "others of it ran");
        let mut queued = later(&before, 3 * SECOND_NS);
        queued.queued_ns += 2 * SECOND_NS;
        assert_eq!(queued.stop_since(&before, 2, 0), None, "no processor");
        let throttled = later(&before, 3 * SECOND_NS);
        assert_eq!(throttled.stop_since(&before, 2, 2 * SECOND_NS), None);
    }

    #[test]
    fn suspend_is_a_stop_of_its_awake_time() {
        let before = StopSample::default();
        let mut woken = later(&before, 300_000_000);
        woken.boottime_ns += 60 * SECOND_NS;
        let stop = woken.stop_since(&before, 2, 0).expect("it slept");
        assert_eq!(
            (stop.length_ns, stop.slept_ns),
            (300_000_000, 60 * SECOND_NS)
        );
    }

    #[test]
    fn steal_and_throttling_count_as_withheld_time() {
        let at = |read_ns: u64, throttled_ns: u64, text: &str| Withheld {
            read_ns,
            throttled_ns,
            processors: CpuTimes::parse(text).unwrap(),
        };
        let before = at(0, 0, "cpu 0 0 0 0 0 0 0 0");
        let stolen = at(4 * SECOND_NS, 0, "cpu 100 0 0 100 0 0 0 600");
        assert_eq!(stolen.ns_since(&before), 3 * SECOND_NS);
        let throttled = at(4 * SECOND_NS, 2 * SECOND_NS, "cpu 0 0 0 800 0 0 0 0");
        assert_eq!(throttled.ns_since(&before), 2 * SECOND_NS);
    }

    #[test]
    fn clock_excludes_stops_and_is_monotonic() {
        let stops = Arc::new(Stops::default());
        let clock = RealClock::starting_now().without(stops.clone());
        let other = RealClock::starting_now();
        let (before_ns, all_ns) = (clock.now_ns(), other.now_ns());
        assert_eq!(clock.resumed_ns(), 0);
        // The stop is longer than the gap between two readings: only 1 ns of the gap remains.
        stops.add(ProcessStop {
            at_ns: 0,
            length_ns: 5 * SECOND_NS,
            slept_ns: 0,
        });
        std::thread::sleep(2 * Duration::from_nanos(LONG_GAP_NS));
        let after_ns = clock.now_ns();
        assert_eq!(after_ns, before_ns + 1);
        assert!(other.now_ns() - all_ns > LONG_GAP_NS, "it counts all time");
        assert_eq!(clock.resumed_ns(), after_ns + 1);
        // A noticed stop is left out only once.
        std::thread::sleep(2 * Duration::from_nanos(LONG_GAP_NS));
        assert!(clock.now_ns() - after_ns > LONG_GAP_NS);
        // A clock that is created later ignores the stop.
        let late = RealClock::starting_now().without(stops);
        std::thread::sleep(2 * Duration::from_nanos(LONG_GAP_NS));
        assert!(late.now_ns() > LONG_GAP_NS);
    }

    #[test]
    fn stops_are_summed_in_one_verdict() {
        let stops = Stops::default();
        assert_eq!(stops.verdict(true), None);
        for at_ns in [SECOND_NS, 9 * SECOND_NS] {
            stops.add(ProcessStop {
                at_ns,
                length_ns: 2 * SECOND_NS,
                slept_ns: 0,
            });
        }
        for is_excluded in [true, false] {
            let verdict = stops.verdict(is_excluded).expect("there were two");
            let cause = VerdictCause::ProcessStopped {
                stops: 2,
                stopped_ns: 4 * SECOND_NS,
                first_ns: SECOND_NS,
                was_suspended: false,
                is_excluded,
            };
            assert_eq!(verdict.cause, Some(cause));
        }
    }
}
