use super::node_checks::FALLBACK_IMAGE;
use super::*;
use crate::fake_api::{ApiAnswer, list, serve};
use crate::options::{NeededSpace, PodPlacement, Pods, VolumeMode, pod};
use iosonde_result::run_error::{
    ClaimBound, QuotaShortage, SharedFileProblem, UnusableNodes, VolumeProblem,
};
use serde_json::{Value, json};

fn node(arch: &str, images: &[&str]) -> Value {
    json!({
        "metadata": {"name": "n1", "labels": {"kubernetes.io/arch": arch, "disk": "ssd",
         "topology.kubernetes.io/zone": "z1"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
         "images": [{"names": images}]},
    })
}

fn class(name: &str, reclaim: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": "example.com/disk", "reclaimPolicy": reclaim})
}

fn facts(change: impl FnOnce(&mut Value)) -> Facts {
    let mut facts = json!({
        "classes": [class("fast", "Delete"), class("keep", "Retain")],
        "nodes": [node("amd64", &["docker.io/library/busybox@sha256:0",
         "docker.io/library/busybox:1.36"])],
        "quotas": [],
        "limits": [],
        "capacities": [],
        "drivers": [],
        "driver_nodes": [],
        "claim": null,
        "namespace": {"metadata": {"name": "bench"}},
    });
    change(&mut facts);
    let part = |name: &str| facts[name].clone();
    Facts {
        classes: serde_json::from_value(part("classes")).unwrap(),
        nodes: serde_json::from_value(part("nodes")).unwrap(),
        namespace: serde_json::from_value(part("namespace")).unwrap(),
        quotas: serde_json::from_value(part("quotas")).unwrap(),
        limits: serde_json::from_value(part("limits")).unwrap(),
        capacities: serde_json::from_value(part("capacities")).unwrap(),
        drivers: serde_json::from_value(part("drivers")).unwrap(),
        driver_nodes: serde_json::from_value(part("driver_nodes")).unwrap(),
        claim: serde_json::from_value(part("claim")).unwrap(),
        claim_users: Vec::new(),
        missing_rights: Vec::new(),
        role: String::new(),
        may_claim: false,
        lacks_namespace: false,
    }
}

fn judge(facts: &Facts, target: &str) -> Result<Readiness, RunError> {
    let options = ClusterOptions::new(target.parse().unwrap());
    facts.judge(&options, &["amd64"])
}

/// Returns the error for a target.
fn unusable(target: &str, problem: VolumeProblem) -> RunError {
    RunError::unusable_target(target, problem.into())
}

/// Returns the error for a storage class that does not exist.
fn no_storage_class(target: &str, similar: Option<&str>) -> RunError {
    let problem = VolumeProblem::NoStorageClass {
        similar: similar.map(str::to_owned),
        known: vec!["fast".to_owned(), "keep".to_owned()],
    };
    unusable(target, problem)
}

/// Returns the error for rights that this user lacks.
fn missing_right(right: &str) -> RunError {
    let obstacle = ClusterObstacle::MissingRights {
        rights: vec![right.to_owned()],
        role: String::new(),
        is_bound_to_namespace: false,
    };
    obstacle.into()
}

#[test]
fn existing_class_is_accepted_with_an_available_image() {
    let ready = judge(&facts(|_| {}), "sc://fast").unwrap();
    assert_eq!(ready.image, "docker.io/library/busybox:1.36");
    assert_eq!(ready.labels["provisioner"], "example.com/disk");
    assert!(ready.notes.is_empty());
    let kept = judge(&facts(|_| {}), "ephemeral://keep").unwrap();
    assert!(kept.notes[0].contains("retains"), "{:?}", kept.notes);
    let mut trial = ClusterOptions::new("sc://keep".parse().unwrap());
    trial.removes_retained = true;
    let removed = facts(|_| {}).judge(&trial, &["amd64"]).unwrap();
    assert!(removed.notes.is_empty(), "{:?}", removed.notes);
    let bare = facts(|facts| facts["nodes"] = json!([node("amd64", &["k8s.gcr.io/pause:3"])]));
    assert_eq!(judge(&bare, "emptydir://").unwrap().image, FALLBACK_IMAGE);
}

/// Returns the requests that a check of a class makes.
fn requests_of_a_check(has_driver: bool) -> Vec<String> {
    let runtime = crate::connect::runtime().unwrap();
    let rules = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "metadata": {}, "spec": {}, "status": {"incomplete": false, "nonResourceRules": [],
        "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}});
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "bench"}});
    let driver =
        json!({"metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": true}});
    let (objects, requests) = serve(&runtime, move |request, _| match request {
        _ if request.contains("selfsubjectrulesreviews") => ApiAnswer::Document(rules.clone()),
        _ if request.contains("/namespaces/bench/") => list(&[]),
        _ if request.contains("/namespaces/bench") => ApiAnswer::Document(namespace.clone()),
        _ if request.contains("/storageclasses") => list(&[class("fast", "Delete")]),
        _ if request.contains("/csidrivers") && has_driver => list(std::slice::from_ref(&driver)),
        _ => list(&[]),
    });
    let options = ClusterOptions::new("sc://fast".parse().unwrap());
    let facts = runtime.block_on(query_facts(
        &objects.cluster,
        &options,
        &rights_of_run(&options),
    ));
    let facts = facts.unwrap();
    assert!(facts.missing_rights.is_empty() && facts.may_claim);
    assert_eq!(facts.capacities.is_some(), has_driver);
    requests.list_all()
}

