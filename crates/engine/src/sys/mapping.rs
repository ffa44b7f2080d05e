//! A file mapped into memory, for the mmap engine.

use super::bus_error;
use super::memory::IoMemory;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A shared mapping of a whole file.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: *mut u8,
    length: usize,
    protection: i32,
    advice: i32,
    /// A duplicate of the descriptor, to map the file again after an error.
    file: File,
    /// Whether mapping again failed: the mapping then contains pages that are not the file's.
    broken: bool,
}

// SAFETY: this value alone owns the mapping.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes of a file.
    pub(crate) fn map(fd: RawFd, length: u64, write: bool, random: bool) -> io::Result<Mapping> {
        let length =
            usize::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let protection = if write {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        bus_error::install();
        let file = File::from(duplicate(fd)?);
        // SAFETY: no address is asked for, so nothing is replaced.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let advice = if random {
            libc::MADV_RANDOM
        } else {
            libc::MADV_SEQUENTIAL
        };
        // SAFETY: the range is the mapping just made. The advice changes no contents.
        unsafe { libc::madvise(base, length, advice) };
        Ok(Mapping {
            base: base.cast(),
            length,
            protection,
            advice,
            file,
            broken: false,
        })
    }

    /// Copies between a slot and the file. Returns the bytes copied, or the negated errno.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist, or has fewer bytes.
    pub(crate) fn copy(
        &mut self,
        memory: &mut IoMemory,
        slot: u32,
        offset: u64,
        length: u32,
        write: bool,
    ) -> i32 {
        if self.broken {
            return -libc::EIO;
        }
        let room = (self.length as u64)
            .saturating_sub(offset)
            .min(u64::from(length)) as usize;
        // SAFETY: the offset lies within the mapping, or at its end.
        let file = unsafe { self.base.add(offset.min(self.length as u64) as usize) };
        let buffer = memory.idle_address(slot, 0, room);
        // SAFETY: the range lies within the mapping and the slot, which do not overlap.
        let survived = bus_error::survived(file, room, || unsafe {
            if write {
                std::ptr::copy_nonoverlapping(buffer, file, room);
            } else {
                std::ptr::copy_nonoverlapping(file, buffer, room);
            }
        });
        match survived {
            true => room as i32,
            false => -self.why_not(offset + room as u64),
        }
    }

    /// Maps the file again. Returns the errno for a missing page before byte `end`.
    #[cold]
    fn why_not(&mut self, end: u64) -> i32 {
        if self.map_anew().is_err() {
            self.broken = true;
            return libc::EIO;
        }
        let size = self.file.metadata().map_or(0, |metadata| metadata.len());
        let room = rustix::fs::fstatvfs(&self.file).map_or(1, |stat| stat.f_bavail);
        match size >= end && room == 0 {
            true => libc::ENOSPC,
            false => libc::EIO,
        }
    }

    fn map_anew(&mut self) -> io::Result<()> {
        // SAFETY: replaces exactly the range of `map`, which this value owns and nothing refers to.
        let base = unsafe {
            libc::mmap(
                self.base.cast(),
                self.length,
                self.protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made. The advice changes no contents.
        unsafe { libc::madvise(base, self.length, self.advice) };
        Ok(())
    }

    /// Unmaps all pages: the next access maps them again. Written data stay in the page cache.
    pub(crate) fn unmap_pages(&self) {
        // SAFETY: the range is this value's own shared mapping of a file, whose contents stay. A
        // failure is ignored: the pages stay mapped.
        unsafe { libc::madvise(self.base.cast(), self.length, libc::MADV_DONTNEED) };
    }

    /// Writes the pages of a range back.
    pub(crate) fn sync(&self, offset: u64, length: u64) -> i32 {
        let start = offset as usize & !4095;
        let end = (offset.saturating_add(length) as usize).min(self.length);
        if end <= start {
            return 0;
        }
        // SAFETY: the range lies within the mapping.
        match unsafe { libc::msync(self.base.add(start).cast(), end - start, libc::MS_SYNC) } {
            0 => 0,
            _ => -io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
        }
    }

    /// Length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length as u64
    }
}

/// A duplicate of a descriptor, which need not be open.
fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer to memory.
    let duplicate = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if duplicate < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_that_is_not_open_is_refused() {
        for fd in [-1, i32::MIN, i32::MAX] {
            let error = Mapping::map(fd, 4096, false, false).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{fd}");
        }
    }

    #[test]
    fn sync_beyond_the_mapping_does_nothing() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mapping = Mapping::map(file.as_raw_fd(), 8192, true, false).unwrap();
        for (offset, length) in [(8192, 1), (u64::MAX, 1), (u64::MAX - 4096, u64::MAX)] {
            assert_eq!(mapping.sync(offset, length), 0, "{offset} {length}");
        }
        assert_eq!(mapping.sync(0, u64::MAX), 0);
    }
}
