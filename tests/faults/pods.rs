//! Faults of a Kubernetes cluster and of the pods in it. Those of the cluster itself meet all that runs there, so one goes on at a
//! time. The stage kube, which has a cluster, runs these.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iosonde_e2e::Run;
use iosonde_e2e::kube::{cluster, create_namespace, in_node, kubectl, kubectl_with};
use iosonde_e2e::program::{Invocation, Running};
use rustix::process::Signal;

use crate::ground::{Ground, Outcome, is_explained};
use crate::table::{Cell, Fault, Subcommand};

/// A provisioner removes volumes after their claims.
const PATIENCE: Duration = Duration::from_secs(120);

/// The node that is lost, or whose kubelet stops: the pods of these hits are on it.
const HIT_NODE: &str = "n2";

pub(crate) fn hit(cell: Cell, number: u32) -> Outcome {
    let ground = Ground::new();
    let lab = Lab::new(&format!("{}-{}", cell.subcommand.name(), ground.id()));
    let config = lab.kubeconfig(&ground, cell)?;
    let command =
        |words: &str| command(cell, &ground, &lab.namespace, words).env("KUBECONFIG", &config);
    let mut running = command("").start();
    // A client that is killed is met while it makes its pods as well.
    match cell.fault {
        Fault::Sigkill => sleep(Duration::from_secs(1 + u64::from(number) * 7 / 5)),
        _ => running.must_reach("a pod that runs", |_| lab.has_running_pod()),
    }
    strike(cell.fault, &running, &lab)?;
    let run = running.wait();
    if cell.fault == Fault::NodeLost {
        bring_back_node();
    }
    ground.is_unchanged()?;
    ground.is_history_whole()?;
    ground.is_nothing_left(&[])?;
    is_fault_explained(cell, &run)?;
    if is_left_to_doctor(cell.fault) {
        lab.clean(&ground)?;
    }
    lab.is_empty(&run)?;
    if cell.fault == Fault::Sigkill {
        ground.is_taken_up(cell, command)?;
        lab.is_empty(&run)?;
    }
    Ok(())
}

/// The command on a storage class, in this namespace.
fn command(cell: Cell, ground: &Ground, namespace: &str, words: &str) -> Invocation {
    let place = match cell.fault {
        Fault::NodeLost | Fault::KubeletStopped => {
            format!("--node-selector kubernetes.io/hostname={HIT_NODE}")
        }
        _ => String::new(),
    };
    // Long enough for a pod that is deleted to be met while it measures.
    let runtime = match cell.subcommand {
        Subcommand::Fio => "--runtime=8",
        _ => "",
    };
    let rest = format!(
        "--claim-size 100m --image busybox --namespace {namespace} {runtime} {place} {words}"
    );
    ground.command(cell, "sc://local-path", &rest)
}

