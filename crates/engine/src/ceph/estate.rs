//! Resources of a session in clusters: objects it created, images it holds open, written ranges.

use super::backend::{of, uri, used};
use super::image::{self, ImageUse};
use super::pool::PoolUse;
use crate::files::{WorkerFiles, needs_data};
use crate::interrupt::Interrupt;
use crate::runner::{JobClone, LayoutProgress};
use iosonde_job::plan::{Direction, Engine, Job, Mode, ObjectNames, Plan};
use iosonde_machine::consent::{Agreement, Consent};
use iosonde_result::observer::Observer;
use iosonde_result::run::{CephUsed, Event};
use iosonde_result::session::RunError;
use std::sync::Arc;
use std::time::Instant;

/// Policy for the preparation of a run.
pub(crate) struct Terms<'a> {
    /// Consent to overwrite images and objects, by URI.
    pub(crate) consent: &'a Consent,
    /// Whether layout is forbidden.
    pub(crate) readonly: bool,
    /// Stop requests of the user.
    pub(crate) interrupt: &'a Arc<Interrupt>,
}

impl Terms<'_> {
    /// Consent to overwrite the target of this URI. A study sets `allow_mounted_write` in its jobs
    /// if it may overwrite what it found. In a user's own jobs it also allows targets in use.
    pub(super) fn agreement(&self, uri: &str, job: &Job) -> Agreement {
        let of_job = match (job.files.allow_mounted_write, self.consent.by_jobs) {
            (true, true) => Agreement::Mounted,
            (true, false) => Agreement::Overwrite,
            (false, _) => Agreement::None,
        };
        of_job.max(self.consent.agreement_on_uri(uri))
    }
}

/// All resources. [`Estate::remove`] removes created objects, at the latest in the drop.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    pools: Vec<PoolUse>,
    images: Vec<ImageUse>,
    /// Messages already sent to the user.
    told: Vec<String>,
    /// Whether jobs discarded data that may have to be rewritten before they are read.
    is_stale: bool,
    /// Stop requests of the user.
    wish: Arc<Interrupt>,
}

impl Estate {
    /// Opens what the jobs use, refuses forbidden writes, and writes the data that jobs read.
    pub(crate) fn make_ready(
        &mut self,
        plan: &Plan,
        members: &[JobClone],
        terms: &Terms<'_>,
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        self.is_stale = false;
        self.wish = terms.interrupt.clone();
        let mut tell = |message: String, observer: &mut dyn Observer| {
            if !self.told.contains(&message) {
                let at_ns = begun.elapsed().as_nanos() as u64;
                observer.event(&Event {
                    at_ns,
                    message: message.clone(),
                });
                self.told.push(message);
            }
        };
        for member in members {
            let job = &plan.jobs[member.job];
            match job.io.engine {
                Engine::Rados => {
                    let ceph = of(job)?;
                    let pool = PoolUse::among(&mut self.pools, ceph)?;
                    if ceph.object_names == ObjectNames::RadosBench {
                        continue;
                    }
                    tell(announced(&used(Engine::Rados, ceph, pool.io())?), observer);
                    pool.note(job, member.files(), terms)?;
                }
                Engine::Rbd => {
                    let ceph = of(job)?;
                    let image = ImageUse::among(&mut self.images, ceph)?;
                    image.note(job, member.files(), terms)?;
                    tell(announced(&image.used()?), observer);
                }
                _ => {}
            }
        }
        let total = self.missing_bytes();
        if total == 0 {
            return Ok(());
        }
        let message = format!(
            "Laying out {} MiB in the Ceph cluster",
            total.div_ceil(1 << 20)
        );
        observer.event(&Event {
            at_ns: begun.elapsed().as_nanos() as u64,
            message,
        });
        let waiting = |member: &JobClone| {
            let job = &plan.jobs[member.job];
            (member.job, job.io.engine.is_ceph() && needs_data(job))
        };
        let workers: Vec<_> = members.iter().map(waiting).collect();
        let mut progress = LayoutProgress::new(total, &workers, begun);
        // A study that knows enough ends its cell, not the layout before it: only the user can.
        self.fill(terms, &mut |bytes| {
            let _ = progress.tell(bytes, observer);
        })
    }

