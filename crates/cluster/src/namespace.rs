//! A namespace that is made for runs, and goes with the last of them.

use crate::api;
use crate::connect::Cluster;
use crate::manifest::RUN_LABEL;
use iosonde_result::session::RunError;
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

/// The label of such a namespace; its value is the id of the run that made it.
pub(crate) const MADE_LABEL: &str = "iosonde/made-for";
/// The run that came into it last.
const ENTERED: &str = "iosonde/entered";
/// How often the cluster is asked while something is waited for.
const LOOK: Duration = Duration::from_millis(200);
/// How long a new namespace waits for the account of its pods: a Job that comes before it tries again only after a while.
const ACCOUNT: Duration = Duration::from_secs(5);
/// How long a run that has come into a namespace may take to be seen in it.
const ENTRY: Duration = Duration::from_secs(10);
/// How long an empty namespace may take to go.
const REMOVAL: Duration = Duration::from_secs(90);
/// What clusters put into every namespace by themselves comes that soon after it.
const BY_ITSELF_S: i64 = 60;

/// A run comes into its namespace, which is made if it is not there, or on its way out. Whoever leaves it meanwhile sees that.
pub(crate) async fn enter(cluster: &Cluster, id: &str) -> Result<(), RunError> {
    let name = &cluster.namespace;
    let doing = format!("making the namespace {name}");
    let failed = |error: kube::Error| api::failed(&doing, &error);
    let begun = Instant::now();
    loop {
        match all(cluster).get_opt(name).await.map_err(failed)? {
            None => make(cluster, id).await?,
            Some(there) if is_going(&there) => {
                if begun.elapsed() > REMOVAL {
                    return Err(stuck(name));
                }
                tokio::time::sleep(LOOK).await;
            }
            Some(there) if !is_made_for_runs(&there) => return Ok(()),
            Some(_) => {
                let entered = json!({"metadata": {"annotations": {ENTERED: id}}});
                let (patch, plainly) = (Patch::Merge(entered), PatchParams::default());
                match all(cluster).patch(name, &plainly, &patch).await {
                    Ok(there) if !is_going(&there) => return Ok(()),
                    Err(error) if !api::is_missing(&error) => return Err(failed(error)),
                    _ => {}
                }
            }
        }
    }
}

async fn make(cluster: &Cluster, id: &str) -> Result<(), RunError> {
    let name = &cluster.namespace;
    let labels = [
        ("app.kubernetes.io/managed-by", "iosonde"),
        (MADE_LABEL, id),
    ];
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(
                labels
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let post = PostParams::default();
    match all(cluster).create(&post, &namespace).await {
        // Another run has just done so.
        Err(error) if !api::is_there(&error) => {
            return Err(api::failed(
                &format!("creating the namespace {name}"),
                &error,
            ));
        }
        _ => {}
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), name);
    let begun = Instant::now();
    while let Ok(None) = accounts.get_opt("default").await
        && begun.elapsed() < ACCOUNT
    {
        tokio::time::sleep(LOOK / 4).await;
    }
    Ok(())
}

/// Whether it was made for runs.
pub(crate) fn is_made_for_runs(namespace: &Namespace) -> bool {
    let labels = namespace.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(MADE_LABEL))
}

