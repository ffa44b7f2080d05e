//! A namespace created for runs is removed with the last of them, unless it has foreign objects.

use super::{
    ENDLESS, JOB, TestNamespace, acting_as, begun, kubectl, kubectl_with, run, signal,
    status_and_output,
};
use rustix::process::Signal;

fn is_there(namespace: &TestNamespace) -> bool {
    let words = [
        "get",
        "namespace",
        &namespace.name,
        "--ignore-not-found",
        "-o",
        "name",
    ];
    !kubectl(&words).is_empty()
}

#[test]
#[ignore = "needs a cluster"]
fn created_namespace_is_removed_with_last_run() {
    let namespace = TestNamespace::without_namespace("made");
    let (status, _, stderr) = run(namespace.fio("emptydir://", JOB));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("--create-namespace"), "{stderr}");
    let endless = format!("--create-namespace --claim-size 50m {ENDLESS}");
    let first = begun(&namespace, namespace.fio("sc://local-path", &endless));
    // A second run leaves the namespace to the first.
    let words = format!("--create-namespace --claim-size 50m {JOB}");
    let (status, _, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(is_there(&namespace), "{stderr}");
    signal(&first, Signal::INT);
    let (status, _, stderr) = status_and_output(&first.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(130), "{stderr}");
    assert!(!is_there(&namespace), "{stderr}");
}

#[test]
#[ignore = "needs a cluster"]
fn namespace_of_killed_client_is_found_and_removed() {
    let namespace = TestNamespace::without_namespace("lost");
    let words = format!("--create-namespace --claim-size 50m {ENDLESS}");
    let mut child = begun(&namespace, namespace.fio("emptydir://", &words));
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    // The state after the cluster has ended the run.
    namespace.kubectl(&["delete", "jobs", "--all", "--cascade=foreground"]);
    let doctor = format!("doctor --cluster -n {}", namespace.name);
    let (_, stdout, stderr) = run(namespace.command(&doctor));
    assert!(stdout.contains("was made for runs"), "{stdout}{stderr}");
    // A namespace with objects of other programs is kept.
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: theirs}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: local-path, resources: {requests: \
        {storage: 100Mi}}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], claim);
    let (status, _, stderr) = run(namespace.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("the claim theirs"), "{stderr}");
    namespace.kubectl(&["delete", "pvc", "theirs"]);
    namespace.kubectl(&[
        "create",
        "cronjob",
        "theirs",
        "--image=busybox",
        "--schedule=0 0 1 1 *",
    ]);
    let (status, _, stderr) = run(namespace.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("the cron job theirs"), "{stderr}");
    namespace.kubectl(&["delete", "cronjob", "theirs"]);
    let (status, _, stderr) = run(namespace.command(&format!("{doctor} --clean")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!is_there(&namespace), "{stderr}");
}

#[test]
#[ignore = "needs a cluster"]
fn documented_rights_suffice_for_namespace_creation() {
    let namespace = TestNamespace::without_namespace("rights");
    let name = &namespace.name;
    let rights = |of_namespaces: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
             metadata: {{name: {name}}}\nrules:\n\
             - {{apiGroups: [batch], resources: [jobs], verbs: [create, get, delete, list]}}\n\
             - {{apiGroups: [\"\"], resources: [pods, persistentvolumeclaims, events], verbs: \
             [list]}}\n\
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
    let (status, _, stderr) = run(namespace.fio("emptydir://", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("delete namespaces"), "{stderr}");
    kubectl_with(&["apply", "-f", "-"], &rights("create, get, patch, delete"));
    let (status, _, stderr) = run(namespace.fio("emptydir://", &words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!is_there(&namespace), "{stderr}");
    kubectl(&["delete", "clusterrole,clusterrolebinding", name]);
}
