//! Builds the objects of a run. Pure: options in, manifests out.
//!
//! The Job is the root: it owns the pod, and pod or Job own the claim, so deleting the Job removes
//! all. Its deadline and time-to-live let the cluster clean up if the client is gone.

mod agent_directory;
mod command;
mod pod_placement;
mod pod_volumes;

pub use crate::quantity::{Quantity, quantity, quantity_bytes};
pub(crate) use command::AgentStart;
pub(crate) use iosonde_job::relocate::DEVICE;

use crate::options::{ARCH_LABEL, ClusterOptions, KeepOption, PodPlacement};
use crate::patch::patched;
use agent_directory::{AGENT_VOLUME, temporary_directory};
use iosonde_job::TargetUri;
use iosonde_result::run_error::RunError;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, LocalObjectReference, PodSecurityContext, PodSpec, PodTemplateSpec,
    ResourceRequirements, SeccompProfile, SecurityContext, VolumeDevice, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use std::collections::BTreeMap;

/// Label of every object of a run. Its value is the run's id.
pub(crate) const RUN_LABEL: &str = "iosonde/run";
/// Start of the name of a run's Job. The run's id follows.
pub(crate) const JOB_NAME_PREFIX: &str = "iosonde-";
/// Mount point of the volume.
pub(crate) const MOUNT: &str = "/data";
/// Label of every object of a rendered manifest, in place of [`RUN_LABEL`]. Its value is the id.
pub(crate) const RENDERED_LABEL: &str = "iosonde/rendered";
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
pub(crate) const AGENT_DIRECTORY: &str = "/iosonde";
/// Path of the result in a pod that keeps it.
pub(crate) const RESULT_FILE: &str = "/iosonde/result";
/// Name of the container.
pub(crate) const CONTAINER: &str = "iosonde";
/// Default user and group id of the container: unprivileged.
const UNPRIVILEGED_ID: i64 = 65532;
/// Seconds that the objects of a finished run stay, so that its client can fetch the result.
const TIME_TO_LIVE_S: i32 = 60;
/// Seconds for the agent to remove its files on termination.
const GRACE_S: i64 = 30;

/// Parameters of the manifests of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSpec<'a> {
    /// Id of the run: letters and digits.
    pub(crate) id: &'a str,
    /// Namespace of the objects.
    pub(crate) namespace: &'a str,
    /// Image of the container.
    pub(crate) image: &'a str,
    /// Architectures of the agents, as node labels name them. Empty: no agent is sent.
    pub(crate) archs: &'a [&'a str],
    /// Number of pods.
    pub(crate) pods: u32,
    /// Whether this user may create claims.
    pub(crate) may_claim: bool,
    /// How the agent gets into the pod, and its task.
    pub(crate) start: AgentStart,
    /// Labels of the result.
    pub(crate) labels: &'a BTreeMap<String, String>,
    /// Options given by the user.
    pub(crate) options: &'a ClusterOptions,
}

/// Returns the name of a run's Job.
pub(crate) fn job_name(run: &str) -> String {
    format!("{JOB_NAME_PREFIX}{run}")
}

/// Returns the id of a run from the name of its Job. Returns an id as it is. Objects of the
/// cluster have the id as a label; this is for names that a user types.
pub(crate) fn run_id_from_job_name(name: &str) -> &str {
    name.strip_prefix(JOB_NAME_PREFIX).unwrap_or(name)
}

impl RunSpec<'_> {
    /// Returns the name of the Job.
    pub(crate) fn name(&self) -> String {
        debug_assert!(self.id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        job_name(self.id)
    }

    /// Returns the directory of the run's files in the volume, one per index for several pods.
    pub(crate) fn scratch(&self, index: Option<&str>) -> String {
        let index = index.map_or(String::new(), |index| format!("-{index}"));
        format!("{MOUNT}/.iosonde-{}{index}", self.id)
    }

    /// Whether all pods share one claim.
    pub(crate) fn is_shared(&self) -> bool {
        self.options.pods.is_some_and(|pods| pods.shared)
    }

    /// Whether each pod has its own directory: volumes may be shared, contents depend on names.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.is_shared() || self.pods > 1
    }

    fn is_by_itself(&self) -> bool {
        matches!(self.start, AgentStart::ByItself { .. })
    }

    /// Whether the pods stay and keep their result, since nodes truncate their logs.
    fn keeps_result(&self) -> bool {
        self.start == AgentStart::ByItself { stays: true }
    }

    /// Whether the volume is a block device.
    pub(crate) fn is_block(&self) -> bool {
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
    pub(crate) fn job(&self) -> Result<Job, RunError> {
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
                ttl_seconds_after_finished: (!self.is_by_itself()).then(|| self.time_to_live_s()),
                template: self.template()?,
                ..JobSpec::default()
            }),
            status: None,
        })
    }

    /// Returns the seconds that the objects of a finished run stay. Those of a failed run that the
    /// user wants to inspect stay until its deadline.
    fn time_to_live_s(&self) -> i32 {
        match self.options.keep_failed {
            KeepOption::Given => i32::try_from(self.options.deadline.as_secs()).unwrap_or(i32::MAX),
            KeepOption::Unavailable | KeepOption::NotGiven => TIME_TO_LIVE_S,
        }
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
        // Several need an affinity.
        if let [arch] = self.archs {
            node_selector.insert(ARCH_LABEL.to_owned(), (*arch).to_owned());
        }
        node_selector.insert("kubernetes.io/os".to_owned(), "linux".to_owned());
        let placement = self
            .options
            .pods
            .map_or(PodPlacement::Any, |pods| pods.placement);
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

    /// Follows the Pod Security Standard `restricted`, unless the volume needs more.
    fn pod_security(&self) -> PodSecurityContext {
        let user = self.user();
        // The group of files on an existing claim is not changed.
        let is_ours = matches!(
            self.options.target,
            TargetUri::StorageClass(_) | TargetUri::Ephemeral(_) | TargetUri::EmptyDir
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
        let usual = self.options.why_root().map_or(UNPRIVILEGED_ID, |_| 0);
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
            mounts.push(VolumeMount {
                read_only: self.options.inspects_node.then_some(true),
                ..mount("data", MOUNT)
            });
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
            // The end of the log is then part of the pod's status, which outlives the container.
            termination_message_policy: (!self.is_by_itself())
                .then(|| "FallbackToLogsOnError".to_owned()),
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
        if self.options.target == TargetUri::EmptyDir && !self.options.in_memory {
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
}

#[cfg(test)]
mod tests;
