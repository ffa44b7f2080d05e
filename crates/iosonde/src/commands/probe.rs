//! `iosonde probe`: finds the maximum rates of targets.

mod probe_output;
mod probe_runs;

use super::ceph::remote_storage;
use super::expect::promises;
use super::finish_command;
use super::target::{self, PreparedTarget};
use super::target_session::refuse_unused_options;
use super::{beforehand, cluster, cold, consent};
use crate::args::{ClusterArgs, ProbeArgs};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::live::probe_live::ProbeLive;
use crate::live::probe_live::targets_view::TargetsView;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::{SetupEvent, SetupObserver};
use iosonde_engine::runner::LocalRunner;
use iosonde_history::{
    HistoryHook, HistoryWriter, StoredRuns, TOGETHER, probe_document, random_id,
};
use iosonde_job::{Neighbour, TargetUri};
use iosonde_limits::Promise;
use iosonde_machine::consent::Consent;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::probe::{
    ProbeBudget, ProbeOptions, ProbeResult, StudyTarget, TurnHook, TurnOrder, run_probe,
    working_set,
};
use iosonde_study::promise_check::PromiseCheck;
use iosonde_study::{StudyDriver, StudyError, StudyNeighbour};
use probe_output::is_short;
use probe_runs::{ProbeRuns, has_failed, refuse_numbered_run, run_number};
use std::path::PathBuf;
use std::sync::{RwLock, mpsc};
use std::thread::ScopedJoinHandle;

/// Probes each target and prints the results.
pub(crate) fn run(args: &ProbeArgs) -> Result<(), CommandError> {
    let neighbour = args.beside.neighbour()?;
    let stop = StopSignal::listen()?;
    consent::refuse_unmatched(&args.consent, &args.targets, false)?;
    refuse_unused_options(&args.targets, &args.cluster)?;
    cold::announce(args.cold.layers(), &args.targets, &args.cluster)?;
    let promises = promises(&args.expect)?;
    let history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.output.as_deref())?;
    consent::to_root(&args.targets, &args.cluster, &|| stop.interrupt.count())?;
    check_targets(args, &stop, neighbour.as_ref())?;
    let consent = args.consent.noted();
    beforehand::warn_of_noise(&args.targets, &args.cluster);
    let mut history_writers = open_writers(args, history_writer)?;
    let mut runs = ProbeRuns::new(args, &stop, output);
    let mut closed = Ok(());
    for run in 1..=args.repeat.unwrap_or(1) {
        let probes = ProbeCommand {
            args,
            consent: consent.clone(),
            promises: &promises,
            neighbour: neighbour.clone(),
            stop: &stop,
            turns: TurnOrder::new(
                args.targets.len(),
                args.seed.wrapping_add(u64::from(run - 1)),
            ),
            view: (args.targets.len() > 1)
                .then(|| TargetsView::new(&args.targets, run_number(args, run))),
            run,
        };
        closed = probes.probe_all(&mut history_writers, |ended, failed| {
            runs.add(run, ended, failed);
        });
        if runs.is_printed() || closed.is_err() {
            break;
        }
    }
    finish_command([runs.conclude()], closed)
}

/// Checks all targets before the first is measured, so that errors show early.
fn check_targets(
    args: &ProbeArgs,
    stop: &StopSignal,
    neighbour: Option<&Neighbour>,
) -> Result<(), CommandError> {
    for name in &args.targets {
        match cluster::target_within(name, &args.cluster)? {
            // Notes of the check are repeated in the target's turn.
            Some((place, args_of_cluster)) if args.targets.len() > 1 => {
                let interrupts = || stop.interrupt.count();
                cluster::check(place, &args_of_cluster, args.pods.pods(), &interrupts)?;
            }
            Some(_) => {}
            None if args.pods.pods().is_some() => return Err(cluster::no_pods_of(name)),
            None => {
                let kind = target::check(name, &args.consent.allow_overwrite, &args.ceph.access())?;
                refuse_numbered_run(args, name, &kind)?;
                let target = StudyTarget {
                    name: name.clone(),
                    path: name.clone(),
                    kind,
                };
                if let Some(neighbour) = neighbour {
                    StudyNeighbour::new(neighbour, &target)?;
                }
                // Leftovers may use the missing space. The target's turn removes them.
                if args.targets.len() > 1 && !target::has_leftovers(name) {
                    working_set(&target, &options(args))?;
                }
            }
        }
    }
    Ok(())
}

