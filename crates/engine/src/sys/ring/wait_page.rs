//! A page from which the kernel reads the timeout of a wait (Linux 6.13).

use crate::sys::memory::{IoMemory, MemoryKind};
use io_uring::types::{IORING_MEM_REGION_TYPE_USER, io_uring_region_desc};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// IORING_REGISTER_MEM_REGION, which the crate `io-uring` does not call.
const REGISTER_MEM_REGION: u32 = 34;
/// IORING_MEM_REGION_REG_WAIT_ARG.
const REG_WAIT_ARG: u64 = 1;
/// IORING_REG_WAIT_TS: the wait has a timeout.
const HAS_TIMEOUT: u32 = 1;
/// Size of `struct io_uring_reg_wait`: seconds, nanoseconds, minimum wait, flags, signal mask.
pub(super) const WAIT_BYTES: usize = 64;

/// The page. One wait is at its start.
pub(super) struct WaitPage(IoMemory);

impl WaitPage {
    /// Registers a new page with a ring, which is disabled.
    pub(super) fn register(ring: RawFd) -> io::Result<Box<WaitPage>> {
        let bytes = rustix::param::page_size();
        let mut page = IoMemory::map(1, bytes, bytes, MemoryKind::Pages)?;
        page.slot_mut(0, WAIT_BYTES)[20..24].copy_from_slice(&HAS_TIMEOUT.to_ne_bytes());
        let mut region = io_uring_region_desc {
            user_addr: page.address(0).expose_provenance() as u64,
            size: bytes as u64,
            flags: IORING_MEM_REGION_TYPE_USER,
            ..io_uring_region_desc::default()
        };
        let address = (&raw mut region).expose_provenance() as u64;
        // `struct io_uring_mem_region_reg`.
        let registration = [address, REG_WAIT_ARG, 0, 0];
        let call = libc::SYS_io_uring_register;
        let argument = &raw const registration;
        // SAFETY: the registration and the region live through the call. The kernel pins the page,
        // and only reads it.
        match unsafe { libc::syscall(call, ring, REGISTER_MEM_REGION, argument, 1u32) } {
            0.. => Ok(Box::new(WaitPage(page))),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sets the timeout of the next wait.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        let wait = self.0.slot_mut(0, WAIT_BYTES);
        wait[..8].copy_from_slice(&timeout.as_secs().to_ne_bytes());
        wait[8..16].copy_from_slice(&u64::from(timeout.subsec_nanos()).to_ne_bytes());
    }
}
