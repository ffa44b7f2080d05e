//! The stored result of a suite on one target.

use super::beside_figure::BesideFigure;
use super::command_step::CommandResult;
use super::names::FigureUnit;
use super::pod_figures::PodFigures;
use super::spec::{PartSpec, Suite, SuiteStep};
use super::study_figure_kind::StudyFigureKind;
use iosonde_job::errno;
use iosonde_result::cache_state::{LayerCache, combine_caches, describe_caches};
use iosonde_result::compare::{ResultPart, name_beside, parts};
use iosonde_result::device_class::DeviceDescription;
use iosonde_result::neighbour_rate::missed_rates_of_run;
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::run_error::RunError;
use iosonde_result::storage::StorageUsed;
use iosonde_study::load::LoadResult;
use iosonde_study::probe::ProbeResult;
use iosonde_study::sweep::SweepResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of [`SuiteResult`] as JSON; increases when a member changes its meaning.
pub const FORMAT: u32 = 1;

/// The result of a suite on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// The [`FORMAT`] that it was written in.
    pub format: u32,
    /// Name of the suite.
    pub suite: String,
    /// The purpose of the suite.
    pub about: Option<String>,
    /// The target as the user wrote it.
    pub target: String,
    /// Labels of the suite and of the target.
    pub labels: BTreeMap<String, String>,
    /// Results in the order of the suite. Repetitions of a step are adjacent.
    pub steps: Vec<StepResult>,
    /// One verdict for each figure with an expectation.
    pub judged: Vec<JudgedExpectation>,
    /// Each figure that was measured alone and beside a neighbour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideFigure>,
    /// Whether the user stopped the suite before its end.
    pub interrupted: bool,
}

impl SuiteResult {
    /// A suite of these steps without expectations, labels and neighbours.
    #[must_use]
    pub fn from_steps(suite: &str, target: &str, steps: Vec<StepResult>) -> SuiteResult {
        SuiteResult {
            format: FORMAT,
            suite: suite.to_owned(),
            about: None,
            target: target.to_owned(),
            labels: BTreeMap::new(),
            steps,
            judged: Vec::new(),
            beside: Vec::new(),
            interrupted: false,
        }
    }
}

/// One repetition of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The workload.
    pub workload: String,
    /// The workload with its axis values.
    pub name: String,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Figures of the runs.
    pub parts: Vec<ResultPart>,
    /// Time of all runs with layout, in nanoseconds; 0 if unknown.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Figures of a study beyond its runs.
    pub found: Vec<StudyFigure>,
    /// Findings on the figures, one sentence each.
    pub findings: Vec<String>,
    /// The error that ended the step.
    pub failure: Option<String>,
    /// The error in one line, without help and output of a command. `None`: as `failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether the user stopped the step early. Its partial figures are kept but not judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The whole result of a sweep, for the curves of reports and the advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Box<SweepResult>>,
    /// The whole result of a load study, for its rates and the curves of reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Box<LoadResult>>,
    /// The whole result of a command, with its series and the devices meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandResult>>,
    /// The target, if it is in memory: `memory (tmpfs)`. Its data does not survive a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<String>,
    /// Options of the neighbour. `None`: the target was alone. The names of parts then say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Figures of each pod, each node and all pods, if several pods ran the jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodFigures>,
}

/// A figure of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyFigure {
    /// The part that it is of: a curve, or a load study.
    pub part: String,
    /// fio's `rw`.
    pub rw: String,
    /// The kind of figure.
    pub kind: StudyFigureKind,
    /// The number.
    pub value: f64,
    /// The 95 % interval, if known.
    pub interval: Option<(f64, f64)>,
}

/// The verdict on one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectationVerdict {
    /// The figure is as expected, with its whole interval if that is known.
    Met,
    /// The figure is not as expected, with its whole interval if that is known.
    Missed,
    /// The interval contains the bound, or is unknown.
    Undecided,
    /// The figure is missing: the run failed, was too short, or did not start.
    NotMeasured,
}