/// One history writer for each target, as the studies are concurrent. All are opened before the
/// first turn, as a thread that fails without taking its turn blocks the others. All results of a
/// command share a label.
fn open_writers(
    args: &ProbeArgs,
    mut history_writer: HistoryWriter,
) -> Result<Vec<HistoryWriter>, CommandError> {
    let count = args.targets.len();
    if count == 1 && args.repeat.is_none() {
        return Ok(vec![history_writer]);
    }
    if count > 1 {
        eprintln!(
            "{count} targets take turns phase by phase: drift of the machine affects all equally"
        );
    }
    crate::commands::print_notes(&mut history_writer);
    let mut history_writers = vec![history_writer];
    for _ in 1..count {
        history_writers.push(HistoryWriter::open(&args.keep.options())?);
    }
    let together = random_id().map_err(anyhow::Error::from)?;
    for history_writer in &mut history_writers {
        history_writer.label(TOGETHER, &together);
    }
    Ok(history_writers)
}

/// The result of a probe, and its id in the history if it is stored.
struct EndedProbe {
    result: ProbeResult,
    id: Option<String>,
}

/// One run of all targets of a command line.
struct ProbeCommand<'a> {
    args: &'a ProbeArgs,
    /// With the identity of each disk at the start of the command.
    consent: Consent,
    promises: &'a [Promise],
    neighbour: Option<Neighbour>,
    stop: &'a StopSignal,
    turns: TurnOrder,
    /// The live view of several targets.
    view: Option<TargetsView>,
    /// Number of the run, from 1.
    run: u32,
}

