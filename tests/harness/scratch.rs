//! A directory for one test, and the locks that decide which tests may run beside it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, process, thread};

use iosonde_workload::rng::Rng;
use tempfile::TempDir;

use crate::program::PROGRAM_TIMEOUT;

/// Time between two attempts to begin while enough other tests run. Waiting tests must not disturb
/// one that measures time.
const TURN_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum wait while enough other tests run. Then the test runs beside them. A test whose program
/// hangs ends earlier.
const TURN_TIMEOUT: Duration = PROGRAM_TIMEOUT.saturating_add(Duration::from_secs(300));

/// Tests of this process that have waited for a turn.
static TURN_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Calm tests that run at once, for each CPU. Most use a tenth or a fifth of a CPU.
const CALM_TESTS_PER_CPU: usize = 2;

/// A new directory, removed on drop, and locks that keep tests that measure time apart from others.
///
/// Hold exactly one: a second one in the same test could wait for the first one.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _claims: Vec<File>,
    _turn: Option<File>,
}

impl Scratch {
    /// For tests that may run beside others.
    #[must_use]
    pub fn shared() -> Scratch {
        let turn = wait_for_turn();
        Scratch::with(turn, vec![join_group(&lock_path(), &calm_lock_path())])
    }

    /// For tests that measure time on a device of their own that is slow by design, so that they
    /// hardly use the CPUs, and for tests that compare times of which one is a multiple of the
    /// other. They run beside each other, two for each CPU, but beside no other test.
    #[must_use]
    pub fn calm() -> Scratch {
        // The wait for other groups does not count as a turn, so that turns stay exclusive.
        let group = join_group(&calm_lock_path(), &lock_path());
        Scratch::with(wait_for_calm_turn(), vec![group])
    }

    /// For tests that measure time or use up a resource of the whole machine.
    #[must_use]
    pub fn alone() -> Scratch {
        Scratch::with(None, lock_out_groups(&lock_path(), &calm_lock_path()))
    }

