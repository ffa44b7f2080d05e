//! Faults of a Kubernetes cluster and its pods. Faults of the cluster affect all runs in it, so
//! they run one at a time. The stage kube, which has a cluster, runs these cells.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iosonde_e2e::Run;
use iosonde_e2e::kube::{cluster, create_namespace, in_node, kubectl, kubectl_with};
use iosonde_e2e::program::{Invocation, Running};
use rustix::process::Signal;

use crate::fault_fixture::{FaultFixture, Outcome, is_explained};
use crate::table::{Cell, Fault, Subcommand};

/// Time limit for the removal of volumes, which follows that of their claims.
const VOLUME_REMOVAL_TIMEOUT: Duration = Duration::from_secs(120);

/// The node that is lost or whose kubelet stops; all pods of these hits run on it.
const HIT_NODE: &str = "n2";

pub(crate) fn hit(cell: Cell, number: u32) -> Outcome {
    let fixture = FaultFixture::new();
    let namespace = FaultNamespace::new(&format!("{}-{}", cell.subcommand.name(), fixture.id()));
    let config = namespace.kubeconfig(&fixture, cell)?;
    let command =
        |words: &str| command(cell, &fixture, &namespace.name, words).env("KUBECONFIG", &config);
    let mut running = command("").start();
    // SIGKILL also hits clients that are still creating pods.
    match cell.fault {
        Fault::Sigkill => sleep(Duration::from_secs(1 + u64::from(number) * 7 / 5)),
        _ => running.must_reach("a pod that runs", |_| namespace.has_running_pod()),
    }
    cause_fault(cell.fault, &running, &namespace)?;
    let run = running.wait();
    if cell.fault == Fault::NodeLost {
        bring_back_node();
    }
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_nothing_left(&[])?;
    is_fault_explained(cell, &run)?;
    if is_left_to_doctor(cell.fault) {
        namespace.clean(&fixture)?;
    }
    namespace.is_empty(&run)?;
    if cell.fault == Fault::Sigkill {
        fixture.is_taken_up(cell, command)?;
        namespace.is_empty(&run)?;
    }
    Ok(())
}

/// The command on a storage class, in this namespace.
fn command(cell: Cell, fixture: &FaultFixture, namespace: &str, words: &str) -> Invocation {
    let place = match cell.fault {
        Fault::NodeLost | Fault::KubeletStopped => {
            format!("--node-selector kubernetes.io/hostname={HIT_NODE}")
        }
        _ => String::new(),
    };
    // Long enough that a deletion hits a pod while it measures.
    let runtime = match cell.subcommand {
        Subcommand::Fio => "--runtime=8",
        _ => "",
    };
    let rest = format!(
        "--claim-size 100m --image busybox --namespace {namespace} {runtime} {place} {words}"
    );
    fixture.command(cell, "sc://local-path", &rest)
}

/// Causes the fault.
fn cause_fault(fault: Fault, running: &Running, namespace: &FaultNamespace) -> Outcome {
    match fault {
        Fault::Sigkill => running.signal(Signal::KILL),
        Fault::Sigterm => running.signal(Signal::TERM),
        Fault::PodDeleted => namespace.delete_pods(),
        Fault::PodEvicted => namespace.evict_pods(),
        Fault::TokenExpired => namespace.revoke(),
        Fault::ApiServerRestarted => {
            let restarted = Command::new(cluster().join("restart-apiserver.sh")).status();
            assert!(restarted.is_ok_and(|status| status.success()));
        }
        Fault::KubeletStopped => {
            // The brackets keep the pattern from matching the shell that runs it.
            in_node(HIT_NODE, "pkill -STOP -f '[k]ube-all kubelet'");
            sleep(Duration::from_secs(5));
            in_node(HIT_NODE, "pkill -CONT -f '[k]ube-all kubelet'");
        }
        Fault::NodeLost => in_node(HIT_NODE, "kill -STOP -1"),
        _ => return Err("no function causes this fault".to_owned()),
    }
    Ok(())
}

fn bring_back_node() {
    in_node(HIT_NODE, "kill -CONT -1");
    let node = format!("node/{HIT_NODE}");
    kubectl(&["wait", "--for=condition=Ready", &node, "--timeout=120s"]);
}

/// The third question.
fn is_fault_explained(cell: Cell, run: &Run) -> Outcome {
    // A running pod without its agent is not ready (9). A suite runs its next workload.
    let lost: &[i32] = match cell.subcommand {
        Subcommand::Run => &[1, 9, 10],
        _ => &[9, 10],
    };
    // The API server caches tokens for some seconds, in which a short run can end.
    let refused = &[0, 3, 9, 10];
    match cell.fault {
        Fault::Sigkill => Ok(()),
        Fault::Sigterm => is_explained(run, &[143], &["interrupted"]),
        Fault::PodDeleted => is_explained(run, lost, &["deleted", "gone"]),
        Fault::PodEvicted => is_explained(run, lost, &["evict", "deleted", "gone"]),
        Fault::TokenExpired => is_explained(run, refused, &["Unauthorized", "credentials"]),
        Fault::ApiServerRestarted | Fault::KubeletStopped => is_explained(run, &[0], &[]),
        _ => is_explained(run, lost, &["n2 is not ready"]),
    }
}

