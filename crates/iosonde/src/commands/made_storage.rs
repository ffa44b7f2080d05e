//! Pools and images that a command makes for its targets: `--make-pool`, `rbd://POOL/?size=SIZE`.
//!
//! Both are made before the command and removed after it, also after Ctrl-C and after errors. With
//! `--map`, images are mounted in between.

use super::ceph::prefix;
use super::mapped_storage::{ImageMapping, killed_notes, map_target, undo_all};
use super::requested_image::{RequestedImage, requested_image};
use crate::args::MapFormat;
use crate::failure::CommandError;
use crate::signals::StopSignal;
use iosonde_ceph::{ImageName, MadePool, NewPool, PoolKind, make_image, remove_image};
use iosonde_job::TargetUri;
use iosonde_job::plan::CephAccess;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of an image that is made, after the prefix of its run.
pub(in crate::commands) const MADE_IMAGE: &str = "image";

/// Application of a pool that holds no images.
const APPLICATION: &str = "iosonde";

/// Storage that was made for one command. Removed at the latest when it is dropped.
#[derive(Debug)]
pub(in crate::commands) struct MadeStorage {
    access: CephAccess,
    pools: Vec<MadePool>,
    /// Images.
    images: Vec<ImageName>,
    /// Images that are mounted on this machine.
    mapped: Vec<ImageMapping>,
}

impl Drop for MadeStorage {
    fn drop(&mut self) {
        for failure in self.remove_all() {
            failure.warn();
        }
    }
}

impl MadeStorage {
    /// Makes the pools of the targets, if `kind` is given, and the images that targets ask for.
    /// Names these images in `targets`, and in `consent` as overwritable: they hold no other data.
    pub(in crate::commands) fn make(
        targets: &mut [String],
        consent: &mut Vec<PathBuf>,
        access: CephAccess,
        kind: Option<&PoolKind>,
    ) -> Result<MadeStorage, CommandError> {
        let requests = targets.iter().map(|target| requested_image(target));
        let requests: Vec<Option<RequestedImage>> = requests.collect::<Result<_, _>>()?;
        let pools = match kind {
            Some(kind) => new_pools(targets, kind)?,
            None => BTreeMap::new(),
        };
        let mut made = MadeStorage {
            access,
            pools: Vec::new(),
            images: Vec::new(),
            mapped: Vec::new(),
        };
        if pools.is_empty() && requests.iter().all(Option::is_none) {
            return Ok(made);
        }
        // Ctrl-C must not end the process while it holds what it must remove.
        let stop = StopSignal::listen()?;
        for (pool, application) in &pools {
            let Some(kind) = kind else { continue };
            let run = prefix()?;
            let new = NewPool {
                pool,
                kind,
                application,
                run: &run,
            };
            let pool = MadePool::make(&new, &made.access, &stop.interrupt)?;
            eprintln!("made the {pool}");
            made.pools.push(pool);
            stop.check()?;
        }
        for (target, request) in targets.iter_mut().zip(requests) {
            let Some(request) = request else {
                continue;
            };
            let name = ImageName {
                pool: request.pool,
                namespace: request.namespace,
                image: format!("{}{MADE_IMAGE}", prefix()?),
            };
            make_image(&name, request.bytes, &made.access)?;
            *target = name.uri();
            eprintln!("made the image {name}, {} bytes", request.bytes);
            consent.push(PathBuf::from(&*target));
            made.images.push(name);
            stop.check()?;
        }
        Ok(made)
    }

    /// Maps and mounts the images of the targets, and names a directory on each image in `targets`
    /// instead. Takes their names out of `consent`: the command does not write to the images.
    pub(in crate::commands) fn map_images(
        &mut self,
        targets: &mut [String],
        consent: &mut Vec<PathBuf>,
        format: MapFormat,
    ) -> Result<(), CommandError> {
        // Ctrl-C must not end the process while it holds what it must remove.
        let stop = StopSignal::listen()?;
        for note in killed_notes(None) {
            eprintln!("note: {note}");
        }
        for target in targets {
            let uri = Path::new(target.as_str());
            let is_named = consent.iter().any(|path| path == uri);
            let how = (format, is_named);
            let directory =
                map_target(target.as_str(), how, &self.access, &stop, &mut self.mapped)?;
            if let Some(directory) = directory {
                consent.retain(|path| path != uri);
                *target = directory.to_string_lossy().into_owned();
            }
        }
        Ok(())
    }

