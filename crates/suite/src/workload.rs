//! Turns one workload of a suite into runs or a study, and into the figures that it will have.

use super::model::SuiteLoad;
use super::spec::{FigureSource, PartSpec, SweepStep};
use super::text::{NodeValue, ValueNode};
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::plan::{Direction, Job, Plan, ReadWrite, ReadWriteMode, UnifiedReporting};
use iosonde_job::source::{SourceTexts, Span};
use iosonde_result::compare::Subject;
use iosonde_study::load::{Arrivals, LoadOptions, LoadPattern, Mix, Objective};
use iosonde_study::probe::ProbePhase;
use iosonde_study::sweep::{
    Axis, Base, CurvePlan, SweepGrid, SweepOptions, combinations, planned_time, with_options,
};
use std::collections::{BTreeMap, HashSet};
use std::io;

/// Most runs of one workload, unless the user allows more: more are probably a mistake.
pub const MOST_RUNS: usize = 10_000;

/// Most runs and cells of a whole suite, even if the user allows more for one workload. All of them
/// are kept in memory, and no device lasts that long.
pub(super) const MOST_STEPS: usize = 100_000;
/// Help for a workload with too many runs.
const LEAVE_OUT: &str = "remove values, or confirm with --yes";
/// Most errors reported of one workload.
const MOST_ERRORS: usize = 20;
const SECOND_NS: u64 = 1_000_000_000;

/// Adds the variables of a suite to the environment, where job files look variables up.
pub(super) struct Vars<'a> {
    pub(super) env: &'a dyn Env,
    pub(super) variables: &'a BTreeMap<String, String>,
}

impl Env for Vars<'_> {
    fn var(&self, name: &str) -> Option<String> {
        self.variables
            .get(name)
            .cloned()
            .or_else(|| self.env.var(name))
    }
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        self.env.read_file(path)
    }
    fn read_start(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        self.env.read_start(path, most)
    }
    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.env.read_stdin()
    }
    fn is_device(&self, path: &str) -> bool {
        self.env.is_device(path)
    }
    fn page_size(&self) -> u64 {
        self.env.page_size()
    }
    fn cpus(&self) -> u64 {
        self.env.cpus()
    }
    fn memory_mib(&self) -> u64 {
        self.env.memory_mib()
    }
}

/// A job file, with the mapping of its positions to positions in the suite.
pub(super) struct JobText {
    name: String,
    text: String,
    origin: JobTextOrigin,
}

enum JobTextOrigin {
    /// Text in the suite, which begins at `start` if the suite has it unchanged.
    Within { start: Option<usize>, span: Span },
    /// A separate file; `span` is its path in the suite.
    File { span: Span },
    /// A table of options, with the position of each line.
    Options { lines: Vec<Span> },
}

impl JobText {
    pub(super) fn within(
        name: String,
        text: &str,
        node: &ValueNode,
        sources: &SourceTexts,
    ) -> JobText {
        let found = sources.slice(node.span).find(text);
        JobText {
            name,
            text: text.to_owned(),
            origin: JobTextOrigin::Within {
                start: found.map(|at| node.span.start + at),
                span: node.span,
            },
        }
    }

    pub(super) fn file(name: String, text: String, span: Span) -> JobText {
        JobText {
            name,
            text,
            origin: JobTextOrigin::File { span },
        }
    }

    pub(super) fn options(workload: &str, node: &ValueNode) -> JobText {
        let mut text = format!("[{workload}]\n");
        let mut lines = vec![node.span];
        for entry in node.entries() {
            let value = match &entry.node.value {
                NodeValue::Text(text) => text.clone(),
                NodeValue::Switch(on) => u8::from(*on).to_string(),
                NodeValue::Number(number) => number.to_string(),
                _ => continue,
            };
            text.push_str(&format!("{}={}\n", entry.key, value.replace('\n', " ")));
            lines.push(Span {
                end: entry.node.span.end,
                ..entry.key_span
            });
        }
        JobText {
            name: workload.to_owned(),
            text,
            origin: JobTextOrigin::Options { lines },
        }
    }

    /// Reports errors of the job at their positions in the suite, each message once.
    fn report_errors(
        &self,
        found: Diagnostics,
        axes: Span,
        met: &mut HashSet<String>,
        all: &mut Diagnostics,
    ) {
        for mut one in found.list {
            if met.len() >= MOST_ERRORS || !met.insert(one.message.clone()) {
                continue;
            }
            one.span = Some(match one.span {
                // Source 0 is the job, source 1 the options of the axes.
                Some(span) if span.source == 0 => self.place(span, &found.sources, &mut one, all),
                Some(span) if span.source == 1 => axes,
                _ => self.whole(),
            });
            all.push(one);
        }
    }

    fn whole(&self) -> Span {
        match &self.origin {
            JobTextOrigin::Within { span, .. } | JobTextOrigin::File { span } => *span,
            JobTextOrigin::Options { lines } => lines[0],
        }
    }

