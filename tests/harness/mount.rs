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
        unmount(&self.dir);
    }
}

/// Unmounts a file system of this harness. Retries while programs that are about to exit use it.
pub(crate) fn unmount(target: &Path) {
    for _ in 0..100 {
        if Command::new("umount")
            .arg(target)
            .output()
            .is_ok_and(|output| output.status.success())
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    eprintln!("left behind: {}", target.display());
}
