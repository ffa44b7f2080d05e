//! Consent of the owner to overwrite targets: by name, and for a block device also by its disk.

use super::disk_identity::{DiskIdentity, IdentityChange};
use super::identify::PathFacts;
use super::proc_root::System;
use iosonde_result::host::PathKind;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The option that gives consent to overwrite.
pub const CONSENT_OPTION: &str = "--allow-overwrite";
/// The option that gives consent to write to targets in use, in addition to [`CONSENT_OPTION`].
pub const IN_USE_OPTION: &str = "--allow-in-use";

/// A target that may be overwritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentedTarget {
    /// The target as given: a path, or the URI of an image or pool of Ceph.
    pub path: PathBuf,
    /// The disk at that time; `None` if the target was no block device.
    pub disk: Option<DiskIdentity>,
}

/// All consent of a session.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    /// Targets that may be overwritten whatever they contain.
    pub targets: Vec<ConsentedTarget>,
    /// Targets that may be written while in use, if they are in `targets` too.
    pub in_use: Vec<PathBuf>,
    /// Whether `allow_mounted_write=1` of a job is consent to write to the devices that the job
    /// names, including devices in use, as with fio.
    pub by_jobs: bool,
}

/// Scope of the consent to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// No consent.
    None,
    /// The contents may be lost.
    Overwrite,
    /// The target may be written while in use, unless the root file system is on it.
    InUse,
    /// The target may be written in any case (fio's `allow_mounted_write`).
    Mounted,
}

impl Consent {
    /// Consent to overwrite these targets, with the identity of their current disks.
    pub fn to_overwrite<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Consent {
        let targets = paths.into_iter().map(|path| {
            let path = path.into();
            let disk = DiskIdentity::from_path(&path);
            ConsentedTarget { path, disk }
        });
        Consent {
            targets: targets.collect(),
            ..Consent::default()
        }
    }

    /// Adds consent to write to these targets while they are in use.
    pub fn and_in_use<P: Into<PathBuf>>(self, paths: impl IntoIterator<Item = P>) -> Consent {
        let in_use = paths.into_iter().map(Into::into).collect();
        Consent { in_use, ..self }
    }

    /// The names of all targets.
    pub fn paths(&self) -> Vec<PathBuf> {
        let paths = self.targets.iter().map(|target| &target.path);
        paths.cloned().collect()
    }

    /// The consent to the target of a Ceph URI. Such a target is compared by its name only.
    pub fn agreement_on_uri(&self, uri: &str) -> Agreement {
        let uri = Path::new(uri);
        let is_named = self.targets.iter().any(|target| target.path == uri);
        match is_named {
            true if self.in_use.iter().any(|path| path == uri) => Agreement::InUse,
            true => Agreement::Overwrite,
            false => Agreement::None,
        }
    }

    /// The consent to a target.
    ///
    /// # Errors
    /// Fails if the consent for this name was given for another disk.
    pub fn agreement(&self, facts: &PathFacts) -> Result<Agreement, IdentityChange> {
        let mut named = self
            .targets
            .iter()
            .filter(|target| is_same_target(facts, &target.path))
            .peekable();
        if named.peek().is_none() {
            return Ok(Agreement::None);
        }
        if facts.kind == PathKind::BlockDevice
            && let Some(number) = facts.is
        {
            let now = DiskIdentity::from_number(&System::live(), number);
            for target in named {
                let change = match &target.disk {
                    Some(noted) => noted.change(&now),
                    None => Some(IdentityChange::Unknown),
                };
                if let Some(change) = change {
                    return Err(change);
                }
            }
        }
        let is_used = |path: &PathBuf| is_same_target(facts, path);
        Ok(match self.in_use.iter().any(is_used) {
            true => Agreement::InUse,
            false => Agreement::Overwrite,
        })
    }
}

/// Whether consent to `other` applies to the target: the same device number, or the same file.
pub(super) fn is_same_target(facts: &PathFacts, other: &Path) -> bool {
    PathFacts::query(other).is_ok_and(|other| match (facts.is, other.is) {
        (Some(one), Some(another)) => one == another,
        (None, None) => facts.path == other.path,
        _ => false,
    })
}