/// A run of one pod adds the Job and its claim, two execs, the claim's volume for its server (two),
/// and five of the removal: 20 in all with a CSI driver.
#[test]
fn check_of_a_class_needs_few_requests() {
    let requests = requests_of_a_check(false);
    assert_eq!(requests.len(), 7, "{requests:?}");
    let requests = requests_of_a_check(true);
    assert_eq!(requests.len(), 9, "{requests:?}");
}

#[test]
fn files_that_cannot_fit_the_volume_are_refused_with_a_size_that_can() {
    let facts = facts(|facts| {
        facts["claim"] = json!({"metadata": {"name": "data"}, "spec": {"accessModes":
            ["ReadWriteOnce"]}, "status": {"capacity": {"storage": "1Gi"}}});
        let classes = facts["classes"].as_array_mut().unwrap();
        for (name, provisioner) in [
            ("share", "nfs.csi.k8s.io"),
            ("local", "rancher.io/local-path"),
            ("quota", "rook-ceph.cephfs.csi.ceph.com"),
        ] {
            classes.push(json!({"metadata": {"name": name}, "provisioner": provisioner}));
        }
    });
    let judge = |target: &str, needed_gib: u64| {
        let mut options = ClusterOptions::new(target.parse().unwrap());
        options.claim_bytes = 4 << 30;
        options.needed = Some(NeededSpace {
            bytes: needed_gib << 30,
            option: "-z",
            gib_suffix: "Gi",
        });
        facts.judge(&options, &["amd64"]).map(drop)
    };
    let too_small = |option: Option<&str>, volume_gib: u64, needed_gib: u64| {
        let obstacle = ClusterObstacle::VolumeTooSmall {
            option: option.map(str::to_owned),
            volume_bytes: volume_gib << 30,
            needed_bytes: needed_gib << 30,
        };
        RunError::from(obstacle)
    };
    assert_eq!(judge("sc://fast", 4), Ok(()));
    let refused = judge("sc://fast", 8).unwrap_err();
    assert_eq!(refused, too_small(Some("-z 9Gi"), 4, 8));
    assert_eq!(judge("pvc://data", 2), Err(too_small(None, 1, 2)));
    assert_eq!(
        judge("hostpath:///mnt", 99),
        Ok(()),
        "its size is not known"
    );
    for target in ["sc://share", "sc://local"] {
        assert_eq!(judge(target, 8), Ok(()), "no size is enforced: {target}");
    }
    let on_share = judge("sc://quota", 8).unwrap_err();
    assert_eq!(on_share, refused, "the driver sets a quota");
}