impl ProbeCommand<'_> {
    /// Probes all targets, each in its own thread, one run at a time. Passes the results to
    /// `take_results` even if another target fails, then removes the resources of the targets.
    fn probe_all(
        &self,
        history_writers: &mut [HistoryWriter],
        take_results: impl FnOnce(Vec<(usize, EndedProbe)>, Option<CommandError>),
    ) -> Result<(), RunError> {
        let printed = RwLock::new(());
        let is_printing = printed.write();
        std::thread::scope(|scope| {
            let (sender, ended) = mpsc::channel();
            let writers = history_writers.iter_mut().enumerate();
            let begin = writers.map(|(who, history_writer)| {
                let mut sender = Some(sender.clone());
                let printed = &printed;
                let mut hand_on = move |outcome| {
                    if let Some(sender) = sender.take() {
                        // The receiver outlives all threads.
                        let _ = sender.send((who, outcome));
                        drop(sender);
                        drop(printed.read());
                    }
                };
                scope.spawn(move || self.probe_target(who, history_writer, &mut hand_on))
            });
            let begun: Vec<_> = begin.collect();
            drop(sender);
            let mut outcomes: Vec<_> = ended.iter().collect();
            outcomes.sort_by_key(|(who, _)| *who);
            let (mut results, mut failed) = (Vec::new(), None);
            for (who, outcome) in outcomes {
                match outcome {
                    Ok(probe) => results.push((who, probe)),
                    Err(failure) => failed = failed.or(Some(failure)),
                }
            }
            if let Some(view) = &self.view {
                view.clear();
            }
            take_results(results, failed);
            drop(is_printing);
            begun.into_iter().map(joined).fold(Ok(()), Result::and)
        })
    }

    /// Probes a target, passes the outcome to `hand_on`, cleans up. Returns the clean-up's result.
    fn probe_target(
        &self,
        who: usize,
        history_writer: &mut HistoryWriter,
        hand_on: &mut dyn FnMut(Result<EndedProbe, CommandError>),
    ) -> Result<(), RunError> {
        let mut live = match &self.view {
            None => ProbeLive::new(self.stop.clone()),
            Some(view) => ProbeLive::of_several(who, view.clone(), self.stop.clone()),
        }
        .in_run(run_number(self.args, self.run));
        let name = &self.args.targets[who];
        let present = self.turns.leave_on_drop(who);
        let closed =
            cluster::target_within(name, &self.args.cluster).and_then(|place| match place {
                Some((target, args)) => {
                    self.in_cluster(who, (target, &args), &mut live, history_writer, hand_on)
                }
                None => self.here(who, &mut live, history_writer, hand_on),
            });
        // Before the turn of another target, which draws the view.
        if closed.is_err() {
            live.fail();
        }
        // `hand_on` waits for the other probes, which may wait for the turn of this one.
        drop(present);
        closed.unwrap_or_else(|failure| {
            hand_on(Err(failure));
            Ok(())
        })
    }

    /// Stores the result of a probe in the history.
    fn ended(
        &self,
        who: usize,
        outcome: Result<ProbeResult, StudyError>,
        history_writer: &mut HistoryWriter,
    ) -> Result<EndedProbe, CommandError> {
        let mut result = match outcome {
            Ok(result) => result,
            Err(error) => {
                history_writer.end_unfinished_study();
                crate::commands::print_notes(history_writer);
                return Err(error.into());
            }
        };
        let held = self
            .promises
            .iter()
            .map(|promise| PromiseCheck::from_probe(promise, &result));
        let held: Vec<PromiseCheck> = held.collect();
        result.expect(held);
        result.notes.extend(self.note_of_equals(who));
        let name = &self.args.targets[who];
        let id = history_writer.finish(probe_document(&mut result).as_ref());
        // The short report names the id itself.
        if !is_short(self.args) || self.args.output.is_some() {
            self.kept(name, id.as_deref());
        }
        crate::commands::print_notes(history_writer);
        Ok(EndedProbe { result, id })
    }

    fn here(
        &self,
        who: usize,
        live: &mut ProbeLive,
        history_writer: &mut HistoryWriter,
        hand_on: &mut dyn FnMut(Result<EndedProbe, CommandError>),
    ) -> Result<Result<(), RunError>, CommandError> {
        let name = &self.args.targets[who];
        let consent = &self.args.consent.allow_overwrite;
        let kind = target::check(name, consent, &self.args.ceph.access())?;
        let only_read = (!kind.is_writable()).then(|| PathBuf::from(name));
        let mut session = LocalRunner {
            consent: self.consent.clone(),
            only_read: only_read.into_iter().collect(),
            remote: remote_storage(self.args.ceph.access()),
            interrupt: self.stop.interrupt.clone(),
            cold: self.args.cold.layers(),
            ..LocalRunner::default()
        }
        .open();
        let held = session.held_paths();
        let turn = self.turns.hook(who);
        turn.begin();
        let access = self.args.ceph.access();
        let mut opened = PreparedTarget::open(name, consent, &access, &mut |note| live.note(note))?;
        opened.target.number_simulated_run(u64::from(self.run - 1));
        opened.note_in(&held);
        history_writer.begin("probe", &opened.target.name);
        let options = options(self.args);
        let hooked = (&mut session as &mut dyn Session, turn);
        let studied = (&opened.target, self.neighbour_on(&opened.target)?);
        let outcome = probe_in_turn(hooked, studied, &options, live, history_writer);
        hand_on(self.ended(who, outcome, history_writer));
        let closed = Box::new(session).close();
        drop(opened);
        Ok(closed)
    }

    fn in_cluster(
        &self,
        who: usize,
        (target, args): (TargetUri, &ClusterArgs),
        live: &mut ProbeLive,
        history_writer: &mut HistoryWriter,
        hand_on: &mut dyn FnMut(Result<EndedProbe, CommandError>),
    ) -> Result<Result<(), RunError>, CommandError> {
        // The pod is created in the first turn, not while another target is measured.
        let _turn = self.turns.come(who);
        let name = &self.args.targets[who];
        let place = cluster::options_of_pods(target, args, self.args.pods.pods())?;
        let place = cluster::with_consent(place, name, &self.args.consent.allow_overwrite);
        let cold = self.args.cold.layers();
        let place = cluster::with_cold(place, cold);
        let mut pod_live = PodLive::new(name);
        let watch = SetupObserver {
            tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
            interrupts: &|| self.stop.interrupt.count(),
        };
        let mut session = cluster::open_pods(place.clone(), watch)?;
        cold::drop_osds_for(&mut session, cold, self.args.ceph.access());
        let place = cluster::with_selected_pods(place, &session);
        let found = session.inspect_path()?;
        let target = cluster::probe_target(name, &session, found, &place);
        let mut options = options(self.args);
        if options.size_bytes.is_none() {
            options.size_bytes =
                cluster::working_set(&place, session.pod_count(), options.budget.size_bytes);
        }
        live.note(&format!("{name}: {}", session.location()));
        history_writer.begin("probe", name);
        let hooked = (&mut session as &mut dyn Session, self.turns.hook(who));
        let studied = (&target, self.neighbour_on(&target)?);
        let mut outcome = probe_in_turn(hooked, studied, &options, live, history_writer);
        if let Ok(result) = &mut outcome {
            let pods = cluster::note_of_pods(&session, &place);
            result.notes.extend(pods);
        }
        hand_on(self.ended(who, outcome, history_writer));
        // Removal may be slow or fail, so it follows the report.
        Ok(Box::new(session).close())
    }

    /// The neighbour of a target, if there is a neighbour.
    fn neighbour_on(&self, target: &StudyTarget) -> Result<Option<StudyNeighbour>, StudyError> {
        let neighbour = self.neighbour.as_ref();
        let placed = neighbour.map(|neighbour| StudyNeighbour::new(neighbour, target));
        placed.transpose()
    }

    /// A note if an earlier target is the same.
    fn note_of_equals(&self, who: usize) -> Option<String> {
        let targets = &self.args.targets;
        let equal = (0..who).find(|earlier| target::are_same(&targets[*earlier], &targets[who]))?;
        let what = match targets[who] == targets[equal] {
            true => format!("{} is given twice", targets[who]),
            false => format!("{} is the same target as {}", targets[who], targets[equal]),
        };
        Some(format!(
            "{what}: in this A/A test, differences are chance or drift of the machine"
        ))
    }

    fn kept(&self, name: &str, id: Option<&str>) {
        match id {
            Some(id) if self.args.targets.len() > 1 => {
                eprintln!("{name}: stored in the history as {id}");
            }
            Some(id) => eprintln!("stored in the history as {id}"),
            None => {}
        }
    }
}

