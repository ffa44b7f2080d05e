//! Measurements of a worker, while it runs and once it is done.

use super::{Worker, WorkerPhase};
use crate::clock::Clock;
use crate::files::OpenFileCache;
use crate::io::Backend;
use crate::worker::io_log::IoLog;
use crate::worker::io_priority::Cmdprio;
use crate::worker::recorder::Recorder;
use iosonde_job::plan::PerDirection;
use iosonde_result::run::{IoFailure, RampResult};

const ENDED_IN_RAMP: &str = "the job ended within its ramp_time: bytes and rates are those of the \
                             ramp, and latencies were not measured";

/// Measurements of a worker, final or interim.
pub(crate) struct WorkerSnapshot<'a> {
    /// Statistics of the completed I/Os.
    pub(crate) recorder: &'a Recorder,
    /// Length of the measured time, by direction, in nanoseconds.
    pub(crate) runtime_ns: PerDirection<u64>,
    /// The error that ended the worker.
    pub(crate) failure: Option<&'a IoFailure>,
    /// Number of errors that did not end the worker.
    pub(crate) survived: u64,
    /// errno of the first of these errors.
    pub(crate) first_error: i32,
    /// Depth in force: that of the latency target, or `iodepth`.
    pub(crate) depth: u32,
    /// Latencies by priority.
    pub(crate) cmdprio: Option<&'a Cmdprio>,
    /// I/O done in a ramp that has not ended.
    pub(crate) only_ramp: Option<Box<RampResult>>,
    /// Time of these measurements.
    pub(crate) now_ns: u64,
}

/// Output of a worker that is done.
pub(crate) struct WorkerOutput {
    /// Statistics of the completed I/Os.
    pub(crate) recorder: Recorder,
    /// Length of the measured time, by direction, in nanoseconds.
    pub(crate) runtime_ns: PerDirection<u64>,
    /// The error that ended the worker.
    pub(crate) failure: Option<IoFailure>,
    /// Number of errors that did not end the worker.
    pub(crate) survived: u64,
    /// errno of the first of these errors.
    pub(crate) first_error: i32,
    /// Depth in force at the end: that of the latency target, or `iodepth`.
    pub(crate) depth: u32,
    /// Logs, which the caller closes.
    pub(crate) log: Option<IoLog>,
    /// Latencies by priority.
    pub(crate) cmdprio: Option<Box<Cmdprio>>,
    /// I/O done in a ramp that did not end.
    pub(crate) only_ramp: Option<Box<RampResult>>,
    /// Open files, which the caller closes.
    pub(crate) open_file_cache: Option<Box<OpenFileCache>>,
    /// Time at which the worker ended.
    pub(crate) end_ns: u64,
}

impl WorkerOutput {
    /// Returns the worker's final measurements.
    pub(crate) fn snapshot(&self) -> WorkerSnapshot<'_> {
        WorkerSnapshot {
            recorder: &self.recorder,
            runtime_ns: self.runtime_ns,
            failure: self.failure.as_ref(),
            survived: self.survived,
            first_error: self.first_error,
            depth: self.depth,
            cmdprio: self.cmdprio.as_deref(),
            only_ramp: self.only_ramp.clone(),
            now_ns: self.end_ns,
        }
    }
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Returns the measurements so far.
    pub(crate) fn snapshot(&self) -> WorkerSnapshot<'_> {
        let now_ns = self.clock.now_ns();
        WorkerSnapshot {
            recorder: &self.parts.recorder,
            runtime_ns: self.runtime_until(now_ns),
            failure: self.failure.as_ref(),
            survived: self.survived,
            first_error: self.first_error,
            depth: self.depth(),
            cmdprio: self.parts.cmdprio.as_deref(),
            only_ramp: self.only_ramp(now_ns),
            now_ns,
        }
    }

    /// Returns the I/O of a ramp that has not ended, or after which the job measured no I/O.
    fn only_ramp(&self, now_ns: u64) -> Option<Box<RampResult>> {
        let recorder = &self.parts.recorder;
        let ended_by_itself = self.phase == WorkerPhase::Done && self.stopped_ns == u64::MAX;
        let in_ramp = now_ns < recorder.measure_from_ns() || ended_by_itself;
        let start_ns = self.parts.limits.start_ns;
        (in_ramp && recorder.measured_ios() == 0)
            .then(|| recorder.ramp_result(start_ns, now_ns))
            .flatten()
    }

    /// Converts a worker that is done into its output.
    pub(crate) fn finish(self) -> WorkerOutput {
        let end_ns = self.clock.now_ns();
        let only_ramp = self.only_ramp(end_ns);
        if only_ramp.is_some() {
            self.parts.shared.note_of_job(ENDED_IN_RAMP.to_owned());
        }
        WorkerOutput {
            only_ramp,
            runtime_ns: self.runtime_ns,
            depth: self.depth(),
            failure: self.failure,
            survived: self.survived,
            first_error: self.first_error,
            log: self.parts.log,
            cmdprio: self.parts.cmdprio,
            open_file_cache: self.parts.open_file_cache,
            end_ns,
            recorder: self.parts.recorder,
        }
    }
}
