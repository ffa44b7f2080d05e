//! Coordinates the jobs of a plan: starts, stops and samples their workers.
//!
//! [`super::threaded_run`] and [`super::simulated_run`] run the workers and report events to it.

mod measurements;

use super::device_watch::DeviceWatch;
use super::job_result;
use super::min_rate_watch::RateWatch;
use super::status::StatusRequest;
use super::steady_state_watch::SteadyWatches;
use super::{JobClone, RunMeasurements};
use crate::clock::{Clock, RealClock};
use crate::counters::WorkerCounters;
use crate::interrupt::Interrupt;
use crate::process_stops::Stops;
use crate::runner::sampler::Sampler;
use crate::worker::flow::FlowPool;
use iosonde_job::plan::{Direction, ExitWhat, Job, PerDirection, Plan};
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::interval::{IntervalCounts, Intervals};
use iosonde_result::observer::{Control, Observer, RunProgress, StartDecision, WorkerState};
use iosonde_result::run::WorkerResult;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Instant;

/// Maximum interval between two samples of the running workers.
const TICK_NS: u64 = 100_000_000;

/// State of a worker, as the coordinator knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloneState {
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
    stop_requested: Vec<bool>,
    plan: &'a Plan,
    clones: &'a [JobClone],
    context: RunContext<'a>,
    observer: &'a mut dyn Observer,
    sampler: Sampler,
    shared: Vec<Arc<WorkerCounters>>,
    states: Vec<CloneState>,
    /// Whether the plan has a neighbour.
    has_neighbour: bool,
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
        context: RunContext<'a>,
        observer: &'a mut dyn Observer,
    ) -> Coordinator<'a> {
        let interval_ns = observer.interval_ns(plan).max(1);
        let mut sampler = Sampler::new(interval_ns);
        let only_laid_out = |clone: &JobClone| plan.jobs[clone.job].files.create_only;
        let shared: Vec<_> = clones
            .iter()
            .map(|_| Arc::new(WorkerCounters::default()))
            .collect();
        for (clone, shared) in clones.iter().zip(&shared) {
            let job = &plan.jobs[clone.job];
            let has = PerDirection::from_fn(|direction| {
                job.workload.rw.has(direction)
                    || (direction == Direction::Read && job.verify.is_some())
            });
            sampler.add_worker(
                shared.clone(),
                (clone.job, job.schedule.neighbour),
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
            stop_requested: vec![false; clones.len()],
            plan,
            clones,
            context,
            observer,
            sampler,
            // Files are laid out by now, so jobs with create_only are done.
            states: clones
                .iter()
                .map(|clone| match only_laid_out(clone) {
                    true => CloneState::Done,
                    false => CloneState::Pending,
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
            has_neighbour: plan.neighbour().is_some(),
        }
    }

    /// Whether all workers are done or dropped.
    pub(super) fn is_finished(&self) -> bool {
        self.states
            .iter()
            .all(|state| matches!(state, CloneState::Done | CloneState::Dropped))
    }

    /// Returns when the next tick is due.
    pub(super) fn next_tick_ns(&self) -> u64 {
        let tick_ns = self.last_tick_ns + self.tick_ns;
        let others = [self.status.next_check_ns(), self.steady.next_check_ns()];
        others.into_iter().flatten().fold(tick_ns, u64::min)
    }

    /// Returns the counters that a worker shares with the coordinator.
    pub(super) fn shared(&self, number: usize) -> Arc<WorkerCounters> {
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
    /// Neighbours are the first group.
    pub(super) fn next_group(&mut self) -> Vec<usize> {
        let mut starting = Vec::new();
        if self.states.contains(&CloneState::Starting) {
            return starting;
        }
        if self.has_neighbour {
            self.stop_neighbours_left_alone();
            starting.extend((0..self.clones.len()).filter(|number| {
                self.states[*number] == CloneState::Pending && self.is_neighbour(*number)
            }));
            if !starting.is_empty() {
                for number in &starting {
                    self.states[*number] = CloneState::Starting;
                }
                return starting;
            }
        }
        for number in 0..self.clones.len() {
            if self.states[number] != CloneState::Pending {
                continue;
            }
            let job = self.job(number);
            let alone = self.states[..number]
                .iter()
                .all(|state| matches!(state, CloneState::Done | CloneState::Dropped));
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
            self.states[*number] = CloneState::Starting;
        }
        starting
    }

    fn is_neighbour(&self, number: usize) -> bool {
        self.job(number).schedule.neighbour
    }

    /// Whether the workers that wait at the start barrier are all neighbours.
    pub(super) fn is_group_of_neighbours(&self) -> bool {
        self.has_neighbour
            && (0..self.clones.len())
                .filter(|number| {
                    self.states[*number] == CloneState::Running && self.starts_ns[*number].is_none()
                })
                .all(|number| self.is_neighbour(number))
    }

    /// Stops the neighbours once all other workers have ended.
    fn stop_neighbours_left_alone(&mut self) {
        let is_over = |state: CloneState| matches!(state, CloneState::Done | CloneState::Dropped);
        let mut numbers = 0..self.clones.len();
        if numbers.all(|number| self.is_neighbour(number) || is_over(self.states[number])) {
            for number in 0..self.clones.len() {
                if self.is_neighbour(number) && !is_over(self.states[number]) {
                    self.stop(number);
                }
            }
        }
    }

    fn is_unfinished(&self, name: &str) -> bool {
        (0..self.clones.len()).any(|number| {
            self.job(number).name == name
                && !matches!(self.states[number], CloneState::Done | CloneState::Dropped)
        })
    }

    /// Marks a worker as ready. Returns whether it completes its group.
    pub(super) fn mark_ready(&mut self, number: usize) -> bool {
        assert_eq!(
            self.states[number],
            CloneState::Starting,
            "a worker is in one group"
        );
        self.states[number] = CloneState::Running;
        let complete = !self.states.contains(&CloneState::Starting);
        let is_measured = complete && !self.is_group_of_neighbours();
        if is_measured && let Some(watch) = &mut self.context.watch {
            watch.machine().begin_group();
        }
        complete
    }

    /// Returns when the workers at the start barrier start: at once if the run is stopping.
    pub(super) fn poll_start(&mut self) -> StartDecision {
        match self.stopping {
            true => StartDecision::Now,
            false => self.observer.start(),
        }
    }

    /// Starts the ready group at `start_ns`.
    pub(super) fn start(&mut self, now_ns: u64, start_ns: u64) {
        self.sampler.tick(now_ns);
        self.sampler.begin_group(start_ns);
        for number in 0..self.clones.len() {
            if self.states[number] != CloneState::Running || self.starts_ns[number].is_some() {
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
    pub(super) fn record_result(&mut self, number: usize, result: WorkerResult) {
        self.states[number] = CloneState::Done;
        let job = self.job(number);
        let failed = result.error.is_some();
        let earlier = self.results[number].replace(result);
        assert!(earlier.is_none(), "worker {number} ends once");
        if let Some(what) = job.schedule.exitall {
            self.stop_others(what, job.groupid);
        }
        // Without its neighbour, the rest of the run would measure something else.
        if failed && (job.schedule.exitall_on_error || job.schedule.neighbour) {
            self.stop_others(ExitWhat::All, job.groupid);
        }
        if self.has_neighbour {
            self.stop_neighbours_left_alone();
        }
    }

    fn stop_others(&mut self, what: ExitWhat, group: u32) {
        for number in 0..self.clones.len() {
            let concerned = match what {
                ExitWhat::Group => self.job(number).groupid == group,
                // Neighbours last until the jobs behind the stonewall have ended.
                ExitWhat::Stonewall => {
                    self.states[number] != CloneState::Pending && !self.is_neighbour(number)
                }
                ExitWhat::All => true,
            };
            if concerned {
                self.stop(number);
            }
        }
    }

    /// Sets the run's clock and the process stops that are detected during the run.
    pub(super) fn with_clock(mut self, clock: RealClock, stops: Arc<Stops>) -> Self {
        self.clock = Some(clock);
        self.stops = stops;
        self
    }

    /// Stops a worker now. Asks only once, as the worker may be in its flush after the I/O.
    fn stop(&mut self, number: usize) {
        if !std::mem::replace(&mut self.stop_requested[number], true) {
            let now_ns = match &self.clock {
                Some(clock) => clock.now_ns(),
                None => self.simulated_ns,
            };
            self.shared[number].stop_ns.store(now_ns, Relaxed);
            self.shared[number].stop.store(true, Release);
        }
        if self.states[number] == CloneState::Pending {
            self.states[number] = CloneState::Dropped;
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
            self.check_steady_state(now_ns);
            self.simulated_ns = 0;
            if self.status.is_open() {
                self.report_status(now_ns, self.at_ns(now_ns));
            }
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.last_tick_ns).max(1);
        self.last_tick_ns = now_ns;
        self.simulated_ns = now_ns;
        self.sample_workers(now_ns, elapsed_ns);
        self.simulated_ns = 0;
    }

    fn sample_workers(&mut self, now_ns: u64, elapsed_ns: u64) {
        if self.context.interrupt.is_requested() {
            self.stop_all();
        }
        self.report_notes(now_ns);
        let tick = self.sampler.tick(now_ns);
        self.check_steady_state(now_ns);
        self.check_min_rates(now_ns);
        if let Some(interval) = tick.interval {
            let interval = self.with_stops(interval);
            if self.observer.interval(&interval) == Control::Stop {
                self.stop_all();
            }
            self.record_interval(interval);
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
        let progress = RunProgress {
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
        self.report_status(now_ns, at_ns);
    }

    fn check_steady_state(&mut self, now_ns: u64) {
        let states = &self.states;
        let is_running = |number: usize| states[number] == CloneState::Running;
        for number in self.steady.check_counts(now_ns, &self.shared, is_running) {
            self.stop(number);
        }
    }

    /// `rate_min` and `rate_iops_min`: fails jobs that are too slow.
    fn check_min_rates(&mut self, now_ns: u64) {
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
}

/// Returns the time between ticks. It divides the interval, so that no interval ends late.
fn tick_ns(interval_ns: u64) -> u64 {
    let tick_ns = interval_ns.div_ceil(interval_ns.div_ceil(TICK_NS));
    assert!(
        (1..=TICK_NS).contains(&tick_ns),
        "{tick_ns} ns between ticks"
    );
    tick_ns
}

#[cfg(test)]
mod tests {
    use super::tick_ns;

    #[test]
    fn interval_is_a_whole_number_of_ticks() {
        assert_eq!(tick_ns(1_000_000_000), 100_000_000);
        assert_eq!(tick_ns(250_000_000), 83_333_334);
        assert_eq!(tick_ns(100_000_000), 100_000_000);
        assert_eq!(tick_ns(30_000_000), 30_000_000);
    }
}
