//! Waits for the state of one object: a watch reports it, and the time of its arrival counts.

use super::application_link::ServiceSwitches;
use crate::api;
use crate::connect::KubeCluster;
use crate::object_events::watch_events;
use crate::run_objects::{is_explaining_warning, list_events};
use crate::setup_observer::TICK;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;
use kube::Resource;
use kube::api::{Api, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Time after which the server ends a watch, in seconds. The object is then read again.
const WATCH_S: u32 = 60;
/// Delay before an object is read again.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Time after which a final warning counts as the failure of a service.
const STALLED: Duration = Duration::from_secs(60);
/// Period of the lists of warnings.
const WARNINGS_PERIOD: Duration = Duration::from_secs(5);
/// Parts of warnings after which a driver never succeeds. Others may pass: a pod waits for its
/// claim, and a provisioner repeats a request whose copy takes longer than its timeout.
const FINAL_WARNINGS: [&str; 6] = [
    "code = InvalidArgument",
    "code = NotFound",
    "code = OutOfRange",
    "code = Unimplemented",
    "does not support",
    "not supported",
];
/// Most characters of a cause.
const CAUSE_CHARS_MAX: usize = 400;

/// The state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectState<T> {
    /// The awaited state.
    Reached(T),
    /// An earlier state.
    Waiting,
    /// An earlier state with an error, which the cluster may overcome.
    Warned(String),
    /// A state from which the awaited one is never reached.
    Failed(String),
}

/// Why a wait has ended without the awaited state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// The user has stopped the run, or the application has ended.
    Stopped,
    /// The service has failed.
    Failed(String),
}

impl From<kube::Error> for WaitEnd {
    fn from(error: kube::Error) -> WaitEnd {
        WaitEnd::Failed(match &error {
            kube::Error::Api(status) => status.message.clone(),
            other => api::chain(other),
        })
    }
}

/// A wait for one state after the other.
pub(super) struct ObjectWait<'w> {
    pub(super) cluster: &'w KubeCluster,
    pub(super) switches: &'w ServiceSwitches,
    /// Names of the objects whose warnings explain a failure.
    pub(super) explained_by: BTreeSet<String>,
    pub(super) begun: Instant,
    pub(super) timeout: Duration,
}

