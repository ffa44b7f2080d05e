//! The hot loop: one worker, one clone of a job.
//!
//! A worker is a state machine. On real targets a thread calls [`Worker::step`] until it is done; in a simulation one event
//! loop steps all workers in the order of simulated time. Either way the same code prepares, submits, reaps and records.
//! The loop allocates nothing, takes no lock and formats nothing. It reads the clock once after submitting a batch and once
//! after reaping, never for each I/O.

use crate::backend::{Backend, Completion, Op, Slab, Slot};
use crate::clock::Clock;
use crate::contents::Contents;
use crate::depth::DepthControl;
use crate::flow::FlowShare;
use crate::iolog::IoLog;
use crate::pacing::Pacer;
use crate::recorder::Recorder;
use crate::tally::Shared;
use crate::verifying::Verification;
use crate::workload::{Generator, Io};
use iosonde_job::plan::{Direction, ErrorPolicy, PerDirection};
use iosonde_result::observer::WorkerState;
use iosonde_result::run::IoFailure;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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
    /// The flush at the end.
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
    /// Fewest completions to wait for.
    pub complete_min: u32,
    /// When full, drain to this depth before filling again.
    pub low: u32,
    /// Whether overlapping I/Os wait for each other.
    pub serialize_overlap: bool,
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

/// What a worker is made of beside its backend and clock.
pub struct Parts {
    /// Descriptors and buffers, one more than `iodepth` never needed: exactly `iodepth` slots.
    pub slab: Slab,
    /// The job's I/O.
    pub generator: Generator,
    /// What write buffers hold.
    pub contents: Contents,
    /// Checks contents, where the job verifies.
    pub verifier: Option<Verification>,
    /// Rates and think times.
    pub pacer: Pacer,
    /// Depth by latency, where the job has a latency target.
    pub depth_control: Option<DepthControl>,
    /// Share of a flow, where the job has one.
    pub flow: Option<FlowShare>,
    /// Logs of single I/Os, where the job writes some.
    pub log: Option<IoLog>,
    /// Measurements.
    pub recorder: Recorder,
    /// What others see.
    pub shared: Arc<Shared>,
    /// Submission rules.
    pub rules: DepthRules,
    /// Ends.
    pub limits: Limits,
    /// Which errors are survived.
    pub errors: ErrorPolicy,
    /// Names of the files, for errors.
    pub file_names: Vec<String>,
    /// Files to flush at the end (`end_fsync`).
    pub end_sync_files: Vec<u32>,
    /// Whether latencies are wanted at all.
    pub timed: bool,
    /// Share of I/Os with high priority, in per cent, by direction.
    pub high_priority_percent: PerDirection<u8>,
}

/// One clone of a job at work.
pub struct Worker<B, C> {
    /// Dropped before `parts`, so that nothing is in flight when the buffers go.
    backend: B,
    clock: C,
    parts: Parts,
    phase: Phase,
    /// The last reading of the clock: after the last reap.
    now_ns: u64,
    /// Slots that are not in flight.
    free: Vec<u32>,
    /// Prepared slots that the backend has not taken.
    batch: Vec<u32>,
    prepared_ns: u64,
    done: Vec<Completion>,
    in_flight: u32,
    /// `iodepth_low`: filled up, now draining.
    draining: bool,
    /// An I/O whose time has not come.
    held: Option<Io>,
    dry: bool,
    resume_ns: u64,
    spin_until_ns: u64,
    /// End of the last I/O of each direction.
    last_ns: [u64; 3],
    verify_start_ns: Option<u64>,
    end_syncs: usize,
    failure: Option<IoFailure>,
    survived: u64,
    first_error: i32,
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
    /// When it ended.
    pub end_ns: u64,
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
            backend,
            clock,
            phase,
            now_ns,
            free: (0..depth as u32).rev().collect(),
            batch: Vec::with_capacity(depth),
            prepared_ns: now_ns,
            done: Vec::with_capacity(depth),
            in_flight: 0,
            draining: false,
            held: None,
            dry: false,
            resume_ns: 0,
            spin_until_ns: 0,
            last_ns: [0; 3],
            verify_start_ns: None,
            end_syncs: 0,
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

    /// Takes note of the time after a wait.
    pub fn wake(&mut self) {
        self.now_ns = self.clock.now_ns();
    }

