//! iosonde on a real cluster. `tests/kube/run.sh` starts it, and names its directory in `IOSONDE_KUBE`.
//!
//! Each test has a namespace of its own, and ends with the proof that nothing of ours is left in it.

mod alone;
mod clusters;
mod devices;
mod faults;
mod manifests;
mod namespaces;
mod pods;
mod studies;
mod targets;

use iosonde_e2e::Scratch;
use iosonde_e2e::kube::{cluster, create_namespace, kubectl, kubectl_with};
use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The image that the cluster can pull and that has a shell.
const IMAGE: &str = "busybox";
/// A job that is over soon.
const JOB: &str =
    "--name=t --rw=randread --bs=4k --size=16m --runtime=1 --time_based --output-format=json";
/// A job that does not end.
const ENDLESS: &str = "--name=t --rw=randread --bs=4k --size=16m --runtime=600 --time_based";
const PATIENCE: Duration = Duration::from_secs(90);

/// A namespace of the cluster, deleted when it is dropped.
struct Lab {
    namespace: String,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let lab = Lab::without_namespace(name);
        create_namespace(&lab.namespace);
        lab
    }

    /// A name that no namespace has.
    fn without_namespace(name: &str) -> Lab {
        Lab {
            namespace: format!("{name}-{}", std::process::id()),
        }
    }

    fn kubectl(&self, words: &[&str]) -> String {
        kubectl(&[&["-n", &self.namespace], words].concat())
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
        let namespace = &self.namespace;
        self.command(&format!(
            "fio --target {target} --image {IMAGE} --namespace {namespace} {words}"
        ))
    }

    /// What of ours is in the namespace.
    fn ours(&self) -> String {
        let all = self.kubectl(&["get", "jobs,pods,pvc", "-l", "iosonde/run", "-o", "name"]);
        all.replace('\n', " ")
    }

    /// Waits until nothing with this label is in the namespace.
    fn wait_until_gone(&self, label: &str) {
        let begun = Instant::now();
        loop {
            let left = self.kubectl(&["get", "jobs,sts,pods,pvc", "-l", label, "-o", "name"]);
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "left: {left}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until no volume of a claim in this namespace is left: the provisioner removes them after the claims.
    fn wait_until_volumes_are_gone(&self) {
        let volumes = "jsonpath={range .items[*]}{.spec.claimRef.namespace}/{.metadata.name} {end}";
        let begun = Instant::now();
        loop {
            let all = kubectl(&["get", "pv", "-o", volumes]);
            let prefix = format!("{}/", self.namespace);
            let ours: Vec<&str> = all.split(' ').filter(|v| v.starts_with(&prefix)).collect();
            if ours.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "left: {ours:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn assert_clean(&self) {
        assert_eq!(self.ours(), "", "left behind");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        kubectl(&[
            "delete",
            "namespace",
            &self.namespace,
            "--wait=false",
            "--ignore-not-found",
        ]);
    }
}

/// The kubeconfig of the administrator, in the role of another user.
fn acting_as(user: &str) -> String {
    let admin = std::fs::read_to_string(cluster().join("cfg/admin.kubeconfig"));
    let admin = admin.expect("a kubeconfig");
    admin.replacen("user: {token", &format!("user: {{as: \"{user}\", token"), 1)
}

/// Exit status, standard output, standard error.
fn ended(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn run(mut command: Command) -> (Option<i32>, String, String) {
    ended(&command.output().expect("iosonde starts"))
}

/// The command on a terminal.
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

/// A run that measures: its agent has begun to serve.
fn begun(lab: &Lab, mut command: Command) -> Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iosonde starts");
    let begun = Instant::now();
    let serving = || {
        let pods = lab.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
        !pods.is_empty() && {
            let words = [
                "exec",
                pods.lines().next().unwrap_or_default(),
                "--",
                "sh",
                "-c",
                "ls /data/.iosonde-*/t.0.0 2>/dev/null || true",
            ];
            // The container may not run yet.
            std::panic::catch_unwind(|| lab.kubectl(&words)).is_ok_and(|found| !found.is_empty())
        }
    };
    while !serving() {
        assert!(begun.elapsed() < PATIENCE, "nothing is measured");
        std::thread::sleep(Duration::from_millis(200));
    }
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("iosonde runs");
}
