//! Selects the next I/O: from the generator, or delayed by rates, pauses, flows and verification.

use super::{DepthRules, Worker, WorkerPhase};
use crate::io::{Backend, Op, Slot};
use crate::worker::clock::Clock;
use iosonde_job::plan::Direction;
use iosonde_workload::Io;

/// Full reaps in a row after which calls grow, or [full rounds](super::full_rounds) follow: see
/// [`Worker::is_full_reap`].
pub(super) const FULL_REAPS_MIN: u32 = 4;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Fills the batch with the I/Os that may start now. Returns when a delayed I/O may start.
    #[inline(always)]
    pub(super) fn prepare(&mut self) -> Option<u64> {
        let goes_on = std::mem::take(&mut self.to_follow) > 0;
        let rules = &self.parts.rules;
        let depth = self.depth();
        let busy = self.in_flight + self.batch.len() as u32;
        debug_assert!(
            busy as usize <= self.parts.slab.slots.len(),
            "an I/O has a slot"
        );
        if self.draining && busy > rules.low {
            return None;
        }
        self.draining = false;
        let room = depth.saturating_sub(busy).min(rules.batch_submit);
        if room < rules.refill.slots && !goes_on && self.holds_back() {
            return None;
        }
        self.prepared_ns = self.now_ns;
        let call_limit = match self.full_reaps >= FULL_REAPS_MIN {
            true => rules.call_limit_at_once,
            false => rules.call_limit,
        };
        let count = room.min(call_limit);
        let wake_ns = if self.phase == WorkerPhase::Main && self.plain {
            self.prepare_plain(count)
        } else {
            self.prepare_one_by_one(count)
        };
        if self.batch.len() as u32 >= count {
            self.to_follow = room - count;
        }
        if self.in_flight + self.batch.len() as u32 >= depth && rules_low_differs(&self.parts.rules)
        {
            self.draining = true;
        }
        wake_ns
    }

    /// Whether to wait for more free slots before the next submission. With fast completions, a
    /// call for each would cost more than the I/O itself. With slow ones, `hold_ns` has passed, so
    /// none waits. Time stamps do not change: only the depth drops for a moment.
    #[inline(always)]
    fn holds_back(&self) -> bool {
        self.in_flight > 0
            && self.batch.is_empty()
            && self.now_ns.saturating_sub(self.submitted_ns) < self.parts.rules.refill.hold_ns
    }

    #[inline(always)]
    pub(super) fn prepare_plain(&mut self, room: u32) -> Option<u64> {
        let wanted = room as usize;
        let count = match self.has_generated {
            true => self.take_generated(wanted),
            false => self.parts.generator.fill(&mut self.ios[..wanted]),
        };
        self.source_exhausted = count < wanted;
        self.place_all(count);
        None
    }

    /// Puts the generated I/Os into free slots, as [`Worker::place`] does for one I/O.
    #[inline(always)]
    fn place_all(&mut self, count: usize) {
        let kept = self.free.len().checked_sub(count);
        let kept = kept.expect("as many slots as iodepth");
        let (first, start_ns) = (self.batch.len(), self.now_ns);
        self.batch.extend(self.free[kept..].iter().rev());
        self.free.truncate(kept);
        let mut counts = [0; 3];
        for (io, index) in self.ios[..count].iter().zip(&self.batch[first..]) {
            self.parts.slab.slots[*index as usize] = Slot::starting(io, start_ns);
            if let Some(direction) = io.op.direction() {
                counts[direction as usize] += 1;
            }
        }
        for (batched, count) in self.batched.iter_mut().zip(counts) {
            *batched += count;
        }
        if self.special {
            self.draw_priorities(first);
        }
        if counts[Direction::Write as usize] > 0 {
            self.fill_writes(first);
        }
    }

    /// Sets the priorities of the slots in the batch from a position on, if the job has any.
    #[inline(never)]
    fn draw_priorities(&mut self, first: usize) {
        if let Some(cmdprio) = &mut self.parts.cmdprio {
            for index in &self.batch[first..] {
                let slot = &mut self.parts.slab.slots[*index as usize];
                slot.priority = cmdprio.draw(slot.op, slot.len);
            }
        }
    }

    /// Fills the buffers of the writes in the batch from a position on. Apart from the loop, so
    /// that reads have less code in the caches.
    #[inline(never)]
    fn fill_writes(&mut self, first: usize) {
        for position in first..self.batch.len() {
            let index = self.batch[position];
            if self.parts.slab.slots[index as usize].op == Op::Write {
                self.fill(index);
            }
        }
    }

    /// The general case: pauses, rates, flows, verification, overlaps.
    #[inline(never)]
    pub(super) fn prepare_one_by_one(&mut self, room: u32) -> Option<u64> {
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
            let start_ns = match self.due_ns(&io) {
                Some(start_ns) if start_ns > self.now_ns && !check => {
                    self.deferred_io = Some((io, false));
                    return Some(start_ns);
                }
                Some(start_ns) if !check => start_ns,
                _ => self.now_ns,
            };
            let overlaps = self.ranges.as_ref().is_some_and(|it| it.overlaps(&io));
            if overlaps || self.parts.open_file_cache.is_some() && !self.opens_file(&io) {
                self.deferred_io = Some((io, check));
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
            if let Some(ranges) = &mut self.ranges {
                ranges.insert(&io);
            }
            self.place(io, start_ns, check);
        }
        None
    }

    /// Returns the next I/O of the phase, and whether it verifies. Sets `source_exhausted` at the
    /// end.
    pub(super) fn next_io(&mut self) -> Option<(Io, bool)> {
        if let Some(deferred) = self.deferred_io.take() {
            return Some(deferred);
        }
        let next = match (self.phase, &mut self.parts.verifier) {
            (WorkerPhase::Main, _) if self.parts.replayer.is_some() => {
                self.replayed_io().map(|io| (io, false))
            }
            (WorkerPhase::Main, verifier) => {
                if let Some(io) = verifier
                    .as_mut()
                    .and_then(|verifier| verifier.next_of_backlog())
                {
                    return Some((io, true));
                }
                let io = match self.parts.pacer.next_direction(self.now_ns) {
                    Some(direction) => self.parts.generator.next_io_of(direction),
                    None => self.parts.generator.next_io(),
                };
                io.map(|io| (io, false))
            }
            (WorkerPhase::Verify, Some(verifier)) => verifier.next_read().map(|io| (io, true)),
            (WorkerPhase::EndSync, _) => {
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
        self.source_exhausted = next.is_none();
        next
    }

    /// Returns the trace's next I/O. As in fio, a file that is opened again loses its page cache.
    fn replayed_io(&mut self) -> Option<Io> {
        let replayer = self.parts.replayer.as_mut()?;
        let io = replayer.next_io(self.now_ns)?;
        if replayer.is_reopened() {
            self.drop_cache(Some(io.file));
        }
        Some(io)
    }

    /// Returns the intended start of an I/O by its trace or rate; `None` stands for at once.
    fn due_ns(&self, io: &Io) -> Option<u64> {
        let by_trace = self.parts.replayer.as_ref().and_then(|it| it.due_ns());
        by_trace.or_else(|| self.parts.pacer.start_ns(io.op.direction()?))
    }

    /// Puts an I/O into a free slot and the slot into the batch.
    #[inline(always)]
    pub(super) fn place(&mut self, io: Io, start_ns: u64, check: bool) {
        let index = self.free.pop().expect("as many slots as iodepth");
        let priority = match &mut self.parts.cmdprio {
            None => 0,
            Some(cmdprio) => cmdprio.draw(io.op, io.len),
        };
        self.parts.slab.slots[index as usize] = Slot {
            offset: io.offset,
            start_ns,
            issue_ns: 0,
            sequence: 0,
            len: io.len,
            moved: 0,
            file: io.file,
            op: io.op,
            priority,
            check,
            prepared_ns: self.prepared_ns,
        };
        if io.op == Op::Write {
            self.fill(index);
        } else if check && let Some(verifier) = &self.parts.verifier {
            self.parts.slab.slots[index as usize].sequence = verifier.expected_sequence(&io);
        }
        if let Some(direction) = io.op.direction() {
            self.batched[direction as usize] += 1;
        }
        self.batch.push(index);
    }

    #[inline(always)]
    pub(super) fn fill(&mut self, index: u32) {
        let parts = &mut self.parts;
        let slot = &mut parts.slab.slots[index as usize];
        let buffer = parts.slab.memory.slot_mut(index, slot.len as usize);
        match &mut parts.verifier {
            Some(verifier) => slot.sequence = verifier.seal(slot, buffer),
            None => parts.contents.fill(slot.offset, buffer),
        }
    }
}

#[inline(always)]
fn rules_low_differs(rules: &DepthRules) -> bool {
    rules.low < rules.iodepth
}