    /// Goes one round: prepare, submit, reap, record.
    #[inline]
    pub fn step(&mut self) -> Step {
        let mut wake_ns = None;
        let ending = self.is_ending();
        if !ending && !self.dry {
            wake_ns = self.prepare();
        }
        if !self.batch.is_empty() {
            self.submit();
        }
        if self.in_flight > 0 {
            return self.collect(wake_ns, ending);
        }
        if ending || self.dry {
            return self.next_phase();
        }
        self.now_ns = self.clock.now_ns();
        match wake_ns {
            Some(wake_ns) if wake_ns > self.now_ns && self.now_ns >= self.spin_until_ns => {
                Step::Wait(wake_ns.min(self.parts.limits.deadline_ns))
            }
            _ => Step::Again,
        }
    }

    /// Whether no more I/O is to be started in this phase.
    #[inline(always)]
    fn is_ending(&self) -> bool {
        let timed_out = self.phase == Phase::Main && self.now_ns >= self.parts.limits.deadline_ns;
        timed_out || self.failure.is_some() || self.parts.shared.stop.load(Relaxed)
    }

    /// Fills the batch with as many I/Os as may start now. When the next may start, where it has to wait.
    #[inline(always)]
    fn prepare(&mut self) -> Option<u64> {
        let rules = &self.parts.rules;
        let depth = match &self.parts.depth_control {
            Some(control) => control.depth(),
            None => rules.iodepth,
        };
        let busy = self.in_flight + self.batch.len() as u32;
        if self.draining && busy > rules.low {
            return None;
        }
        self.draining = false;
        let room = depth.saturating_sub(busy).min(rules.batch_submit);
        self.prepared_ns = self.now_ns;
        let wake_ns = if self.phase == Phase::Main && self.is_plain() {
            self.prepare_plain(room)
        } else {
            self.prepare_one_by_one(room)
        };
        if self.in_flight + self.batch.len() as u32 >= depth && rules_low_differs(&self.parts.rules)
        {
            self.draining = true;
        }
        wake_ns
    }

