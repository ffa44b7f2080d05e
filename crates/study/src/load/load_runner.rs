//! [`LoadRunner`]: the runs of a load study: layout, capacity, offered loads.

use super::load_options::LoadOptions;
use super::load_plan::{LoadJobs, Mix};
use super::load_times::{Overrun, StepsLeft, planned_time, step_ns};
use super::step::LoadRun;
use crate::driver::{RepeatableRun, StudyDriver, first_failure, is_direct_refused};
use crate::error::StudyError;
use crate::event::{StudyEvent, StudyFinding, StudyStep};
use crate::figures::load_measurement::Offered;
use crate::job_template::{JobTemplate, LAYOUT_BLOCK_BYTES, LAYOUT_DEPTH};
use crate::layout_time::LayoutTime;
use crate::run_hook::RunPurpose;
use crate::stop_rule::FixedIntervals;
use crate::study_target::StudyTarget;
use crate::words;
use iosonde_job::plan::{Job, Plan};
use iosonde_result::ceph::{self, CephSide};
use iosonde_result::device_class::DeviceDescription;
use iosonde_result::observer::INTERVAL_NS_MAX;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{RunError, UnsupportedFeature};

/// Intervals of a run, unless they are too short or too long. They show how slow I/Os clump.
const INTERVALS: u64 = 20;
const SHORTEST_INTERVAL_NS: u64 = 100_000_000;

/// Runs the layout, the capacities and the offered loads of a study on one target.
pub(super) struct LoadRunner<'a> {
    pub(super) target: &'a StudyTarget,
    pub(super) options: &'a LoadOptions,
    /// Bytes of the working set.
    pub(super) bytes: u64,
    /// Number of offered loads so far, including those of the matrix.
    runs: u64,
    /// State and activity of the Ceph cluster so far.
    pub(super) ceph: Option<CephSide>,
    /// The target, if it is in memory.
    pub(super) in_memory: Option<String>,
    /// Steps left, including the current one.
    pub(super) left: StepsLeft,
    /// Time of offered loads beyond their plan.
    overrun: Overrun,
}

