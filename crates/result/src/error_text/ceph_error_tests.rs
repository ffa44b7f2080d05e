//! Words of the errors of Ceph.

use super::error_checks::{check_error, check_problems, text};
use crate::run_error::{CephAction, CephProblem, RunError, TargetProblem, UnsupportedFeature};
use iosonde_job::errno;

fn not_removed(namespace: Option<&str>, others: usize) -> CephProblem {
    CephProblem::ObjectsNotRemoved {
        pool: text("p"),
        namespace: namespace.map(text),
        object: text("o"),
        others,
        errno: errno::EACCES,
    }
}

#[test]
fn ceph_problems_keep_their_words() {
    let (job, consent_name) = (text("a"), text("rbd://p/i"));
    let cases = [
        (
            CephProblem::ZeroByteInName { name: text("a\0") },
            "the name \"a\\0\" is invalid: it contains a zero byte",
            "use a name without a zero byte",
        ),
        (
            CephProblem::UnwrittenImageRange {
                job: job.clone(),
                missing_bytes: 1,
                needed_bytes: 2,
                consent_name: consent_name.clone(),
            },
            "1 of the 2 bytes that job a reads were never written, or were discarded: such reads \
             do not reach the medium",
            "choose a written part (offset=, size=), or consent to writing the rest: \
             --allow-overwrite=rbd://p/i (in a job: allow_mounted_write=1)",
        ),
        (
            CephProblem::NoOverwrites { pool: text("ec") },
            "the pool is erasure-coded and does not allow overwrites, which a study needs",
            "allow them (ceph osd pool set ec allow_ec_overwrites true), or measure whole \
             objects: iosonde rados bench -p ec 30 write",
        ),
        (
            CephProblem::ImagesNotClosed { image: text("p/i") },
            "the cluster does not answer, so the image could not be closed; I/Os in flight may or \
             may not be written",
            "no action is needed: the cluster drops this client within 30 s after it answers \
             again; until then `rbd status p/i` lists it as a watcher",
        ),
        (
            CephProblem::ObjectTooSmall {
                object_bytes: 1,
                job: job.clone(),
                needed_bytes: 2,
            },
            "the existing object has 1 bytes, but job a needs 2",
            "use a smaller size=, or another name",
        ),
        (
            CephProblem::DiscardedObjectRange {
                missing_bytes: 1,
                needed_bytes: 2,
                job,
                consent_name,
            },
            "an earlier job discarded 1 of the 2 bytes that job a needs: such reads do not reach \
             the medium",
            "consent to writing these bytes: --allow-overwrite=rbd://p/i (in a job: \
             allow_mounted_write=1)",
        ),
        (
            CephProblem::FillForbidden { needed_bytes: 2 },
            "2 bytes must be written before they are read, which --readonly forbids",
            "omit --readonly, or use an object that is large enough",
        ),
    ];
    check_problems("rbd://p/i", cases);
}

#[test]
fn problems_of_snapshots_keep_their_words() {
    let cases = [
        (
            CephProblem::ReadOnlySnapshot { missing_bytes: 0 },
            "a snapshot is read-only",
            "read the snapshot only, or write its image: rbd://POOL/IMAGE",
        ),
        (
            CephProblem::ReadOnlySnapshot { missing_bytes: 3 },
            "3 bytes of the snapshot that a job reads were never written, and a snapshot is \
             read-only: such reads do not reach the medium",
            "choose a written part (offset=, size=), or another snapshot",
        ),
    ];
    check_problems("rbd://p/i", cases);
}

