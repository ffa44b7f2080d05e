//! Roles that commands print for a user without rights suffice for these commands.

use super::{
    ENDLESS, TestNamespace, acting_as, apply_class, begun, kubectl, kubectl_with, printed_role,
    run, signal,
};
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

/// Lets the user with the name of the namespace list storage classes. The caller removes the grant.
fn grant_classes(namespace: &TestNamespace) {
    let name = namespace.name.as_str();
    let create = ["create", "clusterrole", name];
    kubectl(&[&create[..], &["--verb=list", "--resource=storageclasses"]].concat());
    let role = format!("--clusterrole={name}");
    let user = format!("--user={name}");
    kubectl(&["create", "clusterrolebinding", name, &role, &user]);
}

/// Without rights on volumes, a class that retains them is not tried: its volume would stay.
#[test]
#[ignore = "needs a cluster"]
fn doctor_trial_without_rights_prints_the_roles_and_leaves_no_volume() {
    let namespace = TestNamespace::new("trialrole");
    let scratch = tempfile::tempdir().expect("a directory");
    let user = user_without_rights(&namespace, &scratch);
    let name = &namespace.name;
    grant_classes(&namespace);
    let line = format!(
        "doctor --cluster --trial --claim-size 50m --timeout 20 --format json --kubeconfig {} -n \
         {name}",
        user.display()
    );
    let (_, _, without_role) = run(namespace.command(&line));
    let class = format!("retain-{name}");
    apply_class(
        &class,
        "provisioner: example.com/loop\nparameters: {fsType: ext4}\nreclaimPolicy: Retain\n\
         volumeBindingMode: WaitForFirstConsumer\n",
    );
    bind_printed_role(&namespace, &without_role, "iosonde");
    let (status, stdout, stderr) = run(namespace.command(&line));
    kubectl(&["delete", "storageclass", &class]);
    kubectl(&["delete", "clusterrole,clusterrolebinding", name]);
    assert_eq!(
        without_role.matches("kind: Role").count(),
        1,
        "{without_role}"
    );
    assert_eq!(status, Some(0), "{stderr}");
    let survey: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let mut classes = survey["classes"].as_array().expect("a list").iter();
    let tried = classes.find(|one| one["name"] == class.as_str());
    let trial = &tried.expect("the class")["trial"];
    let cause = trial["fails"]["cause"].as_str().expect("a cause");
    assert!(cause.contains("patch persistentvolumes"), "{cause}");
    let role = "metadata: {name: iosonde-volumes}";
    assert!(stderr.contains(role), "{stderr}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
}
