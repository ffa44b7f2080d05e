//! An io_uring: one submission queue, one completion queue, registered files and buffers.

mod discard;
mod enter;
mod entry_maker;
mod lone_transfer;
mod optional_features;
mod plain_entries;
mod round_transfer;
mod setup;
#[cfg(test)]
mod slow_file_tests;
mod sqpoll_thread;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transfer_fixture;

use crate::slot::Completion;
use crate::sys::memory::{IoMemory, KeptMapping, Slab};
pub(crate) use crate::sys::ring_options::{MinWait, RingOptions};
pub(crate) use discard::probe_discard;
use enter::{RingDescriptor, retry};
use entry_maker::EntryMaker;
use io_uring::IoUring;
use optional_features::{build_newest, withdraw_thread};
use plain_entries::{FirstBuffer, PlainEntries};
use setup::SetupFlags;
pub use setup::try_one;
pub(crate) use sqpoll_thread::sqpoll_thread_status;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// How long dropping a ring waits for I/O in flight. The rings of unit tests have I/Os that never
/// complete.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 5_000 });

/// An io_uring of the thread that created it.
pub(crate) struct Ring {
    ring: IoUring,
    descriptor: RingDescriptor,
    flags: SetupFlags,
    min_wait: Option<MinWait>,
    maker: EntryMaker,
    /// Entries pushed to the submission queue whose completions have not been reaped.
    in_flight: usize,
    /// The buffers that the kernel accesses.
    memory: KeptMapping,
    first_buffer: Option<FirstBuffer>,
    /// `None` if all I/Os need entries of an [`EntryMaker`].
    plain_entries: Option<PlainEntries>,
    /// Names of the optional features in force.
    optional_features: Vec<&'static str>,
}

impl Ring {
    /// Creates a ring for `depth` I/Os in flight in slots of `memory`, with fewer flags if need be.
    pub(crate) fn new(depth: u32, options: RingOptions, memory: &IoMemory) -> io::Result<Ring> {
        let new = build_newest(depth.next_power_of_two(), options)?;
        let (ring, flags) = (new.ring, new.flags);
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let mut descriptor = RingDescriptor::register(ring.as_raw_fd(), &options);
        if options.no_iowait && ring.params().is_feature_no_iowait() {
            descriptor.leave_iowait();
        }
        let has_min_wait = ring.params().is_feature_min_timeout();
        Ok(Ring {
            descriptor,
            min_wait: options.min_wait.filter(|_| has_min_wait),
            ring,
            flags: SetupFlags {
                deferred: flags.deferred && !options.sqpoll,
                ..flags
            },
            maker: EntryMaker {
                options,
                files: Vec::new(),
                registered_files: false,
                fixed_buffers: false,
                since_forced_async: 0,
                vectors: vec![empty; memory.slots()].into_boxed_slice(),
            },
            in_flight: 0,
            memory: memory.keep_mapped(),
            first_buffer: FirstBuffer::new(memory),
            plain_entries: None,
            optional_features: new.features,
        })
    }

    /// Sets the files that slots number. `register` also registers them with the kernel.
    pub(crate) fn set_files(&mut self, files: &[RawFd], register: bool) -> io::Result<()> {
        if self.maker.registered_files {
            self.ring.submitter().unregister_files()?;
            self.maker.registered_files = false;
            self.plain_entries = None;
        }
        self.maker.files = files.to_vec();
        if register && !files.is_empty() {
            self.ring.submitter().register_files(files)?;
            self.maker.registered_files = true;
        }
        self.choose_plain_entries();
        Ok(())
    }

    /// Registers all buffers with the kernel.
    ///
    /// # Panics
    /// If `memory` is not that of [`Ring::new`].
    pub(crate) fn register_buffers(&mut self, memory: &IoMemory) -> io::Result<()> {
        assert!(self.memory.is_of(memory));
        // SAFETY: the area is mapped while this ring has its share in the mapping.
        unsafe { self.ring.submitter().register_buffers(&[memory.area()]) }?;
        self.maker.fixed_buffers = true;
        self.choose_plain_entries();
        Ok(())
    }

    /// Whether buffers are registered.
    pub(crate) fn fixed_buffers(&self) -> bool {
        self.maker.fixed_buffers
    }

    /// Whether files are registered.
    pub(crate) fn registered_files(&self) -> bool {
        self.maker.registered_files
    }

