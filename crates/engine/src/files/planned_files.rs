//! Files that checked plans will leave, which the checks of later plans have to take into account.

use iosonde_machine::space::{SpaceNeed, space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files that will exist after the checked plans have run.
#[derive(Debug, Clone, Default)]
pub struct PlannedFiles {
    /// Minimum size of each file in bytes. `u64::MAX`: the file fills its file system.
    sizes: BTreeMap<PathBuf, u64>,
}

impl PlannedFiles {
    /// Bytes that these files will take of the space available at a path now.
    pub fn taken_bytes(&self, path: &Path) -> u64 {
        let Ok(asked) = space(path) else {
            return 0;
        };
        let is_there = |other: &SpaceNeed| {
            space(&other.path).is_ok_and(|other| other.file_system == asked.file_system)
        };
        let needs = self.needs().filter(is_there);
        needs.fold(0, |sum, need| sum.saturating_add(need.bytes))
    }

    /// Whether a file will exist.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.sizes.contains_key(path)
    }

    /// Records that a file will exist, with at least this size.
    pub(crate) fn add(&mut self, path: &Path, bytes: u64) {
        let size = self.sizes.entry(path.to_owned()).or_default();
        *size = (*size).max(bytes);
    }

    /// Records that a file will be removed.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.sizes.remove(path);
    }

    /// Future size of a file. 0 if it is not among these files.
    pub(super) fn size(&self, path: &Path) -> u64 {
        self.sizes.get(path).copied().unwrap_or(0)
    }

    /// Space that each file needs beyond what it has now.
    pub(super) fn needs(&self) -> impl Iterator<Item = SpaceNeed> {
        let sizes = self.sizes.iter();
        sizes.map(|(path, bytes)| SpaceNeed::to_fill(path, *bytes))
    }
}
