//! The access that this process has to a target, tested without leaving a file behind.

use super::atomic_writes::{atomic_write_limits, limits_of_open_file};
use super::consent::Consent;
use super::sys::linux::{DIRECT, TMPFILE};
use super::write_obstacles::{Refusal, check_writable};
use iosonde_job::errno::describe;
use iosonde_result::doctor::TargetAccess;
use iosonde_result::host::{PathKind, TargetInfo};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Tests the access to a target of this machine.
pub fn access(target: &TargetInfo) -> TargetAccess {
    let path = target.path.as_path();
    match target.kind {
        PathKind::Directory => check_directory(path),
        PathKind::File => check_data(path, error_text(try_open(path, OFlags::WRONLY))),
        PathKind::BlockDevice => check_data(path, error_text(permission(path))),
        _ => TargetAccess::default(),
    }
}

fn try_open(path: &Path, flags: OFlags) -> Result<(), Errno> {
    open_file(path, flags).map(drop)
}

fn open_file(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::open(path, flags | OFlags::CLOEXEC | OFlags::NONBLOCK, mode)
}

fn error_text(result: Result<(), Errno>) -> Option<String> {
    result.err().map(|errno| describe(&io::Error::from(errno)))
}

/// Tests a directory with an unnamed file (`O_TMPFILE`), which disappears when it is closed.
fn check_directory(path: &Path) -> TargetAccess {
    let nameless = TMPFILE | OFlags::RDWR;
    let made = try_open(path, nameless);
    // File systems without `O_TMPFILE`, mostly network file systems: access(2) instead.
    let unknown = matches!(
        made,
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL)
    );
    let opened = open_file(path, nameless | DIRECT);
    let direct = match &opened {
        Ok(_) => Some(true),
        Err(Errno::INVAL) if made.is_ok() => Some(false),
        Err(_) => None,
    };
    let atomic_writes = opened.ok().and_then(limits_of_open_file);
    let written = if unknown { permission(path) } else { made };
    let read = try_open(path, OFlags::RDONLY | OFlags::DIRECTORY);
    TargetAccess {
        read_error: error_text(read),
        read_errno: read.err().map(Errno::raw_os_error),
        write_error: error_text(written),
        direct,
        atomic_writes,
        obstacles: Vec::new(),
        remedy: None,
    }
}

/// Tests a block device with access(2). Opening it for writing would make udev probe it again.
fn permission(path: &Path) -> Result<(), Errno> {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
}

fn check_data(path: &Path, write_error: Option<String>) -> TargetAccess {
    let read = try_open(path, OFlags::RDONLY);
    let direct = match try_open(path, OFlags::RDONLY | DIRECT) {
        Ok(()) => Some(true),
        Err(Errno::INVAL) if read.is_ok() => Some(false),
        Err(_) => None,
    };
    let refusal = check_writable(path, &Consent::default()).err();
    let obstacles = match &refusal {
        Some(Refusal::Obstacles { obstacles, .. }) => &obstacles[..],
        Some(Refusal::Unreadable { .. } | Refusal::OtherDisk { .. }) | None => &[],
    };
    TargetAccess {
        read_error: error_text(read),
        read_errno: read.err().map(Errno::raw_os_error),
        write_error,
        direct,
        atomic_writes: atomic_write_limits(path).ok().flatten(),
        obstacles: obstacles.iter().map(ToString::to_string).collect(),
        remedy: refusal.as_ref().map(Refusal::remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::identify;

    #[test]
    fn access_check_leaves_no_file_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let tried = access(&identify(dir.path()).unwrap());
        assert_eq!((tried.read_error, tried.write_error), (None, None));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn access_check_leaves_a_file_unchanged() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "data").unwrap();
        let tried = access(&identify(file.path()).unwrap());
        assert_eq!((tried.read_error, tried.write_error), (None, None));
        assert_eq!(std::fs::read(file.path()).unwrap(), b"data");
    }

    #[test]
    fn access_reports_refusals_with_the_errno() {
        let tried = access(&identify(Path::new("/proc/self")).unwrap());
        assert!(tried.write_error.is_some(), "{tried:?}");
        let mut gone = identify(Path::new("/proc/self/status")).unwrap();
        gone.path = "/proc/self/none".into();
        assert!(access(&gone).read_error.unwrap().ends_with("(ENOENT)"));
    }
}
