//! I/O buffers: one mapping, divided into slots.

use crate::slot::Slot;
use crate::sys::c_library as libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// Source of the memory for I/O buffers.
#[derive(Debug, Clone, Copy)]
pub enum MemoryKind<'a> {
    /// Ordinary pages.
    Pages,
    /// Huge pages of this size in bytes (a power of two), reserved by the administrator.
    HugePages(usize),
    /// Huge pages, shared.
    SharedHugePages(usize),
    /// A file, which is extended to a multiple of this many bytes.
    File(&'a UnlinkedFile, usize),
    /// Ordinary pages, shared.
    Shared,
    /// Ordinary pages that are allocated on first access.
    Unpopulated,
}

/// A file that this process alone can map: it was created here and has no name.
#[derive(Debug)]
pub struct UnlinkedFile(File);

impl UnlinkedFile {
    /// Creates the file at `path`, which must not exist, and removes the name at once.
    pub fn create(path: &Path) -> io::Result<UnlinkedFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        // Another process may have removed the name already.
        let _ = std::fs::remove_file(path);
        Ok(UnlinkedFile(file))
    }
}

/// Buffers for I/O: `slots` areas of `stride` bytes each, zeroed and page-aligned.
///
/// A slot is in flight while the kernel or a library may access its buffer. References to its
/// bytes exist only at other times: [`IoMemory::slot`] and [`IoMemory::slot_mut`] panic for a slot
/// in flight, and `begin_io` takes the memory exclusively, so that no reference is left.
#[derive(Debug)]
pub struct IoMemory {
    base: *mut u8,
    /// Offset of the first slot, to align it (`iomem_align`).
    lead: usize,
    stride: usize,
    /// By slot.
    in_flight: Box<[bool]>,
    mapping: Arc<MappedArea>,
}

/// The mapping of an [`IoMemory`]. Its last owner unmaps it.
#[derive(Debug)]
struct MappedArea {
    base: *mut u8,
    length: usize,
}

// SAFETY: this value alone owns the mapping, which is not tied to a thread, and never accesses it.
unsafe impl Send for MappedArea {}
// SAFETY: as above, so threads that share it change nothing.
unsafe impl Sync for MappedArea {}

