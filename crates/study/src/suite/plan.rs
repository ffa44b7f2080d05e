//! A written suite to what is run, target by target: the steps, the figures they will have, and what is expected of them.

mod expectations;
mod failed;

use super::model::{Load, Probe, Scalar, Sweep, TargetEntry, Workload};
use super::read::{self, Piece, Written, beside, filled};
use super::spec::{Has, PartSpec, Suite, SuiteStep, SuiteTarget, What};
use super::text::Node;
use super::workload::{self, MOST_STEPS, Vars};
use crate::limits::Limits;
use crate::probe::{Budget, ProbeOptions};
use crate::sweep::{Axis, SweepOptions};
use failed::FailedWorkload;
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::source::Span;
use std::collections::{BTreeMap, HashMap};

/// Reads a suite, whose workloads may have so many runs or cells at most, usually [`MOST_RUNS`](super::MOST_RUNS).
///
/// # Errors
/// All that is wrong with it and with what it includes, each with its place.
pub fn suite(
    name: &str,
    text: &str,
    overrides: &BTreeMap<String, String>,
    limits: &Limits,
    most_runs: usize,
    env: &dyn Env,
) -> Result<Suite, Diagnostics> {
    let mut all = Diagnostics::default();
    let written = read::read(name, text, overrides, env, &mut all);
    let stem = std::path::Path::new(name).file_stem();
    let stem = stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut maker = Maker {
        limits,
        most_runs,
        runs: 0,
        named_parts: HashMap::new(),
        env,
        variables: written.variables.clone(),
        is_partial: written.is_partial,
        failed: Vec::new(),
        suite: Suite {
            name: written.file.name.clone().unwrap_or(stem),
            about: written.file.about.clone(),
            labels: BTreeMap::new(),
            targets: Vec::new(),
            steps: Vec::new(),
            parts: Vec::new(),
            expectations: Vec::new(),
            warnings: Diagnostics::default(),
        },
        all,
    };
    maker.make(written);
    let Maker { mut suite, all, .. } = maker;
    if all.has_errors() {
        return Err(all);
    }
    suite.warnings = all;
    Ok(suite)
}

struct Maker<'a> {
    limits: &'a Limits,
    most_runs: usize,
    /// Runs and cells so far.
    runs: usize,
    /// The first of the parts of each name, by its index.
    named_parts: HashMap<String, usize>,
    env: &'a dyn Env,
    variables: BTreeMap<String, String>,
    /// Whether workloads or variables are missing that could not be read.
    is_partial: bool,
    /// Workloads with errors, whose parts are not known.
    failed: Vec<FailedWorkload>,
    suite: Suite,
    all: Diagnostics,
}

