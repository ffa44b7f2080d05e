//! One clone of a job, with the files and the trace known at its start.

use super::replay_plan::{LateTrace, ReplayPlan};
use crate::files::{CreatedPaths, WorkerFiles};
use iosonde_job::plan::{Job, Plan};
use iosonde_job::trace::Trace;
use std::sync::{Arc, OnceLock};

/// One clone of a job.
pub(crate) struct JobClone {
    /// Index into the plan's jobs.
    pub(crate) job: usize,
    /// Index among the job's clones.
    pub(crate) clone: u32,
    /// Index among all workers of the plan.
    pub(crate) number: u32,
    /// Trace to replay, if it is known before the run.
    trace: Option<Arc<Trace>>,
    /// Trace that an earlier job of the run writes.
    late: Option<LateTrace>,
    /// Files before the run: only their names if an earlier job has to create them.
    expected: WorkerFiles,
    /// State at the clone's start, if it differs from that before the run.
    at_start: OnceLock<AtStart>,
}

/// Files and trace that earlier jobs have left for this clone.
pub(super) struct AtStart {
    pub(super) files: WorkerFiles,
    pub(super) replay: Option<LateReplay>,
}

/// A trace that an earlier job of the run has written.
pub(super) struct LateReplay {
    pub(super) trace: Arc<Trace>,
    /// The job with the directions, sizes and files of the trace.
    pub(super) job: Box<Job>,
    /// Files that were laid out for the replay.
    pub(super) made: CreatedPaths,
}

impl JobClone {
    /// Creates a clone with the files known before the run.
    pub(super) fn new(
        (job, clone, number): (usize, u32, u32),
        traced: &ReplayPlan,
        expected: WorkerFiles,
    ) -> JobClone {
        JobClone {
            trace: traced.worker_trace(number).cloned(),
            late: traced.late(number).cloned(),
            job,
            clone,
            number,
            expected,
            at_start: OnceLock::new(),
        }
    }

    /// Returns the trace to replay if an earlier job of the run writes it.
    pub(super) fn late_trace(&self) -> Option<&LateTrace> {
        self.late.as_ref()
    }

    /// Sets the files and the trace that earlier jobs have left, once.
    pub(super) fn set_at_start(&self, known: AtStart) {
        // A worker starts once, so the cell is empty.
        let _ = self.at_start.set(known);
    }

    /// Returns the clone's files, as far as they are known.
    pub(crate) fn files(&self) -> &WorkerFiles {
        self.at_start
            .get()
            .map_or(&self.expected, |known| &known.files)
    }

    /// Returns the files as known before the run.
    pub(super) fn expected(&self) -> &WorkerFiles {
        &self.expected
    }

    /// Replaces the files as known before the run.
    pub(super) fn expect(&mut self, files: WorkerFiles) {
        self.expected = files;
    }

    fn replay(&self) -> Option<&LateReplay> {
        self.at_start.get()?.replay.as_ref()
    }

    /// Returns the plan's job, or the job adapted to a trace that an earlier job has written.
    pub(super) fn job<'a>(&'a self, plan: &'a Plan) -> &'a Job {
        self.replay()
            .map_or(&plan.jobs[self.job], |replay| &replay.job)
    }

    /// Returns the trace to replay.
    pub(super) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace
            .as_ref()
            .or_else(|| self.replay().map(|replay| &replay.trace))
    }

    /// Returns the files created for the clone at its start.
    pub(super) fn created_at_start(&self) -> Option<&CreatedPaths> {
        self.replay().map(|replay| &replay.made)
    }
}
