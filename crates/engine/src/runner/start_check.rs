//! Files and traces that earlier jobs have left, checked when a clone starts.

use super::access_check::check_access;
use super::buffer_memory;
use super::job_clones::{AtStart, JobClone, LateReplay};
use super::plan_facts::{finds_size, starts_later};
use super::replay_plan::LateTrace;
use super::session_resources::SessionRefs;
use super::write_guard::{self, FileScope};
use crate::files::{PendingLayout, PlannedFiles, WorkerFiles, lay_out, resolve};
use iosonde_job::plan::{Job, Plan};
use iosonde_machine::host::memory_to_take;
use iosonde_machine::proc_root::System;
use iosonde_result::run_error::RunError;
use std::sync::Arc;

impl JobClone {
    /// Finds files left by earlier jobs. Returns warnings on refusals that consent overrides.
    pub(super) fn recheck_at_start(
        &self,
        plan: &Plan,
        session: &SessionRefs<'_>,
    ) -> Result<Vec<String>, RunError> {
        let (runner, holds) = (session.runner, session.holds);
        let job = &plan.jobs[self.job];
        let (known, warnings) = if let Some(late) = self.late_trace() {
            self.read_trace(job, late, session)?
        } else if starts_later(plan, self.job) && finds_size(job) {
            let files = resolve(job, self.clone, runner.remote())?;
            let terms = (FileScope::All, &runner.consent, holds);
            let (warnings, _) = write_guard::check(job, &files, terms)?;
            let replay = None;
            (AtStart { files, replay }, warnings)
        } else {
            return Ok(Vec::new());
        };
        self.set_at_start(known);
        Ok(warnings)
    }

    /// Reads the trace that an earlier job has written, then checks and lays out its files.
    fn read_trace(
        &self,
        job: &Job,
        late: &LateTrace,
        session: &SessionRefs<'_>,
    ) -> Result<(AtStart, Vec<String>), RunError> {
        let (runner, holds) = (session.runner, session.holds);
        let (trace, job) = late.read(job, runner.readonly)?;
        let files = WorkerFiles::from_trace(&job, self.clone, &trace)?;
        let terms = (FileScope::All, &runner.consent, holds);
        let (warnings, _) = write_guard::check(&job, &files, terms)?;
        let mut layout = PendingLayout::new(runner.may_run_full);
        layout.add(&job, self.number, &files);
        check_access(runner, [(&job, &files)].into_iter(), &layout)?;
        let alone = Plan {
            jobs: vec![job.clone()],
            ..Plan::default()
        };
        buffer_memory::check(&alone, memory_to_take(&System::live()))?;
        layout.check_space(&PlannedFiles::default())?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::CreatedFiles;
    use crate::runner::LocalRunner;
    use crate::runner::replay_plan::ReplayPlan;
    use crate::runner::session_resources::SessionResources;
    use iosonde_job::plan::{Engine, Replay};
    use iosonde_machine::write_hold::DeviceHolds;
    use iosonde_result::run_error::{TargetProblem, UnsupportedFeature};

    /// Returns a plan whose second job replays the trace that the first records.
    fn plan_with_late_trace(trace: &str, other: String) -> Plan {
        let mut recorder = Job::new("recorder");
        recorder.files.filenames = vec![other];
        recorder.measure.logs.trace = Some(trace.to_owned());
        let mut replayer = Job::new("replayer");
        replayer.schedule.stonewall = true;
        replayer.replay = Some(Replay {
            traces: vec![trace.to_owned()],
            scale: 1,
            speed_percent: 100,
            ..Replay::default()
        });
        Plan {
            jobs: vec![recorder, replayer],
            ..Plan::default()
        }
    }

    /// Writes the I/Os to the trace, then checks the job that replays it.
    fn recheck(
        plan: &Plan,
        (trace, data, ios): (&str, &str, &str),
        runner: &LocalRunner,
    ) -> Result<Vec<String>, RunError> {
        let traced = ReplayPlan::read(plan, false).unwrap();
        let lines =
            format!("fio version 2 iolog\n{data} add\n{data} open\n{data} {ios}\n{data} close\n");
        std::fs::write(trace, lines).unwrap();
        let clone = JobClone::new((1, 0, 1), &traced, WorkerFiles::NONE);
        let session = SessionRefs {
            runner,
            remote: &SessionResources::default(),
            holds: &DeviceHolds::default(),
            created: &CreatedFiles::default(),
            targets: &[],
            sqpoll_sharing: &[],
        };
        clone.recheck_at_start(&traced.plan, &session)
    }

    #[test]
    fn late_trace_beyond_free_space_is_refused_before_layout() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (trace, data) = (path("trace"), path("data"));
        let plan = plan_with_late_trace(&trace, path("other"));
        let offset = 1_u64 << 50;
        let io = format!("read {offset} 4096");
        match recheck(&plan, (&trace, &data, &io), &LocalRunner::default()) {
            Err(RunError::NoSpace { needed_bytes, .. }) => assert_eq!(needed_bytes, offset + 4096),
            other => panic!("{other:?}"),
        }
        assert!(!std::path::Path::new(&data).exists());
    }

    #[test]
    fn late_trace_is_checked_for_consent_before_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (trace, data) = (path("trace"), path("data"));
        std::fs::write(&data, "data").unwrap();
        let mut plan = plan_with_late_trace(&trace, path("other"));
        plan.jobs[1].io.engine = Engine::IoUring;
        plan.jobs[1].io.iodepth = 1 << 24;
        let refusal = |runner: &LocalRunner| {
            recheck(&plan, (&trace, &data, "write 0 1073741824"), runner).unwrap_err()
        };
        match refusal(&LocalRunner::default()) {
            RunError::NoFeature { cause } => assert!(
                matches!(*cause, UnsupportedFeature::BuffersOverMemory { .. }),
                "{cause:?}"
            ),
            other => panic!("{other:?}"),
        }
        let runner = LocalRunner {
            only_read: vec![data.clone().into()],
            ..LocalRunner::default()
        };
        match refusal(&runner) {
            RunError::UnusableTarget { cause, .. } => {
                assert!(
                    matches!(*cause, TargetProblem::ReadOnly { .. }),
                    "{cause:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
