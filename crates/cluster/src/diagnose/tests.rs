use super::*;
use serde_json::{Value, json};

fn sight(job: Value, pod: Value, claims: Value, events: &[(&str, &str)]) -> Sight {
    let events: Vec<Value> = events
        .iter()
        .map(|(reason, message)| {
            json!({"reason": reason, "message": message, "metadata": {}, "involvedObject": {}})
        })
        .collect();
    Sight {
        job: serde_json::from_value(job).unwrap(),
        pod: serde_json::from_value(pod).unwrap(),
        claims: serde_json::from_value(claims).unwrap(),
        events: serde_json::from_value(Value::from(events)).unwrap(),
    }
}

fn placed(status: Value) -> Value {
    json!({"metadata": {}, "spec": {"nodeName": "n1", "containers": [{"name": "iosonde", "image": "busy:1"}]}, "status": status})
}

fn unplaced() -> Value {
    json!({"metadata": {}, "spec": {"containers": []}, "status": {"phase": "Pending"}})
}

fn container(state: Value) -> Value {
    json!({"phase": "Pending", "containerStatuses": [
        {"name": "iosonde", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]})
}

fn claim(phase: &str) -> Value {
    json!([{"metadata": {}, "spec": {}, "status": {"phase": phase}}])
}

fn hindered(sight: &Sight) -> Hindrance {
    match sight.judge() {
        State::Hindered(hindrance) => hindrance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn on_its_way() {
    let waits = |sight: Sight| match sight.judge() {
        State::Waiting(what) => what,
        other => panic!("{other:?}"),
    };
    let none = json!([]);
    assert_eq!(waits(Sight::default()), "the pod to be made");
    let seen = sight(Value::Null, unplaced(), claim("Pending"), &[]);
    assert_eq!(waits(seen), "a node");
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
        let seen = sight(Value::Null, unplaced(), claims, &[event]);
        assert_eq!(waits(seen), "a node");
    }
    let pending = placed(json!({"phase": "Pending"}));
    let seen = sight(Value::Null, pending.clone(), claim("Pending"), &[]);
    assert_eq!(waits(seen), "the claim to be bound");
    let creating = placed(container(
        json!({"waiting": {"reason": "ContainerCreating"}}),
    ));
    let seen = sight(
        Value::Null,
        creating.clone(),
        claim("Bound"),
        &[("Pulling", "")],
    );
    assert_eq!(waits(seen), "the image to be pulled");
    let seen = sight(Value::Null, creating, none.clone(), &[]);
    assert!(waits(seen).contains("mounted"));
    let running = placed(container(json!({"running": {}})));
    let seen = sight(Value::Null, running, none, &[("FailedMount", "before")]);
    assert_eq!(seen.judge(), State::Running);
}

/// Message of the cluster, text of the cause, and whether the wait ends at once.
#[test]
fn every_hindrance_has_a_cause_and_a_remedy() {
    let none = || json!([]);
    let waiting = |reason: &str, message: &str| {
        placed(container(
            json!({"waiting": {"reason": reason, "message": message}}),
        ))
    };
    let not_made = |message: &str| {
        let events = [("FailedCreate", message)];
        sight(Value::Null, Value::Null, none(), &events)
    };
    let ended = |status: Value| placed(container(json!({"terminated": status})));
    let cases = [
        (
            not_made("pods \"x\" is forbidden: exceeded quota: small"),
            "exceeded quota",
            "--claim-size",
            true,
        ),
        (
            not_made("violates PodSecurity \"restricted:latest\""),
            "PodSecurity",
            "Pod Security level",
            true,
        ),
        (
            not_made(
                "pods \"x\" is forbidden: error looking up service account a/b: serviceaccount \"b\" not found",
            ),
            "serviceaccount",
            "--service-account",
            false,
        ),
        (
            not_made("pods \"x\" is forbidden: no PriorityClass with name high was found"),
            "no PriorityClass",
            "--priority-class",
            true,
        ),
        (
            sight(
                Value::Null,
                waiting("ErrImagePull", "no:such: not found"),
                none(),
                &[],
            ),
            "busy:1",
            "--image",
            true,
        ),
        (
            sight(
                Value::Null,
                waiting("ErrImagePull", "i/o timeout"),
                none(),
                &[],
            ),
            "i/o timeout",
            "--image",
            false,
        ),
        (
            sight(
                Value::Null,
                ended(json!({"exitCode": 137, "reason": "OOMKilled"})),
                none(),
                &[],
            ),
            "memory",
            "iodepth",
            true,
        ),
        (
            sight(
                Value::Null,
                ended(json!({"exitCode": 127, "reason": "StartError"})),
                none(),
                &[],
            ),
            "`sh`",
            "--image",
            true,
        ),
        (
            sight(
                Value::Null,
                placed(
                    json!({"phase": "Failed", "reason": "Evicted", "message": "low on resource: ephemeral-storage"}),
                ),
                none(),
                &[],
            ),
            "evicted",
            "free space",
            true,
        ),
        (
            sight(
                Value::Null,
                placed(json!({})),
                none(),
                &[(
                    "FailedMount",
                    "hostPath type check failed: /x is not a directory",
                )],
            ),
            "/x is not a directory",
            "exists on the node",
            true,
        ),
        (
            sight(
                Value::Null,
                placed(json!({})),
                none(),
                &[("FailedAttachVolume", "Multi-Attach error for volume")],
            ),
            "Multi-Attach",
            "another pod",
            false,
        ),
        (
            sight(
                Value::Null,
                unplaced(),
                claim("Pending"),
                &[("ProvisioningFailed", "no capacity")],
            ),
            "no capacity",
            "provisioner",
            false,
        ),
        (
            sight(
                Value::Null,
                unplaced(),
                none(),
                &[(
                    "FailedScheduling",
                    "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}.",
                )],
            ),
            "untolerated taint",
            "taint",
            false,
        ),
        (
            sight(Value::Null, unplaced(), claim("Lost"), &[]),
            "gone",
            "another claim",
            true,
        ),
    ];
    for (sight, cause, remedy, at_once) in cases {
        let hindrance = hindered(&sight);
        assert!(hindrance.cause.contains(cause), "{hindrance:?}");
        assert!(hindrance.remedy.contains(remedy), "{hindrance:?}");
        assert_eq!(hindrance.patience.is_zero(), at_once, "{hindrance:?}");
    }
}

#[test]
fn a_deadline_that_has_passed_is_named() {
    // Newer clusters set the second first, while the pod is still being terminated.
    for condition in ["Failed", "FailureTarget"] {
        let job = json!({"metadata": {}, "status": {"conditions": [
            {"type": condition, "status": "True", "reason": "DeadlineExceeded"}]}});
        let hindrance = hindered(&sight(job, Value::Null, json!([]), &[]));
        assert!(hindrance.cause.contains("deadline") && hindrance.remedy.contains("--deadline"));
    }
}

#[test]
fn a_pod_that_was_refused_or_removed_is_not_waited_for() {
    let refused = json!({"phase": "Failed", "reason": "OutOfpods", "message": "Node didn't have enough resource"});
    let hindrance = hindered(&sight(Value::Null, placed(refused), json!([]), &[]));
    assert!(hindrance.cause.contains("OutOfpods"), "{hindrance:?}");
    assert_eq!(hindrance.patience, Duration::ZERO);
    let failed = json!({"metadata": {}, "status": {"conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}]}});
    let hindrance = hindered(&sight(failed, Value::Null, json!([]), &[]));
    assert!(
        hindrance.cause.contains("BackoffLimitExceeded: too often"),
        "{hindrance:?}"
    );
    assert_eq!(hindrance.patience, Duration::ZERO);
}

#[test]
fn what_a_driver_pours_out_is_cut_to_its_first_line() {
    assert_eq!(in_short("too small.\nUsage: mkfs"), "too small. ...");
    assert_eq!(in_short("plain"), "plain");
    let long = "x".repeat(1000);
    assert_eq!(in_short(&long).len(), 404);
}

#[test]
fn a_node_that_the_cluster_adds_is_waited_for_as_long_as_the_user_wants() {
    let unplaced = json!({"metadata": {"name": "iosonde-x-0"}, "spec": {"containers": []}, "status": {"phase": "Pending"}});
    for reason in ["TriggeredScaleUp", "Nominated"] {
        let events = [
            ("FailedScheduling", "0/2 nodes are available"),
            (reason, ""),
        ];
        let seen = sight(Value::Null, unplaced.clone(), json!([]), &events);
        let State::Hindered(hindrance) = seen.judge() else {
            panic!("{reason}");
        };
        assert_eq!(hindrance.patience, Duration::MAX);
        assert!(hindrance.cause.contains("adds a node"), "{hindrance:?}");
        assert!(hindrance.remedy.contains("--timeout"), "{hindrance:?}");
    }
}
