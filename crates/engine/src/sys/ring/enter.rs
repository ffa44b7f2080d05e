//! io_uring_enter(2) without the C library, through the registered descriptor of a ring.
//!
//! The crate `io-uring` keeps the index of a registered descriptor in a value that lives for one
//! call. Its calls pass the plain descriptor, and the kernel looks it up and counts a reference
//! each time. The bare loop of `cargo xtask bench` has a copy of the system call: it is held
//! against this loop, so the two share no code.

use crate::sys::ring_options::RingOptions;
use io_uring::types::{SubmitArgs, Timespec};
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::time::Duration;

/// IORING_ENTER_GETEVENTS.
const GETEVENTS: u32 = 1;
/// IORING_ENTER_SQ_WAKEUP.
const SQ_WAKEUP: u32 = 2;
/// IORING_ENTER_EXT_ARG.
const EXT_ARG: u32 = 8;
/// IORING_ENTER_REGISTERED_RING.
const REGISTERED_RING: u32 = 16;
/// IORING_ENTER_NO_IOWAIT.
const NO_IOWAIT: u32 = 128;
/// IORING_REGISTER_RING_FDS.
const REGISTER_RING_FDS: u32 = 20;
/// IORING_UNREGISTER_RING_FDS.
const UNREGISTER_RING_FDS: u32 = 21;

/// The descriptor that a thread passes to io_uring_enter(2): an index if the kernel has registered
/// it for that thread, else the plain descriptor.
pub(super) struct RingDescriptor {
    /// Descriptor or index.
    number: i32,
    /// Flags of each call.
    flags: u32,
    plain: RawFd,
    /// The index is valid on the thread that registered it: this type is not `Send`.
    _thread: PhantomData<*const ()>,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct DescriptorUpdate {
    index: u32,
    reserved: u32,
    descriptor: u64,
}

const _: () = assert!(
    size_of::<DescriptorUpdate>() == 16,
    "as in the kernel's header"
);

impl RingDescriptor {
    /// Registers the descriptor of a ring for the calling thread, if the kernel is 5.18 or newer
    /// and the options allow it. Each call wakes the kernel thread of SQPOLL.
    pub(super) fn register(fd: RawFd, options: &RingOptions) -> RingDescriptor {
        let wakeup = if options.sqpoll { SQ_WAKEUP } else { 0 };
        let mut update = DescriptorUpdate {
            index: u32::MAX,
            reserved: 0,
            descriptor: fd as u64,
        };
        let is_registered =
            !options.plain_descriptor && register_one(fd, REGISTER_RING_FDS, &mut update);
        let (number, registered) = match is_registered {
            true => (update.index as i32, REGISTERED_RING),
            false => (fd, 0),
        };
        RingDescriptor {
            number,
            flags: GETEVENTS | wakeup | registered,
            plain: fd,
            _thread: PhantomData,
        }
    }

    /// Whether calls pass the index of a registered descriptor.
    pub(super) fn is_registered(&self) -> bool {
        self.flags & REGISTERED_RING != 0
    }

    /// Stops counting waits as waits for I/O, which raise the frequency of an idle CPU on some
    /// machines. The kernel must have the feature.
    pub(super) fn leave_iowait(&mut self) {
        self.flags |= NO_IOWAIT;
    }

    /// Whether waits do not count as waits for I/O.
    pub(super) fn leaves_iowait(&self) -> bool {
        self.flags & NO_IOWAIT != 0
    }

    /// Releases the index, which keeps the ring open until the thread ends.
    pub(super) fn unregister(&mut self) {
        if !self.is_registered() {
            return;
        }
        let mut update = DescriptorUpdate {
            index: self.number as u32,
            reserved: 0,
            descriptor: 0,
        };
        register_one(self.plain, UNREGISTER_RING_FDS, &mut update);
        self.number = self.plain;
        self.flags &= !REGISTERED_RING;
    }

    /// Submits `queued` entries, runs deferred task work, and waits for `min` completions.
    #[inline(always)]
    pub(super) fn enter(&self, queued: u32, min: u32) -> io::Result<()> {
        // SAFETY: no signal mask or timeout is passed.
        let result =
            unsafe { io_uring_enter(self.number, queued, min, self.flags, std::ptr::null(), 0) };
        checked(result)
    }

    /// Submits `queued` entries and runs deferred task work. A later wait reports a failure, which
    /// leaves the entries queued.
    #[inline(always)]
    pub(super) fn enter_unchecked(&self, queued: u32) {
        // SAFETY: no signal mask or timeout is passed.
        unsafe { io_uring_enter(self.number, queued, 0, self.flags, std::ptr::null(), 0) };
    }

    /// Submits `queued` entries and waits for `min` completions, at most `timeout` (ETIME).
    pub(super) fn enter_within(&self, queued: u32, min: u32, timeout: Duration) -> io::Result<()> {
        let time = Timespec::from(timeout);
        self.enter_with(queued, min, &SubmitArgs::new().timespec(&time))
    }

    /// Submits `queued` entries and waits for `min` completions. After `wait_us` microseconds, one
    /// completion is enough. The kernel must have the feature.
    pub(super) fn enter_min_wait(&self, queued: u32, min: u32, wait_us: u32) -> io::Result<()> {
        self.enter_with(queued, min, &SubmitArgs::new().min_wait_usec(wait_us))
    }

    fn enter_with(&self, queued: u32, min: u32, arguments: &SubmitArgs<'_, '_>) -> io::Result<()> {
        let flags = self.flags | EXT_ARG;
        // SAFETY: `SubmitArgs` is a transparent `struct io_uring_getevents_arg`. It and its timeout
        // are borrowed through the call, and no signal mask is passed.
        let result = unsafe {
            io_uring_enter(
                self.number,
                queued,
                min,
                flags,
                std::ptr::from_ref(arguments).cast(),
                size_of_val(arguments),
            )
        };
        checked(result)
    }
}

/// Registers or unregisters one descriptor. Returns whether the kernel did.
fn register_one(fd: RawFd, operation: u32, update: &mut DescriptorUpdate) -> bool {
    // SAFETY: the kernel reads and writes one update, which lives through the call.
    let updated = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            fd,
            operation,
            &raw mut *update,
            1u32,
        )
    };
    updated == 1
}

/// Whether a failed call may succeed when repeated.
pub(super) fn retry(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

#[inline(always)]
fn checked(result: isize) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::from_raw_os_error(-result as i32)),
    }
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
