//! Workers that write to an image whose cache acknowledges writes.
//!
//! librbd returns the error of a lost write to any worker that flushes the image, and the last
//! worker that ends confirms the writes of all. A lost write is therefore no error of one job: the
//! error is ignored only if the jobs of all workers that wrote ignore it.

use iosonde_engine::error_policy::survives_write;
use iosonde_engine::io::remote::LostWrites;
use iosonde_job::plan::ErrorPolicy;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a sector.
pub(super) const SECTOR_BYTES: usize = 512;

/// Counts the workers that write to an image.
#[derive(Debug, Default)]
pub(crate) struct ImageWriters(Mutex<UnconfirmedWrites>);

/// Writes that no worker has confirmed yet.
#[derive(Debug, Default)]
struct UnconfirmedWrites {
    /// Number of workers that may write.
    writers: u32,
    /// Offset of a sector that one of them wrote.
    sector: Option<u64>,
    /// Different error policies of the jobs that wrote.
    policies: Vec<ErrorPolicy>,
    /// Different errors of flushes that ended no worker.
    flush_errors: Vec<FlushError>,
}

/// An error of a flush that ended no worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushError {
    /// errno of the error.
    pub(crate) errno: i32,
    /// Whether the result of a job holds it already.
    pub(crate) is_counted: bool,
}

/// A worker that writes to an image, counted from its start to its confirmation.
#[derive(Debug)]
pub(super) struct ImageWriter {
    image_writers: Arc<ImageWriters>,
    policy: ErrorPolicy,
    is_counted: bool,
    /// Whether it wrote since its last confirmation. If so, it is counted.
    has_written: bool,
    /// Offset of the last sector that it wrote wholly.
    sector: Option<u64>,
}

/// Writes of all workers of an image, for the last of them to confirm. No counted worker begins to
/// write until this is dropped.
#[derive(Debug)]
pub(super) struct LastWriter<'a> {
    writes: UnconfirmedWrites,
    _image_writers: MutexGuard<'a, UnconfirmedWrites>,
}

/// Appends a value that the list does not hold.
fn insert_new<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}

/// Offset of the first sector that lies wholly within a write.
fn whole_sector(offset: u64, bytes: usize) -> Option<u64> {
    let first = offset.next_multiple_of(SECTOR_BYTES as u64);
    (first + SECTOR_BYTES as u64 <= offset + bytes as u64).then_some(first)
}

impl ImageWriters {
    fn lock(&self) -> MutexGuard<'_, UnconfirmedWrites> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an error of a flush that ends no worker, if a worker is counted.
    pub(crate) fn keep_flush_error(&self, error: FlushError) {
        let mut unconfirmed = self.lock();
        if unconfirmed.writers > 0 {
            insert_new(&mut unconfirmed.flush_errors, error);
        }
    }
}

impl LastWriter<'_> {
    /// Offset of a sector that a worker wrote.
    pub(super) fn sector(&self) -> Option<u64> {
        self.writes.sector
    }

    /// Describes writes that were lost with this error. No job ignores the error of writes of which
    /// the job is not known, such as those of a layout.
    pub(super) fn lost_writes(&self, errno: i32) -> LostWrites {
        let policies = &self.writes.policies;
        let ignores = |policy| survives_write(policy, errno);
        let is_ignored = !policies.is_empty() && policies.iter().all(ignores);
        LostWrites { errno, is_ignored }
    }

    /// Lost writes of which a flush returned the error: first those that a job does not ignore,
    /// else ignored ones that no result holds yet.
    pub(super) fn found_by_flush(&self) -> Option<LostWrites> {
        let errors = &self.writes.flush_errors;
        let mut all = errors.iter().map(|error| self.lost_writes(error.errno));
        let uncounted = errors.iter().find(|error| !error.is_counted);
        all.find(|lost_writes| !lost_writes.is_ignored)
            .or_else(|| uncounted.map(|error| self.lost_writes(error.errno)))
    }
}

impl ImageWriter {
    /// Counts a worker. Waits for a confirmation by another one, and delays those to come until
    /// this worker stops.
    pub(super) fn begin(image_writers: &Arc<ImageWriters>, policy: &ErrorPolicy) -> ImageWriter {
        let mut writer = ImageWriter {
            image_writers: image_writers.clone(),
            policy: policy.clone(),
            is_counted: false,
            has_written: false,
            sector: None,
        };
        writer.count();
        writer
    }

