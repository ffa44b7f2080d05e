//! FIEMAP: which ranges of a file have blocks, and which of those were never written.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// Write dirty pages back first, so that the answer is about what the storage holds.
const FLAG_SYNC: u32 = 0x1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// Extents asked for in one call.
const BATCH: usize = 256;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap`, with room for the extents that follow it.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// A range of a file that has blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MappedExtent {
    /// Offset in the file in bytes.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Whether the blocks were reserved but never written: they read as zeros without the device.
    pub(crate) unwritten: bool,
}

/// The extents that overlap a range of a file, in order. The first and the last may reach beyond the range.
///
/// # Errors
///
/// `EOPNOTSUPP` or `ENOTTY` where the file system does not know FIEMAP; otherwise those of ioctl(2).
pub(crate) fn extents(
    file: BorrowedFd<'_>,
    start: u64,
    length: u64,
) -> io::Result<Vec<MappedExtent>> {
    let end = start.saturating_add(length);
    let mut found: Vec<MappedExtent> = Vec::new();
    let mut next = start;
    while next < end {
        let (batch, complete) = batch(file, next, end - next)?;
        let Some(last) = batch.last() else { break };
        next = last.start.saturating_add(last.length).max(next + 1);
        found.extend(batch);
        if complete {
            break;
        }
    }
    Ok(found)
}

/// The first extents of a range, and whether they reach the file's last one.
fn batch(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<(Vec<MappedExtent>, bool)> {
    let mut request = Box::new(Request {
        start,
        length,
        flags: FLAG_SYNC,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [RawExtent::default(); BATCH],
    });
    // SAFETY: the kernel reads the head of the request and writes at most `extent_count` extents behind it, for which
    // there is room; all of them are plain numbers.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *request) };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = &request.extents[..(request.mapped_extents as usize).min(BATCH)];
    let complete = mapped
        .last()
        .is_none_or(|extent| extent.flags & EXTENT_LAST != 0);
    let extent = |raw: &RawExtent| MappedExtent {
        start: raw.logical,
        length: raw.length,
        unwritten: raw.flags & EXTENT_UNWRITTEN != 0,
    };
    Ok((mapped.iter().map(extent).collect(), complete))
}
