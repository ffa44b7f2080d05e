//! Volumes of the pods of a run, and their claims.

use super::{AgentStart, RunSpec, quantity};
use crate::options::VolumeMode;
use iosonde_job::TargetUri;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, EphemeralVolumeSource, HostPathVolumeSource,
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource, Volume, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

impl RunSpec<'_> {
    /// Whether there is one claim, created with the Job. Otherwise the cluster creates one per pod,
    /// after the pod: the scheduler first fails, and retries a second or two later.
    fn has_one_claim(&self) -> bool {
        let is_class = matches!(self.options.target, TargetUri::StorageClass(_));
        // A patch may refer to the volume, so its form must not depend on the user's permissions.
        let is_plain = self.options.pod_patch.is_none();
        self.is_shared() || (is_class && is_plain && self.may_claim && self.pods == 1)
    }

    /// Returns the claim of the only pod, or the shared one, owned by the Job with this UID if
    /// given. `None` if the cluster creates a claim for each pod.
    pub(crate) fn only_claim(&self, job_uid: Option<&str>) -> Option<PersistentVolumeClaim> {
        let TargetUri::StorageClass(class) = &self.options.target else {
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

    /// Returns the volumes of the pod: job file, agent, and data.
    pub(super) fn volumes(&self) -> Vec<Volume> {
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
                TargetUri::StorageClass(class) | TargetUri::Ephemeral(class),
                AgentStart::ByItself { stays: true },
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
            TargetUri::StorageClass(_) if self.has_one_claim() => {
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                    claim_name: self.claim_name(),
                    read_only: None,
                });
            }
            TargetUri::StorageClass(class) | TargetUri::Ephemeral(class) => {
                volume.ephemeral = Some(EphemeralVolumeSource {
                    volume_claim_template: Some(self.claim(class)),
                });
            }
            TargetUri::Claim { name, .. } => {
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                    claim_name: name.clone(),
                    read_only: None,
                });
            }
            TargetUri::HostPath(path) => {
                volume.host_path = Some(HostPathVolumeSource {
                    path: path.clone(),
                    type_: Some("Directory".to_owned()),
                });
            }
            TargetUri::EmptyDir if self.options.in_memory => {
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
