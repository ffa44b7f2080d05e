//! Commands on a whole cluster: kubestr's command, the doctor, and pods with options of the user.

use super::{
    ENDLESS, IMAGE, JOB, TestNamespace, apply_class, begun, cluster, kubectl, kubectl_with, run,
    signal,
};
use iosonde_e2e::program::iosonde;
use rustix::process::Signal;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
#[ignore = "needs a cluster"]
fn kubestr_command_measures_classes_side_by_side() {
    let namespace = TestNamespace::new("kubestr");
    let scratch = tempfile::tempdir().expect("a directory");
    let job = scratch.path().join("job.fio");
    let text = "[global]\nbs=4k\nsize=16m\nruntime=1\ntime_based\n[read_iops]\nrw=randread\n\
                [both]\nstonewall\nrw=randrw\n";
    std::fs::write(&job, text).expect("a file");
    let line = format!(
        "k8s fio -s local-path -s loop-ext4 -z 100Mi -i {IMAGE} -n {} -f {}",
        namespace.name,
        job.display()
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    for words in [
        "Storage class loop-ext4",
        "JobName: read_iops",
        "latency: avg=",
        "Side by side",
        "both write",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    namespace.assert_clean();
    let (status, stdout, stderr) = run(namespace.command(&format!("{line} -o json")));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(json[1]["storage_class"], "loop-ext4");
    assert!(json[1]["fio"]["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn symlink_is_kubectl_plugin() {
    let namespace = TestNamespace::new("plugin");
    let bin = tempfile::tempdir().expect("a directory");
    symlink(iosonde(), bin.path().join("kubectl-iosonde")).expect("a link");
    let path = format!(
        "{}:{}",
        bin.path().display(),
        std::env::var("PATH").expect("PATH")
    );
    // iosonde's own arguments, on the cluster of kubectl's kubeconfig.
    let line = format!(
        "iosonde fio --target emptydir:// --namespace {} {JOB}",
        namespace.name
    );
    let mut kubectl = Command::new(cluster().join("bin/kubectl"));
    kubectl
        .args(line.split_whitespace())
        .env("PATH", path)
        .env("KUBECONFIG", cluster().join("cfg/admin.kubeconfig"))
        .env("IOSONDE_NO_SAVE", "1");
    let (status, stdout, stderr) = run(kubectl);
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
    namespace.assert_clean();
}

/// The running pod of a job on an emptyDir, found by the label `team=storage` of `words`.
fn pod_of_the_team(namespace: &TestNamespace, words: &str) -> serde_json::Value {
    let mut child = begun(namespace, namespace.fio("emptydir://", words));
    let first = "jsonpath={.items[0]}";
    let pod = namespace.kubectl(&["get", "pods", "-l", "team=storage", "-o", first]);
    signal(&child, Signal::INT);
    child.wait().expect("it ends");
    serde_json::from_str(&pod).expect("a pod")
}

#[test]
#[ignore = "needs a cluster"]
fn pod_patch_and_tolerations_apply_to_pod() {
    let namespace = TestNamespace::new("pod");
    let patch = concat!(
        r#"{"metadata":{"labels":{"team":"storage"}},"#,
        r#""spec":{"containers":[{"name":"iosonde","resources":{"limits":{"memory":"512Mi"}}}]}}"#,
    );
    let words = format!(
        "--medium memory --claim-size 100m --toleration dedicated=db:NoSchedule --pod-patch \
         {patch} --name=t --rw=randread --bs=4k --size=16m --runtime=600 --time_based --direct=0"
    );
    let pod = &pod_of_the_team(&namespace, &words)["spec"];
    assert_eq!(
        pod["containers"][0]["resources"]["limits"]["memory"],
        "512Mi"
    );
    assert!(
        pod["tolerations"].to_string().contains("dedicated"),
        "{pod}"
    );
    assert!(
        pod["volumes"].to_string().contains("\"medium\":\"Memory\""),
        "{pod}"
    );
    namespace.assert_clean();
    let wrong = r#"{"spec":{"priorityclass":"high"}}"#;
    let (status, _, stderr) = run(namespace.fio(
        "emptydir://",
        &format!(
            "--pod-patch {wrong} \
                                                                         {JOB}"
        ),
    ));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("a pod has no spec.priorityclass"),
        "{stderr}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn pod_options_appear_in_pod_spec() {
    let namespace = TestNamespace::new("asked");
    let class = format!("bench-{}", namespace.name);
    let priority = format!(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {class}}}\n\
         value: 7\n"
    );
    kubectl_with(&["apply", "-f", "-"], &priority);
    namespace.kubectl(&["create", "serviceaccount", "bench"]);
    let words = format!(
        "--ephemeral-storage 90m --node-affinity kubernetes.io/hostname!=n1 --priority-class \
         {class} --requests cpu=10m,memory=64Mi --limits memory=512Mi --image-pull-secret registry \
         --service-account bench --pod-label team=storage --pod-annotation why=test {ENDLESS}"
    );
    let pod = pod_of_the_team(&namespace, &words);
    kubectl(&["delete", "priorityclass", &class]);
    let (spec, resources) = (&pod["spec"], &pod["spec"]["containers"][0]["resources"]);
    assert_eq!(resources["requests"]["ephemeral-storage"], "90Mi");
    assert_eq!(resources["requests"]["cpu"], "10m");
    assert_eq!(resources["limits"]["memory"], "512Mi");
    assert_eq!(
        (&spec["priority"], &spec["nodeName"]),
        (&7.into(), &"n2".into())
    );
    assert_eq!(spec["imagePullSecrets"][0]["name"], "registry");
    assert_eq!(spec["serviceAccountName"], "bench");
    assert_eq!(pod["metadata"]["annotations"]["why"], "test");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn watched_node_differs_from_measuring_node() {
    let namespace = TestNamespace::new("watched");
    let line = "--node-selector kubernetes.io/hostname=n1 --claim-size 100m --name=t \
                --rw=randwrite --bs=4k --size=16m --direct=1 --runtime=3 --time_based";
    let json = format!("--watch-node n2 {line} --output-format=json");
    let (status, stdout, stderr) = run(namespace.fio("sc://loop-ext4", &json));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let node = &json["iosonde"]["nodes"][0];
    assert_eq!(
        (&node["node"], &node["why"]),
        (&"n2".into(), &"named with --watch-node".into())
    );
    // The nodes of this cluster share one machine, whose disks are busy.
    let disks = node["disks"].as_object().expect("disks");
    let tps = disks.values().filter_map(|rates| rates["tps"].as_f64());
    assert!(tps.sum::<f64>() > 0.0, "{node}");
    let interfaces = node["network"]["interfaces"].as_object();
    assert!(
        interfaces.is_some_and(|all| !all.is_empty()),
        "those of the node: {node}"
    );
    namespace.assert_clean();
    let (status, stdout, stderr) =
        run(namespace.fio("sc://loop-ext4", &format!("--watch-node n2 {line}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("Node n2, watched: named with --watch-node") && stdout.contains("%util"),
        "{stdout}"
    );
    namespace.assert_clean();
    let (status, _, stderr) = run(namespace.fio(
        "sc://loop-ext4",
        &format!(
            "--watch-node n9 \
                                                                            {line}"
        ),
    ));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("there is no node n9"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn nodes_are_watched_without_a_run_and_pods_are_removed() {
    let namespace = TestNamespace::new("watch");
    let line = format!(
        "watch node/n1 node/n2 -n {} --image {IMAGE} --format json 1 2",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let lines: Vec<serde_json::Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3, "two intervals and the averages: {stdout}");
    for node in ["n1", "n2"] {
        let length_s = lines[2]["nodes"][node]["elapsed_s"].as_f64();
        assert!(length_s.is_some_and(|length_s| length_s > 1.0), "{stdout}");
        assert!(lines[0]["nodes"][node]["devices"].is_object(), "{stdout}");
    }
    namespace.assert_clean();
    let line = format!("watch node/n9 -n {} --image {IMAGE} 1 1", namespace.name);
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("there is no node n9"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn typo_in_last_class_is_reported_before_measuring() {
    let namespace = TestNamespace::new("typo");
    let line = format!(
        "probe sc://local-path sc://loop-ext5 --image {IMAGE} -n {} --claim-size 100m",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("did you mean sc://loop-ext4?"), "{stderr}");
    assert!(
        !stderr.contains("take turns") && stdout.is_empty(),
        "{stderr}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn doctor_names_classes_nodes_and_leftovers() {
    let namespace = TestNamespace::new("doctor");
    // A class with reclaim policy Retain: a run leaves its volume behind.
    let class = format!("keep-{}", namespace.name);
    let keep = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {class}}}\n\
         provisioner: example.com/loop\n\
         parameters: {{fsType: ext4}}\nreclaimPolicy: Retain\n\
         volumeBindingMode: WaitForFirstConsumer\n"
    );
    kubectl_with(&["apply", "-f", "-"], &keep);
    let (status, stdout, stderr) =
        run(namespace.fio(&format!("sc://{class}"), &format!("--claim-size 50m {JOB}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("retains volumes"), "{stdout}");
    assert!(stderr.is_empty(), "{stderr}");
    let mut child = begun(
        &namespace,
        namespace.fio("emptydir://", &format!("--claim-size 50m {ENDLESS}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let doctor = format!("doctor --cluster -n {}", namespace.name);
    let (status, stdout, stderr) = run(namespace.command(&format!("{doctor} --fail-on note")));
    assert_eq!(status, Some(8), "{stderr}");
    for words in [
        class.as_str(),
        "rancher.io/local-path",
        "n1",
        "a run is in the cluster",
        "the volume of a run",
        "--clean",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let (status, _, stderr) = run(namespace.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stderr.contains("removed: 1 run, 1 volume, 0 namespaces"),
        "{stderr}"
    );
    namespace.assert_clean();
    let (_, stdout, _) = run(namespace.command(&format!("{doctor} --format json")));
    let survey: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(survey["leftovers"].as_array().map(Vec::len), Some(0));
    assert_eq!(survey["lost_volumes"].as_array().map(Vec::len), Some(0));
    kubectl(&["delete", "storageclass", &class]);
}

#[test]
#[ignore = "needs a cluster"]
fn doctor_lists_capabilities_of_a_csi_driver() {
    let namespace = TestNamespace::new("drivers");
    let doctor = format!("doctor --cluster --format json -n {}", namespace.name);
    let (status, stdout, stderr) = run(namespace.command(&doctor));
    assert_eq!(status, Some(0), "{stderr}");
    let survey: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let drivers = survey["drivers"].as_array().expect("a list");
    let driver = drivers
        .iter()
        .find(|driver| driver["name"] == "loop.csi.example.com");
    let driver = driver.expect("the driver");
    assert_eq!(driver["nodes"], 2, "{driver}");
    for capability in [
        "publishes_capacity",
        "attaches",
        "expands",
        "takes_snapshots",
    ] {
        assert_eq!(driver[capability], true, "{capability}: {driver}");
    }
    assert_eq!(driver["has_ephemeral_volumes"], false, "{driver}");
    let classes = survey["snapshot_classes"].as_array().expect("a list");
    assert!(
        classes.iter().any(|class| class["name"] == "csi-loop"),
        "{classes:?}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn doctor_lists_disks_and_mounts_of_nodes() {
    let namespace = TestNamespace::new("inspect");
    let doctor = format!(
        "doctor --cluster --inspect-nodes --ephemeral-storage 100t --image {IMAGE} -n {}",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&doctor));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("create pods/exec"), "{stderr}");
    assert!(stdout.contains("for hostpath://"), "{stdout}");
    let (_, stdout, stderr) = run(namespace.command(&format!("{doctor} --format json")));
    let survey: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let inspected = survey["inspected"].as_array().expect("a list");
    assert!(!inspected.is_empty(), "{stderr}");
    for node in inspected {
        assert!(node["node"].is_string(), "{node}");
        assert_eq!(node["storage"]["mounts"][0]["path"], "/", "{node}");
        assert!(
            node["storage"]["mounts"][0]["total_bytes"].as_u64() > Some(0),
            "{node}"
        );
    }
    namespace.assert_clean();
}

/// Makes a volume that shows that `csi-shared` has volumes for many nodes. No claim can bind it.
/// The caller deletes it.
fn reserve_shared_volume(namespace: &TestNamespace) -> String {
    let reserved = format!("reserved-{}", namespace.name);
    let volume = format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {reserved}}}\n\
         spec: {{storageClassName: csi-shared, accessModes: [ReadWriteMany], \
         capacity: {{storage: 1Mi}}, persistentVolumeReclaimPolicy: Retain, \
         hostPath: {{path: /reserved}}, \
         claimRef: {{namespace: {}, name: reserved}}}}\n",
        namespace.name
    );
    kubectl_with(&["apply", "-f", "-"], &volume);
    reserved
}

/// Subjects of the findings with this id in a survey.
fn findings(survey: &str, id: &str) -> Vec<String> {
    let survey: serde_json::Value = serde_json::from_str(survey).expect("JSON");
    let findings = survey["findings"].as_array().expect("findings");
    let found = findings.iter().filter(|finding| finding["id"] == id);
    let subject = |finding: &serde_json::Value| finding["subject"].as_str().map(str::to_owned);
    found.filter_map(subject).collect()
}

#[test]
#[ignore = "needs a cluster"]
fn doctor_trial_with_quota_for_one_pod_names_what_was_not_tried() {
    let namespace = TestNamespace::new("trialquota");
    let reserved = reserve_shared_volume(&namespace);
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: one}\n\
                 spec: {hard: {pods: 1}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], quota);
    let status = "--for=jsonpath={.status.hard}";
    namespace.kubectl(&["wait", status, "resourcequota/one", "--timeout=30s"]);
    let line = format!(
        "doctor --cluster --trial --claim-size 50m --timeout 20 --format json --image {IMAGE} -n \
         {}",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    kubectl(&["delete", "persistentvolume", &reserved]);
    assert_eq!(status, Some(0), "{stderr}");
    let shared = "csi-shared".to_owned();
    let broken = findings(&stdout, "class_does_not_work");
    assert!(!broken.contains(&shared), "{stdout}");
    let not_tried = findings(&stdout, "sharing_not_tried");
    assert!(not_tried.contains(&shared), "{stdout}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn failed_trial_removes_the_volume_of_a_class_that_retains_it() {
    let namespace = TestNamespace::new("trialretain");
    let class = format!("retain-{}", namespace.name);
    apply_class(
        &class,
        "provisioner: example.com/loop\nparameters: {fsType: ext4}\nreclaimPolicy: Retain\n\
         volumeBindingMode: WaitForFirstConsumer\n",
    );
    let line = format!(
        "doctor --cluster --trial --claim-size 50m --timeout 20 --format json --image no/such:1 \
         -n {}",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    kubectl(&["delete", "storageclass", &class]);
    assert_eq!(status, Some(0), "{stderr}");
    let broken = findings(&stdout, "class_does_not_work");
    assert!(broken.contains(&class), "{stdout}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn doctor_trial_finds_broken_class_and_reads_across_nodes() {
    let namespace = TestNamespace::new("trial");
    let reserved = reserve_shared_volume(&namespace);
    let class = format!("broken-{}", namespace.name);
    let broken = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {class}}}\n\
         provisioner: example.com/none\n\
         volumeBindingMode: WaitForFirstConsumer\n"
    );
    kubectl_with(&["apply", "-f", "-"], &broken);
    let line = format!(
        "doctor --cluster --trial --claim-size 50m --timeout 20 --format json --image {IMAGE} -n \
         {}",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    kubectl(&["delete", "storageclass", &class]);
    kubectl(&["delete", "persistentvolume", &reserved]);
    assert_eq!(status, Some(0), "{stderr}");
    let survey: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let classes = survey["classes"].as_array().expect("a list");
    let trial = |name: &str| {
        let found = classes.iter().find(|found| found["name"] == name);
        found.expect("the class")["trial"].clone()
    };
    assert!(
        trial("loop-ext4")["works"]["elapsed_ms"].as_u64() > Some(0),
        "{stdout}"
    );
    assert!(trial(&class)["fails"]["cause"].is_string(), "{stdout}");
    let shared = trial("csi-shared")["works"]["shared"].clone();
    assert_eq!(
        shared["nodes"].as_array().map(Vec::len),
        Some(2),
        "{stdout}"
    );
    assert!(shared["verified_bytes"].as_u64() > Some(0), "{stdout}");
    assert!(trial("loop-ext4")["works"]["shared"].is_null(), "{stdout}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn class_that_archives_is_named_before_and_after_a_run() {
    let namespace = TestNamespace::new("archives");
    let class = format!("archives-{}", namespace.name);
    // The provisioner ignores the parameter, which is that of provisioners on NFS.
    let fields = "provisioner: rancher.io/local-path\n\
                  parameters: {archiveOnDelete: \"true\"}\n\
                  volumeBindingMode: WaitForFirstConsumer\n";
    apply_class(&class, fields);
    let doctor = format!("doctor --cluster --format json -n {}", namespace.name);
    let (status, stdout, stderr) = run(namespace.command(&doctor));
    assert_eq!(status, Some(0), "{stderr}");
    let found = findings(&stdout, "class_keeps_directory");
    assert!(found.contains(&class), "{stdout}");
    let words = format!("--claim-size 50m {JOB}");
    let (status, stdout, stderr) = run(namespace.fio(&format!("sc://{class}"), &words));
    kubectl(&["delete", "storageclass", &class]);
    assert_eq!(status, Some(0), "{stderr}");
    let note = format!("each volume of the class {class} leaves a directory archived-*");
    // The result has the note from before the run. The other one follows the removal.
    assert!(stdout.contains(&note), "{stdout}");
    assert!(stderr.contains(&format!("note: {note}")), "{stderr}");
    namespace.assert_clean();
}
