//! Reports of simulated runs, whose rates are replaced.

use super::*;
use crate::probe::simulated::probed;
use iosonde_limits::Limits;
use iosonde_result::run::{IoFailure, Verdict, VerdictKind};
use iosonde_study::probe::{ProbeBudget, ProbePhase};

/// Runs of one device with these rates of random reads. The third has a cause.
fn target(name: &str, rates: &[f64]) -> RepeatedTarget {
    let mut target = RepeatedTarget::default();
    for (index, rate) in rates.iter().enumerate() {
        let mut result = probed("nvme", ProbeBudget::QUICK);
        result.target = name.to_owned();
        let is_it = |phase: ProbePhase| phase == ProbePhase::RandomRead;
        for figure in result.figures.iter_mut().filter(|each| is_it(each.phase)) {
            figure.iops.mean = *rate;
            figure.iops.error = Some(1000.0);
        }
        for run in result.runs.iter_mut().filter(|each| is_it(each.phase)) {
            run.result.verdicts.clear();
            run.result.verdicts.extend((index == 2).then(|| Verdict {
                kind: VerdictKind::Interference,
                evidence: "Other programs used the device.".to_owned(),
                cause: None,
            }));
        }
        target.runs.push(result);
        target.ids.push(Some(format!("id{}", index + 1)));
    }
    target
}

const SLOW_THIRD: [f64; 5] = [100e3, 101e3, 50e3, 99e3, 100e3];

fn report(targets: &[RepeatedTarget]) -> RepeatedReport<'_> {
    RepeatedReport {
        targets,
        planned: 5,
        store_options: "",
        brief: false,
        style: TextStyle::PLAIN,
    }
}

/// Words of the table format, without line breaks.
fn text(report: &RepeatedReport<'_>) -> String {
    let text = report.document(Format::Table).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn repeated_table_has_mean_extremes_and_outlier() {
    let targets = [target("sim:nvme", &SLOW_THIRD)];
    let text = text(&report(&targets));
    assert!(text.contains("mean of 5 runs"), "{text}");
    // Student's t over the logarithms of five runs.
    assert!(text.contains("4k random read 64 87k +-41k"), "{text}");
    assert!(text.contains(" 50.0k 101k "), "{text}");
    let outlier = "outliers 4k random read, depth 64: run 3 (id3) is 50 % below the median, \
                   Other programs used the device (beyond 3 scaled MAD from the median)";
    assert!(text.contains(outlier), "{text}");
    let kept = "results iosonde report id1 id2 id3 id4 id5 -o report.html";
    assert!(text.ends_with(kept), "{text}");
}

#[test]
fn report_without_outlier_does_not_mention_outliers() {
    let targets = [target("sim:nvme", &[100e3, 101e3, 99e3, 100e3])];
    let mut report = report(&targets);
    let whole = text(&report);
    assert!(!whole.contains("outlier"), "{whole}");
    assert!(whole.contains("mean of 4 runs of 5"), "{whole}");
    report.brief = true;
    let brief = text(&report);
    assert!(!brief.contains("iosonde report"), "{brief}");
    assert!(brief.len() < whole.len());
}

#[test]
fn comparison_leaves_out_run_with_failed_phase() {
    let mut targets = [target("sim:nvme", &SLOW_THIRD), target("sim:hdd", &[100e3])];
    let last = targets[0].runs[4].runs.last_mut().unwrap();
    last.result.workers[0].error = Some(IoFailure {
        errno: 5,
        operation: "read".to_owned(),
        file: None,
        offset: None,
        message: "EIO".to_owned(),
    });
    let report = report(&targets);
    let (_, _, comparison) = &report.comparisons()[0];
    let row = &comparison.rows[0];
    assert_eq!((row.a.runs, row.b.runs), (4, 1));
}

#[test]
fn next_command_names_stored_runs_only() {
    let mut targets = [target("sim:nvme", &SLOW_THIRD[..3])];
    targets[0].ids[1] = None;
    let found = text(&report(&targets));
    assert!(
        found.ends_with("results iosonde report id1 id3 -o report.html"),
        "{found}"
    );
    targets[0].ids = vec![None; 3];
    let found = text(&report(&targets));
    assert!(found.ends_with("result not stored"), "{found}");
}

#[test]
fn promise_of_repeated_probe_names_its_runs() {
    let mut targets = [target("sim:nvme", &SLOW_THIRD)];
    let product = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8".parse().unwrap();
    let promise = Limits::published().evaluate(&product).unwrap();
    for (index, run) in targets[0].runs.iter_mut().enumerate() {
        let mut check = PromiseCheck::from_probe(&promise, run);
        check.outcome = match index {
            1 => PromiseOutcome::Broken,
            _ => PromiseOutcome::Kept,
        };
        run.expected = vec![check];
    }
    let text = text(&report(&targets));
    let outcomes = ": kept in runs 1, 3, 4, 5; broken in run 2";
    assert!(text.contains(outcomes), "{text}");
}

#[test]
fn repeated_documents_have_all_runs_of_each_target() {
    let empty = RepeatedTarget::default();
    let targets = [
        target("sim:nvme", &SLOW_THIRD),
        target("sim:hdd", &[200e3, 201e3]),
        empty,
    ];
    let report = report(&targets);
    let json = report.document(Format::Json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let count = |member: &str| json[member].as_array().unwrap().len();
    assert_eq!(count("probes"), 7);
    assert_eq!((count("repetitions"), count("comparisons")), (2, 1));
    assert_eq!(json["repetitions"][1]["target"], "sim:hdd");
    assert_eq!(json["repetitions"][0]["ids"][2], "id3");
    assert_eq!(json["comparisons"][0]["rows"][0]["a"]["runs"], 5);
    let csv = report.document(Format::Csv).unwrap();
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().ends_with(",run"), "{csv}");
    let third = "sim:nvme,random_read,";
    let third = lines.filter(|line| line.starts_with(third) && line.ends_with(",3"));
    assert_eq!(third.count(), 1, "{csv}");
    let markdown = report.document(Format::Markdown).unwrap();
    assert!(
        markdown.contains("## sim:nvme: mean of 5 runs"),
        "{markdown}"
    );
    assert!(
        markdown.contains("\n- outliers: 4k random read"),
        "{markdown}"
    );
}

#[test]
fn unknown_interval_has_its_legend_in_text_and_markdown() {
    // One run has no interval between runs.
    let alone = [target("sim:nvme", &[100e3])];
    let several = [target("sim:nvme", &SLOW_THIRD)];
    for format in [Format::Table, Format::Markdown] {
        let alone = report(&alone).document(format).unwrap();
        assert!(alone.contains('~'), "{alone}");
        assert_eq!(alone.matches(UNKNOWN_LEGEND).count(), 1, "{alone}");
        let several = report(&several).document(format).unwrap();
        let is_marked = several.contains('~');
        assert_eq!(several.contains(UNKNOWN_LEGEND), is_marked, "{several}");
    }
}
