//! System calls and libraries of the bare loops: io_uring_enter(2) without the C library, entries
//! of its queue, and in the modules those of other engines and of processes.
//!
//! A copy of what `crates/engine/src/sys` does, because the engine is held against the bare loops:
//! a change of the one must not change the other.

#![expect(unsafe_code, reason = "system calls take structures by address")]

pub(super) mod aio_calls;
pub(super) mod child_usage;
pub(super) mod rados_calls;
pub(super) mod rbd_calls;

use io_uring::{IoUring, opcode, squeue};
use nix::libc;
use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;

/// IORING_ENTER_GETEVENTS.
const GETEVENTS: u32 = 1;
/// IORING_ENTER_EXT_ARG.
const EXT_ARG: u32 = 8;
/// IORING_ENTER_REGISTERED_RING.
const REGISTERED_RING: u32 = 16;
/// IORING_ENTER_NO_IOWAIT.
const NO_IOWAIT: u32 = 128;
/// IOSQE_FIXED_FILE: the entry has the number of a registered file.
const FIXED_FILE: u8 = 1;
/// IORING_REGISTER_RING_FDS.
const REGISTER_RING_FDS: u32 = 20;

/// The arguments that all calls for one ring have in common.
#[derive(Debug)]
pub(super) struct RingCalls {
    /// The ring's descriptor, or the index under which the kernel registered it.
    number: i32,
    flags: u32,
    /// Passed if it has a time.
    wait: WaitArgument,
}

/// `struct io_uring_getevents_arg`.
#[derive(Debug, Default)]
#[repr(C)]
struct WaitArgument {
    signal_mask: u64,
    signal_mask_bytes: u32,
    min_wait_us: u32,
    timeout: u64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct RingRegistration {
    index: u32,
    reserved: u32,
    descriptor: u64,
}

const _: () = {
    assert!(size_of::<WaitArgument>() == 24, "as in the kernel's header");
    assert!(
        size_of::<RingRegistration>() == 16,
        "as in the kernel's header"
    );
};

impl RingCalls {
    /// Calls with the plain descriptor of a ring.
    pub(super) fn with_descriptor(ring: &IoUring) -> RingCalls {
        RingCalls {
            number: ring.as_raw_fd(),
            flags: GETEVENTS,
            wait: WaitArgument::default(),
        }
    }

    /// Registers the descriptor for this thread. Returns whether the kernel did.
    pub(super) fn register(&mut self) -> bool {
        let mut update = RingRegistration {
            index: u32::MAX,
            reserved: 0,
            descriptor: self.number as u64,
        };
        // SAFETY: the kernel reads and writes one update, which lives through the call.
        let registered = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                self.number,
                REGISTER_RING_FDS,
                &raw mut update,
                1u32,
            )
        };
        if registered != 1 {
            return false;
        }
        self.number = update.index as i32;
        self.flags |= REGISTERED_RING;
        true
    }

    /// Lets waits not count as waits for I/O (Linux 6.15).
    pub(super) fn set_no_iowait(&mut self) {
        self.flags |= NO_IOWAIT;
    }

    /// Lets a wait return with a single completion after this time (Linux 6.12).
    pub(super) fn set_min_wait(&mut self, min_wait_us: u32) {
        self.wait.min_wait_us = min_wait_us;
        self.flags |= EXT_ARG;
    }

    /// Submits `queued` entries, and waits for `min` completions. A signal ends the wait.
    #[inline(always)]
    pub(super) fn submit_and_wait(&self, queued: u32, min: u32) -> io::Result<()> {
        let (argument, bytes) = if self.flags & EXT_ARG == 0 {
            (std::ptr::null(), 0)
        } else {
            ((&raw const self.wait).cast(), size_of::<WaitArgument>())
        };
        // SAFETY: the structure lives through the call. It has no signal mask and no timeout.
        let result =
            unsafe { io_uring_enter(self.number, queued, min, self.flags, argument, bytes) };
        match result {
            0.. => Ok(()),
            _ if result == -(libc::EINTR as isize) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(-result as i32)),
        }
    }
}

/// A read of a registered file into a registered buffer, as the kernel reads it from the queue
/// (`struct io_uring_sqe`). The builders of the crate copy it twice.
#[repr(C)]
struct ReadEntry {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    file: i32,
    offset: u64,
    address: u64,
    length: u32,
    rw_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

const _: () = {
    assert!(size_of::<ReadEntry>() == size_of::<squeue::Entry>());
    assert!(
        std::mem::offset_of!(ReadEntry, user_data) == 32,
        "as in the kernel's header"
    );
};

/// A read at `offset` of registered file 0 into `length` bytes at `address` of registered buffer 0.
#[inline(always)]
pub(super) fn read_entry(slot: u32, offset: u64, address: *mut u8, length: u32) -> squeue::Entry {
    let entry = ReadEntry {
        opcode: opcode::ReadFixed::CODE,
        flags: FIXED_FILE,
        ioprio: 0,
        file: 0,
        offset,
        address: address.addr() as u64,
        length,
        rw_flags: 0,
        user_data: slot.into(),
        rest: [0; 3],
    };
    // SAFETY: both are 64 bytes of plain integers; `Entry` is a `repr(C)` `io_uring_sqe`.
    unsafe { std::mem::transmute::<ReadEntry, squeue::Entry>(entry) }
}

/// io_uring_enter(2). Returns the number of submitted entries, or the negative errno.
///
/// # Safety
/// `argument` must be null or point to the structure that `flags` select, of `bytes` bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn io_uring_enter(
    number: i32,
    queued: u32,
    min: u32,
    flags: u32,
    argument: *const c_void,
    bytes: usize,
) -> isize {
    let result: isize;
    // SAFETY: the call follows the kernel's convention: it overwrites rax, rcx and r11, and memory
    // that the caller of this function vouches for.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_io_uring_enter as isize => result,
            in("rdi") number as isize,
            in("rsi") queued as usize,
            in("rdx") min as usize,
            in("r10") flags as usize,
            in("r8") argument,
            in("r9") bytes,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// io_uring_enter(2). Returns the number of submitted entries, or the negative errno.
///
/// # Safety
/// `argument` must be null or point to the structure that `flags` select, of `bytes` bytes.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn io_uring_enter(
    number: i32,
    queued: u32,
    min: u32,
    flags: u32,
    argument: *const c_void,
    bytes: usize,
) -> isize {
    let result: isize;
    // SAFETY: the call follows the kernel's convention: it overwrites x0, and memory that the
    // caller of this function vouches for.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") libc::SYS_io_uring_enter as usize,
            inlateout("x0") number as isize => result,
            in("x1") queued as usize,
            in("x2") min as usize,
            in("x3") flags as usize,
            in("x4") argument,
            in("x5") bytes,
            options(nostack),
        );
    }
    result
}

/// io_uring_enter(2). Returns the number of submitted entries, or the negative errno.
///
/// # Safety
/// `argument` must be null or point to the structure that `flags` select, of `bytes` bytes.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn io_uring_enter(
    number: i32,
    queued: u32,
    min: u32,
    flags: u32,
    argument: *const c_void,
    bytes: usize,
) -> isize {
    let call = libc::SYS_io_uring_enter;
    // SAFETY: as the caller of this function vouches.
    match unsafe { libc::syscall(call, number, queued, min, flags, argument, bytes) } {
        -1 => {
            -(io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO) as isize)
        }
        submitted => submitted as isize,
    }
}
