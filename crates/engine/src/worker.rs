//! The hot loop: one worker, one clone of a job.
//!
//! A worker is a state machine. On real targets a thread calls [`Worker::step`] until it is done; in a simulation one event
//! loop steps all workers in the order of simulated time. Either way the same code prepares, submits, reaps and records.
//! The loop allocates nothing, takes no lock and formats nothing. It reads the clock once after submitting a batch and once
//! after reaping, never for each I/O.

#[cfg(feature = "ceph")]
pub(crate) mod callback_driver;
pub mod clock;
mod complete;
pub mod counters;
mod file_switch;
pub mod flow;
pub mod io_failure;
pub mod io_log;
pub mod io_priority;
pub mod latency_depth;
mod log_exchange;
mod next_io;
pub mod pacing;
mod phases;
pub(crate) mod process_stops;
pub mod recorder;
pub mod replay;
mod submit;
pub mod verification;
pub mod write_contents;

use crate::files::{CachedFiles, FileKeeper};
use crate::io::{Backend, Completion, Slab};
use crate::worker::clock::Clock;
use crate::worker::counters::Shared;
use crate::worker::flow::FlowShare;
use crate::worker::io_log::IoLog;
use crate::worker::io_priority::Cmdprio;
use crate::worker::latency_depth::DepthControl;
use crate::worker::pacing::Pacer;
use crate::worker::recorder::Recorder;
use crate::worker::replay::Replayer;
use crate::worker::verification::Verification;
use crate::worker::write_contents::Contents;
use iosonde_job::plan::{ErrorPolicy, PerDirection};
use iosonde_result::run::{IoFailure, RampResult};
use iosonde_workload::{Generator, Io, StartOver};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

const ENDED_IN_RAMP: &str = "the job ended within its ramp_time: bytes and rates are those of the ramp, latencies were not measured";

/// What the caller of [`Worker::step`] does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Call again.
    Again,
    /// Call again at this time, or earlier.
    Wait(u64),
    /// It is over.
    Done,
}

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The job's own I/O.
    Main,
    /// Reading back what was written.
    Verify,
    /// The flush at the end of a pass.
    EndSync,
    /// Nothing left.
    Done,
}

/// The rules of submission and reaping.
#[derive(Debug, Clone, Copy)]
pub struct DepthRules {
    /// `iodepth`.
    pub iodepth: u32,
    /// Most I/Os in one submission.
    pub batch_submit: u32,
    /// Most that one call hands to the kernel; a submission of more goes in several calls.
    pub call_limit: u32,
    /// Fewest completions to wait for.
    pub complete_min: u32,
    /// Most completions to look at before more is submitted.
    pub complete_max: u32,
    /// When full, drain to this depth before filling again.
    pub low: u32,
    /// When free slots are worth a submission of their own.
    pub refill: Refill,
    /// Whether overlapping I/Os wait for each other.
    pub serialize_overlap: bool,
}

/// How long free slots wait for company, where I/O is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refill {
    /// As many free slots are submitted at once.
    pub slots: u32,
    /// Fewer are, this long after the last submission.
    pub hold_ns: u64,
    /// Completions that are waited for meanwhile.
    pub together: u32,
}

impl Refill {
    /// No slot waits.
    pub const AT_ONCE: Refill = Refill {
        slots: 1,
        hold_ns: 0,
        together: 1,
    };
}

/// When the worker ends by itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Start of its I/O.
    pub start_ns: u64,
    /// End of its time; `u64::MAX` is none.
    pub deadline_ns: u64,
    /// A completion that takes longer is an error, by direction.
    pub max_latency_ns: PerDirection<Option<u64>>,
    /// ENOSPC ends the job without an error (`fill_device`).
    pub fill_device: bool,
}