    fn place(
        &self,
        span: Span,
        sources: &SourceTexts,
        one: &mut Diagnostic,
        all: &mut Diagnostics,
    ) -> Span {
        match &self.origin {
            JobTextOrigin::Within {
                start: Some(start),
                span: own,
            } => Span {
                source: own.source,
                start: start + span.start,
                end: start + span.end,
            },
            JobTextOrigin::Within { span: own, .. } => {
                let line = sources.position(span).line;
                one.help.push(format!("line {line} of the job"));
                *own
            }
            JobTextOrigin::File { .. } => Span {
                source: all.sources.add(self.name.clone(), self.text.clone()),
                ..span
            },
            JobTextOrigin::Options { lines } => {
                let line = sources.position(span).line - 1;
                lines.get(line).copied().unwrap_or(lines[0])
            }
        }
    }
}

/// The plan of each combination of axis values, with its name.
pub(super) fn plan_runs(
    workload: &str,
    base: &JobText,
    axes: &[Axis],
    at: Span,
    most: usize,
    vars: &Vars<'_>,
    all: &mut Diagnostics,
) -> Option<Vec<(String, Plan)>> {
    let count = combined(axes);
    if count > most {
        let many = Diagnostic::error(format!(
            "`{workload}` has {count} runs, more than the limit of {most}"
        ));
        all.push(many.at(at).help(LEAVE_OUT));
        return None;
    }
    let mut met = HashSet::new();
    let mut made = Vec::new();
    let mut failed = false;
    for place in combinations(axes) {
        let values: Vec<&str> = axes
            .iter()
            .zip(&place)
            .map(|(axis, index)| axis.values[*index].as_str())
            .collect();
        let pairs: Vec<(&str, &str)> = axes
            .iter()
            .map(|axis| axis.name.as_str())
            .zip(values.iter().copied())
            .collect();
        let mut found = Diagnostics::default();
        let mut jobs = with_options(&base.name, base.text.clone(), &pairs, vars, &mut found).jobs;
        let wrong = found.has_errors();
        base.report_errors(found, at, &mut met, all);
        if !wrong && jobs.is_empty() {
            let none = Diagnostic::error(format!("`{workload}` has no job"));
            all.push(none.at(base.whole()).help("add a [section] for each job"));
            return None;
        }
        if wrong {
            failed = true;
            continue;
        }
        for job in jobs.iter_mut().filter(|_| !values.is_empty()) {
            label(job, &values);
        }
        let name = [&[workload], &values[..]].concat().join(" ");
        let global_options = Vec::new();
        made.push((
            name,
            Plan {
                jobs,
                global_options,
            },
        ));
    }
    (!failed).then_some(made)
}

/// Appends the axis values to the name of a job. Its file names stay: one layout serves all runs.
fn label(job: &mut Job, values: &[&str]) {
    if job.files.filenames.is_empty() && job.files.section.is_none() {
        job.files.section = Some(job.name.clone());
    }
    job.name = format!("{}-{}", job.name, values.join("-"));
}

