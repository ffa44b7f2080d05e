//! The cluster that all programs are clients of, and the bench's own namespace in it.

use super::super::program::run_alone;
use anyhow::{Context, Result, ensure};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An image with Debian's fio, which every node of the tests' cluster has.
const FIO_IMAGE: &str = "localhost/fio:3.33";
/// How long a new namespace may lack its service account, without which no pod can be made.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster, and how it is reached. One that was started is ended with this.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) description: String,
    /// What kubestr has to use in place of its own image, which this cluster cannot pull.
    pub(super) fio_image: Option<&'static str>,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    /// The directory of a cluster that was started.
    own: Option<PathBuf>,
}

impl Cluster {
    /// Somebody's cluster.
    pub(super) fn given(kubeconfig: &Path) -> Cluster {
        Cluster {
            description: format!("the cluster of {}", kubeconfig.display()),
            fio_image: None,
            kubeconfig: kubeconfig.to_owned(),
            kubectl: PathBuf::from("kubectl"),
            own: None,
        }
    }

    /// The tests' cluster in this directory, which runs.
    pub(super) fn running(directory: &Path) -> Result<Cluster> {
        ensure!(
            directory.join("run/n1/pid").exists(),
            "no cluster runs in {}: start it with its up.sh --nodes 2 --provisioners",
            directory.display()
        );
        Ok(Cluster::of_tests(directory))
    }

    /// The tests' cluster, as `./test kube` has built it in the build directory.
    pub(super) fn started(build_directory: &Path) -> Result<Cluster> {
        let directory = build_directory.join("kube");
        ensure!(
            directory.join("images/fio.tar").exists(),
            "there is no cluster in {}: `./test kube` builds one; or name another with --kubeconfig",
            directory.display()
        );
        // The scripts know their loop devices by the names that the kernel has for the files.
        let directory = directory.canonicalize().context("finding the cluster")?;
        ensure!(
            !directory.join("run/n1/pid").exists(),
            "the cluster in {0} runs already: use it with --kube {0}, or end it with its down.sh",
            directory.display()
        );
        let mut cluster = Cluster::of_tests(&directory);
        cluster.own = Some(directory.clone());
        let started = script(&directory, "up.sh")
            .args(["--nodes", "2", "--provisioners"])
            .stdout(Stdio::null())
            .status()
            .context("starting the cluster's up.sh")?;
        ensure!(started.success(), "the cluster did not start");
        Ok(cluster)
    }

    fn of_tests(directory: &Path) -> Cluster {
        Cluster {
            description: "the tests' cluster".to_owned(),
            fio_image: Some(FIO_IMAGE),
            kubeconfig: directory.join("cfg/admin.kubeconfig"),
            kubectl: directory.join("bin/kubectl"),
            own: None,
        }
    }

    /// With another kubectl.
    pub(super) fn with_kubectl(mut self, kubectl: Option<&Path>) -> Cluster {
        if let Some(kubectl) = kubectl {
            self.kubectl = kubectl.to_owned();
        }
        self
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        let down = script(own, "down.sh").status();
        if !down.is_ok_and(|status| status.success()) {
            eprintln!("{} may still have a cluster", own.display());
        }
    }
}

/// A script of the cluster. Ctrl-C is not for it: half a cluster would be left.
fn script(directory: &Path, name: &str) -> Command {
    let mut command = Command::new(directory.join(name));
    command.process_group(0).stdin(Stdio::null());
    command
}

/// The bench's own namespace, deleted with this and with everything in it.
#[derive(Debug)]
pub(super) struct Namespace<'a> {
    cluster: &'a Cluster,
    pub(super) name: String,
}

impl<'a> Namespace<'a> {
    /// Makes it, and waits until pods can be made in it.
    pub(super) fn new(cluster: &'a Cluster) -> Result<Namespace<'a>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let namespace = Namespace {
            cluster,
            // Two machines may use one cluster, and programs in containers have the same small numbers.
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
                begun.elapsed() < PATIENCE,
                "the namespace {} has got no service account",
                namespace.name
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(namespace)
    }

    /// kubectl in this namespace.
    pub(super) fn kubectl(&self) -> Command {
        let mut command = self.command(&self.cluster.kubectl);
        command.args(["--namespace", &self.name]);
        command
    }

    /// A program that finds this cluster.
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
        // Ctrl-C has ended the bench, and is not to end this too.
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
    fn a_cluster_that_is_not_there_is_named_with_its_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let error = Cluster::started(directory.path()).unwrap_err().to_string();
        assert!(error.contains("`./test kube` builds one"), "{error}");
        let error = Cluster::running(directory.path()).unwrap_err().to_string();
        assert!(error.contains("up.sh"), "{error}");
        let kube = directory.path().join("kube");
        for file in ["images/fio.tar", "run/n1/pid"] {
            std::fs::create_dir_all(kube.join(file).parent().unwrap()).unwrap();
            std::fs::write(kube.join(file), "").unwrap();
        }
        let error = Cluster::started(directory.path()).unwrap_err().to_string();
        assert!(error.contains("use it with --kube"), "{error}");
    }
}
