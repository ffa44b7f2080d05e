//! Objects of a session in one pool: created before reads, removed by name. Foreign ones are kept.

use super::backend::{changes, object_of, share_pool, uri};
use super::estate::Terms;
use super::fill::{self, Gap};
use super::ranges::{forget, sorted, total, without};
use super::stripes::names;
use super::{CephError, IoCtx, Requests};
use crate::files::{FileUse, WorkerFiles, needs_data};
use crate::interrupt::Interrupt;
use crate::io::rados_backend::Rados;
use iosonde_job::plan::{Ceph, Engine, Job};
use iosonde_machine::consent::Agreement;
use iosonde_result::session::RunError;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::ops::Range;
use std::sync::Arc;

/// Number of removals in flight.
const REMOVALS: u32 = 64;

/// A file, stored as one or several objects.
#[derive(Debug, Default)]
struct File {
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
pub(super) struct PoolUse {
    ceph: Ceph,
    io: IoCtx,
    files: BTreeMap<String, File>,
}

impl std::fmt::Debug for PoolUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolUse")
            .field("ceph", &self.ceph)
            .finish_non_exhaustive()
    }
}

impl PoolUse {
    /// Finds the pool of these options, or opens it.
    pub(super) fn among<'a>(
        pools: &'a mut Vec<PoolUse>,
        ceph: &Ceph,
    ) -> Result<&'a mut PoolUse, RunError> {
        let is_same = |known: &PoolUse| {
            (
                &known.ceph.access,
                &known.ceph.pool,
                &known.ceph.namespace,
                known.ceph.object_bytes,
            ) == (&ceph.access, &ceph.pool, &ceph.namespace, ceph.object_bytes)
        };
        let index = match pools.iter().position(is_same) {
            Some(index) => index,
            None => {
                pools.push(PoolUse {
                    ceph: ceph.clone(),
                    io: share_pool(ceph)?,
                    files: BTreeMap::new(),
                });
                pools.len() - 1
            }
        };
        Ok(&mut pools[index])
    }

    /// Context of the pool.
    pub(super) fn io(&self) -> &IoCtx {
        &self.io
    }

    fn uri(&self, object: &str) -> String {
        uri(Engine::Rados, &self.ceph, Some(object))
    }

    /// Records the files of a worker, and creates their objects if the job requests it.
    pub(super) fn note(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        terms: &Terms<'_>,
    ) -> Result<(), RunError> {
        files
            .files
            .iter()
            .try_for_each(|file| self.note_file(job, file, terms))
    }

    fn note_file(&mut self, job: &Job, used: &FileUse, terms: &Terms<'_>) -> Result<(), RunError> {
        let name = object_of(&used.path);
        let uri = self.uri(&name);
        if !self.files.contains_key(&name) {
            let file = self
                .found(&name, used.size_needed)
                .map_err(|error| error.on(&uri))?;
            self.files.insert(name.clone(), file);
        }
        let file = self.files.get_mut(&name).expect("just inserted");
        if file.is_foreign {
            return file.check(job, used, &uri, terms);
        }
        file.bytes = file.bytes.max(used.size_needed);
        file.want(job, used, &uri, terms)?;
        let is_filled = !file.missing.is_empty();
        if !is_filled && changes(job) && self.ceph.touch_objects && self.ceph.object_bytes.is_none()
        {
            self.io
                .write(&name, &[], 0)
                .map_err(|error| error.on(&uri))?;
        }
        Ok(())
    }

    /// Records ranges to write before a worker reads its files, after [`PoolUse::note`].
    pub(super) fn want(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        terms: &Terms<'_>,
    ) -> Result<(), RunError> {
        for used in &files.files {
            let name = object_of(&used.path);
            let uri = self.uri(&name);
            if let Some(file) = self.files.get_mut(&name) {
                file.want(job, used, &uri, terms)?;
            }
        }
        Ok(())
    }

    /// Records that a job may have discarded data of these files.
    pub(super) fn forget(&mut self, ceph: &Ceph, files: &WorkerFiles) {
        if (&self.ceph.pool, &self.ceph.namespace) != (&ceph.pool, &ceph.namespace) {
            return;
        }
        for used in &files.files {
            if let Some(file) = self.files.get_mut(&object_of(&used.path)) {
                let start = used.region.start_bytes;
                forget(&mut file.written, &(start..start + used.region.size_bytes));
            }
        }
    }

    /// Checks whether an object of this name existed before the session.
    fn found(&self, name: &str, bytes: u64) -> Result<File, CephError> {
        let mut objects = names(name, bytes.max(1), self.ceph.object_bytes);
        let first = objects.next().unwrap_or_default();
        Ok(match self.io.stat(&first)? {
            Some(stat) => File {
                is_foreign: true,
                bytes: stat.size_bytes,
                written: std::iter::once(0..stat.size_bytes).collect(),
                missing: Vec::new(),
            },
            None => File::default(),
        })
    }

    /// Number of bytes to write before the next run.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.files.values().map(|file| total(&file.missing)).sum()
    }

    /// Writes the missing ranges.
    pub(super) fn fill(
        &mut self,
        wish: &Arc<Interrupt>,
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
        let mut backend = Rados::new(
            self.io.clone(),
            &names,
            self.ceph.object_bytes,
            fill::depth(),
            false,
        )
        .heeding(wish);
        fill::fill(&mut backend, &gaps, wish, written)
            .map_err(|error| error.into_error(|file| self.uri(&names[file as usize])))?;
        for file in self.files.values_mut() {
            file.written.append(&mut file.missing);
            file.written = sorted(&file.written);
        }
        Ok(())
    }

    /// Removes the objects of all files that the session created.
    pub(super) fn remove(&mut self, wish: &Arc<Interrupt>) -> Result<(), RunError> {
        let object_bytes = self.ceph.object_bytes;
        let own = self.files.iter().filter(|(_, file)| !file.is_foreign);
        let objects = own.flat_map(|(name, file)| names(name, file.bytes, object_bytes));
        let mut left = remove_objects(&self.io, objects, wish).left;
        if left.is_empty() {
            self.files.clear();
            return Ok(());
        }
        left.sort();
        let (first, errno) = &left[0];
        let why = CephError::Call {
            doing: match left.len() {
                1 => "remove it".to_owned(),
                all => format!("remove it and {} more of ours", all - 1),
            },
            errno: *errno,
            said: String::new(),
        };
        Err(RunError::Target {
            path: self.uri(first),
            problem: why.to_string(),
            remedy: format!(
                "when the cluster answers again: rados -p {}{} rm {first}{}",
                self.ceph.pool,
                self.ceph
                    .namespace
                    .as_ref()
                    .map(|name| format!(" -N {name}"))
                    .unwrap_or_default(),
                if left.len() > 1 {
                    ", and the others whose names begin alike"
                } else {
                    ""
                }
            ),
        })
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
    wish: &Arc<Interrupt>,
) -> Removal {
    let mut requests = Requests::new(io.clone(), REMOVALS as usize, false);
    requests.heed(wish);
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

impl File {
    /// Checks the use of an object of others: reads within its length, writes with consent.
    fn check(
        &mut self,
        job: &Job,
        used: &FileUse,
        uri: &str,
        terms: &Terms<'_>,
    ) -> Result<(), RunError> {
        if changes(job) && terms.agreement(uri, job) == Agreement::None {
            return Err(RunError::Refused {
                device: uri.to_owned(),
                found: "there is an object of this name already".to_owned(),
                remedy: format!(
                    "use another name, or consent to lose it: --allow-overwrite={uri} (in a job: allow_mounted_write=1)"
                ),
            });
        }
        if needs_data(job) && self.bytes < used.size_needed {
            return Err(RunError::Target {
                path: uri.to_owned(),
                problem: format!(
                    "the object that is there has {} bytes, and job {} needs {}",
                    self.bytes, job.name, used.size_needed
                ),
                remedy: "use a smaller size=, or another name".to_owned(),
            });
        }
        self.want(job, used, uri, terms)
    }

    /// Records missing ranges that a job reads. Filling those of a foreign object needs consent.
    fn want(
        &mut self,
        job: &Job,
        used: &FileUse,
        uri: &str,
        terms: &Terms<'_>,
    ) -> Result<(), RunError> {
        let gaps = match needs_data(job) {
            true => without(&(0..used.size_needed), &self.written),
            false => Vec::new(),
        };
        if gaps.is_empty() {
            return Ok(());
        }
        if terms.readonly {
            return Err(readonly(uri, used.size_needed));
        }
        if self.is_foreign && terms.agreement(uri, job) == Agreement::None {
            return Err(RunError::Target {
                path: uri.to_owned(),
                problem: format!(
                    "a job before has discarded {} of the {} bytes that job {} needs: reading them would measure nothing",
                    total(&gaps),
                    used.size_needed,
                    job.name
                ),
                remedy: format!(
                    "consent to have it filled: --allow-overwrite={uri} (in a job: allow_mounted_write=1)"
                ),
            });
        }
        for gap in gaps {
            self.missing.extend(without(&gap, &sorted(&self.missing)));
        }
        Ok(())
    }
}

fn readonly(uri: &str, bytes: u64) -> RunError {
    RunError::Target {
        path: uri.to_owned(),
        problem: format!(
            "{bytes} bytes would have to be written before they are read, and --readonly forbids that"
        ),
        remedy: "leave --readonly out, or name an object that is large enough".to_owned(),
    }
}
