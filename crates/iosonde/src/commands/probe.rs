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
use iosonde_engine::device::consent::Consent;
use iosonde_engine::local::LocalRunner;
use iosonde_job::Target;
use iosonde_result::session::{RunError, Session};
use iosonde_study::limits::{Held, Outcome, Promise};
use iosonde_study::probe::{
    Budget, ProbeError, ProbeOptions, ProbeResult, ProbeTarget, Turns, Watcher, probe, working_set,
};
use std::path::PathBuf;
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
    let (results, failed, closed) = probes.all(keeper)?;
    let written = print(args, &results, output);
    let concluded = concluded(args, &stop, &results, failed);
    end([written, concluded], closed)
}

fn print(args: &ProbeArgs, results: &[ProbeResult], mut output: Output) -> Result<(), Failure> {
    for result in results.iter().filter(|_| args.format == Format::Table) {
        let text = report::probe::table::text_among(result, results);
        output.write(text.as_bytes())?;
    }
    match results.is_empty() {
        true => output.finish(),
        false => output.save(report::probe::rest(results, args.format)?.as_bytes()),
    }
}

fn concluded(
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
    /// Probes all targets. What has been measured counts, also where another target fails, or cannot be left as it was.
    fn all(&self, mut keeper: Keeper) -> Result<Outcomes, Failure> {
        let outcomes = if self.args.targets.len() == 1 {
            vec![self.one(0, ProbeLive::new(self.stop.clone()), &mut keeper)]
        } else {
            self.in_turns(keeper)?
        };
        let (mut results, mut failed, mut closed) = (Vec::new(), None, Ok(()));
        for outcome in outcomes {
            match outcome {
                Ok((result, left)) => {
                    results.push(result);
                    closed = closed.and(left);
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        Ok((results, failed, closed))
    }

    /// A thread for each target, of which one runs at a time.
    fn in_turns(&self, mut keeper: Keeper) -> Result<Vec<Result<Probed, Failure>>, Failure> {
        let targets = &self.args.targets;
        eprintln!(
            "{} targets take turns, phase by phase, so that a drift of this machine favours none",
            targets.len()
        );
        keeper.tell_notes();
        // Studies of several targets go on at once, so each has its own way into the history. All are open before the
        // first turn: whoever takes part must come to its turns.
        let mut keepers = vec![keeper];
        for _ in 1..targets.len() {
            keepers.push(Keeper::open(&self.args.keep)?);
        }
        let together = random_id().map_err(anyhow::Error::from)?;
        for keeper in &mut keepers {
            keeper.label(TOGETHER, &together);
        }
        Ok(std::thread::scope(|scope| {
            let begin = |(who, mut keeper): (usize, Keeper)| {
                scope.spawn(move || {
                    let live = ProbeLive::of_several(who + 1, self.stop.clone());
                    self.one(who, live, &mut keeper)
                })
            };
            let begun: Vec<_> = keepers.into_iter().enumerate().map(begin).collect();
            begun.into_iter().map(joined).collect()
        }))
    }

    fn one(&self, who: usize, mut live: ProbeLive, keeper: &mut Keeper) -> Result<Probed, Failure> {
        let name = &self.args.targets[who];
        let (outcome, closed) = match cluster::target_within(name, &self.args.cluster)? {
            Some((target, args)) => self.in_cluster(who, target, &args, &mut live, keeper)?,
            None => self.here(who, &mut live, keeper)?,
        };
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
        self.kept(name, keeper.finish(probe_document(&mut result).as_ref()));
        keeper.tell_notes();
        Ok((result, closed))
    }

    fn here(
        &self,
        who: usize,
        live: &mut ProbeLive,
        keeper: &mut Keeper,
    ) -> Result<Ended, Failure> {
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
        let mut taking = self.turns.taken_by(who, &mut session);
        taking.begin();
        let opened = Opened::open(name, consent, &self.args.ceph.access(), &mut |note| {
            live.note(note);
        })?;
        keeper.begin("probe", &opened.target.name);
        let mut keeping = KeepingSession {
            session: &mut taking,
            keeper,
        };
        let outcome = probe(&mut keeping, &opened.target, &options(self.args), live);
        live.end();
        drop(taking);
        let closed = Box::new(session).close();
        // The working file goes before anything is printed: whoever reads the result finds the directory as it was.
        drop(opened);
        Ok((outcome, closed))
    }

    fn in_cluster(
        &self,
        who: usize,
        target: Target,
        args: &ClusterArgs,
        live: &mut ProbeLive,
        keeper: &mut Keeper,
    ) -> Result<Ended, Failure> {
        // The pod is made in the first turn, not beside what another target measures.
        let _turn = self.turns.come(who);
        let name = &self.args.targets[who];
        let place = cluster::options_of_pods(target.clone(), args, self.args.pods.pods())?;
        let mut pod_live = PodLive::new(name);
        let watch = Watch {
            tell: &mut |told: Told<'_>| pod_live.tell(told),
            interrupts: &|| self.stop.interrupt.count(),
        };
        let mut session = cluster::open_any(target, args, self.args.pods.pods(), watch)?;
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
        let closed = Box::new(session).close();
        if let (Err(_), Err(left)) = (&outcome, &closed) {
            live.note(&format!("{left}; {}", left.remedy()));
        }
        Ok((outcome, closed))
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

/// What was found, why a target failed, and whether all could be left as they were.
type Outcomes = (Vec<ProbeResult>, Option<Failure>, Result<(), RunError>);

/// What a probe found, and whether what was made for it could be removed.
type Probed = (ProbeResult, Result<(), RunError>);

/// The same where it may have found nothing.
type Ended = (Result<ProbeResult, ProbeError>, Result<(), RunError>);

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
