//! What a session has in clusters: objects that it made, images that it holds open, and what of both is known to be written.

use super::backend::{of, uri, used};
use super::image::{self, ImageUse};
use super::pool::PoolUse;
use crate::interrupt::Interrupt;
use crate::local::{LayoutProgress, Member};
use crate::prepare::needs_data;
use iosonde_job::plan::{Engine, Job, ObjectNames, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::{CephUsed, Event};
use iosonde_result::session::RunError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What bounds the preparation of a run.
pub(crate) struct Terms<'a> {
    /// Images and objects that may be overwritten whatever they hold, by their URIs.
    pub(crate) consent: &'a [PathBuf],
    /// Whether nothing may be laid out.
    pub(crate) readonly: bool,
    /// The user's wish to stop.
    pub(crate) interrupt: &'a Arc<Interrupt>,
    /// Start of the run.
    pub(crate) begun: Instant,
}

impl Terms<'_> {
    /// Whether the owner of what this URI names agreed to lose it, or the job says so itself.
    pub(super) fn allow(&self, uri: &str, job: &Job) -> bool {
        job.files.allow_mounted_write
            || self
                .consent
                .iter()
                .any(|known| known == uri.as_ref() as &std::path::Path)
    }
}

/// All of it. What was made is removed by [`Estate::remove`], at the latest when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    pools: Vec<PoolUse>,
    images: Vec<ImageUse>,
    /// What the user has been told of.
    told: Vec<String>,
    /// The user's wish to stop.
    wish: Arc<Interrupt>,
}

impl Estate {
    /// Opens what the jobs of a plan use, refuses what must not be written, and writes what will be read.
    pub(crate) fn make_ready(
        &mut self,
        plan: &Plan,
        members: &[Member],
        terms: Terms<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        self.wish = terms.interrupt.clone();
        let mut tell = |message: String, observer: &mut dyn Observer| {
            if !self.told.contains(&message) {
                let at_ns = terms.begun.elapsed().as_nanos() as u64;
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
                    pool.note(job, member.files(), &terms)?;
                }
                Engine::Rbd => {
                    let ceph = of(job)?;
                    let image = ImageUse::among(&mut self.images, ceph)?;
                    image.note(job, member.files(), &terms)?;
                    tell(announced(&image.used()?), observer);
                }
                _ => {}
            }
        }
        let gaps = self.pools.iter().map(PoolUse::missing_bytes);
        let total: u64 = gaps
            .chain(self.images.iter().map(ImageUse::missing_bytes))
            .sum();
        if total == 0 {
            return Ok(());
        }
        let message = format!(
            "Laying out {} MiB in the Ceph cluster",
            total.div_ceil(1 << 20)
        );
        observer.event(&Event {
            at_ns: terms.begun.elapsed().as_nanos() as u64,
            message,
        });
        let waiting = |member: &Member| {
            let job = &plan.jobs[member.job];
            (member.job, job.io.engine.is_ceph() && needs_data(job))
        };
        let workers: Vec<_> = members.iter().map(waiting).collect();
        let mut progress = LayoutProgress::new(total, &workers, terms.begun);
        let mut sum = 0;
        // A study that knows enough of a rate means its cell, not what must be written before it: only the user ends that.
        let mut written = |bytes: u64| {
            let _ = progress.tell(bytes, observer);
        };
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
