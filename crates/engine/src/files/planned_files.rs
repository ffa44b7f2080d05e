//! What plans that were only looked at would have left behind, for the look at those after them.

use iosonde_machine::space::{Need, space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files that will be there when plans that were looked at have been run.
#[derive(Debug, Clone, Default)]
pub struct ToBe {
    /// How long each will be at least; `u64::MAX` is one that takes all the room there is.
    sizes: BTreeMap<PathBuf, u64>,
}

impl ToBe {
    /// Bytes that they will take of the room that there is at a path now.
    pub fn taken_bytes(&self, path: &Path) -> u64 {
        let Ok(asked) = space(path) else {
            return 0;
        };
        let is_there = |other: &Need| {
            space(&other.path).is_ok_and(|other| other.file_system == asked.file_system)
        };
        let needs = self.needs().filter(is_there);
        needs.fold(0, |sum, need| sum.saturating_add(need.bytes))
    }

    /// Whether a file will be there.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.sizes.contains_key(path)
    }

    /// A file will be there, at least so long.
    pub(crate) fn leave(&mut self, path: &Path, bytes: u64) {
        let size = self.sizes.entry(path.to_owned()).or_default();
        *size = (*size).max(bytes);
    }

    /// A file will be removed.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.sizes.remove(path);
    }

    /// How long a file will be; 0 where it is none of them.
    pub(super) fn size(&self, path: &Path) -> u64 {
        self.sizes.get(path).copied().unwrap_or(0)
    }

    /// What each takes of the room that there is now.
    pub(super) fn needs(&self) -> impl Iterator<Item = Need> {
        let sizes = self.sizes.iter();
        sizes.map(|(path, bytes)| Need::to_fill(path, *bytes))
    }
}
