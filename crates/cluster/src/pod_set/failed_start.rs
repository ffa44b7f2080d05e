//! The end of a start that has failed: its objects are removed, or kept on request.

use crate::leftovers::{RETAINED_MAY_BE_LEFT, remove_retained_unless_interrupted};
use crate::options::KeepOption;
use crate::run_objects::RunObjects;
use crate::setup_observer::{SetupEvent, SetupObserver};
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{KeptObjects, PodFailure};
use tokio::runtime::Runtime;

/// Removes the objects of a failed start, or keeps them on request. Returns the error.
/// `removes_retained`: volumes that their class retains are removed, too.
pub(super) fn end_failed_start(
    runtime: &Runtime,
    objects: &RunObjects,
    removes_retained: bool,
    error: RunError,
    watch: &mut SetupObserver<'_>,
) -> RunError {
    let is_of_pod = is_of_pod(&error);
    let error = with_keep_option(error, objects);
    if is_of_pod && objects.keep_failed == KeepOption::Given {
        (watch.tell)(SetupEvent::Over);
        return error;
    }
    (watch.tell)(SetupEvent::Waiting("everything to be removed"));
    let removed = match runtime.block_on(objects.delete(watch.interrupts)) {
        Ok(()) if removes_retained => remove_retained_unless_interrupted(runtime, objects, watch),
        removed => removed.map(|()| Some(0)),
    };
    match removed {
        // A note has named what may be left.
        Ok(Some(_)) | Err(RunError::Interrupted) => {}
        // This user may not list volumes.
        Ok(None) => (watch.tell)(SetupEvent::Note(RETAINED_MAY_BE_LEFT)),
        Err(left) => {
            (watch.tell)(SetupEvent::Note(&format!("{left}; {}", left.remedy())));
            if removes_retained {
                (watch.tell)(SetupEvent::Note(RETAINED_MAY_BE_LEFT));
            }
        }
    }
    error
}

/// Whether a pod failed, so that its state and its log may explain more.
fn is_of_pod(error: &RunError) -> bool {
    matches!(error, RunError::NotReady(_) | RunError::Lost(_))
}

/// Adds to the error of a pod that the objects of its run are kept, or how to keep them if the
/// command can.
pub(crate) fn with_keep_option(error: RunError, objects: &RunObjects) -> RunError {
    let explained = |failure: PodFailure| match objects.keep_failed {
        KeepOption::Unavailable => failure,
        KeepOption::NotGiven => failure.with_keep_offer(),
        KeepOption::Given => failure.with_kept(KeptObjects {
            namespace: objects.cluster.namespace.clone(),
            job: objects.job.clone(),
        }),
    };
    match error {
        RunError::NotReady(failure) => RunError::NotReady(Box::new(explained(*failure))),
        RunError::Lost(failure) => RunError::Lost(Box::new(explained(*failure))),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{ApiAnswer, ReceivedRequests, list, serve};
    use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
    use serde_json::{Value, json};
    use std::time::Duration;

    /// A server of a run whose Job is gone, with the volume that its class retains.
    fn retaining_server(runtime: &Runtime) -> (RunObjects, ReceivedRequests) {
        let volume: Value = json!({
            "metadata": {"name": "pv-1",
                "annotations": {"pv.kubernetes.io/provisioned-by": "example.com/disk"}},
            "spec": {"persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"name": "iosonde-0a1b2c3d-data", "namespace": "bench"}},
        });
        serve(runtime, move |request, _| match request {
            _ if request.contains("watch=true") => ApiAnswer::Watch(Duration::ZERO, vec![]),
            _ if request.contains("/persistentvolumes/") => ApiAnswer::Status(404),
            _ if request.contains("/persistentvolumes") => list(std::slice::from_ref(&volume)),
            _ if request.contains("/namespaces/bench/") && !request.contains("/jobs/") => list(&[]),
            _ => ApiAnswer::Status(404),
        })
    }

    /// Ends a start that was interrupted. Returns the notes.
    fn end_start(runtime: &Runtime, objects: &RunObjects, removes_retained: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let mut tell = |event: SetupEvent<'_>| {
            if let SetupEvent::Note(note) = event {
                notes.push(note.to_owned());
            }
        };
        let mut watch = SetupObserver {
            tell: &mut tell,
            interrupts: &|| 0,
        };
        let error = RunError::Interrupted;
        let ended = end_failed_start(runtime, objects, removes_retained, error, &mut watch);
        assert_eq!(ended, RunError::Interrupted);
        notes
    }

    #[test]
    fn note_names_retained_volumes_that_could_not_be_removed() {
        let runtime = crate::connect::runtime().unwrap();
        for removes_retained in [true, false] {
            // The Job may not be deleted.
            let (objects, _) = serve(&runtime, |_, _| ApiAnswer::Status(403));
            let notes = end_start(&runtime, &objects, removes_retained);
            assert_eq!(notes.len(), 1 + usize::from(removes_retained), "{notes:?}");
            let is_named = notes.iter().any(|note| note == RETAINED_MAY_BE_LEFT);
            assert_eq!(is_named, removes_retained, "{notes:?}");
            // The volumes may not be listed.
            let (objects, _) = serve(&runtime, |request, _| match request {
                _ if request.contains("watch=true") => ApiAnswer::Watch(Duration::ZERO, vec![]),
                _ if request.contains("/persistentvolumes") => ApiAnswer::Status(403),
                _ if request.contains("/namespaces/bench/") && !request.contains("/jobs/") => {
                    list(&[])
                }
                _ => ApiAnswer::Status(404),
            });
            let notes = end_start(&runtime, &objects, removes_retained);
            let expected: &[&str] = match removes_retained {
                true => &[RETAINED_MAY_BE_LEFT],
                false => &[],
            };
            assert_eq!(notes, expected);
        }
    }

    #[test]
    fn failed_start_names_keep_only_where_the_command_takes_it() {
        let runtime = crate::connect::runtime().unwrap();
        let failed = RunError::not_ready(FailedObject::only_pod(), FailureCondition::NoOutput);
        for (keep_failed, offer) in [
            (KeepOption::Unavailable, ""),
            (
                KeepOption::NotGiven,
                "; --keep keeps the pod for `kubectl logs`",
            ),
        ] {
            let (mut objects, requests) = retaining_server(&runtime);
            objects.keep_failed = keep_failed;
            let mut watch = SetupObserver {
                tell: &mut |_: SetupEvent<'_>| {},
                interrupts: &|| 0,
            };
            let ended = end_failed_start(&runtime, &objects, false, failed.clone(), &mut watch);
            assert_eq!(ended.remedy(), format!("{}{offer}", failed.remedy()));
            assert!(requests.count(&["/jobs/iosonde-0a1b2c3d"]) > 0, "removed");
        }
    }

    #[test]
    fn failed_start_removes_retained_volumes_only_on_request() {
        let runtime = crate::connect::runtime().unwrap();
        for removes_retained in [true, false] {
            let (objects, requests) = retaining_server(&runtime);
            let notes = end_start(&runtime, &objects, removes_retained);
            assert!(notes.is_empty(), "{notes:?}");
            let all = requests.list_all();
            assert!(requests.count(&["/jobs/iosonde-0a1b2c3d"]) > 0, "{all:?}");
            // The policy is changed, and the volume is then read until it is gone.
            let expected = if removes_retained { 2 } else { 0 };
            let of_volume = requests.count(&["/persistentvolumes/pv-1"]);
            assert_eq!(of_volume, expected, "{all:?}");
        }
    }
}
