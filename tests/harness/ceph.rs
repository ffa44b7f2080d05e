//! A small Ceph cluster on this machine, made by `tests/ceph/up.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Scratch;
use crate::program::iosonde;

/// The pool that every cluster has.
pub const POOL: &str = "testbench";

/// A cluster, which ends with its value if it was made for it.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    own: bool,
}

impl Cluster {
    /// The cluster that `tests/ceph/run.sh` has started for all tests: three storage daemons, two copies, cephx.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn shared() -> Cluster {
        let dir = std::env::var_os("IOSONDE_CEPH");
        Cluster {
            dir: dir.expect("IOSONDE_CEPH: run tests/ceph/run.sh").into(),
            own: false,
        }
    }

    /// Starts one that may be broken, with options of `tests/ceph/up.sh`.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn up(scratch: &Scratch, options: &[&str]) -> Cluster {
        let dir = scratch.out().join("ceph");
        // Before it is started, so that half a cluster is removed as well.
        let cluster = Cluster { dir, own: true };
        let made = script("up.sh", &cluster.dir, options);
        assert!(made.status.success(), "{}", told(&made));
        cluster
    }

    /// What clients need to know.
    #[must_use]
    pub fn conf(&self) -> PathBuf {
        self.dir.join("ceph.conf")
    }

    /// Ceph's own client, for the judge of what iosonde did.
    ///
    /// # Panics
    /// When it fails.
    pub fn ceph(&self, line: &str) -> String {
        self.peer("ceph", line)
    }

    /// `rados`, which reads and writes objects and has a benchmark.
    ///
    /// # Panics
    /// When it fails.
    pub fn rados(&self, line: &str) -> String {
        self.peer("rados", line)
    }

    /// `rbd`, which makes, fills and describes images.
    ///
    /// # Panics
    /// When it fails.
    pub fn rbd(&self, line: &str) -> String {
        self.peer("rbd", line)
    }

    /// Names of the objects of a pool, sorted; in all namespaces.
    ///
    /// # Panics
    /// When they cannot be listed.
    pub fn objects(&self, pool: &str) -> Vec<String> {
        let listed = self.rados(&format!("-p {pool} ls --all"));
        let mut names: Vec<String> = listed
            .lines()
            .map(|line| line.trim().replace('\t', "/"))
            .collect();
        names.sort();
        names
    }

    fn peer(&self, program: &str, line: &str) -> String {
        // Not for ever: a client waits for a daemon that is stopped.
        let output = Command::new("timeout")
            .args(["120", program])
            .args(line.split_whitespace())
            .env("CEPH_CONF", self.conf())
            .stdin(Stdio::null())
            .output()
            .expect("a client starts");
        assert!(
            output.status.success(),
            "{program} {line}: {}",
            told(&output)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// fio on this cluster, whose engines for Ceph are in Debian's package.
    #[must_use]
    pub fn fio(&self, line: &str) -> Command {
        let mut command = Command::new("fio");
        command
            .args(line.split_whitespace())
            .env("CEPH_CONF", self.conf())
            .stdin(Stdio::null());
        command
    }

    /// iosonde on this cluster.
    #[must_use]
    pub fn iosonde(&self, line: &str) -> Command {
        let mut command = Command::new(iosonde());
        command
            .args(line.split_whitespace())
            .env("CEPH_CONF", self.conf())
            .env("IOSONDE_NO_SAVE", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs iosonde: exit status, standard output, standard error.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let output = self.iosonde(line).output().expect("iosonde starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// Sends a signal to a daemon, such as `osd.0`.
    ///
    /// # Panics
    /// When there is no such daemon.
    pub fn signal(&self, daemon: &str, signal: Signal) {
        let path = self.dir.join(format!("run/{daemon}.pid"));
        let text = fs::read_to_string(&path).expect("the daemon's process id");
        let pid = text.trim().parse().expect("a process id");
        let pid = Pid::from_raw(pid).expect("a process id");
        kill_process(pid, signal).expect("the daemon runs");
    }

    /// Tells a daemon something over its own socket, whatever the state of the cluster.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn daemon(&self, daemon: &str, line: &str) -> String {
        let socket = self.dir.join(format!("run/{daemon}.asok"));
        self.ceph(&format!("--admin-daemon {} {line}", socket.display()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.own {
            script("down.sh", &self.dir, &[]);
        }
    }
}

fn script(name: &str, dir: &Path, options: &[&str]) -> Output {
    Command::new("timeout")
        .arg("300")
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("ceph")
                .join(name),
        )
        .arg(dir)
        .args(options)
        .stdin(Stdio::null())
        .output()
        .expect("a script of tests/ceph starts")
}

fn told(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}