#[test]
fn problems_of_made_pools_and_images_keep_their_words() {
    let exists = |is_made| CephProblem::PoolExists {
        pool: text("p"),
        is_made,
    };
    let cases = [
        (
            exists(false),
            "--make-pool would make this pool, but it exists",
            "name a new pool, or leave out --make-pool to measure this one",
        ),
        (
            exists(true),
            "--make-pool would make this pool, but a run of iosonde made it and has not removed it",
            "if that run has ended, remove the pool: iosonde rados -p p cleanup --made-pool",
        ),
        (
            CephProblem::PoolNotActive {
                wait_s: 60,
                size: 4,
            },
            "the new pool did not accept I/O within 60 s, so it was removed",
            "an object has 4 copies or chunks: check that the cluster has as many OSDs or hosts \
             (`ceph osd tree`), or choose another profile",
        ),
        (
            CephProblem::PoolRemovalForbidden,
            "the cluster forbids the removal of pools (mon_allow_pool_delete is false), so a pool \
             that is made now could not be removed",
            "permit it first: ceph config set mon mon_allow_pool_delete true",
        ),
        (
            CephProblem::ClusterInError {
                checks: vec![text("1 full osd(s)"), text("2 pool(s) full")],
            },
            "the cluster is in HEALTH_ERR: 1 full osd(s); 2 pool(s) full",
            "see `ceph health detail`, and try again when the cluster has recovered",
        ),
        (
            CephProblem::PoolNotMade,
            "--make-pool did not make this pool, so it is not removed",
            "to remove a pool of your own: ceph osd pool delete POOL POOL \
             --yes-i-really-really-mean-it",
        ),
        (
            CephProblem::PoolNotRemoved {
                pool: text("p"),
                errno: errno::EPERM,
                said: text("pool deletion is disabled"),
            },
            "cannot remove the pool: Operation not permitted (EPERM); the cluster reported: pool \
             deletion is disabled",
            "remove it later: ceph config set mon mon_allow_pool_delete true && ceph osd pool \
             delete p p --yes-i-really-really-mean-it",
        ),
        (
            CephProblem::ImageNotRemoved {
                image: text("p/i"),
                errno: errno::EBUSY,
            },
            "cannot remove the image: Device or resource busy (EBUSY)",
            "remove it when no client has it open (`rbd status p/i`): rbd rm p/i",
        ),
    ];
    check_problems("rbd://p/i", cases);
}

#[test]
fn cache_tier_problems_name_the_pool_and_the_command() {
    let cases = [
        (
            CephProblem::NoCacheTier { pool: text("p") },
            "--cache-compare needs a cache tier, and the pool has none",
            "name the base pool of a tier (`ceph osd pool ls detail` shows its read_tier), or \
             leave out --cache-compare to measure p",
        ),
        (
            CephProblem::CacheModeNotRestored {
                tier: text("hot"),
                mode: text("writeback"),
                errno: errno::ETIMEDOUT,
            },
            "cannot set the cache tier hot back to writeback: Connection timed out (ETIMEDOUT)",
            "set it once the cluster answers: ceph osd tier cache-mode hot writeback",
        ),
    ];
    check_problems("rbd://p/i", cases);
}

#[test]
fn remaining_objects_are_named_with_their_removal() {
    let cases = [
        (
            not_removed(None, 0),
            "cannot remove it: Permission denied (EACCES)",
            "remove it once the cluster answers: rados -p p rm o",
        ),
        (
            not_removed(Some("n"), 3),
            "cannot remove it and 3 more objects of this run: Permission denied (EACCES)",
            "remove it once the cluster answers: rados -p p -N n rm o; also remove the other \
             objects with this prefix",
        ),
    ];
    check_problems("rbd://p/i", cases);
    let error = RunError::unusable_target("rbd://p/i", not_removed(None, 0).into());
    assert_eq!(error.errno(), Some(errno::EACCES));
}

#[test]
fn remedies_quote_names_of_pools_and_images() {
    let (pool, image) = (text("my pool"), text("p/my i"));
    let removed = CephProblem::ObjectsNotRemoved {
        pool: pool.clone(),
        namespace: Some(text("a b")),
        object: text("o;"),
        others: 0,
        errno: errno::EACCES,
    };
    let not_removed = CephProblem::ImageNotRemoved {
        image: image.clone(),
        errno: errno::EBUSY,
    };
    let pool_not_removed = CephProblem::PoolNotRemoved {
        pool: pool.clone(),
        errno: errno::EBUSY,
        said: String::new(),
    };
    let exists = CephProblem::PoolExists {
        pool: pool.clone(),
        is_made: true,
    };
    let tier = CephProblem::CacheModeNotRestored {
        tier: pool.clone(),
        mode: text("writeback"),
        errno: errno::ETIMEDOUT,
    };
    for (problem, command) in [
        (removed, "rados -p 'my pool' -N 'a b' rm 'o;'"),
        (not_removed, "(`rbd status 'p/my i'`): rbd rm 'p/my i'"),
        (
            pool_not_removed,
            "ceph osd pool delete 'my pool' 'my pool' --yes",
        ),
        (exists, "iosonde rados -p 'my pool' cleanup"),
        (tier, "cache-mode 'my pool' writeback"),
        (
            CephProblem::ImagesNotClosed { image },
            "`rbd status 'p/my i'`",
        ),
        (
            CephProblem::NoOverwrites { pool },
            "pool set 'my pool' allow_ec_overwrites true",
        ),
    ] {
        let remedy = problem.remedy();
        assert!(remedy.contains(command), "{remedy}");
    }
}

/// Checks the words and the remedy of a failed call of a Ceph library.
fn check_call(action: CephAction, errno: i32, remedy: &str) {
    let words = format!("cannot {action}: {}", errno::describe_errno(errno));
    let cause = TargetProblem::CephCall {
        action,
        errno,
        said: String::new(),
    };
    check_problems("rbd://p/i", [(cause, words.as_str(), remedy)]);
}

