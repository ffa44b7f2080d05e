use super::*;
use iosonde_result::doctor::{ClusterCause, FindingCause, Severity};
use serde_json::{from_value, json};

fn seen() -> SurveyAnswers {
    SurveyAnswers {
        context: Some("lab".to_owned()),
        version: "v1.34.4".to_owned(),
        classes: from_value(json!([
            {"metadata": {"name": "slow",
              "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
             "provisioner": "example.com/nfs", "reclaimPolicy": "Retain",
             "volumeBindingMode": "Immediate"},
            {"metadata": {"name": "fast"},
             "provisioner": "example.com/disk", "reclaimPolicy": "Delete",
             "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true},
        ]))
        .unwrap(),
        nodes: from_value(json!([
            {"metadata": {"name": "n1",
              "labels": {"kubernetes.io/arch": "amd64",
                         "cloud.google.com/gke-local-nvme-ssd": "true"}},
             "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
             "status": {"allocatable": {"ephemeral-storage": "100Gi"}, "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]}},
            {"metadata": {"name": "n2", "labels": {"kubernetes.io/arch": "amd64"}},
             "spec": {"unschedulable": true},
             "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        ]))
        .unwrap(),
        volumes: volumes(),
        drivers: from_value(json!([
            {"metadata": {"name": "example.com/nfs"}, "spec": {}},
            {"metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": true}},
        ]))
        .unwrap(),
        driver_nodes: from_value(json!([
            {"metadata": {"name": "n1"}, "spec": {"drivers": [
                {"name": "example.com/disk", "nodeID": "1"},
                {"name": "example.com/nfs", "nodeID": "1"}]}},
            {"metadata": {"name": "n2"}, "spec": {"drivers": [
                {"name": "example.com/disk", "nodeID": "2"}]}},
        ]))
        .unwrap(),
        snapshot_classes: from_value(json!([
            {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
             "metadata": {"name": "snap"}, "driver": "example.com/disk",
             "deletionPolicy": "Delete"},
        ]))
        .unwrap(),
        lacks_snapshots: false,
        lost_namespaces: vec![LostNamespace {
            name: "lab".to_owned(),
        }],
        leftovers: Some(vec![LeftoverRun {
            namespace: "bench".to_owned(),
            job: "iosonde-3f2a9c00".to_owned(),
            id: "3f2a9c00".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            is_running: true,
        }]),
    }
}

/// A volume in use, a leftover of a run, a volume of others, and a local disk.
fn volumes() -> Option<Vec<PersistentVolume>> {
    from_value(json!([
        {"metadata": {"name": "pvc-1"}, "spec": {"storageClassName": "fast"},
         "status": {"phase": "Bound"}},
        {"metadata": {"name": "pvc-2",
          "annotations": {"pv.kubernetes.io/provisioned-by": "example.com/nfs"}},
         "spec": {"storageClassName": "slow", "capacity": {"storage": "5Gi"},
          "claimRef": {"namespace": "bench", "name": "iosonde-3f2a9c00-0-x7k2p-data"}},
         "status": {"phase": "Released"}},
        {"metadata": {"name": "pvc-3"},
         "spec": {"storageClassName": "slow", "claimRef": {"namespace": "shop", "name": "data"}},
         "status": {"phase": "Released"}},
        {"metadata": {"name": "local-1"},
         "spec": {"storageClassName": "ssd", "local": {"path": "/mnt/ssd0"},
          "capacity": {"storage": "375Gi"},
          "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]}}}},
    ]))
    .unwrap()
}

fn ids(survey: &Survey) -> Vec<&str> {
    survey
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect()
}

#[test]
fn survey_describes_and_judges_the_cluster() {
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
    let leftover = &survey.findings[2].cause;
    let Some(FindingCause::Cluster(ClusterCause::RunInCluster {
        run, is_running, ..
    })) = leftover
    else {
        panic!("{leftover:?}");
    };
    assert_eq!((run.as_str(), *is_running), ("3f2a9c00", true));
    assert_eq!(
        survey.lost_volumes.len(),
        1,
        "volumes of others are not ours to name"
    );
}

#[test]
fn failed_trial_is_a_problem() {
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
fn trial_by_one_pod_only_is_a_note_with_its_cause() {
    let mut survey = seen().survey();
    let classes = survey.classes.as_mut().unwrap();
    classes[0].trial = Some(Trial::Works {
        elapsed_ms: 5,
        free_bytes: None,
        shared: None,
        sharing_not_tried: Some(SharingNotTried {
            cause: "no node takes the pod".to_owned(),
            remedy: "add a node".to_owned(),
        }),
    });
    survey.judge();
    let mut findings = survey.findings.iter();
    let found = findings.find(|finding| finding.id == "sharing_not_tried");
    let found = found.unwrap();
    assert_eq!(
        (found.subject.as_str(), found.severity),
        ("fast", Severity::Note)
    );
    assert!(!ids(&survey).contains(&"class_does_not_work"));
}

#[test]
fn unreadable_facts_are_left_out_of_the_survey() {
    let blind = SurveyAnswers::default().survey();
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
    assert_eq!(drivers[0].takes_snapshots, Some(true));
    assert_eq!(drivers[1].takes_snapshots, Some(false));
    let without = SurveyAnswers {
        snapshot_classes: None,
        lacks_snapshots: true,
        ..seen()
    };
    let drivers_without = without.survey().drivers.unwrap();
    assert_eq!(drivers_without[0].takes_snapshots, Some(false));
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
fn classes_that_archive_and_lack_of_shared_class_are_found() {
    let mut seen = seen();
    let classes = seen.classes.as_mut().unwrap();
    classes[1].parameters = Some([("onDelete".to_owned(), "archive".to_owned())].into());
    let survey = seen.survey();
    assert!(ids(&survey).contains(&"class_keeps_directory"));
    assert!(!ids(&survey).contains(&"no_shared_class"), "slow is NFS");
    for class in seen.classes.iter_mut().flatten() {
        class.provisioner = "ebs.csi.aws.com".to_owned();
    }
    let survey = seen.survey();
    let mut findings = survey.findings.iter();
    let found = findings.find(|finding| finding.id == "no_shared_class");
    let cause = ClusterCause::NoSharedClass {
        provisioners: vec!["ebs.csi.aws.com".to_owned(); 2],
    };
    assert_eq!(found.unwrap().cause, Some(FindingCause::Cluster(cause)));
}

#[test]
fn sharing_of_a_class_is_known_by_its_driver_or_its_volumes() {
    let shared = |answers: &SurveyAnswers| -> Vec<Option<bool>> {
        let classes = answers.survey().classes.unwrap();
        classes.iter().map(|class| class.shared).collect()
    };
    let mut answers = seen();
    assert_eq!(shared(&answers), [None, Some(true)], "slow is NFS");
    let modes = json!({"storageClassName": "fast", "accessModes": ["ReadWriteMany"]});
    answers.volumes.as_mut().unwrap()[0].spec = from_value(modes).unwrap();
    assert_eq!(shared(&answers), [Some(true); 2]);
    let spec = answers.volumes.as_mut().unwrap()[0].spec.as_mut().unwrap();
    spec.volume_mode = Some("Block".to_owned());
    assert_eq!(
        shared(&answers),
        [None, Some(true)],
        "a device for several nodes has no file system"
    );
    let spec = answers.volumes.as_mut().unwrap()[0].spec.as_mut().unwrap();
    spec.volume_mode = Some("Filesystem".to_owned());
    assert_eq!(shared(&answers), [Some(true); 2]);
    let classes = answers.classes.as_mut().unwrap();
    let fast = classes
        .iter_mut()
        .find(|class| class.provisioner.ends_with("disk"));
    fast.unwrap().provisioner = "ebs.csi.aws.com".to_owned();
    assert_eq!(
        shared(&answers),
        [Some(false), Some(true)],
        "the driver counts more than a volume made by hand"
    );
}

#[test]
fn class_with_driver_on_no_node_is_a_problem() {
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

#[test]
fn old_node_of_gke_and_small_node_are_found() {
    let mut seen = seen();
    let nodes = seen.nodes.as_mut().unwrap();
    for (node, version) in nodes.iter_mut().zip(["v1.24.9-gke.1", "v1.27.3-gke.100"]) {
        let status = node.status.get_or_insert_default();
        let info = status.node_info.get_or_insert_default();
        info.kubelet_version = version.to_owned();
    }
    let mut survey = seen.survey();
    let of = |survey: &Survey, id: &str| -> Vec<(String, Severity)> {
        let found = survey.findings.iter().filter(|finding| finding.id == id);
        found
            .map(|finding| (finding.subject.clone(), finding.severity))
            .collect()
    };
    let old = of(&survey, "no_nvme_ephemeral_storage");
    assert_eq!(old, [("n1".to_owned(), Severity::Note)]);
    let small = |survey: &mut Survey, gib: u64| {
        survey.requested_bytes = Some(gib << 30);
        survey.judge();
        of(survey, "ephemeral_storage_too_small")
    };
    assert!(small(&mut survey, 100).is_empty());
    assert_eq!(
        small(&mut survey, 200),
        [("n1".to_owned(), Severity::Problem)],
        "the other node is closed"
    );
    survey.nodes.as_mut().unwrap()[1].is_usable = true;
    assert_eq!(
        small(&mut survey, 200),
        [("n1".to_owned(), Severity::Note)],
        "the space of the other node is not known"
    );
}
