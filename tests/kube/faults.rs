//! What goes wrong ends in the right words, the right exit status, and an empty namespace.

use super::{ENDLESS, IMAGE, JOB, Lab, begun, ended, kubectl, kubectl_with, run, signal};
use iosonde_e2e::is_full;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs a cluster"]
fn what_cannot_be_is_explained() {
    let lab = Lab::new("wrong");
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
            "emptydir://",
            "--node-selector disk=none",
            3,
            "no node has the labels disk=none",
        ),
        (
            "sc://loop-ext4",
            "--claim-size 100m --size=1g",
            4,
            "are available",
        ),
        (
            "emptydir://",
            "--volume-mode block",
            3,
            "cannot be had as a block device",
        ),
        (
            "emptydir://",
            "--service-account none",
            9,
            "serviceaccount \"none\" not found",
        ),
        (
            "emptydir://",
            "--write_bw_log=x",
            3,
            "would stay in the pod",
        ),
    ] {
        let job = format!("--name=t --rw=randread --size=16m {words}");
        let (status, _, stderr) = run(lab.fio(target, &job));
        assert_eq!(status, Some(expected), "{target}: {stderr}");
        assert!(stderr.contains(said), "{target}: {stderr}");
        lab.assert_clean();
    }
    let line = format!(
        "fio --target emptydir:// --image no/such:1 --namespace {} {JOB}",
        lab.namespace
    );
    let (status, _, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(
        stderr.contains("no/such:1 cannot be pulled") && stderr.contains("--image"),
        "{stderr}"
    );
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_quota_is_seen_before_anything_is_made() {
    let lab = Lab::new("quota");
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec: {hard: {requests.storage: 1Gi}}\n";
    kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], quota);
    let status = "--for=jsonpath={.status.hard}";
    lab.kubectl(&["wait", status, "resourcequota/small", "--timeout=30s"]);
    let (status, _, stderr) = run(lab.fio("sc://local-path", &format!("--claim-size 2g {JOB}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("the quota small (requests.storage)"),
        "{stderr}"
    );
    lab.assert_clean();
    let range = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: sizes}\n\
         spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 500Mi}}]}\n";
    kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], range);
    let (status, _, stderr) = run(lab.fio("sc://local-path", &format!("--claim-size 600m {JOB}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the limit range sizes"), "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn ctrl_c_prints_what_is_known_and_leaves_nothing() {
    let lab = Lab::new("ctrlc");
    let child = begun(
        &lab,
        lab.fio("sc://local-path", &format!("--claim-size 100m {ENDLESS}")),
    );
    signal(&child, Signal::INT);
    let (status, stdout, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(130), "{stderr}");
    assert!(stdout.contains("read: IOPS="), "{stdout}");
    lab.assert_clean();
}

/// Something of the cluster may hold a pod for as long as it likes.
#[test]
#[ignore = "needs a cluster"]
fn a_result_is_printed_before_its_pod_is_removed() {
    let lab = Lab::new("held");
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
        lab.namespace
    );
    let fio = lab.fio("sc://local-path", &format!("--claim-size 100m {job}"));
    for (command, figure) in [(fio, "read: IOPS="), (lab.command(&kubestr), "IOPS=")] {
        let mut child = begun(&lab, command);
        let hold = r#"{"metadata":{"finalizers":["iosonde.test/held"]}}"#;
        let pod = lab.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
        lab.kubectl(&["patch", &pod, "--type=merge", "-p", hold]);
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = stdout.lines().map_while(Result::ok);
        let printed = lines.any(|line| line.contains(figure));
        let there = lab.ours();
        // Once for the wish to stop, once for not to wait.
        for _ in 0..2 {
            signal(&child, Signal::INT);
            std::thread::sleep(Duration::from_millis(500));
        }
        let (status, _, stderr) = ended(&child.wait_with_output().expect("it ends"));
        lab.kubectl(&[
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
        assert!(
            stderr.contains("was still there when you interrupted"),
            "{stderr}"
        );
        lab.wait_until_gone("iosonde/run");
    }
}

#[test]
#[ignore = "needs a cluster"]
fn a_job_that_somebody_deletes_is_a_lost_run() {
    let lab = Lab::new("deleted");
    let child = begun(
        &lab,
        lab.fio("sc://local-path", &format!("--claim-size 100m {ENDLESS}")),
    );
    lab.kubectl(&["delete", "jobs", "--all", "--wait=false"]);
    let (status, _, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("deleted"), "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_run_that_its_deadline_ends_says_so() {
    let lab = Lab::new("deadline");
    for pods in ["", "--pods 2"] {
        let words = format!("{pods} --claim-size 100m --deadline 30s {ENDLESS}");
        let (status, _, stderr) = run(lab.fio("sc://local-path", &words));
        assert_eq!(status, Some(10), "{stderr}");
        assert!(
            stderr.contains("the run's deadline has passed") && stderr.contains("--deadline"),
            "{stderr}"
        );
        lab.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn deleting_the_job_removes_what_a_killed_client_left() {
    let lab = Lab::new("killed");
    let mut child = begun(
        &lab,
        lab.fio("sc://local-path", &format!("--claim-size 100m {ENDLESS}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    assert!(
        lab.ours().contains("job.batch/iosonde-"),
        "the run goes on without its client"
    );
    lab.kubectl(&[
        "delete",
        "jobs",
        "-l",
        "iosonde/run",
        "--cascade=foreground",
        "--timeout=60s",
    ]);
    lab.wait_until_gone("iosonde/run");
}

#[test]
#[ignore = "needs a cluster"]
fn a_run_whose_client_was_killed_is_taken_up() {
    let lab = Lab::new("attach");
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=20 --time_based";
    let mut child = begun(
        &lab,
        lab.fio("sc://local-path", &format!("--claim-size 100m {job}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let name = lab.kubectl(&["get", "jobs", "-o", "jsonpath={.items[0].metadata.name}"]);
    let id = name.strip_prefix("iosonde-").expect("a run of ours");
    let history = tempfile::tempdir().expect("a directory");
    let store = format!("--store {}", history.path().join("history.db").display());
    let mut attach = lab.command(&format!("k8s attach {id} {store} --output-format json"));
    attach.env_remove("IOSONDE_NO_SAVE");
    let (status, stdout, stderr) = run(attach);
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let runtime = json["jobs"][0]["read"]["runtime"].as_u64();
    assert!(
        runtime >= Some(19_000),
        "all of the run is in its result: {runtime:?} ms"
    );
    // It is as if its first client had got it.
    let (status, listed, stderr) = run(lab.command(&format!("list {store} --format json")));
    assert_eq!(status, Some(0), "{stderr}");
    for words in ["sc://local-path", "\"local-path\"", "rancher.io/local-path"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    lab.assert_clean();
    let (status, _, stderr) = run(lab.command(&format!("k8s attach {id}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("there is no run"), "{stderr}");
}

/// Whatever a client was doing when it died, `doctor` finds what it left, and removes it; given time the cluster does so alone.
#[test]
#[ignore = "needs a cluster"]
fn a_client_that_is_killed_at_any_point_leaves_nothing_that_stays() {
    let lab = Lab::new("points");
    let points_ms: &[u64] = match is_full() {
        true => &[50, 150, 300, 600, 1000, 1500, 2200, 3000, 4500, 6500],
        false => &[100, 800, 2500],
    };
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=3 --time_based";
    for point in points_ms {
        let mut command = lab.fio("sc://local-path", &format!("--claim-size 50m {job}"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("iosonde starts");
        std::thread::sleep(Duration::from_millis(*point));
        signal(&child, Signal::KILL);
        child.wait().expect("it is dead");
        if !is_full() {
            let clean = format!("doctor --cluster --clean -n {}", lab.namespace);
            let (status, _, stderr) = run(lab.command(&clean));
            assert_eq!(status, Some(0), "{point} ms: {stderr}");
            lab.assert_clean();
        }
    }
    // A pod waits five minutes for an agent that nobody sends, or two for its client, and its job stays for another.
    let begun = Instant::now();
    while !lab.ours().is_empty() {
        let left = lab.ours();
        assert!(begun.elapsed() < Duration::from_secs(600), "left: {left}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "needs a cluster"]
fn another_architecture_is_seen_before_anything_is_made() {
    let lab = Lab::new("arch");
    let name = format!("other-{}", lab.namespace);
    let node = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/arch: s390x, pool: {name}}}}}\n\
         spec: {{unschedulable: true}}\n"
    );
    kubectl_with(&["apply", "-f", "-"], &node);
    let words = format!("--node-selector pool={name} {JOB}");
    let (status, _, stderr) = run(lab.fio("emptydir://", &words));
    kubectl(&["delete", "node", &name]);
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the nodes are s390x"), "{stderr}");
    assert_eq!(lab.kubectl(&["get", "jobs", "-o", "name"]), "");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn two_runs_at_once_in_one_namespace_do_not_meet() {
    let lab = Lab::new("twice");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: one}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: local-path, resources: {requests: {storage: 100Mi}}}\n";
    kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], claim);
    let job = "--name=t --rw=randwrite --verify=crc32c --bs=4k --size=8m --output-format=json";
    for target in ["sc://local-path", "pvc://one"] {
        let children = [(); 2].map(|()| {
            let mut command = lab.fio(target, &format!("--claim-size 50m {job}"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("iosonde starts")
        });
        for child in children {
            let (status, stdout, stderr) = ended(&child.wait_with_output().expect("it ends"));
            assert_eq!(status, Some(0), "{target}: {stderr}");
            let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
            assert_eq!(json["jobs"][0]["write"]["total_ios"], 2048, "{target}");
        }
        lab.assert_clean();
    }
    // Pods of one run that have the same claim have directories of their own in it, too.
    let words = format!("--pods 2 {job}");
    let (status, _, stderr) = run(lab.fio("pvc://one", &words));
    assert_eq!(status, Some(0), "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_profile_that_denies_io_uring_is_in_the_result() {
    let lab = Lab::new("seccomp");
    let profile = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["io_uring_setup"],"action":"SCMP_ACT_ERRNO","errnoRet":1}]}"#;
    for node in ["n1", "n2"] {
        let directory = super::cluster().join(format!("run/{node}/kubelet/seccomp"));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("no-uring.json"), profile).expect("a profile");
    }
    let patch = r#"{"spec":{"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"no-uring.json"}}}}"#;
    // What may choose its engine takes another, and says why.
    let place = format!(
        "--image {IMAGE} -n {} --claim-size 100m --pod-patch {patch}",
        lab.namespace
    );
    let line = format!("probe sc://local-path {place} --quick --runtime 0.5 --format json");
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let probe: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let chosen = probe.to_string();
    assert!(chosen.contains("\"engine\":\"libaio\""), "{stdout}");
    assert!(chosen.contains("io_uring"), "{stdout}");
    lab.assert_clean();
    // A job gets the engine that it names, or an error.
    let words = format!("--claim-size 50m --pod-patch {patch} --ioengine=io_uring {JOB}");
    let (status, _, stderr) = run(lab.fio("sc://local-path", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("seccomp"), "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn a_run_of_several_pods_is_taken_up() {
    let lab = Lab::new("attachpods");
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=20 --time_based";
    let words = format!("--pods 2 --claim-size 50m {job}");
    let mut child = begun(&lab, lab.fio("sc://local-path", &words));
    // All have been told to start by the time that their first I/Os are seen in the result.
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    let name = lab.kubectl(&["get", "jobs", "-o", "jsonpath={.items[0].metadata.name}"]);
    let (status, stdout, stderr) =
        run(lab.command(&format!("k8s attach {name} --output-format json")));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let each = json["iosonde"]["pods"]["each"].as_array();
    assert_eq!(each.map(Vec::len), Some(2), "{stdout}");
    assert!(json["jobs"][0]["read"]["runtime"].as_u64() >= Some(19_000));
    lab.assert_clean();
}
