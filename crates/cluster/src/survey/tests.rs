use super::*;
use serde_json::{from_value, json};

fn seen() -> Seen {
    Seen {
        context: Some("lab".to_owned()),
        version: "v1.34.4".to_owned(),
        classes: from_value(json!([
            {"metadata": {"name": "slow", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
             "provisioner": "example.com/nfs", "reclaimPolicy": "Retain", "volumeBindingMode": "Immediate"},
            {"metadata": {"name": "fast"}, "provisioner": "example.com/disk", "reclaimPolicy": "Delete",
             "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true},
        ]))
        .unwrap(),
        nodes: from_value(json!([
            {"metadata": {"name": "n1", "labels": {"kubernetes.io/arch": "amd64", "cloud.google.com/gke-local-nvme-ssd": "true"}},
             "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
             "status": {"allocatable": {"ephemeral-storage": "100Gi"}, "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]}},
            {"metadata": {"name": "n2", "labels": {"kubernetes.io/arch": "amd64"}}, "spec": {"unschedulable": true},
             "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        ]))
        .unwrap(),
        volumes: from_value(json!([
            {"metadata": {"name": "pvc-1"}, "spec": {"storageClassName": "fast"}, "status": {"phase": "Bound"}},
            {"metadata": {"name": "pvc-2"}, "spec": {"storageClassName": "slow", "capacity": {"storage": "5Gi"},
              "claimRef": {"namespace": "bench", "name": "iosonde-3f2a9c00-0-x7k2p-data"}}, "status": {"phase": "Released"}},
            {"metadata": {"name": "pvc-3"}, "spec": {"storageClassName": "slow",
              "claimRef": {"namespace": "shop", "name": "data"}}, "status": {"phase": "Released"}},
            {"metadata": {"name": "local-1"}, "spec": {"storageClassName": "ssd", "local": {"path": "/mnt/ssd0"},
              "capacity": {"storage": "375Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]}}}},
        ]))
        .unwrap(),
        drivers: from_value(json!([
            {"metadata": {"name": "example.com/nfs"}, "spec": {}},
            {"metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": true}},
        ]))
        .unwrap(),
        driver_nodes: from_value(json!([
            {"metadata": {"name": "n1"}, "spec": {"drivers": [
                {"name": "example.com/disk", "nodeID": "1"}, {"name": "example.com/nfs", "nodeID": "1"}]}},
            {"metadata": {"name": "n2"}, "spec": {"drivers": [{"name": "example.com/disk", "nodeID": "2"}]}},
        ]))
        .unwrap(),
        snapshot_classes: from_value(json!([
            {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "snap"},
             "driver": "example.com/disk", "deletionPolicy": "Delete"},
        ]))
        .unwrap(),
        lost_namespaces: vec![LostNamespace {
            name: "lab".to_owned(),
        }],
        leftovers: vec![Leftover {
            namespace: "bench".to_owned(),
            job: "iosonde-3f2a9c00".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            is_running: true,
        }],
    }
}

fn ids(survey: &Survey) -> Vec<&str> {
    survey
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect()
}

#[test]
fn a_cluster_is_described_and_judged() {
    let survey = seen().survey();
    let classes = survey.classes.clone().unwrap();
    assert_eq!(
        (classes[0].name.as_str(), classes[1].name.as_str()),
        ("fast", "slow")
    );
    assert!(classes[0].waits_for_pod && classes[0].expands && !classes[0].is_default);
    assert!(classes[1].is_default && classes[1].reclaim == "Retain");
    assert_eq!((classes[0].volumes, classes[1].volumes), (Some(1), Some(2)));
    let nodes = survey.nodes.clone().unwrap();
    assert_eq!(nodes[0].taints, ["dedicated=db:NoSchedule"]);
    assert_eq!(nodes[0].disk_bytes, Some(100 << 30));
    assert_eq!(
        nodes[0].local_ssd,
        ["cloud.google.com/gke-local-nvme-ssd=true"]
    );
    assert!(nodes[0].is_usable && !nodes[1].is_usable);
    let expected = [
        "disk_pressure",
        "node_not_usable",
        "leftover_run",
        "class_retains",
        "lost_volume",
        "lost_namespace",
    ];
    assert_eq!(ids(&survey), expected, "the worst first");
    assert_eq!(
        survey.lost_volumes.len(),
        1,
        "volumes of others are not ours to name"
    );
}

#[test]
fn a_trial_that_fails_is_a_problem() {
    let mut survey = seen().survey();
    survey.leftovers.clear();
    let classes = survey.classes.as_mut().unwrap();
    classes[0].trial = Some(Trial::Fails {
        cause: "never bound".to_owned(),
        remedy: "look".to_owned(),
    });
    survey.judge();
    assert_eq!(survey.findings[0].severity, Severity::Problem);
    assert!(
        ids(&survey).contains(&"class_does_not_work") && !ids(&survey).contains(&"leftover_run")
    );
}

#[test]
fn what_may_not_be_seen_is_left_out() {
    let blind = Seen::default().survey();
    assert!(blind.classes.is_none() && blind.nodes.is_none() && blind.findings.is_empty());
}

#[test]
fn drivers_snapshots_and_local_volumes_are_listed() {
    let survey = seen().survey();
    let drivers = survey.drivers.unwrap();
    let driver = |index: usize| (drivers[index].name.as_str(), drivers[index].nodes);
    assert_eq!(
        (driver(0), driver(1)),
        (("example.com/disk", Some(2)), ("example.com/nfs", Some(1)))
    );
    assert!(drivers[0].publishes_capacity && !drivers[1].publishes_capacity);
    let snapshots = survey.snapshot_classes.unwrap();
    assert_eq!(
        (snapshots[0].name.as_str(), snapshots[0].driver.as_str()),
        ("snap", "example.com/disk")
    );
    let nodes = survey.nodes.unwrap();
    assert!(nodes[0].local_volumes.is_empty());
    assert_eq!(nodes[1].local_volumes, [375 << 30]);
}

#[test]
fn a_class_whose_driver_runs_nowhere_is_a_problem() {
    let mut seen = seen();
    seen.driver_nodes = Some(Vec::new());
    let survey = seen.survey();
    let found = survey
        .findings
        .iter()
        .filter(|finding| finding.id == "driver_on_no_node");
    let classes: Vec<&str> = found.map(|finding| finding.subject.as_str()).collect();
    assert_eq!(classes, ["fast", "slow"]);
    seen.driver_nodes = None;
    assert!(
        !ids(&seen.survey()).contains(&"driver_on_no_node"),
        "not known"
    );
}
