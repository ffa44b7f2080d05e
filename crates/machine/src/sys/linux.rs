//! Calls and constants that only Linux has.

use rustix::fd::AsFd;
use rustix::fs::{Advice, AtFlags, CWD, OFlags, Statx, StatxFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};
use rustix::time::ClockId;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::Path;

/// O_DIRECT.
pub(crate) const DIRECT: OFlags = OFlags::DIRECT;
/// O_TMPFILE.
pub(crate) const TMPFILE: OFlags = OFlags::TMPFILE;
/// CLOCK_BOOTTIME.
pub(crate) const BOOTTIME: ClockId = ClockId::Boottime;
/// RUSAGE_THREAD.
pub(crate) const RUSAGE_THREAD: libc::c_int = libc::RUSAGE_THREAD;

/// STATX_WRITE_ATOMIC (Linux 6.11).
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// Returns the least and the greatest unit of atomic writes of a path. `None` if the kernel does
/// not report them.
pub(crate) fn atomic_write_units(path: &Path) -> io::Result<Option<(u32, u32)>> {
    let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), WRITE_ATOMIC)?;
    Ok(units_in(&stat))
}

/// Returns the units of an open file, as [`atomic_write_units`].
pub(crate) fn atomic_write_units_of_open_file(file: impl AsFd) -> io::Result<Option<(u32, u32)>> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC)?;
    Ok(units_in(&stat))
}

fn units_in(stat: &Statx) -> Option<(u32, u32)> {
    let is_filled = stat.stx_mask & WRITE_ATOMIC.bits() != 0;
    is_filled.then_some((
        stat.stx_atomic_write_unit_min,
        stat.stx_atomic_write_unit_max,
    ))
}

/// Disables the read-ahead of an open device of this size.
pub(crate) fn disable_read_ahead(device: &File, size: u64) {
    let _ = rustix::fs::fadvise(device, 0, NonZeroU64::new(size), Advice::Random);
}

/// Opens a socket to the kernel's `sock_diag` (netlink).
pub(crate) fn open_sock_diag() -> rustix::io::Result<OwnedFd> {
    socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )
}
