//! Samples the running workers: fio's bw and iops statistics, intervals, rates for displays.
//!
//! The sampler reads the workers' counters. On real targets the thread that called `run` ticks it,
//! in a simulation the event loop.

use crate::counters::WorkerCounters;
use iosonde_job::plan::{Direction, PerDirection};
use iosonde_result::histogram::BUCKETS;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::observer::{WorkerProgress, WorkerState};
use iosonde_result::stats::Moments;
use std::sync::Arc;

type DirectionCounts = PerDirection<IntervalCounts>;

fn counts(shared: &WorkerCounters) -> DirectionCounts {
    PerDirection::from_fn(|direction| shared.counts(direction))
}

fn difference(now: &DirectionCounts, before: &DirectionCounts) -> DirectionCounts {
    PerDirection::from_fn(|direction| {
        let (now, before) = (now[direction], before[direction]);
        assert!(
            now.ios >= before.ios && now.bytes >= before.bytes,
            "counters only grow"
        );
        IntervalCounts {
            ios: now.ios - before.ios,
            bytes: now.bytes - before.bytes,
        }
    })
}

/// A repeating window: its start, and the counts at its start.
#[derive(Debug, Clone, Copy)]
struct SampleWindow {
    length_ns: u64,
    start_ns: u64,
    before: DirectionCounts,
}

impl SampleWindow {
    /// Returns the counts of the window and starts the next one, if the window is over.
    fn close(&mut self, now_ns: u64, counts: &DirectionCounts) -> Option<(DirectionCounts, u64)> {
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        if elapsed_ns < self.length_ns {
            return None;
        }
        let moved = difference(counts, &self.before);
        (self.start_ns, self.before) = (now_ns, *counts);
        Some((moved, elapsed_ns))
    }
}

/// Samples of one worker.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WorkerSamples {
    /// Bandwidth in KiB/s, one value per window in which the direction could run.
    pub(super) bw: PerDirection<Moments>,
    /// I/Os per second, likewise.
    pub(super) iops: PerDirection<Moments>,
}

struct SampledWorker {
    shared: Arc<WorkerCounters>,
    job: usize,
    has: PerDirection<bool>,
    /// Whether the worker is a neighbour, whose I/Os are in no interval.
    is_neighbour: bool,
    measured: bool,
    bw: SampleWindow,
    iops: SampleWindow,
    samples: WorkerSamples,
    latency_before: Vec<u64>,
    sync_latency_before: Vec<u64>,
    syncs_before: u64,
    /// Counts at the last tick.
    last: DirectionCounts,
}

/// Samples all workers of a run.
pub(super) struct Sampler {
    workers: Vec<SampledWorker>,
    interval_ns: u64,
    interval_start_ns: u64,
    interval: Interval,
    ramp: bool,
    /// Whether a worker was in its ramp during this interval.
    ramping: bool,
}

/// Result of one tick.
#[derive(Default)]
pub(super) struct Tick {
    /// The interval that this tick has completed.
    pub(super) interval: Option<Interval>,
    /// I/O of all workers but neighbours since the last tick.
    pub(super) moved: DirectionCounts,
}

impl Sampler {
    /// Creates a sampler without workers, with intervals of this length.
    pub(super) fn new(interval_ns: u64) -> Sampler {
        Sampler {
            workers: Vec::new(),
            interval_ns,
            interval_start_ns: 0,
            interval: Interval::default(),
            ramp: true,
            ramping: false,
        }
    }

    /// Adds a worker; its number is the count of workers before it.
    pub(super) fn add_worker(
        &mut self,
        shared: Arc<WorkerCounters>,
        (job, is_neighbour): (usize, bool),
        has: PerDirection<bool>,
        bw_ns: u64,
        iops_ns: u64,
    ) {
        let window = |length_ns: u64| SampleWindow {
            length_ns: length_ns.max(1),
            start_ns: 0,
            before: DirectionCounts::default(),
        };
        self.workers.push(SampledWorker {
            shared,
            job,
            has,
            is_neighbour,
            measured: false,
            bw: window(bw_ns),
            iops: window(iops_ns),
            samples: WorkerSamples::default(),
            latency_before: vec![0; BUCKETS],
            sync_latency_before: vec![0; BUCKETS],
            syncs_before: 0,
            last: DirectionCounts::default(),
        });
    }

