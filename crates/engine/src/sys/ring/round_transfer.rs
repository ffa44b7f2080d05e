//! Reads and writes that are submitted by one call of the kernel, and are complete when it returns.
//!
//! Short for the reason of [`super::lone_transfer`].

#[cfg(test)]
mod tests;

use super::Ring;
use crate::slot::{Completion, RoundTransfer};
use crate::sys::memory::IoMemory;
use iosonde_workload::Io;

impl Ring {
    /// Carries out I/Os in the first slots while no other is in flight. Calls `submitted` after the
    /// call of the kernel. Appends the completions to `done` if all I/Os are complete then.
    ///
    /// # Panics
    /// If the memory is not that of [`Ring::new`].
    #[inline(always)]
    pub(crate) fn transfer_round(
        &mut self,
        memory: &mut IoMemory,
        ios: &[Io],
        done: &mut Vec<Completion>,
        submitted: impl FnOnce(),
    ) -> RoundTransfer {
        assert!(self.memory.is_of(memory));
        let Some(entries) = &self.plain_entries else {
            return RoundTransfer::Declined;
        };
        let count = ios.len() as u32;
        if self.in_flight > 0
            || ios.len() > memory.slots()
            || !ios.iter().all(|io| entries.fits(io))
            || (0..count).any(|slot| memory.is_in_flight(slot))
        {
            return RoundTransfer::Declined;
        }
        let mut queue = self.ring.submission();
        if queue.capacity() - queue.len() < ios.len() {
            return RoundTransfer::Declined;
        }
        for (slot, io) in (0..count).zip(ios) {
            // SAFETY: the range lies within the slot, and the ring keeps the buffers mapped until
            // the completion is reaped. Nothing below can panic or access the slot before all
            // completions are reaped, or all slots are marked as in flight.
            let pushed = unsafe { queue.push(&entries.entry(io, slot)) };
            debug_assert!(pushed.is_ok(), "the queue has room");
        }
        drop(queue);
        self.descriptor.enter_unchecked(count);
        if self.ring.completion().len() < ios.len() {
            self.keep_in_flight(memory, count);
            submitted();
            return RoundTransfer::InFlight;
        }
        done.extend(self.ring.completion().map(|entry| Completion {
            slot: entry.user_data() as u32,
            result: entry.result(),
        }));
        submitted();
        RoundTransfer::Completed
    }
}
