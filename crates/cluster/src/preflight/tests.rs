use super::nodes::FALLBACK_IMAGE;
use super::*;
use crate::options::{VolumeMode, pod};
use serde_json::{Value, json};

fn node(arch: &str, images: &[&str]) -> Value {
    json!({
        "metadata": {"name": "n1", "labels": {"kubernetes.io/arch": arch, "disk": "ssd", "topology.kubernetes.io/zone": "z1"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "images": [{"names": images}]},
    })
}

fn class(name: &str, reclaim: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": "example.com/disk", "reclaimPolicy": reclaim})
}

fn facts(change: impl FnOnce(&mut Value)) -> Facts {
    let mut facts = json!({
        "classes": [class("fast", "Delete"), class("keep", "Retain")],
        "nodes": [node("amd64", &["docker.io/library/busybox@sha256:0", "docker.io/library/busybox:1.36"])],
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
        may_claim: false,
        lacks_namespace: false,
    }
}

fn judge(facts: &Facts, target: &str) -> Result<Readiness, String> {
    let options = ClusterOptions::new(target.parse().unwrap());
    facts
        .judge(&options, "amd64")
        .map_err(|error| format!("{error}; {}", error.remedy()))
}

#[test]
fn a_class_that_exists_is_measured_with_an_image_that_is_there() {
    let ready = judge(&facts(|_| {}), "sc://fast").unwrap();
    assert_eq!(ready.image, "docker.io/library/busybox:1.36");
    assert_eq!(ready.labels["provisioner"], "example.com/disk");
    assert!(ready.notes.is_empty());
    let kept = judge(&facts(|_| {}), "ephemeral://keep").unwrap();
    assert!(kept.notes[0].contains("retains"), "{:?}", kept.notes);
    let bare = facts(|facts| facts["nodes"] = json!([node("amd64", &["k8s.gcr.io/pause:3"])]));
    assert_eq!(judge(&bare, "emptydir://").unwrap().image, FALLBACK_IMAGE);
}

#[test]
fn a_driver_that_runs_on_no_node_is_told_of() {
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
fn what_may_not_be_seen_is_not_judged() {
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
fn what_cannot_succeed_is_refused_in_words() {
    let refused = |change: fn(&mut Value), target: &str| judge(&facts(change), target).unwrap_err();
    let same = |_: &mut Value| {};
    for (text, words) in [
        (
            refused(same, "sc://fsat"),
            ["no such storage class", "sc://fast?"],
        ),
        (
            refused(same, "sc://nfs-client"),
            ["sc://nfs-client", "fast, keep"],
        ),
        (
            refused(same, "pvc://data"),
            ["no claim data", "kubectl get pvc"],
        ),
        (
            refused(|f| f["nodes"] = json!([node("arm64", &[])]), "sc://fast"),
            ["the nodes are arm64", "runs on amd64"],
        ),
        (
            refused(
                |f| f["nodes"][0]["spec"] = json!({"unschedulable": true}),
                "sc://fast",
            ),
            ["no node can take a pod", "kubectl get nodes"],
        ),
        (
            refused(
                |f| f["claim"] = json!({"metadata": {}, "spec": {"volumeMode": "Block"}}),
                "pvc://data",
            ),
            ["block device", "--volume-mode block"],
        ),
        (
            refused(
                |f| f["claim"] = json!({"metadata": {}, "spec": {"accessModes": ["ReadOnlyMany"]}}),
                "pvc://data",
            ),
            ["only be read", "can be written"],
        ),
        (
            refused(
                |f| {
                    f["namespace"]["metadata"]["labels"] =
                        json!({"pod-security.kubernetes.io/enforce": "baseline"})
                },
                "hostpath:///mnt",
            ),
            ["baseline", "-n"],
        ),
        (
            refused(
                |f| f["quotas"] = json!([{"metadata": {"name": "q"}, "status": {"hard": {"requests.storage": "6Gi"}, "used": {"requests.storage": "2Gi"}}}]),
                "sc://fast",
            ),
            ["the quota q (requests.storage)", "4Gi is left"],
        ),
        (
            refused(
                |f| f["quotas"] = json!([{"metadata": {"name": "q"}, "status": {"hard": {"persistentvolumeclaims": "1"}, "used": {"persistentvolumeclaims": "1"}}}]),
                "sc://fast",
            ),
            ["no further claim", "remove what is not needed"],
        ),
    ] {
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
    }
    let mut unprivileged = facts(|_| {});
    unprivileged.missing_rights = vec!["create pods/exec".into()];
    let text = judge(&unprivileged, "sc://fast").unwrap_err();
    assert!(
        text.contains("create pods/exec") && text.contains("docs/kubernetes.md"),
        "{text}"
    );
}

#[test]
fn only_nodes_that_are_chosen_count() {
    let facts = facts(|_| {});
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    assert!(facts.judge(&options, "amd64").is_ok());
    options.node_selector = [("disk".to_owned(), "hdd".to_owned())].into();
    let text = facts.judge(&options, "amd64").unwrap_err().to_string();
    assert!(text.contains("disk=hdd"), "{text}");
}

#[test]
fn a_result_is_labelled_with_where_its_node_is() {
    let node: Node = serde_json::from_value(node("amd64", &[])).unwrap();
    assert_eq!(
        node_labels(&node),
        [("zone".to_owned(), "z1".to_owned())].into()
    );
}

#[test]
fn an_image_is_taken_from_nodes_that_may_have_the_pod() {
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
        let judged = facts(|_| {}).judge(&options, "amd64");
        judged.map_err(|error| format!("{error}; {}", error.remedy()))
    };
    let in_zone = |options: &mut ClusterOptions, zones: &str| {
        let text = format!("topology.kubernetes.io/zone in ({zones})");
        options.pod.node_affinity = pod::requirement(&text).into_iter().collect();
    };
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    in_zone(&mut options, "z1,z9");
    assert!(facts(|_| {}).judge(&options, "amd64").is_ok());
    in_zone(&mut options, "z8,z9");
    let text = facts(|_| {})
        .judge(&options, "amd64")
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("no node has the labels topology.kubernetes.io/zone in (z8,z9)"),
        "{text}"
    );
    for target in ["emptydir://", "hostpath:///mnt"] {
        let text = refused(target, |options| options.volume_mode = VolumeMode::Block).unwrap_err();
        assert!(text.contains("cannot be had as a block device"), "{text}");
    }
}

#[test]
fn what_a_claim_may_have_is_known_before_it_is_made() {
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
    let text = refused(&range(json!({"max": {"storage": "2Gi"}})));
    assert!(
        text.contains("the limit range sizes") && text.contains("2Gi at most, and 5Gi"),
        "{text}"
    );
    let text = refused(&range(json!({"min": {"storage": "10Gi"}})));
    assert!(text.contains("10Gi at least"), "{text}");
    let fits =
        facts(|facts| range(json!({"min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}))(facts));
    assert!(judge(&fits, "sc://fast").is_ok());
    let capacity = |class: &str, capacity: &str| json!({"metadata": {}, "storageClassName": class, "capacity": capacity});
    let published = |facts: &mut Value| {
        facts["capacities"] = json!([
            capacity("fast", "1Gi"),
            capacity("fast", "4Gi"),
            capacity("keep", "100Gi")
        ]);
    };
    let text = refused(&published);
    assert!(
        text.contains("room for volumes of 4Gi at most, and 5Gi"),
        "{text}"
    );
    assert!(judge(&facts(published), "sc://keep").is_ok());
}

#[test]
fn who_may_not_be_root_has_no_block_device() {
    let restricted = facts(|facts| {
        facts["namespace"]["metadata"]["labels"] =
            json!({"pod-security.kubernetes.io/enforce": "restricted"});
    });
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    assert!(restricted.judge(&options, "amd64").is_ok());
    options.volume_mode = VolumeMode::Block;
    let error = restricted.judge(&options, "amd64").unwrap_err();
    assert!(
        error.to_string().contains("as this one would") && error.remedy().contains("--run-as"),
        "{error}"
    );
    let mut directory = ClusterOptions::new("emptydir://".parse().unwrap());
    directory.run_as = Some(0);
    let error = restricted.judge(&directory, "amd64").unwrap_err();
    assert!(error.remedy().contains("leave out --run-as"), "{error}");
    options.run_as = Some(1000);
    assert!(restricted.judge(&options, "amd64").is_ok());
}

#[test]
fn a_class_that_binds_before_the_pod_is_placed_is_named() {
    let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
    options.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    let early = facts(|_| {}).judge(&options, "amd64").unwrap();
    assert!(
        early.notes[0].contains("before the pod has a node"),
        "{:?}",
        early.notes
    );
    let late =
        facts(|facts| facts["classes"][0]["volumeBindingMode"] = json!("WaitForFirstConsumer"));
    assert!(late.judge(&options, "amd64").unwrap().notes.is_empty());
}

#[test]
fn rights_in_a_namespace_that_is_yet_to_be_made_are_not_judged() {
    let mut facts = facts(|_| {});
    facts.missing_rights = vec!["create jobs".to_owned()];
    assert!(
        judge(&facts, "sc://fast")
            .unwrap_err()
            .contains("create jobs")
    );
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
fn a_claim_that_is_a_block_device_is_measured_where_that_is_wanted_and_nobody_uses_it() {
    let pods = pods_of(json!([
        {"metadata": {"name": "done"}, "status": {"phase": "Succeeded"},
         "spec": {"containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "raw"}}]}},
        {"metadata": {"name": "db-0"}, "status": {"phase": "Running"},
         "spec": {"containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "raw"}}]}},
        {"metadata": {"name": "web"}, "status": {"phase": "Running"},
         "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}},
        {"metadata": {"name": "ours", "labels": {"iosonde/run": "1a2b"}}, "status": {"phase": "Running"},
         "spec": {"containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "raw"}}]}},
    ]));
    let claim = json!({"metadata": {"name": "raw"}, "spec": {"volumeMode": "Block", "accessModes": ["ReadWriteOnce"]}});
    let raw = claim_of(claim.clone());
    assert_eq!(claim_users::users(&raw, &pods, Some("1a2b")), ["db-0"]);
    let all = ["db-0", "ours"];
    assert_eq!(claim_users::users(&raw, &pods, None), all);
    assert_eq!(claim_users::users(&raw, &pods, Some("3c4d")), all);
    let mut facts = facts(|facts| facts["claim"] = claim);
    assert!(
        judge(&facts, "pvc://raw")
            .unwrap_err()
            .contains("--volume-mode block")
    );
    let mut options = ClusterOptions::new("pvc://raw".parse().unwrap());
    options.volume_mode = VolumeMode::Block;
    assert!(facts.judge(&options, "amd64").is_ok());
    facts.claim_users = claim_users::users(&raw, &pods, None);
    let error = facts.judge(&options, "amd64").unwrap_err();
    assert!(error.to_string().contains("the pod db-0 uses"), "{error}");
}

/// Objects as API server 1.34 returns them, without irrelevant fields.
#[test]
fn the_pod_of_a_generic_ephemeral_volume_uses_its_claim() {
    let pods = pods_of(json!([
        {"metadata": {"name": "theirs", "namespace": "raw", "uid": "0b9c4b60-7f0c-4f5e-9a56-3b0f6f3f1d11"},
         "spec": {"containers": [{"name": "c", "volumeDevices": [{"name": "raw", "devicePath": "/dev/raw"}]}],
                  "volumes": [{"name": "raw", "ephemeral": {"volumeClaimTemplate": {"metadata": {},
                      "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}},
                               "storageClassName": "loop-ext4", "volumeMode": "Block"}}}}]},
         "status": {"phase": "Running"}},
    ]));
    let claim = |owner: &str| {
        claim_of(
            json!({"metadata": {"name": "theirs-raw", "namespace": "raw", "ownerReferences": [
            {"apiVersion": "v1", "blockOwnerDeletion": true, "controller": true, "kind": "Pod", "name": "theirs", "uid": owner}]},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "storageClassName": "loop-ext4"}}),
        )
    };
    let theirs = claim("0b9c4b60-7f0c-4f5e-9a56-3b0f6f3f1d11");
    assert_eq!(claim_users::users(&theirs, &pods, None), ["theirs"]);
    // The cluster does not give a claim of that name to this pod if an earlier pod owns it.
    let earlier = claim("55d3b8f2-0f0a-4a4e-8a4b-9a3c8f3a7c22");
    assert!(claim_users::users(&earlier, &pods, None).is_empty());
}
