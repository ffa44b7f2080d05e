//! Checks whether the namespace's Pod Security Standard admits the pod.

use super::Facts;
use crate::options::{ClusterOptions, VolumeMode};
use iosonde_result::session::RunError;

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
        Err(RunError::Target {
            path: options.target.to_string(),
            problem: "the namespace's Pod Security level `restricted` forbids pods that run as root, as this one would"
                .to_owned(),
            remedy: match is_block {
                true => "choose a namespace with the level `baseline` with -n, or name the user that the node gives \
                         devices to with --run-as"
                    .to_owned(),
                false => "leave out --run-as 0".to_owned(),
            },
        })
    }

    pub(super) fn judge_level(&self, path: &str) -> Result<(), RunError> {
        match self.level() {
            Some(level @ ("restricted" | "baseline")) => Err(RunError::Target {
                path: format!("hostpath://{path}"),
                problem: format!(
                    "the namespace's Pod Security level `{level}` forbids hostPath volumes"
                ),
                remedy: "choose a namespace with the level `privileged` with -n".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