impl Maker<'_> {
    fn make(&mut self, mut written: Written) {
        for (key, (value, at)) in std::mem::take(&mut written.labels) {
            let mut found = Diagnostics::default();
            let value = filled(&value, at, &self.variables, self.env, &mut found);
            self.tell_unknown_variables(found);
            self.suite.labels.insert(key, value);
        }
        for mut node in std::mem::take(&mut written.targets) {
            if self.substitute(&mut node).is_empty() {
                self.target(&node);
            }
        }
        if written.workloads.is_empty() && !self.is_partial {
            self.all.push(
                Diagnostic::error(format!("{}: there is no workload", self.suite.name))
                    .help("add one: [[workload]] with a name, and job, file, options, sweep, load or probe"),
            );
        }
        let repetitions = written.file.repetitions.unwrap_or(1);
        let mut expected = Vec::new();
        for mut piece in std::mem::take(&mut written.workloads) {
            let unknown = self.substitute(&mut piece.node);
            let name = self.workload_beside(&piece, repetitions, &unknown);
            let nodes = piece.node.get("expect").map_or(&[][..], Node::items);
            let of_it = nodes.iter().filter(|node| !unknown.contains(&node.span));
            expected.extend(of_it.map(|node| (node.clone(), name.clone())));
        }
        for mut node in std::mem::take(&mut written.expect) {
            if self.substitute(&mut node).is_empty() {
                expected.push((node, None));
            }
        }
        for (node, workload) in expected {
            self.expectation(&node, workload);
        }
    }

    fn target(&mut self, node: &Node) {
        let Ok(entry) = serde_json::from_value::<TargetEntry>(node.json()) else {
            return;
        };
        let (name, labels) = match entry {
            TargetEntry::Name(name) => (name, BTreeMap::new()),
            TargetEntry::Labelled(target) => (target.path, target.labels),
        };
        if name.is_empty() {
            let empty = Diagnostic::error("a target without a path").at(node.span);
            self.all.push(empty);
        }
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key, value.text()))
            .collect();
        self.suite.targets.push(SuiteTarget { name, labels });
    }

    /// Its name, if it has one. `is_shaped`: nothing was removed from it that had no place there.
    fn workload(&mut self, piece: &Piece, repetitions: u32, is_shaped: bool) -> Option<String> {
        let node = &piece.node;
        let workload: Workload = serde_json::from_value(node.json()).ok()?;
        let name = workload.name.clone();
        if name.is_empty() && !is_shaped {
            return None;
        }
        if name.is_empty() {
            let missing = Diagnostic::error("a workload without a name").at(first_of(node));
            self.all.push(missing.help("add name = \"...\""));
            return None;
        }
        if self.suite.steps.iter().any(|step| step.workload == name) {
            let at = node.get("name").map_or(node.span, |node| node.span);
            let twice = Diagnostic::error(format!("two workloads are called `{name}`")).at(at);
            self.all.push(twice.help("give each a name of its own"));
            return None;
        }
        let repetitions = workload.repetitions.unwrap_or(repetitions);
        let before = self.suite.parts.len();
        let whats = self.whats(piece, &workload, is_shaped);
        for (name, what, parts) in whats.into_iter().flatten() {
            self.suite.steps.push(SuiteStep {
                workload: workload.name.clone(),
                name,
                what,
                repetitions,
            });
            self.suite.parts.extend(parts);
        }
        self.tell_twice(node, before);
        Some(name)
    }

    /// Parts whose names are not their own: nobody could say which is meant.
    fn tell_twice(&mut self, node: &Node, before: usize) {
        let mut twice = None;
        for (index, part) in self.suite.parts.iter().enumerate().skip(before) {
            let first = *self.named_parts.entry(part.name.clone()).or_insert(index);
            if first != index {
                twice = twice.or(Some((first, part)));
            }
        }
        if let Some((first, part)) = twice {
            let error = Diagnostic::error(format!(
                "`{}` is a part of the workload `{}`, and of `{}`",
                part.name, self.suite.parts[first].workload, part.workload
            ));
            self.all
                .push(error.at(first_of(node)).help("give one another name"));
        }
    }

    fn whats(
        &mut self,
        piece: &Piece,
        workload: &Workload,
        is_shaped: bool,
    ) -> Option<Vec<(String, What, Vec<PartSpec>)>> {
        let node = &piece.node;
        let kinds = ["job", "file", "options"].map(|key| node.get(key).is_some());
        let bases = kinds.iter().filter(|given| **given).count();
        let studies = ["sweep", "load", "probe"].map(|key| node.get(key).is_some());
        let studies_given = studies.iter().filter(|given| **given).count();
        let alone = workload.load.is_some() || workload.probe.is_some();
        if bases > 1 || studies_given > 1 || (alone && (bases > 0 || !workload.axes.is_empty())) {
            let several = Diagnostic::error(format!(
                "the workload `{}` is several things at once",
                workload.name
            ));
            self.all.push(several.at(first_of(node)).help(
                "give it one of job, file or options, perhaps with axes and sweep; or load; or probe",
            ));
            return None;
        }
        if bases + studies_given == 0 && !is_shaped {
            return None;
        }
        if bases + studies_given == 0 {
            let nothing =
                Diagnostic::error(format!("the workload `{}` does nothing", workload.name));
            self.all.push(
                nothing
                    .at(first_of(node))
                    .help("give it job (text), file, or options of fio; or sweep, load or probe"),
            );
            return None;
        }
        if let Some(probe) = &workload.probe {
            return self.probe(node, workload, probe);
        }
        if let Some(load) = &workload.load {
            return self.load(node, workload, load);
        }
        let base = self.base(piece, workload);
        let axes = self.axes(node);
        let base = base?;
        match &workload.sweep {
            Some(sweep) => self.sweep(node, workload, base, axes, sweep),
            None => self.jobs(node, workload, &base?, &axes),
        }
    }

    /// The job file that the workload is, if it is one.
    fn base(&mut self, piece: &Piece, workload: &Workload) -> Option<Option<workload::JobText>> {
        let node = &piece.node;
        if let (Some(text), Some(at)) = (&workload.job, node.get("job")) {
            let name = format!("job of {}", workload.name);
            return Some(Some(workload::JobText::within(
                name,
                text,
                at,
                &self.all.sources,
            )));
        }
        if let (Some(file), Some(at)) = (&workload.file, node.get("file")) {
            let path = beside(&format!("{}/x", piece.directory), file);
            let path = path.trim_start_matches("./").to_owned();
            let path = match piece.directory.is_empty() {
                true => path.trim_start_matches('/').to_owned(),
                false => path,
            };
            let path = if file.starts_with('/') {
                file.clone()
            } else {
                path
            };
            return match self.env.read_file(&path) {
                Ok(bytes) => Some(Some(workload::JobText::file(
                    path,
                    String::from_utf8_lossy(&bytes).into_owned(),
                    at.span,
                ))),
                Err(error) => {
                    let diagnostic = Diagnostic::error(format!("{path}: {error}")).at(at.span);
                    self.all
                        .push(diagnostic.help("name a job file relative to the suite"));
                    None
                }
            };
        }
        Some(
            node.get("options")
                .map(|at| workload::JobText::options(&workload.name, at)),
        )
    }

    fn axes(&mut self, node: &Node) -> Vec<Axis> {
        let entries = node.get("axes").map_or(&[][..], Node::entries);
        let mut axes: Vec<Axis> = Vec::new();
        for entry in entries {
            let Ok(values) = serde_json::from_value::<super::model::AxisValues>(entry.node.json())
            else {
                continue;
            };
            let mut found = Diagnostics::default();
            let given = [(entry.key.clone(), values.text())];
            let read = crate::sweep::parse_axes(&given, &mut found);
            for mut one in found.list {
                one.span = Some(match one.message.contains("there is no option") {
                    true => entry.key_span,
                    false => entry.node.span,
                });
                self.all.push(one);
            }
            for axis in read {
                match crate::sweep::given_twice(&axis, &axes) {
                    Some(twice) => self.all.push(twice.at(entry.key_span)),
                    None => axes.push(axis),
                }
            }
        }
        crate::sweep::ordered(&axes)
    }

    fn jobs(
        &mut self,
        node: &Node,
        workload: &Workload,
        base: &workload::JobText,
        axes: &[Axis],
    ) -> Option<Vec<(String, What, Vec<PartSpec>)>> {
        let at = node.get("axes").map_or(node.span, |axes| axes.span);
        self.count(workload::combined(axes), at)?;
        let vars = Vars {
            env: self.env,
            variables: &self.variables,
        };
        let made = workload::runs(
            &workload.name,
            base,
            axes,
            at,
            self.most_runs,
            &vars,
            &mut self.all,
        )?;
        let steps = made.into_iter().map(|(name, plan)| {
            let parts = workload::parts(&workload.name, &plan);
            (name, What::Jobs(Box::new(plan)), parts)
        });
        Some(steps.collect())
    }

    fn sweep(
        &mut self,
        node: &Node,
        workload: &Workload,
        base: Option<workload::JobText>,
        axes: Vec<Axis>,
        sweep: &Sweep,
    ) -> Option<Vec<(String, What, Vec<PartSpec>)>> {
        let at = node.get("sweep").map_or(node.span, |node| node.span);
        let runtime_ns = self.time(sweep.runtime.as_ref(), at);
        let size_bytes = self.size(sweep.size.as_ref(), at);
        let options = SweepOptions {
            exhaustive: sweep.exhaustive,
            runtime_ns: runtime_ns.flatten().unwrap_or(60_000_000_000),
            budget_ns: None,
            seed: 1,
            most_warmup_ns: None,
        };
        let at = node.get("axes").map_or(node.span, |axes| axes.span);
        self.count(workload::combined(&axes), at)?;
        let vars = Vars {
            env: self.env,
            variables: &self.variables,
        };
        let swept = workload::swept(
            &workload.name,
            base,
            axes,
            (options, size_bytes.flatten(), self.most_runs),
            at,
            &vars,
            &mut self.all,
        );
        // A wrong time or size is reported already.
        runtime_ns?;
        size_bytes?;
        let (step, parts) = swept?;
        Some(vec![(
            workload.name.clone(),
            What::Sweep(Box::new(step)),
            parts,
        )])
    }

    fn load(
        &mut self,
        node: &Node,
        workload: &Workload,
        load: &Load,
    ) -> Option<Vec<(String, What, Vec<PartSpec>)>> {
        let at = node.get("load").map_or(node.span, |node| node.span);
        let runtime_ns = self.time(load.runtime.as_ref(), at);
        let size_bytes = self.size(load.size.as_ref(), at);
        let block = self.size(load.bs.as_ref(), at);
        let sizes = (size_bytes.flatten(), block.flatten().unwrap_or(4096));
        match workload::load_options(load, runtime_ns.flatten(), sizes.0, sizes.1) {
            Ok(options) => {
                // A wrong time or size is reported already.
                runtime_ns?;
                size_bytes?;
                block?;
                let parts = vec![PartSpec {
                    name: workload.name.clone(),
                    workload: workload.name.clone(),
                    rw: load.rw.clone().unwrap_or_else(|| "randread".to_owned()),
                    subjects: Vec::new(),
                    has: Has::Load {
                        capacity: options.rates.is_empty(),
                    },
                }];
                Some(vec![(workload.name.clone(), What::Load(options), parts)])
            }
            Err(wrong) => {
                for one in wrong {
                    let at = node.get("load").and_then(|load| load.get(one.key));
                    let at = at.map_or(node.span, |node| node.span);
                    let diagnostic = Diagnostic::error(one.problem).at(at);
                    self.all.push(diagnostic.help(one.help));
                }
                None
            }
        }
    }

    fn probe(
        &mut self,
        node: &Node,
        workload: &Workload,
        probe: &Probe,
    ) -> Option<Vec<(String, What, Vec<PartSpec>)>> {
        let at = node.get("probe").map_or(node.span, |node| node.span);
        let runtime_ns = self.time(probe.runtime.as_ref(), at);
        let size_bytes = self.size(probe.size.as_ref(), at)?;
        let runtime_ns = runtime_ns?;
        let mut budget = match probe.quick {
            true => Budget::QUICK,
            false => Budget::NORMAL,
        };
        if let Some(runtime_ns) = runtime_ns {
            budget = budget.with_runtime(runtime_ns);
        }
        if let Some(bytes) = size_bytes {
            budget.size_bytes = bytes;
        }
        let options = ProbeOptions {
            budget,
            size_bytes,
            direct: true,
            seed: 1,
        };
        let parts = workload::probe_parts(&workload.name);
        Some(vec![(workload.name.clone(), What::Probe(options), parts)])
    }

    /// Counts runs or cells before they are made. `None`: the suite has too many, and that is reported.
    fn count(&mut self, runs: usize, at: Span) -> Option<()> {
        // The bound of the workload has an error of its own.
        if runs > self.most_runs {
            return Some(());
        }
        self.runs = self.runs.saturating_add(runs);
        if self.runs <= MOST_STEPS {
            return Some(());
        }
        let message = format!(
            "the suite has {} runs up to here, more than {MOST_STEPS}",
            self.runs
        );
        self.all.push(
            Diagnostic::error(message)
                .at(at)
                .help("leave out values, or make several suites of it"),
        );
        None
    }

    /// `None`: it is wrong, and that is reported.
    fn time(&mut self, text: Option<&Scalar>, at: Span) -> Option<Option<u64>> {
        use iosonde_job::value::{TimeUnit, time_ns};
        let Some(text) = text.map(Scalar::text) else {
            return Some(None);
        };
        match time_ns(&text, TimeUnit::Seconds) {
            Ok(ns @ 1..) => Some(Some(ns)),
            _ => {
                let wrong = Diagnostic::error(format!("`{text}` is not a time")).at(at);
                self.all.push(wrong.help("write seconds, or e.g. 2m"));
                None
            }
        }
    }

    fn size(&mut self, text: Option<&Scalar>, at: Span) -> Option<Option<u64>> {
        use iosonde_job::value::{Bytes, bytes};
        let Some(text) = text.map(Scalar::text) else {
            return Some(None);
        };
        match bytes(&text, Bytes::Binary) {
            Ok(bytes @ 1..) => Some(Some(bytes)),
            _ => {
                let wrong = Diagnostic::error(format!("`{text}` is not a size")).at(at);
                self.all.push(wrong.help("write e.g. 4k or 10g"));
                None
            }
        }
    }
}

/// The first line of a table: its whole span may be long.
fn first_of(node: &Node) -> Span {
    match node
        .get("name")
        .or(node.entries().first().map(|entry| &entry.node))
    {
        Some(first) => first.span,
        None => node.span,
    }
}
