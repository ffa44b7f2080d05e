//! An image of a session: its contents, its users, and its written ranges.

use super::Image;
use super::backend::{changes, open_image, uri, used_image};
use super::estate::Terms;
use super::fill::{self, Gap};
use super::image_users::other_users;
use super::ranges::{forget, sorted, total, without};
use crate::files::{FileUse, WorkerFiles, needs_data};
use crate::interrupt::Interrupt;
use crate::io::rbd_backend::Rbd;
use crate::sys::patience::{LOOK, Patience};
use iosonde_job::plan::{Ceph, Engine, Job};
use iosonde_machine::consent::Agreement;
use iosonde_machine::signature::{self, ReadAt};
use iosonde_result::run::CephUsed;
use iosonde_result::session::RunError;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};

impl ReadAt for Image {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read(buffer, offset)
            .map_err(|error| io::Error::from_raw_os_error(error.errno().unwrap_or(libc::EIO)))
    }
}

/// An image and what the session knows about it.
#[derive(Debug)]
pub(super) struct ImageUse {
    ceph: Ceph,
    /// Opened read-only. Reopened for writing when a job writes.
    image: Image,
    is_writable: bool,
    /// Ranges written at the first check or filled since, and not discarded by jobs. Writes of jobs
    /// do not count, because the blocks that they left out are unknown.
    written: Vec<Range<u64>>,
    /// Whether the image was never written before the session.
    was_unwritten: bool,
    /// Regions that jobs write or discard.
    changed: Vec<Range<u64>>,
    missing: Vec<Range<u64>>,
}

impl ImageUse {
    /// Finds the image of these options, or opens it.
    pub(super) fn among<'a>(
        images: &'a mut Vec<ImageUse>,
        ceph: &Ceph,
    ) -> Result<&'a mut ImageUse, RunError> {
        let is_same = |known: &ImageUse| {
            (
                &known.ceph.access,
                &known.ceph.pool,
                &known.ceph.namespace,
                &known.ceph.image,
            ) == (&ceph.access, &ceph.pool, &ceph.namespace, &ceph.image)
        };
        let index = match images.iter().position(is_same) {
            Some(index) => index,
            None => {
                let image = open_image(ceph, false)?;
                let whole = |image: &Image| image.written(0..image.size_bytes()?);
                let written = whole(&image).map_err(|error| error.on(&name(ceph)))?;
                images.push(ImageUse {
                    ceph: ceph.clone(),
                    image,
                    is_writable: false,
                    was_unwritten: written.is_empty(),
                    changed: Vec::new(),
                    written,
                    missing: Vec::new(),
                });
                images.len() - 1
            }
        };
        Ok(&mut images[index])
    }

    /// Description of the image and its client, for the result.
    pub(super) fn used(&self) -> Result<CephUsed, RunError> {
        used_image(&self.ceph, &self.image)
    }

    /// Records how a worker uses the image. Refuses a use that needs consent.
    pub(super) fn note(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        terms: &Terms<'_>,
    ) -> Result<(), RunError> {
        if changes(job) {
            self.make_writable(terms.agreement(&name(&self.ceph), job))?;
            self.changed.extend(files.files.iter().map(region));
            self.changed = sorted(&self.changed);
        }
        self.want(job, files, terms)
    }

    /// Records missing ranges that a worker reads, and refuses to fill them without consent: an
    /// unwritten range of an image with foreign data is part of those data.
    pub(super) fn want(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        terms: &Terms<'_>,
    ) -> Result<(), RunError> {
        if !needs_data(job) {
            return Ok(());
        }
        let uri = name(&self.ceph);
        let agreement = terms.agreement(&uri, job);
        let mut missing = self.missing.clone();
        for file in &files.files {
            let gaps = without(&region(file), &self.written);
            let is_changed = |gap| without(gap, &self.changed).is_empty();
            let may_fill = self.was_unwritten
                || agreement >= Agreement::Overwrite
                || gaps.iter().all(is_changed);
            if !gaps.is_empty() && (terms.readonly || !may_fill) {
                return Err(RunError::Target {
                    problem: format!(
                        "{} of the {} bytes that job {} reads were never written, or discarded: reading them would measure nothing",
                        total(&gaps),
                        file.region.size_bytes,
                        job.name
                    ),
                    remedy: format!(
                        "choose a part that is written (offset=, size=), or consent to have the rest filled: \
                         --allow-overwrite={uri} (in a job: allow_mounted_write=1)"
                    ),
                    path: uri,
                });
            }
            for gap in gaps {
                missing.extend(without(&gap, &sorted(&missing)));
            }
        }
        if !missing.is_empty() {
            self.make_writable(agreement)?;
        }
        self.missing = missing;
        Ok(())
    }

    /// Records that a job may have discarded data of these files.
    pub(super) fn forget(&mut self, ceph: &Ceph, files: &WorkerFiles) {
        let is_same = (&self.ceph.pool, &self.ceph.namespace, &self.ceph.image)
            == (&ceph.pool, &ceph.namespace, &ceph.image);
        for file in files.files.iter().filter(|_| is_same) {
            forget(&mut self.written, &region(file));
        }
    }

    /// Reopens the image for writing, unless the consent does not cover that.
    fn make_writable(&mut self, agreement: Agreement) -> Result<(), RunError> {
        self.refuse_obstacles(agreement)?;
        if !self.is_writable {
            self.image = open_image(&self.ceph, true)?;
            self.is_writable = true;
            // Checked again: of two clients that open it concurrently, each now sees the other.
            self.refuse_obstacles(agreement)?;
        }
        Ok(())
    }

    fn refuse_obstacles(&self, agreement: Agreement) -> Result<(), RunError> {
        let uri = name(&self.ceph);
        let (mut found, mut remedy) = (Vec::new(), None);
        if agreement < Agreement::InUse {
            let users = other_users(&self.image).map_err(|error| error.on(&uri))?;
            found.extend(users.iter().map(ToString::to_string));
            let image = uri.trim_start_matches("rbd://");
            remedy = (!found.is_empty()).then(|| {
                format!(
                    "end what uses it: `rbd status {image}` lists the clients, `rbd lock ls {image}` the locks; a client that \
                     was killed is listed for 30 s"
                )
            });
        }
        if agreement < Agreement::Overwrite {
            found.extend(self.contents()?);
        }
        match found.is_empty() {
            true => Ok(()),
            false => Err(RunError::Refused {
                found: found.join("; "),
                remedy: remedy.unwrap_or_else(|| {
                    format!(
                        "to destroy what is on it, say so: --allow-overwrite={uri} (in a job: allow_mounted_write=1)"
                    )
                }),
                device: uri,
            }),
        }
    }

    /// Signatures found on the image, as texts.
    fn contents(&self) -> Result<Vec<String>, RunError> {
        let size = self.image.size_bytes();
        let size = size.map_err(|error| error.on(&name(&self.ceph)))?;
        Ok(match signature::probe(&self.image, size) {
            Ok(marks) => (marks.iter())
                .map(|mark| format!("it carries {mark}"))
                .collect(),
            Err(error) => vec![format!(
                "it cannot be read to see whether it carries data: {error}"
            )],
        })
    }

    /// Number of bytes to write before the next run.
    pub(super) fn missing_bytes(&self) -> u64 {
        total(&self.missing)
    }

    /// Writes the missing ranges.
    pub(super) fn fill(
        &mut self,
        wish: &Arc<Interrupt>,
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let gaps: Vec<Gap> = self.missing.iter().map(|gap| (0, gap.clone())).collect();
        let mut backend = Rbd::new(&self.image, fill::depth(), false).heeding(wish);
        let uri = name(&self.ceph);
        fill::fill(&mut backend, &gaps, wish, written)
            .map_err(|error| error.into_error(|_| uri.clone()))?;
        self.image.flush().map_err(|error| error.on(&uri))?;
        self.written.append(&mut self.missing);
        self.written = sorted(&self.written);
        Ok(())
    }
}

