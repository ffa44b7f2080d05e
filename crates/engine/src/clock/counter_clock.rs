//! CLOCK_MONOTONIC by the processor's time stamp counter, for a window of time after each reading
//! of the kernel's clock.
//!
//! The kernel computes its clock from the same counter, but behind a function call, a sequence lock
//! and a barrier. At depth 1, where each I/O takes two readings, these are a few percent of it.
//! At the end of each window the kernel's clock is read, compared, and used as the next anchor, so
//! errors do not add up. Each thread has its own anchor.

use iosonde_machine::proc_root::System;
use std::cell::Cell;

/// Time for which the counter is read instead of the kernel's clock.
const WINDOW_NS: u64 = 10_000_000;
/// Largest difference to the kernel's clock at the end of a window.
const TOLERANCE_NS: u64 = 1_000;
/// Number of differences after which the counter is no longer used.
const MISSES_MAX: u32 = 3;
/// Attempts to read both clocks without an interruption in between.
const PAIR_ATTEMPTS: u32 = 3;
/// Longest time between two readings of the kernel's clock around one of the counter.
const SPREAD_NS_MAX: u64 = 500;
/// Binary digits after the point of nanoseconds per tick.
const FRACTION_BITS: u32 = 32;
/// Most nanoseconds per tick: counters of less than 250 MHz are not used.
const TICK_NS_MAX: u64 = 4;
/// The rates of two windows in a row differ by at most one part in this many, or the counter is not
/// used.
const RATE_CHANGE_MAX_PART: u64 = 1_000;
/// Time to the next attempt after an interrupted one.
const RETRY_NS: u64 = WINDOW_NS / 10;

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

// The product in `now_ns` is at most this, and that of two windows in `set_rate` fits too.
const _: () = assert!(WINDOW_NS << FRACTION_BITS < u64::MAX / 2);

/// Whether the counter runs at a constant rate, also in idle processors, and the kernel takes its
/// own clock from it. The kernel stops doing so if the counters of two processors differ.
pub(super) fn is_reliable(system: &System) -> bool {
    let source = system.text(CLOCK_SOURCE).unwrap_or_default();
    let cpuinfo = system.text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let has = |flag| flags.is_some_and(|flags| flags.split_whitespace().any(|it| it == flag));
    source.trim() == "tsc" && has("constant_tsc") && has("nonstop_tsc")
}

/// Anchor and rate of the counter. Not shared between threads.
#[derive(Debug, Clone, Default)]
pub(super) struct CounterClock {
    /// Length of a window; 0 while the rate is unknown.
    window_ticks: Cell<u64>,
    /// Time before which both clocks are not compared.
    next_pair_ns: Cell<u64>,
    anchor_ticks: Cell<u64>,
    anchor_ns: Cell<u64>,
    /// Nanoseconds per tick, with [`FRACTION_BITS`].
    tick_ns: Cell<u64>,
    misses: Cell<u32>,
    largest_miss_ns: Cell<u64>,
}

/// Readings of both clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct ClockPair {
    ticks: u64,
    /// Middle of the readings of the kernel's clock before and after that of the counter.
    ns: u64,
    /// Time between these two.
    spread_ns: u64,
}

impl ClockPair {
    /// Returns the pair that was read with the least interruption.
    fn read(ticks: impl Fn() -> u64, kernel_ns: impl Fn() -> u64) -> ClockPair {
        let read_once = || {
            let before_ns = kernel_ns();
            let ticks = ticks();
            let spread_ns = kernel_ns().saturating_sub(before_ns);
            ClockPair {
                ticks,
                ns: before_ns + spread_ns / 2,
                spread_ns,
            }
        };
        let mut closest = read_once();
        for _ in 1..PAIR_ATTEMPTS {
            let pair = read_once();
            if pair.spread_ns < closest.spread_ns {
                closest = pair;
            }
        }
        closest
    }
}

impl CounterClock {
    /// Returns the time on the kernel's clock.
    #[inline(always)]
    pub(super) fn now_ns(&self, ticks: impl Fn() -> u64, kernel_ns: impl Fn() -> u64) -> u64 {
        let passed = ticks().wrapping_sub(self.anchor_ticks.get());
        if passed < self.window_ticks.get() {
            return self.anchor_ns.get() + ((passed * self.tick_ns.get()) >> FRACTION_BITS);
        }
        self.read_kernel(ticks, kernel_ns)
    }

    /// Returns the largest difference to the kernel's clock, if the counter is no longer used.
    pub(super) fn failure_ns(&self) -> Option<u64> {
        (self.misses.get() >= MISSES_MAX).then(|| self.largest_miss_ns.get())
    }

