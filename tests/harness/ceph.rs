//! A small Ceph cluster on this machine, made by `tests/ceph/up.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Scratch;
use crate::program::iosonde;

/// The pool that every cluster has.
pub const POOL: &str = "testbench";

/// What a tier before a pool may hold.
pub const TIER_BYTES: u64 = 64 << 20;

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

    /// Mounts the cluster's file system by ceph-fuse, below the cluster's directory, and makes a directory of this name in it.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[must_use]
    pub fn mount(&self, name: &str) -> CephFs {
        let point = self.dir.join(name);
        fs::create_dir_all(&point).expect("a directory to mount on");
        let made = Command::new("timeout")
            .args(["60", "ceph-fuse", "--id", "admin", "-c"])
            .arg(self.conf())
            // Several at once would fight for the one of the client's name.
            .arg(format!("--pid-file={}.pid", point.display()))
            .arg(&point)
            .stdin(Stdio::null())
            .output()
            .expect("ceph-fuse starts");
        let mount = CephFs {
            dir: point.join(name),
            point,
        };
        assert!(made.status.success(), "{}", told(&made));
        fs::create_dir(&mount.dir).expect("a directory in the file system");
        mount
    }

    /// Makes a pool and a small writeback tier before it.
    ///
    /// # Panics
    /// When the cluster refuses.
    #[must_use]
    pub fn tier(&self, name: &str) -> Tier<'_> {
        let tier = Tier {
            cluster: self,
            base: format!("{name}-cold"),
            hot: format!("{name}-hot"),
        };
        let (base, hot) = (&tier.base, &tier.hot);
        for line in [
            format!("osd pool create {base} 8 8"),
            // In one placement group all of its room can be used.
            format!("osd pool create {hot} 1 1"),
            format!("osd pool application enable {base} rbd"),
            format!("osd tier add {base} {hot}"),
            format!("osd tier cache-mode {hot} writeback"),
            format!("osd tier set-overlay {base} {hot}"),
            format!("osd pool set {hot} hit_set_type bloom"),
            format!("osd pool set {hot} hit_set_count 2"),
            format!("osd pool set {hot} hit_set_period 60"),
            format!("osd pool set {hot} target_max_bytes {TIER_BYTES}"),
        ] {
            self.ceph(&line);
        }
        tier
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

/// A file system of Ceph, mounted by ceph-fuse; unmounted at the end.
#[derive(Debug)]
pub struct CephFs {
    /// Where it is mounted.
    point: PathBuf,
    /// The test's own directory in it.
    dir: PathBuf,
}

impl CephFs {
    /// The test's own directory in it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The process that serves it.
    fn server(&self) -> Option<u32> {
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = words.split(|byte| *byte == 0);
            words
                .next()
                .is_some_and(|word| word.ends_with(b"ceph-fuse"))
                && words.any(|word| word == self.point.as_os_str().as_encoded_bytes())
        })
    }
}

impl Drop for CephFs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
        let unmount = |flags: &[&str]| {
            let done = Command::new("umount").args(flags).arg(&self.point).output();
            done.is_ok_and(|done| done.status.success())
        };
        // Whoever looks through all mounts keeps one busy for a moment.
        let soon = (0..20).any(|_| {
            unmount(&[]) || {
                std::thread::sleep(std::time::Duration::from_millis(100));
                false
            }
        });
        let _ = soon || unmount(&["--lazy"]);
        // It tells its server that it goes, which must still be there.
        for _ in 0..100 {
            if self.server().is_none() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let _ = fs::remove_dir(&self.point);
        let _ = fs::remove_file(self.point.with_extension("pid"));
    }
}

/// A pool with a cache tier before it; both go at the end.
#[derive(Debug)]
pub struct Tier<'a> {
    cluster: &'a Cluster,
    /// The pool that clients name.
    pub base: String,
    /// The pool before it.
    pub hot: String,
}

impl Tier<'_> {
    /// Writes back and removes all that the tier holds.
    ///
    /// # Panics
    /// When it cannot.
    pub fn flush(&self) {
        self.cluster
            .rados(&format!("-p {} cache-flush-evict-all", self.hot));
    }
}

impl Drop for Tier<'_> {
    fn drop(&mut self) {
        let (base, hot) = (&self.base, &self.hot);
        for line in [
            format!("osd tier remove-overlay {base}"),
            format!("osd tier remove {base} {hot}"),
            format!("osd pool delete {hot} {hot} --yes-i-really-really-mean-it"),
            format!("osd pool delete {base} {base} --yes-i-really-really-mean-it"),
        ] {
            // A panic while another is under way would end all tests.
            let done = Command::new("timeout")
                .args(["60", "ceph"])
                .args(line.split_whitespace())
                .env("CEPH_CONF", self.cluster.conf())
                .output();
            if !done.is_ok_and(|done| done.status.success()) {
                eprintln!("ceph {line}: it failed");
            }
        }
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
