//! The fast path of depth 1: some I/Os in a row, and then their statistics.
//!
//! At depth 1 the kernel's work between two I/Os evicts the worker's code and counters from the L1
//! caches. Between two I/Os, this path therefore generates and counts nothing: I/Os are generated
//! before, and their time stamps are counted after, in the order of their completion. The
//! statistics are the same as without it. Other threads see an I/O in the counters up to [`ROW_NS`]
//! later, or once a later I/O of the row that takes longer has completed.

use super::{Worker, WorkerPhase, WorkerStep};
use crate::io::{Backend, Completion, LoneTransfer, Slot};
use crate::worker::clock::Clock;
use crate::worker::recorder::SingleCompletion;
use crate::worker::{DepthRules, WorkerParts};
use iosonde_workload::{Io, Op};
use std::sync::atomic::Ordering::Relaxed;

/// Most I/Os in a row.
const ROW_IOS: usize = 64;
/// No further I/O of a row starts this long after its start.
const ROW_NS: u64 = 100_000;
/// The slot of all I/Os.
const SLOT: u32 = 0;

/// Generated I/Os, and completed ones that were not counted yet.
#[derive(Debug)]
pub(super) struct SingleIos {
    ios: [Io; ROW_IOS],
    /// The next I/O and the end of those generated.
    next: usize,
    end: usize,
    /// Whether the generator ended or paused after these.
    at_pause: bool,
    completed: Vec<SingleCompletion>,
}

impl SingleIos {
    /// Returns `None` if the worker's I/Os need more than this path does. `is_simple`: the worker
    /// issues I/Os as the generator returns them, and only counts their completions.
    pub(super) fn new<B: Backend>(parts: &WorkerParts, is_simple: bool) -> Option<Box<SingleIos>> {
        let is_single = parts.slab.slots.len() == 1 && has_single_rules(&parts.rules);
        let applies = B::SINGLE_IOS && is_simple && is_single && parts.timed;
        applies.then(|| {
            Box::new(SingleIos {
                ios: [Io::EMPTY; ROW_IOS],
                next: 0,
                end: 0,
                at_pause: false,
                completed: Vec::with_capacity(ROW_IOS),
            })
        })
    }
}