    fn count(&mut self) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.image_writers.lock().writers += 1;
        }
    }

    /// Records a write. The first one after a confirmation counts the worker again.
    pub(super) fn note_write(&mut self, offset: u64, bytes: usize) {
        if !self.has_written {
            self.note_first_write();
        }
        self.sector = whole_sector(offset, bytes).or(self.sector);
    }

    #[cold]
    fn note_first_write(&mut self) {
        self.count();
        let mut unconfirmed = self.image_writers.lock();
        insert_new(&mut unconfirmed.policies, self.policy.clone());
        self.has_written = true;
    }

    /// Records an error of a flush, unless it ends this worker.
    pub(super) fn note_flush_error(&mut self, errno: i32) {
        if survives_write(&self.policy, errno) {
            self.count();
            let error = FlushError {
                errno,
                is_counted: true,
            };
            let mut unconfirmed = self.image_writers.lock();
            insert_new(&mut unconfirmed.flush_errors, error);
            insert_new(&mut unconfirmed.policies, self.policy.clone());
        }
    }

    /// Ends the writes of this worker. `None` while other workers write: the last of them confirms
    /// all writes.
    pub(super) fn stop_writing(&mut self) -> Option<LastWriter<'_>> {
        let sector = self.sector.take();
        self.has_written = false;
        if !std::mem::take(&mut self.is_counted) {
            return None;
        }
        let mut unconfirmed = self.image_writers.lock();
        assert!(unconfirmed.writers > 0, "this worker is counted");
        unconfirmed.writers -= 1;
        unconfirmed.sector = sector.or(unconfirmed.sector);
        if unconfirmed.writers > 0 {
            return None;
        }
        Some(LastWriter {
            writes: std::mem::take(&mut *unconfirmed),
            _image_writers: unconfirmed,
        })
    }
}

