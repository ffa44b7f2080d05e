//! `iosonde k8s csi` on the classes of the cluster. Tests of snapshots count as skipped on a
//! cluster without a snapshot class.

use super::{IMAGE, TestNamespace, acting_as, apply_class, kubectl, run, signal};
use iosonde_e2e::need::record_skip;
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for the cluster to remove the objects of a Job that has ended.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(240);
/// The resource of snapshot classes.
const SNAPSHOT_CLASSES: &str = "volumesnapshotclasses.snapshot.storage.k8s.io";

fn csi(namespace: &TestNamespace, words: &str) -> Command {
    let name = &namespace.name;
    namespace.command(&format!(
        "k8s csi --image {IMAGE} -n {name} --claim-size 512m --data-size 16m,32m --rounds 1 \
         --window 3s {words}"
    ))
}

/// Whether the cluster has the custom resource definitions of snapshots.
fn has_snapshot_api() -> bool {
    let resources = kubectl(&[
        "api-resources",
        "--api-group=snapshot.storage.k8s.io",
        "-o",
        "name",
    ]);
    resources.lines().any(|line| line == SNAPSHOT_CLASSES)
}

/// A storage class whose driver has a snapshot class. `None`, and the test counts as skipped, if
/// there is none.
fn class_with_snapshots() -> Option<String> {
    if !has_snapshot_api() {
        record_skip("needs the custom resource definitions of snapshots");
        return None;
    }
    let drivers = kubectl(&["get", SNAPSHOT_CLASSES, "-o", "jsonpath={.items[*].driver}"]);
    let names = "jsonpath={range .items[*]}{.metadata.name}={.provisioner} {end}";
    let classes = kubectl(&["get", "storageclass", "-o", names]);
    let mut pairs = classes.split(' ').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(_, driver)| drivers.split(' ').any(|known| known == *driver));
    if found.is_none() {
        record_skip("needs a storage class whose driver has a snapshot class");
    }
    found.map(|(class, _)| class.to_owned())
}

/// Names of the snapshots in the namespace.
fn snapshots(namespace: &TestNamespace) -> String {
    namespace.kubectl(&[
        "get",
        "volumesnapshots.snapshot.storage.k8s.io",
        "-o",
        "name",
    ])
}

#[test]
#[ignore = "needs a cluster"]
fn csi_services_return_the_right_data_and_are_removed() {
    let Some(class) = class_with_snapshots() else {
        return;
    };
    let namespace = TestNamespace::new("csi");
    let words = format!("sc://{class} --format json");
    let (status, stdout, stderr) = run(csi(&namespace, &words));
    assert_eq!(status, Some(0), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).expect("JSON");
    let services = document["csi"]["services"].as_array().expect("services");
    for name in ["snapshot", "restore", "clone"] {
        let of_name = services.iter().filter(|one| one["service"] == name);
        let of_name: Vec<&Value> = of_name.collect();
        assert_eq!(of_name.len(), 2, "{name}: {document}");
        for service in of_name {
            assert_eq!(service["measured"], 1, "{service}");
            assert_eq!(service["failed"], 0, "{service}");
            assert!(
                service["application"]["p99_before_ns"].is_u64(),
                "{service}"
            );
            let right = u64::from(name != "snapshot");
            assert_eq!(service["right"], right, "{service}");
        }
    }
    namespace.assert_clean();
    assert_eq!(snapshots(&namespace), "");
    namespace.wait_until_volumes_are_gone();
}

