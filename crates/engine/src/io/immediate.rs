//! Backends that carry out I/Os within [`Backend::submit`].

use super::{Backend, Completion, Handle, Slab};
use std::io;

/// Carries out I/Os in the call that submits them.
pub trait CarryOut {
    /// As [`Backend::SYNCHRONOUS`].
    const SYNCHRONOUS: bool;

    /// As [`Backend::CARRIES_OUT_IN_SUBMIT`].
    const CARRIES_OUT_IN_SUBMIT: bool = Self::SYNCHRONOUS;

    /// Carries out slots from the front of `batch`. Appends each one to `finished`.
    fn carry_out(&mut self, slab: &Slab, batch: &[u32], finished: &mut Vec<Completion>);

    /// As [`Backend::unmap_pages`].
    fn unmap_pages(&mut self) {}

    /// As [`Backend::set_files`].
    fn set_files(&mut self, handles: &[Handle]) -> io::Result<()>;
}

/// Keeps completions until they are reaped.
pub struct AtOnce<C> {
    carrier: C,
    finished: Vec<Completion>,
}

impl<C: CarryOut> AtOnce<C> {
    /// A backend for up to `depth` I/Os between two calls of [`Backend::reap`].
    pub fn new(carrier: C, depth: u32) -> AtOnce<C> {
        AtOnce {
            carrier,
            finished: Vec::with_capacity(depth as usize),
        }
    }
}

impl<C: CarryOut> Backend for AtOnce<C> {
    const SYNCHRONOUS: bool = C::SYNCHRONOUS;
    const CARRIES_OUT_IN_SUBMIT: bool = C::CARRIES_OUT_IN_SUBMIT;

    #[inline]
    fn submit(&mut self, slab: &Slab, batch: &[u32]) -> io::Result<usize> {
        let before = self.finished.len();
        self.carrier.carry_out(slab, batch, &mut self.finished);
        Ok(self.finished.len() - before)
    }

    #[inline]
    fn reap(
        &mut self,
        _: &Slab,
        _: usize,
        _: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        done.append(&mut self.finished);
        Ok(())
    }

    fn unmap_pages(&mut self) {
        self.carrier.unmap_pages();
    }

    fn set_files(&mut self, handles: &[Handle]) -> io::Result<()> {
        self.carrier.set_files(handles)
    }
}
