//! Coordinates the jobs of a plan: starts, stops and samples their workers.
//!
//! [`super::threaded_run`] and [`super::simulated_run`] run the workers and report events to it.

use super::device_watch::DeviceWatch;
use super::job_result;
use super::min_rate_watch::RateWatch;
use super::status::StatusRequest;
use super::steady_state_watch::SteadyWatches;
use super::{JobClone, RunMeasurements};
use crate::interrupt::Interrupt;
use crate::runner::sampler::Sampler;
use crate::worker::clock::{Clock, RealClock};
use crate::worker::counters::Shared;
use crate::worker::flow::FlowPool;
use crate::worker::process_stops::Stops;
use iosonde_job::plan::{Direction, ExitWhat, Job, PerDirection, Plan};
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::interval::{Interval, IntervalCounts, Intervals};
use iosonde_result::observer::{Control, Observer, Progress, Start, WorkerState};
use iosonde_result::run::{Event, RunResult, WorkerResult};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Instant;

/// Maximum interval between two samples of the running workers.
const TICK_NS: u64 = 100_000_000;

/// State of a worker, as the coordinator knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Pending,
    Starting,
    Running,
    Done,
    /// Stopped before it started.
    Dropped,
}

/// Context of a run.
pub(super) struct RunContext<'a> {
    pub(super) interrupt: &'a Interrupt,
    /// Start of the run, layout included; `None` in a simulation, which uses its own clock.
    pub(super) begun: Option<Instant>,
    /// Start of the run in milliseconds of the Unix epoch.
    pub(super) started_at_ms: u64,
    /// Samples the devices and the machine; `None` in a simulation.
    pub(super) watch: Option<&'a mut DeviceWatch>,
}

pub(super) struct Coordinator<'a> {
    /// Clock of the run; `None` in a simulation, where each tick passes the time.
    clock: Option<RealClock>,
    /// Stops of the process, and their total length at the start of the interval.
    stops: Arc<Stops>,
    stopped_ns: u64,
    /// Simulated time during a tick; 0 in between, when a stopped worker uses its own time.
    simulated_ns: u64,
    /// Workers that were asked to stop.
    told: Vec<bool>,
    plan: &'a Plan,
    clones: &'a [JobClone],
    around: RunContext<'a>,
    observer: &'a mut dyn Observer,
    sampler: Sampler,
    shared: Vec<Arc<Shared>>,
    life: Vec<Life>,
    results: Vec<Option<WorkerResult>>,
    /// Start of each worker's group.
    starts_ns: Vec<Option<u64>>,
    steady: SteadyWatches,
    rates: BTreeMap<usize, RateWatch>,
    flows: BTreeMap<u32, Arc<FlowPool>>,
    outcome: RunMeasurements,
    tick_ns: u64,
    last_tick_ns: u64,
    stopping: bool,
    status: StatusRequest,
}

