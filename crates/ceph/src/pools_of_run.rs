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
pub(crate) enum PoolName {
    /// Name of the pool.
    Named(String),
    /// Data pool of the named file system, or of the only file system.
    OfFileSystem(Option<String>),
    /// Data pool of the only file system, which NFS servers with these names and addresses export.
    BehindNfs(Vec<String>),
}

impl std::fmt::Display for PoolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PoolName::Named(name) => write!(f, "the pool {name}"),
            PoolName::OfFileSystem(Some(name)) => write!(f, "the file system {name}"),
            PoolName::OfFileSystem(None) => f.write_str("a mounted file system"),
            PoolName::BehindNfs(servers) => write!(f, "the NFS server {}", servers.join(", ")),
        }
    }
}

/// A pool that a run uses, and how its cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolAccess {
    /// Access to the cluster.
    pub(crate) access: CephAccess,
    /// Expected identity of the cluster, if known. Another cluster may answer.
    pub(crate) fsid: Option<String>,
    /// The pool.
    pub(crate) pool: PoolName,
    /// Whether the pool is reached through metadata servers.
    pub(crate) is_mounted: bool,
}

/// All pools of a run, without duplicates. `given` is the access to clusters that the plan does not
/// describe. Skips mounts and images without a cluster identity: another cluster may answer.
pub(crate) fn pools_of_run(
    plan: &Plan,
    targets: &[TargetInfo],
    system: &System,
    given: &CephAccess,
) -> Vec<PoolAccess> {
    let mut found: Vec<PoolAccess> = Vec::new();
    let mut note = |pool: PoolAccess| {
        if !found.contains(&pool) {
            found.push(pool);
        }
    };
    for job in plan.jobs.iter().filter(|job| job.io.engine.is_ceph()) {
        if let Some(ceph) = job.io.ceph.as_deref() {
            note(PoolAccess {
                access: ceph.access.clone(),
                fsid: None,
                pool: PoolName::Named(ceph.pool.clone()),
                is_mounted: false,
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
            let of_file_system = || PoolName::OfFileSystem(service.file_system.clone());
            note(PoolAccess {
                access: access(system, mount, given),
                fsid: Some(fsid.clone()),
                pool: named.map_or_else(of_file_system, PoolName::Named),
                is_mounted: true,
            });
        }
        // An NFS mount does not identify a cluster: only the user's options do.
        if let Some(service) = mount.and_then(|mount| mount.service.as_ref())
            && service.client == ServiceClient::Nfs
            && is_given(given)
        {
            note(PoolAccess {
                access: given.clone(),
                fsid: None,
                pool: PoolName::BehindNfs(service.servers.clone()),
                is_mounted: true,
            });
        }
        for image in target.all_devices().iter().filter_map(|it| it.rbd.as_ref()) {
            if let Some(fsid) = &image.fsid {
                note(PoolAccess {
                    access: given.clone(),
                    fsid: Some(fsid.clone()),
                    pool: PoolName::Named(image.pool.clone()),
                    is_mounted: false,
                });
            }
        }
    }
    found
}

/// Whether the user names a cluster or its client.
fn is_given(access: &CephAccess) -> bool {
    let names = [
        &access.conf,
        &access.cluster,
        &access.client,
        &access.keyring,
    ];
    names.iter().any(|name| name.is_some())
}

/// Name of the pool that holds a file's data, as CephFS clients report it.
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
    use iosonde_result::host::{DeviceInfo, MappedImage, Mount, MountService};

    fn named(access: &CephAccess, fsid: Option<&str>, pool: &str) -> PoolAccess {
        PoolAccess {
            access: access.clone(),
            fsid: fsid.map(str::to_owned),
            pool: PoolName::Named(pool.to_owned()),
            is_mounted: false,
        }
    }

    fn job_in(pool: &str) -> Job {
        let mut job = Job::new("x");
        job.io.engine = Engine::Rados;
        job.io.ceph = Some(Box::new(Ceph {
            pool: pool.to_owned(),
            ..Ceph::default()
        }));
        job
    }

    #[test]
    fn pools_of_run_include_jobs_mounts_and_mapped_images() {
        let plan = Plan {
            jobs: ["a", "b", "a"].map(job_in).to_vec(),
            ..Plan::default()
        };
        // Modelled on captured descriptions of a CephFS mount and a mapped image.
        let mounted = TargetInfo {
            mount: Some(Mount {
                fs_type: "ceph".to_owned(),
                service: Some(MountService {
                    client: ServiceClient::CephKernel,
                    file_system: Some("fs1".to_owned()),
                    fsid: Some("f-1".to_owned()),
                    user: Some("me".to_owned()),
                    ..MountService::default()
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
                service: Some(MountService::default()),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        let system = System::captured("/nonexistent");
        let usual = CephAccess::default();
        let found = pools_of_run(&plan, &[mounted, unknown, mapped, nfs], &system, &usual);
        let of_me = CephAccess {
            client: Some("me".to_owned()),
            ..usual.clone()
        };
        assert_eq!(
            found,
            [
                named(&usual, None, "a"),
                named(&usual, None, "b"),
                PoolAccess {
                    access: of_me,
                    fsid: Some("f-1".to_owned()),
                    pool: PoolName::OfFileSystem(Some("fs1".to_owned())),
                    is_mounted: true,
                },
                named(&usual, Some("f-2"), "images"),
            ]
        );
    }

    #[test]
    fn nfs_server_is_of_a_cluster_only_if_the_user_names_it() {
        let mounted = TargetInfo {
            mount: Some(Mount {
                fs_type: "nfs4".to_owned(),
                service: Some(MountService {
                    servers: vec!["10.0.0.9".to_owned()],
                    ..MountService::default()
                }),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        let system = System::captured("/nonexistent");
        let targets = [mounted.clone(), mounted];
        let plan = Plan::default();
        let usual = CephAccess::default();
        assert_eq!(pools_of_run(&plan, &targets, &system, &usual), []);
        let given = CephAccess {
            conf: Some("/etc/ceph/store.conf".to_owned()),
            ..usual
        };
        let found = pools_of_run(&plan, &targets, &system, &given);
        let expected = PoolAccess {
            access: given,
            fsid: None,
            pool: PoolName::BehindNfs(vec!["10.0.0.9".to_owned()]),
            is_mounted: true,
        };
        assert_eq!(found, [expected]);
    }
}
