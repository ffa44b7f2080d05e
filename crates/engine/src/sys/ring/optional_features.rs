//! Features that a ring has only if its options ask for them. A feature that the kernel refuses is
//! left out.

use super::setup::{SetupFlags, builder, with_fallback};
use crate::sys::ring_options::RingOptions;
use io_uring::{IoUring, Parameters};
use std::collections::BTreeMap;
use std::io;
use std::mem::transmute;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError};

/// IORING_SETUP_HYBRID_IOPOLL in the third word of the parameters. The crate `io-uring` lacks it.
const SETUP_HYBRID_IOPOLL: u32 = 1 << 17;

/// Open rings that offer their kernel thread (SQPOLL), by [`RingOptions::shared_sqpoll`].
static SHARED_RINGS: Mutex<BTreeMap<usize, RawFd>> = Mutex::new(BTreeMap::new());

/// Withdraws the offer of a ring before it is closed. Rings that use its thread keep it.
pub(super) fn withdraw_thread(ring: RawFd) {
    let mut offered = SHARED_RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    offered.retain(|_, offering| *offering != ring);
}

pub(super) struct NewRing {
    pub(super) ring: IoUring,
    pub(super) flags: SetupFlags,
    /// Names of the optional features in force.
    pub(super) features: Vec<&'static str>,
}

/// Creates a ring with as many of the newer kernels' features as this kernel accepts.
pub(super) fn build_newest(entries: u32, options: RingOptions) -> io::Result<NewRing> {
    let Some(number) = options.shared_sqpoll.filter(|_| options.sqpoll) else {
        return build_on(entries, options, None);
    };
    // Locked during the setup, so that the ring with the thread stays open.
    let mut offered = SHARED_RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(first) = offered.get(&number)
        && let Ok(shared) = build_on(entries, options, Some(*first))
    {
        return Ok(shared);
    }
    let own = build_on(entries, options, None)?;
    if multiply_worker_limit(&own.ring, options.sharing_rings).is_ok() {
        offered.insert(number, own.ring.as_raw_fd());
    }
    Ok(own)
}

/// Multiplies the limit of a ring's kernel workers by the number of rings that share its thread.
/// The workers carry out the I/Os that would block the thread (NFS, FUSE, buffered writes). With
/// the limit of one ring, fewer I/Os would be in flight than with a thread for each ring.
///
/// # Errors
/// EINVAL before Linux 5.15. Linux 5.6 to 5.9 accept rings that attach to another one, but give
/// each its own thread.
fn multiply_worker_limit(ring: &IoUring, rings: u32) -> io::Result<()> {
    let submitter = ring.submitter();
    // Zeros keep the limits. The kernel replaces them by the limits in force.
    let mut limits = [0, 0];
    submitter.register_iowq_max_workers(&mut limits)?;
    let file_workers = limits[0].saturating_mul(rings.max(1));
    submitter.register_iowq_max_workers(&mut [file_workers, 0])
}

/// Creates a ring, which uses the kernel thread of the ring `first` if given.
fn build_on(entries: u32, options: RingOptions, first: Option<RawFd>) -> io::Result<NewRing> {
    let (mut ring, flags) = with_fallback(options.sqarray, |flags| {
        let mut builder = builder(entries, options, flags);
        if let Some(first) = first {
            builder.setup_attach_wq(first);
        }
        builder.build(entries)
    })?;
    let mut features = Vec::from_iter(first.map(|_| "shared_sqpoll"));
    if options.hybrid_poll
        && options.iopoll
        && let Ok(hybrid) = build_hybrid(entries, &ring)
    {
        ring = hybrid;
        features.push("hybrid_poll");
    }
    Ok(NewRing {
        ring,
        flags,
        features,
    })
}

/// Creates a ring with the parameters of `plain`, but with hybrid polling.
fn build_hybrid(entries: u32, plain: &IoUring) -> io::Result<IoUring> {
    // SAFETY: `Parameters` is a transparent `struct io_uring_params`, integers without padding.
    let mut words = unsafe { transmute::<Parameters, [u32; 30]>(plain.params().clone()) };
    words[2] |= SETUP_HYBRID_IOPOLL;
    // SAFETY: the kernel reads and writes the parameters, which live through the call.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut words) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled in the parameters of this descriptor, which nothing else owns.
    unsafe { IoUring::from_fd(fd as RawFd, transmute::<[u32; 30], Parameters>(words)) }
}
