//! A namespace that is made for runs, and goes with the last of them.

use crate::api;
use crate::connect::Cluster;
use crate::manifest::RUN_LABEL;
use iosonde_result::session::RunError;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod, ServiceAccount};
use kube::Resource;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The label of such a namespace; its value is the id of the run that made it.
pub(crate) const MADE_LABEL: &str = "iosonde/made-for";
/// How often the cluster is asked while something is waited for.
const LOOK: Duration = Duration::from_millis(200);
/// How long a new namespace waits for the account of its pods: a Job that comes before it tries again only after a while.
const ACCOUNT: Duration = Duration::from_secs(5);
/// How long an empty namespace may take to go.
const REMOVAL: Duration = Duration::from_secs(90);

/// Makes the namespace, unless another run has just done so.
pub(crate) async fn make(cluster: &Cluster, id: &str) -> Result<(), RunError> {
    let name = &cluster.namespace;
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(
                [
                    ("app.kubernetes.io/managed-by", "iosonde"),
                    (MADE_LABEL, id),
                ]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let post = PostParams::default();
    match all(cluster).create(&post, &namespace).await {
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

/// A run is over, and nothing of it is left: a namespace that was made for runs goes, unless another run is in it. `is_wanted`
/// says whether the user still waits.
///
/// # Errors
/// When it stays, though no run is in it.
pub(crate) async fn leave(cluster: &Cluster, is_wanted: &dyn Fn() -> bool) -> Result<(), RunError> {
    let name = &cluster.namespace;
    let namespaces = all(cluster);
    // Whoever may not see namespaces has made none.
    let Ok(Some(namespace)) = namespaces.get_opt(name).await else {
        return Ok(());
    };
    if !is_made_for_runs(&namespace) {
        return Ok(());
    }
    if !is_going(&namespace) {
        match inhabitant(cluster).await {
            Ok(None) => {}
            Ok(Some(Inhabitant::Run)) => return Ok(()),
            Ok(Some(Inhabitant::Other(what))) => {
                return Err(left(name, &format!("{what} in it is not of a run")));
            }
            Err(error) => return Err(left(name, &api::chain(&error))),
        }
        let same = Preconditions {
            uid: namespace.metadata.uid,
            resource_version: None,
        };
        let only_it = DeleteParams::default().preconditions(same);
        match namespaces.delete(name, &only_it).await {
            Err(error) if !api::is_missing(&error) => return Err(left(name, &api::chain(&error))),
            _ => {}
        }
    }
    let begun = Instant::now();
    // An answer that does not come is asked for again.
    while !matches!(namespaces.get_opt(name).await, Ok(None)) {
        if !is_wanted() {
            return Err(left(name, "it was still there when you interrupted"));
        }
        if begun.elapsed() > REMOVAL {
            let why = format!("it is still there after {} s", REMOVAL.as_secs());
            return Err(left(name, &why));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
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
async fn inhabitant(cluster: &Cluster) -> Result<Option<Inhabitant>, kube::Error> {
    let (jobs, pods, claims) = futures::try_join!(
        one_of::<Job>(cluster, "the job"),
        one_of::<Pod>(cluster, "the pod"),
        one_of::<PersistentVolumeClaim>(cluster, "the claim"),
    )?;
    Ok(first([jobs, pods, claims]))
}

/// The one to be told.
fn first(found: [Option<Inhabitant>; 3]) -> Option<Inhabitant> {
    let mut found: Vec<Inhabitant> = found.into_iter().flatten().collect();
    found.sort_by_key(|one| matches!(one, Inhabitant::Run));
    (!found.is_empty()).then(|| found.swap_remove(0))
}

async fn one_of<T>(cluster: &Cluster, kind: &str) -> Result<Option<Inhabitant>, kube::Error>
where
    T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let there: Api<T> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let list = there.list(&ListParams::default()).await?;
    let found: Vec<&ObjectMeta> = list.items.iter().map(Resource::meta).collect();
    let is_ours = |one: &ObjectMeta| {
        let labels = one.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(RUN_LABEL))
    };
    let other = found.iter().find(|one| !is_ours(one));
    Ok(match (other, found.is_empty()) {
        (Some(other), _) => {
            let name = other.name.as_deref().unwrap_or_default();
            Some(Inhabitant::Other(format!("{kind} {name}")))
        }
        (None, false) => Some(Inhabitant::Run),
        (None, true) => None,
    })
}

fn left(name: &str, why: &str) -> RunError {
    RunError::Left {
        what: format!("the namespace {name}, which was made for runs"),
        cause: why.to_owned(),
        remedy: format!("if nobody needs it: kubectl delete namespace {name}"),
    }
}

fn all(cluster: &Cluster) -> Api<Namespace> {
    Api::all(cluster.client.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_somebody_elses_is_told_before_another_run() {
        let other = || Inhabitant::Other("the pod web".to_owned());
        assert_eq!(first([None, None, None]), None);
        assert_eq!(
            first([Some(Inhabitant::Run), None, None]),
            Some(Inhabitant::Run)
        );
        assert_eq!(
            first([Some(Inhabitant::Run), Some(other()), None]),
            Some(other())
        );
    }
}
