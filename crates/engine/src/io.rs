//! Backends: how a batch of I/Os reaches the kernel or a library, and how completions come back.
//!
//! A backend takes slots that the worker has filled and returns their completions. It takes no time
//! stamps, counts nothing and knows nothing about workloads.

mod file_calls;
pub(crate) mod immediate;
pub(crate) mod io_uring;
pub(crate) mod libaio;
pub(crate) mod mmap_backend;
pub(crate) mod null;
pub(crate) mod posix_aio_backend;
pub mod remote;
pub(crate) mod sim_backend;
pub(crate) mod sync;

use remote::LostWrites;
use std::io;

pub use crate::slot::{Completion, FileHandle, Slot, whole_length};
pub(crate) use crate::slot::{LoneTransfer, RoundTransfer};
use crate::sys::memory::IoMemory;
pub use crate::sys::memory::Slab;
use iosonde_workload::Io;
pub use iosonde_workload::Op;

/// Callback that a library's thread invokes on completions, instead of waking the worker thread.
pub trait CompletionCallback: Send + Sync {
    /// Reports that the requested number of completions has arrived.
    fn on_completions(&self);
}

/// Moves I/O between slots and files.
pub(crate) trait Backend {
    /// Whether the I/O is complete when [`Backend::submit`] returns. The worker passes one slot at
    /// a time then, and measures the length of that call as completion latency.
    const SYNCHRONOUS: bool;

    /// Whether [`Backend::submit`] carries out the I/Os it takes. Its time then counts as
    /// completion latency, and submission latency is not measured.
    const CARRIES_OUT_IN_SUBMIT: bool = Self::SYNCHRONOUS;

    /// Whether the worker publishes the number of I/Os in flight. The kernel's backends do without:
    /// their loop is measured in nanoseconds.
    const PUBLISHES_IN_FLIGHT: bool = false;

    /// Whether the worker may carry out single I/Os in a row and count them afterwards.
    const SINGLE_IOS: bool = false;

    /// Whether [`Backend::transfer_alone`] carries out some I/Os.
    const TRANSFERS_ALONE: bool = false;

    /// Submits a batch. Returns the number of slots taken from the front: fewer if a queue is full.
    ///
    /// # Panics
    /// May panic if a slot is in flight already, does not exist or is larger than its buffer, or if
    /// the slab is not that of earlier calls.
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize>;

    /// Carries out an I/O in the first slot while no other is in flight, as [`Backend::submit`] and
    /// [`Backend::reap`] with less code. Calls `submitted` once it is submitted, or before it is
    /// carried out if [`Backend::CARRIES_OUT_IN_SUBMIT`]. [`Backend::reap`] returns the completion
    /// of an I/O that stays in flight.
    ///
    /// # Panics
    /// If the memory is not that of earlier calls.
    #[inline(always)]
    fn transfer_alone(
        &mut self,
        _memory: &mut IoMemory,
        _io: &Io,
        _submitted: impl FnOnce(),
    ) -> LoneTransfer {
        LoneTransfer::Declined
    }

    /// Whether [`Backend::transfer_round`] carries out some I/Os.
    const TRANSFERS_ROUNDS: bool = false;

    /// Carries out I/Os in the first slots while no other is in flight. Calls `submitted` once all
    /// are submitted. Appends the completions to `done` if all I/Os are complete then, else
    /// [`Backend::reap`] does.
    ///
    /// # Panics
    /// If the memory is not that of earlier calls.
    #[inline(always)]
    fn transfer_round(
        &mut self,
        _memory: &mut IoMemory,
        _ios: &[Io],
        _done: &mut Vec<Completion>,
        _submitted: impl FnOnce(),
    ) -> RoundTransfer {
        RoundTransfer::Declined
    }

    /// Appends completions to `done`, which has room for all slots. Returns once `done` holds `min`
    /// or after `timeout_ns`. With `min` 0 it does not wait.
    ///
    /// Without `timeout_ns` there is no deadline, nor is there one for I/Os carried out in
    /// [`Backend::submit`]: the kernel completes each I/O or fails it by the driver's timeout.
    fn reap(
        &mut self,
        slab: &mut Slab,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()>;

    /// Time of the next completion on simulated devices, or `u64::MAX` if a
    /// [`CompletionCallback`] reports it.
    /// A backend that returns a time never blocks in [`Backend::reap`].
    fn next_completion_ns(&self) -> Option<u64> {
        None
    }

    /// Checks I/Os in flight for timeouts, if a [`CompletionCallback`] is set: several times
    /// a second.
    fn check_timeouts(&mut self) {}

    /// Checks whether writes to the storage still succeed, after its files were flushed at the end
    /// of a pass, or the worker failed: some storage does not return each error of a write from a
    /// flush.
    fn confirm_writes(&mut self) -> Result<(), LostWrites> {
        Ok(())
    }

    /// Unmaps pages of mapped files: the page cache keeps mapped pages.
    fn unmap_pages(&mut self) {}

    /// Sets the files, in the order in which slots number them.
    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()>;
}
