//! Problems of the container of a pod: its image, its creation, its early end.

use super::{ObservedPod, PodProblem, RETRIES};
use iosonde_job::read_json;
use iosonde_result::run_error::RunError;
use iosonde_result::run_error::pod_failure::FailureCondition;
use std::time::Duration;

/// Timeout of problems while the kubelet creates a container.
const CREATION: Duration = Duration::from_secs(10);

impl ObservedPod {
    /// Returns the problem of a container that does not start, or has ended.
    pub(super) fn container_problem(&self) -> Option<PodProblem> {
        let state = self.container_state()?;
        if let Some(ended) = &state.terminated {
            let message = ended.message.as_deref().unwrap_or_default();
            // An agent that cannot use its volume leaves the error as a document.
            if let Ok(error) = read_json::<RunError>(message.trim()) {
                return Some(PodProblem::permanent(FailureCondition::VolumeRefused {
                    user: self.user(),
                    error: Box::new(error),
                }));
            }
            return Some(PodProblem::permanent(ended_early(
                ended.exit_code,
                ended.reason.clone().unwrap_or_default(),
                last_line(message).to_owned(),
            )));
        }
        let waiting = state.waiting.as_ref()?;
        let message = waiting.message.clone().unwrap_or_default();
        let reason = waiting.reason.clone()?;
        match reason.as_str() {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                Some(image_not_pulled(reason, message, self.image()))
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Some(PodProblem {
                    condition: FailureCondition::ContainerNotCreated { reason, message },
                    timeout: CREATION,
                })
            }
            _ => None,
        }
    }

    /// Returns the user id of the pod.
    fn user(&self) -> Option<i64> {
        let spec = self.pod.as_ref()?.spec.as_ref()?;
        spec.security_context.as_ref()?.run_as_user
    }

    fn image(&self) -> String {
        let spec = self.pod.as_ref().and_then(|pod| pod.spec.as_ref());
        spec.and_then(|spec| spec.containers.first()?.image.clone())
            .unwrap_or_default()
    }
}

/// Returns the last line of a message, which may be the end of a log.
pub(crate) fn last_line(message: &str) -> &str {
    let mut lines = message.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the meaning of an exit status. The agent runs until its client closes the session.
fn ended_early(exit_code: i32, reason: String, message: String) -> FailureCondition {
    match (reason.as_str(), exit_code) {
        ("OOMKilled", _) => FailureCondition::OutOfMemory,
        (_, 126 | 127) => FailureCondition::ShellMissing { exit_code, message },
        (_, 2) => FailureCondition::ArgumentsRefused { message },
        (_, 0) => FailureCondition::NoRequests,
        _ => FailureCondition::ContainerEnded {
            exit_code,
            reason,
            message,
        },
    }
}

fn image_not_pulled(reason: String, message: String, image: String) -> PodProblem {
    // The first pull may fail temporarily. A back-off, or a missing image, is permanent.
    let is_final =
        reason != "ErrImagePull" || message.contains("not found") || message.contains("404");
    PodProblem {
        condition: FailureCondition::ImageNotPulled {
            image,
            reason,
            message,
        },
        timeout: if is_final { Duration::ZERO } else { RETRIES },
    }
}
