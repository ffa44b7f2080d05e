//! The same in a build without the feature `local`, which other systems run: a kernel without these
//! features. Nothing on this machine is measured, so that only their absence is visible.

use rustix::fd::AsFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::ClockId;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// No flag.
pub(crate) const DIRECT: OFlags = OFlags::empty();
/// No flag.
pub(crate) const TMPFILE: OFlags = OFlags::empty();
/// A clock that does not advance while the machine is suspended, so that no suspend is visible.
pub(crate) const BOOTTIME: ClockId = ClockId::Monotonic;
/// The usage of the process instead of the thread's.
pub(crate) const RUSAGE_THREAD: libc::c_int = libc::RUSAGE_SELF;

/// Returns no units of atomic writes.
pub(crate) fn atomic_write_units(_: &Path) -> io::Result<Option<(u32, u32)>> {
    Ok(None)
}

/// Returns no units of atomic writes.
pub(crate) fn atomic_write_units_of_open_file(_: impl AsFd) -> io::Result<Option<(u32, u32)>> {
    Ok(None)
}

/// Leaves the read-ahead as it is.
pub(crate) fn disable_read_ahead(_: &File, _: u64) {}

/// Fails, since there is no such socket.
pub(crate) fn open_sock_diag() -> rustix::io::Result<OwnedFd> {
    Err(Errno::AFNOSUPPORT)
}
