//! Reads the result file of a StatefulSet's pod, over several connections if needed.

use super::{ResultCollector, lost_pod_error, pod_name, restarts};
use crate::api;
use crate::image::AGENT_IN_IMAGE;
use crate::manifest::{CONTAINER, RESULT_FILE};
use crate::pod_command::{CommandEnd, output_of};
use crate::run_objects::API_OUTAGE_MAX;
use iosonde_result::run_error::pod_failure::{FailureCondition, KeptResultProblem};
use iosonde_result::run_error::{ClusterRequest, RunError};
use iosonde_result::wire::{LONGEST_MESSAGE_BYTES, NOT_KEPT_STATUS};
use k8s_openapi::api::core::v1::Pod;
use kube::client::UpgradeConnectionError;
use std::collections::BTreeMap;
use std::time::Instant;

/// Parts of results read before a connection broke, by pod UID and restarts of the container.
pub(super) type KeptParts = BTreeMap<(String, i32), KeptPart>;

/// Part of a result.
#[derive(Debug)]
pub(super) struct KeptPart {
    bytes: Vec<u8>,
    /// Time of the last bytes received.
    at: Instant,
}

impl Default for KeptPart {
    fn default() -> KeptPart {
        KeptPart {
            bytes: Vec::new(),
            at: Instant::now(),
        }
    }
}

impl ResultCollector {
    /// Reads the result file of a pod whose log was truncated. `None`: the next poll continues.
    pub(super) async fn kept(&self, pod: &Pod) -> Result<Option<String>, RunError> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let container = (uid, restarts(pod));
        let part = self.parts.borrow_mut().remove(&container);
        let mut part = part.unwrap_or_default();
        let from = part.bytes.len().to_string();
        let mut command = vec![AGENT_IN_IMAGE, "result"];
        if !part.bytes.is_empty() {
            command.extend(["--from", &from]);
        }
        command.push(RESULT_FILE);
        let printed = match output_of(&self.pods(), (pod_name(pod), CONTAINER), &command).await {
            Ok(printed) => printed,
            Err(kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)))
                if status.is_client_error() =>
            {
                let status = status.to_string();
                return Err(unreadable(pod, KeptResultProblem::ExecRefused { status }));
            }
            Err(error) if api::is_away(&error) || api::is_missing(&error) => {
                if api::is_away(&error) {
                    check_progress(pod, &part)?;
                }
                self.parts.borrow_mut().insert(container, part);
                return Ok(None);
            }
            Err(error) => {
                let pod = pod_name(pod).to_owned();
                return Err(api::failed(ClusterRequest::ReadKeptResult { pod }, &error));
            }
        };
        if !printed.bytes.is_empty() {
            part.at = Instant::now();
            part.bytes.extend(printed.bytes);
        }
        match printed.end {
            Some(CommandEnd::Success) => {
                Ok(Some(String::from_utf8_lossy(&part.bytes).into_owned()))
            }
            Some(CommandEnd::Failure { status, message }) => {
                Err(command_error(pod, status, &message))
            }
            None => {
                check_progress(pod, &part)?;
                self.parts.borrow_mut().insert(container, part);
                Ok(None)
            }
        }
    }
}

/// Fails if the result is larger than allowed, or no bytes have arrived for too long.
fn check_progress(pod: &Pod, part: &KeptPart) -> Result<(), RunError> {
    if part.bytes.len() >= LONGEST_MESSAGE_BYTES {
        let limit_mib = (LONGEST_MESSAGE_BYTES >> 20) as u64;
        return Err(unreadable(pod, KeptResultProblem::TooLong { limit_mib }));
    }
    if part.at.elapsed() >= API_OUTAGE_MAX {
        let seconds = API_OUTAGE_MAX.as_secs();
        return Err(unreadable(pod, KeptResultProblem::NoProgress { seconds }));
    }
    Ok(())
}

/// Returns the error for a failed command in the pod.
fn command_error(pod: &Pod, status: Option<i32>, message: &str) -> RunError {
    if status == Some(i32::from(NOT_KEPT_STATUS)) {
        return lost_pod_error(pod, FailureCondition::ResultNotKept);
    }
    let message = message.to_owned();
    unreadable(pod, KeptResultProblem::CommandFailed { message })
}

fn unreadable(pod: &Pod, problem: KeptResultProblem) -> RunError {
    lost_pod_error(pod, FailureCondition::KeptResultUnreadable { problem })
}
