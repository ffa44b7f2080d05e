//! `iosonde probe`: how fast is it?

use super::end;
use super::expect::promises;
use super::target::{self, Opened};
use super::{beforehand, cluster, consent};
use crate::args::{ClusterArgs, Format, ProbeArgs};
use crate::failure::Failure;
use crate::live::cluster::PodLive;
use crate::live::probe::ProbeLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use crate::store::{Keeper, KeepingSession, probe_document, random_id};
use iosonde_cluster::{Told, Watch};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::Target;
use iosonde_machine::consent::Consent;
use iosonde_result::session::{RunError, Session};
use iosonde_study::limits::{Held, Outcome, Promise};
use iosonde_study::probe::{
    Budget, ProbeError, ProbeOptions, ProbeResult, ProbeTarget, Turns, Watcher, probe, working_set,
};
use std::path::PathBuf;
use std::sync::{RwLock, mpsc};
use std::thread::ScopedJoinHandle;

/// Probes each target and prints what was found.
pub(crate) fn run(args: &ProbeArgs) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    consent::refuse_unmatched(&args.consent, &args.targets, false)?;
    let promises = promises(&args.expect)?;
    let keeper = Keeper::open(&args.keep)?;
    let output = Output::open(args.output.as_deref())?;
    consent::to_root(&args.targets, &args.cluster, &|| stop.interrupt.count())?;
    // All targets are looked at before the first is measured: a mistake in the last one should not take minutes to show.
    for name in &args.targets {
        match cluster::target_within(name, &args.cluster)? {
            // What it has to say, it says when its turn comes.
            Some((place, args_of_cluster)) if args.targets.len() > 1 => {
                let interrupts = || stop.interrupt.count();
                cluster::check(place, &args_of_cluster, args.pods.pods(), &interrupts)?;
            }
            Some(_) => {}
            None if args.pods.pods().is_some() => return Err(cluster::no_pods_of(name)),
            None => {
                let kind = target::check(name, &args.consent.allow_overwrite, &args.ceph.access())?;
                let target = ProbeTarget {
                    name: name.clone(),
                    path: name.clone(),
                    kind,
                };
                // What a killed probe has left there may be the room that is missing: it goes when the target's turn comes.
                if args.targets.len() > 1 && !target::has_leftovers(name) {
                    working_set(&target, &options(args))?;
                }
            }
        }
    }
    let probes = Probes {
        args,
        consent: args.consent.noted(),
        promises: &promises,
        stop: &stop,
        turns: Turns::new(args.targets.len(), args.seed),
    };
    beforehand::warn(&args.targets, &args.cluster);
    let mut concluded = Ok(());
    let closed = probes.all(keeper, |results, failed| {
        let written = print(args, results, output);
        concluded = written.and(concluded_by(args, &stop, results, failed));
    })?;
    end([concluded], closed)
}

fn print(args: &ProbeArgs, results: &[ProbeResult], mut output: Output) -> Result<(), Failure> {
    for result in results.iter().filter(|_| args.format == Format::Table) {
        let text = report::probe::table::text_among(result, results);
        output.write(&text)?;
    }
    match results.is_empty() {
        true => output.finish(),
        false => output.save(&report::probe::rest(results, args.format)?),
    }
}

fn concluded_by(
    args: &ProbeArgs,
    stop: &Stop,
    results: &[ProbeResult],
    failed: Option<Failure>,
) -> Result<(), Failure> {
    if let (Some(signal), false) = (stop.signal(), results.is_empty()) {
        return Err(Failure::Interrupted(signal));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    let cut = results.iter().find_map(|result| result.error.clone());
    let failure = results.iter().find_map(ProbeResult::failure);
    stop.conclude_study(cut, failure.map(|failure| failure.message.clone()))?;
    match args.fail_if_broken {
        true => fail_if_broken(results),
        false => Ok(()),
    }
}

/// The exit status for CI.
fn fail_if_broken(results: &[ProbeResult]) -> Result<(), Failure> {
    let broken: Vec<String> = results
        .iter()
        .flat_map(|result| result.expected.iter().map(move |held| (result, held)))
        .filter(|(_, held)| held.outcome == Outcome::Broken)
        .map(|(result, held)| {
            format!(
                "{}, {}: {}",
                result.target,
                held.promise.product,
                held.sentence()
            )
        })
        .collect();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Broken(broken.join("\n"))),
    }
}

