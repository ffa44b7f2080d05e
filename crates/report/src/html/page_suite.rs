//! Expectations of suites for the page.

use super::document::{PageExpectation, PageSuite};
use super::page_target::is_temporary;
use crate::suite::{cautions, evidence, summary, verdict_sign};
use crate::{listed, unique};
use iosonde_study::words;
use iosonde_suite::{ExpectationVerdict, JudgedExpectation, SuiteResult};

/// Most targets that a title names.
const NAMED_MAX: usize = 3;

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
        mark: verdict_sign(each.verdict),
        evidence: evidence(each, "±"),
    };
    judged.into_iter().map(convert).collect()
}

/// Converts the verdict on all expectations and steps of a suite.
pub(super) fn convert_verdict(result: &SuiteResult) -> PageSuite {
    // A step may have failed in several repetitions.
    let failed = result.steps.iter().filter(|step| step.failure.is_some());
    let failed = unique(failed.map(|step| step.name.as_str())).len();
    let verdicts = || result.judged.iter().map(|judged| judged.verdict);
    let is_missed = |verdict: ExpectationVerdict| match verdict {
        ExpectationVerdict::Missed => true,
        // An interrupted suite has not come to all figures.
        ExpectationVerdict::NotMeasured => !result.interrupted,
        ExpectationVerdict::Met | ExpectationVerdict::Undecided => false,
    };
    let is_all_met = || verdicts().all(|each| each == ExpectationVerdict::Met);
    let passed = if failed > 0 || verdicts().any(is_missed) {
        Some(false)
    } else if result.interrupted || result.judged.is_empty() || !is_all_met() {
        None
    } else {
        Some(true)
    };
    let counts = match result.judged.is_empty() {
        true => "no expectations".to_owned(),
        false => summary(result),
    };
    let start = match (passed, result.interrupted) {
        (Some(true), _) => "passed: ",
        (Some(false), true) => "failed, interrupted: ",
        (Some(false), false) => "failed: ",
        (None, true) => "interrupted: ",
        (None, false) => "",
    };
    let steps = match failed {
        0 => String::new(),
        count => format!("; {} failed", words::counted(count, "step")),
    };
    PageSuite {
        name: result.suite.clone(),
        target: target_name(result),
        verdict: format!("{start}{counts}{steps}"),
        passed,
        cautions: cautions(result),
    }
}

/// Returns the title of a report of suites, or `None` if there are none. It never names a
/// temporary file.
pub(super) fn title(suites: &[PageSuite]) -> Option<String> {
    suites.first()?;
    let names = unique(suites.iter().map(|suite| suite.name.clone()));
    let targets = suites.iter().map(|suite| suite.target.clone());
    let targets = unique(targets.filter(|target| !is_temporary(target)));
    let name = match names.as_slice() {
        [one] => format!("Suite {one}"),
        all => format!("Suites {}", listed(all)),
    };
    Some(match targets.as_slice() {
        [] => name,
        all if all.len() <= NAMED_MAX => format!("{name} on {}", listed(all)),
        all => format!("{name} on {}", words::counted(all.len(), "target")),
    })
}

