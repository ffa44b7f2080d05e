//! Jobs that open and close files during the run: `openfiles`, `unlink_each_loop`.

use super::Worker;
use crate::files::Access;
use crate::io::Backend;
use crate::worker::clock::Clock;
use iosonde_result::session::RunError;
use iosonde_workload::Io;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Opens the file of an I/O. Returns false if the I/O has to wait, or if the worker has failed.
    #[cold]
    pub(super) fn opens_file(&mut self, io: &Io) -> bool {
        let idle = self.in_flight == 0 && self.batch.is_empty();
        let pass = self.parts.generator.passes();
        let Some(keeper) = &mut self.parts.keeper else {
            return true;
        };
        let access = keeper.begin_pass(pass, idle).and_then(|begun| match begun {
            true => keeper.access(io.file),
            false => Ok(Access::Later),
        });
        match access {
            Ok(Access::Later) => false,
            Ok(Access::Ready) => true,
            Ok(Access::Opened) => match self.backend.set_files(keeper.handles()) {
                Ok(()) => true,
                Err(error) => self.cannot_open(&keeper_error(&error)),
            },
            Err(error) => self.cannot_open(&error),
        }
    }

    /// Drops the page cache of one file, or of all files, if the job asks for it.
    #[cold]
    pub(super) fn drop_cache(&mut self, file: Option<u32>) {
        let dropped = match (&mut self.parts.keeper, &self.parts.cache) {
            (Some(keeper), _) => keeper.drop_cache(file),
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
            .get_or_insert_with(|| crate::worker::io_failure::of_target(error));
        false
    }

    /// Releases the file of a slot.
    #[inline]
    pub(super) fn let_go(&mut self, index: u32) {
        if let Some(keeper) = &mut self.parts.keeper {
            keeper.let_go(self.parts.slab.slots[index as usize].file);
        }
    }
}

fn keeper_error(error: &std::io::Error) -> RunError {
    RunError::Unsupported {
        problem: format!("the engine cannot take over a file that was just opened: {error}"),
        remedy: "leave openfiles= and unlink_each_loop out, or use another ioengine".to_owned(),
    }
}
