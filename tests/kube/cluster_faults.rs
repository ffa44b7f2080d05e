//! Faults end with the right message and exit status, and with an empty namespace.

use super::{
    ENDLESS, IMAGE, JOB, TestNamespace, begun, kubectl, kubectl_with, run, signal,
    status_and_output,
};
use iosonde_e2e::is_full;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs a cluster"]
fn impossible_requests_are_explained() {
    let namespace = TestNamespace::new("wrong");
    for (target, words, expected, said) in [
        ("sc://local-pth", "", 3, "did you mean sc://local-path?"),
        ("pvc://none", "", 3, "there is no claim none"),
        (
            "hostpath:///etc/passwd",
            "",
            9,
            "/etc/passwd is not a directory",
        ),
        (
            "hostpath:///var/lib/kubelt",
            "",
            9,
            "nearby directories of the node n",
        ),
        (
            "emptydir://",
            "--ephemeral-storage 100t",
            3,
            "but no suitable node allocates more than",
        ),
        (
            "emptydir://",
            "--node-selector disk=none",
            3,
            "no node matches the selector disk=none",
        ),
        (
            "sc://loop-ext4",
            "--claim-size 100m --size=1g",
            4,
            "use --claim-size 2g",
        ),
        (
            "emptydir://",
            "--volume-mode block",
            3,
            "a directory, not a block device",
        ),
        (
            "emptydir://",
            "--service-account none",
            9,
            "serviceaccount \"none\" not found",
        ),
    ] {
        let job = format!("--name=t --rw=randread --size=16m {words}");
        let (status, _, stderr) = run(namespace.fio(target, &job));
        assert_eq!(status, Some(expected), "{target}: {stderr}");
        assert!(stderr.contains(said), "{target}: {stderr}");
        namespace.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn missing_image_is_explained() {
    let namespace = TestNamespace::new("no-image");
    let line = format!(
        "fio --target emptydir:// --image no/such:1 --namespace {} {JOB}",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(
        stderr.contains("no/such:1 cannot be pulled") && stderr.contains("--image"),
        "{stderr}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn quota_is_checked_before_objects_are_created() {
    let namespace = TestNamespace::new("quota");
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\n\
                 spec: {hard: {requests.storage: 1Gi}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], quota);
    let status = "--for=jsonpath={.status.hard}";
    namespace.kubectl(&["wait", status, "resourcequota/small", "--timeout=30s"]);
    let (status, _, stderr) = run(namespace.fio(
        "sc://local-path",
        &format!(
            "--claim-size 2g \
                                                                             {JOB}"
        ),
    ));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("the quota small (requests.storage)"),
        "{stderr}"
    );
    namespace.assert_clean();
    let range = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: sizes}\n\
         spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 500Mi}}]}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], range);
    let (status, _, stderr) = run(namespace.fio(
        "sc://local-path",
        &format!(
            "--claim-size 600m \
                                                                             {JOB}"
        ),
    ));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the limit range sizes allows"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn ctrl_c_prints_partial_result_and_leaves_nothing() {
    let namespace = TestNamespace::new("ctrlc");
    let child = begun(
        &namespace,
        namespace.fio("sc://local-path", &format!("--claim-size 100m {ENDLESS}")),
    );
    signal(&child, Signal::INT);
    let (status, stdout, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(130), "{stderr}");
    assert!(stdout.contains("read: IOPS="), "{stdout}");
    namespace.assert_clean();
}