    /// Samples all workers.
    pub(super) fn tick(&mut self, now_ns: u64) -> Tick {
        let mut tick = Tick::default();
        let mut of_neighbours: Option<Interval> = None;
        for worker in &mut self.workers {
            if worker.is_neighbour {
                worker.take_samples(now_ns, of_neighbours.get_or_insert_default());
                continue;
            }
            let moved = worker.take_samples(now_ns, &mut self.interval);
            for direction in Direction::ALL {
                for total in [
                    &mut tick.moved[direction],
                    &mut self.interval.directions[direction],
                ] {
                    total.ios += moved[direction].ios;
                    total.bytes += moved[direction].bytes;
                }
            }
        }
        let measured = (self.workers.iter()).any(|worker| worker.measured && !worker.is_neighbour);
        // The end of a ramp ends the interval, so that the first measured interval holds no ramp.
        let ramp_ended = measured && self.ramping;
        self.ramp &= !measured || ramp_ended;
        self.ramping |= !measured && self.workers.iter().any(SampledWorker::in_ramp);
        if ramp_ended || now_ns.saturating_sub(self.interval_start_ns) >= self.interval_ns {
            tick.interval = Some(self.take_interval(now_ns));
        }
        tick
    }

    /// Ends the current interval, however short it is.
    pub(super) fn take_interval(&mut self, now_ns: u64) -> Interval {
        let mut interval = std::mem::take(&mut self.interval);
        interval.start_ns = self.interval_start_ns;
        interval.length_ns = now_ns.saturating_sub(self.interval_start_ns);
        interval.ramp = self.ramp;
        interval.in_flight = self.in_flight();
        self.interval_start_ns = now_ns;
        self.ramp = true;
        self.ramping = false;
        interval
    }

    /// Sum of the I/Os in flight now, without those of neighbours. `None` if no backend is
    /// observed.
    fn in_flight(&self) -> Option<u64> {
        let own = self.workers.iter().filter(|worker| !worker.is_neighbour);
        let counts = own.filter_map(|worker| worker.shared.in_flight.get());
        counts.map(u64::from).reduce(|sum, count| sum + count)
    }

    /// Starts a group of workers: the time before belongs to no interval.
    pub(super) fn begin_group(&mut self, now_ns: u64) {
        self.interval_start_ns = now_ns;
        self.interval = Interval::default();
        self.ramping = false;
    }

    /// Returns the samples of worker `number`.
    pub(super) fn samples(&self, number: usize) -> WorkerSamples {
        self.workers[number].samples
    }

    /// Returns the progress of all workers.
    pub(super) fn progress(&self) -> Vec<WorkerProgress> {
        self.workers
            .iter()
            .map(|worker| WorkerProgress {
                state: worker.shared.state(),
                job: worker.job,
                open_files: worker
                    .shared
                    .open_files
                    .load(std::sync::atomic::Ordering::Relaxed),
                counts: counts(&worker.shared),
            })
            .collect()
    }
}

impl SampledWorker {
    fn in_ramp(&self) -> bool {
        !self.is_neighbour && self.shared.state() == WorkerState::Ramp
    }

    /// Takes the samples that are due. Returns the I/O since the last call.
    fn take_samples(&mut self, now_ns: u64, interval: &mut Interval) -> DirectionCounts {
        let now = counts(&self.shared);
        let moved = difference(&now, &self.last);
        self.last = now;
        self.shared
            .latency
            .take_new(&mut self.latency_before, &mut interval.latency);
        self.shared.take_new_syncs(
            &mut self.sync_latency_before,
            &mut self.syncs_before,
            &mut interval.sync_latency,
        );
        let runs = matches!(
            self.shared.state(),
            WorkerState::Running | WorkerState::Verifying
        );
        if runs && !self.measured {
            self.measured = true;
            for window in [&mut self.bw, &mut self.iops] {
                (window.start_ns, window.before) = (now_ns, now);
            }
        }
        if runs {
            self.sample(now_ns, &now);
        }
        moved
    }

