//! Results, taken in one by one, so that of many only what is drawn stays in memory.

use super::document::{
    Figure, Kept, Load, Pivot, Promise, Rate, Report, Run, Series, Spread, Study, Sweep,
};
use super::{
    figures, foreign, knees, load, machine, page, pivot, promised, pts, series, spread, sweep,
};
use crate::failure::Failure;
use crate::report::facts;
use crate::report::pivot as tables;
use crate::report::probe::limits::ceilings;
use crate::store::Summary;
use iosonde_job::plan::Plan;
use iosonde_result::compare::Measured;
use iosonde_result::fio::import::FioDocument;
use iosonde_result::host::{Host, TargetInfo};
use iosonde_result::run::{CpuUse, Event, RunResult};
use iosonde_study::limits::{self, Held};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::{self, Phase, ProbeResult};
use iosonde_study::pts::PtsResult;
use iosonde_study::suite::SuiteResult;
use iosonde_study::sweep::SweepResult;
use serde::Serialize;
use std::collections::HashMap;

/// Makes one report of any number of results.
#[derive(Default)]
pub(crate) struct Builder {
    hosts: Table<Host>,
    targets: Table<Vec<TargetInfo>>,
    plans: Table<Plan>,
    studies: Vec<Study>,
    runs: Vec<Run>,
    /// What was held against probes.
    promises: Vec<Promise>,
    /// How far results lie apart that a label holds together.
    spreads: Vec<Spread>,
    sweeps: Vec<Sweep>,
    /// Sweeps of suites: the step and its repetition, the target, what was found there.
    of_suites: Vec<((String, String, u32), String, Sweep)>,
    knees: Vec<Sweep>,
    loads: Vec<Load>,
    pivots: Vec<Pivot>,
    kept: Vec<Kept>,
    /// What all that is taken in is held against.
    expected: Vec<limits::Promise>,
}

impl Builder {
    /// Holds all that will be taken in against what vendors promise.
    pub(crate) fn expecting(expected: Vec<limits::Promise>) -> Builder {
        Builder {
            expected,
            ..Builder::default()
        }
    }

    /// Takes in a single run; `source` is the file or id that it came from.
    pub(crate) fn run(&mut self, source: &str, result: RunResult) {
        let place = place(&result);
        let name = job_names(&result.plan);
        let run = self.taken(source, name, place, result);
        self.runs.push(run);
    }

    /// Takes in a probe with its runs.
    pub(crate) fn probe(&mut self, source: &str, result: ProbeResult) {
        let study = self.studies.len();
        let before = result.expected.iter();
        let kept = before.filter(|held| !self.expected.contains(&held.promise));
        self.knees.extend(knees::of(source, &result));
        let ceilings = ceilings(&result);
        let told = ceilings
            .into_iter()
            .map(|(name, text)| format!("{name}: {text}"));
        let notes = told.chain(result.notes.iter().cloned()).collect();
        let place = &result.target;
        self.promises
            .extend(kept.map(|held| promised::held(held, place)));
        let asked = self
            .expected
            .iter()
            .map(|promise| Held::of(promise, &result));
        self.promises
            .extend(asked.map(|held| promised::held(&held, place)));
        for phase_run in result.runs {
            let phase = phase_run.phase;
            let mut run = self.taken(
                source,
                phase.title().to_owned(),
                result.target.clone(),
                phase_run.result,
            );
            run.study = Some(study);
            run.preparation = phase == Phase::Layout;
            if let Some(found) = result.figures.iter().find(|figure| figure.phase == phase) {
                adopt(&mut run.figures, found);
            }
            self.runs.push(run);
        }
        self.studies.push(Study {
            source: source.to_owned(),
            target: result.target,
            sentence: result.classification.sentence,
            notes,
            interrupted: result.interrupted,
            working_set_bytes: result.working_set.bytes,
        });
    }

    /// Takes in a sweep; its runs come one by one, see [`Builder::of_grid`].
    pub(crate) fn sweep(&mut self, source: &str, result: &SweepResult) {
        self.sweeps.push(sweep::of(source, result));
    }

    /// Takes in the sweeps of a suite. Those that it made on several targets are drawn as one.
    pub(crate) fn suite(&mut self, source: &str, result: &SuiteResult) {
        for step in &result.steps {
            let Some(found) = &step.sweep else {
                continue;
            };
            let step = (result.suite.clone(), step.name.clone(), step.repetition);
            self.of_suites
                .push((step, result.target.clone(), sweep::of(source, found)));
        }
    }

