//! The cluster that both programs are clients of.

use super::super::program::run_alone;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What a cluster is taken to have room for.
const LEAST_ROOM: u64 = 2 << 30;
/// More is not written: no run takes that long.
const MOST_ROOM: u64 = 6 << 30;

/// What stays in the pool.
const BALLAST: u64 = 64 << 20;

/// A cluster and a pool in it. One that was started is ended with this.
pub(super) struct Cluster {
    pub(super) description: String,
    pub(super) pool: String,
    /// A run writes at most so much: it has to fit in.
    pub(super) most_bytes: u64,
    conf: PathBuf,
    own: Option<TempDir>,
}

impl Cluster {
    /// Somebody's cluster.
    pub(super) fn given(conf: &Path, pool: &str) -> Cluster {
        Cluster {
            description: format!("the pool {pool} of {}", conf.display()),
            pool: pool.to_owned(),
            most_bytes: LEAST_ROOM,
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
        let most_bytes = (available_bytes() / 4).clamp(LEAST_ROOM, MOST_ROOM);
        // Nearly full is an error, and objects take more than what they hold.
        let size = (most_bytes * 2).to_string();
        let cluster = Cluster {
            description: "a cluster of one OSD (memstore), with cephx".to_owned(),
            pool: pool.to_owned(),
            most_bytes,
            conf: directory.join("ceph.conf"),
            own: Some(parent),
        };
        let mut up = Command::new(crate::generate::root().join("tests/ceph/up.sh"));
        up.arg(&directory)
            .args(["--store", "memstore", "--size", &size, "--cephx"]);
        let started = up.status().context("starting tests/ceph/up.sh")?;
        ensure!(started.success(), "the cluster did not start");
        cluster.load()?;
        Ok(cluster)
    }

    /// Puts something into the pool that stays there. What memstore counts as used is off by some kilobytes after millions of operations:
    /// in an empty pool by less than nothing, which it takes for more than there is, so that the pool is full.
    fn load(&self) -> Result<()> {
        let file = tempfile::NamedTempFile::new().context("a file for the pool")?;
        file.as_file().set_len(BALLAST)?;
        let mut put = self.command(Path::new("rados"));
        put.args(["-p", &self.pool, "put", "ballast"])
            .arg(file.path());
        run_alone(&mut put).map(|_| ())
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

/// Memory that can be had without taking it from others; 0 where that is not known.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib << 10)
}