impl Drop for ImageWriter {
    fn drop(&mut self) {
        drop(self.stop_writing());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: u64 = SECTOR_BYTES as u64;

    /// A job that ignores these errors of writes.
    fn ignoring(errors: &[i32]) -> ErrorPolicy {
        ErrorPolicy {
            ignore: [Vec::new(), errors.to_vec(), Vec::new()],
            ..ErrorPolicy::default()
        }
    }

    fn begin(image: &Arc<ImageWriters>) -> ImageWriter {
        ImageWriter::begin(image, &ErrorPolicy::default())
    }

    /// The error of a flush, which no result holds.
    fn uncounted(errno: i32) -> FlushError {
        FlushError {
            errno,
            is_counted: false,
        }
    }

    /// Whether a writer that ends confirms, and the sector that it rewrites.
    fn stop(writer: &mut ImageWriter) -> (bool, Option<u64>) {
        let last_writer = writer.stop_writing();
        let sector = last_writer.as_ref().and_then(LastWriter::sector);
        (last_writer.is_some(), sector)
    }

    #[test]
    fn sector_lies_wholly_within_write() {
        assert_eq!(whole_sector(4096, 4096), Some(4096));
        assert_eq!(whole_sector(1000, 1048), Some(1024));
        assert_eq!(whole_sector(1000, 535), None);
        assert_eq!(whole_sector(0, 511), None);
    }

    #[test]
    fn short_last_write_keeps_the_sector_of_an_earlier_one() {
        let image = Arc::default();
        let mut writer = begin(&image);
        writer.note_write(4096, 512);
        writer.note_write(8192, 512);
        writer.note_write(9000, 100);
        assert_eq!(stop(&mut writer), (true, Some(8192)));
        let mut writers = [begin(&image), begin(&image)];
        writers[0].note_write(4096, 512);
        writers[1].note_write(9000, 100);
        assert_eq!(stop(&mut writers[0]), (false, None));
        assert_eq!(stop(&mut writers[1]), (true, Some(4096)));
    }

    #[test]
    fn confirmation_excludes_counted_workers_until_it_ends() {
        let image = Arc::<ImageWriters>::default();
        let mut writer = begin(&image);
        let last_writer = writer.stop_writing().expect("alone");
        assert!(image.0.try_lock().is_err(), "another worker would wait");
        drop(last_writer);
        assert!(image.0.try_lock().is_ok());
    }

    #[test]
    fn writers_of_one_image_are_confirmed_by_the_last() {
        let image = Arc::default();
        let mut writers = [begin(&image), begin(&image), begin(&image)];
        writers[0].note_write(0, 4096);
        writers[1].note_write(4096, 4096);
        assert_eq!(stop(&mut writers[0]), (false, None));
        assert_eq!(stop(&mut writers[0]), (false, None), "it is counted once");
        assert_eq!(stop(&mut writers[1]), (false, None));
        let confirms = (true, Some(4096));
        assert_eq!(
            stop(&mut writers[2]),
            confirms,
            "a sector of another worker"
        );
    }

    #[test]
    fn writer_after_a_stonewall_confirms_only_its_own_writes() {
        let image = Arc::default();
        let mut first = ImageWriter::begin(&image, &ErrorPolicy::default());
        first.note_write(0, 4096);
        assert_eq!(stop(&mut first), (true, Some(0)));
        let mut later = ImageWriter::begin(&image, &ignoring(&[libc::ENOSPC]));
        later.note_write(0, 100);
        let last_writer = later.stop_writing().expect("no other worker writes");
        assert_eq!(last_writer.sector(), None, "it wrote no whole sector");
        assert!(last_writer.lost_writes(libc::ENOSPC).is_ignored);
        assert!(!last_writer.lost_writes(libc::EIO).is_ignored);
    }

    #[test]
    fn writer_that_writes_nothing_does_not_decide_what_is_ignored() {
        let image = Arc::default();
        let lists: [&[i32]; 2] = [&[libc::ENOSPC], &[]];
        for (ignored, of_idle) in [(lists[0], lists[1]), (lists[1], lists[0])] {
            let mut writer = ImageWriter::begin(&image, &ignoring(ignored));
            let mut idle = ImageWriter::begin(&image, &ignoring(of_idle));
            writer.note_write(4096, 4096);
            assert_eq!(stop(&mut writer), (false, None), "the idle worker confirms");
            let last_writer = idle.stop_writing().expect("the last writer");
            assert_eq!(last_writer.sector(), Some(4096));
            let is_ignored = last_writer.lost_writes(libc::ENOSPC).is_ignored;
            assert_eq!(is_ignored, !ignored.is_empty(), "as the job that wrote");
        }
    }

    #[test]
    fn writer_that_never_starts_leaves_the_confirmation_to_others() {
        let image = Arc::default();
        let (mut writer, unstarted) = (begin(&image), begin(&image));
        writer.note_write(8192, 4096);
        drop(unstarted);
        assert_eq!(stop(&mut writer), (true, Some(8192)));
        // The next run does not wait for it either.
        let mut unstarted = begin(&image);
        unstarted.note_write(0, 4096);
        drop(unstarted);
        assert_eq!(stop(&mut begin(&image)), (true, None));
    }

    #[test]
    fn writer_after_its_confirmation_is_confirmed_again() {
        let image = Arc::default();
        let mut writer = begin(&image);
        for pass in 1..=3 {
            writer.note_write(pass * SECTOR, SECTOR_BYTES);
            writer.note_write(10 * pass * SECTOR, SECTOR_BYTES);
            assert_eq!(stop(&mut writer), (true, Some(10 * pass * SECTOR)));
        }
        assert_eq!(stop(&mut writer), (false, None), "no write since");
        // Counted again by its write, it confirms those of a worker that ends before it.
        writer.note_write(0, 4096);
        assert_eq!(stop(&mut begin(&image)), (false, None));
        assert_eq!(stop(&mut writer), (true, Some(0)));
    }

    #[test]
    fn lost_writes_are_ignored_if_all_jobs_ignore_them() {
        let image = Arc::default();
        let ignored: [&[i32]; 2] = [&[libc::ENOSPC, libc::EIO], &[libc::ENOSPC]];
        let mut writers = ignored.map(|errors| ImageWriter::begin(&image, &ignoring(errors)));
        for writer in &mut writers {
            writer.note_write(0, 4096);
        }
        assert_eq!(stop(&mut writers[1]), (false, None));
        let last_writer = writers[0].stop_writing().expect("the last writer");
        assert!(last_writer.lost_writes(libc::ENOSPC).is_ignored);
        assert!(!last_writer.lost_writes(libc::EIO).is_ignored);
    }

    #[test]
    fn flush_error_is_kept_unless_all_jobs_ignore_it() {
        let image = Arc::default();
        let ignores = ignoring(&[libc::ENOSPC, libc::EIO]);
        let mut ignoring_writer = ImageWriter::begin(&image, &ignores);
        let mut last = ImageWriter::begin(&image, &ignoring(&[libc::EIO]));
        ignoring_writer.note_write(0, 4096);
        last.note_write(4096, 4096);
        for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT] {
            ignoring_writer.note_flush_error(errno);
        }
        assert_eq!(stop(&mut ignoring_writer), (false, None));
        let expected = LostWrites {
            errno: libc::ENOSPC,
            is_ignored: false,
        };
        let lost_writes = last
            .stop_writing()
            .expect("the last writer")
            .found_by_flush();
        assert_eq!(lost_writes, Some(expected));
        ignoring_writer.note_write(0, 4096);
        ignoring_writer.note_flush_error(libc::ENOSPC);
        let lost_writes = ignoring_writer
            .stop_writing()
            .expect("alone")
            .found_by_flush();
        assert_eq!(lost_writes, None, "all jobs ignore it, and one counted it");
    }

