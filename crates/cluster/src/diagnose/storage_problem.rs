//! Problems of a pod's volumes, their provisioning, and the choice of a node.

use super::{
    AT_ONCE, FOR_EVER, NODES, ObservedPod, PodProblem, RETRIES, message, node_name, phase,
};
use iosonde_result::run_error::pod_failure::{FailureCondition, MountFailure, SchedulingObstacle};

/// Words of the scheduler for nodes whose taints the pod does not tolerate.
const UNTOLERATED_TAINT: &str = "untolerated taint";

impl ObservedPod {
    /// Returns the problem of a volume that is not mounted.
    pub(super) fn volume_problem(&self) -> Option<PodProblem> {
        let event = self.last_event(&["FailedMount", "FailedAttachVolume", "FailedMapVolume"])?;
        let message = in_short(message(event));
        let is_of_node = message.contains("is not a directory")
            || message.contains("hostPath type check failed");
        let (reason, timeout) = if is_of_node {
            (MountFailure::HostPath, AT_ONCE)
        } else if message.contains("Multi-Attach") {
            (MountFailure::MultiAttach, RETRIES)
        } else {
            (MountFailure::Other, RETRIES)
        };
        Some(PodProblem {
            condition: FailureCondition::VolumeNotMounted { reason, message },
            timeout,
        })
    }

    /// Returns the problem of a claim that has no volume.
    pub(super) fn provisioning_problem(&self) -> Option<PodProblem> {
        let claim = self.claims.iter().find(|claim| phase(claim) != "Bound")?;
        let name = claim.metadata.name.clone();
        if phase(claim) == "Lost" {
            return Some(PodProblem::permanent(FailureCondition::ClaimLost {
                claim: name,
            }));
        }
        if let Some(event) = self.last_event(&["ProvisioningFailed"]) {
            return Some(PodProblem {
                condition: FailureCondition::ClaimNotProvisioned {
                    claim: name,
                    message: in_short(message(event)),
                },
                timeout: RETRIES,
            });
        }
        // The cluster repeats this event until the provisioner reports that it has begun.
        let event = self.last_event(&["ExternalProvisioning"])?;
        (!self.has_event("Provisioning")).then(|| PodProblem {
            condition: FailureCondition::ProvisionerSilent {
                claim: name,
                message: in_short(message(event)),
            },
            timeout: RETRIES,
        })
    }

    /// Whether a provisioner has reported work on a claim of this pod.
    pub(crate) fn has_provisioning_begun(&self) -> bool {
        self.has_event("Provisioning") || self.has_event("ProvisioningSucceeded")
    }

    /// Returns the problem of a pod that no node takes.
    pub(super) fn scheduling_problem(&self) -> Option<PodProblem> {
        let pod = self.pod.as_ref()?;
        if node_name(pod).is_some() {
            return None;
        }
        let event = self.last_event(&["FailedScheduling"])?;
        let said = message(event);
        // Intermediate steps: the claim is about to be created or observed.
        let is_ours = said.contains("persistentvolumeclaim \"iosonde-");
        if said.contains("waiting for ephemeral volume controller")
            || said.contains("could not find v1.PersistentVolumeClaim")
            || (is_ours && said.contains("-data\" not found") && !self.claims.is_empty())
        {
            return None;
        }
        let reason = obstacle(said);
        // Event reasons of the Cluster Autoscaler and of Karpenter.
        let is_node_coming = self.has_event("TriggeredScaleUp") || self.has_event("Nominated");
        let timeout = match reason {
            _ if is_node_coming => FOR_EVER,
            // The scheduler reports this while claims with immediate binding are provisioned.
            SchedulingObstacle::UnboundClaim => NODES,
            _ => RETRIES,
        };
        Some(PodProblem {
            condition: FailureCondition::Unschedulable {
                reason,
                is_node_coming,
                message: said.to_owned(),
                tolerations: Vec::new(),
            },
            timeout,
        })
    }
}

/// Returns the first obstacle that the scheduler's message names.
fn obstacle(said: &str) -> SchedulingObstacle {
    let obstacles = [
        (
            "unbound immediate PersistentVolumeClaims",
            SchedulingObstacle::UnboundClaim,
        ),
        (
            "didn't match Pod's node affinity/selector",
            SchedulingObstacle::NodeSelector,
        ),
        (
            "volume node affinity conflict",
            SchedulingObstacle::VolumeAffinity,
        ),
        (
            "did not have enough free storage",
            SchedulingObstacle::Storage,
        ),
        (
            "Insufficient ephemeral-storage",
            SchedulingObstacle::EphemeralStorage,
        ),
        ("disk-pressure", SchedulingObstacle::DiskPressure),
        (UNTOLERATED_TAINT, SchedulingObstacle::Taint),
        ("Insufficient", SchedulingObstacle::Resources),
        ("persistentvolumeclaim", SchedulingObstacle::Claim),
    ];
    obstacles
        .iter()
        .find(|(words, _)| said.contains(words))
        .map_or(SchedulingObstacle::Other, |(_, obstacle)| *obstacle)
}

/// Whether the scheduler's message names a taint, also beside another obstacle.
pub(crate) fn names_untolerated_taint(said: &str) -> bool {
    said.contains(UNTOLERATED_TAINT)
}

/// Returns the first line, shortened: some drivers report the whole output of a command.
pub(super) fn in_short(said: &str) -> String {
    const LONGEST: usize = 400;
    let line = said.lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None if line.len() < said.len() => format!("{line} ..."),
        None => line.to_owned(),
    }
}
