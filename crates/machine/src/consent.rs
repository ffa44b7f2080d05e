//! Which targets their owner agreed to lose: by name, and each block device as the disk that it was at that moment.

use super::disk_identity::{DiskIdentity, IdentityChange};
use super::identify::PathFacts;
use super::proc_root::System;
use iosonde_result::host::TargetKind;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The option by which consent is given.
pub const CONSENT_OPTION: &str = "--allow-overwrite";
/// The option by which consent is given to write what is in use, besides [`CONSENT_OPTION`].
pub const IN_USE_OPTION: &str = "--allow-in-use";

/// A target that may be overwritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentedTarget {
    /// The target as it was named: a path, or the URI of an image or pool of Ceph.
    pub path: PathBuf,
    /// The disk that it was then; `None`: it was no block device.
    pub disk: Option<DiskIdentity>,
}

/// All that may be overwritten in a session.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    /// What may be overwritten whatever it carries.
    pub targets: Vec<ConsentedTarget>,
    /// What may be written even while others use it, where it is one of `targets` too.
    pub in_use: Vec<PathBuf>,
    /// Whether `allow_mounted_write=1` of a job is consent to write to the devices that the job names, also those in use, as
    /// with fio.
    pub by_jobs: bool,
}

/// How far consent to one target goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// There is none.
    None,
    /// What it carries may be lost.
    Overwrite,
    /// It may be written while others use it, unless it is below `/`.
    InUse,
    /// It may be written whatever it is used for (fio's `allow_mounted_write`).
    Mounted,
}

impl Consent {
    /// Consent to overwrite these targets, with the disks that they are now.
    pub fn to_overwrite<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Consent {
        let targets = paths.into_iter().map(|path| {
            let path = path.into();
            let disk = DiskIdentity::of_path(&path);
            ConsentedTarget { path, disk }
        });
        Consent {
            targets: targets.collect(),
            ..Consent::default()
        }
    }

    /// Also consent to write these while others use them.
    pub fn and_in_use<P: Into<PathBuf>>(self, paths: impl IntoIterator<Item = P>) -> Consent {
        let in_use = paths.into_iter().map(Into::into).collect();
        Consent { in_use, ..self }
    }

    /// The names of all targets.
    pub fn paths(&self) -> Vec<PathBuf> {
        let paths = self.targets.iter().map(|target| &target.path);
        paths.cloned().collect()
    }

    /// How far consent to what a URI of Ceph names goes. Such a name is consented to as it is.
    pub fn agreement_on_uri(&self, uri: &str) -> Agreement {
        let uri = Path::new(uri);
        let is_named = self.targets.iter().any(|target| target.path == uri);
        match is_named {
            true if self.in_use.iter().any(|path| path == uri) => Agreement::InUse,
            true => Agreement::Overwrite,
            false => Agreement::None,
        }
    }

    /// How far consent to a target goes.
    ///
    /// # Errors
    /// Why consent that was given for its name was given for another disk.
    pub fn agreement(&self, facts: &PathFacts) -> Result<Agreement, IdentityChange> {
        let mut named = self
            .targets
            .iter()
            .filter(|target| is_same_target(facts, &target.path))
            .peekable();
        if named.peek().is_none() {
            return Ok(Agreement::None);
        }
        if facts.kind == TargetKind::BlockDevice
            && let Some(number) = facts.is
        {
            let now = DiskIdentity::of_number(&System::live(), number);
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

/// Whether consent to `other` is consent to the target: the same device by its number, or the same file.
pub(super) fn is_same_target(facts: &PathFacts, other: &Path) -> bool {
    PathFacts::of(other).is_ok_and(|other| match (facts.is, other.is) {
        (Some(one), Some(another)) => one == another,
        (None, None) => facts.path == other.path,
        _ => false,
    })
}
