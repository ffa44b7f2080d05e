//! The objects of a run. Pure: options in, manifests out.
//!
//! The Job is the root: its pod belongs to it, and the volume's claim to the pod or to the Job, so that deleting the Job
//! removes all.
//! Its deadline and time-to-live let the cluster clean up when the client is gone.

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

/// The label that every object of a run has; its value is the run's id.
pub const RUN_LABEL: &str = "iosonde/run";
/// Where the volume is mounted.
pub const MOUNT: &str = "/data";
/// The label that every object of a rendered manifest has instead; its value tells manifests apart.
pub const RENDERED_LABEL: &str = "iosonde/rendered";
/// What the pods of a run or a rendered manifest measure.
pub(crate) const TARGET_ANNOTATION: &str = "iosonde/target";
/// How many pods a run or a rendered manifest has.
pub(crate) const PODS_ANNOTATION: &str = "iosonde/pods";
/// What is known of the target, as JSON: the labels of the result.
pub(crate) const LABELS_ANNOTATION: &str = "iosonde/labels";
/// Where a pod that runs a job by itself finds the job's file.
pub(crate) const JOB_DIRECTORY: &str = "/job";
/// The job's file.
pub(crate) const JOB_FILE: &str = "job.fio";
/// Where the agent and its socket are.
pub const AGENT_DIRECTORY: &str = "/iosonde";
/// Where a pod that stays keeps its result.
pub(crate) const RESULT_FILE: &str = "/iosonde/result";
/// The container's name.
pub const CONTAINER: &str = "iosonde";
/// The label that tells nodes apart.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Who runs unless the volume needs somebody else: nobody.
const NOBODY: i64 = 65532;
/// How long the objects of a run stay when it has ended by itself: long enough for its client to come back for the result.
const TIME_TO_LIVE_S: i32 = 60;
/// How long the agent has for removing its files.
const GRACE_S: i64 = 30;

/// A run, as its manifests need it.
#[derive(Debug, Clone, Copy)]
pub struct RunSpec<'a> {
    /// The run's id: letters and digits.
    pub id: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The image.
    pub image: &'a str,
    /// Architecture of the agent, as nodes name it.
    pub arch: &'a str,
    /// How many pods.
    pub pods: u32,
    /// Whether this user may make claims.
    pub may_claim: bool,
    /// How the agent gets there.
    pub start: Start,
    /// What is known of the target.
    pub labels: &'a BTreeMap<String, String>,
    /// The rest.
    pub options: &'a ClusterOptions,
}

impl RunSpec<'_> {
    /// Name of the Job.
    pub fn name(&self) -> String {
        format!("iosonde-{}", self.id)
    }

    /// The directory that files go to: ours alone, whatever else is in the volume. Several pods have one each, by index.
    pub fn scratch(&self, index: Option<&str>) -> String {
        let index = index.map_or(String::new(), |index| format!("-{index}"));
        format!("{MOUNT}/.iosonde-{}{index}", self.id)
    }

    /// Whether all pods have the same claim.
    pub fn is_shared(&self) -> bool {
        self.options.pods.is_some_and(|pods| pods.shared)
    }

    /// Whether pods have directories that tell them apart: they may be in one volume, and contents go by the names of files.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.is_shared() || self.pods > 1
    }

    fn is_by_itself(&self) -> bool {
        matches!(self.start, Start::ByItself { .. })
    }

    /// Whether its pods stay with their result, whose log the nodes go on cutting.
    fn keeps_result(&self) -> bool {
        self.start == Start::ByItself { stays: true }
    }

    /// Whether there is one claim, made beside the Job. Otherwise the cluster makes one for each pod that it sees: by then
    /// the scheduler has tried to place the pod in vain, and tries again a second later or two.
    fn has_one_claim(&self) -> bool {
        let is_class = matches!(self.options.target, Target::StorageClass(_));
        // A patch may change the volume, whose form must then not hang on what the user may do.
        let is_plain = self.options.pod_patch.is_none();
        self.is_shared() || (is_class && is_plain && self.may_claim && self.pods == 1)
    }

    /// The claim of the only pod, or the one that all pods share, owned by the Job of this identifier if there is one; `None`
    /// where the cluster makes one for each pod.
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

    /// What the pods of this run are found by.
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

    /// The Job of the run.
    ///
    /// # Errors
    /// When the user's patch does not fit a pod.
    pub fn job(&self) -> Result<Job, RunError> {
        Ok(Job {
            metadata: self.metadata(),
            spec: Some(JobSpec {
                completion_mode: Some("Indexed".to_owned()),
                completions: Some(self.pods as i32),
                parallelism: Some(self.pods as i32),
                // A pod that failed has measured something else than its successor would.
                backoff_limit: Some(0),
                active_deadline_seconds: Some(self.options.deadline.as_secs() as i64),
                // Who applied a manifest wants to see it there, and would make it again.
                ttl_seconds_after_finished: (!self.is_by_itself()).then_some(TIME_TO_LIVE_S),
                template: self.template()?,
                ..JobSpec::default()
            }),
            status: None,
        })
    }

    /// Of the object that owns the others.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name()),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.to_owned()),
            labels: Some(self.labels()),
            ..ObjectMeta::default()
        }
    }

    /// What whoever collects results or takes the run up must know of it.
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
        // By these the pod is found again.
        let labels = &mut patched.metadata.get_or_insert_default().labels;
        labels.get_or_insert_default().extend(self.labels());
        Ok(patched)
    }

    /// By ours the pod is found again, whatever else is asked for.
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

    /// The pods of this run, node by node.
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
                // Nodes that no pod of ours may use do not count.
                node_taints_policy: Some("Honor".to_owned()),
                ..TopologySpreadConstraint::default()
            }]
        })
    }

    /// As the "restricted" Pod Security Standard wants it, unless the volume needs more.
    fn pod_security(&self) -> PodSecurityContext {
        let user = self.user();
        // A claim that exists keeps the group that its files have.
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

    /// Block devices belong to root, and so do most directories of nodes.
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
        // Space of an emptyDir is the node's, and is asked for.
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

    /// The claim that a StatefulSet makes for each of its pods.
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
            // The others are not of a cluster, and are refused before.
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