    /// One sweep of each step of a suite, if it was the same on all targets.
    fn join_suites(&mut self) {
        while let Some((step, ..)) = self.of_suites.first() {
            let step = step.clone();
            let all = std::mem::take(&mut self.of_suites);
            let (of_step, others): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|(of, ..)| *of == step);
            self.of_suites = others;
            let sweeps = of_step
                .into_iter()
                .map(|(_, target, sweep)| (target, sweep));
            let sweeps: Vec<(String, Sweep)> = sweeps.collect();
            match sweep::merged(&sweeps) {
                Some(merged) => self.sweeps.push(merged),
                None => self
                    .sweeps
                    .extend(sweeps.into_iter().map(|(_, sweep)| sweep)),
            }
        }
    }

    /// Takes in a load study; its runs come one by one, see [`Builder::of_grid`].
    pub(crate) fn load(&mut self, source: &str, result: &LoadResult) {
        self.loads.push(load::of(source, result));
    }

    /// Takes in a test after SNIA's specification; its runs come one by one, see [`Builder::of_grid`].
    pub(crate) fn pts(&mut self, source: &str, result: &PtsResult) {
        self.sweeps.extend(pts::of(source, result));
    }

    /// Takes in one of the many runs of a sweep or a load study, which is drawn as a whole: of the run only the conditions
    /// are shown.
    pub(crate) fn of_grid(&mut self, source: &str, mut result: RunResult) {
        result.intervals.clear();
        result.series.slices.clear();
        let place = place(&result);
        let name = job_names(&result.plan);
        let mut run = self.taken(source, name, place, result);
        run.of_grid = true;
        for figure in &mut run.figures {
            figure.latency.curve_ns.clear();
            figure.latency.buckets.clear();
        }
        self.runs.push(run);
    }

    /// Takes in a result of fio's own.
    pub(crate) fn fio(&mut self, source: &str, found: FioDocument) {
        self.runs.push(foreign::run(source, found));
    }

    /// The whole report as an HTML file.
    pub(crate) fn html(mut self, title: Option<&str>) -> Result<String, Failure> {
        self.join_suites();
        name_apart(&mut self.runs);
        for promise in &self.expected {
            self.promises.extend(promised::of(promise, &self.runs));
        }
        let title = title.map_or_else(|| self.default_title(), str::to_owned);
        page(&Report {
            program: concat!("iosonde ", env!("CARGO_PKG_VERSION")),
            title,
            hosts: self.hosts.rows,
            targets: self.targets.rows,
            plans: self.plans.rows,
            studies: self.studies,
            runs: self.runs,
            promises: self.promises,
            spreads: self.spreads,
            sweeps: self.sweeps,
            knees: self.knees,
            loads: self.loads,
            pivots: self.pivots,
            kept: self.kept,
        })
    }

    /// Takes in one figure of many results.
    pub(crate) fn pivot(&mut self, pivot: &tables::Pivot) {
        self.pivots.push(pivot::of(pivot));
    }

    /// Takes in one of the results that pivots are made of.
    pub(crate) fn kept(&mut self, study: &Summary) {
        self.kept.push(pivot::kept_result(study));
    }

    fn default_title(&self) -> String {
        if let Some(first) = self.pivots.first() {
            return format!("Storage by {} and {}", first.row_label, first.column_label);
        }
        match (self.sweeps.as_slice(), self.loads.as_slice()) {
            ([], []) => default_title(&self.runs),
            ([one], []) => format!("Sweep of {}", target(&one.headline)),
            ([], [one]) => format!("Latency under load of {}", target(&one.headline)),
            _ => "Storage under many loads".to_owned(),
        }
    }

    /// Takes in how far the results of a label lie apart.
    pub(crate) fn spread(&mut self, label: &str, results: &[Measured]) {
        self.spreads.extend(spread::of(label, results));
    }

    fn taken(&mut self, source: &str, name: String, place: String, mut result: RunResult) -> Run {
        // What changes from run to run would make each of them a machine and a target of its own.
        result.host.swap_used_bytes = None;
        for space in result
            .targets
            .iter_mut()
            .filter_map(|target| target.space.as_mut())
        {
            (space.used_bytes, space.available_bytes) = (None, None);
        }
        let figures = figures::of(&result);
        let told = facts::storage(&result)
            .into_iter()
            .chain(facts::nfs(&result.nfs));
        let told = told.map(|(name, text)| Event {
            at_ns: 0,
            message: format!("{name}: {text}"),
        });
        result.events.splice(0..0, told);
        let mut series: Vec<Series> = series::of(&result.intervals).into_iter().collect();
        series.extend(machine::of(&result.series, &result.intervals));
        let mut backends = Vec::new();
        let mut cpu = CpuUse::default();
        let mut failures = Vec::new();
        for worker in result.workers {
            cpu.user_ns += worker.cpu.user_ns;
            cpu.system_ns += worker.cpu.system_ns;
            cpu.context_switches += worker.cpu.context_switches;
            cpu.major_faults += worker.cpu.major_faults;
            cpu.minor_faults += worker.cpu.minor_faults;
            failures.extend(worker.error.map(|error| error.message));
            if !backends.contains(&worker.backend) {
                backends.push(worker.backend);
            }
        }
        Run {
            name,
            source: source.to_owned(),
            study: None,
            place,
            preparation: false,
            of_grid: false,
            program: result.program,
            started_at_ms: result.started_at_ms,
            elapsed_ns: result.elapsed_ns,
            memory_available_bytes: result.host.memory_available_bytes.take(),
            host: Some(self.hosts.index(result.host)),
            targets: Some(self.targets.index(result.targets)),
            plan: Some(self.plans.index(result.plan)),
            labels: result.labels,
            figures,
            series,
            disks: result.disks,
            backends,
            cpu: Some(cpu),
            events: result.events,
            verdicts: result.verdicts,
            failures,
        }
    }
}

