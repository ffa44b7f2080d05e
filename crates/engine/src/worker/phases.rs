//! Changes of phase: flush, verification, the next pass, the end.

use super::{Phase, StartOver, Step, Worker};
use crate::io::Backend;
use crate::worker::clock::Clock;
use iosonde_result::observer::WorkerState;
use std::sync::atomic::Ordering::Relaxed;

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Starts the next phase once no I/O is in flight or left. As in fio, each pass is flushed
    /// (`end_fsync`) and verified (`verify`) before the next, which starts uncached (`invalidate`).
    #[cold]
    pub(super) fn next_phase(&mut self) -> Step {
        self.dry = false;
        self.held = None;
        self.draining = false;
        self.now_ns = self.clock.now_ns();
        let stopped = self.is_stopped();
        if self.phase == Phase::Main {
            let starts_over = self.parts.generator.take_stop().filter(|_| !stopped);
            if let Some(StartOver::File(_)) = starts_over {
                return self.begin_main(starts_over);
            }
            self.has_next_pass = starts_over.is_some();
            self.checks_pass = !stopped && (self.parts.verifies_each_pass || !self.has_next_pass);
        }
        self.count_runtime();
        if self.phase == Phase::Main
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
        self.phase = Phase::Done;
        Step::Done
    }

    /// Whether the worker ends regardless of the I/O that is left.
    fn is_stopped(&self) -> bool {
        self.failure.is_some()
            || self.over
            || self.parts.shared.stop.load(Relaxed)
            || self.now_ns >= self.parts.limits.deadline_ns
    }

    fn begin_flush(&mut self, stopped: bool) -> Step {
        self.parts.shared.enter(WorkerState::Syncing);
        if stopped {
            // The stop request is handled: the phase after the flush is decided already.
            self.parts.shared.stop.store(false, Relaxed);
        }
        self.end_syncs = 0;
        self.phase = Phase::EndSync;
        Step::Again
    }

    fn begins_verifying(&mut self) -> bool {
        let verifier = self.parts.verifier.as_mut();
        verifier.is_some_and(|verifier| verifier.begin_reading())
    }

    /// Starts verification with an empty page cache, so that reads do not return cached writes.
    fn begin_verify(&mut self) -> Step {
        let written_back = match (&self.parts.keeper, &self.parts.cache) {
            (Some(keeper), _) => keeper.write_back(),
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
        self.phase = Phase::Verify;
        Step::Again
    }

    fn begin_main(&mut self, starts_over: Option<StartOver>) -> Step {
        self.drop_cache(match starts_over {
            Some(StartOver::File(file)) => Some(file),
            Some(StartOver::Pass) | None => None,
        });
        if self.phase != Phase::Main {
            self.parts.shared.enter(WorkerState::Running);
        }
        self.phase = Phase::Main;
        Step::Again
    }
}
