use super::storage_problem::in_short;
use super::*;
use iosonde_result::run_error::pod_failure::{MountFailure, SchedulingObstacle};
use iosonde_result::run_error::{RunError, SystemFailure, VolumeProblem};
use serde_json::{Value, json};

fn observed(job: Value, pod: Value, claims: Value, events: &[(&str, &str)]) -> ObservedPod {
    let events: Vec<Value> = events
        .iter()
        .map(|(reason, message)| {
            json!({"reason": reason, "message": message, "metadata": {}, "involvedObject": {}})
        })
        .collect();
    ObservedPod {
        job: serde_json::from_value(job).unwrap(),
        pod: serde_json::from_value(pod).unwrap(),
        claims: serde_json::from_value(claims).unwrap(),
        events: serde_json::from_value(Value::from(events)).unwrap(),
    }
}

fn placed(status: Value) -> Value {
    json!({"metadata": {}, "spec": {"nodeName": "n1", "containers": [{"name": "iosonde",
        "image": "busy:1"}]}, "status": status})
}

fn unplaced() -> Value {
    json!({"metadata": {}, "spec": {"containers": []}, "status": {"phase": "Pending"}})
}

fn container(state: Value) -> Value {
    json!({"phase": "Pending", "containerStatuses": [
        {"name": "iosonde", "image": "", "imageID": "", "ready": false, "restartCount": 0,
         "state": state}]})
}

fn claim(phase: &str) -> Value {
    json!([{"metadata": {}, "spec": {}, "status": {"phase": phase}}])
}

