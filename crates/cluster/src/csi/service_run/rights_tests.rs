//! Compares the requests of a session with the roles that it prints for a user without rights.

use super::*;
use crate::class_retention::ClassRetention;
use crate::csi::csi_preflight::roles;
use crate::csi::delete_all;
use crate::fake_api::{ApiAnswer, UsedRight, list, serve};
use crate::leftovers::remove_retained_volumes_of;
use crate::lifecycle::extend_lease;
use crate::run_objects::list_events;
use kube::Resource;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Resources and verbs whose requests are not part of the session. The classes are listed before
/// it. Newer servers require `create` of pods/exec for a command that the client starts with GET.
const USED_ELSEWHERE: [(&str, &str); 3] = [
    ("pods/exec", "create"),
    ("storageclasses", "list"),
    ("volumesnapshotclasses", "list"),
];

/// Returns the object of a request, in its final state.
fn answer(request: &str) -> ApiAnswer {
    let object = |kind: &str, more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": "x", "uid": "u", "resourceVersion": "5"}});
        for (key, value) in more.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    };
    let is_exec = request.contains("/exec");
    let ended = json!({"terminated": {"exitCode": 0, "message": "no sum"}});
    let reader = json!({"name": "reader", "state": ended, "image": "", "imageID": "",
        "ready": false, "restartCount": 0});
    let retained = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": "bench", "name": "iosonde-0a1b2c3d-data"}},
        "metadata": {"name": "pv-1",
            "annotations": {"pv.kubernetes.io/provisioned-by": "disk"}}});
    ApiAnswer::Document(match request {
        _ if is_exec || request.contains("/persistentvolumes/") => return ApiAnswer::Status(404),
        _ if request.contains("/persistentvolumes") => return list(&[retained]),
        _ if request.contains("watch=true") => {
            let kind = match request {
                _ if request.contains("/pods") => "Pod",
                _ if request.contains("/persistentvolumeclaims") => "PersistentVolumeClaim",
                _ => "VolumeSnapshot",
            };
            let mut later = object(kind, json!({}));
            later["metadata"]["resourceVersion"] = json!("6");
            let event = json!({"type": "MODIFIED", "object": later});
            return ApiAnswer::Watch(Duration::ZERO, vec![event]);
        }
        _ if request.contains("/events") => return list(&[]),
        _ if request.contains("/volumesnapshots") && request.contains("labelSelector") => {
            return list(&[object("VolumeSnapshot", json!({}))]);
        }
        _ if request.contains("/volumesnapshots") => {
            object("VolumeSnapshot", json!({"status": {"readyToUse": true}}))
        }
        _ if request.contains("/pods") => object(
            "Pod",
            json!({"status": {"initContainerStatuses": [reader]}}),
        ),
        _ if request.contains("/persistentvolumeclaims") => object(
            "PersistentVolumeClaim",
            json!({"status": {"capacity": {"storage": "9Gi"}}}),
        ),
        _ => {
            let mut job = object("Job", json!({}));
            job["apiVersion"] = json!("batch/v1");
            job
        }
    })
}

fn run_on(objects: &RunObjects) -> ServiceRun {
    let mut cluster = ClusterOptions::new("sc://fast".parse().unwrap());
    // All objects are there at once, and removed ones stay.
    cluster.timeout = Duration::ZERO;
    ServiceRun {
        objects: objects.clone(),
        cluster,
        options: CsiOptions::of_one_round(&DataService::ALL),
        class: DataServiceClass {
            name: "sc://fast".to_owned(),
            driver: None,
            snapshot_class: Some("daily".to_owned()),
            expands: Some(true),
        },
        image: "busybox".to_owned(),
        owner: OwnerReference::default(),
        pod: "iosonde-0a1b2c3d-0-x".to_owned(),
        source: "iosonde-0a1b2c3d-data".to_owned(),
        labels: BTreeMap::new(),
        switches: ServiceSwitches::default(),
        left_out: Mutex::default(),
    }
}

