//! Block devices and files as a whole: size, discard, reservation, cache.

use std::io;
use std::os::fd::RawFd;

const BLKDISCARD: libc::c_ulong = 0x1277;
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
const BLKFLSBUF: libc::c_ulong = 0x1261;

/// fcntl(2) command that says how long what is written to an inode will live.
const F_SET_RW_HINT: libc::c_int = 1024 + 12;

/// Says how long what is written to a file will live, in the kernel's numbers.
pub fn set_write_hint(fd: RawFd, hint: u64) -> io::Result<()> {
    // SAFETY: the kernel reads one u64, which is what it is given.
    check(unsafe { libc::fcntl(fd, F_SET_RW_HINT, &hint) })
}

/// Size of a block device in bytes.
pub fn size(fd: RawFd) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64, which is what it is given.
    check(unsafe { libc::ioctl(fd, BLKGETSIZE64, &mut bytes) })?;
    Ok(bytes)
}

/// Discards a range of a block device; the negated errno on failure, else the length as a count of bytes.
pub fn discard(fd: RawFd, offset: u64, length: u32) -> i32 {
    let range = [offset, u64::from(length)];
    // SAFETY: BLKDISCARD reads two u64, which is what it is given.
    match check(unsafe { libc::ioctl(fd, BLKDISCARD, &range) }) {
        Ok(()) => length as i32,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Punches a hole into a file; result as for [`discard`].
pub fn punch_hole(fd: RawFd, offset: u64, length: u32) -> i32 {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    match fallocate(fd, mode, offset, u64::from(length)) {
        Ok(()) => length as i32,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// fallocate(2).
pub fn fallocate(fd: RawFd, mode: i32, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fallocate(fd, mode, offset as i64, length as i64) })
}

/// posix_fallocate(3).
pub fn posix_fallocate(fd: RawFd, length: u64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::posix_fallocate(fd, 0, length as i64) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Drops a file's clean pages from the page cache.
pub fn drop_cache(fd: RawFd, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe {
        libc::posix_fadvise(fd, offset as i64, length as i64, libc::POSIX_FADV_DONTNEED)
    } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Writes back what the cache holds of a file or device.
pub fn flush(fd: RawFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fsync(fd) })
}

/// Tells the kernel whether accesses will be random or sequential.
pub fn advise_order(fd: RawFd, offset: u64, length: u64, random: bool) {
    let advice = if random {
        libc::POSIX_FADV_RANDOM
    } else {
        libc::POSIX_FADV_SEQUENTIAL
    };
    // SAFETY: no memory is passed. Advice that is not taken changes nothing that is promised.
    unsafe { libc::posix_fadvise(fd, offset as i64, length as i64, advice) };
}

/// Writes back and drops a block device's cache.
pub fn flush_device_cache(fd: RawFd) -> io::Result<()> {
    // SAFETY: BLKFLSBUF takes no argument.
    check(unsafe { libc::ioctl(fd, BLKFLSBUF, 0) })
}

fn check(returned: i32) -> io::Result<()> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
