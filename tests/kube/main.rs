//! iosonde on a Kubernetes cluster, which `tests/kube/run.sh` starts and names in `IOSONDE_KUBE`.
//!
//! Each test has a namespace of its own and checks at its end that no object of iosonde is left.

mod alone;
mod cluster_faults;
mod clusters;
mod cold_nodes;
mod csi;
mod devices;
mod existing_pods;
mod explained_failures;
mod lifecycle;
mod manifests;
mod namespaces;
mod pods;
mod release_images;
mod studies;
mod targets;
mod user_rights;

use iosonde_e2e::Scratch;
use iosonde_e2e::kube::{cluster, create_namespace, kubectl, kubectl_with};
use iosonde_e2e::program::{Invocation, iosonde, status_and_output};
use iosonde_e2e::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An image that the cluster can pull, with a shell.
const IMAGE: &str = "busybox";
/// A job of one second.
const JOB: &str =
    "--name=t --rw=randread --bs=4k --size=16m --runtime=1 --time_based --output-format=json";
/// A job that outlasts every test.
const ENDLESS: &str = "--name=t --rw=randread --bs=4k --size=16m --runtime=600 --time_based";
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(90);

/// A namespace of the cluster, deleted on drop.
struct TestNamespace {
    name: String,
}

impl TestNamespace {
    fn new(name: &str) -> TestNamespace {
        let namespace = TestNamespace::without_namespace(name);
        create_namespace(&namespace.name);
        namespace
    }

    /// A namespace name that does not exist yet.
    fn without_namespace(name: &str) -> TestNamespace {
        TestNamespace {
            name: format!("{name}-{}", std::process::id()),
        }
    }

    fn kubectl(&self, words: &[&str]) -> String {
        kubectl(&[&["-n", &self.name], words].concat())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(iosonde());
        command
            .args(line.split_whitespace())
            .env("KUBECONFIG", cluster().join("cfg/admin.kubeconfig"))
            .env("IOSONDE_NO_SAVE", "1")
            .stdin(Stdio::null());
        command
    }

    /// `iosonde fio` on a target of this namespace.
    fn fio(&self, target: &str, words: &str) -> Command {
        let namespace = &self.name;
        self.command(&format!(
            "fio --target {target} --image {IMAGE} --namespace {namespace} {words}"
        ))
    }

    /// Limits the claims with the quota `few`.
    fn limit_claims(&self, most: u32) {
        let quota = format!(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: few}}\n\
             spec: {{hard: {{persistentvolumeclaims: {most}}}}}\n"
        );
        kubectl_with(&["-n", &self.name, "apply", "-f", "-"], &quota);
        let status = "--for=jsonpath={.status.hard}";
        self.kubectl(&["wait", status, "resourcequota/few", "--timeout=30s"]);
    }

    /// Objects of iosonde in the namespace.
    fn ours(&self) -> String {
        let all = self.kubectl(&["get", "jobs,pods,pvc", "-l", "iosonde/run", "-o", "name"]);
        all.replace('\n', " ")
    }

    /// Waits until no object in the namespace has this label.
    fn wait_until_gone(&self, label: &str) {
        let begun = Instant::now();
        loop {
            let left = self.kubectl(&["get", "jobs,sts,pods,pvc", "-l", label, "-o", "name"]);
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < CLUSTER_TIMEOUT, "left: {left}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until the provisioner has removed all volumes of this namespace's claims.
    fn wait_until_volumes_are_gone(&self) {
        let volumes = "jsonpath={range .items[*]}{.spec.claimRef.namespace}/{.metadata.name} {end}";
        let begun = Instant::now();
        loop {
            let all = kubectl(&["get", "pv", "-o", volumes]);
            let prefix = format!("{}/", self.name);
            let ours: Vec<&str> = all.split(' ').filter(|v| v.starts_with(&prefix)).collect();
            if ours.is_empty() {
                return;
            }
            assert!(begun.elapsed() < CLUSTER_TIMEOUT, "left: {ours:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn assert_clean(&self) {
        assert_eq!(self.ours(), "", "left behind");
    }
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        kubectl(&[
            "delete",
            "namespace",
            &self.name,
            "--wait=false",
            "--ignore-not-found",
        ]);
    }
}

/// Makes a storage class. The caller deletes it.
fn apply_class(name: &str, fields: &str) {
    let manifest = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\n{fields}"
    );
    kubectl_with(&["apply", "-f", "-"], &manifest);
}

/// The administrator's kubeconfig, impersonating another user.
fn acting_as(user: &str) -> String {
    let admin = std::fs::read_to_string(cluster().join("cfg/admin.kubeconfig"));
    let admin = admin.expect("a kubeconfig");
    admin.replacen("user: {token", &format!("user: {{as: \"{user}\", token"), 1)
}

/// The first role that an error prints.
fn printed_role(stderr: &str) -> String {
    let (_, role) = stderr.split_once("apiVersion:").expect("a role");
    let is_of_role = |(number, line): &(usize, &str)| {
        let starts = ["kind:", "metadata:", "rules:", "- {"];
        *number == 0 || starts.iter().any(|start| line.starts_with(start))
    };
    let lines = role.lines().enumerate().take_while(is_of_role);
    let lines: Vec<&str> = lines.map(|(_, line)| line).collect();
    format!("apiVersion:{}\n", lines.join("\n"))
}

/// Exit status, standard output, standard error.
fn run(mut command: Command) -> (Option<i32>, String, String) {
    status_and_output(&command.output().expect("iosonde starts"))
}

/// Starts the command on a terminal.
fn on_terminal(scratch: &Scratch, command: &Command) -> Terminal {
    let program = command.get_program().to_owned();
    let words = command.get_args().map(ToOwned::to_owned);
    let invocation = Invocation::new(scratch, [program].into_iter().chain(words).collect());
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?)));
    let invocation = set.fold(invocation, |all, (name, value)| all.env(name, value));
    invocation.on_terminal(30, 100)
}

/// Starts a run and waits until its agent serves.
fn begun(namespace: &TestNamespace, mut command: Command) -> Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iosonde starts");
    let begun = Instant::now();
    let serving = || {
        let pods = namespace.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
        !pods.is_empty() && {
            let words = [
                "exec",
                pods.lines().next().unwrap_or_default(),
                "--",
                "sh",
                "-c",
                "ls /data/.iosonde-*/t.0.0 2>/dev/null || true",
            ];
            // The exec fails while the container is not running yet.
            std::panic::catch_unwind(|| namespace.kubectl(&words))
                .is_ok_and(|found| !found.is_empty())
        }
    };
    while !serving() {
        assert!(begun.elapsed() < CLUSTER_TIMEOUT, "nothing is measured");
        std::thread::sleep(Duration::from_millis(200));
    }
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("iosonde runs");
}
