//! I/O buffers: one mapping, divided into slots.

use crate::slot::Slot;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Source of the memory for I/O buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Ordinary pages.
    Pages,
    /// Huge pages of this size in bytes (a power of two), reserved by the administrator.
    HugePages(usize),
    /// Huge pages, shared.
    SharedHugePages(usize),
    /// A file open for reading and writing. It is extended to a multiple of this many bytes.
    File(RawFd, usize),
    /// Ordinary pages, shared.
    Shared,
}

/// Buffers for I/O: `slots` areas of `stride` bytes each, zeroed and page-aligned.
///
/// Invariant: only the kernel accesses a slot in flight (submitted and not yet reaped). The worker
/// keeps a list of free slots and calls [`IoMemory::slot_mut`] for these only.
#[derive(Debug)]
pub struct IoMemory {
    base: *mut u8,
    length: usize,
    /// Offset of the first slot, to align it (`iomem_align`).
    lead: usize,
    stride: usize,
    slots: usize,
    left_mapped: LeftMapped,
}

/// Whether buffers stay mapped until the process ends, because a kernel worker or a library that
/// cannot cancel a request may still write to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftMapped(Arc<AtomicBool>);

impl LeftMapped {
    /// Leaves the buffers mapped.
    pub(crate) fn leave(&self) {
        self.0.store(true, Relaxed);
    }
}

// SAFETY: this value alone owns the mapping, which is not tied to a thread.
unsafe impl Send for IoMemory {}

impl IoMemory {
    /// Maps memory for `slots` buffers of at least `bytes` each, aligned to `align` (0: to a page).
    pub fn map(slots: usize, bytes: usize, align: usize, kind: MemoryKind) -> io::Result<IoMemory> {
        let page = 4096;
        let unit = align.max(page);
        let stride = bytes.max(1).next_multiple_of(unit);
        let wanted = stride
            .checked_mul(slots.max(1))
            .and_then(|sum| sum.checked_add(unit))
            .ok_or_else(too_large)?;
        let length = match kind {
            MemoryKind::HugePages(size)
            | MemoryKind::SharedHugePages(size)
            | MemoryKind::File(_, size) => wanted.next_multiple_of(size.max(page)),
            MemoryKind::Pages | MemoryKind::Shared => wanted,
        };
        let anonymous = libc::MAP_ANONYMOUS;
        let (flags, fd) = match kind {
            MemoryKind::Pages => (anonymous | libc::MAP_PRIVATE, -1),
            MemoryKind::HugePages(size) => (anonymous | libc::MAP_PRIVATE | huge_flags(size), -1),
            MemoryKind::Shared => (anonymous | libc::MAP_SHARED, -1),
            MemoryKind::SharedHugePages(size) => {
                (anonymous | libc::MAP_SHARED | huge_flags(size), -1)
            }
            MemoryKind::File(fd, _) => {
                resize(fd, length)?;
                (libc::MAP_SHARED, fd)
            }
        };
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing. A file
        // belongs to the caller alone and was just resized to the length of the mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_POPULATE,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = base.cast::<u8>();
        let lead = (unit - base as usize % unit) % unit;
        Ok(IoMemory {
            base,
            length,
            lead,
            stride,
            slots: slots.max(1),
            left_mapped: LeftMapped::default(),
        })
    }

    /// Size of one slot in bytes.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Address of a slot, for the kernel.
    #[inline(always)]
    pub(super) fn address(&self, slot: u32) -> *mut u8 {
        debug_assert!((slot as usize) < self.slots);
        // SAFETY: `map` makes the mapping larger than lead + slots * stride.
        unsafe { self.base.add(self.lead + slot as usize * self.stride) }
    }

    /// The first `length` bytes of a slot that is not in flight.
    #[inline]
    pub fn slot(&self, slot: u32, length: usize) -> &[u8] {
        assert!((slot as usize) < self.slots && length <= self.stride);
        // SAFETY: within the mapping by the assertion. A slot that is not in flight is not written.
        unsafe { std::slice::from_raw_parts(self.address(slot), length) }
    }

    /// The first `length` bytes of a slot that is not in flight, to write to.
    #[inline]
    pub fn slot_mut(&mut self, slot: u32, length: usize) -> &mut [u8] {
        assert!((slot as usize) < self.slots && length <= self.stride);
        // SAFETY: within the mapping by the assertion, and `&mut self` is exclusive (see the type).
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), length) }
    }

    /// Copies `data` to position `at` of a slot in flight, for backends that move the data
    /// themselves.
    pub(crate) fn deliver(&self, slot: u32, at: usize, data: &[u8]) {
        assert!(
            (slot as usize) < self.slots && at <= self.stride && data.len() <= self.stride - at
        );
        // SAFETY: within the slot by the assertion. The slot is in flight, so no reference to it
        // exists: `data` is other memory, and no other code accesses the slot meanwhile.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), self.address(slot).add(at), data.len())
        };
    }

    /// Flag for backends that may have to leave the memory mapped.
    pub(crate) fn left_mapped(&self) -> LeftMapped {
        self.left_mapped.clone()
    }

    /// The area of all slots, to register with the kernel.
    pub(super) fn area(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.address(0).cast(),
            iov_len: self.stride * self.slots,
        }
    }
}

impl Drop for IoMemory {
    fn drop(&mut self) {
        if self.left_mapped.0.load(Relaxed) {
            return;
        }
        // SAFETY: the mapping of `map`. Backends drop first: they wait for I/O or leave it mapped.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// mmap(2) takes the logarithm of the size of huge pages.
fn huge_flags(size: usize) -> libc::c_int {
    libc::MAP_HUGETLB | (size.trailing_zeros() << libc::MAP_HUGE_SHIFT) as libc::c_int
}

fn resize(fd: RawFd, length: usize) -> io::Result<()> {
    // SAFETY: the call takes no pointer to memory.
    match unsafe { libc::ftruncate(fd, length as libc::off_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOMEM)
}

/// Locked memory of `bytes`, which leaves less memory for caches (`lockmem`).
#[derive(Debug)]
pub struct LockedMemory {
    base: *mut libc::c_void,
    length: usize,
}

// SAFETY: as for `IoMemory`. The memory is never accessed.
unsafe impl Send for LockedMemory {}

impl LockedMemory {
    /// Maps and locks the memory.
    pub fn lock(bytes: usize) -> io::Result<LockedMemory> {
        // SAFETY: a new anonymous mapping, which replaces nothing.
        let base = unsafe {
            let flags = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let locked = LockedMemory {
            base,
            length: bytes,
        };
        // SAFETY: the range is the mapping just made.
        if unsafe { libc::mlock(base, bytes) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(locked)
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `lock`.
        unsafe { libc::munmap(self.base, self.length) };
    }
}
/// All slots of a worker and their buffers.
#[derive(Debug)]
pub struct Slab {
    /// I/Os, by index.
    pub slots: Box<[Slot]>,
    /// Buffers, one for each slot.
    pub memory: IoMemory,
}