/// Probes a target and stores its runs. Each run waits for its turn, which ends with the probe.
fn probe_in_turn(
    (session, mut turn): (&mut dyn Session, TurnHook<'_>),
    (target, neighbour): (&StudyTarget, Option<StudyNeighbour>),
    options: &ProbeOptions,
    live: &mut ProbeLive,
    history_writer: &mut HistoryWriter,
) -> Result<ProbeResult, StudyError> {
    // The history waits for its writer before the turn, not within it.
    let mut history_hook = HistoryHook {
        writer: history_writer,
        stored: StoredRuns::NoCells,
    };
    let driver = StudyDriver::new(session, live).with_neighbours(neighbour);
    let mut driver = driver.with_hook(&mut history_hook).with_hook(&mut turn);
    let outcome = run_probe(&mut driver, target, options);
    drop(driver);
    let is_whole = |result: &ProbeResult| !has_failed(result);
    if !outcome.as_ref().is_ok_and(is_whole) {
        live.fail();
    }
    live.finish();
    outcome
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn options(args: &ProbeArgs) -> ProbeOptions {
    let mut budget = if args.quick {
        ProbeBudget::QUICK
    } else {
        ProbeBudget::NORMAL
    };
    if let Some(runtime_ns) = args.runtime {
        budget = budget.with_runtime(runtime_ns);
    }
    if let Some(bytes) = args.size {
        budget.size_bytes = bytes;
    }
    budget.width = args.precision.unwrap_or(budget.width);
    ProbeOptions {
        budget,
        size_bytes: args.size,
        direct: args.direct,
        seed: args.seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;
    use std::time::Duration;

    /// Numbers of results and of failures, and the targets that the view shows as failed. Targets
    /// are not checked before.
    fn probed(targets: [&str; 2]) -> (usize, usize, [bool; 2]) {
        let words = ["iosonde", "probe", "--quick", "--no-save"];
        let cli = Cli::try_parse_from(words.into_iter().chain(targets)).unwrap();
        let CliCommand::Probe(args) = cli.command else {
            panic!("another command");
        };
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let stop = StopSignal::default();
            let view = TargetsView::new(&args.targets, run_number(&args, 1));
            let probes = ProbeCommand {
                consent: args.consent.noted(),
                promises: &[],
                neighbour: None,
                stop: &stop,
                turns: TurnOrder::new(args.targets.len(), args.seed),
                view: Some(view.clone()),
                run: 1,
                args: &args,
            };
            let history_writer = HistoryWriter::open(&args.keep.options()).ok().unwrap();
            let mut history_writers = open_writers(&args, history_writer).ok().unwrap();
            let closed = probes.probe_all(&mut history_writers, |results, failed| {
                let shown = [0, 1].map(|index| view.has_failed(index));
                let counts = (results.len(), usize::from(failed.is_some()), shown);
                sender.send(counts).unwrap();
            });
            assert!(closed.is_ok());
        });
        ended.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// The check of all targets has passed, and the directory is gone when its turn comes.
    #[test]
    fn target_that_fails_before_its_turn_blocks_no_other() {
        let gone = "/proc/iosonde/gone";
        assert_eq!(probed([gone, "sim:hdd"]), (1, 1, [true, false]));
        assert_eq!(probed(["sim:hdd", gone]), (1, 1, [false, true]));
    }
}
