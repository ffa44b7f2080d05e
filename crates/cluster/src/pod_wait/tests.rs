use super::*;
use crate::fake_api::{ApiAnswer, list, serve};
use iosonde_result::run_error::pod_failure::PodRefusal;
use iosonde_result::run_error::{ApiFailure, ClusterObstacle, UnsupportedFeature};
use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};
use std::time::Duration;

const NOW: Duration = Duration::ZERO;
const POD: &str = "iosonde-0a1b2c3d-0-x";

fn run_job() -> Value {
    json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "iosonde-0a1b2c3d",
        "resourceVersion": "5"}})
}

fn run_pod(status: Value) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": POD}, "status": status,
        "spec": {"nodeName": "n1", "containers": []}})
}

fn running() -> Value {
    run_pod(
        json!({"phase": "Running", "containerStatuses": [{"name": "iosonde", "image": "",
        "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]}),
    )
}

/// Returns the pods or the error of a wait, and the texts that the user saw.
fn wait(objects: &RunObjects, runtime: &tokio::runtime::Runtime) -> Result<usize, RunError> {
    let mut watch = SetupObserver {
        tell: &mut |_: SetupEvent<'_>| {},
        interrupts: &|| 0,
    };
    let waited = objects.wait(1, Duration::from_secs(20), &mut watch);
    runtime.block_on(waited).map(|pods| pods.len())
}

#[test]
fn new_pods_are_watched_by_selector_and_not_listed() {
    let runtime = crate::connect::runtime().unwrap();
    let (objects, requests) = serve(&runtime, |request, _| {
        let is_watch = request.contains("watch=true");
        match request {
            _ if is_watch && request.contains("/pods") => ApiAnswer::Watch(
                Duration::from_millis(2500),
                vec![json!({"type": "ADDED", "object": running()})],
            ),
            _ if is_watch => ApiAnswer::Watch(NOW, vec![]),
            _ if request.contains("/jobs/") => ApiAnswer::Document(run_job()),
            _ => list(&[]),
        }
    });
    assert_eq!(wait(&objects, &runtime), Ok(1));
    let all = requests.list_all();
    for kind in ["/jobs/", "/pods", "/persistentvolumeclaims"] {
        let lists = requests.count(&[kind]) - requests.count(&[kind, "watch=true"]);
        assert_eq!(lists, 0, "{kind}: {all:?}");
    }
    assert_eq!(
        requests.count(&["watch=true", "fieldSelector=metadata.name=iosonde-0a1b2c3d"]),
        1
    );
    assert_eq!(
        requests.count(&["/pods", "labelSelector=iosonde/run=0a1b2c3d"]),
        1
    );
    let events = requests.count(&["/events"]);
    let about = requests.count(&[
        "/events",
        "fieldSelector=involvedObject.name=iosonde-0a1b2c3d",
    ]);
    assert!(events > 0 && events == about, "{all:?}");
    assert!(events <= 4, "{all:?}");
}

/// Waits on a server whose watches end in this way, and whose pod runs at the third list.
fn wait_without_watch(answer: fn() -> ApiAnswer) -> (Duration, usize) {
    let runtime = crate::connect::runtime().unwrap();
    let (objects, requests) = serve(&runtime, move |request, before| match request {
        _ if request.contains("watch=true") => answer(),
        _ if request.contains("/jobs/") => ApiAnswer::Document(run_job()),
        _ if request.contains("/pods") && before >= 2 => list(&[running()]),
        _ => list(&[]),
    });
    let begun = Instant::now();
    assert_eq!(wait(&objects, &runtime), Ok(1));
    let lists = requests.count(&["/pods"]) - requests.count(&["/pods", "watch=true"]);
    (begun.elapsed(), lists)
}

#[test]
fn refused_and_broken_watches_fall_back_to_calm_lists() {
    for answer in [
        || ApiAnswer::Status(403),
        || ApiAnswer::Ended,
        || ApiAnswer::Status(410),
    ] {
        let (took, lists) = wait_without_watch(answer);
        assert_eq!(lists, 3);
        assert!(took >= 2 * crate::object_watch::LIST_PERIOD, "{took:?}");
    }
}

#[test]
fn problem_in_a_watched_event_ends_the_wait() {
    let runtime = crate::connect::runtime().unwrap();
    let refused = json!({"type": "ADDED", "object": {"kind": "Event", "apiVersion": "v1",
        "metadata": {"name": "e"}, "involvedObject": {"name": "iosonde-0a1b2c3d"},
        "reason": "FailedCreate", "message": "exceeded quota: storage"}});
    let (objects, _) = serve(&runtime, move |request, _| {
        let is_job_event = request.contains("involvedObject.name=iosonde-0a1b2c3d&");
        match request {
            _ if request.contains("watch=true") && is_job_event => {
                ApiAnswer::Watch(Duration::from_millis(300), vec![refused.clone()])
            }
            _ if request.contains("watch=true") => ApiAnswer::Watch(NOW, vec![]),
            _ if request.contains("/jobs/") => ApiAnswer::Document(run_job()),
            _ => list(&[]),
        }
    });
    let error = wait(&objects, &runtime).unwrap_err();
    let RunError::NotReady(failure) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(failure.object(), Some(&FailedObject::only_pod()));
    let refused = FailureCondition::PodRefused {
        reason: PodRefusal::Quota,
        message: "exceeded quota: storage".to_owned(),
    };
    assert_eq!(failure.condition(), Some(&refused));
}

#[test]
fn refused_list_is_an_error_at_once() {
    let runtime = crate::connect::runtime().unwrap();
    let (objects, _) = serve(&runtime, |_, _| ApiAnswer::Status(403));
    let error = wait(&objects, &runtime).unwrap_err();
    let RunError::NoFeature { cause } = &error else {
        panic!("{error:?}");
    };
    let is_forbidden_watch = matches!(
        &**cause,
        UnsupportedFeature::Cluster(ClusterObstacle::RequestFailed {
            request: ClusterRequest::WatchPod,
            failure: ApiFailure::Refused { code: 403, .. },
        })
    );
    assert!(is_forbidden_watch, "{error:?}");
}

#[test]
fn permanent_pod_problem_is_reported_before_temporary() {
    let pod = |name: &str, status: serde_json::Value| -> Pod {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": []}, "status": status});
        serde_json::from_value(pod).unwrap()
    };
    let event = |reason: &str| -> Event {
        let event = json!({"metadata": {}, "involvedObject": {"name": "iosonde-x-0"},
            "reason": reason, "message": "no room"});
        serde_json::from_value(event).unwrap()
    };
    let waits = ObservedPod {
        pod: Some(pod("iosonde-x-0", json!({"phase": "Pending"}))),
        events: vec![event("FailedScheduling"), event("TriggeredScaleUp")],
        ..ObservedPod::default()
    };
    let evicted = ObservedPod {
        pod: Some(pod(
            "iosonde-x-1",
            json!({"phase": "Failed", "reason": "Evicted"}),
        )),
        ..ObservedPod::default()
    };
    let PodState::Problem(problem) = judge_all(&[waits, evicted], 2) else {
        panic!("both have a problem");
    };
    let is_evicted = matches!(problem.condition, FailureCondition::Evicted { .. });
    assert!(is_evicted, "{problem:?}");
}
