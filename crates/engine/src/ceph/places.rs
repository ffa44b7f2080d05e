//! Which pools of which cluster a run uses: through the libraries, through a mounted file system, or as a mapped image.

use iosonde_job::plan::{CephAccess, Plan};
use iosonde_machine::file_service::access;
use iosonde_machine::proc_root::System;
use iosonde_result::host::{ServiceClient, TargetInfo};
use std::path::Path;

/// So many files of a mounted file system are asked for their pool.
const MOST_FILES: usize = 64;

/// Which pool it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pool {
    /// That of this name.
    Named(String),
    /// That for data of a file system, of this name or the only one.
    OfFileSystem(Option<String>),
}

impl std::fmt::Display for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pool::Named(name) => write!(f, "the pool {name}"),
            Pool::OfFileSystem(Some(name)) => write!(f, "the file system {name}"),
            Pool::OfFileSystem(None) => f.write_str("a mounted file system"),
        }
    }
}

/// A pool that a run uses, and how its cluster is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// How the cluster is reached.
    pub(super) access: CephAccess,
    /// The cluster's identity, where it is known beforehand. What is reached may be another.
    pub(super) fsid: Option<String>,
    /// The pool.
    pub(super) pool: Pool,
}

/// All pools of a run, each once. `given` says how clusters are reached of which the plan says nothing. What is mounted or mapped from
/// a cluster without an identity is left out: it may be another than the one that is reached.
pub(super) fn places(
    plan: &Plan,
    targets: &[TargetInfo],
    system: &System,
    given: &CephAccess,
) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    let mut note = |place: Place| {
        if !found.contains(&place) {
            found.push(place);
        }
    };
    for job in plan.jobs.iter().filter(|job| job.io.engine.is_ceph()) {
        if let Some(ceph) = job.io.ceph.as_deref() {
            note(Place {
                access: ceph.access.clone(),
                fsid: None,
                pool: Pool::Named(ceph.pool.clone()),
            });
        }
    }
    let mut files = 0;
    for target in targets {
        let mount = target.mount.as_ref();
        if let Some(mount) = mount
            && let Some(service) = &mount.service
            && service.client != ServiceClient::Nfs
            && let Some(fsid) = &service.fsid
            && files < MOST_FILES
        {
            files += 1;
            let named = system.is_live().then(|| pool_of(&target.path)).flatten();
            let of_file_system = || Pool::OfFileSystem(service.file_system.clone());
            note(Place {
                access: access(system, mount, given),
                fsid: Some(fsid.clone()),
                pool: named.map_or_else(of_file_system, Pool::Named),
            });
        }
        for image in target.all_devices().iter().filter_map(|it| it.rbd.as_ref()) {
            if let Some(fsid) = &image.fsid {
                note(Place {
                    access: given.clone(),
                    fsid: Some(fsid.clone()),
                    pool: Pool::Named(image.pool.clone()),
                });
            }
        }
    }
    found
}

/// The pool that a file's data are in, as clients of CephFS tell.
fn pool_of(file: &Path) -> Option<String> {
    let mut value = [0; 256];
    let length = rustix::fs::getxattr(file, "ceph.file.layout.pool", &mut value).ok()?;
    let text = std::str::from_utf8(value.get(..length)?).ok()?;
    let text = text.trim_end_matches('\0').trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{Ceph, Engine, Job};
    use iosonde_result::host::{DeviceInfo, MappedImage, Mount, Service};

    fn named(access: &CephAccess, fsid: Option<&str>, pool: &str) -> Place {
        Place {
            access: access.clone(),
            fsid: fsid.map(str::to_owned),
            pool: Pool::Named(pool.to_owned()),
        }
    }

    #[test]
    fn pools_are_those_of_jobs_mounts_and_mapped_images() {
        let mut plan = Plan::default();
        for pool in ["a", "b", "a"] {
            let mut job = Job::new("x");
            job.io.engine = Engine::Rados;
            job.io.ceph = Some(Box::new(Ceph {
                pool: pool.to_owned(),
                ..Ceph::default()
            }));
            plan.jobs.push(job);
        }
        // As the kernel's CephFS and a mapped image are described from captured text.
        let mounted = TargetInfo {
            mount: Some(Mount {
                fs_type: "ceph".to_owned(),
                service: Some(Service {
                    client: ServiceClient::CephKernel,
                    file_system: Some("fs1".to_owned()),
                    fsid: Some("f-1".to_owned()),
                    user: Some("me".to_owned()),
                    ..Service::default()
                }),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        let mapped = TargetInfo {
            devices: vec![DeviceInfo {
                below: vec![DeviceInfo {
                    number: "251:0".parse().unwrap(),
                    rbd: Some(MappedImage {
                        pool: "images".to_owned(),
                        fsid: Some("f-2".to_owned()),
                        ..MappedImage::default()
                    }),
                    ..DeviceInfo::default()
                }],
                ..DeviceInfo::default()
            }],
            ..TargetInfo::default()
        };
        let mut unknown = mounted.clone();
        let service = unknown.mount.as_mut().and_then(|it| it.service.as_mut());
        service.unwrap().fsid = None;
        let nfs = TargetInfo {
            mount: Some(Mount {
                service: Some(Service::default()),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        let system = System::captured("/nonexistent");
        let usual = CephAccess::default();
        let found = places(&plan, &[mounted, unknown, mapped, nfs], &system, &usual);
        let of_me = CephAccess {
            client: Some("me".to_owned()),
            ..usual.clone()
        };
        assert_eq!(
            found,
            [
                named(&usual, None, "a"),
                named(&usual, None, "b"),
                Place {
                    access: of_me,
                    fsid: Some("f-1".to_owned()),
                    pool: Pool::OfFileSystem(Some("fs1".to_owned())),
                },
                named(&usual, Some("f-2"), "images"),
            ]
        );
    }
}