/// A finalizer can delay the removal of a pod without limit.
#[test]
#[ignore = "needs a cluster"]
fn result_is_printed_before_pod_removal() {
    let namespace = TestNamespace::new("held");
    let scratch = tempfile::tempdir().expect("a directory");
    let file = scratch.path().join("job.fio");
    std::fs::write(
        &file,
        "[t]\nrw=randread\nsize=16m\nruntime=15\ntime_based\n",
    )
    .expect("a file");
    let job = file.display();
    let kubestr = format!(
        "k8s fio -s local-path -z 100Mi -i {IMAGE} -n {} -f {job}",
        namespace.name
    );
    let fio = namespace.fio("sc://local-path", &format!("--claim-size 100m {job}"));
    for (command, figure) in [(fio, "read: IOPS="), (namespace.command(&kubestr), "IOPS=")] {
        let mut child = begun(&namespace, command);
        let hold = r#"{"metadata":{"finalizers":["iosonde.test/held"]}}"#;
        let pod = namespace.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
        namespace.kubectl(&["patch", &pod, "--type=merge", "-p", hold]);
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = stdout.lines().map_while(Result::ok);
        let printed = lines.any(|line| line.contains(figure));
        let there = namespace.ours();
        // The first Ctrl-C stops the run; the second ends the wait for the removal.
        for _ in 0..2 {
            signal(&child, Signal::INT);
            std::thread::sleep(Duration::from_millis(500));
        }
        let (status, _, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
        namespace.kubectl(&[
            "patch",
            &pod,
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ]);
        assert!(
            printed && there.contains(&pod),
            "{figure}: {there}: {stderr}"
        );
        assert_eq!(status, Some(9), "{stderr}");
        assert!(stderr.contains("you interrupted the wait"), "{stderr}");
        namespace.wait_until_gone("iosonde/run");
    }
}

#[test]
#[ignore = "needs a cluster"]
fn deleted_job_is_lost_run() {
    let namespace = TestNamespace::new("deleted");
    let child = begun(
        &namespace,
        namespace.fio("sc://local-path", &format!("--claim-size 100m {ENDLESS}")),
    );
    namespace.kubectl(&["delete", "jobs", "--all", "--wait=false"]);
    let (status, _, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("deleted"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn run_beyond_deadline_names_deadline() {
    let namespace = TestNamespace::new("deadline");
    for pods in ["", "--pods 2"] {
        let words = format!("{pods} --claim-size 100m --deadline 30s {ENDLESS}");
        let (status, _, stderr) = run(namespace.fio("sc://local-path", &words));
        assert_eq!(status, Some(10), "{stderr}");
        assert!(
            stderr.contains("the run's deadline has passed") && stderr.contains("--deadline"),
            "{stderr}"
        );
        namespace.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn job_deletion_removes_leftovers_of_killed_client() {
    let namespace = TestNamespace::new("killed");
    let mut child = begun(
        &namespace,
        namespace.fio("sc://local-path", &format!("--claim-size 100m {ENDLESS}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    assert!(
        namespace.ours().contains("job.batch/iosonde-"),
        "the run goes on without its client"
    );
    namespace.kubectl(&[
        "delete",
        "jobs",
        "-l",
        "iosonde/run",
        "--cascade=foreground",
        "--timeout=60s",
    ]);
    namespace.wait_until_gone("iosonde/run");
}

#[test]
#[ignore = "needs a cluster"]
fn attach_resumes_run_of_killed_client() {
    let namespace = TestNamespace::new("attach");
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=20 --time_based";
    let mut child = begun(
        &namespace,
        namespace.fio("sc://local-path", &format!("--claim-size 100m {job}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let name = namespace.kubectl(&["get", "jobs", "-o", "jsonpath={.items[0].metadata.name}"]);
    let id = name.strip_prefix("iosonde-").expect("a run of iosonde");
    let history = tempfile::tempdir().expect("a directory");
    let store = format!("--store {}", history.path().join("history.db").display());
    let mut attach = namespace.command(&format!("k8s attach {id} {store} --output-format json"));
    attach.env_remove("IOSONDE_NO_SAVE");
    let (status, stdout, stderr) = run(attach);
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let runtime = json["jobs"][0]["read"]["runtime"].as_u64();
    assert!(
        runtime >= Some(19_000),
        "all of the run is in its result: {runtime:?} ms"
    );
    // The stored result equals one that the first client would have stored.
    let (status, listed, stderr) = run(namespace.command(&format!("list {store} --format json")));
    assert_eq!(status, Some(0), "{stderr}");
    for words in ["sc://local-path", "\"local-path\"", "rancher.io/local-path"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    namespace.assert_clean();
    let (status, _, stderr) = run(namespace.command(&format!("k8s attach {id}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("there is no run"), "{stderr}");
}

/// `doctor` finds and removes the leftovers of a client killed at any time; later the cluster does.
#[test]
#[ignore = "needs a cluster"]
fn client_killed_at_any_time_leaves_nothing_permanent() {
    let namespace = TestNamespace::new("points");
    let points_ms: &[u64] = match is_full() {
        true => &[50, 150, 300, 600, 1000, 1500, 2200, 3000, 4500, 6500],
        false => &[100, 800, 2500],
    };
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=3 --time_based";
    for point in points_ms {
        let mut command = namespace.fio("sc://local-path", &format!("--claim-size 50m {job}"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("iosonde starts");
        std::thread::sleep(Duration::from_millis(*point));
        signal(&child, Signal::KILL);
        child.wait().expect("it is dead");
        if !is_full() {
            let clean = format!("doctor --cluster --clean -n {}", namespace.name);
            let (status, _, stderr) = run(namespace.command(&clean));
            assert_eq!(status, Some(0), "{point} ms: {stderr}");
            namespace.assert_clean();
        }
    }
    // A pod waits 5 minutes for its agent or 2 for its client; then its job expires.
    let begun = Instant::now();
    while !namespace.ours().is_empty() {
        let left = namespace.ours();
        assert!(begun.elapsed() < Duration::from_secs(600), "left: {left}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "needs a cluster"]
fn foreign_architecture_is_refused_before_creation() {
    let namespace = TestNamespace::new("arch");
    let name = format!("other-{}", namespace.name);
    let node = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/arch: \
         s390x, pool: {name}}}}}\n\
         spec: {{unschedulable: true}}\n"
    );
    kubectl_with(&["apply", "-f", "-"], &node);
    let words = format!("--node-selector pool={name} {JOB}");
    let (status, _, stderr) = run(namespace.fio("emptydir://", &words));
    kubectl(&["delete", "node", &name]);
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the nodes are s390x"), "{stderr}");
    assert_eq!(namespace.kubectl(&["get", "jobs", "-o", "name"]), "");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn concurrent_runs_in_one_namespace_are_isolated() {
    let namespace = TestNamespace::new("twice");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: one}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: local-path, resources: {requests: \
        {storage: 100Mi}}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], claim);
    let job = "--name=t --rw=randwrite --verify=crc32c --bs=4k --size=8m --output-format=json";
    for target in ["sc://local-path", "pvc://one"] {
        let children = [(); 2].map(|()| {
            let mut command = namespace.fio(target, &format!("--claim-size 50m {job}"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("iosonde starts")
        });
        for child in children {
            let (status, stdout, stderr) =
                status_and_output(&child.wait_with_output().expect("it ends"));
            assert_eq!(status, Some(0), "{target}: {stderr}");
            let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
            assert_eq!(json["jobs"][0]["write"]["total_ios"], 2048, "{target}");
        }
        namespace.assert_clean();
    }
    // Pods of one run on the same claim have separate directories, too.
    let words = format!("--pods 2 {job}");
    let (status, _, stderr) = run(namespace.fio("pvc://one", &words));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn seccomp_denial_of_io_uring_is_in_result() {
    let namespace = TestNamespace::new("seccomp");
    let profile = concat!(
        r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["io_uring_setup"],"#,
        r#""action":"SCMP_ACT_ERRNO","errnoRet":1}]}"#,
    );
    for node in ["n1", "n2"] {
        let directory = super::cluster().join(format!("run/{node}/kubelet/seccomp"));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("no-uring.json"), profile).expect("a profile");
    }
    let patch = concat!(
        r#"{"spec":{"securityContext":{"seccompProfile":"#,
        r#"{"type":"Localhost","localhostProfile":"no-uring.json"}}}}"#,
    );
    // A probe chooses another engine and names the reason.
    let place = format!(
        "--image {IMAGE} -n {} --claim-size 100m --pod-patch {patch}",
        namespace.name
    );
    let line = format!("probe sc://local-path {place} --quick --runtime 0.5 --format json");
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let probe: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let chosen = probe.to_string();
    assert!(chosen.contains("\"engine\":\"libaio\""), "{stdout}");
    assert!(chosen.contains("io_uring"), "{stdout}");
    namespace.assert_clean();
    // A job gets the engine that it names, or an error.
    let words = format!("--claim-size 50m --pod-patch {patch} --ioengine=io_uring {JOB}");
    let (status, _, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("seccomp"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn attach_resumes_run_of_several_pods() {
    let namespace = TestNamespace::new("attachpods");
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=20 --time_based";
    let words = format!("--pods 2 --claim-size 50m {job}");
    let mut child = begun(&namespace, namespace.fio("sc://local-path", &words));
    // After 3 s all pods have received the start command.
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let name = namespace.kubectl(&["get", "jobs", "-o", "jsonpath={.items[0].metadata.name}"]);
    let (status, stdout, stderr) =
        run(namespace.command(&format!("k8s attach {name} --output-format json")));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let each = json["iosonde"]["pods"]["each"].as_array();
    assert_eq!(each.map(Vec::len), Some(2), "{stdout}");
    assert!(json["jobs"][0]["read"]["runtime"].as_u64() >= Some(19_000));
    namespace.assert_clean();
}
