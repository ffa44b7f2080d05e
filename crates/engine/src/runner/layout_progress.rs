//! Reports the progress of file layout to an observer.

use iosonde_job::plan::{Direction, PerDirection};
use iosonde_result::interval::IntervalCounts;
use iosonde_result::observer::{Control, Observer, RunProgress, WorkerProgress, WorkerState};
use std::time::{Duration, Instant};

/// Interval between two reports.
const EVERY: Duration = Duration::from_millis(100);

/// Progress of file layout.
pub(crate) struct LayoutProgress {
    total_bytes: u64,
    workers: Vec<WorkerProgress>,
    /// Start of the run.
    begun: Instant,
    /// Start of the layout.
    started: Instant,
    last: Instant,
    last_bytes: u64,
}

impl LayoutProgress {
    /// Creates the progress. `workers` holds each worker's job, and whether its files are laid out.
    pub(crate) fn new(
        total_bytes: u64,
        workers: &[(usize, bool)],
        begun: Instant,
    ) -> LayoutProgress {
        let workers = workers.iter().map(|(job, waits)| WorkerProgress {
            state: match waits {
                true => WorkerState::Layout,
                false => WorkerState::NotStarted,
            },
            job: *job,
            open_files: 0,
            counts: PerDirection::default(),
        });
        let now = Instant::now();
        LayoutProgress {
            total_bytes,
            workers: workers.collect(),
            begun,
            started: now,
            last: now,
            last_bytes: 0,
        }
    }

    /// Reports to the observer, once per `EVERY`, that `bytes` are written.
    pub(crate) fn report_written(&mut self, bytes: u64, observer: &mut dyn Observer) -> Control {
        let (now, elapsed) = (Instant::now(), self.last.elapsed());
        if elapsed < EVERY {
            return Control::Continue;
        }
        let mut rate = PerDirection::<IntervalCounts>::default();
        let moved = bytes.saturating_sub(self.last_bytes);
        rate[Direction::Write].bytes = (moved as f64 / elapsed.as_secs_f64()) as u64;
        (self.last, self.last_bytes) = (now, bytes);
        let spent_ns = self.started.elapsed().as_nanos() as f64;
        let left = self.total_bytes.saturating_sub(bytes) as f64;
        observer.progress(&RunProgress {
            at_ns: self.begun.elapsed().as_nanos() as u64,
            workers: &self.workers,
            rate,
            left_ns: (bytes > 0).then(|| (spent_ns * left / bytes as f64) as u64),
            done: (self.total_bytes > 0).then(|| (bytes as f64 / self.total_bytes as f64).min(1.0)),
            pods: &[],
        })
    }
}
