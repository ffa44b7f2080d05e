//! Rounds of several I/Os that are complete when their call returns, counted some rounds later.
//!
//! As at depth 1 ([`super::single_ios`]), the kernel's work between two calls evicts the worker's
//! code and counters from the L1 caches. Where some reaps in a row returned all I/Os in flight, as
//! on storage that answers from memory, this path generates I/Os for some rounds in advance, and
//! counts their time stamps afterwards. The statistics are the same as without it. A round that is
//! not complete goes on in the general path, as do all later ones until some reaps are full again.

use super::next_io::FULL_REAPS_MIN;
use super::{Worker, WorkerPhase, WorkerStep};
use crate::io::{Backend, RoundTransfer, Slot};
use crate::worker::WorkerParts;
use crate::worker::clock::Clock;
use crate::worker::recorder::RoundTimes;
use iosonde_workload::{Generator, Io, Op};
use std::sync::atomic::Ordering::Relaxed;

/// Most I/Os generated in advance.
const ROW_IOS: usize = 64;
/// No further round starts this long after the first of those counted together.
const ROW_NS: u64 = 100_000;

/// Generated I/Os, and completed rounds that were not counted yet.
#[derive(Debug)]
pub(super) struct FullRounds {
    /// I/Os of a round: the depth of the job.
    depth: usize,
    ios: [Io; ROW_IOS],
    /// The next I/O and the end of those generated.
    next: usize,
    end: usize,
    /// Whether the generator ended or paused after these.
    at_pause: bool,
    has_writes: bool,
    completed: Vec<RoundTimes>,
}

impl FullRounds {
    /// Returns `None` if the worker's I/Os need more than this path does. `is_simple`: the worker
    /// issues I/Os as the generator returns them, and only counts their completions.
    pub(super) fn new<B: Backend>(parts: &WorkerParts, is_simple: bool) -> Option<Box<FullRounds>> {
        let depth = parts.slab.slots.len();
        let rules = &parts.rules;
        let whole_depth = [rules.iodepth, rules.batch_submit, rules.call_limit_at_once];
        let takes_rounds = (2..=ROW_IOS).contains(&depth)
            && rules.low as usize == depth
            && rules.complete_max as usize >= depth
            && whole_depth.iter().all(|count| *count as usize >= depth);
        let applies = B::TRANSFERS_ROUNDS && is_simple && takes_rounds && parts.timed;
        applies.then(|| {
            Box::new(FullRounds {
                depth,
                ios: [Io::EMPTY; ROW_IOS],
                next: 0,
                end: 0,
                at_pause: false,
                has_writes: false,
                completed: Vec::with_capacity(ROW_IOS / 2),
            })
        })
    }

    /// Generates I/Os for as many whole rounds as there is room for.
    fn generate(&mut self, generator: &mut Generator) {
        if self.at_pause {
            return;
        }
        self.ios.copy_within(self.next..self.end, 0);
        let kept = self.end - self.next;
        let room = ROW_IOS - ROW_IOS % self.depth;
        (self.next, self.end) = (0, kept + generator.fill(&mut self.ios[kept..room]));
        self.at_pause = self.end < room;
        self.has_writes = self.ios[..self.end].iter().any(|io| io.op == Op::Write);
    }

    /// Moves generated I/Os to `out`, as [`Generator::fill`] does.
    fn take(&mut self, generator: &mut Generator, out: &mut [Io]) -> usize {
        let count = out.len().min(self.end - self.next);
        out[..count].copy_from_slice(&self.ios[self.next..self.next + count]);
        self.next += count;
        if count == out.len() {
            return count;
        }
        // The generator goes on once the phase has taken note of its end or pause.
        if std::mem::take(&mut self.at_pause) {
            return count;
        }
        count + generator.fill(&mut out[count..])
    }

    fn holds_ios(&self) -> bool {
        self.next < self.end || self.at_pause
    }
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Whether the next I/Os may be carried out in full rounds.
    #[inline(always)]
    pub(super) fn may_run_rounds(&self, ending: bool) -> bool {
        self.full_reaps >= FULL_REAPS_MIN
            && self.until_rounds == 0
            && self.rounds.is_some()
            && !ending
            && !self.source_exhausted
            && self.phase == WorkerPhase::Main
            && self.in_flight == 0
            && self.batch.is_empty()
            && self.done.is_empty()
            && self.now_ns >= self.parts.recorder.measure_from_ns()
    }

    /// Fills the buffer of the next I/Os, from those generated in advance if there are any.
    #[cold]
    pub(super) fn take_generated(&mut self, wanted: usize) -> usize {
        let out = &mut self.ios[..wanted];
        let Some(rounds) = &mut self.rounds else {
            return self.parts.generator.fill(out);
        };
        let count = rounds.take(&mut self.parts.generator, out);
        self.has_generated = rounds.holds_ios();
        count
    }

