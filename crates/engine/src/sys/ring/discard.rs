//! Discards of block devices through a ring (Linux 6.12): commands that a device carries out
//! asynchronously, unlike BLKDISCARD.

use super::RingOptions;
use super::entry_maker::{EntryMaker, TransferEntry};
use super::setup::{SetupFlags, builder};
use crate::slot::Slot;
use io_uring::{IoUring, Probe, opcode, squeue};
use std::io;
use std::os::fd::RawFd;

/// BLOCK_URING_CMD_DISCARD of linux/blkdev.h: `_IO(0x12, 0)`.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

/// The word of an entry that holds the number of the command in its first half.
const COMMAND_WORD: u64 = match cfg!(target_endian = "little") {
    true => BLOCK_URING_CMD_DISCARD as u64,
    false => (BLOCK_URING_CMD_DISCARD as u64) << 32,
};

/// Checks whether a block device accepts discards through a ring. It discards nothing: the kernel
/// refuses a length of 0 (EINVAL) after it has found the command, the permission to write and a
/// device that can discard.
///
/// # Errors
/// The kernel's reason: EOPNOTSUPP before Linux 6.12, with polled completions, and from a device
/// that cannot discard.
pub(crate) fn probe_discard(fd: RawFd, iopoll: bool) -> io::Result<()> {
    let options = RingOptions {
        iopoll,
        ..RingOptions::default()
    };
    // A ring of its own, so that no completion is left in the worker's if a call fails.
    let mut ring = builder(2, options, SetupFlags::NONE).build(2)?;
    if !knows_commands(&ring) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let entry = discard_entry((fd, squeue::Flags::empty()), 0, 0);
    // SAFETY: the entry refers to no memory.
    let pushed = unsafe { ring.submission().push(&entry) };
    debug_assert!(pushed.is_ok(), "a new ring has room for an entry");
    ring.submit_and_wait(1)?;
    let result = ring.completion().next().map(|entry| entry.result());
    match result {
        Some(result) if result == -libc::EINVAL => Ok(()),
        Some(result) if result < 0 => Err(io::Error::from_raw_os_error(-result)),
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// Whether the kernel has commands of files (Linux 5.19). Older ones refuse the opcode with the
/// errno of an accepted probe.
fn knows_commands(ring: &IoUring) -> bool {
    let mut probe = Probe::new();
    let probed = ring.submitter().register_probe(&mut probe);
    probed.is_ok() && probe.is_supported(opcode::UringCmd16::CODE)
}

/// Builds an entry that discards a range of a block device. Its completion has the result 0.
fn discard_entry((fd, place): (i32, squeue::Flags), offset: u64, length: u64) -> squeue::Entry {
    TransferEntry {
        opcode: opcode::UringCmd16::CODE,
        flags: place.bits(),
        // The kernel refuses priorities of commands.
        ioprio: 0,
        fd,
        offset: COMMAND_WORD,
        address: offset,
        length: 0,
        rw_flags: 0,
        user_data: 0,
        buffer_index: 0,
        personality: 0,
        splice_fd: 0,
        unused: [length, 0],
    }
    .entry()
}

impl EntryMaker {
    /// Builds the entry of a trim of a block device.
    pub(super) fn discard(&self, slot: &Slot) -> squeue::Entry {
        discard_entry(self.descriptor(slot.file), slot.offset, slot.len.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn regular_file_refuses_discards_through_the_ring() {
        let file = tempfile::tempfile().unwrap();
        let refused = probe_discard(file.as_raw_fd(), false).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
