//! The I/O loop: one worker runs one clone of a job.
//!
//! A worker is a state machine. On real targets a thread calls `Worker::step` until the worker is
//! done. In a simulation one event loop steps all workers in order of simulated time. Both use the
//! same code to prepare, submit, reap and record I/Os. The loop does not allocate, lock or format.
//! It reads the clock after each submission and after each reap, never per I/O.

pub(crate) mod callback_driver;
mod complete;
mod file_switch;
pub(crate) mod flow;
mod full_rounds;
mod in_flight_ranges;
pub mod io_failure;
pub(crate) mod io_log;
pub(crate) mod io_priority;
pub(crate) mod latency_depth;
mod log_entry;
mod log_exchange;
mod next_io;
pub(crate) mod pacing;
mod phases;
pub(crate) mod recorder;
pub(crate) mod replay;
mod single_ios;
mod submit;
#[cfg(test)]
mod tests;
pub(crate) mod verification;
mod worker_output;
pub(crate) mod write_contents;

pub(crate) use crate::clock;
pub(crate) use crate::counters;
use crate::files::{CachedFiles, OpenFileCache};
use crate::io::{Backend, Completion, Slab};
use crate::worker::clock::Clock;
use crate::worker::counters::WorkerCounters;
use crate::worker::flow::FlowShare;
use crate::worker::full_rounds::FullRounds;
use crate::worker::in_flight_ranges::InFlightRanges;
use crate::worker::io_log::IoLog;
use crate::worker::io_priority::Cmdprio;
use crate::worker::latency_depth::DepthControl;
use crate::worker::pacing::Pacer;
use crate::worker::recorder::Recorder;
use crate::worker::replay::Replayer;
use crate::worker::single_ios::SingleIos;
use crate::worker::verification::Verification;
pub(crate) use crate::worker::worker_output::{WorkerOutput, WorkerSnapshot};
use crate::worker::write_contents::Contents;
use iosonde_job::plan::{ErrorPolicy, PerDirection};
use iosonde_result::run::IoFailure;
use iosonde_workload::{Generator, Io, StartOver};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The next action for the caller of [`Worker::step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerStep {
    /// Call `step` again at once.
    Again,
    /// Call `step` again at this time on the worker's clock, or earlier.
    Wait(u64),
    /// The worker is done.
    Done,
}

/// Phase of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerPhase {
    /// Issues the job's own I/O.
    Main,
    /// Reads back the written blocks and verifies them.
    Verify,
    /// Flushes the files at the end of a pass.
    EndSync,
    /// No phase follows.
    Done,
}

/// Rules of submission and reaping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DepthRules {
    /// Maximum number of I/Os in flight (`iodepth`).
    pub(crate) iodepth: u32,
    /// Maximum number of I/Os in one submission.
    pub(crate) batch_submit: u32,
    /// Maximum number of I/Os in one call of the backend; a larger submission takes several calls.
    pub(crate) call_limit: u32,
    /// The same while each reap soon returns all I/Os of several calls.
    pub(crate) call_limit_at_once: u32,
    /// Minimum number of completions to wait for.
    pub(crate) complete_min: u32,
    /// Maximum number of completions to process before the next submission.
    pub(crate) complete_max: u32,
    /// Depth to which a full queue drains before the worker fills it again (`iodepth_low`).
    pub(crate) low: u32,
    /// When the worker submits I/Os for free slots.
    pub(crate) refill: Refill,
    /// Whether an I/O waits for overlapping I/Os to complete (`serialize_overlap`).
    pub(crate) serialize_overlap: bool,
}

/// Batching of free slots where I/O is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refill {
    /// Number of free slots that the worker submits at once.
    pub(crate) slots: u32,
    /// Fewer free slots are submitted this long after the last submission.
    pub(crate) hold_ns: u64,
    /// Minimum number of completions to wait for while free slots are held back.
    pub(crate) together: u32,
}

impl Refill {
    /// Submits each free slot at once.
    pub(crate) const AT_ONCE: Refill = Refill {
        slots: 1,
        hold_ns: 0,
        together: 1,
    };
}

/// Conditions that end a worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerLimits {
    /// Start of the worker's I/O, on its clock.
    pub(crate) start_ns: u64,
    /// End of the worker's run time; `u64::MAX` stands for no limit.
    pub(crate) deadline_ns: u64,
    /// Maximum latency by direction; a slower completion is an error.
    pub(crate) max_latency_ns: PerDirection<Option<u64>>,
    /// Whether ENOSPC ends the job without an error (`fill_device`).
    pub(crate) fill_device: bool,
}

/// Components of a worker, except its backend and clock. Fields that each step uses come first.
#[repr(C)]
pub(crate) struct WorkerParts {
    /// Whether latencies are measured.
    pub(crate) timed: bool,
    /// Whether each pass over the files is verified before the next pass starts.
    pub(crate) verifies_each_pass: bool,
    /// Submission rules.
    pub(crate) rules: DepthRules,
    /// Counters and flags that other threads read.
    pub(crate) shared: Arc<WorkerCounters>,
    /// Conditions that end the worker.
    pub(crate) limits: WorkerLimits,
    /// I/O slots and their buffers: exactly `iodepth` of them.
    pub(crate) slab: Slab,
    /// Statistics of the completed I/Os.
    pub(crate) recorder: Recorder,
    /// Generator of the job's I/Os.
    pub(crate) generator: Generator,
    /// Source of the data to write.
    pub(crate) contents: Contents,
    /// Priorities of single I/Os, if the job sets any.
    pub(crate) cmdprio: Option<Box<Cmdprio>>,
    /// Opens and closes files during the run, if the job does not keep all of them open.
    pub(crate) open_file_cache: Option<Box<OpenFileCache>>,
    /// Rates and think times.
    pub(crate) pacer: Pacer,
    /// Trace to replay instead of the generator's I/Os.
    pub(crate) replayer: Option<Box<Replayer>>,
    /// Verifies blocks, if the job verifies.
    pub(crate) verifier: Option<Verification>,
    /// Controls the depth, if the job has a latency target.
    pub(crate) depth_control: Option<DepthControl>,
    /// This worker's share of a flow, if the job has one.
    pub(crate) flow: Option<FlowShare>,
    /// Logs of single I/Os, if the job writes any.
    pub(crate) log: Option<IoLog>,
    /// Errors that do not end the job.
    pub(crate) errors: ErrorPolicy,
    /// Names of the files, for error messages.
    pub(crate) file_names: Vec<String>,
    /// Files to flush at the end of each pass (`end_fsync`, `fsync_on_close`, images of Ceph).
    pub(crate) end_sync_files: Vec<u32>,
    /// Whether the time of that flush belongs to the run time, as in fio with `end_fsync`. If the
    /// job does not ask for the flush of an image of Ceph, it does not.
    pub(crate) times_end_sync: bool,
    /// Directory for blocks that fail verification (`verify_dump`).
    pub(crate) dump_directory: PathBuf,
    /// Drops the page cache of files that stay open, if the job drops it each time it starts over.
    pub(crate) cache: Option<Box<CachedFiles>>,
}

/// Runs one clone of a job.
///
/// The fields that each step uses come first and share cache lines. With single completions, the
/// kernel's work between two of them evicts these lines from the L1 cache.
#[repr(C)]
pub(crate) struct Worker<B, C> {
    /// Last reading of the clock, taken after the last reap.
    now_ns: u64,
    /// Time at which the last submission returned.
    submitted_ns: u64,
    prepared_ns: u64,
    /// Time at which the first of the I/Os in flight was prepared.
    first_start_ns: u64,
    in_flight: u32,
    /// I/Os of this submission that are left for the next call of the backend.
    to_follow: u32,
    /// Full reaps in a row: see `is_full_reap`.
    full_reaps: u32,
    /// Full reaps until full rounds are tried again.
    until_rounds: u32,
    phase: WorkerPhase,
    source_exhausted: bool,
    /// Whether the queue has reached `iodepth` once.
    was_full: bool,
    /// Whether the queue drains to `iodepth_low` after it was full.
    draining: bool,
    /// See `is_plain`.
    plain: bool,
    /// See `is_special`.
    special: bool,
    /// Whether `rounds` has I/Os that come before those of the generator, or its end.
    has_generated: bool,
    clock: C,
    /// The fast path of depth 1, if the job may take it.
    singles: Option<Box<SingleIos>>,
    /// The fast path of full reaps, if the job may take it.
    rounds: Option<Box<FullRounds>>,
    done: Vec<Completion>,
    /// Prepared slots that the backend has not accepted yet.
    batch: Vec<u32>,
    /// Slots that are neither in `batch` nor in flight.
    free: Vec<u32>,
    /// Data I/Os in `batch`, by direction.
    batched: [u64; 3],
    /// Buffer for the I/Os that the generator returns in one call.
    ios: Box<[Io]>,
    /// Dropped before `parts`, so that no I/O is in flight when the buffers are freed.
    backend: B,
    parts: WorkerParts,
    /// An I/O that waits for its start time, and whether it verifies.
    deferred_io: Option<(Io, bool)>,
    /// Whether verification and another pass follow the finished main phase.
    checks_pass: bool,
    has_next_pass: bool,
    /// Directions that transferred data in that phase: its flush counts as their run time too.
    moved: PerDirection<bool>,
    resume_ns: u64,
    spin_until_ns: u64,
    /// Start of the current phase.
    phase_start_ns: u64,
    /// I/Os measured before the current phase, by direction.
    phase_start_ios: PerDirection<u64>,
    /// Length of the finished phases, for each direction that transferred data in them.
    runtime_ns: PerDirection<u64>,
    /// Time from which the main phase starts no more I/O, whatever the reason.
    stopped_ns: u64,
    end_syncs: usize,
    /// The job ends before its generator does: no pass follows.
    over: bool,
    failure: Option<IoFailure>,
    survived: u64,
    first_error: i32,
    /// Ranges of the I/Os in the batch and in flight, if overlapping ones wait.
    ranges: Option<Box<InFlightRanges>>,
}

/// Whether the worker can issue I/Os in the order and at the time that the generator returns them.
fn is_plain(parts: &WorkerParts) -> bool {
    parts.pacer.never_waits()
        && parts.verifier.is_none()
        && parts.flow.is_none()
        && parts.replayer.is_none()
        && parts.open_file_cache.is_none()
        && !parts.rules.serialize_overlap
}

/// Whether completions need more work than counting, in any phase.
fn is_special(parts: &WorkerParts) -> bool {
    parts.verifier.is_some()
        || parts.log.is_some()
        || parts.open_file_cache.is_some()
        || parts.cmdprio.is_some()
        || parts.depth_control.is_some()
        || parts.rules.serialize_overlap
        || !parts.pacer.never_waits()
        || parts.limits.max_latency_ns != PerDirection::default()
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Creates a worker that is ready to step.
    pub(crate) fn new(backend: B, clock: C, mut parts: WorkerParts) -> Worker<B, C> {
        let depth = parts.slab.slots.len();
        let now_ns = clock.now_ns();
        let phase = match &mut parts.verifier {
            Some(verifier) if verifier.only() => {
                verifier.begin_only();
                WorkerPhase::Verify
            }
            _ => WorkerPhase::Main,
        };
        let (plain, special) = (is_plain(&parts), is_special(&parts));
        Worker {
            singles: SingleIos::new::<B>(&parts, plain && !special),
            rounds: FullRounds::new::<B>(&parts, plain && !special),
            has_generated: false,
            plain,
            special,
            backend,
            clock,
            phase,
            now_ns,
            free: (0..depth as u32).rev().collect(),
            batch: Vec::with_capacity(depth),
            prepared_ns: now_ns,
            batched: [0; 3],
            submitted_ns: now_ns,
            ios: vec![Io::EMPTY; depth].into_boxed_slice(),
            done: Vec::with_capacity(depth),
            in_flight: 0,
            to_follow: 0,
            full_reaps: 0,
            until_rounds: 0,
            first_start_ns: now_ns,
            was_full: false,
            draining: false,
            deferred_io: None,
            checks_pass: false,
            has_next_pass: false,
            moved: PerDirection::default(),
            source_exhausted: false,
            resume_ns: 0,
            spin_until_ns: 0,
            phase_start_ns: parts.limits.start_ns,
            phase_start_ios: PerDirection::default(),
            runtime_ns: PerDirection::default(),
            stopped_ns: u64::MAX,
            end_syncs: 0,
            over: false,
            failure: None,
            survived: 0,
            first_error: 0,
            ranges: parts.rules.serialize_overlap.then(Box::default),
            parts,
        }
    }

    /// Returns the worker's last reading of the clock.
    #[inline(always)]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the worker's clock. The clock of each thread detects process stops on its own.
    pub(crate) fn clock(&self) -> &C {
        &self.clock
    }

    /// Reads the clock after a wait.
    pub(crate) fn wake(&mut self) {
        self.now_ns = self.clock.now_ns();
    }

    /// Checks the I/Os in flight for timeouts: see [`Backend::check_timeouts`].
    pub(crate) fn check_timeouts(&mut self) {
        self.backend.check_timeouts();
    }

    /// Performs one step: prepare, submit, reap, record.
    #[inline]
    pub(crate) fn step(&mut self) -> WorkerStep {
        let mut wake_ns = None;
        let ending = self.is_ending();
        if ending && self.phase == WorkerPhase::Main {
            self.note_end();
        }
        if self.may_run_singles(ending) {
            return self.run_singles();
        }
        if self.may_run_rounds(ending) {
            return self.run_rounds();
        }
        loop {
            if !ending && !self.source_exhausted {
                wake_ns = self.prepare();
            }
            if self.batch.is_empty() {
                break;
            }
            self.submit();
            if self.to_follow == 0 || !self.batch.is_empty() || self.failure.is_some() {
                break;
            }
            self.now_ns = self.submitted_ns;
        }
        if self.in_flight > 0 {
            return self.collect(wake_ns, ending);
        }
        if ending || self.source_exhausted {
            return self.next_phase();
        }
        self.now_ns = self.clock.now_ns();
        match wake_ns {
            Some(wake_ns)
                if wake_ns > self.now_ns && (self.now_ns >= self.spin_until_ns || !C::GOES_ON) =>
            {
                WorkerStep::Wait(wake_ns.min(self.parts.limits.deadline_ns))
            }
            _ => WorkerStep::Again,
        }
    }

    /// Asserts that each slot is free, in the batch or in flight, unless a failed wait lost some.
    #[inline(always)]
    fn debug_assert_slots(&self) {
        debug_assert!(
            self.failure.is_some()
                || self.free.len() + self.batch.len() + self.in_flight as usize
                    == self.parts.slab.slots.len(),
            "{} slots are free, {} in the batch, {} in flight",
            self.free.len(),
            self.batch.len(),
            self.in_flight
        );
    }

    /// Whether the current phase starts no more I/O.
    #[inline(always)]
    fn is_ending(&self) -> bool {
        // As in fio, blocks that are not verified when the time is over stay unverified.
        let timed_out = self.now_ns >= self.parts.limits.deadline_ns
            && matches!(self.phase, WorkerPhase::Main | WorkerPhase::Verify);
        timed_out || self.failure.is_some() || self.parts.shared.stop.load(Relaxed)
    }

    /// Records when I/O stopped: at the stop request, not at the completion that ends a wait.
    /// Otherwise every measurement of a throttled target would end just before a burst.
    #[cold]
    fn note_end(&mut self) {
        let shared = &self.parts.shared;
        let asked_ns = match shared.stop.load(Acquire) {
            true => shared.stop_ns.load(Relaxed),
            false => 0,
        };
        let end_ns = match asked_ns {
            0 => self.now_ns,
            asked_ns => asked_ns.min(self.now_ns),
        };
        self.stopped_ns = self.stopped_ns.min(end_ns);
    }

    /// Returns the depth that the latency target has set, else the job's `iodepth`.
    #[inline(always)]
    fn depth(&self) -> u32 {
        // A latency target makes a job special.
        if !self.special {
            return self.parts.rules.iodepth;
        }
        let control = self.parts.depth_control.as_ref();
        control.map_or(self.parts.rules.iodepth, DepthControl::depth)
    }

    /// Returns the length of the phases in which a direction transferred data. As in fio, a whole
    /// phase counts, waits included, not only the time up to the direction's last I/O.
    fn runtime_until(&self, now_ns: u64) -> PerDirection<u64> {
        let limits = &self.parts.limits;
        let recorder = &self.parts.recorder;
        let mut end_ns = now_ns;
        // With a ramp, an I/O in flight at the end counts in full: the drain is no measured time.
        if recorder.measure_from_ns() > limits.start_ns {
            end_ns = end_ns.min(limits.deadline_ns).min(self.stopped_ns);
        }
        let is_flush = self.phase == WorkerPhase::EndSync;
        if is_flush {
            end_ns = now_ns;
        }
        let from_ns = self.phase_start_ns.max(recorder.measure_from_ns());
        PerDirection::from_fn(|direction| {
            let moved = match is_flush {
                true => self.parts.times_end_sync && self.moved[direction],
                false => recorder.ios(direction) > self.phase_start_ios[direction],
            };
            let phase_ns = if moved {
                end_ns.saturating_sub(from_ns)
            } else {
                0
            };
            self.runtime_ns[direction] + phase_ns
        })
    }

    /// Adds the finished phase to the run times.
    fn count_runtime(&mut self) {
        let before_ns = self.runtime_ns;
        self.runtime_ns = self.runtime_until(self.now_ns);
        self.moved = PerDirection::from_fn(|d| self.runtime_ns[d] > before_ns[d]);
        self.phase_start_ns = self.now_ns;
        self.phase_start_ios =
            PerDirection::from_fn(|direction| self.parts.recorder.ios(direction));
    }
}
