//! Targets in a Ceph cluster, for the commands that take any target.

use crate::failure::Failure;
use crate::store::{ID_DIGITS, random_id};
use iosonde_engine::ceph::{Found, look};
use iosonde_engine::placed::file_in;
use iosonde_job::Target;
use iosonde_job::plan::CephAccess;
use iosonde_study::probe::TargetKind;
use std::path::{Path, PathBuf};

/// Room that is taken for granted in a pool whose cluster says nothing of it (without a manager there are no statistics).
const UNKNOWN_ROOM: u64 = 1 << 50;

/// How the names of all our objects begin.
pub(super) const OURS: &str = "iosonde-";

/// What a name means, if it is a target in a Ceph cluster.
pub(crate) fn target(name: &str) -> Result<Option<Target>, Failure> {
    if !name.starts_with("rados://") && !name.starts_with("rbd://") {
        return Ok(None);
    }
    let parsed = name.parse::<Target>();
    parsed.map(Some).map_err(|error| {
        Failure::usage(
            error.to_string(),
            "see docs/ceph.md for the targets in a Ceph cluster",
        )
    })
}

/// What is there, as studies see it. An image that nothing was ever written to may be written: nobody's data are on it.
pub(super) fn kind(
    target: &Target,
    access: &CephAccess,
    consent: &[PathBuf],
) -> Result<TargetKind, Failure> {
    let agreed = consent
        .iter()
        .any(|path| path == Path::new(&target.to_string()));
    Ok(match look(target, access)? {
        Found::Pool { free_bytes } => TargetKind::Pool {
            free_bytes: free_bytes.unwrap_or(UNKNOWN_ROOM),
        },
        Found::Image { bytes, is_empty } => TargetKind::Existing {
            bytes,
            device: true,
            consent: agreed || is_empty,
        },
    })
}

/// How the names of our objects begin, different in each run.
pub(super) fn prefix() -> Result<String, Failure> {
    let id = random_id().map_err(anyhow::Error::from)?;
    Ok(format!("{OURS}{id}-"))
}

/// How the names of all objects of the run begin that has made this one; `None` where it was none of ours.
pub(super) fn run_of(object: &str) -> Option<&str> {
    let length = OURS.len() + ID_DIGITS;
    let id = object.strip_prefix(OURS)?.get(..ID_DIGITS)?;
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_ours = id.bytes().all(is_digit) && object[length..].starts_with('-');
    is_ours.then(|| &object[..=length])
}

/// Where a study's working file is.
pub(super) fn path(target: &Target) -> Result<String, Failure> {
    let file = format!("{}data", prefix()?);
    Ok(file_in(target, &file).unwrap_or_else(|| target.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_objects_are_known_by_their_names() {
        let prefix = prefix().unwrap();
        let object = format!("{prefix}data.0000000000000001");
        assert_eq!(run_of(&object), Some(&prefix[..]));
        for other in [
            "iosonde-",
            "iosonde-0123456789",
            "iosonde-012345678-data",
            "iosonde-backup-of-data",
            "iosonde-012345678G-data",
            "iosonde-01234567é-x",
            "my-iosonde-0123456789-data",
        ] {
            assert_eq!(run_of(other), None, "{other}");
        }
    }

    #[test]
    fn only_targets_of_ceph_are_meant() {
        assert_eq!(target("/mnt").unwrap(), None);
        assert_eq!(target("sc://fast").unwrap(), None);
        let pool = target("rados://pool/ns").unwrap().unwrap();
        let path = path(&pool).unwrap();
        assert!(
            path.starts_with("rados://pool/ns/iosonde-") && path.ends_with("-data"),
            "{path}"
        );
        let failure = target("rbd://pool").unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(failure.text(false).contains("rbd://POOL/IMAGE"));
        let image = target("rbd://pool/image").unwrap().unwrap();
        assert_eq!(super::path(&image).unwrap(), "rbd://pool/image");
    }
}
