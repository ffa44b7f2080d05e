//! Rounds from lists of changes.

use super::*;
use iosonde_result::volume_lifecycle::StageOutcome;

const MS: u64 = 1_000_000;

fn round(binds_late: bool) -> RoundState {
    let volume = |index: u32| RoundVolume {
        pod: format!("iosonde-1-{index}"),
        claim: format!("iosonde-1-{index}-data"),
        ..RoundVolume::default()
    };
    RoundState {
        volumes: (0..2).map(volume).collect(),
        rules: StageRules {
            binds_late,
            expands: Some(true),
            sees_volumes: true,
            sees_attachments: true,
        },
        namespace: "lab".to_owned(),
        claim_bytes: 1 << 30,
        warnings: BTreeSet::new(),
        past_warnings: BTreeSet::new(),
    }
}

fn request(round: &mut RoundState, phase: RoundPhase, at_ms: u64) {
    for index in round.requested(phase) {
        let timeline = &mut round.volumes[index].timeline;
        timeline.record(phase.request(), at_ms * MS);
    }
}

fn claim(index: u32, is_bound: bool, capacity_bytes: u64) -> ObservedClaim {
    ObservedClaim {
        name: format!("iosonde-1-{index}-data"),
        has_node: false,
        is_bound,
        capacity_bytes,
        created_s: Some(100),
    }
}

fn volume(index: u32) -> ObservedVolume {
    ObservedVolume {
        name: format!("pv-{index}"),
        claim_namespace: "lab".to_owned(),
        claim: format!("iosonde-1-{index}-data"),
        is_retained: false,
        created_s: Some(100),
    }
}

fn pod(index: u32, write: Option<WriteReport>) -> ObservedVolumePod {
    ObservedVolumePod {
        name: format!("iosonde-1-{index}"),
        is_scheduled: true,
        is_mounted: write.is_some(),
        write,
    }
}

#[test]
fn round_from_its_changes_has_all_stages_of_each_volume() {
    let mut round = round(false);
    request(&mut round, RoundPhase::Claim, 0);
    let volumes = ObservedChange::Volumes(vec![volume(0), volume(1)]);
    assert!(round.apply(&volumes, 400 * MS));
    assert!(!round.apply(&volumes, 500 * MS), "the same again");
    let claims = |bytes| ObservedChange::Claims(vec![claim(0, true, bytes), claim(1, true, bytes)]);
    round.apply(&claims(1 << 30), 450 * MS);
    assert!(round.waiting(RoundPhase::Claim).is_empty());
    request(&mut round, RoundPhase::Start, 500);
    let attached = |is_attached| {
        let attachment = |index: u32| ObservedAttachment {
            volume: format!("pv-{index}"),
            is_attached,
        };
        ObservedChange::Attachments(vec![attachment(0), attachment(1)])
    };
    round.apply(
        &ObservedChange::Pods(vec![pod(0, None), pod(1, None)]),
        550 * MS,
    );
    round.apply(&attached(false), 600 * MS);
    round.apply(&attached(true), 750 * MS);
    let took = || Some(WriteReport::Took(3 * MS));
    round.apply(
        &ObservedChange::Pods(vec![pod(0, took()), pod(1, None)]),
        900 * MS,
    );
    assert_eq!(round.waiting(RoundPhase::Start), [1]);
    round.apply(
        &ObservedChange::Pods(vec![pod(0, took()), pod(1, took())]),
        950 * MS,
    );
    request(&mut round, RoundPhase::Expand, 1000);
    round.apply(&claims(1 << 30), 1100 * MS);
    assert_eq!(round.waiting(RoundPhase::Expand), [0, 1]);
    round.apply(&claims(2 << 30), 1500 * MS);
    assert!(round.waiting(RoundPhase::Expand).is_empty());
    request(&mut round, RoundPhase::Stop, 2000);
    round.apply(&ObservedChange::Pods(Vec::new()), 2300 * MS);
    assert_eq!(round.waiting(RoundPhase::Stop), [0, 1], "still attached");
    round.apply(&ObservedChange::Attachments(Vec::new()), 2600 * MS);
    request(&mut round, RoundPhase::Delete, 3000);
    round.apply(&ObservedChange::Claims(Vec::new()), 3050 * MS);
    round.apply(&ObservedChange::Volumes(Vec::new()), 3400 * MS);
    assert!(round.waiting(RoundPhase::Delete).is_empty());
    let stages = &round.stages()[1];
    let took_ms: Vec<u64> = stages
        .iter()
        .map(|record| match &record.outcome {
            StageOutcome::Measured { took_ns, .. } => took_ns / MS,
            other => panic!("{:?}: {other:?}", record.stage),
        })
        .collect();
    assert_eq!(took_ms, [400, 50, 200, 200, 3, 500, 600, 400]);
}

#[test]
fn late_binding_claim_is_not_waited_for_before_its_pod() {
    let mut round = round(true);
    request(&mut round, RoundPhase::Claim, 0);
    assert!(round.waiting(RoundPhase::Claim).is_empty());
    request(&mut round, RoundPhase::Start, 10);
    assert_eq!(round.waiting(RoundPhase::Start), [0, 1]);
}