/// Whether the client cannot remove its objects, so that `doctor` must.
fn is_left_to_doctor(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Sigkill | Fault::TokenExpired | Fault::NodeLost
    )
}

/// A namespace with foreign objects, deleted on drop.
struct FaultNamespace {
    name: String,
}

impl FaultNamespace {
    fn new(name: &str) -> FaultNamespace {
        let namespace = FaultNamespace {
            name: format!("faults-{name}"),
        };
        create_namespace(&namespace.name);
        let theirs =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\ndata: {of: another}\n";
        namespace.kubectl_with(&["apply", "-f", "-"], theirs);
        namespace
    }

    fn kubectl(&self, words: &[&str]) -> String {
        kubectl(&[&["-n", &self.name], words].concat())
    }

    fn kubectl_with(&self, words: &[&str], input: &str) -> String {
        kubectl_with(&[&["-n", &self.name], words].concat(), input)
    }

    /// The administrator's kubeconfig, or that of an account whose token can be revoked.
    fn kubeconfig(&self, fixture: &FaultFixture, cell: Cell) -> Result<std::path::PathBuf, String> {
        let admin = cluster().join("cfg/admin.kubeconfig");
        if cell.fault != Fault::TokenExpired {
            return Ok(admin);
        }
        let account = format!("{}:user", self.name);
        self.kubectl(&["create", "serviceaccount", "user"]);
        let binding = [
            "create",
            "clusterrolebinding",
            &self.name,
            "--clusterrole=cluster-admin",
        ];
        kubectl(&[&binding[..], &["--serviceaccount", &account]].concat());
        let token = self.kubectl(&["create", "token", "user"]);
        let text = fs::read_to_string(admin).map_err(|error| error.to_string())?;
        let (before, rest) = text
            .split_once("user: {token")
            .ok_or("a kubeconfig with a token")?;
        let (_, after) = rest.split_once('}').ok_or("a kubeconfig with a token")?;
        let path = fixture.scratch.out().join("kubeconfig");
        let text = format!("{before}user: {{token: {token}}}{after}");
        fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(path)
    }

    /// Deletes the account: its token is refused like an expired one.
    fn revoke(&self) {
        self.kubectl(&["delete", "serviceaccount", "user"]);
    }

    fn pods(&self) -> Vec<String> {
        let found = self.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
        found.lines().map(str::to_owned).collect()
    }

    fn has_running_pod(&self) -> bool {
        let running = "--field-selector=status.phase=Running";
        let found = self.kubectl(&["get", "pods", "-l", "iosonde/run", running, "-o", "name"]);
        !found.is_empty()
    }

    fn delete_pods(&self) {
        for pod in self.pods() {
            self.kubectl(&["delete", &pod, "--wait=false"]);
        }
    }

    fn evict_pods(&self) {
        for pod in self.pods() {
            let name = pod.trim_start_matches("pod/");
            let namespace = &self.name;
            let eviction = format!(
                "{{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\
                  \"metadata\":{{\"name\":\"{name}\",\"namespace\":\"{namespace}\"}}}}"
            );
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
            self.kubectl_with(&["create", "--raw", &path, "-f", "-"], &eviction);
        }
    }

    /// Removes leftovers with `doctor`.
    fn clean(&self, fixture: &FaultFixture) -> Outcome {
        let line = format!("doctor --cluster --clean -n {}", self.name);
        let admin = cluster().join("cfg/admin.kubeconfig");
        let cleaned: Invocation = fixture.iosonde(&line).env("KUBECONFIG", admin);
        let cleaned = cleaned.run();
        match cleaned.status.success() {
            true => Ok(()),
            false => Err(format!("doctor does not clean: {cleaned}")),
        }
    }

    /// Checks that iosonde's objects are gone from the namespace and foreign objects exist.
    fn is_empty(&self, run: &Run) -> Outcome {
        let begun = Instant::now();
        loop {
            let kinds = "jobs,statefulsets,pods,pvc,configmaps,secrets,roles,rolebindings";
            let left = self.kubectl(&["get", kinds, "-l", "iosonde/run", "-o", "name"]);
            let volumes = kubectl(&[
                "get",
                "pv",
                "-o",
                "jsonpath={.items[*].spec.claimRef.namespace}",
            ]);
            if left.is_empty() && !volumes.split(' ').any(|name| name == self.name) {
                break;
            }
            if begun.elapsed() > VOLUME_REMOVAL_TIMEOUT {
                return Err(format!("left in the cluster: {left} {volumes}: {run}"));
            }
            sleep(Duration::from_millis(200));
        }
        let theirs = self.kubectl(&["get", "configmap", "theirs", "-o", "jsonpath={.data.of}"]);
        match theirs == "another" {
            true => Ok(()),
            false => Err("a foreign object is gone".to_owned()),
        }
    }
}

impl Drop for FaultNamespace {
    fn drop(&mut self) {
        // Errors are ignored: the cluster may not answer, which can be why the hit failed.
        for kind in ["namespace", "clusterrolebinding"] {
            let _ = Command::new(cluster().join("bin/kubectl"))
                .arg("--kubeconfig")
                .arg(cluster().join("cfg/admin.kubeconfig"))
                .args(["delete", kind, &self.name, "--wait=false"])
                .output();
        }
    }
}