#[test]
fn driver_on_no_node_gives_a_note() {
    let with = |on: Value| {
        let facts = facts(|facts| {
            facts["drivers"] = json!([{"metadata": {"name": "example.com/disk"}, "spec": {}}]);
            facts["driver_nodes"] = json!([{"metadata": {"name": "n1"}, "spec": {"drivers": on}}]);
        });
        judge(&facts, "sc://fast").unwrap().notes
    };
    let down = with(json!([]));
    assert!(
        down[0].contains("example.com/disk, which runs on no node"),
        "{down:?}"
    );
    let up = with(json!([{"name": "example.com/disk", "nodeID": "n1"}]));
    assert!(up.is_empty(), "{up:?}");
}

#[test]
fn unreadable_facts_are_not_judged() {
    let blind = facts(|facts| {
        for part in [
            "classes",
            "nodes",
            "quotas",
            "namespace",
            "limits",
            "capacities",
            "drivers",
            "driver_nodes",
        ] {
            facts[part] = Value::Null;
        }
    });
    assert_eq!(judge(&blind, "sc://any").unwrap().image, FALLBACK_IMAGE);
}

#[test]
fn impossible_requests_are_refused_with_their_cause() {
    let refused = |change: fn(&mut Value), target: &str| judge(&facts(change), target).unwrap_err();
    let same = |_: &mut Value| {};
    let other_architecture = ClusterObstacle::OtherArchitecture {
        nodes: vec!["arm64".to_owned()],
        agent: "amd64".to_owned(),
    };
    let no_claim = VolumeProblem::NoClaim {
        name: "data".to_owned(),
    };
    let no_host_path = VolumeProblem::HostPathForbidden {
        level: "baseline".to_owned(),
    };
    for (error, expected) in [
        (
            refused(same, "sc://fsat"),
            no_storage_class("sc://fsat", Some("fast")),
        ),
        (
            refused(same, "sc://nfs-client"),
            no_storage_class("sc://nfs-client", None),
        ),
        (
            refused(same, "pvc://data"),
            unusable("pvc://data", no_claim),
        ),
        (
            refused(|f| f["nodes"] = json!([node("arm64", &[])]), "sc://fast"),
            other_architecture.into(),
        ),
        (
            refused(
                |f| f["nodes"][0]["spec"] = json!({"unschedulable": true}),
                "sc://fast",
            ),
            ClusterObstacle::NoUsableNode(UnusableNodes {
                cordoned: vec!["n1".to_owned()],
                not_ready: Vec::new(),
            })
            .into(),
        ),
        (
            refused(
                |f| f["claim"] = json!({"metadata": {}, "spec": {"volumeMode": "Block"}}),
                "pvc://data",
            ),
            unusable("pvc://data", VolumeProblem::ClaimIsBlock),
        ),
        (
            refused(
                |f| f["claim"] = json!({"metadata": {}, "spec": {"accessModes": ["ReadOnlyMany"]}}),
                "pvc://data",
            ),
            unusable("pvc://data", VolumeProblem::ClaimIsReadOnly),
        ),
        (
            refused(
                |f| {
                    f["namespace"]["metadata"]["labels"] =
                        json!({"pod-security.kubernetes.io/enforce": "baseline"})
                },
                "hostpath:///mnt",
            ),
            unusable("hostpath:///mnt", no_host_path),
        ),
    ] {
        assert_eq!(error, expected);
    }
}

