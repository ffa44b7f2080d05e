use super::*;
use iosonde_result::run_error::QuotaShortage;
use iosonde_result::run_error::pod_failure::{AwaitedStep, FailedObject};

fn class(shared: Option<bool>) -> ClassFacts {
    ClassFacts {
        name: "files".to_owned(),
        provisioner: "example.com/files".to_owned(),
        is_default: false,
        waits_for_pod: true,
        reclaim: "Delete".to_owned(),
        expands: false,
        kept_directory: None,
        volumes: None,
        shared,
        trial: None,
    }
}

#[test]
fn class_for_many_nodes_is_tried_by_two_pods() {
    let with = |access_mode, volume_mode| ClusterArgs {
        access_mode,
        volume_mode,
        ..ClusterArgs::default()
    };
    let is_tried = |shared, args: &ClusterArgs| is_tried_by_two_pods(&class(shared), args);
    let default = with(None, None);
    assert!(is_tried(Some(true), &default));
    assert!(!is_tried(Some(false), &default) && !is_tried(None, &default));
    assert!(is_tried(None, &with(Some(AccessMode::Rwx), None)));
    assert!(!is_tried(Some(true), &with(Some(AccessMode::Rwo), None)));
    let block = with(None, Some(VolumeModeArg::Block));
    assert!(!is_tried(Some(true), &block), "a device has no files");
}

#[test]
fn shortage_for_two_pods_is_tried_again_by_one() {
    let rights = vec!["create persistentvolumeclaims".to_owned()];
    let role = String::new();
    let missing = ClusterObstacle::MissingRights {
        rights,
        role,
        is_bound_to_namespace: false,
    };
    assert!(may_suffice_for_one(&missing.into()));
    let shortage = QuotaShortage::Amount {
        needed_milli: 2000,
        left_milli: 1000,
    };
    let quota = ClusterObstacle::QuotaExceeded {
        quota: "few".to_owned(),
        resource: "pods".to_owned(),
        shortage,
    };
    assert!(may_suffice_for_one(&quota.into()));
    let pod = |condition| RunError::not_ready(FailedObject::only_pod(), condition);
    let refused = |reason| {
        pod(FailureCondition::PodRefused {
            reason,
            message: String::new(),
        })
    };
    assert!(may_suffice_for_one(&refused(PodRefusal::Quota)));
    assert!(!may_suffice_for_one(&refused(PodRefusal::PodSecurity)));
    assert!(may_suffice_for_one(&pod(no_node())));
    assert!(!may_suffice_for_one(&pod(FailureCondition::Deleted)));
    assert!(!may_suffice_for_one(&RunError::Interrupted));
}

fn works() -> Trial {
    Trial::Works {
        elapsed_ms: 5,
        free_bytes: None,
        shared: None,
        sharing_not_tried: None,
    }
}

#[test]
fn trial_by_one_pod_waits_for_the_quota_to_release_deleted_pods() {
    let over_quota = || {
        let condition = FailureCondition::PodRefused {
            reason: PodRefusal::Quota,
            message: String::new(),
        };
        RunError::not_ready(FailedObject::only_pod(), condition)
    };
    let attempts = Cell::new(0);
    let attempt = |pods: Option<Pods>| {
        attempts.set(attempts.get() + 1);
        assert_eq!(
            pods.is_some(),
            attempts.get() == 1,
            "two pods at first only"
        );
        match attempts.get() < 4 {
            true => Err(CommandError::Run(over_quota())),
            false => Ok(works()),
        }
    };
    let trial = try_by_two_or_one(&mut BTreeSet::new(), attempt).ok();
    assert_eq!(trial, Some(tried_by_one(works(), &over_quota())));
    assert_eq!(attempts.get(), 4);
}

#[test]
fn trial_that_never_had_objects_is_not_repeated_for_a_quota() {
    let attempts = Cell::new(0);
    let attempt = |_: Option<Pods>| {
        attempts.set(attempts.get() + 1);
        let quota = ClusterObstacle::QuotaExceeded {
            quota: "none".to_owned(),
            resource: "pods".to_owned(),
            shortage: QuotaShortage::ClaimCount { needed: 1, left: 0 },
        };
        Err(CommandError::Run(quota.into()))
    };
    let trial = try_by_two_or_one(&mut BTreeSet::new(), attempt);
    assert!(trial.is_err());
    assert_eq!(attempts.get(), 2);
}

