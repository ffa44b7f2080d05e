//! Features of newer kernels that only experiments switch on, each left out if refused.

use super::setup::{SetupFlags, builder, with_fallback};
use super::wait_page::WaitPage;
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
    /// Names of the experimental features in force.
    pub(super) experiments: Vec<&'static str>,
    pub(super) wait_page: Option<Box<WaitPage>>,
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
    offered.insert(number, own.ring.as_raw_fd());
    Ok(own)
}

/// Creates a ring, which uses the kernel thread of the ring `first` if given.
fn build_on(entries: u32, options: RingOptions, first: Option<RawFd>) -> io::Result<NewRing> {
    let build = |is_disabled: bool| {
        with_fallback(|flags| {
            let mut builder = builder(entries, options, flags);
            if let Some(first) = first {
                builder.setup_attach_wq(first);
            }
            if is_disabled {
                builder.setup_r_disabled();
            }
            builder.build(entries)
        })
    };
    // The kernel refuses calls with registered waits if completions are polled.
    let mut registers_waits = options.registered_waits && !options.iopoll;
    let (mut ring, flags) = match build(registers_waits) {
        Err(_) if registers_waits => {
            registers_waits = false;
            build(false)?
        }
        built => built?,
    };
    let mut experiments = Vec::from_iter(first.map(|_| "shared_sqpoll"));
    if options.hybrid_poll
        && options.iopoll
        && let Ok(hybrid) = build_hybrid(entries, &ring)
    {
        ring = hybrid;
        experiments.push("hybrid_poll");
    }
    let mut wait_page = None;
    if registers_waits {
        // The kernel accepts the page only while the ring is disabled.
        wait_page = WaitPage::register(ring.as_raw_fd()).ok();
        ring.submitter().register_enable_rings()?;
        experiments.extend(wait_page.as_ref().map(|_| "registered_waits"));
    }
    Ok(NewRing {
        ring,
        flags,
        experiments,
        wait_page,
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
