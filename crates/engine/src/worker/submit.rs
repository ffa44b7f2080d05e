//! Submission of a batch to the backend, and the time stamps that its I/Os share.

use super::Worker;
use crate::io::Backend;
use crate::worker::clock::Clock;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Submits the batch to the backend and stamps its slots.
    #[inline(always)]
    pub(super) fn submit(&mut self) {
        if B::SYNCHRONOUS && self.parts.timed {
            let issue_ns = self.clock.now_ns();
            self.parts.slab.slots[self.batch[0] as usize].issue_ns = issue_ns;
        }
        if B::CARRIES_OUT_IN_SUBMIT && !B::SYNCHRONOUS && self.parts.timed {
            let issue_ns = self.clock.now_ns();
            for index in &self.batch {
                self.parts.slab.slots[*index as usize].issue_ns = issue_ns;
            }
        }
        let taken = match self.backend.submit(&mut self.parts.slab, &self.batch) {
            Ok(taken) => taken,
            Err(error) => return self.submission_failed(&error),
        };
        debug_assert!(
            taken <= self.batch.len(),
            "the backend takes slots of the batch"
        );
        let timed = !B::CARRIES_OUT_IN_SUBMIT && self.parts.timed;
        let issue_ns = if timed {
            self.clock.now_ns()
        } else {
            self.prepared_ns
        };
        if !B::CARRIES_OUT_IN_SUBMIT {
            for index in &self.batch[..taken] {
                self.parts.slab.slots[*index as usize].issue_ns = issue_ns;
            }
        }
        let counts = if taken == self.batch.len() {
            std::mem::take(&mut self.batched)
        } else {
            self.count(taken)
        };
        if self.in_flight == 0 {
            self.first_start_ns = self.prepared_ns;
        }
        self.in_flight += taken as u32;
        self.publish_in_flight();
        let mut depth = self.in_flight;
        if self.was_full {
            // As in fio, slots that were reaped together count as in flight until submitted.
            depth += self.to_follow;
        } else {
            self.was_full = depth >= self.parts.rules.iodepth;
        }
        self.parts
            .recorder
            .submitted(&counts, self.prepared_ns, issue_ns, depth, timed);
        if self.special {
            self.log_submission(taken, issue_ns);
        }
        self.submitted_ns = issue_ns;
        if taken == self.batch.len() {
            self.batch.clear();
        } else {
            self.keep_unsubmitted(taken);
        }
        self.debug_assert_slots();
    }

    /// Logs the first slots of the batch, if the job writes logs of single I/Os.
    #[inline(never)]
    fn log_submission(&mut self, taken: usize, issue_ns: u64) {
        if let Some(log) = &mut self.parts.log {
            log.submitted(
                &self.parts.slab,
                &self.batch[..taken],
                self.prepared_ns,
                issue_ns,
            );
        }
    }

    /// Keeps the slots that the backend did not take. Their queue is full, so calls do not grow.
    #[cold]
    fn keep_unsubmitted(&mut self, taken: usize) {
        self.full_reaps = 0;
        self.batch.drain(..taken);
    }

    /// Publishes the number of I/Os in flight, if the backend is observed.
    #[inline(always)]
    pub(super) fn publish_in_flight(&self) {
        if B::PUBLISHES_IN_FLIGHT {
            self.parts.shared.in_flight.set(self.in_flight);
        }
    }

    /// Counts the first `taken` slots of the batch by direction; `batched` keeps the others.
    #[cold]
    fn count(&mut self, taken: usize) -> [u64; 3] {
        let mut counts = [0; 3];
        for index in &self.batch[..taken] {
            if let Some(direction) = self.parts.slab.slots[*index as usize].op.direction() {
                counts[direction as usize] += 1;
                self.batched[direction as usize] -= 1;
            }
        }
        let left = self.batched.iter().sum::<u64>();
        assert!(
            left <= (self.batch.len() - taken) as u64,
            "{left} data I/Os are left of a batch of {} without {taken}",
            self.batch.len()
        );
        counts
    }

    #[cold]
    pub(super) fn submission_failed(&mut self, error: &std::io::Error) {
        let slot = self.parts.slab.slots[self.batch[0] as usize];
        self.fail(&slot, error.raw_os_error().unwrap_or(libc::EIO));
        for position in 0..self.batch.len() {
            self.release_file_and_range(self.batch[position]);
        }
        self.batched = [0; 3];
        self.free.append(&mut self.batch);
    }
}
