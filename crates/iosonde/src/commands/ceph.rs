//! Targets in a Ceph cluster, for the commands that take any target.

use super::requested_image::requested_image;
use crate::failure::CommandError;
use iosonde_ceph::{CephStorage, CephTargetInfo, inspect_target, list_images, pool_file_uri};
use iosonde_engine::remote_storage::RemoteStorage;
use iosonde_history::{ID_DIGITS, random_id};
use iosonde_job::plan::CephAccess;
use iosonde_job::target_scheme::is_ceph_name;
use iosonde_job::{TargetScheme, TargetUri, quote_shell_word};
use iosonde_study::probe::StudyTargetKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Assumed free bytes of a pool without statistics, which a cluster without a manager lacks.
const UNKNOWN_ROOM: u64 = 1 << 50;

/// Prefix of the names of all objects that iosonde creates.
pub(super) const OURS: &str = "iosonde-";

/// Access of a session to pools and images, as the user describes the cluster.
pub(crate) fn remote_storage(access: CephAccess) -> Option<Arc<dyn RemoteStorage>> {
    Some(Arc::new(CephStorage::new(access)))
}

/// Returns the remedy for a name that is no target in a Ceph cluster: the command that lists the
/// images or pools.
pub(super) fn invalid_target_remedy(name: &str) -> String {
    let image = TargetScheme::Rbd.strip(name);
    let rest = image.or_else(|| TargetScheme::Rados.strip(name));
    let pool = rest.and_then(|rest| rest.split('/').next());
    match (pool.unwrap_or_default(), image) {
        ("", _) => "name a pool that `ceph osd pool ls` lists".to_owned(),
        (pool, Some(_)) => format!(
            "name an image that `rbd ls {}` lists",
            quote_shell_word(pool)
        ),
        (pool, None) => format!("use {}", quote_shell_word(&format!("rados://{pool}"))),
    }
}

/// Parses a URI of a Ceph target. `None` for any other name.
pub(crate) fn target(name: &str) -> Result<Option<TargetUri>, CommandError> {
    if !is_ceph_name(name) {
        return Ok(None);
    }
    let parsed = name.parse::<TargetUri>();
    parsed
        .map(Some)
        .map_err(|error| CommandError::usage(error.to_string(), invalid_target_remedy(name)))
}

/// Maximum time to list the images of a pool for an error message, in seconds.
const IMAGE_LIST_TIMEOUT_S: u32 = 5;
/// Maximum number of images that an error message names.
const NAMED_IMAGES_MAX: usize = 8;

/// Names the images of the pool in the error of a target `rbd://POOL`, if the cluster lists them.
pub(super) fn name_images(error: CommandError, target: &str, access: &CephAccess) -> CommandError {
    let pool = TargetScheme::Rbd.strip(target);
    let pool = pool.map(|pool| pool.trim_end_matches('/'));
    let Some(pool) = pool.filter(|pool| !pool.is_empty() && !pool.contains('/')) else {
        return error;
    };
    let access = CephAccess {
        timeout_s: access.timeout_s.min(IMAGE_LIST_TIMEOUT_S),
        ..access.clone()
    };
    let images = list_images((pool, None), "", &access).unwrap_or_default();
    match error {
        CommandError::Usage { problem, .. } if !images.is_empty() => {
            CommandError::usage(problem, image_help(pool, &images))
        }
        other => other,
    }
}

