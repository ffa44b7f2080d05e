//! Words of a [`CephProblem`] and of a [`CephAction`].

use super::write_refusal_text::consent_option;
use crate::run_error::{CephAction, CephProblem};
use iosonde_job::errno::{self, describe_errno};
use iosonde_job::quote_shell_word;
use std::fmt;

const IMAGES_NOT_CLOSED: &str = "the cluster does not answer, so the image could not be closed; \
                                 I/Os in flight may or may not be written";
const POOL_REMOVAL_FORBIDDEN: &str = "the cluster forbids the removal of pools \
                                      (mon_allow_pool_delete is false), so a pool that is made \
                                      now could not be removed";

impl fmt::Display for CephProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CephProblem::ZeroByteInName { name } => write!(
                formatter,
                "the name {name:?} is invalid: it contains a zero byte"
            ),
            CephProblem::UnwrittenImageRange {
                job,
                missing_bytes,
                needed_bytes,
                ..
            } => write_unwritten_range(formatter, job, (*missing_bytes, *needed_bytes)),
            CephProblem::ReadOnlySnapshot { missing_bytes } => {
                write_read_only_snapshot(formatter, *missing_bytes)
            }
            CephProblem::ImagesNotClosed { .. } => formatter.write_str(IMAGES_NOT_CLOSED),
            CephProblem::ObjectTooSmall {
                object_bytes,
                job,
                needed_bytes,
            } => write!(
                formatter,
                "the existing object has {object_bytes} bytes, but job {job} needs {needed_bytes}"
            ),
            CephProblem::DiscardedObjectRange {
                missing_bytes,
                needed_bytes,
                job,
                ..
            } => write_discarded_range(formatter, job, (*missing_bytes, *needed_bytes)),
            CephProblem::NoOverwrites { .. } => formatter.write_str(
                "the pool is erasure-coded and does not allow overwrites, which a study needs",
            ),
            CephProblem::FillForbidden { needed_bytes } => write!(
                formatter,
                "{needed_bytes} bytes must be written before they are read, which --readonly \
                 forbids"
            ),
            CephProblem::ObjectsNotRemoved { others, errno, .. } => {
                write_objects_not_removed(formatter, *others, *errno)
            }
            CephProblem::PoolExists { is_made, .. } => {
                formatter.write_str(pool_exists_text(*is_made))
            }
            CephProblem::PoolNotActive { wait_s, .. } => write!(
                formatter,
                "the new pool did not accept I/O within {wait_s} s, so it was removed"
            ),
            CephProblem::PoolRemovalForbidden => formatter.write_str(POOL_REMOVAL_FORBIDDEN),
            CephProblem::ClusterInError { checks } => write_cluster_in_error(formatter, checks),
            CephProblem::PoolNotMade => {
                formatter.write_str("--make-pool did not make this pool, so it is not removed")
            }
            CephProblem::PoolNotRemoved { errno, said, .. } => {
                write_pool_not_removed(formatter, *errno, said)
            }
            CephProblem::ImageNotRemoved { errno, .. } => {
                let cause = describe_errno(*errno);
                write!(formatter, "cannot remove the image: {cause}")
            }
            CephProblem::NoCacheTier { .. } => {
                formatter.write_str("--cache-compare needs a cache tier, and the pool has none")
            }
            CephProblem::CacheModeNotRestored { tier, mode, errno } => write!(
                formatter,
                "cannot set the cache tier {tier} back to {mode}: {}",
                describe_errno(*errno)
            ),
        }
    }
}

fn write_unwritten_range(
    formatter: &mut fmt::Formatter<'_>,
    job: &str,
    (missing_bytes, needed_bytes): (u64, u64),
) -> fmt::Result {
    write!(
        formatter,
        "{missing_bytes} of the {needed_bytes} bytes that job {job} reads were never written, or \
         were discarded: such reads do not reach the medium"
    )
}

fn write_discarded_range(
    formatter: &mut fmt::Formatter<'_>,
    job: &str,
    (missing_bytes, needed_bytes): (u64, u64),
) -> fmt::Result {
    write!(
        formatter,
        "an earlier job discarded {missing_bytes} of the {needed_bytes} bytes that job {job} \
         needs: such reads do not reach the medium"
    )
}

