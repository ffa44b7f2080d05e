//! Block devices for one test: zram disks and loop devices.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::mount::Mount;
use crate::program::PROGRAM_TIMEOUT;
use crate::scratch::incompressible;
use crate::undo::Note;

/// Runs a system tool.
///
/// # Panics
/// If it fails.
pub fn tool(words: &[&str]) -> String {
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// `MAJOR:MINOR` of a device node.
#[must_use]
pub fn number(path: &Path) -> String {
    let device = fs::metadata(path).expect("a device node").rdev();
    format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    )
}

/// A zram disk, filled with incompressible data and removed on drop.
#[derive(Debug)]
pub struct Zram {
    index: u32,
    _note: Note,
}

impl Zram {
    /// Creates a device; the kernel picks an unused number.
    ///
    /// # Panics
    /// Without [`crate::Need::Zram`] and [`crate::Need::Root`].
    #[must_use]
    pub fn new(size_bytes: usize) -> Zram {
        let index =
            fs::read_to_string("/sys/class/zram-control/hot_add").expect("a new zram device");
        let zram = Zram {
            _note: Note::new("zram", index.trim()),
            index: index.trim().parse().expect("a device number"),
        };
        fs::write(zram.sys("disksize"), size_bytes.to_string())
            .expect("a size for the zram device");
        zram.fill(size_bytes);
        zram
    }

    fn fill(&self, size_bytes: usize) {
        let mut node = fs::OpenOptions::new()
            .write(true)
            .open(self.path())
            .expect("a zram device to write to");
        node.write_all(&incompressible(size_bytes, 1))
            .expect("a zram device that takes its data");
        node.sync_all().expect("a zram device that can be synced");
    }

    fn sys(&self, file: &str) -> PathBuf {
        format!("/sys/block/zram{}/{file}", self.index).into()
    }

    /// The device node.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/dev/zram{}", self.index).into()
    }

    /// Reads and writes that the device has completed since its creation.
    #[must_use]
    pub fn completed(&self) -> (u64, u64) {
        let stat = fs::read_to_string(self.sys("stat")).expect("a device's counters");
        let fields: Vec<u64> = stat
            .split_whitespace()
            .map(|field| field.parse().expect("a counter"))
            .collect();
        (fields[0], fields[4])
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        for _ in 0..100 {
            let removed = fs::write(self.sys("reset"), "1").is_ok()
                && fs::write("/sys/class/zram-control/hot_remove", self.index.to_string()).is_ok();
            if removed {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("left behind: {}", self.path().display());
    }
}

/// Swap space on a device, in use until it is dropped.
#[derive(Debug)]
pub struct Swap {
    device: PathBuf,
}

impl Swap {
    /// Formats a device as swap space and enables it.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`].
    #[must_use]
    pub fn on(device: PathBuf) -> Swap {
        let path = device.to_string_lossy();
        tool(&["mkswap", &path]);
        tool(&["swapon", &path]);
        drop(path);
        Swap { device }
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let ended = Command::new("swapoff").arg(&self.device).status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!("still swap space: {}", self.device.display());
        }
    }
}

/// Takes the lock on attaching files to loop devices, released on drop.
fn attaching() -> File {
    let lock = File::create(std::env::temp_dir().join("iosonde-e2e-loop.lock"));
    let lock = lock.expect("a lock in the directory for temporary files");
    lock.lock().expect("the lock");
    lock
}

/// A loop device over a file.
#[derive(Debug)]
pub struct Loop {
    path: PathBuf,
}

impl Loop {
    /// Attaches the next free loop device to a file.
    ///
    /// # Panics
    /// Without [`crate::Need::Root`], or when no loop device is free.
    #[must_use]
    pub fn new(file: &Path) -> Loop {
        Loop::attached(&["--direct-io=on"], file)
    }

    fn attached(options: &[&str], file: &Path) -> Loop {
        let file = file.to_string_lossy();
        let words = [&["losetup", "--find", "--show"], options, &[&*file]];
        let _none_else = attaching();
        Loop {
            path: tool(&words.concat()).into(),
        }
    }

    /// Attaches another file to the number of this device, under the lock on attaching.
    ///
    /// # Panics
    /// When the device is still in use after [`PROGRAM_TIMEOUT`].
    pub fn replace(&self, file: &Path) {
        let _none_else = attaching();
        let path = self.path.to_string_lossy();
        tool(&["losetup", "--detach", &path]);
        // While a program that scans devices holds this one, the kernel delays the detach.
        let started = Instant::now();
        let attach = || {
            let mut command = Command::new("losetup");
            command.arg(&self.path).arg(file).output()
        };
        while !attach().expect("losetup").status.success() {
            assert!(started.elapsed() < PROGRAM_TIMEOUT, "{path} stays in use");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A loop device over a file on tmpfs, so that load on other disks does not affect it.
    ///
    /// # Panics
    /// As [`Loop::new`].
    #[must_use]
    pub fn in_memory(memory: &Mount, size_bytes: usize) -> Loop {
        let file = memory.dir().join("disk");
        fs::write(&file, incompressible(size_bytes, 2)).expect("a file in memory");
        // Not every kernel has direct I/O on tmpfs, where it makes no difference.
        Loop::attached(&[], &file)
    }

    /// Writes a file of this size in full and attaches a loop device to it.
    #[must_use]
    pub fn with_file(file: &Path, size_bytes: usize) -> Loop {
        fs::write(file, incompressible(size_bytes, 2)).expect("a file for the loop device");
        File::open(file)
            .and_then(|file| file.sync_all())
            .expect("a file that can be synced");
        Loop::new(file)
    }

    /// Creates a file of this size that is one hole, and attaches a loop device to it.
    ///
    /// # Panics
    /// As [`Loop::new`].
    #[must_use]
    pub fn with_hole(file: &Path, size_bytes: u64) -> Loop {
        let hole = File::create(file).and_then(|file| file.set_len(size_bytes));
        hole.expect("a file for the loop device");
        Loop::new(file)
    }

    /// Writes a file of this size in full and attaches a loop device to it. The device reads
    /// through the page cache, which holds the file.
    ///
    /// # Panics
    /// As [`Loop::new`].
    #[must_use]
    pub fn in_page_cache(file: &Path, size_bytes: usize) -> Loop {
        fs::write(file, incompressible(size_bytes, 2)).expect("a file for the loop device");
        File::open(file)
            .and_then(|file| file.sync_all())
            .expect("a file that can be synced");
        Loop::attached(&[], file)
    }

    /// The device node.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("left behind: {}", self.path.display());
        }
    }
}
