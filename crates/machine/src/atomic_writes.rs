//! Limits of atomic writes (RWF_ATOMIC) of a file or block device.

use crate::sys::linux;
use iosonde_result::doctor::AtomicWriteLimits;
use std::io;
use std::path::Path;

/// Returns the limits of atomic writes of a file or block device. `None` if its file system, its
/// device or the kernel has none.
pub fn atomic_write_limits(path: &Path) -> io::Result<Option<AtomicWriteLimits>> {
    Ok(limits_from_units(linux::atomic_write_units(path)?))
}

/// Returns the limits of atomic writes of an open file, as [`atomic_write_limits`].
pub(crate) fn limits_of_open_file(file: impl rustix::fd::AsFd) -> Option<AtomicWriteLimits> {
    limits_from_units(linux::atomic_write_units_of_open_file(file).ok()?)
}

/// The kernel leaves the units at 0 where there are no atomic writes.
fn limits_from_units(units: Option<(u32, u32)>) -> Option<AtomicWriteLimits> {
    let (min, max) = units?;
    (min > 0 && max >= min).then(|| AtomicWriteLimits {
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
        assert_eq!(limits_from_units(Some((4096, 16384))), Some(limits));
        assert_eq!(limits_from_units(Some((0, 0))), None);
        assert_eq!(limits_from_units(None), None, "not reported");
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
