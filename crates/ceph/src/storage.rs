//! Access of a session to clusters: the engine's [`RemoteStorage`].

use crate::access::WorkerLoad;
use crate::clients::{open_image, open_pool};
use crate::cluster_sampler::ClusterSampler;
use crate::job_options::{ceph_options, changes_data, uses_write_cache, writes_data};
use crate::object_names::count_objects;
use crate::osd_caches::drop_caches_of_run;
use crate::rados_backend::RadosBackend;
use crate::rbd_backend::RbdBackend;
use crate::resources::CephResources;
use crate::sys::image_writers::FlushError;
use crate::sys::rados::require_librados;
use crate::uri::{file_name, file_uris, object_name, resolve_uris, target_uri};
use crate::used_client::{describe_image, describe_pool};
use iosonde_engine::files::WorkerFiles;
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::io::Slab;
use iosonde_engine::io::remote::RemoteIo;
use iosonde_engine::remote_storage::{RemoteResources, RemoteStorage, RemoteWatch};
use iosonde_job::plan::{Ceph, CephAccess, Engine, Job, ObjectNames, Plan};
use iosonde_result::host::TargetInfo;
use iosonde_result::run::CephUsed;
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Pools and images of Ceph.
#[derive(Debug, Clone, Default)]
pub struct CephStorage {
    access: CephAccess,
}

impl CephStorage {
    /// Creates the access to clusters. `access` is that of targets which do not describe it.
    pub fn new(access: CephAccess) -> CephStorage {
        CephStorage { access }
    }
}

impl RemoteStorage for CephStorage {
    fn resolve_uris<'p>(&self, plan: &'p Plan) -> Result<Cow<'p, Plan>, RunError> {
        resolve_uris(plan, &self.access)
    }

    fn file_uris(&self, job: &Job) -> Vec<String> {
        file_uris(job)
    }

    fn check_cluster(&self, job: &Job) -> Result<(), RunError> {
        let Some(ceph) = job.io.ceph.as_deref() else {
            return Ok(());
        };
        let (own, given) = (&ceph.access, &self.access);
        for (option, own, given) in [
            ("conf", &own.conf, &given.conf),
            ("clustername", &own.cluster, &given.cluster),
        ] {
            if let Some(own) = own.as_ref().filter(|_| own != given) {
                return Err(other_cluster(job, option, own));
            }
        }
        Ok(())
    }

    fn image_bytes(&self, job: &Job) -> Result<u64, RunError> {
        let ceph = ceph_options(job)?;
        let image = open_image(ceph, false)?;
        let name = target_uri(Engine::Rbd, ceph, ceph.image.as_deref());
        image.size_bytes().map_err(|error| error.on(&name))
    }

    fn file_name(&self, job: &Job, path: &Path) -> String {
        file_name(job, path)
    }

    fn open_resources(&self) -> Box<dyn RemoteResources> {
        Box::new(CephResources::default())
    }

    fn open_io(
        &self,
        job: &Job,
        files: &WorkerFiles,
        slab: &Slab,
        interrupt: &Arc<Interrupt>,
    ) -> Result<(Box<dyn RemoteIo>, CephUsed), RunError> {
        let ceph = ceph_options(job)?;
        let uri = || target_uri(job.io.engine, ceph, ceph.image.as_deref());
        require_librados().map_err(|error| error.on(&uri()))?;
        match job.io.engine {
            Engine::Rbd => {
                let image = open_image(ceph, changes_data(job))?;
                let used = describe_image(ceph, &image)?;
                let depth = slab.slots.len() as u32;
                let mut io = RbdBackend::new(&image, depth, ceph.busy_poll).draining_on(interrupt);
                if writes_data(job) && used.write_cache().is_some() {
                    io = io.confirming_writes(&job.errors);
                }
                // As in fio's engine: until the first flush, librbd writes through its cache
                // (rbd_cache_writethrough_until_flush). The engine flushes the image again at the
                // end of the job, so that an acknowledged write that fails later is an error of
                // the job. An error of this flush is that of writes of other workers. As this
                // worker is counted already, none of them confirms at the same time, and the last
                // one reports the error.
                if uses_write_cache(job)
                    && let Err(error) = image.flush()
                {
                    image.writers().keep_flush_error(FlushError {
                        errno: error.errno().unwrap_or(libc::EIO),
                        is_counted: false,
                    });
                }
                Ok((Box::new(io), used))
            }
            _ => open_objects(ceph, files, slab, interrupt),
        }
    }

    fn drop_osd_caches(&self, plan: &Plan, targets: &[TargetInfo]) -> Result<u32, RunError> {
        drop_caches_of_run(plan, targets, &self.access)
    }

    fn watch(&self, plan: &Plan, targets: &[TargetInfo]) -> Option<Box<dyn RemoteWatch>> {
        let sampler = ClusterSampler::start(plan, targets, &self.access)?;
        Some(Box::new(sampler))
    }
}