    /// Reads the kernel's clock. After a window, compares both clocks and begins the next window.
    #[cold]
    #[inline(never)]
    fn read_kernel(&self, ticks: impl Fn() -> u64, kernel_ns: impl Fn() -> u64) -> u64 {
        let now_ns = kernel_ns();
        if now_ns < self.next_pair_ns.get() || self.failure_ns().is_some() {
            return now_ns;
        }
        let pair = ClockPair::read(ticks, kernel_ns);
        if pair.spread_ns > SPREAD_NS_MAX {
            // Attempts stay rare: a kernel that leaves the counter for a slow clock (HPET) would
            // interrupt all of them.
            self.window_ticks.set(0);
            self.next_pair_ns.set(pair.ns + RETRY_NS);
            return pair.ns;
        }
        self.next_pair_ns.set(pair.ns + WINDOW_NS);
        // After a longer pause the machine may have slept: only the kernel's clock knows.
        let is_recent = pair.ns.saturating_sub(self.anchor_ns.get()) < 2 * WINDOW_NS;
        if is_recent && self.window_ticks.get() > 0 {
            self.check(pair);
        }
        if is_recent {
            self.set_rate(pair);
        }
        self.anchor_ticks.set(pair.ticks);
        self.anchor_ns.set(pair.ns);
        pair.ns
    }

    /// Compares the counter with the kernel's clock, and counts a difference.
    fn check(&self, pair: ClockPair) {
        let passed_ticks = pair.ticks.wrapping_sub(self.anchor_ticks.get());
        let product = u128::from(passed_ticks) * u128::from(self.tick_ns.get());
        let passed_ns = u64::try_from(product >> FRACTION_BITS).unwrap_or(u64::MAX);
        let expected_ns = self.anchor_ns.get().saturating_add(passed_ns);
        let difference_ns = expected_ns.abs_diff(pair.ns);
        if difference_ns > TOLERANCE_NS + pair.spread_ns {
            self.misses.set(self.misses.get() + 1);
            self.largest_miss_ns
                .set(self.largest_miss_ns.get().max(difference_ns));
        }
    }

    /// Measures the rate since the anchor. The counter is used if this is about the rate of the
    /// window before. Otherwise the counter stands, or one of both clocks jumped: a sleep of the
    /// machine stops only the kernel's. A rate across a jump would make a window of hours.
    fn set_rate(&self, pair: ClockPair) {
        let passed_ticks = pair.ticks.wrapping_sub(self.anchor_ticks.get()).max(1);
        let passed_ns = pair.ns - self.anchor_ns.get();
        debug_assert!(passed_ns < 2 * WINDOW_NS, "else the shift overflows");
        let tick_ns = (passed_ns << FRACTION_BITS) / passed_ticks;
        let before = self.tick_ns.replace(tick_ns);
        let is_steady = tick_ns.abs_diff(before) <= before / RATE_CHANGE_MAX_PART;
        let is_usable = is_steady && (1..TICK_NS_MAX << FRACTION_BITS).contains(&tick_ns);
        self.window_ticks
            .set(match is_usable && self.failure_ns().is_none() {
                true => (WINDOW_NS << FRACTION_BITS) / tick_ns,
                false => 0,
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 7_000_000_000;

    /// A counter of 2.5 GHz and a kernel's clock, both of which a test moves.
    #[derive(Default)]
    struct FakeClocks {
        ticks: Cell<u64>,
        ns: Cell<u64>,
        kernel_reads: Cell<u32>,
    }

    impl FakeClocks {
        fn new() -> FakeClocks {
            let clocks = FakeClocks::default();
            clocks.ns.set(START_NS);
            // Wraps around during the test.
            clocks.ticks.set(u64::MAX - 30_000_000);
            clocks
        }

        /// Lets time pass; the counter runs too fast by some parts per million.
        fn pass(&self, ns: u64, too_fast_ppm: u64) {
            let ticks = ns * 5 / 2 * (1_000_000 + too_fast_ppm) / 1_000_000;
            self.ticks.set(self.ticks.get().wrapping_add(ticks));
            self.ns.set(self.ns.get() + ns);
        }

        fn read(&self, clock: &CounterClock) -> u64 {
            let kernel_ns = || {
                self.kernel_reads.set(self.kernel_reads.get() + 1);
                self.ns.get()
            };
            clock.now_ns(|| self.ticks.get(), kernel_ns)
        }
    }

    #[test]
    fn counter_follows_the_kernel_clock_with_few_readings() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        for _ in 0..20_000 {
            let error_ns = clocks.read(&clock).abs_diff(clocks.ns.get());
            assert!(error_ns <= 1, "{error_ns} ns");
            clocks.pass(10_000, 0);
        }
        // 2000 readings before two rates agree, and seven after each window.
        let reads = clocks.kernel_reads.get();
        assert!((2_000..2_200).contains(&reads), "{reads} readings");
        assert_eq!(clock.failure_ns(), None);
    }

    #[test]
    fn changed_rate_is_followed_within_the_tolerance() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        for round in 0..20_000u64 {
            let error_ns = clocks.read(&clock).abs_diff(clocks.ns.get());
            assert!(error_ns <= TOLERANCE_NS, "{error_ns} ns");
            // As NTP slews the clock: 50 parts per million more after half the time.
            clocks.pass(10_000, if round < 10_000 { 0 } else { 50 });
        }
        assert_eq!(clock.failure_ns(), None);
    }

    #[test]
    fn differing_counter_is_given_up_for_the_kernel_clock() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        for round in 0..20_000u64 {
            clocks.read(&clock);
            // Each change of the rate is 1 % of a window, far more than the tolerance.
            let too_fast_ppm = if round / 4_500 % 2 == 0 { 0 } else { 10_000 };
            clocks.pass(10_000, too_fast_ppm);
        }
        assert!(clock.failure_ns().is_some_and(|ns| ns > TOLERANCE_NS));
        let before = clocks.kernel_reads.get();
        for _ in 0..100 {
            clocks.pass(1_000, 10_000);
            assert_eq!(clocks.read(&clock), clocks.ns.get());
        }
        assert_eq!(
            clocks.kernel_reads.get(),
            before + 100,
            "each is the kernel's"
        );
    }

