//! `iosonde k8s csi` on the classes of the cluster.

use super::{IMAGE, TestNamespace, acting_as, apply_class, kubectl, run, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for the cluster to remove the objects of a Job that has ended.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(240);
/// A class with all services, whose driver has a snapshot class.
const CLASS: &str = "csi-loop";

fn csi(namespace: &TestNamespace, words: &str) -> Command {
    let name = &namespace.name;
    let rounds = match words.contains("--rounds") {
        true => "",
        false => "--rounds 1",
    };
    namespace.command(&format!(
        "k8s csi --image {IMAGE} -n {name} --claim-size 512m --data-size 16m,32m {rounds} \
         --window 3s {words}"
    ))
}

/// Measures services of a class, and returns the exit status and the services of the document.
fn measured(namespace: &TestNamespace, words: &str) -> (Option<i32>, Vec<Value>) {
    let (status, stdout, stderr) = run(csi(namespace, &format!("{words} --format json")));
    let document: Value = serde_json::from_str(&stdout).expect(&stderr);
    let services = document["csi"]["services"].as_array().expect("services");
    (status, services.clone())
}

/// The service with data of this size.
fn service<'a>(services: &'a [Value], name: &str, data_mib: u64) -> &'a Value {
    let is_wanted =
        |one: &&Value| one["service"] == name && one["data_bytes"] == data_mib * (1 << 20);
    services.iter().find(is_wanted).expect("the service")
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
    let namespace = TestNamespace::new("csi");
    let (status, services) = measured(&namespace, &format!("sc://{CLASS}"));
    assert_eq!(status, Some(0), "{services:?}");
    for name in ["snapshot", "restore", "clone", "expand"] {
        for data_mib in [16, 32] {
            let service = service(&services, name, data_mib);
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

#[test]
#[ignore = "needs a cluster"]
fn copies_of_ext4_volume_have_the_right_data() {
    let namespace = TestNamespace::new("csiext4");
    let words = "sc://csi-ext4 --services snapshot,restore,clone";
    let (status, services) = measured(&namespace, words);
    assert_eq!(status, Some(0), "{services:?}");
    for name in ["restore", "clone"] {
        let service = service(&services, name, 16);
        assert_eq!(service["right"], 1, "{service}");
    }
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn stale_snapshots_of_a_driver_are_found() {
    let namespace = TestNamespace::new("csistale");
    let words = "sc://csi-stale --services snapshot,restore";
    let (status, services) = measured(&namespace, words);
    assert_eq!(status, Some(1), "{services:?}");
    // The second snapshot of the volume has the data of the first.
    let first = service(&services, "restore", 16);
    assert_eq!(first["right"], 1, "{first}");
    assert_eq!(first["failed"], 0, "{first}");
    let second = service(&services, "restore", 32);
    assert_eq!(second["right"], 0, "{second}");
    assert_eq!(second["failed"], 1, "{second}");
    let failure = second["failure"].as_str().expect("a failure");
    assert!(failure.contains("the data are wrong"), "{failure}");
    namespace.assert_clean();
    assert_eq!(snapshots(&namespace), "");
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn clone_that_shares_data_with_its_volume_is_found() {
    let namespace = TestNamespace::new("csilinked");
    let words = "sc://csi-linked --services clone";
    let (status, services) = measured(&namespace, words);
    assert_eq!(status, Some(1), "{services:?}");
    let linked = service(&services, "clone", 16);
    assert_eq!(linked["failed"], 1, "{linked}");
    let failure = linked["failure"].as_str().expect("a failure");
    assert!(failure.contains("share data"), "{failure}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn delays_of_a_driver_are_in_the_durations() {
    let namespace = TestNamespace::new("csidelay");
    let (status, services) = measured(&namespace, "sc://csi-delayed");
    assert_eq!(status, Some(0), "{services:?}");
    for name in ["snapshot", "restore", "clone", "expand"] {
        let service = service(&services, name, 16);
        let took_ns = service["took"]["value_ns"].as_f64().expect("a duration");
        assert!(took_ns >= 3e9, "{service}");
    }
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn failing_clone_has_the_message_of_the_driver() {
    let namespace = TestNamespace::new("csifails");
    let name = format!("noclone-{}", namespace.name);
    apply_class(
        &name,
        "provisioner: loop.csi.example.com\nvolumeBindingMode: WaitForFirstConsumer\n\
         parameters: {failEvery: \"1\", faultOperations: clone, failCode: UNIMPLEMENTED}\n",
    );
    let words = format!("sc://{name} --services clone --timeout 90");
    let (status, services) = measured(&namespace, &words);
    kubectl(&["delete", "storageclass", &name]);
    assert_eq!(status, Some(1), "{services:?}");
    let failed = service(&services, "clone", 16);
    let failure = failed["failure"].as_str().expect("a failure");
    let message = "code = Unimplemented desc = clone fails on request of the class";
    assert!(failure.contains(message), "{failure}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

/// Starts `iosonde k8s csi` and waits until it has made a snapshot.
fn begun_csi(namespace: &TestNamespace) -> Child {
    // Without expansion, for which the pool had to have room in each round.
    let words = format!("sc://{CLASS} --services snapshot,restore,clone --rounds 100");
    let child = csi(namespace, &words)
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
    let namespace = TestNamespace::new("csistop");
    let child = begun_csi(&namespace);
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
    let namespace = TestNamespace::new("csikill");
    let mut child = begun_csi(&namespace);
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
    let expected = "no snapshot class belongs to its driver";
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
fn application_that_never_starts_is_an_error_with_its_cause() {
    let namespace = TestNamespace::new("csinotready");
    let line = format!(
        "k8s csi sc://{CLASS} --image no/such:1 -n {} --claim-size 512m --services clone",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("no/such:1 cannot be pulled"), "{stderr}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
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
    assert!(stderr.contains("--role=iosonde-csi "), "{stderr}");
    assert!(
        stderr.contains("--clusterrole=iosonde-csi-snapshots "),
        "{stderr}"
    );
    assert!(stderr.contains("kind: ClusterRole"), "{stderr}");
    namespace.assert_clean();
}