/// What a worker is made of beside its backend and clock. What each round touches comes first and lies together.
#[repr(C)]
pub struct Parts {
    /// Whether latencies are wanted at all.
    pub timed: bool,
    /// Whether each pass over the files is verified before the next is begun.
    pub verifies_each_pass: bool,
    /// Submission rules.
    pub rules: DepthRules,
    /// What others see.
    pub shared: Arc<Shared>,
    /// Ends.
    pub limits: Limits,
    /// Descriptors and buffers, one more than `iodepth` never needed: exactly `iodepth` slots.
    pub slab: Slab,
    /// Measurements.
    pub recorder: Recorder,
    /// The job's I/O.
    pub generator: Generator,
    /// What write buffers hold.
    pub contents: Contents,
    /// Priorities of single I/Os, where the job has some.
    pub cmdprio: Option<Box<Cmdprio>>,
    /// Opens and closes files on the way, where not all are open from start to end.
    pub keeper: Option<Box<FileKeeper>>,
    /// Rates and think times.
    pub pacer: Pacer,
    /// A trace to replay instead of what the generator makes.
    pub replayer: Option<Box<Replayer>>,
    /// Checks contents, where the job verifies.
    pub verifier: Option<Verification>,
    /// Depth by latency, where the job has a latency target.
    pub depth_control: Option<DepthControl>,
    /// Share of a flow, where the job has one.
    pub flow: Option<FlowShare>,
    /// Logs of single I/Os, where the job writes some.
    pub log: Option<IoLog>,
    /// Which errors are survived.
    pub errors: ErrorPolicy,
    /// Names of the files, for errors.
    pub file_names: Vec<String>,
    /// Files to flush at the end of each pass (`end_fsync`, `fsync_on_close`).
    pub end_sync_files: Vec<u32>,
    /// Where blocks that fail verification are saved (`verify_dump`).
    pub dump_directory: PathBuf,
    /// The page cache of files that are open from start to end, where it is dropped each time the job starts over.
    pub cache: Option<Box<CachedFiles>>,
}

/// One clone of a job at work.
///
/// What each round touches comes first and lies together: where completions come one by one, the kernel's work between two of
/// them has driven all of it out of the nearest cache.
#[repr(C)]
pub struct Worker<B, C> {
    /// The last reading of the clock: after the last reap.
    now_ns: u64,
    /// When the last batch had been submitted.
    submitted_ns: u64,
    prepared_ns: u64,
    in_flight: u32,
    /// I/Os of this submission that go with the next call.
    to_follow: u32,
    phase: Phase,
    dry: bool,
    /// The depth has been reached once.
    was_full: bool,
    /// `iodepth_low`: filled up, now draining.
    draining: bool,
    /// Whether I/Os are taken from the generator as they come, without pauses, rates, flows or verification.
    plain: bool,
    /// Whether completions need more than to be counted, in whatever phase.
    special: bool,
    clock: C,
    done: Vec<Completion>,
    /// Prepared slots that the backend has not taken.
    batch: Vec<u32>,
    /// Slots that are not in flight.
    free: Vec<u32>,
    /// Data I/Os in `batch`, by direction.
    batched: [u64; 3],
    /// Room for what the generator hands out at once.
    ios: Box<[Io]>,
    /// Dropped before `parts`, so that nothing is in flight when the buffers go.
    backend: B,
    parts: Parts,
    /// An I/O whose time has not come, and whether it checks.
    held: Option<(Io, bool)>,
    /// What follows the main phase that is over: reading back, and another pass.
    checks_pass: bool,
    has_next_pass: bool,
    /// Directions that moved something in that phase: its flush is their time too.
    moved: PerDirection<bool>,
    resume_ns: u64,
    spin_until_ns: u64,
    /// When the phase began.
    phase_start_ns: u64,
    /// I/Os measured by then, by direction.
    phase_start_ios: PerDirection<u64>,
    /// Length of the phases that are over, for each direction that moved something in them.
    runtime_ns: PerDirection<u64>,
    /// When the main phase stopped to start I/Os, for whatever reason.
    stopped_ns: u64,
    end_syncs: usize,
    /// The job is done before its sequence is: no pass follows.
    over: bool,
    failure: Option<IoFailure>,
    survived: u64,
    first_error: i32,
}