impl ObjectWait<'_> {
    /// Waits until the object has the awaited state. Returns the time at which it was seen.
    pub(super) async fn wait<K, T>(
        &self,
        api: &Api<K>,
        name: &str,
        judge: impl Fn(&K) -> ObjectState<T> + Send + Sync,
    ) -> Result<(Instant, T), WaitEnd>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        T: Send,
    {
        let only = format!("metadata.name={name}");
        let params = WatchParams::default().fields(&only).timeout(WATCH_S);
        let mut warned: Option<String> = None;
        let mut warnings_at = Instant::now() + WARNINGS_PERIOD;
        loop {
            let read = api.get_opt(name).await;
            let at = Instant::now();
            let mut version = None;
            match read {
                Ok(Some(object)) => {
                    version.clone_from(&object.meta().resource_version);
                    if let Some(end) = take_wait_end(judge(&object), &mut warned) {
                        return end.map(|reached| (at, reached));
                    }
                }
                Err(error) if !api::is_away(&error) => return Err(error.into()),
                // Not seen yet, or the server is unavailable.
                _ => {}
            }
            if let Some(version) = version
                && let Ok(mut events) = watch_events(api, &params, &version).await
            {
                // A silent watch needs no timeout of its own: the server ends it.
                loop {
                    self.check(&mut warned, &mut warnings_at).await?;
                    let object = match timeout(TICK, events.next()).await {
                        Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => {
                            object
                        }
                        Ok(Some(Ok(WatchEvent::Bookmark(_)))) | Err(_) => continue,
                        Ok(_) => break,
                    };
                    let at = Instant::now();
                    if let Some(end) = take_wait_end(judge(&object), &mut warned) {
                        return end.map(|reached| (at, reached));
                    }
                }
            }
            self.check(&mut warned, &mut warnings_at).await?;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Fails if the run was stopped, the time is over, or a warning is final.
    async fn check(
        &self,
        warned: &mut Option<String>,
        warnings_at: &mut Instant,
    ) -> Result<(), WaitEnd> {
        if self.switches.is_stopped() {
            return Err(WaitEnd::Stopped);
        }
        let waited = self.begun.elapsed();
        if Instant::now() >= *warnings_at {
            *warnings_at = Instant::now() + WARNINGS_PERIOD;
            let events = list_events(self.cluster, &self.explained_by).await;
            *warned = events.ok().and_then(last_warning).or(warned.take());
        }
        let seconds = waited.as_secs();
        let is_final = warned.as_deref().is_some_and(is_final_warning);
        let limit = match is_final {
            true => STALLED.min(self.timeout),
            false => self.timeout,
        };
        if waited < limit {
            return Ok(());
        }
        let warning = warned
            .as_deref()
            .map_or(String::new(), |warning| format!(": {warning}"));
        let cause = format!("not done after {seconds} s{warning}");
        Err(WaitEnd::Failed(
            cause.chars().take(CAUSE_CHARS_MAX).collect(),
        ))
    }
}

/// Returns the end of a wait, if the state is one. Keeps a warning for later.
fn take_wait_end<T>(
    state: ObjectState<T>,
    warned: &mut Option<String>,
) -> Option<Result<T, WaitEnd>> {
    match state {
        ObjectState::Reached(reached) => Some(Ok(reached)),
        ObjectState::Failed(cause) => Some(Err(WaitEnd::Failed(cause))),
        ObjectState::Warned(warning) => {
            *warned = Some(warning);
            None
        }
        ObjectState::Waiting => None,
    }
}

/// Whether a driver never succeeds after this warning.
fn is_final_warning(warning: &str) -> bool {
    FINAL_WARNINGS.iter().any(|part| warning.contains(part))
}

/// Returns the last warning that may explain a failure among events, which are sorted by time.
fn last_warning(events: Vec<Event>) -> Option<String> {
    let last = events.into_iter().rfind(is_explaining_warning)?;
    let reason = last.reason.unwrap_or_default();
    let message = last.message.unwrap_or_default();
    Some(format!("{reason}: {}", message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_warning_is_the_cause_and_normal_events_are_not() {
        let event_of = |reason: &str, kind: &str, message: &str| Event {
            type_: Some(kind.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..Event::default()
        };
        let event = |kind: &str, message: &str| event_of("ProvisioningFailed", kind, message);
        let events = vec![
            event("Warning", "first"),
            event("Warning", "driver does not support clones"),
            event("Normal", "waiting"),
            event_of("MissingClusterDNS", "Warning", "kubelet has no ClusterDNS"),
        ];
        let expected = "ProvisioningFailed: driver does not support clones";
        assert_eq!(last_warning(events).as_deref(), Some(expected));
        assert_eq!(last_warning(vec![event("Normal", "waiting")]), None);
    }

    #[test]
    fn refusal_of_a_driver_is_final_but_its_timeout_is_not() {
        let refused = "ProvisioningFailed: rpc error: code = InvalidArgument desc = no clones";
        assert!(is_final_warning(refused));
        let slow = "ProvisioningFailed: rpc error: code = DeadlineExceeded desc = copying";
        assert!(!is_final_warning(slow));
        assert!(!is_final_warning(
            "FailedScheduling: unbound PersistentVolumeClaims"
        ));
    }

    #[test]
    fn warning_is_kept_until_the_wait_ends() {
        let mut warned = None;
        let state: ObjectState<()> = ObjectState::Warned("busy".to_owned());
        assert_eq!(take_wait_end(state, &mut warned), None);
        assert_eq!(warned.as_deref(), Some("busy"));
        assert_eq!(
            take_wait_end(ObjectState::Reached(7), &mut warned),
            Some(Ok(7))
        );
    }
}
