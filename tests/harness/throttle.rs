//! Throttles of control groups, which give a target a known speed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::device::number;
use crate::undo::Note;

/// A hierarchy of control groups with a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hierarchy {
    /// A controller of cgroup v1 (blkio, cpu, memory), with its directory.
    Blkio(PathBuf),
    /// A controller of cgroup v2, with its directory.
    Unified(PathBuf),
}

/// The hierarchy that can throttle block I/O here, if any.
#[must_use]
pub fn hierarchy() -> Option<Hierarchy> {
    with_controller("blkio/blkio.throttle.read_iops_device", "io")
}

/// The hierarchy that can limit CPU time here, if any.
#[must_use]
pub fn cpu_hierarchy() -> Option<Hierarchy> {
    with_controller("cpu/cgroup.procs", "cpu")
}

/// The hierarchy that can limit memory here, if any.
#[must_use]
pub fn memory_hierarchy() -> Option<Hierarchy> {
    with_controller("memory/memory.limit_in_bytes", "memory")
}

/// The directory for new cgroup v2 groups, which can be frozen; `None` if there is none.
#[must_use]
pub fn freezer() -> Option<PathBuf> {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    // Only the root of cgroup v2 has the file cgroup.controllers.
    let mut second = roots
        .into_iter()
        .filter(|root| root.join("cgroup.controllers").exists());
    second.next()
}

/// The cgroup v1 controller that has the file `first`, else the cgroup v2 controller `name`.
fn with_controller(first: &str, name: &str) -> Option<Hierarchy> {
    let root = Path::new("/sys/fs/cgroup");
    let first = root.join(first);
    if first.exists() {
        return first
            .parent()
            .map(|directory| Hierarchy::Blkio(directory.into()));
    }
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    controllers
        .split_whitespace()
        .any(|found| found == name)
        .then(|| Hierarchy::Unified(root.into()))
}

/// Limits per second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caps {
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bytes: Option<u64>,
    /// Bytes written per second.
    pub write_bytes: Option<u64>,
}

impl Caps {
    /// Each set limit with its name in cgroup v1 and in cgroup v2.
    fn named(self) -> impl Iterator<Item = (u64, &'static str, &'static str)> {
        [
            (self.read_iops, "read_iops", "riops"),
            (self.write_iops, "write_iops", "wiops"),
            (self.read_bytes, "read_bps", "rbps"),
            (self.write_bytes, "write_bps", "wbps"),
        ]
        .into_iter()
        .filter_map(|(value, first, second)| Some((value?, first, second)))
    }
}

/// A control group that limits one device; removed on drop.
#[derive(Debug)]
pub struct Throttle {
    group: PathBuf,
    _note: Note,
}

impl Throttle {
    /// Limits a device `MAJOR:MINOR` for the programs in the group.
    ///
    /// # Panics
    /// Without [`crate::Need::Throttle`] and [`crate::Need::Root`].
    #[must_use]
    pub fn new(device: &str, caps: Caps) -> Throttle {
        let hierarchy = hierarchy().expect("a hierarchy that throttles");
        let throttle = Throttle::group_in(&hierarchy, "+io");
        for (value, first, second) in caps.named() {
            match &hierarchy {
                Hierarchy::Blkio(_) => throttle.set(
                    &format!("blkio.throttle.{first}_device"),
                    &format!("{device} {value}"),
                ),
                Hierarchy::Unified(_) => {
                    throttle.set("io.max", &format!("{device} {second}={value}"))
                }
            }
        }
        throttle
    }

    /// Limits the reads per second of a device.
    ///
    /// # Panics
    /// As [`Throttle::new`].
    #[must_use]
    pub fn of_reads(device: &Path, iops: u64) -> Throttle {
        let caps = Caps {
            read_iops: Some(iops),
            ..Caps::default()
        };
        Throttle::new(&number(device), caps)
    }

    /// Limits the memory of programs, including page cache.
    ///
    /// # Panics
    /// Without [`crate::Need::MemoryLimit`] and [`crate::Need::Root`].
    #[must_use]
    pub fn of_memory(bytes: u64) -> Throttle {
        let hierarchy = memory_hierarchy().expect("a hierarchy that bounds memory");
        let throttle = Throttle::group_in(&hierarchy, "+memory");
        let file = match hierarchy {
            Hierarchy::Blkio(_) => "memory.limit_in_bytes",
            Hierarchy::Unified(_) => "memory.max",
        };
        throttle.set(file, &bytes.to_string());
        throttle
    }

    /// Limits programs to this many thousandths of one CPU.
    ///
    /// # Panics
    /// Without [`crate::Need::CpuQuota`] and [`crate::Need::Root`].
    #[must_use]
    pub fn of_processors(thousandths: u32) -> Throttle {
        let hierarchy = cpu_hierarchy().expect("a hierarchy that bounds processor time");
        let throttle = Throttle::group_in(&hierarchy, "+cpu");
        let quota_us = thousandths * 100;
        match hierarchy {
            Hierarchy::Blkio(_) => throttle.set("cpu.cfs_quota_us", &quota_us.to_string()),
            Hierarchy::Unified(_) => throttle.set("cpu.max", &format!("{quota_us} 100000")),
        }
        throttle
    }

    /// Sets no limit; the group's programs can be frozen.
    ///
    /// # Panics
    /// Without [`crate::Need::Freezer`] and [`crate::Need::Root`].
    #[must_use]
    pub fn to_freeze() -> Throttle {
        Throttle::new_group(&freezer().expect("groups that can be frozen"))
    }

    /// Freezes or thaws all programs in the group. Returns when the kernel reports the new state.
    pub fn freeze(&self, is_frozen: bool) {
        let value = if is_frozen { "1" } else { "0" };
        self.set("cgroup.freeze", value);
        let events = || fs::read_to_string(self.group.join("cgroup.events"));
        while !events().is_ok_and(|text| text.contains(&format!("frozen {value}"))) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Creates a group and enables a controller for it.
    fn group_in(hierarchy: &Hierarchy, controller: &str) -> Throttle {
        let root = match hierarchy {
            Hierarchy::Blkio(root) | Hierarchy::Unified(root) => root,
        };
        if let Hierarchy::Unified(root) = hierarchy {
            fs::write(root.join("cgroup.subtree_control"), controller)
                .expect("the controller can be handed down");
        }
        Throttle::new_group(root)
    }

    fn new_group(root: &Path) -> Throttle {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "iosonde-e2e-{}-{}",
            process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        // create_dir fails if the group exists, so drop removes only a group of this process.
        let group = root.join(name);
        fs::create_dir(&group).expect("a new control group");
        Throttle {
            _note: Note::new("group", &group.to_string_lossy()),
            group,
        }
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.group.join(file), value)
            .unwrap_or_else(|error| panic!("{file} does not take {value:?}: {error}"));
    }

    /// The file that takes the ids of processes to limit.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The group is busy until its last process has been reaped.
        for _ in 0..100 {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("left behind: {}", self.group.display());
    }
}
