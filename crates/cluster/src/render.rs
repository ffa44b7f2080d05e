//! Renders manifests for use without iosonde: with `kubectl apply`, or from a GitOps repository.
//!
//! The pods run a fio job or a command by themselves, and write the result for `collect`. No
//! cluster is contacted.

mod command_job;

pub use command_job::RenderedCommand;

use crate::image::carries_agent;
use crate::manifest::{AgentStart, JOB_FILE, RunSpec};
use crate::options::{ClusterOptions, VolumeMode, own_arch};
use crate::preflight::judge_mode;
use crate::refusal::refuse;
use command_job::command_job;
use iosonde_job::{TargetUri, lowercase_hex};
use iosonde_result::run_error::{ClusterObstacle, ManifestLimit, RunError};
use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, PodTemplateSpec};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::error::Error;

/// Kind of object that owns the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A Job: its pods end with the fio job.
    Job,
    /// A StatefulSet: its pods stay, each with the claim created for it.
    StatefulSet,
}

/// Command that the pods run.
#[derive(Debug, Clone, Copy)]
pub enum RenderedTask<'a> {
    /// A fio job, which the agent runs.
    JobFile {
        /// Kind of object that owns the pods.
        form: Form,
        /// Text of the job file.
        text: &'a str,
    },
    /// A command of iosonde, in the pods of a Job.
    Command(&'a RenderedCommand),
}

/// Parameters of a rendered manifest.
#[derive(Debug, Clone, Copy)]
pub struct Rendering<'a> {
    /// Volume and properties of the pods.
    pub options: &'a ClusterOptions,
    /// Command that the pods run.
    pub task: RenderedTask<'a>,
}

/// Largest sum of the values of a ConfigMap.
const CONFIG_MAP_BYTES_MAX: u64 = 1 << 20;

/// Largest sum of the files that `kubectl apply` stores a second time, as JSON, in an annotation.
/// An annotation holds 256 KiB, and JSON may double the length of a text.
const CLIENT_APPLY_BYTES_MAX: u64 = 128 << 10;

/// Comment at the top of the manifests, with placeholders.
const HEAD: &str = "\
# A storage benchmark on TARGET: COUNT.
#
#   kubectl apply -f FILE           starts it
#   iosonde k8s collect ID    waits for its end, and puts the results together
#   kubectl delete -f FILE          removes it with its volumes
";

