//! Samples the running workers: fio's bw and iops statistics, intervals, rates for displays.
//!
//! The sampler reads the workers' counters. On real targets the thread that called `run` ticks it,
//! in a simulation the event loop.

use crate::worker::counters::Shared;
use iosonde_job::plan::{Direction, PerDirection};
use iosonde_result::histogram::BUCKETS;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::observer::{WorkerProgress, WorkerState};
use iosonde_result::stats::Moments;
use std::sync::Arc;

type Counts = PerDirection<IntervalCounts>;

fn counts(shared: &Shared) -> Counts {
    PerDirection::from_fn(|direction| shared.counts(direction))
}

fn difference(now: &Counts, before: &Counts) -> Counts {
    PerDirection::from_fn(|direction| IntervalCounts {
        ios: now[direction].ios - before[direction].ios,
        bytes: now[direction].bytes - before[direction].bytes,
    })
}

/// A repeating window: its start, and the counts at its start.
#[derive(Debug, Clone, Copy)]
struct Window {
    length_ns: u64,
    start_ns: u64,
    before: Counts,
}

impl Window {
    /// Returns the counts of the window and starts the next one, if the window is over.
    fn close(&mut self, now_ns: u64, counts: &Counts) -> Option<(Counts, u64)> {
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
pub struct Samples {
    /// Bandwidth in KiB/s, one value per window in which the direction could run.
    pub bw: PerDirection<Moments>,
    /// I/Os per second, likewise.
    pub iops: PerDirection<Moments>,
}

struct Watched {
    shared: Arc<Shared>,
    job: usize,
    has: PerDirection<bool>,
    measured: bool,
    bw: Window,
    iops: Window,
    samples: Samples,
    latency_before: Vec<u64>,
    sync_latency_before: Vec<u64>,
    syncs_before: u64,
    /// Counts at the last tick.
    last: Counts,
}

/// Samples all workers of a run.
pub struct Sampler {
    watched: Vec<Watched>,
    interval_ns: u64,
    interval_start_ns: u64,
    interval: Interval,
    ramp: bool,
    /// Whether a worker was in its ramp during this interval.
    ramping: bool,
}

/// Result of one tick.
#[derive(Default)]
pub struct Tick {
    /// The interval that this tick has completed.
    pub interval: Option<Interval>,
    /// I/O of all workers since the last tick.
    pub moved: Counts,
}

impl Sampler {
    /// Creates a sampler without workers, with intervals of this length.
    pub fn new(interval_ns: u64) -> Sampler {
        Sampler {
            watched: Vec::new(),
            interval_ns,
            interval_start_ns: 0,
            interval: Interval::default(),
            ramp: true,
            ramping: false,
        }
    }

    /// Adds a worker; its number is the count of workers before it.
    pub fn watch(
        &mut self,
        shared: Arc<Shared>,
        job: usize,
        has: PerDirection<bool>,
        bw_ns: u64,
        iops_ns: u64,
    ) {
        let window = |length_ns: u64| Window {
            length_ns: length_ns.max(1),
            start_ns: 0,
            before: Counts::default(),
        };
        self.watched.push(Watched {
            shared,
            job,
            has,
            measured: false,
            bw: window(bw_ns),
            iops: window(iops_ns),
            samples: Samples::default(),
            latency_before: vec![0; BUCKETS],
            sync_latency_before: vec![0; BUCKETS],
            syncs_before: 0,
            last: Counts::default(),
        });
    }

    /// Samples all workers.
    pub fn tick(&mut self, now_ns: u64) -> Tick {
        let mut tick = Tick::default();
        for watched in &mut self.watched {
            let moved = watched.look(now_ns, &mut self.interval);
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
        let measured = self.watched.iter().any(|watched| watched.measured);
        // The end of a ramp ends the interval, so that the first measured interval holds no ramp.
        let ramp_ended = measured && self.ramping;
        self.ramp &= !measured || ramp_ended;
        self.ramping |= !measured && self.watched.iter().any(Watched::in_ramp);
        if ramp_ended || now_ns.saturating_sub(self.interval_start_ns) >= self.interval_ns {
            tick.interval = Some(self.take_interval(now_ns));
        }
        tick
    }

    /// Ends the current interval, however short it is.
    pub fn take_interval(&mut self, now_ns: u64) -> Interval {
        let mut interval = std::mem::take(&mut self.interval);
        interval.start_ns = self.interval_start_ns;
        interval.length_ns = now_ns.saturating_sub(self.interval_start_ns);
        interval.ramp = self.ramp;
        self.interval_start_ns = now_ns;
        self.ramp = true;
        self.ramping = false;
        interval
    }

    /// Starts a group of workers: the time before belongs to no interval.
    pub fn begin(&mut self, now_ns: u64) {
        self.interval_start_ns = now_ns;
        self.interval = Interval::default();
        self.ramping = false;
    }

    /// Returns the samples of worker `number`.
    pub fn samples(&self, number: usize) -> Samples {
        self.watched[number].samples
    }

    /// Returns the progress of all workers.
    pub fn progress(&self) -> Vec<WorkerProgress> {
        self.watched
            .iter()
            .map(|watched| WorkerProgress {
                state: watched.shared.state(),
                job: watched.job,
                open_files: watched
                    .shared
                    .open_files
                    .load(std::sync::atomic::Ordering::Relaxed),
                counts: counts(&watched.shared),
            })
            .collect()
    }
}

impl Watched {
    fn in_ramp(&self) -> bool {
        self.shared.state() == WorkerState::Ramp
    }

    /// Takes the samples that are due. Returns the I/O since the last call.
    fn look(&mut self, now_ns: u64, interval: &mut Interval) -> Counts {
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

    fn sample(&mut self, now_ns: u64, now: &Counts) {
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
    fn watching() -> (Sampler, Arc<Shared>) {
        let mut sampler = Sampler::new(SECOND_NS);
        let worker = Arc::new(Shared::default());
        sampler.watch(
            worker.clone(),
            0,
            PerDirection::all(true),
            SECOND_NS,
            SECOND_NS,
        );
        (sampler, worker)
    }

    #[test]
    fn an_interval_ends_with_its_ramp() {
        let (mut sampler, worker) = watching();
        worker.enter(WorkerState::Ramp);
        sampler.begin(0);
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
    fn each_sync_is_in_one_interval() {
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
    fn without_a_ramp_intervals_are_whole() {
        let (mut sampler, worker) = watching();
        sampler.begin(0);
        assert!(sampler.tick(100_000_000).interval.is_none());
        worker.enter(WorkerState::Running);
        assert!(sampler.tick(200_000_000).interval.is_none());
        let interval = sampler.tick(SECOND_NS).interval.expect("complete");
        assert!(!interval.ramp && interval.length_ns == SECOND_NS);
    }
}
