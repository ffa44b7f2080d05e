//! Setup of an io_uring.

use crate::sys::ring_options::RingOptions;
use io_uring::{Builder, IoUring};
use std::io;

/// Setup flags of newer kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetupFlags {
    /// Completions are processed in calls of the one thread that submits (Linux 6.1). SQPOLL
    /// excludes it.
    pub(super) deferred: bool,
    /// The kernel reads the submission entries in order, without an array of their numbers
    /// (Linux 6.6).
    pub(super) no_sqarray: bool,
}

impl SetupFlags {
    pub(super) const NONE: SetupFlags = SetupFlags {
        deferred: false,
        no_sqarray: false,
    };

    /// From newer kernels to older ones. A kernel refuses flags that it does not know (EINVAL).
    const ALTERNATIVES: [SetupFlags; 3] = [
        SetupFlags {
            deferred: true,
            no_sqarray: true,
        },
        SetupFlags {
            deferred: true,
            ..SetupFlags::NONE
        },
        SetupFlags::NONE,
    ];
}

/// Creates and drops a small ring, to check whether this process may use io_uring.
pub fn try_one() -> io::Result<()> {
    let builder = builder(2, RingOptions::default(), SetupFlags::NONE);
    builder.build(2).map(drop)
}

/// Calls `build` with as many of the newer kernels' flags as this kernel accepts. A queue with
/// `sqarray` keeps its array.
pub(super) fn with_fallback<T>(
    sqarray: bool,
    mut build: impl FnMut(SetupFlags) -> io::Result<T>,
) -> io::Result<(T, SetupFlags)> {
    let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
    let alternatives = SetupFlags::ALTERNATIVES.into_iter();
    for flags in alternatives.filter(|flags| !(sqarray && flags.no_sqarray)) {
        match build(flags) {
            Ok(ring) => return Ok((ring, flags)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// The setup of a ring with these flags.
pub(super) fn builder(entries: u32, options: RingOptions, flags: SetupFlags) -> Builder {
    let mut builder = IoUring::builder();
    // A slot is in flight once, so there is never a completion more than entries. The kernel's
    // default of twice as many touches twice the memory.
    builder.setup_cqsize(entries);
    if flags.no_sqarray {
        builder.setup_no_sqarray();
    }
    if options.iopoll {
        builder.setup_iopoll();
    }
    if options.sqpoll {
        builder.setup_sqpoll(1_000);
        if let Some(cpu) = options.sqpoll_cpu {
            builder.setup_sqpoll_cpu(cpu);
        }
    } else if flags.deferred {
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag();
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags with which a ring is built on a kernel that knows some of them.
    fn accepted(knows_deferred: bool, knows_no_sqarray: bool) -> SetupFlags {
        let build = |flags: SetupFlags| {
            let is_known =
                (knows_deferred || !flags.deferred) && (knows_no_sqarray || !flags.no_sqarray);
            is_known
                .then_some(())
                .ok_or(io::Error::from_raw_os_error(libc::EINVAL))
        };
        with_fallback(false, build).unwrap().1
    }

    #[test]
    fn refused_setup_flags_are_left_out() {
        assert_eq!(accepted(true, true), SetupFlags::ALTERNATIVES[0]);
        let without_no_sqarray = SetupFlags {
            deferred: true,
            no_sqarray: false,
        };
        assert_eq!(accepted(true, false), without_no_sqarray);
        assert_eq!(accepted(false, false), SetupFlags::NONE);
    }

    #[test]
    fn kept_sqarray_leaves_out_only_its_flag() {
        let (_, flags) = with_fallback(true, |_| Ok(())).unwrap();
        assert!(flags.deferred && !flags.no_sqarray, "{flags:?}");
    }

    #[test]
    fn other_setup_errors_are_returned_at_once() {
        let mut attempts = 0;
        let error = with_fallback(false, |_| -> io::Result<()> {
            attempts += 1;
            Err(io::Error::from_raw_os_error(libc::EPERM))
        })
        .unwrap_err();
        assert_eq!((error.raw_os_error(), attempts), (Some(libc::EPERM), 1));
    }

    #[test]
    fn completion_queue_has_as_many_entries_as_the_submission_queue() {
        for entries in [1, 4, 64] {
            let options = RingOptions::default();
            let build = |flags| builder(entries, options, flags).build(entries);
            let (ring, _) = with_fallback(false, build).unwrap();
            let parameters = ring.params();
            assert_eq!(parameters.sq_entries(), entries);
            assert_eq!(parameters.cq_entries(), entries);
        }
    }
}