impl Rendering<'_> {
    /// Returns the manifests as YAML. The text is deterministic, and the id is a hash of it.
    ///
    /// # Errors
    /// If a run of this kind needs answers of a cluster, or the image does not contain the agent of
    /// a fio job.
    pub fn yaml(&self) -> Result<String, RunError> {
        judge_mode(self.options)?;
        let image = self.image()?;
        let pods = self.pods()?;
        let bytes = self.files_bytes();
        if bytes > CONFIG_MAP_BYTES_MAX {
            return cannot_hold(ManifestLimit::FilesTooLarge { bytes });
        }
        let draft = self.manifests("00000000", image, pods)?;
        let digest = Sha256::digest(draft.as_bytes());
        let id = lowercase_hex(&digest[..4]);
        let count = match pods {
            1 => "one pod".to_owned(),
            pods => format!("{pods} pods, each on a volume of its own"),
        };
        // A line break in the target must not end the comment.
        let target = self.options.target.to_string();
        let target = target.replace(char::is_control, " ");
        let head = HEAD
            .replace("ID", &id)
            .replace("COUNT", &count)
            .replace("TARGET", &target);
        let head = match bytes > CLIENT_APPLY_BYTES_MAX {
            true => head.replace("apply -f FILE  ", "apply --server-side -f FILE"),
            false => head,
        };
        Ok(head + &self.manifests(&id, image, pods)?)
    }

    fn form(&self) -> Form {
        match self.task {
            RenderedTask::JobFile { form, .. } => form,
            RenderedTask::Command(_) => Form::Job,
        }
    }

    fn image(&self) -> Result<&str, RunError> {
        let image = self.options.image.as_deref().unwrap_or_default();
        // No name tells whether an image contains iosonde.
        if carries_agent(image) || matches!(self.task, RenderedTask::Command(_)) {
            return Ok(image);
        }
        let image = image.to_owned();
        refuse(ClusterObstacle::ImageWithoutAgent { image })
    }

    fn pods(&self) -> Result<u32, RunError> {
        let is_block = self.options.volume_mode == VolumeMode::Block;
        if is_block && matches!(self.options.target, TargetUri::Claim { .. }) {
            return cannot_hold(ManifestLimit::ExistingBlockClaim);
        }
        let Some(pods) = self.options.pods else {
            return Ok(1);
        };
        if self.form() == Form::StatefulSet && pods.shared {
            return cannot_hold(ManifestLimit::SharedStatefulSet);
        }
        if self.options.checks_shared_file() {
            return cannot_hold(ManifestLimit::SharedFileCheck);
        }
        let is_there = matches!(
            self.options.target,
            TargetUri::Claim { .. } | TargetUri::HostPath(_)
        );
        if self.form() == Form::StatefulSet && is_there && pods.count != Some(1) {
            return cannot_hold(ManifestLimit::StatefulSetOnOneVolume);
        }
        match pods.count {
            Some(count) => Ok(count),
            None => cannot_hold(ManifestLimit::UnknownPodCount),
        }
    }

    fn manifests(&self, id: &str, image: &str, pods: u32) -> Result<String, RunError> {
        let spec = RunSpec {
            id,
            namespace: self.options.namespace.as_deref().unwrap_or_default(),
            image,
            archs: &[own_arch()],
            pods,
            may_claim: false,
            start: AgentStart::ByItself {
                stays: self.form() == Form::StatefulSet,
            },
            // No cluster was contacted.
            labels: &BTreeMap::new(),
            options: self.options,
        };
        let mut parts = Vec::new();
        let data = self.config_data();
        if !data.is_empty() {
            parts.push(manifest_yaml(&config_map(&spec, data))?);
        }
        parts.push(manifest_yaml(&role_for_collect(&spec, self.form()))?);
        if let Some(claim) = spec.only_claim(None) {
            parts.push(manifest_yaml(&claim)?);
        }
        parts.push(match self.task {
            RenderedTask::Command(command) => manifest_yaml(&command_job(&spec, command)?)?,
            RenderedTask::JobFile { form, .. } => match form {
                Form::Job => manifest_yaml(&spec.job()?)?,
                Form::StatefulSet => manifest_yaml(&stateful_set(&spec)?)?,
            },
        });
        Ok(parts.iter().map(|part| format!("---\n{part}")).collect())
    }

    /// Returns the size of the files that the pods read.
    fn files_bytes(&self) -> u64 {
        match self.task {
            RenderedTask::JobFile { text, .. } => text.len() as u64,
            RenderedTask::Command(command) => {
                command.files.values().map(|text| text.len() as u64).sum()
            }
        }
    }

    /// Returns the files that the pods read.
    fn config_data(&self) -> BTreeMap<String, String> {
        match self.task {
            RenderedTask::JobFile { text, .. } => [(JOB_FILE.to_owned(), text.to_owned())].into(),
            RenderedTask::Command(command) => command.config_data(),
        }
    }
}

fn config_map(spec: &RunSpec<'_>, data: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap {
        metadata: spec.metadata(),
        data: Some(data),
        ..ConfigMap::default()
    }
}

/// Returns the role with the permissions that `collect` needs. The pods need none.
fn role_for_collect(spec: &RunSpec<'_>, form: Form) -> Role {
    let rule_of = |group: &str, resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        ..PolicyRule::default()
    };
    let rule = |group, resource, verb| rule_of(group, resource, &[verb]);
    let mut rules = vec![
        rule("", "pods", "list"),
        rule("", "pods/log", "get"),
        // Events explain why pods do not run.
        rule("", "events", "list"),
        rule("batch", "jobs", "get"),
    ];
    if form == Form::StatefulSet {
        // A result whose log was truncated by the node is read in the pod.
        rules.push(rule_of("", "pods/exec", &["create", "get"]));
    }
    Role {
        metadata: ObjectMeta {
            name: Some(format!("{}-collect", spec.name())),
            ..spec.metadata()
        },
        rules: Some(rules),
    }
}