impl ExpectationVerdict {
    /// The verdict as text.
    pub fn words(self) -> &'static str {
        match self {
            ExpectationVerdict::Met => "met",
            ExpectationVerdict::Missed => "missed",
            ExpectationVerdict::Undecided => "undecided",
            ExpectationVerdict::NotMeasured => "not measured",
        }
    }
}

/// A verdict with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedExpectation {
    /// The text of the expectation.
    pub expectation: String,
    /// The workload that was judged.
    pub workload: String,
    /// The figure, e.g. `wal sync p99 latency`.
    pub figure: String,
    /// The verdict.
    pub verdict: ExpectationVerdict,
    /// The reason in one sentence, without an interval: [`JudgedExpectation::measured`] has it.
    pub evidence: String,
    /// The figure and the claim about it. `None`: the figure was not measured, or an earlier
    /// version judged it, whose evidence has the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<JudgedFigure>>,
    /// The failure of a step, if it is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A judged figure with its interval. Reports print its known digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedFigure {
    /// The number.
    pub value: f64,
    /// The 95 % interval, if known. It decides the verdict even if it is too wide to be shown.
    pub interval: Option<(f64, f64)>,
    /// The unit of the number. `None`: a ratio to an earlier value.
    pub unit: Option<FigureUnit>,
    /// The claim, and the ratio to the figure without a neighbour: `expected >= 1.00k`.
    pub claim: String,
}

/// The result of one repetition of a step, as stored to resume the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// Result of jobs.
    Run(Box<RunResult>),
    /// Result of a sweep.
    Sweep(Box<SweepResult>),
    /// Result of a load study.
    Load(Box<LoadResult>),
    /// Result of a probe.
    Probe(Box<ProbeResult>),
    /// Result of a command, and the run of the machine meanwhile.
    Command(Box<CommandResult>, Box<RunResult>),
}

impl StepOutcome {
    /// Reduces the result of a step of the suite to its figures.
    pub fn result_of(&self, suite: &Suite, step: &SuiteStep, repetition: u32) -> StepResult {
        let mut result = self.result(&step.workload, &step.name, repetition);
        if self.found_target_full() {
            result.advise_on_space(suite, step);
        }
        if let Some(neighbour) = &step.beside {
            result.beside = Some(neighbour.options.clone());
            for found in &mut result.found {
                found.part = name_beside(&found.part);
            }
        }
        result
    }

    fn result(&self, workload: &str, name: &str, repetition: u32) -> StepResult {
        let mut result = StepResult {
            interrupted: self.interrupted(),
            ..StepResult::without_figures(workload, name, repetition)
        };
        match self {
            StepOutcome::Run(run) => {
                result.take_run(run);
                result.pods = PodFigures::from_run(run);
            }
            StepOutcome::Sweep(sweep) => result.take_sweep(sweep),
            StepOutcome::Load(load) => result.take_load(load),
            StepOutcome::Probe(probe) => {
                for run in &probe.runs {
                    result.take_run(&run.result);
                }
                result.findings.clone_from(&probe.notes);
                let runs = probe.runs.iter().map(|run| run.result.caches.as_slice());
                result
                    .findings
                    .extend(caches_finding(&combine_caches(runs)));
                let error = probe.error.as_ref();
                result.failure = error.map(|error| error.message.clone()).or(result.failure);
            }
            StepOutcome::Command(command, run) => result.take_command(command, run),
        }
        result
    }

    /// Whether the user stopped a study early.
    fn interrupted(&self) -> bool {
        match self {
            StepOutcome::Run(_) | StepOutcome::Command(..) => false,
            StepOutcome::Sweep(sweep) => sweep.interrupted,
            StepOutcome::Load(load) => load.interrupted,
            StepOutcome::Probe(probe) => probe.interrupted,
        }
    }

    /// Whether a write failed because the target is full.
    fn found_target_full(&self) -> bool {
        let is_full = |failure: &IoFailure| failure.errno == errno::ENOSPC;
        let is_run_full = |run: &RunResult| {
            let mut workers = run.workers.iter();
            workers.any(|worker| worker.error.as_ref().is_some_and(is_full))
        };
        match self {
            StepOutcome::Run(run) => is_run_full(run),
            StepOutcome::Probe(probe) => probe.runs.iter().any(|run| is_run_full(&run.result)),
            StepOutcome::Load(load) => load.failure().is_some_and(is_full),
            StepOutcome::Sweep(sweep) => {
                let mut curves = sweep.curves.iter();
                curves.any(|curve| curve.failure.as_ref().is_some_and(is_full))
            }
            StepOutcome::Command(..) => false,
        }
    }

