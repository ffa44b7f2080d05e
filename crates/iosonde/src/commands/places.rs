//! Where the runs of one study go: all targets on this machine share a session, each target in a cluster has pods of its own.

use super::outside::Outside;
use super::target::Opened;
use super::{cluster, consent};
use crate::args::{CephArgs, ClusterArgs};
use crate::failure::{Failure, told_at_once};
use crate::live::cluster::PodLive;
use crate::signals::Stop;
use iosonde_cluster::{AnySession, Pods, Told, Watch};
use iosonde_engine::runner::{LocalRunner, LocalSession, Permissions};
use iosonde_job::Target;
use iosonde_job::plan::{Job, Plan};
use iosonde_machine::consent::Consent;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_study::probe::{Budget, ProbeTarget};
use iosonde_study::sweep::Grid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What shows a pod while it is made and removed.
pub(super) type Tell = Box<dyn FnMut(Told<'_>)>;

/// One for each target.
pub(super) fn tells(names: &[String]) -> Vec<Tell> {
    let tell = |name: &String| -> Tell {
        let mut live = PodLive::new(name);
        Box::new(move |told| live.tell(told))
    };
    names.iter().map(tell).collect()
}

/// A target that is ready to be measured.
pub(super) struct Place {
    pub(super) target: ProbeTarget,
    /// How much of it is used where nothing is said; `None` is what the study takes.
    pub(super) size_bytes: Option<u64>,
}

/// Targets that are ready, as one session. Everything that was made for them is removed when it is closed or dropped.
pub(super) struct Places<'a> {
    pub(super) all: Vec<Place>,
    local: LocalSession,
    _opened: Vec<Opened>,
    pods: Vec<AnySession<'a>>,
    /// What is to be said in the result.
    notes: Vec<String>,
}

