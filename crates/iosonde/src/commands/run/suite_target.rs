//! Targets of a suite: local ones, and pods of a cluster that last for the whole suite.

use super::job_target::JobTarget;
use crate::args::{ClusterArgs, RunArgs};
use crate::commands::target::{PreparedTarget, check};
use crate::commands::target_session::{SetupReporter, SizedTarget};
use crate::commands::unused_file_names::UnusedNames;
use crate::commands::{cluster, cold};
use crate::failure::CommandError;
use iosonde_cluster::{ClusterOptions, NeededSpace, PodPlacement, PodSession, Pods, SetupObserver};
use iosonde_engine::runner::{HeldPaths, LocalSession};
use iosonde_job::neighbour::{fit_neighbour, move_to_end};
use iosonde_job::target_scheme::is_path_name;
use iosonde_job::{Plan, TargetUri};
use iosonde_machine::identify::identify;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_result::words;
use iosonde_study::probe::{ProbeBudget, StudyTargetKind};
use iosonde_suite::{StepKind, Suite, SuitePods, SuiteStep};
use std::path::{Path, PathBuf};

/// A target for steps. Its resources are removed when it is closed or dropped.
pub(super) enum PreparedSuiteTarget<'a> {
    /// On this machine. All such targets share a session.
    Here(JobTarget),
    /// In a cluster.
    Pod(Box<Pod<'a>>),
}

/// A pod with the target's volume.
pub(super) struct Pod<'a> {
    name: String,
    session: PodSession<'a>,
    options: ClusterOptions,
}

impl<'a> PreparedSuiteTarget<'a> {
    /// Creates the scratch directory or the pod.
    pub(super) fn open(
        name: &str,
        (args, suite): (&RunArgs, &Suite),
        interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
        reporter: &'a mut SetupReporter,
        note: &mut dyn FnMut(&str),
    ) -> Result<PreparedSuiteTarget<'a>, CommandError> {
        let Some((target, within)) = cluster::target_within(name, &args.cluster)? else {
            let kind = check(
                name,
                &args.written.consent.allow_overwrite,
                &args.ceph.access(),
            )?;
            return Ok(PreparedSuiteTarget::Here(JobTarget::open(
                name, kind, note,
            )?));
        };
        let options = options_of_suite(target, (args, suite), &within)?;
        let consent = &args.written.consent.allow_overwrite;
        let options = cluster::with_consent(options, name, consent);
        let cold = args.cold.layers();
        let options = cluster::with_cold(options, cold);
        let watch = SetupObserver {
            tell: reporter.as_mut(),
            interrupts,
        };
        let mut session = cluster::open_unwatched(&options, watch)?;
        cold::drop_osds_for(&mut session, cold, args.ceph.access());
        let options = cluster::with_selected_pods(options, &session);
        note(&format!("{name}: {}", session.location()));
        Ok(PreparedSuiteTarget::Pod(Box::new(Pod {
            name: name.to_owned(),
            session,
            options,
        })))
    }

    /// The target, if it has no consent to overwrite.
    pub(super) fn only_read(&self) -> Option<PathBuf> {
        match self {
            PreparedSuiteTarget::Here(job_target) => job_target.only_read(),
            PreparedSuiteTarget::Pod(_) => None,
        }
    }

    /// Local paths that relocated jobs may access.
    pub(super) fn permitted(&self) -> Vec<String> {
        match self {
            PreparedSuiteTarget::Here(job_target) => job_target.permitted(),
            PreparedSuiteTarget::Pod(_) => Vec::new(),
        }
    }

    /// Relocates a plan's jobs to the target. Forbidden accesses are errors. Returns notes.
    pub(super) fn put(&mut self, plan: &mut Plan) -> Result<Vec<String>, CommandError> {
        match self {
            PreparedSuiteTarget::Here(job_target) => Ok(job_target.put(plan)?),
            PreparedSuiteTarget::Pod(pod) => {
                cluster::refuse_what_stays_behind(plan)?;
                if plan.neighbour().is_some() {
                    let found = pod.session.inspect_path()?;
                    let target =
                        cluster::probe_target(&pod.name, &pod.session, found, &pod.options);
                    place_neighbour(plan, &target.kind);
                }
                Ok(pod.session.relocate_plan(plan))
            }
        }
    }

    /// Registers the scratch directory's descriptor, by which plans access it.
    pub(super) fn note_in(&self, held: &HeldPaths) {
        if let PreparedSuiteTarget::Here(job_target) = self {
            job_target.note_in(held);
        }
    }

    /// Prepares the target for a study. Returns the local target that was created for this study
    /// alone; dropping it removes its working file.
    pub(super) fn prepare_for_study(
        &mut self,
        name: &str,
        args: &RunArgs,
        note: &mut dyn FnMut(&str),
    ) -> Result<(SizedTarget, Option<PreparedTarget>), CommandError> {
        match self {
            PreparedSuiteTarget::Here(_) => {
                let opened = PreparedTarget::open(
                    name,
                    &args.written.consent.allow_overwrite,
                    &args.ceph.access(),
                    note,
                )?;
                let sized = SizedTarget {
                    target: opened.target.clone(),
                    size_bytes: None,
                };
                Ok((sized, Some(opened)))
            }
            PreparedSuiteTarget::Pod(pod) => {
                let found = pod.session.inspect_path()?;
                let (session, options) = (&pod.session, &pod.options);
                let sized = SizedTarget {
                    target: cluster::probe_target(&pod.name, session, found, options),
                    size_bytes: cluster::working_set(
                        options,
                        session.pod_count(),
                        ProbeBudget::NORMAL.size_bytes,
                    ),
                };
                Ok((sized, None))
            }
        }
    }

    /// The session that runs its plans.
    pub(super) fn session<'s>(&'s mut self, here: &'s mut LocalSession) -> &'s mut dyn Session
    where
        'a: 's,
    {
        match self {
            PreparedSuiteTarget::Here(_) => here,
            PreparedSuiteTarget::Pod(pod) => &mut pod.session,
        }
    }

    /// Number of pods that run each plan at the same time.
    pub(super) fn pod_count(&self) -> u32 {
        match self {
            PreparedSuiteTarget::Here(_) => 1,
            PreparedSuiteTarget::Pod(pod) => u32::try_from(pod.session.pod_count()).unwrap_or(1),
        }
    }

    /// Note on figures that are sums over several pods.
    pub(super) fn note_of_pods(&self) -> Option<String> {
        match self {
            PreparedSuiteTarget::Here(_) => None,
            PreparedSuiteTarget::Pod(pod) => cluster::note_of_pods(&pod.session, &pod.options),
        }
    }

    /// Removes the resources.
    pub(super) fn close(self) -> Result<(), RunError> {
        match self {
            PreparedSuiteTarget::Here(_) => Ok(()),
            PreparedSuiteTarget::Pod(pod) => Box::new(pod.session).close(),
        }
    }
}

