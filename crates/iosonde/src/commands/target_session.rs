//! The session of a study: local targets share one session, each cluster target has its own pods.

use super::ceph::remote_storage;
use super::cold::drop_osds_for;
use super::outside::Outside;
use super::target::PreparedTarget;
use super::{cluster, consent, target};
use crate::args::{BesideArgs, CephArgs, ClusterArgs, ConsentArgs};
use crate::failure::{CommandError, report_all};
use crate::live::pod_setup::PodLive;
use crate::signals::StopSignal;
use iosonde_cluster::{PodSession, Pods, SetupEvent, SetupObserver};
use iosonde_engine::runner::{LocalRunner, LocalSession, Permissions};
use iosonde_job::plan::{Job, Plan};
use iosonde_job::{Neighbour, TargetUri};
use iosonde_machine::consent::Consent;
use iosonde_result::cache_state::{ColdLayers, LayerCache, combine_caches, describe_caches};
use iosonde_result::observer::Observer;
use iosonde_result::pods::PodTotals;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::StudyNeighbour;
use iosonde_study::probe::{ProbeBudget, StudyTarget};
use iosonde_study::sweep::SweepGrid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Shows the setup and removal of a pod.
pub(super) type SetupReporter = Box<dyn FnMut(SetupEvent<'_>)>;

/// One for each target.
pub(super) fn setup_reporters(names: &[String]) -> Vec<SetupReporter> {
    let reporter = |name: &String| -> SetupReporter {
        let mut live = PodLive::new(name);
        Box::new(move |event| live.show_event(event))
    };
    names.iter().map(reporter).collect()
}

/// Returns the neighbour of `--beside`. Refuses it before anything is made if there is no target,
/// or if it may not write to one on this machine. Volumes of pods are checked once they are
/// mounted.
pub(super) fn neighbour_on(
    beside: &BesideArgs,
    names: &[String],
    (args, consent, ceph): (&ClusterArgs, &ConsentArgs, &CephArgs),
) -> Result<Option<Neighbour>, CommandError> {
    let Some(neighbour) = beside.neighbour()? else {
        return Ok(None);
    };
    if names.is_empty() {
        return Err(CommandError::usage(
            "--beside needs a target: the neighbour has no files of its own",
            "name a directory, a file or a device to sweep on",
        ));
    }
    for name in names {
        if cluster::target_within(name, args)?.is_none() {
            let kind = target::check(name, &consent.allow_overwrite, &ceph.access())?;
            let (name, path) = (name.clone(), name.clone());
            StudyNeighbour::new(&neighbour, &StudyTarget { name, path, kind })?;
        }
    }
    Ok(Some(neighbour))
}

/// Refuses options of clusters if no target is in a Kubernetes cluster, and `--medium` without an
/// emptyDir.
pub(super) fn refuse_unused_options(
    names: &[String],
    args: &ClusterArgs,
) -> Result<(), CommandError> {
    let is_here = |name: &String| matches!(cluster::target_within(name, args), Ok(None));
    match args.given_option() {
        Some(option) if names.iter().all(is_here) => Err(CommandError::usage(
            format!("{option} has no effect: no target is in a Kubernetes cluster"),
            format!("leave out {option}, or name a target in a cluster, e.g. sc://CLASS"),
        )),
        _ => refuse_unused_medium(names, args),
    }
}

/// Refuses `--medium` if no target is an emptyDir, the only volume that it describes. Pods of the
/// user take no option of new pods, and are refused with all of them.
pub(super) fn refuse_unused_medium(
    names: &[String],
    args: &ClusterArgs,
) -> Result<(), CommandError> {
    let has_no_medium = |name: &String| match cluster::target_within(name, args) {
        Ok(Some((target, _))) => !matches!(target, TargetUri::EmptyDir | TargetUri::Pods { .. }),
        Ok(None) => true,
        // The error of the name is reported instead.
        Err(_) => false,
    };
    if args.medium.is_none() || !names.iter().all(has_no_medium) {
        return Ok(());
    }
    Err(CommandError::usage(
        "--medium has no effect: no target is an emptyDir",
        "leave out --medium, which only the target emptydir:// has",
    ))
}

/// A target that is ready to be measured.
pub(super) struct SizedTarget {
    pub(super) target: StudyTarget,
    /// Default working set. `None`: the study's default.
    pub(super) size_bytes: Option<u64>,
}

/// Prepared targets as one session. Its resources are removed when it is closed or dropped.
pub(super) struct TargetSession<'a> {
    pub(super) all: Vec<SizedTarget>,
    local: LocalSession,
    _opened: Vec<PreparedTarget>,
    pods: Vec<PodSession<'a>>,
    /// Notes for the result.
    notes: Vec<String>,
    /// State of the caches at the start of the runs so far.
    caches: Vec<LayerCache>,
    /// Figures of each of several pods over the runs so far.
    pod_totals: PodTotals,
}