#[test]
fn image_creation_without_namespace_or_data_pool_names_both() {
    let cases = [
        (
            Some("p/ns"),
            "if the namespace does not exist, make it: rbd namespace create p/ns; if the data \
             pool (rbd_default_data_pool) does not exist, store the data in p: rbd config pool \
             set p rbd_default_data_pool p",
        ),
        (
            Some("my pool/ns"),
            "if the namespace does not exist, make it: rbd namespace create 'my pool/ns'; if the \
             data pool (rbd_default_data_pool) does not exist, store the data in 'my pool': rbd \
             config pool set 'my pool' rbd_default_data_pool 'my pool'",
        ),
        (
            None,
            "check the data pool of the configuration (rbd_default_data_pool), or store the data \
             in the pool of the image: rbd config pool set POOL rbd_default_data_pool POOL",
        ),
    ];
    for (namespace, remedy) in cases {
        let action = CephAction::CreateImage {
            image: text("i"),
            namespace: namespace.map(text),
        };
        check_call(action, errno::ENOENT, remedy);
    }
}

#[test]
fn remedy_of_a_ceph_call_depends_on_action_and_errno() {
    let cases = [
        (
            CephAction::Connect,
            errno::ETIMEDOUT,
            "no monitor answered: check `mon host` in the configuration (conf=, --ceph-conf, \
             CEPH_CONF) and the network",
        ),
        (
            CephAction::ReadImage,
            errno::ETIMEDOUT,
            "the cluster did not answer in time: see `ceph -s`, or raise ceph_timeout= \
             (--ceph-timeout)",
        ),
        (
            CephAction::ListObjects,
            errno::ENOENT,
            "use an existing pool: `ceph osd pool ls` lists them",
        ),
        (
            CephAction::OpenImage(text("i")),
            errno::ENOENT,
            "use an existing image: `rbd ls` lists them",
        ),
        (
            CephAction::WriteObject(text("o")),
            errno::EDQUOT,
            "the pool is full: see `ceph df`; free some space or use a smaller size=",
        ),
        (
            CephAction::CreateClient,
            errno::EBUSY,
            "see `ceph -s` and the cluster's log",
        ),
        (
            CephAction::ReadConfiguration(None),
            errno::ENOENT,
            "check the configuration file (conf=, --ceph-conf, CEPH_CONF), and that the client's \
             key is in a keyring that it names (ceph_keyring=, --ceph-keyring)",
        ),
    ];
    for (action, errno, remedy) in cases {
        check_call(action, errno, remedy);
    }
}

#[test]
fn unnamed_configuration_is_described_by_its_usual_places() {
    assert_eq!(
        CephAction::ReadConfiguration(None).to_string(),
        "read Ceph's configuration (CEPH_CONF, else ceph.conf in /etc/ceph, ~/.ceph or this \
         directory)"
    );
}

#[test]
fn build_without_ceph_names_the_build_with_it() {
    let error = RunError::from(UnsupportedFeature::BuiltWithoutCeph);
    assert_eq!(error.to_string(), "this iosonde was built without Ceph");
    assert_eq!(
        error.remedy(),
        "install the archive or package for glibc (linux-gnu instead of linux-static), or build \
         with `cargo build --release`"
    );
}

#[test]
fn build_for_clusters_names_a_target() {
    let error = RunError::from(UnsupportedFeature::BuiltForClusters);
    assert_eq!(error.to_string(), "this build measures only on clusters");
    assert_eq!(
        error.remedy(),
        "run iosonde on a Linux machine, or name a target in a cluster, such as sc://CLASS"
    );
}

#[test]
fn missing_ceph_library_names_its_package() {
    let error = RunError::from(UnsupportedFeature::CephLibrary {
        library: text("librbd.so.1"),
        package: text("librbd1"),
        reason: text("no such file"),
    });
    assert_eq!(
        error.to_string(),
        "librbd.so.1 cannot be loaded: no such file"
    );
    assert_eq!(
        error.remedy(),
        "install the package with the library (Debian, Ubuntu: apt-get install librbd1)"
    );
}

#[test]
fn ceph_call_of_an_earlier_version_is_read_as_text() {
    let row = r#"{"target":{"path":"rbd://p/i","problem":"cannot open it: no","remedy":"r","cause":{
        "problem":{"ceph_call":{"doing":"open it","errno":2,"said":"","remedy":"r"}}}}}"#;
    let error: RunError = serde_json::from_str(row).unwrap();
    check_error(&error, "rbd://p/i: cannot open it: no", "r");
}