/// Sets the size of a plan's neighbour in a volume, and its region on a block volume.
fn place_neighbour(plan: &mut Plan, kind: &StudyTargetKind) {
    match kind {
        StudyTargetKind::Directory { free_bytes } => fit_neighbour(plan, *free_bytes),
        StudyTargetKind::Existing { bytes, .. } => {
            let neighbours = plan.jobs.iter_mut().filter(|job| job.schedule.neighbour);
            neighbours.for_each(|job| move_to_end(job, *bytes));
        }
        StudyTargetKind::Pool { .. } | StudyTargetKind::Simulated { .. } => {}
    }
}

/// A target that passed its check.
pub(super) struct CheckedTarget {
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// Size of the volume, if known.
    pub(super) volume_bytes: Option<u64>,
    /// File names of jobs that the target replaces. `None`: they are names in the target.
    pub(super) unused_names: Option<UnusedNames>,
}

/// Returns the pods that run each step at the same time: those of the command line, else those of
/// the suite.
pub(super) fn pods_of_suite(args: &RunArgs, suite: &Suite) -> Option<Pods> {
    let of_suite = suite.pods.map(|pods| match pods {
        SuitePods::Count(count) => Pods {
            count: Some(count),
            placement: PodPlacement::Any,
            shared: false,
            checks_shared_file: false,
        },
        SuitePods::PerNode => Pods {
            count: None,
            placement: PodPlacement::PerNode,
            shared: false,
            checks_shared_file: false,
        },
    });
    args.pods.pods().or(of_suite)
}

/// Options of the pods of a suite, with the space that the files of its largest step need.
fn options_of_suite(
    target: TargetUri,
    (args, suite): (&RunArgs, &Suite),
    within: &ClusterArgs,
) -> Result<ClusterOptions, CommandError> {
    let options = cluster::options_of_pods(target, within, pods_of_suite(args, suite))?;
    let needed = largest_step(&suite.steps, &options).map(|(_, needed)| needed);
    Ok(ClusterOptions { needed, ..options })
}

