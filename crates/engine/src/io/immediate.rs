//! Backends that carry out I/Os within [`Backend::submit`].

use super::{Backend, Completion, FileHandle, LoneTransfer, Slab};
use crate::sys::memory::IoMemory;
use iosonde_workload::Io;
use std::io;

/// Carries out I/Os in the call that submits them.
pub(crate) trait ImmediateIo {
    /// As [`Backend::SYNCHRONOUS`].
    const SYNCHRONOUS: bool;

    /// As [`Backend::CARRIES_OUT_IN_SUBMIT`].
    const CARRIES_OUT_IN_SUBMIT: bool = Self::SYNCHRONOUS;

    /// As [`Backend::TRANSFERS_ALONE`].
    const TRANSFERS_ALONE: bool = false;

    /// As [`Backend::transfer_alone`], but calls `started` before it carries out the I/O.
    #[inline(always)]
    fn transfer_alone(
        &mut self,
        _memory: &mut IoMemory,
        _io: &Io,
        _started: impl FnOnce(),
    ) -> LoneTransfer {
        LoneTransfer::Declined
    }

    /// Carries out slots from the front of `batch`. Appends each one to `finished`.
    fn carry_out(&mut self, slab: &mut Slab, batch: &[u32], finished: &mut Vec<Completion>);

    /// As [`Backend::unmap_pages`].
    fn unmap_pages(&mut self) {}

    /// As [`Backend::set_files`].
    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()>;
}

/// Keeps completions until they are reaped.
pub(crate) struct ImmediateBackend<C> {
    carrier: C,
    finished: Vec<Completion>,
}

impl<C: ImmediateIo> ImmediateBackend<C> {
    /// A backend for up to `depth` I/Os between two calls of [`Backend::reap`].
    pub(crate) fn new(carrier: C, depth: u32) -> ImmediateBackend<C> {
        ImmediateBackend {
            carrier,
            finished: Vec::with_capacity(depth as usize),
        }
    }
}

impl<C: ImmediateIo> Backend for ImmediateBackend<C> {
    const SYNCHRONOUS: bool = C::SYNCHRONOUS;
    const CARRIES_OUT_IN_SUBMIT: bool = C::CARRIES_OUT_IN_SUBMIT;
    const SINGLE_IOS: bool = C::SYNCHRONOUS;
    const TRANSFERS_ALONE: bool = C::TRANSFERS_ALONE;

    #[inline(always)]
    fn transfer_alone(
        &mut self,
        memory: &mut IoMemory,
        io: &Io,
        submitted: impl FnOnce(),
    ) -> LoneTransfer {
        self.carrier.transfer_alone(memory, io, submitted)
    }

    #[inline]
    fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> io::Result<usize> {
        let before = self.finished.len();
        self.carrier.carry_out(slab, batch, &mut self.finished);
        let taken = self.finished.len() - before;
        debug_assert!(taken <= batch.len(), "each I/O completes once");
        Ok(taken)
    }

    #[inline]
    fn reap(
        &mut self,
        _: &mut Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        if done.is_empty() {
            // Both have room for all slots. This copies nothing.
            std::mem::swap(done, &mut self.finished);
        } else {
            done.append(&mut self.finished);
        }
        Ok(())
    }

    fn unmap_pages(&mut self) {
        self.carrier.unmap_pages();
    }

    fn set_files(&mut self, handles: &[FileHandle]) -> io::Result<()> {
        self.carrier.set_files(handles)
    }
}
