//! Builder of the report: adds results one by one and keeps only the data that the page draws.

use super::document::{
    PageExpectation, PageFigure, PageFigureTexts, PageLoad, PagePivot, PagePromise, PageRate,
    PageReport, PageResult, PageRun, PageSeries, PageSpread, PageStudy, PageSuite, PageSweep,
};
use super::page_target::chosen_path;
use super::page_winner::{ComparedProbe, winners};
use super::{
    foreign, html_page, knees, page_csi, page_figures, page_lifecycle, page_load, page_machine,
    page_pivot, page_promises, page_pts, page_series, page_spread, page_study, page_suite,
    page_sweep, page_title, sentence_signs,
};
use crate::facts;
use crate::pivot as tables;
use crate::probe::row::title_of_part;
use crate::probe::short_report::shape_word;
use crate::probe::side_by_side;
use crate::unique;
use iosonde_history::{StudySummary, TOGETHER};
use iosonde_job::plan::Plan;
use iosonde_result::compare::{MeasuredResult, Subject};
use iosonde_result::fio::import::FioDocument;
use iosonde_result::host::{Host, TargetInfo};
use iosonde_result::run::{CpuUse, RunEvent, RunResult, WorkerResult};
use iosonde_study::csi::CsiResult;
use iosonde_study::lifecycle::LifecycleResult;
use iosonde_study::load::LoadResult;
use iosonde_study::probe::{self, ProbePhase, ProbeResult};
use iosonde_study::promise_check::PromiseCheck;
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::SweepResult;
use iosonde_suite::SuiteResult;
use serde::Serialize;
use std::collections::HashMap;

/// Builds one report from any number of results.
#[derive(Default)]
pub struct HtmlReportBuilder {
    hosts: DistinctValues<Host>,
    targets: DistinctValues<Vec<TargetInfo>>,
    plans: DistinctValues<Plan>,
    studies: Vec<PageStudy>,
    /// Probes in the order of the studies.
    compared: Vec<ComparedProbe>,
    runs: Vec<PageRun>,
    suites: Vec<PageSuite>,
    /// Expectations of suites.
    expectations: Vec<PageExpectation>,
    /// Promises that probes were compared with.
    promises: Vec<PagePromise>,
    /// Spread of the results that share a label.
    spreads: Vec<PageSpread>,
    sweeps: Vec<PageSweep>,
    /// Sweeps of suites: suite, step and repetition; target; sweep.
    of_suites: Vec<((String, String, u32), String, PageSweep)>,
    knees: Vec<PageSweep>,
    loads: Vec<PageLoad>,
    /// Whether a load study is no step of a suite.
    has_single_load: bool,
    pivots: Vec<PagePivot>,
    kept: Vec<PageResult>,
    /// Promises that all added results are compared with.
    expected: Vec<iosonde_limits::Promise>,
}

impl HtmlReportBuilder {
    /// Creates a builder that compares all results with these promises of vendors.
    pub fn expecting(expected: Vec<iosonde_limits::Promise>) -> HtmlReportBuilder {
        HtmlReportBuilder {
            expected,
            ..HtmlReportBuilder::default()
        }
    }

    /// Adds a single run. `source` is its file or id.
    pub fn run(&mut self, source: &str, result: RunResult) {
        let place = place(&result);
        self.run_on(source, place, result);
    }

    /// Adds a run of a suite, whose target has a better name than its working file.
    pub fn run_of_suite(&mut self, source: &str, suite: &SuiteResult, result: RunResult) {
        self.run_on(source, page_suite::place(suite), result);
    }

    /// Adds a single run of a probe, which has the title of its phase.
    pub fn run_of_probe(&mut self, source: &str, target: &str, result: RunResult) {
        let depth = result.plan.jobs.first().map(|job| job.io.iodepth);
        let key = job_names(&result.plan);
        let title = depth.and_then(|depth| title_of_part(&key, depth));
        let name = title.unwrap_or(key);
        let run = self.taken(source, name, target.to_owned(), result);
        self.runs.push(run);
    }

    fn run_on(&mut self, source: &str, place: String, result: RunResult) {
        let name = job_names(&result.plan);
        let run = self.taken(source, name, place, result);
        self.runs.push(run);
    }

