//! A directory for one test, and the lock that decides whether other tests may run beside it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{env, io};

use tempfile::TempDir;

/// A new directory, removed on drop, and a lock that keeps timing tests alone on the machine.
///
/// Hold exactly one: a second, exclusive one in the same test would deadlock.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _claim: File,
}

impl Scratch {
    /// For tests that may run beside others.
    #[must_use]
    pub fn shared() -> Scratch {
        Scratch::with(|lock| lock.lock_shared())
    }

    /// For tests that measure time or use up a resource of the whole machine.
    #[must_use]
    pub fn alone() -> Scratch {
        Scratch::with(|lock| lock.lock())
    }

    fn with(claim: impl Fn(&File) -> io::Result<()>) -> Scratch {
        // ./test gives each of its runs a directory of its own, but the machine has one lock.
        let path = env::var_os("IOSONDE_E2E_LOCK")
            .map_or_else(|| env::temp_dir().join("iosonde-e2e.lock"), PathBuf::from);
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .expect("the lock file opens");
        claim(&lock).expect("the lock can be waited for");
        let dir = tempfile::Builder::new()
            .prefix("iosonde-e2e-")
            .tempdir()
            .expect("a scratch directory");
        for part in ["work", "state", "out"] {
            fs::create_dir(dir.path().join(part)).expect("a directory in the scratch directory");
        }
        Scratch { dir, _claim: lock }
    }

    /// Working directory of the programs under test.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Home directory of the programs, so that tests neither read nor write a real history.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Output files of the harness, outside the directory that tests check for leftovers.
    #[must_use]
    pub fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Writes a file into [`Scratch::work`], for instance a job file.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::write(&path, contents).expect("a file in the scratch directory");
        path
    }

    /// Names of all files below [`Scratch::work`], relative to it and sorted.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut pending = vec![self.work()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).expect("a directory that can be read") {
                let path = entry.expect("a directory entry").path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    let name = path
                        .strip_prefix(self.work())
                        .expect("a path below the scratch directory");
                    names.push(name.display().to_string());
                }
            }
        }
        names.sort();
        names
    }
}

/// Incompressible bytes, the same for the same seed.
#[must_use]
pub fn incompressible(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        // SplitMix64 (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..len.div_ceil(8))
        .flat_map(|_| word().to_le_bytes())
        .take(len)
        .collect()
}

/// Writes a file of incompressible bytes and syncs it to its disk.
pub fn lay_out(path: &Path, len: usize) {
    fs::write(path, incompressible(len, 1)).expect("a file that can be laid out");
    File::open(path)
        .and_then(|file| file.sync_all())
        .expect("a file that can be synced");
}
