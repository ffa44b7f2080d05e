//! Processing of completions: recorded, continued, verified or failed.

use super::{Worker, WorkerPhase, WorkerStep};
use crate::error_policy::{survives_read, survives_verify, survives_write};
use crate::io::{Backend, Completion, Op, Slot};
use crate::worker::clock::Clock;
use crate::worker::io_failure::failure_from_io;
use iosonde_job::plan::{Direction, ErrorPolicy};
use iosonde_result::run::IoFailure;

/// Most time for each I/O of a full reap.
const FULL_REAP_NS_PER_IO: u64 = 5_000;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Reaps and records completions. Waits for as many as the rules require.
    #[inline(always)]
    pub(super) fn collect(&mut self, wake_ns: Option<u64>, ending: bool) -> WorkerStep {
        let rules = &self.parts.rules;
        let depth = self.depth();
        // The state of rates, pauses and delays is out of the cache, and a plain job has none.
        let is_delayed = !self.plain && self.is_delayed();
        let stuck = ending
            || self.source_exhausted
            || wake_ns.is_some()
            || self.draining
            || !self.batch.is_empty()
            || is_delayed;
        let held_back = depth - self.in_flight.min(depth) < rules.refill.slots;
        // While free slots are held back, a wait for several completions costs fewer system calls.
        let at_least = match held_back && self.plain {
            true => rules.refill.together,
            false => 1,
        };
        let full = held_back || self.in_flight >= depth || stuck;
        let min = if full {
            rules.complete_min.max(at_least).min(self.in_flight) as usize
        } else {
            0
        };
        debug_assert!(
            min <= self.in_flight as usize,
            "a wait for more would not end"
        );
        let timeout_ns = wake_ns.map(|wake_ns| wake_ns.saturating_sub(self.now_ns));
        // Completions left over by iodepth_batch_complete_max are processed first.
        if self.done.is_empty()
            && let Err(error) =
                self.backend
                    .reap(&mut self.parts.slab, min, timeout_ns, &mut self.done)
            // Completions before the error count. The next wait fails if the error lasts.
            && self.done.is_empty()
        {
            return self.fail_wait(&error);
        }
        if self.done.is_empty() {
            return self.nothing_reaped(min, wake_ns);
        }
        self.now_ns = self.clock.now_ns();
        self.record();
        WorkerStep::Again
    }

    /// Fails the worker after an error of the reap call, whatever errors the job ignores. The slots
    /// stay in use, as the kernel may still write to their buffers.
    #[cold]
    pub(super) fn fail_wait(&mut self, error: &std::io::Error) -> WorkerStep {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let lost = std::mem::take(&mut self.in_flight);
        self.publish_in_flight();
        self.failure
            .get_or_insert(crate::worker::io_failure::failure_from_wait(errno, lost));
        self.batch.clear();
        self.batched = [0; 3];
        self.next_phase()
    }

    #[cold]
    pub(super) fn nothing_reaped(&mut self, min: usize, wake_ns: Option<u64>) -> WorkerStep {
        self.full_reaps = 0;
        match self.backend.next_completion_ns() {
            Some(next_ns) if min > 0 => {
                WorkerStep::Wait(wake_ns.map_or(next_ns, |wake_ns| next_ns.min(wake_ns)))
            }
            _ => {
                self.now_ns = self.clock.now_ns();
                WorkerStep::Again
            }
        }
    }

    /// Whether an I/O or a pause waits until the I/Os in flight complete.
    #[inline(never)]
    fn is_delayed(&self) -> bool {
        self.deferred_io.is_some() || self.parts.pacer.pause_due()
    }

    #[inline(always)]
    pub(super) fn record(&mut self) {
        let now_ns = self.now_ns;
        debug_assert!(
            self.done.len() <= self.in_flight as usize,
            "each I/O in flight completes once"
        );
        self.parts.recorder.resumed(self.clock.resumed_ns());
        if self.is_full_reap() {
            self.full_reaps = self.full_reaps.saturating_add(1);
            self.until_rounds = self.until_rounds.saturating_sub(1);
        } else {
            self.full_reaps = 0;
        }
        let count = self.done.len().min(self.parts.rules.complete_max as usize);
        let special = self.special || self.phase == WorkerPhase::EndSync;
        let mut position = 0;
        // The fast path: full completions without further work.
        let plain = if special { 0 } else { count };
        for completion in &self.done[..plain] {
            let slot = &self.parts.slab.slots[completion.slot as usize];
            if i64::from(completion.result) != i64::from(slot.len - slot.moved) {
                break;
            }
            self.parts.recorder.completed(slot, now_ns);
            self.free.push(completion.slot);
            position += 1;
        }
        self.in_flight -= position as u32;
        for position in position..count {
            let Completion { slot, result } = self.done[position];
            self.record_special(slot, result);
        }
        self.publish_in_flight();
        self.parts.recorder.reaped(count, now_ns);
        if count == self.done.len() {
            self.done.clear();
        } else {
            self.keep_unprocessed(count);
        }
        self.debug_assert_slots();
    }

    /// Whether the reap returned all I/Os of several calls, or of the whole depth, shortly after
    /// the first was prepared. The whole depth in one call leads only to
    /// [full rounds](super::full_rounds). Special jobs have none, and their depth may grow.
    ///
    /// Such I/Os complete within their calls and do not queue in a device, so that calls twice as
    /// large hardly change their latencies. An engine may also wait for a slow device in its call,
    /// as libaio does without O_DIRECT: its I/Os are all complete too, but later.
    #[inline(always)]
    fn is_full_reap(&self) -> bool {
        let rules = &self.parts.rules;
        let exceeded = match self.special {
            true => rules.call_limit,
            false => rules.call_limit.min(rules.iodepth - 1),
        };
        !B::CARRIES_OUT_IN_SUBMIT
            && self.done.len() == self.in_flight as usize
            && self.in_flight > exceeded
            && self.is_soon_after(self.first_start_ns, self.in_flight)
    }

    /// Whether this number of I/Os completed soon after the first of them was prepared.
    #[inline(always)]
    pub(super) fn is_soon_after(&self, first_start_ns: u64, ios: u32) -> bool {
        self.now_ns.saturating_sub(first_start_ns) <= FULL_REAP_NS_PER_IO * u64::from(ios)
    }

    /// Removes processed completions, of which there are more than
    /// `iodepth_batch_complete_max`.
    #[inline(never)]
    fn keep_unprocessed(&mut self, count: usize) {
        self.done.drain(..count);
    }

    /// Records a completion off the fast path: an error, a short I/O, or an I/O with more to do.
    #[inline(never)]
    pub(super) fn record_special(&mut self, index: u32, result: i32) {
        let slot = self.parts.slab.slots[index as usize];
        if result < 0 {
            if let Some(verifier) = &mut self.parts.verifier {
                verifier.failed(&slot);
            }
            self.free_slot(index);
            return self.fail(&slot, -result);
        }
        let moved = result as u32;
        if moved < slot.len - slot.moved && !is_whole_range(slot.op, result) {
            return self.continue_short(index, moved);
        }
        if let Some(direction) = slot.op.direction() {
            self.check_latency(&slot, direction);
        }
        // As in fio, the flush at the end does not count as the job's own I/O.
        if self.phase != WorkerPhase::EndSync {
            self.parts.recorder.completed(&slot, self.now_ns);
        }
        if !slot.check {
            self.parts.pacer.completed(self.now_ns);
        }
        if let Some(log) = &mut self.parts.log {
            log.completed(&slot, self.now_ns);
        }
        if let Some(cmdprio) = &mut self.parts.cmdprio {
            cmdprio.completed(&slot, self.now_ns);
        }
        self.verify(index, &slot);
        self.free_slot(index);
    }

    pub(super) fn check_latency(&mut self, slot: &Slot, direction: Direction) {
        let latency_ns = self.now_ns.saturating_sub(slot.issue_ns);
        if let Some(control) = &mut self.parts.depth_control {
            control.completed(latency_ns, self.now_ns);
            if control.is_settled() {
                (self.source_exhausted, self.over) = (true, true);
            }
            if control.is_missed() {
                self.fail_on_latency(slot);
            }
        }
        if self.parts.limits.max_latency_ns[direction].is_some_and(|most| latency_ns > most) {
            self.fail_on_latency(slot);
        }
    }

    /// Fails the worker: an I/O exceeded the maximum latency, an error that no option ignores.
    #[cold]
    fn fail_on_latency(&mut self, slot: &Slot) {
        let file = self.parts.file_names.get(slot.file as usize).cloned();
        self.failure
            .get_or_insert(crate::worker::io_failure::too_slow(slot, file));
    }

    pub(super) fn verify(&mut self, index: u32, slot: &Slot) {
        let Some(verifier) = &mut self.parts.verifier else {
            return;
        };
        let buffer = self.parts.slab.memory.slot(index, slot.len as usize);
        if let Err(found) = verifier.completed(slot, buffer) {
            let names = &self.parts.file_names;
            let name = names.get(slot.file as usize).map_or("file", String::as_str);
            if let Err(error) = verifier.dump(slot, buffer, name, &self.parts.dump_directory) {
                let error = iosonde_job::errno::describe(&error);
                let note = format!("verify_dump: the blocks cannot be saved: {error}");
                self.parts.shared.note(note);
            }
            if verifier.is_fatal() || !survives_verify(&self.parts.errors, libc::EILSEQ) {
                self.failure
                    .get_or_insert(found.in_file(&self.parts.file_names));
            } else {
                let failure = found.in_file(&self.parts.file_names);
                self.parts.shared.note(failure.message);
                self.survive(libc::EILSEQ);
            }
        }
    }

    pub(super) fn free_slot(&mut self, index: u32) {
        self.free.push(index);
        self.in_flight -= 1;
        self.release_file_and_range(index);
    }

    /// Continues an I/O that transferred only `moved` bytes; a transfer of 0 bytes is an error.
    #[cold]
    pub(super) fn continue_short(&mut self, index: u32, moved: u32) {
        // The rest of the I/O has an earlier start than the next call.
        self.full_reaps = 0;
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
        if moved == 0 {
            self.free_slot(index);
            return self.fail(&slot, libc::EIO);
        }
        assert!(slot.moved < slot.len, "a continued I/O has bytes left");
        self.in_flight -= 1;
        if let Some(direction) = slot.op.direction() {
            self.batched[direction as usize] += 1;
        }
        self.batch.push(index);
    }

    /// Handles an error: the job survives it, ignores it, or fails.
    #[cold]
    pub(super) fn fail(&mut self, slot: &Slot, errno: i32) {
        let file = self.parts.file_names.get(slot.file as usize).cloned();
        if errno == libc::ECANCELED && self.failure.is_none() {
            let count = self.in_flight + 1;
            let place = file.as_deref().unwrap_or("the target");
            self.parts.shared.note(format!(
                "interrupted: {count} I/Os in flight had no answer and were abandoned ({place})"
            ));
        }
        let full = matches!(errno, libc::ENOSPC | libc::EDQUOT);
        if full && self.parts.limits.fill_device && slot.op == Op::Write {
            (self.source_exhausted, self.over) = (true, true);
            return;
        }
        let survives = survives(&self.parts.errors, slot, errno);
        self.end_or_survive(failure_from_io(slot, errno, file), survives);
    }

    /// Ends the worker with this failure, or counts an error that it survives.
    pub(super) fn end_or_survive(&mut self, failure: IoFailure, survives: bool) {
        if !survives {
            self.failure.get_or_insert(failure);
            return;
        }
        self.survive(failure.errno);
        if self.parts.errors.dump {
            self.parts.shared.note(failure.message);
        }
    }

    pub(super) fn survive(&mut self, errno: i32) {
        self.survived += 1;
        if self.first_error == 0 {
            self.first_error = errno;
        }
    }
}

/// Whether a result stands for a whole range, whatever its length: see
/// [`whole_length`](crate::io::whole_length).
fn is_whole_range(op: Op, result: i32) -> bool {
    op == Op::SyncFileRange || op == Op::Trim && result == i32::MAX
}

/// Whether the job survives an error.
fn survives(policy: &ErrorPolicy, slot: &Slot, errno: i32) -> bool {
    match slot.op {
        Op::Read if slot.check => survives_verify(policy, errno),
        Op::Read => survives_read(policy, errno),
        _ => survives_write(policy, errno),
    }
}
