//! Check that data fits on a file system before it is written.

use super::file_system::{STAT_BLOCK_BYTES, nearest_existing};
use super::host::memory_to_take;
use super::identify::identify;
use super::proc_root::System;
use iosonde_job::errno::describe;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use super::file_system::{is_boundless, is_memory};

/// Space in the file system of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemSpace {
    /// Bytes that this user may still write.
    pub available_bytes: u64,
    /// Size of the file system in bytes.
    pub total_bytes: u64,
    /// Device number of the file system (`st_dev`).
    pub file_system: u64,
}

/// The space at a path, which need not exist yet.
pub fn space(path: &Path) -> io::Result<FileSystemSpace> {
    let (existing, _) = nearest_existing(path)?;
    let stat = rustix::fs::statvfs(&existing)?;
    let file_system = std::fs::metadata(&existing)?.dev();
    if is_boundless(&existing) {
        let left = memory_to_take(&System::live()).unwrap_or(0);
        return Ok(FileSystemSpace {
            available_bytes: left,
            total_bytes: left,
            file_system,
        });
    }
    Ok(FileSystemSpace {
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        file_system,
    })
}

/// The type of the file system at a path if it stores no data, such as proc and sysfs. These have
/// no blocks and only show the kernel's state.
pub fn view_of_kernel(path: &Path) -> Option<String> {
    if space(path).ok()?.total_bytes > 0 {
        return None;
    }
    let mount = identify(path).ok()?.mount;
    Some(mount.map_or_else(|| "this file system".to_owned(), |mount| mount.fs_type))
}

/// Bytes to be written at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceNeed {
    /// The file.
    pub path: PathBuf,
    /// Bytes without allocated blocks.
    pub bytes: u64,
}

impl SpaceNeed {
    /// The bytes needed to fill a file up to `size_bytes`, without the blocks that it already has.
    pub fn to_fill(path: &Path, size_bytes: u64) -> Self {
        let has = std::fs::metadata(path)
            .map_or(0, |file| file.blocks().saturating_mul(STAT_BLOCK_BYTES));
        Self {
            path: path.to_owned(),
            bytes: size_bytes.saturating_sub(has),
        }
    }
}

/// Data that will not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}: {needed_bytes} bytes are needed, but only {available_bytes} bytes are available",
    .path.display()
)]
pub struct Shortage {
    /// The first path on the file system that is too small.
    pub path: PathBuf,
    /// Bytes that would be written to that file system.
    pub needed_bytes: u64,
    /// Bytes available there.
    pub available_bytes: u64,
}

/// The reason why data does not fit, or why that is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// A file system is too small.
    #[error(transparent)]
    Short(#[from] Shortage),
    /// The file system stores no data.
    #[error("{}: {fs_type} is a pseudo file system and stores no data", .path.display())]
    View {
        /// The path.
        path: PathBuf,
        /// The type of the file system.
        fs_type: String,
    },
    /// The space at a path could not be read.
    #[error("{}: the free space cannot be read: {}", .path.display(), describe(.source))]
    Unknown {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Checks that all needs fit together, separately for each file system.
///
/// # Errors
///
/// Returns the first file system that is too small, with the needed and the available bytes.
pub fn check(needs: &[SpaceNeed]) -> Result<(), SpaceError> {
    let ask = |need: &SpaceNeed| {
        let unknown = |source| SpaceError::Unknown {
            path: need.path.clone(),
            source,
        };
        Ok((need.clone(), space(&need.path).map_err(unknown)?))
    };
    let asked: Vec<(SpaceNeed, FileSystemSpace)> =
        needs.iter().map(ask).collect::<Result<_, SpaceError>>()?;
    check_space(&asked).map_err(|short| match view_of_kernel(&short.path) {
        Some(fs_type) => SpaceError::View {
            path: short.path,
            fs_type,
        },
        None => SpaceError::Short(short),
    })
}

/// Compares needs with the space of their file systems.
pub fn check_space(needs: &[(SpaceNeed, FileSystemSpace)]) -> Result<(), Shortage> {
    let mut sums: BTreeMap<u64, Shortage> = BTreeMap::new();
    for (need, space) in needs {
        let sum = sums.entry(space.file_system).or_insert_with(|| Shortage {
            path: need.path.clone(),
            needed_bytes: 0,
            available_bytes: space.available_bytes,
        });
        sum.needed_bytes = sum.needed_bytes.saturating_add(need.bytes);
    }
    match sums
        .into_values()
        .find(|sum| sum.needed_bytes > sum.available_bytes)
    {
        Some(shortage) => Err(shortage),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn need(path: &str, bytes: u64) -> SpaceNeed {
        SpaceNeed {
            path: path.into(),
            bytes,
        }
    }

    fn room(file_system: u64, available_bytes: u64) -> FileSystemSpace {
        FileSystemSpace {
            available_bytes,
            total_bytes: available_bytes * 2,
            file_system,
        }
    }

    #[test]
    fn shortage_states_needed_and_available_bytes() {
        let needs = [
            (need("/a/1", 60), room(1, 100)),
            (need("/b/1", 500), room(2, 500)),
            (need("/a/2", 41), room(1, 100)),
        ];
        let shortage = check_space(&needs).unwrap_err();
        assert_eq!(
            shortage.to_string(),
            "/a/1: 101 bytes are needed, but only 100 bytes are available"
        );
        assert_eq!(check_space(&needs[..2]), Ok(()));
    }

    #[test]
    fn space_check_refuses_files_larger_than_any_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("not/yet/there");
        let error = check(&[SpaceNeed::to_fill(&path, 1 << 60)]).unwrap_err();
        assert!(matches!(&error, SpaceError::Short(shortage)
                if shortage.needed_bytes == 1 << 60 && shortage.path == path));
        check(&[SpaceNeed::to_fill(&path, 4096)]).unwrap();
    }

    #[test]
    fn space_check_refuses_proc_and_sysfs() {
        let error = check(&[SpaceNeed::to_fill(Path::new("/proc/a.0.0"), 4096)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/proc/a.0.0: proc is a pseudo file system and stores no data"
        );
        assert_eq!(
            view_of_kernel(Path::new("/sys/class")),
            Some("sysfs".into())
        );
        assert_eq!(view_of_kernel(Path::new("/dev/shm/not-there")), None);
    }

    #[test]
    fn space_need_excludes_allocated_blocks() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
        assert_eq!(SpaceNeed::to_fill(file.path(), 3 << 20).bytes, 2 << 20);
        assert_eq!(SpaceNeed::to_fill(file.path(), 4096).bytes, 0);
        file.as_file().set_len(8 << 20).unwrap();
        assert_eq!(
            SpaceNeed::to_fill(file.path(), 8 << 20).bytes,
            7 << 20,
            "a hole has no blocks"
        );
    }

    proptest! {
        #[test]
        fn needs_fit_if_the_sum_of_each_file_system_fits(
            needs in prop::collection::vec((0u64..3, 0u64..100), 0..20)
        ) {
            let asked: Vec<(SpaceNeed, FileSystemSpace)> =
                needs.iter().map(|(at, bytes)| (need("/x", *bytes), room(*at, 400))).collect();
            let sum = |at: u64| {
                needs.iter().filter(|need| need.0 == at).map(|need| need.1).sum::<u64>()
            };
            prop_assert_eq!(check_space(&asked).is_ok(), (0..3).all(|at| sum(at) <= 400));
        }
    }
}
