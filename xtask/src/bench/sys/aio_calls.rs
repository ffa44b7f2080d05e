//! Reads by libaio: io_submit(2) and io_getevents(2) by their raw system calls, and the ring of
//! completions that the kernel maps into the process.

use super::super::aligned_block::{AlignedBlock, BLOCK_BYTES};
use nix::libc;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// AIO_RING_MAGIC.
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of linux/aio_abi.h on little-endian machines. An opcode of 0 is IOCB_CMD_PREAD.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ReadControlBlock {
    slot: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    address: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ReadEvent {
    slot: u64,
    control_block: u64,
    result: i64,
    result2: i64,
}

/// `struct aio_ring` of the kernel's fs/aio.c. The events follow it.
#[repr(C)]
struct ReadRing {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible_features: u32,
    incompatible_features: u32,
    header_bytes: u32,
}

const _: () = {
    assert!(size_of::<ReadRing>() == 32, "as in the kernel");
    assert!(
        size_of::<ReadControlBlock>() == 64,
        "as in the kernel's header"
    );
    assert!(size_of::<ReadEvent>() == 32, "as in the kernel's header");
};

/// Reads of one file by an AIO context, each into a buffer of its own.
pub(in crate::bench) struct AioReads {
    context: libc::c_ulong,
    /// The ring at the context's id, if it has the known layout.
    ring: Option<NonNull<ReadRing>>,
    /// A control block for each buffer. The kernel copies it in io_submit(2).
    blocks: Box<[ReadControlBlock]>,
    events: Box<[ReadEvent]>,
    /// Numbers of the blocks that are not in flight.
    free: Vec<u32>,
    pointers: Vec<*const ReadControlBlock>,
    /// Freed after `drop`, which waits for the reads in flight.
    _buffers: Vec<AlignedBlock>,
}

impl AioReads {
    /// Prepares up to `depth` reads in flight.
    pub(in crate::bench) fn new(file: &File, depth: u32) -> io::Result<AioReads> {
        let mut buffers = vec![AlignedBlock::ZEROED; depth as usize];
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup writes one context id, which lives through the call.
        let made =
            unsafe { libc::syscall(libc::SYS_io_setup, depth as libc::c_long, &raw mut context) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        let block = |(slot, buffer): (u64, &mut AlignedBlock)| ReadControlBlock {
            slot,
            descriptor: file.as_raw_fd() as u32,
            address: buffer.0.as_mut_ptr().addr() as u64,
            length: BLOCK_BYTES,
            ..ReadControlBlock::default()
        };
        let ring = std::ptr::with_exposed_provenance_mut::<ReadRing>(context as usize);
        let ring = NonNull::new(ring).filter(|ring| {
            // SAFETY: Linux maps the ring at the context's id, until io_destroy.
            let ring = unsafe { ring.as_ref() };
            ring.magic == RING_MAGIC && ring.incompatible_features == 0 && ring.header_bytes == 32
        });
        Ok(AioReads {
            context,
            ring,
            blocks: (0..).zip(&mut buffers).map(block).collect(),
            events: vec![ReadEvent::default(); depth as usize].into_boxed_slice(),
            free: (0..depth).collect(),
            pointers: Vec::with_capacity(depth as usize),
            _buffers: buffers,
        })
    }

    /// Whether completions are read from the ring.
    pub(in crate::bench) fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Starts a read for each free buffer in one call, and waits for at least one: in another call
    /// if none has ended. Returns the number of reads that have ended.
    #[inline(always)]
    pub(in crate::bench) fn round(&mut self, mut offset: impl FnMut() -> u64) -> io::Result<u64> {
        self.pointers.clear();
        for slot in &self.free {
            let block = &mut self.blocks[*slot as usize];
            block.offset = offset() as i64;
            self.pointers.push(&raw const *block);
        }
        // SAFETY: the pointers are those of the context's own blocks. Each has a buffer that is
        // neither moved nor accessed, and is freed after io_destroy has waited for the reads.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.context,
                self.pointers.len(),
                self.pointers.as_ptr(),
            )
        };
        match usize::try_from(taken) {
            Ok(taken) => drop(self.free.drain(..taken)),
            Err(_) => return Err(io::Error::last_os_error()),
        }
        self.reap()
    }

    #[inline(always)]
    fn reap(&mut self) -> io::Result<u64> {
        let mut count = 0;
        while let Some(event) = self.take_from_ring() {
            self.finish(event)?;
            count += 1;
        }
        if count > 0 { Ok(count) } else { self.wait() }
    }

    /// Takes the oldest event of the ring.
    #[inline(always)]
    fn take_from_ring(&mut self) -> Option<ReadEvent> {
        let at = self.ring?;
        // SAFETY: the ring stays mapped until io_destroy.
        let ring = unsafe { at.as_ref() };
        let head = ring.head.load(Relaxed);
        if head == ring.tail.load(Acquire) || head >= ring.entries {
            return None;
        }
        // SAFETY: the events follow the header, and `head` is one that the kernel has written.
        let event = unsafe {
            let events = at.as_ptr().add(1).cast::<ReadEvent>();
            events.add(head as usize).read_volatile()
        };
        let is_last = head + 1 == ring.entries;
        ring.head.store(if is_last { 0 } else { head + 1 }, Release);
        Some(event)
    }

    /// Waits for at least one read.
    fn wait(&mut self) -> io::Result<u64> {
        let least: libc::c_long = 1;
        // SAFETY: the kernel writes up to as many events as the list has. Null is no timeout.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                least,
                self.events.len(),
                self.events.as_mut_ptr(),
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        };
        for index in 0..count {
            self.finish(self.events[index])?;
        }
        Ok(count as u64)
    }

    /// Frees the buffer of a read that has ended.
    #[inline(always)]
    fn finish(&mut self, event: ReadEvent) -> io::Result<()> {
        self.free.push(event.slot as u32);
        debug_assert!(self.free.len() <= self.blocks.len(), "each read ends once");
        if event.result == BLOCK_BYTES as i64 {
            return Ok(());
        }
        let text = format!("a read returned {}", event.result);
        Err(io::Error::other(text))
    }
}

impl Drop for AioReads {
    fn drop(&mut self) {
        // SAFETY: the id is that of io_setup. The call waits for the reads in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
