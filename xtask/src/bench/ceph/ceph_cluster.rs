//! The Ceph cluster that the compared programs use.

use super::super::program::run_alone;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Assumed free bytes of a cluster.
const LEAST_ROOM: u64 = 2 << 30;
/// Most bytes of a run. No run is long enough to write more.
const MOST_ROOM: u64 = 6 << 30;

/// Bytes of the object that stays in the pool; see `CephBenchCluster::load`.
const BALLAST: u64 = 64 << 20;

/// A cluster and its pool. Dropping stops a cluster that the benchmark has started.
pub(super) struct CephBenchCluster {
    pub(super) description: String,
    pub(super) pool: String,
    /// Most bytes that a run may write, so that the cluster does not become full.
    pub(super) most_bytes: u64,
    conf: PathBuf,
    own: Option<TempDir>,
}

impl CephBenchCluster {
    /// The existing cluster of a configuration file.
    pub(super) fn from_conf(conf: &Path, pool: &str) -> CephBenchCluster {
        CephBenchCluster {
            description: format!("the pool {pool} of {}", conf.display()),
            pool: pool.to_owned(),
            most_bytes: LEAST_ROOM,
            conf: conf.to_owned(),
            own: None,
        }
    }

    /// Starts a cluster of one OSD with objects in memory, to minimise the cost of the cluster.
    pub(super) fn started(pool: &str) -> Result<CephBenchCluster> {
        ensure!(
            pool == "testbench",
            "the cluster that is started has only the pool testbench; give another with --conf"
        );
        let parent = tempfile::Builder::new()
            .prefix("iosonde-bench-ceph-")
            .tempdir()
            .context("a directory for the cluster")?;
        let directory = parent.path().join("cluster");
        let most_bytes = (available_bytes() / 4).clamp(LEAST_ROOM, MOST_ROOM);
        // Ceph rejects writes when nearly full, and objects take more space than their data.
        let size = (most_bytes * 2).to_string();
        let cluster = CephBenchCluster {
            description: "a cluster of one OSD (memstore), with cephx".to_owned(),
            pool: pool.to_owned(),
            most_bytes,
            conf: directory.join("ceph.conf"),
            own: Some(parent),
        };
        let mut up = Command::new(crate::repository::repository_root().join("tests/ceph/up.sh"));
        up.arg(&directory)
            .args(["--store", "memstore", "--size", &size, "--cephx"]);
        let started = up.status().context("starting tests/ceph/up.sh")?;
        ensure!(started.success(), "the cluster did not start");
        cluster.load()?;
        Ok(cluster)
    }

    /// Writes an object that stays in the pool. After millions of operations, the byte count of
    /// memstore is some KB off. In an empty pool it would wrap below zero: the pool would be full.
    fn load(&self) -> Result<()> {
        let file = tempfile::NamedTempFile::new().context("a file for the pool")?;
        file.as_file().set_len(BALLAST)?;
        let mut put = self.command(Path::new("rados"));
        put.args(["-p", &self.pool, "put", "ballast"])
            .arg(file.path());
        run_alone(&mut put).map(|_| ())
    }

    /// A command with the configuration of this cluster.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("CEPH_CONF", &self.conf)
            .env("IOSONDE_NO_SAVE", "1");
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for CephBenchCluster {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        let down = Command::new(crate::repository::repository_root().join("tests/ceph/down.sh"))
            .arg(own.path().join("cluster"))
            .status();
        if !down.is_ok_and(|status| status.success()) {
            eprintln!("{} may still have daemons", own.path().display());
        }
    }
}

/// MemAvailable in bytes; 0 if unknown.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib << 10)
}
