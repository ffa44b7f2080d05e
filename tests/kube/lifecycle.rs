//! `iosonde k8s lifecycle` on the classes of the cluster.

use super::{
    IMAGE, TestNamespace, acting_as, apply_class, kubectl, kubectl_with, printed_role, run, signal,
};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time for the cluster to remove the objects of a Job that has ended.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(240);

fn lifecycle(namespace: &TestNamespace, words: &str) -> Command {
    let name = &namespace.name;
    namespace.command(&format!(
        "k8s lifecycle --image {IMAGE} -n {name} --claim-size 64m {words}"
    ))
}

/// Runs a life cycle and returns its document.
fn measured(namespace: &TestNamespace, words: &str) -> Value {
    let (status, stdout, stderr) = run(lifecycle(namespace, &format!("{words} --format json")));
    assert_eq!(status, Some(0), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).expect("JSON");
    document["lifecycle"].clone()
}

fn stage<'a>(group: &'a Value, name: &str) -> &'a Value {
    let stages = group["stages"].as_array().expect("stages");
    let found = stages.iter().find(|stage| stage["stage"] == name);
    found.expect("the stage")
}

#[test]
#[ignore = "needs a cluster"]
fn stages_of_alternating_classes_are_measured_and_all_is_removed() {
    let namespace = TestNamespace::new("lifecycle");
    let words = "sc://local-path sc://loop-ext4 --count 1,4 --rounds 2";
    let result = measured(&namespace, words);
    let groups = result["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 4, "{result}");
    for group in groups {
        let volumes = 2 * group["at_once"].as_u64().expect("a count");
        for name in [
            "provision",
            "bind",
            "mount",
            "first_write",
            "detach",
            "delete",
        ] {
            let stage = stage(group, name);
            assert_eq!(stage["measured"], volumes, "{name}: {group}");
            assert!(
                stage["p50"]["value_ns"].as_f64().expect("ns") >= 0.0,
                "{name}"
            );
        }
        assert_eq!(stage(group, "expand")["absence"], "no_expansion");
        assert_eq!(stage(group, "attach")["absence"], "no_attachments");
        assert_eq!(group["failed_volumes"], 0, "{group}");
    }
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn csi_driver_has_all_stages_and_its_delays_are_measured() {
    let namespace = TestNamespace::new("csistages");
    let result = measured(
        &namespace,
        "sc://csi-loop sc://csi-delayed --count 2 --rounds 1",
    );
    let groups = result["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 2, "{result}");
    for group in groups {
        let is_delayed = group["class"]
            .as_str()
            .expect("a class")
            .contains("delayed");
        for name in [
            "provision",
            "bind",
            "attach",
            "mount",
            "first_write",
            "expand",
            "detach",
            "delete",
        ] {
            let stage = stage(group, name);
            assert_eq!(stage["measured"], 2, "{name}: {group}");
            let p50_ns = stage["p50"]["value_ns"].as_f64().expect("ns");
            if is_delayed && ["provision", "attach", "expand"].contains(&name) {
                assert!(p50_ns >= 3e9, "{name}: {group}");
            }
        }
        assert_eq!(group["failed_volumes"], 0, "{group}");
    }
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn driver_that_fails_at_times_is_measured_after_its_retries() {
    let namespace = TestNamespace::new("csiflaky");
    let result = measured(&namespace, "sc://csi-flaky --count 4 --rounds 1");
    let group = &result["groups"][0];
    assert_eq!(group["failed_volumes"], 0, "{group}");
    for name in ["provision", "attach"] {
        let stage = stage(group, name);
        assert_eq!(stage["measured"], 4, "{name}: {group}");
        // Each volume has two failures. The attacher may repeat the first request at once, because
        // it has changed the attachment itself. It delays the next one by a second.
        let p50_ns = stage["p50"]["value_ns"].as_f64().expect("ns");
        assert!(p50_ns >= 5e8, "{name}: {group}");
    }
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn failing_provisioner_is_a_counted_failure_with_its_message() {
    let namespace = TestNamespace::new("csifailing");
    let (status, stdout, stderr) = run(lifecycle(
        &namespace,
        "sc://csi-failing --count 2 --timeout 20",
    ));
    assert_eq!(status, Some(1), "{stderr}");
    // Without the line breaks of the table.
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("2 volumes failed at provision"), "{stdout}");
    let message = "create fails on request of the class";
    assert!(text.contains(message), "{stdout}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn stored_life_cycle_is_shown_compared_and_reported() {
    let namespace = TestNamespace::new("kept");
    let scratch = tempfile::tempdir().expect("a directory");
    let history = scratch.path().join("h.db").display().to_string();
    for _ in 0..2 {
        let words = format!("sc://local-path --rounds 2 --store {history}");
        let (status, _, stderr) = run(lifecycle(&namespace, &words));
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stderr.contains("stored in the history as"), "{stderr}");
    }
    let page = scratch.path().join("report.html").display().to_string();
    for (line, expected) in [
        (format!("show --store {history}"), "first write"),
        (
            format!("compare latest~1 latest --details --store {history}"),
            "provision",
        ),
        (format!("report latest --store {history} -o {page}"), ""),
    ] {
        let (status, stdout, stderr) = run(namespace.command(&line));
        assert_eq!(status, Some(0), "{line}: {stderr}");
        assert!(stdout.contains(expected), "{line}: {stdout}");
    }
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("median of each stage"));
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn class_that_never_binds_is_a_counted_failure() {
    let namespace = TestNamespace::new("unbound");
    let name = format!("never-{}", namespace.name);
    apply_class(
        &name,
        "provisioner: example.com/none\nvolumeBindingMode: Immediate\n",
    );
    let words = format!("sc://{name} --count 2 --timeout 8");
    let (status, stdout, stderr) = run(lifecycle(&namespace, &words));
    kubectl(&["delete", "storageclass", &name]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stdout.contains("2 volumes failed at provision"), "{stdout}");
    assert!(
        stdout.contains("all volumes of a round have failed"),
        "{stdout}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn image_that_cannot_be_pulled_ends_lifecycle_with_its_cause() {
    let namespace = TestNamespace::new("notready");
    let line = format!(
        "k8s lifecycle sc://local-path --image no/such:1 -n {} --claim-size 64m --count 2 \
         --timeout 15",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(
        stderr.contains("the image no/such:1 cannot be pulled"),
        "{stderr}"
    );
    assert!(stderr.contains("help: name an image"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn class_without_provisioner_and_other_targets_are_refused() {
    let namespace = TestNamespace::new("static");
    let name = format!("hand-{}", namespace.name);
    apply_class(&name, "provisioner: kubernetes.io/no-provisioner\n");
    for (target, expected) in [
        (format!("sc://{name}"), "the class has no provisioner"),
        ("pvc://data".to_owned(), "is not a storage class"),
        ("sc://missing".to_owned(), "there is no such storage class"),
    ] {
        let (status, _, stderr) = run(lifecycle(&namespace, &target));
        assert!(
            matches!(status, Some(2 | 3)),
            "{target}: {status:?} {stderr}"
        );
        assert!(stderr.contains(expected), "{target}: {stderr}");
        namespace.assert_clean();
    }
    kubectl(&["delete", "storageclass", &name]);
}

#[test]
#[ignore = "needs a cluster"]
fn quota_is_held_against_the_largest_round() {
    let namespace = TestNamespace::new("few");
    namespace.limit_claims(3);
    let (status, _, stderr) = run(lifecycle(&namespace, "sc://local-path --count 1,4"));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the quota few"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn user_without_rights_gets_a_role_that_suffices() {
    let namespace = TestNamespace::new("rights");
    let scratch = tempfile::tempdir().expect("a directory");
    let kubeconfig = scratch.path().join("user.kubeconfig");
    std::fs::write(&kubeconfig, acting_as(&namespace.name)).expect("a kubeconfig");
    let words = format!(
        "sc://local-path --rounds 1 --kubeconfig {}",
        kubeconfig.display()
    );
    let (status, _, stderr) = run(lifecycle(&namespace, &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("patch persistentvolumeclaims"), "{stderr}");
    // This user may not read the class, which may retain volumes.
    let of_volumes = "--clusterrole=iosonde-lifecycle ";
    assert!(stderr.contains(of_volumes), "{stderr}");
    // The Role alone suffices for a class that does not.
    kubectl_with(&["apply", "-f", "-"], &printed_role(&stderr));
    let user = format!("--user={}", namespace.name);
    let role = "--role=iosonde-lifecycle";
    namespace.kubectl(&["create", "rolebinding", "iosonde-lifecycle", role, &user]);
    let (status, stdout, stderr) = run(lifecycle(&namespace, &words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("needs `list`, `watch` of persistentvolumes"),
        "{stdout}"
    );
    assert!(
        stdout.contains("needs `list` of storageclasses"),
        "{stdout}"
    );
    namespace.assert_clean();
}

/// Starts a life cycle and waits until it has made a claim.
fn begun_lifecycle(namespace: &TestNamespace, class: &str) -> std::process::Child {
    let child = lifecycle(namespace, &format!("sc://{class} --count 2 --rounds 100"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iosonde starts");
    let begun = Instant::now();
    while namespace
        .kubectl(&["get", "pvc", "-l", "iosonde/run", "-o", "name"])
        .is_empty()
    {
        assert!(begun.elapsed() < REMOVAL_TIMEOUT, "no claim was made");
        std::thread::sleep(Duration::from_millis(100));
    }
    child
}

#[test]
#[ignore = "needs a cluster"]
fn interrupt_prints_the_result_so_far_and_removes_all() {
    let namespace = TestNamespace::new("stopped");
    let child = begun_lifecycle(&namespace, "local-path");
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("iosonde ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{stdout}");
    assert!(
        stdout.contains("interrupted: figures up to the"),
        "{stdout}"
    );
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn interrupt_removes_volumes_of_a_class_that_retains_them() {
    let namespace = TestNamespace::new("stopretain");
    let name = format!("retain-{}", namespace.name);
    apply_class(
        &name,
        "provisioner: example.com/loop\nparameters: {fsType: ext4}\nreclaimPolicy: Retain\n\
         volumeBindingMode: WaitForFirstConsumer\n",
    );
    let child = begun_lifecycle(&namespace, &name);
    let bound = "jsonpath={.items[*].status.phase}";
    let begun = Instant::now();
    while !namespace
        .kubectl(&["get", "pvc", "-l", "iosonde/run", "-o", bound])
        .contains("Bound")
    {
        assert!(begun.elapsed() < REMOVAL_TIMEOUT, "no claim was bound");
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("iosonde ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    kubectl(&["delete", "storageclass", &name]);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn objects_of_a_killed_client_are_removed_by_the_cluster() {
    let namespace = TestNamespace::new("killed");
    let mut child = begun_lifecycle(&namespace, "local-path");
    signal(&child, Signal::KILL);
    child.wait().expect("iosonde ends");
    let job = namespace.kubectl(&["get", "jobs", "-l", "iosonde/run", "-o", "name"]);
    let seconds = "jsonpath={.spec.activeDeadlineSeconds}";
    let deadline: u64 = namespace
        .kubectl(&["get", &job, "-o", seconds])
        .parse()
        .expect("a deadline");
    assert!(deadline < 600, "{deadline} s");
    // The client would extend the deadline: without it the cluster ends the Job.
    let now = "{\"spec\":{\"activeDeadlineSeconds\":1}}";
    namespace.kubectl(&["patch", &job, "--type=merge", "-p", now]);
    let begun = Instant::now();
    while !namespace.ours().trim().is_empty() {
        assert!(
            begun.elapsed() < REMOVAL_TIMEOUT,
            "left: {}",
            namespace.ours()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    namespace.wait_until_volumes_are_gone();
}
