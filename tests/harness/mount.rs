//! File systems for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::device::tool;

/// A mounted file system, unmounted on drop.
#[derive(Debug)]
pub struct Mount {
    dir: PathBuf,
}

impl Mount {
    /// A tmpfs of limited size, for tests that run out of space.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`].
    #[must_use]
    pub fn tmpfs(dir: PathBuf, size_bytes: u64) -> Mount {
        Mount::new(
            dir,
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size_bytes}"),
                "iosonde-e2e",
            ],
        )
    }

    /// A ramfs, which has no direct I/O.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`].
    #[must_use]
    pub fn ramfs(dir: PathBuf) -> Mount {
        Mount::new(dir, &["-t", "ramfs", "iosonde-e2e"])
    }

    /// Formats a device with ext4 and mounts it.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`].
    #[must_use]
    pub fn ext4(dir: PathBuf, device: &Path) -> Mount {
        let device = device.to_string_lossy();
        tool(&["mkfs.ext4", "-q", "-F", &device]);
        Mount::new(dir, &[&device])
    }

    /// Creates one btrfs of two devices and mounts it.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`] and [`crate::Need::Btrfs`].
    #[must_use]
    pub fn btrfs(dir: PathBuf, devices: [&Path; 2]) -> Mount {
        let [one, other] = devices.map(|device| device.to_string_lossy());
        tool(&["mkfs.btrfs", "-q", "-f", &one, &other]);
        Mount::new(dir, &[&one])
    }

    fn new(dir: PathBuf, arguments: &[&str]) -> Mount {
        fs::create_dir_all(&dir).expect("a directory to mount on");
        let mut words = vec!["mount"];
        words.extend(arguments);
        let target = dir.to_string_lossy();
        words.push(&target);
        tool(&words);
        Mount { dir: dir.clone() }
    }

    /// Remounts the file system read-only.
    pub fn make_read_only(&self) {
        tool(&["mount", "-o", "remount,ro", &self.dir.to_string_lossy()]);
    }

    /// The mount point.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !unmount(&self.dir) {
            eprintln!("left behind: {}", self.dir.display());
        }
    }
}

/// Unmounts a file system of this harness. Retries for two seconds while programs that are about to
/// exit use it. Returns whether it is unmounted.
pub(crate) fn unmount(target: &Path) -> bool {
    for _ in 0..100 {
        if call_umount(&[], target) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Unmounts a file system that programs use. The kernel keeps it until they close their files.
pub(crate) fn unmount_lazily(target: &Path) -> bool {
    call_umount(&["--lazy"], target)
}

fn call_umount(options: &[&str], target: &Path) -> bool {
    let called = Command::new("umount").args(options).arg(target).output();
    called.is_ok_and(|output| output.status.success())
}
