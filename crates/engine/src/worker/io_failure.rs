//! Error messages of failed I/Os.

use crate::io::Slot;
use iosonde_job::errno;
pub use iosonde_job::errno::{describe as in_words, errno_name};
use iosonde_result::run::IoFailure;
use iosonde_result::session::RunError;
use iosonde_workload::Op;

/// Returns the errno whose name a text contains, e.g. `cannot open it: ... (ENOENT)`.
pub fn errno_named_in(text: &str) -> Option<i32> {
    errno::all()
        .find(|(_, name)| text.contains(&format!("({name})")) || text.ends_with(name))
        .map(|(errno, _)| errno)
}

/// Returns the remedy for a refused access (EACCES, EPERM).
pub fn remedy_for_forbidden() -> &'static str {
    for_forbidden(rustix::process::geteuid().is_root())
}

fn for_forbidden(is_root: bool) -> &'static str {
    match is_root {
        false => "check its permissions, or run as a user who may use it",
        true => {
            "root is refused too, so it is the kernel that forbids it: a file or device that is locked, immutable (lsattr) or \
             read-only (blockdev --getro), kernel lockdown (/sys/kernel/security/lockdown), writes to mounted devices \
             switched off (CONFIG_BLK_DEV_WRITE_MOUNTED), or a container without the right to the device"
        }
    }
}

/// Returns the failure of a step that is no I/O, e.g. of opening a file.
pub fn of_target(error: &RunError) -> IoFailure {
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
    match error {
        RunError::NoSpace { .. } => libc::ENOSPC,
        RunError::Interrupted => libc::EINTR,
        RunError::NothingDone => libc::ETIMEDOUT,
        RunError::Target { problem, .. } | RunError::Unsupported { problem, .. } => {
            errno_named_in(problem).unwrap_or(libc::EINVAL)
        }
        _ => libc::EPERM,
    }
}

/// Returns the failure of one I/O: name of the errno, file, offset and remedy.
pub fn of_io(slot: &Slot, errno: i32, file: Option<String>) -> IoFailure {
    let is_ceph = file
        .as_deref()
        .is_some_and(|file| file.starts_with("rados://") || file.starts_with("rbd://"));
    let remedy = match is_ceph {
        true => remedy_in_cluster(errno, slot),
        false => remedy(errno, slot),
    };
    told(slot, errno, file, remedy)
}

/// Returns the failure of a wait for completions: the state of the I/Os in flight is unknown.
pub fn of_wait(errno: i32, in_flight: u32) -> IoFailure {
    let name = errno_name(errno);
    IoFailure {
        errno,
        operation: "wait".to_owned(),
        file: None,
        offset: None,
        message: format!(
            "waiting for completions failed with {name}, with {in_flight} I/Os in flight that are not counted: see the kernel log (dmesg), \
             or try another ioengine="
        ),
    }
}

/// Returns the failure of an I/O that exceeded the job's maximum latency.
pub fn too_slow(slot: &Slot, file: Option<String>) -> IoFailure {
    let remedy = "it took longer than max_latency= allows, or than latency_target= with nothing else in flight";
    told(slot, libc::ETIMEDOUT, file, remedy)
}

fn told(slot: &Slot, errno: i32, file: Option<String>, remedy: &str) -> IoFailure {
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
            "the cluster did not answer within ceph_timeout=; see `ceph -s` for OSDs that are down or slow"
        }
        libc::ENOSPC | libc::EDQUOT => {
            "the pool is full, or its quota is; see `ceph df`, and use a smaller size="
        }
        libc::EFBIG => {
            "an object cannot be as large as that (osd_max_object_size, 128 MiB unless set); use a smaller size=, or spread              the file with ceph_object_size=4m"
        }
        libc::EPERM | libc::EACCES => {
            "this client may not do that; see its capabilities with `ceph auth get`"
        }
        libc::EIO if slot.moved == 0 && slot.op == Op::Read => {
            "the object ended early, or the OSD reported an error; see `ceph health detail`"
        }
        libc::ECANCELED => {
            "it was given up: the run was interrupted, and the cluster did not answer; see `ceph -s`"
        }
        libc::ENOENT => "the object is gone: something else has removed it",
        libc::EOPNOTSUPP => {
            "a pool with an erasure code takes nothing but appends and whole objects until `ceph osd pool set POOL allow_ec_overwrites true`; \
             or write in order (rw=write, iodepth=1)"
        }
        libc::EROFS => {
            "something else has the image for itself; see `rbd status` and `rbd lock ls`"
        }
        _ => "see `ceph health detail` and the cluster's log",
    }
}

/// Remedy for a file system whose server process has ended, e.g. one of FUSE.
pub const NO_SERVER: &str = "the program that serves this file system has ended; start it again, or unmount what it left (`findmnt` shows it)";

fn remedy(errno: i32, slot: &Slot) -> &'static str {
    match errno {
        libc::ENOSPC | libc::EDQUOT => {
            "the target is full; use a smaller size=, or fill_device=1 to end there on purpose"
        }
        libc::EINVAL => {
            "with direct=1 offsets and block sizes must be multiples of the device's block size; check bs= and offset=, \
             or use direct=0"
        }
        libc::EIO if slot.moved == 0 && slot.op == Op::Read => {
            "the device reported an error, or the file ended early; see the kernel log, and check size= against the file"
        }
        libc::EIO | libc::EREMOTEIO => "the device reported an error; see the kernel log (dmesg)",
        libc::EOPNOTSUPP => "the target does not support this operation",
        libc::EROFS | libc::EBADF | libc::EACCES => {
            "the target cannot be written; use a writable one, or a reading job"
        }
        libc::EPERM => remedy_for_forbidden(),
        libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM => "the device is gone",
        libc::ENODATA => {
            "the device cannot read this place of its medium; see the kernel log (dmesg) and its SMART data"
        }
        libc::ENOLINK | libc::ECOMM => {
            "the way to the device is broken; see the kernel log (dmesg)"
        }
        libc::ESTALE => {
            "the file server no longer knows this file; see that its export is still there, and mount it again"
        }
        libc::EUCLEAN | libc::EBADMSG => {
            "the file system is damaged here; see the kernel log (dmesg), and check it (fsck)"
        }
        libc::ETIMEDOUT => {
            "the device did not answer in the time that its driver gives it; see the kernel log (dmesg)"
        }
        libc::ENOTCONN | libc::ECONNABORTED | libc::ECONNRESET | libc::EPIPE => NO_SERVER,
        libc::EAGAIN => "it would have blocked (nowait=1)",
        _ => "see errno(3)",
    }
}

/// Returns the error of a thread that the kernel refused. `whose` continues the text "no thread".
pub fn no_thread(whose: &str, error: &std::io::Error) -> RunError {
    RunError::Unsupported {
        problem: format!("no thread {whose}: {}", in_words(error)),
        remedy: "use a smaller numjobs=, or raise the limit on threads (ulimit -u, the control group's pids.max) or memory"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_become_another_user() {
        assert!(for_forbidden(false).contains("run as a user"));
        let of_root = for_forbidden(true);
        assert!(!of_root.contains("run as") && of_root.contains("read-only"));
        assert!(of_root.contains("CONFIG_BLK_DEV_WRITE_MOUNTED"));
    }
}
