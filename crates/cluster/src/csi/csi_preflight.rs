//! Checks before anything is created: the class, its snapshot class, and the rights of this user.

use super::CsiOptions;
use crate::api;
use crate::class_retention::{ClassRetention, VOLUME_RIGHTS};
use crate::connect::KubeCluster;
use crate::lifecycle::{STATIC_PROVISIONER, find_class};
use crate::options::{ClusterOptions, PodPlacement, Pods};
use crate::preflight::{self, Facts};
use crate::rights_role::{CommandRights, Right, cluster_role_manifest, role_manifest};
use crate::setup_observer::{SetupEvent, SetupObserver, unless_interrupted};
use crate::survey::drivers::snapshot_classes;
use iosonde_job::TargetUri;
use iosonde_result::data_service::DataServiceClass;
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError, VolumeProblem};
use kube::api::{DynamicObject, ListParams};

/// Annotation of the snapshot class that is used if none is named.
const DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// Name of the Role with the rights of every session.
const ROLE_NAME: &str = "iosonde-csi";
/// Name of the Role and the ClusterRole with the rights for snapshots.
const SNAPSHOT_ROLE_NAME: &str = "iosonde-csi-snapshots";
/// Name of the ClusterRole with the rights on volumes that the class retains.
const VOLUME_ROLE_NAME: &str = "iosonde-csi-volumes";