fn stateful_set(spec: &RunSpec<'_>) -> Result<StatefulSet, RunError> {
    let mut template: PodTemplateSpec = spec.template()?;
    if let Some(pod) = &mut template.spec {
        pod.restart_policy = None;
    }
    let claim = spec.claim_template().map(|claim| PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some("data".to_owned()),
            ..claim.metadata.unwrap_or_default()
        },
        spec: Some(claim.spec),
        status: None,
    });
    let delete = || Some("Delete".to_owned());
    Ok(StatefulSet {
        metadata: spec.metadata(),
        spec: Some(StatefulSetSpec {
            service_name: Some(spec.name()),
            replicas: Some(spec.pods as i32),
            pod_management_policy: Some("Parallel".to_owned()),
            persistent_volume_claim_retention_policy: Some(
                StatefulSetPersistentVolumeClaimRetentionPolicy {
                    when_deleted: delete(),
                    when_scaled: delete(),
                },
            ),
            selector: spec.selector(),
            template,
            volume_claim_templates: claim.map(|claim| vec![claim]),
            ..StatefulSetSpec::default()
        }),
        status: None,
    })
}

/// Writes a manifest as YAML. The program contains one writer of YAML, that of [`Value`], which
/// keeps the order of the fields.
fn manifest_yaml(manifest: &impl Serialize) -> Result<String, RunError> {
    let value = serde_json::to_value(manifest).map_err(|error| not_written(&error))?;
    serde_saphyr::to_string::<Value>(&value).map_err(|error| not_written(&error))
}

fn not_written(error: &dyn Error) -> RunError {
    let error = error.to_string();
    ClusterObstacle::ManifestNotWritten { error }.into()
}

