//! I/Os that backends carry out by a system call, as their interface has no operation for them.

use super::{FileHandle, Op, Slot};
use crate::sys::{block, rw};

/// Discards a range: BLKDISCARD on a device, a punched hole in a file.
pub(super) fn discard_range(handle: FileHandle, offset: u64, length: u32) -> i32 {
    if handle.block_device {
        block::discard(handle.fd, offset, length)
    } else {
        block::punch_hole(handle.fd, offset, length)
    }
}

/// Carries out a trim or sync_file_range(2). `None` for other operations.
#[inline]
pub(super) fn trim_or_sync_range(
    slot: &Slot,
    handle: FileHandle,
    sync_range_flags: u32,
) -> Option<i32> {
    match slot.op {
        Op::Trim => Some(discard_range(handle, slot.offset, slot.len)),
        Op::SyncFileRange => {
            let length = slot.len.into();
            let flags = sync_range_flags;
            Some(rw::sync_file_range(handle.fd, slot.offset, length, flags))
        }
        _ => None,
    }
}