#[test]
fn claim_beyond_quota_is_refused_with_the_shortage() {
    let refused = |hard: Value, used: Value| {
        let quota = json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}});
        let facts = facts(|facts| facts["quotas"] = json!([quota]));
        judge(&facts, "sc://fast").unwrap_err()
    };
    let too_few_bytes = QuotaShortage::Bytes {
        needed_bytes: ClusterOptions::CLAIM_BYTES,
        left_bytes: 4 << 30,
    };
    for (error, resource, shortage) in [
        (
            refused(
                json!({"requests.storage": "6Gi"}),
                json!({"requests.storage": "2Gi"}),
            ),
            "requests.storage",
            too_few_bytes,
        ),
        (
            refused(
                json!({"persistentvolumeclaims": "1"}),
                json!({"persistentvolumeclaims": "1"}),
            ),
            "persistentvolumeclaims",
            QuotaShortage::ClaimCount { needed: 1, left: 0 },
        ),
    ] {
        let exceeded = ClusterObstacle::QuotaExceeded {
            quota: "q".to_owned(),
            resource: resource.to_owned(),
            shortage,
        };
        assert_eq!(error, RunError::from(exceeded));
    }
}

#[test]
fn missing_rights_are_refused_by_name() {
    let mut unprivileged = facts(|_| {});
    unprivileged.missing_rights = vec!["create pods/exec".into()];
    let error = judge(&unprivileged, "sc://fast").unwrap_err();
    assert_eq!(error, missing_right("create pods/exec"));
}

#[test]
fn missing_rights_come_with_their_role() {
    let unprivileged = Facts {
        role: "kind: Role".to_owned(),
        missing_rights: vec!["create jobs".to_owned()],
        ..facts(|_| {})
    };
    let error = judge(&unprivileged, "sc://fast").unwrap_err();
    assert_eq!(error.role_to_apply(), Some("kind: Role"));
}

#[test]
fn claim_that_may_not_be_read_comes_with_a_role_in_its_namespace() {
    let runtime = crate::connect::runtime().unwrap();
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "bench"}});
    let rules = json!([
        {"apiGroups": ["batch"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods", "pods/exec", "events"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list"]},
    ]);
    let review = json!({"metadata": {}, "spec": {}, "status": {"allowed": false,
        "incomplete": false, "nonResourceRules": [], "resourceRules": rules}});
    let (objects, requests) = serve(&runtime, move |request, _| match request {
        _ if request.contains("reviews") => ApiAnswer::Document(review.clone()),
        _ if request.ends_with("/namespaces/bench") => ApiAnswer::Document(namespace.clone()),
        _ => ApiAnswer::Status(403),
    });
    let options = ClusterOptions::new("pvc://data".parse().unwrap());
    let facts = runtime.block_on(query_facts(
        &objects.cluster,
        &options,
        &rights_of_run(&options),
    ));
    let facts = facts.unwrap();
    assert_eq!(requests.count(&["/persistentvolumeclaims/data"]), 0);
    let error = facts.judge(&options, &["amd64"]).unwrap_err();
    let role = error.role_to_apply().unwrap();
    assert!(role.contains("metadata: {name: iosonde, "), "{role}");
    let of_claims = "resources: [persistentvolumeclaims], verbs: [list, watch, get, create]";
    assert!(role.contains(of_claims), "{role}");
    let expected = ClusterObstacle::MissingRights {
        rights: vec!["get persistentvolumeclaims".to_owned()],
        role: role.to_owned(),
        is_bound_to_namespace: true,
    };
    assert_eq!(error, expected.into());
}

#[test]
fn node_selector_limits_the_usable_nodes() {
    let facts = facts(|_| {});
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    assert!(facts.judge(&options, &["amd64"]).is_ok());
    options.node_selector = [("disk".to_owned(), "hdd".to_owned())].into();
    let no_node = ClusterObstacle::NoLabelledNode {
        labels: vec!["disk=hdd".to_owned()],
    };
    let error = facts.judge(&options, &["amd64"]).unwrap_err();
    assert_eq!(error, RunError::from(no_node));
}

#[test]
fn result_is_labelled_with_the_zone_of_its_node() {
    let node: Node = serde_json::from_value(node("amd64", &[])).unwrap();
    assert_eq!(
        node_labels(&node),
        [("zone".to_owned(), "z1".to_owned())].into()
    );
}