/// What a worker has measured, at its end or on the way.
pub struct Standing<'a> {
    /// Measurements.
    pub recorder: &'a Recorder,
    /// Length of the measured part, by direction.
    pub runtime_ns: PerDirection<u64>,
    /// The error that ended it.
    pub failure: Option<&'a IoFailure>,
    /// Errors survived.
    pub survived: u64,
    /// errno of the first of them.
    pub first_error: i32,
    /// The depth that a latency target arrived at.
    pub depth: u32,
    /// Latencies by priority.
    pub cmdprio: Option<&'a Cmdprio>,
    /// What was done in a ramp that has not ended.
    pub only_ramp: Option<Box<RampResult>>,
    /// When this is.
    pub now_ns: u64,
}

/// What is left of a worker that is done.
pub struct Outcome {
    /// Measurements.
    pub recorder: Recorder,
    /// Length of the measured part, by direction.
    pub runtime_ns: PerDirection<u64>,
    /// The error that ended it.
    pub failure: Option<IoFailure>,
    /// Errors survived.
    pub survived: u64,
    /// errno of the first of them.
    pub first_error: i32,
    /// The depth that a latency target arrived at.
    pub depth: u32,
    /// Logs still to be closed.
    pub log: Option<IoLog>,
    /// Latencies by priority.
    pub cmdprio: Option<Box<Cmdprio>>,
    /// What was done in a ramp that never ended.
    pub only_ramp: Option<Box<RampResult>>,
    /// Files still to be closed.
    pub keeper: Option<Box<FileKeeper>>,
    /// When it ended.
    pub end_ns: u64,
}

impl Outcome {
    /// What the worker measured.
    pub fn standing(&self) -> Standing<'_> {
        Standing {
            recorder: &self.recorder,
            runtime_ns: self.runtime_ns,
            failure: self.failure.as_ref(),
            survived: self.survived,
            first_error: self.first_error,
            depth: self.depth,
            cmdprio: self.cmdprio.as_deref(),
            only_ramp: self.only_ramp.clone(),
            now_ns: self.end_ns,
        }
    }
}

/// Whether I/Os can be taken from the generator as they come.
fn is_plain(parts: &Parts) -> bool {
    parts.pacer.is_free()
        && parts.verifier.is_none()
        && parts.flow.is_none()
        && parts.replayer.is_none()
        && parts.keeper.is_none()
        && !parts.rules.serialize_overlap
}