    fn sample(&mut self, now_ns: u64, now: &DirectionCounts) {
        // Unlike in fio, a window without progress counts as 0: an idle job is not fast.
        let seconds = |ns: u64| ns as f64 / 1e9;
        if let Some((moved, elapsed_ns)) = self.bw.close(now_ns, now) {
            for direction in Direction::ALL
                .into_iter()
                .filter(|direction| self.has[*direction])
            {
                self.samples.bw[direction]
                    .record(moved[direction].bytes as f64 / 1024.0 / seconds(elapsed_ns));
            }
        }
        if let Some((moved, elapsed_ns)) = self.iops.close(now_ns, now) {
            for direction in Direction::ALL
                .into_iter()
                .filter(|direction| self.has[*direction])
            {
                self.samples.iops[direction]
                    .record(moved[direction].ios as f64 / seconds(elapsed_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Returns a sampler of one worker with intervals of a second.
    fn watching() -> (Sampler, Arc<WorkerCounters>) {
        let mut sampler = Sampler::new(SECOND_NS);
        let worker = Arc::new(WorkerCounters::default());
        sampler.add_worker(
            worker.clone(),
            (0, false),
            PerDirection::from_value(true),
            SECOND_NS,
            SECOND_NS,
        );
        (sampler, worker)
    }

    #[test]
    fn ramp_end_closes_the_interval() {
        let (mut sampler, worker) = watching();
        worker.enter(WorkerState::Ramp);
        sampler.begin_group(0);
        worker.add(Direction::Read, 500, 500 * 4096);
        assert!(sampler.tick(900_000_000).interval.is_none());
        worker.enter(WorkerState::Running);
        worker.add(Direction::Read, 10, 10 * 4096);
        // Just before the end of a full interval.
        let ramp = sampler.tick(990_000_000).interval.expect("the ramp's");
        assert!(ramp.ramp);
        assert_eq!(
            (ramp.length_ns, ramp.directions.read.ios),
            (990_000_000, 510)
        );
        worker.add(Direction::Read, 100, 100 * 4096);
        assert!(sampler.tick(1_900_000_000).interval.is_none());
        let measured = sampler.tick(1_990_000_000).interval.expect("complete");
        assert!(!measured.ramp);
        assert_eq!(
            (measured.start_ns, measured.directions.read.ios),
            (990_000_000, 100)
        );
    }

    #[test]
    fn interval_ends_with_the_ios_in_flight() {
        let (mut sampler, worker) = watching();
        worker.enter(WorkerState::Running);
        let unknown = sampler.tick(SECOND_NS).interval.expect("complete");
        assert_eq!(unknown.in_flight, None);
        worker.in_flight.set(16);
        sampler.tick(SECOND_NS + SECOND_NS / 2);
        worker.in_flight.set(15);
        let counted = sampler.tick(2 * SECOND_NS).interval.expect("complete");
        assert_eq!(counted.in_flight, Some(15));
    }

    #[test]
    fn sync_is_counted_in_exactly_one_interval() {
        let (mut sampler, worker) = watching();
        worker.enter(WorkerState::Running);
        worker.synced(5_000, 2);
        let first = sampler.tick(SECOND_NS).interval.expect("complete");
        let none = sampler.tick(2 * SECOND_NS).interval.expect("complete");
        worker.synced(7_000, 1);
        let third = sampler.tick(3 * SECOND_NS).interval.expect("complete");
        let total = |histogram: Option<iosonde_result::histogram::Histogram>| {
            histogram.map(|histogram| histogram.total())
        };
        assert_eq!(total(first.sync_latency), Some(2));
        assert_eq!(none.sync_latency, None);
        assert_eq!(total(third.sync_latency), Some(1));
    }

    #[test]
    fn intervals_without_a_ramp_are_complete() {
        let (mut sampler, worker) = watching();
        sampler.begin_group(0);
        assert!(sampler.tick(100_000_000).interval.is_none());
        worker.enter(WorkerState::Running);
        assert!(sampler.tick(200_000_000).interval.is_none());
        let interval = sampler.tick(SECOND_NS).interval.expect("complete");
        assert!(!interval.ramp && interval.length_ns == SECOND_NS);
    }
}
