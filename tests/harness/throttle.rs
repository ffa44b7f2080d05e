//! The block layer's throttle, as a target's known speed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::device::number;
use crate::undo::Note;

/// Where the machine's control groups throttle block I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hierarchy {
    /// A controller of the first generation (blkio, cpu), at this directory.
    Blkio(PathBuf),
    /// The io controller of the second generation, at this directory.
    Unified(PathBuf),
}

/// The hierarchy that can throttle here, if any.
#[must_use]
pub fn hierarchy() -> Option<Hierarchy> {
    with_controller("blkio/blkio.throttle.read_iops_device", "io")
}

/// The hierarchy that can bound processor time here, if any.
#[must_use]
pub fn cpu_hierarchy() -> Option<Hierarchy> {
    with_controller("cpu/cgroup.procs", "cpu")
}

/// The hierarchy that can bound memory here, if any.
#[must_use]
pub fn memory_hierarchy() -> Option<Hierarchy> {
    with_controller("memory/memory.limit_in_bytes", "memory")
}

/// Where groups of the second generation are made, all of which can be frozen; `None` where there are none.
#[must_use]
pub fn freezer() -> Option<PathBuf> {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    // cgroup.controllers is in the root of the second generation, and nowhere in the first.
    let mut second = roots
        .into_iter()
        .filter(|root| root.join("cgroup.controllers").exists());
    second.next()
}

/// The controller of the first generation that has the file `first`, else the second generation's of this name.
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

/// What is limited; each in units per second.
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
    /// Pairs of the value and its names in both generations.
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

/// A control group of its own that limits one device; removed at the end.
#[derive(Debug)]
pub struct Throttle {
    group: PathBuf,
    _note: Note,
}

impl Throttle {
    /// Limits the device `MAJOR:MINOR` for the programs that are put into the group.
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

    /// Allows this many reads per second of a device.
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

    /// Bounds the memory of programs, page cache included.
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

    /// Limits programs to this many thousandths of a processor's time.
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

    /// Limits nothing; its programs can be frozen.
    ///
    /// # Panics
    /// Without [`crate::Need::Freezer`] and [`crate::Need::Root`].
    #[must_use]
    pub fn to_freeze() -> Throttle {
        Throttle::new_group(&freezer().expect("groups that can be frozen"))
    }

    /// Freezes all programs in the group, or lets them go on. They are frozen when it returns.
    pub fn freeze(&self, is_frozen: bool) {
        let value = if is_frozen { "1" } else { "0" };
        self.set("cgroup.freeze", value);
        let is_told = || fs::read_to_string(self.group.join("cgroup.events"));
        while !is_told().is_ok_and(|events| events.contains(&format!("frozen {value}"))) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A new group, with a controller that is handed down to it.
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
        // create_dir fails where the group exists, so the one removed later is always our own.
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

    /// The file that takes the ids of processes to be limited.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The group is busy until the last process in it has been reaped.
        for _ in 0..100 {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("left behind: {}", self.group.display());
    }
}