/// Help that names the images of a pool.
fn image_help(pool: &str, images: &[String]) -> String {
    let named = images.iter().take(NAMED_IMAGES_MAX);
    let named: Vec<String> = named.map(|image| format!("rbd://{pool}/{image}")).collect();
    let more = match images.len().saturating_sub(NAMED_IMAGES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("name an image of the pool: {}{more}", named.join(", "))
}

/// Inspects the target. An image that was never written needs no consent: it holds no data.
pub(super) fn inspect_target_kind(
    target: &TargetUri,
    access: &CephAccess,
    consent: &[PathBuf],
) -> Result<StudyTargetKind, CommandError> {
    // Without --check and --dry-run, the image has been made and has a name.
    if let Some(request) = requested_image(&target.to_string())? {
        let pool = TargetUri::Rados {
            pool: request.pool,
            namespace: request.namespace,
        };
        inspect_target(&pool, access)?;
        return Ok(StudyTargetKind::Existing {
            bytes: request.bytes,
            device: true,
            consent: true,
        });
    }
    let agreed = consent
        .iter()
        .any(|path| path == Path::new(&target.to_string()));
    Ok(match inspect_target(target, access)? {
        CephTargetInfo::Pool { free_bytes } => StudyTargetKind::Pool {
            free_bytes: free_bytes.unwrap_or(UNKNOWN_ROOM),
        },
        CephTargetInfo::Image {
            bytes,
            is_empty,
            is_snapshot,
        } => StudyTargetKind::Existing {
            bytes,
            device: true,
            // Without consent a study only reads, which is all that a snapshot permits.
            consent: (agreed || is_empty) && !is_snapshot,
        },
    })
}

/// A random prefix for the names of a run's objects.
pub(super) fn prefix() -> Result<String, CommandError> {
    let id = random_id().map_err(anyhow::Error::from)?;
    Ok(format!("{OURS}{id}-"))
}

/// The name prefix of the run that created the object. `None` if iosonde did not create it.
pub(super) fn run_of(object: &str) -> Option<&str> {
    let length = OURS.len() + ID_DIGITS;
    let id = object.strip_prefix(OURS)?.get(..ID_DIGITS)?;
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_ours = id.bytes().all(is_digit) && object[length..].starts_with('-');
    is_ours.then(|| &object[..=length])
}

/// URI of a study's working file.
pub(super) fn working_file_uri(target: &TargetUri) -> Result<String, CommandError> {
    let file = format!("{}data", prefix()?);
    Ok(pool_file_uri(target, &file).unwrap_or_else(|| target.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_of_extracts_prefix_from_object_name() {
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
    fn image_help_names_some_images() {
        let images: Vec<String> = (0..10).map(|number| format!("i{number}")).collect();
        assert_eq!(
            image_help("p", &images[..1]),
            "name an image of the pool: rbd://p/i0"
        );
        let help = image_help("p", &images);
        assert!(help.ends_with("rbd://p/i7 and 2 more"), "{help}");
    }

    #[test]
    fn invalid_target_has_a_command_or_name_as_remedy() {
        for (name, remedy) in [
            ("rbd://", "name a pool that `ceph osd pool ls` lists"),
            ("rados://", "name a pool that `ceph osd pool ls` lists"),
            ("rbd://p/a/b/c", "name an image that `rbd ls p` lists"),
            ("rados://p/ns/x", "use rados://p"),
        ] {
            let failure = target(name).unwrap_err();
            assert_eq!(failure.usage_parts().1, remedy, "{name}");
        }
    }

    #[test]
    fn target_parses_only_ceph_uris() {
        assert_eq!(target("/mnt").unwrap(), None);
        assert_eq!(target("sc://fast").unwrap(), None);
        let pool = target("rados://pool/ns").unwrap().unwrap();
        let path = working_file_uri(&pool).unwrap();
        assert!(
            path.starts_with("rados://pool/ns/iosonde-") && path.ends_with("-data"),
            "{path}"
        );
        let failure = target("rbd://pool").unwrap_err();
        assert_eq!(failure.status(), 2);
        let problem = "invalid target `rbd://pool`: use rbd://POOL/IMAGE or \
                       rbd://POOL/NAMESPACE/IMAGE";
        let help = "name an image that `rbd ls pool` lists";
        assert_eq!(failure.usage_parts(), (problem, help));
        let image = target("rbd://pool/image").unwrap().unwrap();
        assert_eq!(super::working_file_uri(&image).unwrap(), "rbd://pool/image");
        let image = target("rbd://pool/ns/image").unwrap().unwrap();
        assert_eq!(
            super::working_file_uri(&image).unwrap(),
            "rbd://pool/ns/image"
        );
    }
}
