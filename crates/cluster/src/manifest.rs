//! Builds the objects of a run. Pure: options in, manifests out.
//!
//! The Job is the root: it owns the pod, and pod or Job own the claim, so deleting the Job removes
//! all. Its deadline and time-to-live let the cluster clean up if the client is gone.

mod agent_directory;
mod command;
mod quantity;

pub use command::Start;
pub use iosonde_job::place::DEVICE;
pub use quantity::{Quantity, quantity, quantity_bytes};

use crate::options::{ClusterOptions, Placement, VolumeMode};
use crate::patch::patched;
use agent_directory::{AGENT_VOLUME, temporary_directory};
use iosonde_job::Target;
use iosonde_result::session::RunError;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ConfigMapVolumeSource, Container, EmptyDirVolumeSource,
    EphemeralVolumeSource, HostPathVolumeSource, LocalObjectReference, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate, PersistentVolumeClaimVolumeSource, PodAffinity, PodAffinityTerm,
    PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements,
    SeccompProfile, SecurityContext, TopologySpreadConstraint, Volume, VolumeDevice, VolumeMount,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use std::collections::BTreeMap;

/// Label of every object of a run. Its value is the run's id.
pub const RUN_LABEL: &str = "iosonde/run";
/// Mount point of the volume.
pub const MOUNT: &str = "/data";
/// Label of every object of a rendered manifest, in place of [`RUN_LABEL`]. Its value is the id.
pub const RENDERED_LABEL: &str = "iosonde/rendered";
/// Annotation of the pods with the target.
pub(crate) const TARGET_ANNOTATION: &str = "iosonde/target";
/// Annotation with the number of pods of a run or rendered manifest.
pub(crate) const PODS_ANNOTATION: &str = "iosonde/pods";
/// Annotation with the labels of the result, as JSON.
pub(crate) const LABELS_ANNOTATION: &str = "iosonde/labels";
/// Directory of the job file in a pod that runs a job by itself.
pub(crate) const JOB_DIRECTORY: &str = "/job";
/// Name of the job file.
pub(crate) const JOB_FILE: &str = "job.fio";
/// Directory of the agent and its socket.
pub const AGENT_DIRECTORY: &str = "/iosonde";
/// Path of the result in a pod that keeps it.
pub(crate) const RESULT_FILE: &str = "/iosonde/result";
/// Name of the container.
pub const CONTAINER: &str = "iosonde";
/// Label with the name of the node.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Default user and group id of the container: unprivileged.
const NOBODY: i64 = 65532;
/// Seconds that the objects of a finished run stay, so that its client can fetch the result.
const TIME_TO_LIVE_S: i32 = 60;
/// Seconds for the agent to remove its files on termination.
const GRACE_S: i64 = 30;

/// Parameters of the manifests of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunSpec<'a> {
    /// Id of the run: letters and digits.
    pub id: &'a str,
    /// Namespace of the objects.
    pub namespace: &'a str,
    /// Image of the container.
    pub image: &'a str,
    /// Architecture of the agent, as node labels name it.
    pub arch: &'a str,
    /// Number of pods.
    pub pods: u32,
    /// Whether this user may create claims.
    pub may_claim: bool,
    /// How the agent gets into the pod, and its task.
    pub start: Start,
    /// Labels of the result.
    pub labels: &'a BTreeMap<String, String>,
    /// Options given by the user.
    pub options: &'a ClusterOptions,
}

