//! FIEMAP: the allocated ranges of a file, and which of them were never written.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;
/// Writes dirty pages back first, so that the result describes the storage.
const FLAG_SYNC: u32 = 0x1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// Maximum number of extents per call.
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

/// `struct fiemap`, with room for its extents.
#[repr(C)]
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// An allocated range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MappedExtent {
    /// Offset in the file in bytes.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Whether the blocks were allocated but never written: reads return zeros without device I/O.
    pub(crate) unwritten: bool,
}

/// The extents that overlap a range of a file, in order. They may extend beyond the range.
///
/// # Errors
///
/// Fails as ioctl(2) does; with `EOPNOTSUPP` or `ENOTTY` if the file system has no FIEMAP.
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

/// The first extents of a range, and whether they include the last one of the file.
fn batch(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<(Vec<MappedExtent>, bool)> {
    let mut request = Box::new(FiemapRequest {
        start,
        length,
        flags: FLAG_SYNC,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [RawExtent::default(); BATCH],
    });
    // The type of the number is unsigned with glibc, and signed with musl.
    // SAFETY: the kernel reads the header of the request and writes at most `extent_count` extents
    // after it. `request` has room for them, and any bit pattern is valid for their integers.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *request) };
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
