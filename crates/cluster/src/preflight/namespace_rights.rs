//! Rights of a command that creates its namespace, and the role that has them.

use super::Facts;
use super::rights_review::{in_words, missing};
use super::run_rights::{RIGHT_TO_LEAVE, RIGHTS_TO_MAKE, role_with_namespace};
use crate::connect::KubeCluster;
use crate::rights_role::CommandRights;
use iosonde_result::run_error::{ClusterObstacle, RunError};
use std::time::{Duration, Instant};

/// Time to wait for permissions in a new namespace, which some clusters grant to its creator.
const GIVEN: Duration = Duration::from_secs(5);

/// Fails if this user may not create and remove a namespace.
pub(super) async fn judge_making(
    cluster: &KubeCluster,
    command: &CommandRights,
) -> Result<(), RunError> {
    let missing = missing(cluster, RIGHTS_TO_MAKE.into_iter()).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let obstacle = ClusterObstacle::NamespaceForbidden {
        namespace: cluster.namespace.clone(),
        rights: missing.into_iter().map(in_words).collect(),
        role: role_with_namespace(command),
    };
    Err(obstacle.into())
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
    fn rights_of_agents_are_not_asked_of_a_command_without_agents() {
        let runtime = crate::connect::runtime().unwrap();
        let (objects, _) = serve(&runtime, |_, _| refuse_rights());
        let command = lifecycle_rights(true);
        let queried = runtime.block_on(query_rights(&objects.cluster, &command));
        let facts = queried.unwrap();
        let (rights, role) = (facts.missing_rights, facts.role);
        let name = "metadata: {name: iosonde-lifecycle-namespaces}\n";
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
