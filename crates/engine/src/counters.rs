//! Counters that one worker writes and any thread reads, without locks or allocation.

use iosonde_job::plan::Direction;
use iosonde_result::histogram::{self, BUCKETS, Histogram};
use iosonde_result::interval::IntervalCounts;
use iosonde_result::observer::WorkerState;
use iosonde_result::run::WorkerResult;
use iosonde_result::stats::{LatencyStats, Moments};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A counter with one writer. Plain loads and stores suffice, as no other thread adds.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may call this.
    #[inline(always)]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    /// Returns the current count.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Number of I/Os in flight, written by the worker.
#[derive(Debug)]
pub(crate) struct InFlightGauge(AtomicU32);

impl InFlightGauge {
    /// The worker has not published a number.
    const UNKNOWN: u32 = u32::MAX;

    /// Publishes the number. Only the owner may call this.
    #[inline(always)]
    pub(crate) fn set(&self, in_flight: u32) {
        debug_assert!(in_flight != Self::UNKNOWN, "a queue depth is smaller");
        self.0.store(in_flight, Relaxed);
    }

    /// Returns the number. `None`: the backend is not observed, or has not begun.
    pub(crate) fn get(&self) -> Option<u32> {
        Some(self.0.load(Relaxed)).filter(|in_flight| *in_flight != Self::UNKNOWN)
    }
}

impl Default for InFlightGauge {
    fn default() -> Self {
        InFlightGauge(AtomicU32::new(Self::UNKNOWN))
    }
}

/// A histogram with one writer and any number of readers.
#[derive(Debug)]
pub(crate) struct LiveHistogram(Box<[Counter; BUCKETS]>);

impl Default for LiveHistogram {
    fn default() -> Self {
        LiveHistogram(Box::new(std::array::from_fn(|_| Counter::default())))
    }
}

impl LiveHistogram {
    /// Counts `value` `n` times.
    #[inline(always)]
    pub(crate) fn record_n(&self, value: u64, n: u64) {
        self.0[histogram::index_of(value)].add(n);
    }

    /// Adds to `into` the counts since `before`, and updates `before`.
    pub(crate) fn take_new(&self, before: &mut [u64], into: &mut Histogram) {
        for (index, (counter, old)) in self.0.iter().zip(before).enumerate() {
            let now = counter.get();
            debug_assert!(now >= *old, "a counter only grows");
            if now != *old {
                into.add_bucket(index, now - *old);
                *old = now;
            }
        }
    }
}

/// Exact moments of latencies, and their histogram.
///
/// All but the histogram fits one cache line. With single completions, the kernel's work between
/// two of them evicts the worker's memory from the L1 cache, so each line touched costs time.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct LatencyCounters {
    sum: u128,
    sum_of_squares: u128,
    count: u64,
    min: u64,
    max: u64,
    histogram: Box<[u64; BUCKETS]>,
}

const _: () = assert!(size_of::<LatencyCounters>() == 64);

impl Default for LatencyCounters {
    fn default() -> Self {
        LatencyCounters {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_of_squares: 0,
            histogram: Box::new([0; BUCKETS]),
        }
    }
}

impl LatencyCounters {
    /// Counts `value` `n` times.
    #[inline(always)]
    pub(crate) fn record_n(&mut self, value: u64, n: u64) {
        self.count += n;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(n);
        self.sum_of_squares += u128::from(value) * u128::from(value) * u128::from(n);
        self.histogram[histogram::index_of(value)] += n;
    }

    /// Returns the number of latencies.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the statistics so far.
    pub(crate) fn stats(&self) -> LatencyStats {
        if self.count == 0 {
            return LatencyStats::default();
        }
        let n = self.count as f64;
        let mean = self.sum as f64 / n;
        // n * sum(x^2) - sum(x)^2 in integers if they fit: floats would lose the difference.
        let m2 = match (
            self.sum_of_squares.checked_mul(u128::from(self.count)),
            self.sum.checked_mul(self.sum),
        ) {
            (Some(left), Some(right)) => left.saturating_sub(right) as f64 / n,
            _ => (self.sum_of_squares as f64 - mean * self.sum as f64).max(0.0),
        };
        let mut histogram = Histogram::default();
        for (index, count) in self
            .histogram
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            histogram.add_bucket(index, *count);
        }
        assert_eq!(
            histogram.total(),
            self.count,
            "each latency is in one bucket"
        );
        assert!(
            self.min <= self.max,
            "the minimum of {} latencies exceeds their maximum",
            self.count
        );
        let moments = Moments {
            count: self.count,
            min: self.min as f64,
            max: self.max as f64,
            mean,
            m2,
        };
        LatencyStats {
            moments,
            histogram: Some(histogram),
        }
    }
}

/// Maximum number of messages that a worker keeps between two reads; the last one reports the loss.
const MOST_NOTES: usize = 1_000;
const FULL_NOTES: usize = MOST_NOTES - 1;