fn write_read_only_snapshot(formatter: &mut fmt::Formatter<'_>, missing_bytes: u64) -> fmt::Result {
    match missing_bytes {
        0 => formatter.write_str("a snapshot is read-only"),
        _ => write!(
            formatter,
            "{missing_bytes} bytes of the snapshot that a job reads were never written, and a \
             snapshot is read-only: such reads do not reach the medium"
        ),
    }
}

fn write_objects_not_removed(
    formatter: &mut fmt::Formatter<'_>,
    others: usize,
    errno: i32,
) -> fmt::Result {
    formatter.write_str("cannot remove it")?;
    if others > 0 {
        write!(formatter, " and {others} more objects of this run")?;
    }
    write!(formatter, ": {}", describe_errno(errno))
}

fn pool_exists_text(is_made: bool) -> &'static str {
    match is_made {
        false => "--make-pool would make this pool, but it exists",
        true => {
            "--make-pool would make this pool, but a run of iosonde made it and has not removed it"
        }
    }
}

fn write_cluster_in_error(formatter: &mut fmt::Formatter<'_>, checks: &[String]) -> fmt::Result {
    formatter.write_str("the cluster is in HEALTH_ERR")?;
    match checks {
        [] => Ok(()),
        checks => write!(formatter, ": {}", checks.join("; ")),
    }
}

fn write_pool_not_removed(
    formatter: &mut fmt::Formatter<'_>,
    errno: i32,
    said: &str,
) -> fmt::Result {
    let cause = describe_errno(errno);
    write!(formatter, "cannot remove the pool: {cause}")?;
    match said.trim() {
        "" => Ok(()),
        said => write!(formatter, "; the cluster reported: {said}"),
    }
}

impl CephProblem {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        match self {
            CephProblem::ZeroByteInName { .. } => "use a name without a zero byte".to_owned(),
            CephProblem::UnwrittenImageRange { consent_name, .. } => format!(
                "choose a written part (offset=, size=), or consent to writing the rest: {} (in a \
                 job: allow_mounted_write=1)",
                consent_option(consent_name)
            ),
            CephProblem::ReadOnlySnapshot { missing_bytes: 0 } => {
                "read the snapshot only, or write its image: rbd://POOL/IMAGE".to_owned()
            }
            CephProblem::ReadOnlySnapshot { .. } => {
                "choose a written part (offset=, size=), or another snapshot".to_owned()
            }
            CephProblem::ImagesNotClosed { image } => format!(
                "no action is needed: the cluster drops this client within 30 s after it answers \
                 again; until then `rbd status {}` lists it as a watcher",
                quote_shell_word(image)
            ),
            CephProblem::ObjectTooSmall { .. } => "use a smaller size=, or another name".to_owned(),
            CephProblem::DiscardedObjectRange { consent_name, .. } => format!(
                "consent to writing these bytes: {} (in a job: allow_mounted_write=1)",
                consent_option(consent_name)
            ),
            CephProblem::NoOverwrites { pool } => allow_overwrites(&quote_shell_word(pool)),
            CephProblem::FillForbidden { .. } => {
                "omit --readonly, or use an object that is large enough".to_owned()
            }
            CephProblem::ObjectsNotRemoved {
                pool,
                namespace,
                object,
                others,
                ..
            } => remove_objects_later(pool, namespace.as_deref(), object, *others),
            CephProblem::PoolExists { pool, is_made } => use_other_pool(pool, *is_made),
            CephProblem::PoolNotActive { size, .. } => format!(
                "an object has {size} copies or chunks: check that the cluster has as many OSDs or \
                 hosts (`ceph osd tree`), or choose another profile"
            ),
            CephProblem::PoolRemovalForbidden => {
                "permit it first: ceph config set mon mon_allow_pool_delete true".to_owned()
            }
            CephProblem::ClusterInError { .. } => {
                "see `ceph health detail`, and try again when the cluster has recovered".to_owned()
            }
            CephProblem::PoolNotMade => "to remove a pool of your own: ceph osd pool delete POOL \
                                         POOL --yes-i-really-really-mean-it"
                .to_owned(),
            CephProblem::PoolNotRemoved { pool, errno, .. } => remove_pool_later(pool, *errno),
            CephProblem::ImageNotRemoved { image, .. } => {
                let image = quote_shell_word(image);
                format!(
                    "remove it when no client has it open (`rbd status {image}`): rbd rm {image}"
                )
            }
            CephProblem::NoCacheTier { pool } => format!(
                "name the base pool of a tier (`ceph osd pool ls detail` shows its read_tier), or \
                 leave out --cache-compare to measure {pool}"
            ),
            CephProblem::CacheModeNotRestored { tier, mode, .. } => format!(
                "set it once the cluster answers: ceph osd tier cache-mode {} {mode}",
                quote_shell_word(tier)
            ),
        }
    }
}