/// Opens the objects of a worker with a client of its own.
fn open_objects(
    ceph: &Ceph,
    files: &WorkerFiles,
    slab: &Slab,
    interrupt: &Arc<Interrupt>,
) -> Result<(Box<dyn RemoteIo>, CephUsed), RunError> {
    let depth = slab.slots.len() as u32;
    let io_bytes = slab.memory.stride() as u64;
    let last_byte = ceph.object_bytes.map_or(0, |bytes| bytes - 1);
    let objects = count_objects(last_byte, io_bytes, ceph.object_bytes);
    let most = WorkerLoad {
        requests: u64::from(depth) * u64::from(objects),
        bytes: u64::from(depth) * io_bytes,
    };
    let (pool, limits_requests) = open_pool(ceph, most)?;
    let names: Vec<String> = files
        .files
        .iter()
        .map(|file| object_name(&file.path))
        .collect();
    let used = describe_pool(Engine::Rados, ceph, &pool)?;
    let mut io = RadosBackend::new(pool, &names, ceph.object_bytes, depth, ceph.busy_poll)
        .draining_on(interrupt)
        .writing_parts(ceph.written_parts);
    if limits_requests {
        let timeout = Duration::from_secs(u64::from(ceph.access.timeout_s.max(1)));
        io = io.with_timeout(timeout);
    }
    if ceph.object_names == ObjectNames::RadosBench {
        io = io.named_as_by_rados_bench(&names);
    }
    Ok((Box::new(io), used))
}

/// Error: a job names another cluster than that of the target.
fn other_cluster(job: &Job, option: &str, own: &str) -> RunError {
    UnsupportedFeature::OtherCephCluster {
        job: job.name.clone(),
        option: option.to_owned(),
        value: own.to_owned(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_with_another_cluster_is_refused() {
        let text = |text: &str| Some(text.to_owned());
        let with = |access: CephAccess| {
            let mut job = Job::new("a");
            job.io.ceph = Some(Box::new(Ceph {
                access,
                ..Ceph::default()
            }));
            job
        };
        let conf = CephAccess {
            conf: text("/c"),
            ..CephAccess::default()
        };
        let cluster = CephAccess {
            cluster: text("other"),
            ..CephAccess::default()
        };
        let storage = CephStorage::default();
        for (access, option, value) in [(&conf, "conf", "/c"), (&cluster, "clustername", "other")] {
            let job = with(access.clone());
            let expected = other_cluster(&job, option, value);
            assert_eq!(storage.check_cluster(&job), Err(expected));
            let same = CephStorage::new(access.clone());
            assert!(same.check_cluster(&with(access.clone())).is_ok());
        }
        assert!(storage.check_cluster(&with(CephAccess::default())).is_ok());
        assert!(storage.check_cluster(&Job::new("a")).is_ok());
    }
}
