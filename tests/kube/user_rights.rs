//! Roles that commands print for a user without rights suffice for these commands.

use super::{ENDLESS, TestNamespace, acting_as, begun, kubectl_with, printed_role, run, signal};
use rustix::process::Signal;
use std::path::PathBuf;

/// The kubeconfig of a user with the name of the namespace, who has no rights.
fn user_without_rights(namespace: &TestNamespace, scratch: &tempfile::TempDir) -> PathBuf {
    let path = scratch.path().join("user.kubeconfig");
    std::fs::write(&path, acting_as(&namespace.name)).expect("a kubeconfig");
    path
}

/// Applies the role that an error prints, which must have this name, and binds it to the user.
fn bind_printed_role(namespace: &TestNamespace, stderr: &str, name: &str) {
    let role = printed_role(stderr);
    assert!(role.contains("kind: Role\n"), "{role}");
    assert!(
        role.contains(&format!("metadata: {{name: {name}, ")),
        "{role}"
    );
    kubectl_with(&["apply", "-f", "-"], &role);
    let role = format!("--role={name}");
    let user = format!("--user={}", namespace.name);
    namespace.kubectl(&["create", "rolebinding", name, &role, &user]);
}

/// Starts a run and kills its client.
fn run_without_client(namespace: &TestNamespace, job: &str) {
    let mut child = begun(
        namespace,
        namespace.fio("emptydir://", &format!("--claim-size 50m {job}")),
    );
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
}

#[test]
#[ignore = "needs a cluster"]
fn printed_role_suffices_for_attaching_to_a_run() {
    let namespace = TestNamespace::new("attachrole");
    let scratch = tempfile::tempdir().expect("a directory");
    let user = user_without_rights(&namespace, &scratch);
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=20 --time_based";
    run_without_client(&namespace, job);
    let name = namespace.kubectl(&["get", "jobs", "-o", "jsonpath={.items[0].metadata.name}"]);
    let line = format!(
        "k8s attach {name} --kubeconfig {} -n {}",
        user.display(),
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("get jobs"), "{stderr}");
    // The run is not found, so that it may be in another namespace.
    assert!(stderr.contains("another namespace with -n"), "{stderr}");
    bind_printed_role(&namespace, &stderr, "iosonde-attach");
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn printed_role_suffices_for_cleaning_one_namespace() {
    let namespace = TestNamespace::new("cleanrole");
    let scratch = tempfile::tempdir().expect("a directory");
    let user = user_without_rights(&namespace, &scratch);
    run_without_client(&namespace, ENDLESS);
    let line = format!(
        "doctor --cluster --clean --kubeconfig {} -n {}",
        user.display(),
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("list jobs"), "{stderr}");
    bind_printed_role(&namespace, &stderr, "iosonde-doctor");
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("removed: 1 run"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn doctor_trial_without_rights_prints_the_role_of_a_run() {
    let namespace = TestNamespace::new("trialrole");
    let scratch = tempfile::tempdir().expect("a directory");
    let user = user_without_rights(&namespace, &scratch);
    let classes = format!("--user={}", namespace.name);
    let name = &namespace.name;
    let reads = ["--verb=list", "--resource=storageclasses"];
    super::kubectl(&["create", "clusterrole", name, reads[0], reads[1]]);
    let role = format!("--clusterrole={name}");
    super::kubectl(&["create", "clusterrolebinding", name, &role, &classes]);
    let line = format!(
        "doctor --cluster --trial --kubeconfig {} -n {name}",
        user.display()
    );
    let (_, _, stderr) = run(namespace.command(&line));
    super::kubectl(&["delete", "clusterrole,clusterrolebinding", name]);
    let role = printed_role(&stderr);
    assert!(role.contains("metadata: {name: iosonde, "), "{role}");
    assert_eq!(stderr.matches("kind: Role").count(), 1, "{stderr}");
    namespace.assert_clean();
}
