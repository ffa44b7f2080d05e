//! `iosonde doctor --cluster`: storage classes and nodes of a cluster, findings, and leftovers.

use super::count_findings;
use super::node_inspection::inspect_nodes;
use crate::args::{AccessMode, ClusterArgs, DoctorArgs, DoctorFormat, VolumeModeArg};
use crate::commands::cluster;
use crate::commands::target_session::refuse_unused_medium;
use crate::commands::unused_cluster_options::{refuse_keep_without_trial, refuse_watched_nodes};
use crate::failure::{CommandError, role_note};
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::leftovers::RemovedLeftovers;
use iosonde_cluster::survey::{ClassFacts, SharingNotTried, Survey, Trial, survey};
use iosonde_cluster::{ClusterOptions, PodPlacement, Pods, SetupEvent, SetupObserver, leftovers};
use iosonde_job::TargetUri;
use iosonde_result::run_error::pod_failure::{FailureCondition, PodRefusal};
use iosonde_result::run_error::{ClusterObstacle, RunError, UnsupportedFeature};
use iosonde_result::session::Session;
use iosonde_result::wire::PathInfo;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Size of a trial's claim. Some drivers refuse smaller claims.
const TRIAL_BYTES: u64 = 1 << 30;
/// Timeout of a trial.
const TRIAL_NS: u64 = 60_000_000_000;
/// Time within which a quota stops counting deleted pods and their claim.
const QUOTA_RELEASE: Duration = Duration::from_secs(10);
/// Interval at which a trial that a quota refuses is repeated.
const QUOTA_RETRY: Duration = Duration::from_millis(250);
/// Pods of the trial of a class whose volumes several nodes can write: on two nodes, if two take
/// them.
const SHARED_TRIAL: Pods = Pods {
    count: Some(2),
    placement: PodPlacement::Spread,
    shared: true,
    checks_shared_file: false,
};

pub(super) fn run(args: &DoctorArgs) -> Result<(), CommandError> {
    cluster::one_cluster(&args.place)?;
    // No pod of these checks has an emptyDir that the user describes.
    refuse_unused_medium(&[], &args.place)?;
    refuse_watched_nodes(&args.place, "doctor --cluster")?;
    refuse_keep_without_trial(args)?;
    let output = Output::open_report(args.output.as_deref())?;
    // The target of these options is not used.
    let options = args.place.options(TargetUri::EmptyDir);
    let mut found = survey(&options)?;
    let mut held = None;
    if args.clean {
        if found.hides_runs {
            return Err(RunError::from(clean_up_forbidden(options.namespace.as_deref())).into());
        }
        let (runs, volumes) = (&found.leftovers, &found.lost_volumes);
        match leftovers::remove(&options, runs, volumes, &found.lost_namespaces) {
            Ok(removed) => eprintln!("{}", removed_in_words(&removed)),
            Err(error) => held = Some(error),
        }
        found = survey(&options)?;
    }
    found.requested_bytes = args.place.ephemeral_storage;
    found.judge();
    let makes_pods = args.trial || args.inspect_nodes;
    let stop = makes_pods.then(StopSignal::listen).transpose()?;
    if let Some(stop) = stop.as_ref().filter(|_| args.inspect_nodes) {
        match inspect_nodes(&found, &args.place, stop) {
            Ok(nodes) => found.inspected = Some(nodes),
            // The rest of the report is printed first.
            Err(CommandError::Run(error)) => {
                stop.check()?;
                held.get_or_insert(error);
            }
            Err(other) => return Err(other),
        }
    }
    if let Some(stop) = stop.as_ref().filter(|_| args.trial) {
        try_classes(&mut found, &args.place, stop)?;
    }
    let text = match args.format {
        DoctorFormat::Table => super::cluster_report::survey_text(&found),
        DoctorFormat::Json => super::cluster_report::survey_json(&found),
    };
    output.save(&text)?;
    if let Some(held) = held {
        return Err(held.into());
    }
    count_findings(&found.findings, args.fail_on)
}

/// Returns the obstacle of a user who may not list runs in this namespace, or in any.
fn clean_up_forbidden(namespace: Option<&str>) -> ClusterObstacle {
    ClusterObstacle::CleanUpForbidden {
        rights: vec!["list jobs".to_owned()],
        role: leftovers::clean_up_role(namespace),
        suggests_namespace: namespace.is_none(),
    }
}