fn has_single_rules(rules: &DepthRules) -> bool {
    let counts = [rules.iodepth, rules.batch_submit, rules.complete_max];
    counts.iter().all(|count| *count >= 1) && rules.complete_min <= 1
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Whether the fast path may carry out the next I/Os.
    #[inline(always)]
    pub(super) fn may_run_singles(&self, ending: bool) -> bool {
        self.singles.is_some()
            && !ending
            && !self.source_exhausted
            && self.phase == WorkerPhase::Main
            && self.in_flight == 0
            && self.batch.is_empty()
            && self.now_ns >= self.parts.recorder.measure_from_ns()
    }

    /// Carries out some I/Os one after the other, and records them.
    #[inline(never)]
    pub(super) fn run_singles(&mut self) -> WorkerStep {
        let Some(mut singles) = self.singles.take() else {
            return WorkerStep::Again;
        };
        if singles.next == singles.end {
            if !singles.at_pause {
                let count = self.parts.generator.fill(&mut singles.ios);
                (singles.next, singles.end) = (0, count);
                singles.at_pause = count < ROW_IOS;
            }
            // The generator goes on once the phase has taken note of its end or pause.
            self.source_exhausted = singles.end == singles.next;
            singles.at_pause &= !self.source_exhausted;
        }
        // The time of generating and counting belongs to no I/O.
        self.now_ns = self.clock.now_ns();
        let row_end_ns = (self.now_ns + ROW_NS).min(self.parts.limits.deadline_ns);
        let mut interruption = None;
        while let Some(io) = singles.ios[..singles.end].get(singles.next) {
            singles.next += 1;
            let resumed_ns = self.clock.resumed_ns();
            let start_ns = self.now_ns;
            interruption = self.run_single(io);
            if interruption.is_some() || self.clock.resumed_ns() != resumed_ns {
                // The stop of the process counts for this I/O and not for those before.
                self.parts.recorder.resumed(resumed_ns);
                self.record_row(&mut singles.completed);
            }
            if interruption.is_some() {
                break;
            }
            singles.completed.push(SingleCompletion {
                start_ns,
                issue_ns: self.submitted_ns,
                end_ns: self.now_ns,
                len: io.len,
                op: io.op,
            });
            // Of the conditions of `is_ending`, only these change within a row.
            if self.now_ns >= row_end_ns || self.parts.shared.stop.load(Relaxed) {
                break;
            }
        }
        self.parts.recorder.resumed(self.clock.resumed_ns());
        self.record_row(&mut singles.completed);
        self.singles = Some(singles);
        match interruption {
            Some(interruption) => self.end_single(interruption),
            None => WorkerStep::Again,
        }
    }

    /// Carries out one I/O and reads the clock after it. Returns its completion if it is not full.
    #[inline(always)]
    fn run_single(&mut self, io: &Io) -> Option<SingleInterruption> {
        if !B::TRANSFERS_ALONE {
            self.prepare_single(io);
            return self.submit_single(io);
        }
        if io.op == Op::Write {
            self.prepare_write(io);
        }
        let memory = &mut self.parts.slab.memory;
        let (clock, submitted_ns) = (&self.clock, &mut self.submitted_ns);
        let submitted = || *submitted_ns = clock.now_ns();
        match self.backend.transfer_alone(memory, io, submitted) {
            LoneTransfer::Completed(result) if i64::from(result) == i64::from(io.len) => {
                self.now_ns = self.clock.now_ns();
                None
            }
            outcome => self.go_on_in_steps(io, outcome),
        }
    }

    /// Goes on with an I/O that did not complete in full within its call.
    #[inline(never)]
    fn go_on_in_steps(&mut self, io: &Io, outcome: LoneTransfer) -> Option<SingleInterruption> {
        match outcome {
            LoneTransfer::Declined => {
                // A write is prepared already.
                if io.op != Op::Write {
                    self.place_single(io);
                }
                self.submit_single(io)
            }
            LoneTransfer::InFlight => {
                self.place_single(io);
                self.reap_single(io)
            }
            LoneTransfer::Completed(result) => {
                self.place_single(io);
                Some(SingleInterruption::Unusual(Some(Completion {
                    slot: SLOT,
                    result,
                })))
            }
        }
    }

    #[inline(always)]
    fn prepare_single(&mut self, io: &Io) {
        match io.op {
            Op::Write => self.prepare_write(io),
            _ => self.place_single(io),
        }
    }

    /// Fills the slot and the buffer of a write. Not inlined, so that reads have less code in the
    /// caches.
    #[inline(never)]
    fn prepare_write(&mut self, io: &Io) {
        self.place_single(io);
        self.fill(SLOT);
    }

    #[inline(always)]
    fn place_single(&mut self, io: &Io) {
        self.prepared_ns = self.now_ns;
        self.parts.slab.slots[SLOT as usize] = Slot::starting(io, self.now_ns);
    }

    /// Carries out the I/O of the slot by the calls that also carry out batches.
    #[inline(always)]
    fn submit_single(&mut self, io: &Io) -> Option<SingleInterruption> {
        if B::CARRIES_OUT_IN_SUBMIT {
            self.submitted_ns = self.clock.now_ns();
        }
        match self.backend.submit(&mut self.parts.slab, &[SLOT]) {
            Ok(1) => {}
            Ok(_) => return Some(SingleInterruption::NotTaken),
            Err(error) => return Some(SingleInterruption::NotSubmitted(error)),
        }
        if !B::CARRIES_OUT_IN_SUBMIT {
            self.submitted_ns = self.clock.now_ns();
        }
        self.reap_single(io)
    }

    /// Waits for the completion of the I/O in flight, and reads the clock after it.
    #[inline(always)]
    fn reap_single(&mut self, io: &Io) -> Option<SingleInterruption> {
        let (slab, done) = (&mut self.parts.slab, &mut self.done);
        if let Err(error) = self.backend.reap(slab, 1, None, done)
            // As in the general path, a completion before the error counts.
            && done.is_empty()
        {
            return Some(SingleInterruption::NotReaped(error));
        }
        match self.done.pop() {
            Some(completion) if i64::from(completion.result) == i64::from(io.len) => {
                self.now_ns = self.clock.now_ns();
                None
            }
            completion => Some(SingleInterruption::Unusual(completion)),
        }
    }

    /// Counts completions, and forgets them.
    fn record_row(&mut self, completed: &mut Vec<SingleCompletion>) {
        let timed = !B::CARRIES_OUT_IN_SUBMIT;
        self.parts.recorder.count_singles(completed, timed);
        completed.clear();
    }

    /// Continues with an I/O that did not complete in full, as without the fast path.
    #[cold]
    fn end_single(&mut self, interruption: SingleInterruption) -> WorkerStep {
        self.now_ns = self.clock.now_ns();
        self.free.clear();
        self.batch.clear();
        let slot = &mut self.parts.slab.slots[SLOT as usize];
        slot.issue_ns = self.submitted_ns;
        if let Some(direction) = slot.op.direction() {
            self.batched[direction as usize] = 1;
        }
        let prepared_ns = self.prepared_ns;
        let timed = !B::CARRIES_OUT_IN_SUBMIT;
        match &interruption {
            SingleInterruption::NotTaken => {
                // The general path counts each call, with the number of I/Os taken.
                (self.parts.recorder).submitted(&[0; 3], prepared_ns, self.now_ns, 0, timed);
                self.batch.push(SLOT);
                return WorkerStep::Again;
            }
            SingleInterruption::NotSubmitted(error) => {
                self.batch.push(SLOT);
                self.submission_failed(error);
                return WorkerStep::Again;
            }
            SingleInterruption::NotReaped(_) | SingleInterruption::Unusual(_) => {}
        }
        self.in_flight = 1;
        let counts = std::mem::take(&mut self.batched);
        (self.parts.recorder).submitted(&counts, prepared_ns, self.submitted_ns, 1, timed);
        match interruption {
            SingleInterruption::NotReaped(error) => return self.fail_wait(&error),
            SingleInterruption::Unusual(Some(completion)) => {
                self.done.push(completion);
                self.record();
            }
            _ => {}
        }
        WorkerStep::Again
    }
}

/// The reason why an I/O left the fast path.
#[derive(Debug)]
enum SingleInterruption {
    /// The backend has no room.
    NotTaken,
    /// The submission failed.
    NotSubmitted(std::io::Error),
    /// The wait failed.
    NotReaped(std::io::Error),
    /// The I/O failed or was short, or has not completed.
    Unusual(Option<Completion>),
}
