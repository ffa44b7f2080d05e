//! Tests of storing the life cycle of volumes, which has no runs.

use super::tests::TestHistory;
use iosonde_result::compare::{Measure, Subject};
use iosonde_result::volume_lifecycle::{
    LifecycleClass, LifecycleRound, LifecycleRoundResult, LifecycleStage, StageOutcome,
    StageRecord, VolumeRecord,
};
use iosonde_study::lifecycle::{LifecycleOptions, LifecycleResult, run_lifecycle};

/// A life cycle whose volumes take `took_ms` milliseconds.
fn lifecycle(took_ms: u64) -> LifecycleResult {
    let class = LifecycleClass {
        name: "sc://fast".to_owned(),
        provisioner: None,
        binds_late: false,
        expands: None,
    };
    let options = LifecycleOptions {
        counts: vec![1],
        rounds: Some(2),
        claim_bytes: 1 << 30,
    };
    let mut measure = |round: &LifecycleRound| {
        let outcome = StageOutcome::Measured {
            begun_ns: 0,
            took_ns: took_ms * 1_000_000,
        };
        let volume = VolumeRecord {
            class: "sc://fast".to_owned(),
            at_once: 1,
            round: round.number,
            stages: vec![StageRecord {
                stage: LifecycleStage::Provision,
                outcome,
            }],
        };
        Ok(LifecycleRoundResult {
            volumes: vec![volume],
            ..LifecycleRoundResult::default()
        })
    };
    run_lifecycle(vec![class], &options, &mut measure).unwrap()
}

#[test]
fn life_cycles_are_stored_with_their_figures_and_digests() {
    let history = TestHistory::new("lifecycle");
    let mut writer = history.writer(&[("disk", "new")]);
    for took_ms in [5, 7] {
        let result = lifecycle(took_ms);
        writer.begin("lifecycle", &result.target());
        writer.store_without_runs();
        let document = serde_json::to_value(&result).unwrap();
        assert!(writer.finish(Some(&document)).is_some());
        let loaded = history.store().load("latest").unwrap();
        assert_eq!(loaded.study.lifecycle(None), Some(result));
        let measured = loaded.measured();
        let [provision] = &measured.parts[..] else {
            panic!("{measured:?}");
        };
        let median = provision
            .figure(Subject::LifecycleStage, Measure::LatP50)
            .unwrap();
        assert_eq!(median.value, took_ms as f64 * 1e6);
    }
    assert!(writer.notes().is_empty());
    let documents: Vec<_> = [5, 7]
        .into_iter()
        .map(|took_ms| {
            let mut study = super::StudyRecord::without_runs(
                "lifecycle",
                "sc://fast",
                "iosonde".to_owned(),
                serde_json::to_value(lifecycle(took_ms)).unwrap(),
            );
            study.started_at_ms = 1;
            study.digest()
        })
        .collect();
    assert_ne!(documents[0], documents[1]);
}

#[test]
fn life_cycle_that_was_never_stored_is_not_finished() {
    let history = TestHistory::new("lifecycle-none");
    let mut writer = history.writer(&[]);
    writer.begin("lifecycle", "sc://fast");
    assert_eq!(writer.finish(None), None);
}
