//! Jobs that open and close files during the run: `openfiles`, `unlink_each_loop`.

use super::Worker;
use crate::files::FileAccess;
use crate::io::Backend;
use crate::worker::clock::Clock;
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use iosonde_workload::Io;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Opens the file of an I/O. Returns false if the I/O has to wait, or if the worker has failed.
    #[cold]
    pub(super) fn opens_file(&mut self, io: &Io) -> bool {
        let idle = self.in_flight == 0 && self.batch.is_empty();
        let pass = self.parts.generator.passes();
        let Some(open_file_cache) = &mut self.parts.open_file_cache else {
            return true;
        };
        let access = open_file_cache
            .begin_pass(pass, idle)
            .and_then(|begun| match begun {
                true => open_file_cache.access(io.file),
                false => Ok(FileAccess::Later),
            });
        match access {
            Ok(FileAccess::Later) => false,
            Ok(FileAccess::Ready) => true,
            Ok(FileAccess::Opened) => match self.backend.set_files(open_file_cache.handles()) {
                Ok(()) => true,
                Err(error) => self.cannot_open(&registration_error(&error)),
            },
            Err(error) => self.cannot_open(&error),
        }
    }

    /// Drops the page cache of one file, or of all files, if the job asks for it.
    #[cold]
    pub(super) fn drop_cache(&mut self, file: Option<u32>) {
        let dropped = match (&mut self.parts.open_file_cache, &self.parts.cache) {
            (Some(open_file_cache), _) => open_file_cache.drop_cache(file),
            (None, Some(cache)) => {
                self.backend.unmap_pages();
                cache.drop_cache(file)
            }
            (None, None) => Ok(()),
        };
        if let Err(error) = dropped {
            self.cannot_open(&error);
        }
    }

    pub(super) fn cannot_open(&mut self, error: &RunError) -> bool {
        self.failure
            .get_or_insert_with(|| crate::worker::io_failure::failure_from_error(error));
        false
    }

    /// Releases the file and the range of a slot.
    #[inline]
    pub(super) fn release_file_and_range(&mut self, index: u32) {
        if let Some(ranges) = &mut self.ranges {
            let slot = &self.parts.slab.slots[index as usize];
            ranges.remove(slot.file, slot.offset, slot.len);
        }
        if let Some(open_file_cache) = &mut self.parts.open_file_cache {
            open_file_cache.release_file(self.parts.slab.slots[index as usize].file);
        }
    }
}

fn registration_error(error: &std::io::Error) -> RunError {
    UnsupportedFeature::FileNotRegistered {
        failure: error.into(),
    }
    .into()
}
