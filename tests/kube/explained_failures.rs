//! Failures of pods and volumes name their cause before the objects are removed.

use super::{
    CLUSTER_TIMEOUT, ENDLESS, IMAGE, JOB, TestNamespace, acting_as, begun, kubectl, kubectl_with,
    run, signal,
};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Creates a storage class, and returns its name.
fn storage_class(namespace: &TestNamespace, provisioner: &str, reclaim: &str) -> String {
    let class = format!("{}-{}", reclaim.to_lowercase(), namespace.name);
    let manifest = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {class}}}\n\
         provisioner: {provisioner}\nparameters: {{fsType: ext4}}\nreclaimPolicy: {reclaim}\n\
         volumeBindingMode: WaitForFirstConsumer\n"
    );
    kubectl_with(&["apply", "-f", "-"], &manifest);
    class
}

#[test]
#[ignore = "needs a cluster"]
fn claim_whose_root_belongs_to_root_names_user_path_and_remedy() {
    let namespace = TestNamespace::new("rooted");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
                 spec: {storageClassName: loop-ext4, accessModes: [ReadWriteOnce], resources: \
                 {requests: {storage: 50Mi}}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], claim);
    let (status, _, stderr) = run(namespace.fio("pvc://data", JOB));
    assert_eq!(status, Some(9), "{stderr}");
    for words in ["user 65532", "/data/.iosonde-", "EACCES", "--run-as"] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    namespace.assert_clean();
    let (status, _, stderr) = run(namespace.fio("pvc://data", &format!("--run-as 0 {JOB}")));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn class_without_provisioner_is_explained_long_before_the_timeout() {
    let namespace = TestNamespace::new("silent");
    let class = storage_class(&namespace, "example.com/none", "Delete");
    let begun = Instant::now();
    let (status, _, stderr) =
        run(namespace.fio(&format!("sc://{class}"), &format!("--claim-size 50m {JOB}")));
    kubectl(&["delete", "storageclass", &class]);
    assert_eq!(status, Some(9), "{stderr}");
    assert!(
        begun.elapsed() < Duration::from_secs(100),
        "{:?}",
        begun.elapsed()
    );
    for words in ["no provisioner has begun", "example.com/none"] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn failing_csi_provisioner_is_explained_with_its_message() {
    let namespace = TestNamespace::new("failing");
    let (status, _, stderr) =
        run(namespace.fio("sc://csi-failing", &format!("--claim-size 50m {JOB}")));
    assert_eq!(status, Some(9), "{stderr}");
    for words in [
        "the claim is not provisioned",
        "code = Internal desc = create fails on request of the class",
        "help:",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn claim_above_the_capacity_of_a_csi_driver_is_refused() {
    let namespace = TestNamespace::new("small");
    let (status, _, stderr) =
        run(namespace.fio("sc://csi-small", &format!("--claim-size 2g {JOB}")));
    assert_eq!(status, Some(3), "{stderr}");
    let expected = "its driver has room for volumes of 1Gi at most, but the claim needs 2Gi";
    assert!(stderr.contains(expected), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn failed_pod_is_kept_on_request() {
    let namespace = TestNamespace::new("kept");
    let line = format!(
        "fio --target emptydir:// --image no/such:1 --namespace {} --keep {JOB}",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("--keep has kept it"), "{stderr}");
    assert!(namespace.ours().contains("pod/"), "{}", namespace.ours());
    let clean = format!("doctor --cluster --clean -n {}", namespace.name);
    let (status, _, stderr) = run(namespace.command(&clean));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn clean_removes_runs_with_their_retained_volumes_in_one_call() {
    let namespace = TestNamespace::new("retained");
    let class = storage_class(&namespace, "example.com/loop", "Retain");
    let words = format!("--pods 2 --claim-size 50m {ENDLESS}");
    let mut child = begun(&namespace, namespace.fio(&format!("sc://{class}"), &words));
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let clean = format!("doctor --cluster --clean -n {}", namespace.name);
    let (status, _, stderr) = run(namespace.command(&clean));
    kubectl(&["delete", "storageclass", &class]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("removed: 1 run, 2 volumes"), "{stderr}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}

#[test]
#[ignore = "needs a cluster"]
fn evicted_pod_names_the_eviction() {
    let namespace = TestNamespace::new("evicted");
    let child = begun(
        &namespace,
        namespace.fio("emptydir://", &format!("--claim-size 50m {ENDLESS}")),
    );
    let pod = namespace.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
    let pod = pod.trim().trim_start_matches("pod/").to_owned();
    let eviction = format!(
        "{{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {{\"name\": \
         \"{pod}\", \"namespace\": \"{}\"}}}}",
        namespace.name
    );
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", namespace.name);
    kubectl_with(&["create", "--raw", &path, "-f", "-"], &eviction);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(10), "{stderr}");
    assert!(stderr.contains("EvictionByEvictionAPI"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn size_that_does_not_fit_is_refused_with_the_option_of_the_command() {
    let namespace = TestNamespace::new("toosmall");
    let line = format!(
        "k8s fio -s loop-ext4 -z 4G -i {IMAGE} -n {}",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(4), "{stderr}");
    assert!(stderr.contains("use -z 9Gi"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn signal_before_the_first_figure_has_its_exit_status() {
    let namespace = TestNamespace::new("early");
    for (sent, expected) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let child = namespace
            .fio("sc://local-path", &format!("--claim-size 50m {ENDLESS}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("iosonde starts");
        let begun = Instant::now();
        let jobs = ["get", "jobs", "-l", "iosonde/run", "-o", "name"];
        while namespace.kubectl(&jobs).is_empty() {
            assert!(begun.elapsed() < CLUSTER_TIMEOUT, "no Job is made");
            std::thread::sleep(Duration::from_millis(50));
        }
        signal(&child, sent);
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{stderr}");
        namespace.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn rights_lost_during_a_run_are_named_at_once() {
    let namespace = TestNamespace::new("lostrights");
    let scratch = tempfile::tempdir().expect("a directory");
    let kubeconfig = scratch.path().join("user.kubeconfig");
    std::fs::write(&kubeconfig, acting_as(&namespace.name)).expect("a kubeconfig");
    let user = format!("--user={}", namespace.name);
    let all_rights = "--clusterrole=cluster-admin";
    namespace.kubectl(&["create", "rolebinding", "all", all_rights, &user]);
    let words = format!(
        "--kubeconfig {} --claim-size 50m --name=t --rw=randread --bs=4k --size=16m --runtime=10 \
         --time_based",
        kubeconfig.display()
    );
    let child = begun(&namespace, namespace.fio("sc://local-path", &words));
    namespace.kubectl(&["delete", "rolebinding", "all"]);
    let begun = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    let elapsed = begun.elapsed();
    namespace.kubectl(&["delete", "job", "-l", "iosonde/run"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stdout.contains("read: IOPS="), "{stdout}{stderr}");
    assert_eq!(output.status.code(), Some(9), "{stderr}");
    assert!(stderr.contains("renew the credentials"), "{stderr}");
    assert!(!stderr.contains("ApiError"), "{stderr}");
    // Rights do not come back, so iosonde does not wait for the removal.
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}: {stderr}");
}
