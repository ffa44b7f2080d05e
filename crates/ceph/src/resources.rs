//! Resources of a session in clusters: objects it created, images it holds open, written ranges.

use crate::image_ranges::{ImageRanges, close_images};
use crate::job_options::ceph_options;
use crate::pool_files::PoolFiles;
use crate::uri::target_uri;
use crate::used_client::describe_pool;
use iosonde_engine::files::WorkerFiles;
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::remote_storage::{
    PrepareEvents, PreparePolicy, RemoteResources, RemoteRun, RemoteWorker,
};
use iosonde_job::plan::{Direction, Engine, Job, ObjectNames, ReadWriteMode};
use iosonde_result::run::CephUsed;
use iosonde_result::run_error::RunError;
use std::sync::Arc;

/// All resources. [`RemoteResources::remove`] removes created objects, at the latest in the drop.
#[derive(Debug, Default)]
pub(crate) struct CephResources {
    pools: Vec<PoolFiles>,
    images: Vec<ImageRanges>,
    /// Messages already sent to the user.
    reported: Vec<String>,
    /// Whether jobs discarded data that may have to be rewritten before they are read.
    is_stale: bool,
    /// Stop requests of the user.
    interrupt: Arc<Interrupt>,
}

impl CephResources {
    /// Opens the files of a worker, records them, and announces its target.
    fn add_worker(
        &mut self,
        worker: &RemoteWorker<'_>,
        policy: &PreparePolicy<'_>,
        events: &mut dyn PrepareEvents,
    ) -> Result<(), RunError> {
        let (job, reported) = (worker.job, &mut self.reported);
        match job.io.engine {
            Engine::Rados => {
                let ceph = ceph_options(job)?;
                let pool = PoolFiles::find_or_open(&mut self.pools, ceph)?;
                if ceph.object_names != ObjectNames::RadosBench {
                    announce(
                        &describe_pool(Engine::Rados, ceph, pool.io())?,
                        reported,
                        events,
                    );
                    pool.add_files(job, worker.files, policy)?;
                }
            }
            Engine::Rbd => {
                let image = ImageRanges::find_or_open(&mut self.images, ceph_options(job)?)?;
                image.add_files(job, worker.files, policy)?;
                announce(&image.used()?, reported, events);
            }
            _ => {}
        }
        Ok(())
    }

    /// Records missing ranges that a worker reads.
    fn require_data(
        &mut self,
        worker: &RemoteWorker<'_>,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        let (job, files) = (worker.job, worker.files);
        match job.io.engine {
            Engine::Rados => {
                let pool = PoolFiles::find_or_open(&mut self.pools, ceph_options(job)?)?;
                pool.require_data(job, files, policy)
            }
            Engine::Rbd => {
                let image = ImageRanges::find_or_open(&mut self.images, ceph_options(job)?)?;
                image.require_data(job, files, policy)
            }
            _ => Ok(()),
        }
    }

    /// Number of bytes to write before the next run.
    fn missing_bytes(&self) -> u64 {
        let pools = self.pools.iter().map(PoolFiles::missing_bytes);
        let images = self.images.iter().map(ImageRanges::missing_bytes);
        pools.chain(images).sum()
    }

    /// Writes the missing ranges. `written` is called with the total bytes so far.
    fn fill(
        &mut self,
        interrupt: &Arc<Interrupt>,
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        let mut sum = 0;
        for pool in &mut self.pools {
            let missing = pool.missing_bytes();
            pool.fill(interrupt, &mut |bytes| written(sum + bytes))?;
            sum += missing;
        }
        for image in &mut self.images {
            let missing = image.missing_bytes();
            image.fill(interrupt, &mut |bytes| written(sum + bytes))?;
            sum += missing;
        }
        Ok(())
    }
}

impl RemoteResources for CephResources {
    fn prepare_files(
        &mut self,
        run: &RemoteRun<'_>,
        events: &mut dyn PrepareEvents,
    ) -> Result<(), RunError> {
        self.is_stale = false;
        self.interrupt = run.policy.interrupt.clone();
        for worker in &run.workers {
            self.add_worker(worker, &run.policy, events)?;
        }
        let total_bytes = self.missing_bytes();
        if total_bytes == 0 {
            return Ok(());
        }
        events.message(format!(
            "Laying out {} MiB in the Ceph cluster",
            total_bytes.div_ceil(1 << 20)
        ));
        events.begin_layout(total_bytes);
        self.fill(run.policy.interrupt, &mut |bytes| events.written(bytes))
    }

