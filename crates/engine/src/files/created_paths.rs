//! Files and directories that a layout has created.

use super::created::CreatedFiles;
use super::file_errors::target_error;
use iosonde_result::run_error::{PathAction, RunError};
use std::path::{Path, PathBuf};

/// Files and directories created for a run.
#[derive(Debug, Clone, Default)]
pub struct CreatedPaths {
    /// Created files.
    pub created: CreatedFiles,
    /// Created directories, outer ones first.
    pub directories: Vec<PathBuf>,
}

impl CreatedPaths {
    /// Creates the missing parent directories of a path, as fio does.
    pub(crate) fn create_parents(&mut self, path: &Path) -> Result<(), RunError> {
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|parent| !parent.as_os_str().is_empty() && !parent.exists())
            .collect();
        for directory in missing.into_iter().rev() {
            std::fs::create_dir(directory)
                .map_err(|error| target_error(directory, PathAction::Create, &error))?;
            self.directories.push(directory.to_owned());
        }
        Ok(())
    }

    /// Adds files and directories that another layout has created.
    pub fn extend(&mut self, other: CreatedPaths) {
        self.created.extend(&other.created);
        self.directories.extend(other.directories);
    }

    /// Removes all created files and directories.
    pub fn remove(&self) {
        self.created.remove_all();
        self.remove_directories();
    }

    /// Removes all created directories.
    pub(super) fn remove_directories(&self) {
        for path in self.directories.iter().rev() {
            // A directory with files of others is kept.
            let _ = std::fs::remove_dir(path);
        }
    }
}
