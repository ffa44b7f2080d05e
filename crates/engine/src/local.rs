//! Sessions on this machine: plans become threads, threads become a result.
//!
//! [`LocalSession::run`] goes through the same steps for every plan: find the files ([`crate::prepare`]), refuse what must
//! not be written, lay out, run the jobs in their groups (`crew`), and put the result together.

mod assemble;
mod choose;
mod crew;
mod eta;
mod evidence;
mod guard;
mod layout_progress;
mod logfiles;
mod machine;
mod rates;
mod report;
mod seat;
mod simulate;
mod steady;
mod threads;
mod watch;

use crate::device;
use crate::interrupt::Interrupt;
use crate::prepare::{FileKind, FileUse, Layout, Made, WorkerFiles, lay_out, refills, resolve};
use crate::sys::thread::raise_open_files;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::observer::{Control, Observer};
use iosonde_result::run::{Event, FORMAT, RunResult, WorkerResult};
use iosonde_result::session::{RunError, Session};
use layout_progress::LayoutProgress;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// How sessions on this machine are made.
#[derive(Debug, Clone, Default)]
pub struct LocalRunner {
    /// Block devices that may be overwritten whatever they carry.
    pub consent: Vec<PathBuf>,
    /// The user's wish to stop.
    pub interrupt: Arc<Interrupt>,
    /// Whether files that a run made stay after the session (as with fio). Those of a run that failed or was interrupted
    /// never do.
    pub keep_files: bool,
}

impl LocalRunner {
    /// A session.
    pub fn open(self) -> LocalSession {
        LocalSession {
            runner: self,
            made: Made::default(),
        }
    }
}

/// A place on this machine where plans are run.
#[derive(Debug)]
pub struct LocalSession {
    runner: LocalRunner,
    made: Made,
}

/// One clone of a job, before it runs.
pub(crate) struct Member {
    /// Index into the plan's jobs.
    pub(crate) job: usize,
    /// Which clone of it.
    pub(crate) clone: u32,
    /// Number among all workers of the plan.
    pub(crate) number: u32,
    /// Its files.
    pub(crate) files: WorkerFiles,
}

impl Session for LocalSession {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let begun = Instant::now();
        if simulate::is_simulated(plan)? {
            return simulated(plan, &self.runner.interrupt, begun, observer);
        }
        let started_at_ms = epoch_ms();
        raise_open_files();
        let (clones, mut made) = self.make_ready(plan, begun, observer)?;
        made.created.extend(made_at_open(plan, &clones));
        let mut watch = watch::DeviceWatch::begin(plan, &clones);
        let machine = watch.machine();
        let mut outcome = threads::run(
            plan,
            &clones,
            &self.runner.interrupt,
            begun,
            observer,
            machine,
        );
        let failed = outcome.workers.iter().any(|worker| worker.error.is_some());
        if failed || self.runner.interrupt.is_requested() {
            made.remove();
        } else {
            self.made.extend(made);
        }
        let watched = watch.end(plan, &outcome);
        outcome.series = watched.series;
        unlink(plan, &clones);
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        Ok(RunResult {
            host: device::host::host(&device::system::System::live()),
            targets: watched.targets,
            disks: watched.disks,
            verdicts: watched.verdicts,
            ..result(plan, outcome, started_at_ms, elapsed_ns)
        })
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        if !self.runner.keep_files {
            self.made.remove();
        }
        Ok(())
    }
}

impl LocalSession {
    /// Finds all files, refuses what must not be, and lays out what is missing.
    fn make_ready(
        &self,
        plan: &Plan,
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Member>, Made), RunError> {
        let mut found: Vec<Result<Member, (usize, u32, u32)>> = Vec::new();
        let mut layout = Layout::default();
        for (job, clone, number) in expand(plan) {
            match resolve(&plan.jobs[job], clone) {
                Ok(files) => {
                    layout.add(&plan.jobs[job], number, &files);
                    found.push(Ok(Member {
                        job,
                        clone,
                        number,
                        files,
                    }));
                }
                // It may use what another job of the plan makes: looked at again below.
                Err(error) if layout.is_empty() => return Err(error),
                Err(_) => found.push(Err((job, clone, number))),
            }
        }
        let mut warnings = Vec::new();
        for clone in found.iter().flatten() {
            warnings.extend(guard::check(
                &plan.jobs[clone.job],
                &clone.files,
                &self.runner.consent,
            )?);
        }
        warnings.dedup();
        for message in warnings {
            observer.event(&Event {
                at_ns: begun.elapsed().as_nanos() as u64,
                message,
            });
        }
        layout.check_space()?;
        for (job, files, bytes) in layout.announcements() {
            let plural = if files == 1 { "file" } else { "files" };
            let message = format!(
                "{job}: Laying out IO {plural} ({files} {plural} / {}MiB)",
                bytes >> 20
            );
            observer.event(&Event {
                at_ns: begun.elapsed().as_nanos() as u64,
                message,
            });
        }
        let mut made = self.lay_out(&layout, plan, &found, begun, observer)?;
        let clones = found
            .into_iter()
            .map(|clone| match clone {
                Ok(clone) if !refills(&plan.jobs[clone.job]) => Ok(clone),
                Ok(Member {
                    job, clone, number, ..
                })
                | Err((job, clone, number)) => {
                    let files = resolve(&plan.jobs[job], clone)?;
                    guard::check(&plan.jobs[job], &files, &self.runner.consent)?;
                    Ok(Member {
                        job,
                        clone,
                        number,
                        files,
                    })
                }
            })
            .collect::<Result<Vec<_>, _>>()
            .and_then(|clones| {
                make_directories(plan, &clones, &mut made)?;
                Ok(clones)
            })
            .inspect_err(|_| made.remove())?;
        Ok((clones, made))
    }