    /// Whether I/Os can be taken from the generator as they come.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let parts = &self.parts;
        parts.pacer.is_free()
            && parts.verifier.is_none()
            && parts.flow.is_none()
            && !parts.rules.serialize_overlap
    }

    #[inline(always)]
    fn prepare_plain(&mut self, room: u32) -> Option<u64> {
        for _ in 0..room {
            let Some(io) = self.parts.generator.next_io() else {
                self.dry = true;
                break;
            };
            self.place(io, self.now_ns, false);
        }
        None
    }

    /// The general case: pauses, rates, flows, verification, overlaps.
    fn prepare_one_by_one(&mut self, room: u32) -> Option<u64> {
        for _ in 0..room {
            if self.parts.pacer.pause_due() {
                if self.in_flight > 0 || !self.batch.is_empty() {
                    return None;
                }
                let (spin_until_ns, resume_ns) = self.parts.pacer.pause(self.now_ns);
                (self.spin_until_ns, self.resume_ns) = (spin_until_ns, resume_ns);
            }
            if self.now_ns < self.resume_ns {
                return Some(self.resume_ns);
            }
            if let Some(flow) = &self.parts.flow
                && flow.must_wait()
            {
                return Some(self.now_ns + flow.sleep_ns());
            }
            let (io, check) = self.next_io()?;
            let start_ns = match io
                .op
                .direction()
                .and_then(|direction| self.parts.pacer.start_ns(direction))
            {
                Some(start_ns) if start_ns > self.now_ns && !check => {
                    self.held = Some(io);
                    return Some(start_ns);
                }
                Some(start_ns) if !check => start_ns,
                _ => self.now_ns,
            };
            if self.parts.rules.serialize_overlap && self.overlaps(&io) {
                self.held = Some(io);
                return None;
            }
            if let (Some(direction), false) = (io.op.direction(), check) {
                self.parts
                    .pacer
                    .issued(direction, u64::from(io.len), self.now_ns);
                if let Some(flow) = &mut self.parts.flow {
                    flow.issued();
                }
            }
            self.place(io, start_ns, check);
        }
        None
    }

    /// The next I/O of the phase, and whether it is one that checks. Sets `dry` at the end.
    fn next_io(&mut self) -> Option<(Io, bool)> {
        if let Some(io) = self.held.take() {
            return Some((io, self.phase == Phase::Verify));
        }
        let next = match (self.phase, &mut self.parts.verifier) {
            (Phase::Main, verifier) => {
                if let Some(io) = verifier
                    .as_mut()
                    .and_then(|verifier| verifier.next_of_backlog())
                {
                    return Some((io, true));
                }
                match self.parts.pacer.turn() {
                    Some(direction) => self.parts.generator.next_io_of(direction),
                    None => self.parts.generator.next_io(),
                }
                .map(|io| (io, false))
            }
            (Phase::Verify, Some(verifier)) => verifier.next_read().map(|io| (io, true)),
            (Phase::EndSync, _) => {
                let file = self.parts.end_sync_files.get(self.end_syncs).copied();
                self.end_syncs += 1;
                file.map(|file| {
                    (
                        Io {
                            offset: 0,
                            len: 0,
                            file,
                            op: Op::Fsync,
                        },
                        false,
                    )
                })
            }
            _ => None,
        };
        self.dry = next.is_none();
        next
    }

    fn overlaps(&self, io: &Io) -> bool {
        let end = io.offset + u64::from(io.len);
        (0..self.parts.slab.slots.len() as u32)
            .filter(|index| !self.free.contains(index))
            .any(|index| {
                let slot = &self.parts.slab.slots[index as usize];
                slot.file == io.file
                    && slot.offset < end
                    && io.offset < slot.offset + u64::from(slot.len)
            })
    }

    /// Puts an I/O into a free slot and the slot into the batch.
    #[inline(always)]
    fn place(&mut self, io: Io, start_ns: u64, check: bool) {
        let index = self.free.pop().expect("as many slots as iodepth");
        let high_priority = self.parts.high_priority_percent != PerDirection::default()
            && self.draw_priority(io.op);
        self.parts.slab.slots[index as usize] = Slot {
            offset: io.offset,
            start_ns,
            issue_ns: 0,
            sequence: 0,
            len: io.len,
            moved: 0,
            file: io.file,
            op: io.op,
            high_priority,
            check,
        };
        if io.op == Op::Write {
            self.fill(index);
        } else if check && let Some(verifier) = &self.parts.verifier {
            self.parts.slab.slots[index as usize].sequence = verifier.mark(&io);
        }
        self.batch.push(index);
    }

    #[cold]
    fn draw_priority(&mut self, op: Op) -> bool {
        let percent = op
            .direction()
            .map_or(0, |direction| self.parts.high_priority_percent[direction]);
        self.parts.contents.draw_percent(percent)
    }

    #[inline(always)]
    fn fill(&mut self, index: u32) {
        let parts = &mut self.parts;
        let slot = &mut parts.slab.slots[index as usize];
        let buffer = parts.slab.memory.slot_mut(index, slot.len as usize);
        match &mut parts.verifier {
            Some(verifier) => slot.sequence = verifier.seal(slot, buffer),
            None => parts.contents.fill(slot.offset, buffer),
        }
    }

    /// Hands the batch to the backend and stamps it.
    #[inline(always)]
    fn submit(&mut self) {
        if B::SYNCHRONOUS && self.parts.timed {
            let issue_ns = self.clock.now_ns();
            self.parts.slab.slots[self.batch[0] as usize].issue_ns = issue_ns;
        }
        let taken = match self.backend.submit(&self.parts.slab, &self.batch) {
            Ok(taken) => taken,
            Err(error) => return self.submission_failed(&error),
        };
        let timed = !B::SYNCHRONOUS && self.parts.timed;
        let issue_ns = if timed {
            self.clock.now_ns()
        } else {
            self.prepared_ns
        };
        let mut counts = [0u64; 3];
        for index in &self.batch[..taken] {
            let slot = &mut self.parts.slab.slots[*index as usize];
            if !B::SYNCHRONOUS {
                slot.issue_ns = issue_ns;
            }
            if let Some(direction) = slot.op.direction() {
                counts[direction as usize] += 1;
            }
        }
        self.in_flight += taken as u32;
        self.parts
            .recorder
            .submitted(&counts, self.prepared_ns, issue_ns, self.in_flight, timed);
        if let Some(log) = &mut self.parts.log {
            log.submitted(
                &self.parts.slab,
                &self.batch[..taken],
                self.prepared_ns,
                issue_ns,
            );
        }
        if taken == self.batch.len() {
            self.batch.clear();
        } else {
            self.batch.drain(..taken);
        }
    }

    #[cold]
    fn submission_failed(&mut self, error: &std::io::Error) {
        let slot = self.parts.slab.slots[self.batch[0] as usize];
        self.fail(&slot, error.raw_os_error().unwrap_or(libc::EIO));
        self.free.append(&mut self.batch);
    }

    /// Reaps and records. Waits as far as the rules say.
    #[inline(always)]
    fn collect(&mut self, wake_ns: Option<u64>, ending: bool) -> Step {
        let rules = &self.parts.rules;
        let depth = self
            .parts
            .depth_control
            .as_ref()
            .map_or(rules.iodepth, DepthControl::depth);
        let stuck = ending
            || self.dry
            || wake_ns.is_some()
            || self.draining
            || !self.batch.is_empty()
            || self.held.is_some();
        let full = self.in_flight >= depth || stuck || self.parts.pacer.pause_due();
        let min = if full {
            rules.complete_min.max(1).min(self.in_flight) as usize
        } else {
            0
        };
        let timeout_ns = wake_ns.map(|wake_ns| wake_ns.saturating_sub(self.now_ns));
        if let Err(error) = self
            .backend
            .reap(&self.parts.slab, min, timeout_ns, &mut self.done)
        {
            let slot = Slot::IDLE;
            self.fail(&slot, error.raw_os_error().unwrap_or(libc::EIO));
            return Step::Again;
        }
        if self.done.is_empty() {
            return self.nothing_reaped(min, wake_ns);
        }
        if self.parts.timed || self.parts.limits.deadline_ns != u64::MAX {
            self.now_ns = self.clock.now_ns();
        }
        self.record();
        Step::Again
    }

    fn nothing_reaped(&mut self, min: usize, wake_ns: Option<u64>) -> Step {
        match self.backend.next_completion_ns() {
            Some(next_ns) if min > 0 => {
                Step::Wait(wake_ns.map_or(next_ns, |wake_ns| next_ns.min(wake_ns)))
            }
            _ => {
                self.now_ns = self.clock.now_ns();
                Step::Again
            }
        }
    }

    #[inline(always)]
    fn record(&mut self) {
        let now_ns = self.now_ns;
        let count = self.done.len();
        let special = self.is_special();
        for position in 0..count {
            let Completion {
                slot: index,
                result,
            } = self.done[position];
            let slot = self.parts.slab.slots[index as usize];
            if result != (slot.len - slot.moved) as i32 || special {
                self.record_special(index, result);
                continue;
            }
            if let Some(direction) = slot.op.direction() {
                self.last_ns[direction as usize] = now_ns;
            }
            self.parts.recorder.completed(&slot, now_ns);
            self.free.push(index);
            self.in_flight -= 1;
        }
        self.parts.recorder.reaped(count, now_ns);
        self.done.clear();
    }

    /// Whether completions need more than to be counted.
    #[inline(always)]
    fn is_special(&self) -> bool {
        let parts = &self.parts;
        parts.verifier.is_some()
            || parts.log.is_some()
            || parts.depth_control.is_some()
            || !parts.pacer.is_free()
            || parts.limits.max_latency_ns != PerDirection::default()
    }

    /// A completion with an error, a short one, or one that others want to see.
    fn record_special(&mut self, index: u32, result: i32) {
        let slot = self.parts.slab.slots[index as usize];
        let asked = (slot.len - slot.moved) as i32;
        if result < 0 {
            if let Some(verifier) = &mut self.parts.verifier {
                verifier.failed(&slot);
            }
            self.free_slot(index);
            return self.fail(&slot, -result);
        }
        if result < asked && slot.op != Op::SyncFileRange {
            return self.continue_short(index, result as u32);
        }
        if let Some(direction) = slot.op.direction() {
            self.last_ns[direction as usize] = self.now_ns;
            self.see_latency(&slot, direction);
        }
        self.parts.recorder.completed(&slot, self.now_ns);
        if !slot.check {
            self.parts.pacer.completed(self.now_ns);
        }
        if let Some(log) = &mut self.parts.log {
            log.completed(&slot, self.now_ns);
        }
        self.verify(index, &slot);
        self.free_slot(index);
    }

    fn see_latency(&mut self, slot: &Slot, direction: Direction) {
        let latency_ns = self.now_ns.saturating_sub(slot.issue_ns);
        if let Some(control) = &mut self.parts.depth_control {
            control.completed(latency_ns, self.now_ns);
            if control.is_settled() {
                self.dry = true;
            }
        }
        if self.parts.limits.max_latency_ns[direction].is_some_and(|most| latency_ns > most) {
            self.fail(slot, libc::ETIME);
        }
    }

    fn verify(&mut self, index: u32, slot: &Slot) {
        let Some(verifier) = &mut self.parts.verifier else {
            return;
        };
        let buffer = self.parts.slab.memory.slot(index, slot.len as usize);
        if let Err(found) = verifier.completed(slot, buffer) {
            if verifier.is_fatal() || !self.parts.errors.continue_verify {
                self.failure
                    .get_or_insert(found.in_file(&self.parts.file_names));
            } else {
                self.survive(libc::EILSEQ);
            }
        }
    }

    fn free_slot(&mut self, index: u32) {
        self.free.push(index);
        self.in_flight -= 1;
    }

    /// Continues an I/O that moved only `moved` bytes; one that moved nothing is an error.
    #[cold]
    fn continue_short(&mut self, index: u32, moved: u32) {
        let slot = &mut self.parts.slab.slots[index as usize];
        slot.moved += moved;
        let slot = *slot;
        if let Some(direction) = slot.op.direction() {
            if moved == 0 {
                self.parts.recorder.dropped(direction);
            } else {
                self.parts.recorder.short(direction);
            }
        }
        self.in_flight -= 1;
        if moved == 0 {
            self.free.push(index);
            return self.fail(&slot, libc::EIO);
        }
        self.batch.push(index);
    }

    /// An error: survived, ignored, or the end of the worker.
    #[cold]
    fn fail(&mut self, slot: &Slot, errno: i32) {
        let policy = &self.parts.errors;
        let (kind, survives) = match slot.op {
            Op::Read if slot.check => (2, policy.continue_verify),
            Op::Read => (0, policy.continue_read),
            _ => (1, policy.continue_write),
        };
        if policy.ignore[kind].contains(&errno) {
            return;
        }
        if errno == libc::ENOSPC && self.parts.limits.fill_device && slot.op == Op::Write {
            self.dry = true;
            self.parts.limits.deadline_ns = 0;
            return;
        }
        if survives && errno != libc::ETIME {
            return self.survive(errno);
        }
        let file = self.parts.file_names.get(slot.file as usize).cloned();
        self.failure
            .get_or_insert_with(|| crate::failure::of_io(slot, errno, file));
        self.parts.shared.failed.store(true, Relaxed);
    }

    fn survive(&mut self, errno: i32) {
        self.survived += 1;
        if self.first_error == 0 {
            self.first_error = errno;
        }
    }

    /// Nothing is in flight and nothing more is to come in this phase.
    #[cold]
    fn next_phase(&mut self) -> Step {
        self.dry = false;
        self.held = None;
        self.draining = false;
        self.now_ns = self.clock.now_ns();
        let stopped = self.failure.is_some() || self.parts.shared.stop.load(Relaxed);
        self.phase = match self.phase {
            Phase::Main
                if !stopped
                    && self
                        .parts
                        .verifier
                        .as_mut()
                        .is_some_and(|verifier| verifier.begin_reading()) =>
            {
                self.verify_start_ns = Some(self.now_ns);
                self.parts.shared.enter(WorkerState::Verifying);
                Phase::Verify
            }
            Phase::Main | Phase::Verify
                if !self.parts.end_sync_files.is_empty() && self.failure.is_none() =>
            {
                self.parts.shared.enter(WorkerState::Syncing);
                self.parts.shared.stop.store(false, Relaxed);
                Phase::EndSync
            }
            _ => Phase::Done,
        };
        if self.phase == Phase::Done {
            Step::Done
        } else {
            Step::Again
        }
    }

    /// Takes a worker apart that is done.
    pub fn finish(self) -> Outcome {
        let limits = self.parts.limits;
        let from_ns = self.parts.recorder.measure_from_ns().max(limits.start_ns);
        let ramped = self.parts.recorder.measure_from_ns() > limits.start_ns;
        let main_end = |direction: Direction| {
            let last_ns = self.last_ns[direction as usize];
            // With a ramp, I/Os count by their start: those in flight at the end count in full, so their drain is not time.
            if ramped {
                last_ns.min(limits.deadline_ns)
            } else {
                last_ns
            }
        };
        let runtime_ns = PerDirection::from_fn(|direction| {
            let from_ns = match (direction, self.verify_start_ns) {
                (Direction::Read, Some(start_ns)) => start_ns,
                _ => from_ns,
            };
            main_end(direction).saturating_sub(from_ns)
        });
        Outcome {
            runtime_ns,
            failure: self.failure,
            survived: self.survived,
            first_error: self.first_error,
            depth: self
                .parts
                .depth_control
                .as_ref()
                .map_or(self.parts.rules.iodepth, DepthControl::depth),
            log: self.parts.log,
            end_ns: self.clock.now_ns(),
            recorder: self.parts.recorder,
        }
    }
}

#[inline(always)]
fn rules_low_differs(rules: &DepthRules) -> bool {
    rules.low < rules.iodepth
}
