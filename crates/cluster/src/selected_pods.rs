//! Running pods of the user, in which plans run: the directory and the container that are used in
//! each. Pure: pods in, choices out.

use crate::diagnose::{ObservedPod, PodState};
use crate::image::{AGENT_IN_IMAGE, carries_agent};
use crate::manifest::AGENT_DIRECTORY;
use crate::refusal::refuse;
use iosonde_result::run_error::pod_failure::{FailedObject, FailureCondition};
use iosonde_result::run_error::{ClusterObstacle, RunError, SelectedPodsProblem};
use iosonde_result::words;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, Volume};
use std::collections::BTreeMap;

/// Pods of the user, given by a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedPods {
    pub(crate) selector: String,
    /// The pods by name.
    pub(crate) pods: BTreeMap<String, SelectedPod>,
}

impl SelectedPods {
    /// Whether several pods mount the same claim.
    pub(crate) fn has_one_claim(&self) -> bool {
        let mut claims = self.pods.values().map(|pod| pod.claim.as_ref());
        let first = claims.next().flatten();
        self.pods.len() > 1 && first.is_some() && claims.all(|claim| claim == first)
    }

    /// Returns the pods and their directories, for people.
    pub(crate) fn in_words(&self) -> String {
        let each = self.pods.iter();
        let named = each.map(|(name, pod)| format!("{name} ({})", pod.path));
        let named: Vec<String> = named.collect();
        let count = words::counted(named.len(), "pod");
        format!("runs in {count} that exist: {}", named.join(", "))
    }
}

/// A pod of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedPod {
    /// Container of the agent.
    pub(crate) container: String,
    /// Directory that is measured.
    pub(crate) path: String,
    /// Claim of that directory, if it has one.
    pub(crate) claim: Option<String>,
    /// Whether the image contains the agent, and has no shell.
    pub(crate) has_agent: bool,
    /// Directory of the run's files, in `path`.
    pub(crate) scratch: String,
    /// Number of the pod in the run. Pods may share a volume or a directory of their node.
    pub(crate) number: usize,
    /// Directory of the agent. Empty until it is found.
    pub(crate) agent_directory: String,
    /// Identity of the pod: another pod may get its name.
    uid: Option<String>,
    /// Restarts of the container so far.
    restarts: i32,
}

/// A directory of a container.
struct MountedDirectory<'a> {
    container: &'a Container,
    path: &'a str,
    volume: Option<&'a Volume>,
}

impl MountedDirectory<'_> {
    /// Whether the volume is a claim.
    fn is_of_claim(&self) -> bool {
        self.volume.is_some_and(|volume| {
            volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()
        })
    }

    /// Whether the volume holds data, not the configuration of the pod.
    fn is_storage(&self) -> bool {
        self.volume.is_some_and(|volume| {
            let is_configuration = volume.config_map.is_some()
                || volume.secret.is_some()
                || volume.projected.is_some()
                || volume.downward_api.is_some();
            !is_configuration
        })
    }

    /// Returns the name of the claim. The cluster names the claim of an ephemeral volume.
    fn claim(&self, pod: &str) -> Option<String> {
        let volume = self.volume?;
        if volume.ephemeral.is_some() {
            return Some(format!("{pod}-{}", volume.name));
        }
        let claim = volume.persistent_volume_claim.as_ref()?;
        Some(claim.claim_name.clone())
    }
}

