use super::due_pods::judge_due;
use super::*;
use crate::diagnose::PodState;
use crate::fake_api::{ApiAnswer, list, serve};
use serde_json::json;

fn pod(value: serde_json::Value) -> Pod {
    serde_json::from_value(value).unwrap()
}

#[test]
fn pod_end_cause_includes_its_last_output() {
    let killed = pod(json!({"status": {"phase": "Failed", "containerStatuses": [{
        "name": "iosonde", "image": "x", "imageID": "x", "ready": false, "restartCount": 2,
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    }]}}));
    assert_eq!(restarts(&killed), 2);
    let ended = |pod: &Pod, log: &str| why_ended(pod, log).to_string();
    assert_eq!(ended(&killed, ""), "OOMKilled (exit status 137)");
    let condition = FailureCondition::NoResult {
        reason: Some("OOMKilled".to_owned()),
        exit_code: Some(137),
        last_line: Some("two".to_owned()),
    };
    assert_eq!(why_ended(&killed, "one\ntwo\n\n"), condition);
    let said = condition.to_string();
    assert!(said.ends_with("its last words are: two"), "{said}");
    let evicted = pod(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    assert_eq!(ended(&evicted, ""), "Evicted");
}

#[test]
fn pod_annotation_announces_the_number_of_pods() {
    let of = |count: &str| pod(json!({"metadata": {"annotations": {PODS_ANNOTATION: count}}}));
    assert_eq!(announced(&[of("8"), of("8")]), 8);
    assert_eq!(announced(&[]), 1);
}

#[test]
fn pods_are_waited_for_until_the_job_fails() {
    let job = json!({"metadata": {}, "spec": {"completions": 2, "template": {}},
        "status": {"conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]}});
    let failed: Job = serde_json::from_value(job).unwrap();
    let running = pod(
        json!({"metadata": {"name": "iosonde-x-0"}, "status": {"phase": "Running",
        "containerStatuses": [{"name": "iosonde", "image": "x", "imageID": "x", "ready": true,
        "restartCount": 0, "state": {"running": {}}}]}}),
    );
    let seen = |job: Option<&Job>, pods: &[Pod]| {
        judge_due(&ObservedPod::each(
            "iosonde-x",
            job.cloned(),
            pods.to_vec(),
            &[],
            &[],
        ))
    };
    assert_eq!(
        seen(None, std::slice::from_ref(&running)),
        PodState::Running
    );
    assert!(matches!(seen(None, &[]), PodState::Waiting(_)));
    for pods in [vec![], vec![running]] {
        let PodState::Problem(problem) = seen(Some(&failed), &pods) else {
            panic!("the run is over");
        };
        let is_deadline = matches!(problem.condition, FailureCondition::DeadlinePassed { .. });
        assert!(is_deadline, "{problem:?}");
    }
}

#[test]
fn unschedulable_pod_of_a_manifest_is_explained_with_tolerations() {
    let waiting = json!({"metadata": {"name": "iosonde-x-0"}, "spec": {"containers": []},
        "status": {"phase": "Pending"}});
    let event = json!({"metadata": {}, "involvedObject": {"name": "iosonde-x-0"},
        "reason": "FailedScheduling", "message": "1 node(s) had untolerated taint(s)"});
    let node = json!({"metadata": {"name": "n1"},
        "spec": {"taints": [{"key": "bench", "value": "alone", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let runtime = runtime().unwrap();
    let (objects, _) = serve(&runtime, move |request, _| match request {
        _ if request.contains("/jobs/") => ApiAnswer::Status(404),
        _ if request.contains("/events") => list(std::slice::from_ref(&event)),
        _ if request.contains("/nodes") => list(std::slice::from_ref(&node)),
        _ => list(std::slice::from_ref(&waiting)),
    });
    let collector = ResultCollector {
        cluster: objects.cluster,
        id: "x".to_owned(),
        timeout: Duration::ZERO,
        parts: RefCell::default(),
    };
    let mut watch = SetupObserver {
        tell: &mut |_: SetupEvent<'_>| {},
        interrupts: &|| 0,
    };
    let collected = runtime.block_on(collector.collect_results(&mut watch));
    let Err(RunError::NotReady(failure)) = collected else {
        panic!("no node takes the pod");
    };
    let pod = FailedObject::named_pod("iosonde-x-0");
    assert_eq!(failure.object(), Some(&pod));
    let Some(FailureCondition::Unschedulable { tolerations, .. }) = failure.condition() else {
        panic!("{failure:?}");
    };
    assert_eq!(tolerations, &["bench=alone:NoSchedule"]);
}