/// Starts `iosonde k8s csi` and waits until it has made a snapshot.
fn begun_csi(namespace: &TestNamespace, class: &str) -> Child {
    let child = csi(namespace, &format!("sc://{class} --rounds 100"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iosonde starts");
    let begun = Instant::now();
    while snapshots(namespace).is_empty() {
        assert!(begun.elapsed() < REMOVAL_TIMEOUT, "no snapshot was made");
        std::thread::sleep(Duration::from_millis(100));
    }
    child
}

#[test]
#[ignore = "needs a cluster"]
fn interrupt_removes_snapshots_and_volumes() {
    let Some(class) = class_with_snapshots() else {
        return;
    };
    let namespace = TestNamespace::new("csistop");
    let child = begun_csi(&namespace, &class);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("iosonde ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    namespace.assert_clean();
    assert_eq!(snapshots(&namespace), "");
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn objects_of_a_killed_client_go_with_the_job() {
    let Some(class) = class_with_snapshots() else {
        return;
    };
    let namespace = TestNamespace::new("csikill");
    let mut child = begun_csi(&namespace, &class);
    signal(&child, Signal::KILL);
    child.wait().expect("iosonde ends");
    let job = namespace.kubectl(&["get", "jobs", "-l", "iosonde/run", "-o", "name"]);
    let seconds = "jsonpath={.spec.activeDeadlineSeconds}";
    let deadline = namespace.kubectl(&["get", &job, "-o", seconds]);
    let deadline: u64 = deadline.parse().expect("a deadline");
    assert!(deadline < 600, "{deadline} s");
    // The client would extend the deadline: without it the cluster ends the Job.
    let now = "{\"spec\":{\"activeDeadlineSeconds\":1}}";
    namespace.kubectl(&["patch", &job, "--type=merge", "-p", now]);
    let begun = Instant::now();
    while !namespace.ours().trim().is_empty() || !snapshots(&namespace).is_empty() {
        assert!(
            begun.elapsed() < REMOVAL_TIMEOUT,
            "left: {}",
            namespace.ours()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn class_without_snapshots_is_refused_before_anything_is_made() {
    let namespace = TestNamespace::new("csinone");
    let (status, _, stderr) = run(csi(&namespace, "sc://local-path"));
    assert_eq!(status, Some(3), "{stderr}");
    let expected = match has_snapshot_api() {
        true => "no snapshot class belongs to its driver",
        false => "the cluster has no snapshots",
    };
    assert!(stderr.contains(expected), "{stderr}");
    assert!(stderr.contains("--services clone,expand"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn provisioner_that_ignores_the_source_of_a_clone_is_found() {
    let namespace = TestNamespace::new("csiclone");
    let words = "sc://local-path --services clone,expand --timeout 90";
    let (status, stdout, stderr) = run(csi(&namespace, words));
    // An empty volume, or a refusal of the claim: in no case a right clone.
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stdout.contains("clone, 16 MiB: 1 round failed"), "{stdout}");
    assert!(
        stdout.contains("expand: not offered by the class"),
        "{stdout}"
    );
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn class_that_never_binds_is_an_error_with_its_cause() {
    let namespace = TestNamespace::new("csinever");
    let name = format!("never-{}", namespace.name);
    apply_class(
        &name,
        "provisioner: example.com/none\nvolumeBindingMode: Immediate\n",
    );
    let words = format!("sc://{name} --services clone --timeout 8");
    let (status, _, stderr) = run(csi(&namespace, &words));
    kubectl(&["delete", "storageclass", &name]);
    assert_ne!(status, Some(0), "{stderr}");
    assert!(stderr.contains("help:"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn quota_is_held_against_volume_and_copy() {
    let namespace = TestNamespace::new("csiquota");
    namespace.limit_claims(1);
    let (status, _, stderr) = run(csi(&namespace, "sc://local-path --services clone"));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the quota few"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn user_without_rights_gets_a_role() {
    let namespace = TestNamespace::new("csirights");
    let scratch = tempfile::tempdir().expect("a directory");
    let kubeconfig = scratch.path().join("user.kubeconfig");
    std::fs::write(&kubeconfig, acting_as(&namespace.name)).expect("a kubeconfig");
    let words = format!("sc://local-path --kubeconfig {}", kubeconfig.display());
    let (status, _, stderr) = run(csi(&namespace, &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("create volumesnapshots"), "{stderr}");
    assert!(stderr.contains("resources: [pods/exec]"), "{stderr}");
    assert!(stderr.contains("kind: ClusterRole"), "{stderr}");
    namespace.assert_clean();
}
