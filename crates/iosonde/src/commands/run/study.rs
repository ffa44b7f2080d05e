//! Runs a step of a suite that is a study.

use super::suite_step_hook::SuiteStepHook;
use crate::args::RunArgs;
use crate::commands::outside::Outside;
use crate::commands::target_session::SizedTarget;
use crate::failure::CommandError;
use crate::hooks::quiet_device_hook::QuietDeviceHook;
use crate::journal::journal_file::{Beginning, directory};
use crate::journal::journal_key::StepJournalKey;
use crate::journal::sweep_journal::SweepJournal;
use crate::live::load_live::{LoadLive, LoadSteps};
use crate::live::probe_live::ProbeLive;
use crate::live::sweep_live::SweepLive;
use crate::signals::StopSignal;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::load::{LoadOptions, run_load};
use iosonde_study::probe::{ProbeOptions, run_probe};
use iosonde_study::sweep::{SweepTarget, run_sweep};
use iosonde_study::{StudyDriver, StudyNeighbour};
use iosonde_suite::{StepKind, StepOutcome, SuiteStep};

/// A step that is a study, with its suite and target.
pub(super) struct Within<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) outside: &'a Outside,
    pub(super) suite: &'a str,
    pub(super) target: &'a str,
    pub(super) step: &'a SuiteStep,
    pub(super) repetition: u32,
    /// Number of pods that run each plan at the same time.
    pub(super) parties: u32,
    /// Note on figures that are sums over several pods.
    pub(super) notes: Option<String>,
}

impl Within<'_> {
    /// The load beside the step on its target, if the step has one.
    fn neighbour(&self, sized: &SizedTarget) -> Result<Option<StudyNeighbour>, CommandError> {
        let neighbour = self.step.beside.as_deref();
        let neighbour = neighbour.map(|with| StudyNeighbour::new(with, &sized.target));
        Ok(neighbour.transpose()?)
    }

    /// The journal of a sweep, from which it resumes within the step.
    fn journal(&self, curves: usize, live: &SweepLive) -> Result<SweepJournal, CommandError> {
        SweepJournal::open(
            directory(self.args.keep.store.as_deref(), "sweeps").as_deref(),
            &StepJournalKey::new(
                (self.suite, self.target),
                self.step,
                (self.repetition, self.parties),
            ),
            curves,
            // The suite's journal checks the disks.
            match self.args.resume {
                true => (Beginning::Known, &[]),
                false => (Beginning::Anew, &[]),
            },
            &mut |note| live.line(note),
        )
    }
}

/// Runs the study. Returns its outcome, and the journal of a sweep.
pub(super) fn study(
    session: &mut dyn Session,
    hook: &mut SuiteStepHook<'_>,
    sized: &SizedTarget,
    within: &Within<'_>,
    stop: &StopSignal,
) -> Result<(StepOutcome, Option<SweepJournal>), CommandError> {
    let neighbour = within.neighbour(sized)?;
    let outcome = match &within.step.what {
        StepKind::Jobs(_) | StepKind::Command(_) => Err(CommandError::Run(RunError::Interrupted)),
        StepKind::Sweep(wanted) => {
            let (asked, usual) = (wanted.size_bytes, sized.size_bytes);
            let reach = wanted.grid.reach();
            let target = SweepTarget::for_jobs(&sized.target, reach, asked, usual)?;
            let mut grid = wanted.grid.on(&target)?;
            let jobs = grid.curves.iter_mut().map(|curve| &mut curve.job);
            jobs.for_each(|job| within.outside.relocate(job));
            let mut live = SweepLive::new(stop.clone());
            let journal = within.journal(grid.curves.len(), &live)?;
            let so_far = journal.so_far();
            live.journal(journal);
            let targets = [target];
            let most_ns = wanted.planned.most_ns;
            let access = within.args.ceph.access();
            let mut quiet_device = QuietDeviceHook::new(&targets, &access, stop.clone(), most_ns);
            let driver = StudyDriver::new(session, &mut live).with_neighbours(neighbour);
            let mut driver = driver.with_hook(&mut quiet_device).with_hook(hook);
            let outcome = run_sweep(&mut driver, &targets, &grid, &wanted.options, so_far);
            drop(driver);
            live.finish();
            let mut result = outcome.inspect_err(|_| live.give_up())?;
            result.notes.extend(quiet_device.notes());
            result.notes.extend(within.notes.clone());
            return Ok((StepOutcome::Sweep(Box::new(result)), live.written_down()));
        }
        StepKind::Load(options) => {
            let options = LoadOptions {
                size_bytes: options.size_bytes.or(sized.size_bytes),
                parties: within.parties,
                ..options.clone()
            };
            let steps = LoadSteps::with_objectives(&options.objectives);
            let mut live = LoadLive::with_steps(stop.clone(), steps);
            let driver = StudyDriver::new(session, &mut live).with_neighbours(neighbour);
            let mut driver = driver.with_hook(hook);
            let outcome = run_load(&mut driver, &sized.target, &options);
            drop(driver);
            live.finish();
            let mut result = outcome?;
            result.notes.extend(within.notes.clone());
            Ok(StepOutcome::Load(Box::new(result)))
        }
        StepKind::Probe(options) => {
            let options = ProbeOptions {
                size_bytes: options.size_bytes.or(sized.size_bytes),
                ..options.clone()
            };
            let mut live = ProbeLive::new(stop.clone());
            let driver = StudyDriver::new(session, &mut live).with_neighbours(neighbour);
            let mut driver = driver.with_hook(hook);
            let outcome = run_probe(&mut driver, &sized.target, &options);
            drop(driver);
            live.finish();
            let mut result = outcome?;
            result.notes.extend(within.notes.clone());
            Ok(StepOutcome::Probe(Box::new(result)))
        }
    };
    Ok((outcome?, None))
}
