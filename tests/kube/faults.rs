//! What goes wrong ends in the right words, the right exit status, and an empty namespace.

use super::{ENDLESS, IMAGE, JOB, Lab, begun, ended, kubectl_with, run, signal};
use rustix::process::Signal;

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
    let begun = std::time::Instant::now();
    while !lab.ours().is_empty() {
        assert!(
            begun.elapsed() < super::PATIENCE,
            "left: {} ({IMAGE})",
            lab.ours()
        );
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
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
    let (status, stdout, stderr) =
        run(lab.command(&format!("k8s attach {id} --output-format json")));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    let runtime = json["jobs"][0]["read"]["runtime"].as_u64();
    assert!(
        runtime >= Some(19_000),
        "all of the run is in its result: {runtime:?} ms"
    );
    lab.assert_clean();
    let (status, _, stderr) = run(lab.command(&format!("k8s attach {id}")));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("there is no run"), "{stderr}");
}
