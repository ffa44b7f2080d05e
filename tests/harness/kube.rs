//! The Kubernetes cluster that `tests/kube/run.sh` starts.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit for the default service account of a new namespace.
const ACCOUNT_TIMEOUT: Duration = Duration::from_secs(90);

/// The directory of the cluster.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn cluster() -> PathBuf {
    let path = std::env::var_os("IOSONDE_KUBE");
    path.expect("IOSONDE_KUBE: run tests/kube/run.sh").into()
}

/// Runs kubectl as the administrator.
///
/// # Panics
/// If it fails.
pub fn kubectl(words: &[&str]) -> String {
    kubectl_with(words, "")
}

/// Creates a namespace and waits for its default service account, without which no pod is admitted.
/// A controller manager whose API server has just restarted takes some seconds for it.
///
/// # Panics
/// If the account does not appear in time.
pub fn create_namespace(name: &str) {
    kubectl(&["create", "namespace", name]);
    let account = [
        "-n",
        name,
        "get",
        "serviceaccount/default",
        "--ignore-not-found",
        "-o",
        "name",
    ];
    let begun = Instant::now();
    while kubectl(&account).is_empty() {
        assert!(begun.elapsed() < ACCOUNT_TIMEOUT, "{name} has no account");
        sleep(Duration::from_millis(100));
    }
}

/// Runs kubectl with a text on its standard input.
///
/// # Panics
/// If it fails.
pub fn kubectl_with(words: &[&str], input: &str) -> String {
    let mut child = Command::new(cluster().join("bin/kubectl"))
        .arg("--kubeconfig")
        .arg(cluster().join("cfg/admin.kubeconfig"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("kubectl reads");
    drop(stdin);
    let output = child.wait_with_output().expect("kubectl ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {words:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a shell command in a node.
///
/// # Panics
/// If it fails.
pub fn in_node(node: &str, script: &str) {
    let pid = std::fs::read_to_string(cluster().join(format!("run/{node}/pid")));
    let pid = pid.expect("a node");
    let done = Command::new("nsenter")
        .args(["-t", pid.trim(), "-m", "-n", "-p", "sh", "-c", script])
        .status();
    assert!(done.is_ok_and(|done| done.success()), "{node}: {script}");
}
