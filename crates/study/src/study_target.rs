//! [`StudyTarget`]: the file, device or pool that a study uses.

use iosonde_job::run_number::{has_run_number, with_run_number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The target of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyTarget {
    /// The target as the user wrote it.
    pub name: String,
    /// The file or device that I/O goes to.
    pub path: String,
    /// The kind of target.
    pub kind: StudyTargetKind,
}

impl StudyTarget {
    /// End of the name of a neighbour's file, after the path of the working file.
    pub const NEIGHBOUR_SUFFIX: &'static str = ".neighbour";

    /// Paths or URIs that runs may access: none on this machine if the target is simulated.
    pub fn permitted(&self) -> Vec<String> {
        match self.kind {
            StudyTargetKind::Simulated { .. } => Vec::new(),
            _ if self.kind.is_ours() => vec![self.path.clone(), self.neighbour_path()],
            _ => vec![self.path.clone()],
        }
    }

    /// Sets the number of the run of a simulated device, unless its options have one: each run
    /// draws other random numbers. Other targets do not change.
    pub fn number_simulated_run(&mut self, run: u64) {
        if let StudyTargetKind::Simulated { options } = &mut self.kind {
            *options = with_run_number(options, run);
        }
    }

    /// The file or objects of a neighbour, if it has its own.
    pub(crate) fn neighbour_path(&self) -> String {
        format!("{}{}", self.path, StudyTarget::NEIGHBOUR_SUFFIX)
    }
}

/// The kinds of target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyTargetKind {
    /// A directory: the probe creates a working file in it and removes the file.
    Directory {
        /// Bytes that may be written to its file system.
        free_bytes: u64,
    },
    /// A pool: the probe creates objects in it and removes them.
    Pool {
        /// Bytes that may be written to it.
        free_bytes: u64,
    },
    /// An existing file or block device, which holds the user's data.
    Existing {
        /// Length in bytes.
        bytes: u64,
        /// Whether it is a block device.
        device: bool,
        /// Whether its contents may be overwritten.
        consent: bool,
    },
    /// A simulated device, with its options.
    Simulated {
        /// `key=value,...`
        options: String,
    },
}

impl StudyTargetKind {
    /// Whether the probe creates and removes the file or objects that it measures.
    pub fn is_ours(&self) -> bool {
        matches!(
            self,
            StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. }
        )
    }

    /// Whether it is a simulated device whose options have the number of a run.
    pub fn has_run(&self) -> bool {
        matches!(self, StudyTargetKind::Simulated { options } if has_run_number(options))
    }

    /// Whether the working set may be written.
    pub fn is_writable(&self) -> bool {
        !matches!(self, StudyTargetKind::Existing { consent: false, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_targets::{directory_target, simulated_target};

    #[test]
    fn simulated_runs_are_numbered_unless_options_have_a_run() {
        let numbered = |device: &str, run: u64| {
            let mut target = simulated_target(device);
            target.number_simulated_run(run);
            assert_eq!(target.name, format!("sim:{device}"));
            match target.kind {
                StudyTargetKind::Simulated { options } => options,
                kind => panic!("{kind:?}"),
            }
        };
        assert_eq!(numbered("hdd", 0), "hdd");
        assert_eq!(numbered("hdd", 2), "hdd,run=2");
        assert_eq!(numbered("hdd,run=7", 2), "hdd,run=7");
        let mut directory = directory_target("/data");
        directory.number_simulated_run(2);
        assert!(simulated_target("hdd, run=7").kind.has_run());
        assert!(!simulated_target("hdd").kind.has_run() && !directory.kind.has_run());
        assert_eq!(directory, directory_target("/data"));
    }
}
