//! Fills files of a backend with random data, which neither compress nor deduplicate.

use crate::error::{CephAction, CephError};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::io::remote::RemoteIo;
use iosonde_engine::io::{Op, Slab, Slot};
use iosonde_engine::sys::memory::{IoMemory, MemoryKind};
use iosonde_result::run_error::RunError;
use iosonde_workload::rng::{Rng, mix64};
use std::ops::Range;

/// Maximum size of a write in bytes. No write crosses a multiple of it.
const CHUNK: u64 = 4 << 20;
/// Number of writes in flight.
const DEPTH: u32 = 8;

/// Range of a file, by the file's number, that has to be filled.
pub(crate) type Gap = (u32, Range<u64>);

/// Reason why a fill stopped.
pub(crate) enum Unfilled {
    /// The user requested a stop.
    Stopped,
    /// A write failed: number of the file, offset in bytes, errno.
    Failed(u32, u64, i32),
}

/// Number of writes in flight, to size the backend.
pub(crate) fn depth() -> u32 {
    DEPTH
}

/// Splits a gap into writes, in order.
fn chunks((file, range): &Gap) -> impl Iterator<Item = Gap> {
    let (file, mut at, end) = (*file, range.start, range.end);
    std::iter::from_fn(move || {
        let len = (CHUNK - at % CHUNK).min(end.saturating_sub(at));
        at += len;
        (len > 0).then_some((file, at - len..at))
    })
}

/// Writes all gaps. `written` is called with the total bytes so far.
pub(crate) fn fill_gaps(
    backend: &mut dyn RemoteIo,
    gaps: &[Gap],
    interrupt: &Interrupt,
    written: &mut dyn FnMut(u64),
) -> Result<(), Unfilled> {
    let memory = IoMemory::map(DEPTH as usize, CHUNK as usize, 0, MemoryKind::Pages);
    let failed = |error: std::io::Error| {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Unfilled::Failed(0, 0, errno)
    };
    let mut slab = Slab {
        slots: vec![Slot::IDLE; DEPTH as usize].into(),
        memory: memory.map_err(failed)?,
    };
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let mut done = Vec::with_capacity(DEPTH as usize);
    let (mut sum, mut outcome) = (0, Ok(()));
    let mut rest = gaps.iter().flat_map(chunks);
    loop {
        while outcome.is_ok()
            && let Some(slot) = free.pop()
        {
            let Some((file, range)) = rest.next() else {
                free.push(slot);
                break;
            };
            let length = (range.end - range.start) as usize;
            Rng::new(mix64(range.start ^ mix64(u64::from(file) + 1)))
                .fill(slab.memory.slot_mut(slot, length));
            slab.slots[slot as usize] = Slot {
                offset: range.start,
                len: length as u32,
                file,
                op: Op::Write,
                ..Slot::IDLE
            };
            backend.submit(&mut slab, &[slot]).map_err(failed)?;
        }
        if free.len() == DEPTH as usize {
            return outcome;
        }
        done.clear();
        backend
            .reap(&mut slab, 1, None, &mut done)
            .map_err(failed)?;
        for over in &done {
            let slot = slab.slots[over.slot as usize];
            free.push(over.slot);
            if over.result < 0 && outcome.is_ok() {
                outcome = Err(Unfilled::Failed(slot.file, slot.offset, -over.result));
            }
            sum += u64::from(slot.len);
        }
        written(sum);
        if outcome.is_ok() && interrupt.is_requested() {
            outcome = Err(Unfilled::Stopped);
        }
    }
}

impl Unfilled {
    /// Converts to the error of a run. `name` returns a file's name, e.g. `rados://pool/object`.
    pub(crate) fn into_error(self, name: impl Fn(u32) -> String) -> RunError {
        match self {
            // ECANCELED: cancelled after a stop request.
            Unfilled::Stopped | Unfilled::Failed(.., libc::ECANCELED) => RunError::Interrupted,
            Unfilled::Failed(file, offset, errno) => CephError::Call {
                action: CephAction::LayOut(offset),
                errno,
                said: String::new(),
            }
            .on(&name(file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_at_multiples_of_chunk_size() {
        let cut: Vec<_> = chunks(&(3, 5..CHUNK * 2 + 7)).collect();
        assert_eq!(
            cut,
            [
                (3, 5..CHUNK),
                (3, CHUNK..CHUNK * 2),
                (3, CHUNK * 2..CHUNK * 2 + 7)
            ]
        );
        assert_eq!(chunks(&(0, 9..9)).count(), 0);
    }
}
