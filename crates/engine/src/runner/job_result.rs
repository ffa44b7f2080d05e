//! Converts a worker's measurements into a result.

use super::JobClone;
use crate::worker::{WorkerOutput, WorkerSnapshot};
use iosonde_job::plan::{Direction, Engine, Job, Plan};
use iosonde_result::observer::WorkerState;
use iosonde_result::run::{BackendUsed, CpuUse, WorkerResult};

/// Data on a worker's measured part that the I/O loop does not have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MeasuredThread {
    /// Id of the thread.
    pub(super) tid: u32,
    /// CPU use of the thread.
    pub(super) cpu: CpuUse,
    /// Start of the worker, in milliseconds of the Unix epoch.
    pub(super) started_at_ms: u64,
}

/// Returns the result of a worker that runs or has run.
pub(super) fn from_snapshot(
    plan: &Plan,
    clone: &JobClone,
    snapshot: &WorkerSnapshot<'_>,
    used: BackendUsed,
    start_ns: u64,
    measured: MeasuredThread,
) -> WorkerResult {
    let (mut directions, sync) = snapshot.recorder.results(snapshot.runtime_ns);
    if let Some(cmdprio) = snapshot.cmdprio {
        for direction in Direction::ALL {
            directions[direction].by_priority = cmdprio.results(direction);
        }
    }
    let runtimes = snapshot
        .runtime_ns
        .iter()
        .map(|(_, runtime_ns)| *runtime_ns);
    WorkerResult {
        tid: measured.tid,
        started_at_ms: measured.started_at_ms,
        runtime_ns: runtimes.max().unwrap_or(0),
        elapsed_ns: snapshot.now_ns.saturating_sub(start_ns),
        directions,
        sync,
        cpu: measured.cpu,
        iodepth_level: snapshot.recorder.level,
        iodepth_submit: snapshot.recorder.submit,
        iodepth_complete: snapshot.recorder.complete,
        latency_depth: snapshot.depth,
        error: snapshot.failure.cloned(),
        total_errors: snapshot.survived,
        first_error: snapshot.first_error,
        only_ramp: snapshot.only_ramp.clone(),
        ..blank(plan, clone, used)
    }
}

/// Returns the result of a worker that has run.
pub(super) fn from_output(
    plan: &Plan,
    clone: &JobClone,
    mut output: WorkerOutput,
    used: BackendUsed,
    start_ns: u64,
    measured: MeasuredThread,
) -> WorkerResult {
    if let Some(log) = output.log.take() {
        log.finish(output.end_ns);
    }
    from_snapshot(plan, clone, &output.snapshot(), used, start_ns, measured)
}

/// Returns the last state of a worker.
pub(super) fn last_state(result: &WorkerResult) -> WorkerState {
    match result.error {
        Some(_) => WorkerState::Failed,
        None => WorkerState::Finished,
    }
}

/// Returns the backend of a worker that has not run.
pub(super) fn unused(job: &Job) -> BackendUsed {
    BackendUsed {
        engine: match job.io.engine {
            Engine::Auto => Engine::IoUring,
            engine => engine,
        },
        asked: job.io.engine,
        reason: None,
        direct: job.io.direct,
        registered_files: false,
        fixed_buffers: false,
        flags: Vec::new(),
        ceph: None,
    }
}

/// Returns a result without any I/O.
pub(super) fn blank(plan: &Plan, clone: &JobClone, backend: BackendUsed) -> WorkerResult {
    let job = &plan.jobs[clone.job];
    WorkerResult {
        job: clone.job,
        clone: clone.clone,
        groupid: job.groupid,
        tid: 0,
        backend,
        started_at_ms: 0,
        start_delay_ns: 0,
        runtime_ns: 0,
        elapsed_ns: 0,
        directions: Default::default(),
        sync: Default::default(),
        cpu: CpuUse::default(),
        iodepth_level: [0; 7],
        iodepth_submit: [0; 7],
        iodepth_complete: [0; 7],
        latency_depth: job.io.iodepth,
        steady_state: None,
        error: None,
        total_errors: 0,
        first_error: 0,
        only_ramp: None,
    }
}
