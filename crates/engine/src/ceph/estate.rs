//! What a session has in clusters: objects that it made, images that it holds open, and what of both is known to be written.

use super::backend::{of, uri, used};
use super::image::{self, ImageUse};
use super::pool::PoolUse;
use crate::files::{WorkerFiles, needs_data};
use crate::interrupt::Interrupt;
use crate::runner::{LayoutProgress, Member};
use iosonde_job::plan::{Direction, Engine, Job, Mode, ObjectNames, Plan};
use iosonde_machine::consent::{Agreement, Consent};
use iosonde_result::observer::Observer;
use iosonde_result::run::{CephUsed, Event};
use iosonde_result::session::RunError;
use std::sync::Arc;
use std::time::Instant;

/// What bounds the preparation of a run.
pub(crate) struct Terms<'a> {
    /// Images and objects that may be overwritten whatever they hold, by their URIs.
    pub(crate) consent: &'a Consent,
    /// Whether nothing may be laid out.
    pub(crate) readonly: bool,
    /// The user's wish to stop.
    pub(crate) interrupt: &'a Arc<Interrupt>,
}

impl Terms<'_> {
    /// How far the owner of what this URI names has agreed to lose it. A study sets `allow_mounted_write` of its jobs where it may
    /// overwrite what it found; only where jobs speak for their users, it is consent to write what is in use.
    pub(super) fn agreement(&self, uri: &str, job: &Job) -> Agreement {
        let of_job = match (job.files.allow_mounted_write, self.consent.by_jobs) {
            (true, true) => Agreement::Mounted,
            (true, false) => Agreement::Overwrite,
            (false, _) => Agreement::None,
        };
        of_job.max(self.consent.agreement_on_uri(uri))
    }
}

/// All of it. What was made is removed by [`Estate::remove`], at the latest when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    pools: Vec<PoolUse>,
    images: Vec<ImageUse>,
    /// What the user has been told of.
    told: Vec<String>,
    /// Something was discarded that may have to be written again before it is read.
    is_stale: bool,
    /// The user's wish to stop.
    wish: Arc<Interrupt>,
}

impl Estate {
    /// Opens what the jobs of a plan use, refuses what must not be written, and writes what will be read.
    pub(crate) fn make_ready(
        &mut self,
        plan: &Plan,
        members: &[Member],
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
        let waiting = |member: &Member| {
            let job = &plan.jobs[member.job];
            (member.job, job.io.engine.is_ceph() && needs_data(job))
        };
        let workers: Vec<_> = members.iter().map(waiting).collect();
        let mut progress = LayoutProgress::new(total, &workers, begun);
        // A study that knows enough of a rate means its cell, not what must be written before it: only the user ends that.
        self.fill(terms, &mut |bytes| {
            let _ = progress.tell(bytes, observer);
        })
    }

    /// Bytes that must be written before the next run.
    fn missing_bytes(&self) -> u64 {
        let pools = self.pools.iter().map(PoolUse::missing_bytes);
        let images = self.images.iter().map(ImageUse::missing_bytes);
        pools.chain(images).sum()
    }

    /// Writes them. `written` is called with the bytes so far.
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

    /// A worker of this job has ended: what it has discarded is not known to be written any more.
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

    /// A worker is about to start after others have ended: writes again what those have discarded of what it or one after it
    /// reads, before any of them writes something of its own there. Returns the bytes that were written.
    pub(crate) fn make_ready_again(
        &mut self,
        plan: &Plan,
        members: &[Member],
        starting: &Member,
        terms: &Terms<'_>,
    ) -> Result<u64, RunError> {
        let own = &plan.jobs[starting.job];
        if !self.is_stale || !own.io.engine.is_ceph() || own.workload.rw.has(Direction::Trim) {
            return Ok(0);
        }
        let to_come = |member: &&Member| {
            let job = &plan.jobs[member.job];
            let waits = job.schedule.wait_for.is_some();
            // Who verifies looks for what a job has written, and sees what was not.
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
            // One that comes later may find it written by then; else it is told when it starts.
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

    /// Removes all objects that were made, by their names.
    ///
    /// # Errors
    /// Those that could not be removed stay noted.
    pub(crate) fn remove(&mut self) -> Result<(), RunError> {
        let outcomes = self.pools.iter_mut().map(|pool| pool.remove(&self.wish));
        let outcome = outcomes.fold(Ok(()), Result::and);
        let closed = image::close(std::mem::take(&mut self.images), &self.wish);
        outcome.and(closed)
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        // Whoever wants to know what is left behind has called it before.
        let _ = self.remove();
    }
}

/// Whether what a job discards may stay discarded: who trims and writes by turns writes each block again.
fn leaves_holes(job: &Job) -> bool {
    job.workload.rw.has(Direction::Trim) && job.workload.rw.mode != Mode::TrimWrite
}

/// The line that says what is measured.
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