/// Permissions that the run needs in its namespace.
const CSI_RIGHTS: [Right; 18] = [
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("patch", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("create", "", "pods", ""),
    ("get", "", "pods", ""),
    ("list", "", "pods", ""),
    ("watch", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "exec"),
    ("create", "", "persistentvolumeclaims", ""),
    ("get", "", "persistentvolumeclaims", ""),
    ("list", "", "persistentvolumeclaims", ""),
    ("watch", "", "persistentvolumeclaims", ""),
    ("patch", "", "persistentvolumeclaims", ""),
    ("delete", "", "persistentvolumeclaims", ""),
    ("list", "", "events", ""),
];

/// Additional permissions for snapshots.
const SNAPSHOT_RIGHTS: [Right; 5] = [
    ("create", "snapshot.storage.k8s.io", "volumesnapshots", ""),
    ("get", "snapshot.storage.k8s.io", "volumesnapshots", ""),
    ("list", "snapshot.storage.k8s.io", "volumesnapshots", ""),
    ("watch", "snapshot.storage.k8s.io", "volumesnapshots", ""),
    ("delete", "snapshot.storage.k8s.io", "volumesnapshots", ""),
];

/// Additional permissions on classes, to find the driver and its snapshot class.
const SNAPSHOT_CLASS_RIGHTS: [Right; 2] = [
    ("list", "storage.k8s.io", "storageclasses", ""),
    (
        "list",
        "snapshot.storage.k8s.io",
        "volumesnapshotclasses",
        "",
    ),
];

/// A class whose services can be measured.
pub(super) struct CheckedServices {
    pub(super) class: DataServiceClass,
    /// Whether the class retains volumes, or this user may not read classes.
    pub(super) retains_volumes: bool,
    /// All rights of the session.
    pub(super) rights: CommandRights,
}

/// Answers of the cluster.
struct ServiceFacts {
    facts: Facts,
    /// `None`: no service uses snapshots.
    snapshot_classes: Option<Vec<DynamicObject>>,
    rights: CommandRights,
}

/// Checks whether the services of the class can be measured.
pub(super) fn check_services(
    cluster: &ClusterOptions,
    name: String,
    options: &CsiOptions,
    observer: &mut SetupObserver<'_>,
) -> Result<CheckedServices, RunError> {
    let TargetUri::StorageClass(class_name) = &cluster.target else {
        let cause = VolumeProblem::NotAClass;
        return Err(RunError::unusable_target(name, cause.into()));
    };
    (observer.tell)(SetupEvent::Waiting("the cluster's answer"));
    let asked = query_services(cluster, &name, options);
    let asked = unless_interrupted(observer.interrupts, asked);
    let (answers, lacking) = crate::connect::runtime()?.block_on(asked)?;
    if let Some((role, lacking)) = lacking {
        let rights = lacking.into_iter().map(preflight::in_words).collect();
        let obstacle = ClusterObstacle::MissingRights {
            rights,
            role,
            is_bound_to_namespace: false,
        };
        return Err(obstacle.into());
    }
    let ServiceFacts {
        facts,
        snapshot_classes,
        rights,
    } = answers;
    let class = find_class(&facts, class_name);
    let expands = class.map(|class| class.allow_volume_expansion == Some(true));
    let (claims, claim_bytes) =
        options.most_claims(cluster.claim_bytes, expands.unwrap_or_default());
    let judged = ClusterOptions {
        claim_bytes,
        pods: Some(Pods {
            count: Some(claims),
            placement: PodPlacement::Any,
            shared: false,
            checks_shared_file: false,
        }),
        ..cluster.clone()
    };
    // The session judges the nodes by its agents.
    facts.judge(&judged, &[])?;
    let driver = class.map(|class| class.provisioner.clone());
    let unusable = |problem: VolumeProblem| RunError::unusable_target(&name, problem.into());
    if driver.as_deref() == Some(STATIC_PROVISIONER) {
        return Err(unusable(VolumeProblem::StaticClass));
    }
    let wanted = options.snapshot_class.as_deref();
    let snapshot_class = match &snapshot_classes {
        Some(all) => {
            let driver = driver.as_deref().unwrap_or_default();
            Some(choose_snapshot_class(all, driver, wanted).map_err(unusable)?)
        }
        None => None,
    };
    let policy = class.map(|class| class.reclaim_policy.as_deref());
    Ok(CheckedServices {
        class: DataServiceClass {
            driver,
            snapshot_class,
            expands,
            name,
        },
        retains_volumes: policy.is_none_or(|policy| policy == Some("Retain")),
        rights,
    })
}

/// Queries the facts, and the rights that this user lacks, with the roles that have them.
async fn query_services(
    cluster_options: &ClusterOptions,
    name: &str,
    options: &CsiOptions,
) -> Result<(ServiceFacts, Option<(String, Vec<Right>)>), RunError> {
    let cluster = KubeCluster::connect(cluster_options).await?;
    let retention = ClassRetention::query(&cluster, &[&cluster_options.target]).await;
    let rights = csi_rights(options, retention);
    let mut facts = preflight::query_facts(&cluster, cluster_options, &rights).await?;
    // They are among those that are checked here.
    facts.missing_rights = Vec::new();
    let wanted = match facts.lacks_namespace {
        // Its creator may be granted rights in it. All others are already checked.
        true => Vec::new(),
        false => rights.needed.clone(),
    };
    let lacking = preflight::missing(&cluster, wanted.into_iter()).await?;
    let snapshot_classes = match options.uses_snapshots() && lacking.is_empty() {
        true => Some(query_snapshot_classes(&cluster, name).await?),
        false => None,
    };
    let roles = || match cluster_options.create_namespace {
        true => preflight::role_with_namespace(&rights),
        false => roles(&cluster.namespace, options, retention),
    };
    let lacking = (!lacking.is_empty()).then(|| (roles(), lacking));
    let answers = ServiceFacts {
        facts,
        snapshot_classes,
        rights,
    };
    Ok((answers, lacking))
}

async fn query_snapshot_classes(
    cluster: &KubeCluster,
    name: &str,
) -> Result<Vec<DynamicObject>, RunError> {
    let classes = snapshot_classes(&cluster.client);
    match classes.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        // The server has no such resource.
        Err(error) if api::is_missing(&error) => {
            let cause = VolumeProblem::NoSnapshotApi;
            Err(RunError::unusable_target(name, cause.into()))
        }
        Err(error) => Err(api::failed(ClusterRequest::ListSnapshotClasses, &error)),
    }
}

/// Returns all rights of a session. Those on retained volumes are needed only if the class is known
/// to retain volumes.
fn csi_rights(options: &CsiOptions, retention: ClassRetention) -> CommandRights {
    let with_volumes = |is_with: bool| {
        let mut rights = namespace_rights(options);
        rights.extend(cluster_rights(options, is_with));
        rights
    };
    CommandRights {
        role_name: match (options.uses_snapshots(), retention.may_retain()) {
            (false, false) => ROLE_NAME,
            (true, false) => SNAPSHOT_ROLE_NAME,
            (false, true) => VOLUME_ROLE_NAME,
            (true, true) => "iosonde-csi-snapshots-volumes",
        },
        needed: with_volumes(retention.retains()),
        used: with_volumes(retention.may_retain()),
    }
}

fn namespace_rights(options: &CsiOptions) -> Vec<Right> {
    let of_snapshots = SNAPSHOT_RIGHTS
        .into_iter()
        .filter(|_| options.uses_snapshots());
    CSI_RIGHTS.into_iter().chain(of_snapshots).collect()
}

