//! Turns a parsed suite into a plan: the steps, the figures that they will have, the expectations.

mod expectations;
mod failed;
mod neighbour_of_workload;
mod workload_steps;

use super::model::{SuiteWorkload, TargetEntry};
use super::read::{self, ParsedSuite, WorkloadNode, substitute_text};
use super::spec::{Suite, SuitePods, SuiteStep, SuiteTarget};
use super::text::ValueNode;
use failed::FailedWorkload;
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics};
use iosonde_job::read_json_value;
use iosonde_job::source::Span;
use iosonde_limits::Limits;
use std::collections::{BTreeMap, HashMap};

/// Reads a suite of up to `most_runs` runs or cells per workload ([`MOST_RUNS`](super::MOST_RUNS)).
///
/// # Errors
/// All errors of the suite and its includes, each with its position.
pub fn suite(
    name: &str,
    text: &str,
    overrides: &BTreeMap<String, String>,
    limits: &Limits,
    most_runs: usize,
    env: &dyn Env,
) -> Result<Suite, Diagnostics> {
    let mut all = Diagnostics::default();
    let written = read::read_suite(name, text, overrides, env, &mut all);
    let stem = std::path::Path::new(name).file_stem();
    let stem = stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut planner = SuitePlanner {
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
            variables: written.variables.clone(),
            targets: Vec::new(),
            pods: match (written.file.per_node, written.file.pods) {
                (Some(true), _) => Some(SuitePods::PerNode),
                (_, count) => count.map(SuitePods::Count),
            },
            steps: Vec::new(),
            parts: Vec::new(),
            expectations: Vec::new(),
            warnings: Diagnostics::default(),
        },
        all,
    };
    planner.make(written);
    let SuitePlanner { mut suite, all, .. } = planner;
    if all.has_errors() {
        return Err(all);
    }
    suite.warnings = all;
    Ok(suite)
}

struct SuitePlanner<'a> {
    limits: &'a Limits,
    most_runs: usize,
    /// Runs and cells counted so far.
    runs: usize,
    /// Index of the first part with each name.
    named_parts: HashMap<String, usize>,
    env: &'a dyn Env,
    variables: BTreeMap<String, String>,
    /// Whether workloads or variables are missing because they could not be read.
    is_partial: bool,
    /// Workloads with errors, whose parts are unknown.
    failed: Vec<FailedWorkload>,
    suite: Suite,
    all: Diagnostics,
}

impl SuitePlanner<'_> {
    fn make(&mut self, mut written: ParsedSuite) {
        for (key, (value, at)) in std::mem::take(&mut written.labels) {
            let mut found = Diagnostics::default();
            let value = substitute_text(&value, at, &self.variables, self.env, &mut found);
            self.report_unknown_variables(found);
            self.suite.labels.insert(key, value);
        }
        for mut node in std::mem::take(&mut written.targets) {
            if self.substitute(&mut node).is_empty() {
                self.target(&node);
            }
        }
        if written.file.per_node == Some(true) && written.file.pods.is_some() {
            let both = Diagnostic::error("the suite has both `pods` and `per_node`");
            self.all.push(both.help("leave out one of them"));
        }
        if written.workloads.is_empty() && !self.is_partial {
            self.all.push(
                Diagnostic::error(format!("{}: the suite has no workload", self.suite.name)).help(
                    "add [[workload]] with a name, and job, file, options, sweep, load or probe",
                ),
            );
        }
        let repetitions = written.file.repetitions.unwrap_or(1);
        let mut expected = Vec::new();
        for mut piece in std::mem::take(&mut written.workloads) {
            let unknown = self.substitute(&mut piece.node);
            let name = self.add_workload_with_variables(&piece, repetitions, &unknown);
            let nodes = piece.node.get("expect").map_or(&[][..], ValueNode::items);
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

    fn target(&mut self, node: &ValueNode) {
        let Ok(entry) = read_json_value::<TargetEntry>(&node.json()) else {
            return;
        };
        let (name, labels) = match entry {
            TargetEntry::Name(name) => (name, BTreeMap::new()),
            TargetEntry::Labelled(target) => (target.path, target.labels),
        };
        if name.is_empty() {
            let empty = Diagnostic::error("a target has no path").at(node.span);
            self.all.push(empty);
        }
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key, value.text()))
            .collect();
        self.suite.targets.push(SuiteTarget { name, labels });
    }

    /// Adds a workload and returns its name. `is_shaped`: the schema check removed nothing from it.
    fn workload(
        &mut self,
        piece: &WorkloadNode,
        repetitions: u32,
        is_shaped: bool,
    ) -> Option<String> {
        let node = &piece.node;
        let workload: SuiteWorkload = read_json_value(&node.json()).ok()?;
        let name = workload.name.clone();
        if name.is_empty() && !is_shaped {
            return None;
        }
        if name.is_empty() {
            let missing = Diagnostic::error("a workload has no name").at(name_span(node));
            self.all.push(missing.help("add name = \"...\""));
            return None;
        }
        if self.suite.steps.iter().any(|step| step.workload == name) {
            let at = node.get("name").map_or(node.span, |node| node.span);
            let twice = Diagnostic::error(format!("two workloads are named `{name}`")).at(at);
            self.all
                .push(twice.help("give each workload a unique name"));
            return None;
        }
        let repetitions = workload.repetitions.unwrap_or(repetitions);
        let before = self.suite.parts.len();
        let steps = self.plan_steps(piece, &workload, is_shaped);
        let neighbour = self.neighbour(node, &workload);
        for (name, what, parts) in steps.into_iter().flatten() {
            let step = SuiteStep {
                workload: workload.name.clone(),
                name,
                what,
                repetitions,
                beside: None,
            };
            let beside = neighbour.as_ref().and_then(|with| step.beside(with));
            self.suite.steps.push(step);
            self.suite.steps.extend(beside);
            self.suite.parts.extend(parts);
        }
        self.report_duplicate_parts(node, before);
        Some(name)
    }

    /// Reports parts that share a name: a figure name could not tell them apart.
    fn report_duplicate_parts(&mut self, node: &ValueNode, before: usize) {
        let mut twice = None;
        for (index, part) in self.suite.parts.iter().enumerate().skip(before) {
            let first = *self.named_parts.entry(part.name.clone()).or_insert(index);
            if first != index {
                twice = twice.or(Some((first, part)));
            }
        }
        if let Some((first, part)) = twice {
            let error = Diagnostic::error(format!(
                "`{}` is a part of workload `{}` and of workload `{}`",
                part.name, self.suite.parts[first].workload, part.workload
            ));
            self.all
                .push(error.at(name_span(node)).help("rename one of them"));
        }
    }
}

/// The name or first member of a table: the span of the whole table may be long.
fn name_span(node: &ValueNode) -> Span {
    match node
        .get("name")
        .or(node.entries().first().map(|entry| &entry.node))
    {
        Some(first) => first.span,
        None => node.span,
    }
}
