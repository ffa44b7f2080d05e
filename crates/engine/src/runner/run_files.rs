//! Finds the files that the workers of a run use, and when they are known.
//!
//! Most files are known before the first I/O, when forbidden writes and lack of space are refused.
//! Only a job that sets no size and starts after others takes its files as those have left them.

use super::job_clones::JobClone;
use super::layout_progress::LayoutProgress;
use super::replay_plan::ReplayPlan;
use super::write_guard::FileScope;
use super::{LocalRunner, ToBe, write_guard};
use crate::files::{
    CreatedFiles, FileKind, Layout, Made, WorkerFiles, fills_all, lay_out, needs_data, resolve,
    resolve_beside,
};
use crate::interrupt::Interrupt;
use iosonde_job::plan::{Direction, Extent, Job, Plan};
use iosonde_machine::consent::Consent;
use iosonde_machine::write_hold::{DeviceHolds, WriteHold};
use iosonde_result::observer::{Control, Observer};
use iosonde_result::run::Event;
use iosonde_result::session::RunError;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// Iterates over all clones of all jobs: job, clone, number.
pub(crate) fn expand(plan: &Plan) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
    let clones = plan
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(job, spec)| (0..spec.numjobs.max(1)).map(move |clone| (job, clone)));
    clones
        .zip(0..)
        .map(|((job, clone), number)| (job, clone, number))
}

/// Whether a job starts after other jobs of the plan have ended.
pub(super) fn starts_later(plan: &Plan, job: usize) -> bool {
    let mut walls = plan.jobs[..=job].iter().skip(1);
    plan.jobs[job].schedule.wait_for.is_some() || walls.any(|job| job.schedule.stonewall)
}

/// Whether any job runs commands before or after its I/O.
pub(super) fn has_commands(plan: &Plan) -> bool {
    let mut schedules = plan.jobs.iter().map(|job| &job.schedule);
    schedules.any(|schedule| schedule.exec_prerun.is_some() || schedule.exec_postrun.is_some())
}

/// Whether the job's files keep their existing size.
pub(super) fn finds_size(job: &Job) -> bool {
    job.files.filesize.is_none()
        && job.replay.is_none()
        && !matches!(job.files.size, Some(Extent::Bytes(_)))
        && job.io.engine.has_paths()
}

/// Returns the clones with their files, if no file has to be created.
pub(super) fn find(traced: &ReplayPlan) -> Result<Vec<JobClone>, RunError> {
    let jobs = &traced.plan.jobs;
    let member = |which: (usize, u32, u32)| {
        let (job, trace) = (&jobs[which.0], traced.of(which.2));
        let files = match trace {
            Some(trace) => WorkerFiles::of_trace(job, which.1, trace)?,
            None => resolve(job, which.1)?,
        };
        Ok(JobClone::new(which, traced, files))
    };
    expand(&traced.plan).map(member).collect()
}

/// Returns all files that jobs name, usable or not.
pub(super) fn named(traced: &ReplayPlan) -> Vec<PathBuf> {
    let jobs = &traced.plan.jobs;
    let members = expand(&traced.plan).filter(|(job, ..)| jobs[*job].io.engine.has_paths());
    let files = members.filter_map(|(index, clone, number)| {
        let job = &jobs[index];
        match traced.of(number) {
            Some(trace) => WorkerFiles::of_trace(job, clone, trace),
            None if traced.late(number).is_some() => Ok(WorkerFiles::NONE),
            None => resolve(job, clone).or_else(|_| WorkerFiles::by_name(job, clone)),
        }
        .ok()
    });
    let files = files.flat_map(|worker| worker.files);
    files.map(|file| file.path).collect()
}

/// Finds all files and refuses forbidden ones. Creates none. Files in `to_be` count as existing.
pub(super) fn check(
    traced: &ReplayPlan,
    runner: &LocalRunner,
    to_be: &mut ToBe,
) -> Result<(), RunError> {
    let search = Search::of(traced, runner, to_be)?;
    search.check(runner, to_be, &DeviceHolds::default())?;
    search.leave(to_be);
    Ok(())
}