impl<'a> TargetSession<'a> {
    /// Opens all targets, in order.
    pub(super) fn open(
        names: &[String],
        consent: &Consent,
        (args, pods, ceph, cold): (&ClusterArgs, Option<Pods>, &CephArgs, ColdLayers),
        stop: &StopSignal,
        interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
        reporters: &'a mut [SetupReporter],
        note: &mut dyn FnMut(&str),
    ) -> Result<TargetSession<'a>, CommandError> {
        let is_here = |name: &&String| matches!(cluster::target_within(name, args), Ok(None));
        if pods.is_some() {
            let here = names.iter().find(is_here).map(String::as_str);
            let unnamed = names.is_empty().then_some("the target of the jobs");
            if let Some(name) = here.or(unnamed) {
                return Err(cluster::no_pods_of(name));
            }
        }
        refuse_unused_options(names, args)?;
        consent::to_root(names, args, interrupts)?;
        let mut session = TargetSession {
            all: Vec::new(),
            local: LocalRunner {
                consent: consent.clone(),
                remote: remote_storage(ceph.access()),
                interrupt: stop.interrupt.clone(),
                permissions: Some(Permissions::default()),
                cold,
                ..LocalRunner::default()
            }
            .open(),
            _opened: Vec::new(),
            pods: Vec::new(),
            notes: Vec::new(),
            caches: Vec::new(),
            pod_totals: PodTotals::default(),
        };
        let paths = consent.paths();
        let here = open_local_targets(names, args, |name| {
            PreparedTarget::open(name, &paths, &ceph.access(), note)
        })?;
        for ((name, reporter), opened) in names.iter().zip(reporters).zip(here) {
            match (cluster::target_within(name, args)?, opened) {
                (Some((target, args)), _) => {
                    let what = (target, &args, pods, paths.as_slice());
                    session.open_pods(name, what, (cold, ceph), interrupts, reporter, note)?;
                }
                (None, None) => {}
                (None, Some(opened)) => {
                    if !opened.target.kind.is_writable() {
                        session.local.only_read(PathBuf::from(&opened.target.path));
                    }
                    session.all.push(SizedTarget {
                        target: opened.target.clone(),
                        size_bytes: None,
                    });
                    opened.note_in(&session.local.held_paths());
                    session._opened.push(opened);
                }
            }
        }
        // Without named targets, the job file names the files.
        if !names.is_empty() {
            let permitted = session
                .all
                .iter()
                .flat_map(|place| place.target.permitted());
            session.local.permit_targets(permitted.collect());
        }
        Ok(session)
    }

    /// Without consent, existing files that the jobs themselves name are only read.
    pub(super) fn keep_what_is_there(&mut self, grid: &SweepGrid, consent: &Consent) {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let consent: Vec<PathBuf> = consent.paths().iter().map(real).collect();
        let mut kept = BTreeSet::new();
        for curve in &grid.curves {
            // A trace from a pipe can be read only once, so it is not read here.
            let traces = curve.job.replay.iter().flat_map(|replay| &replay.traces);
            if traces.into_iter().any(|trace| !Path::new(trace).is_file()) {
                continue;
            }
            let plan = Plan {
                jobs: vec![curve.job.clone()],
                global_options: Vec::new(),
            };
            kept.extend(LocalRunner::default().existing_targets(&plan));
        }
        for path in kept {
            if !consent.contains(&real(&path)) {
                self.local.only_read(path);
            }
        }
    }

    /// Permits accesses of jobs outside of their targets. Pods have no place for logs.
    pub(super) fn permit_outside(
        &mut self,
        outside: &Outside,
        grid: &SweepGrid,
    ) -> Result<(), CommandError> {
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

    /// The neighbour of each target, if there is a neighbour.
    pub(super) fn neighbours(
        &self,
        neighbour: Option<&Neighbour>,
    ) -> Result<Vec<StudyNeighbour>, CommandError> {
        let Some(neighbour) = neighbour else {
            return Ok(Vec::new());
        };
        let targets = self.all.iter().map(|sized| &sized.target);
        let placed = targets.map(|target| StudyNeighbour::new(neighbour, target));
        Ok(placed.collect::<Result<_, _>>()?)
    }

    /// Number of pods that run each plan concurrently.
    pub(super) fn parties(&self) -> u32 {
        let most = self.pods.iter().map(PodSession::pod_count).max();
        most.map_or(1, |pods| pods as u32)
    }

    /// Notes for the result.
    pub(super) fn notes(&self) -> Vec<String> {
        let caches = describe_caches(&self.caches);
        let caches = caches.map(|words| format!("caches at the start of the runs: {words}"));
        self.notes.iter().cloned().chain(caches).collect()
    }

    /// A table of each pod and node over the runs so far. Empty without several pods.
    pub(super) fn table_of_pods(&self) -> String {
        iosonde_report::pods::totals_text(&self.pod_totals)
    }

    fn open_pods(
        &mut self,
        name: &str,
        (target, args, pods, consent): (TargetUri, &ClusterArgs, Option<Pods>, &[PathBuf]),
        (cold, ceph): (ColdLayers, &CephArgs),
        interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
        reporter: &'a mut SetupReporter,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), CommandError> {
        let options = cluster::options_of_pods(target, args, pods)?;
        let options = cluster::with_consent(options, name, consent);
        let options = cluster::with_cold(options, cold);
        let watch = SetupObserver {
            tell: reporter.as_mut(),
            interrupts,
        };
        let mut session = cluster::open_unwatched(&options, watch)?;
        drop_osds_for(&mut session, cold, ceph.access());
        let options = cluster::with_selected_pods(options, &session);
        let found = session.inspect_path()?;
        let target = cluster::probe_target(name, &session, found, &options);
        if self.pods.iter().any(|other| other.path() == session.path()) {
            return Err(CommandError::usage(
                format!("{name}: one study cannot distinguish several block volumes"),
                "measure the volumes one after the other",
            ));
        }
        note(&format!("{name}: {}", session.location()));
        if let Some(said) = cluster::note_of_pods(&session, &options)
            && !self.notes.contains(&said)
        {
            self.notes.push(said);
        }
        self.all.push(SizedTarget {
            target,
            size_bytes: cluster::working_set(
                &options,
                session.pod_count(),
                ProbeBudget::NORMAL.size_bytes,
            ),
        });
        self.pods.push(session);
        Ok(())
    }

    /// The session for a plan, by the paths of its files.
    fn session(&mut self, plan: &Plan) -> &mut dyn Session {
        let is_alone = self._opened.is_empty() && self.pods.len() == 1;
        let of =
            |pod: &PodSession<'_>| is_alone || plan.jobs.iter().any(|job| is_in(job, pod.path()));
        match self.pods.iter_mut().find(|pod| of(pod)) {
            Some(pod) => pod,
            None => &mut self.local,
        }
    }
}