    /// Carries out some rounds one after the other, and records them.
    #[inline(never)]
    pub(super) fn run_rounds(&mut self) -> WorkerStep {
        let Some(mut rounds) = self.rounds.take() else {
            return WorkerStep::Again;
        };
        let depth = rounds.depth;
        if rounds.end - rounds.next < depth {
            rounds.generate(&mut self.parts.generator);
        }
        let mut first = rounds.next;
        // The time of generating and counting belongs to no I/O.
        self.now_ns = self.clock.now_ns();
        let row_end_ns = (self.now_ns + ROW_NS).min(self.parts.limits.deadline_ns);
        let mut interruption = None;
        while let Some(ios) = rounds.ios[..rounds.end].get(rounds.next..rounds.next + depth) {
            let resumed_ns = self.clock.resumed_ns();
            let start_ns = self.now_ns;
            let outcome = self.run_round(ios, rounds.has_writes);
            if outcome.is_some() || self.clock.resumed_ns() != resumed_ns {
                // The stop of the process counts for this round and not for those before.
                self.parts.recorder.resumed(resumed_ns);
                self.count_rounds(&mut rounds, first);
                first = rounds.next;
            }
            rounds.next += depth;
            if outcome.is_some() {
                interruption = outcome;
                break;
            }
            rounds.completed.push(RoundTimes {
                start_ns,
                issue_ns: self.submitted_ns,
                end_ns: self.now_ns,
            });
            // As after a reap that is not full, the next calls are small.
            if !self.is_soon_after(start_ns, depth as u32) {
                self.full_reaps = 0;
                break;
            }
            // Of the conditions of `is_ending`, only these change within a row.
            if self.now_ns >= row_end_ns || self.parts.shared.stop.load(Relaxed) {
                break;
            }
        }
        self.parts.recorder.resumed(self.clock.resumed_ns());
        self.count_rounds(&mut rounds, first);
        if let Some(outcome) = interruption {
            let ios = &rounds.ios[rounds.next - depth..rounds.next];
            self.go_on_with_round(ios, outcome);
        }
        // The general path carries out what is no whole round, and what follows an interruption. It
        // decides on `full_reaps`, so that its calls have the same sizes as without rounds.
        if rounds.end - rounds.next < depth && rounds.at_pause || interruption.is_some() {
            self.until_rounds = FULL_REAPS_MIN;
        }
        self.has_generated = rounds.holds_ios();
        self.rounds = Some(rounds);
        WorkerStep::Again
    }

    /// Carries out one round and reads the clock after it. Returns the outcome if it is not full.
    #[inline(always)]
    fn run_round(&mut self, ios: &[Io], has_writes: bool) -> Option<RoundTransfer> {
        if has_writes {
            self.prepare_writes(ios);
        }
        let memory = &mut self.parts.slab.memory;
        let (clock, submitted_ns) = (&self.clock, &mut self.submitted_ns);
        let submitted = || *submitted_ns = clock.now_ns();
        let outcome = self
            .backend
            .transfer_round(memory, ios, &mut self.done, submitted);
        if outcome != RoundTransfer::Completed {
            return Some(outcome);
        }
        for completion in &self.done {
            let length = ios[completion.slot as usize].len;
            if i64::from(completion.result) != i64::from(length) {
                return Some(outcome);
            }
        }
        self.done.clear();
        self.now_ns = self.clock.now_ns();
        None
    }

    /// Fills the buffers of the writes. Not inlined, so that reads have less code in the caches.
    #[inline(never)]
    fn prepare_writes(&mut self, ios: &[Io]) {
        self.place_round(ios);
        for (slot, io) in (0..).zip(ios) {
            if io.op == Op::Write {
                self.fill(slot);
            }
        }
    }

    /// Puts the I/Os of a round into the first slots.
    fn place_round(&mut self, ios: &[Io]) {
        for (slot, io) in self.parts.slab.slots.iter_mut().zip(ios) {
            *slot = Slot::starting(io, self.now_ns);
        }
    }

    fn count_rounds(&mut self, rounds: &mut FullRounds, first: usize) {
        let ios = rounds.ios[first..].chunks_exact(rounds.depth);
        for (times, ios) in rounds.completed.iter().zip(ios) {
            self.parts.recorder.count_round(times, ios);
        }
        rounds.completed.clear();
    }

    /// Goes on with a round that is not complete or not in full, as without the fast path.
    #[cold]
    fn go_on_with_round(&mut self, ios: &[Io], outcome: RoundTransfer) {
        self.place_round(ios);
        self.free.clear();
        let mut counts = [0; 3];
        for direction in ios.iter().filter_map(|io| io.op.direction()) {
            counts[direction as usize] += 1;
        }
        let slots = 0..ios.len() as u32;
        // Also of a declined round: if the worker ends now, the general path prepares nothing.
        self.prepared_ns = self.now_ns;
        if outcome == RoundTransfer::Declined {
            self.batch.extend(slots);
            self.batched = counts;
            return;
        }
        for slot in &mut self.parts.slab.slots[..ios.len()] {
            slot.issue_ns = self.submitted_ns;
        }
        self.first_start_ns = self.now_ns;
        self.in_flight = slots.end;
        (self.parts.recorder).submitted(
            &counts,
            self.prepared_ns,
            self.submitted_ns,
            self.in_flight,
            true,
        );
        if outcome == RoundTransfer::Completed {
            self.now_ns = self.clock.now_ns();
            self.record();
        }
    }
}
