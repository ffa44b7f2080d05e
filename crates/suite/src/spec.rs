//! A suite ready to run: targets, steps, planned figures and expectations.

use super::command_step::CommandStep;
use super::expect::Expectation;
use super::jobs_time::jobs_time;
use super::names::{FigureQuantity, NamedPart};
use iosonde_job::Neighbour;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::plan::Plan;
use iosonde_limits::{Limits, LimitsError, Promise, Query};
use iosonde_result::compare::{Measure, Subject, name_beside};
use iosonde_study::TimeRange;
use iosonde_study::load::{self, LoadOptions};
use iosonde_study::probe::{ProbeOptions, ProbePhase};
use iosonde_study::sweep::{SweepGrid, SweepOptions};
use serde::Serialize;
use std::collections::BTreeMap;

const GIB: f64 = (1_u64 << 30) as f64;

/// A suite ready to run.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Name of the suite.
    pub name: String,
    /// The purpose of the suite.
    pub about: Option<String>,
    /// Labels of the results.
    pub labels: BTreeMap<String, String>,
    /// Variables with their values.
    pub variables: BTreeMap<String, String>,
    /// Targets, unless the command line names others.
    pub targets: Vec<SuiteTarget>,
    /// Pods that run each step at the same time. `None`: one.
    pub pods: Option<SuitePods>,
    /// Steps to run on each target, in this order.
    pub steps: Vec<SuiteStep>,
    /// Parts that will be measured.
    pub parts: Vec<PartSpec>,
    /// The expectations.
    pub expectations: Vec<SuiteExpectation>,
    /// Warnings on the files.
    pub warnings: Diagnostics,
}

/// Pods of a target in a Kubernetes cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuitePods {
    /// This number of pods.
    Count(u32),
    /// One pod on each schedulable node.
    PerNode,
}

/// A target and its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteTarget {
    /// The target as the suite names it.
    pub name: String,
    /// Labels of the results.
    pub labels: BTreeMap<String, String>,
}

/// A run or study on one target, with its repetitions.
#[derive(Debug, Clone)]
pub struct SuiteStep {
    /// Name of the workload.
    pub workload: String,
    /// The workload with its axis values, for displays.
    pub name: String,
    /// The run or study.
    pub what: StepKind,
    /// Number of repetitions.
    pub repetitions: u32,
    /// The neighbour of the step; it is part of the plan of jobs. `None`: the target is alone.
    pub beside: Option<Box<Neighbour>>,
}

/// The kind of a step.
#[derive(Debug, Clone, Serialize)]
pub enum StepKind {
    /// Runs jobs. Their files are relocated to the target later.
    Jobs(Box<Plan>),
    /// Runs a sweep.
    Sweep(Box<SweepStep>),
    /// Runs a load study.
    Load(LoadOptions),
    /// Runs a probe.
    Probe(ProbeOptions),
    /// Runs a command.
    Command(Box<CommandStep>),
}

/// A sweep within a suite.
#[derive(Debug, Clone, Serialize)]
pub struct SweepStep {
    /// The curves. Their files are relocated to the target later.
    pub grid: SweepGrid,
    /// Options of the sweep.
    pub options: SweepOptions,
    /// Bytes of the working set; `None` for a size that fits the target.
    pub size_bytes: Option<u64>,
    /// Time of all its runs.
    pub planned: TimeRange,
}

/// The planned figures of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSpec {
    /// Name of the job with its axis values, of the phase of a probe, or of the curve.
    pub name: String,
    /// The workload of the part.
    pub workload: String,
    /// fio's `rw`.
    pub rw: String,
    /// Subjects of the figures. Without a named subject an expectation means all but `sync`.
    pub subjects: Vec<Subject>,
    /// The source of the figures.
    pub has: FigureSource,
}

/// The source of a part's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureSource {
    /// A run.
    Run {
        /// Whether the run records latencies.
        latency: bool,
    },
    /// A curve of a sweep.
    Curve,
    /// A load study.
    Load {
        /// Whether the study measures the capacity: no rates are given.
        capacity: bool,
    },
    /// A command.
    Command,
}

impl FigureSource {
    fn has_figure(self, asked: FigureQuantity) -> bool {
        match (self, asked) {
            (FigureSource::Run { latency }, FigureQuantity::Measure(measure)) => {
                latency || matches!(measure, Measure::Iops | Measure::BytesPerS)
            }
            (FigureSource::Run { .. } | FigureSource::Curve, asked) if asked.is_highest() => true,
            (FigureSource::Curve, FigureQuantity::Knee)
            | (FigureSource::Load { .. }, FigureQuantity::Rate)
            | (FigureSource::Command, FigureQuantity::CommandFigure) => true,
            (FigureSource::Load { capacity }, FigureQuantity::Capacity) => capacity,
            _ => false,
        }
    }
}

impl NamedPart for PartSpec {
    fn name(&self) -> &str {
        &self.name
    }
    fn workload(&self) -> &str {
        &self.workload
    }
    fn rw(&self) -> &str {
        &self.rw
    }
}

