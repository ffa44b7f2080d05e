//! An image of a session: its contents, its users, and its written ranges.

use crate::clients::open_image;
use crate::drain_deadline::{CHECK_INTERVAL, DrainDeadline};
use crate::fill::{self, Gap};
use crate::image_users::other_users;
use crate::job_options::changes_data;
use crate::open_handles::find_or_insert;
use crate::ranges::{forget, sorted, total, without};
use crate::rbd_backend::RbdBackend;
use crate::sys::image_writers::FlushError;
use crate::sys::rbd::Image;
use crate::uri::{target_path, target_uri};
use crate::used_client::describe_image;
use iosonde_engine::files::{FileUse, WorkerFiles, needs_data};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::remote_storage::PreparePolicy;
use iosonde_job::plan::{Ceph, Engine, Job};
use iosonde_machine::consent::Agreement;
use iosonde_machine::signature::{self, ReadAt};
use iosonde_result::run::CephUsed;
use iosonde_result::run_error::{
    CephProblem, FileHarm, ImageContent, RunError, TargetProblem, WriteRefusal,
};
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
pub(crate) struct ImageRanges {
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

impl ImageRanges {
    /// Finds the image of these options, or opens it.
    pub(crate) fn find_or_open<'a>(
        images: &'a mut Vec<ImageRanges>,
        ceph: &Ceph,
    ) -> Result<&'a mut ImageRanges, RunError> {
        let is_same = |known: &ImageRanges| {
            (
                &known.ceph.access,
                &known.ceph.pool,
                &known.ceph.namespace,
                &known.ceph.image,
            ) == (&ceph.access, &ceph.pool, &ceph.namespace, &ceph.image)
        };
        find_or_insert(images, is_same, || ImageRanges::open(ceph))
    }

    fn open(ceph: &Ceph) -> Result<ImageRanges, RunError> {
        let image = open_image(ceph, false)?;
        let whole = |image: &Image| image.written(0..image.size_bytes()?);
        let written = whole(&image).map_err(|error| error.on(&image_uri(ceph)))?;
        Ok(ImageRanges {
            ceph: ceph.clone(),
            image,
            is_writable: false,
            was_unwritten: written.is_empty(),
            changed: Vec::new(),
            written,
            missing: Vec::new(),
        })
    }

    /// Description of the image and its client, for the result.
    pub(crate) fn used(&self) -> Result<CephUsed, RunError> {
        describe_image(&self.ceph, &self.image)
    }

    /// Records how a worker uses the image. Refuses a use that needs consent.
    pub(crate) fn add_files(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        if changes_data(job) {
            self.refuse_snapshot(0)?;
            let agreement = policy.agreement(&image_uri(&self.ceph), job);
            if policy.keeps_data {
                self.refuse_data_loss(job, agreement)?;
            }
            self.make_writable(agreement)?;
            self.changed.extend(files.files.iter().map(region));
            self.changed = sorted(&self.changed);
        }
        self.require_data(job, files, policy)
    }

    /// Records missing ranges that a worker reads, and refuses to fill them without consent: an
    /// unwritten range of an image with foreign data is part of those data.
    pub(crate) fn require_data(
        &mut self,
        job: &Job,
        files: &WorkerFiles,
        policy: &PreparePolicy<'_>,
    ) -> Result<(), RunError> {
        if !needs_data(job) {
            return Ok(());
        }
        let uri = image_uri(&self.ceph);
        let agreement = policy.agreement(&uri, job);
        let mut missing = self.missing.clone();
        for file in &files.files {
            let gaps = without(&region(file), &self.written);
            let is_changed = |gap| without(gap, &self.changed).is_empty();
            let may_fill = self.was_unwritten
                || agreement >= Agreement::Overwrite
                || gaps.iter().all(is_changed);
            if !gaps.is_empty() {
                self.refuse_snapshot(total(&gaps))?;
            }
            if !gaps.is_empty() && (policy.readonly || !may_fill) {
                let cause = CephProblem::UnwrittenImageRange {
                    job: job.name.clone(),
                    missing_bytes: total(&gaps),
                    needed_bytes: file.region.size_bytes,
                    consent_name: uri.clone(),
                };
                return Err(RunError::unusable_target(uri, cause.into()));
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
    pub(crate) fn forget(&mut self, ceph: &Ceph, files: &WorkerFiles) {
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

    /// Refuses a job that would change the data of an image without consent.
    fn refuse_data_loss(&self, job: &Job, agreement: Agreement) -> Result<(), RunError> {
        if self.was_unwritten || agreement >= Agreement::Overwrite {
            return Ok(());
        }
        // A refusal for a known signature says more.
        self.refuse_obstacles(agreement)?;
        let uri = image_uri(&self.ceph);
        let cause = TargetProblem::ReadOnly {
            job: job.name.clone(),
            harm: FileHarm::Write,
            consent_name: uri.clone(),
        };
        Err(RunError::unusable_target(uri, cause))
    }

    /// Refuses to write a snapshot. No consent covers that.
    fn refuse_snapshot(&self, missing_bytes: u64) -> Result<(), RunError> {
        if !is_snapshot(&self.ceph) {
            return Ok(());
        }
        let cause = CephProblem::ReadOnlySnapshot { missing_bytes };
        Err(RunError::unusable_target(
            image_uri(&self.ceph),
            cause.into(),
        ))
    }

    fn refuse_obstacles(&self, agreement: Agreement) -> Result<(), RunError> {
        let uri = image_uri(&self.ceph);
        let (mut users, mut contents) = (Vec::new(), Vec::new());
        if agreement < Agreement::InUse {
            users = other_users(&self.image).map_err(|error| error.on(&uri))?;
        }
        if agreement < Agreement::Overwrite {
            contents = self.contents()?;
        }
        if users.is_empty() && contents.is_empty() {
            return Ok(());
        }
        let cause = WriteRefusal::ImageInUse {
            image: image_path(&self.ceph),
            users,
            contents,
            consent_name: uri.clone(),
        };
        Err(RunError::write_refused(uri, cause))
    }

    /// Signatures found on the image.
    fn contents(&self) -> Result<Vec<ImageContent>, RunError> {
        let size = self.image.size_bytes();
        let size = size.map_err(|error| error.on(&image_uri(&self.ceph)))?;
        Ok(match signature::probe(&self.image, size) {
            Ok(marks) => (marks.iter())
                .map(|mark| ImageContent::Signature {
                    description: mark.to_string(),
                })
                .collect(),
            Err(error) => vec![ImageContent::Unreadable {
                error: error.to_string(),
            }],
        })
    }

    /// Number of bytes to write before the next run.
    pub(crate) fn missing_bytes(&self) -> u64 {
        total(&self.missing)
    }

    /// Writes the missing ranges.
    pub(crate) fn fill(
        &mut self,
        interrupt: &Arc<Interrupt>,
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let gaps: Vec<Gap> = self.missing.iter().map(|gap| (0, gap.clone())).collect();
        let mut backend = RbdBackend::new(&self.image, fill::depth(), false).draining_on(interrupt);
        let uri = image_uri(&self.ceph);
        fill::fill_gaps(&mut backend, &gaps, interrupt, written)
            .map_err(|error| error.into_error(|_| uri.clone()))?;
        self.image.flush().map_err(|error| {
            // It may be that of writes of running jobs. The job that starts reports it too.
            self.image.writers().keep_flush_error(FlushError {
                errno: error.errno().unwrap_or(libc::EIO),
                is_counted: true,
            });
            error.on(&uri)
        })?;
        self.written.append(&mut self.missing);
        self.written = sorted(&self.written);
        Ok(())
    }
}

/// Closes images. A stop request ends the wait for the cluster: the error names those left open.
pub(crate) fn close_images(
    images: Vec<ImageRanges>,
    interrupt: &Arc<Interrupt>,
) -> Result<(), RunError> {
    let copy_options = |images: &[ImageRanges]| -> Vec<Ceph> {
        images.iter().map(|image| image.ceph.clone()).collect()
    };
    let (left, images): (Vec<ImageRanges>, Vec<ImageRanges>) = images
        .into_iter()
        .partition(|image| image.image.is_left_open());
    let mut left = copy_options(&left);
    let closing = copy_options(&images);
    if !images.is_empty() && !close_all(images, interrupt) {
        left.extend(closing);
    }
    match left.first() {
        None => Ok(()),
        Some(first) => {
            let cause = CephProblem::ImagesNotClosed {
                image: image_path(first),
            };
            let uris: Vec<String> = left.iter().map(image_uri).collect();
            Err(RunError::unusable_target(uris.join(", "), cause.into()))
        }
    }
}

/// Whether all images were closed before the wait expired after a stop request.
fn close_all(images: Vec<ImageRanges>, interrupt: &Arc<Interrupt>) -> bool {
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
    let mut deadline = DrainDeadline::until(interrupt);
    while let Err(RecvTimeoutError::Timeout) = all.recv_timeout(CHECK_INTERVAL) {
        if deadline.check_expired(false) {
            return false;
        }
    }
    thread.join().is_ok()
}

fn image_uri(ceph: &Ceph) -> String {
    target_uri(Engine::Rbd, ceph, ceph.image.as_deref())
}

/// Whether the image of these options is a snapshot.
fn is_snapshot(ceph: &Ceph) -> bool {
    let image = ceph.image.as_deref();
    image.is_some_and(|image| image.contains('@'))
}

/// The image as `rbd` names it.
fn image_path(ceph: &Ceph) -> String {
    target_path(ceph, ceph.image.as_deref())
}

/// Region of its image that a job uses.
fn region(file: &FileUse) -> Range<u64> {
    let start = file.region.start_bytes;
    start..start + file.region.size_bytes
}