    #[test]
    fn flush_error_that_ends_its_worker_is_not_kept() {
        let image = Arc::default();
        let mut writer = ImageWriter::begin(&image, &ignoring(&[libc::EIO]));
        writer.note_write(0, 4096);
        writer.note_flush_error(libc::ENOSPC);
        assert_eq!(writer.stop_writing().expect("alone").found_by_flush(), None);
    }

    #[test]
    fn flush_error_after_a_confirmation_counts_its_worker_again() {
        let image = Arc::default();
        let mut writer = ImageWriter::begin(&image, &ignoring(&[libc::ENOSPC]));
        assert_eq!(stop(&mut writer), (true, None));
        assert_eq!(stop(&mut writer), (false, None), "no write since");
        writer.note_flush_error(libc::ENOSPC);
        let last_writer = writer.stop_writing().expect("it is counted again");
        assert_eq!(last_writer.found_by_flush(), None, "its job ignores it");
    }

    #[test]
    fn error_of_an_opening_flush_is_counted_if_all_jobs_ignore_it() {
        let image = Arc::<ImageWriters>::default();
        let mut writer = ImageWriter::begin(&image, &ignoring(&[libc::ENOSPC]));
        writer.note_write(0, 4096);
        image.keep_flush_error(uncounted(libc::ENOSPC));
        let expected = |errno: i32, is_ignored: bool| Some(LostWrites { errno, is_ignored });
        let last_writer = writer.stop_writing().expect("alone");
        assert_eq!(last_writer.found_by_flush(), expected(libc::ENOSPC, true));
        drop(last_writer);
        writer.note_write(0, 4096);
        image.keep_flush_error(uncounted(libc::ENOSPC));
        image.keep_flush_error(uncounted(libc::EIO));
        let last_writer = writer.stop_writing().expect("alone");
        let found = last_writer.found_by_flush();
        assert_eq!(
            found,
            expected(libc::EIO, false),
            "it precedes ignored ones"
        );
    }

    #[test]
    fn flush_error_of_an_image_without_writers_is_dropped() {
        let image = Arc::<ImageWriters>::default();
        image.keep_flush_error(uncounted(libc::ENOSPC));
        let mut writer = begin(&image);
        assert_eq!(writer.stop_writing().expect("alone").found_by_flush(), None);
        writer.note_write(0, 4096);
        image.keep_flush_error(uncounted(libc::ENOSPC));
        assert!(
            writer
                .stop_writing()
                .expect("alone")
                .found_by_flush()
                .is_some()
        );
    }

    #[test]
    fn error_of_writes_without_a_known_job_is_not_ignored() {
        let image = Arc::default();
        let mut idle_writer = ImageWriter::begin(&image, &ignoring(&[libc::ENOSPC]));
        image.keep_flush_error(uncounted(libc::ENOSPC));
        let last_writer = idle_writer.stop_writing().expect("alone");
        let lost_writes = last_writer.found_by_flush().expect("an error");
        assert!(!lost_writes.is_ignored);
    }
}
