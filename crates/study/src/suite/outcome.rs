//! What a suite found on one target.

use super::spec::PartSpec;
use crate::load::LoadResult;
use crate::probe::ProbeResult;
use crate::sweep::SweepResult;
use iosonde_result::compare::{Part, parts};
use iosonde_result::run::RunResult;
use iosonde_result::session::RunError;
use iosonde_result::storage::StorageUsed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of [`SuiteResult`] as JSON; counts up when a member changes its meaning.
pub const FORMAT: u32 = 1;

/// What a suite found on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name of the suite.
    pub suite: String,
    /// What it is for.
    pub about: Option<String>,
    /// The target as the user wrote it.
    pub target: String,
    /// Labels of the suite and of the target.
    pub labels: BTreeMap<String, String>,
    /// What was measured, in the order of the suite; repetitions of a step follow each other.
    pub steps: Vec<StepResult>,
    /// One verdict for each figure that something is expected of.
    pub judged: Vec<Judged>,
    /// Whether the user ended it before all was measured.
    pub interrupted: bool,
}

/// One repetition of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The workload.
    pub workload: String,
    /// The workload with the values of its axes.
    pub name: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Figures of its runs.
    pub parts: Vec<Part>,
    /// Time of its runs, layout included, in nanoseconds; 0 where it is not known.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Figures that a study found beyond its runs.
    pub found: Vec<Found>,
    /// What its figures mean, each in one sentence.
    pub findings: Vec<String>,
    /// The error that ended it.
    pub failure: Option<String>,
    /// Whether the user ended it early: its figures are of what ran until then, and nothing is judged by them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// All that a sweep found: its curves, which reports draw, and its advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Box<SweepResult>>,
}

/// A figure that a study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Which part of it: a curve.
    pub part: String,
    /// fio's `rw`.
    pub rw: String,
    /// What.
    pub kind: FoundKind,
    /// The number.
    pub value: f64,
    /// Its 95 % interval, where it is known.
    pub interval: Option<(f64, f64)>,
}

/// What a study found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// The most I/Os per second of a curve.
    MaxIops,
    /// The most bytes per second of a curve.
    MaxBytesPerS,
    /// The lowest depth that reaches it.
    Knee,
    /// The highest rate that keeps the objective.
    Rate,
    /// The I/Os per second at which the target is saturated.
    Capacity,
}

/// How a figure stands to what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As expected, with its whole interval where that is known.
    Met,
    /// Shown not to be as expected.
    Missed,
    /// Neither is shown: the interval holds the bound, or is not known.
    Undecided,
    /// There is no such figure: the run failed, was too short for it, or was not reached.
    NotMeasured,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Undecided => "undecided",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// A verdict with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The expectation as it was written.
    pub expectation: String,
    /// The workload that it is about.
    pub workload: String,
    /// The figure, e.g. `wal sync p99 latency`.
    pub figure: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub evidence: String,
}

/// What one repetition of a step gave, as it is written down to be taken up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// Of jobs.
    Run(Box<RunResult>),
    /// Of a sweep.
    Sweep(Box<SweepResult>),
    /// Of a load study.
    Load(Box<LoadResult>),
    /// Of a probe.
    Probe(Box<ProbeResult>),
}

impl StepOutcome {
    /// Reduced to its figures.
    pub fn result(&self, workload: &str, name: &str, repetition: u32) -> StepResult {
        let mut result = StepResult {
            workload: workload.to_owned(),
            name: name.to_owned(),
            repetition,
            parts: Vec::new(),
            elapsed_ns: 0,
            found: Vec::new(),
            findings: Vec::new(),
            failure: None,
            interrupted: self.interrupted(),
            sweep: None,
        };
        match self {
            StepOutcome::Run(run) => result.take_run(run),
            StepOutcome::Sweep(sweep) => result.take_sweep(sweep),
            StepOutcome::Load(load) => result.take_load(load),
            StepOutcome::Probe(probe) => {
                for run in &probe.runs {
                    result.take_run(&run.result);
                }
                result.findings.clone_from(&probe.notes);
                let error = probe.error.as_ref();
                result.failure = error.map(|error| error.message.clone()).or(result.failure);
            }
        }
        result
    }

    /// Whether the user ended a study early.
    fn interrupted(&self) -> bool {
        match self {
            StepOutcome::Run(_) => false,
            StepOutcome::Sweep(sweep) => sweep.interrupted,
            StepOutcome::Load(load) => load.interrupted,
            StepOutcome::Probe(probe) => probe.interrupted,
        }
    }

    /// The error of a run without a result that ended it early.
    pub fn error(&self) -> Option<&RunError> {
        match self {
            StepOutcome::Load(load) => load.error.as_ref()?.cause.as_ref(),
            StepOutcome::Probe(probe) => probe.error.as_ref()?.cause.as_ref(),
            StepOutcome::Sweep(sweep) => sweep.cause.as_ref(),
            StepOutcome::Run(_) => None,
        }
    }