    /// Adds a probe with its runs.
    pub fn probe(&mut self, source: &str, mut result: ProbeResult) {
        let study = self.studies.len();
        let before = result.expected.iter();
        let kept = before.filter(|held| !self.expected.contains(&held.promise));
        self.knees.extend(knees::convert_knees(source, &result));
        let place = &result.target;
        self.promises
            .extend(kept.map(|held| page_promises::convert_check(held, place)));
        let asked = self
            .expected
            .iter()
            .map(|promise| PromiseCheck::from_probe(promise, &result));
        self.promises
            .extend(asked.map(|held| page_promises::convert_check(&held, place)));
        let measured = side_by_side::measured(&result);
        let is_noisy = result.is_noisy();
        for phase_run in std::mem::take(&mut result.runs) {
            let phase = phase_run.phase;
            let found = result.figures.iter().find(|figure| figure.phase == phase);
            let shape = found.map(|figure| shape_word(figure, &phase_run.result));
            let mut run = self.taken(
                source,
                phase.title().to_owned(),
                result.target.clone(),
                phase_run.result,
            );
            (run.study, run.phase) = (Some(study), Some(phase));
            run.preparation = phase == ProbePhase::Layout;
            if let Some(found) = found {
                copy_probe_rates(&mut run.figures, found, shape);
            }
            self.runs.push(run);
        }
        self.studies
            .push(page_study::convert_study(source, &result, is_noisy));
        self.compared.push(ComparedProbe { result, measured });
    }

    /// Adds a sweep. Its runs are added one by one: see [`HtmlReportBuilder::of_grid`].
    pub fn sweep(&mut self, source: &str, result: &SweepResult) {
        self.sweeps.push(page_sweep::convert_sweep(source, result));
    }

    /// Adds the verdict, the expectations, the sweeps and the load studies of a suite. The page
    /// draws sweeps of a step on several targets as one.
    pub fn suite(&mut self, source: &str, result: &SuiteResult) {
        self.suites.push(page_suite::convert_verdict(result));
        self.expectations.extend(page_suite::convert_suite(result));
        for step in &result.steps {
            self.loads
                .extend(page_load::convert_load_of_step(source, step));
            let Some(found) = &step.sweep else {
                continue;
            };
            let step = (result.suite.clone(), step.name.clone(), step.repetition);
            self.of_suites.push((
                step,
                result.target.clone(),
                page_sweep::convert_sweep_of_step(source, found),
            ));
        }
    }