/// An expectation of figures that will be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteExpectation {
    /// The expectation.
    pub expectation: Expectation,
    /// The workload of the expectation; `None` for the whole suite.
    pub workload: Option<String>,
    /// The promise, if the expectation refers to one.
    pub promise: Option<PromiseSource>,
}

/// The limits that a product promises for the measured volume.
#[derive(Debug, Clone, PartialEq)]
pub enum PromiseSource {
    /// The known promise.
    Known(Box<Promise>),
    /// A promise that depends on the size of the volume, which the suite does not give.
    BySize(Box<Query>),
}

impl SuiteExpectation {
    /// Evaluates the promise for a volume of `bytes`.
    ///
    /// # Errors
    /// If the product promises nothing at that size, or if the size is needed but unknown.
    pub fn of_volume(
        &self,
        limits: &Limits,
        bytes: Option<u64>,
    ) -> Result<SuiteExpectation, LimitsError> {
        let Some(PromiseSource::BySize(query)) = &self.promise else {
            return Ok(self.clone());
        };
        // The size of a target of several disks does not give the size of each.
        let bytes = bytes.filter(|_| query.disks.is_none_or(|disks| disks == 1));
        let sized = Query {
            size_gib: bytes.map(|bytes| bytes as f64 / GIB),
            ..Query::clone(query)
        };
        Ok(SuiteExpectation {
            promise: Some(PromiseSource::Known(Box::new(limits.evaluate(&sized)?))),
            ..self.clone()
        })
    }

    /// Returns the remedy for an error of [`SuiteExpectation::of_volume`].
    pub fn remedy(&self, limits: &Limits, error: &LimitsError) -> String {
        match &self.promise {
            Some(PromiseSource::BySize(query)) => self.expectation.remedy(limits, query, error),
            _ => error.remedy(),
        }
    }

    /// The parts and the subject of the expectation.
    pub fn parts<'a>(&self, all: &'a [PartSpec]) -> (Vec<&'a PartSpec>, Option<Subject>) {
        let own = |part: &&PartSpec| {
            self.workload
                .as_ref()
                .is_none_or(|workload| *workload == part.workload)
        };
        let (parts, subject) = match &self.expectation.figure {
            Some(figure) => figure.pick(all).unwrap_or_default(),
            None => (all.iter().collect(), None),
        };
        let asked = self.expectation.figure.as_ref().map(|figure| figure.asked);
        let is_answered = |part: &&PartSpec| match asked {
            Some(asked) => part.has.has_figure(asked),
            None => matches!(part.has, FigureSource::Run { .. }),
        };
        let parts = parts.into_iter().filter(own).filter(is_answered).collect();
        (parts, subject)
    }
}

impl Suite {
    /// Measures each step but commands alone and beside this neighbour, instead of those that the
    /// suite names.
    pub fn set_neighbour(&mut self, neighbour: &Neighbour) {
        let steps = std::mem::take(&mut self.steps).into_iter();
        let alone = steps.filter(|step| step.beside.is_none());
        self.steps = alone
            .flat_map(|step| {
                let beside = step.beside(neighbour);
                [Some(step), beside].into_iter().flatten()
            })
            .collect();
    }

    /// Measures each step alone only.
    pub fn remove_neighbours(&mut self) {
        self.steps.retain(|step| step.beside.is_none());
    }

    /// Whether a workload is also measured beside a neighbour.
    pub(super) fn has_neighbour(&self, workload: &str) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.workload == workload && step.beside.is_some())
    }
}

impl PartSpec {
    /// The same part beside a neighbour.
    pub(super) fn beside(&self) -> PartSpec {
        PartSpec {
            name: name_beside(&self.name),
            ..self.clone()
        }
    }
}

impl SuiteStep {
    /// The same step beside a neighbour. `None`: a command has none.
    pub(super) fn beside(&self, neighbour: &Neighbour) -> Option<SuiteStep> {
        let what = match &self.what {
            StepKind::Command(_) => return None,
            StepKind::Jobs(plan) => {
                let mut plan = plan.clone();
                Neighbour::join_plan(neighbour.job.clone(), &mut plan);
                StepKind::Jobs(plan)
            }
            study => study.clone(),
        };
        Some(SuiteStep {
            workload: self.workload.clone(),
            name: format!("{} {}", name_beside(&self.name), neighbour.options),
            what,
            repetitions: self.repetitions,
            beside: Some(Box::new(neighbour.clone())),
        })
    }

    /// Time of one repetition without layout; `None` if a job ends with its data, and for commands.
    pub fn planned_time(&self) -> Option<TimeRange> {
        match &self.what {
            StepKind::Jobs(plan) => jobs_time(plan),
            StepKind::Sweep(step) => Some(step.planned),
            StepKind::Load(options) => Some(load::planned_time(options)),
            StepKind::Probe(options) => Some(options.budget.total_time(&ProbePhase::MEASURED)),
            StepKind::Command(_) => None,
        }
    }
}
