//! Starts a node watcher in the network namespace of its node, where the interfaces are visible.

use crate::options::ClusterOptions;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::{FailureCondition, PodFailure, PodRefusal};
use serde_json::json;

/// Makes a watcher in the network of its node, or in one of its own if the cluster refuses that.
/// Returns whether it is in the network of the node.
///
/// # Errors
/// Those of `make`.
pub(crate) fn make_in_host_network<T>(
    options: ClusterOptions,
    make: &mut dyn FnMut(ClusterOptions) -> Result<T, RunError>,
) -> Result<(T, bool), RunError> {
    let in_host_network = ClusterOptions {
        pod_patch: Some(json!({"spec": {"hostNetwork": true}})),
        ..options.clone()
    };
    match make(in_host_network) {
        Err(RunError::NotReady(failure)) if is_refused(&failure) => Ok((make(options)?, false)),
        made => Ok((made?, true)),
    }
}

/// Whether a rule of the cluster forbids the pod.
fn is_refused(failure: &PodFailure) -> bool {
    let forbids =
        |reason: &PodRefusal| matches!(reason, PodRefusal::PodSecurity | PodRefusal::Other);
    matches!(
        failure.condition(),
        Some(FailureCondition::PodRefused { reason, .. }) if forbids(reason)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::pod_failure::FailedObject;

    fn refused(reason: PodRefusal) -> RunError {
        let condition = FailureCondition::PodRefused {
            reason,
            message: "no".to_owned(),
        };
        RunError::not_ready(FailedObject::named_pod("w"), condition)
    }

    fn tries(answer: &dyn Fn(bool) -> Result<(), RunError>) -> (Result<bool, RunError>, usize) {
        let options = ClusterOptions::new("sc://fast".parse().unwrap());
        let mut count = 0;
        let made = make_in_host_network(options, &mut |options: ClusterOptions| {
            count += 1;
            answer(options.pod_patch.is_some())
        });
        (made.map(|((), sees_network)| sees_network), count)
    }

    #[test]
    fn watcher_without_right_to_host_network_gets_its_own() {
        assert_eq!(tries(&|_| Ok(())), (Ok(true), 1));
        let forbidden = |in_host_network: bool| match in_host_network {
            true => Err(refused(PodRefusal::PodSecurity)),
            false => Ok(()),
        };
        assert_eq!(tries(&forbidden), (Ok(false), 2));
        let full = refused(PodRefusal::Quota);
        let over_quota = |_: bool| -> Result<(), RunError> { Err(full.clone()) };
        assert_eq!(tries(&over_quota), (Err(full.clone()), 1), "no other try");
    }
}
