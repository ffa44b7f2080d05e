//! Images that `cargo xtask dist` wrote. `IOSONDE_DIST` names its directory.

use super::{JOB, TestNamespace, kubectl_with, run};
use iosonde_e2e::need::record_skip;

/// Version of the images, that of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether `tests/kube/run.sh` has given the images to the cluster.
fn has_release_images() -> bool {
    let is_given = std::env::var_os("IOSONDE_DIST").is_some();
    if !is_given {
        record_skip("images of a release: IOSONDE_DIST names no target/dist");
    }
    is_given
}

/// Starts a pod and waits until the condition holds. `container` has its image, command and rights.
fn start_pod(namespace: &TestNamespace, container: &str, condition: &str) {
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: measured}}\nspec:\n  \
         restartPolicy: Never\n  containers:\n  - name: iosonde\n{container}    \
         volumeMounts: [{{name: data, mountPath: /data}}]\n  \
         volumes: [{{name: data, emptyDir: {{}}}}]\n"
    );
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], &manifest);
    namespace.kubectl(&["wait", condition, "pod/measured", "--timeout=120s"]);
}

#[test]
#[ignore = "needs a cluster"]
fn release_image_measures_with_rights_of_documented_cronjob() {
    if !has_release_images() {
        return;
    }
    let namespace = TestNamespace::new("release");
    let container = format!(
        "    image: docker.io/library/iosonde:{VERSION}\n    \
         args: [fio, --filename=/data/file, --name=t, --rw=randwrite, --bs=4k, --size=16m]\n    \
         securityContext:\n      \
         allowPrivilegeEscalation: false\n      \
         capabilities: {{drop: [ALL]}}\n      \
         runAsNonRoot: true\n      \
         runAsUser: 65532\n      \
         seccompProfile: {{type: RuntimeDefault}}\n"
    );
    start_pod(
        &namespace,
        &container,
        "--for=jsonpath={.status.phase}=Succeeded",
    );
    let log = namespace.kubectl(&["logs", "measured"]);
    assert!(log.contains("write: IOPS="), "{log}");
}

#[test]
#[ignore = "needs a cluster"]
fn release_fio_image_runs_shell_and_fio_of_kubestr() {
    if !has_release_images() {
        return;
    }
    let namespace = TestNamespace::new("release-fio");
    let image = format!("docker.io/library/iosonde-fio:{VERSION}");
    let container =
        format!("    image: {image}\n    command: [/bin/sh]\n    args: [-c, tail -f /dev/null]\n");
    start_pod(&namespace, &container, "--for=condition=Ready");
    let printed = namespace.kubectl(&["exec", "measured", "--", "fio", "--version"]);
    assert!(printed.starts_with("fio-"), "{printed}");
    let words = format!(
        "fio --target sc://local-path --claim-size 100m --image {image} --namespace {} {JOB}",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&words));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.assert_clean();
}
