//! Verdicts as a JUnit file, which every CI system shows.
//!
//! There is no single schema. What is written satisfies the strictest in use, that of Apache Ant's JUnit task (times,
//! time stamp, host, `properties` first, `system-out` and `system-err` last, nothing but the outcome within a test case),
//! and so those of Jenkins too; GitLab shows the text of a failure, not its attribute, so that it has both.

use iosonde_job::escape_control_characters;
use iosonde_study::suite::{Judged, StepResult, SuiteResult, Verdict};

/// When and where the suites ran.
pub(crate) struct Ran {
    /// Start, as `2026-11-21T10:20:30`, UTC.
    pub(crate) timestamp: String,
    /// Name of the machine.
    pub(crate) hostname: String,
}

/// A test suite for each target, a test case for each figure that something is expected of. What is missed is a failure,
/// what could not be measured an error, and what cannot be told is skipped. A step that failed is an error of its own where no
/// verdict tells of it.
pub(crate) fn junit(results: &[SuiteResult], ran: &Ran) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for (id, result) in results.iter().enumerate() {
        text.push_str(&head(id, result, ran));
        text.push_str("    <properties>\n");
        for (name, value) in &result.labels {
            let (name, value) = (escaped(name), escaped(value));
            text.push_str(&format!(
                "      <property name=\"{name}\" value=\"{value}\"/>\n"
            ));
        }
        text.push_str("    </properties>\n");
        result
            .judged
            .iter()
            .for_each(|judged| text.push_str(&case(result, judged)));
        broken(result).for_each(|step| text.push_str(&broken_case(result, step)));
        text.push_str(&format!(
            "    <system-out>{}</system-out>\n    <system-err/>\n  </testsuite>\n",
            escaped(&evidence(result))
        ));
    }
    text + "</testsuites>\n"
}

fn head(id: usize, result: &SuiteResult, ran: &Ran) -> String {
    let count = |verdict| {
        let judged = result.judged.iter();
        judged.filter(|judged| judged.verdict == verdict).count()
    };
    let elapsed_ns = result.steps.iter().map(|step| step.elapsed_ns).sum();
    format!(
        "  <testsuite id=\"{id}\" package=\"{}\" name=\"{}\" timestamp=\"{}\" hostname=\"{}\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n",
        escaped(&result.suite),
        escaped(&format!("{} on {}", result.suite, result.target)),
        ran.timestamp,
        escaped(&ran.hostname),
        result.judged.len() + broken(result).count(),
        count(Verdict::Missed),
        count(Verdict::NotMeasured) + broken(result).count(),
        count(Verdict::Undecided),
        seconds(elapsed_ns),
    )
}

/// Steps that failed without a verdict that tells so.
fn broken(result: &SuiteResult) -> impl Iterator<Item = &StepResult> {
    let is_told = |step: &StepResult, why: &str| {
        let mut judged = result.judged.iter();
        judged.any(|judged| {
            judged.workload == step.workload
                && judged.verdict == Verdict::NotMeasured
                && judged.evidence.contains(why)
        })
    };
    let steps = result.steps.iter();
    steps.filter(move |step| {
        let failure = step.failure.as_deref();
        failure.is_some_and(|why| !is_told(step, why))
    })
}

fn broken_case(result: &SuiteResult, step: &StepResult) -> String {
    let class = escaped(&format!("{}.{}", result.suite, step.workload));
    let (name, time) = (escaped(&step.name), seconds(step.elapsed_ns));
    let why = escaped(step.failure.as_deref().unwrap_or_default());
    format!(
        "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\"><error message=\"{why}\" \
         type=\"failed\">{why}</error></testcase>\n"
    )
}

fn case(result: &SuiteResult, judged: &Judged) -> String {
    let of_it = result
        .steps
        .iter()
        .filter(|step| step.workload == judged.workload);
    let time = seconds(of_it.map(|step| step.elapsed_ns).sum());
    let class = escaped(&format!("{}.{}", result.suite, judged.workload));
    let name = escaped(&format!("{}: {}", judged.figure, judged.expectation));
    let case = format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\"");
    let told = |element: &str| {
        let evidence = escaped(&judged.evidence);
        let kind = escaped(judged.verdict.words());
        let of_skipped = element == "skipped";
        let kind = if of_skipped {
            String::new()
        } else {
            format!(" type=\"{kind}\"")
        };
        format!(
            "{case}><{element} message=\"{evidence}\"{kind}>{evidence}</{element}></testcase>\n"
        )
    };
    match judged.verdict {
        Verdict::Met => format!("{case}/>\n"),
        Verdict::Missed => told("failure"),
        Verdict::NotMeasured => told("error"),
        Verdict::Undecided => told("skipped"),
    }
}

/// All verdicts with their evidence: those that are met have no other place for it.
fn evidence(result: &SuiteResult) -> String {
    let lines = result.judged.iter().map(|judged| {
        format!(
            "{}: {}: {}",
            judged.verdict.words(),
            judged.figure,
            judged.evidence
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

/// Text as XML allows it: most control characters cannot be written at all, so that they are shown as escapes.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for sign in escape_control_characters(text).chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            sign => escaped.push(sign),
        }
    }
    escaped
}
