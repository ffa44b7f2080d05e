//! What the kernel says of itself: files of /proc and /sys.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use iosonde_machine::cgroup;
use iosonde_machine::diskstats::{DiskCounters, Snapshot};
use iosonde_machine::mounts::{parse_mountinfo, parse_swaps};
use iosonde_machine::nfs_stats;
use iosonde_machine::proc_root::System;
use iosonde_machine::processors::CpuTimes;
use iosonde_machine::psi::Stalls;

/// mountinfo, swaps, diskstats, stat, pressure and mountstats.
pub fn proc(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count();
    assert!(parse_mountinfo(&text).len() <= lines);
    assert!(parse_swaps(&text).len() <= lines);
    let _ = Snapshot::parse(&text);
    let _ = DiskCounters::parse(&text);
    let _ = Stalls::parse(&text);
    let times = CpuTimes::parse(&text);
    let idle = times.as_ref().and_then(CpuTimes::idle_percent);
    assert!(idle.is_none_or(|percent| (0.0..=100.0).contains(&percent)));
    let _ = times.and_then(|times| times.shares());
    let _ = CpuTimes::parse_each(&text);
    let _ = nfs_stats::parse(&text);
}

/// Bounds of control groups: files of version 2 and 1, the parts of the input in turn.
pub fn cgroup(data: &[u8]) {
    static TREE: LazyLock<tempfile::TempDir> =
        LazyLock::new(|| tempfile::tempdir().expect("a directory"));
    let root = TREE.path();
    let mut parts = data.split(|byte| *byte == b'\x1e');
    for file in FILES {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
        fs::write(path, parts.next().unwrap_or_default()).expect("a file");
    }
    let limits = cgroup::limits(&System::captured(root));
    if let Some(quota) = limits.cpu_quota {
        assert!(quota.is_finite() && quota >= 0.0, "{quota}");
    }
}

/// Where the parts of an input go.
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
