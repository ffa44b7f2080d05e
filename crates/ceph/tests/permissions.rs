//! Jobs that name objects, images or clusters outside of their target are refused.

use iosonde_ceph::CephStorage;
use iosonde_engine::remote_storage::RemoteStorage;
use iosonde_engine::runner::Permissions;
use iosonde_job::plan::{Ceph, CephAccess, Job, Plan};
use iosonde_result::run_error::{RunError, TargetProblem, UnsupportedFeature};

fn refused(targets: &[&str], names: &[&str], ceph: Option<Ceph>) -> Option<RunError> {
    let mut job = Job::new("a");
    job.files.filenames = names.iter().map(|&name| name.to_owned()).collect();
    job.io.ceph = ceph.map(Box::new);
    let plan = Plan {
        jobs: vec![job],
        ..Plan::default()
    };
    let storage = CephStorage::default();
    let plan = storage.resolve_uris(&plan).unwrap();
    let permissions = Permissions {
        targets: Some(targets.iter().map(|&target| target.to_owned()).collect()),
        ..Permissions::default()
    };
    permissions.check_plan(&plan, Some(&storage)).err()
}

#[test]
fn ceph_target_permits_only_its_own_objects() {
    for (target, name, is_permitted) in [
        ("rbd://p/i", "rbd://p/i", true),
        ("rbd://p/i", "rbd://p/i2", false),
        ("rbd://p/i", "rbd://q/i", false),
        ("rbd://p/i", "rados://p/i", false),
        ("/mnt/file", "rbd://p/i", false),
        ("rados://p/iosonde-1-data", "rados://p/iosonde-1-data", true),
        (
            "rados://p/iosonde-1-data",
            "rados://p/iosonde-1-data2",
            false,
        ),
        ("rados://p/iosonde-1-", "rados://p/iosonde-1-data", true),
        ("rados://p/iosonde-1-", "rados://p/iosonde-2-data", false),
        ("rados://p/iosonde-1-", "rados://p/ns/iosonde-1-data", false),
        (
            "rados://p/ns/iosonde-1-",
            "rados://p/ns/iosonde-1-data",
            true,
        ),
    ] {
        let refused = refused(&[target], &[name], None);
        assert_eq!(refused.is_none(), is_permitted, "{name}: {refused:?}");
    }
    assert!(refused(&[], &["rbd://p/i"], None).is_some());
}

#[test]
fn ceph_options_that_leave_the_target_are_refused() {
    let namespace = Ceph {
        namespace: Some("own".to_owned()),
        ..Ceph::default()
    };
    let (image, object) = ("rbd://p/i", "rados://p/iosonde-1-data");
    for (target, outside) in [
        (image, "rbd://p/own/i"),
        (object, "rados://p/own/iosonde-1-data"),
    ] {
        let error = refused(&[target], &[target], Some(namespace.clone())).unwrap();
        let cause = TargetProblem::OutsideTargets {
            job: "a".to_owned(),
            targets: vec![target.to_owned()],
        };
        assert_eq!(error, RunError::unusable_target(outside, cause));
    }
    for (option, value, access) in [
        (
            "conf",
            "/c",
            CephAccess {
                conf: Some("/c".to_owned()),
                ..CephAccess::default()
            },
        ),
        (
            "clustername",
            "other",
            CephAccess {
                cluster: Some("other".to_owned()),
                ..CephAccess::default()
            },
        ),
    ] {
        let ceph = Ceph {
            access,
            ..Ceph::default()
        };
        let other_cluster = UnsupportedFeature::OtherCephCluster {
            job: "a".to_owned(),
            option: option.to_owned(),
            value: value.to_owned(),
        };
        let error = refused(&[image], &[image], Some(ceph)).unwrap();
        assert_eq!(error, RunError::from(other_cluster));
    }
    assert_eq!(refused(&[image], &[image], Some(Ceph::default())), None);
}