    /// Lays out, and tells the observer how far it is.
    fn lay_out(
        &self,
        layout: &Layout,
        plan: &Plan,
        found: &[Result<Member, (usize, u32, u32)>],
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Made, RunError> {
        let waiting = |clone: &Result<Member, _>| {
            clone
                .as_ref()
                .is_ok_and(|clone| layout.concerns(&clone.files))
        };
        let workers: Vec<_> = expand(plan)
            .zip(found)
            .map(|((job, ..), clone)| (job, waiting(clone)))
            .collect();
        let mut progress = LayoutProgress::new(layout.bytes(), &workers, begun);
        let stop = Interrupt::default();
        let interrupt = &self.runner.interrupt;
        lay_out(layout, &[interrupt, &stop], &mut |bytes| {
            if progress.tell(bytes, observer) == Control::Stop {
                stop.request();
            }
        })
    }
}

/// Makes the directories within the names of files that are made when they are opened.
fn make_directories(plan: &Plan, clones: &[Member], made: &mut Made) -> Result<(), RunError> {
    for clone in clones {
        let job = &plan.jobs[clone.job];
        if job.io.engine != Engine::Null && job.files.allow_file_create {
            for file in &clone.files.files {
                made.parents_of(&file.path)?;
            }
        }
    }
    Ok(())
}

/// Files that workers will make when they open them.
fn made_at_open(plan: &Plan, clones: &[Member]) -> Vec<PathBuf> {
    let real = clones
        .iter()
        .filter(|clone| plan.jobs[clone.job].io.engine != Engine::Null);
    let files = real.flat_map(|clone| &clone.files.files);
    let missing: BTreeSet<&PathBuf> = files
        .filter(|file| file.kind == FileKind::Regular && !file.path.exists())
        .map(|file| &file.path)
        .collect();
    missing.into_iter().cloned().collect()
}

/// All clones of all jobs: job, clone, number.
fn expand(plan: &Plan) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
    let clones = plan
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(job, spec)| (0..spec.numjobs.max(1)).map(move |clone| (job, clone)));
    clones
        .zip(0..)
        .map(|((job, clone), number)| (job, clone, number))
}

/// Runs a plan on simulated devices. Nothing of this machine is in the result.
fn simulated(
    plan: &Plan,
    interrupt: &Interrupt,
    begun: Instant,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    let clones = expand(plan)
        .map(|(job, clone, number)| {
            resolve(&plan.jobs[job], clone).map(|files| Member {
                job,
                clone,
                number,
                files,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let outcome = simulate::run(plan, &clones, interrupt, begun, observer)?;
    let elapsed_ns = outcome.elapsed_ns;
    Ok(result(plan, outcome, 0, elapsed_ns))
}

/// What the crew has found, without what was around it.
fn result(plan: &Plan, outcome: CrewOutcome, started_at_ms: u64, elapsed_ns: u64) -> RunResult {
    RunResult {
        format: FORMAT,
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")).to_owned(),
        started_at_ms,
        elapsed_ns,
        plan: plan.clone(),
        host: Default::default(),
        targets: Vec::new(),
        labels: Default::default(),
        workers: outcome.workers,
        disks: Vec::new(),
        intervals: outcome.intervals,
        series: outcome.series,
        events: outcome.events,
        verdicts: Vec::new(),
    }
}

/// Removes the files of jobs that ask for it (`unlink`).
fn unlink(plan: &Plan, clones: &[Member]) {
    for clone in clones {
        let job = &plan.jobs[clone.job];
        if (job.files.unlink || job.files.unlink_each_loop)
            && !matches!(job.io.engine, Engine::Null | Engine::Sim)
        {
            let regular = |file: &&FileUse| file.kind == FileKind::Regular;
            for file in clone.files.files.iter().filter(regular) {
                // Another clone may have removed it already.
                let _ = std::fs::remove_file(&file.path);
            }
        }
    }
}

/// What the crew brings home.
#[derive(Default)]
pub(crate) struct CrewOutcome {
    pub(crate) workers: Vec<WorkerResult>,
    pub(crate) intervals: Vec<iosonde_result::interval::Interval>,
    pub(crate) series: iosonde_result::machine::MachineSeries,
    pub(crate) events: Vec<Event>,
    pub(crate) elapsed_ns: u64,
}

/// Milliseconds of the Unix epoch, now.
pub(crate) fn epoch_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as u64)
}
