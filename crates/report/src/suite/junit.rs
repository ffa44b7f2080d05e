//! Verdicts as a JUnit file, which all CI systems read.
//!
//! There is no single schema. The output satisfies the strictest in use, that of Apache Ant's JUnit
//! task (times, time stamp, host, `properties` first, `system-out` and `system-err` last, only the
//! outcome in a test case), so Jenkins accepts it too. GitLab shows a failure's text, not its
//! attribute, so a failure has both.

use super::xml_element::XmlElement;
use super::{cautions, evidence};
use iosonde_suite::{ExpectationVerdict, JudgedExpectation, StepResult, SuiteResult};

/// Sign between a figure and half its interval. The document is UTF-8.
const PLUS_MINUS: &str = "±";

/// Time and machine of the run.
pub struct JunitHeader {
    /// Start in UTC, as `2026-11-21T10:20:30`.
    pub timestamp: String,
    /// Name of the machine.
    pub hostname: String,
}

/// Returns a test suite per target and a test case per expectation. Missed is a failure, not
/// measured an error, undecided skipped. A failed step is an error, unless a verdict reports it.
pub fn junit(results: &[SuiteResult], ran: &JunitHeader) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for (id, result) in results.iter().enumerate() {
        text.push_str(&test_suite_start(id, result, ran));
        text.push_str("    <properties>\n");
        for (name, value) in &result.labels {
            let property = XmlElement::new("property")
                .attribute("name", name)
                .attribute("value", value);
            text.push_str(&format!("      {}\n", property.empty()));
        }
        text.push_str("    </properties>\n");
        result
            .judged
            .iter()
            .for_each(|judged| text.push_str(&test_case_element(result, judged)));
        broken(result).for_each(|step| text.push_str(&broken_case(result, step)));
        text.push_str(&format!(
            "    {}\n    <system-err/>\n  </testsuite>\n",
            XmlElement::new("system-out").with_text(&output(result))
        ));
    }
    text + "</testsuites>\n"
}

fn test_suite_start(id: usize, result: &SuiteResult, ran: &JunitHeader) -> String {
    let count = |verdict| {
        let judged = result.judged.iter();
        judged.filter(|judged| judged.verdict == verdict).count()
    };
    let elapsed_ns = result.steps.iter().map(|step| step.elapsed_ns).sum();
    let tests = result.judged.len() + broken(result).count();
    let errors = count(ExpectationVerdict::NotMeasured) + broken(result).count();
    let suite = XmlElement::new("testsuite")
        .attribute("id", &id.to_string())
        .attribute("package", &result.suite)
        .attribute("name", &format!("{} on {}", result.suite, result.target))
        .attribute("timestamp", &ran.timestamp)
        .attribute("hostname", &ran.hostname)
        .attribute("tests", &tests.to_string())
        .attribute("failures", &count(ExpectationVerdict::Missed).to_string())
        .attribute("errors", &errors.to_string())
        .attribute("skipped", &count(ExpectationVerdict::Undecided).to_string())
        .attribute("time", &seconds(elapsed_ns));
    format!("  {}\n", suite.opening_tag())
}

/// Failed steps that no verdict reports.
fn broken(result: &SuiteResult) -> impl Iterator<Item = &StepResult> {
    let is_reported = |step: &StepResult, why: &str| {
        let mut judged = result.judged.iter();
        judged.any(|judged| {
            judged.workload == step.workload
                && judged.verdict == ExpectationVerdict::NotMeasured
                && judged.failure.as_deref() == Some(why)
        })
    };
    let steps = result.steps.iter();
    steps.filter(move |step| {
        let failure = step.failure.as_deref();
        failure.is_some_and(|why| !is_reported(step, why))
    })
}

fn broken_case(result: &SuiteResult, step: &StepResult) -> String {
    let why = step.failure.as_deref().unwrap_or_default();
    let error = XmlElement::new("error")
        .attribute("message", why)
        .attribute("type", "failed");
    let case = test_case(result, &step.workload, &step.name, step.elapsed_ns);
    format!("    {}\n", case.with_xml(&error.with_text(why)))
}

fn test_case_element(result: &SuiteResult, judged: &JudgedExpectation) -> String {
    let of_it = result
        .steps
        .iter()
        .filter(|step| step.workload == judged.workload);
    let elapsed_ns = of_it.map(|step| step.elapsed_ns).sum();
    let name = format!("{}: {}", judged.figure, judged.expectation);
    let case = test_case(result, &judged.workload, &name, elapsed_ns);
    let found = evidence(judged, PLUS_MINUS);
    let element = |name| XmlElement::new(name).attribute("message", &found);
    let kind = judged.verdict.words();
    let outcome = match judged.verdict {
        ExpectationVerdict::Met => return format!("    {}\n", case.empty()),
        ExpectationVerdict::Missed => element("failure").attribute("type", kind),
        ExpectationVerdict::NotMeasured => element("error").attribute("type", kind),
        ExpectationVerdict::Undecided => element("skipped"),
    };
    let outcome = outcome.with_text(&found);
    format!("    {}\n", case.with_xml(&outcome))
}

fn test_case(result: &SuiteResult, workload: &str, name: &str, elapsed_ns: u64) -> XmlElement {
    XmlElement::new("testcase")
        .attribute("classname", &format!("{}.{workload}", result.suite))
        .attribute("name", name)
        .attribute("time", &seconds(elapsed_ns))
}

/// Limits of the verdicts and the evidence of all verdicts. A test case that passes has no other
/// place for it.
fn output(result: &SuiteResult) -> String {
    let evidence = result.judged.iter().map(|judged| {
        format!(
            "{}: {}: {}",
            judged.verdict.words(),
            judged.figure,
            evidence(judged, PLUS_MINUS)
        )
    });
    let lines = cautions(result).into_iter().chain(evidence);
    lines.collect::<Vec<_>>().join("\n")
}

fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}
