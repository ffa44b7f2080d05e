//! Runs a step of a suite that is a study.

use super::site::Studied;
use crate::args::RunArgs;
use crate::commands::journal::{Beginning, directory};
use crate::commands::outside::Outside;
use crate::commands::sweep::around::Around;
use crate::commands::sweep::journal::Journal;
use crate::commands::sweep::quiet::Gate;
use crate::failure::Failure;
use crate::live::load::LoadLive;
use crate::live::probe::ProbeLive;
use crate::live::sweep::SweepLive;
use crate::signals::Stop;
use iosonde_result::session::{RunError, Session};
use iosonde_study::load::{LoadOptions, load};
use iosonde_study::probe::{ProbeOptions, probe};
use iosonde_study::suite::{StepOutcome, SuiteStep, What};
use iosonde_study::sweep::{SweepTarget, sweep};

/// A step that is a study, and its place in the suite.
pub(super) struct Within<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) outside: &'a Outside,
    pub(super) suite: &'a str,
    pub(super) target: &'a str,
    pub(super) step: &'a SuiteStep,
    pub(super) repetition: u32,
}

impl Within<'_> {
    /// Where a sweep writes down what it finds, so that it goes on within the step.
    fn journal(&self, curves: usize, live: &SweepLive) -> Result<Journal, Failure> {
        let what = format!("{:?}", self.step.what);
        Journal::open(
            directory(self.args.keep.store.as_deref(), "sweeps").as_deref(),
            &(
                self.suite,
                self.target,
                &self.step.name,
                self.repetition,
                what,
            ),
            curves,
            // The journal of the suite knows the disks.
            match self.args.resume {
                true => (Beginning::Known, &[]),
                false => (Beginning::Anew, &[]),
            },
            &mut |note| live.line(note),
        )
    }
}

/// What a study found, and where a sweep has written it down.
pub(super) fn study(
    session: &mut dyn Session,
    studied: &Studied,
    within: &Within<'_>,
    stop: &Stop,
) -> Result<(StepOutcome, Option<Journal>), Failure> {
    let outcome = match &within.step.what {
        What::Jobs(_) => Err(Failure::Run(RunError::Interrupted)),
        What::Sweep(wanted) => {
            let (asked, usual) = (wanted.size_bytes, studied.size_bytes);
            let reach = wanted.grid.reach();
            let target = SweepTarget::of_jobs(&studied.target, reach, asked, usual)?;
            let mut grid = wanted.grid.on(&target)?;
            let jobs = grid.curves.iter_mut().map(|curve| &mut curve.job);
            jobs.for_each(|job| within.outside.relocate(job));
            let mut live = SweepLive::new(stop.clone());
            let journal = within.journal(grid.curves.len(), &live)?;
            let so_far = journal.so_far();
            live.journal(journal);
            let targets = [target];
            let mut around = Around {
                session,
                gate: Gate::new(&targets, stop.clone(), wanted.planned.most_ns),
                files: None,
                stop: stop.clone(),
            };
            let options = &wanted.options;
            let outcome = sweep(&mut around, &targets, &grid, options, so_far, &mut live);
            live.end();
            let mut result = outcome.inspect_err(|_| live.give_up())?;
            result.notes.extend(around.gate.notes());
            return Ok((StepOutcome::Sweep(Box::new(result)), live.written_down()));
        }
        What::Load(options) => {
            let options = LoadOptions {
                size_bytes: options.size_bytes.or(studied.size_bytes),
                ..options.clone()
            };
            let mut live = LoadLive::new(stop.clone());
            let outcome = load(session, &studied.target, &options, &mut live);
            live.end();
            Ok(StepOutcome::Load(Box::new(outcome?)))
        }
        What::Probe(options) => {
            let options = ProbeOptions {
                size_bytes: options.size_bytes.or(studied.size_bytes),
                ..options.clone()
            };
            let mut live = ProbeLive::new(stop.clone());
            let outcome = probe(session, &studied.target, &options, &mut live);
            live.end();
            Ok(StepOutcome::Probe(Box::new(outcome?)))
        }
    };
    Ok((outcome?, None))
}