    /// Ranges are rewritten before any of the workers to come writes there.
    fn refill_discarded_ranges(
        &mut self,
        run: &RemoteRun<'_>,
        starting: u32,
    ) -> Result<u64, RunError> {
        let own = &run.workers[starting as usize];
        debug_assert_eq!(own.number, starting, "workers in order of their numbers");
        if !self.is_stale || own.job.workload.rw.has(Direction::Trim) {
            return Ok(0);
        }
        let to_come = |worker: &&RemoteWorker<'_>| {
            let waits = worker.job.schedule.wait_for.is_some();
            // A verifying job expects data of a job, and reports missing ones itself.
            (worker.number >= starting || waits) && worker.job.verify.is_none()
        };
        let mut is_refused = false;
        for worker in run.workers.iter().filter(to_come) {
            // Another job may write the range before a later worker starts, which fails otherwise.
            match self.require_data(worker, &run.policy) {
                Err(error) if worker.number == starting => return Err(error),
                required => is_refused |= required.is_err(),
            }
        }
        let bytes = self.missing_bytes();
        self.fill(run.policy.interrupt, &mut |_| {})?;
        self.is_stale = is_refused;
        Ok(bytes)
    }

    fn forget_discarded(&mut self, job: &Job, files: &WorkerFiles) {
        let Some(ceph) = job.io.ceph.as_deref().filter(|_| leaves_holes(job)) else {
            return;
        };
        self.is_stale = true;
        self.pools
            .iter_mut()
            .for_each(|pool| pool.forget(ceph, files));
        self.images
            .iter_mut()
            .for_each(|image| image.forget(ceph, files));
    }

    fn remove(&mut self) -> Result<(), RunError> {
        let interrupt = &self.interrupt;
        let outcomes = self.pools.iter_mut().map(|pool| pool.remove(interrupt));
        let outcome = outcomes.fold(Ok(()), Result::and);
        let closed = close_images(std::mem::take(&mut self.images), interrupt);
        outcome.and(closed)
    }
}

impl Drop for CephResources {
    fn drop(&mut self) {
        // Errors are ignored. Callers that report them have called `remove` before.
        let _ = self.remove();
    }
}

/// Whether discarded ranges stay unwritten. A trimwrite job writes each block again.
fn leaves_holes(job: &Job) -> bool {
    job.workload.rw.has(Direction::Trim) && job.workload.rw.mode != ReadWriteMode::TrimWrite
}

/// Describes the target of the measurement to the user, once per session.
fn announce(used: &CephUsed, reported: &mut Vec<String>, events: &mut dyn PrepareEvents) {
    let message = announcement(used);
    if !reported.contains(&message) {
        events.message(message.clone());
        reported.push(message);
    }
}

/// Message that describes the target of the measurement.
fn announcement(used: &CephUsed) -> String {
    let engine = match used.image {
        Some(_) => Engine::Rbd,
        None => Engine::Rados,
    };
    let ceph = iosonde_job::plan::Ceph {
        pool: used.pool.clone(),
        namespace: used.namespace.clone(),
        ..Default::default()
    };
    let cache = match used.cache.as_deref() {
        None => String::new(),
        Some("off") => "; rbd_cache is off".to_owned(),
        Some(policy) => format!("; rbd_cache is on ({policy})"),
    };
    format!(
        "{} on Ceph cluster {}, {}{cache}",
        target_uri(engine, &ceph, used.image.as_deref()),
        used.fsid,
        used.client
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcement_names_target_cluster_and_client() {
        let mut used = CephUsed {
            client: "librbd 1.16.0".to_owned(),
            fsid: "f".to_owned(),
            pool: "p".to_owned(),
            namespace: None,
            image: Some("i".to_owned()),
            object_bytes: None,
            cache: Some("writearound".to_owned()),
        };
        assert_eq!(
            announcement(&used),
            "rbd://p/i on Ceph cluster f, librbd 1.16.0; rbd_cache is on (writearound)"
        );
        assert_eq!(used.write_cache(), Some("writearound"));
        used.cache = Some("writethrough".to_owned());
        assert_eq!(used.write_cache(), None, "the cluster acknowledges writes");
        used.cache = Some("off".to_owned());
        assert_eq!(used.write_cache(), None);
        assert!(announcement(&used).ends_with("rbd_cache is off"));
    }
}
