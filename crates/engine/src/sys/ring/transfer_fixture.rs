//! Slots, rings and I/Os for the tests of the short paths.

use super::{Ring, RingOptions};
use crate::slot::Slot;
use crate::sys::memory::{IoMemory, MemoryKind, Slab};
use iosonde_workload::{Io, Op};
use std::os::fd::RawFd;

/// Length of each buffer.
pub(super) const BYTES: u32 = 4096;

/// Two idle slots.
pub(super) fn create_slab() -> Slab {
    Slab {
        slots: vec![Slot::IDLE; 2].into(),
        memory: IoMemory::map(2, BYTES as usize, 0, MemoryKind::Pages).unwrap(),
    }
}

/// A ring over one registered file, with registered buffers.
pub(super) fn create_ring(slab: &Slab, options: RingOptions, fd: RawFd) -> Ring {
    let mut ring = Ring::new(2, options, &slab.memory).unwrap();
    ring.register_buffers(&slab.memory).unwrap();
    ring.set_files(&[fd], true).unwrap();
    ring
}

/// An I/O in the first file.
pub(super) fn plain_io(op: Op, offset: u64, len: u32) -> Io {
    Io {
        offset,
        len,
        file: 0,
        op,
    }
}