/// The probes of one command line.
struct Probes<'a> {
    args: &'a ProbeArgs,
    /// With the disks that the names meant when the command began.
    consent: Consent,
    promises: &'a [Promise],
    stop: &'a Stop,
    turns: Turns,
}

impl Probes<'_> {
    /// Probes all targets: a thread for each, of which one runs at a time. What has been measured counts and is printed, also where another
    /// target fails; only then is what was made for the targets removed.
    fn all(
        &self,
        keeper: Keeper,
        print: impl FnOnce(&[ProbeResult], Option<Failure>),
    ) -> Result<Result<(), RunError>, Failure> {
        let keepers = self.keepers(keeper)?;
        let printed = RwLock::new(());
        let is_printing = printed.write();
        let closed = std::thread::scope(|scope| {
            let (sender, ended) = mpsc::channel();
            let begin = |(who, mut keeper): (usize, Keeper)| {
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
                scope.spawn(move || self.one(who, &mut keeper, &mut hand_on))
            };
            let begun: Vec<_> = keepers.into_iter().enumerate().map(begin).collect();
            drop(sender);
            let mut outcomes: Vec<_> = ended.iter().collect();
            outcomes.sort_by_key(|(who, _)| *who);
            let (mut results, mut failed) = (Vec::new(), None);
            for (_, outcome) in outcomes {
                match outcome {
                    Ok(result) => results.push(result),
                    Err(failure) => failed = failed.or(Some(failure)),
                }
            }
            print(&results, failed);
            drop(is_printing);
            begun.into_iter().map(joined).fold(Ok(()), Result::and)
        });
        Ok(closed)
    }

    /// One for each target: studies of several go on at once, so each has its own way into the history. All are open before the first
    /// turn: each target must come to its turns.
    fn keepers(&self, mut keeper: Keeper) -> Result<Vec<Keeper>, Failure> {
        let targets = &self.args.targets;
        if targets.len() == 1 {
            return Ok(vec![keeper]);
        }
        eprintln!(
            "{} targets take turns, phase by phase, so that a drift of this machine favours none",
            targets.len()
        );
        keeper.tell_notes();
        let mut keepers = vec![keeper];
        for _ in 1..targets.len() {
            keepers.push(Keeper::open(&self.args.keep)?);
        }
        let together = random_id().map_err(anyhow::Error::from)?;
        for keeper in &mut keepers {
            keeper.label(TOGETHER, &together);
        }
        Ok(keepers)
    }

    /// Probes one target and hands on what came of it, before what was made for it is removed. Whether that could be.
    fn one(
        &self,
        who: usize,
        keeper: &mut Keeper,
        hand_on: &mut dyn FnMut(Result<ProbeResult, Failure>),
    ) -> Result<(), RunError> {
        let mut live = match self.args.targets.len() {
            1 => ProbeLive::new(self.stop.clone()),
            _ => ProbeLive::of_several(who + 1, self.stop.clone()),
        };
        let name = &self.args.targets[who];
        let closed =
            cluster::target_within(name, &self.args.cluster).and_then(|place| match place {
                Some((target, args)) => {
                    self.in_cluster(who, (target, &args), &mut live, keeper, hand_on)
                }
                None => self.here(who, &mut live, keeper, hand_on),
            });
        closed.unwrap_or_else(|failure| {
            hand_on(Err(failure));
            Ok(())
        })
    }

    /// Keeps what a probe found.
    fn ended(
        &self,
        who: usize,
        outcome: Result<ProbeResult, ProbeError>,
        keeper: &mut Keeper,
    ) -> Result<ProbeResult, Failure> {
        let mut result = match outcome {
            Ok(result) => result,
            Err(error) => {
                keeper.give_up();
                keeper.tell_notes();
                return Err(error.into());
            }
        };
        let held = self
            .promises
            .iter()
            .map(|promise| Held::of(promise, &result));
        let held: Vec<Held> = held.collect();
        result.expect(held);
        result.notes.extend(self.note_of_equals(who));
        let name = &self.args.targets[who];
        self.kept(name, keeper.finish(probe_document(&mut result).as_ref()));
        keeper.tell_notes();
        Ok(result)
    }

    fn here(
        &self,
        who: usize,
        live: &mut ProbeLive,
        keeper: &mut Keeper,
        hand_on: &mut dyn FnMut(Result<ProbeResult, Failure>),
    ) -> Result<Result<(), RunError>, Failure> {
        let name = &self.args.targets[who];
        let consent = &self.args.consent.allow_overwrite;
        let kind = target::check(name, consent, &self.args.ceph.access())?;
        let only_read = (!kind.is_writable()).then(|| PathBuf::from(name));
        let mut session = LocalRunner {
            consent: self.consent.clone(),
            only_read: only_read.into_iter().collect(),
            ceph: self.args.ceph.access(),
            interrupt: self.stop.interrupt.clone(),
            ..LocalRunner::default()
        }
        .open();
        let held = session.held_paths();
        let mut taking = self.turns.taken_by(who, &mut session);
        taking.begin();
        let opened = Opened::open(name, consent, &self.args.ceph.access(), &mut |note| {
            live.note(note);
        })?;
        opened.note_in(&held);
        keeper.begin("probe", &opened.target.name);
        let mut keeping = KeepingSession {
            session: &mut taking,
            keeper,
        };
        let outcome = probe(&mut keeping, &opened.target, &options(self.args), live);
        live.end();
        drop(taking);
        hand_on(self.ended(who, outcome, keeper));
        let closed = Box::new(session).close();
        drop(opened);
        Ok(closed)
    }

    fn in_cluster(
        &self,
        who: usize,
        (target, args): (Target, &ClusterArgs),
        live: &mut ProbeLive,
        keeper: &mut Keeper,
        hand_on: &mut dyn FnMut(Result<ProbeResult, Failure>),
    ) -> Result<Result<(), RunError>, Failure> {
        // The pod is made in the first turn, not beside what another target measures.
        let _turn = self.turns.come(who);
        let name = &self.args.targets[who];
        let place = cluster::options_of_pods(target, args, self.args.pods.pods())?;
        let place = cluster::with_consent(place, name, &self.args.consent.allow_overwrite);
        let mut pod_live = PodLive::new(name);
        let watch = Watch {
            tell: &mut |told: Told<'_>| pod_live.tell(told),
            interrupts: &|| self.stop.interrupt.count(),
        };
        let mut session = cluster::open_any(place.clone(), watch)?;
        let found = session.look()?;
        let target = cluster::probe_target(name, &session, found, &place);
        let mut options = options(self.args);
        if options.size_bytes.is_none() {
            options.size_bytes =
                cluster::working_set(&place, session.pods(), options.budget.size_bytes);
        }
        live.note(&format!("{name}: {}", session.whereabouts()));
        keeper.begin("probe", name);
        let mut taking = self.turns.taken_by(who, &mut session);
        let mut keeping = KeepingSession {
            session: &mut taking,
            keeper,
        };
        let mut outcome = probe(&mut keeping, &target, &options, live);
        live.end();
        drop(taking);
        if let Ok(result) = &mut outcome {
            let pods = cluster::note_of_pods(&session, &place);
            result.notes.extend(pods);
        }
        hand_on(self.ended(who, outcome, keeper));
        // Removal may take long, and fail: the result is out by then.
        Ok(Box::new(session).close())
    }

    /// What is to be said where an earlier target is the same.
    fn note_of_equals(&self, who: usize) -> Option<String> {
        let targets = &self.args.targets;
        let equal = (0..who).find(|earlier| target::are_same(&targets[*earlier], &targets[who]))?;
        let what = match targets[who] == targets[equal] {
            true => format!("{} was measured already", targets[who]),
            false => format!("{} is {} again", targets[who], targets[equal]),
        };
        Some(format!(
            "{what}: an A/A test, in which what differs is chance or drift of the machine"
        ))
    }

    fn kept(&self, name: &str, id: Option<String>) {
        match id {
            Some(id) if self.args.targets.len() > 1 => {
                eprintln!("{name}: kept in the history as {id}");
            }
            Some(id) => eprintln!("kept in the history as {id}"),
            None => {}
        }
    }
}

/// The label that results of targets that were probed in turns have in common.
const TOGETHER: &str = "together";

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn options(args: &ProbeArgs) -> ProbeOptions {
    let mut budget = if args.quick {
        Budget::QUICK
    } else {
        Budget::NORMAL
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
