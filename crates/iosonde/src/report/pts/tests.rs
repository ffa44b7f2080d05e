use super::*;
use iosonde_engine::runner::LocalRunner;
use iosonde_result::session::RunError;
use iosonde_study::probe::{ProbeTarget, TargetKind};
use iosonde_study::pts::{Preset, PtsOptions, Purge, pts};

/// Slow, so that few I/Os are to be counted; writes four times as fast while it is fresh.
const FLASH: &str = "seed=1,capacity=64m,read_us=20ms,write_us=10ms,write_dist=lognormal:0.1,parallel=4,link_bw=40m,fresh=4";

/// Of so many bytes written two thirds of the gain are gone.
fn tested(test: PtsTest, fresh_bytes: &str) -> PtsResult {
    let target = ProbeTarget {
        name: "sim:flash".to_owned(),
        path: "sim".to_owned(),
        kind: TargetKind::Simulated {
            options: format!("{FLASH},fresh_bytes={fresh_bytes}"),
        },
    };
    let options = PtsOptions {
        test,
        preset: Preset::Enterprise,
        time_scale: 0.01,
        most_rounds: 8,
        iodepth: 4,
        numjobs: 1,
        purge: Purge::Discard,
        size_bytes: Some(64 << 20),
        seed: 1,
    };
    let mut session = LocalRunner::default().open();
    pts(&mut session, &target, &options, &mut ()).unwrap()
}

#[test]
fn every_test_prints_the_same_every_time() {
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
fn what_did_not_come_to_rest_is_told_so() {
    insta::assert_snapshot!("not_steady", table(&tested(PtsTest::Iops, "1g")));
}

#[test]
fn what_an_error_has_ended_says_so() {
    let mut result = tested(PtsTest::Throughput, "20m");
    result.series[1].rounds.clear();
    result.series[1].steady = None;
    result.error = Some(
        RunError::Lost {
            what: "the pod".to_owned(),
            cause: "its node died".to_owned(),
            remedy: "measure again".to_owned(),
        }
        .into(),
    );
    for text in [table(&result), markdown(&result)] {
        let (_, last) = text
            .split_once("Ended before its first round was complete.")
            .unwrap();
        let told = last.trim_start().lines().next().unwrap();
        assert!(
            told.starts_with("ended by an error: the pod was lost: its node died"),
            "{text}"
        );
    }
}

#[test]
fn programs_read_every_round() {
    let result = tested(PtsTest::Throughput, "20m");
    insta::assert_snapshot!("throughput_csv", csv(&result));
    insta::assert_snapshot!("throughput_markdown", markdown(&result));
    let document: serde_json::Value = serde_json::from_str(&json(&result).unwrap()).unwrap();
    assert_eq!(document["kind"], "pts");
    let own: PtsResult = serde_json::from_value(document["pts"].clone()).unwrap();
    assert_eq!(own, result);
}
