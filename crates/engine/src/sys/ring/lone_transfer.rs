//! Reads and writes that are alone in flight, from submission to completion in one call of the
//! kernel.
//!
//! At depth 1, each cache line of code between two calls of the kernel costs time twice: it is
//! fetched again after each call, and it evicts a line of the kernel's. This path is therefore
//! short, and leaves all other I/Os to [`Ring::submit`] and [`Ring::reap`].

#[cfg(test)]
mod tests;

use super::Ring;
use crate::slot::LoneTransfer;
use crate::sys::memory::IoMemory;
use iosonde_workload::Io;

/// The slot of an I/O that is alone in flight.
const SLOT: u32 = 0;

impl Ring {
    /// Carries out an I/O in the first slot while no other is in flight. Calls `submitted` after
    /// the call of the kernel.
    ///
    /// # Panics
    /// If the memory is not that of [`Ring::new`].
    #[inline(always)]
    pub(crate) fn transfer_alone(
        &mut self,
        memory: &mut IoMemory,
        io: &Io,
        submitted: impl FnOnce(),
    ) -> LoneTransfer {
        assert!(self.memory.is_of(memory));
        let Some(entries) = &self.plain_entries else {
            return LoneTransfer::Declined;
        };
        if !entries.fits(io) || self.in_flight > 0 || memory.is_in_flight(SLOT) {
            return LoneTransfer::Declined;
        }
        // SAFETY: the range lies within the slot, and the ring keeps the buffers mapped until the
        // completion is reaped. Nothing below can panic or access the slot before the completion
        // is reaped, or the slot is marked as in flight.
        if unsafe { self.ring.submission().push(&entries.entry(io, SLOT)) }.is_err() {
            return LoneTransfer::Declined;
        }
        self.descriptor.enter_unchecked(1);
        let completion = self.ring.completion().next();
        let Some(completion) = completion else {
            self.keep_in_flight(memory, 1);
            submitted();
            return LoneTransfer::InFlight;
        };
        submitted();
        LoneTransfer::Completed(completion.result())
    }

    /// Marks the I/Os of the first slots as in flight. [`Ring::reap`] returns their completions.
    #[cold]
    pub(super) fn keep_in_flight(&mut self, memory: &mut IoMemory, count: u32) {
        for slot in 0..count {
            memory.begin_io(slot);
        }
        self.in_flight += count as usize;
    }
}