/// The planned figures of the jobs, one part for each distinct job.
pub(super) fn parts(workload: &str, plan: &Plan) -> Vec<PartSpec> {
    let counted = plan.jobs.iter().filter(|job| job.measure.stats);
    let mut parts: Vec<PartSpec> = Vec::new();
    for job in counted {
        let part = part_spec(workload, job);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

fn part_spec(workload: &str, job: &Job) -> PartSpec {
    let directions = Direction::ALL
        .into_iter()
        .filter(|direction| job.workload.rw.has(*direction));
    let mut subjects: Vec<Subject> = match job.measure.unified {
        UnifiedReporting::Mixed => vec![Subject::Mixed],
        _ => directions.map(Subject::from).collect(),
    };
    if job.workload.fsync_every > 0 || job.workload.fdatasync_every > 0 {
        subjects.push(Subject::Sync);
    }
    PartSpec {
        name: job.name.clone(),
        workload: workload.to_owned(),
        rw: job.workload.rw.name().to_owned(),
        subjects,
        has: FigureSource::Run {
            latency: job.measure.lat || job.measure.clat,
        },
    }
}

pub(super) fn combined(axes: &[Axis]) -> usize {
    axes.iter()
        .fold(1, |all, axis| all.saturating_mul(axis.values.len()))
}

/// The sweep of a workload, and the planned figures of its curves.
pub(super) fn swept(
    workload: &str,
    base: Option<JobText>,
    axes: Vec<Axis>,
    (options, size_bytes, most): (SweepOptions, Option<u64>, usize),
    at: Span,
    vars: &Vars<'_>,
    all: &mut Diagnostics,
) -> Option<(SweepStep, Vec<PartSpec>)> {
    let too_many = |cells: usize| {
        let many = Diagnostic::error(format!(
            "`{workload}` has {cells} cells, more than the limit of {most}"
        ));
        many.at(at).help(LEAVE_OUT)
    };
    if combined(&axes) > most {
        all.push(too_many(combined(&axes)));
        return None;
    }
    let grid_base = match &base {
        None => Base::Plain,
        Some(job) => Base::File {
            name: job.name.clone(),
            text: job.text.clone(),
        },
    };
    match SweepGrid::new(&grid_base, &[], &axes, vars) {
        Err(found) => {
            let mut met = HashSet::new();
            match &base {
                Some(job) => job.report_errors(found, at, &mut met, all),
                None => {
                    for mut one in found.list {
                        one.span = Some(at);
                        all.push(one);
                    }
                }
            }
            None
        }
        Ok(grid) if grid.cells() > most => {
            all.push(too_many(grid.cells()));
            None
        }
        Ok(grid) => {
            let parts = grid.curves.iter().map(|curve| curve_part(workload, curve));
            let parts = parts.collect();
            let planned = planned_time(&grid, &options);
            let step = SweepStep {
                grid,
                options,
                size_bytes,
                planned,
            };
            Some((step, parts))
        }
    }
}

fn curve_part(workload: &str, curve: &CurvePlan) -> PartSpec {
    PartSpec {
        name: curve_name(workload, &curve.values),
        workload: workload.to_owned(),
        rw: curve.job.workload.rw.name().to_owned(),
        subjects: Vec::new(),
        has: FigureSource::Curve,
    }
}

/// The name of a curve: the workload and the axis values without the depth.
pub(super) fn curve_name(workload: &str, values: &[String]) -> String {
    let words = std::iter::once(workload).chain(values.iter().map(String::as_str));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// The planned figures of the phases of a probe.
pub(super) fn probe_parts(workload: &str) -> Vec<PartSpec> {
    let part = |phase: ProbePhase| {
        let order = if phase.is_random() { "rand" } else { "" };
        let mut subjects = vec![Subject::from(phase.direction())];
        if phase == ProbePhase::SyncedWrite {
            subjects.push(Subject::Sync);
        }
        PartSpec {
            name: phase.key().to_owned(),
            workload: workload.to_owned(),
            rw: format!("{order}{}", phase.direction().name()),
            subjects,
            has: FigureSource::Run { latency: true },
        }
    };
    ProbePhase::MEASURED.into_iter().map(part).collect()
}

/// A member of a study with a wrong value.
pub(super) struct WrongMember {
    pub(super) key: &'static str,
    pub(super) problem: String,
    pub(super) help: String,
}

/// The options of a load study, or all wrong members.
pub(super) fn load_options(
    load: &SuiteLoad,
    runtime_ns: Option<u64>,
    size_bytes: Option<u64>,
    block_bytes: u64,
) -> Result<LoadOptions, Vec<WrongMember>> {
    let mut wrong = Vec::new();
    let mut reject = |key, problem, help| wrong.push(WrongMember { key, problem, help });
    let rw = load.rw.as_deref().unwrap_or("randread");
    let known = ["read", "write", "randread", "randwrite", "rw", "randrw"];
    if !known.contains(&rw) {
        let problem = format!("`load` does not support rw={rw}");
        reject("rw", problem, format!("use {}", known.join(", ")));
    }
    let read_percent = load.rwmixread.unwrap_or(50);
    if !(1..=99).contains(&read_percent) {
        let problem = format!("rwmixread is {read_percent}");
        reject("rwmixread", problem, "use 1 to 99".to_owned());
    }
    if load
        .rates
        .iter()
        .any(|rate| !rate.is_finite() || *rate < 1.0)
    {
        let problem = "a rate is below 1 per second".to_owned();
        let help = "use I/Os per second, e.g. [500, 1000]".to_owned();
        reject("rates", problem, help);
    }
    let mut objectives: Vec<Objective> = Vec::new();
    match load.slo.as_ref().map(|text| text.parse::<Objective>()) {
        Some(Ok(objective)) => objectives.push(objective),
        Some(Err(error)) => {
            let help = "use e.g. p99=2ms".to_owned();
            reject("slo", error.to_string(), help);
        }
        None => {}
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let rw = ReadWrite::from_rw(rw);
    let mix = match rw.map(|rw| rw.mode) {
        Some(ReadWriteMode::Read) => Mix::READ,
        Some(ReadWriteMode::Write) => Mix::WRITE,
        _ => Mix { read_percent },
    };
    Ok(LoadOptions {
        pattern: LoadPattern {
            block_bytes,
            random: rw.is_some_and(|rw| rw.random),
        },
        mix,
        arrivals: Arrivals::Poisson,
        rates: load.rates.clone(),
        objectives,
        matrix: None,
        runtime_ns: runtime_ns.unwrap_or(4 * SECOND_NS),
        ramp_ns: SECOND_NS,
        numjobs: 1,
        parties: 1,
        iodepth: 1024,
        size_bytes,
        direct: true,
        seed: 1,
    })
}
