//! Finds the files that the workers of a run use, and when they are known.
//!
//! Most files are known before the first I/O, when forbidden writes and lack of space are refused.
//! Only a job that sets no size and starts after others takes its files as those have left them.

use super::access_check::check_access;
use super::job_clones::JobClone;
use super::layout_progress::LayoutProgress;
use super::plan_facts::{expand, finds_size, has_commands, starts_later};
use super::replay_plan::ReplayPlan;
use super::write_guard::FileScope;
use super::{LocalRunner, PlannedFiles, write_guard};
use crate::files::{
    CreatedFiles, CreatedPaths, FileKind, PendingLayout, WorkerFiles, fills_all, lay_out,
    needs_data, resolve, resolve_beside,
};
use crate::interrupt::Interrupt;
use crate::remote_storage::RemoteStorage;
use iosonde_job::plan::{Direction, Plan};
use iosonde_machine::consent::Consent;
use iosonde_machine::write_hold::{DeviceHolds, WriteHold};
use iosonde_result::observer::{Control, Observer};
use iosonde_result::run::RunEvent;
use iosonde_result::run_error::RunError;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// Returns the clones with their files, if no file has to be created.
pub(super) fn resolve_traced_clones(traced: &ReplayPlan) -> Result<Vec<JobClone>, RunError> {
    let jobs = &traced.plan.jobs;
    let member = |which: (usize, u32, u32)| {
        let (job, trace) = (&jobs[which.0], traced.worker_trace(which.2));
        let files = match trace {
            Some(trace) => WorkerFiles::from_trace(job, which.1, trace)?,
            None => resolve(job, which.1, None)?,
        };
        Ok(JobClone::new(which, traced, files))
    };
    expand(&traced.plan).map(member).collect()
}

/// Returns all files that jobs name, usable or not.
pub(super) fn list_named_files(traced: &ReplayPlan) -> Vec<PathBuf> {
    let jobs = &traced.plan.jobs;
    let members = expand(&traced.plan).filter(|(job, ..)| jobs[*job].io.engine.has_paths());
    let files = members.filter_map(|(index, clone, number)| {
        let job = &jobs[index];
        match traced.worker_trace(number) {
            Some(trace) => WorkerFiles::from_trace(job, clone, trace),
            None if traced.late(number).is_some() => Ok(WorkerFiles::NONE),
            None => resolve(job, clone, None).or_else(|_| WorkerFiles::by_name(job, clone)),
        }
        .ok()
    });
    let files = files.flat_map(|worker| worker.files);
    files.map(|file| file.path).collect()
}

/// Finds all files and refuses forbidden ones. Creates none. Files in `planned` count as existing.
pub(super) fn check(
    traced: &ReplayPlan,
    runner: &LocalRunner,
    planned: &mut PlannedFiles,
) -> Result<(), RunError> {
    let search = FileSearch::find_all(traced, runner, planned)?;
    search.check(runner, planned, &DeviceHolds::default())?;
    search.record_planned_files(planned);
    Ok(())
}

/// Finds all files, refuses forbidden ones, and lays out missing ones. The returned hold keeps the
/// devices that are written from the start, until it is dropped.
pub(super) fn prepare_files(
    traced: &ReplayPlan,
    (runner, holds): (&LocalRunner, &DeviceHolds),
    created: &CreatedFiles,
    begun: Instant,
    observer: &mut dyn Observer,
) -> Result<(Vec<JobClone>, CreatedPaths, WriteHold), RunError> {
    let nothing = PlannedFiles::default();
    let mut search = FileSearch::find_all(traced, runner, &nothing)?;
    let (mut warnings, hold) = search.check(runner, &nothing, holds)?;
    warnings.dedup();
    for message in warnings.into_iter().chain(announcements(&search.layout)) {
        observer.event(&RunEvent {
            at_ns: begun.elapsed().as_nanos() as u64,
            message,
        });
    }
    let mut made = search.lay_out(runner, created, begun, observer)?;
    search
        .update_sizes(&runner.consent, holds)
        .and_then(|()| search.make_directories(&mut made))
        .inspect_err(|_| made.remove())?;
    Ok((search.members, made, hold))
}

/// The files of a plan during the search.
struct FileSearch<'a> {
    plan: &'a Plan,
    traced: &'a ReplayPlan,
    members: Vec<JobClone>,
    /// Workers whose files were not found: another job of the plan may create them.
    missing: BTreeSet<u32>,
    /// Files that jobs of the plan write.
    written: BTreeSet<PathBuf>,
    layout: PendingLayout,
    remote: Option<&'a dyn RemoteStorage>,
}

