//! The Kubernetes cluster of the compared programs, and the benchmark's namespace.

use super::super::program::run_alone;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An image with Debian's fio, which every node of the tests' cluster has.
const FIO_IMAGE: &str = "localhost/fio:3.33";
/// Timeout of the service account of a new namespace. No pod can be created without it.
const SERVICE_ACCOUNT_TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster and its access. Dropping stops a cluster that the benchmark has started.
#[derive(Debug)]
pub(super) struct KubeBenchCluster {
    pub(super) description: String,
    /// Image for kubestr, since the tests' cluster cannot pull the default image of kubestr.
    pub(super) fio_image: Option<&'static str>,
    /// Audit log of the API server of the tests' cluster, with the administrator's requests. Other
    /// clusters have none that can be read.
    pub(super) audit_log: Option<PathBuf>,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    /// Directory of a cluster that the benchmark has started.
    own: Option<PathBuf>,
}

impl KubeBenchCluster {
    /// The existing cluster of a kubeconfig.
    pub(super) fn from_kubeconfig(kubeconfig: &Path) -> KubeBenchCluster {
        KubeBenchCluster {
            description: format!("the cluster of {}", kubeconfig.display()),
            fio_image: None,
            audit_log: None,
            kubeconfig: kubeconfig.to_owned(),
            kubectl: PathBuf::from("kubectl"),
            own: None,
        }
    }

    /// The tests' cluster in this directory, which must be running.
    pub(super) fn running(directory: &Path) -> Result<KubeBenchCluster> {
        ensure!(
            directory.join("run/n1/pid").exists(),
            "no cluster runs in {}: start it with its up.sh --nodes 2 --provisioners",
            directory.display()
        );
        Ok(KubeBenchCluster::test_cluster(directory))
    }

    /// Starts the tests' cluster that `./test kube` has built in the build directory.
    pub(super) fn started(build_directory: &Path) -> Result<KubeBenchCluster> {
        let directory = build_directory.join("kube");
        ensure!(
            directory.join("images/fio.tar").exists(),
            "there is no cluster in {}: `./test kube` builds one; \
             or name another with --kubeconfig",
            directory.display()
        );
        // The scripts find their loop devices by the canonical path of the backing file.
        let directory = directory.canonicalize().context("finding the cluster")?;
        ensure!(
            !directory.join("run/n1/pid").exists(),
            "the cluster in {0} runs already: use it with --kube {0}, or end it with its down.sh",
            directory.display()
        );
        let mut cluster = KubeBenchCluster::test_cluster(&directory);
        cluster.own = Some(directory.clone());
        let started = script(&directory, "up.sh")
            .args(["--nodes", "2", "--provisioners"])
            .stdout(Stdio::null())
            .status()
            .context("starting the cluster's up.sh")?;
        ensure!(started.success(), "the cluster did not start");
        Ok(cluster)
    }

    fn test_cluster(directory: &Path) -> KubeBenchCluster {
        KubeBenchCluster {
            description: "the tests' cluster".to_owned(),
            fio_image: Some(FIO_IMAGE),
            audit_log: Some(directory.join("run/n1/log/audit.log")),
            kubeconfig: directory.join("cfg/admin.kubeconfig"),
            kubectl: directory.join("bin/kubectl"),
            own: None,
        }
    }

    /// Replaces kubectl.
    pub(super) fn with_kubectl(mut self, kubectl: Option<&Path>) -> KubeBenchCluster {
        if let Some(kubectl) = kubectl {
            self.kubectl = kubectl.to_owned();
        }
        self
    }
}

impl Drop for KubeBenchCluster {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        let down = script(own, "down.sh").status();
        if !down.is_ok_and(|status| status.success()) {
            eprintln!("{} may still have a cluster", own.display());
        }
    }
}

/// A script of the cluster, in a process group that Ctrl-C does not reach: it must complete.
fn script(directory: &Path, name: &str) -> Command {
    let mut command = Command::new(directory.join(name));
    command.process_group(0).stdin(Stdio::null());
    command
}

/// The namespace of the benchmark. Dropping deletes it with all its objects.
#[derive(Debug)]
pub(super) struct Namespace<'a> {
    cluster: &'a KubeBenchCluster,
    pub(super) name: String,
}

impl<'a> Namespace<'a> {
    /// Creates the namespace and waits until pods can be created in it.
    pub(super) fn new(cluster: &'a KubeBenchCluster) -> Result<Namespace<'a>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let namespace = Namespace {
            cluster,
            // Machines share clusters, and process ids repeat in containers: a time is unique.
            name: format!("iosonde-bench-{}", since.as_nanos()),
        };
        run_alone(
            namespace
                .kubectl()
                .args(["create", "namespace"])
                .arg(&namespace.name),
        )?;
        let begun = Instant::now();
        let account = [
            "get",
            "serviceaccount/default",
            "--ignore-not-found",
            "-o",
            "name",
        ];
        while run_alone(namespace.kubectl().args(account))?.0.is_empty() {
            ensure!(
                begun.elapsed() < SERVICE_ACCOUNT_TIMEOUT,
                "the namespace {} has got no service account",
                namespace.name
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(namespace)
    }

    /// Creates events of an object that does not exist, unless they were created before.
    pub(super) fn create_other_events(&self, count: usize) -> Result<()> {
        let list = json!({
            "apiVersion": "v1",
            "kind": "List",
            "items": (0..count).map(|number| self.other_event(number)).collect::<Vec<_>>(),
        });
        let file = tempfile::NamedTempFile::new().context("a file for events")?;
        std::fs::write(file.path(), list.to_string()).context("writing events")?;
        run_alone(self.kubectl().args(["apply", "-f"]).arg(file.path())).map(|_| ())
    }

    fn other_event(&self, number: usize) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("other-{number}"), "namespace": self.name},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "name": "other", "namespace": self.name,
            },
            "reason": "Other",
            "message": "An event of another object",
            "type": "Normal",
        })
    }

    /// A kubectl command in this namespace.
    pub(super) fn kubectl(&self) -> Command {
        let mut command = self.command(&self.cluster.kubectl);
        command.args(["--namespace", &self.name]);
        command
    }

    /// A command with the kubeconfig of this cluster.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", &self.cluster.kubeconfig);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        let mut delete = self.kubectl();
        delete.args([
            "delete",
            "namespace",
            &self.name,
            "--ignore-not-found",
            "--timeout=120s",
        ]);
        // Ctrl-C must not interrupt the deletion.
        let deleted = delete.process_group(0).output();
        if !deleted.is_ok_and(|output| output.status.success()) {
            eprintln!(
                "the namespace {} may be left in {}",
                self.name, self.cluster.description
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_cluster_error_names_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let error = KubeBenchCluster::started(directory.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("`./test kube` builds one"), "{error}");
        let error = KubeBenchCluster::running(directory.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("up.sh"), "{error}");
        let kube = directory.path().join("kube");
        for file in ["images/fio.tar", "run/n1/pid"] {
            std::fs::create_dir_all(kube.join(file).parent().unwrap()).unwrap();
            std::fs::write(kube.join(file), "").unwrap();
        }
        let error = KubeBenchCluster::started(directory.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("use it with --kube"), "{error}");
    }
}
