//! A namespace that is made for runs goes with the last of them, and with nothing of anybody else's in it.

use super::{ENDLESS, JOB, Lab, acting_as, begun, ended, kubectl, kubectl_with, run, signal};
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
    lab.kubectl(&[
        "create",
        "cronjob",
        "theirs",
        "--image=busybox",
        "--schedule=0 0 1 1 *",
    ]);
    let (status, _, stderr) = run(lab.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("the cron job theirs"), "{stderr}");
    lab.kubectl(&["delete", "cronjob", "theirs"]);
    let (status, _, stderr) = run(lab.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!is_there(&lab), "{stderr}");
}

#[test]
#[ignore = "needs a cluster"]
fn the_documented_rights_are_enough_to_make_one_and_less_is_said_before() {
    let lab = Lab::without_namespace("rights");
    let name = &lab.namespace;
    let rights = |of_namespaces: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules:\n\
             - {{apiGroups: [batch], resources: [jobs], verbs: [create, get, delete, list]}}\n\
             - {{apiGroups: [\"\"], resources: [pods, persistentvolumeclaims, events], verbs: [list]}}\n\
             - {{apiGroups: [\"\"], resources: [pods/exec], verbs: [create, get]}}\n\
             - {{apiGroups: [\"\"], resources: [namespaces], verbs: [{of_namespaces}]}}\n"
        )
    };
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&kubeconfig, acting_as(name)).expect("a kubeconfig");
    let words = format!(
        "--create-namespace --kubeconfig {} {JOB}",
        kubeconfig.path().display()
    );
    kubectl_with(&["apply", "-f", "-"], &rights("create, get, patch"));
    let user = format!("--user={name}");
    let role = format!("--clusterrole={name}");
    kubectl(&["create", "clusterrolebinding", name, &role, &user]);
    let (status, _, stderr) = run(lab.fio("emptydir://", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("delete namespaces"), "{stderr}");
    kubectl_with(&["apply", "-f", "-"], &rights("create, get, patch, delete"));
    let (status, _, stderr) = run(lab.fio("emptydir://", &words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!is_there(&lab), "{stderr}");
    kubectl(&["delete", "clusterrole,clusterrolebinding", name]);
}
