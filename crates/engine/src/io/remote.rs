//! Backend of remote storage: passes batches to a library in user space.

use super::{Backend, Completion, CompletionCallback, FileHandle, Slab};
use std::io;
use std::sync::Weak;

/// Writes that storage acknowledged and lost: those of any job that wrote the same storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostWrites {
    /// errno of the error.
    pub errno: i32,
    /// Whether all these jobs ignore the error.
    pub is_ignored: bool,
}

/// I/O of one worker on remote storage. The engine makes one virtual call per batch.
///
/// It marks the slots in flight, like the backends of the kernel
/// ([`IoMemory::begin_io`](crate::sys::memory::IoMemory::begin_io)), so that a buffer that a
/// library may access has no reference. Dropping it waits for I/Os in flight. Buffers of I/Os that
/// cannot be cancelled are replaced
/// ([`IoMemory::replace_buffers`](crate::sys::memory::IoMemory::replace_buffers)). The buffers
/// outlive it.
pub trait RemoteIo: Send {
    /// Submits a batch. Returns the number of slots taken from the front: fewer if a queue is full.
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize>;

    /// Appends completions to `done`, which has room for all slots. Returns once `done` holds `min`
    /// or after `timeout_ns`. With `min` 0 or a callback it does not wait.
    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()>;

    /// Checks I/Os in flight for timeouts, if a callback is set: several times a second.
    fn check_timeouts(&mut self) {}

    /// Checks whether writes still succeed, with no I/O in flight, after all files were flushed or
    /// the worker failed.
    ///
    /// # Errors
    /// Lost writes, also those of other jobs.
    fn confirm_writes(&mut self) -> Result<(), LostWrites> {
        Ok(())
    }

    /// Has a thread of the library invoke `callback` on completions, from now on. Returns `false`
    /// if that is not possible: [`RemoteIo::reap`] waits then.
    fn set_callback(&mut self, _callback: Weak<dyn CompletionCallback>) -> bool {
        false
    }
}

/// Backend on a [`RemoteIo`].
pub(crate) struct RemoteBackend {
    io: Box<dyn RemoteIo>,
    has_callback: bool,
}

impl RemoteBackend {
    /// Creates a backend.
    pub(crate) fn new(io: Box<dyn RemoteIo>) -> RemoteBackend {
        RemoteBackend {
            io,
            has_callback: false,
        }
    }

    /// See [`RemoteIo::set_callback`].
    pub(crate) fn set_callback(&mut self, callback: Weak<dyn CompletionCallback>) -> bool {
        self.has_callback = self.io.set_callback(callback);
        self.has_callback
    }
}

impl Backend for RemoteBackend {
    const SYNCHRONOUS: bool = false;
    const PUBLISHES_IN_FLIGHT: bool = true;

    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        self.io.submit(slab, batch)
    }

    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        self.io.reap(slab, min, timeout_ns, done)
    }

    fn next_completion_ns(&self) -> Option<u64> {
        self.has_callback.then_some(u64::MAX)
    }

    fn check_timeouts(&mut self) {
        self.io.check_timeouts();
    }

    fn confirm_writes(&mut self) -> Result<(), LostWrites> {
        self.io.confirm_writes()
    }

    fn set_files(&mut self, _: &[FileHandle]) -> io::Result<()> {
        Ok(())
    }
}
