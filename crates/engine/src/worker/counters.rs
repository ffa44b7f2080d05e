//! Counting, without locks and without allocation: what a worker writes and others may read at any time.

use iosonde_job::plan::Direction;
use iosonde_result::histogram::{self, BUCKETS, Histogram};
use iosonde_result::interval::IntervalCounts;
use iosonde_result::observer::WorkerState;
use iosonde_result::run::WorkerResult;
use iosonde_result::stats::{LatencyStats, Moments};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A count with one writer. Plain loads and stores: no other thread ever adds.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owner may.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    /// The count now.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A histogram with one writer and any number of readers.
#[derive(Debug)]
pub struct LiveHistogram(Box<[Counter; BUCKETS]>);

impl Default for LiveHistogram {
    fn default() -> Self {
        LiveHistogram(Box::new(std::array::from_fn(|_| Counter::default())))
    }
}

impl LiveHistogram {
    /// Counts `value` `n` times.
    #[inline(always)]
    pub fn record_n(&self, value: u64, n: u64) {
        self.0[histogram::index_of(value)].add(n);
    }

    /// Adds to `into` what was counted since `before`, and brings `before` up to date.
    pub fn take_new(&self, before: &mut [u64], into: &mut Histogram) {
        for (index, (counter, old)) in self.0.iter().zip(before).enumerate() {
            let now = counter.get();
            if now != *old {
                into.add_bucket(index, now - *old);
                *old = now;
            }
        }
    }
}

/// Exact moments of latencies, and their histogram.
///
/// One cache line beside the histogram: where completions come one by one, the kernel's work between two of them has driven
/// the worker's memory out of the nearest cache, and every line that is touched costs.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LatencyTally {
    sum: u128,
    sum_of_squares: u128,
    count: u64,
    min: u64,
    max: u64,
    histogram: Box<[u64; BUCKETS]>,
}

const _: () = assert!(size_of::<LatencyTally>() == 64);

impl Default for LatencyTally {
    fn default() -> Self {
        LatencyTally {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_of_squares: 0,
            histogram: Box::new([0; BUCKETS]),
        }
    }
}

impl LatencyTally {
    /// Counts `value` `n` times.
    #[inline(always)]
    pub fn record_n(&mut self, value: u64, n: u64) {
        self.count += n;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(n);
        self.sum_of_squares += u128::from(value) * u128::from(value) * u128::from(n);
        self.histogram[histogram::index_of(value)] += n;
    }

    /// The statistics so far.
    pub fn stats(&self) -> LatencyStats {
        if self.count == 0 {
            return LatencyStats::default();
        }
        let n = self.count as f64;
        let mean = self.sum as f64 / n;
        // n * sum(x^2) - sum(x)^2 in integers where it fits: the difference of two large numbers must not be rounded.
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

/// Messages that one worker may leave between two looks; the last says that there were more.
const MOST_NOTES: usize = 1_000;
const FULL_NOTES: usize = MOST_NOTES - 1;

/// What a running worker shows to the others: counters for displays and samples, and the flag that ends it.
///
/// What the loop touches in each round comes first, in as few cache lines as it takes.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Shared {
    ios: [Counter; 3],
    bytes: [Counter; 3],
    /// Sum of the latencies in `latency`, in nanoseconds.
    pub latency_sum_ns: Counter,
    /// Latencies of all completed I/Os, ramp included, for the intervals.
    pub latency: LiveHistogram,
    /// Set to end the worker as if its time were over.
    pub stop: AtomicBool,
    /// When that was, on the run's clock; 0 where it does not matter.
    pub stop_ns: AtomicU64,
    /// Set when the worker is to publish its statistics; cleared when it has.
    pub asked: AtomicBool,
    state: AtomicU8,
    /// Files it has open.
    pub open_files: AtomicU32,
    /// Latencies of fsync and its kin, ramp included, and how many there are.
    syncs: Counter,
    sync_latency: LiveHistogram,
    /// The statistics that the worker published last.
    published: Mutex<Option<Box<WorkerResult>>>,
    /// Messages for the user that nobody has seen yet.
    notes: Mutex<Vec<Note>>,
}

/// A message for the user.
#[derive(Debug)]
pub struct Note {
    /// The message, without the job's name.
    pub text: String,
    /// All clones of the job may leave the same message, which is shown once.
    pub is_of_job: bool,
}

impl Shared {
    /// What the worker does now.
    pub fn state(&self) -> WorkerState {
        const STATES: [WorkerState; 9] = [
            WorkerState::NotStarted,
            WorkerState::Layout,
            WorkerState::Ready,
            WorkerState::Ramp,
            WorkerState::Running,
            WorkerState::Verifying,
            WorkerState::Syncing,
            WorkerState::Finished,
            WorkerState::Failed,
        ];
        STATES[usize::from(self.state.load(Relaxed)).min(STATES.len() - 1)]
    }

    /// Hands out statistics that were asked for. Not for the loop: it locks.
    pub fn publish(&self, result: WorkerResult) {
        *self
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Box::new(result));
        self.asked.store(false, Relaxed);
    }

    /// The statistics that were published last.
    pub fn published(&self) -> Option<WorkerResult> {
        let published = self.published.lock();
        let published = published.unwrap_or_else(PoisonError::into_inner);
        published.as_deref().cloned()
    }

    /// Leaves a message for the user. Not for the loop: it locks and allocates.
    pub fn note(&self, text: String) {
        self.leave(Note {
            text,
            is_of_job: false,
        });
    }

    /// Leaves a message that is shown once for all clones of the job.
    pub fn note_of_job(&self, text: String) {
        self.leave(Note {
            text,
            is_of_job: true,
        });
    }

    fn leave(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match notes.len() {
            MOST_NOTES.. => {}
            FULL_NOTES => notes.push(Note {
                text: "more messages are not shown".to_owned(),
                is_of_job: false,
            }),
            _ => notes.push(note),
        }
    }

    /// The messages since the last call.
    pub fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a state.
    pub fn enter(&self, state: WorkerState) {
        self.state.store(state as u8, Relaxed);
    }

    /// Counts completed I/Os; only the owner may.
    #[inline(always)]
    pub fn add(&self, direction: Direction, ios: u64, bytes: u64) {
        self.ios[direction as usize].add(ios);
        self.bytes[direction as usize].add(bytes);
    }

    /// Counts a sync that took so long; only the owner may.
    pub fn synced(&self, latency_ns: u64, n: u64) {
        self.sync_latency.record_n(latency_ns, n);
        self.syncs.add(n);
    }

    /// Adds to `into` the latencies of syncs since the last call with the same `before` and `syncs_before`.
    pub fn take_new_syncs(
        &self,
        before: &mut [u64],
        syncs_before: &mut u64,
        into: &mut Option<Histogram>,
    ) {
        let syncs = self.syncs.get();
        // Most workers have none, and a histogram is long.
        if syncs != *syncs_before {
            *syncs_before = syncs;
            self.sync_latency
                .take_new(before, into.get_or_insert_default());
        }
    }

    /// Counts so far, ramp included.
    pub fn counts(&self, direction: Direction) -> IntervalCounts {
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
        let mut tally = LatencyTally::default();
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
    fn live_histogram_hands_out_each_count_once() {
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
