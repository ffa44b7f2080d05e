//! Reports of suites: load studies of steps, cautions, and the line of the stored result.

use super::*;
use crate::html::HtmlReportBuilder;
use crate::load::tests::{at, measured};
use iosonde_study::load::{LoadOptions, Matrix};
use iosonde_suite::{FORMAT, JudgedExpectation};

/// A suite with a load study of three rates, the last of which exceeds the target's cap.
fn suite_of_rates() -> SuiteResult {
    let options = LoadOptions {
        rates: vec![500.0, 1000.0, 9000.0],
        ..at(0.0, &[])
    };
    let load = measured("net-iops-cap", &options);
    let step = StepResult {
        workload: "queries".to_owned(),
        name: "queries".to_owned(),
        repetition: 1,
        parts: Vec::new(),
        elapsed_ns: 0,
        found: StudyFigure::from_load("queries", &load),
        findings: Vec::new(),
        failure: None,
        interrupted: false,
        sweep: None,
        load: Some(Box::new(load)),
        command: None,
        in_memory: None,
        beside: None,
        pods: Vec::new(),
    };
    SuiteResult {
        format: FORMAT,
        suite: "db".to_owned(),
        about: None,
        target: "/data".to_owned(),
        labels: Default::default(),
        steps: vec![step],
        judged: Vec::new(),
        beside: Vec::new(),
        interrupted: false,
    }
}

#[test]
fn rates_of_a_load_study_are_in_all_reports_of_the_suite() {
    let result = suite_of_rates();
    // Without capacity and objectives, the study has no other figures.
    assert!(result.steps[0].found.is_empty());
    let text = table(&result, TextStyle::PLAIN);
    assert!(text.contains("\nqueries: knee not known from fewer than 3 "));
    for rate in [" 500 ", " 1.00k ", " 9.00k "] {
        let has_row = text.lines().any(|line| line.contains(rate));
        assert!(has_row, "{rate}: {text}");
    }
    assert!(text.contains("\n* fell behind: "), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let document = markdown(std::slice::from_ref(&result));
    assert!(document.contains("\nqueries: knee ") && document.contains("| 9.00k |"));
    let mut builder = HtmlReportBuilder::default();
    builder.suite("file", &result);
    let page = builder.into_page_report(None);
    assert_eq!(page.title, "Suite db on /data");
    assert_eq!(page.loads.len(), 1);
    assert_eq!(page.loads[0].points.len(), 3);
    assert_eq!(page.loads[0].step.as_deref(), Some("queries"));
    let headline = &page.loads[0].headline;
    assert!(
        headline.starts_with("queries: sim:net-iops-cap: "),
        "{headline}"
    );
}

#[test]
fn stored_suite_ends_with_the_next_command() {
    let text = table_with_id(&suite_of_rates(), (Some("3fa9c1"), ""), TextStyle::PLAIN);
    let last = text.lines().next_back().unwrap();
    assert!(last.starts_with("result "), "{text}");
    assert!(
        last.ends_with("3fa9c1: iosonde report 3fa9c1 -o report.html"),
        "{text}"
    );
}

#[test]
fn repetitions_of_a_load_study_have_names_of_their_own() {
    let mut result = suite_of_rates();
    let mut again = result.steps[0].clone();
    again.repetition = 2;
    result.steps.push(again);
    let text = table(&result, TextStyle::PLAIN);
    assert!(text.contains("\nqueries, repetition 2: knee "), "{text}");
    let mut builder = HtmlReportBuilder::default();
    builder.suite("file", &result);
    let page = builder.into_page_report(None);
    let steps: Vec<_> = page.loads.iter().flat_map(|load| &load.step).collect();
    assert_eq!(steps, ["queries", "queries, repetition 2"]);
}

#[test]
fn target_in_memory_is_reported_before_the_verdicts() {
    let mut result = suite_of_rates();
    result.judged.push(JudgedExpectation {
        expectation: "queries.rate >= 1".to_owned(),
        workload: "queries".to_owned(),
        figure: "queries rate".to_owned(),
        verdict: ExpectationVerdict::Met,
        evidence: "it is".to_owned(),
        failure: None,
    });
    let caution = "This is memory (tmpfs): its data does not survive a restart";
    assert!(!table(&result, TextStyle::PLAIN).contains("restart"));
    result.steps[0].in_memory = Some("memory (tmpfs)".to_owned());
    let texts = [
        table(&result, TextStyle::PLAIN),
        markdown(std::slice::from_ref(&result)),
    ];
    for text in texts {
        let (before, _) = text.split_once("queries rate: it is").unwrap();
        assert!(before.contains(caution), "{text}");
    }
}

#[test]
fn load_study_without_a_rate_is_left_out() {
    let mut result = suite_of_rates();
    let load = result.steps[0].load.as_mut().unwrap();
    load.points.clear();
    assert!(loads(&result).is_empty());
    let mut builder = HtmlReportBuilder::default();
    builder.suite("file", &result);
    assert!(builder.into_page_report(None).loads.is_empty());
}

#[test]
fn rates_of_a_step_explain_their_signs_only() {
    let mut result = suite_of_rates();
    let load = result.steps[0].load.as_mut().unwrap();
    load.matrix = Some(Matrix {
        reads_per_s: Vec::new(),
        writes_per_s: Vec::new(),
        cells: Vec::new(),
        points: load.points.split_off(2),
    });
    load.points[1].interrupted = true;
    load.interrupted = true;
    let text = table(&result, TextStyle::PLAIN);
    assert!(text.contains("\n/ interrupted"), "{text}");
    assert!(!text.contains("fell behind: the backlog"), "{text}");
    let document = markdown(&[suite_of_rates()]);
    assert!(
        document.contains("\n- fell behind: the backlog "),
        "{document}"
    );
}
