//! Rights that commands need in their namespace, and the roles that have them. The rights of all
//! commands that use pods of a run are rows of [`RIGHTS`].

use super::rights_review::{in_words, missing, missing_on_objects};
use crate::class_retention::{RIGHTS_TO_REMOVE_VOLUMES, VOLUME_RIGHTS};
use crate::connect::KubeCluster;
use crate::options::ClusterOptions;
use crate::rights_role::{CommandRights, Right, cluster_role_manifest, role_manifest};
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError};

/// Name of the Role of a run.
const ROLE_NAME: &str = "iosonde";
/// Name of the ClusterRole with the rights on volumes that their class retains.
const VOLUME_ROLE_NAME: &str = "iosonde-volumes";

/// Permissions for creating and removing a namespace.
pub(super) const RIGHTS_TO_MAKE: [Right; 4] = [
    ("create", "", "namespaces", ""),
    ("get", "", "namespaces", ""),
    ("patch", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
];
/// Additional permission for checking that a namespace is empty before its removal.
pub(super) const RIGHT_TO_LEAVE: Right = ("list", "batch", "jobs", "");
/// Permission for starting a run.
const RIGHT_TO_START: Right = ("create", "batch", "jobs", "");
/// Permissions that a run needs in its namespace.
pub(crate) const RIGHTS: [Right; 8] = [
    RIGHT_TO_START,
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

/// Returns the permissions of this user that a run needs. Those on retained volumes are among them
/// if the command needs them.
pub(super) async fn rights(
    cluster: &KubeCluster,
    options: &ClusterOptions,
    command: &CommandRights,
) -> Result<UserRights, RunError> {
    let always = RIGHTS.into_iter().chain([RIGHT_TO_CLAIM, RIGHT_TO_OWN]);
    // A command that does not know whether its class retains volumes does not need them.
    let of_volumes = RIGHTS_TO_REMOVE_VOLUMES
        .into_iter()
        .filter(|right| options.removes_retained && command.needed.contains(right));
    let always = always.chain(of_volumes);
    let mut wanted: Vec<(Right, Option<&str>)> = always.map(|right| (right, None)).collect();
    if let TargetUri::Claim { name, .. } = &options.target {
        wanted.push((RIGHT_TO_READ_CLAIM, Some(name.as_str())));
    }
    let mut missing = missing_on_objects(cluster, &wanted).await?;
    let may_claim = !missing.contains(&RIGHT_TO_CLAIM) && !missing.contains(&RIGHT_TO_OWN);
    let is_shared = options.pods.is_some_and(|pods| pods.shared);
    missing.retain(|right| match *right {
        RIGHT_TO_CLAIM => is_shared,
        right => right != RIGHT_TO_OWN,
    });
    let role = match missing.is_empty() {
        true => String::new(),
        false => role_of_run(&cluster.namespace, options),
    };
    Ok(UserRights {
        missing_rights: missing.into_iter().map(in_words).collect(),
        role,
        may_claim,
    })
}

/// Returns the manifest of a role that suffices for a run with these options.
pub(super) fn role_of_run(namespace: &str, options: &ClusterOptions) -> String {
    let command = rights_of_run(options);
    if options.create_namespace {
        // A Role is removed with the namespace.
        return role_with_namespace(&command);
    }
    let mut roles = role_manifest(namespace, ROLE_NAME, &rights_in_namespace());
    if options.removes_retained {
        roles.push_str("---\n");
        roles.push_str(&cluster_role_manifest(VOLUME_ROLE_NAME, &VOLUME_RIGHTS));
    }
    roles
}

/// Returns the manifest of a role for a command that creates its namespace. No Role can be created
/// in a namespace that does not exist, so that one ClusterRole has all rights.
pub(crate) fn role_with_namespace(command: &CommandRights) -> String {
    let mut wanted = RIGHTS_TO_MAKE.to_vec();
    wanted.extend(&command.used);
    wanted.push(RIGHT_TO_LEAVE);
    let name = format!("{}-namespaces", command.role_name);
    cluster_role_manifest(&name, &wanted)
}

/// Fails with a role to apply if this user may not follow and remove a run in the namespace.
/// `is_bound_to_namespace`: the run is in this namespace.
///
/// # Errors
/// If permissions are missing, or the cluster does not answer.
pub(crate) async fn judge_rights_to_attach(
    cluster: &KubeCluster,
    is_bound_to_namespace: bool,
) -> Result<(), RunError> {
    let needed = rights_to_attach();
    let missing = missing(cluster, needed.iter().copied()).await?;
    let wanted = [needed.as_slice(), RIGHTS_TO_WATCH.as_slice()].concat();
    let role = role_manifest(&cluster.namespace, "iosonde-attach", &wanted);
    refuse_missing(missing, role, is_bound_to_namespace)
}

/// Returns the permissions for following and removing a run that another client has started.
fn rights_to_attach() -> Vec<Right> {
    let all = RIGHTS.into_iter();
    all.filter(|right| *right != RIGHT_TO_START).collect()
}

/// Fails with a role to apply if this user may not list pods of the namespace.
///
/// # Errors
/// If the permission is missing, or the cluster does not answer.
pub(crate) async fn judge_rights_on_pods(cluster: &KubeCluster) -> Result<(), RunError> {
    let wanted = rights_in_pods();
    let missing = missing(cluster, wanted.iter().copied()).await?;
    let is_exec = |(_, _, _, sub): &Right| *sub == "exec";
    if missing.iter().all(is_exec) {
        // They may be granted for the pods that are listed.
        return Ok(());
    }
    refuse_missing(missing, role_in_pods(cluster), true)
}

/// Fails with a role to apply if this user may not run commands in these pods.
///
/// # Errors
/// If permissions are missing, or the cluster does not answer.
pub(crate) async fn judge_rights_in_pods(
    cluster: &KubeCluster,
    pods: &[&str],
) -> Result<(), RunError> {
    let wanted = rights_in_pods();
    let of_exec = wanted.iter().filter(|(_, _, _, sub)| *sub == "exec");
    let named: Vec<(Right, Option<&str>)> = of_exec
        .flat_map(|right| pods.iter().map(move |pod| (*right, Some(*pod))))
        .collect();
    let missing = missing_on_objects(cluster, &named).await?;
    refuse_missing(missing, role_in_pods(cluster), true)
}

/// Returns the permissions for using pods that exist.
fn rights_in_pods() -> Vec<Right> {
    let all = RIGHTS.into_iter();
    all.filter(|(_, _, resource, _)| *resource == "pods")
        .collect()
}

fn role_in_pods(cluster: &KubeCluster) -> String {
    role_manifest(&cluster.namespace, "iosonde-pods", &rights_in_pods())
}

/// Fails with this role if permissions are missing.
fn refuse_missing(
    missing: Vec<Right>,
    role: String,
    is_bound_to_namespace: bool,
) -> Result<(), RunError> {
    if missing.is_empty() {
        return Ok(());
    }
    let obstacle = ClusterObstacle::MissingRights {
        rights: missing.into_iter().map(in_words).collect(),
        role,
        is_bound_to_namespace,
    };
    Err(obstacle.into())
}

/// Returns the permissions in its namespace that a run may use. They are the same for all runs:
/// applying the role of one does not take a right from another.
fn rights_in_namespace() -> Vec<Right> {
    let of_claims = [RIGHT_TO_READ_CLAIM, RIGHT_TO_CLAIM];
    [&RIGHTS[..], &RIGHTS_TO_WATCH[..], &of_claims[..]].concat()
}

/// Returns the permissions of a run with these options. A run that removes volumes which their
/// class retains uses further ones, and has roles of its own.
pub(crate) fn rights_of_run(options: &ClusterOptions) -> CommandRights {
    let of_claims = [RIGHT_TO_READ_CLAIM, RIGHT_TO_CLAIM];
    let mut needed = RIGHTS.to_vec();
    needed.extend(of_claims.into_iter().filter(|right| match *right {
        RIGHT_TO_CLAIM => options.pods.is_some_and(|pods| pods.shared),
        _ => matches!(options.target, TargetUri::Claim { .. }),
    }));
    let mut used = rights_in_namespace();
    if options.removes_retained {
        needed.extend(RIGHTS_TO_REMOVE_VOLUMES);
        used.extend(VOLUME_RIGHTS);
    }
    CommandRights {
        role_name: match options.removes_retained {
            true => VOLUME_ROLE_NAME,
            false => ROLE_NAME,
        },
        needed,
        used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, serve};
    use crate::options::{PodPlacement, Pods};
    use crate::run_objects::RunObjects;
    use iosonde_result::run_error::UnsupportedFeature;
    use serde_json::{Value, json};
    use tokio::runtime::Runtime;

    /// Returns a cluster that grants these rules only.
    fn cluster_with_rules(runtime: &Runtime, rules: &Value) -> RunObjects {
        let status = json!({"incomplete": false, "nonResourceRules": [], "resourceRules": rules,
            "allowed": false});
        let answer = json!({"metadata": {}, "spec": {}, "status": status});
        let (objects, _) = serve(runtime, move |_, _| ApiAnswer::Document(answer.clone()));
        objects
    }

    /// Returns the rights that an error names.
    fn named_rights(error: RunError) -> Vec<String> {
        let RunError::NoFeature { cause } = error else {
            panic!("{error}");
        };
        match *cause {
            UnsupportedFeature::Cluster(ClusterObstacle::MissingRights {
                rights,
                is_bound_to_namespace: true,
                ..
            }) => rights,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_rights_in_existing_pods_come_with_a_role() {
        let runtime = crate::connect::runtime().unwrap();
        let objects = cluster_with_rules(&runtime, &json!([]));
        let judged = runtime.block_on(judge_rights_on_pods(&objects.cluster));
        let error = judged.unwrap_err();
        let role = error.role_to_apply().unwrap();
        assert!(role.contains("metadata: {name: iosonde-pods, "), "{role}");
        let exec = "resources: [pods/exec], verbs: [create, get]";
        assert!(role.contains(exec), "{role}");
        let expected = ["list pods", "create pods/exec", "get pods/exec"];
        assert_eq!(named_rights(error), expected);
    }

    #[test]
    fn exec_right_on_named_pods_suffices_for_these_pods() {
        let runtime = crate::connect::runtime().unwrap();
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": ["fio-0", "fio-1"],
                "verbs": ["create", "get"]},
        ]);
        let objects = cluster_with_rules(&runtime, &rules);
        let cluster = &objects.cluster;
        assert_eq!(runtime.block_on(judge_rights_on_pods(cluster)), Ok(()));
        let judged = |pods: &[&str]| runtime.block_on(judge_rights_in_pods(cluster, pods));
        assert_eq!(judged(&["fio-0", "fio-1"]), Ok(()));
        let error = judged(&["fio-0", "fio-2", "fio-3"]).unwrap_err();
        assert_eq!(named_rights(error), ["create pods/exec", "get pods/exec"]);
    }

    #[test]
    fn role_for_attaching_has_the_watches_and_no_creation() {
        let runtime = crate::connect::runtime().unwrap();
        let objects = cluster_with_rules(&runtime, &json!([]));
        let judged = runtime.block_on(judge_rights_to_attach(&objects.cluster, true));
        let error = judged.unwrap_err();
        let role = error.role_to_apply().unwrap();
        assert!(role.contains("metadata: {name: iosonde-attach, "), "{role}");
        let jobs = "resources: [jobs], verbs: [get, delete, watch]";
        assert!(role.contains(jobs), "{role}");
        let events = "resources: [events], verbs: [list, watch]";
        assert!(role.contains(events), "{role}");
        let rights = named_rights(error);
        assert_eq!(rights.len(), RIGHTS.len() - 1, "{rights:?}");
        assert!(rights.iter().all(|right| !right.starts_with("watch")));
    }

    #[test]
    fn claim_may_be_readable_by_its_name_only() {
        let runtime = crate::connect::runtime().unwrap();
        let rules = json!([
            {"apiGroups": ["", "batch"], "resources": ["jobs", "pods", "pods/exec", "events"],
                "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["persistentvolumeclaims"],
                "resourceNames": ["data"], "verbs": ["get"]},
        ]);
        let objects = cluster_with_rules(&runtime, &rules);
        let lacking = |target: &str| {
            let options = ClusterOptions::new(target.parse().unwrap());
            let command = rights_of_run(&options);
            let granted = runtime.block_on(rights(&objects.cluster, &options, &command));
            granted.unwrap().missing_rights
        };
        assert!(lacking("sc://fast").is_empty());
        assert!(lacking("pvc://data").is_empty());
        assert_eq!(lacking("pvc://logs"), ["get persistentvolumeclaims"]);
    }

    #[test]
    fn rights_on_volumes_are_needed_only_if_the_command_needs_them() {
        let runtime = crate::connect::runtime().unwrap();
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        // The rules of a namespace do not grant rights on volumes.
        let objects = cluster_with_rules(&runtime, &rules);
        let mut options = ClusterOptions::new("sc://kept".parse().unwrap());
        let run = rights_of_run(&options);
        options.removes_retained = true;
        let trial = rights_of_run(&options);
        let lacking = |options: &ClusterOptions, command: &CommandRights| {
            let granted = runtime.block_on(rights(&objects.cluster, options, command));
            granted.unwrap()
        };
        let of_trial = lacking(&options, &trial);
        // A user who may not get volumes does not wait for their removal.
        let expected = ["list persistentvolumes", "patch persistentvolumes"];
        assert_eq!(of_trial.missing_rights, expected);
        assert!(of_trial.may_claim);
        assert!(
            of_trial.role.contains("name: iosonde-volumes}"),
            "{}",
            of_trial.role
        );
        assert!(lacking(&options, &run).missing_rights.is_empty());
        options.removes_retained = false;
        assert!(lacking(&options, &run).missing_rights.is_empty());
    }

    #[test]
    fn runs_have_one_role_and_need_the_rights_of_their_claim() {
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
        let of_claim = rights("pvc://data", false);
        let of_shared = rights("sc://fast", true);
        assert_eq!(of_class.needed, RIGHTS);
        assert_eq!(of_claim.needed[RIGHTS.len()..], [RIGHT_TO_READ_CLAIM]);
        assert_eq!(of_shared.needed[RIGHTS.len()..], [RIGHT_TO_CLAIM]);
        for command in [&of_class, &of_claim, &of_shared] {
            assert_eq!(command.used, of_class.used, "one content of the role");
            let is_used = |right: &Right| command.used.contains(right);
            assert!(command.needed.iter().all(is_used), "{:?}", command.needed);
        }
        let role = role_manifest("lab", of_class.role_name, &of_class.used);
        let claims = "resources: [persistentvolumeclaims], verbs: [list, watch, get, create]";
        assert!(role.contains(claims), "{role}");
    }

    #[test]
    fn role_of_a_trial_that_removes_retained_volumes_has_the_rights_on_them() {
        let mut options = ClusterOptions::new("sc://kept".parse().unwrap());
        let plain = role_of_run("lab", &options);
        assert!(!plain.contains("persistentvolumes]"), "{plain}");
        options.removes_retained = true;
        let volumes = "resources: [persistentvolumes], verbs: [get, list, patch]";
        let retaining = role_of_run("lab", &options);
        let name = "kind: ClusterRole\nmetadata: {name: iosonde-volumes}\n";
        assert!(retaining.starts_with(&plain), "{retaining}");
        assert!(retaining.contains(name) && retaining.contains(volumes));
        assert_eq!(
            rights_of_run(&options).needed[RIGHTS.len()..],
            RIGHTS_TO_REMOVE_VOLUMES
        );
        options.create_namespace = true;
        let of_new = role_of_run("lab", &options);
        let name = "metadata: {name: iosonde-volumes-namespaces}\n";
        assert!(
            of_new.contains(name) && of_new.contains(volumes),
            "{of_new}"
        );
    }
}
