//! Objects of a session in one pool: created before reads, removed by name. Foreign ones are kept.

use crate::clients::open_shared_pool;
use crate::error::CephError;
use crate::fill::{self, Gap};
use crate::job_options::changes_data;
use crate::object_names::object_names;
use crate::open_handles::find_or_insert;
use crate::rados_backend::RadosBackend;
use crate::ranges::{forget, sorted, total, without};
use crate::sys::io_ctx::IoCtx;
use crate::sys::requests::ObjectRequests;
use crate::uri::{object_name, target_uri};
use iosonde_engine::files::{FileUse, WorkerFiles, needs_data};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::remote_storage::PreparePolicy;
use iosonde_job::plan::{Ceph, Engine, Job};
use iosonde_machine::consent::Agreement;
use iosonde_result::run_error::{CephProblem, RunError, WriteRefusal};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::ops::Range;
use std::sync::Arc;

/// Number of removals in flight.
const REMOVALS: u32 = 64;

/// A file, stored as one or several objects.
#[derive(Debug, Default)]
struct PoolFile {
    /// Whether the object existed before. It is neither extended nor removed.
    is_foreign: bool,
    /// Length once all queued writes are complete.
    bytes: u64,
    /// Ranges known to be written and not discarded.
    written: Vec<Range<u64>>,
    /// Ranges to write before the next run.
    missing: Vec<Range<u64>>,
}

/// A pool, and the session's files in it.
pub(crate) struct PoolFiles {
    ceph: Ceph,
    io: IoCtx,
    files: BTreeMap<String, PoolFile>,
}

impl std::fmt::Debug for PoolFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolFiles")
            .field("ceph", &self.ceph)
            .finish_non_exhaustive()
    }
}

impl PoolFiles {
    /// Finds the pool of these options, or opens it.
    pub(crate) fn find_or_open<'a>(
        pools: &'a mut Vec<PoolFiles>,
        ceph: &Ceph,
    ) -> Result<&'a mut PoolFiles, RunError> {
        let is_same = |known: &PoolFiles| {
            (
                &known.ceph.access,
                &known.ceph.pool,
                &known.ceph.namespace,
                known.ceph.object_bytes,
            ) == (&ceph.access, &ceph.pool, &ceph.namespace, ceph.object_bytes)
        };
        find_or_insert(pools, is_same, || {
            Ok(PoolFiles {
                ceph: ceph.clone(),
                io: open_shared_pool(ceph)?,
                files: BTreeMap::new(),
            })
        })
    }

    /// Context of the pool.
    pub(crate) fn io(&self) -> &IoCtx {
        &self.io
    }

    fn uri(&self, object: &str) -> String {
        target_uri(Engine::Rados, &self.ceph, Some(object))
    }

    /// Records the files of a worker, and creates their objects if the job requests it.
    pub(crate) fn add_files(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        files
            .files
            .iter()
            .try_for_each(|file| self.add_file(job, file, policy))
    }

    fn add_file(
        &mut self,
        job: &Job,
        used: &FileUse,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        let name = object_name(&used.path);
        let uri = self.uri(&name);
        if !self.files.contains_key(&name) {
            let file = self
                .existing_file(&name, used.size_needed)
                .map_err(|error| error.on(&uri))?;
            self.files.insert(name.clone(), file);
        }
        let file = self.files.get_mut(&name).expect("just inserted");
        if file.is_foreign {
            return file.check(job, used, &uri, policy);
        }
        file.bytes = file.bytes.max(used.size_needed);
        file.require_data(job, used, &uri, policy)?;
        let is_filled = !file.missing.is_empty();
        if !is_filled
            && changes_data(job)
            && self.ceph.touch_objects
            && self.ceph.object_bytes.is_none()
        {
            self.io
                .write(&name, &[], 0)
                .map_err(|error| error.on(&uri))?;
        }
        Ok(())
    }

    /// Records ranges to write before a worker reads its files, after [`PoolFiles::add_files`].
    pub(crate) fn require_data(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        for used in &files.files {
            let name = object_name(&used.path);
            let uri = self.uri(&name);
            if let Some(file) = self.files.get_mut(&name) {
                file.require_data(job, used, &uri, policy)?;
            }
        }
        Ok(())
    }

    /// Records that a job may have discarded data of these files.
    pub(crate) fn forget(&mut self, ceph: &Ceph, files: &WorkerFiles) {
        if (&self.ceph.pool, &self.ceph.namespace) != (&ceph.pool, &ceph.namespace) {
            return;
        }
        for used in &files.files {
            if let Some(file) = self.files.get_mut(&object_name(&used.path)) {
                let start = used.region.start_bytes;
                forget(&mut file.written, &(start..start + used.region.size_bytes));
            }
        }
    }

    /// Checks whether an object of this name existed before the session.
    fn existing_file(&self, name: &str, bytes: u64) -> Result<PoolFile, CephError> {
        let mut objects = object_names(name, bytes.max(1), self.ceph.object_bytes);
        let first = objects.next().unwrap_or_default();
        Ok(match self.io.stat(&first)? {
            Some(stat) => PoolFile {
                is_foreign: true,
                bytes: stat.size_bytes,
                written: std::iter::once(0..stat.size_bytes).collect(),
                missing: Vec::new(),
            },
            None => PoolFile::default(),
        })
    }

    /// Number of bytes to write before the next run.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.files.values().map(|file| total(&file.missing)).sum()
    }

    /// Writes the missing ranges.
    pub(crate) fn fill(
        &mut self,
        interrupt: &Arc<Interrupt>,
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        if self.missing_bytes() == 0 {
            return Ok(());
        }
        let names: Vec<String> = self.files.keys().cloned().collect();
        let gaps: Vec<Gap> = (0..)
            .zip(self.files.values())
            .flat_map(|(number, file)| file.missing.iter().map(move |gap| (number, gap.clone())))
            .collect();
        let mut backend = RadosBackend::new(
            self.io.clone(),
            &names,
            self.ceph.object_bytes,
            fill::depth(),
            false,
        )
        .draining_on(interrupt);
        fill::fill_gaps(&mut backend, &gaps, interrupt, written)
            .map_err(|error| error.into_error(|file| self.uri(&names[file as usize])))?;
        for file in self.files.values_mut() {
            file.written.append(&mut file.missing);
            file.written = sorted(&file.written);
        }
        Ok(())
    }

    /// Removes the objects of all files that the session created.
    pub(crate) fn remove(&mut self, interrupt: &Arc<Interrupt>) -> Result<(), RunError> {
        let object_bytes = self.ceph.object_bytes;
        let own = self.files.iter().filter(|(_, file)| !file.is_foreign);
        let objects = own.flat_map(|(name, file)| object_names(name, file.bytes, object_bytes));
        let mut left = remove_objects(&self.io, objects, interrupt).left;
        if left.is_empty() {
            self.files.clear();
            return Ok(());
        }
        left.sort();
        let (first, errno) = &left[0];
        let cause = CephProblem::ObjectsNotRemoved {
            pool: self.ceph.pool.clone(),
            namespace: self.ceph.namespace.clone(),
            object: first.clone(),
            others: left.len() - 1,
            errno: *errno,
        };
        let path = self.uri(first);
        Err(RunError::unusable_target(path, cause.into()))
    }
}

