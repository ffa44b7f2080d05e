//! Drops the caches of this kernel: page cache, dentries and inodes.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// File with which root drops caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Page cache, dentries and inodes.
const ALL_CACHES: &[u8] = b"3\n";

/// Writes dirty data back, because only clean data is dropped, then drops all caches.
///
/// # Errors
/// Without the rights of root, or in a container that may not change the kernel.
pub fn drop_all_caches() -> io::Result<()> {
    drop_by(Path::new(DROP_CACHES))
}

fn drop_by(control: &Path) -> io::Result<()> {
    // A refusal shows before the wait for the disks.
    let mut control = OpenOptions::new().write(true).open(control)?;
    rustix::fs::sync();
    control.write_all(ALL_CACHES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_by_names_all_caches_in_one_write() {
        let directory = tempfile::tempdir().unwrap();
        let control = directory.path().join("drop_caches");
        assert!(drop_by(&control).is_err(), "the file is not created");
        std::fs::write(&control, "").unwrap();
        drop_by(&control).unwrap();
        assert_eq!(std::fs::read(&control).unwrap(), ALL_CACHES);
    }
}
