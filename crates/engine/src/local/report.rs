//! What a worker did, as a result.

use super::Member;
use crate::worker::Outcome;
use iosonde_job::plan::{Direction, Engine, Job, Plan};
use iosonde_result::run::{BackendUsed, CpuUse, WorkerResult};

/// What the loop itself does not know of the measured part.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// The thread.
    pub(super) tid: u32,
    /// What it used of the processors.
    pub(super) cpu: CpuUse,
    /// When it began, in milliseconds of the Unix epoch.
    pub(super) started_at_ms: u64,
}

/// The result of a worker that has run.
pub(super) fn of_outcome(
    plan: &Plan,
    clone: &Member,
    outcome: Outcome,
    used: BackendUsed,
    start_ns: u64,
    measured: Measured,
) -> WorkerResult {
    let (mut directions, sync) = outcome.recorder.results(outcome.runtime_ns);
    if let Some(cmdprio) = &outcome.cmdprio {
        for direction in Direction::ALL {
            directions[direction].by_priority = cmdprio.results(direction);
        }
    }
    if let Some(log) = outcome.log {
        log.finish(outcome.end_ns);
    }
    WorkerResult {
        tid: measured.tid,
        started_at_ms: measured.started_at_ms,
        runtime_ns: outcome
            .runtime_ns
            .iter()
            .map(|(_, runtime_ns)| *runtime_ns)
            .max()
            .unwrap_or(0),
        elapsed_ns: outcome.end_ns.saturating_sub(start_ns),
        directions,
        sync,
        cpu: measured.cpu,
        iodepth_level: outcome.recorder.level,
        iodepth_submit: outcome.recorder.submit,
        iodepth_complete: outcome.recorder.complete,
        latency_depth: outcome.depth,
        error: outcome.failure,
        total_errors: outcome.survived,
        first_error: outcome.first_error,
        ..blank(plan, clone, used)
    }
}

/// The backend of a worker that has not run.
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
    }
}

/// A result in which nothing has happened yet.
pub(super) fn blank(plan: &Plan, clone: &Member, backend: BackendUsed) -> WorkerResult {
    let job = &plan.jobs[clone.job];
    WorkerResult {
        job: clone.job,
        clone: clone.clone,
        groupid: job.groupid,
        tid: 0,
        backend,
        started_at_ms: 0,
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
    }
}
