//! A namespace that is made for runs goes with the last of them, and with nothing of anybody else's in it.

use super::{ENDLESS, JOB, Lab, begun, ended, kubectl, kubectl_with, run, signal};
use rustix::process::Signal;

fn is_there(lab: &Lab) -> bool {
    let words = [
        "get",
        "namespace",
        &lab.namespace,
        "--ignore-not-found",
        "-o",
        "name",
    ];
    !kubectl(&words).is_empty()
}

#[test]
#[ignore = "needs a cluster"]
fn a_namespace_is_made_for_runs_and_goes_with_the_last() {
    let lab = Lab::without_namespace("made");
    let (status, _, stderr) = run(lab.fio("emptydir://", JOB));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("--create-namespace"), "{stderr}");
    let endless = format!("--create-namespace --claim-size 50m {ENDLESS}");
    let first = begun(&lab, lab.fio("sc://local-path", &endless));
    // Another run in it, meanwhile, leaves it to the first.
    let words = format!("--create-namespace --claim-size 50m {JOB}");
    let (status, _, stderr) = run(lab.fio("sc://local-path", &words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(is_there(&lab), "{stderr}");
    signal(&first, Signal::INT);
    let (status, _, stderr) = ended(&first.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(130), "{stderr}");
    assert!(!is_there(&lab), "{stderr}");
}

#[test]
#[ignore = "needs a cluster"]
fn a_namespace_whose_client_was_killed_is_found_and_removed() {
    let lab = Lab::without_namespace("lost");
    let words = format!("--create-namespace --claim-size 50m {ENDLESS}");
    let mut child = begun(&lab, lab.fio("emptydir://", &words));
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    // As it is when the cluster has ended the run.
    lab.kubectl(&["delete", "jobs", "--all", "--cascade=foreground"]);
    let doctor = format!("doctor --cluster -n {}", lab.namespace);
    let (_, stdout, stderr) = run(lab.command(&doctor));
    assert!(stdout.contains("was made for runs"), "{stdout}{stderr}");
    // What somebody has put into it is not removed with it.
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: theirs}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: local-path, resources: {requests: {storage: 100Mi}}}\n";
    kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], claim);
    let (status, _, stderr) = run(lab.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("the claim theirs"), "{stderr}");
    lab.kubectl(&["delete", "pvc", "theirs"]);
    let (status, _, stderr) = run(lab.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!is_there(&lab), "{stderr}");
}
