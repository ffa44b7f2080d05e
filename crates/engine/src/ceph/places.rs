//! Finds the pools and clusters that a run uses: by library, mounted file system, or mapped image.

use iosonde_job::plan::{CephAccess, Plan};
use iosonde_machine::file_service::access;
use iosonde_machine::proc_root::System;
use iosonde_result::host::{ServiceClient, TargetInfo};
use std::path::Path;

/// Maximum number of files of mounted file systems whose pool is queried.
const MOST_FILES: usize = 64;

/// Identification of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pool {
    /// Name of the pool.
    Named(String),
    /// Data pool of the named file system, or of the only file system.
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

/// A pool that a run uses, and how its cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Access to the cluster.
    pub(super) access: CephAccess,
    /// Expected identity of the cluster, if known. Another cluster may answer.
    pub(super) fsid: Option<String>,
    /// Pool.
    pub(super) pool: Pool,
}

/// All pools of a run, without duplicates. `given` is the access to clusters that the plan does not
/// describe. Skips mounts and images without a cluster identity: another cluster may answer.
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

/// Pool that holds a file's data, as CephFS clients report it.
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
        // Modelled on captured descriptions of a CephFS mount and a mapped image.
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
