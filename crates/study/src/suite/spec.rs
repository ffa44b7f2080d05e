//! What a suite is once it has been read: targets, steps, what will be measured, what is expected.

use super::expect::Expectation;
use super::names::{Asked, Named};
use super::workload;
use crate::TimeRange;
use crate::limits::{Limits, LimitsError, Promise, Query};
use crate::load::{self, LoadOptions};
use crate::probe::{Phase, ProbeOptions};
use crate::sweep::{Grid, SweepOptions};
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::plan::Plan;
use iosonde_result::compare::{Measure, Subject};
use std::collections::BTreeMap;

const GIB: f64 = (1_u64 << 30) as f64;

/// A suite that can be run.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: Option<String>,
    /// Labels of the results.
    pub labels: BTreeMap<String, String>,
    /// Where it is to be run, unless the command line says otherwise.
    pub targets: Vec<SuiteTarget>,
    /// What is run on each target, in this order.
    pub steps: Vec<SuiteStep>,
    /// What will be measured.
    pub parts: Vec<PartSpec>,
    /// What is expected.
    pub expectations: Vec<Expected>,
    /// Remarks on the files.
    pub warnings: Diagnostics,
}

/// A target and its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteTarget {
    /// As it is written.
    pub name: String,
    /// Labels of its results.
    pub labels: BTreeMap<String, String>,
}

/// One thing to run on a target, some number of times.
#[derive(Debug, Clone)]
pub struct SuiteStep {
    /// Name of the workload.
    pub workload: String,
    /// For displays: the workload, with the values of its axes.
    pub name: String,
    /// What is done.
    pub what: What,
    /// How often.
    pub repetitions: u32,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum What {
    /// Runs jobs. Their files are put on the target when it is known.
    Jobs(Box<Plan>),
    /// Sweeps axes.
    Sweep(Box<SweepStep>),
    /// Offers loads.
    Load(LoadOptions),
    /// Probes.
    Probe(ProbeOptions),
}

/// A sweep within a suite.
#[derive(Debug, Clone)]
pub struct SweepStep {
    /// Its curves; their files are put on the target when it is known.
    pub grid: Grid,
    /// How.
    pub options: SweepOptions,
    /// Bytes of the working set; `None` chooses.
    pub size_bytes: Option<u64>,
    /// Time of all its runs.
    pub planned: TimeRange,
}

/// What will be known of one part before anything is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSpec {
    /// Its name: of a job with the values of its axes, of a phase of a probe, of a curve.
    pub name: String,
    /// The workload that it is of.
    pub workload: String,
    /// fio's `rw`.
    pub rw: String,
    /// Of which I/O there will be figures. The first ones are meant where no subject is named; `sync` only by name.
    pub subjects: Vec<Subject>,
    /// What can be asked of it.
    pub has: Has,
}

/// What can be asked of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Has {
    /// Figures of a run; latencies only where they are recorded.
    Run {
        /// Whether they are.
        latency: bool,
    },
    /// What a sweep finds of a curve.
    Curve,
    /// What a load study finds.
    Load {
        /// Whether it looks for the capacity: no rates are given.
        capacity: bool,
    },
}

impl Has {
    fn answers(self, asked: Asked) -> bool {
        match (self, asked) {
            (Has::Run { latency }, Asked::Measure(measure)) => {
                latency || matches!(measure, Measure::Iops | Measure::BytesPerS)
            }
            (Has::Run { .. } | Has::Curve, asked) if asked.is_highest() => true,
            (Has::Curve, Asked::Knee) | (Has::Load { .. }, Asked::Rate) => true,
            (Has::Load { capacity }, Asked::Capacity) => capacity,
            _ => false,
        }
    }
}

impl Named for PartSpec {
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

/// An expectation that is known to be of figures that will be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// What is expected.
    pub expectation: Expectation,
    /// The workload that it stands at; `None` if it is of the suite.
    pub workload: Option<String>,
    /// What is promised, where it is about a promise.
    pub promise: Option<Owed>,
}

/// What a product promises of the volume that is measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Owed {
    /// This.
    Known(Box<Promise>),
    /// It depends on the size of the volume, which the suite does not say.
    BySize(Box<Query>),
}

impl Expected {
    /// The same of a volume of some size.
    ///
    /// # Errors
    /// If nothing is promised of that size, or it would have to be known.
    pub fn of_volume(&self, limits: &Limits, bytes: Option<u64>) -> Result<Expected, LimitsError> {
        let Some(Owed::BySize(query)) = &self.promise else {
            return Ok(self.clone());
        };
        // Several disks that are one target say nothing of the size of each.
        let bytes = bytes.filter(|_| query.disks.is_none_or(|disks| disks == 1));
        let sized = Query {
            size_gib: bytes.map(|bytes| bytes as f64 / GIB),
            ..Query::clone(query)
        };
        Ok(Expected {
            promise: Some(Owed::Known(Box::new(limits.evaluate(&sized)?))),
            ..self.clone()
        })
    }

    /// Parts and subject that it is about.
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
        let about = |part: &&PartSpec| match asked {
            Some(asked) => part.has.answers(asked),
            None => matches!(part.has, Has::Run { .. }),
        };
        let parts = parts.into_iter().filter(own).filter(about).collect();
        (parts, subject)
    }
}

impl SuiteStep {
    /// How long one repetition takes without layout; `None` where a job ends with its data.
    pub fn planned_time(&self) -> Option<TimeRange> {
        match &self.what {
            What::Jobs(plan) => workload::jobs_time(plan),
            What::Sweep(step) => Some(step.planned),
            What::Load(options) => Some(load::planned_time(options)),
            What::Probe(options) => Some(options.budget.total_time(&Phase::MEASURED)),
        }
    }
}
