//! A namespace created for runs is removed with the last of them, unless it has foreign objects.

use super::{
    ENDLESS, IMAGE, JOB, TestNamespace, acting_as, begun, kubectl, kubectl_with, printed_role, run,
    signal, status_and_output,
};
use rustix::process::Signal;

/// A ClusterRole and a ClusterRoleBinding of one name, which are removed on drop.
struct BoundClusterRole {
    name: String,
}

impl BoundClusterRole {
    /// Binds a ClusterRole that exists to the user.
    fn bind(name: &str, user: &str) -> BoundClusterRole {
        let bound = BoundClusterRole {
            name: name.to_owned(),
        };
        let (role, user) = (format!("--clusterrole={name}"), format!("--user={user}"));
        kubectl(&["create", "clusterrolebinding", name, &role, &user]);
        bound
    }

    /// Creates a ClusterRole with which the user may ask whether a namespace exists.
    fn of_reader(user: &str) -> BoundClusterRole {
        let reads = ["--verb=get", "--resource=namespaces"];
        kubectl(&["create", "clusterrole", user, reads[0], reads[1]]);
        BoundClusterRole::bind(user, user)
    }

    /// Creates the ClusterRole of this name that an error prints.
    fn of_error(stderr: &str, name: &str, user: &str) -> BoundClusterRole {
        let printed = printed_role(stderr);
        let metadata = format!("metadata: {{name: {name}}}\n");
        assert!(printed.contains(&metadata), "{printed}");
        kubectl_with(&["apply", "-f", "-"], &printed);
        BoundClusterRole::bind(name, user)
    }
}

impl Drop for BoundClusterRole {
    fn drop(&mut self) {
        kubectl(&[
            "delete",
            "clusterrole,clusterrolebinding",
            &self.name,
            "--ignore-not-found",
        ]);
    }
}

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

/// Runs a command with these words as a user who may do nothing, then with the role that it prints,
/// which has this name. Returns the printed role.
fn run_with_printed_role(
    namespace: &TestNamespace,
    (command, words): (&str, &str),
    role_name: &str,
) -> String {
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&kubeconfig, acting_as(&namespace.name)).expect("a kubeconfig");
    let line = format!(
        "{command} --create-namespace --kubeconfig {} {words}",
        kubeconfig.path().display()
    );
    let reader = BoundClusterRole::of_reader(&namespace.name);
    let (status, _, refused) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{refused}");
    assert!(refused.contains("delete namespaces"), "{refused}");
    let _granted = BoundClusterRole::of_error(&refused, role_name, &namespace.name);
    drop(reader);
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{refused}{stderr}");
    assert!(!is_there(namespace), "{stderr}");
    printed_role(&refused)
}

#[test]
#[ignore = "needs a cluster"]
fn printed_role_suffices_for_namespace_creation() {
    let namespace = TestNamespace::without_namespace("rights");
    let words = format!(
        "--target emptydir:// --image {IMAGE} --namespace {} {JOB}",
        namespace.name
    );
    run_with_printed_role(&namespace, ("fio", &words), "iosonde-namespaces");
}

#[test]
#[ignore = "needs a cluster"]
fn printed_roles_of_volume_sessions_suffice_for_namespace_creation() {
    let namespace = TestNamespace::without_namespace("rights-lifecycle");
    let words = format!(
        "--image {IMAGE} -n {} --claim-size 64m sc://local-path --count 1 --rounds 1",
        namespace.name
    );
    let command = ("k8s lifecycle", words.as_str());
    let role = run_with_printed_role(&namespace, command, "iosonde-lifecycle-volumes-namespaces");
    assert!(!role.contains("pods/exec"), "{role}");
    let namespace = TestNamespace::without_namespace("rights-csi");
    let words = format!(
        "--image {IMAGE} -n {} --claim-size 512m --data-size 16m --rounds 1 --window 3s \
         sc://csi-loop --services snapshot,clone",
        namespace.name
    );
    let command = ("k8s csi", words.as_str());
    let role_name = "iosonde-csi-snapshots-volumes-namespaces";
    let role = run_with_printed_role(&namespace, command, role_name);
    assert!(role.contains("[volumesnapshots]"), "{role}");
    // The first role is complete although this user may not read the class before.
    assert!(role.contains("[persistentvolumes]"), "{role}");
}
