//! Block devices that exist for one test: memory disks and loop devices.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::mount::Mount;
use crate::program::PATIENCE;
use crate::scratch::incompressible;
use crate::undo::Note;

/// Runs a system tool.
///
/// # Panics
/// When it fails.
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

/// A compressed memory disk of its own, filled with incompressible data.
#[derive(Debug)]
pub struct Zram {
    index: u32,
    _note: Note,
}

impl Zram {
    /// Makes a new device; the kernel picks a number that nobody uses.
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

    /// Reads and writes that the device has completed since it was made.
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
    /// Writes swap space onto a device and uses it.
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

/// Keeps other tests from attaching a file to a loop device until it is dropped.
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

    /// Detaches the device and attaches another file to its number, which no other test gets meanwhile.
    ///
    /// # Panics
    /// When the device is still in use after [`PATIENCE`].
    pub fn replace(&self, file: &Path) {
        let _none_else = attaching();
        let path = self.path.to_string_lossy();
        tool(&["losetup", "--detach", &path]);
        // A program that looks at all devices may hold this one for a moment: it is detached when that program closes it.
        let started = Instant::now();
        let attach = || {
            let mut command = Command::new("losetup");
            command.arg(&self.path).arg(file).output()
        };
        while !attach().expect("losetup").status.success() {
            assert!(started.elapsed() < PATIENCE, "{path} stays in use");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A device over a file in memory that nobody else uses: what happens at other disks does not matter to it.
    ///
    /// # Panics
    /// As [`Loop::new`].
    #[must_use]
    pub fn in_memory(memory: &Mount, size_bytes: usize) -> Loop {
        let file = memory.dir().join("disk");
        fs::write(&file, incompressible(size_bytes, 2)).expect("a file in memory");
        // Not all kernels have direct I/O on tmpfs, and it makes no difference there.
        Loop::attached(&[], &file)
    }

    /// Makes a file of this size, wholly written, and attaches a loop device to it.
    #[must_use]
    pub fn with_file(file: &Path, size_bytes: usize) -> Loop {
        fs::write(file, incompressible(size_bytes, 2)).expect("a file for the loop device");
        File::open(file)
            .and_then(|file| file.sync_all())
            .expect("a file that can be synced");
        Loop::new(file)
    }

    /// Makes a file of this size that is one hole, and attaches a loop device to it.
    ///
    /// # Panics
    /// As [`Loop::new`].
    #[must_use]
    pub fn with_hole(file: &Path, size_bytes: u64) -> Loop {
        let hole = File::create(file).and_then(|file| file.set_len(size_bytes));
        hole.expect("a file for the loop device");
        Loop::new(file)
    }

    /// Makes a file of this size, wholly written, and attaches a loop device to it that reads through the page cache, which
    /// holds the file.
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