impl<'a> FileSearch<'a> {
    /// Searches the files of all workers. Those in `planned` may be missing.
    fn find_all(
        traced: &'a ReplayPlan,
        runner: &'a LocalRunner,
        planned: &PlannedFiles,
    ) -> Result<FileSearch<'a>, RunError> {
        let plan = &traced.plan;
        let mut search = FileSearch {
            plan,
            traced,
            members: Vec::new(),
            missing: BTreeSet::new(),
            written: BTreeSet::new(),
            layout: PendingLayout::new(runner.may_run_full),
            remote: runner.remote(),
        };
        for which in expand(plan) {
            search.add(which, planned)?;
        }
        Ok(search)
    }

    fn add(&mut self, which: (usize, u32, u32), planned: &PlannedFiles) -> Result<(), RunError> {
        let (index, clone, number) = which;
        let job = &self.plan.jobs[index];
        let trace = self.traced.worker_trace(number);
        let found = match trace {
            Some(trace) => WorkerFiles::from_trace(job, clone, trace),
            // The files are known once an earlier job has written the trace.
            None if self.traced.late(number).is_some() => Ok(WorkerFiles::NONE),
            None => resolve_beside(job, clone, self.remote, &|path| {
                self.layout.size_at_start(path)
            }),
        };
        let files = match found {
            Ok(files) => {
                self.layout.add(job, number, &files);
                files
            }
            Err(error) if trace.is_some() => return Err(error),
            Err(error) => {
                let named = WorkerFiles::by_name(job, clone)?;
                let will_be = !named.files.is_empty()
                    && (named.files.iter()).all(|file| planned.has(&file.path));
                if !will_be && !self.layout.concerns(&named) && !self.comes_later(index, &named) {
                    return Err(error);
                }
                self.missing.insert(number);
                named
            }
        };
        if job.workload.rw.has(Direction::Write) {
            let paths = files.files.iter().map(|file| file.path.clone());
            self.written.extend(paths);
        }
        self.members.push(JobClone::new(which, self.traced, files));
        Ok(())
    }

    /// Whether a job finds its files at its start because an earlier job writes them.
    fn comes_later(&self, job: usize, files: &WorkerFiles) -> bool {
        let mut paths = files.files.iter().map(|file| &file.path);
        starts_later(self.plan, job)
            && finds_size(&self.plan.jobs[job])
            && paths.all(|path| self.written.contains(path))
    }

    /// Refuses to write protected files, and files that will not fit. Returns warnings on refusals
    /// that consent overrides, and the hold on the devices.
    fn check(
        &self,
        runner: &LocalRunner,
        planned: &PlannedFiles,
        holds: &DeviceHolds,
    ) -> Result<(Vec<String>, WriteHold), RunError> {
        let (mut warnings, mut hold) = (Vec::new(), WriteHold::default());
        let has_commands = has_commands(self.plan);
        for member in &self.members {
            let job = &self.plan.jobs[member.job];
            let terms = (FileScope::All, &runner.consent, holds);
            let (found, held) = write_guard::check(job, member.expected(), terms)?;
            warnings.extend(found);
            // Later jobs hold devices at their start. A command may first create a file system.
            if !has_commands && !starts_later(self.plan, member.job) {
                hold.extend(held);
            }
        }
        let members = self.members.iter();
        let workers = members.map(|member| (&self.plan.jobs[member.job], member.expected()));
        check_access(runner, workers, &self.layout)?;
        self.layout.check_space(planned)?;
        Ok((warnings, hold))
    }

    /// Records the files that the plan will leave and remove.
    fn record_planned_files(&self, planned: &mut PlannedFiles) {
        let before = planned.clone();
        let files = self.members.iter().flat_map(|member| {
            let job = &self.plan.jobs[member.job];
            let files = member.expected().files.iter();
            files.map(move |file| (job, file))
        });
        let with_paths = || files.clone().filter(|(job, _)| job.io.engine.has_paths());
        for (job, file) in with_paths() {
            let is_regular = file.kind == FileKind::Regular;
            // A file to read is filled only if it holds no data.
            let is_filled = fills_all(job) && !(needs_data(job) && before.has(&file.path));
            let bytes = match is_regular && is_filled {
                true => u64::MAX,
                false => self.layout.size_beside(&file.path, &before),
            };
            planned.add(&file.path, bytes);
        }
        for (_, file) in with_paths().filter(|(job, _)| job.files.unlink) {
            planned.remove(&file.path);
        }
    }

    /// Lays out files and reports the progress to the observer.
    fn lay_out(
        &self,
        runner: &LocalRunner,
        created: &CreatedFiles,
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<CreatedPaths, RunError> {
        let layout = &self.layout;
        let waiting = |member: &JobClone| {
            !self.missing.contains(&member.number) && layout.concerns(member.expected())
        };
        let members = self.members.iter();
        let workers: Vec<_> = members
            .map(|member| (member.job, waiting(member)))
            .collect();
        let mut progress = LayoutProgress::new(layout.bytes(), &workers, begun);
        let stop = Interrupt::default();
        let stops = [runner.interrupt.as_ref(), &stop];
        lay_out(layout, runner.keep_files, &stops, created, &mut |bytes| {
            if progress.report_written(bytes, observer) == Control::Stop {
                stop.request();
            }
        })
    }

    /// Updates file sizes that the layout has changed.
    fn update_sizes(&mut self, consent: &Consent, holds: &DeviceHolds) -> Result<(), RunError> {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            let job = &self.plan.jobs[member.job];
            if !finds_size(job) && !self.missing.contains(&member.number) {
                continue;
            }
            let files = match resolve(job, member.clone, self.remote) {
                Ok(files) => files,
                Err(_) if self.comes_later(member.job, member.expected()) => continue,
                Err(error) => return Err(error),
            };
            write_guard::check(job, &files, (FileScope::All, consent, holds))?;
            self.members[index].expect(files);
        }
        Ok(())
    }

    /// Creates the parent directories of files that are created on open.
    fn make_directories(&self, made: &mut CreatedPaths) -> Result<(), RunError> {
        for member in &self.members {
            let job = &self.plan.jobs[member.job];
            if job.io.engine.has_paths() && job.files.allow_file_create {
                for file in &member.expected().files {
                    made.create_parents(&file.path)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the messages before files are laid out.
fn announcements(layout: &PendingLayout) -> impl Iterator<Item = String> {
    let lines = layout.announcements().into_iter();
    lines.map(|(job, files, bytes)| {
        let mebibytes = bytes >> 20;
        match files {
            1 => format!("{job}: Laying out IO file (1 file / {mebibytes}MiB)"),
            _ => format!("{job}: Laying out IO files ({files} files / total {mebibytes}MiB)"),
        }
    })
}
