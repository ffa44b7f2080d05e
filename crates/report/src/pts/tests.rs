use super::*;
use iosonde_engine::runner::LocalRunner;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::PodFailure;
use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use iosonde_study::pts::{PtsOptions, PtsPreset, Purge, measure_pts};

/// A slow device, so that tests simulate few I/Os. While fresh, it writes four times as fast.
const FLASH: &str = "seed=1,capacity=64m,read_us=20ms,write_us=10ms,\
    write_dist=lognormal:0.1,parallel=4,link_bw=40m,fresh=4";

/// After `fresh_bytes` of writes, about two thirds of that gain are lost.
fn tested(test: PtsTest, fresh_bytes: &str) -> PtsResult {
    let target = StudyTarget {
        name: "sim:flash".to_owned(),
        path: "sim".to_owned(),
        kind: StudyTargetKind::Simulated {
            options: format!("{FLASH},fresh_bytes={fresh_bytes}"),
        },
    };
    let options = PtsOptions {
        test,
        preset: PtsPreset::Enterprise,
        time_scale: 0.01,
        most_rounds: 8,
        iodepth: 4,
        numjobs: 1,
        purge: Purge::Discard,
        size_bytes: Some(64 << 20),
        seed: 1,
    };
    let mut session = LocalRunner::default().open();
    measure_pts(&mut session, &target, &options, &mut ()).unwrap()
}

#[test]
fn pts_report_of_each_test_is_deterministic() {
    for (test, fresh_bytes) in [
        (PtsTest::Iops, "100m"),
        (PtsTest::Throughput, "20m"),
        (PtsTest::Latency, "1m"),
        (PtsTest::WriteSaturation, "1m"),
    ] {
        let text = table(&tested(test, fresh_bytes));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(test.name(), text);
    }
}

#[test]
fn pts_report_fits_a_narrow_terminal_with_all_figures() {
    for test in [PtsTest::Iops, PtsTest::Throughput] {
        let mut result = tested(test, "20m");
        result.target = format!("/{}", "directory/".repeat(9));
        // The widest figures.
        for series in &mut result.series {
            let cells = series.rounds.iter_mut().flat_map(|round| &mut round.cells);
            for cell in cells.flatten() {
                cell.iops = 999_000.0;
                cell.bytes_per_s = 40.5 * (1u64 << 30) as f64;
            }
        }
        let figures = |text: &str| {
            let words = text.split_whitespace();
            words.filter(|word| ["999k", "40.5"].contains(word)).count()
        };
        crate::text_table::set_columns(80);
        let wide = table(&result);
        assert!(figures(&wide) > 5, "{wide}");
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = table(&result);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert_eq!(figures(&text), figures(&wide), "{text}");
        }
        crate::text_table::set_columns(80);
    }
}

#[test]
fn pts_report_without_steady_state_names_it() {
    insta::assert_snapshot!("not_steady", table(&tested(PtsTest::Iops, "1g")));
}

#[test]
fn pts_report_ended_by_error_names_the_error() {
    let mut result = tested(PtsTest::Throughput, "20m");
    result.series[1].rounds.clear();
    result.series[1].steady = None;
    result.error = Some(
        RunError::Lost(Box::new(PodFailure::from_texts(
            "the pod",
            "its node died",
            "measure again",
        )))
        .into(),
    );
    for text in [table(&result), markdown(&result)] {
        let (_, last) = text
            .split_once("Ended before the first round was complete.")
            .unwrap();
        let reported = last.trim_start().lines().next().unwrap();
        assert!(
            reported.starts_with("ended by an error: the pod was lost: its node died"),
            "{text}"
        );
    }
}

#[test]
fn pts_documents_hold_every_round() {
    let result = tested(PtsTest::Throughput, "20m");
    insta::assert_snapshot!("throughput_csv", pts_csv(&result));
    insta::assert_snapshot!("throughput_markdown", markdown(&result));
    let document: serde_json::Value = serde_json::from_str(&pts_json(&result).unwrap()).unwrap();
    assert_eq!(document["kind"], "pts");
    let own: PtsResult = serde_json::from_value(document["pts"].clone()).unwrap();
    assert_eq!(own, result);
}