impl Drop for MappedArea {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`. Each backend with I/O in flight owns a share in it.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// A backend's share in the mapping of the buffers: they stay mapped while it exists.
#[derive(Debug, Clone)]
pub struct KeptMapping(Arc<MappedArea>);

impl KeptMapping {
    /// Keeps the buffers mapped until the process ends, because a kernel worker or a library that
    /// cannot cancel a request may still write to them.
    pub(crate) fn leave(&self) {
        std::mem::forget(self.0.clone());
    }

    /// Whether this is the mapping of `memory`.
    #[inline(always)]
    pub fn is_of(&self, memory: &IoMemory) -> bool {
        // The pointers lie beside other fields of each step. Their target is in another cache line.
        Arc::ptr_eq(&self.0, &memory.mapping)
    }
}

// SAFETY: this value alone owns the mapping, which is not tied to a thread.
unsafe impl Send for IoMemory {}

impl IoMemory {
    /// Maps memory for `slots` buffers of at least `bytes` each, aligned to `align` (0: to a page).
    pub fn map(
        slots: usize,
        bytes: usize,
        align: usize,
        kind: MemoryKind<'_>,
    ) -> io::Result<IoMemory> {
        let page = 4096;
        let unit = align.max(page);
        let stride = bytes.max(1).checked_next_multiple_of(unit);
        let stride = stride.ok_or_else(too_large)?;
        let wanted = stride
            .checked_mul(slots.max(1))
            .and_then(|sum| sum.checked_add(unit))
            .ok_or_else(too_large)?;
        let length = match kind {
            MemoryKind::HugePages(size)
            | MemoryKind::SharedHugePages(size)
            | MemoryKind::File(_, size) => wanted.checked_next_multiple_of(size.max(page)),
            MemoryKind::Pages | MemoryKind::Shared | MemoryKind::Unpopulated => Some(wanted),
        };
        let length = length.ok_or_else(too_large)?;
        let anonymous = libc::MAP_ANONYMOUS;
        let populate = match kind {
            MemoryKind::Unpopulated => 0,
            _ => libc::MAP_POPULATE,
        };
        let (flags, fd) = match kind {
            MemoryKind::Pages | MemoryKind::Unpopulated => (anonymous | libc::MAP_PRIVATE, -1),
            MemoryKind::HugePages(size) => (anonymous | libc::MAP_PRIVATE | huge_flags(size), -1),
            MemoryKind::Shared => (anonymous | libc::MAP_SHARED, -1),
            MemoryKind::SharedHugePages(size) => {
                (anonymous | libc::MAP_SHARED | huge_flags(size), -1)
            }
            MemoryKind::File(file, _) => {
                file.0.set_len(length as u64)?;
                (libc::MAP_SHARED, file.0.as_raw_fd())
            }
        };
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing. No other
        // process has a name for a file, which was just resized to the length of the mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | populate,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = base.cast::<u8>();
        let lead = (unit - base as usize % unit) % unit;
        let slots = slots.max(1);
        // `address` relies on it.
        assert!(
            lead + slots * stride <= length,
            "{slots} buffers of {stride} bytes exceed a mapping of {length}"
        );
        Ok(IoMemory {
            base,
            lead,
            stride,
            in_flight: vec![false; slots].into_boxed_slice(),
            mapping: Arc::new(MappedArea { base, length }),
        })
    }

    /// Size of one slot in bytes.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.in_flight.len()
    }

    /// Address of a slot, for the kernel and for the libraries of remote storage.
    #[inline(always)]
    pub fn address(&self, slot: u32) -> *mut u8 {
        assert!((slot as usize) < self.slots());
        // SAFETY: `map` makes the mapping larger than lead + slots * stride.
        unsafe { self.base.add(self.lead + slot as usize * self.stride) }
    }

    /// Address of `length` bytes from `at` within a slot that is not in flight, for a call that
    /// does not outlast its caller.
    #[inline(always)]
    pub(super) fn idle_address(&mut self, slot: u32, at: usize, length: usize) -> *mut u8 {
        assert!(!self.in_flight[slot as usize], "slot {slot} is in flight");
        assert!(at <= self.stride && length <= self.stride - at);
        // Within the slot by the assertion.
        self.address(slot).wrapping_add(at)
    }

    /// Marks a slot as in flight.
    ///
    /// # Panics
    /// If it is in flight already, or does not exist.
    #[inline(always)]
    pub fn begin_io(&mut self, slot: u32) {
        let in_flight = &mut self.in_flight[slot as usize];
        assert!(
            !std::mem::replace(in_flight, true),
            "slot {slot} is in flight"
        );
    }

    /// Marks a slot as no longer in flight. The caller knows that nothing accesses its buffer.
    #[inline(always)]
    pub(super) fn end_io(&mut self, slot: u32) {
        debug_assert!(
            self.in_flight[slot as usize],
            "slot {slot} is not in flight"
        );
        self.in_flight[slot as usize] = false;
    }

    /// Marks a slot as no longer in flight, for a library of remote storage.
    ///
    /// # Safety
    /// Nothing accesses the buffer of the slot any more.
    #[inline(always)]
    pub unsafe fn end_library_io(&mut self, slot: u32) {
        self.end_io(slot);
    }

    /// Whether a slot is in flight.
    ///
    /// # Panics
    /// If the slot does not exist.
    #[inline(always)]
    pub fn is_in_flight(&self, slot: u32) -> bool {
        self.in_flight[slot as usize]
    }

    /// The first `length` bytes of a slot.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist, or has fewer bytes.
    #[inline]
    pub fn slot(&self, slot: u32, length: usize) -> &[u8] {
        assert!(!self.in_flight[slot as usize] && length <= self.stride);
        // SAFETY: within the mapping by the assertion. A slot that is not in flight is not written.
        unsafe { std::slice::from_raw_parts(self.address(slot), length) }
    }

    /// The first `length` bytes of a slot, to write to.
    ///
    /// # Panics
    /// As [`IoMemory::slot`].
    #[inline]
    pub fn slot_mut(&mut self, slot: u32, length: usize) -> &mut [u8] {
        assert!(!self.in_flight[slot as usize] && length <= self.stride);
        // SAFETY: within the mapping by the assertion, and `&mut self` is exclusive (see the type).
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), length) }
    }

    /// Gives up the I/Os in flight: replaces the buffers by new ones, and leaves the old ones
    /// mapped until the process ends, because a library may still access them. No slot is in flight
    /// then. Slots that were not in flight keep their contents.
    ///
    /// # Errors
    /// If no memory can be mapped. The slots stay in flight then, so that they cannot be used.
    #[cold]
    pub fn replace_buffers(&mut self) -> io::Result<()> {
        self.keep_mapped().leave();
        let (slots, stride) = (self.slots(), self.stride);
        let mut fresh = IoMemory::map(slots, stride, 0, MemoryKind::Unpopulated)?;
        debug_assert_eq!((fresh.slots(), fresh.stride), (slots, stride));
        for slot in (0..slots as u32).filter(|slot| !self.is_in_flight(*slot)) {
            let contents = self.slot(slot, stride);
            fresh.slot_mut(slot, stride).copy_from_slice(contents);
        }
        *self = fresh;
        Ok(())
    }

    /// A share in the mapping, for a backend whose I/O may outlast this value.
    pub fn keep_mapped(&self) -> KeptMapping {
        KeptMapping(self.mapping.clone())
    }

    /// The area of all slots, to register with the kernel.
    pub(super) fn area(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.address(0).cast(),
            iov_len: self.stride * self.slots(),
        }
    }
}

/// mmap(2) takes the logarithm of the size of huge pages.
fn huge_flags(size: usize) -> libc::c_int {
    libc::MAP_HUGETLB | (size.trailing_zeros() << libc::MAP_HUGE_SHIFT) as libc::c_int
}

fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOMEM)
}

/// Locked memory of `bytes`, which leaves less memory for caches (`lockmem`).
#[derive(Debug)]
pub(crate) struct LockedMemory {
    base: *mut libc::c_void,
    length: usize,
}

// SAFETY: as for `IoMemory`. The memory is never accessed.
unsafe impl Send for LockedMemory {}

impl LockedMemory {
    /// Maps and locks the memory.
    pub(crate) fn lock(bytes: usize) -> io::Result<LockedMemory> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn memory() -> IoMemory {
        IoMemory::map(2, 4096, 0, MemoryKind::Pages).unwrap()
    }

    #[test]
    fn buffer_in_flight_has_no_reference() {
        let mut memory = memory();
        memory.begin_io(1);
        let mut panics = |access: &mut dyn FnMut(&mut IoMemory)| {
            catch_unwind(AssertUnwindSafe(|| access(&mut memory))).is_err()
        };
        assert!(panics(&mut |memory| drop(memory.slot(1, 1).to_vec())));
        assert!(panics(&mut |memory| memory.slot_mut(1, 1).fill(0)));
        assert!(panics(&mut |memory| {
            memory.idle_address(1, 0, 1);
        }));
        assert!(panics(&mut |memory| memory.begin_io(1)));
        memory.slot_mut(0, 1).fill(7);
        memory.end_io(1);
        assert_eq!(memory.slot(1, 1), [0]);
    }

    #[test]
    fn replaced_buffers_leave_those_in_flight_to_the_library() {
        let mut memory = memory();
        memory.slot_mut(0, 4096).fill(7);
        memory.slot_mut(1, 4096).fill(8);
        memory.begin_io(1);
        let abandoned = memory.address(1);
        let old = memory.keep_mapped();
        memory.replace_buffers().unwrap();
        assert!(!old.is_of(&memory));
        drop(old);
        assert_eq!(memory.slot(0, 4096), [7; 4096], "it was not in flight");
        memory.slot_mut(1, 4096).fill(9);
        // SAFETY: the old buffers stay mapped, and nothing else accesses them.
        let late_byte = unsafe {
            abandoned.write(5);
            abandoned.add(4095).read()
        };
        assert_eq!(late_byte, 8, "no buffer of a slot is the abandoned one");
        assert_eq!(memory.slot(1, 4096), [9; 4096]);
        memory.begin_io(1);
    }

    #[test]
    fn slot_beyond_the_memory_panics() {
        let mut memory = memory();
        let stride = memory.stride();
        let mut panics = |access: &mut dyn FnMut(&mut IoMemory)| {
            catch_unwind(AssertUnwindSafe(|| access(&mut memory))).is_err()
        };
        assert!(panics(&mut |memory| drop(memory.slot(2, 0).to_vec())));
        assert!(panics(&mut |memory| drop(
            memory.slot(0, stride + 1).to_vec()
        )));
        assert!(panics(&mut |memory| {
            memory.idle_address(0, 1, stride);
        }));
        assert!(panics(&mut |memory| {
            memory.idle_address(0, usize::MAX, 2);
        }));
        assert!(panics(&mut |memory| {
            memory.address(2);
        }));
        assert!(panics(&mut |memory| memory.begin_io(2)));
        assert!(!panics(&mut |memory| {
            memory.idle_address(1, 1, stride - 1);
        }));
    }

    #[test]
    fn memory_of_impossible_size_is_refused() {
        for (slots, bytes) in [(usize::MAX, 1), (1, usize::MAX), (1 << 32, 1 << 32)] {
            let error = IoMemory::map(slots, bytes, 0, MemoryKind::Pages).unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(libc::ENOMEM),
                "{slots} of {bytes}"
            );
        }
    }
}