/// Describes the objects that `--clean` removed.
fn removed_in_words(removed: &RemovedLeftovers) -> String {
    let count = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    format!(
        "removed: {}, {}, {}",
        count(removed.runs, "run"),
        count(removed.volumes, "volume"),
        count(removed.namespaces, "namespace")
    )
}

/// Creates a claim of each class, and a pod that mounts it. Two pods exchange data on a volume that
/// several nodes can write.
fn try_classes(
    found: &mut Survey,
    args: &ClusterArgs,
    stop: &StopSignal,
) -> Result<(), CommandError> {
    let nodes = found.nodes.as_ref();
    let has_one_node =
        nodes.is_some_and(|all| all.iter().filter(|node| node.is_usable).count() < 2);
    let mut roles = BTreeSet::new();
    for class in found.classes.iter_mut().flatten() {
        let is_shared = !has_one_node && is_tried_by_two_pods(class, args);
        let attempt = |pods: Option<Pods>| try_class(class, pods, args, stop);
        let outcome = match is_shared {
            true => try_by_two_or_one(&mut roles, attempt),
            false => attempt(None),
        };
        stop.check()?;
        class.trial = Some(match outcome {
            Ok(works) => works,
            Err(CommandError::Run(error)) => {
                roles.extend(error.role_to_apply().map(role_note));
                Trial::Fails {
                    cause: cause(&error),
                    remedy: error.remedy(),
                }
            }
            Err(other) => return Err(other),
        });
    }
    // The report has no room for a manifest. Trials of classes that retain volumes share one, and
    // all others share another.
    for role in &roles {
        eprintln!("{}", role.trim_start());
    }
    found.judge();
    Ok(())
}

/// Tries a class by two pods, or by one if rights, quota or nodes do not suffice for two. Adds the
/// roles for missing rights.
fn try_by_two_or_one(
    roles: &mut BTreeSet<String>,
    attempt: impl Fn(Option<Pods>) -> Result<Trial, CommandError>,
) -> Result<Trial, CommandError> {
    let error = match attempt(Some(SHARED_TRIAL)) {
        Err(CommandError::Run(error)) if may_suffice_for_one(&error) => error,
        outcome => return outcome,
    };
    roles.extend(error.role_to_apply().map(role_note));
    // Only a trial that had created objects leaves them in the count of a quota.
    let release = match error {
        RunError::NotReady(_) => QUOTA_RELEASE,
        _ => Duration::ZERO,
    };
    let deadline = Instant::now() + release;
    loop {
        match attempt(None) {
            Err(CommandError::Run(refused))
                if is_refused_by_quota(&refused) && Instant::now() < deadline =>
            {
                std::thread::sleep(QUOTA_RETRY);
            }
            outcome => return outcome.map(|trial| tried_by_one(trial, &error)),
        }
    }
}

/// Whether a quota refuses the run, or its pods.
fn is_refused_by_quota(error: &RunError) -> bool {
    match error {
        RunError::NoFeature { cause } => matches!(
            **cause,
            UnsupportedFeature::Cluster(ClusterObstacle::QuotaExceeded { .. })
        ),
        RunError::NotReady(failure) => matches!(
            failure.condition(),
            Some(FailureCondition::PodRefused {
                reason: PodRefusal::Quota,
                ..
            })
        ),
        _ => false,
    }
}

/// Whether two pods try the class: if its volumes are for several nodes, or the user says so.
fn is_tried_by_two_pods(class: &ClassFacts, args: &ClusterArgs) -> bool {
    let is_for_many = match args.access_mode {
        Some(mode) => mode == AccessMode::Rwx,
        None => class.shared == Some(true),
    };
    is_for_many && args.volume_mode != Some(VolumeModeArg::Block)
}

/// Whether rights, quota or nodes that do not suffice for two pods may suffice for one.
fn may_suffice_for_one(error: &RunError) -> bool {
    let is_other_shortage = match error {
        RunError::NoFeature { cause } => matches!(
            **cause,
            UnsupportedFeature::Cluster(ClusterObstacle::MissingRights { .. })
        ),
        RunError::NotReady(failure) => matches!(
            failure.condition(),
            Some(FailureCondition::Unschedulable { .. })
        ),
        _ => false,
    };
    is_other_shortage || is_refused_by_quota(error)
}

/// Adds to the trial of a class by one pod why two pods could not try it.
fn tried_by_one(mut trial: Trial, error: &RunError) -> Trial {
    if let Trial::Works {
        sharing_not_tried, ..
    } = &mut trial
    {
        *sharing_not_tried = Some(SharingNotTried {
            cause: cause(error),
            remedy: error.remedy(),
        });
    }
    trial
}

