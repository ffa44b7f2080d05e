//! Operations on whole block devices and files: size, discard, allocation, cache.

use crate::slot::whole_length;
use crate::sys::c_library as libc;
use std::io;
use std::os::fd::RawFd;

// The type is unsigned with glibc, and signed with musl.
const BLKDISCARD: libc::Ioctl = 0x1277;
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;
const BLKFLSBUF: libc::Ioctl = 0x1261;

/// fcntl(2) command that sets the write lifetime hint of an inode.
const F_SET_RW_HINT: libc::c_int = 1024 + 12;

/// Sets the write lifetime hint of a file, with the kernel's values (`RWH_WRITE_LIFE_*`).
pub(crate) fn set_write_hint(fd: RawFd, hint: u64) -> io::Result<()> {
    // SAFETY: the kernel reads one u64, and the pointer is to a u64.
    check(unsafe { libc::fcntl(fd, F_SET_RW_HINT, &hint) })
}

/// Size of a block device in bytes.
pub(crate) fn device_size_bytes(fd: RawFd) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64, and the pointer is to a u64.
    check(unsafe { libc::ioctl(fd, BLKGETSIZE64, &mut bytes) })?;
    Ok(bytes)
}

/// Discards a range of a block device. Returns its [`whole_length`], or the negated errno.
pub(crate) fn discard(fd: RawFd, offset: u64, length: u32) -> i32 {
    let range = [offset, u64::from(length)];
    // SAFETY: BLKDISCARD reads two u64, and the pointer is to two u64.
    match check(unsafe { libc::ioctl(fd, BLKDISCARD, &range) }) {
        Ok(()) => whole_length(length),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Punches a hole into a file. The result is that of [`discard`].
pub(crate) fn punch_hole(fd: RawFd, offset: u64, length: u32) -> i32 {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    match fallocate(fd, mode, offset, u64::from(length)) {
        Ok(()) => whole_length(length),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// fallocate(2).
pub(crate) fn fallocate(fd: RawFd, mode: i32, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: the call takes no pointer to memory.
    check(unsafe { libc::fallocate(fd, mode, offset as i64, length as i64) })
}

/// posix_fallocate(3).
pub(crate) fn posix_fallocate(fd: RawFd, length: u64) -> io::Result<()> {
    // SAFETY: the call takes no pointer to memory.
    match unsafe { libc::posix_fallocate(fd, 0, length as i64) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Drops a file's clean pages from the page cache.
pub(crate) fn drop_cache(fd: RawFd, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: the call takes no pointer to memory.
    match unsafe {
        libc::posix_fadvise(fd, offset as i64, length as i64, libc::POSIX_FADV_DONTNEED)
    } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Writes the dirty pages of a file or device back, by fsync(2).
pub(crate) fn flush(fd: RawFd) -> io::Result<()> {
    // SAFETY: the call takes no pointer to memory.
    check(unsafe { libc::fsync(fd) })
}

/// Advises the kernel to expect random or sequential accesses.
pub(crate) fn advise_order(fd: RawFd, offset: u64, length: u64, random: bool) {
    let advice = if random {
        libc::POSIX_FADV_RANDOM
    } else {
        libc::POSIX_FADV_SEQUENTIAL
    };
    // SAFETY: no memory is passed. The advice only affects readahead, so a failure is ignored.
    unsafe { libc::posix_fadvise(fd, offset as i64, length as i64, advice) };
}

/// Writes back and drops the page cache of a block device.
pub(crate) fn flush_device_cache(fd: RawFd) -> io::Result<()> {
    // SAFETY: BLKFLSBUF takes no argument and accesses no memory.
    check(unsafe { libc::ioctl(fd, BLKFLSBUF, 0) })
}

fn check(returned: i32) -> io::Result<()> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