/// Position of a mark in a list: `✗`, then `?`, then `✓`.
pub(super) fn mark_rank(mark: char) -> u8 {
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

/// Name of a suite's target: its labels if its path is that of a temporary file.
fn target_name(result: &SuiteResult) -> String {
    match is_temporary(&result.target) {
        true => place(result),
        false => result.target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use iosonde_suite::StepResult;

    fn judged(figure: &str, verdict: ExpectationVerdict) -> JudgedExpectation {
        JudgedExpectation {
            expectation: "iops >= 100".to_owned(),
            workload: "wal".to_owned(),
            figure: figure.to_owned(),
            verdict,
            evidence: "reached 90".to_owned(),
            measured: None,
            failure: None,
        }
    }

    fn suite(judged: Vec<JudgedExpectation>) -> SuiteResult {
        SuiteResult {
            judged,
            ..SuiteResult::from_steps("db", "/tmp/iosonde-1/file", Vec::new())
        }
    }

    #[test]
    fn missed_expectations_come_first_with_the_labels_of_the_target() {
        let mut result = suite(vec![
            judged("wal IOPS", ExpectationVerdict::Met),
            judged("wal p99", ExpectationVerdict::Missed),
        ]);
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

    #[test]
    fn suite_verdict_counts_expectations_by_outcome() {
        use ExpectationVerdict::{Met, Missed, NotMeasured, Undecided};
        let verdict = |outcomes: &[ExpectationVerdict]| {
            let all = outcomes.iter().map(|outcome| judged("wal", *outcome));
            let found = convert_verdict(&suite(all.collect()));
            (found.passed, found.verdict)
        };
        let expected = |passed, text: &str| (passed, text.to_owned());
        assert_eq!(verdict(&[Met, Met]), expected(Some(true), "passed: 2 met"));
        assert_eq!(
            verdict(&[Met, Missed]),
            expected(Some(false), "failed: 1 met, 1 missed")
        );
        assert_eq!(verdict(&[NotMeasured]).0, Some(false));
        assert_eq!(
            verdict(&[Met, Undecided]),
            expected(None, "1 met, 1 undecided")
        );
        assert_eq!(verdict(&[]), expected(None, "no expectations"));
    }

    #[test]
    fn interrupted_suite_passes_or_fails_by_its_misses_only() {
        use ExpectationVerdict::{Met, Missed, NotMeasured};
        let verdict = |outcomes: &[ExpectationVerdict]| {
            let all = outcomes.iter().map(|outcome| judged("wal", *outcome));
            let mut result = suite(all.collect());
            result.interrupted = true;
            let found = convert_verdict(&result);
            (found.passed, found.verdict)
        };
        let expected = |passed, text: &str| (passed, text.to_owned());
        assert_eq!(verdict(&[Met]), expected(None, "interrupted: 1 met"));
        assert_eq!(
            verdict(&[Met, NotMeasured]),
            expected(None, "interrupted: 1 met, 1 not measured")
        );
        assert_eq!(
            verdict(&[Met, Missed]),
            expected(Some(false), "failed, interrupted: 1 met, 1 missed")
        );
    }

    #[test]
    fn failed_repetitions_of_a_step_count_once() {
        let failed = |name: &str, repetition| StepResult {
            failure: Some("I/O error".to_owned()),
            ..StepResult::without_figures(name, name, repetition)
        };
        let mut result = suite(Vec::new());
        result.steps = vec![failed("wal", 1), failed("wal", 2), failed("log", 1)];
        let found = convert_verdict(&result);
        assert_eq!(found.verdict, "failed: no expectations; 2 steps failed");
    }

    #[test]
    fn title_of_a_suite_names_no_temporary_file() {
        let title = |result: &SuiteResult| {
            let mut builder = HtmlReportBuilder::default();
            builder.suite("file", result);
            builder.into_page_report(None).title
        };
        let mut result = suite(Vec::new());
        assert_eq!(title(&result), "Suite db");
        result.target = "/srv/.tmpAb3/volume".to_owned();
        assert_eq!(title(&result), "Suite db");
        result.labels.insert("disk".to_owned(), "new".to_owned());
        assert_eq!(title(&result), "Suite db on disk=new");
        result.labels.clear();
        result.target = "/srv/data".to_owned();
        assert_eq!(title(&result), "Suite db on /srv/data");
    }

    #[test]
    fn suites_on_several_targets_share_one_title() {
        let target = |target: &str, name: &str| PageSuite {
            name: name.to_owned(),
            target: target.to_owned(),
            verdict: String::new(),
            passed: None,
            cautions: Vec::new(),
        };
        let two = [target("/srv/a", "db"), target("/srv/b", "db")];
        assert_eq!(title(&two).unwrap(), "Suite db on /srv/a and /srv/b");
        let four = ["/a", "/b", "/c", "/d"].map(|name| target(name, "db"));
        assert_eq!(title(&four).unwrap(), "Suite db on 4 targets");
        let other = [target("/srv/a", "db"), target("/srv/a", "log")];
        assert_eq!(title(&other).unwrap(), "Suites db and log on /srv/a");
        assert_eq!(title(&[]), None);
    }
}
