//! Drops the caches of this machine and of OSDs before jobs start (`--cold`), and describes the
//! state of all caches.

use super::session_resources::SessionRefs;
use super::{JobClone, LocalRunner};
use crate::files::{FileKind, target_error};
use crate::sys::block;
use iosonde_job::plan::Plan;
use iosonde_machine::drop_caches::drop_all_caches;
use iosonde_result::cache_state::{CacheEvidence, CacheLayer, LayerCache, client_cache};
use iosonde_result::host::TargetInfo;
use iosonde_result::run::WorkerResult;
use iosonde_result::run_error::{PathAction, RunError};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Caches dropped before the latest group of jobs.
#[derive(Debug, Default)]
pub(crate) struct DroppedCaches {
    client: Option<CacheEvidence>,
    /// Number of OSDs.
    osds: Option<u32>,
}

impl DroppedCaches {
    /// Drops the caches that the user wants cold. The files of all clones are known.
    pub(super) fn drop_again(
        &mut self,
        plan: &Plan,
        clones: &[JobClone],
        session: &SessionRefs<'_>,
    ) -> Result<(), RunError> {
        let cold = session.runner.cold;
        if cold.client {
            self.client = Some(match session.runner.keeps_caches_of_others {
                true => drop_pages_of_files(plan, clones)?,
                false => drop_client_caches(plan, clones)?,
            });
        }
        if cold.osd
            && let Some(remote) = session.runner.remote()
        {
            self.osds = Some(remote.drop_osd_caches(plan, session.targets)?);
        }
        Ok(())
    }

    /// Returns the state of each layer at the start of the jobs. `has_ceph`: a cluster was used.
    pub(super) fn cache_states(
        &self,
        plan: &Plan,
        workers: &[WorkerResult],
        has_ceph: bool,
    ) -> Vec<LayerCache> {
        let is_off = |worker: &WorkerResult| {
            let cache = worker
                .backend
                .ceph
                .as_ref()
                .map(|used| used.cache.as_deref());
            cache.is_none_or(|cache| cache.is_none_or(|policy| policy == "off"))
        };
        let client = client_cache(plan, self.client, workers.iter().all(is_off));
        let uses_ceph = has_ceph || plan.jobs.iter().any(|job| job.io.engine.is_ceph());
        let osds = match self.osds {
            Some(count) => Some(CacheEvidence::Dropped { count }),
            None => uses_ceph.then_some(CacheEvidence::NotDropped),
        };
        let osds = osds.map(|evidence| LayerCache::new(CacheLayer::Osd, evidence));
        client.into_iter().chain(osds).collect()
    }
}

impl LocalRunner {
    /// Returns the targets by which the clusters of `--cold osd` are found.
    pub(super) fn cold_targets(&self, targets: &[TargetInfo]) -> Vec<TargetInfo> {
        match self.cold.osd {
            true => targets.to_vec(),
            false => Vec::new(),
        }
    }
}

/// Drops all caches of the kernel, or without the rights of root the pages of the jobs' files.
fn drop_client_caches(plan: &Plan, clones: &[JobClone]) -> Result<CacheEvidence, RunError> {
    match drop_all_caches() {
        Ok(()) => Ok(CacheEvidence::Dropped { count: 1 }),
        Err(_) => drop_pages_of_files(plan, clones),
    }
}

/// Drops the pages of the jobs' files one by one.
fn drop_pages_of_files(plan: &Plan, clones: &[JobClone]) -> Result<CacheEvidence, RunError> {
    let with_paths = clones
        .iter()
        .filter(|clone| plan.jobs[clone.job].io.engine.has_paths());
    for file in with_paths.flat_map(|clone| &clone.files().files) {
        if file.kind == FileKind::Stream {
            continue;
        }
        match drop_pages(&file.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(target_error(&file.path, PathAction::DropCache, &error));
            }
            _ => {}
        }
    }
    Ok(CacheEvidence::FilesDropped)
}

/// Writes a file back and drops its pages. Other processes may keep those that they have mapped.
fn drop_pages(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    // A length of 0 reaches to the end of the file.
    block::drop_cache(file.as_raw_fd(), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{Engine, Job};

    fn plan_of(engine: Engine) -> Plan {
        let mut job = Job::new("job");
        job.io.engine = engine;
        job.io.direct = true;
        Plan {
            jobs: vec![job],
            ..Plan::default()
        }
    }

    fn words(dropped: &DroppedCaches, engine: Engine, has_ceph: bool) -> Vec<String> {
        let states = dropped.cache_states(&plan_of(engine), &[], has_ceph);
        states.iter().map(LayerCache::words).collect()
    }

    #[test]
    fn states_name_the_client_and_the_osds_of_a_cluster() {
        let nothing = DroppedCaches::default();
        let local = words(&nothing, Engine::Psync, false);
        assert_eq!(local, ["client cold (O_DIRECT)"]);
        let mounted = words(&nothing, Engine::Psync, true);
        assert_eq!(
            mounted,
            ["client cold (O_DIRECT)", "osd unknown (not dropped)"]
        );
        let dropped = DroppedCaches {
            client: Some(CacheEvidence::Dropped { count: 1 }),
            osds: Some(3),
        };
        let objects = words(&dropped, Engine::Rados, false);
        assert_eq!(
            objects,
            [
                "client cold (the library has no cache)",
                "osd cold (dropped on 3 OSDs)"
            ]
        );
    }

    #[test]
    fn pages_of_a_file_are_dropped_without_root() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert!(drop_pages(&path).is_err());
        std::fs::write(&path, [1; 8192]).unwrap();
        drop_pages(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [1; 8192]);
    }
}