/// Closes images. A stop request ends the wait for the cluster: the error names those left open.
pub(super) fn close(images: Vec<ImageUse>, wish: &Arc<Interrupt>) -> Result<(), RunError> {
    let names = |images: &[ImageUse]| -> Vec<String> {
        images.iter().map(|image| name(&image.ceph)).collect()
    };
    let (left, images): (Vec<ImageUse>, Vec<ImageUse>) = images
        .into_iter()
        .partition(|image| image.image.is_left_open());
    let mut left = names(&left);
    let closing = names(&images);
    if !images.is_empty() && !close_all(images, wish) {
        left.extend(closing);
    }
    match left.first() {
        None => Ok(()),
        Some(first) => Err(RunError::Target {
            path: left.join(", "),
            problem: "the cluster does not answer, so that the image could not be closed; what was in flight may be written or not"
                .to_owned(),
            remedy: format!(
                "nothing has to be done: the cluster forgets this client within 30 s of answering again; until then \
                 `rbd status {}` lists it as a watcher",
                first.trim_start_matches("rbd://")
            ),
        }),
    }
}

/// Whether all images were closed before the wait expired after a stop request.
fn close_all(images: Vec<ImageUse>, wish: &Arc<Interrupt>) -> bool {
    let (closed, all) = channel::<()>();
    let work = move || {
        drop(images);
        drop(closed);
    };
    let Ok(thread) = std::thread::Builder::new()
        .name("close".to_owned())
        .spawn(work)
    else {
        // A failed spawn drops the closure, which closes the images here.
        return true;
    };
    let mut patience = Patience::until(wish);
    while let Err(RecvTimeoutError::Timeout) = all.recv_timeout(LOOK) {
        if patience.is_over(false) {
            return false;
        }
    }
    thread.join().is_ok()
}

fn name(ceph: &Ceph) -> String {
    uri(Engine::Rbd, ceph, ceph.image.as_deref())
}

/// Region of its image that a job uses.
fn region(file: &FileUse) -> Range<u64> {
    let start = file.region.start_bytes;
    start..start + file.region.size_bytes
}