fn cause(error: &RunError) -> String {
    match error {
        RunError::NotReady(failure) => failure.cause().to_owned(),
        other => other.to_string(),
    }
}

/// Tries a class with one pod, or with those of `pods`. The volume of a class that retains it is
/// removed too.
fn try_class(
    class: &ClassFacts,
    pods: Option<Pods>,
    args: &ClusterArgs,
    stop: &StopSignal,
) -> Result<Trial, CommandError> {
    let retains = class.reclaim == "Retain";
    let target = TargetUri::StorageClass(class.name.clone());
    let mut live = PodLive::new(&target.to_string());
    let watch = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let args = ClusterArgs {
        claim_size: args.claim_size.or(Some(TRIAL_BYTES)),
        timeout: args.timeout.or(Some(TRIAL_NS)),
        watch_nodes: vec!["none".to_owned()],
        ..args.clone()
    };
    let options = ClusterOptions {
        removes_retained: retains,
        ..cluster::options_of_pods(target, &args, pods)?
    };
    let removal = options.clone();
    let begun = Instant::now();
    let mut session = cluster::open_unwatched(&options, watch)?;
    let place = session.inspect_path();
    let elapsed_ms = begun.elapsed().as_millis() as u64;
    let shared = pods.map(|_| session.try_shared_file(&options)).transpose();
    let run = session.run_id().to_owned();
    if let Err(left) = Box::new(session).close() {
        CommandError::from(left).warn();
    }
    if retains && let Err(left) = leftovers::remove_retained_volumes(&removal, &run) {
        CommandError::from(left).warn();
    }
    Ok(Trial::Works {
        elapsed_ms,
        free_bytes: match place? {
            PathInfo::Directory { free_bytes } => Some(free_bytes),
            PathInfo::Existing { bytes, .. } => Some(bytes),
        },
        shared: shared?,
        sharing_not_tried: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::QuotaShortage;
    use iosonde_result::run_error::pod_failure::{FailedObject, SchedulingObstacle};
    use std::cell::Cell;

    fn class(shared: Option<bool>) -> ClassFacts {
        ClassFacts {
            name: "files".to_owned(),
            provisioner: "example.com/files".to_owned(),
            is_default: false,
            waits_for_pod: true,
            reclaim: "Delete".to_owned(),
            expands: false,
            kept_directory: None,
            volumes: None,
            shared,
            trial: None,
        }
    }

    #[test]
    fn class_for_many_nodes_is_tried_by_two_pods() {
        let with = |access_mode, volume_mode| ClusterArgs {
            access_mode,
            volume_mode,
            ..ClusterArgs::default()
        };
        let is_tried = |shared, args: &ClusterArgs| is_tried_by_two_pods(&class(shared), args);
        let default = with(None, None);
        assert!(is_tried(Some(true), &default));
        assert!(!is_tried(Some(false), &default) && !is_tried(None, &default));
        assert!(is_tried(None, &with(Some(AccessMode::Rwx), None)));
        assert!(!is_tried(Some(true), &with(Some(AccessMode::Rwo), None)));
        let block = with(None, Some(VolumeModeArg::Block));
        assert!(!is_tried(Some(true), &block), "a device has no files");
    }

    #[test]
    fn shortage_for_two_pods_is_tried_again_by_one() {
        let rights = vec!["create persistentvolumeclaims".to_owned()];
        let role = String::new();
        let missing = ClusterObstacle::MissingRights {
            rights,
            role,
            is_bound_to_namespace: false,
        };
        assert!(may_suffice_for_one(&missing.into()));
        let shortage = QuotaShortage::Amount {
            needed_milli: 2000,
            left_milli: 1000,
        };
        let quota = ClusterObstacle::QuotaExceeded {
            quota: "few".to_owned(),
            resource: "pods".to_owned(),
            shortage,
        };
        assert!(may_suffice_for_one(&quota.into()));
        let pod = |condition| RunError::not_ready(FailedObject::only_pod(), condition);
        let refused = |reason| {
            pod(FailureCondition::PodRefused {
                reason,
                message: String::new(),
            })
        };
        assert!(may_suffice_for_one(&refused(PodRefusal::Quota)));
        assert!(!may_suffice_for_one(&refused(PodRefusal::PodSecurity)));
        assert!(may_suffice_for_one(&pod(no_node())));
        assert!(!may_suffice_for_one(&pod(FailureCondition::Deleted)));
        assert!(!may_suffice_for_one(&RunError::Interrupted));
    }

    fn works() -> Trial {
        Trial::Works {
            elapsed_ms: 5,
            free_bytes: None,
            shared: None,
            sharing_not_tried: None,
        }
    }

    #[test]
    fn trial_by_one_pod_waits_for_the_quota_to_release_deleted_pods() {
        let over_quota = || {
            let condition = FailureCondition::PodRefused {
                reason: PodRefusal::Quota,
                message: String::new(),
            };
            RunError::not_ready(FailedObject::only_pod(), condition)
        };
        let attempts = Cell::new(0);
        let attempt = |pods: Option<Pods>| {
            attempts.set(attempts.get() + 1);
            assert_eq!(
                pods.is_some(),
                attempts.get() == 1,
                "two pods at first only"
            );
            match attempts.get() < 4 {
                true => Err(CommandError::Run(over_quota())),
                false => Ok(works()),
            }
        };
        let trial = try_by_two_or_one(&mut BTreeSet::new(), attempt).ok();
        assert_eq!(trial, Some(tried_by_one(works(), &over_quota())));
        assert_eq!(attempts.get(), 4);
    }

    #[test]
    fn trial_that_never_had_objects_is_not_repeated_for_a_quota() {
        let attempts = Cell::new(0);
        let attempt = |_: Option<Pods>| {
            attempts.set(attempts.get() + 1);
            let quota = ClusterObstacle::QuotaExceeded {
                quota: "none".to_owned(),
                resource: "pods".to_owned(),
                shortage: QuotaShortage::ClaimCount { needed: 1, left: 0 },
            };
            Err(CommandError::Run(quota.into()))
        };
        let trial = try_by_two_or_one(&mut BTreeSet::new(), attempt);
        assert!(trial.is_err());
        assert_eq!(attempts.get(), 2);
    }

    #[test]
    fn role_for_two_pods_is_printed_although_one_pod_works() {
        let attempt = |pods: Option<Pods>| match pods {
            Some(_) => {
                let missing = ClusterObstacle::MissingRights {
                    rights: vec!["create persistentvolumeclaims".to_owned()],
                    role: "kind: Role".to_owned(),
                    is_bound_to_namespace: false,
                };
                Err(CommandError::Run(missing.into()))
            }
            None => Ok(works()),
        };
        let mut roles = BTreeSet::new();
        let trial = try_by_two_or_one(&mut roles, attempt).ok();
        let reason = match trial {
            Some(Trial::Works {
                sharing_not_tried, ..
            }) => sharing_not_tried,
            other => panic!("{other:?}"),
        };
        assert!(reason.is_some());
        assert_eq!(roles, BTreeSet::from([role_note("kind: Role")]));
    }

    #[test]
    fn clean_up_of_all_namespaces_suggests_one_of_them() {
        let remedy = |namespace| RunError::from(clean_up_forbidden(namespace)).remedy();
        assert!(remedy(None).ends_with("or name one namespace with -n"));
        assert!(!remedy(Some("lab")).contains("-n"));
    }

    fn no_node() -> FailureCondition {
        FailureCondition::Unschedulable {
            reason: SchedulingObstacle::Taint,
            is_node_coming: false,
            message: "0/2 nodes are available".to_owned(),
            tolerations: Vec::new(),
        }
    }

    #[test]
    fn trial_by_one_pod_keeps_the_cause_of_the_failure_of_two() {
        let error = RunError::not_ready(FailedObject::only_pod(), no_node());
        let Trial::Works {
            sharing_not_tried: Some(reason),
            ..
        } = tried_by_one(works(), &error)
        else {
            panic!("no reason");
        };
        assert_eq!(reason.remedy, error.remedy());
        assert_eq!(reason.cause, cause(&error));
        let fails = Trial::Fails {
            cause: "never bound".to_owned(),
            remedy: String::new(),
        };
        assert_eq!(tried_by_one(fails.clone(), &error), fails);
    }

    #[test]
    fn removed_objects_are_counted_in_words() {
        let removed = RemovedLeftovers {
            runs: 2,
            volumes: 1,
            namespaces: 0,
        };
        assert_eq!(
            removed_in_words(&removed),
            "removed: 2 runs, 1 volume, 0 namespaces"
        );
    }
}
