//! `iosonde doctor --cluster`: storage classes and nodes of a cluster, findings, and leftovers.

use super::count_findings;
use super::node_inspection::inspect_nodes;
use crate::args::{AccessMode, ClusterArgs, DoctorArgs, DoctorFormat, VolumeModeArg};
use crate::commands::cluster;
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::leftovers::RemovedLeftovers;
use iosonde_cluster::survey::{ClassFacts, Survey, Trial, survey};
use iosonde_cluster::{PodPlacement, Pods, SetupEvent, SetupObserver, leftovers};
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError, UnsupportedFeature};
use iosonde_result::session::Session;
use iosonde_result::wire::PathInfo;
use std::time::Instant;

/// Size of a trial's claim. Some drivers refuse smaller claims.
const TRIAL_BYTES: u64 = 1 << 30;
/// Timeout of a trial.
const TRIAL_NS: u64 = 60_000_000_000;
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
    let output = Output::open(args.output.as_deref())?;
    // The target of these options is not used.
    let options = args.place.options(TargetUri::EmptyDir);
    let mut found = survey(&options)?;
    let mut held = None;
    if args.clean {
        if found.hides_runs {
            let rights = vec!["list jobs".to_owned()];
            let role = leftovers::clean_up_role();
            return Err(RunError::from(ClusterObstacle::CleanUpForbidden { rights, role }).into());
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
        DoctorFormat::Table => super::cluster_report::text(&found),
        DoctorFormat::Json => super::cluster_report::json(&found),
    };
    output.save(&text)?;
    if let Some(held) = held {
        return Err(held.into());
    }
    count_findings(&found.findings, args.fail_on)
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
    for class in found.classes.iter_mut().flatten() {
        let is_shared = !has_one_node && is_tried_by_two_pods(class, args);
        let mut outcome = try_class(class, is_shared.then_some(SHARED_TRIAL), args, stop);
        if is_shared && lacks_rights(&outcome) {
            // A volume of several pods needs more rights than that of one.
            outcome = try_class(class, None, args, stop);
        }
        stop.check()?;
        class.trial = Some(match outcome {
            Ok(works) => works,
            Err(CommandError::Run(error)) => Trial::Fails {
                cause: cause(&error),
                remedy: error.remedy(),
            },
            Err(other) => return Err(other),
        });
    }
    found.judge();
    Ok(())
}

/// Whether two pods try the class: if its volumes are for several nodes, or the user says so.
fn is_tried_by_two_pods(class: &ClassFacts, args: &ClusterArgs) -> bool {
    let is_for_many = match args.access_mode {
        Some(mode) => mode == AccessMode::Rwx,
        None => class.shared == Some(true),
    };
    is_for_many && args.volume_mode != Some(VolumeModeArg::Block)
}

fn lacks_rights(outcome: &Result<Trial, CommandError>) -> bool {
    let Err(CommandError::Run(RunError::NoFeature { cause })) = outcome else {
        return false;
    };
    matches!(
        **cause,
        UnsupportedFeature::Cluster(ClusterObstacle::MissingRights { .. })
    )
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
    let options = cluster::options_of_pods(target, &args, pods)?;
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn missing_rights_of_a_trial_differ_from_other_failures() {
        let fails = |error: RunError| lacks_rights(&Err(CommandError::Run(error)));
        let rights = vec!["create persistentvolumeclaims".to_owned()];
        let role = String::new();
        assert!(fails(
            ClusterObstacle::MissingRights { rights, role }.into()
        ));
        assert!(!fails(RunError::Interrupted));
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