/// `pool` is quoted.
fn allow_overwrites(pool: &str) -> String {
    format!(
        "allow them (ceph osd pool set {pool} allow_ec_overwrites true), or measure whole objects: \
         iosonde rados bench -p {pool} 30 write"
    )
}

fn use_other_pool(pool: &str, is_made: bool) -> String {
    match is_made {
        false => "name a new pool, or leave out --make-pool to measure this one".to_owned(),
        true => format!(
            "if that run has ended, remove the pool: iosonde rados -p {} cleanup --made-pool",
            quote_shell_word(pool)
        ),
    }
}

fn remove_objects_later(
    pool: &str,
    namespace: Option<&str>,
    object: &str,
    others: usize,
) -> String {
    let namespace = namespace.map(|name| format!(" -N {}", quote_shell_word(name)));
    let rest = match others {
        0 => "",
        _ => "; also remove the other objects with this prefix",
    };
    format!(
        "remove it once the cluster answers: rados -p {}{} rm {}{rest}",
        quote_shell_word(pool),
        namespace.unwrap_or_default(),
        quote_shell_word(object)
    )
}

fn remove_pool_later(pool: &str, errno: i32) -> String {
    let pool = quote_shell_word(pool);
    let permit = match errno {
        errno::EPERM => "ceph config set mon mon_allow_pool_delete true && ",
        _ => "",
    };
    format!(
        "remove it later: {permit}ceph osd pool delete {pool} {pool} --yes-i-really-really-mean-it"
    )
}

/// Returns the action if a new image lacks its namespace or its data pool. librbd reports both with
/// ENOENT.
fn make_image_remedy(namespace: Option<&str>) -> String {
    let Some(namespace) = namespace else {
        return "check the data pool of the configuration (rbd_default_data_pool), or store the \
                data in the pool of the image: rbd config pool set POOL rbd_default_data_pool POOL"
            .to_owned();
    };
    let pool = quote_shell_word(namespace.split('/').next().unwrap_or(namespace));
    format!(
        "if the namespace does not exist, make it: rbd namespace create {}; if the data pool \
         (rbd_default_data_pool) does not exist, store the data in {pool}: rbd config pool set \
         {pool} rbd_default_data_pool {pool}",
        quote_shell_word(namespace)
    )
}