    /// Names of the ring's flags in force, as the kernel names them.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let options = &self.maker.options;
        let flags = [
            ("iopoll", options.iopoll),
            ("sqpoll", options.sqpoll),
            ("single_issuer", self.flags.deferred),
            ("defer_taskrun", self.flags.deferred),
            ("no_sqarray", self.flags.no_sqarray),
            ("registered_ring", self.descriptor.is_registered()),
            ("no_iowait", self.descriptor.leaves_iowait()),
            ("min_wait", self.min_wait.is_some()),
        ];
        let in_force = flags.into_iter().filter(|(_, is_in_force)| *is_in_force);
        let names = in_force.map(|(name, _)| name);
        names
            .chain(self.optional_features.iter().copied())
            .collect()
    }

    /// Queues and submits a batch. Returns the number queued, which are all in flight. Entries that
    /// the kernel did not consume stay queued for the next call. The next wait reports a failure.
    ///
    /// # Panics
    /// If the memory is not that of [`Ring::new`], or if a slot is in flight already, does not
    /// exist or is larger than its buffer.
    #[inline]
    pub(crate) fn submit(&mut self, slab: &mut Slab, batch: &[u32]) -> usize {
        assert!(self.memory.is_of(&slab.memory));
        let mut queue = self.ring.submission();
        let mut pushed = 0;
        for index in batch {
            slab.memory.begin_io(*index);
            // Counted before the push, so that a panic leaves no entry uncounted.
            self.in_flight += 1;
            if self.maker.push(&mut queue, slab, *index).is_err() {
                slab.memory.end_io(*index);
                self.in_flight -= 1;
                break;
            }
            pushed += 1;
        }
        let queued = queue.len() as u32;
        drop(queue);
        debug_assert!(
            queued as usize <= self.in_flight,
            "an entry is in flight once queued"
        );
        if self.flags.deferred {
            // The call runs deferred task work without waiting, which often saves a call to wait.
            self.descriptor.enter_unchecked(queued);
        } else {
            self.submit_undeferred();
        }
        pushed
    }

    /// Submits the queue of a ring without deferred task work.
    #[inline(never)]
    fn submit_undeferred(&self) {
        let _ = self.ring.submitter().submit();
    }

    /// Appends completions. Waits for `min` of them, at most `timeout_ns`.
    ///
    /// # Panics
    /// If the memory is not that of [`Ring::new`].
    #[inline]
    pub(crate) fn reap(
        &mut self,
        memory: &mut IoMemory,
        min: usize,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> io::Result<()> {
        assert!(self.memory.is_of(memory));
        self.drain(memory, done);
        if min == 0 {
            if done.is_empty()
                && (self.maker.options.iopoll
                    || (self.flags.deferred && self.ring.submission().taskrun()))
            {
                self.wait(0, None)?;
                self.drain(memory, done);
            }
            return Ok(());
        }
        while done.len() < min {
            let before = done.len();
            let timed_out = self.wait(min - done.len(), timeout_ns)?;
            self.drain(memory, done);
            if timed_out || (timeout_ns.is_some() && done.len() == before) {
                break;
            }
        }
        Ok(())
    }

    /// Waits for `min` completions. Not inlined: I/Os that complete in their call need no wait.
    #[inline(never)]
    fn wait(&mut self, min: usize, timeout_ns: Option<u64>) -> io::Result<bool> {
        let (queued, min) = (self.ring.submission().len() as u32, min as u32);
        let returned = match (timeout_ns, self.min_wait) {
            (Some(ns), _) => {
                let timeout = Duration::from_nanos(ns);
                self.descriptor.enter_within(queued, min, timeout)
            }
            (None, Some(rule)) if min > 0 => {
                let several = min.max(self.missing_slots(rule));
                self.descriptor
                    .enter_min_wait(queued, several, rule.wait_us)
            }
            (None, _) => self.descriptor.enter(queued, min),
        };
        match returned {
            Ok(()) => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(true),
            Err(error) if retry(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Completions until as many slots are free as end a [`MinWait`], at most those in flight.
    fn missing_slots(&self, rule: MinWait) -> u32 {
        let free = self.maker.vectors.len().saturating_sub(self.in_flight) as u32;
        rule.slots.saturating_sub(free).min(self.in_flight as u32)
    }

    #[inline]
    fn drain(&mut self, memory: &mut IoMemory, done: &mut Vec<Completion>) {
        let before = done.len();
        for entry in self.ring.completion() {
            let slot = entry.user_data() as u32;
            memory.end_io(slot);
            done.push(Completion {
                slot,
                result: entry.result(),
            });
        }
        let reaped = done.len() - before;
        debug_assert!(
            reaped <= self.in_flight,
            "the kernel completes each entry once: {reaped} of {} in flight",
            self.in_flight
        );
        self.in_flight -= reaped;
    }

    /// Waits for the consumed I/Os without submitting queued ones. Returns whether all completed.
    fn await_in_flight(&mut self) -> bool {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        loop {
            let completed = self.ring.completion().count();
            self.in_flight = self.in_flight.saturating_sub(completed);
            // The kernel thread of SQPOLL consumes the queue by itself.
            let queued = match self.maker.options.sqpoll {
                true => 0,
                false => self.ring.submission().len(),
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if self.in_flight <= queued || left.is_zero() {
                return self.in_flight <= queued;
            }
            match self.descriptor.enter_within(0, 1, left) {
                Err(error) if error.raw_os_error() != Some(libc::ETIME) && !retry(&error) => {
                    return false;
                }
                _ => {}
            }
        }
    }
}

/// Waits, as closing a ring does not: kernel workers may write to buffers after the close.
impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 && !self.await_in_flight() {
            self.memory.leave();
            std::mem::forget(std::mem::take(&mut self.maker.vectors));
        }
        withdraw_thread(self.ring.as_raw_fd());
        // The registration would keep the ring open until the thread ends.
        self.descriptor.unregister();
    }
}
