//! File systems that exist for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::device::tool;

/// A mounted file system, unmounted at the end.
#[derive(Debug)]
pub struct Mount {
    dir: PathBuf,
}

impl Mount {
    /// A memory file system of a limited size, for running out of space.
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

    /// A memory file system that knows no direct I/O.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`].
    #[must_use]
    pub fn ramfs(dir: PathBuf) -> Mount {
        Mount::new(dir, &["-t", "ramfs", "iosonde-e2e"])
    }

    /// Makes a file system on a device and mounts it.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`].
    #[must_use]
    pub fn ext4(dir: PathBuf, device: &Path) -> Mount {
        let device = device.to_string_lossy();
        tool(&["mkfs.ext4", "-q", "-F", &device]);
        Mount::new(dir, &[&device])
    }

    /// Makes one file system of several devices and mounts it.
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

    /// Forbids writing from now on.
    pub fn make_read_only(&self) {
        tool(&["mount", "-o", "remount,ro", &self.dir.to_string_lossy()]);
    }

    /// Where it is mounted.
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

/// Unmounts what this harness has mounted; waits for programs that are about to end.
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