impl<'a> Coordinator<'a> {
    /// Creates a coordinator whose workers are all pending.
    pub(super) fn new(
        plan: &'a Plan,
        clones: &'a [JobClone],
        around: RunContext<'a>,
        observer: &'a mut dyn Observer,
    ) -> Coordinator<'a> {
        let interval_ns = observer.interval_ns(plan).max(1);
        let mut sampler = Sampler::new(interval_ns);
        let only_laid_out = |clone: &JobClone| plan.jobs[clone.job].files.create_only;
        let shared: Vec<_> = clones.iter().map(|_| Arc::new(Shared::default())).collect();
        for (clone, shared) in clones.iter().zip(&shared) {
            let job = &plan.jobs[clone.job];
            let has = PerDirection::from_fn(|direction| {
                job.workload.rw.has(direction)
                    || (direction == Direction::Read && job.verify.is_some())
            });
            sampler.watch(
                shared.clone(),
                clone.job,
                has,
                job.measure.bw_window_ns,
                job.measure.iops_window_ns,
            );
        }
        Coordinator {
            clock: None,
            stops: Arc::default(),
            stopped_ns: 0,
            simulated_ns: 0,
            told: vec![false; clones.len()],
            plan,
            clones,
            around,
            observer,
            sampler,
            // Files are laid out by now, so jobs with create_only are done.
            life: clones
                .iter()
                .map(|clone| match only_laid_out(clone) {
                    true => Life::Done,
                    false => Life::Pending,
                })
                .collect(),
            results: clones
                .iter()
                .map(|clone| {
                    let unused = job_result::unused(&plan.jobs[clone.job]);
                    only_laid_out(clone).then(|| job_result::blank(plan, clone, unused))
                })
                .collect(),
            starts_ns: vec![None; clones.len()],
            steady: SteadyWatches::default(),
            rates: BTreeMap::new(),
            flows: BTreeMap::new(),
            outcome: RunMeasurements {
                intervals: Intervals::spilling_to(Arc::new(SpillFile::default())),
                ..RunMeasurements::default()
            },
            tick_ns: tick_ns(interval_ns),
            last_tick_ns: 0,
            stopping: false,
            status: StatusRequest::default(),
            shared,
        }
    }

    /// Whether all workers are done or dropped.
    pub(super) fn is_finished(&self) -> bool {
        self.life
            .iter()
            .all(|life| matches!(life, Life::Done | Life::Dropped))
    }

    /// Returns when the next tick is due.
    pub(super) fn next_tick_ns(&self) -> u64 {
        let look_ns = self.last_tick_ns + self.tick_ns;
        let others = [self.status.next_look_ns(), self.steady.next_check_ns()];
        others.into_iter().flatten().fold(look_ns, u64::min)
    }

    /// Returns the counters that a worker shares with the coordinator.
    pub(super) fn shared(&self, number: usize) -> Arc<Shared> {
        self.shared[number].clone()
    }

    /// Returns the flow of a worker, if any.
    pub(super) fn flow(&mut self, number: usize) -> Option<Arc<FlowPool>> {
        self.job(number)
            .schedule
            .flow
            .map(|flow| self.flows.entry(flow.id).or_default().clone())
    }

    pub(super) fn job(&self, number: usize) -> &'a Job {
        &self.plan.jobs[self.clones[number].job]
    }

    /// Returns the next group to start at one instant: in order, up to a pending stonewall.
    pub(super) fn call_up(&mut self) -> Vec<usize> {
        let mut starting = Vec::new();
        if self.life.contains(&Life::Starting) {
            return starting;
        }
        for number in 0..self.clones.len() {
            if self.life[number] != Life::Pending {
                continue;
            }
            let job = self.job(number);
            let alone = self.life[..number]
                .iter()
                .all(|life| matches!(life, Life::Done | Life::Dropped));
            let first_clone = self.clones[number].clone == 0;
            if job.schedule.stonewall && first_clone && !(alone && starting.is_empty()) {
                break;
            }
            if job
                .schedule
                .wait_for
                .as_ref()
                .is_some_and(|name| self.is_unfinished(name))
            {
                continue;
            }
            starting.push(number);
        }
        for number in &starting {
            self.life[*number] = Life::Starting;
        }
        starting
    }

    fn is_unfinished(&self, name: &str) -> bool {
        (0..self.clones.len()).any(|number| {
            self.job(number).name == name
                && !matches!(self.life[number], Life::Done | Life::Dropped)
        })
    }

    /// Marks a worker as ready. Returns whether it completes its group.
    pub(super) fn ready(&mut self, number: usize) -> bool {
        self.life[number] = Life::Running;
        let complete = !self.life.contains(&Life::Starting);
        if complete && let Some(watch) = &mut self.around.watch {
            watch.machine().begin();
        }
        complete
    }

    /// Returns when the workers at the start barrier start: at once if the run is stopping.
    pub(super) fn may_start(&mut self) -> Start {
        match self.stopping {
            true => Start::Now,
            false => self.observer.start(),
        }
    }

    /// Starts the ready group at `start_ns`.
    pub(super) fn start(&mut self, now_ns: u64, start_ns: u64) {
        self.sampler.tick(now_ns);
        self.sampler.begin(start_ns);
        for number in 0..self.clones.len() {
            if self.life[number] != Life::Running || self.starts_ns[number].is_some() {
                continue;
            }
            self.starts_ns[number] = Some(start_ns);
            let job = self.job(number);
            let measured_ns = start_ns + job.schedule.ramp_time_ns;
            self.steady.start(number, job, start_ns);
            if let Some(watch) = RateWatch::new(job, measured_ns) {
                self.rates.insert(number, watch);
            }
        }
    }

    /// Records the result of a worker, and stops others as `exitall` requires.
    pub(super) fn done(&mut self, number: usize, result: WorkerResult) {
        self.life[number] = Life::Done;
        let job = self.job(number);
        let failed = result.error.is_some();
        self.results[number] = Some(result);
        if let Some(what) = job.schedule.exitall {
            self.stop_others(what, job.groupid);
        }
        if failed && job.schedule.exitall_on_error {
            self.stop_others(ExitWhat::All, job.groupid);
        }
    }

    fn stop_others(&mut self, what: ExitWhat, group: u32) {
        for number in 0..self.clones.len() {
            let concerned = match what {
                ExitWhat::Group => self.job(number).groupid == group,
                ExitWhat::Stonewall => self.life[number] != Life::Pending,
                ExitWhat::All => true,
            };
            if concerned {
                self.stop(number);
            }
        }
    }

    /// Sets the run's clock and the process stops that are detected during the run.
    pub(super) fn on(mut self, clock: RealClock, stops: Arc<Stops>) -> Self {
        self.clock = Some(clock);
        self.stops = stops;
        self
    }

    /// Stops a worker now. Asks only once, as the worker may be in its flush after the I/O.
    fn stop(&mut self, number: usize) {
        if !std::mem::replace(&mut self.told[number], true) {
            let now_ns = match &self.clock {
                Some(clock) => clock.now_ns(),
                None => self.simulated_ns,
            };
            self.shared[number].stop_ns.store(now_ns, Relaxed);
            self.shared[number].stop.store(true, Release);
        }
        if self.life[number] == Life::Pending {
            self.life[number] = Life::Dropped;
        }
    }

    fn stop_all(&mut self) {
        if !self.stopping {
            self.stopping = true;
            (0..self.clones.len()).for_each(|number| self.stop(number));
        }
    }

    /// Samples the running workers.
    pub(super) fn tick(&mut self, now_ns: u64) {
        let is_steady_due = (self.steady.next_check_ns()).is_some_and(|next_ns| next_ns <= now_ns);
        let is_early = now_ns < self.last_tick_ns + self.tick_ns;
        if is_early && (self.status.is_open() || is_steady_due) {
            self.simulated_ns = now_ns;
            self.look_for_steady_state(now_ns);
            self.simulated_ns = 0;
            if self.status.is_open() {
                self.tell_status(now_ns, self.at_ns(now_ns));
            }
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.last_tick_ns).max(1);
        self.last_tick_ns = now_ns;
        self.simulated_ns = now_ns;
        self.look(now_ns, elapsed_ns);
        self.simulated_ns = 0;
    }

    fn look(&mut self, now_ns: u64, elapsed_ns: u64) {
        if self.around.interrupt.is_requested() {
            self.stop_all();
        }
        self.pass_on_notes(now_ns);
        let tick = self.sampler.tick(now_ns);
        self.look_for_steady_state(now_ns);
        self.look_for_slow_jobs(now_ns);
        if let Some(interval) = tick.interval {
            let interval = self.with_stops(interval);
            if self.observer.interval(&interval) == Control::Stop {
                self.stop_all();
            }
            self.keep(interval);
        }
        let per_second =
            |amount: u64| (u128::from(amount) * 1_000_000_000 / u128::from(elapsed_ns)) as u64;
        let rate = PerDirection::from_fn(|direction| IntervalCounts {
            ios: per_second(tick.moved[direction].ios),
            bytes: per_second(tick.moved[direction].bytes),
        });
        let workers = self.sampler.progress();
        let (left_ns, done) =
            super::eta::estimate(self.plan, self.clones, &workers, &self.starts_ns, now_ns);
        let at_ns = self.at_ns(now_ns);
        let progress = Progress {
            at_ns,
            workers: &workers,
            rate,
            left_ns,
            done,
            pods: &[],
        };
        if self.observer.progress(&progress) == Control::Stop {
            self.stop_all();
        }
        self.tell_status(now_ns, at_ns);
    }

    /// Requests statistics from the workers if the observer asks, and reports them once complete.
    fn tell_status(&mut self, now_ns: u64, at_ns: u64) {
        if !self.status.is_open() && self.observer.wants_status(at_ns) {
            self.status.begin(now_ns, &self.shared);
        }
        if !self.status.is_answered(now_ns, &self.shared) {
            return;
        }
        let workers = (0..self.clones.len()).map(|number| self.so_far(number));
        let so_far = RunMeasurements {
            workers: workers.collect(),
            events: self.outcome.events.clone(),
            ..RunMeasurements::default()
        };
        let started_at_ms = self.around.started_at_ms;
        let watch = self.around.watch.as_deref();
        let result = RunResult {
            disks: watch.map_or_else(Vec::new, DeviceWatch::disks),
            ..super::result(self.plan, so_far, started_at_ms, at_ns)
        };
        self.observer.status(&result);
    }

    /// Returns the result of a worker as if it ended now.
    fn so_far(&self, number: usize) -> WorkerResult {
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

    /// Returns the time since the start of the run.
    fn at_ns(&self, now_ns: u64) -> u64 {
        let begun = self.around.begun;
        begun.map_or(now_ns, |begun| begun.elapsed().as_nanos() as u64)
    }

    /// Adds the length of the process stops that the interval leaves out.
    fn with_stops(&mut self, interval: Interval) -> Interval {
        let stopped_ns = match self.plan.counts_stops() {
            true => 0,
            false => self.stops.so_far_ns(),
        };
        let before_ns = std::mem::replace(&mut self.stopped_ns, stopped_ns);
        Interval {
            stopped_ns: stopped_ns - before_ns,
            ..interval
        }
    }

    fn keep(&mut self, interval: Interval) {
        if let Some(watch) = &mut self.around.watch {
            watch.machine().sample(&interval);
        }
        self.outcome.intervals.push(interval);
    }

    /// Reports the workers' messages.
    fn pass_on_notes(&mut self, now_ns: u64) {
        let at_ns = self.at_ns(now_ns);
        for (clone, shared) in self.clones.iter().zip(&self.shared) {
            for note in shared.take_notes() {
                let job = &self.plan.jobs[clone.job];
                let message = format!("{}: {}", job.name, note.text);
                let is_known = |event: &Event| event.message == message;
                if note.is_of_job && self.outcome.events.iter().any(is_known) {
                    continue;
                }
                let event = Event { at_ns, message };
                self.observer.event(&event);
                self.outcome.events.push(event);
            }
        }
    }

    fn look_for_steady_state(&mut self, now_ns: u64) {
        let life = &self.life;
        let is_running = |number: usize| life[number] == Life::Running;
        for number in self.steady.look(now_ns, &self.shared, is_running) {
            self.stop(number);
        }
    }

    /// `rate_min` and `rate_iops_min`: fails jobs that are too slow.
    fn look_for_slow_jobs(&mut self, now_ns: u64) {
        let mut slow = Vec::new();
        for (number, watch) in &mut self.rates {
            let runs = self.shared[*number].state() == WorkerState::Running;
            if runs && watch.is_too_slow(now_ns, &self.shared[*number]) {
                slow.push(*number);
            }
        }
        for number in slow {
            self.stop(number);
        }
    }

    /// Returns all measurements.
    pub(super) fn finish(mut self, now_ns: u64) -> RunMeasurements {
        self.outcome.elapsed_ns = now_ns;
        self.pass_on_notes(now_ns);
        let last = self
            .sampler
            .tick(now_ns)
            .interval
            .unwrap_or_else(|| self.sampler.take_interval(now_ns));
        let last = self.with_stops(last);
        self.outcome.stopped_ns = self.stopped_ns;
        self.outcome.stopped = self.stops.verdict(!self.plan.counts_stops());
        if last.directions.iter().any(|(_, counts)| counts.ios > 0) {
            self.keep(last);
        }
        for number in 0..self.clones.len() {
            let Some(mut result) = self.results[number].take() else {
                continue;
            };
            self.add_samples(number, &mut result);
            if let Some(failure) = self.rates.get(&number).and_then(RateWatch::failure) {
                result.error.get_or_insert(failure);
            }
            self.outcome.workers.push(result);
        }
        if self.stopping && self.around.interrupt.is_requested() {
            let at_ns = self.at_ns(now_ns);
            self.outcome.events.push(Event {
                at_ns,
                message: "interrupted: the run was ended early".to_owned(),
            });
        }
        self.outcome
    }
}

/// Returns the time between ticks. It divides the interval, so that no interval ends late.
fn tick_ns(interval_ns: u64) -> u64 {
    interval_ns.div_ceil(interval_ns.div_ceil(TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::tick_ns;

    #[test]
    fn intervals_are_whole_numbers_of_looks() {
        assert_eq!(tick_ns(1_000_000_000), 100_000_000);
        assert_eq!(tick_ns(250_000_000), 83_333_334);
        assert_eq!(tick_ns(100_000_000), 100_000_000);
        assert_eq!(tick_ns(30_000_000), 30_000_000);
    }
}
