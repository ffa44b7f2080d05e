//! Synchronous system calls that read or write one slot, or several contiguous ones.

use super::memory::IoMemory;
use crate::sys::c_library as libc;
use iosonde_job::plan::IoMethod;
use std::io;
use std::os::fd::RawFd;

/// System call that moves the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// lseek(2), then read(2) or write(2).
    Seek,
    /// pread(2), pwrite(2).
    Positioned,
    /// preadv(2), pwritev(2).
    Vectored,
    /// preadv2(2), pwritev2(2) with these flags.
    Vectored2(RwFlags),
}

/// Flags of single reads and writes (`RWF_*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RwFlags {
    /// Flags of reads.
    pub(crate) read: i32,
    /// Flags of writes.
    pub(crate) write: i32,
}

impl RwFlags {
    /// The flags that a job requests. The kernel refuses RWF_ATOMIC on reads.
    pub(crate) fn from_job(io: &IoMethod) -> RwFlags {
        let bit = |is_on: bool, flag: i32| if is_on { flag } else { 0 };
        let both = bit(io.nowait, libc::RWF_NOWAIT) | bit(io.uncached, libc::RWF_DONTCACHE);
        RwFlags {
            read: both,
            write: both | bit(io.atomic, libc::RWF_ATOMIC),
        }
    }

    /// Adds a flag to reads and writes.
    pub(crate) fn with(self, flag: i32) -> RwFlags {
        RwFlags {
            read: self.read | flag,
            write: self.write | flag,
        }
    }

    /// Returns the flags of a direction.
    #[inline(always)]
    pub(crate) fn select(self, is_write: bool) -> i32 {
        if is_write { self.write } else { self.read }
    }

    /// Whether writes are atomic.
    pub(crate) fn has_atomic_writes(self) -> bool {
        self.write & libc::RWF_ATOMIC != 0
    }
}

/// One read or write of a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    /// File descriptor.
    pub(crate) fd: RawFd,
    /// Whether data are written.
    pub(crate) write: bool,
    /// Position in the file.
    pub(crate) offset: u64,
    /// Index of the slot and its buffer.
    pub(crate) slot: u32,
    /// First byte within the buffer.
    pub(crate) skip: u32,
    /// Length in bytes, from `skip` on.
    pub(crate) len: u32,
}

/// Reads or writes one slot. Returns the number of bytes, or the negated errno.
///
/// # Panics
/// If the slot is in flight or does not exist, or has fewer than `skip + len` bytes.
#[inline(always)]
pub(crate) fn transfer(memory: &mut IoMemory, io: Transfer, call: Call) -> i32 {
    let length = io.len as usize;
    let offset = io.offset as libc::off_t;
    let address = memory.idle_address(io.slot, io.skip as usize, length);
    // SAFETY: the range lies within the slot, to which nothing refers: the memory is borrowed
    // exclusively.
    let moved = unsafe {
        let address = address.cast::<libc::c_void>();
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
            (Call::Positioned, false) => pread(io.fd, address, length, offset),
            (Call::Positioned, true) => pwrite(io.fd, address, length, offset),
            (Call::Vectored, false) => libc::preadv(io.fd, &vector, 1, offset),
            (Call::Vectored, true) => libc::pwritev(io.fd, &vector, 1, offset),
            (Call::Vectored2(flags), false) => libc::preadv2(io.fd, &vector, 1, offset, flags.read),
            (Call::Vectored2(flags), true) => {
                libc::pwritev2(io.fd, &vector, 1, offset, flags.write)
            }
        }
    };
    outcome(moved as i64)
}

/// pread(2) as a plain system call. The function of the C library is a cancellation point: in a
/// process of several threads, glibc marks the thread before and after it by atomic instructions.
///
/// # Safety
/// The memory at `address` has `length` bytes that nothing else accesses during the call.
#[cfg(target_pointer_width = "64")]
#[inline(always)]
unsafe fn pread(fd: RawFd, address: *mut libc::c_void, length: usize, offset: i64) -> isize {
    // SAFETY: the caller vouches for the memory, and the kernel checks the descriptor.
    unsafe { libc::syscall(libc::SYS_pread64, fd, address, length, offset) as isize }
}

/// pwrite(2) as a plain system call, as `pread`.
///
/// # Safety
/// The memory at `address` has `length` bytes that nothing else writes during the call.
#[cfg(target_pointer_width = "64")]
#[inline(always)]
unsafe fn pwrite(fd: RawFd, address: *mut libc::c_void, length: usize, offset: i64) -> isize {
    // SAFETY: the caller vouches for the memory, and the kernel checks the descriptor.
    unsafe { libc::syscall(libc::SYS_pwrite64, fd, address, length, offset) as isize }
}

// A system call of a 32-bit machine takes the offset in two parts.
#[cfg(not(target_pointer_width = "64"))]
use libc::{pread, pwrite};

/// Maximum number of slots in one call of [`transfer_many`].
pub(crate) const MOST_NEIGHBOURS: usize = 64;

/// Reads or writes `slots` (at most [`MOST_NEIGHBOURS`]), which are contiguous in the file from
/// `offset`, by one readv(2) or writev(2). Returns the number of bytes, or the negated errno.
///
/// # Panics
/// If there are more slots, or if one is in flight, does not exist or has fewer bytes.
pub(crate) fn transfer_many(
    memory: &mut IoMemory,
    fd: RawFd,
    write: bool,
    offset: u64,
    slots: &[(u32, u32)],
) -> i64 {
    assert!(
        slots.len() <= MOST_NEIGHBOURS,
        "one call moves {} slots",
        slots.len()
    );
    let mut vectors = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; MOST_NEIGHBOURS];
    for (vector, (slot, length)) in vectors.iter_mut().zip(slots) {
        let length = *length as usize;
        *vector = libc::iovec {
            iov_base: memory.idle_address(*slot, 0, length).cast(),
            iov_len: length,
        };
    }
    let count = slots.len() as i32;
    // SAFETY: each vector lies within its slot, to which nothing refers: the memory is borrowed
    // exclusively.
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

/// Reads one byte with RWF_DONTCACHE.
pub(crate) fn check_uncached_read(fd: RawFd) -> io::Result<()> {
    let mut byte = 0u8;
    let vector = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: the vector is one byte, to which nothing else refers.
    match unsafe { libc::preadv2(fd, &vector, 1, 0, libc::RWF_DONTCACHE) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// fsync(2).
pub(crate) fn fsync(fd: RawFd) -> i32 {
    // SAFETY: the call takes no pointer to memory.
    outcome(i64::from(unsafe { libc::fsync(fd) }))
}

/// fdatasync(2).
pub(crate) fn fdatasync(fd: RawFd) -> i32 {
    // SAFETY: the call takes no pointer to memory.
    outcome(i64::from(unsafe { libc::fdatasync(fd) }))
}

/// sync_file_range(2).
pub(crate) fn sync_file_range(fd: RawFd, offset: u64, length: u64, flags: u32) -> i32 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_flag_is_on_writes_only() {
        let flags = RwFlags::from_job(&IoMethod {
            nowait: true,
            uncached: true,
            atomic: true,
            ..IoMethod::default()
        });
        let both = libc::RWF_NOWAIT | libc::RWF_DONTCACHE;
        assert_eq!(flags.select(false), both);
        assert_eq!(flags.select(true), both | libc::RWF_ATOMIC);
        assert!(flags.has_atomic_writes());
        let plain = RwFlags::from_job(&IoMethod::default());
        assert_eq!(plain, RwFlags::default());
        assert!(!plain.with(libc::RWF_HIPRI).has_atomic_writes());
    }
}
