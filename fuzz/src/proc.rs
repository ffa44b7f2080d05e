//! Files of /proc and /sys.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use iosonde_machine::cgroup;
use iosonde_machine::diskstats::{DiskCounters, Snapshot};
use iosonde_machine::machine_snapshot::SnapshotSources;
use iosonde_machine::mounts::mounts;
use iosonde_machine::nfs_stats;
use iosonde_machine::proc_root::System;
use iosonde_machine::processors::CpuTimes;
use iosonde_machine::psi::PsiSnapshot;
use tempfile::TempDir;

/// Parses mountinfo, diskstats, stat, pressure and mountstats.
pub fn proc(data: &[u8]) {
    static TREE: LazyLock<TempDir> = LazyLock::new(new_tree);
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count();
    for file in ["proc/self/mountinfo", "proc/stat", "proc/pressure/io"] {
        write_file(TREE.path(), file, data);
    }
    let system = System::captured(TREE.path());
    assert!(mounts(&system).len() <= lines);
    let _ = PsiSnapshot::take(&system);
    assert!(SnapshotSources::find(system).processors().len() <= lines);
    let _ = Snapshot::parse(&text);
    let _ = DiskCounters::parse(&text);
    let times = CpuTimes::parse(&text);
    let idle = times.as_ref().and_then(CpuTimes::idle_percent);
    assert!(idle.is_none_or(|percent| (0.0..=100.0).contains(&percent)));
    let _ = times.and_then(|times| times.shares());
    let _ = nfs_stats::parse(&text);
}

/// Reads control group limits of version 1 and 2 from files that hold one part of the input each.
pub fn cgroup(data: &[u8]) {
    static TREE: LazyLock<TempDir> = LazyLock::new(new_tree);
    let root = TREE.path();
    let mut parts = data.split(|byte| *byte == b'\x1e');
    for file in FILES {
        write_file(root, file, parts.next().unwrap_or_default());
    }
    let limits = cgroup::limits(&System::captured(root));
    if let Some(quota) = limits.cpu_quota {
        assert!(quota.is_finite() && quota >= 0.0, "{quota}");
    }
}

fn new_tree() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn write_file(root: &Path, file: &str, content: &[u8]) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap_or(root)).expect("a directory");
    fs::write(path, content).expect("a file");
}

/// The files that the parts of an input are written to.
const FILES: [&str; 9] = [
    "proc/self/mountinfo",
    "proc/self/cgroup",
    "sys/fs/cgroup/a/cpu.max",
    "sys/fs/cgroup/a/memory.max",
    "sys/fs/cgroup/a/memory.high",
    "sys/fs/cgroup/a/io.max",
    "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
    "sys/fs/cgroup/cpu/a/cpu.cfs_period_us",
    "sys/fs/cgroup/a/cpuset.cpus.effective",
];