/// Opens the local targets. `None` stands for those in clusters. Reports all errors together,
/// before anything is created in a cluster.
fn open_local_targets<Found>(
    names: &[String],
    args: &ClusterArgs,
    mut open: impl FnMut(&str) -> Result<Found, CommandError>,
) -> Result<Vec<Option<Found>>, CommandError> {
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
    report_all(failures).map(|()| opened)
}

/// Whether a file or directory of the job is `path` or lies below it.
fn is_in(job: &Job, path: &str) -> bool {
    let files = &job.files;
    let mut names = files.filenames.iter().chain(&files.directories);
    names.any(|name| Path::new(name).starts_with(path))
}

impl Session for TargetSession<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let result = self.session(plan).run(plan, observer)?;
        let both = [self.caches.as_slice(), result.caches.as_slice()];
        self.caches = combine_caches(both.into_iter());
        self.pod_totals.add(&result.pods);
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        let mut outcome = Box::new(self.local).close();
        for pod in self.pods {
            let closed = Box::new(pod).close();
            outcome = outcome.and(closed);
        }
        // Working files are removed when `_opened` is dropped.
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Medium;

    #[test]
    fn cluster_options_without_a_cluster_target_are_refused() {
        let mut args = ClusterArgs::default();
        let refused = |names: &[&str], args: &ClusterArgs| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            refuse_unused_options(&names, args).err()
        };
        assert!(refused(&["/data"], &args).is_none());
        args.claim_size = Some(1 << 30);
        assert!(refused(&["/data", "sc://fast"], &args).is_none());
        for names in [&["/data", "sim:nvme"][..], &["rados://p"], &[]] {
            let failure = refused(names, &args).unwrap();
            assert_eq!(failure.status(), 2);
            assert_eq!(
                failure.usage_parts().0,
                "--claim-size has no effect: no target is in a Kubernetes cluster"
            );
        }
    }

    #[test]
    fn medium_without_an_empty_dir_is_refused() {
        let args = ClusterArgs {
            medium: Some(Medium::Memory),
            ..ClusterArgs::default()
        };
        let refused = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            refuse_unused_options(&names, &args).err()
        };
        for names in [&["sc://fast", "pvc://data"][..], &["/data", "sc://fast"]] {
            let failure = refused(names).unwrap();
            assert_eq!(failure.status(), 2);
            assert_eq!(
                failure.usage_parts().0,
                "--medium has no effect: no target is an emptyDir"
            );
        }
        for names in [
            &["sc://fast", "emptydir://"][..],
            &["pods://app=fio"],
            &["sc://"],
        ] {
            assert!(refused(names).is_none(), "{names:?}");
        }
    }

    #[test]
    fn directory_holds_no_file_of_a_longer_name() {
        let mut job = Job::new("job");
        let mut is_in_data = |name: &str| {
            job.files.filenames = vec![name.to_owned()];
            is_in(&job, "/data/a")
        };
        assert!(is_in_data("/data/a") && is_in_data("/data/a/file"));
        assert!(!is_in_data("/data/ab") && !is_in_data("/data/ab/a") && !is_in_data("/data"));
        job.files.filenames.clear();
        job.files.directories = vec!["/data/a/sub".to_owned()];
        assert!(is_in(&job, "/data/a/") && !is_in(&job, "/data/a/su"));
    }
}
