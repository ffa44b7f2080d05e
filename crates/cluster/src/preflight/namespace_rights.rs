//! Rights of a command that creates its namespace, and the role that has them.

use super::Facts;
use super::rights_review::{in_words, is_cluster_wide, missing};
use super::run_rights::{RIGHT_TO_LEAVE, RIGHTS_TO_MAKE, role_with_namespace};
use crate::connect::KubeCluster;
use crate::rights_role::{CommandRights, Right};
use iosonde_result::run_error::{ClusterObstacle, RunError};
use std::time::{Duration, Instant};

/// Time to wait for permissions in a new namespace, which some clusters grant to its creator.
const GIVEN: Duration = Duration::from_secs(5);

/// Fails if this user may not create and remove a namespace, or lacks rights of the command that no
/// namespace gives to its creator.
pub(super) async fn judge_making(
    cluster: &KubeCluster,
    command: &CommandRights,
) -> Result<(), RunError> {
    let cluster_wide = command.needed.iter().filter(|right| is_cluster_wide(right));
    let wanted = RIGHTS_TO_MAKE.into_iter().chain(cluster_wide.copied());
    let missing = missing(cluster, wanted).await?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(refusal(&cluster.namespace, missing, role_with_namespace(command)).into())
}

/// Returns the obstacle of a user who lacks these rights. Those on the namespace are named first.
fn refusal(namespace: &str, missing: Vec<Right>, role: String) -> ClusterObstacle {
    let (of_namespace, others): (Vec<Right>, Vec<Right>) = missing
        .into_iter()
        .partition(|right| RIGHTS_TO_MAKE.contains(right));
    let words = |rights: Vec<Right>| -> Vec<String> { rights.into_iter().map(in_words).collect() };
    match of_namespace.is_empty() {
        true => ClusterObstacle::MissingRights {
            rights: words(others),
            role,
            is_bound_to_namespace: false,
        },
        false => ClusterObstacle::NamespaceForbidden {
            namespace: namespace.to_owned(),
            rights: words(of_namespace),
            role,
        },
    }
}

/// Checks the permissions of this user in a new namespace, with retries.
///
/// # Errors
/// If permissions are still missing after [`GIVEN`].
pub(crate) async fn judge_new_namespace(
    cluster: &KubeCluster,
    command: &CommandRights,
) -> Result<(), RunError> {
    let begun = Instant::now();
    loop {
        let facts = query_rights(cluster, command).await?;
        match facts.judge_rights(false) {
            Err(_) if begun.elapsed() < GIVEN => tokio::time::sleep(GIVEN / 20).await,
            judged => return judged,
        }
    }
}