#[test]
fn claim_that_never_binds_fails_with_its_warning_and_is_still_removed() {
    let mut round = round(false);
    request(&mut round, RoundPhase::Claim, 0);
    round.apply(
        &ObservedChange::Claims(vec![claim(0, true, 1), claim(1, false, 0)]),
        MS,
    );
    let warning = ObservedWarning {
        object: "iosonde-1-1-data".to_owned(),
        message: "ProvisioningFailed: no space".to_owned(),
        times: 1,
    };
    round.apply(&ObservedChange::Warnings(vec![warning]), 2 * MS);
    round.fail_waiting(1, RoundPhase::Claim, "not bound after 5 min");
    let cause = "not bound after 5 min: ProvisioningFailed: no space".to_owned();
    assert_eq!(round.stages()[1][0].outcome, StageOutcome::Failed { cause });
    assert_eq!(round.requested(RoundPhase::Start), [0]);
    assert_eq!(round.requested(RoundPhase::Delete), [0, 1]);
    request(&mut round, RoundPhase::Delete, 10);
    assert_eq!(round.waiting(RoundPhase::Delete), [0, 1]);
}

#[test]
fn volume_of_another_namespace_is_not_taken_for_ours() {
    let mut round = round(false);
    request(&mut round, RoundPhase::Claim, 0);
    let other = ObservedVolume {
        claim_namespace: "other".to_owned(),
        ..volume(0)
    };
    assert!(!round.apply(&ObservedChange::Volumes(vec![other]), MS));
}

#[test]
fn warning_of_an_earlier_phase_explains_nothing() {
    let mut round = round(false);
    let warning = |message: &str, times: i32| ObservedWarning {
        object: "iosonde-1-0".to_owned(),
        message: message.to_owned(),
        times,
    };
    let early = warning("FailedScheduling: no node", 1);
    round.apply(&ObservedChange::Warnings(vec![early.clone()]), MS);
    assert!(round.volumes[0].warning.is_some());
    round.begin_phase();
    round.apply(&ObservedChange::Warnings(vec![early.clone()]), 2 * MS);
    assert_eq!(round.volumes[0].warning, None, "it is still listed");
    let late = warning("FailedMount: no disk", 1);
    let both = ObservedChange::Warnings(vec![late, early]);
    round.apply(&both, 3 * MS);
    let expected = Some("FailedMount: no disk".to_owned());
    assert_eq!(round.volumes[0].warning, expected);
    round.begin_phase();
    let again = warning("FailedMount: no disk", 2);
    round.apply(&ObservedChange::Warnings(vec![again]), 4 * MS);
    assert_eq!(round.volumes[0].warning, expected, "it is reported again");
}

#[test]
fn volume_larger_than_requested_is_expanded_beyond_its_capacity() {
    let mut round = round(false);
    request(&mut round, RoundPhase::Claim, 0);
    let claims = |gib: u64| ObservedChange::Claims(vec![claim(0, true, gib << 30)]);
    round.apply(&claims(100), MS);
    assert_eq!(round.expanded_bytes(0), 101 << 30);
    assert_eq!(round.expanded_bytes(1), 2 << 30, "not seen yet");
    request(&mut round, RoundPhase::Expand, 10);
    round.apply(&claims(100), 20 * MS);
    assert!(round.waiting(RoundPhase::Expand).contains(&0));
    round.apply(&claims(101), 30 * MS);
    assert!(!round.waiting(RoundPhase::Expand).contains(&0));
}

#[test]
fn failed_write_is_the_failure_of_its_volume() {
    let mut round = round(true);
    request(&mut round, RoundPhase::Claim, 0);
    request(&mut round, RoundPhase::Start, 1);
    let failed = Some(WriteReport::Failed("dd: Permission denied".to_owned()));
    round.apply(&ObservedChange::Pods(vec![pod(0, failed)]), 5 * MS);
    assert_eq!(round.waiting(RoundPhase::Start), [1]);
    let cause = "dd: Permission denied".to_owned();
    assert_eq!(round.stages()[0][4].outcome, StageOutcome::Failed { cause });
    assert_eq!(round.requested(RoundPhase::Expand), [1]);
}

#[test]
fn causes_have_no_names_of_single_objects() {
    let mut round = round(false);
    round.volumes[0].volume = Some("pv-7".to_owned());
    let text = "claims \"iosonde-1-0-data\" of iosonde-1-0: pv-7 is busy";
    assert_eq!(
        round.volumes[0].without_names(text),
        "claims \"the claim\" of the pod: the volume is busy"
    );
}

#[test]
fn server_times_that_contradict_a_provision_are_counted() {
    let mut round = round(false);
    request(&mut round, RoundPhase::Claim, 0);
    round.apply(
        &ObservedChange::Claims(vec![claim(0, true, 1), claim(1, true, 1)]),
        MS,
    );
    let late = ObservedVolume {
        created_s: Some(109),
        ..volume(1)
    };
    round.apply(&ObservedChange::Volumes(vec![volume(0), late]), 500 * MS);
    assert_eq!(round.contradicted_provisions(), 1);
    round.rules.binds_late = true;
    assert_eq!(round.contradicted_provisions(), 0);
}