    /// Its runs, for the history.
    pub fn runs(&self) -> Vec<&RunResult> {
        match self {
            StepOutcome::Run(run) => vec![run],
            StepOutcome::Probe(probe) => probe.runs.iter().map(|run| &run.result).collect(),
            StepOutcome::Sweep(_) | StepOutcome::Load(_) => Vec::new(),
        }
    }
}

impl Found {
    /// Maximum and knee of each curve of a sweep. Curves are named by the workload, if it has a name, and the values of the
    /// axes.
    pub fn of_sweep(workload: &str, sweep: &SweepResult) -> Vec<Found> {
        let mut found = Vec::new();
        for curve in &sweep.curves {
            let Some(saturation) = &curve.saturation else {
                continue;
            };
            let part = super::workload::curve_name(workload, &curve.values);
            let claims = saturation.claims();
            let around = |mean: f64, error: Option<f64>| {
                let error = error.filter(|_| claims.maximum)?;
                Some((mean - error, mean + error))
            };
            let (iops, bytes) = (saturation.maximum, saturation.maximum_bytes_per_s);
            let knee = f64::from(saturation.knee.iodepth);
            for (kind, value, interval) in [
                (FoundKind::MaxIops, iops.mean, around(iops.mean, iops.error)),
                (
                    FoundKind::MaxBytesPerS,
                    bytes.mean,
                    around(bytes.mean, bytes.error),
                ),
                (FoundKind::Knee, knee, claims.knee.then_some((knee, knee))),
            ] {
                found.push(Found {
                    part: part.clone(),
                    rw: curve.rw.clone(),
                    kind,
                    value,
                    interval,
                });
            }
        }
        found
    }
}

impl Found {
    /// The capacity that a load study found, and the highest rate that keeps its objective. Where there are several, each has the
    /// objective behind the name.
    pub fn of_load(name: &str, load: &LoadResult) -> Vec<Found> {
        let found = |part: String, kind, value, interval| Found {
            part,
            rw: load.options.rw().to_owned(),
            kind,
            value,
            interval,
        };
        let capacity = load.capacity_iops.map(|iops| {
            let part = name.to_owned();
            found(part, FoundKind::Capacity, iops, None)
        });
        let rates = load.objectives.iter().filter_map(|answer| {
            let part = match load.objectives.len() {
                1 => name.to_owned(),
                _ => format!("{name}-{}", answer.objective.as_given()),
            };
            let rate = answer.answer.held?;
            // The border lies between a rate that was kept and one that was not.
            // Where no rate failed, the rate is what was kept at least.
            let between = (rate, answer.answer.failed.unwrap_or(rate));
            Some(found(part, FoundKind::Rate, rate, Some(between)))
        });
        rates.chain(capacity).collect()
    }
}

impl StepResult {
    /// Whether neither the user nor an error ended it early, so that its figures are of all of it.
    pub fn is_whole(&self) -> bool {
        !self.interrupted && self.failure.is_none()
    }

    /// What it found of a kind, as far as that stands for all of it: nothing where the user ended it, and no rate where an error did,
    /// as a rate is the highest of those that were tried. The maximum of a curve that was measured before stands.
    pub fn standing(&self, kind: FoundKind) -> &[Found] {
        let is_cut = match kind {
            FoundKind::Rate => !self.is_whole(),
            FoundKind::MaxIops
            | FoundKind::MaxBytesPerS
            | FoundKind::Knee
            | FoundKind::Capacity => self.interrupted,
        };
        if is_cut { &[] } else { &self.found }
    }

    fn take_run(&mut self, run: &RunResult) {
        self.elapsed_ns += run.elapsed_ns;
        self.parts.extend(parts(run));
        self.findings.extend(run.findings());
        let storage = StorageUsed::of(run).filter(StorageUsed::is_service);
        self.findings.extend(storage.map(|used| used.words()));
        let failed = run.workers.iter().find_map(|worker| worker.error.as_ref());
        self.failure = self
            .failure
            .take()
            .or(failed.map(|error| error.message.clone()));
    }

    fn take_sweep(&mut self, sweep: &SweepResult) {
        self.elapsed_ns += sweep.spent_ns;
        self.found = Found::of_sweep(&self.workload, sweep);
        self.findings.clone_from(&sweep.notes);
        let storage = sweep.storage().into_iter().filter(|used| used.is_news());
        self.findings.extend(storage.map(StorageUsed::words));
        self.failure.clone_from(&sweep.failure);
        self.sweep = Some(Box::new(sweep.clone()));
    }

    fn take_load(&mut self, load: &LoadResult) {
        self.found = Found::of_load(&self.workload, load);
        self.findings.clone_from(&load.notes);
        let error = load.error.as_ref().map(|error| error.message.clone());
        let failure = load.failure().map(|failure| failure.message.clone());
        self.failure = error.or(failure);
    }
}

impl PartSpec {
    /// Whether a figure that a study found is of it.
    pub(super) fn is_of(&self, found: &Found) -> bool {
        self.name == found.part
    }
}