impl<'a> LoadRunner<'a> {
    /// Returns the runner of a study that has not begun.
    pub(super) fn new(
        target: &'a StudyTarget,
        options: &'a LoadOptions,
        bytes: u64,
    ) -> LoadRunner<'a> {
        LoadRunner {
            target,
            options,
            bytes,
            runs: 0,
            ceph: None,
            in_memory: None,
            left: StepsLeft::from_options(options),
            overrun: Overrun::default(),
        }
    }

    /// Announces a step after the layout, and the time left including it.
    fn begin_step(&self, driver: &mut StudyDriver<'_>, step: StudyStep<'_>) {
        let step_ns = step_ns(self.options);
        driver.emit(&StudyEvent::StepStarted {
            step,
            planned_ns: Some(step_ns),
        });
        let mut steps = self.left.total();
        // A search may end after any step, but the current one always runs.
        steps.least = steps.least.max(1);
        debug_assert!(steps.most >= steps.least);
        let left = steps.time(step_ns + self.overrun.mean_ns());
        driver.emit(&StudyEvent::TimeLeft(left));
    }

    /// Writes the working set.
    pub(super) fn lay_out(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        let step = StudyStep::Layout {
            target: &self.target.name,
        };
        driver.emit(&StudyEvent::StepStarted {
            step,
            planned_ns: None,
        });
        let planned = planned_time(self.options);
        let outcome = driver.attempt_direct(
            0,
            |driver, direct| {
                let template = self.jobs(direct).template;
                let plan = template.sequential_write("layout", LAYOUT_BLOCK_BYTES, LAYOUT_DEPTH);
                let time = LayoutTime::new(self.bytes, 0, Some(planned));
                driver.run_layout(&plan, time, &mut self.intervals())
            },
            is_direct_refused,
        );
        self.take(outcome?).map(drop)
    }

    /// Measures the capacity in closed loop, in I/Os per second.
    pub(super) fn capacity(
        &mut self,
        driver: &mut StudyDriver<'_>,
        mix: Mix,
    ) -> Result<f64, StudyError> {
        self.begin_step(driver, StudyStep::Capacity);
        let (ramp_ns, runtime_ns) = (self.options.ramp_ns, self.options.runtime_ns);
        let result = self.run_plan(driver, |jobs| jobs.closed(mix, ramp_ns, runtime_ns))?;
        let result = self.take(result)?;
        let workers = result.workers.iter().filter(|worker| worker.runtime_ns > 0);
        let iops: f64 = workers
            .map(|worker| {
                let ios: u64 = worker
                    .directions
                    .iter()
                    .map(|(_, d)| d.lat.moments.count)
                    .sum();
                ios as f64 * 1e9 / worker.runtime_ns as f64
            })
            .sum();
        if iops < 1.0 {
            return Err(self.too_slow(iops, driver.is_interrupted()).into());
        }
        driver.emit(&StudyEvent::Found(StudyFinding::Capacity { iops }));
        Ok(iops)
    }

    /// Offers a load. Each run has its own seed, so that a repeated load has other offsets.
    pub(super) fn offer(
        &mut self,
        driver: &mut StudyDriver<'_>,
        offered: Offered,
    ) -> Result<LoadRun, StudyError> {
        self.runs += 1;
        self.begin_step(driver, StudyStep::OfferedLoad(offered));
        let (ramp_ns, runtime_ns) = (self.options.ramp_ns, self.options.runtime_ns);
        let result = self.run_plan(driver, |jobs| jobs.open(offered, ramp_ns, runtime_ns))?;
        self.add_facts(&result);
        self.overrun.take(step_ns(self.options), result.elapsed_ns);
        let mut run = LoadRun::from_result(offered, self.options.parties, &result);
        run.point.interrupted = driver.is_interrupted();
        driver.emit(&StudyEvent::Found(StudyFinding::Point(&run.point)));
        Ok(run)
    }

    /// Runs a plan of a measurement, and again without O_DIRECT if that is refused.
    fn run_plan(
        &self,
        driver: &mut StudyDriver<'_>,
        plan: impl Fn(&LoadJobs<'_>) -> Plan,
    ) -> Result<RunResult, RunError> {
        driver.attempt_direct(
            0,
            |driver, direct| {
                let plan = plan(&self.jobs(direct));
                let run = RepeatableRun {
                    plan: &plan,
                    purpose: RunPurpose::Phase,
                    name: Some(point_name(&plan)),
                };
                let (result, _) = driver.run_repeatable(&run, |_| self.intervals(), |_| {})?;
                Ok(result)
            },
            is_direct_refused,
        )
    }

    fn intervals(&self) -> FixedIntervals {
        FixedIntervals {
            interval_ns: interval_ns(self.options),
        }
    }

    fn jobs(&self, direct: bool) -> LoadJobs<'a> {
        let options = self.options;
        let seed = LoadJobs::seed(options.seed, self.runs);
        LoadJobs {
            template: JobTemplate::on(self.target, self.bytes, direct, seed),
            run: self.runs,
            pattern: options.pattern,
            arrivals: options.arrivals,
            numjobs: options.numjobs,
            parties: options.parties,
            iodepth: options.iodepth,
        }
    }

    /// Keeps the facts of a run that hold for the whole study.
    fn add_facts(&mut self, result: &RunResult) {
        let memory = DeviceDescription::memory_of_run(result);
        self.in_memory = memory.or(self.in_memory.take());
        if let Some(side) = &result.ceph {
            ceph::add_ceph_side(&mut self.ceph, side);
        }
    }

    /// Takes the result of a layout or capacity run, which ends the study if it has an I/O error.
    fn take(&mut self, result: RunResult) -> Result<RunResult, StudyError> {
        self.add_facts(&result);
        match first_failure(&result) {
            None => Ok(result),
            Some(failure) => Err(StudyError::Io {
                target: Some(self.target.name.clone()),
                failure: Box::new(failure),
            }),
        }
    }

    /// Returns the error if the capacity is too low to offer shares of it.
    fn too_slow(&self, iops: f64, is_interrupted: bool) -> RunError {
        if iops == 0.0 || is_interrupted {
            return RunError::without_figures(is_interrupted);
        }
        UnsupportedFeature::TooSlowForLoads {
            target: self.target.name.clone(),
            iops_hundredths: (iops * 100.0).round() as u64,
        }
        .into()
    }
}

/// Returns the length of a run's intervals.
fn interval_ns(options: &LoadOptions) -> u64 {
    (options.runtime_ns / INTERVALS).clamp(SHORTEST_INTERVAL_NS, INTERVAL_NS_MAX)
}

/// Returns the name of a load in notes.
fn point_name(plan: &Plan) -> String {
    let rate = |job: &Job| {
        let rates = job.schedule.rate_iops;
        rates.iter().filter_map(|(_, rate)| *rate).sum::<u64>() * u64::from(job.numjobs)
    };
    match plan.jobs.iter().map(rate).sum::<u64>() {
        0 => "the capacity".to_owned(),
        rate => format!("{} IOPS offered", words::iops_text(rate as f64)),
    }
}