/// Queries the permissions that the command needs in a new namespace.
async fn query_rights(cluster: &KubeCluster, command: &CommandRights) -> Result<Facts, RunError> {
    let needed = command.needed.iter().copied().chain([RIGHT_TO_LEAVE]);
    let missing = missing(cluster, needed).await?;
    Ok(Facts {
        missing_rights: missing.into_iter().map(in_words).collect(),
        role: role_with_namespace(command),
        ..Facts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_retention::{ClassRetention, RIGHTS_TO_REMOVE_VOLUMES};
    use crate::fake_api::{ApiAnswer, serve};
    use crate::lifecycle::lifecycle_rights;
    use crate::options::ClusterOptions;
    use crate::preflight::run_rights::{rights_of_run, role_of_run};
    use serde_json::json;

    /// Returns the answers of a cluster that grants no right.
    fn refuse_rights() -> ApiAnswer {
        let status = json!({"allowed": false, "incomplete": false, "nonResourceRules": [],
            "resourceRules": []});
        ApiAnswer::Document(json!({"metadata": {}, "spec": {}, "status": status}))
    }

    #[test]
    fn role_for_a_new_namespace_has_the_rights_of_the_run_too() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, |_, _| refuse_rights());
        let options = ClusterOptions::new("sc://fast".parse().unwrap());
        let command = rights_of_run(&options);
        let judged = runtime.block_on(judge_making(&objects.cluster, &command));
        let error = judged.unwrap_err();
        let role = error.role_to_apply().unwrap();
        for words in [
            "kind: ClusterRole\nmetadata: {name: iosonde-namespaces}\n",
            "resources: [namespaces], verbs: [create, get, patch, delete]",
            "resources: [jobs], verbs: [create, get, delete, watch, list]",
            "resources: [pods/exec], verbs: [create, get]",
            "resources: [events], verbs: [list, watch]",
        ] {
            assert!(role.contains(words), "{words}: {role}");
        }
        assert_eq!(role.matches("kind:").count(), 1, "{role}");
    }

    #[test]
    fn rights_on_volumes_are_checked_before_a_namespace_is_made() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, requests) = serve(&runtime, |_, _| refuse_rights());
        let mut options = ClusterOptions::new("sc://kept".parse().unwrap());
        let reviewed = |options: &ClusterOptions| {
            let before = requests.count(&["selfsubjectaccessreviews"]);
            let command = rights_of_run(options);
            let judged = runtime.block_on(judge_making(&objects.cluster, &command));
            assert!(judged.is_err(), "no right is granted");
            requests.count(&["selfsubjectaccessreviews"]) - before
        };
        assert_eq!(reviewed(&options), RIGHTS_TO_MAKE.len());
        options.removes_retained = true;
        let both = RIGHTS_TO_MAKE.len() + RIGHTS_TO_REMOVE_VOLUMES.len();
        assert_eq!(reviewed(&options), both);
    }

    #[test]
    fn user_who_may_make_a_namespace_is_refused_for_the_other_rights() {
        let role = || "kind: ClusterRole".to_owned();
        let rights = ["list", "patch"].map(|verb| format!("{verb} persistentvolumes"));
        let expected = ClusterObstacle::MissingRights {
            rights: rights.to_vec(),
            role: role(),
            is_bound_to_namespace: false,
        };
        let of_volumes = RIGHTS_TO_REMOVE_VOLUMES.to_vec();
        assert_eq!(refusal("lab", of_volumes, role()), expected);
        let both = [&RIGHTS_TO_REMOVE_VOLUMES[..], &RIGHTS_TO_MAKE[..1]].concat();
        let expected = ClusterObstacle::NamespaceForbidden {
            namespace: "lab".to_owned(),
            rights: vec!["create namespaces".to_owned()],
            role: role(),
        };
        assert_eq!(refusal("lab", both, role()), expected);
    }

    #[test]
    fn rights_of_agents_are_not_asked_of_a_command_without_agents() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, |_, _| refuse_rights());
        let command = lifecycle_rights(ClassRetention::Retains);
        let queried = runtime.block_on(query_rights(&objects.cluster, &command));
        let facts = queried.unwrap();
        let (rights, role) = (facts.missing_rights, facts.role);
        let name = "metadata: {name: iosonde-lifecycle-volumes-namespaces}\n";
        assert!(role.contains(name), "{role}");
        assert!(!role.contains("pods/exec"), "{role}");
        let volumes = "resources: [persistentvolumes], verbs: [get, list, watch, patch]";
        assert!(role.contains(volumes), "{role}");
        for right in [
            "patch jobs",
            "create pods",
            "patch persistentvolumes",
            "list jobs",
        ] {
            let count = rights.iter().filter(|one| *one == right).count();
            assert_eq!(count, 1, "{right}: {rights:?}");
        }
        let is_exec = |right: &String| right.contains("exec");
        assert!(!rights.iter().any(is_exec), "{rights:?}");
    }

    #[test]
    fn run_in_a_namespace_of_other_runs_gets_the_same_role() {
        let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
        options.create_namespace = true;
        let role = role_of_run("lab", &options);
        assert_eq!(role, role_with_namespace(&rights_of_run(&options)));
    }
}
