//! The ring of completions of an AIO context, which the kernel maps into this process.
//!
//! io_getevents(2) copies events from this ring. Reading them here saves that call for each I/O
//! that is complete already, as libaio and `userspace_reap` of fio do.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AioEvent {
    pub(super) data: u64,
    pub(super) object: u64,
    pub(super) result: i64,
    pub(super) result2: i64,
}

const _: () = assert!(size_of::<AioEvent>() == 32, "as in the kernel's header");

/// AIO_RING_MAGIC: other kernels, such as gVisor, have no ring or another one.
const MAGIC: u32 = 0xa10a_10a1;

/// `struct aio_ring` of the kernel's fs/aio.c. The events follow it.
#[repr(C)]
struct AioRingHeader {
    id: u32,
    entries: u32,
    /// The next event to read, which this process moves on.
    head: AtomicU32,
    /// The next event to write, which the kernel moves on.
    tail: AtomicU32,
    magic: u32,
    compatible_features: u32,
    incompatible_features: u32,
    header_bytes: u32,
}

const _: () = assert!(size_of::<AioRingHeader>() == 32, "as in the kernel");

/// Reader of the ring of one context. No other thread reads events of the context.
pub(super) struct AioRing {
    header: NonNull<AioRingHeader>,
    entries: u32,
}

impl AioRing {
    /// Finds the ring of a context. `None` if the kernel has no ring of the known layout.
    ///
    /// # Safety
    /// `id` is that of io_setup(2), whose context outlives the reader, and all readers and calls of
    /// io_getevents(2) for the context are on one thread at a time.
    pub(super) unsafe fn of_context(id: libc::c_ulong) -> Option<AioRing> {
        let address = std::ptr::with_exposed_provenance_mut::<AioRingHeader>(id as usize);
        let header = NonNull::new(address).filter(|header| header.is_aligned())?;
        // SAFETY: Linux maps the ring at the id, as libaio relies on too. Its head and tail are
        // atomic, the kernel does not change the rest.
        let ring = unsafe { header.as_ref() };
        let is_known = ring.magic == MAGIC
            && ring.incompatible_features == 0
            && ring.header_bytes as usize == size_of::<AioRingHeader>();
        is_known.then_some(AioRing {
            header,
            entries: ring.entries,
        })
    }

    /// Takes the oldest event, if there is one.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<AioEvent> {
        // SAFETY: the ring stays mapped while the context exists, by the contract of `of_context`.
        let ring = unsafe { self.header.as_ref() };
        let head = ring.head.load(Relaxed);
        if head == ring.tail.load(Acquire) || head >= self.entries {
            return None;
        }
        // SAFETY: the entries follow the header, and `head` is one of them. The kernel has written
        // it before it moved the tail, and does not write it again until the head moves on.
        let event = unsafe {
            let events = self.header.as_ptr().add(1).cast::<AioEvent>();
            events.add(head as usize).read_volatile()
        };
        let next = if head + 1 == self.entries {
            0
        } else {
            head + 1
        };
        ring.head.store(next, Release);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: u32 = 3;

    /// A ring as the kernel lays it out.
    #[repr(C)]
    struct RingInMemory {
        header: AioRingHeader,
        events: [AioEvent; ENTRIES as usize],
    }

    fn ring(magic: u32, head: u32, tail: u32) -> Box<RingInMemory> {
        let event = |data| AioEvent {
            data,
            ..AioEvent::default()
        };
        Box::new(RingInMemory {
            header: AioRingHeader {
                id: 0,
                entries: ENTRIES,
                head: AtomicU32::new(head),
                tail: AtomicU32::new(tail),
                magic,
                compatible_features: 1,
                incompatible_features: 0,
                header_bytes: 32,
            },
            events: [event(10), event(11), event(12)],
        })
    }

    fn reader(ring: &mut RingInMemory) -> Option<AioRing> {
        let address = std::ptr::from_mut(ring).expose_provenance();
        // SAFETY: the ring outlives its reader in each test, on one thread.
        unsafe { AioRing::of_context(address as libc::c_ulong) }
    }

    #[test]
    fn ring_events_are_taken_in_order_and_wrap() {
        let mut memory = ring(MAGIC, 2, 1);
        let mut reader = reader(&mut memory).unwrap();
        let taken: Vec<u64> = std::iter::from_fn(|| reader.take())
            .map(|event| event.data)
            .collect();
        assert_eq!(taken, [12, 10]);
        assert!(reader.take().is_none(), "the ring is empty");
    }

    #[test]
    fn ring_of_unknown_layout_is_not_read() {
        assert!(reader(&mut ring(0, 0, 1)).is_none());
        let mut newer = ring(MAGIC, 0, 1);
        newer.header.incompatible_features = 1;
        assert!(reader(&mut newer).is_none());
        // SAFETY: a null pointer is no ring.
        assert!(unsafe { AioRing::of_context(0) }.is_none());
    }

    #[test]
    fn ring_head_outside_of_the_ring_ends_reading() {
        let mut memory = ring(MAGIC, ENTRIES, 1);
        assert!(reader(&mut memory).unwrap().take().is_none());
    }
}
