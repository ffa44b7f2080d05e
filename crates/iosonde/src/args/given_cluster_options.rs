//! Options of clusters that the user has given, for errors that name one of them.

use super::ClusterArgs;

impl ClusterArgs {
    /// Returns an option that was given. `None`: no option of clusters was given.
    pub(crate) fn given_option(&self) -> Option<&'static str> {
        let first = first_given(&[
            (self.kubeconfig.is_some(), "--kubeconfig"),
            (!self.context.is_empty(), "--context"),
            (self.namespace.is_some(), "--namespace"),
            (!self.watch_nodes.is_empty(), "--watch-node"),
            (self.timeout.is_some(), "--timeout"),
        ]);
        first.or_else(|| self.option_of_new_pods())
    }

    /// Returns an option that was given, but has an effect on new pods and volumes only.
    pub(crate) fn option_of_new_pods(&self) -> Option<&'static str> {
        let given = [
            (self.medium.is_some(), "--medium"),
            (self.ephemeral_storage.is_some(), "--ephemeral-storage"),
        ];
        let of_volumes = self.option_of_new_volumes();
        let of_pods = of_volumes.or_else(|| self.option_of_pod_manifests());
        of_pods.or_else(|| first_given(&given))
    }

    /// Returns an option that was given, but has an effect on volumes of new claims only.
    pub(crate) fn option_of_new_volumes(&self) -> Option<&'static str> {
        first_given(&[
            (self.claim_size.is_some(), "--claim-size"),
            (self.volume_mode.is_some(), "--volume-mode"),
            (self.access_mode.is_some(), "--access-mode"),
        ])
    }

    /// Returns an option that was given, but has an effect on new pods only, whatever their volume.
    pub(crate) fn option_of_pod_manifests(&self) -> Option<&'static str> {
        let pod = &self.pod;
        first_given(&[
            (self.create_namespace, "--create-namespace"),
            (self.image.is_some(), "--image"),
            (!self.node_selector.is_empty(), "--node-selector"),
            (!self.tolerations.is_empty(), "--toleration"),
            (!pod.node_affinity.is_empty(), "--node-affinity"),
            (pod.priority_class.is_some(), "--priority-class"),
            (!pod.requests.is_empty(), "--requests"),
            (!pod.limits.is_empty(), "--limits"),
            (!pod.image_pull_secrets.is_empty(), "--image-pull-secret"),
            (pod.service_account.is_some(), "--service-account"),
            (!pod.pod_labels.is_empty(), "--pod-label"),
            (!pod.pod_annotations.is_empty(), "--pod-annotation"),
            (self.pod_patch.is_some(), "--pod-patch"),
            (self.run_as.is_some(), "--run-as"),
            (self.deadline.is_some(), "--deadline"),
            (self.keep_failed, "--keep"),
        ])
    }
}

/// Returns the first option that was given.
fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    let first = options.iter().find(|(is_given, _)| *is_given);
    first.map(|(_, option)| *option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_new_pods_are_named() {
        let mut args = ClusterArgs {
            namespace: Some("bench".to_owned()),
            context: vec!["lab".to_owned()],
            watch_nodes: vec!["n1".to_owned()],
            ..ClusterArgs::default()
        };
        assert_eq!(args.option_of_new_pods(), None);
        args.pod.priority_class = Some("high".to_owned());
        assert_eq!(args.option_of_new_pods(), Some("--priority-class"));
        args.claim_size = Some(1 << 30);
        assert_eq!(args.option_of_new_pods(), Some("--claim-size"));
    }

    #[test]
    fn given_options_of_clusters_are_named() {
        let mut args = ClusterArgs::default();
        assert_eq!(args.given_option(), None);
        args.claim_size = Some(1 << 30);
        assert_eq!(args.given_option(), Some("--claim-size"));
        args.context = vec!["lab".to_owned()];
        assert_eq!(args.given_option(), Some("--context"));
    }
}