impl<'a> Places<'a> {
    /// Opens all targets, in order.
    pub(super) fn open(
        names: &[String],
        consent: &Consent,
        (args, pods, ceph): (&ClusterArgs, Option<Pods>, &CephArgs),
        stop: &Stop,
        interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
        tells: &'a mut [Tell],
        note: &mut dyn FnMut(&str),
    ) -> Result<Places<'a>, Failure> {
        let is_here = |name: &&String| matches!(cluster::target_within(name, args), Ok(None));
        if pods.is_some() {
            match names.iter().find(is_here) {
                Some(name) => return Err(cluster::no_pods_of(name)),
                None if names.is_empty() => return Err(cluster::no_pods_of("what the jobs name")),
                None => {}
            }
        }
        consent::to_root(names, args, interrupts)?;
        let mut places = Places {
            all: Vec::new(),
            local: LocalRunner {
                consent: consent.clone(),
                ceph: ceph.access(),
                interrupt: stop.interrupt.clone(),
                permissions: Some(Permissions::default()),
                ..LocalRunner::default()
            }
            .open(),
            _opened: Vec::new(),
            pods: Vec::new(),
            notes: Vec::new(),
        };
        let paths = consent.paths();
        let here = here(names, args, |name| {
            Opened::open(name, &paths, &ceph.access(), note)
        })?;
        for ((name, tell), opened) in names.iter().zip(tells).zip(here) {
            match (cluster::target_within(name, args)?, opened) {
                (Some((target, args)), _) => {
                    let what = (target, &args, pods, paths.as_slice());
                    places.open_pods(name, what, interrupts, tell, note)?;
                }
                (None, None) => {}
                (None, Some(opened)) => {
                    if !opened.target.kind.is_writable() {
                        places.local.only_read(PathBuf::from(&opened.target.path));
                    }
                    places.all.push(Place {
                        target: opened.target.clone(),
                        size_bytes: None,
                    });
                    opened.note_in(&places.local.held_paths());
                    places._opened.push(opened);
                }
            }
        }
        // Where none is named, the jobs of a file say themselves where they go.
        if !names.is_empty() {
            let permitted = places.all.iter().flat_map(|place| place.target.permitted());
            places.local.permit_targets(permitted.collect());
        }
        Ok(places)
    }

    /// Files that the jobs of a file name themselves, and that are there already, are only read without consent.
    pub(super) fn keep_what_is_there(&mut self, grid: &Grid, consent: &Consent) {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let consent: Vec<PathBuf> = consent.paths().iter().map(real).collect();
        let mut kept = BTreeSet::new();
        for curve in &grid.curves {
            // A pipe can be read once.
            let traces = curve.job.replay.iter().flat_map(|replay| &replay.traces);
            if traces.into_iter().any(|trace| !Path::new(trace).is_file()) {
                continue;
            }
            let plan = Plan {
                jobs: vec![curve.job.clone()],
                global_options: Vec::new(),
            };
            kept.extend(LocalRunner::default().there_already(&plan));
        }
        for path in kept {
            if !consent.contains(&real(&path)) {
                self.local.only_read(path);
            }
        }
    }

    /// What jobs of a file may do outside of their targets. In a pod they find no place for logs.
    pub(super) fn permit_outside(&mut self, outside: &Outside, grid: &Grid) -> Result<(), Failure> {
        self.local
            .permit_outside(outside.logs(), outside.commands());
        for curve in grid.curves.iter().filter(|_| !self.pods.is_empty()) {
            cluster::refuse_what_stays_behind(&Plan {
                jobs: vec![curve.job.clone()],
                global_options: Vec::new(),
            })?;
        }
        Ok(())
    }

    /// How many pods run each plan at the same time.
    pub(super) fn parties(&self) -> u32 {
        let most = self.pods.iter().map(AnySession::pods).max();
        most.map_or(1, |pods| pods as u32)
    }

    /// What is to be said in the result.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn open_pods(
        &mut self,
        name: &str,
        (target, args, pods, consent): (Target, &ClusterArgs, Option<Pods>, &[PathBuf]),
        interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
        tell: &'a mut Tell,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), Failure> {
        let options = cluster::options_of_pods(target, args, pods)?;
        let options = cluster::with_consent(options, name, consent);
        let watch = Watch {
            tell: tell.as_mut(),
            interrupts,
        };
        let mut session = cluster::open_unwatched(&options, watch)?;
        let found = session.look()?;
        let target = cluster::probe_target(name, &session, found, &options);
        if self.pods.iter().any(|other| other.path() == session.path()) {
            return Err(Failure::usage(
                format!("{name}: several block volumes cannot be told apart in one study"),
                "measure one after the other",
            ));
        }
        note(&format!("{name}: {}", session.whereabouts()));
        if let Some(said) = cluster::note_of_pods(&session, &options)
            && !self.notes.contains(&said)
        {
            self.notes.push(said);
        }
        self.all.push(Place {
            target,
            size_bytes: cluster::working_set(&options, session.pods(), Budget::NORMAL.size_bytes),
        });
        self.pods.push(session);
        Ok(())
    }

    /// Where a plan belongs: its files say so.
    fn session(&mut self, plan: &Plan) -> &mut dyn Session {
        let is_alone = self._opened.is_empty() && self.pods.len() == 1;
        let of =
            |pod: &AnySession<'_>| is_alone || plan.jobs.iter().any(|job| is_in(job, pod.path()));
        match self.pods.iter_mut().find(|pod| of(pod)) {
            Some(pod) => pod,
            None => &mut self.local,
        }
    }
}

/// Opens the targets of this machine; `None` stands for those in clusters. What is wrong is told of all, before anything is made in a
/// cluster.
fn here<Found>(
    names: &[String],
    args: &ClusterArgs,
    mut open: impl FnMut(&str) -> Result<Found, Failure>,
) -> Result<Vec<Option<Found>>, Failure> {
    let mut failures = Vec::new();
    let opened = names.iter().map(|name| {
        let is_here = match cluster::target_within(name, args) {
            Ok(found) => found.is_none(),
            Err(failure) => {
                failures.push(failure);
                false
            }
        };
        let opened = is_here.then(|| open(name));
        opened.and_then(|opened| opened.map_err(|failure| failures.push(failure)).ok())
    });
    let opened = opened.collect();
    told_at_once(failures).map(|()| opened)
}

fn is_in(job: &Job, path: &str) -> bool {
    let files = &job.files;
    let mut names = files.filenames.iter().chain(&files.directories);
    names.any(|name| name.starts_with(path))
}

impl Session for Places<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        self.session(plan).run(plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        let mut outcome = Box::new(self.local).close();
        for pod in self.pods {
            let closed = Box::new(pod).close();
            outcome = outcome.and(closed);
        }
        // The working files go with `_opened`.
        outcome
    }
}