impl RunSpec<'_> {
    /// Returns the name of the Job.
    pub fn name(&self) -> String {
        format!("iosonde-{}", self.id)
    }

    /// Returns the directory of the run's files in the volume, one per index for several pods.
    pub fn scratch(&self, index: Option<&str>) -> String {
        let index = index.map_or(String::new(), |index| format!("-{index}"));
        format!("{MOUNT}/.iosonde-{}{index}", self.id)
    }

    /// Whether all pods share one claim.
    pub fn is_shared(&self) -> bool {
        self.options.pods.is_some_and(|pods| pods.shared)
    }

    /// Whether each pod has its own directory: volumes may be shared, contents depend on names.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.is_shared() || self.pods > 1
    }

    fn is_by_itself(&self) -> bool {
        matches!(self.start, Start::ByItself { .. })
    }

    /// Whether the pods stay and keep their result, since nodes truncate their logs.
    fn keeps_result(&self) -> bool {
        self.start == Start::ByItself { stays: true }
    }

    /// Whether there is one claim, created with the Job. Otherwise the cluster creates one per pod,
    /// after the pod: the scheduler first fails, and retries a second or two later.
    fn has_one_claim(&self) -> bool {
        let is_class = matches!(self.options.target, Target::StorageClass(_));
        // A patch may refer to the volume, so its form must not depend on the user's permissions.
        let is_plain = self.options.pod_patch.is_none();
        self.is_shared() || (is_class && is_plain && self.may_claim && self.pods == 1)
    }

    /// Returns the claim of the only pod, or the shared one, owned by the Job with this UID if
    /// given. `None` if the cluster creates a claim for each pod.
    pub fn only_claim(&self, job_uid: Option<&str>) -> Option<PersistentVolumeClaim> {
        let Target::StorageClass(class) = &self.options.target else {
            return None;
        };
        let template = self.has_one_claim().then(|| self.claim(class))?;
        let owner = OwnerReference {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            name: self.name(),
            uid: job_uid.unwrap_or_default().to_owned(),
            ..OwnerReference::default()
        };
        Some(PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(self.claim_name()),
                owner_references: job_uid.map(|_| vec![owner]),
                ..self.metadata()
            },
            spec: Some(template.spec),
            status: None,
        })
    }

    fn claim_name(&self) -> String {
        format!("{}-data", self.name())
    }

    /// Whether the volume is a block device.
    pub fn is_block(&self) -> bool {
        self.options.is_block()
    }

    /// Returns the label that selects the pods of this run.
    fn label(&self) -> (&str, &str) {
        match self.is_by_itself() {
            true => (RENDERED_LABEL, self.id),
            false => (RUN_LABEL, self.id),
        }
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        [
            ("app.kubernetes.io/name", "iosonde"),
            ("app.kubernetes.io/managed-by", "iosonde"),
            self.label(),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// Returns the Job of the run.
    ///
    /// # Errors
    /// If the user's patch does not fit a pod.
    pub fn job(&self) -> Result<Job, RunError> {
        Ok(Job {
            metadata: self.metadata(),
            spec: Some(JobSpec {
                completion_mode: Some("Indexed".to_owned()),
                completions: Some(self.pods as i32),
                parallelism: Some(self.pods as i32),
                // No retry: a second pod would measure under other conditions.
                backoff_limit: Some(0),
                active_deadline_seconds: Some(self.options.deadline.as_secs() as i64),
                // GitOps tools would create a removed Job again.
                ttl_seconds_after_finished: (!self.is_by_itself()).then_some(TIME_TO_LIVE_S),
                template: self.template()?,
                ..JobSpec::default()
            }),
            status: None,
        })
    }

    /// Returns the metadata of the object that owns all others.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name()),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.to_owned()),
            labels: Some(self.labels()),
            ..ObjectMeta::default()
        }
    }

    /// Returns the annotations that `collect` and `attach` need.
    fn annotations(&self) -> BTreeMap<String, String> {
        let labels = serde_json::to_string(self.labels).ok();
        let labels = labels.filter(|_| !self.labels.is_empty());
        [
            (TARGET_ANNOTATION, Some(self.options.target.to_string())),
            (PODS_ANNOTATION, Some(self.pods.to_string())),
            (LABELS_ANNOTATION, labels),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
    }

    pub(crate) fn template(&self) -> Result<PodTemplateSpec, RunError> {
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(self.pod_labels()),
                annotations: Some(self.pod_annotations()),
                ..ObjectMeta::default()
            }),
            spec: Some(self.pod()),
        };
        let Some(patch) = &self.options.pod_patch else {
            return Ok(template);
        };
        let mut patched = patched(template, patch)?;
        // These labels select the pod.
        let labels = &mut patched.metadata.get_or_insert_default().labels;
        labels.get_or_insert_default().extend(self.labels());
        Ok(patched)
    }

    /// Returns the labels of the pod. Labels of iosonde win, since they select the pod.
    fn pod_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.options.pod.labels.clone();
        labels.extend(self.labels());
        labels
    }

    fn pod_annotations(&self) -> BTreeMap<String, String> {
        let mut annotations = self.options.pod.annotations.clone();
        annotations.extend(self.annotations());
        annotations
    }

    fn pod(&self) -> PodSpec {
        let wanted = &self.options.pod;
        let secret = |name: &String| LocalObjectReference { name: name.clone() };
        let secrets: Vec<LocalObjectReference> =
            wanted.image_pull_secrets.iter().map(secret).collect();
        let mut node_selector = self.options.node_selector.clone();
        node_selector.insert("kubernetes.io/arch".to_owned(), self.arch.to_owned());
        node_selector.insert("kubernetes.io/os".to_owned(), "linux".to_owned());
        let placement = self
            .options
            .pods
            .map_or(Placement::Any, |pods| pods.placement);
        PodSpec {
            affinity: self.affinity(placement),
            topology_spread_constraints: self.spread(placement),
            priority_class_name: wanted.priority_class.clone(),
            image_pull_secrets: (!secrets.is_empty()).then_some(secrets),
            service_account_name: wanted.service_account.clone(),
            restart_policy: Some("Never".to_owned()),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(GRACE_S),
            node_selector: Some(node_selector),
            tolerations: (!self.options.tolerations.is_empty())
                .then(|| self.options.tolerations.clone()),
            security_context: Some(self.pod_security()),
            containers: vec![self.container()],
            volumes: Some(self.volumes()),
            ..PodSpec::default()
        }
    }

    /// Returns the selector for the pods of this run.
    pub(crate) fn selector(&self) -> LabelSelector {
        LabelSelector {
            match_labels: Some(
                [self.label()]
                    .map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .into(),
            ),
            match_expressions: None,
        }
    }

    fn affinity(&self, placement: Placement) -> Option<Affinity> {
        let to_pods = self.affinity_to_pods(placement);
        let Some(to_nodes) = self.node_affinity() else {
            return to_pods;
        };
        Some(Affinity {
            node_affinity: Some(to_nodes),
            ..to_pods.unwrap_or_default()
        })
    }

    fn node_affinity(&self) -> Option<NodeAffinity> {
        let wanted = &self.options.pod.node_affinity;
        let by_name = |node: &String| NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.clone()]),
        };
        let named = self.options.pod.node.as_ref().map(by_name);
        (named.is_some() || !wanted.is_empty()).then(|| NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm {
                    match_expressions: (!wanted.is_empty()).then(|| wanted.clone()),
                    match_fields: named.map(|named| vec![named]),
                }],
            }),
            ..NodeAffinity::default()
        })
    }

    fn affinity_to_pods(&self, placement: Placement) -> Option<Affinity> {
        let same_node = vec![PodAffinityTerm {
            label_selector: Some(self.selector()),
            topology_key: HOSTNAME.to_owned(),
            ..PodAffinityTerm::default()
        }];
        match placement {
            Placement::Any | Placement::Spread => None,
            Placement::Pack => Some(Affinity {
                pod_affinity: Some(PodAffinity {
                    required_during_scheduling_ignored_during_execution: Some(same_node),
                    ..PodAffinity::default()
                }),
                ..Affinity::default()
            }),
            Placement::PerNode => Some(Affinity {
                pod_anti_affinity: Some(PodAntiAffinity {
                    required_during_scheduling_ignored_during_execution: Some(same_node),
                    ..PodAntiAffinity::default()
                }),
                ..Affinity::default()
            }),
        }
    }

    fn spread(&self, placement: Placement) -> Option<Vec<TopologySpreadConstraint>> {
        (placement == Placement::Spread).then(|| {
            vec![TopologySpreadConstraint {
                label_selector: Some(self.selector()),
                max_skew: 1,
                topology_key: HOSTNAME.to_owned(),
                when_unsatisfiable: "DoNotSchedule".to_owned(),
                // Nodes with taints that keep the pods away do not count.
                node_taints_policy: Some("Honor".to_owned()),
                ..TopologySpreadConstraint::default()
            }]
        })
    }

    /// Follows the Pod Security Standard `restricted`, unless the volume needs more.
    fn pod_security(&self) -> PodSecurityContext {
        let user = self.user();
        // The group of files on an existing claim is not changed.
        let is_ours = matches!(
            self.options.target,
            Target::StorageClass(_) | Target::Ephemeral(_) | Target::EmptyDir
        );
        PodSecurityContext {
            run_as_non_root: (user != 0).then_some(true),
            run_as_user: Some(user),
            run_as_group: Some(user),
            fs_group: is_ours.then_some(user),
            fs_group_change_policy: is_ours.then(|| "OnRootMismatch".to_owned()),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }
    }

    /// Returns the user: root for block devices and node directories, which belong to root.
    fn user(&self) -> i64 {
        let usual = self.options.why_root().map_or(NOBODY, |_| 0);
        self.options.run_as.unwrap_or(usual)
    }

    fn container(&self) -> Container {
        let is_block = self.is_block();
        let mount = |name: &str, path: &str| VolumeMount {
            name: name.to_owned(),
            mount_path: path.to_owned(),
            ..VolumeMount::default()
        };
        let mut mounts = vec![mount(AGENT_VOLUME, AGENT_DIRECTORY)];
        if self.is_by_itself() {
            mounts.insert(0, mount("job", JOB_DIRECTORY));
        }
        if !is_block {
            mounts.push(mount("data", MOUNT));
        }
        Container {
            name: CONTAINER.to_owned(),
            image: Some(self.image.to_owned()),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            command: Some(self.command()),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(Capabilities {
                    drop: Some(vec!["ALL".to_owned()]),
                    add: None,
                }),
                ..SecurityContext::default()
            }),
            resources: self.resources(),
            env: Some(vec![temporary_directory()]),
            volume_mounts: Some(mounts),
            volume_devices: is_block.then(|| {
                vec![VolumeDevice {
                    name: "data".to_owned(),
                    device_path: DEVICE.to_owned(),
                }]
            }),
            ..Container::default()
        }
    }

    fn resources(&self) -> Option<ResourceRequirements> {
        let wanted = &self.options.pod;
        let mut requests = BTreeMap::new();
        // The space of an emptyDir is taken from the node, so it is requested.
        if self.options.target == Target::EmptyDir && !self.options.in_memory {
            let bytes = quantity(self.options.claim_bytes);
            requests.insert("ephemeral-storage".to_owned(), bytes);
        }
        requests.extend(wanted.requests.clone());
        let some = |list: BTreeMap<String, Quantity>| (!list.is_empty()).then_some(list);
        let resources = ResourceRequirements {
            requests: some(requests),
            limits: some(wanted.limits.clone()),
            claims: None,
        };
        (resources != ResourceRequirements::default()).then_some(resources)
    }

    fn volumes(&self) -> Vec<Volume> {
        let mut volumes = vec![self.agent_volume()];
        if self.is_by_itself() {
            volumes.insert(0, self.job_volume());
        }
        if self.claim_template().is_none() {
            volumes.push(self.data_volume());
        }
        volumes
    }

    /// Returns the claim that a StatefulSet creates for each of its pods.
    pub(crate) fn claim_template(&self) -> Option<PersistentVolumeClaimTemplate> {
        match (&self.options.target, self.start) {
            (
                Target::StorageClass(class) | Target::Ephemeral(class),
                Start::ByItself { stays: true },
            ) => Some(self.claim(class)),
            _ => None,
        }
    }

    fn job_volume(&self) -> Volume {
        Volume {
            name: "job".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: self.name(),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        }
    }

    fn data_volume(&self) -> Volume {
        let mut volume = Volume {
            name: "data".to_owned(),
            ..Volume::default()
        };
        match &self.options.target {
            Target::StorageClass(_) if self.has_one_claim() => {
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                    claim_name: self.claim_name(),
                    read_only: None,
                });
            }
            Target::StorageClass(class) | Target::Ephemeral(class) => {
                volume.ephemeral = Some(EphemeralVolumeSource {
                    volume_claim_template: Some(self.claim(class)),
                });
            }
            Target::Claim { name, .. } => {
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                    claim_name: name.clone(),
                    read_only: None,
                });
            }
            Target::HostPath(path) => {
                volume.host_path = Some(HostPathVolumeSource {
                    path: path.clone(),
                    type_: Some("Directory".to_owned()),
                });
            }
            Target::EmptyDir if self.options.in_memory => {
                volume.empty_dir = Some(EmptyDirVolumeSource {
                    medium: Some("Memory".to_owned()),
                    size_limit: Some(quantity(self.options.claim_bytes)),
                });
            }
            // Targets outside a cluster are rejected earlier.
            _ => volume.empty_dir = Some(EmptyDirVolumeSource::default()),
        }
        volume
    }

    fn claim(&self, class: &str) -> PersistentVolumeClaimTemplate {
        let mode = match self.options.volume_mode {
            VolumeMode::Filesystem => "Filesystem",
            VolumeMode::Block => "Block",
        };
        PersistentVolumeClaimTemplate {
            metadata: Some(ObjectMeta {
                labels: Some(self.labels()),
                ..ObjectMeta::default()
            }),
            spec: PersistentVolumeClaimSpec {
                access_modes: Some(vec![self.options.access_mode.clone()]),
                storage_class_name: Some(class.to_owned()),
                volume_mode: Some(mode.to_owned()),
                resources: Some(VolumeResourceRequirements {
                    requests: Some(
                        [("storage".to_owned(), quantity(self.options.claim_bytes))].into(),
                    ),
                    limits: None,
                }),
                ..PersistentVolumeClaimSpec::default()
            },
        }
    }
}

#[cfg(test)]
mod tests;