    /// Removes everything after the command has ended, and returns how the command ended.
    pub(in crate::commands) fn remove_after(
        mut self,
        ended: Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut failures = self.remove_all();
        match ended {
            Err(failure) => {
                failures.iter().for_each(CommandError::warn);
                Err(failure)
            }
            Ok(()) if failures.is_empty() => Ok(()),
            Ok(()) => {
                let first = failures.remove(0);
                failures.iter().for_each(CommandError::warn);
                Err(first)
            }
        }
    }

    /// Unmaps images, then removes images, then pools. Returns the failures. An image that stays
    /// mapped is not removed, and neither is its pool: its mount would never answer again.
    fn remove_all(&mut self) -> Vec<CommandError> {
        let (mut failures, left) = undo_all(&mut self.mapped);
        for name in std::mem::take(&mut self.images) {
            // The whole pool goes with its images.
            let is_in_made_pool = self.pools.iter().any(|made| made.pool() == name.pool);
            if is_in_made_pool || left.contains(&name) {
                continue;
            }
            let removed = remove_image(&name, &self.access);
            failures.extend(removed.err().map(CommandError::from));
        }
        for pool in std::mem::take(&mut self.pools) {
            if left.iter().any(|name| name.pool == pool.pool()) {
                continue;
            }
            failures.extend(pool.remove().err().map(CommandError::from));
        }
        failures
    }
}

/// Pools to make, each with its application.
fn new_pools(
    targets: &[String],
    kind: &PoolKind,
) -> Result<BTreeMap<String, &'static str>, CommandError> {
    let mut pools = BTreeMap::new();
    for target in targets {
        match target.parse::<TargetUri>() {
            Ok(TargetUri::Rados { pool, .. }) => {
                pools.entry(pool).or_insert(APPLICATION);
            }
            Ok(TargetUri::Rbd { .. }) if matches!(kind, PoolKind::Erasure { .. }) => {
                return Err(CommandError::usage(
                    format!("{target}: an image needs a replicated pool for its metadata"),
                    "use --make-pool=replicated, or measure the pool itself: rados://POOL",
                ));
            }
            Ok(TargetUri::Rbd {
                pool,
                namespace: Some(_),
                image,
            }) if image.starts_with('?') => {
                return Err(CommandError::usage(
                    format!("{target}: a new pool has no namespace"),
                    format!("leave out the namespace: rbd://{pool}/{image}"),
                ));
            }
            Ok(TargetUri::Rbd { pool, image, .. }) if image.starts_with('?') => {
                pools.insert(pool, "rbd");
            }
            Ok(TargetUri::Rbd { pool, .. }) => {
                return Err(CommandError::usage(
                    format!("{target}: a new pool has no image"),
                    format!("have an image made there too: rbd://{pool}/?size=10g"),
                ));
            }
            _ => {}
        }
    }
    if pools.is_empty() {
        return Err(CommandError::usage(
            "--make-pool needs a target in a Ceph cluster",
            "name the pool to make: rados://POOL, or rbd://POOL/?size=10g",
        ));
    }
    Ok(pools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_pools_follow_targets() {
        let replicated = |targets: &[&str]| {
            let targets: Vec<String> = targets.iter().map(|&target| target.to_owned()).collect();
            new_pools(&targets, &PoolKind::Replicated).map_err(|error| error.text(false))
        };
        let pools = replicated(&["rados://a", "rados://a/ns", "rbd://b/?size=1g", "/mnt"]).unwrap();
        let expected = [("a".to_owned(), APPLICATION), ("b".to_owned(), "rbd")];
        assert_eq!(pools, BTreeMap::from(expected));
        for (target, words) in [
            ("rbd://b/i", "a new pool has no image"),
            ("rbd://b/ns/?size=1g", "a new pool has no namespace"),
            ("/mnt", "rados://POOL"),
        ] {
            let text = replicated(&[target]).unwrap_err();
            assert!(text.contains(words), "{text}");
        }
        let erasure = PoolKind::Erasure { profile: None };
        let image = ["rbd://b/?size=1g".to_owned()];
        assert!(new_pools(&image, &erasure).is_err());
        assert!(new_pools(&["rados://b".to_owned()], &erasure).is_ok());
    }

    #[test]
    fn targets_without_requests_make_nothing() {
        let mut targets = ["rados://p".to_owned(), "/mnt".to_owned()];
        let mut consent = Vec::new();
        let made = MadeStorage::make(&mut targets, &mut consent, CephAccess::default(), None);
        made.unwrap().remove_after(Ok(())).unwrap();
        assert_eq!((targets[0].as_str(), consent.len()), ("rados://p", 0));
    }
}