    /// Merges the sweeps of each step of a suite, if they have the same axes on all targets.
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
            let sweeps: Vec<(String, PageSweep)> = sweeps.collect();
            match page_sweep::merged(&sweeps) {
                Some(merged) => self.sweeps.push(merged),
                None => self
                    .sweeps
                    .extend(sweeps.into_iter().map(|(_, sweep)| sweep)),
            }
        }
    }

    /// Adds a load study. Its runs are added one by one: see [`HtmlReportBuilder::of_grid`].
    pub fn load(&mut self, source: &str, result: &LoadResult) {
        self.loads.push(page_load::convert_load(source, result));
        self.has_single_load = true;
    }

    /// Adds a SNIA test. Its runs are added one by one: see [`HtmlReportBuilder::of_grid`].
    pub fn pts(&mut self, source: &str, result: &PtsResult) {
        self.sweeps.extend(page_pts::convert_pts(source, result));
    }

    /// Adds the life cycle of volumes: a table of stages and classes for each number at once.
    pub fn lifecycle(&mut self, source: &str, result: &LifecycleResult) {
        self.pivots
            .extend(page_lifecycle::convert_lifecycle(source, result));
    }

    /// Adds data services: a table of durations, and the application's latencies around them.
    pub fn csi(&mut self, source: &str, result: &CsiResult) {
        self.pivots.extend(page_csi::convert_csi(source, result));
    }

    /// Adds a run of a sweep or a load study, which the page draws as a whole. The page shows only
    /// the conditions of such a run.
    pub fn of_grid(&mut self, source: &str, mut result: RunResult) {
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

    /// Adds a result of fio itself.
    pub fn fio(&mut self, source: &str, found: FioDocument) {
        self.runs.push(foreign::run(source, found));
    }

    /// Returns the report as an HTML file.
    pub fn html(self, title: Option<&str>) -> serde_json::Result<String> {
        html_page(&self.into_page_report(title))
    }

    /// Returns the data of the page.
    pub(crate) fn into_page_report(mut self, title: Option<&str>) -> PageReport {
        self.join_suites();
        for promise in &self.expected {
            self.promises
                .extend(page_promises::compare_runs(promise, &self.runs));
        }
        // Those of all suites that are not met come first.
        self.expectations
            .sort_by_key(|each| page_suite::mark_rank(each.mark));
        for figure in self.runs.iter_mut().flat_map(|run| &mut run.figures) {
            figure.shown = PageFigureTexts::from_figure(figure);
        }
        let title = title.map_or_else(|| self.default_title(), str::to_owned);
        let mut report = PageReport {
            program: crate::json_document::PROGRAM,
            title,
            hosts: self.hosts.rows,
            targets: self.targets.rows,
            plans: self.plans.rows,
            studies: self.studies,
            winners: winners(&self.compared),
            runs: self.runs,
            suites: self.suites,
            expectations: self.expectations,
            promises: self.promises,
            spreads: self.spreads,
            sweeps: self.sweeps,
            knees: self.knees,
            loads: self.loads,
            pivots: self.pivots,
            kept: self.kept,
        };
        sentence_signs::replace_ascii_signs(&mut report);
        report
    }

    /// Adds a pivot table.
    pub fn pivot(&mut self, pivot: &tables::PivotTable) {
        self.pivots.push(page_pivot::convert_pivot(pivot));
    }

    /// Adds a stored result that pivot tables use.
    pub fn kept(&mut self, study: &StudySummary) {
        self.kept.push(page_pivot::convert_result(study));
    }

    fn default_title(&self) -> String {
        if let Some(first) = self.pivots.first() {
            return format!("Storage by {} and {}", first.row_label, first.column_label);
        }
        let has_others = !self.studies.is_empty() || self.has_single_load;
        if let Some(title) = page_suite::title(&self.suites).filter(|_| !has_others) {
            return title;
        }
        let infos = &self.targets.rows;
        page_title::title_of_results(&self.runs, &self.sweeps, &self.loads, infos)
    }

    /// Adds the spread of the results of a label.
    pub fn spread(&mut self, label: &str, results: &[MeasuredResult]) {
        self.spreads
            .extend(page_spread::convert_spread(label, results));
    }

    fn taken(
        &mut self,
        source: &str,
        name: String,
        place: String,
        mut result: RunResult,
    ) -> PageRun {
        result.labels.remove(TOGETHER);
        // Values that change between runs would give each run a host and targets of its own.
        result.host.swap_used_bytes = None;
        for space in result
            .targets
            .iter_mut()
            .filter_map(|target| target.space.as_mut())
        {
            (space.used_bytes, space.available_bytes) = (None, None);
        }
        let figures = page_figures::list_figures(&result);
        let facts = facts::storage(&result)
            .into_iter()
            .chain(facts::caches(&result.caches))
            .chain(facts::nfs_facts(&result.nfs))
            .chain(result.shared_file.iter().flat_map(facts::shared_file));
        let fact_events = facts.map(|(name, text)| RunEvent {
            at_ns: 0,
            message: format!("{name}: {text}"),
        });
        result.events.splice(0..0, fact_events);
        let mut series: Vec<PageSeries> = page_series::thin_intervals(&result.intervals)
            .into_iter()
            .collect();
        series.extend(page_machine::thin_machine_series(
            &result.series,
            &result.intervals,
        ));
        let cpu = sum_cpu_use(&result.workers);
        let mut backends = Vec::new();
        let mut failures = Vec::new();
        for worker in result.workers {
            failures.extend(worker.error.map(|error| error.message));
            if !backends.contains(&worker.backend) {
                backends.push(worker.backend);
            }
        }
        PageRun {
            name,
            source: source.to_owned(),
            study: None,
            phase: None,
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

/// Distinct values, each stored once.
struct DistinctValues<T> {
    rows: Vec<T>,
    seen: HashMap<String, usize>,
}

impl<T> Default for DistinctValues<T> {
    fn default() -> Self {
        DistinctValues {
            rows: Vec::new(),
            seen: HashMap::new(),
        }
    }
}

impl<T: Serialize> DistinctValues<T> {
    fn index(&mut self, row: T) -> usize {
        let key = serde_json::to_string(&row).unwrap_or_default();
        *self.seen.entry(key).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() - 1
        })
    }
}

/// Copies the rates of a probe's figure, which can be based on more data than the run.
fn copy_probe_rates(
    figures: &mut [PageFigure],
    found: &probe::PhaseFigure,
    shape: Option<&'static str>,
) {
    let direction = Subject::from(found.phase.direction());
    let rate = |estimate: probe::RateEstimate| PageRate::new(estimate.mean, estimate.error);
    let of_phase = figures
        .iter_mut()
        .filter(|figure| figure.direction == direction);
    for figure in of_phase {
        figure.iops = rate(found.iops);
        figure.bytes_per_s = rate(found.bytes_per_s);
        figure.settled = found.settled;
        figure.shape = shape;
        figure.sure = found.sure;
    }
}

/// CPU time, context switches and page faults of all workers.
fn sum_cpu_use(workers: &[WorkerResult]) -> CpuUse {
    let mut sum = CpuUse::default();
    for worker in workers {
        sum.user_ns += worker.cpu.user_ns;
        sum.system_ns += worker.cpu.system_ns;
        sum.context_switches += worker.cpu.context_switches;
        sum.major_faults += worker.cpu.major_faults;
        sum.minor_faults += worker.cpu.minor_faults;
    }
    sum
}

/// Names of a plan's jobs without duplicates.
fn job_names(plan: &Plan) -> String {
    unique(plan.jobs.iter().map(|job| job.name.as_str())).join(", ")
}

/// Target of a run as the user named it, otherwise the paths of the first three targets.
fn place(result: &RunResult) -> String {
    let given = result.plan.jobs.iter().flat_map(|job| match &job.io.sim {
        Some(device) => vec![format!("sim:{device}")],
        None if job.files.filenames.is_empty() => job.files.directories.clone(),
        None => job.files.filenames.clone(),
    });
    let mut places = unique(given.map(|path| chosen_path(&path).to_owned()));
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
