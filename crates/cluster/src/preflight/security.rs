//! Checks whether the namespace's Pod Security Standard admits the pod.

use super::Facts;
use crate::options::{ClusterOptions, VolumeMode};
use crate::refusal::refuse_target;
use iosonde_result::run_error::{RunError, VolumeProblem};

impl Facts {
    /// Returns the Pod Security Standard that the namespace enforces.
    fn level(&self) -> Option<&str> {
        let labels = self.namespace.as_ref()?.metadata.labels.as_ref()?;
        let level = labels.get("pod-security.kubernetes.io/enforce")?;
        Some(level.as_str())
    }

    /// Fails if the namespace forbids root and the pod needs it, as for block devices.
    pub(super) fn judge_root(&self, options: &ClusterOptions) -> Result<(), RunError> {
        let is_block = options.volume_mode == VolumeMode::Block;
        // A directory of a node also needs root, but was judged before.
        let is_root = options.run_as.map_or(is_block, |user| user == 0);
        if !is_root || self.level() != Some("restricted") {
            return Ok(());
        }
        refuse_target(&options.target, VolumeProblem::RootForbidden { is_block })
    }

    pub(super) fn judge_level(&self, path: &str) -> Result<(), RunError> {
        match self.level() {
            Some(level @ ("restricted" | "baseline")) => {
                let level = level.to_owned();
                let cause = VolumeProblem::HostPathForbidden { level };
                Err(RunError::unusable_target(
                    format!("hostpath://{path}"),
                    cause.into(),
                ))
            }
            _ => Ok(()),
        }
    }
}
