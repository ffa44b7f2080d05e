//! Reads the traces that jobs replay, before the run, as they determine files and their use.

use super::plan_facts::{expand, is_simulated, starts_later};
use crate::files::{target_error, unusable_target};
use iosonde_job::plan::{
    BlockSize, Direction, Job, PerDirection, Plan, ReadWriteMode, Replay, Workload,
};
use iosonde_job::trace::{self, Trace, TracedFile};
use iosonde_machine::bounded_read::{self, ReadLimit};
use iosonde_result::run_error::{PathAction, RunError, TargetProblem, UnsupportedFeature};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A plan that is adapted to its traces, and the traces.
#[derive(Default)]
pub(super) struct ReplayPlan {
    /// The plan to run, with the directions and block sizes of the traces.
    pub(super) plan: Plan,
    by_worker: BTreeMap<u32, Arc<Trace>>,
    late: BTreeMap<u32, LateTrace>,
}

/// A trace written by an earlier job of the run. As in fio, it is read when its replay starts.
#[derive(Debug, Clone)]
pub(super) struct LateTrace {
    path: String,
}

impl LateTrace {
    /// Returns the trace, and the job adapted to it.
    pub(super) fn read(&self, job: &Job, readonly: bool) -> Result<(Trace, Job), RunError> {
        let replay = job.replay.as_ref().expect("a job that replays a trace");
        let trace = read_trace(&self.path, replay, readonly)?;
        let mut job = job.clone();
        adapt_job(&mut job, &trace, true);
        Ok((trace, job))
    }
}

impl ReplayPlan {
    /// Reads the traces of a plan. With `readonly` their writes and trims are left out.
    pub(super) fn read(plan: &Plan, readonly: bool) -> Result<ReplayPlan, RunError> {
        let mut traced = ReplayPlan {
            plan: plan.clone(),
            by_worker: BTreeMap::new(),
            late: BTreeMap::new(),
        };
        let is_simulated = is_simulated(plan)?;
        for (job, clone, number) in expand(plan) {
            let Some(replay) = &plan.jobs[job].replay else {
                continue;
            };
            refuse_cluster(&plan.jobs[job])?;
            let count = replay.traces.len() as u32;
            let path = &replay.traces[(clone % count) as usize];
            if !is_simulated && is_written_before(plan, job, path) {
                traced.late.insert(number, LateTrace { path: path.clone() });
                expect_anything(&mut traced.plan.jobs[job]);
                continue;
            }
            // Clones of a job have consecutive numbers.
            let trace = match clone.checked_sub(count) {
                Some(_) => traced.by_worker[&(number - count)].clone(),
                None => Arc::new(read_trace(path, replay, readonly)?),
            };
            traced.by_worker.insert(number, trace);
        }
        for (job, clone, number) in expand(plan) {
            if let Some(trace) = traced.by_worker.get(&number) {
                adapt_job(&mut traced.plan.jobs[job], trace, clone == 0);
            }
        }
        Ok(traced)
    }

    /// Returns the trace of a worker.
    pub(super) fn worker_trace(&self, number: u32) -> Option<&Arc<Trace>> {
        self.by_worker.get(&number)
    }

    /// Returns the trace of a worker if an earlier job writes it.
    pub(super) fn late(&self, number: u32) -> Option<&LateTrace> {
        self.late.get(&number)
    }
}

/// Whether a job starts after others and replays a trace that one of them records.
fn is_written_before(plan: &Plan, job: usize, path: &str) -> bool {
    let mut earlier = plan.jobs[..job].iter();
    starts_later(plan, job)
        && earlier.any(|earlier| earlier.measure.logs.trace.as_deref() == Some(path))
}

/// Allows all directions for a job until its trace is known.
fn expect_anything(job: &mut Job) {
    job.workload.rw.mode = ReadWriteMode::All;
    job.verify = None;
}

/// Refuses a job that replays a trace on Ceph: a path can name a Ceph target, too.
fn refuse_cluster(job: &Job) -> Result<(), RunError> {
    if !job.io.engine.is_ceph() {
        return Ok(());
    }
    Err(UnsupportedFeature::ReplayOnCeph {
        job: job.name.clone(),
    }
    .into())
}