/// Phrased to follow "cannot".
impl fmt::Display for CephAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CephAction::CreateClient => formatter.write_str("make a client"),
            CephAction::ReadConfiguration(path) => {
                let usual = "Ceph's configuration (CEPH_CONF, else ceph.conf in /etc/ceph, \
                             ~/.ceph or this directory)";
                write!(formatter, "read {}", path.as_deref().unwrap_or(usual))
            }
            CephAction::ReadArguments => formatter.write_str("read CEPH_ARGS"),
            CephAction::Set { name, value } => write!(formatter, "set {name} to `{value}`"),
            CephAction::Connect => formatter.write_str("connect to the Ceph cluster"),
            CephAction::ReadIdentity => formatter.write_str("query the cluster's identity"),
            CephAction::Query(daemon) => write!(formatter, "query {daemon}"),
            CephAction::OpenPool(pool) => write!(formatter, "open the pool {pool}"),
            CephAction::ListObjects => formatter.write_str("list the objects of the pool"),
            CephAction::WriteObject(object) => write!(formatter, "write the object {object}"),
            CephAction::CreateObject(object) => write!(formatter, "create the object {object}"),
            CephAction::ReadObject(object) => write!(formatter, "read the object {object}"),
            CephAction::InspectObject(object) => write!(formatter, "stat the object {object}"),
            CephAction::RemoveObject(object) => write!(formatter, "remove the object {object}"),
            CephAction::LayOut(offset) => {
                write!(
                    formatter,
                    "write the data that a job reads, at offset {offset}"
                )
            }
            CephAction::OpenImage(image) => write!(formatter, "open the image {image}"),
            CephAction::MeasureImage => formatter.write_str("measure the image"),
            CephAction::ReadImage => formatter.write_str("read the image"),
            CephAction::FlushImage => formatter.write_str("flush the image"),
            CephAction::ListImageClients => {
                formatter.write_str("list the clients that have the image open")
            }
            CephAction::ListImageLocks => formatter.write_str("list the locks on the image"),
            CephAction::ListImageRanges => {
                formatter.write_str("list the written ranges of the image")
            }
            CephAction::CreateImage { image, .. } => write!(formatter, "create the image {image}"),
            CephAction::RemoveImage(image) => write!(formatter, "remove the image {image}"),
            CephAction::ListImages => formatter.write_str("list the images of the pool"),
            CephAction::CreatePool(pool) => write!(formatter, "create the pool {pool}"),
            CephAction::RemovePool(pool) => write!(formatter, "remove the pool {pool}"),
        }
    }
}

impl CephAction {
    fn is_of_pool(&self) -> bool {
        matches!(self, CephAction::OpenPool(_) | CephAction::ListObjects)
    }

    fn is_of_image(&self) -> bool {
        matches!(
            self,
            CephAction::OpenImage(_)
                | CephAction::MeasureImage
                | CephAction::ReadImage
                | CephAction::FlushImage
                | CephAction::ListImageClients
                | CephAction::ListImageLocks
                | CephAction::ListImageRanges
                | CephAction::RemoveImage(_)
        )
    }

    fn is_of_configuration(&self) -> bool {
        matches!(
            self,
            CephAction::Connect | CephAction::ReadConfiguration(_) | CephAction::ReadArguments
        )
    }

    /// Returns the action to take after an operation failed with an errno.
    pub(super) fn remedy(&self, errno: i32) -> String {
        match self {
            CephAction::CreateImage { namespace, .. } if errno == errno::ENOENT => {
                make_image_remedy(namespace.as_deref())
            }
            _ => self.fixed_remedy(errno).to_owned(),
        }
    }

    /// Returns the action to take if it names no object.
    fn fixed_remedy(&self, errno: i32) -> &'static str {
        match errno {
            errno::ETIMEDOUT if *self == CephAction::Connect => {
                "no monitor answered: check `mon host` in the configuration (conf=, --ceph-conf, \
                 CEPH_CONF) and the network"
            }
            errno::ETIMEDOUT => {
                "the cluster did not answer in time: see `ceph -s`, or raise ceph_timeout= \
                 (--ceph-timeout)"
            }
            errno::EACCES | errno::EPERM => {
                "the cluster refuses this client: check its name (clientname=, --ceph-client), its \
                 key (ceph_keyring=, --ceph-keyring) and its capabilities (ceph auth get)"
            }
            errno::ENOENT if self.is_of_pool() => {
                "use an existing pool: `ceph osd pool ls` lists them"
            }
            errno::ENOENT if self.is_of_image() => "use an existing image: `rbd ls` lists them",
            errno::ENOENT | errno::EINVAL if self.is_of_configuration() => {
                "check the configuration file (conf=, --ceph-conf, CEPH_CONF), and that the \
                 client's key is in a keyring that it names (ceph_keyring=, --ceph-keyring)"
            }
            errno::EBUSY if self.is_of_image() => {
                "another client has the image open: see `rbd status`"
            }
            errno::EROFS => {
                "another client holds the image exclusively: see `rbd status` and `rbd lock ls`"
            }
            errno::ENOSPC | errno::EDQUOT => {
                "the pool is full: see `ceph df`; free some space or use a smaller size="
            }
            _ => "see `ceph -s` and the cluster's log",
        }
    }
}