#[test]
fn image_is_taken_from_nodes_that_accept_the_pod() {
    let tainted = facts(|facts| {
        facts["nodes"][0]["spec"] =
            json!({"taints": [{"key": "dedicated", "effect": "NoSchedule"}]});
        let mut other = node("amd64", &["docker.io/library/alpine:3"]);
        other["metadata"]["name"] = json!("n2");
        facts["nodes"].as_array_mut().unwrap().push(other);
    });
    let ready = judge(&tainted, "sc://fast").unwrap();
    assert_eq!(ready.image, "docker.io/library/alpine:3");
}

#[test]
fn affinity_and_modes_are_judged_before_anything_is_made() {
    let refused = |target: &str, change: fn(&mut ClusterOptions)| {
        let mut options = ClusterOptions::new(target.parse().unwrap());
        change(&mut options);
        facts(|_| {}).judge(&options, &["amd64"])
    };
    let in_zone = |options: &mut ClusterOptions, zones: &str| {
        let text = format!("topology.kubernetes.io/zone in ({zones})");
        options.pod.node_affinity = pod::requirement(&text).into_iter().collect();
    };
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    in_zone(&mut options, "z1,z9");
    assert!(facts(|_| {}).judge(&options, &["amd64"]).is_ok());
    in_zone(&mut options, "z8,z9");
    let no_node = ClusterObstacle::NoLabelledNode {
        labels: vec!["topology.kubernetes.io/zone in (z8,z9)".to_owned()],
    };
    let error = facts(|_| {}).judge(&options, &["amd64"]).unwrap_err();
    assert_eq!(error, RunError::from(no_node));
    for target in ["emptydir://", "hostpath:///mnt"] {
        let error = refused(target, |options| options.volume_mode = VolumeMode::Block).unwrap_err();
        assert_eq!(error, unusable(target, VolumeProblem::DirectoryAsBlock));
    }
}