fn problem_of(observed: &ObservedPod) -> PodProblem {
    match observed.judge() {
        PodState::Problem(problem) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pod_without_problem_is_waited_for() {
    let waits = |observed: ObservedPod| match observed.judge() {
        PodState::Waiting(wait) => wait.step,
        other => panic!("{other:?}"),
    };
    let none = json!([]);
    assert_eq!(waits(ObservedPod::default()), AwaitedStep::PodCreation);
    let seen = observed(Value::Null, unplaced(), claim("Pending"), &[]);
    assert_eq!(waits(seen), AwaitedStep::Node);
    for (said, claims) in [
        (
            "0/1 nodes are available: waiting for ephemeral volume controller to create the claim",
            json!([]),
        ),
        (
            "0/1 nodes are available: persistentvolumeclaim \"iosonde-3f2a9c-data\" not found.",
            claim("Pending"),
        ),
    ] {
        let event = ("FailedScheduling", said);
        let seen = observed(Value::Null, unplaced(), claims, &[event]);
        assert_eq!(waits(seen), AwaitedStep::Node);
    }
    let pending = placed(json!({"phase": "Pending"}));
    let seen = observed(Value::Null, pending.clone(), claim("Pending"), &[]);
    assert_eq!(waits(seen), AwaitedStep::ClaimBinding);
    let creating = placed(container(
        json!({"waiting": {"reason": "ContainerCreating"}}),
    ));
    let seen = observed(
        Value::Null,
        creating.clone(),
        claim("Bound"),
        &[("Pulling", "")],
    );
    assert_eq!(waits(seen), AwaitedStep::ImagePull);
    let seen = observed(Value::Null, creating, none.clone(), &[]);
    assert_eq!(waits(seen), AwaitedStep::ContainerStart);
    let running = placed(container(json!({"running": {}})));
    let seen = observed(Value::Null, running, none, &[("FailedMount", "before")]);
    assert_eq!(seen.judge(), PodState::Running);
}

/// A pod, its problem, and whether the wait ends at once.
type ProblemCase = (ObservedPod, FailureCondition, bool);

fn check_problems(cases: impl IntoIterator<Item = ProblemCase>) {
    for (observed, condition, at_once) in cases {
        let problem = problem_of(&observed);
        assert_eq!(problem.condition, condition);
        assert_eq!(problem.timeout.is_zero(), at_once, "{problem:?}");
    }
}

#[test]
fn pod_that_is_not_made_has_a_cause() {
    let refused = |message: &str, reason: PodRefusal, at_once: bool| {
        let events = [("FailedCreate", message)];
        let condition = FailureCondition::PodRefused {
            reason,
            message: message.to_owned(),
        };
        let observed = observed(Value::Null, Value::Null, json!([]), &events);
        (observed, condition, at_once)
    };
    check_problems([
        refused(
            "pods \"x\" is forbidden: exceeded quota: small",
            PodRefusal::Quota,
            true,
        ),
        refused(
            "violates PodSecurity \"restricted:latest\"",
            PodRefusal::PodSecurity,
            true,
        ),
        refused(
            "pods \"x\" is forbidden: error looking up service account a/b: serviceaccount \
             \"b\" not found",
            PodRefusal::ServiceAccount,
            false,
        ),
        refused(
            "pods \"x\" is forbidden: no PriorityClass with name high was found",
            PodRefusal::PriorityClass,
            true,
        ),
    ]);
}

#[test]
fn container_problems_have_a_cause() {
    let not_pulled = |message: &str| FailureCondition::ImageNotPulled {
        image: "busy:1".to_owned(),
        reason: "ErrImagePull".to_owned(),
        message: message.to_owned(),
    };
    let waiting = |reason: &str, message: &str| {
        placed(container(
            json!({"waiting": {"reason": reason, "message": message}}),
        ))
    };
    let ended = |status: Value| placed(container(json!({"terminated": status})));
    let with_pod = |pod: Value| observed(Value::Null, pod, json!([]), &[]);
    check_problems([
        (
            with_pod(waiting("ErrImagePull", "no:such: not found")),
            not_pulled("no:such: not found"),
            true,
        ),
        (
            with_pod(waiting("ErrImagePull", "i/o timeout")),
            not_pulled("i/o timeout"),
            false,
        ),
        (
            with_pod(ended(json!({"exitCode": 137, "reason": "OOMKilled"}))),
            FailureCondition::OutOfMemory,
            true,
        ),
        (
            with_pod(ended(json!({"exitCode": 127, "reason": "StartError"}))),
            FailureCondition::ShellMissing {
                exit_code: 127,
                message: String::new(),
            },
            true,
        ),
        (
            with_pod(placed(json!({"phase": "Failed", "reason": "Evicted",
                    "message": "low on resource: ephemeral-storage"}))),
            FailureCondition::Evicted {
                message: "low on resource: ephemeral-storage".to_owned(),
            },
            true,
        ),
    ]);
}

#[test]
fn volume_and_scheduling_problems_have_a_cause() {
    let not_mounted = |reason: MountFailure, message: &str| FailureCondition::VolumeNotMounted {
        reason,
        message: message.to_owned(),
    };
    let untolerated = "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}.";
    check_problems([
        (
            observed(
                Value::Null,
                placed(json!({})),
                json!([]),
                &[(
                    "FailedMount",
                    "hostPath type check failed: /x is not a directory",
                )],
            ),
            not_mounted(
                MountFailure::HostPath,
                "hostPath type check failed: /x is not a directory",
            ),
            true,
        ),
        (
            observed(
                Value::Null,
                placed(json!({})),
                json!([]),
                &[("FailedAttachVolume", "Multi-Attach error for volume")],
            ),
            not_mounted(MountFailure::MultiAttach, "Multi-Attach error for volume"),
            false,
        ),
        (
            observed(
                Value::Null,
                unplaced(),
                claim("Pending"),
                &[("ProvisioningFailed", "no capacity")],
            ),
            FailureCondition::ClaimNotProvisioned {
                claim: None,
                message: "no capacity".to_owned(),
            },
            false,
        ),
        (
            observed(
                Value::Null,
                unplaced(),
                json!([]),
                &[("FailedScheduling", untolerated)],
            ),
            FailureCondition::Unschedulable {
                reason: SchedulingObstacle::Taint,
                is_node_coming: false,
                message: untolerated.to_owned(),
                tolerations: Vec::new(),
            },
            false,
        ),
        (
            observed(Value::Null, unplaced(), claim("Lost"), &[]),
            FailureCondition::ClaimLost { claim: None },
            true,
        ),
    ]);
}

#[test]
fn passed_job_deadline_is_named() {
    // Newer clusters set the second first, while the pod is still being terminated.
    for condition in ["Failed", "FailureTarget"] {
        let job = json!({"metadata": {}, "spec": {"activeDeadlineSeconds": 600, "template": {}},
            "status": {"conditions": [
            {"type": condition, "status": "True", "reason": "DeadlineExceeded"}]}});
        let problem = problem_of(&observed(job, Value::Null, json!([]), &[]));
        let deadline = FailureCondition::DeadlinePassed {
            seconds: Some(600),
            is_measured: false,
        };
        assert_eq!(problem.condition, deadline);
    }
}

#[test]
fn refused_or_removed_pod_is_not_waited_for() {
    let refused = json!({"phase": "Failed", "reason": "OutOfpods",
        "message": "Node didn't have enough resource"});
    let problem = problem_of(&observed(Value::Null, placed(refused), json!([]), &[]));
    let message = "Node didn't have enough resource".to_owned();
    let not_admitted = FailureCondition::PodFailed {
        reason: "OutOfpods".to_owned(),
        message,
    };
    assert_eq!(problem.condition, not_admitted);
    assert_eq!(problem.timeout, Duration::ZERO);
    let failed = json!({"metadata": {}, "status": {"conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
         "message": "too often"}]}});
    let problem = problem_of(&observed(failed, Value::Null, json!([]), &[]));
    let given_up = FailureCondition::JobFailed {
        reason: "BackoffLimitExceeded".to_owned(),
        message: "too often".to_owned(),
    };
    assert_eq!(problem.condition, given_up);
    assert_eq!(problem.timeout, Duration::ZERO);
}

#[test]
fn driver_message_is_cut_to_its_first_line() {
    assert_eq!(in_short("too small.\nUsage: mkfs"), "too small. ...");
    assert_eq!(in_short("plain"), "plain");
    let long = "x".repeat(1000);
    assert_eq!(in_short(&long).len(), 404);
}