impl SelectedPod {
    /// Chooses container and directory in a running pod. `index` numbers the pods of the run.
    ///
    /// # Errors
    /// If the pod does not run, or has not exactly one volume and no directory is named.
    pub(crate) fn choose(
        pod: &Pod,
        path: Option<&str>,
        (id, index): (&str, usize),
    ) -> Result<SelectedPod, RunError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let spec = pod.spec.as_ref().ok_or_else(|| not_running(pod))?;
        let chosen = match path {
            Some(path) => named_directory(spec, path),
            None => Some(only_directory(name, spec)?),
        };
        let chosen = chosen.ok_or_else(|| not_running(pod))?;
        let status = container_status(pod, &chosen.container.name);
        let is_running = status.is_some_and(|status| {
            status
                .state
                .as_ref()
                .is_some_and(|state| state.running.is_some())
        });
        if !is_running || pod.metadata.deletion_timestamp.is_some() {
            return Err(not_running(pod));
        }
        let has_agent = chosen.container.image.as_deref().is_some_and(carries_agent);
        let root = chosen.path.trim_end_matches('/');
        Ok(SelectedPod {
            container: chosen.container.name.clone(),
            path: chosen.path.to_owned(),
            claim: chosen.claim(name),
            has_agent,
            scratch: format!("{root}/.iosonde-{id}-{index}"),
            number: index,
            agent_directory: match has_agent {
                true => AGENT_DIRECTORY.to_owned(),
                false => String::new(),
            },
            uid: pod.metadata.uid.clone(),
            restarts: status.map_or(0, |status| status.restart_count),
        })
    }

    /// Returns the path of the agent's executable.
    pub(crate) fn program(&self) -> String {
        match self.has_agent {
            true => AGENT_IN_IMAGE.to_owned(),
            false => format!("{}/agent", self.agent_directory),
        }
    }

    /// Returns the path of the agent's socket. Another agent may serve in the same directory.
    pub(crate) fn socket(&self, id: &str) -> String {
        format!("{}/{id}.socket", self.agent_directory)
    }

    /// Returns why the agent in this pod is lost, or `None` if its container still runs.
    pub(crate) fn loss(&self, name: &str, pods: &[Pod]) -> Option<RunError> {
        let is_it =
            |pod: &&Pod| pod.metadata.name.as_deref() == Some(name) && pod.metadata.uid == self.uid;
        let found = pods.iter().find(is_it);
        let there = found.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let condition = match there {
            None => FailureCondition::Deleted,
            Some(pod) => self.why_stopped(pod)?,
        };
        Some(RunError::lost(FailedObject::only_pod(), condition))
    }

    fn why_stopped(&self, pod: &Pod) -> Option<FailureCondition> {
        let status = container_status(pod, &self.container);
        let has_restarted = status.is_some_and(|status| status.restart_count > self.restarts);
        let is_running = status.is_some_and(|status| {
            status
                .state
                .as_ref()
                .is_some_and(|state| state.running.is_some())
        });
        if is_running && !has_restarted {
            return None;
        }
        let state = |status: &ContainerStatus| {
            let now = status
                .state
                .as_ref()
                .and_then(|state| state.terminated.clone());
            let last = status.last_state.as_ref();
            now.or_else(|| last.and_then(|state| state.terminated.clone()))
        };
        if let Some(ended) = status.and_then(state) {
            return Some(FailureCondition::ContainerEnded {
                exit_code: ended.exit_code,
                reason: ended.reason.unwrap_or_default(),
                message: ended.message.unwrap_or_default(),
            });
        }
        let observed = ObservedPod {
            pod: Some(pod.clone()),
            ..ObservedPod::default()
        };
        match observed.judge() {
            PodState::Problem(problem) => Some(problem.condition),
            PodState::Waiting(awaits) => Some(FailureCondition::ContainerStopped { awaits }),
            PodState::Running => None,
        }
    }
}

/// Returns the error for a pod that does not run.
fn not_running(pod: &Pod) -> RunError {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let condition = FailureCondition::NotRunning {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        selector: labels_in_words(pod),
    };
    RunError::not_ready(FailedObject::named_pod(name), condition)
}

fn labels_in_words(pod: &Pod) -> String {
    let labels = pod.metadata.labels.iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(",")
}

fn container_status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == container)
}

/// Returns the directories of all volumes that a container may write, container by container.
fn mounted_directories(spec: &PodSpec) -> Vec<MountedDirectory<'_>> {
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    let mut mounted = Vec::new();
    for container in &spec.containers {
        for mount in container.volume_mounts.iter().flatten() {
            if mount.read_only != Some(true) {
                mounted.push(MountedDirectory {
                    container,
                    path: &mount.mount_path,
                    volume: volumes.iter().find(|volume| volume.name == mount.name),
                });
            }
        }
    }
    mounted
}