/// Returns the rights on resources outside of namespaces, those on retained volumes on request.
fn cluster_rights(options: &CsiOptions, is_with_volumes: bool) -> Vec<Right> {
    let of_snapshots = SNAPSHOT_CLASS_RIGHTS
        .into_iter()
        .filter(|_| options.uses_snapshots());
    // The session waits for the removal of a volume without a watch.
    let of_volumes = VOLUME_RIGHTS.into_iter().filter(|_| is_with_volumes);
    of_snapshots.chain(of_volumes).collect()
}

/// Returns the manifests of roles with all rights that are used. Each name has the same rights in
/// all sessions.
pub(super) fn roles(namespace: &str, options: &CsiOptions, retention: ClassRetention) -> String {
    let mut roles = vec![role_manifest(namespace, ROLE_NAME, &CSI_RIGHTS)];
    if options.uses_snapshots() {
        let name = SNAPSHOT_ROLE_NAME;
        roles.push(role_manifest(namespace, name, &SNAPSHOT_RIGHTS));
        roles.push(cluster_role_manifest(name, &SNAPSHOT_CLASS_RIGHTS));
    }
    if retention.may_retain() {
        roles.push(cluster_role_manifest(VOLUME_ROLE_NAME, &VOLUME_RIGHTS));
    }
    roles.join("---\n")
}

/// Returns the snapshot class to use: the one that the user names, else the default of the driver,
/// else its first class that does not retain data.
fn choose_snapshot_class(
    all: &[DynamicObject],
    driver: &str,
    wanted: Option<&str>,
) -> Result<String, VolumeProblem> {
    let name = |class: &DynamicObject| class.metadata.name.clone().unwrap_or_default();
    let driver_of = |class: &DynamicObject| class.data["driver"].as_str().unwrap_or("").to_owned();
    let retains = |class: &DynamicObject| class.data["deletionPolicy"].as_str() == Some("Retain");
    let mut names_and_drivers: Vec<(String, String)> = all
        .iter()
        .map(|class| (name(class), driver_of(class)))
        .collect();
    names_and_drivers.sort();
    if let Some(wanted) = wanted {
        let Some(class) = all.iter().find(|class| name(class) == wanted) else {
            return Err(VolumeProblem::NoSuchSnapshotClass {
                class: wanted.to_owned(),
                known: names_and_drivers
                    .into_iter()
                    .map(|(name, _)| name)
                    .collect(),
            });
        };
        let class_driver = driver_of(class);
        let class = name(class);
        return match class_driver == driver {
            true => refuse_retaining(
                class,
                all.iter().any(|one| name(one) == wanted && retains(one)),
            ),
            false => Err(VolumeProblem::SnapshotClassOfOtherDriver {
                class,
                class_driver,
                driver: driver.to_owned(),
            }),
        };
    }
    let is_default = |class: &DynamicObject| {
        let annotations = class.metadata.annotations.as_ref();
        let value = annotations.and_then(|all| all.get(DEFAULT_CLASS));
        value.is_some_and(|value| value == "true")
    };
    let of_driver = all.iter().filter(|class| driver_of(class) == driver);
    let chosen = of_driver.min_by_key(|class| (retains(class), !is_default(class), name(class)));
    match chosen {
        Some(class) => refuse_retaining(name(class), retains(class)),
        None => {
            let mut known: Vec<String> = names_and_drivers
                .into_iter()
                .map(|(_, driver)| driver)
                .collect();
            known.sort();
            known.dedup();
            Err(VolumeProblem::NoSnapshotClass {
                driver: driver.to_owned(),
                known,
            })
        }
    }
}

