//! Limits of atomic writes (RWF_ATOMIC) of a file or block device.

use iosonde_result::doctor::AtomicWriteLimits;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};
use std::io;
use std::path::Path;

/// STATX_WRITE_ATOMIC (Linux 6.11).
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// Returns the limits of atomic writes of a file or block device. `None` if its file system, its
/// device or the kernel has none.
pub fn atomic_write_limits(path: &Path) -> io::Result<Option<AtomicWriteLimits>> {
    let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), WRITE_ATOMIC)?;
    Ok(limits_in(&stat))
}

/// Returns the limits of atomic writes of an open file, as [`atomic_write_limits`].
pub(crate) fn limits_of_open_file(file: impl rustix::fd::AsFd) -> Option<AtomicWriteLimits> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC);
    limits_in(&stat.ok()?)
}

fn limits_in(stat: &Statx) -> Option<AtomicWriteLimits> {
    let is_filled = stat.stx_mask & WRITE_ATOMIC.bits() != 0;
    limits_from_units(
        is_filled,
        stat.stx_atomic_write_unit_min,
        stat.stx_atomic_write_unit_max,
    )
}

/// The kernel leaves the units at 0 where there are no atomic writes.
fn limits_from_units(is_filled: bool, min: u32, max: u32) -> Option<AtomicWriteLimits> {
    (is_filled && min > 0 && max >= min).then(|| AtomicWriteLimits {
        min_bytes: min.into(),
        max_bytes: max.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_limits_are_the_units_of_the_kernel() {
        let limits = AtomicWriteLimits {
            min_bytes: 4096,
            max_bytes: 16384,
        };
        assert_eq!(limits_from_units(true, 4096, 16384), Some(limits));
        assert_eq!(limits_from_units(true, 0, 0), None);
        assert_eq!(limits_from_units(false, 4096, 16384), None, "stale");
    }

    #[test]
    fn pseudo_file_has_no_atomic_writes() {
        let path = Path::new("/proc/self/status");
        assert_eq!(atomic_write_limits(path).unwrap(), None);
        assert_eq!(
            limits_of_open_file(std::fs::File::open(path).unwrap()),
            None
        );
        let missing = atomic_write_limits(Path::new("/proc/self/none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
