//! Synchronous system calls that read or write one slot, or several contiguous ones.

use super::memory::IoMemory;
use std::io;
use std::os::fd::RawFd;

/// System call that moves the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// lseek(2), then read(2) or write(2).
    Seek,
    /// pread(2), pwrite(2).
    Positioned,
    /// preadv(2), pwritev(2).
    Vectored,
    /// preadv2(2), pwritev2(2) with these RWF flags.
    Vectored2(i32),
}

/// One read or write of a slot.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// File descriptor.
    pub fd: RawFd,
    /// Whether data are written.
    pub write: bool,
    /// Position in the file.
    pub offset: u64,
    /// Index of the slot and its buffer.
    pub slot: u32,
    /// First byte within the buffer.
    pub skip: u32,
    /// Length in bytes, from `skip` on.
    pub len: u32,
}

/// Reads or writes one slot. Returns the number of bytes, or the negated errno.
pub fn transfer(memory: &IoMemory, io: Transfer, call: Call) -> i32 {
    assert!(io.skip as usize + io.len as usize <= memory.stride());
    let length = io.len as usize;
    let offset = io.offset as libc::off_t;
    // SAFETY: the assertion keeps `skip + len` within the slot, which the caller owns meanwhile.
    let moved = unsafe {
        let address = memory
            .address(io.slot)
            .add(io.skip as usize)
            .cast::<libc::c_void>();
        let vector = libc::iovec {
            iov_base: address,
            iov_len: length,
        };
        match (call, io.write) {
            (Call::Seek, write) => {
                if libc::lseek(io.fd, offset, libc::SEEK_SET) < 0 {
                    -1
                } else if write {
                    libc::write(io.fd, address, length)
                } else {
                    libc::read(io.fd, address, length)
                }
            }
            (Call::Positioned, false) => libc::pread(io.fd, address, length, offset),
            (Call::Positioned, true) => libc::pwrite(io.fd, address, length, offset),
            (Call::Vectored, false) => libc::preadv(io.fd, &vector, 1, offset),
            (Call::Vectored, true) => libc::pwritev(io.fd, &vector, 1, offset),
            (Call::Vectored2(flags), false) => libc::preadv2(io.fd, &vector, 1, offset, flags),
            (Call::Vectored2(flags), true) => libc::pwritev2(io.fd, &vector, 1, offset, flags),
        }
    };
    outcome(moved as i64)
}

/// Maximum number of slots in one call of [`transfer_many`].
pub const MOST_NEIGHBOURS: usize = 64;

/// Reads or writes `slots` (at most [`MOST_NEIGHBOURS`]), which are contiguous in the file from
/// `offset`, by one readv(2) or writev(2). Returns the number of bytes, or the negated errno.
pub fn transfer_many(
    memory: &IoMemory,
    fd: RawFd,
    write: bool,
    offset: u64,
    slots: &[(u32, u32)],
) -> i64 {
    let mut vectors = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; MOST_NEIGHBOURS];
    for (vector, (slot, length)) in vectors.iter_mut().zip(slots) {
        assert!(*length as usize <= memory.stride());
        *vector = libc::iovec {
            iov_base: memory.address(*slot).cast(),
            iov_len: *length as usize,
        };
    }
    let count = slots.len().min(MOST_NEIGHBOURS) as i32;
    // SAFETY: the assertion keeps each vector within its slot, which the caller owns meanwhile.
    let moved = unsafe {
        if libc::lseek(fd, offset as libc::off_t, libc::SEEK_SET) < 0 {
            -1
        } else if write {
            libc::writev(fd, vectors.as_ptr(), count)
        } else {
            libc::readv(fd, vectors.as_ptr(), count)
        }
    };
    if moved < 0 {
        i64::from(outcome(-1))
    } else {
        moved as i64
    }
}

/// fsync(2).
pub fn fsync(fd: RawFd) -> i32 {
    // SAFETY: the call takes no pointer to memory.
    outcome(i64::from(unsafe { libc::fsync(fd) }))
}

/// fdatasync(2).
pub fn fdatasync(fd: RawFd) -> i32 {
    // SAFETY: the call takes no pointer to memory.
    outcome(i64::from(unsafe { libc::fdatasync(fd) }))
}

/// sync_file_range(2).
pub fn sync_file_range(fd: RawFd, offset: u64, length: u64, flags: u32) -> i32 {
    // SAFETY: the call takes no pointer to memory.
    outcome(i64::from(unsafe {
        libc::sync_file_range(fd, offset as i64, length as i64, flags)
    }))
}

fn outcome(returned: i64) -> i32 {
    if returned < 0 {
        -io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO)
    } else {
        returned as i32
    }
}
