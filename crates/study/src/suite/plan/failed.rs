//! Workloads with mistakes: what an expectation may mean by a name of theirs is not known.

use super::Maker;
use crate::suite::read::{self, Piece, beside};
use crate::suite::text::{Node, Value};
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics, Severity};
use iosonde_job::source::Span;
use iosonde_result::compare::Subject;

/// A workload with a mistake, which has been told.
pub(super) struct FailedWorkload {
    name: String,
    /// Texts that its parts may have their names and patterns from.
    texts: Vec<String>,
}

impl FailedWorkload {
    pub(super) fn of(piece: &Piece, env: &dyn Env) -> FailedWorkload {
        let node = &piece.node;
        let mut texts = Vec::new();
        for key in ["job", "options", "axes", "load"] {
            collect(node.get(key), &mut texts);
        }
        if let Some(Value::Text(file)) = node.get("file").map(|node| &node.value) {
            let path = beside(&format!("{}/x", piece.directory), file);
            let bytes = env.read_file(path.trim_start_matches("./"));
            texts.extend(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        }
        let mut name = Vec::new();
        collect(node.get("name"), &mut name);
        FailedWorkload {
            name: name.concat(),
            texts,
        }
    }

    /// Whether it, or a part of it, may be what an expectation calls by this name.
    pub(super) fn may_be(&self, of: &str) -> bool {
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

    /// The jobs of its job file.
    fn sections(&self) -> impl Iterator<Item = &str> {
        let lines = self.texts.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| line.trim().strip_prefix('[')?.split(']').next())
    }
}

impl Maker<'_> {
    /// Puts variables into a node. Returns the places of texts whose variables nobody has set.
    pub(super) fn substitute(&mut self, node: &mut Node) -> Vec<Span> {
        let mut found = Diagnostics::default();
        read::substitute(node, &self.variables, self.env, &mut found);
        let places = found.list.iter().filter_map(|one| one.span).collect();
        self.tell_unknown_variables(found);
        places
    }

    /// Where variables could not be read, one that is missing is no mistake of its own.
    pub(super) fn tell_unknown_variables(&mut self, found: Diagnostics) {
        if !self.is_partial {
            self.all.list.extend(found.list);
        }
    }

    /// Makes a workload of a piece, whose unknown variables have been reported. Returns its name, if it has one.
    /// A mistake that follows from a reported one is not reported.
    pub(super) fn workload_beside(
        &mut self,
        piece: &Piece,
        repetitions: u32,
        unknown: &[Span],
    ) -> Option<String> {
        let is_within = |one: &Diagnostic| {
            one.severity == Severity::Error
                && one
                    .span
                    .is_some_and(|place| read::holds(piece.extent, place))
        };
        let is_shaped = !self.all.list.iter().any(is_within);
        let (before, parts) = (self.all.list.len(), self.suite.parts.len());
        let follows = |one: &Diagnostic| {
            let is_of_unknown = |place: &Span| one.span.is_some_and(|span| overlap(span, *place));
            unknown.iter().any(is_of_unknown)
        };
        let name = self.workload(piece, repetitions, is_shaped);
        let told = self.all.list.split_off(before);
        let has_errors = told.iter().any(|one| one.severity == Severity::Error);
        self.all
            .list
            .extend(told.into_iter().filter(|one| !follows(one)));
        if has_errors || !is_shaped || !unknown.is_empty() {
            self.suite.parts.truncate(parts);
            self.failed.push(FailedWorkload::of(piece, self.env));
        }
        name
    }
}

/// Whether two places have something in common.
fn overlap(a: Span, b: Span) -> bool {
    a.source == b.source && a.start < b.end && b.start < a.end
}

/// All texts within a node.
fn collect(node: Option<&Node>, texts: &mut Vec<String>) {
    match node.map(|node| &node.value) {
        Some(Value::Text(text)) => texts.push(text.clone()),
        Some(Value::List(items)) => items.iter().for_each(|item| collect(Some(item), texts)),
        Some(Value::Table(entries)) => {
            let nodes = entries.iter().map(|entry| &entry.node);
            nodes.for_each(|node| collect(Some(node), texts));
        }
        _ => {}
    }
}