/// Whether completions need more than to be counted.
fn is_special(parts: &Parts) -> bool {
    parts.verifier.is_some()
        || parts.log.is_some()
        || parts.keeper.is_some()
        || parts.cmdprio.is_some()
        || parts.depth_control.is_some()
        || !parts.pacer.is_free()
        || parts.limits.max_latency_ns != PerDirection::default()
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// A worker that is ready to step.
    pub fn new(backend: B, clock: C, mut parts: Parts) -> Worker<B, C> {
        let depth = parts.slab.slots.len();
        let now_ns = clock.now_ns();
        let phase = match &mut parts.verifier {
            Some(verifier) if verifier.only() => {
                verifier.begin_only();
                Phase::Verify
            }
            _ => Phase::Main,
        };
        Worker {
            plain: is_plain(&parts),
            special: is_special(&parts),
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
            was_full: false,
            draining: false,
            held: None,
            checks_pass: false,
            has_next_pass: false,
            moved: PerDirection::default(),
            dry: false,
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
            parts,
        }
    }

    /// The worker's last reading of the clock.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Its clock: each thread's notices stops of the process by itself.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Takes note of the time after a wait.
    pub fn wake(&mut self) {
        self.now_ns = self.clock.now_ns();
    }

    /// Looks after what is under way, where nobody waits for it: see [`Backend::look_after`].
    pub fn look_after(&mut self) {
        self.backend.look_after();
    }

    /// Goes one round: prepare, submit, reap, record.
    #[inline]
    pub fn step(&mut self) -> Step {
        let mut wake_ns = None;
        let ending = self.is_ending();
        if ending && self.phase == Phase::Main {
            self.note_end();
        }
        loop {
            if !ending && !self.dry {
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
        if ending || self.dry {
            return self.next_phase();
        }
        self.now_ns = self.clock.now_ns();
        match wake_ns {
            Some(wake_ns)
                if wake_ns > self.now_ns && (self.now_ns >= self.spin_until_ns || !C::GOES_ON) =>
            {
                Step::Wait(wake_ns.min(self.parts.limits.deadline_ns))
            }
            _ => Step::Again,
        }
    }

    /// Whether no more I/O is to be started in this phase.
    #[inline(always)]
    fn is_ending(&self) -> bool {
        // As in fio, what is left to verify when the time is over stays unverified.
        let timed_out = self.now_ns >= self.parts.limits.deadline_ns
            && matches!(self.phase, Phase::Main | Phase::Verify);
        timed_out || self.failure.is_some() || self.parts.shared.stop.load(Relaxed)
    }

    /// From here on no I/O is started, or from before: one that waits hears of the wish to stop when something arrives. What lets
    /// I/Os through in lumps, as throttles do, would otherwise have each such measurement end just before a lump.
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

    /// What the worker has measured so far.
    pub fn standing(&self) -> Standing<'_> {
        let now_ns = self.clock.now_ns();
        Standing {
            recorder: &self.parts.recorder,
            runtime_ns: self.runtime_until(now_ns),
            failure: self.failure.as_ref(),
            survived: self.survived,
            first_error: self.first_error,
            depth: self.depth(),
            cmdprio: self.parts.cmdprio.as_deref(),
            only_ramp: self.only_ramp(now_ns),
            now_ns,
        }
    }

    /// The depth that a latency target has arrived at, else the job's.
    fn depth(&self) -> u32 {
        let control = self.parts.depth_control.as_ref();
        control.map_or(self.parts.rules.iodepth, DepthControl::depth)
    }

    /// Length of the phases in which a direction moved something, as fio counts: all of a phase, with its waits, not only
    /// up to the direction's last I/O.
    fn runtime_until(&self, now_ns: u64) -> PerDirection<u64> {
        let limits = &self.parts.limits;
        let recorder = &self.parts.recorder;
        let mut end_ns = now_ns;
        // With a ramp, I/Os count by their start: those in flight at the end count in full, so their drain is not time.
        if recorder.measure_from_ns() > limits.start_ns {
            end_ns = end_ns.min(limits.deadline_ns).min(self.stopped_ns);
        }
        let is_flush = self.phase == Phase::EndSync;
        if is_flush {
            end_ns = now_ns;
        }
        let from_ns = self.phase_start_ns.max(recorder.measure_from_ns());
        PerDirection::from_fn(|direction| {
            let moved = match is_flush {
                true => self.moved[direction],
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

    /// Adds the phase that is over to the runtimes.
    fn count_runtime(&mut self) {
        let before_ns = self.runtime_ns;
        self.runtime_ns = self.runtime_until(self.now_ns);
        self.moved = PerDirection::from_fn(|d| self.runtime_ns[d] > before_ns[d]);
        self.phase_start_ns = self.now_ns;
        self.phase_start_ios =
            PerDirection::from_fn(|direction| self.parts.recorder.ios(direction));
    }

    /// What was done in the ramp, where it has not ended, or the job ended by itself before anything was measured.
    fn only_ramp(&self, now_ns: u64) -> Option<Box<RampResult>> {
        let recorder = &self.parts.recorder;
        let ended_by_itself = self.phase == Phase::Done && self.stopped_ns == u64::MAX;
        let in_ramp = now_ns < recorder.measure_from_ns() || ended_by_itself;
        let start_ns = self.parts.limits.start_ns;
        (in_ramp && recorder.measured_ios() == 0)
            .then(|| recorder.ramp_result(start_ns, now_ns))
            .flatten()
    }

    /// Takes a worker apart that is done.
    pub fn finish(self) -> Outcome {
        let end_ns = self.clock.now_ns();
        let only_ramp = self.only_ramp(end_ns);
        if only_ramp.is_some() {
            self.parts.shared.note_of_job(ENDED_IN_RAMP.to_owned());
        }
        Outcome {
            only_ramp,
            runtime_ns: self.runtime_ns,
            depth: self.depth(),
            failure: self.failure,
            survived: self.survived,
            first_error: self.first_error,
            log: self.parts.log,
            cmdprio: self.parts.cmdprio,
            keeper: self.parts.keeper,
            end_ns,
            recorder: self.parts.recorder,
        }
    }
}