    #[test]
    fn pause_of_the_machine_is_taken_from_the_kernel_clock() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        for _ in 0..3_000 {
            clocks.read(&clock);
            clocks.pass(10_000, 0);
        }
        // The counter went on while the kernel's clock stood, and then it was reset.
        for jump in [3_000_000_000_000, 1u64 << 63] {
            clocks.ticks.set(clocks.ticks.get().wrapping_add(jump));
            clocks.pass(50_000_000, 0);
            assert_eq!(clocks.read(&clock), clocks.ns.get());
            clocks.pass(1_000, 0);
            let error_ns = clocks.read(&clock).abs_diff(clocks.ns.get());
            assert!(error_ns <= 1, "{error_ns} ns");
        }
        assert_eq!(clock.failure_ns(), None);
    }

    #[test]
    fn jump_of_the_counter_within_a_window_does_not_slow_the_clock() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        for round in 0..20_000 {
            // The machine sleeps for a minute, while the first rate is measured and later.
            if [500, 10_500].contains(&round) {
                let ticks = clocks.ticks.get().wrapping_add(150_000_000_000);
                clocks.ticks.set(ticks);
            }
            let error_ns = clocks.read(&clock).abs_diff(clocks.ns.get());
            assert!(error_ns <= 1, "{error_ns} ns in round {round}");
            clocks.pass(10_000, 0);
        }
        assert_eq!(clock.failure_ns(), None);
        let reads = clocks.kernel_reads.get();
        assert!(
            reads < 10_000,
            "the counter is used again: {reads} readings"
        );
    }

    #[test]
    fn interrupted_readings_are_no_anchor_and_rarely_repeated() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        let kernel_ns = || {
            clocks.kernel_reads.set(clocks.kernel_reads.get() + 1);
            clocks.pass(SPREAD_NS_MAX + 1, 0);
            clocks.ns.get()
        };
        for _ in 0..5_000 {
            clocks.pass(10_000, 0);
            clock.now_ns(|| clocks.ticks.get(), kernel_ns);
            assert_eq!(clock.anchor_ns.get(), 0);
            assert_eq!(clock.window_ticks.get(), 0);
        }
        // One for each call, and six more each millisecond of the 53.
        let reads = clocks.kernel_reads.get();
        assert!((5_000..5_400).contains(&reads), "{reads} readings");
    }

    #[test]
    fn standing_counter_is_never_used() {
        let (clocks, clock) = (FakeClocks::new(), CounterClock::default());
        for _ in 0..5_000 {
            clocks.ns.set(clocks.ns.get() + 10_000);
            assert_eq!(clocks.read(&clock), clocks.ns.get());
        }
    }

    #[test]
    fn counter_needs_constant_rate_and_the_kernels_trust() {
        let reliable = |source: &str, flags: &str| {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in [(CLOCK_SOURCE, source), ("/proc/cpuinfo", flags)] {
                let path = root.path().join(&path[1..]);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            is_reliable(&System::captured(root.path()))
        };
        let flags = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n";
        assert!(reliable("tsc\n", flags));
        assert!(!reliable("kvm-clock\n", flags));
        assert!(!reliable("tsc\n", "flags\t\t: fpu tsc constant_tsc\n"));
        assert!(!reliable("tsc\n", "flags\t\t: fpu tsc nonstop_tsc\n"));
    }
}
