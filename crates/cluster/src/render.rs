//! Renders manifests for use without iosonde: with `kubectl apply`, or from a GitOps repository.
//!
//! The pods run the job by themselves, and write the result for `collect`. No cluster is contacted.

use crate::image::carries_agent;
use crate::manifest::{JOB_FILE, RunSpec, Start};
use crate::options::{ClusterOptions, VolumeMode, own_arch};
use crate::preflight::judge_mode;
use iosonde_job::Target;
use iosonde_result::session::RunError;
use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, PodTemplateSpec};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Kind of object that owns the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A Job: its pods end with the fio job.
    Job,
    /// A StatefulSet: its pods stay, each with the claim created for it.
    StatefulSet,
}

/// Parameters of a rendered manifest.
#[derive(Debug, Clone, Copy)]
pub struct Rendering<'a> {
    /// Kind of object that owns the pods.
    pub form: Form,
    /// Volume and properties of the pods.
    pub options: &'a ClusterOptions,
    /// Text of the fio job file.
    pub job_file: &'a str,
}

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
    /// If a run of this kind needs answers of a cluster, or the image does not contain the agent.
    pub fn yaml(&self) -> Result<String, RunError> {
        judge_mode(self.options)?;
        let image = self.image()?;
        let pods = self.pods()?;
        let draft = self.manifests("00000000", image, pods)?;
        let digest = Sha256::digest(draft.as_bytes());
        let id: String = digest[..4].iter().map(|b| format!("{b:02x}")).collect();
        let count = match pods {
            1 => "one pod".to_owned(),
            pods => format!("{pods} pods, each on a volume of its own"),
        };
        let head = HEAD
            .replace("TARGET", &self.options.target.to_string())
            .replace("COUNT", &count)
            .replace("ID", &id);
        Ok(head + &self.manifests(&id, image, pods)?)
    }

    fn image(&self) -> Result<&str, RunError> {
        let image = self.options.image.as_deref().unwrap_or_default();
        if carries_agent(image) {
            return Ok(image);
        }
        Err(RunError::Unsupported {
            problem: match image {
                "" => "a manifest needs an image that carries the agent".to_owned(),
                image => format!("the image {image} does not carry the agent, by its name"),
            },
            remedy: "make one with `iosonde k8s image`, put it into your registry, and name it: \
                     --image REGISTRY/iosonde-agent:TAG"
                .to_owned(),
        })
    }

    fn pods(&self) -> Result<u32, RunError> {
        let refuse = |problem: &str, remedy: &str| {
            Err(RunError::Unsupported {
                problem: problem.to_owned(),
                remedy: remedy.to_owned(),
            })
        };
        let is_block = self.options.volume_mode == VolumeMode::Block;
        if is_block && matches!(self.options.target, Target::Claim { .. }) {
            return refuse(
                "nobody would look whether another pod uses this block device before it is written",
                "run it with iosonde, which does, or name a storage class",
            );
        }
        let Some(pods) = self.options.pods else {
            return Ok(1);
        };
        if self.form == Form::StatefulSet && pods.shared {
            return refuse(
                "the pods of a StatefulSet have a claim each",
                "leave out --shared, or render a Job",
            );
        }
        let is_there = matches!(
            self.options.target,
            Target::Claim { .. } | Target::HostPath(_)
        );
        if self.form == Form::StatefulSet && is_there && pods.count != Some(1) {
            return refuse(
                "the pods of this StatefulSet would use the same directory",
                "render a Job, or name a storage class",
            );
        }
        match pods.count {
            Some(count) => Ok(count),
            None => refuse(
                "how many nodes there are is not known to a manifest",
                "say how many pods, and that they are spread: --pods N --placement spread",
            ),
        }
    }

    fn manifests(&self, id: &str, image: &str, pods: u32) -> Result<String, RunError> {
        let spec = RunSpec {
            id,
            namespace: self.options.namespace.as_deref().unwrap_or_default(),
            image,
            arch: own_arch(),
            pods,
            may_claim: false,
            start: Start::ByItself {
                stays: self.form == Form::StatefulSet,
            },
            // No cluster was contacted.
            labels: &BTreeMap::new(),
            options: self.options,
        };
        let mut parts = vec![
            yaml(&self.config_map(&spec))?,
            yaml(&role(&spec, self.form))?,
        ];
        if let Some(claim) = spec.only_claim(None) {
            parts.push(yaml(&claim)?);
        }
        parts.push(match self.form {
            Form::Job => yaml(&spec.job()?)?,
            Form::StatefulSet => yaml(&stateful_set(&spec)?)?,
        });
        Ok(parts.iter().map(|part| format!("---\n{part}")).collect())
    }

    fn config_map(&self, spec: &RunSpec<'_>) -> ConfigMap {
        ConfigMap {
            metadata: spec.metadata(),
            data: Some([(JOB_FILE.to_owned(), self.job_file.to_owned())].into()),
            ..ConfigMap::default()
        }
    }
}

