//! Requests statistics from running workers without blocking them.

use crate::counters::WorkerCounters;
use iosonde_result::observer::WorkerState;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Interval between two checks for answers.
const CHECK_INTERVAL_NS: u64 = 5_000_000;
/// Maximum wait for an answer. Of a worker that waits longer, the last answer is reported.
const ANSWER_TIMEOUT_NS: u64 = 1_000_000_000;

/// The open request, if there is one.
#[derive(Debug, Default)]
pub(super) struct StatusRequest {
    asked_ns: Option<u64>,
    next_check_ns: u64,
}

impl StatusRequest {
    /// Whether workers have been asked and not all have answered.
    pub(super) fn is_open(&self) -> bool {
        self.asked_ns.is_some()
    }

    /// Asks all running workers.
    pub(super) fn begin(&mut self, now_ns: u64, workers: &[Arc<WorkerCounters>]) {
        self.asked_ns = Some(now_ns);
        for worker in workers.iter().filter(|worker| is_in_io_loop(worker)) {
            worker.asked.store(true, Relaxed);
        }
    }

    /// Whether all workers have answered or the wait has timed out. True once per request.
    pub(super) fn is_answered(&mut self, now_ns: u64, workers: &[Arc<WorkerCounters>]) -> bool {
        let Some(asked_ns) = self.asked_ns else {
            return false;
        };
        let waiting =
            |worker: &Arc<WorkerCounters>| is_in_io_loop(worker) && worker.asked.load(Relaxed);
        if workers.iter().any(waiting) && now_ns.saturating_sub(asked_ns) < ANSWER_TIMEOUT_NS {
            self.next_check_ns = now_ns + CHECK_INTERVAL_NS;
            return false;
        }
        self.asked_ns = None;
        true
    }

    /// Returns when to check again while a request is open.
    pub(super) fn next_check_ns(&self) -> Option<u64> {
        self.asked_ns.map(|_| self.next_check_ns)
    }
}

/// Whether a worker is in its I/O loop, where it notices requests.
fn is_in_io_loop(worker: &Arc<WorkerCounters>) -> bool {
    matches!(
        worker.state(),
        WorkerState::Ramp | WorkerState::Running | WorkerState::Verifying | WorkerState::Syncing
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_request_waits_for_running_workers_until_timeout() {
        let workers = [
            Arc::new(WorkerCounters::default()),
            Arc::new(WorkerCounters::default()),
        ];
        let mut request = StatusRequest::default();
        assert!(!request.is_answered(0, &workers));
        request.begin(10, &workers);
        assert!(request.is_answered(10, &workers), "no worker runs");
        workers[1].enter(WorkerState::Running);
        request.begin(20, &workers);
        assert!(!request.is_answered(20, &workers));
        assert!(!workers[0].asked.load(Relaxed));
        assert_eq!(request.next_check_ns(), Some(20 + CHECK_INTERVAL_NS));
        workers[1].asked.store(false, Relaxed);
        assert!(request.is_answered(21, &workers));
        assert!(!request.is_open());
        request.begin(30, &workers);
        assert!(request.is_answered(30 + ANSWER_TIMEOUT_NS, &workers));
    }
}
