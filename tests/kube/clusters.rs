//! What is asked of a cluster as a whole: kubestr's command, the doctor, and pods of the user's making.

use super::{ENDLESS, IMAGE, JOB, Lab, begun, cluster, kubectl, kubectl_with, run, signal};
use iosonde_e2e::program::iosonde;
use rustix::process::Signal;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
#[ignore = "needs a cluster"]
fn kubestrs_command_measures_classes_side_by_side() {
    let lab = Lab::new("kubestr");
    let scratch = tempfile::tempdir().expect("a directory");
    let job = scratch.path().join("job.fio");
    let text = "[global]\nbs=4k\nsize=16m\nruntime=1\ntime_based\n[read_iops]\nrw=randread\n[both]\nstonewall\nrw=randrw\n";
    std::fs::write(&job, text).expect("a file");
    let line = format!(
        "k8s fio -s local-path -s loop-ext4 -z 100Mi -i {IMAGE} -n {} -f {}",
        lab.namespace,
        job.display()
    );
    let (status, stdout, stderr) = run(lab.command(&line));
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
    lab.assert_clean();
    let (status, stdout, stderr) = run(lab.command(&format!("{line} -o json")));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(json[1]["storage_class"], "loop-ext4");
    assert!(json[1]["fio"]["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_link_to_it_is_a_plugin_of_kubectl() {
    let lab = Lab::new("plugin");
    let bin = tempfile::tempdir().expect("a directory");
    symlink(iosonde(), bin.path().join("kubectl-iosonde")).expect("a link");
    let path = format!(
        "{}:{}",
        bin.path().display(),
        std::env::var("PATH").expect("PATH")
    );
    // The words of iosonde itself, in the cluster that kubectl has.
    let line = format!(
        "iosonde fio --target emptydir:// --namespace {} {JOB}",
        lab.namespace
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
    lab.assert_clean();
}

/// The pod of a job on an emptyDir while it runs, found by the label that the words give it.
fn pod_of_the_team(lab: &Lab, words: &str) -> serde_json::Value {
    let mut child = begun(lab, lab.fio("emptydir://", words));
    let first = "jsonpath={.items[0]}";
    let pod = lab.kubectl(&["get", "pods", "-l", "team=storage", "-o", first]);
    signal(&child, Signal::INT);
    child.wait().expect("it ends");
    serde_json::from_str(&pod).expect("a pod")
}

#[test]
#[ignore = "needs a cluster"]
fn a_pod_is_as_the_user_wants_it() {
    let lab = Lab::new("pod");
    let patch = r#"{"metadata":{"labels":{"team":"storage"}},"spec":{"containers":[{"name":"iosonde","resources":{"limits":{"memory":"512Mi"}}}]}}"#;
    let words = format!(
        "--medium memory --claim-size 100m --toleration dedicated=db:NoSchedule --pod-patch {patch} --name=t --rw=randread \
         --bs=4k --size=16m --runtime=600 --time_based --direct=0"
    );
    let pod = &pod_of_the_team(&lab, &words)["spec"];
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
    lab.assert_clean();
    let wrong = r#"{"spec":{"priorityclass":"high"}}"#;
    let (status, _, stderr) = run(lab.fio("emptydir://", &format!("--pod-patch {wrong} {JOB}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("a pod has no spec.priorityclass"),
        "{stderr}"
    );
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn what_clusters_ask_of_pods_is_in_the_pod() {
    let lab = Lab::new("asked");
    let class = format!("bench-{}", lab.namespace);
    let priority = format!(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {class}}}\nvalue: 7\n"
    );
    kubectl_with(&["apply", "-f", "-"], &priority);
    lab.kubectl(&["create", "serviceaccount", "bench"]);
    let words = format!(
        "--ephemeral-storage 90m --node-affinity kubernetes.io/hostname!=n1 --priority-class {class} --requests cpu=10m,memory=64Mi \
         --limits memory=512Mi --image-pull-secret registry --service-account bench --pod-label team=storage \
         --pod-annotation why=test {ENDLESS}"
    );
    let pod = pod_of_the_team(&lab, &words);
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
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_node_is_watched_while_a_pod_on_another_measures() {
    let lab = Lab::new("watched");
    let line = "--node-selector kubernetes.io/hostname=n1 --claim-size 100m --name=t --rw=randwrite --bs=4k --size=16m --direct=1 \
                --runtime=3 --time_based";
    let json = format!("--watch-node n2 {line} --output-format=json");
    let (status, stdout, stderr) = run(lab.fio("sc://loop-ext4", &json));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let node = &json["iosonde"]["nodes"][0];
    assert_eq!(
        (&node["node"], &node["why"]),
        (&"n2".into(), &"asked for".into())
    );
    // The nodes of this cluster are one machine, whose disks are busy.
    let disks = node["disks"].as_object().expect("disks");
    let tps = disks.values().filter_map(|rates| rates["tps"].as_f64());
    assert!(tps.sum::<f64>() > 0.0, "{node}");
    lab.assert_clean();
    let (status, stdout, stderr) =
        run(lab.fio("sc://loop-ext4", &format!("--watch-node n2 {line}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("Node n2, watched: asked for") && stdout.contains("%util"),
        "{stdout}"
    );
    lab.assert_clean();
    let (status, _, stderr) = run(lab.fio("sc://loop-ext4", &format!("--watch-node n9 {line}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("there is no node n9"), "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_mistake_in_the_last_class_is_told_before_the_first_is_measured() {
    let lab = Lab::new("typo");
    let line = format!(
        "probe sc://local-path sc://loop-ext5 --image {IMAGE} -n {} --claim-size 100m",
        lab.namespace
    );
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("did you mean sc://loop-ext4?"), "{stderr}");
    assert!(
        !stderr.contains("take turns") && stdout.is_empty(),
        "{stderr}"
    );
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn the_doctor_names_classes_nodes_and_what_runs_have_left() {
    let lab = Lab::new("doctor");
    // A class that keeps its volumes, so that a run leaves one behind.
    let class = format!("keep-{}", lab.namespace);
    let keep = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {class}}}\nprovisioner: example.com/loop\n\
         parameters: {{fsType: ext4}}\nreclaimPolicy: Retain\nvolumeBindingMode: WaitForFirstConsumer\n"
    );
    kubectl_with(&["apply", "-f", "-"], &keep);
    let (status, stdout, stderr) =
        run(lab.fio(&format!("sc://{class}"), &format!("--claim-size 50m {JOB}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("retains volumes"), "{stdout}");
    assert!(stderr.is_empty(), "{stderr}");
    let mut child = begun(
        &lab,
        lab.fio("emptydir://", &format!("--claim-size 50m {ENDLESS}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let doctor = format!("doctor --cluster -n {}", lab.namespace);
    let (status, stdout, stderr) = run(lab.command(&format!("{doctor} --fail-on note")));
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
    let (status, _, stderr) = run(lab.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stderr.contains("removed: 1 runs, 1 volumes, 0 namespaces"),
        "{stderr}"
    );
    lab.assert_clean();
    let (_, stdout, _) = run(lab.command(&format!("{doctor} --format json")));
    let survey: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(survey["leftovers"].as_array().map(Vec::len), Some(0));
    assert_eq!(survey["lost_volumes"].as_array().map(Vec::len), Some(0));
    kubectl(&["delete", "storageclass", &class]);
}

#[test]
#[ignore = "needs a cluster"]
fn a_trial_finds_the_class_that_does_not_work() {
    let lab = Lab::new("trial");
    let class = format!("broken-{}", lab.namespace);
    let broken = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {class}}}\nprovisioner: example.com/none\n\
         volumeBindingMode: WaitForFirstConsumer\n"
    );
    kubectl_with(&["apply", "-f", "-"], &broken);
    let line = format!(
        "doctor --cluster --trial --claim-size 50m --timeout 20 --format json --image {IMAGE} -n {}",
        lab.namespace
    );
    let (status, stdout, stderr) = run(lab.command(&line));
    kubectl(&["delete", "storageclass", &class]);
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
    lab.assert_clean();
}
