//! Expectations of a suite, held against what it will measure before anything is.

use super::Maker;
use crate::limits::{LimitsError, Query};
use crate::suite::expect::{Claim, Expectation, Wrong};
use crate::suite::spec::{Expected, Owed, PartSpec};
use crate::suite::text::{Node, Value};
use iosonde_job::diagnostic::{Diagnostic, nearest};

/// A size that most products come in.
const SOME_GIB: f64 = 1024.0;

impl Maker<'_> {
    pub(super) fn expectation(&mut self, node: &Node, workload: Option<String>) {
        let Value::Text(text) = &node.value else {
            return;
        };
        let expectation = match Expectation::parse(text) {
            Ok(expectation) => expectation,
            Err(wrong) => return self.tell_wrong(node, text, wrong),
        };
        let promise = match &expectation.claim {
            Claim::Promised { product, .. } => match self.promise(product) {
                Ok(owed) => Some(owed),
                Err((problem, help)) => {
                    let at = 0..text.len();
                    return self.tell_wrong(node, text, Wrong { at, problem, help });
                }
            },
            _ => None,
        };
        let expected = Expected {
            expectation,
            workload,
            promise,
        };
        if let Some(wrong) = self.unmeasured(&expected, text) {
            return self.tell_wrong(node, text, wrong);
        }
        self.suite.expectations.push(expected);
    }

    fn promise(&self, product: &str) -> Result<Owed, (String, String)> {
        let told = |error: LimitsError| (error.to_string(), error.remedy());
        let query: Query = product.parse().map_err(told)?;
        match self.limits.evaluate(&query) {
            Ok(promise) => Ok(Owed::Known(Box::new(promise))),
            Err(error) if error.lacks("size") => self.by_size(query).map_err(told),
            Err(error) => Err(told(error)),
        }
    }

    /// What is promised as soon as the size is known; what else is missing is told now.
    fn by_size(&self, query: Query) -> Result<Owed, LimitsError> {
        let sized = Query {
            size_gib: Some(SOME_GIB),
            ..query.clone()
        };
        match self.limits.evaluate(&sized) {
            Err(missing @ LimitsError::Missing { .. }) => Err(missing),
            _ => Ok(Owed::BySize(Box::new(query))),
        }
    }

    /// Why an expectation is about nothing that will be measured.
    fn unmeasured(&self, expected: &Expected, text: &str) -> Option<Wrong> {
        let (parts, subject) = expected.parts(&self.suite.parts);
        let missing = |part: &&PartSpec| subject.is_some_and(|s| !part.subjects.contains(&s));
        let is_measured = match subject {
            Some(_) => parts.iter().any(|part| !missing(part)),
            None => !parts.is_empty(),
        };
        let named = expected.expectation.figure.as_ref();
        let of = named.map_or("", |figure| figure.of.as_str());
        let may_be_missing = self.is_partial || self.failed.iter().any(|one| one.may_be(of));
        if is_measured || may_be_missing {
            return None;
        }
        let known = named.and_then(|figure| figure.pick(&self.suite.parts));
        let problem = match (named, &known) {
            (Some(_), None) => format!("nothing is called `{of}`"),
            (Some(figure), Some((found, _))) => {
                let name = found.first().map_or("nothing", |part| part.name.as_str());
                let what =
                    subject.map_or(String::new(), |subject| format!(" of {}", subject.name()));
                format!("`{name}` has no {}{what}", figure.asked.title())
            }
            (None, _) => "no run is measured that this could be about".to_owned(),
        };
        let names: Vec<&str> = self.names(expected.workload.as_deref());
        let help = match nearest(of, names.iter().copied()) {
            Some(meant) if known.is_none() => format!("did you mean `{meant}`?"),
            _ => format!("what is measured: {}", names.join(", ")),
        };
        let end = named.map_or(text.len(), |_| {
            text.find(['<', '>', ' ']).unwrap_or(text.len())
        });
        Some(Wrong {
            at: 0..end,
            problem,
            help,
        })
    }

    /// What can be named, in a workload or in all.
    fn names(&self, workload: Option<&str>) -> Vec<&str> {
        let own = |part: &&PartSpec| workload.is_none_or(|workload| workload == part.workload);
        let mut names: Vec<&str> = Vec::new();
        for part in self.suite.parts.iter().filter(own) {
            for name in [&part.name, &part.workload] {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// With its place in the text, where that stands in the file as it is.
    fn tell_wrong(&mut self, node: &Node, text: &str, wrong: Wrong) {
        let mut span = node.span;
        if let Some(offset) = self.all.sources.slice(span).find(text) {
            span.start += offset + wrong.at.start;
            span.end = span.start + wrong.at.len();
        }
        self.all
            .push(Diagnostic::error(wrong.problem).at(span).help(wrong.help));
    }
}
