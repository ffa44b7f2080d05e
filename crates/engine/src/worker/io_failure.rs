//! Error messages of failed I/Os.

use crate::io::Slot;
use crate::remedies::remedy_for_forbidden;
use crate::sys::c_library as libc;
use iosonde_job::errno::errno_name;
use iosonde_job::target_scheme::is_ceph_name;
use iosonde_result::error_text::FILE_SERVER_ENDED_REMEDY;
use iosonde_result::run::IoFailure;
use iosonde_result::run_error::RunError;
use iosonde_workload::Op;

/// Returns the failure of a step that is no I/O, e.g. of opening a file.
pub(crate) fn failure_from_error(error: &RunError) -> IoFailure {
    IoFailure {
        errno: errno_of(error),
        operation: "open".to_owned(),
        file: None,
        offset: None,
        message: format!("{error}; {}", error.remedy()),
    }
}

/// Returns the errno under which a failure before the first I/O is reported.
fn errno_of(error: &RunError) -> i32 {
    let without_call = match error {
        RunError::NoSpace { .. } => libc::ENOSPC,
        RunError::Interrupted => libc::EINTR,
        RunError::NoCompletions => libc::ETIMEDOUT,
        RunError::PathAccess { .. }
        | RunError::UnusableTarget { .. }
        | RunError::NoFeature { .. }
        | RunError::Target { .. }
        | RunError::Unsupported { .. } => libc::EINVAL,
        _ => libc::EPERM,
    };
    error.errno().unwrap_or(without_call)
}

/// Returns the failure of one I/O: name of the errno, file, offset and remedy.
pub(crate) fn failure_from_io(slot: &Slot, errno: i32, file: Option<String>) -> IoFailure {
    let is_ceph = file.as_deref().is_some_and(is_ceph_name);
    let remedy = match is_ceph {
        true => remedy_in_cluster(errno, slot),
        false => remedy(errno, slot),
    };
    build_failure(slot, errno, file, remedy)
}

/// Returns the failure of writes that were acknowledged from a cache and flushed without an error.
pub(crate) fn failure_from_lost_writes(slot: &Slot, errno: i32, file: Option<String>) -> IoFailure {
    let remedy = remedy_in_cluster(errno, slot);
    let name = errno_name(errno);
    let place = file.as_deref().unwrap_or("the target");
    IoFailure {
        errno,
        operation: "write".to_owned(),
        message: format!(
            "writes to {place} fail with {name}, and writes that its cache acknowledged may be \
             lost: {remedy}"
        ),
        file,
        offset: None,
    }
}

/// Returns the failure of a wait for completions: the state of the I/Os in flight is unknown.
pub(crate) fn failure_from_wait(errno: i32, in_flight: u32) -> IoFailure {
    let name = errno_name(errno);
    IoFailure {
        errno,
        operation: "wait".to_owned(),
        file: None,
        offset: None,
        message: format!(
            "waiting for completions failed with {name}; {in_flight} I/Os in flight are not \
             counted: see the kernel log (dmesg), or try another ioengine="
        ),
    }
}

/// Returns the failure of an I/O that exceeded the job's maximum latency.
pub fn too_slow(slot: &Slot, file: Option<String>) -> IoFailure {
    let remedy = "the I/O took longer than max_latency=, or longer than latency_target= at depth 1";
    build_failure(slot, libc::ETIMEDOUT, file, remedy)
}

fn build_failure(slot: &Slot, errno: i32, file: Option<String>, remedy: &str) -> IoFailure {
    let operation = match slot.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Trim => "trim",
        Op::Fsync => "fsync",
        Op::Fdatasync => "fdatasync",
        Op::SyncFileRange => "sync_file_range",
    };
    let name = errno_name(errno);
    let place = file
        .as_deref()
        .map(|file| format!(" of {file}"))
        .unwrap_or_default();
    let message = format!(
        "{operation} of {} bytes at offset {}{place} failed with {name}: {remedy}",
        slot.len, slot.offset
    );
    IoFailure {
        errno,
        operation: operation.to_owned(),
        file,
        offset: Some(slot.offset),
        message,
    }
}

/// Returns the remedy for an object or image of a Ceph cluster.
fn remedy_in_cluster(errno: i32, slot: &Slot) -> &'static str {
    match errno {
        libc::ETIMEDOUT => {
            "the cluster did not answer within ceph_timeout=; see `ceph -s` for OSDs that are down \
             or slow"
        }
        libc::ENOSPC | libc::EDQUOT => {
            "the pool is full or its quota is exhausted; see `ceph df`, or use a smaller size="
        }
        libc::EFBIG => {
            "the object would exceed osd_max_object_size (128 MiB by default); use a smaller \
             size=, or spread the file with ceph_object_size=4m"
        }
        libc::EPERM | libc::EACCES => "this client lacks the capability; see `ceph auth get`",
        libc::EIO if slot.moved == 0 && slot.op == Op::Read => {
            "the object ended early, or the OSD reported an error; see `ceph health detail`"
        }
        libc::ECANCELED => {
            "the run was interrupted and the I/O abandoned, because the cluster did not answer; \
             see `ceph -s`"
        }
        libc::ENOENT => "another client has removed the object",
        libc::EOPNOTSUPP => {
            "an erasure-coded pool accepts only appends and whole objects; use `ceph osd pool set \
             POOL allow_ec_overwrites true`, or write sequentially (rw=write, iodepth=1)"
        }
        libc::EROFS => {
            "another client holds the image exclusively; see `rbd status` and `rbd lock ls`"
        }
        _ => "see `ceph health detail` and the cluster's log",
    }
}

fn remedy(errno: i32, slot: &Slot) -> &'static str {
    match errno {
        libc::ENOSPC | libc::EDQUOT => {
            "the target is full; use a smaller size=, or fill_device=1 to end the job when it is \
             full"
        }
        libc::EINVAL => {
            "with direct=1 offsets and block sizes must be multiples of the device's block size; \
             check bs= and offset=, or use direct=0"
        }
        libc::EIO if slot.moved == 0 && slot.op == Op::Read => {
            "the device reported an error, or the file ended early; see the kernel log, and \
             check size= against the file"
        }
        libc::EIO | libc::EREMOTEIO => "the device reported an error; see the kernel log (dmesg)",
        libc::EOPNOTSUPP => "the target does not support this operation",
        libc::EROFS | libc::EBADF | libc::EACCES => {
            "the target cannot be written; use a writable target, or a job that only reads"
        }
        libc::EPERM => remedy_for_forbidden(),
        libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM => "the device no longer exists",
        libc::ENODATA => {
            "the device cannot read this part of its medium; see the kernel log (dmesg) and its \
             SMART data"
        }
        libc::ENOLINK | libc::ECOMM => "the link to the device failed; see the kernel log (dmesg)",
        libc::ESTALE => {
            "the file server no longer knows this file; check that its export exists, and mount it \
             again"
        }
        libc::EUCLEAN | libc::EBADMSG => {
            "the file system is damaged; see the kernel log (dmesg), and check it (fsck)"
        }
        libc::ETIMEDOUT => {
            "the device did not answer within the timeout of its driver; see the kernel log (dmesg)"
        }
        libc::ENOTCONN | libc::ECONNABORTED | libc::ECONNRESET | libc::EPIPE => {
            FILE_SERVER_ENDED_REMEDY
        }
        libc::EAGAIN => "the I/O would have blocked (nowait=1)",
        _ => "see errno(3)",
    }
}