/// State of a running worker for other threads: counters for displays and samples, and a stop flag.
///
/// The fields that each step uses come first, in as few cache lines as possible.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct WorkerCounters {
    ios: [Counter; 3],
    bytes: [Counter; 3],
    /// Sum of the latencies in `latency`, in nanoseconds.
    pub(crate) latency_sum_ns: Counter,
    /// Latencies of all completed I/Os, ramp included, for the intervals.
    pub(crate) latency: LiveHistogram,
    /// Set to end the worker as if its time were over.
    pub(crate) stop: AtomicBool,
    /// Time of the stop request on the run's clock; 0 if it does not matter.
    pub(crate) stop_ns: AtomicU64,
    /// Set to make the worker publish its statistics; cleared once they are published.
    pub(crate) asked: AtomicBool,
    state: AtomicU8,
    /// I/Os that the backend has taken and not returned.
    pub(crate) in_flight: InFlightGauge,
    /// Number of files that the worker has open.
    pub(crate) open_files: AtomicU32,
    /// Number and latencies of fsync, fdatasync and sync_file_range, ramp included.
    syncs: Counter,
    sync_latency: LiveHistogram,
    /// The statistics published last.
    published: Mutex<Option<Box<WorkerResult>>>,
    /// Messages for the user that were not read yet.
    notes: Mutex<Vec<WorkerNote>>,
}

/// A message for the user.
#[derive(Debug)]
pub(crate) struct WorkerNote {
    /// Text of the message, without the job's name.
    pub(crate) text: String,
    /// Whether all clones of the job may add this message, which is then shown once.
    pub(crate) is_of_job: bool,
}

impl WorkerCounters {
    /// Returns the worker's state.
    pub(crate) fn state(&self) -> WorkerState {
        // Only `enter` writes the number.
        WorkerState::ALL[usize::from(self.state.load(Relaxed))]
    }

    /// Publishes the requested statistics. Not for the I/O loop, as it locks.
    pub(crate) fn publish(&self, result: WorkerResult) {
        *self
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Box::new(result));
        self.asked.store(false, Relaxed);
    }

    /// Returns the statistics published last.
    pub(crate) fn published(&self) -> Option<WorkerResult> {
        let published = self.published.lock();
        let published = published.unwrap_or_else(PoisonError::into_inner);
        published.as_deref().cloned()
    }

    /// Adds a message for the user. Not for the I/O loop, as it locks and allocates.
    pub(crate) fn note(&self, text: String) {
        self.add_note(WorkerNote {
            text,
            is_of_job: false,
        });
    }

    /// Adds a message that is shown once for all clones of the job.
    pub(crate) fn note_of_job(&self, text: String) {
        self.add_note(WorkerNote {
            text,
            is_of_job: true,
        });
    }

    fn add_note(&self, note: WorkerNote) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match notes.len() {
            MOST_NOTES.. => {}
            FULL_NOTES => notes.push(WorkerNote {
                text: "further messages are not shown".to_owned(),
                is_of_job: false,
            }),
            _ => notes.push(note),
        }
    }

    /// Returns the messages since the last call.
    pub(crate) fn take_notes(&self) -> Vec<WorkerNote> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the worker's state.
    pub(crate) fn enter(&self, state: WorkerState) {
        self.state.store(state as u8, Relaxed);
    }

    /// Counts completed I/Os. Only the owner may call this.
    #[inline(always)]
    pub(crate) fn add(&self, direction: Direction, ios: u64, bytes: u64) {
        self.ios[direction as usize].add(ios);
        self.bytes[direction as usize].add(bytes);
    }

    /// Counts `n` syncs of this latency. Only the owner may call this.
    pub(crate) fn synced(&self, latency_ns: u64, n: u64) {
        self.sync_latency.record_n(latency_ns, n);
        self.syncs.add(n);
    }

    /// Adds to `into` the sync latencies since the call that last updated the `before` values.
    pub(crate) fn take_new_syncs(
        &self,
        before: &mut [u64],
        syncs_before: &mut u64,
        into: &mut Option<Histogram>,
    ) {
        let syncs = self.syncs.get();
        // Most workers issue no syncs, and reading a histogram is slow.
        if syncs != *syncs_before {
            *syncs_before = syncs;
            self.sync_latency
                .take_new(before, into.get_or_insert_default());
        }
    }

    /// Returns the counts so far, ramp included.
    pub(crate) fn counts(&self, direction: Direction) -> IntervalCounts {
        IntervalCounts {
            ios: self.ios[direction as usize].get(),
            bytes: self.bytes[direction as usize].get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_has_the_moments_of_its_values() {
        let mut tally = LatencyCounters::default();
        let mut expected = Moments::default();
        for value in [5u64, 7, 7, 1_000_000_007, 3, 900] {
            tally.record_n(value, 2);
            expected.record(value as f64);
            expected.record(value as f64);
        }
        let stats = tally.stats();
        assert_eq!(stats.moments.count, 12);
        assert_eq!(
            (stats.moments.min, stats.moments.max),
            (3.0, 1_000_000_007.0)
        );
        assert!((stats.moments.mean / expected.mean - 1.0).abs() < 1e-12);
        assert!((stats.moments.stddev() / expected.stddev() - 1.0).abs() < 1e-9);
        assert_eq!(stats.histogram.unwrap().total(), 12);
    }

    #[test]
    fn in_flight_gauge_is_unknown_until_it_is_set() {
        let gauge = InFlightGauge::default();
        assert_eq!(gauge.get(), None);
        gauge.set(16);
        gauge.set(0);
        assert_eq!(gauge.get(), Some(0));
    }

    #[test]
    fn live_histogram_takes_each_count_once() {
        let live = LiveHistogram::default();
        let (mut before, mut seen) = (vec![0; BUCKETS], Histogram::default());
        live.record_n(10, 3);
        live.take_new(&mut before, &mut seen);
        live.record_n(10, 1);
        live.record_n(5_000, 1);
        live.take_new(&mut before, &mut seen);
        live.take_new(&mut before, &mut seen);
        assert_eq!(seen.total(), 5);
        assert_eq!(seen.percentile(50.0), Some(10));
    }
}
