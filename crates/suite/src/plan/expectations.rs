//! Checks the expectations of a suite against its planned figures before anything runs.

use super::SuitePlanner;
use crate::expect::{Claim, Expectation, ExpectationError};
use crate::spec::{PartSpec, PromiseSource, SuiteExpectation};
use crate::text::{NodeValue, ValueNode};
use iosonde_job::diagnostic::{Diagnostic, nearest};
use iosonde_limits::{LimitsError, Query};

/// A size that most products offer.
const SOME_GIB: f64 = 1024.0;

impl SuitePlanner<'_> {
    pub(super) fn expectation(&mut self, node: &ValueNode, workload: Option<String>) {
        let NodeValue::Text(text) = &node.value else {
            return;
        };
        let expectation = match Expectation::parse(text) {
            Ok(expectation) => expectation,
            Err(wrong) => return self.report_wrong_expectation(node, text, wrong),
        };
        let promise = match &expectation.claim {
            Claim::Promised { product, .. } => match self.promise(&expectation, product) {
                Ok(owed) => Some(owed),
                Err((problem, help)) => {
                    let at = 0..text.len();
                    return self.report_wrong_expectation(
                        node,
                        text,
                        ExpectationError { at, problem, help },
                    );
                }
            },
            _ => None,
        };
        let expected = SuiteExpectation {
            expectation,
            workload,
            promise,
        };
        if let Some(wrong) = self.unmeasured(&expected, text) {
            return self.report_wrong_expectation(node, text, wrong);
        }
        self.suite.expectations.push(expected);
    }

    /// The promise of a product, or the error and its remedy.
    fn promise(
        &self,
        expectation: &Expectation,
        product: &str,
    ) -> Result<PromiseSource, (String, String)> {
        let parsed = product.parse::<Query>();
        let query = parsed.map_err(|error| (error.to_string(), error.remedy()))?;
        let as_problem = |query: &Query, error: LimitsError| {
            let remedy = expectation.remedy(self.limits, query, &error);
            (error.to_string(), remedy)
        };
        match self.limits.evaluate(&query) {
            Ok(promise) => Ok(PromiseSource::Known(Box::new(promise))),
            Err(error) if error.lacks("size") => {
                let sized = Query {
                    size_gib: Some(SOME_GIB),
                    ..query.clone()
                };
                // The size of the volume is known later. Any other missing value is an error now.
                match self.limits.evaluate(&sized) {
                    Err(missing @ LimitsError::Missing { .. }) => Err(as_problem(&sized, missing)),
                    _ => Ok(PromiseSource::BySize(Box::new(query))),
                }
            }
            Err(error) => Err(as_problem(&query, error)),
        }
    }

    /// The error for an expectation that selects no planned figure.
    fn unmeasured(&self, expected: &SuiteExpectation, text: &str) -> Option<ExpectationError> {
        let (parts, subject) = expected.parts(&self.suite.parts);
        let missing = |part: &&PartSpec| subject.is_some_and(|s| !part.subjects.contains(&s));
        let is_measured = match subject {
            Some(_) => parts.iter().any(|part| !missing(part)),
            None => !parts.is_empty(),
        };
        let named = expected.expectation.figure.as_ref();
        let of = named.map_or("", |figure| figure.of.as_str());
        let may_be_missing = self.is_partial || self.failed.iter().any(|one| one.may_mean(of));
        if is_measured || may_be_missing {
            return None;
        }
        let known = named.and_then(|figure| figure.pick(&self.suite.parts));
        let problem = match (named, &known) {
            (Some(_), None) => format!("no workload or figure is named `{of}`"),
            (Some(figure), Some((found, _))) => {
                let name = found.first().map_or("nothing", |part| part.name.as_str());
                let what =
                    subject.map_or(String::new(), |subject| format!(" of {}", subject.name()));
                format!("`{name}` has no {}{what}", figure.asked.title())
            }
            (None, _) => "no run has this figure".to_owned(),
        };
        let names: Vec<&str> = self.names(expected.workload.as_deref());
        let help = match nearest(of, names.iter().copied()) {
            Some(meant) if known.is_none() => format!("did you mean `{meant}`?"),
            _ => format!("measured: {}", names.join(", ")),
        };
        let end = named.map_or(text.len(), |_| {
            text.find(['<', '>', ' ']).unwrap_or(text.len())
        });
        Some(ExpectationError {
            at: 0..end,
            problem,
            help,
        })
    }

    /// Names that expectations may use, of one workload or of all.
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

    /// Reports an error with its position in the text, if the file has the text unchanged.
    fn report_wrong_expectation(&mut self, node: &ValueNode, text: &str, wrong: ExpectationError) {
        let mut span = node.span;
        if let Some(offset) = self.all.sources.slice(span).find(text) {
            span.start += offset + wrong.at.start;
            span.end = span.start + wrong.at.len();
        }
        self.all
            .push(Diagnostic::error(wrong.problem).at(span).help(wrong.help));
    }
}