/// Refuses a class whose snapshots would leave data behind.
fn refuse_retaining(class: String, retains: bool) -> Result<String, VolumeProblem> {
    match retains {
        true => Err(VolumeProblem::SnapshotClassRetains { class }),
        false => Ok(class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::data_service::DataService;
    use serde_json::{from_value, json};
    use std::collections::BTreeMap;

    fn class(name: &str, driver: &str, policy: &str, is_default: bool) -> DynamicObject {
        from_value(json!({
            "metadata": {"name": name, "annotations": {DEFAULT_CLASS: is_default.to_string()}},
            "driver": driver,
            "deletionPolicy": policy,
        }))
        .unwrap()
    }

    #[test]
    fn snapshot_class_is_the_default_of_the_driver_that_deletes() {
        let all = [
            class("a", "disk", "Delete", false),
            class("b", "disk", "Delete", true),
            class("c", "disk", "Retain", true),
            class("d", "other", "Delete", true),
        ];
        let chosen = |wanted| choose_snapshot_class(&all, "disk", wanted);
        assert_eq!(chosen(None), Ok("b".to_owned()));
        assert_eq!(chosen(Some("a")), Ok("a".to_owned()));
        let class = "c".to_owned();
        let retains = VolumeProblem::SnapshotClassRetains { class };
        assert_eq!(chosen(Some("c")), Err(retains));
        let other = VolumeProblem::SnapshotClassOfOtherDriver {
            class: "d".to_owned(),
            class_driver: "other".to_owned(),
            driver: "disk".to_owned(),
        };
        assert_eq!(chosen(Some("d")), Err(other));
        let missing = VolumeProblem::NoSuchSnapshotClass {
            class: "e".to_owned(),
            known: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        };
        assert_eq!(chosen(Some("e")), Err(missing));
    }

    #[test]
    fn driver_without_snapshot_class_is_refused_with_those_that_have_one() {
        let all = [class("d", "other", "Delete", true)];
        let missing = VolumeProblem::NoSnapshotClass {
            driver: "disk".to_owned(),
            known: vec!["other".to_owned()],
        };
        assert_eq!(choose_snapshot_class(&all, "disk", None), Err(missing));
    }

    #[test]
    fn rights_in_a_new_namespace_include_those_of_a_run_and_of_snapshots() {
        let options = CsiOptions::of_one_round(&DataService::ALL);
        let rights = csi_rights(&options, ClassRetention::Retains);
        let is_needed = |right: &Right| rights.needed.contains(right);
        assert!(preflight::RIGHTS.iter().all(is_needed), "{rights:?}");
        assert!(SNAPSHOT_RIGHTS.iter().all(is_needed), "{rights:?}");
        let role = preflight::role_with_namespace(&rights);
        for words in [
            "kind: ClusterRole\nmetadata: {name: iosonde-csi-snapshots-volumes-namespaces}\n",
            "resources: [namespaces], verbs: [create, get, patch, delete]",
            "resources: [jobs], verbs: [create, get, patch, delete, list]",
            "resources: [volumesnapshots], verbs: [create, get, list, watch, delete]",
            "resources: [volumesnapshotclasses], verbs: [list]",
            "resources: [persistentvolumes], verbs: [get, list, patch]",
        ] {
            assert!(role.contains(words), "{words}: {role}");
        }
        assert_eq!(role.matches("kind:").count(), 1, "{role}");
    }

    #[test]
    fn roles_have_snapshots_only_if_they_are_used() {
        let clone = CsiOptions::of_one_round(&[DataService::Clone]);
        let all = CsiOptions::of_one_round(&DataService::ALL);
        let plain = roles("lab", &clone, ClassRetention::Deletes);
        assert!(
            plain.contains("resources: [pods/exec], verbs: [create, get]"),
            "{plain}"
        );
        assert!(!plain.contains("snapshot"), "{plain}");
        assert!(!plain.contains("ClusterRole"), "{plain}");
        let volumes = "resources: [persistentvolumes], verbs: [get, list, patch]";
        for retention in [ClassRetention::Retains, ClassRetention::Unknown] {
            let retained = roles("lab", &clone, retention);
            assert!(retained.contains(volumes), "{retained}");
        }
        let all = roles("lab", &all, ClassRetention::Deletes);
        assert!(all.contains("resources: [volumesnapshots]"), "{all}");
        assert!(
            all.contains("---\n") && all.contains("[volumesnapshotclasses]"),
            "{all}"
        );
    }

    /// Applying a role replaces the rules of another one of the same kind and name.
    #[test]
    fn roles_of_one_name_have_the_same_rights_in_all_sessions() {
        let mut known = BTreeMap::new();
        for services in [&[DataService::Clone][..], &DataService::ALL] {
            let options = CsiOptions::of_one_round(services);
            for retention in [ClassRetention::Deletes, ClassRetention::Retains] {
                let of_namespace = preflight::role_with_namespace(&csi_rights(&options, retention));
                let printed = roles("lab", &options, retention) + "---\n" + &of_namespace;
                for role in printed.split("---\n") {
                    let (head, rules) = role.split_once("rules:\n").unwrap();
                    let earlier = known.insert(head.to_owned(), rules.to_owned());
                    assert!(earlier.is_none_or(|earlier| earlier == rules), "{role}");
                }
            }
        }
        // Two Roles, two ClusterRoles, and those of each session that creates its namespace.
        assert_eq!(known.len(), 4 + 4, "{known:?}");
    }
}
