//! Reports of a run: interim statistics, intervals, messages and the final measurements.

use super::{Coordinator, RunMeasurements};
use crate::runner::cold_caches::DroppedCaches;
use crate::runner::device_watch::DeviceWatch;
use crate::runner::job_result;
use crate::runner::min_rate_watch::RateWatch;
use iosonde_job::plan::Direction;
use iosonde_result::interval::Interval;
use iosonde_result::run::{RunEvent, RunResult, WorkerResult};

impl Coordinator<'_> {
    /// Requests statistics from the workers if the observer asks, and reports them once complete.
    pub(super) fn report_status(&mut self, now_ns: u64, at_ns: u64) {
        if !self.status.is_open() && self.observer.wants_status(at_ns) {
            self.status.begin(now_ns, &self.shared);
        }
        if !self.status.is_answered(now_ns, &self.shared) {
            return;
        }
        let (mut workers, mut neighbours) = (Vec::new(), Vec::new());
        for number in 0..self.clones.len() {
            match self.job(number).schedule.neighbour {
                true => neighbours.push(self.interim_result(number)),
                false => workers.push(self.interim_result(number)),
            }
        }
        let so_far = RunMeasurements {
            workers,
            neighbours,
            events: self.outcome.events.clone(),
            ..RunMeasurements::default()
        };
        let started_at_ms = self.context.started_at_ms;
        let watch = self.context.watch.as_deref();
        let result = RunResult {
            disks: watch.map_or_else(Vec::new, DeviceWatch::disks),
            ..crate::runner::result(self.plan, so_far, started_at_ms, at_ns)
        };
        self.observer.status(&result);
    }

    /// Returns the result of a worker as if it ended now.
    fn interim_result(&self, number: usize) -> WorkerResult {
        let known = self.results[number].clone();
        let mut result = known
            .or_else(|| self.shared[number].published())
            .unwrap_or_else(|| {
                let unused = job_result::unused(self.job(number));
                job_result::blank(self.plan, &self.clones[number], unused)
            });
        self.add_samples(number, &mut result);
        result
    }

    /// Adds the coordinator's samples of a worker to its result.
    fn add_samples(&self, number: usize, result: &mut WorkerResult) {
        let samples = self.sampler.samples(number);
        for direction in Direction::ALL {
            result.directions[direction].bw = samples.bw[direction];
            result.directions[direction].iops = samples.iops[direction];
        }
        result.steady_state = self.steady.result(number, self.job(number));
    }

    /// Returns the record of dropped caches.
    pub(in crate::runner) fn dropped_caches(&mut self) -> &mut DroppedCaches {
        &mut self.outcome.dropped
    }

    /// Returns the time since the start of the run.
    pub(super) fn at_ns(&self, now_ns: u64) -> u64 {
        let begun = self.context.begun;
        begun.map_or(now_ns, |begun| begun.elapsed().as_nanos() as u64)
    }

    /// Adds the length of the process stops that the interval leaves out.
    pub(super) fn with_stops(&mut self, interval: Interval) -> Interval {
        let stopped_ns = match self.plan.counts_stops() {
            true => 0,
            false => self.stops.so_far_ns(),
        };
        let before_ns = std::mem::replace(&mut self.stopped_ns, stopped_ns);
        assert!(before_ns <= stopped_ns, "the sum of stops only grows");
        Interval {
            stopped_ns: stopped_ns - before_ns,
            ..interval
        }
    }

    pub(super) fn record_interval(&mut self, interval: Interval) {
        if let Some(watch) = &mut self.context.watch {
            watch.machine().sample(&interval);
        }
        // Only live displays use the I/Os in flight. They are not stored, so that a result equals
        // its stored copy.
        self.outcome.intervals.push(Interval {
            in_flight: None,
            ..interval
        });
    }

    /// Reports the workers' messages.
    pub(super) fn report_notes(&mut self, now_ns: u64) {
        let at_ns = self.at_ns(now_ns);
        for (clone, shared) in self.clones.iter().zip(&self.shared) {
            for note in shared.take_notes() {
                let job = &self.plan.jobs[clone.job];
                let message = format!("{}: {}", job.name, note.text);
                let is_known = |event: &RunEvent| event.message == message;
                if note.is_of_job && self.outcome.events.iter().any(is_known) {
                    continue;
                }
                let event = RunEvent { at_ns, message };
                self.observer.event(&event);
                self.outcome.events.push(event);
            }
        }
    }

    /// Returns all measurements.
    pub(in crate::runner) fn finish(mut self, now_ns: u64) -> RunMeasurements {
        self.outcome.elapsed_ns = now_ns;
        self.report_notes(now_ns);
        let last = self
            .sampler
            .tick(now_ns)
            .interval
            .unwrap_or_else(|| self.sampler.take_interval(now_ns));
        let last = self.with_stops(last);
        self.outcome.stopped_ns = self.stopped_ns;
        self.outcome.stopped = self.stops.verdict(!self.plan.counts_stops());
        if last.directions.iter().any(|(_, counts)| counts.ios > 0) {
            self.record_interval(last);
        }
        for number in 0..self.clones.len() {
            let Some(mut result) = self.results[number].take() else {
                continue;
            };
            self.add_samples(number, &mut result);
            if let Some(failure) = self.rates.get(&number).and_then(RateWatch::failure) {
                result.error.get_or_insert(failure);
            }
            match self.job(number).schedule.neighbour {
                true => self.outcome.neighbours.push(result),
                false => self.outcome.workers.push(result),
            }
        }
        if self.stopping && self.context.interrupt.is_requested() {
            let at_ns = self.at_ns(now_ns);
            self.outcome.events.push(RunEvent {
                at_ns,
                message: "interrupted: the run was ended early".to_owned(),
            });
        }
        self.outcome
    }
}