/// Sends the requests of all parts of a session that do not tolerate a refusal.
async fn use_all_services(run: &ServiceRun, objects: &RunObjects) {
    let (tell, _messages) = std::sync::mpsc::channel();
    let round = ServiceRound {
        number: 1,
        data_bytes: 1 << 20,
        volume_bytes: 1 << 30,
        first_object: 0,
        tell: &tell,
    };
    objects.create(&run.spec()).await.unwrap();
    objects.jobs().get(&objects.job).await.unwrap();
    let lease = extend_lease(objects.clone(), Instant::now(), Duration::from_secs(60));
    let leased = tokio::time::timeout(Duration::from_millis(200), lease).await;
    assert!(leased.is_err(), "a lease does not end");
    objects.all_pods().await;
    assert!(run.take_snapshot("s").await.is_ok());
    let source = (ClaimSource::Snapshot("s"), 0);
    assert!(run.read_new_volume(round, source, "sum").await.is_ok());
    assert!(run.remove_volume(round, 0).await.is_ok());
    assert!(run.remove_snapshot(round, "s", false).await.is_ok());
    let mut written = None;
    let cloned = run.clone_volume(round, 1, "sum", &mut written).await;
    assert!(cloned.is_ok());
    // The server has no exec: the data cannot be read.
    assert!(run.expand_source(round, "sum").await.is_err());
    let names = BTreeSet::from(["s".to_owned()]);
    list_events(&objects.cluster, &names).await.unwrap();
    objects.ask_to_delete().await.unwrap();
    let ours = ListParams::default().labels(&objects.label());
    delete_all(&snapshots(&objects.cluster), &ours)
        .await
        .unwrap();
    let removed = remove_retained_volumes_of(&objects.cluster, &objects.id).await;
    assert_eq!(removed, Ok(Some(1)));
}

/// Waits for the second version of an object, which only a watch reports.
async fn watch_object<K>(run: &ServiceRun, api: &Api<K>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let judge = |object: &K| match object.meta().resource_version.as_deref() {
        Some("6") => ObjectState::Reached(()),
        _ => ObjectState::Waiting,
    };
    let wait = run.begin_wait(&["x"]);
    assert!(wait.wait(api, "x", judge).await.is_ok());
}

/// Sends the requests of waits that do not end at once, and of a pod that is lost.
async fn use_watches(objects: &RunObjects) {
    let mut run = run_on(objects);
    run.cluster.timeout = Duration::from_secs(60);
    watch_object(&run, &objects.pods()).await;
    watch_object(&run, &run.claims()).await;
    watch_object(&run, &snapshots(&objects.cluster)).await;
    // The server's answers are no lists.
    let _ = objects.observe_pods().await;
}

/// Returns the rights that the rules of the roles grant.
fn granted_rights(roles: &str) -> BTreeSet<UsedRight> {
    let rules = roles.lines().filter_map(|line| {
        let (group, rest) = line
            .strip_prefix("- {apiGroups: [\"")?
            .split_once("\"], resources: [")?;
        let (resource, verbs) = rest.split_once("], verbs: [")?;
        Some((group, resource, verbs.trim_end_matches("]}")))
    });
    let rights = rules.flat_map(|(group, resource, verbs)| {
        verbs.split(", ").map(move |verb| UsedRight {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
        })
    });
    rights.collect()
}

#[test]
fn printed_roles_grant_no_right_that_a_session_leaves_unused() {
    let runtime = crate::connect::runtime().unwrap();
    let (objects, requests) = serve(&runtime, |request, _| answer(request));
    let run = run_on(&objects);
    runtime.block_on(use_all_services(&run, &objects));
    runtime.block_on(use_watches(&objects));
    let granted = granted_rights(&roles("bench", &run.options, ClassRetention::Retains));
    assert!(granted.len() > 20, "{granted:?}");
    let used = requests.used_rights();
    let unused: Vec<&UsedRight> = granted
        .difference(&used)
        .filter(|right| !USED_ELSEWHERE.contains(&(right.resource.as_str(), right.verb.as_str())))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

/// Whether a rule of the roles grants the right.
fn is_granted(roles: &str, right: &UsedRight) -> bool {
    let of_resource = format!(
        "{{apiGroups: [\"{}\"], resources: [{}], verbs: [",
        right.group, right.resource
    );
    let mut verbs = roles
        .lines()
        .filter_map(|line| line.split_once(&of_resource))
        .flat_map(|(_, verbs)| verbs.trim_end_matches("]}").split(", "));
    verbs.any(|verb| verb == right.verb)
}

#[test]
fn printed_roles_grant_all_requests_of_a_session() {
    let runtime = crate::connect::runtime().unwrap();
    let (objects, requests) = serve(&runtime, |request, _| answer(request));
    let run = run_on(&objects);
    runtime.block_on(use_all_services(&run, &objects));
    let roles = roles("bench", &run.options, ClassRetention::Retains);
    let used = requests.used_rights();
    let lacking: Vec<&UsedRight> = used
        .iter()
        .filter(|right| !is_granted(&roles, right))
        .collect();
    assert!(lacking.is_empty(), "{lacking:?} of {roles}");
    assert!(used.len() >= 18, "{used:?}");
}