#[test]
fn claim_beyond_limit_range_or_capacity_is_refused() {
    let refused = |change: &dyn Fn(&mut Value)| judge(&facts(change), "sc://fast").unwrap_err();
    let range = |bounds: Value| {
        move |facts: &mut Value| {
            let mut item = bounds.clone();
            item["type"] = json!("PersistentVolumeClaim");
            facts["limits"] = json!([{"metadata": {"name": "sizes"}, "spec": {"limits": [
                {"type": "Container", "max": {"storage": "1"}}, item,
            ]}}]);
        }
    };
    let outside_limits = |bound| {
        RunError::from(ClusterObstacle::ClaimOutsideLimits {
            limit_range: "sizes".to_owned(),
            bound,
            claim_bytes: ClusterOptions::CLAIM_BYTES,
        })
    };
    let error = refused(&range(json!({"max": {"storage": "2Gi"}})));
    assert_eq!(error, outside_limits(ClaimBound::MaximumBytes(2 << 30)));
    let error = refused(&range(json!({"min": {"storage": "10Gi"}})));
    assert_eq!(error, outside_limits(ClaimBound::MinimumBytes(10 << 30)));
    let fits =
        facts(|facts| range(json!({"min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}))(facts));
    assert!(judge(&fits, "sc://fast").is_ok());
    let capacity = |class: &str, capacity: &str| {
        json!({"metadata": {}, "storageClassName": class,
        "capacity": capacity})
    };
    let published = |facts: &mut Value| {
        facts["capacities"] = json!([
            capacity("fast", "1Gi"),
            capacity("fast", "4Gi"),
            capacity("keep", "100Gi")
        ]);
    };
    let full = VolumeProblem::DriverFull {
        available_bytes: 4 << 30,
        claim_bytes: ClusterOptions::CLAIM_BYTES,
    };
    assert_eq!(refused(&published), unusable("sc://fast", full));
    assert!(judge(&facts(published), "sc://keep").is_ok());
}

#[test]
fn restricted_namespace_refuses_root_for_block_device() {
    let restricted = facts(|facts| {
        facts["namespace"]["metadata"]["labels"] =
            json!({"pod-security.kubernetes.io/enforce": "restricted"});
    });
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    assert!(restricted.judge(&options, &["amd64"]).is_ok());
    options.volume_mode = VolumeMode::Block;
    let error = restricted.judge(&options, &["amd64"]).unwrap_err();
    let forbidden = |is_block| VolumeProblem::RootForbidden { is_block };
    assert_eq!(error, unusable("sc://fast", forbidden(true)));
    let mut directory = ClusterOptions::new("emptydir://".parse().unwrap());
    directory.run_as = Some(0);
    let error = restricted.judge(&directory, &["amd64"]).unwrap_err();
    assert_eq!(error, unusable("emptydir://", forbidden(false)));
    options.run_as = Some(1000);
    assert!(restricted.judge(&options, &["amd64"]).is_ok());
}

#[test]
fn immediate_binding_with_node_selector_gives_a_note() {
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    let early = facts(|_| {}).judge(&options, &["amd64"]).unwrap();
    assert!(
        early.notes[0].contains("before the pod has a node"),
        "{:?}",
        early.notes
    );
    let late =
        facts(|facts| facts["classes"][0]["volumeBindingMode"] = json!("WaitForFirstConsumer"));
    assert!(late.judge(&options, &["amd64"]).unwrap().notes.is_empty());
}

#[test]
fn rights_in_a_missing_namespace_are_not_judged() {
    let mut facts = facts(|_| {});
    facts.missing_rights = vec!["create jobs".to_owned()];
    let error = judge(&facts, "sc://fast").unwrap_err();
    assert_eq!(error, missing_right("create jobs"));
    facts.lacks_namespace = true;
    assert!(judge(&facts, "sc://fast").unwrap().makes_namespace);
}

fn pods_of(value: serde_json::Value) -> Vec<Pod> {
    serde_json::from_value(value).unwrap()
}

fn claim_of(value: serde_json::Value) -> PersistentVolumeClaim {
    serde_json::from_value(value).unwrap()
}

#[test]
fn block_claim_requires_block_mode_and_no_other_user() {
    let pods = pods_of(json!([
        {"metadata": {"name": "done"}, "status": {"phase": "Succeeded"},
         "spec": {"containers": [], "volumes": [{"name": "v",
          "persistentVolumeClaim": {"claimName": "raw"}}]}},
        {"metadata": {"name": "db-0"}, "status": {"phase": "Running"},
         "spec": {"containers": [], "volumes": [{"name": "v",
          "persistentVolumeClaim": {"claimName": "raw"}}]}},
        {"metadata": {"name": "web"}, "status": {"phase": "Running"},
         "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}},
        {"metadata": {"name": "ours", "labels": {"iosonde/run": "1a2b"}},
         "status": {"phase": "Running"},
         "spec": {"containers": [], "volumes": [{"name": "v",
          "persistentVolumeClaim": {"claimName": "raw"}}]}},
    ]));
    let claim = json!({"metadata": {"name": "raw"}, "spec": {"volumeMode": "Block",
        "accessModes": ["ReadWriteOnce"]}});
    let raw = claim_of(claim.clone());
    assert_eq!(claim_users::users(&raw, &pods, Some("1a2b")), ["db-0"]);
    let all = ["db-0", "ours"];
    assert_eq!(claim_users::users(&raw, &pods, None), all);
    assert_eq!(claim_users::users(&raw, &pods, Some("3c4d")), all);
    let mut facts = facts(|facts| facts["claim"] = claim);
    let error = judge(&facts, "pvc://raw").unwrap_err();
    assert_eq!(error, unusable("pvc://raw", VolumeProblem::ClaimIsBlock));
    let mut options = ClusterOptions::new("pvc://raw".parse().unwrap());
    options.volume_mode = VolumeMode::Block;
    assert!(facts.judge(&options, &["amd64"]).is_ok());
    facts.claim_users = claim_users::users(&raw, &pods, None);
    let error = facts.judge(&options, &["amd64"]).unwrap_err();
    let in_use = VolumeProblem::UsedByPod {
        pod: "db-0".to_owned(),
    };
    assert_eq!(error, unusable("pvc://raw", in_use));
}

/// Objects as API server 1.34 returns them, without irrelevant fields.
#[test]
fn ephemeral_volume_pod_uses_its_generated_claim() {
    let pods = pods_of(json!([
        {"metadata": {"name": "theirs", "namespace": "raw",
         "uid": "0b9c4b60-7f0c-4f5e-9a56-3b0f6f3f1d11"},
         "spec": {"containers": [{"name": "c", "volumeDevices": [{"name": "raw",
          "devicePath": "/dev/raw"}]}],
                  "volumes": [{"name": "raw", "ephemeral": {"volumeClaimTemplate": {"metadata": {},
                      "spec": {"accessModes": ["ReadWriteOnce"],
                       "resources": {"requests": {"storage": "100Mi"}},
                               "storageClassName": "loop-ext4", "volumeMode": "Block"}}}}]},
         "status": {"phase": "Running"}},
    ]));
    let claim = |owner: &str| {
        claim_of(
            json!({"metadata": {"name": "theirs-raw", "namespace": "raw", "ownerReferences": [
            {"apiVersion": "v1", "blockOwnerDeletion": true, "controller": true, "kind": "Pod",
             "name": "theirs", "uid": owner}]},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
             "storageClassName": "loop-ext4"}}),
        )
    };
    let theirs = claim("0b9c4b60-7f0c-4f5e-9a56-3b0f6f3f1d11");
    assert_eq!(claim_users::users(&theirs, &pods, None), ["theirs"]);
    // The cluster does not give a claim of that name to this pod if an earlier pod owns it.
    let earlier = claim("55d3b8f2-0f0a-4a4e-8a4b-9a3c8f3a7c22");
    assert!(claim_users::users(&earlier, &pods, None).is_empty());
}

#[test]
fn class_that_archives_is_named_before_run() {
    let facts = facts(|facts| {
        facts["classes"] = json!([{"metadata": {"name": "nfs"},
            "provisioner": "k8s-sigs.io/nfs-subdir-external-provisioner",
            "parameters": {"archiveOnDelete": "true"}}]);
    });
    let ready = judge(&facts, "sc://nfs").unwrap();
    let note = "each volume of the class nfs leaves a directory archived-* with all its data on \
                the share (archiveOnDelete: true), until it is removed there";
    assert_eq!(ready.notes, [note]);
    assert!(ready.share.is_share);
    assert_eq!(ready.share.remainder.as_deref(), Some(note), "for its end");
}

#[test]
fn shared_file_on_class_of_one_node_is_refused() {
    let judge = |provisioner: &str, mode: &str| {
        let facts = facts(|facts| {
            let class = json!({"metadata": {"name": "disk"}, "provisioner": provisioner});
            facts["classes"] = json!([class]);
        });
        let mut options = ClusterOptions::new("sc://disk".parse().unwrap());
        options.access_mode = mode.to_owned();
        options.pods = Some(Pods {
            count: Some(2),
            placement: PodPlacement::Any,
            shared: true,
            checks_shared_file: true,
        });
        facts.judge(&options, &["amd64"])
    };
    let refused = judge("ebs.csi.aws.com", "ReadWriteMany").unwrap_err();
    let problem = SharedFileProblem::OneNodeDriver {
        driver: "ebs.csi.aws.com".to_owned(),
        drivers: vec!["ebs.csi.aws.com".to_owned()],
    };
    assert_eq!(refused, problem.into_run_error("sc://disk"));
    assert!(judge("ebs.csi.aws.com", "ReadWriteOnce").is_ok());
    assert!(judge("example.com/disk", "ReadWriteMany").is_ok());
}

#[test]
fn claim_for_many_nodes_is_on_a_share() {
    let is_share = |mode: &str| {
        let facts = facts(|facts| {
            facts["claim"] = json!({"metadata": {"name": "data"}, "spec": {"accessModes": [mode]}});
        });
        judge(&facts, "pvc://data").unwrap().share.is_share
    };
    assert!(is_share("ReadWriteMany") && !is_share("ReadWriteOnce"));
}