#[test]
fn autoscaled_node_is_waited_for_until_the_user_timeout() {
    let unplaced = json!({"metadata": {"name": "iosonde-x-0"}, "spec": {"containers": []},
        "status": {"phase": "Pending"}});
    for reason in ["TriggeredScaleUp", "Nominated"] {
        let events = [
            ("FailedScheduling", "0/2 nodes are available"),
            (reason, ""),
        ];
        let seen = observed(Value::Null, unplaced.clone(), json!([]), &events);
        let PodState::Problem(problem) = seen.judge() else {
            panic!("{reason}");
        };
        assert_eq!(problem.timeout, Duration::MAX);
        assert!(
            matches!(
                problem.condition,
                FailureCondition::Unschedulable {
                    is_node_coming: true,
                    ..
                }
            ),
            "{problem:?}"
        );
    }
}

/// The scheduler counts the nodes in its message, which changes while nodes come and go.
#[test]
fn same_problem_in_other_words_goes_on() {
    let problem = |reason, is_node_coming, message: &str| PodProblem {
        condition: FailureCondition::Unschedulable {
            reason,
            is_node_coming,
            message: message.to_owned(),
            tolerations: Vec::new(),
        },
        timeout: RETRIES,
    };
    let unschedulable = |reason, message: &str| problem(reason, false, message);
    let node_coming = |reason, message: &str| problem(reason, true, message);
    let taint = unschedulable(SchedulingObstacle::Taint, "1 node had untolerated taint");
    let later = unschedulable(SchedulingObstacle::Taint, "2 nodes had untolerated taint");
    let other = unschedulable(SchedulingObstacle::Resources, "Insufficient cpu");
    assert!(taint.is_same(&later));
    assert!(!taint.is_same(&other));
    assert!(!taint.is_same(&PodProblem::permanent(FailureCondition::Deleted)));
    let full = node_coming(SchedulingObstacle::Resources, "Insufficient cpu");
    let not_ready = node_coming(SchedulingObstacle::Taint, "1 node had untolerated taint");
    assert!(full.is_same(&not_ready));
    assert!(!other.is_same(&full));
    assert!(!full.is_same(&other));
}

#[test]
fn provisioner_that_does_not_begin_is_a_problem_until_it_reports() {
    let said = "Waiting for a volume to be created either by the external provisioner \
                'example.com/none' or manually by the system administrator.";
    let waits = ("ExternalProvisioning", said);
    let silent = observed(Value::Null, unplaced(), claim("Pending"), &[waits]);
    let problem = problem_of(&silent);
    assert!(problem.is_provisioner_silent(), "{problem:?}");
    assert!(problem.timeout > Duration::ZERO && problem.timeout <= NODES);
    let expected = FailureCondition::ProvisionerSilent {
        claim: None,
        message: said.to_owned(),
    };
    assert_eq!(problem.condition, expected);
    let begun = observed(
        Value::Null,
        unplaced(),
        claim("Pending"),
        &[
            waits,
            (
                "Provisioning",
                "External provisioner is provisioning volume",
            ),
        ],
    );
    assert!(
        matches!(begun.judge(), PodState::Waiting(_)),
        "{:?}",
        begun.judge()
    );
    let bound = observed(Value::Null, unplaced(), claim("Bound"), &[waits]);
    assert!(matches!(bound.judge(), PodState::Waiting(_)));
}

#[test]
fn error_that_an_agent_leaves_is_the_cause_with_the_user_of_the_pod() {
    let error = RunError::unusable_target(
        "/data/.iosonde-1a2b",
        VolumeProblem::NoScratchDirectory {
            failure: SystemFailure::Errno(13),
        }
        .into(),
    );
    let message = serde_json::to_string(&error).unwrap();
    let mut pod = placed(container(
        json!({"terminated": {"exitCode": 3, "reason": "Error", "message": message}}),
    ));
    pod["spec"]["securityContext"] = json!({"runAsUser": 65532});
    let refused = problem_of(&observed(Value::Null, pod, json!([]), &[]));
    let expected = FailureCondition::VolumeRefused {
        user: Some(65532),
        error: Box::new(error),
    };
    assert_eq!(refused, PodProblem::permanent(expected));
    // The kubelet adds the end of the log of other containers.
    let pod = placed(container(
        json!({"terminated": {"exitCode": 5, "reason": "Error",
        "message": "first\nno signals\n"}}),
    ));
    let ended = problem_of(&observed(Value::Null, pod, json!([]), &[]));
    let expected = FailureCondition::ContainerEnded {
        exit_code: 5,
        reason: "Error".to_owned(),
        message: "no signals".to_owned(),
    };
    assert_eq!(ended, PodProblem::permanent(expected));
}

#[test]
fn evicted_pod_has_the_reason_of_the_cluster() {
    let mut pod = placed(container(json!({"running": {}})));
    pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True",
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}]);
    let evicted = observed(Value::Null, pod, json!([]), &[]);
    let expected = FailureCondition::Disrupted {
        reason: "EvictionByEvictionAPI".to_owned(),
        message: "Eviction API: evicting".to_owned(),
    };
    assert_eq!(evicted.disruption(), Some(expected));
    let other = observed(Value::Null, unplaced(), json!([]), &[]);
    assert_eq!(other.disruption(), None);
}