/// Equal things, kept once.
struct Table<T> {
    rows: Vec<T>,
    seen: HashMap<String, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            rows: Vec::new(),
            seen: HashMap::new(),
        }
    }
}

impl<T: Serialize> Table<T> {
    fn index(&mut self, row: T) -> usize {
        let key = serde_json::to_string(&row).unwrap_or_default();
        *self.seen.entry(key).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() - 1
        })
    }
}

/// What the probe says of its phase holds; it may know more than the run alone.
fn adopt(figures: &mut [Figure], found: &probe::Figure) {
    let name = found.phase.direction().name();
    let rate = |estimate: probe::Estimate| Rate::of(estimate.mean, estimate.error);
    for figure in figures.iter_mut().filter(|figure| figure.direction == name) {
        figure.iops = rate(found.iops);
        figure.bytes_per_s = rate(found.bytes_per_s);
        figure.settled = found.settled;
        figure.sure = found.sure;
    }
}

/// Names of a plan's jobs, each once.
fn job_names(plan: &Plan) -> String {
    let mut names: Vec<&str> = Vec::new();
    for job in &plan.jobs {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    names.join(", ")
}

/// What a headline is about.
fn target(headline: &str) -> &str {
    headline
        .rsplit_once(": ")
        .map_or(headline, |(target, _)| target)
}

/// What a run was done on: the files or directories that were given, else what they are.
fn place(result: &RunResult) -> String {
    let mut places: Vec<String> = Vec::new();
    for job in &result.plan.jobs {
        let files = &job.files;
        let given: Vec<String> = match &job.io.sim {
            Some(device) => vec![format!("sim:{device}")],
            None if files.filenames.is_empty() => files.directories.clone(),
            None => files.filenames.clone(),
        };
        for place in given {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    if places.is_empty() {
        let targets = result.targets.iter();
        places.extend(
            targets
                .take(3)
                .map(|target| target.path.display().to_string()),
        );
    }
    places.join(", ")
}

/// Makes names unlike each other: by the place, the file, and if need be a number.
fn name_apart(runs: &mut [Run]) {
    if differ(runs, |run| &run.place) {
        for run in runs.iter_mut() {
            run.name = format!("{}: {}", run.place, run.name);
        }
    }
    let mut count: HashMap<String, usize> = HashMap::new();
    for run in runs.iter() {
        *count.entry(run.name.clone()).or_default() += 1;
    }
    let by_source = differ(runs, |run| &run.source);
    for run in runs.iter_mut() {
        if by_source && count[&run.name] > 1 {
            run.name = format!("{} ({})", run.name, run.source);
        }
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    for run in runs.iter_mut() {
        let times = seen.entry(run.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            run.name = format!("{} #{times}", run.name);
        }
    }
}

fn differ(runs: &[Run], of: impl Fn(&Run) -> &String) -> bool {
    runs.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

fn default_title(runs: &[Run]) -> String {
    let mut places: Vec<&str> = Vec::new();
    for run in runs {
        if !places.contains(&run.place.as_str()) {
            places.push(&run.place);
        }
    }
    match places.as_slice() {
        [] => "iosonde".to_owned(),
        [one] => format!("Storage performance of {one}"),
        [one, two] => format!("Storage performance of {one} and {two}"),
        [one, others @ ..] => format!("Storage performance of {one} and {} others", others.len()),
    }
}