/// Returns the role with the permissions that `collect` needs. The pods need none.
fn role(spec: &RunSpec<'_>, form: Form) -> Role {
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

fn yaml(manifest: &impl Serialize) -> Result<String, RunError> {
    serde_saphyr::to_string(manifest).map_err(|error| RunError::Unsupported {
        problem: format!("a manifest cannot be written: {error}"),
        remedy: "use other words in the job or in --pod-patch".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Placement, Pods};

    const IMAGE: &str = "registry.example.com/iosonde-agent:0.1.0";
    const JOB: &str = "[global]\nrw=randread\nbs=4k\n\n[a]\nsize=1g\n";

    fn options(target: &str, pods: Option<u32>) -> ClusterOptions {
        ClusterOptions {
            image: Some(IMAGE.to_owned()),
            pods: pods.map(|count| Pods {
                count: Some(count),
                placement: Placement::Any,
                shared: false,
            }),
            ..ClusterOptions::new(target.parse().unwrap())
        }
    }

    fn rendered(form: Form, options: &ClusterOptions) -> Result<String, RunError> {
        let text = Rendering {
            form,
            options,
            job_file: JOB,
        }
        .yaml()?;
        Ok(text)
    }

    /// Returns the text with architecture and id of the build machine replaced.
    fn anywhere(text: &str) -> String {
        let arch = format!("kubernetes.io/arch: {}", own_arch());
        text.replace(&arch, "kubernetes.io/arch: amd64")
            .replace(&id(text), "01234567")
    }

    fn id(text: &str) -> String {
        let (_, rest) = text.split_once("iosonde k8s collect ").unwrap();
        rest[..8].to_owned()
    }

    #[test]
    fn a_job() {
        let text = rendered(Form::Job, &options("sc://fast", None)).unwrap();
        insta::assert_snapshot!("job", anywhere(&text));
    }

    #[test]
    fn a_stateful_set() {
        let mut options = options("sc://fast", Some(3));
        options.namespace = Some("bench".to_owned());
        let text = rendered(Form::StatefulSet, &options).unwrap();
        insta::assert_snapshot!("stateful_set", anywhere(&text));
    }

    #[test]
    fn another_benchmark_has_another_name() {
        let name =
            |target: &str, pods| id(&rendered(Form::Job, &options(target, Some(pods))).unwrap());
        assert_eq!(name("sc://fast", 2), name("sc://fast", 2));
        assert_ne!(name("sc://fast", 2), name("sc://fast", 3));
        assert_ne!(name("sc://fast", 2), name("sc://slow", 2));
    }

    #[test]
    fn a_claim_that_pods_share_is_an_object_of_its_own() {
        let mut options = options("sc://nfs", Some(2));
        options.pods = options.pods.map(|pods| Pods {
            shared: true,
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
    fn what_a_manifest_cannot_know_is_refused() {
        let said = |form, change: &dyn Fn(&mut ClusterOptions)| {
            let mut options = options("sc://fast", Some(2));
            change(&mut options);
            let error = rendered(form, &options).unwrap_err();
            format!("{error}; {}", error.remedy())
        };
        let no_image = said(Form::Job, &|options| options.image = None);
        assert!(no_image.contains("iosonde k8s image"), "{no_image}");
        let busybox = said(Form::Job, &|o| o.image = Some("busybox".into()));
        assert!(busybox.contains("busybox does not carry"), "{busybox}");
        let pods = |count, shared| Pods {
            count,
            placement: Placement::PerNode,
            shared,
        };
        let nodes = said(Form::Job, &|o| o.pods = Some(pods(None, false)));
        assert!(nodes.contains("how many nodes"), "{nodes}");
        let shared = said(Form::StatefulSet, &|o| o.pods = Some(pods(Some(2), true)));
        assert!(shared.contains("a claim each"), "{shared}");
        let raw = said(Form::Job, &|o| {
            o.target = "pvc://raw".parse().unwrap();
            o.volume_mode = VolumeMode::Block;
        });
        assert!(raw.contains("another pod uses this block device"), "{raw}");
    }
}
