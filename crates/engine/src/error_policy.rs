//! Errors that a job survives: `continue_on_error` and `ignore_error`.

use crate::sys::c_library as libc;
use iosonde_job::plan::ErrorPolicy;

/// Whether the job survives an error of a write, trim or sync. As in fio, `continue_on_error` alone
/// covers EIO and EILSEQ, and `ignore_error` lists other errors instead.
#[must_use]
pub fn survives_write(policy: &ErrorPolicy, errno: i32) -> bool {
    is_listed(&policy.ignore[1], policy.continue_write, errno)
}

/// Whether the job survives an error of a read.
pub(crate) fn survives_read(policy: &ErrorPolicy, errno: i32) -> bool {
    is_listed(&policy.ignore[0], policy.continue_read, errno)
}

/// Whether the job survives a verification error.
pub(crate) fn survives_verify(policy: &ErrorPolicy, errno: i32) -> bool {
    is_listed(&policy.ignore[2], policy.continue_verify, errno)
}

fn is_listed(ignored: &[i32], continues: bool, errno: i32) -> bool {
    match ignored {
        [] => continues && matches!(errno, libc::EIO | libc::EILSEQ),
        listed => listed.contains(&errno),
    }
}
