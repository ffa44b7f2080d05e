use super::*;
use serde_json::json;

fn pod(value: serde_json::Value) -> Pod {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_a_pod_without_result_said_last_is_the_cause() {
    let killed = pod(json!({"status": {"phase": "Failed", "containerStatuses": [{
        "name": "iosonde", "image": "x", "imageID": "x", "ready": false, "restartCount": 2,
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    }]}}));
    assert_eq!(restarts(&killed), 2);
    assert_eq!(why_ended(&killed, ""), "OOMKilled (exit status 137)");
    let said = why_ended(&killed, "one\ntwo\n\n");
    assert!(said.ends_with("its last words are: two"), "{said}");
    let evicted = pod(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    assert_eq!(why_ended(&evicted, ""), "Evicted");
}

#[test]
fn a_pod_says_how_many_there_are() {
    let of = |count: &str| pod(json!({"metadata": {"annotations": {PODS_ANNOTATION: count}}}));
    assert_eq!(announced(&[of("8"), of("8")]), 8);
    assert_eq!(announced(&[]), 1);
}

#[test]
fn pods_are_waited_for_while_one_runs_and_none_is_lost_for_good() {
    let job = json!({"metadata": {}, "spec": {"completions": 2, "template": {}}, "status": {"conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]}});
    let failed: Job = serde_json::from_value(job).unwrap();
    let running = pod(
        json!({"metadata": {"name": "iosonde-x-0"}, "status": {"phase": "Running",
        "containerStatuses": [{"name": "iosonde", "image": "x", "imageID": "x", "ready": true,
        "restartCount": 0, "state": {"running": {}}}]}}),
    );
    let seen = |job: Option<&Job>, pods: &[Pod]| {
        judge_due(&Sight::each(
            "iosonde-x",
            job.cloned(),
            pods.to_vec(),
            &[],
            &[],
        ))
    };
    assert_eq!(seen(None, std::slice::from_ref(&running)), State::Running);
    assert!(matches!(seen(None, &[]), State::Waiting(_)));
    for pods in [vec![], vec![running]] {
        let State::Hindered(hindrance) = seen(Some(&failed), &pods) else {
            panic!("the run is over");
        };
        assert!(hindrance.cause.contains("deadline"), "{hindrance:?}");
    }
}
