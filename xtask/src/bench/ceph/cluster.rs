//! The cluster that both programs are clients of.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A cluster and a pool in it. One that was started is ended with this.
pub(super) struct Cluster {
    pub(super) description: String,
    pub(super) pool: String,
    conf: PathBuf,
    own: Option<TempDir>,
}

impl Cluster {
    /// Somebody's cluster.
    pub(super) fn given(conf: &Path, pool: &str) -> Cluster {
        Cluster {
            description: format!("the pool {pool} of {}", conf.display()),
            pool: pool.to_owned(),
            conf: conf.to_owned(),
            own: None,
        }
    }

    /// A cluster of one storage daemon that keeps its objects in memory, so that as little as can be is not the clients'.
    pub(super) fn started(pool: &str) -> Result<Cluster> {
        ensure!(
            pool == "testbench",
            "the cluster that is started has only the pool testbench; give another with --conf"
        );
        let parent = tempfile::Builder::new()
            .prefix("iosonde-bench-ceph-")
            .tempdir()
            .context("a directory for the cluster")?;
        let directory = parent.path().join("cluster");
        let cluster = Cluster {
            description: "a cluster of one OSD (memstore), with cephx".to_owned(),
            pool: pool.to_owned(),
            conf: directory.join("ceph.conf"),
            own: Some(parent),
        };
        let mut up = Command::new(crate::generate::root().join("tests/ceph/up.sh"));
        up.arg(&directory)
            .args(["--store", "memstore", "--size", "4294967296", "--cephx"]);
        let started = up.status().context("starting tests/ceph/up.sh")?;
        ensure!(started.success(), "the cluster did not start");
        Ok(cluster)
    }

    /// A program with this cluster's configuration.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("CEPH_CONF", &self.conf)
            .env("IOSONDE_NO_SAVE", "1");
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        let down = Command::new(crate::generate::root().join("tests/ceph/down.sh"))
            .arg(own.path().join("cluster"))
            .status();
        if !down.is_ok_and(|status| status.success()) {
            eprintln!("{} may still have daemons", own.path().display());
        }
    }
}