/// Returns a directory that the user names: of the container with the nearest mount above it, else
/// of the first container.
fn named_directory<'a>(spec: &'a PodSpec, path: &'a str) -> Option<MountedDirectory<'a>> {
    let is_within = |mount: &str| {
        let rest = path.strip_prefix(mount.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mounted = mounted_directories(spec);
    let above = mounted.into_iter().filter(|mount| is_within(mount.path));
    // Of equal mounts, the one in the first container.
    let nearest = above.rev().max_by_key(|mount| mount.path.len());
    match nearest {
        Some(mount) => Some(MountedDirectory { path, ..mount }),
        None => Some(MountedDirectory {
            container: spec.containers.first()?,
            path,
            volume: None,
        }),
    }
}

/// Returns the directory of the only claim, or of the only volume if there is no claim.
fn only_directory<'a>(name: &str, spec: &'a PodSpec) -> Result<MountedDirectory<'a>, RunError> {
    let mut mounted = mounted_directories(spec);
    mounted.retain(MountedDirectory::is_storage);
    if mounted.iter().any(MountedDirectory::is_of_claim) {
        mounted.retain(MountedDirectory::is_of_claim);
    }
    // The containers of a pod may share a volume.
    let mut seen = Vec::new();
    mounted.retain(|mount| {
        let volume = mount.volume.map(|volume| volume.name.as_str());
        let is_new = !seen.contains(&volume);
        seen.push(volume);
        is_new
    });
    let problem = match mounted.len() {
        0 => SelectedPodsProblem::NoVolume {
            pod: name.to_owned(),
        },
        1 => return Ok(mounted.remove(0)),
        _ => SelectedPodsProblem::SeveralVolumes {
            pod: name.to_owned(),
            paths: mounted.iter().map(|mount| mount.path.to_owned()).collect(),
        },
    };
    refuse(ClusterObstacle::UnusablePods(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    /// Returns a running pod with two containers, whose volumes are given.
    fn pod(volumes: &Value, mounts: &Value, restarts: i32) -> Pod {
        from_value(json!({
            "metadata": {"name": "fio-0", "namespace": "bench", "uid": "u1",
                "labels": {"app": "fio"}},
            "spec": {
                "volumes": volumes,
                "containers": [
                    {"name": "sidecar", "image": "proxy:1"},
                    {"name": "fio", "image": "fio:3.19", "volumeMounts": mounts},
                ],
            },
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "sidecar", "image": "", "imageID": "", "ready": true, "restartCount": 7,
                    "state": {"running": {}}},
                {"name": "fio", "image": "", "imageID": "", "ready": true,
                    "restartCount": restarts, "state": {"running": {}},
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
            ]},
        }))
        .unwrap()
    }

    fn pod_of_article(restarts: i32) -> Pod {
        let volumes = json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-fio-0"}},
            {"name": "jobs", "configMap": {"name": "fio-job-config"}},
        ]);
        let mounts = json!([
            {"name": "jobs", "mountPath": "/configs"},
            {"name": "data", "mountPath": "/scratch"},
        ]);
        pod(&volumes, &mounts, restarts)
    }

    #[test]
    fn only_claim_of_a_pod_is_chosen_with_its_container() {
        let chosen = SelectedPod::choose(&pod_of_article(0), None, ("0a1b2c3d", 2)).unwrap();
        assert_eq!(chosen.container, "fio");
        assert_eq!(chosen.path, "/scratch");
        assert_eq!(chosen.claim.as_deref(), Some("data-fio-0"));
        assert_eq!(chosen.scratch, "/scratch/.iosonde-0a1b2c3d-2");
        assert!(!chosen.has_agent);
    }

    #[test]
    fn named_directory_belongs_to_the_nearest_mount() {
        let pod = pod_of_article(0);
        let choose = |path| SelectedPod::choose(&pod, Some(path), ("i", 0)).unwrap();
        let below = choose("/scratch/a");
        assert_eq!(below.container, "fio");
        assert_eq!(below.claim.as_deref(), Some("data-fio-0"));
        let elsewhere = choose("/scratches");
        assert_eq!(elsewhere.container, "sidecar");
        assert_eq!(elsewhere.claim, None);
    }

    #[test]
    fn several_volumes_need_the_name_of_a_directory() {
        let volumes = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]);
        let mounts = json!([
            {"name": "a", "mountPath": "/a"},
            {"name": "b", "mountPath": "/b"},
        ]);
        let error = SelectedPod::choose(&pod(&volumes, &mounts, 0), None, ("i", 0)).unwrap_err();
        let unusable = |problem| RunError::from(ClusterObstacle::UnusablePods(problem));
        let several = SelectedPodsProblem::SeveralVolumes {
            pod: "fio-0".to_owned(),
            paths: vec!["/a".to_owned(), "/b".to_owned()],
        };
        assert_eq!(error, unusable(several));
        let shared = json!([
            {"name": "a", "mountPath": "/a"},
            {"name": "a", "mountPath": "/b"},
        ]);
        let shared = SelectedPod::choose(&pod(&volumes, &shared, 0), None, ("i", 0));
        assert_eq!(shared.unwrap().path, "/a", "one volume at two paths");
        let none = SelectedPod::choose(&pod(&json!([]), &json!([]), 0), None, ("i", 0));
        let no_volume = SelectedPodsProblem::NoVolume {
            pod: "fio-0".to_owned(),
        };
        assert_eq!(none.unwrap_err(), unusable(no_volume));
    }

    #[test]
    fn loss_of_a_selected_pod_is_deletion_or_restart() {
        let chosen = SelectedPod::choose(&pod_of_article(3), None, ("i", 0)).unwrap();
        assert_eq!(chosen.loss("fio-0", &[pod_of_article(3)]), None);
        let cause = |pods: &[Pod]| match chosen.loss("fio-0", pods) {
            Some(RunError::Lost(failure)) => failure.condition().cloned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(cause(&[]), Some(FailureCondition::Deleted));
        let mut replaced = pod_of_article(3);
        replaced.metadata.uid = Some("u2".to_owned());
        assert_eq!(cause(&[replaced]), Some(FailureCondition::Deleted));
        let restarted = cause(&[pod_of_article(4)]);
        let is_ended = matches!(
            restarted,
            Some(FailureCondition::ContainerEnded { exit_code: 137, .. })
        );
        assert!(is_ended, "{restarted:?}");
    }

    #[test]
    fn claim_of_all_pods_is_recognized() {
        let chosen = SelectedPod::choose(&pod_of_article(0), None, ("i", 0)).unwrap();
        let mut selected = SelectedPods {
            selector: "app=fio".to_owned(),
            pods: [("a".to_owned(), chosen.clone())].into(),
        };
        assert!(!selected.has_one_claim(), "one pod shares nothing");
        selected.pods.insert("b".to_owned(), chosen.clone());
        assert!(selected.has_one_claim());
        let other = SelectedPod {
            claim: Some("data-fio-1".to_owned()),
            ..chosen
        };
        selected.pods.insert("c".to_owned(), other);
        assert!(!selected.has_one_claim());
    }
}
