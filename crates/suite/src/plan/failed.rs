//! Workloads with errors. An expectation may mean one of their parts, which are unknown.

use super::SuitePlanner;
use crate::read::{self, WorkloadNode};
use crate::text::{NodeValue, ValueNode};
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, DiagnosticSeverity, Diagnostics};
use iosonde_job::source::Span;
use iosonde_result::compare::Subject;

/// A workload with an error that has been reported.
pub(super) struct FailedWorkload {
    name: String,
    /// Texts that may contain names and patterns of its parts.
    texts: Vec<String>,
}

impl FailedWorkload {
    pub(super) fn from_workload(piece: &WorkloadNode, env: &dyn Env) -> FailedWorkload {
        let node = &piece.node;
        let mut texts = Vec::new();
        for key in ["job", "options", "axes", "load"] {
            collect(node.get(key), &mut texts);
        }
        if let Some(NodeValue::Text(file)) = node.get("file").map(|node| &node.value) {
            let bytes = env.read_file(&piece.resolve_path(file));
            texts.extend(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        }
        let mut name = Vec::new();
        collect(node.get("name"), &mut name);
        FailedWorkload {
            name: name.concat(),
            texts,
        }
    }

    /// Whether an expectation may mean this workload or a part of it by a name.
    pub(super) fn may_mean(&self, of: &str) -> bool {
        let (of, is_subject) = match of.rsplit_once('.') {
            Some((of, last)) if last.parse::<Subject>().is_ok() => (of, false),
            _ => (of, of.parse::<Subject>().is_ok()),
        };
        let begins = |name: &str| of == name || of.starts_with(&format!("{name}-"));
        of.is_empty()
            || is_subject
            || self.name.is_empty()
            || begins(&self.name)
            || self.texts.iter().any(|text| text.contains(of))
            || self.sections().any(begins)
    }

    /// The section names of its job file.
    fn sections(&self) -> impl Iterator<Item = &str> {
        let lines = self.texts.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| line.trim().strip_prefix('[')?.split(']').next())
    }
}

impl SuitePlanner<'_> {
    /// Substitutes variables in a node. Returns the spans of texts with unknown variables.
    pub(super) fn substitute(&mut self, node: &mut ValueNode) -> Vec<Span> {
        let mut found = Diagnostics::default();
        read::substitute(node, &self.variables, self.env, &mut found);
        let places = found.list.iter().filter_map(|one| one.span).collect();
        self.report_unknown_variables(found);
        places
    }

    /// Reports unknown variables, unless some variables could not be read.
    pub(super) fn report_unknown_variables(&mut self, found: Diagnostics) {
        if !self.is_partial {
            self.all.list.extend(found.list);
        }
    }

    /// Adds a workload whose unknown variables have been reported, and returns its name. Errors
    /// that follow from reported ones are not reported.
    pub(super) fn add_workload_with_variables(
        &mut self,
        piece: &WorkloadNode,
        repetitions: u32,
        unknown: &[Span],
    ) -> Option<String> {
        let is_within = |one: &Diagnostic| {
            one.severity == DiagnosticSeverity::Error
                && one
                    .span
                    .is_some_and(|place| read::contains_span(piece.extent, place))
        };
        let is_shaped = !self.all.list.iter().any(is_within);
        let (before, parts) = (self.all.list.len(), self.suite.parts.len());
        let follows = |one: &Diagnostic| {
            let is_of_unknown = |place: &Span| one.span.is_some_and(|span| overlap(span, *place));
            unknown.iter().any(is_of_unknown)
        };
        let name = self.workload(piece, repetitions, is_shaped);
        let reported = self.all.list.split_off(before);
        let has_errors = reported
            .iter()
            .any(|one| one.severity == DiagnosticSeverity::Error);
        self.all
            .list
            .extend(reported.into_iter().filter(|one| !follows(one)));
        if has_errors || !is_shaped || !unknown.is_empty() {
            self.suite.parts.truncate(parts);
            self.failed
                .push(FailedWorkload::from_workload(piece, self.env));
        }
        name
    }
}

/// Whether two spans overlap.
fn overlap(a: Span, b: Span) -> bool {
    a.source == b.source && a.start < b.end && b.start < a.end
}

/// Collects all texts within a node.
fn collect(node: Option<&ValueNode>, texts: &mut Vec<String>) {
    match node.map(|node| &node.value) {
        Some(NodeValue::Text(text)) => texts.push(text.clone()),
        Some(NodeValue::List(items)) => items.iter().for_each(|item| collect(Some(item), texts)),
        Some(NodeValue::Table(entries)) => {
            let nodes = entries.iter().map(|entry| &entry.node);
            nodes.for_each(|node| collect(Some(node), texts));
        }
        _ => {}
    }
}