fn read_trace(path: &str, replay: &Replay, readonly: bool) -> Result<Trace, RunError> {
    let unusable = |cause| unusable_target(Path::new(path), cause);
    let bytes_max = bounded_read::document_bytes_max();
    let read = match path {
        "-" => bounded_read::standard_input(bytes_max),
        path => bounded_read::read_file(path, bytes_max),
    };
    let bytes = read.map_err(|error| match ReadLimit::exceeded_in(&error) {
        Some(ReadLimit::Bytes(limit_bytes)) => {
            unusable(TargetProblem::TraceTooLarge { limit_bytes })
        }
        Some(ReadLimit::Device) => unusable(TargetProblem::TraceFromDevice),
        None => target_error(Path::new(path), PathAction::Read, &error),
    })?;
    let mut trace = trace::parse(&bytes).map_err(|error| {
        unusable(TargetProblem::InvalidTrace {
            place: error.place.to_string(),
            problem: error.problem.to_string(),
        })
    })?;
    trace.shape(replay, readonly);
    if trace.ios.is_empty() {
        return Err(unusable(TargetProblem::EmptyTrace { readonly }));
    }
    for file in &mut trace.files {
        if let TracedFile::Device { major, minor } = *file {
            *file = TracedFile::Path(
                device(major, minor)
                    .ok_or_else(|| unusable(TargetProblem::NoTracedDevice { major, minor }))?,
            );
        }
    }
    Ok(trace)
}

/// Returns the path of a block device by its numbers.
fn device(major: u32, minor: u32) -> Option<String> {
    let facts = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent")).ok()?;
    let name = facts
        .lines()
        .find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(format!("/dev/{name}"))
}

/// Adapts a job to its trace. `first` is true for the job's first clone; later clones add theirs.
fn adapt_job(job: &mut Job, trace: &Trace, first: bool) {
    let mut has = trace.directions();
    let mut longest = u64::from(trace.buffer_bytes()).max(512);
    let workload = &job.workload;
    if !first {
        has = PerDirection::from_fn(|direction| has[direction] || workload.rw.has(direction));
        longest = longest.max(workload.block_size.read.max());
    }
    let mut rw = workload.rw;
    rw.mode = read_write_mode(has);
    job.workload = Workload {
        rw,
        block_size: PerDirection::from_value(BlockSize::Fixed(longest)),
        end_fsync: workload.end_fsync,
        fsync_on_close: workload.fsync_on_close,
        buffers: workload.buffers.clone(),
        ..Workload::default()
    };
    job.verify = None;
}

fn read_write_mode(has: PerDirection<bool>) -> ReadWriteMode {
    let has = |direction: Direction| has[direction];
    match (
        has(Direction::Read),
        has(Direction::Write),
        has(Direction::Trim),
    ) {
        (_, false, false) => ReadWriteMode::Read,
        (false, true, false) => ReadWriteMode::Write,
        (false, false, true) => ReadWriteMode::Trim,
        (true, true, false) => ReadWriteMode::ReadWrite,
        (false, true, true) => ReadWriteMode::TrimWrite,
        (true, _, true) => ReadWriteMode::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Engine;

    #[test]
    fn replay_on_a_ceph_target_is_refused() {
        let mut job = Job::new("x");
        assert!(refuse_cluster(&job).is_ok());
        job.io.engine = Engine::Rbd;
        let error = refuse_cluster(&job).unwrap_err();
        let job = "x".to_owned();
        assert_eq!(
            error,
            RunError::from(UnsupportedFeature::ReplayOnCeph { job })
        );
    }

    #[test]
    fn endless_device_is_refused_as_a_trace() {
        let error = read_trace("/dev/zero", &Replay::default(), false).unwrap_err();
        let expected = RunError::unusable_target("/dev/zero", TargetProblem::TraceFromDevice);
        assert_eq!(error, expected);
    }

    #[test]
    fn replay_job_mode_covers_the_traces_of_all_clones() {
        let parse = |text: &str| {
            let text = format!("fio version 2 iolog\n{text}\n");
            trace::parse(text.as_bytes()).unwrap()
        };
        let mut job = Job::new("x");
        adapt_job(&mut job, &parse("f write 0 65536"), true);
        assert_eq!(job.workload.rw.mode, ReadWriteMode::Write);
        adapt_job(&mut job, &parse("f read 0 4096"), false);
        assert_eq!(job.workload.rw.mode, ReadWriteMode::ReadWrite);
        assert_eq!(job.workload.block_size.read, BlockSize::Fixed(65_536));
        adapt_job(&mut job, &parse("f trim 0 4096"), false);
        assert_eq!(job.workload.rw.mode, ReadWriteMode::All);
        // A trim needs no buffer.
        adapt_job(&mut job, &parse("f trim 0 1073741824\nf read 0 4096"), true);
        assert_eq!(job.workload.block_size.trim, BlockSize::Fixed(4096));
        // A sync alone is no write.
        adapt_job(&mut job, &parse("f sync 0 0"), true);
        assert_eq!(job.workload.rw.mode, ReadWriteMode::Read);
    }
}