fn cannot_hold<T>(limit: ManifestLimit) -> Result<T, RunError> {
    refuse(ClusterObstacle::NotRenderable(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{PodPlacement, Pods};

    const IMAGE: &str = "registry.example.com/iosonde-agent:0.1.0";
    const JOB: &str = "[global]\nrw=randread\nbs=4k\n\n[a]\nsize=1g\n";

    fn options(target: &str, pods: Option<u32>) -> ClusterOptions {
        ClusterOptions {
            image: Some(IMAGE.to_owned()),
            pods: pods.map(|count| Pods {
                count: Some(count),
                placement: PodPlacement::Any,
                shared: false,
                checks_shared_file: false,
            }),
            ..ClusterOptions::new(target.parse().unwrap())
        }
    }

    fn rendered(form: Form, options: &ClusterOptions) -> Result<String, RunError> {
        let task = RenderedTask::JobFile { form, text: JOB };
        Rendering { options, task }.yaml()
    }

    /// Returns the text with architecture and id of the build machine replaced.
    fn without_machine(text: &str) -> String {
        let arch = format!("kubernetes.io/arch: {}", own_arch());
        text.replace(&arch, "kubernetes.io/arch: amd64")
            .replace(&id(text), "01234567")
    }

    fn id(text: &str) -> String {
        let (_, rest) = text.split_once("iosonde k8s collect ").unwrap();
        rest[..8].to_owned()
    }

    #[test]
    fn rendered_job_matches_snapshot() {
        let text = rendered(Form::Job, &options("sc://fast", None)).unwrap();
        insta::assert_snapshot!("job", without_machine(&text));
    }

    #[test]
    fn rendered_stateful_set_matches_snapshot() {
        let mut options = options("sc://fast", Some(3));
        options.namespace = Some("bench".to_owned());
        let text = rendered(Form::StatefulSet, &options).unwrap();
        insta::assert_snapshot!("stateful_set", without_machine(&text));
    }

    #[test]
    fn rendered_name_differs_by_options() {
        let name =
            |target: &str, pods| id(&rendered(Form::Job, &options(target, Some(pods))).unwrap());
        assert_eq!(name("sc://fast", 2), name("sc://fast", 2));
        assert_ne!(name("sc://fast", 2), name("sc://fast", 3));
        assert_ne!(name("sc://fast", 2), name("sc://slow", 2));
    }

    #[test]
    fn shared_claim_is_rendered_as_separate_object() {
        let mut options = options("sc://nfs", Some(2));
        options.pods = options.pods.map(|pods| Pods {
            shared: true,
            checks_shared_file: false,
            ..pods
        });
        let text = rendered(Form::Job, &options).unwrap();
        assert!(text.contains("kind: PersistentVolumeClaim"), "{text}");
        assert!(!text.contains("ownerReferences"), "{text}");
        assert!(text.contains("-$(JOB_COMPLETION_INDEX)"), "{text}");
    }

    #[test]
    fn manifest_of_a_device_has_the_consent_that_was_given() {
        let has = |is_agreed, option: &str| {
            let mut options = options("sc://fast", None);
            options.volume_mode = VolumeMode::Block;
            options.allow_overwrite = is_agreed;
            rendered(Form::Job, &options).unwrap().contains(option)
        };
        assert!(has(true, "--allow-overwrite"));
        assert!(!has(false, "--allow-overwrite") && !has(true, "--allow-in-use"));
    }

    #[test]
    fn files_above_the_size_of_a_config_map_are_refused() {
        let options = options("sc://fast", None);
        let render = |text: &str| {
            let form = Form::Job;
            let task = RenderedTask::JobFile { form, text };
            let options = &options;
            Rendering { options, task }.yaml()
        };
        let fits = "#".repeat(1 << 20);
        let text = render(&fits).unwrap();
        assert!(text.contains("kubectl apply --server-side -f FILE "));
        let bytes = (1 << 20) + 1;
        let limit = ManifestLimit::FilesTooLarge { bytes };
        let refused = RunError::from(ClusterObstacle::NotRenderable(limit));
        assert_eq!(render(&(fits + "#")), Err(refused));
        let half = "x".repeat(600 << 10);
        let command = RenderedCommand {
            files: [("a", &half), ("b", &half)]
                .map(|(path, text)| (path.to_owned(), text.clone()))
                .into(),
            ..RenderedCommand::default()
        };
        let task = RenderedTask::Command(&command);
        let options = &options;
        let refused = Rendering { options, task }.yaml().unwrap_err();
        let bytes = 1200 << 10;
        let limit = ManifestLimit::FilesTooLarge { bytes };
        assert_eq!(refused, ClusterObstacle::NotRenderable(limit).into());
    }

    #[test]
    fn render_refuses_options_that_a_manifest_cannot_hold() {
        let refused = |form, change: &dyn Fn(&mut ClusterOptions)| {
            let mut options = options("sc://fast", Some(2));
            change(&mut options);
            rendered(form, &options).unwrap_err()
        };
        let without_agent = |image: &str| {
            let image = image.to_owned();
            RunError::from(ClusterObstacle::ImageWithoutAgent { image })
        };
        let beyond = |limit| RunError::from(ClusterObstacle::NotRenderable(limit));
        let no_image = refused(Form::Job, &|options| options.image = None);
        assert_eq!(no_image, without_agent(""));
        let busybox = refused(Form::Job, &|o| o.image = Some("busybox".into()));
        assert_eq!(busybox, without_agent("busybox"));
        let pods = |count, shared| Pods {
            count,
            placement: PodPlacement::PerNode,
            shared,
            checks_shared_file: false,
        };
        let nodes = refused(Form::Job, &|o| o.pods = Some(pods(None, false)));
        assert_eq!(nodes, beyond(ManifestLimit::UnknownPodCount));
        let shared = refused(Form::StatefulSet, &|o| o.pods = Some(pods(Some(2), true)));
        assert_eq!(shared, beyond(ManifestLimit::SharedStatefulSet));
        let file = refused(Form::Job, &|o| {
            let pods = pods(Some(2), true);
            o.pods = Some(Pods {
                checks_shared_file: true,
                ..pods
            });
        });
        assert_eq!(file, beyond(ManifestLimit::SharedFileCheck));
        let raw = refused(Form::Job, &|o| {
            o.target = "pvc://raw".parse().unwrap();
            o.volume_mode = VolumeMode::Block;
        });
        assert_eq!(raw, beyond(ManifestLimit::ExistingBlockClaim));
    }
}
