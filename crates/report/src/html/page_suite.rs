//! Expectations of suites for the page.

use super::document::PageExpectation;
use iosonde_suite::{ExpectationVerdict, JudgedExpectation, SuiteResult};

/// Converts the verdicts on a suite's expectations, those that are not met first.
pub(super) fn convert_suite(result: &SuiteResult) -> Vec<PageExpectation> {
    let mut judged: Vec<&JudgedExpectation> = result.judged.iter().collect();
    judged.sort_by_key(|each| match each.verdict {
        ExpectationVerdict::Missed => 0,
        ExpectationVerdict::NotMeasured => 1,
        ExpectationVerdict::Undecided => 2,
        ExpectationVerdict::Met => 3,
    });
    let target = place(result);
    let convert = |each: &JudgedExpectation| PageExpectation {
        suite: result.suite.clone(),
        target: target.clone(),
        expectation: each.expectation.clone(),
        figure: each.figure.clone(),
        verdict: each.verdict.words(),
        mark: mark(each.verdict),
        evidence: each.evidence.clone(),
    };
    judged.into_iter().map(convert).collect()
}

fn mark(verdict: ExpectationVerdict) -> char {
    match verdict {
        ExpectationVerdict::Met => '✓',
        ExpectationVerdict::Undecided => '?',
        ExpectationVerdict::Missed | ExpectationVerdict::NotMeasured => '✗',
    }
}

/// Position of a mark in a list: `✗`, then `?`, then `✓`.
pub(super) fn rank(mark: char) -> u8 {
    match mark {
        '✗' => 0,
        '?' => 1,
        _ => 2,
    }
}

/// Name of a suite's target: its labels, which name a temporary file better than its path.
pub(super) fn place(result: &SuiteResult) -> String {
    if result.labels.is_empty() {
        return result.target.clone();
    }
    let labels = result.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use iosonde_suite::FORMAT;

    fn judged(figure: &str, verdict: ExpectationVerdict) -> JudgedExpectation {
        JudgedExpectation {
            expectation: "iops >= 100".to_owned(),
            workload: "wal".to_owned(),
            figure: figure.to_owned(),
            verdict,
            evidence: "reached 90".to_owned(),
            failure: None,
        }
    }

    #[test]
    fn missed_expectations_come_first_with_the_labels_of_the_target() {
        let mut result = SuiteResult {
            format: FORMAT,
            suite: "db".to_owned(),
            about: None,
            target: "/tmp/iosonde-1/file".to_owned(),
            labels: Default::default(),
            steps: Vec::new(),
            judged: vec![
                judged("wal IOPS", ExpectationVerdict::Met),
                judged("wal p99", ExpectationVerdict::Missed),
            ],
            beside: Vec::new(),
            interrupted: false,
        };
        assert_eq!(place(&result), "/tmp/iosonde-1/file");
        result.labels.insert("disk".to_owned(), "new".to_owned());
        let found = convert_suite(&result);
        let lines: Vec<(&str, &str, char)> = found
            .iter()
            .map(|each| (each.target.as_str(), each.figure.as_str(), each.mark))
            .collect();
        assert_eq!(
            lines,
            [("disk=new", "wal p99", '✗'), ("disk=new", "wal IOPS", '✓')]
        );
        // A second suite must not hide its missed expectations below the met ones of the first.
        let mut builder = HtmlReportBuilder::default();
        for _ in 0..2 {
            builder.suite("suite", &result);
        }
        let all = builder.into_page_report(None).expectations;
        let marks: String = all.iter().map(|each| each.mark).collect();
        assert_eq!(marks, "✗✗✓✓");
    }
}
