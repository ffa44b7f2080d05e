//! Reports of suites: load studies of steps, cautions, and the line of the stored result.

use super::*;
use crate::html::HtmlReportBuilder;
use crate::load::tests::{at, measured};
use crate::sweep;
use iosonde_result::compare::Subject;
use iosonde_study::load::{LoadOptions, Matrix};
use iosonde_suite::{BesideFigure, JudgedExpectation};

/// A suite with a load study of three rates, the last of which exceeds the target's cap.
fn suite_of_rates() -> SuiteResult {
    let options = LoadOptions {
        rates: vec![500.0, 1000.0, 9000.0],
        ..at(0.0, &[])
    };
    let load = measured("net-iops-cap", &options);
    let step = StepResult {
        found: StudyFigure::from_load("queries", &load),
        load: Some(Box::new(load)),
        ..StepResult::without_figures("queries", "queries", 1)
    };
    SuiteResult::from_steps("db", "/data", vec![step])
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

/// A suite with expectations, studies, a neighbour and the longest texts.
fn suite_with_long_texts() -> SuiteResult {
    let mut result = suite_of_rates();
    result.target = format!("/{}", "directory/".repeat(9));
    result.interrupted = true;
    for verdict in [ExpectationVerdict::Missed, ExpectationVerdict::NotMeasured] {
        result.judged.push(JudgedExpectation {
            expectation: "queries.p99 <= 10ms".to_owned(),
            workload: "queries".to_owned(),
            figure: "queries, repetition 2 sync p99 latency".to_owned(),
            verdict,
            evidence: "12.3 ms (11.9 ms to 12.8 ms) is above 10 ms in all repetitions".to_owned(),
            measured: None,
            failure: None,
        });
    }
    result.steps[0].beside = Some("--rw=randwrite --bs=64k --iodepth=32".to_owned());
    result.steps[0].found.push(StudyFigure {
        part: "queries".to_owned(),
        rw: "randread".to_owned(),
        kind: StudyFigureKind::Rate,
        value: 999_000.0,
        interval: Some((990_000.0, 999_500.0)),
    });
    result.beside.push(BesideFigure {
        part: "queries".to_owned(),
        subject: Subject::Write,
        measure: Measure::BytesPerS,
        alone: 998.0 * (1u64 << 30) as f64,
        alone_interval: None,
        beside: 99.5 * (1u64 << 30) as f64,
        beside_interval: None,
        ratio: 0.1,
        interval: None,
    });
    result
}

#[test]
fn suite_fits_a_narrow_terminal_with_its_verdicts() {
    let result = suite_with_long_texts();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for columns in [40, 60] {
        crate::text_table::set_columns(columns);
        let text = table(&result, TextStyle::PLAIN);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{text}");
        for part in [
            "not measured queries, ",
            "missed queries, ",
            "999k",
            "~0.10 times",
        ] {
            assert!(words(&text).contains(part), "{part}: {text}");
        }
        // The title is wrapped at 40 columns.
        let title: &[&str] = match columns {
            40 => &["rate that keeps", "objective"],
            _ => &["rate that keeps the objective"],
        };
        for part in title {
            assert!(words(&text).contains(part), "{part}: {text}");
        }
    }
    crate::text_table::set_columns(80);
}

#[test]
fn verdicts_have_signs_and_the_colours_of_their_meaning() {
    let mut result = suite_with_long_texts();
    let mut others = result.judged.clone();
    others[0].verdict = ExpectationVerdict::Met;
    others[1].verdict = ExpectationVerdict::Undecided;
    result.judged.extend(others);
    let [plain, colored] =
        [false, true].map(|color| table(&result, TextStyle::for_locale("C.UTF-8", color)));
    for (color, words) in [
        (31, "✗ missed"),
        (31, "✗ not measured"),
        (32, "✓ met"),
        (33, "? undecided"),
    ] {
        assert!(plain.contains(&format!("\n{words} ")), "{words}: {plain}");
        let painted = format!("\n\x1b[{color}m{words}\x1b[0m ");
        assert!(colored.contains(&painted), "{words}: {colored}");
    }
    let ascii = table(&result, TextStyle::PLAIN);
    assert!(ascii.contains("\nmissed "), "{ascii}");
}

#[test]
fn suite_verdicts_precede_figures_and_notes_follow_once() {
    let mut result = suite_with_long_texts();
    let note = "the device was throttled";
    result.steps[0].findings.push(note.to_owned());
    let again = StepResult {
        repetition: 2,
        ..result.steps[0].clone()
    };
    result.steps.push(again);
    let is_ordered = |text: &str, starts: &[&str]| {
        let places = starts.iter().map(|start| text.find(start));
        let places: Vec<usize> = places.map(|place| place.expect(text)).collect();
        assert!(places.is_sorted(), "{starts:?} at {places:?}: {text}");
    };
    let text = table(&result, TextStyle::PLAIN);
    let figures = "rate that keeps the objective";
    is_ordered(
        &text,
        &["\nnot measured ", figures, "\nqueries: knee ", note],
    );
    assert_eq!(text.matches(note).count(), 1, "{text}");
    let document = markdown(&[result]);
    is_ordered(
        &document,
        &["| not measured |", figures, "\nqueries: knee "],
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
fn verdicts_are_counted_below_long_output() {
    let mut result = suite_with_long_texts();
    result.judged.push(JudgedExpectation {
        verdict: ExpectationVerdict::Met,
        ..result.judged[0].clone()
    });
    let text = table_with_id(&result, (Some("3fa9c1"), ""), TextStyle::PLAIN);
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    let counts = "verdicts   1 met, 1 missed, 1 not measured";
    assert_eq!(last[1..], [counts, ""], "{text}");
    let unstored = table_with_verdicts(&result, TextStyle::PLAIN);
    assert!(text.starts_with(&unstored) && unstored.ends_with(&format!("\n\n{counts}\n")));
    let rates = suite_of_rates();
    assert_eq!(
        table_with_verdicts(&rates, TextStyle::PLAIN),
        table(&rates, TextStyle::PLAIN)
    );
    assert_eq!(verdicts_of_targets(std::slice::from_ref(&result)), "");
    let all = verdicts_of_targets(&[result.clone(), result]);
    let counts = "\nverdicts   2 targets: 2 met, 2 missed, 2 not measured\n";
    assert_eq!(all, counts);
    assert_eq!(
        last_lines(&suite_of_rates(), None, ""),
        "result     not stored\n"
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
        measured: None,
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
fn target_in_memory_is_reported_on_page_and_in_junit() {
    let pages = |result: &SuiteResult| {
        let mut builder = HtmlReportBuilder::default();
        builder.suite("file", result);
        let ran = JunitHeader {
            timestamp: "2026-11-21T10:20:30".to_owned(),
            hostname: "host".to_owned(),
        };
        let page = builder.html(None).unwrap();
        (page, junit(std::slice::from_ref(result), &ran))
    };
    let caution = "This is memory (tmpfs): its data does not survive a restart";
    let mut result = suite_of_rates();
    let (page, cases) = pages(&result);
    assert!(!page.contains(caution) && !cases.contains(caution));
    let sweep = sweep::tests::measured("nfs", &[("iodepth", "1,2")], &sweep::tests::options());
    result.steps.push(StepResult {
        sweep: Some(Box::new(sweep)),
        ..StepResult::without_figures("reads", "reads", 1)
    });
    // The runs of a step report the memory to the step and to its study.
    let device = Some("memory (tmpfs)".to_owned());
    for step in &mut result.steps {
        step.in_memory.clone_from(&device);
        if let Some(load) = &mut step.load {
            load.in_memory.clone_from(&device);
        }
        for curve in step.sweep.iter_mut().flat_map(|sweep| &mut sweep.curves) {
            curve.in_memory.clone_from(&device);
        }
    }
    let (page, cases) = pages(&result);
    // In the data of the page and in its text for browsers without scripts.
    assert_eq!(page.matches(caution).count(), 2);
    assert!(cases.contains(caution), "{cases}");
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
