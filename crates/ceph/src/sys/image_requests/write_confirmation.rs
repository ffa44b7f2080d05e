//! Confirms that no write of an image was lost after the cache of librbd acknowledged it.
//!
//! librbd (`writearound`) keeps the error of such a write for the next flush, and returns it only
//! if that flush finds a write in flight. Therefore the last worker that ends writes one sector
//! again, as it is, and flushes the image at once, several times. A compare-and-write of the sector
//! follows, which goes past the cache, so that its own error is always seen.

use super::{CollectEnd, ImageRequests, LibraryPtr, Rbd};
use crate::sys::image_writers::{ImageWriter, LastWriter, SECTOR_BYTES};
use iosonde_engine::io::remote::LostWrites;
use iosonde_job::plan::ErrorPolicy;
use std::ffi::c_int;

/// Memory of the requests.
struct Sector {
    bytes: [u8; SECTOR_BYTES],
    mismatch_offset: u64,
}

/// A call of librbd that starts a request.
type StartRequest<'a> = &'a dyn Fn(&Rbd, LibraryPtr, LibraryPtr) -> c_int;

impl ImageRequests {
    /// Has [`ImageRequests::confirm_writes`] confirm the writes of this worker, whose job has this
    /// error policy.
    pub(crate) fn confirm_at_end(&mut self, policy: &ErrorPolicy) {
        self.writer = Some(ImageWriter::begin(self.image.writers(), policy));
    }

    /// Records an error of a flush, which may be that of a write of another worker.
    #[cold]
    pub(crate) fn note_flush_error(&mut self, errno: i32) {
        if let Some(writer) = &mut self.writer {
            writer.note_flush_error(errno);
        }
    }

    /// Fails if a write since the last confirmation was lost, or if writes fail now. Does nothing
    /// while other workers of this process write to the image: the last of them confirms all.
    ///
    /// # Panics
    /// If an I/O is in flight.
    pub(crate) fn confirm_writes(&mut self) -> Result<(), LostWrites> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        let confirmed = match writer.stop_writing() {
            // It exists until the end, so that no counted worker writes the sector meanwhile.
            Some(last_writer) => self.confirm_all(&last_writer),
            None => Ok(()),
        };
        self.writer = Some(writer);
        confirmed
    }

    fn confirm_all(&mut self, last_writer: &LastWriter<'_>) -> Result<(), LostWrites> {
        let found = last_writer.found_by_flush().map_or(Ok(()), Err);
        if found.is_err_and(|lost_writes| !lost_writes.is_ignored) {
            return found;
        }
        match last_writer.sector() {
            Some(offset) => self.confirm_by_rewrite(last_writer, offset).and(found),
            None => found,
        }
    }

    fn confirm_by_rewrite(
        &mut self,
        last_writer: &LastWriter<'_>,
        offset: u64,
    ) -> Result<(), LostWrites> {
        let sector = Box::into_raw(Box::new(Sector {
            bytes: [0; SECTOR_BYTES],
            mismatch_offset: 0,
        }));
        let Some(result) = self.rewrite(offset, sector) else {
            // librbd may use the memory until the process ends.
            return Err(last_writer.lost_writes(libc::ECANCELED));
        };
        // SAFETY: of `Box::into_raw`, and all requests have ended.
        drop(unsafe { Box::from_raw(sector) });
        match result {
            0.. => Ok(()),
            error => Err(last_writer.lost_writes(-error)),
        }
    }

    /// Writes a sector again. Returns the negated errno of the first error, or a number of bytes.
    /// `None`: a request was abandoned.
    fn rewrite(&mut self, offset: u64, sector: *mut Sector) -> Option<i32> {
        // SAFETY: `sector` is valid; this computes addresses.
        let (bytes, mismatch) =
            unsafe { (&raw mut (*sector).bytes, &raw mut (*sector).mismatch_offset) };
        let into = bytes.cast();
        let from = bytes.cast_const().cast();
        let read = self.finish(&[&|rbd, image, completion| {
            // SAFETY: the sector outlives the request: it is freed after all, or leaked.
            unsafe { (rbd.aio_read)(image, offset, SECTOR_BYTES, into, completion) }
        }])?;
        if read < 0 {
            return Some(read);
        }
        let write = |rbd: &Rbd, image: LibraryPtr, completion: LibraryPtr| {
            // SAFETY: the sector outlives the request, as for the read.
            unsafe { (rbd.aio_write)(image, offset, SECTOR_BYTES, from, completion) }
        };
        let flush = |rbd: &Rbd, image: LibraryPtr, completion: LibraryPtr| {
            // SAFETY: the call takes no buffer, only the completion.
            unsafe { (rbd.aio_flush)(image, completion) }
        };
        // librbd carries out writes of the same sector one after the other, so that the first
        // flushes find one in flight also if they are delayed.
        let pairs: [StartRequest; 8] = [
            &write, &flush, &write, &flush, &write, &flush, &write, &flush,
        ];
        let flushed = self.finish(&pairs)?;
        if flushed < 0 {
            return Some(flushed);
        }
        let confirmed = self.finish(&[&|rbd, image, completion| {
            let call = rbd.aio_compare_and_write;
            // SAFETY: as for the read, also for the offset of a difference.
            unsafe {
                call(
                    image,
                    offset,
                    SECTOR_BYTES,
                    from,
                    from,
                    completion,
                    mismatch,
                    0,
                )
            }
        }])?;
        // Another client wrote the sector.
        let differs = confirmed == -libc::EILSEQ;
        Some(if differs { 0 } else { confirmed })
    }

    /// Starts requests and waits for all. Returns the negated errno of one that failed, or the
    /// number of bytes. `None`: they were abandoned.
    fn finish(&mut self, calls: &[StartRequest]) -> Option<i32> {
        assert!(self.pending.is_idle(), "no other I/O is in flight");
        if !self.pending.refuse(0) {
            self.pending.begin(0, calls.len() as u32);
            for call in calls {
                self.request(0, 0, call);
            }
        }
        let mut done = Vec::new();
        match self.wait(1, None, &mut done) {
            CollectEnd::Collected => done.first().map(|completion| completion.result),
            CollectEnd::Abandoned => None,
        }
    }
}
