//! Rights that a run needs in its namespace, and the role that has them.

use super::{in_words, missing};
use crate::connect::KubeCluster;
use crate::options::ClusterOptions;
use crate::rights_role::{Right, role_manifest};
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError};

/// Permissions that a run needs in its namespace.
pub(crate) const RIGHTS: [Right; 8] = [
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "exec"),
    ("list", "", "persistentvolumeclaims", ""),
    ("list", "", "events", ""),
];
/// Further permissions that make waiting cheaper. A run works without them.
const RIGHTS_TO_WATCH: [Right; 4] = [
    ("watch", "batch", "jobs", ""),
    ("watch", "", "pods", ""),
    ("watch", "", "persistentvolumeclaims", ""),
    ("watch", "", "events", ""),
];
/// Additional permission for a claim that exists.
const RIGHT_TO_READ_CLAIM: Right = ("get", "", "persistentvolumeclaims", "");
/// Additional permission for a claim that several pods share.
const RIGHT_TO_CLAIM: Right = ("create", "", "persistentvolumeclaims", "");
/// Additional permission that some clusters require for setting an owner reference.
const RIGHT_TO_OWN: Right = ("delete", "", "persistentvolumeclaims", "");

/// Permissions of this user in the namespace.
pub(super) struct UserRights {
    /// Descriptions of those that a run needs and this user lacks.
    pub(super) missing_rights: Vec<String>,
    /// Manifest of a role with all of them, if some are missing.
    pub(super) role: String,
    /// Whether claims may be created.
    pub(super) may_claim: bool,
}

/// Returns the permissions of this user that a run needs.
pub(super) async fn rights(
    cluster: &KubeCluster,
    options: &ClusterOptions,
) -> Result<UserRights, RunError> {
    let wanted = RIGHTS.into_iter().chain([RIGHT_TO_CLAIM, RIGHT_TO_OWN]);
    let mut missing = missing(cluster, wanted).await?;
    let may_claim = !missing.contains(&RIGHT_TO_CLAIM) && !missing.contains(&RIGHT_TO_OWN);
    let is_shared = options.pods.is_some_and(|pods| pods.shared);
    missing.retain(|right| match *right {
        RIGHT_TO_CLAIM => is_shared,
        right => right != RIGHT_TO_OWN,
    });
    let role = match missing.is_empty() {
        true => String::new(),
        false => role_manifest(&cluster.namespace, &rights_of_run(options)),
    };
    Ok(UserRights {
        missing_rights: missing.into_iter().map(in_words).collect(),
        role,
        may_claim,
    })
}

/// Fails with a role to apply if this user lacks some of these permissions in the namespace.
///
/// # Errors
/// If permissions are missing, or the cluster does not answer.
pub(crate) async fn judge_given_rights(
    cluster: &KubeCluster,
    wanted: &[Right],
) -> Result<(), RunError> {
    let missing = missing(cluster, wanted.iter().copied()).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let rights = missing.into_iter().map(in_words).collect();
    let role = role_manifest(&cluster.namespace, wanted);
    Err(ClusterObstacle::MissingRights { rights, role }.into())
}

/// Returns all permissions in the namespace that a run with these options uses.
pub(super) fn rights_of_run(options: &ClusterOptions) -> Vec<Right> {
    let mut rights = [RIGHTS.as_slice(), RIGHTS_TO_WATCH.as_slice()].concat();
    let is_shared = options.pods.is_some_and(|pods| pods.shared);
    if is_shared {
        rights.push(RIGHT_TO_CLAIM);
    }
    if is_shared || matches!(options.target, TargetUri::Claim { .. }) {
        rights.push(RIGHT_TO_READ_CLAIM);
    }
    rights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, serve};
    use crate::options::{PodPlacement, Pods};
    use serde_json::json;

    #[test]
    fn missing_rights_in_existing_pods_come_with_a_role() {
        let wanted: [Right; 2] = [("list", "", "pods", ""), ("create", "", "pods", "exec")];
        let judged = |verbs: &'static str| {
            let runtime = crate::connect::runtime().unwrap();
            let (objects, _) = serve(&runtime, move |request, _| {
                match request.contains("selfsubjectrulesreviews") {
                    true => ApiAnswer::Document(json!({
                        "metadata": {}, "spec": {},
                        "status": {"incomplete": false, "nonResourceRules": [], "resourceRules": [
                            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
                            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verbs]},
                        ]},
                    })),
                    false => ApiAnswer::Document(json!({
                        "metadata": {}, "spec": {}, "status": {"allowed": false},
                    })),
                }
            });
            runtime.block_on(judge_given_rights(&objects.cluster, &wanted))
        };
        assert_eq!(judged("create"), Ok(()));
        let error = judged("get").unwrap_err();
        let role = error.role_to_apply().unwrap();
        assert!(
            role.contains("resources: [pods/exec], verbs: [create]"),
            "{role}"
        );
        let rights = vec!["create pods/exec".to_owned()];
        let role = role.to_owned();
        assert_eq!(
            error,
            ClusterObstacle::MissingRights { rights, role }.into()
        );
    }

    #[test]
    fn role_of_a_run_depends_on_its_claim() {
        let rights = |target: &str, is_shared: bool| {
            let mut options = ClusterOptions::new(target.parse().unwrap());
            options.pods = is_shared.then_some(Pods {
                count: Some(2),
                placement: PodPlacement::Any,
                shared: true,
                checks_shared_file: false,
            });
            rights_of_run(&options)
        };
        let of_class = rights("sc://fast", false);
        assert!(RIGHTS.iter().all(|right| of_class.contains(right)));
        assert!(!of_class.contains(&RIGHT_TO_READ_CLAIM) && !of_class.contains(&RIGHT_TO_CLAIM));
        assert!(rights("pvc://data", false).contains(&RIGHT_TO_READ_CLAIM));
        assert!(rights("sc://fast", true).contains(&RIGHT_TO_CLAIM));
    }
}
