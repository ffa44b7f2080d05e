//! Creates a namespace for runs, and removes it after the last of them.

use crate::api::{self, RequestError};
use crate::connect::KubeCluster;
use crate::manifest::RUN_LABEL;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition, RemainingObject};
use iosonde_result::run_error::{ClusterRequest, RunError};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use kube::Resource;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Label of such a namespace. Its value is the id of the run that created it.
pub(crate) const MADE_LABEL: &str = "iosonde/made-for";
/// Annotation with the id of the run that entered last.
const ENTERED: &str = "iosonde/entered";
/// Polling interval of all waits.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time to wait for the service account of a new namespace. An earlier Job is retried late.
const ACCOUNT: Duration = Duration::from_secs(5);
/// Time within which the Job of a run that has entered a namespace appears in it.
const ENTRY: Duration = Duration::from_secs(10);
/// Timeout for the removal of an empty namespace.
const REMOVAL: Duration = Duration::from_secs(90);
const _: () = assert!(ENTRY.as_secs() < REMOVAL.as_secs());
/// Seconds within which a cluster usually creates its default objects in a new namespace.
const BY_ITSELF_S: i64 = 5;
/// Default objects that may be created later, known by name.
const BY_ITSELF: [&str; 3] = [
    "kube-root-ca.crt",
    "openshift-service-ca.crt",
    "istio-ca-root-cert",
];

/// Enters the run's namespace, creating it if missing. A leaving run sees the annotation.
pub(crate) async fn enter(
    cluster: &KubeCluster,
    id: &str,
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    let name = &cluster.namespace;
    let failed = |error: kube::Error| {
        let name = name.clone();
        api::failed(ClusterRequest::CreateNamespace { name }, &error)
    };
    let begun = Instant::now();
    while is_wanted() {
        // Other runs may remove and create it again and again.
        if begun.elapsed() > REMOVAL {
            return Err(stuck(name));
        }
        match namespace_api(cluster).get_opt(name).await.map_err(failed)? {
            None => {
                if create_namespace(cluster, id).await.map_err(failed)? {
                    return Ok(());
                }
            }
            Some(there) if is_going(&there) => tokio::time::sleep(POLL_INTERVAL).await,
            Some(there) if !is_made_for_runs(&there) => return Ok(()),
            Some(_) => {
                let entered = json!({"metadata": {"annotations": {ENTERED: id}}});
                let (patch, plainly) = (Patch::Merge(entered), PatchParams::default());
                match namespace_api(cluster).patch(name, &plainly, &patch).await {
                    Ok(there) if !is_going(&there) => return Ok(()),
                    Err(error) if !api::is_missing(&error) => return Err(failed(error)),
                    _ => {}
                }
            }
        }
    }
    Err(RunError::Interrupted)
}

/// Creates the namespace. Returns `false` if it already exists.
async fn create_namespace(cluster: &KubeCluster, id: &str) -> Result<bool, kube::Error> {
    let name = &cluster.namespace;
    let owned = |all: &[(&str, &str)]| {
        let owned = all
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Some(owned.collect())
    };
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: owned(&[
                ("app.kubernetes.io/managed-by", "iosonde"),
                (MADE_LABEL, id),
            ]),
            annotations: owned(&[(ENTERED, id)]),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let post = PostParams::default();
    match namespace_api(cluster).create(&post, &namespace).await {
        Err(error) if api::is_there(&error) => return Ok(false),
        created => created?,
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), name);
    let begun = Instant::now();
    while let Ok(None) = accounts.get_opt("default").await
        && begun.elapsed() < ACCOUNT
    {
        tokio::time::sleep(POLL_INTERVAL / 4).await;
    }
    Ok(true)
}

/// Whether the namespace was created for runs.
pub(crate) fn is_made_for_runs(namespace: &Namespace) -> bool {
    let labels = namespace.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(MADE_LABEL))
}

