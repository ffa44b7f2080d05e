//! A small Ceph cluster on this machine, made by `tests/ceph/up.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::Scratch;
use crate::program::{NO_IDLE_WAIT, iosonde, status_and_output};

/// The pool that every cluster has.
pub const POOL: &str = "testbench";

/// Maximum size of a cache tier.
pub const TIER_BYTES: u64 = 64 << 20;

/// A cluster; a cluster started for one test is stopped on drop.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    own: bool,
}

impl Cluster {
    /// The cluster of `tests/ceph/run.sh` for all tests: three OSDs, two copies, cephx.
    ///
    /// # Panics
    /// If `tests/ceph/run.sh` has not started it.
    #[must_use]
    pub fn shared() -> Cluster {
        let dir = std::env::var_os("IOSONDE_CEPH");
        Cluster {
            dir: dir.expect("IOSONDE_CEPH: run tests/ceph/run.sh").into(),
            own: false,
        }
    }

    /// Starts a cluster that the test may break, with options of `tests/ceph/up.sh`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn up(scratch: &Scratch, options: &[&str]) -> Cluster {
        let dir = scratch.out().join("ceph");
        // Created first, so that a partly started cluster is removed as well.
        let cluster = Cluster { dir, own: true };
        let made = script("up.sh", &cluster.dir, options);
        assert!(made.status.success(), "{}", output_text(&made));
        cluster
    }

    /// The path of `ceph.conf`, the configuration of clients.
    #[must_use]
    pub fn conf(&self) -> PathBuf {
        self.dir.join("ceph.conf")
    }

    /// Runs `ceph`, to check what iosonde did.
    ///
    /// # Panics
    /// If it fails.
    pub fn ceph(&self, line: &str) -> String {
        self.peer("ceph", line)
    }

    /// Runs `rados`, which reads and writes objects and has a benchmark.
    ///
    /// # Panics
    /// If it fails.
    pub fn rados(&self, line: &str) -> String {
        self.peer("rados", line)
    }

    /// Runs `rbd`, which creates, fills and describes images.
    ///
    /// # Panics
    /// If it fails.
    pub fn rbd(&self, line: &str) -> String {
        self.peer("rbd", line)
    }

    /// Runs `rbd`; `None` if it fails.
    #[must_use]
    pub fn try_rbd(&self, line: &str) -> Option<String> {
        let output = self.peer_output("rbd", line);
        let text = String::from_utf8_lossy(&output.stdout);
        output.status.success().then(|| text.into_owned())
    }

    /// Allocated bytes of an image of the pool [`POOL`].
    ///
    /// # Panics
    /// If `rbd du` fails.
    pub fn image_used_bytes(&self, image: &str) -> Option<u64> {
        let usage = self.rbd(&format!("du {POOL}/{image} --format json"));
        let usage: Value = serde_json::from_str(&usage).expect("JSON");
        usage["images"][0]["used_size"].as_u64()
    }

    /// Names of the objects of a pool in all namespaces, sorted.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub fn objects(&self, pool: &str) -> Vec<String> {
        let listed = self.rados(&format!("-p {pool} ls --all"));
        let mut names: Vec<String> = listed
            .lines()
            .map(|line| line.trim().replace('\t', "/"))
            .collect();
        names.sort();
        names
    }

    /// Mounts the file system with ceph-fuse and creates a directory of this name in it.
    ///
    /// # Panics
    /// If it cannot be mounted.
    #[must_use]
    pub fn mount(&self, name: &str) -> CephFs {
        let point = self.dir.join(name);
        fs::create_dir_all(&point).expect("a directory to mount on");
        let made = Command::new("timeout")
            .args(["60", "ceph-fuse", "--id", "admin", "-c"])
            .arg(self.conf())
            // Each mount needs its own: the default pid file is named after the client.
            .arg(format!("--pid-file={}.pid", point.display()))
            .arg(&point)
            .stdin(Stdio::null())
            .output()
            .expect("ceph-fuse starts");
        let mount = CephFs {
            dir: point.join(name),
            point,
        };
        assert!(made.status.success(), "{}", output_text(&made));
        fs::create_dir(&mount.dir).expect("a directory in the file system");
        mount
    }

    /// Creates a pool with a small writeback cache tier.
    ///
    /// # Panics
    /// If the cluster refuses.
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
            // With one placement group the whole capacity is usable.
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

    fn peer_output(&self, program: &str, line: &str) -> Output {
        // A timeout, because a client waits forever for a stopped daemon.
        Command::new("timeout")
            .args(["120", program])
            .args(line.split_whitespace())
            .env("CEPH_CONF", self.conf())
            .stdin(Stdio::null())
            .output()
            .expect("a client starts")
    }

    fn peer(&self, program: &str, line: &str) -> String {
        let output = self.peer_output(program, line);
        assert!(
            output.status.success(),
            "{program} {line}: {}",
            output_text(&output)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// fio on this cluster; Debian's package has its engines for Ceph.
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
            .env(NO_IDLE_WAIT, "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs iosonde: exit status, standard output, standard error.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn run(&self, line: &str) -> (Option<i32>, String, String) {
        status_and_output(&self.iosonde(line).output().expect("iosonde starts"))
    }

    /// Sends a signal to a daemon, such as `osd.0`.
    ///
    /// # Panics
    /// If there is no such daemon.
    pub fn signal(&self, daemon: &str, signal: Signal) {
        let path = self.dir.join(format!("run/{daemon}.pid"));
        let text = fs::read_to_string(&path).expect("the daemon's process id");
        let pid = text.trim().parse().expect("a process id");
        let pid = Pid::from_raw(pid).expect("a process id");
        kill_process(pid, signal).expect("the daemon runs");
    }

    /// Sends a command to a daemon's admin socket, which works in any state of the cluster.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn daemon(&self, daemon: &str, line: &str) -> String {
        let socket = self.dir.join(format!("run/{daemon}.asok"));
        self.ceph(&format!("--admin-daemon {} {line}", socket.display()))
    }
}

/// A file system of Ceph, mounted by ceph-fuse and unmounted on drop.
#[derive(Debug)]
pub struct CephFs {
    /// The mount point.
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

    /// Process id of the ceph-fuse that serves this mount.
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
        // Programs that scan all mounts can keep a mount busy for a moment.
        let soon = (0..20).any(|_| {
            unmount(&[]) || {
                std::thread::sleep(std::time::Duration::from_millis(100));
                false
            }
        });
        let _ = soon || unmount(&["--lazy"]);
        // ceph-fuse closes its session with the metadata server, so that server must outlive it.
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

/// A pool with a cache tier; drop removes both.
#[derive(Debug)]
pub struct Tier<'a> {
    cluster: &'a Cluster,
    /// The base pool, which clients name.
    pub base: String,
    /// The pool of the cache tier.
    pub hot: String,
}

impl Tier<'_> {
    /// Writes back and evicts all objects of the tier.
    ///
    /// # Panics
    /// If that fails.
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
            // No panic here: a panic during unwinding would abort all tests.
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

fn output_text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}
