//! The buffers of a worker's slots while a library may access them.

use iosonde_engine::io::Completion;
use iosonde_engine::sys::memory::{IoMemory, KeptMapping};

/// Part of an I/O that lies in one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IoPart {
    /// Slot of the I/O.
    pub(crate) slot: u32,
    /// Offset in the slot's buffer.
    pub(crate) at: usize,
    /// Length in bytes.
    pub(crate) len: usize,
    /// Offset in the object.
    pub(crate) offset: u64,
}

/// Marks the slots of one worker that are in flight, so that their buffers have no references, and
/// keeps the buffers mapped.
#[derive(Debug, Default)]
pub(super) struct SlotBuffers {
    /// Share in the buffers. `None` before the first I/O.
    mapping: Option<KeptMapping>,
}

impl SlotBuffers {
    /// Marks a slot as in flight, until [`SlotBuffers::mark_idle`] has its completion.
    ///
    /// # Panics
    /// If it is in flight already or does not exist, or if the memory is that of another worker.
    pub(super) fn begin(&mut self, memory: &mut IoMemory, slot: u32) {
        let mapping = self.mapping.get_or_insert_with(|| memory.keep_mapped());
        assert!(mapping.is_of(memory), "buffers of another worker");
        memory.begin_io(slot);
    }

    /// Returns the address of a piece of a slot in flight.
    ///
    /// # Panics
    /// If the slot is not in flight, or the piece is not within its buffer.
    pub(super) fn address(&self, memory: &IoMemory, piece: IoPart) -> *mut u8 {
        let is_ours = self.mapping.as_ref().is_some_and(|kept| kept.is_of(memory));
        assert!(is_ours, "buffers of another worker");
        assert!(memory.is_in_flight(piece.slot), "slot not in flight");
        let within = piece.at <= memory.stride() && piece.len <= memory.stride() - piece.at;
        assert!(within, "piece outside its slot");
        // SAFETY: within the slot, by the assertions.
        unsafe { memory.address(piece.slot).add(piece.at) }
    }

    /// Marks the slots of these completions as no longer in flight.
    ///
    /// # Panics
    /// If the memory is that of another worker.
    pub(super) fn mark_idle(&self, memory: &mut IoMemory, done: &[Completion]) {
        if done.is_empty() {
            return;
        }
        let is_ours = self.mapping.as_ref().is_some_and(|kept| kept.is_of(memory));
        assert!(is_ours, "buffers of another worker");
        for completion in done {
            // SAFETY: the library has reported the completion of all requests of the I/O. Those of
            // abandoned I/Os do not come here, but to `abandon`.
            unsafe { memory.end_library_io(completion.slot) };
        }
    }

    /// Gives the memory new buffers, because the library cannot cancel the I/Os in flight: it may
    /// read or fill their buffers until the process ends. All completions must be in `done`; those
    /// of abandoned I/Os have the result `abandoned`. Without memory for new buffers, the slots of
    /// abandoned I/Os stay in flight, and panic if they are used again.
    ///
    /// # Panics
    /// If the memory is that of another worker.
    pub(super) fn abandon(&mut self, memory: &mut IoMemory, done: &[Completion], abandoned: i32) {
        let completed: Vec<Completion> = (done.iter().copied())
            .filter(|completion| completion.result != abandoned)
            .collect();
        self.mark_idle(memory, &completed);
        if memory.replace_buffers().is_ok() {
            self.mapping = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_engine::sys::memory::MemoryKind;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const PIECE: IoPart = IoPart {
        slot: 1,
        at: 512,
        len: 512,
        offset: 0,
    };

    fn memory() -> IoMemory {
        IoMemory::map(2, 4096, 0, MemoryKind::Pages).unwrap()
    }

    fn panics(call: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(call)).is_err()
    }

    #[test]
    fn slot_in_flight_is_neither_begun_again_nor_accessed() {
        let (mut memory, mut buffers) = (memory(), SlotBuffers::default());
        buffers.begin(&mut memory, 1);
        assert!(panics(|| buffers.begin(&mut memory, 1)));
        assert!(panics(|| memory.slot_mut(1, 1).fill(7)));
        assert!(panics(|| drop(memory.slot(1, 1).to_vec())));
        memory.slot_mut(0, 1).fill(7);
        let at = buffers.address(&memory, PIECE) as usize;
        assert_eq!(at, memory.address(1) as usize + PIECE.at);
        let done = Completion { slot: 1, result: 0 };
        buffers.mark_idle(&mut memory, &[done]);
        memory.slot_mut(1, 1).fill(7);
        buffers.begin(&mut memory, 1);
    }

    #[test]
    fn address_of_an_idle_slot_or_beyond_its_buffer_panics() {
        let (mut memory, mut buffers) = (memory(), SlotBuffers::default());
        buffers.begin(&mut memory, 0);
        for piece in [
            PIECE,
            IoPart { slot: 2, ..PIECE },
            IoPart {
                slot: 0,
                at: 4096,
                ..PIECE
            },
            IoPart {
                slot: 0,
                len: usize::MAX,
                ..PIECE
            },
        ] {
            assert!(panics(|| {
                let _ = buffers.address(&memory, piece);
            }));
        }
    }

    #[test]
    fn abandoned_slots_get_buffers_that_the_library_does_not_know() {
        let (mut memory, mut buffers) = (memory(), SlotBuffers::default());
        memory.slot_mut(0, 512).fill(7);
        buffers.begin(&mut memory, 0);
        buffers.begin(&mut memory, 1);
        let known = buffers.address(&memory, PIECE);
        let result = |slot, result| Completion { slot, result };
        let done = [result(0, 512), result(1, -libc::ECANCELED)];
        buffers.abandon(&mut memory, &done, -libc::ECANCELED);
        assert_eq!(memory.slot(0, 512), [7; 512], "what was read is kept");
        memory.slot_mut(1, 1024).fill(3);
        // SAFETY: the buffers that the library knows stay mapped.
        unsafe { known.write_bytes(9, PIECE.len) };
        assert_eq!(memory.slot(1, 1024), [3; 1024]);
        buffers.begin(&mut memory, 1);
        assert_ne!(buffers.address(&memory, PIECE), known);
        buffers.mark_idle(&mut memory, &[result(1, -libc::ECANCELED)]);
    }

    #[test]
    fn buffers_of_another_worker_panic() {
        let (mut first, mut second) = (memory(), memory());
        let mut buffers = SlotBuffers::default();
        buffers.begin(&mut first, 1);
        assert!(panics(|| buffers.begin(&mut second, 1)));
        let done = Completion { slot: 1, result: 0 };
        assert!(panics(|| buffers.mark_idle(&mut second, &[done])));
        buffers.mark_idle(&mut first, &[done]);
    }
}
