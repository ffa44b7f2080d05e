//! Contents of the write buffers, by slot.

use crate::sys::memory::IoMemory;
use iosonde_job::plan::Buffers;
use iosonde_workload::Seeds;
use iosonde_workload::buffers::BufferFiller;

/// Fills write buffers according to the job's buffer options.
#[derive(Debug)]
pub(crate) struct Contents {
    filler: BufferFiller,
    buffers: Buffers,
    refreshes: bool,
}

impl Contents {
    /// Creates contents for writes of at least `unit_bytes`, over `size_bytes` in total.
    pub(crate) fn new(
        buffers: &Buffers,
        unit_bytes: u64,
        size_bytes: u64,
        seeds: &Seeds,
    ) -> Contents {
        let filler = BufferFiller::new(buffers, unit_bytes, size_bytes, seeds);
        let refreshes = filler.refreshes();
        Contents {
            filler,
            buffers: buffers.clone(),
            refreshes,
        }
    }

    /// Draws duplicates from the working sets of all these clones (`dedupe_global`).
    pub(crate) fn share_working_sets(&mut self, keys: &[u64]) {
        self.filler.share_working_sets(keys);
    }

    /// Leaves all buffers as they are, for a target that keeps no data.
    pub(crate) fn leave_buffers(&mut self) {
        self.refreshes = false;
    }

    /// Fills all buffers for the first time.
    pub(crate) fn prepare(&mut self, memory: &mut IoMemory) {
        for slot in 0..memory.slots() as u32 {
            let length = memory.stride();
            self.filler
                .prepare(&self.buffers, memory.slot_mut(slot, length));
        }
    }

    /// Updates a buffer before it is written to `offset`.
    #[inline(always)]
    pub(crate) fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        if self.refreshes {
            self.filler.refresh(&self.buffers, buffer, offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_for_no_data_leave_buffers_unchanged() {
        let seeds = Seeds::from_u64(1);
        let mut contents = Contents::new(&Buffers::default(), 4096, 1 << 20, &seeds);
        let mut buffer = [0; 4096];
        contents.leave_buffers();
        contents.fill(8192, &mut buffer);
        assert_eq!(buffer, [0; 4096]);
    }
}