#[test]
fn role_for_two_pods_is_printed_although_one_pod_works() {
    let attempt = |pods: Option<Pods>| match pods {
        Some(_) => {
            let missing = ClusterObstacle::MissingRights {
                rights: vec!["create persistentvolumeclaims".to_owned()],
                role: "kind: Role".to_owned(),
                is_bound_to_namespace: false,
            };
            Err(CommandError::Run(missing.into()))
        }
        None => Ok(works()),
    };
    let mut roles = BTreeSet::new();
    let trial = try_by_two_or_one(&mut roles, attempt).ok();
    let reason = match trial {
        Some(Trial::Works {
            sharing_not_tried, ..
        }) => sharing_not_tried,
        other => panic!("{other:?}"),
    };
    assert!(reason.is_some());
    assert_eq!(roles, BTreeSet::from([role_note("kind: Role")]));
}

fn no_node() -> FailureCondition {
    FailureCondition::Unschedulable {
        reason: SchedulingObstacle::Taint,
        is_node_coming: false,
        message: "0/2 nodes are available".to_owned(),
        tolerations: Vec::new(),
    }
}

#[test]
fn trial_by_one_pod_keeps_the_cause_of_the_failure_of_two() {
    let error = RunError::not_ready(FailedObject::only_pod(), no_node());
    let Trial::Works {
        sharing_not_tried: Some(reason),
        ..
    } = tried_by_one(works(), &error)
    else {
        panic!("no reason");
    };
    assert_eq!(reason.remedy, error.remedy());
    assert_eq!(reason.cause, cause(&error));
    let fails = Trial::Fails {
        cause: "never bound".to_owned(),
        remedy: String::new(),
    };
    assert_eq!(tried_by_one(fails.clone(), &error), fails);
}

#[test]
fn outcome_of_a_trial_has_the_shortage_of_its_attempts() {
    let quota = || {
        let quota = ClusterObstacle::QuotaExceeded {
            quota: "few".to_owned(),
            resource: "pods".to_owned(),
            shortage: QuotaShortage::ClaimCount { needed: 1, left: 0 },
        };
        Err(CommandError::Run(quota.into()))
    };
    let refused = observe_trial(false, |_| quota());
    assert!(refused.result.is_err() && !refused.has_taken_room);
    assert_eq!(refused.shortage, Some(TrialShortage::Quota));
    let by_one = observe_trial(true, |pods| pods.map_or(Ok(works()), |_| quota()));
    assert!(by_one.result.is_ok() && by_one.has_taken_room);
    assert_eq!(by_one.shortage, Some(TrialShortage::Quota));
    let by_two = observe_trial(true, |_| Ok(works()));
    assert!(by_two.result.is_ok() && by_two.has_taken_room);
    assert_eq!(by_two.shortage, None);
    let forbidden = ClusterObstacle::RequestFailed {
        request: ClusterRequest::CreateClaim,
        failure: ApiFailure::Refused {
            code: 403,
            message: "exceeded quota: few".to_owned(),
        },
    };
    assert_eq!(shortage_of(&forbidden.into()), Some(TrialShortage::Quota));
    let late = FailureCondition::StartTimedOut {
        seconds: 60,
        awaits: AwaitedStep::ContainerStart.into(),
    };
    let late = RunError::not_ready(FailedObject::only_pod(), late);
    assert_eq!(shortage_of(&late), Some(TrialShortage::Time));
    for (reason, shortage) in [
        (SchedulingObstacle::Resources, Some(TrialShortage::Nodes)),
        (SchedulingObstacle::Claim, Some(TrialShortage::Quota)),
        (SchedulingObstacle::Taint, None),
    ] {
        let condition = FailureCondition::Unschedulable {
            reason,
            is_node_coming: false,
            message: "0/2 nodes are available".to_owned(),
            tolerations: Vec::new(),
        };
        let error = RunError::not_ready(FailedObject::only_pod(), condition);
        assert_eq!(shortage_of(&error), shortage);
    }
}