/// Finds all files, refuses forbidden ones, and lays out missing ones. The returned hold keeps the
/// devices that are written from the start, until it is dropped.
pub(super) fn make_ready(
    traced: &ReplayPlan,
    (runner, holds): (&LocalRunner, &DeviceHolds),
    created: &CreatedFiles,
    begun: Instant,
    observer: &mut dyn Observer,
) -> Result<(Vec<JobClone>, Made, WriteHold), RunError> {
    let nothing = ToBe::default();
    let mut search = Search::of(traced, runner, &nothing)?;
    let (mut warnings, hold) = search.check(runner, &nothing, holds)?;
    warnings.dedup();
    for message in warnings.into_iter().chain(announcements(&search.layout)) {
        observer.event(&Event {
            at_ns: begun.elapsed().as_nanos() as u64,
            message,
        });
    }
    let mut made = search.lay_out(runner, created, begun, observer)?;
    search
        .look_again(&runner.consent, holds)
        .and_then(|()| search.make_directories(&mut made))
        .inspect_err(|_| made.remove())?;
    Ok((search.members, made, hold))
}

/// The files of a plan during the search.
struct Search<'a> {
    plan: &'a Plan,
    traced: &'a ReplayPlan,
    members: Vec<JobClone>,
    /// Workers whose files were not found: another job of the plan may create them.
    missing: BTreeSet<u32>,
    /// Files that jobs of the plan write.
    written: BTreeSet<PathBuf>,
    layout: Layout,
}

impl<'a> Search<'a> {
    /// Searches the files of all workers. Those in `to_be` may be missing.
    fn of(
        traced: &'a ReplayPlan,
        runner: &LocalRunner,
        to_be: &ToBe,
    ) -> Result<Search<'a>, RunError> {
        let plan = &traced.plan;
        let mut search = Search {
            plan,
            traced,
            members: Vec::new(),
            missing: BTreeSet::new(),
            written: BTreeSet::new(),
            layout: Layout::new(runner.may_run_full),
        };
        for which in expand(plan) {
            search.add(which, to_be)?;
        }
        Ok(search)
    }

    fn add(&mut self, which: (usize, u32, u32), to_be: &ToBe) -> Result<(), RunError> {
        let (index, clone, number) = which;
        let job = &self.plan.jobs[index];
        let trace = self.traced.of(number);
        let found = match trace {
            Some(trace) => WorkerFiles::of_trace(job, clone, trace),
            // The files are known once an earlier job has written the trace.
            None if self.traced.late(number).is_some() => Ok(WorkerFiles::NONE),
            None => resolve_beside(job, clone, &|path| self.layout.size_at_start(path)),
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
                    && (named.files.iter()).all(|file| to_be.has(&file.path));
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
        to_be: &ToBe,
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
        let workers = || {
            let members = self.members.iter();
            members.map(|member| (&self.plan.jobs[member.job], member.expected()))
        };
        if let Some(permissions) = &runner.permissions {
            permissions.check_files(workers())?;
        }
        write_guard::keep(workers(), &runner.only_read)?;
        if runner.readonly {
            self.layout.refuse_writes()?;
        }
        self.layout.check_space(to_be)?;
        Ok((warnings, hold))
    }

    /// Records the files that the plan will leave and remove.
    fn leave(&self, to_be: &mut ToBe) {
        let before = to_be.clone();
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
            to_be.leave(&file.path, bytes);
        }
        for (_, file) in with_paths().filter(|(job, _)| job.files.unlink) {
            to_be.remove(&file.path);
        }
    }

    /// Lays out files and reports the progress to the observer.
    fn lay_out(
        &self,
        runner: &LocalRunner,
        created: &CreatedFiles,
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Made, RunError> {
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
            if progress.tell(bytes, observer) == Control::Stop {
                stop.request();
            }
        })
    }

    /// Updates file sizes that the layout has changed.
    fn look_again(&mut self, consent: &Consent, holds: &DeviceHolds) -> Result<(), RunError> {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            let job = &self.plan.jobs[member.job];
            if !finds_size(job) && !self.missing.contains(&member.number) {
                continue;
            }
            let files = match resolve(job, member.clone) {
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
    fn make_directories(&self, made: &mut Made) -> Result<(), RunError> {
        for member in &self.members {
            let job = &self.plan.jobs[member.job];
            if job.io.engine.has_paths() && job.files.allow_file_create {
                for file in &member.expected().files {
                    made.parents_of(&file.path)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the messages before files are laid out.
fn announcements(layout: &Layout) -> impl Iterator<Item = String> {
    let lines = layout.announcements().into_iter();
    lines.map(|(job, files, bytes)| {
        let mebibytes = bytes >> 20;
        match files {
            1 => format!("{job}: Laying out IO file (1 file / {mebibytes}MiB)"),
            _ => format!("{job}: Laying out IO files ({files} files / total {mebibytes}MiB)"),
        }
    })
}