/// Whether it is being removed: nothing can be made in it.
pub(crate) fn is_going(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

/// A run is over, and nothing of it is left: a namespace that was made for runs goes, unless another run is in it. `own` is
/// the id of the run, where one leaves; `is_wanted` says whether the user still waits. Returns whether it went.
///
/// # Errors
/// When it stays, though no run is in it.
pub(crate) async fn leave(
    cluster: &Cluster,
    own: Option<&str>,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool, RunError> {
    let name = &cluster.namespace;
    let wrong = |error: kube::Error| left(name, &api::chain(&error));
    let begun = Instant::now();
    let mut has_waited = false;
    // The one that is removed: another may be made with its name.
    let mut going: Option<Option<String>> = None;
    loop {
        let there = match all(cluster).get_opt(name).await {
            Ok(there) => there,
            // Rights that were given within the namespace go with it; and whoever may not see namespaces has made none.
            Err(error) if api::is_refused(&error) => return Ok(going.is_some()),
            Err(error) if api::is_away(&error) && begun.elapsed() < REMOVAL && is_wanted() => {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            Err(error) => return Err(wrong(error)),
        };
        let there = there.filter(|there| match &going {
            Some(uid) => there.metadata.uid == *uid,
            None => is_made_for_runs(there),
        });
        let Some(there) = there else {
            return Ok(going.is_some());
        };
        let uid = there.metadata.uid.clone();
        if is_going(&there) {
            going.get_or_insert(uid);
        } else if going.is_none() {
            match inhabitant(cluster, &there).await.map_err(wrong)? {
                Some(Inhabitant::Run) => return Ok(false),
                Some(Inhabitant::Other(what)) => {
                    return Err(left(name, &format!("{what} in it is not of a run")));
                }
                // Another has come into it after this one, and is gone, or yet to be seen.
                None if own.is_some_and(|own| newest(&there) != Some(own)) && !has_waited => {
                    has_waited = true;
                    wait(is_wanted).await;
                    continue;
                }
                None => {}
            }
            let as_seen = DeleteParams::default().preconditions(Preconditions {
                uid: uid.clone(),
                resource_version: there.metadata.resource_version,
            });
            match all(cluster).delete(name, &as_seen).await {
                Ok(_) => going = Some(uid),
                Err(error) if api::is_missing(&error) => going = Some(uid),
                // A run has come into it since.
                Err(error) if api::is_conflict(&error) && is_wanted() => {
                    has_waited = true;
                    wait(is_wanted).await;
                }
                Err(error) => return Err(wrong(error)),
            }
            continue;
        }
        if !is_wanted() {
            return Err(left(name, "it was still there when you interrupted"));
        }
        if begun.elapsed() > REMOVAL {
            let why = format!("it is still there after {} s", REMOVAL.as_secs());
            return Err(left(name, &why));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The run that came into it last.
fn newest(namespace: &Namespace) -> Option<&str> {
    let annotations = namespace.metadata.annotations.as_ref()?;
    annotations.get(ENTERED).map(String::as_str)
}

/// Until a run that has come into a namespace is to be seen in it.
async fn wait(is_wanted: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < ENTRY && is_wanted() {
        tokio::time::sleep(LOOK).await;
    }
}

/// What is in a namespace.
#[derive(Debug, PartialEq, Eq)]
enum Inhabitant {
    /// A run, which will remove the namespace itself.
    Run,
    /// Something else, in words.
    Other(String),
}

/// Who would lose something if the namespace went: somebody else before another run.
async fn inhabitant(
    cluster: &Cluster,
    namespace: &Namespace,
) -> Result<Option<Inhabitant>, kube::Error> {
    let (jobs, pods, claims) = futures::try_join!(
        found::<Job>(cluster),
        found::<Pod>(cluster),
        found::<PersistentVolumeClaim>(cluster),
    )?;
    // What this user may not see is not looked for.
    let (plans, sets, copies, daemons, services, maps, secrets) = futures::join!(
        found::<CronJob>(cluster),
        found::<StatefulSet>(cluster),
        found::<Deployment>(cluster),
        found::<DaemonSet>(cluster),
        found::<Service>(cluster),
        found::<ConfigMap>(cluster),
        found::<Secret>(cluster),
    );
    let by_hand = |found: Result<Vec<ObjectMeta>, kube::Error>| {
        let mut found = found.unwrap_or_default();
        found.retain(|one| !comes_by_itself(one, &namespace.metadata));
        found
    };
    let all = [
        ("the job", jobs),
        ("the pod", pods),
        ("the claim", claims),
        ("the cron job", plans.unwrap_or_default()),
        ("the stateful set", sets.unwrap_or_default()),
        ("the deployment", copies.unwrap_or_default()),
        ("the daemon set", daemons.unwrap_or_default()),
        ("the service", services.unwrap_or_default()),
        ("the config map", by_hand(maps)),
        ("the secret", by_hand(secrets)),
    ];
    Ok(first(&all))
}

/// The one to be told.
fn first(found: &[(&str, Vec<ObjectMeta>)]) -> Option<Inhabitant> {
    let is_of_run = |one: &ObjectMeta| {
        let labels = one.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(RUN_LABEL))
    };
    let each = || (found.iter()).flat_map(|(kind, found)| found.iter().map(move |one| (kind, one)));
    let other = each().find(|(_, one)| !is_of_run(one)).map(|(kind, one)| {
        let name = one.name.as_deref().unwrap_or_default();
        Inhabitant::Other(format!("{kind} {name}"))
    });
    other.or(each().next().map(|_| Inhabitant::Run))
}

/// Certificates, tokens and the like that a cluster puts into every namespace.
fn comes_by_itself(one: &ObjectMeta, namespace: &ObjectMeta) -> bool {
    let made_s = |meta: &ObjectMeta| {
        let made = meta.creation_timestamp.as_ref();
        made.map_or(0, |made| made.0.as_second())
    };
    made_s(one) - made_s(namespace) < BY_ITSELF_S
}

async fn found<T>(cluster: &Cluster) -> Result<Vec<ObjectMeta>, kube::Error>
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

fn left(name: &str, why: &str) -> RunError {
    RunError::Left {
        what: format!("the namespace {name}, which was made for runs"),
        cause: why.to_owned(),
        remedy: format!("if nobody needs it: kubectl delete namespace {name}"),
    }
}

fn stuck(name: &str) -> RunError {
    RunError::Unready {
        what: format!("the namespace {name}"),
        cause: format!(
            "it is being removed, and still there after {} s",
            REMOVAL.as_secs()
        ),
        remedy:
            "choose another with --namespace, or see its conditions: kubectl get namespace -o yaml"
                .to_owned(),
    }
}

fn all(cluster: &Cluster) -> Api<Namespace> {
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
    fn what_is_somebody_elses_is_told_before_another_run() {
        let at = "2026-01-01T00:00:00Z";
        let ours = || object("iosonde-1", Some(RUN_LABEL), at);
        assert_eq!(first(&[("the job", vec![])]), None);
        let jobs = ("the job", vec![ours()]);
        assert_eq!(
            first(&[jobs.clone(), ("the pod", vec![ours()])]),
            Some(Inhabitant::Run)
        );
        let pods = vec![ours(), object("web", None, at)];
        assert_eq!(
            first(&[jobs, ("the pod", pods)]),
            Some(Inhabitant::Other("the pod web".to_owned()))
        );
    }

    #[test]
    fn what_a_cluster_puts_into_every_namespace_is_nobodys() {
        let namespace = object("lab", None, "2026-01-01T00:00:00Z");
        let comes = |at| comes_by_itself(&object("x", None, at), &namespace);
        assert!(comes("2026-01-01T00:00:03Z"));
        assert!(!comes("2026-01-01T00:05:00Z"));
    }
}
