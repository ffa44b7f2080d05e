//! The lock by which a run marks its working file or scratch directory as in use.
//!
//! Working files lie in directories that other users can write to, such as /tmp, under names that
//! anyone can use. So a lock file is opened only if it is a regular file of this user, never
//! through a symbolic link, and never blocking: a FIFO would wait for a writer. A device might act
//! when opened.

use super::name::working_file_beside;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use rustix::process::geteuid;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Takes the lock of a working file until the returned file is closed. `None`: it is in use. The
/// file of a neighbour has the lock of the working file beside it.
///
/// The state is unknown: not a regular file of this user, or no locks on its file system.
pub(in crate::commands) fn take_lock(file: &Path) -> io::Result<Option<File>> {
    let beside = working_file_beside(file).filter(|beside| beside.symlink_metadata().is_ok());
    take_at(CWD, beside.as_deref().unwrap_or(file))
}

/// As [`take_lock`], of the file `name` in a directory of this user.
pub(in crate::commands) fn take_lock_within(
    directory: &Path,
    name: &str,
) -> io::Result<Option<File>> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty())?;
    refuse_foreign(&fstat(&directory)?)?;
    take_at(directory.as_fd(), Path::new(name))
}

/// Locks a new file. `false`: another process has locked or removed it as a leftover.
pub(in crate::commands) fn claim(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Without support for locks, leftovers are reported but not removed.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// Whether the path still names the opened file or directory.
pub(in crate::commands) fn is_still(path: &Path, opened: &File) -> io::Result<bool> {
    let opened = opened.metadata()?;
    match path.symlink_metadata() {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn take_at(directory: BorrowedFd<'_>, name: &Path) -> io::Result<Option<File>> {
    refuse_unusable(&statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |access| openat(directory, name, flags | access, Mode::empty());
    // On NFS an exclusive lock needs write access.
    let file = File::from(open(OFlags::RDWR).or_else(|_| open(OFlags::RDONLY))?);
    // The name may refer to another file since the check.
    refuse_unusable(&fstat(&file)?)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn refuse_unusable(found: &Stat) -> io::Result<()> {
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("its lock is not a regular file"));
    }
    refuse_foreign(found)
}

fn refuse_foreign(found: &Stat) -> io::Result<()> {
    match found.st_uid == geteuid().as_raw() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "it belongs to another user (uid {})",
            found.st_uid
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mknodat;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// The outcome as text. Fails if the call blocks.
    fn taken(directory: &Path) -> String {
        let (sender, answer) = channel();
        let directory = directory.to_owned();
        std::thread::spawn(move || {
            let outcome = match take_lock_within(&directory, "in-use") {
                Ok(Some(_)) => "taken".to_owned(),
                Ok(None) => "held".to_owned(),
                Err(error) => error.to_string(),
            };
            let _ = sender.send(outcome);
        });
        let timeout = Duration::from_secs(20);
        answer.recv_timeout(timeout).expect("opening does not wait")
    }

    #[test]
    fn lock_other_than_regular_file_is_not_opened() {
        let name = format!("iosonde-lock-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let lock = directory.join("in-use");
        mknodat(CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(taken(&directory), "its lock is not a regular file");
        fs::remove_file(&lock).unwrap();
        let elsewhere = directory.join("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        symlink(&elsewhere, &lock).unwrap();
        assert_eq!(taken(&directory), "its lock is not a regular file");
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "").unwrap();
        assert_eq!(taken(&directory), "taken");
        let held = take_lock_within(&directory, "in-use").unwrap();
        assert_eq!(taken(&directory), "held");
        drop(held);
        let link = directory.join("link");
        symlink(&directory, &link).unwrap();
        assert!(taken(&link).contains("Not a directory"), "{}", taken(&link));
        if geteuid().is_root() {
            chown(&lock, Some(1), None).unwrap();
            assert_eq!(taken(&directory), "it belongs to another user (uid 1)");
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