    fn with(turn: Option<File>, claims: Vec<File>) -> Scratch {
        let dir = tempfile::Builder::new()
            .prefix("iosonde-e2e-")
            .tempdir()
            .expect("a scratch directory");
        for part in ["work", "state", "out"] {
            fs::create_dir(dir.path().join(part)).expect("a directory in the scratch directory");
        }
        Scratch {
            dir,
            _claims: claims,
            _turn: turn,
        }
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

/// The lock of all tests. ./test gives each of its runs a directory of its own, but the machine has
/// one lock.
fn lock_path() -> PathBuf {
    env::var_os("IOSONDE_E2E_LOCK")
        .map_or_else(|| env::temp_dir().join("iosonde-e2e.lock"), PathBuf::from)
}

/// The lock of calm tests.
fn calm_lock_path() -> PathBuf {
    lock_path().with_extension("calm")
}

/// Shares the lock of a group of tests once no test of the other group holds its lock.
fn join_group(own: &Path, other: &Path) -> File {
    let (own, other) = (open_lock(own), open_lock(other));
    while !is_joined(&own, &other).expect("a lock that can be waited for") {
        sleep(TURN_POLL_INTERVAL);
    }
    own
}

/// Shares a lock, unless another test holds the other one. A test locks its own group first and
/// checks the other group afterwards, so of two tests of different groups at most one joins.
fn is_joined(own: &File, other: &File) -> io::Result<bool> {
    own.lock_shared()?;
    let is_free = other.try_lock().is_ok();
    match is_free {
        true => other.unlock()?,
        false => own.unlock()?,
    }
    Ok(is_free)
}

/// Waits until no test holds the lock of a group, and keeps both groups out until drop.
fn lock_out_groups(shared: &Path, calm: &Path) -> Vec<File> {
    let locks = vec![open_lock(shared), open_lock(calm)];
    for lock in &locks {
        lock.lock().expect("a lock that can be waited for");
    }
    locks
}

fn open_lock(path: &Path) -> File {
    fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .expect("the lock file opens")
}

/// Waits until fewer than `IOSONDE_E2E_AT_ONCE` shared tests run, in all test programs together.
/// Returns a lock that ends this test's turn on drop. `None` without a limit or after a timeout.
fn wait_for_turn() -> Option<File> {
    let at_once = env::var("IOSONDE_E2E_AT_ONCE").ok()?;
    let at_once: NonZeroUsize = at_once
        .parse()
        .expect("IOSONDE_E2E_AT_ONCE: a positive number");
    let turns: Vec<File> = (0..at_once.get())
        .map(|number| open_lock(&lock_path().with_extension(format!("turn{number}"))))
        .collect();
    // Tests that begin together try different files first.
    let start = process::id() as usize + TURN_COUNT.fetch_add(1, Ordering::Relaxed);
    let turn = first_unlocked(turns, start % at_once, Instant::now() + TURN_TIMEOUT);
    if turn.is_none() {
        print_missing_turn(at_once.get());
    }
    turn
}

/// Not with `eprintln!`, whose output is lost if the test passes.
fn print_missing_turn(at_once: usize) {
    let _ = writeln!(
        io::stderr(),
        "a test begins beside {at_once} others after {} s",
        TURN_TIMEOUT.as_secs()
    );
}

/// Waits until fewer calm tests run than the CPUs allow, in all test programs together. Returns a
/// lock that ends this test's turn on drop.
fn wait_for_calm_turn() -> Option<File> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let turns: Vec<File> = (0..CALM_TESTS_PER_CPU * processors)
        .map(|number| open_lock(&lock_path().with_extension(format!("calm{number}"))))
        .collect();
    let turn = first_unlocked(turns, 0, Instant::now() + TURN_TIMEOUT);
    if turn.is_none() {
        print_missing_turn(CALM_TESTS_PER_CPU * processors);
    }
    turn
}

/// Locks one of the files, and returns it. `start` is the index of the first file that is tried.
/// `None`: others hold all of them until the deadline.
fn first_unlocked(mut files: Vec<File>, start: usize, deadline: Instant) -> Option<File> {
    files.rotate_left(start);
    loop {
        let unlocked = files.iter().position(|file| file.try_lock().is_ok());
        if let Some(index) = unlocked {
            return Some(files.swap_remove(index));
        }
        if Instant::now() >= deadline {
            return None;
        }
        sleep(TURN_POLL_INTERVAL);
    }
}

/// Incompressible bytes, the same for the same seed. [`Rng::fill`] is optimised also in debug
/// builds, in which a loop in this crate would take seconds for each device that a test fills.
#[must_use]
pub fn incompressible(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

/// Writes a file of incompressible bytes and syncs it to its disk.
pub fn lay_out(path: &Path, len: usize) {
    fs::write(path, incompressible(len, 1)).expect("a file that can be laid out");
    File::open(path)
        .and_then(|file| file.sync_all())
        .expect("a file that can be synced");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incompressible_bytes_are_determined_by_seed() {
        let bytes = incompressible(16, 0);
        assert_eq!(incompressible(11, 0), bytes[..11]);
        assert_ne!(incompressible(16, 1), bytes);
        // Each value occurs 256 times on average, with a standard deviation of 16.
        let mut counts = [0_u32; 256];
        for byte in incompressible(1 << 16, 0) {
            counts[usize::from(byte)] += 1;
        }
        assert!(counts.iter().all(|count| (150..=400).contains(count)));
    }

    #[test]
    fn locked_turn_is_free_after_drop() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("turn");
        let take_turn = || first_unlocked(vec![open_lock(&path)], 0, Instant::now());
        let first = take_turn();
        assert!(first.is_some());
        assert!(take_turn().is_none());
        drop(first);
        assert!(take_turn().is_some());
    }

    #[test]
    fn second_turn_is_another_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let paths = ["one", "two"].map(|name| dir.path().join(name));
        let take_turn = || {
            let files = paths.iter().map(|path| open_lock(path)).collect();
            first_unlocked(files, 0, Instant::now())
        };
        let turns = [take_turn(), take_turn(), take_turn()];
        assert_eq!(turns.map(|turn| turn.is_some()), [true, true, false]);
    }

    #[test]
    fn groups_exclude_each_other_but_not_their_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let [shared, calm] = ["shared", "calm"].map(|name| dir.path().join(name));
        let joined = |own: &Path, other: &Path| {
            let lock = open_lock(own);
            let is_joined = is_joined(&lock, &open_lock(other)).expect("a lock");
            is_joined.then_some(lock)
        };
        let first = joined(&shared, &calm);
        let second = joined(&shared, &calm);
        assert!(first.is_some() && second.is_some());
        assert!(joined(&calm, &shared).is_none());
        drop(first);
        assert!(joined(&calm, &shared).is_none());
        drop(second);
        let first = joined(&calm, &shared);
        let second = joined(&calm, &shared);
        assert!(first.is_some() && second.is_some());
        assert!(joined(&shared, &calm).is_none());
    }

    #[test]
    fn test_alone_keeps_both_groups_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let [shared, calm] = ["shared", "calm"].map(|name| dir.path().join(name));
        let alone = lock_out_groups(&shared, &calm);
        for path in [&shared, &calm] {
            assert!(open_lock(path).try_lock_shared().is_err(), "{path:?}");
        }
        drop(alone);
        join_group(&shared, &calm);
        join_group(&calm, &shared);
    }

    #[test]
    fn start_index_selects_first_file_tried() {
        let dir = tempfile::tempdir().expect("a directory");
        let paths = ["one", "two", "three"].map(|name| dir.path().join(name));
        let files = paths.iter().map(|path| open_lock(path)).collect();
        let turn = first_unlocked(files, 1, Instant::now());
        assert!(turn.is_some());
        let is_locked = paths.map(|path| open_lock(&path).try_lock().is_err());
        assert_eq!(is_locked, [false, true, false]);
    }
}