    /// Number of bytes to write before the next run.
    fn missing_bytes(&self) -> u64 {
        let pools = self.pools.iter().map(PoolUse::missing_bytes);
        let images = self.images.iter().map(ImageUse::missing_bytes);
        pools.chain(images).sum()
    }

    /// Writes the missing ranges. `written` is called with the total bytes so far.
    fn fill(&mut self, terms: &Terms<'_>, written: &mut dyn FnMut(u64)) -> Result<(), RunError> {
        let mut sum = 0;
        for pool in &mut self.pools {
            let missing = pool.missing_bytes();
            pool.fill(terms.interrupt, &mut |bytes| written(sum + bytes))?;
            sum += missing;
        }
        for image in &mut self.images {
            let missing = image.missing_bytes();
            image.fill(terms.interrupt, &mut |bytes| written(sum + bytes))?;
            sum += missing;
        }
        Ok(())
    }

    /// Records the end of a worker of this job: ranges it discarded do not count as written.
    pub(crate) fn forget(&mut self, job: &Job, files: &WorkerFiles) {
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

    /// Before a worker starts after others have ended: rewrites ranges that those discarded and
    /// that it or a later worker reads, before any of them writes there. Returns the bytes written.
    pub(crate) fn make_ready_again(
        &mut self,
        plan: &Plan,
        members: &[JobClone],
        starting: &JobClone,
        terms: &Terms<'_>,
    ) -> Result<u64, RunError> {
        let own = &plan.jobs[starting.job];
        if !self.is_stale || !own.io.engine.is_ceph() || own.workload.rw.has(Direction::Trim) {
            return Ok(0);
        }
        let to_come = |member: &&JobClone| {
            let job = &plan.jobs[member.job];
            let waits = job.schedule.wait_for.is_some();
            // A verifying job expects data of a job, and reports missing ones itself.
            (member.number >= starting.number || waits) && job.verify.is_none()
        };
        let mut is_refused = false;
        for member in members.iter().filter(to_come) {
            let job = &plan.jobs[member.job];
            let wanted = match job.io.engine {
                Engine::Rados => {
                    PoolUse::among(&mut self.pools, of(job)?)?.want(job, member.files(), terms)
                }
                Engine::Rbd => {
                    ImageUse::among(&mut self.images, of(job)?)?.want(job, member.files(), terms)
                }
                _ => Ok(()),
            };
            // Another job may write the range before a later worker starts, which fails otherwise.
            match wanted {
                Err(error) if member.number == starting.number => return Err(error),
                wanted => is_refused |= wanted.is_err(),
            }
        }
        let bytes = self.missing_bytes();
        self.fill(terms, &mut |_| {})?;
        self.is_stale = is_refused;
        Ok(bytes)
    }

    /// Removes all created objects by name.
    ///
    /// # Errors
    /// Objects that could not be removed stay recorded.
    pub(crate) fn remove(&mut self) -> Result<(), RunError> {
        let outcomes = self.pools.iter_mut().map(|pool| pool.remove(&self.wish));
        let outcome = outcomes.fold(Ok(()), Result::and);
        let closed = image::close(std::mem::take(&mut self.images), &self.wish);
        outcome.and(closed)
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        // Errors are ignored. Callers that report them have called `remove` before.
        let _ = self.remove();
    }
}

/// Whether discarded ranges stay unwritten. A trimwrite job writes each block again.
fn leaves_holes(job: &Job) -> bool {
    job.workload.rw.has(Direction::Trim) && job.workload.rw.mode != Mode::TrimWrite
}

/// Message that describes the target of the measurement.
fn announced(used: &CephUsed) -> String {
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
        uri(engine, &ceph, used.image.as_deref()),
        used.fsid,
        used.client
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_said_in_one_line() {
        let mut used = CephUsed {
            client: "librbd 1.16.0".to_owned(),
            fsid: "f".to_owned(),
            pool: "p".to_owned(),
            namespace: None,
            image: Some("i".to_owned()),
            object_bytes: None,
            cache: Some("writearound".to_owned()),
            uncopied_from: None,
        };
        assert_eq!(
            announced(&used),
            "rbd://p/i on Ceph cluster f, librbd 1.16.0; rbd_cache is on (writearound)"
        );
        used.cache = Some("off".to_owned());
        assert!(announced(&used).ends_with("rbd_cache is off"));
    }
}
