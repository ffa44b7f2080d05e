//! One clone of a job, with the files and the trace known at its start.

use super::replay_plan::{LateTrace, ReplayPlan};
use super::threaded_run::Held;
use super::write_guard::FileScope;
use super::{buffer_memory, memory_to_take, run_files, write_guard};
use crate::files::{Layout, Made, WorkerFiles, lay_out, resolve};
use iosonde_job::plan::{Job, Plan};
use iosonde_job::trace::Trace;
use iosonde_machine::proc_root::System;
use iosonde_result::session::RunError;
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
struct AtStart {
    files: WorkerFiles,
    replay: Option<LateReplay>,
}

/// A trace that an earlier job of the run has written.
struct LateReplay {
    trace: Arc<Trace>,
    /// The job with the directions, sizes and files of the trace.
    job: Box<Job>,
    /// Files that were laid out for the replay.
    made: Made,
}

impl JobClone {
    /// Creates a clone with the files known before the run.
    pub(super) fn new(
        (job, clone, number): (usize, u32, u32),
        traced: &ReplayPlan,
        expected: WorkerFiles,
    ) -> JobClone {
        JobClone {
            trace: traced.of(number).cloned(),
            late: traced.late(number).cloned(),
            job,
            clone,
            number,
            expected,
            at_start: OnceLock::new(),
        }
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
    pub(super) fn made_at_start(&self) -> Option<&Made> {
        self.replay().map(|replay| &replay.made)
    }

    /// Finds files left by earlier jobs. Returns warnings on refusals that consent overrides.
    pub(super) fn look_again(
        &self,
        plan: &Plan,
        session: &Held<'_>,
    ) -> Result<Vec<String>, RunError> {
        let (runner, holds) = (session.runner, session.holds);
        let job = &plan.jobs[self.job];
        let (known, warnings) = if let Some(late) = &self.late {
            self.read_trace(job, late, session)?
        } else if run_files::starts_later(plan, self.job) && run_files::finds_size(job) {
            let files = resolve(job, self.clone)?;
            let terms = (FileScope::All, &runner.consent, holds);
            let (warnings, _) = write_guard::check(job, &files, terms)?;
            let replay = None;
            (AtStart { files, replay }, warnings)
        } else {
            return Ok(Vec::new());
        };
        // A worker starts once, so the cell is empty.
        let _ = self.at_start.set(known);
        Ok(warnings)
    }

    /// Reads the trace that an earlier job has written, then checks and lays out its files.
    fn read_trace(
        &self,
        job: &Job,
        late: &LateTrace,
        session: &Held<'_>,
    ) -> Result<(AtStart, Vec<String>), RunError> {
        let (runner, holds) = (session.runner, session.holds);
        let (trace, job) = late.read(job, runner.readonly)?;
        let files = WorkerFiles::of_trace(&job, self.clone, &trace)?;
        let terms = (FileScope::All, &runner.consent, holds);
        let (warnings, _) = write_guard::check(&job, &files, terms)?;
        let worker = || [(&job, &files)].into_iter();
        if let Some(permissions) = &runner.permissions {
            permissions.check_files(worker())?;
        }
        write_guard::keep(worker(), &runner.only_read)?;
        let alone = Plan {
            jobs: vec![job.clone()],
            ..Plan::default()
        };
        buffer_memory::check(&alone, memory_to_take(&System::live()))?;
        let mut layout = Layout::new(runner.may_run_full);
        layout.add(&job, self.number, &files);
        if runner.readonly {
            layout.refuse_writes()?;
        }
        let stops = [runner.interrupt.as_ref()];
        let made = lay_out(
            &layout,
            runner.keep_files,
            &stops,
            session.created,
            &mut |_| {},
        )?;
        let replay = Some(LateReplay {
            trace: Arc::new(trace),
            job: Box::new(job),
            made,
        });
        Ok((AtStart { files, replay }, warnings))
    }
}
