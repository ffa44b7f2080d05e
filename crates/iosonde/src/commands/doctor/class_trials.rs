//! Trials of `iosonde doctor --cluster --trial`: a claim of each class, and pods that mount it.

use super::trial_rounds::{TrialOutcome, TrialRounds, TrialShortage};
use crate::args::{AccessMode, ClusterArgs, VolumeModeArg};
use crate::commands::cluster;
use crate::failure::{CommandError, role_note};
use crate::live::trials_live::TrialsLive;
use crate::signals::StopSignal;
use iosonde_cluster::survey::{ClassFacts, SharingNotTried, Survey, Trial};
use iosonde_cluster::{ClusterOptions, PodPlacement, Pods, SetupEvent, SetupObserver, leftovers};
use iosonde_job::TargetUri;
use iosonde_result::run_error::pod_failure::{FailureCondition, PodRefusal, SchedulingObstacle};
use iosonde_result::run_error::{
    ApiFailure, ClusterObstacle, ClusterRequest, RunError, UnsupportedFeature,
};
use iosonde_result::session::Session;
use iosonde_result::wire::PathInfo;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Most classes that are tried at the same time.
const TRIALS_AT_ONCE_MAX: usize = 4;
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

/// Creates a claim of each class, and a pod that mounts it, for some classes at the same time. Two
/// pods exchange data on a volume that several nodes can write.
pub(super) fn try_classes(
    found: &mut Survey,
    args: &ClusterArgs,
    stop: &StopSignal,
) -> Result<(), CommandError> {
    let nodes = found.nodes.as_ref();
    let has_one_node =
        nodes.is_some_and(|all| all.iter().filter(|node| node.is_usable).count() < 2);
    let classes = found.classes.as_deref().unwrap_or_default();
    let live = TrialsLive::new(
        classes
            .iter()
            .map(|class| target(class).to_string())
            .collect(),
    );
    let trial = |index: usize| {
        let class = &classes[index];
        let is_shared = !has_one_node && is_tried_by_two_pods(class, args);
        let attempt = |pods: Option<Pods>| try_class((index, class), pods, args, (stop, &live));
        let outcome = observe_trial(is_shared, attempt);
        live.finish(index);
        outcome
    };
    let rounds = TrialRounds {
        at_once_max: match args.keep_failed {
            // The Job of a failed trial stays, and creates its pods once a quota admits them.
            true => 1,
            false => TRIALS_AT_ONCE_MAX,
        },
        is_stopped: &|| stop.interrupt.is_requested(),
        await_quota: &|| {
            live.show_quota_wait();
            await_quota(stop);
        },
    };
    let outcomes = rounds.run(classes.len(), &trial);
    drop(live);
    stop.check()?;
    let mut roles = BTreeSet::new();
    let tried = found.classes.iter_mut().flatten().zip(outcomes);
    for (class, outcome) in tried {
        let Some(outcome) = outcome else {
            continue;
        };
        roles.extend(outcome.roles);
        class.trial = Some(match outcome.result {
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

/// Waits until a quota does not count removed objects any more, or until the user stops.
fn await_quota(stop: &StopSignal) {
    let begun = Instant::now();
    while begun.elapsed() < QUOTA_RELEASE && !stop.interrupt.is_requested() {
        std::thread::sleep(QUOTA_RETRY);
    }
}

/// The target of a trial.
fn target(class: &ClassFacts) -> TargetUri {
    TargetUri::StorageClass(class.name.clone())
}

/// Tries a class, and records the shortages of its attempts. `is_shared`: by two pods, if they get
/// room.
fn observe_trial(
    is_shared: bool,
    attempt: impl Fn(Option<Pods>) -> Result<Trial, CommandError>,
) -> TrialOutcome {
    let (shortage, has_taken_room) = (Cell::new(None), Cell::new(false));
    let observed = |pods: Option<Pods>| {
        let result = attempt(pods);
        let error = match &result {
            Err(CommandError::Run(error)) => Some(error),
            _ => None,
        };
        shortage.set(shortage.get().or(error.and_then(shortage_of)));
        // A run that is refused beforehand creates nothing.
        let is_refused = matches!(error, Some(RunError::NoFeature { .. }));
        has_taken_room.set(has_taken_room.get() || !is_refused);
        result
    };
    let mut roles = BTreeSet::new();
    let result = match is_shared {
        true => try_by_two_or_one(&mut roles, observed),
        false => observed(None),
    };
    TrialOutcome {
        result,
        roles,
        shortage: shortage.get(),
        has_taken_room: has_taken_room.get(),
    }
}

/// Returns the shortage behind an error, if trials at the same time may have caused it.
fn shortage_of(error: &RunError) -> Option<TrialShortage> {
    if is_refused_by_quota(error) || is_creation_forbidden(error) {
        return Some(TrialShortage::Quota);
    }
    let RunError::NotReady(failure) = error else {
        return None;
    };
    let reason = match failure.condition()? {
        FailureCondition::Unschedulable { reason, .. } => reason,
        FailureCondition::StartTimedOut { .. } => return Some(TrialShortage::Time),
        _ => return None,
    };
    match reason {
        SchedulingObstacle::Storage
        | SchedulingObstacle::EphemeralStorage
        | SchedulingObstacle::Resources => Some(TrialShortage::Nodes),
        // A quota may refuse the claim that does not exist.
        SchedulingObstacle::Claim => Some(TrialShortage::Quota),
        _ => None,
    }
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

/// Whether the cluster forbids the creation of an object, although quotas and rights sufficed
/// before. Another trial may have used up a quota meanwhile.
fn is_creation_forbidden(error: &RunError) -> bool {
    let RunError::NoFeature { cause } = error else {
        return false;
    };
    matches!(
        **cause,
        UnsupportedFeature::Cluster(ClusterObstacle::RequestFailed {
            request: ClusterRequest::CreateJob { .. } | ClusterRequest::CreateClaim,
            failure: ApiFailure::Refused { code: 403, .. },
        })
    )
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
    (index, class): (usize, &ClassFacts),
    pods: Option<Pods>,
    args: &ClusterArgs,
    (stop, live): (&StopSignal, &TrialsLive),
) -> Result<Trial, CommandError> {
    let retains = class.reclaim == "Retain";
    let watch = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| live.show_event(index, event),
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
        ..cluster::options_of_pods(target(class), &args, pods)?
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
mod tests;