/// Result of a removal.
#[derive(Debug, Default)]
pub struct Removal {
    /// Number of objects removed.
    pub removed: u64,
    /// Remaining objects, each with its errno.
    pub left: Vec<(String, i32)>,
}

/// Removes objects, many at a time. Stops after a timeout, or after a cancellation because of a
/// stop request.
pub fn remove_objects(
    io: &IoCtx,
    mut objects: impl Iterator<Item = String>,
    interrupt: &Arc<Interrupt>,
) -> Removal {
    let mut requests = ObjectRequests::new(io.clone(), REMOVALS as usize, false);
    requests.drain_on(interrupt);
    let mut under_way: Vec<String> = vec![String::new(); REMOVALS as usize];
    let mut free: Vec<u32> = (0..REMOVALS).collect();
    let mut done = Vec::with_capacity(REMOVALS as usize);
    let mut removal = Removal::default();
    let mut silence = None;
    loop {
        while let Some(slot) = free.last().copied()
            && let Some(object) = objects.next()
        {
            if let Some(errno) = silence {
                removal.left.push((object, errno));
            } else if let Ok(name) = CString::new(object.as_bytes()) {
                requests.begin(slot, 1);
                requests.remove(slot, &name);
                under_way[slot as usize] = object;
                free.pop();
            }
        }
        if requests.is_idle() {
            return removal;
        }
        requests.collect(1, None, &mut done);
        for over in done.drain(..) {
            free.push(over.slot);
            if matches!(-over.result, libc::ETIMEDOUT | libc::ECANCELED) {
                silence = Some(-over.result);
            }
            match -over.result {
                libc::ENOENT => {}
                ..=0 => removal.removed += 1,
                errno => {
                    let object = std::mem::take(&mut under_way[over.slot as usize]);
                    removal.left.push((object, errno));
                }
            }
        }
    }
}

impl PoolFile {
    /// Checks the use of an object of others: reads within its length, writes with consent.
    fn check(
        &mut self,
        job: &Job,
        used: &FileUse,
        uri: &str,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        if changes_data(job) && policy.agreement(uri, job) == Agreement::None {
            let consent_name = uri.to_owned();
            let cause = WriteRefusal::ObjectExists { consent_name };
            return Err(RunError::write_refused(uri, cause));
        }
        if needs_data(job) && self.bytes < used.size_needed {
            let cause = CephProblem::ObjectTooSmall {
                object_bytes: self.bytes,
                job: job.name.clone(),
                needed_bytes: used.size_needed,
            };
            return Err(RunError::unusable_target(uri, cause.into()));
        }
        self.require_data(job, used, uri, policy)
    }

    /// Records missing ranges that a job reads. Filling those of a foreign object needs consent.
    fn require_data(
        &mut self,
        job: &Job,
        used: &FileUse,
        uri: &str,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        let gaps = match needs_data(job) {
            true => without(&(0..used.size_needed), &self.written),
            false => Vec::new(),
        };
        if gaps.is_empty() {
            return Ok(());
        }
        if policy.readonly {
            let needed_bytes = used.size_needed;
            let cause = CephProblem::FillForbidden { needed_bytes };
            return Err(RunError::unusable_target(uri, cause.into()));
        }
        if self.is_foreign && policy.agreement(uri, job) == Agreement::None {
            let cause = CephProblem::DiscardedObjectRange {
                missing_bytes: total(&gaps),
                needed_bytes: used.size_needed,
                job: job.name.clone(),
                consent_name: uri.to_owned(),
            };
            return Err(RunError::unusable_target(uri, cause.into()));
        }
        for gap in gaps {
            self.missing.extend(without(&gap, &sorted(&self.missing)));
        }
        Ok(())
    }
}