    /// The error that ended a study early.
    pub fn error(&self) -> Option<&RunError> {
        match self {
            StepOutcome::Load(load) => load.error.as_ref()?.cause.as_ref(),
            StepOutcome::Probe(probe) => probe.error.as_ref()?.cause.as_ref(),
            StepOutcome::Sweep(sweep) => sweep.cause.as_ref(),
            StepOutcome::Run(_) | StepOutcome::Command(..) => None,
        }
    }

    /// The runs to store in the history.
    pub fn runs(&self) -> Vec<&RunResult> {
        match self {
            StepOutcome::Run(run) | StepOutcome::Command(_, run) => vec![run],
            StepOutcome::Probe(probe) => probe.runs.iter().map(|run| &run.result).collect(),
            StepOutcome::Sweep(_) | StepOutcome::Load(_) => Vec::new(),
        }
    }
}

impl StudyFigure {
    /// Maximum and knee of each curve of a sweep. A curve is named by the workload, if that has a
    /// name, and by its axis values.
    pub fn from_sweep(workload: &str, sweep: &SweepResult) -> Vec<StudyFigure> {
        let mut found = Vec::new();
        for curve in &sweep.curves {
            let Some(saturation) = &curve.saturation else {
                continue;
            };
            let part = super::workload::curve_name(workload, &curve.values);
            let claims = saturation.claims();
            let around = |mean: f64, error: Option<f64>| {
                let error = error.filter(|_| claims.maximum)?;
                debug_assert!(error <= mean, "a maximum of {mean} ±{error} is known");
                Some((mean - error, mean + error))
            };
            let (iops, bytes) = (saturation.maximum, saturation.maximum_bytes_per_s);
            let knee = f64::from(saturation.knee.iodepth);
            for (kind, value, interval) in [
                (
                    StudyFigureKind::MaxIops,
                    iops.mean,
                    around(iops.mean, iops.error),
                ),
                (
                    StudyFigureKind::MaxBytesPerS,
                    bytes.mean,
                    around(bytes.mean, bytes.error),
                ),
                (
                    StudyFigureKind::Knee,
                    knee,
                    claims.knee.then_some((knee, knee)),
                ),
            ] {
                found.push(StudyFigure {
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

impl StudyFigure {
    /// Capacity of a load study, and the highest rate that keeps its objective. With several
    /// objectives, the name of each figure ends with its objective.
    pub fn from_load(name: &str, load: &LoadResult) -> Vec<StudyFigure> {
        let found = |part: String, kind, value, interval| StudyFigure {
            part,
            rw: load.options.rw().to_owned(),
            kind,
            value,
            interval,
        };
        let capacity = load.capacity_iops.map(|iops| {
            let part = name.to_owned();
            found(part, StudyFigureKind::Capacity, iops, None)
        });
        let rates = load.objectives.iter().filter_map(|answer| {
            let part = match load.objectives.len() {
                1 => name.to_owned(),
                _ => format!("{name}-{}", answer.objective.as_given()),
            };
            let rate = answer.answer.held?;
            // The limit lies between the highest rate that kept the objective and one that failed.
            // If no rate failed, the highest rate is a lower bound.
            let between = (rate, answer.answer.failed.unwrap_or(rate));
            Some(found(part, StudyFigureKind::Rate, rate, Some(between)))
        });
        rates.chain(capacity).collect()
    }
}

impl StepResult {
    /// A repetition without figures, findings and failure.
    #[must_use]
    pub fn without_figures(workload: &str, name: &str, repetition: u32) -> StepResult {
        StepResult {
            workload: workload.to_owned(),
            name: name.to_owned(),
            repetition,
            parts: Vec::new(),
            elapsed_ns: 0,
            found: Vec::new(),
            findings: Vec::new(),
            failure: None,
            problem: None,
            interrupted: false,
            sweep: None,
            load: None,
            command: None,
            in_memory: None,
            beside: None,
            pods: Vec::new(),
        }
    }

    /// Whether neither the user nor an error stopped the step early.
    pub fn is_whole(&self) -> bool {
        !self.interrupted && self.failure.is_none()
    }

    /// The study's figures, if those of `kind` are valid: never after an interrupt. After an error,
    /// the maximum of a measured curve is valid, but a highest rate is not.
    pub fn standing(&self, kind: StudyFigureKind) -> &[StudyFigure] {
        let is_cut = match kind {
            StudyFigureKind::Rate => !self.is_whole(),
            StudyFigureKind::MaxIops
            | StudyFigureKind::MaxBytesPerS
            | StudyFigureKind::Knee
            | StudyFigureKind::Capacity
            | StudyFigureKind::CommandFigure => self.interrupted,
        };
        if is_cut { &[] } else { &self.found }
    }

    /// Adds the setting of fewer bytes to the failure of a full target.
    fn advise_on_space(&mut self, suite: &Suite, step: &SuiteStep) {
        if let (Some(failure), Some(advice)) = (&mut self.failure, suite.smaller_size_advice(step))
        {
            failure.push_str(&format!("; {advice}"));
        }
    }

    /// Keeps the target's description if its data does not survive a restart.
    fn take_device(&mut self, run: &RunResult) {
        let memory = DeviceDescription::memory_of_run(run);
        self.in_memory = memory.or(self.in_memory.take());
    }

    fn take_run(&mut self, run: &RunResult) {
        self.elapsed_ns += run.elapsed_ns;
        self.parts.extend(parts(run));
        self.take_device(run);
        self.findings.extend(run.findings());
        self.findings.extend(missed_rates_of_run(run));
        let storage = StorageUsed::from_run(run).filter(StorageUsed::is_service);
        self.findings.extend(storage.map(|used| used.words()));
        self.findings.extend(caches_finding(&run.caches));
        let mut workers = run.workers.iter().chain(&run.neighbours);
        let failed = workers.find_map(|worker| worker.error.as_ref());
        self.failure = self
            .failure
            .take()
            .or(failed.map(|error| error.message.clone()));
    }

    fn take_sweep(&mut self, sweep: &SweepResult) {
        self.elapsed_ns += sweep.spent_ns;
        self.found = StudyFigure::from_sweep(&self.workload, sweep);
        self.findings.clone_from(&sweep.notes);
        let storage = sweep.storage().into_iter().filter(|used| used.is_news());
        self.findings.extend(storage.map(StorageUsed::words));
        self.in_memory = sweep.in_memory().cloned();
        self.failure.clone_from(&sweep.failure);
        self.sweep = Some(Box::new(sweep.clone()));
    }

    fn take_command(&mut self, command: &CommandResult, run: &RunResult) {
        self.elapsed_ns += run.elapsed_ns;
        self.take_device(run);
        self.found.push(StudyFigure {
            part: self.workload.clone(),
            rw: String::new(),
            kind: StudyFigureKind::CommandFigure,
            value: command.value,
            interval: command.interval,
        });
        self.findings.extend(command.findings());
        self.command = Some(Box::new(command.clone()));
    }

    fn take_load(&mut self, load: &LoadResult) {
        self.found = StudyFigure::from_load(&self.workload, load);
        self.findings.clone_from(&load.notes);
        self.in_memory.clone_from(&load.in_memory);
        let error = load.error.as_ref().map(|error| error.message.clone());
        let failure = load.failure().map(|failure| failure.message.clone());
        self.failure = error.or(failure);
        self.load = Some(Box::new(load.clone()));
    }
}

impl PartSpec {
    /// Whether a figure of a study belongs to this part.
    pub(super) fn is_of(&self, found: &StudyFigure) -> bool {
        self.name == found.part
    }
}

/// State of the caches at the start of the jobs, as a finding.
fn caches_finding(caches: &[LayerCache]) -> Option<String> {
    describe_caches(caches).map(|words| format!("caches: {words}"))
}
