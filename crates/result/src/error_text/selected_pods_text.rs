//! Words of a [`SelectedPodsProblem`].

use crate::run_error::SelectedPodsProblem;
use std::fmt;

impl fmt::Display for SelectedPodsProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectedPodsProblem::NoPods {
                selector,
                namespace,
            } => write!(
                formatter,
                "no pod in the namespace {namespace} has the labels {selector}"
            ),
            SelectedPodsProblem::NoVolume { pod } => {
                write!(
                    formatter,
                    "the pod {pod} mounts no volume that can be written"
                )
            }
            SelectedPodsProblem::SeveralVolumes { pod, paths } => write!(
                formatter,
                "the pod {pod} mounts several volumes: {}",
                paths.join(", ")
            ),
        }
    }
}

impl SelectedPodsProblem {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            SelectedPodsProblem::NoPods { .. } => {
                "choose their namespace with -n; `kubectl get pods --show-labels` lists labels"
            }
            SelectedPodsProblem::NoVolume { .. } => {
                "name a directory of the container: pods://SELECTOR:/PATH"
            }
            SelectedPodsProblem::SeveralVolumes { .. } => {
                "name one of these directories: pods://SELECTOR:/PATH"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_of_selected_pods_names_the_pod_and_a_remedy() {
        let several = SelectedPodsProblem::SeveralVolumes {
            pod: "fio-0".to_owned(),
            paths: vec!["/data".to_owned(), "/logs".to_owned()],
        };
        let text = several.to_string();
        assert_eq!(text, "the pod fio-0 mounts several volumes: /data, /logs");
        let remedy = "name one of these directories: pods://SELECTOR:/PATH";
        assert_eq!(several.remedy(), remedy);
        let no_volume = SelectedPodsProblem::NoVolume {
            pod: "fio-0".to_owned(),
        };
        let text = no_volume.to_string();
        assert_eq!(text, "the pod fio-0 mounts no volume that can be written");
        let remedy = "name a directory of the container: pods://SELECTOR:/PATH";
        assert_eq!(no_volume.remedy(), remedy);
        let none = SelectedPodsProblem::NoPods {
            selector: "app=fio".to_owned(),
            namespace: "bench".to_owned(),
        };
        let text = none.to_string();
        assert_eq!(text, "no pod in the namespace bench has the labels app=fio");
    }
}