/// Makes the fault happen.
fn strike(fault: Fault, running: &Running, lab: &Lab) -> Outcome {
    match fault {
        Fault::Sigkill => running.signal(Signal::KILL),
        Fault::Sigterm => running.signal(Signal::TERM),
        Fault::PodDeleted => lab.delete_pods(),
        Fault::PodEvicted => lab.evict_pods(),
        Fault::TokenExpired => lab.revoke(),
        Fault::ApiServerRestarted => {
            let restarted = Command::new(cluster().join("restart-apiserver.sh")).status();
            assert!(restarted.is_ok_and(|status| status.success()));
        }
        Fault::KubeletStopped => {
            // The brackets keep the pattern from meeting the shell that has it in its own command line.
            in_node(HIT_NODE, "pkill -STOP -f '[k]ube-all kubelet'");
            sleep(Duration::from_secs(5));
            in_node(HIT_NODE, "pkill -CONT -f '[k]ube-all kubelet'");
        }
        Fault::NodeLost => in_node(HIT_NODE, "kill -STOP -1"),
        _ => return Err("nobody knows this fault".to_owned()),
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
    // A pod that runs may not have its agent yet: then it is not ready (9). A suite goes on with its next workload.
    let lost: &[i32] = match cell.subcommand {
        Subcommand::Run => &[1, 9, 10],
        _ => &[9, 10],
    };
    // The API server believes a token for some seconds after its account is gone: a short run may be over by then.
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

/// Whether the client cannot remove what it has made, so that `doctor` does.
fn is_left_to_doctor(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Sigkill | Fault::TokenExpired | Fault::NodeLost
    )
}

/// A namespace with something of somebody in it; deleted when it is dropped.
struct Lab {
    namespace: String,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let lab = Lab {
            namespace: format!("faults-{name}"),
        };
        create_namespace(&lab.namespace);
        let theirs =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\ndata: {of: somebody}\n";
        lab.kubectl_with(&["apply", "-f", "-"], theirs);
        lab
    }

    fn kubectl(&self, words: &[&str]) -> String {
        kubectl(&[&["-n", &self.namespace], words].concat())
    }

    fn kubectl_with(&self, words: &[&str], input: &str) -> String {
        kubectl_with(&[&["-n", &self.namespace], words].concat(), input)
    }

    /// The administrator's, or that of an account whose token can be revoked.
    fn kubeconfig(&self, ground: &Ground, cell: Cell) -> Result<std::path::PathBuf, String> {
        let admin = cluster().join("cfg/admin.kubeconfig");
        if cell.fault != Fault::TokenExpired {
            return Ok(admin);
        }
        let account = format!("{}:user", self.namespace);
        self.kubectl(&["create", "serviceaccount", "user"]);
        let binding = [
            "create",
            "clusterrolebinding",
            &self.namespace,
            "--clusterrole=cluster-admin",
        ];
        kubectl(&[&binding[..], &["--serviceaccount", &account]].concat());
        let token = self.kubectl(&["create", "token", "user"]);
        let text = fs::read_to_string(admin).map_err(|error| error.to_string())?;
        let (before, rest) = text
            .split_once("user: {token")
            .ok_or("a kubeconfig with a token")?;
        let (_, after) = rest.split_once('}').ok_or("a kubeconfig with a token")?;
        let path = ground.scratch.out().join("kubeconfig");
        let text = format!("{before}user: {{token: {token}}}{after}");
        fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(path)
    }

    /// A token without its account is refused, as one that has expired.
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
            let namespace = &self.namespace;
            let eviction = format!(
                "{{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{{\"name\":\"{name}\",\"namespace\":\"{namespace}\"}}}}"
            );
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
            self.kubectl_with(&["create", "--raw", &path, "-f", "-"], &eviction);
        }
    }

    /// What `doctor` removes on request.
    fn clean(&self, ground: &Ground) -> Outcome {
        let line = format!("doctor --cluster --clean -n {}", self.namespace);
        let admin = cluster().join("cfg/admin.kubeconfig");
        let cleaned: Invocation = ground.iosonde(&line).env("KUBECONFIG", admin);
        let cleaned = cleaned.run();
        match cleaned.status.success() {
            true => Ok(()),
            false => Err(format!("doctor does not clean: {cleaned}")),
        }
    }

    /// Nothing of ours is left in the namespace, and of others' all is there.
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
            if left.is_empty()
                && !volumes
                    .split(' ')
                    .any(|namespace| namespace == self.namespace)
            {
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("left in the cluster: {left} {volumes}: {run}"));
            }
            sleep(Duration::from_millis(200));
        }
        let theirs = self.kubectl(&["get", "configmap", "theirs", "-o", "jsonpath={.data.of}"]);
        match theirs == "somebody" {
            true => Ok(()),
            false => Err("an object of somebody is gone".to_owned()),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The hit may have failed because the cluster does not answer.
        for kind in ["namespace", "clusterrolebinding"] {
            let _ = Command::new(cluster().join("bin/kubectl"))
                .arg("--kubeconfig")
                .arg(cluster().join("cfg/admin.kubeconfig"))
                .args(["delete", kind, &self.namespace, "--wait=false"])
                .output();
        }
    }
}
