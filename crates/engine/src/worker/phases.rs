//! Changes of phase: flush, verification, the next pass, the end.

use super::{StartOver, Worker, WorkerPhase, WorkerStep};
use crate::io::remote::LostWrites;
use crate::io::{Backend, Op, Slot};
use crate::worker::clock::Clock;
use crate::worker::io_failure::failure_from_lost_writes;
use iosonde_result::observer::WorkerState;
use std::sync::atomic::Ordering::Relaxed;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Starts the next phase once no I/O is in flight or left. As in fio, each pass is flushed
    /// (`end_fsync`) and verified (`verify`) before the next, which starts uncached (`invalidate`).
    #[cold]
    pub(super) fn next_phase(&mut self) -> WorkerStep {
        self.assert_no_io_in_flight();
        self.source_exhausted = false;
        self.deferred_io = None;
        self.draining = false;
        self.now_ns = self.clock.now_ns();
        let confirms = self.begins_confirmation();
        if confirms {
            self.confirm_writes();
        }
        let stopped = self.is_stopped();
        if self.phase == WorkerPhase::Main {
            let starts_over = self.parts.generator.take_stop().filter(|_| !stopped);
            if let Some(StartOver::File(_)) = starts_over {
                return self.begin_main(starts_over);
            }
            self.has_next_pass = starts_over.is_some();
            self.checks_pass = !stopped && (self.parts.verifies_each_pass || !self.has_next_pass);
        }
        self.count_runtime();
        if confirms {
            // The time of the confirmation belongs to no phase.
            self.now_ns = self.clock.now_ns();
            self.phase_start_ns = self.now_ns;
        }
        if self.phase == WorkerPhase::Main
            && !self.parts.end_sync_files.is_empty()
            && self.failure.is_none()
        {
            return self.begin_flush(stopped);
        }
        let checks = std::mem::take(&mut self.checks_pass) && !stopped;
        if checks && self.begins_verifying() {
            return self.begin_verify();
        }
        if !stopped && self.has_next_pass {
            return self.begin_main(Some(StartOver::Pass));
        }
        self.phase = WorkerPhase::Done;
        WorkerStep::Done
    }

    /// Asserts that no I/O is in flight, and that no slot has been lost. The slots of a failed wait
    /// are lost on purpose: the kernel may still write to their buffers.
    fn assert_no_io_in_flight(&self) {
        assert_eq!(
            self.in_flight, 0,
            "a phase ends once its I/Os have completed"
        );
        assert!(
            self.failure.is_some() || self.has_all_slots(),
            "each slot is free or in the batch: {} + {}",
            self.free.len(),
            self.batch.len()
        );
        let ranges = self.ranges.as_ref().filter(|_| self.failure.is_none());
        assert!(
            ranges.is_none_or(|ranges| !self.batch.is_empty() || ranges.is_empty()),
            "each completion removes its range"
        );
    }

    /// Whether no slot was lost by a failed wait.
    fn has_all_slots(&self) -> bool {
        self.free.len() + self.batch.len() == self.parts.slab.slots.len()
    }

    /// Whether the worker ends regardless of the I/O that is left.
    fn is_stopped(&self) -> bool {
        self.failure.is_some()
            || self.over
            || self.parts.shared.stop.load(Relaxed)
            || self.now_ns >= self.parts.limits.deadline_ns
    }

    fn begin_flush(&mut self, stopped: bool) -> WorkerStep {
        self.parts.shared.enter(WorkerState::Syncing);
        if stopped {
            // The stop request is handled: the phase after the flush is decided already.
            self.parts.shared.stop.store(false, Relaxed);
        }
        self.end_syncs = 0;
        self.phase = WorkerPhase::EndSync;
        WorkerStep::Again
    }

    /// Whether the writes are confirmed now: after their flush, or once the worker fails, as no
    /// other worker may be left to confirm those of other jobs. Not if I/Os were abandoned, or have
    /// an unknown state.
    fn begins_confirmation(&self) -> bool {
        let Some(failure) = &self.failure else {
            return self.phase == WorkerPhase::EndSync;
        };
        matches!(self.phase, WorkerPhase::Main | WorkerPhase::EndSync)
            && !self.parts.end_sync_files.is_empty()
            && failure.errno != libc::ECANCELED
            && self.has_all_slots()
    }

    /// Fails the worker if writes to its flushed files were lost. They may be those of other jobs,
    /// so that the policy of this job alone does not decide. A worker that has failed keeps its own
    /// failure, and the lost writes become a note.
    fn confirm_writes(&mut self) {
        if let Err(LostWrites { errno, is_ignored }) = self.backend.confirm_writes() {
            let slot = Slot {
                op: Op::Write,
                file: self.parts.end_sync_files.first().copied().unwrap_or(0),
                ..self.parts.slab.slots[0]
            };
            let file = self.parts.file_names.get(slot.file as usize).cloned();
            let failure = failure_from_lost_writes(&slot, errno, file);
            match &self.failure {
                // I/Os were abandoned after the failure, and those of the confirmation are refused.
                Some(_) if errno == libc::ECANCELED => {}
                Some(_) if !is_ignored => self.parts.shared.note(failure.message),
                _ => self.end_or_survive(failure, is_ignored),
            }
        }
    }

    fn begins_verifying(&mut self) -> bool {
        let verifier = self.parts.verifier.as_mut();
        verifier.is_some_and(|verifier| verifier.begin_reading())
    }

    /// Starts verification with an empty page cache, so that reads do not return cached writes.
    fn begin_verify(&mut self) -> WorkerStep {
        let written_back = match (&self.parts.open_file_cache, &self.parts.cache) {
            (Some(open_file_cache), _) => open_file_cache.write_back(),
            (None, Some(cache)) => cache.write_back(),
            (None, None) => Ok(()),
        };
        if let Err(error) = written_back {
            self.cannot_open(&error);
        }
        // The time of writing back belongs to neither phase.
        self.phase_start_ns = self.clock.now_ns();
        self.drop_cache(None);
        self.parts.shared.enter(WorkerState::Verifying);
        self.phase = WorkerPhase::Verify;
        WorkerStep::Again
    }

    fn begin_main(&mut self, starts_over: Option<StartOver>) -> WorkerStep {
        self.drop_cache(match starts_over {
            Some(StartOver::File(file)) => Some(file),
            Some(StartOver::Pass) | None => None,
        });
        if self.phase != WorkerPhase::Main {
            self.parts.shared.enter(WorkerState::Running);
        }
        self.phase = WorkerPhase::Main;
        WorkerStep::Again
    }
}
