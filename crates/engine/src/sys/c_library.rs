//! The C library in a build without the feature `local`, which performs no I/O on this machine: the
//! names that only Linux's has are added, so that the engine compiles on other systems. Nothing
//! calls them, since [`crate::runner::LocalSession`] refuses all plans but simulated ones.
#![allow(non_upper_case_globals)]

pub(crate) use libc::*;

pub(crate) type Ioctl = c_ulong;

pub(crate) const O_DIRECT: c_int = 0x4000;
pub(crate) const O_NOATIME: c_int = 0x4_0000;
pub(crate) const FALLOC_FL_KEEP_SIZE: c_int = 0x1;
pub(crate) const FALLOC_FL_PUNCH_HOLE: c_int = 0x2;
pub(crate) const MAP_HUGETLB: c_int = 0x4_0000;
pub(crate) const MAP_HUGE_SHIFT: c_int = 26;
pub(crate) const MAP_POPULATE: c_int = 0;
pub(crate) const POSIX_FADV_RANDOM: c_int = 1;
pub(crate) const POSIX_FADV_SEQUENTIAL: c_int = 2;
pub(crate) const POSIX_FADV_DONTNEED: c_int = 4;
pub(crate) const PR_SET_TIMERSLACK: c_int = 29;
pub(crate) const RWF_HIPRI: c_int = 0x1;
pub(crate) const RWF_NOWAIT: c_int = 0x8;
pub(crate) const RWF_ATOMIC: c_int = 0x40;
pub(crate) const RWF_DONTCACHE: c_int = 0x80;
pub(crate) const SYNC_FILE_RANGE_WAIT_BEFORE: c_uint = 0x1;
pub(crate) const SYNC_FILE_RANGE_WRITE: c_uint = 0x2;
pub(crate) const SYNC_FILE_RANGE_WAIT_AFTER: c_uint = 0x4;

// Numbers of no error.
pub(crate) const ECOMM: c_int = -1;
pub(crate) const EREMOTEIO: c_int = -2;
pub(crate) const ENOMEDIUM: c_int = -3;
pub(crate) const EUCLEAN: c_int = -4;

// Numbers of no system call.
pub(crate) const SYS_gettid: c_long = -1;
pub(crate) const SYS_io_destroy: c_long = -1;
pub(crate) const SYS_io_getevents: c_long = -1;
pub(crate) const SYS_io_setup: c_long = -1;
pub(crate) const SYS_io_submit: c_long = -1;
pub(crate) const SYS_ioprio_set: c_long = -1;
pub(crate) const SYS_pread64: c_long = -1;
pub(crate) const SYS_pwrite64: c_long = -1;
pub(crate) const SYS_set_mempolicy: c_long = -1;
pub(crate) const SYS_setresgid: c_long = -1;
pub(crate) const SYS_setresuid: c_long = -1;

unsafe extern "C" {
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
}

/// The result of a call that nothing makes.
fn uncalled<T>() -> T {
    unreachable!("a build without the feature `local` performs no I/O on this machine")
}

pub(crate) unsafe fn __errno_location() -> *mut c_int {
    uncalled()
}

pub(crate) unsafe fn fallocate(_: c_int, _: c_int, _: off_t, _: off_t) -> c_int {
    uncalled()
}

pub(crate) unsafe fn fdatasync(_: c_int) -> c_int {
    uncalled()
}

pub(crate) unsafe fn posix_fadvise(_: c_int, _: off_t, _: off_t, _: c_int) -> c_int {
    uncalled()
}

pub(crate) unsafe fn posix_fallocate(_: c_int, _: off_t, _: off_t) -> c_int {
    uncalled()
}

pub(crate) unsafe fn prctl(_: c_int, _: c_ulong) -> c_int {
    uncalled()
}

pub(crate) unsafe fn preadv2(_: c_int, _: *const iovec, _: c_int, _: off_t, _: c_int) -> ssize_t {
    uncalled()
}

pub(crate) unsafe fn pwritev2(_: c_int, _: *const iovec, _: c_int, _: off_t, _: c_int) -> ssize_t {
    uncalled()
}

pub(crate) unsafe fn sched_setaffinity(_: pid_t, _: usize, _: *const c_void) -> c_int {
    uncalled()
}

pub(crate) unsafe fn sync_file_range(_: c_int, _: off_t, _: off_t, _: c_uint) -> c_int {
    uncalled()
}