/// The step whose files need most space in the volume of a pod, and this space. Steps that choose a
/// working set that fits do not count.
fn largest_step<'a>(
    steps: &'a [SuiteStep],
    options: &ClusterOptions,
) -> Option<(&'a SuiteStep, NeededSpace)> {
    let space = |step: &SuiteStep| match &step.what {
        StepKind::Jobs(plan) => cluster::needed_space(plan, options, ("--claim-size", "g")),
        StepKind::Sweep(_) | StepKind::Load(_) | StepKind::Probe(_) | StepKind::Command(_) => None,
    };
    steps
        .iter()
        .filter_map(|step| Some((step, space(step)?)))
        .max_by_key(|(_, needed)| needed.bytes)
}

/// One line on the pods that run each step, or an empty text.
pub(super) fn describe_pods(pods: Option<Pods>) -> String {
    match pods {
        None => String::new(),
        Some(Pods { count: None, .. }) => {
            "each step runs in one pod on each schedulable node at the same time\n".to_owned()
        }
        Some(Pods {
            count: Some(count), ..
        }) => {
            let pods = words::counted(count as usize, "pod");
            format!("each step runs in {pods} at the same time\n")
        }
    }
}

/// Whether the step searches curves instead of measuring every cell.
fn is_search(step: &SuiteStep) -> bool {
    match &step.what {
        StepKind::Sweep(wanted) => !wanted.options.exhaustive,
        _ => false,
    }
}

/// Refuses searches in several pods: their predictions hold for one pod only.
pub(super) fn refuse_searches_in_pods(
    suite: &Suite,
    pods: Option<Pods>,
) -> Result<(), CommandError> {
    let mut steps = suite.steps.iter().filter(|_| pods.is_some());
    match steps.find(|step| is_search(step)) {
        None => Ok(()),
        Some(step) => Err(CommandError::usage(
            format!(
                "`{}`: several pods cannot search curves: predictions hold for one pod only",
                step.workload
            ),
            "write sweep = { exhaustive = true }, which measures every cell",
        )),
    }
}

/// Checks a target, local or in its cluster, without creating or changing anything.
pub(super) fn check_target(
    name: &str,
    args: &RunArgs,
    suite: &Suite,
) -> Result<CheckedTarget, CommandError> {
    if let Some((target, within)) = cluster::target_within(name, &args.cluster)? {
        let options = options_of_suite(target, (args, suite), &within)?;
        let found = cluster::check_options(&options, &|| 0);
        let found = found.map_err(|failure| match largest_step(&suite.steps, &options) {
            Some((step, _)) => failure.in_step(suite, step),
            None => failure,
        })?;
        let notes = found.notes.iter().map(|note| format!("{name}: {note}"));
        return Ok(CheckedTarget {
            notes: notes.collect(),
            volume_bytes: found.volume_bytes,
            unused_names: options.is_block().then_some(UnusedNames::All),
        });
    }
    if pods_of_suite(args, suite).is_some() {
        return Err(cluster::no_pods_of(name));
    }
    let kind = check(
        name,
        &args.written.consent.allow_overwrite,
        &args.ceph.access(),
    )?;
    let is_path = is_path_name(name);
    let volume_bytes = match kind {
        StudyTargetKind::Directory { .. } | StudyTargetKind::Existing { .. } if is_path => {
            let target = identify(Path::new(name)).ok();
            target.and_then(|target| target.volume_bytes())
        }
        StudyTargetKind::Existing { bytes, .. } => Some(bytes),
        _ => None,
    };
    let unused_names = match kind {
        StudyTargetKind::Directory { .. } => None,
        // Jobs on a mapped image have files in its directory.
        StudyTargetKind::Existing { .. } if !is_path && args.ceph.map.is_some() => None,
        StudyTargetKind::Existing { .. } => Some(UnusedNames::All),
        StudyTargetKind::Pool { .. } | StudyTargetKind::Simulated { .. } => {
            Some(UnusedNames::Paths)
        }
    };
    Ok(CheckedTarget {
        notes: Vec::new(),
        volume_bytes,
        unused_names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;

    fn jobs(size: &str) -> SuiteStep {
        let words = ["--name=a".to_owned(), format!("--size={size}")].map(Into::into);
        let parsed = iosonde_job::parse(&words, &FakeEnv::new()).unwrap();
        SuiteStep {
            workload: "a".to_owned(),
            name: "a".to_owned(),
            what: StepKind::Jobs(Box::new(parsed.plan)),
            repetitions: 1,
            beside: None,
        }
    }

    #[test]
    fn largest_step_of_a_suite_is_held_against_its_volume() {
        let options = ClusterOptions::new(TargetUri::StorageClass("nfs".to_owned()));
        let steps = [jobs("100m"), jobs("300m"), jobs("200m")];
        let largest = largest_step(&steps, &options).map(|(_, needed)| needed.bytes);
        assert_eq!(largest, Some(300 << 20));
        assert!(largest_step(&[jobs("50%")], &options).is_none());
    }
}