/// Whether the namespace is being removed, so that no objects can be created in it.
pub(crate) fn is_going(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

/// Removes a namespace that was created for runs, unless it contains a run. `own` is the id of the
/// leaving run, `is_wanted` whether the user still waits. Returns whether it was removed.
///
/// # Errors
/// If it remains although no run is in it.
pub(crate) async fn leave(
    cluster: &KubeCluster,
    own: Option<&str>,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool, RunError> {
    let name = &cluster.namespace;
    let failed = |error: kube::Error, verb: &'static str, resource: &'static str| {
        let request = RequestError {
            verb,
            resource,
            error,
        };
        namespace_not_removed(name, request.condition())
    };
    let begun = Instant::now();
    let mut waited_for = own.map(str::to_owned);
    loop {
        let there = match namespace_api(cluster).get_opt(name).await {
            Ok(Some(there)) if is_made_for_runs(&there) => there,
            // A user who may not read namespaces has created none.
            Err(error) if api::is_refused(&error) => return Ok(false),
            Ok(_) => return Ok(false),
            Err(error) => {
                again(&error, begun, is_wanted)
                    .await
                    .ok_or_else(|| failed(error, "get", "namespaces"))?;
                continue;
            }
        };
        if is_going(&there) {
            return wait_until_gone(cluster, &there, is_wanted).await;
        }
        match inhabitant(cluster, &there).await {
            Ok(Some(Inhabitant::Run)) => return Ok(false),
            Ok(Some(Inhabitant::Other { kind, name: other })) => {
                let condition = FailureCondition::ForeignObject { kind, name: other };
                return Err(namespace_not_removed(name, condition));
            }
            Ok(None) => {}
            Err(error) => {
                again(&error, begun, is_wanted)
                    .await
                    .ok_or_else(|| failed(error, "list", "objects"))?;
                continue;
            }
        }
        // Another run has entered: its Job is already gone again, or will appear soon.
        if let Some(newest) = newest(&there)
            && waited_for.as_deref() != Some(newest)
        {
            waited_for = Some(newest.to_owned());
            let entered = Instant::now();
            while entered.elapsed() < ENTRY {
                if !is_wanted() {
                    return Err(namespace_not_removed(name, FailureCondition::OtherRun));
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            continue;
        }
        match remove(cluster, &there).await {
            Ok(()) => return wait_until_gone(cluster, &there, is_wanted).await,
            // The namespace was modified since it was read.
            Err(error) if api::is_conflict(&error) && begun.elapsed() < REMOVAL && is_wanted() => {}
            Err(error) => return Err(failed(error, "delete", "namespaces")),
        }
    }
}

/// Like [`leave`], for a failed start. A namespace that only this run entered is removed unchecked.
pub(crate) async fn undo_entry(
    cluster: &KubeCluster,
    id: &str,
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    let there = namespace_api(cluster)
        .get_opt(&cluster.namespace)
        .await
        .ok()
        .flatten();
    let labels = there
        .as_ref()
        .and_then(|there| there.metadata.labels.as_ref());
    let maker = labels.and_then(|labels| labels.get(MADE_LABEL));
    if let Some(there) = &there
        && maker.is_some_and(|maker| maker == id)
        && newest(there) == Some(id)
        && remove(cluster, there).await.is_ok()
    {
        return wait_until_gone(cluster, there, is_wanted).await.map(drop);
    }
    leave(cluster, Some(id), is_wanted).await.map(drop)
}

/// Requests the removal of the namespace, if it is unmodified since it was read.
async fn remove(cluster: &KubeCluster, there: &Namespace) -> Result<(), kube::Error> {
    let as_seen = DeleteParams::default().preconditions(Preconditions {
        uid: there.metadata.uid.clone(),
        resource_version: there.metadata.resource_version.clone(),
    });
    match namespace_api(cluster)
        .delete(&cluster.namespace, &as_seen)
        .await
    {
        Err(error) if !api::is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Waits until the namespace is gone, or replaced by another of the same name.
async fn wait_until_gone(
    cluster: &KubeCluster,
    there: &Namespace,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool, RunError> {
    let name = &cluster.namespace;
    let begun = Instant::now();
    loop {
        match namespace_api(cluster).get_opt(name).await {
            Ok(Some(now)) if now.metadata.uid == there.metadata.uid => {}
            Ok(_) => return Ok(true),
            // Permissions granted within the namespace vanish with it.
            Err(error) if api::is_refused(&error) => return Ok(true),
            Err(_) => {}
        }
        if !is_wanted() {
            let object = RemainingObject::Namespace;
            return Err(namespace_not_removed(
                name,
                FailureCondition::RemovalInterrupted { object },
            ));
        }
        if begun.elapsed() > REMOVAL {
            let condition = FailureCondition::StillThere {
                object: RemainingObject::Namespace,
                seconds: Some(REMOVAL.as_secs()),
            };
            return Err(namespace_not_removed(name, condition));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Sleeps before a retry. Returns `None` after the timeout, on an interrupt or if refused.
async fn again(error: &kube::Error, begun: Instant, is_wanted: &dyn Fn() -> bool) -> Option<()> {
    if !api::is_away(error) || begun.elapsed() > REMOVAL || !is_wanted() {
        return None;
    }
    tokio::time::sleep(POLL_INTERVAL).await;
    Some(())
}

/// Returns the id of the run that entered last.
fn newest(namespace: &Namespace) -> Option<&str> {
    let annotations = namespace.metadata.annotations.as_ref()?;
    annotations.get(ENTERED).map(String::as_str)
}

/// Content of a namespace that prevents its removal.
#[derive(Debug, PartialEq, Eq)]
enum Inhabitant {
    /// Another run, which will remove the namespace itself.
    Run,
    /// Another object.
    Other {
        /// Its kind, in words.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// Returns the content that prevents removal. Objects that are not of a run come first.
async fn inhabitant(
    cluster: &KubeCluster,
    namespace: &Namespace,
) -> Result<Option<Inhabitant>, kube::Error> {
    let found_objects = futures::try_join!(
        found::<Job>(cluster),
        found::<Pod>(cluster),
        found::<PersistentVolumeClaim>(cluster),
        find_listable::<CronJob>(cluster),
        find_listable::<StatefulSet>(cluster),
        find_listable::<Deployment>(cluster),
        find_listable::<DaemonSet>(cluster),
        find_listable::<Service>(cluster),
        find_listable::<ConfigMap>(cluster),
        find_listable::<Secret>(cluster),
    )?;
    let (jobs, pods, claims, plans, sets, copies, daemons, services, maps, secrets) = found_objects;
    let by_hand = |mut found: Vec<ObjectMeta>| {
        found.retain(|one| !comes_by_itself(one, &namespace.metadata));
        found
    };
    let all = [
        ("job", jobs),
        ("pod", pods),
        ("claim", claims),
        ("cron job", plans),
        ("stateful set", sets),
        ("deployment", copies),
        ("daemon set", daemons),
        ("service", services),
        ("config map", by_hand(maps)),
        ("secret", by_hand(secrets)),
    ];
    Ok(first(&all))
}

/// Selects the object to report.
fn first(found: &[(&str, Vec<ObjectMeta>)]) -> Option<Inhabitant> {
    let is_of_run = |one: &ObjectMeta| {
        let labels = one.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(RUN_LABEL))
    };
    let each = || (found.iter()).flat_map(|(kind, found)| found.iter().map(move |one| (kind, one)));
    let other = each().find(|(_, one)| !is_of_run(one)).map(|(kind, one)| {
        let name = one.name.as_deref().unwrap_or_default();
        Inhabitant::Other {
            kind: (*kind).to_owned(),
            name: name.to_owned(),
        }
    });
    other.or(each().next().map(|_| Inhabitant::Run))
}

/// Whether the object is a certificate, token or the like that the cluster creates by default.
fn comes_by_itself(one: &ObjectMeta, namespace: &ObjectMeta) -> bool {
    let made_s = |meta: &ObjectMeta| {
        let made = meta.creation_timestamp.as_ref();
        made.map_or(0, |made| made.0.as_second())
    };
    let is_token = one
        .annotations
        .as_ref()
        .is_some_and(|all| all.contains_key("kubernetes.io/service-account.name"));
    let is_known = one
        .name
        .as_deref()
        .is_some_and(|name| BY_ITSELF.contains(&name));
    is_token || is_known || made_s(one) - made_s(namespace) < BY_ITSELF_S
}

/// Like [`found`], but kinds that this user may not list count as empty.
async fn find_listable<T>(cluster: &KubeCluster) -> Result<Vec<ObjectMeta>, kube::Error>
where
    T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug,
{
    match found::<T>(cluster).await {
        Err(error) if api::is_refused(&error) => Ok(Vec::new()),
        found => found,
    }
}

async fn found<T>(cluster: &KubeCluster) -> Result<Vec<ObjectMeta>, kube::Error>
where
    T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let there: Api<T> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let list = there.list_metadata(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(|one| one.metadata).collect())
}

fn namespace_not_removed(name: &str, condition: FailureCondition) -> RunError {
    let object = FailedObject::Namespace {
        name: name.to_owned(),
        is_made_for_runs: true,
    };
    RunError::not_removed(object, condition)
}

fn stuck(name: &str) -> RunError {
    let object = FailedObject::Namespace {
        name: name.to_owned(),
        is_made_for_runs: false,
    };
    let seconds = REMOVAL.as_secs();
    RunError::not_ready(object, FailureCondition::NamespaceTerminating { seconds })
}

fn namespace_api(cluster: &KubeCluster) -> Api<Namespace> {
    Api::all(cluster.client.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, label: Option<&str>, created: &str) -> ObjectMeta {
        let labels = label.map(|label| json!({label: "1"}));
        let object = json!({"name": name, "labels": labels, "creationTimestamp": created});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn foreign_object_is_reported_before_another_run() {
        let at = "2026-01-01T00:00:00Z";
        let ours = || object("iosonde-1", Some(RUN_LABEL), at);
        assert_eq!(first(&[("job", vec![])]), None);
        let jobs = ("job", vec![ours()]);
        assert_eq!(
            first(&[jobs.clone(), ("pod", vec![ours()])]),
            Some(Inhabitant::Run)
        );
        let pods = vec![ours(), object("web", None, at)];
        assert_eq!(
            first(&[jobs, ("pod", pods)]),
            Some(Inhabitant::Other {
                kind: "pod".to_owned(),
                name: "web".to_owned(),
            })
        );
    }

    #[test]
    fn objects_that_clusters_add_to_namespaces_are_ignored() {
        let namespace = object("lab", None, "2026-01-01T00:00:00Z");
        let comes = |name, at| comes_by_itself(&object(name, None, at), &namespace);
        assert!(comes("mesh-ca", "2026-01-01T00:00:03Z"));
        assert!(!comes("creds", "2026-01-01T00:00:20Z"));
        assert!(comes("kube-root-ca.crt", "2026-01-01T00:05:00Z"));
    }
}
