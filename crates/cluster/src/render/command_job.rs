//! The Job of a rendered manifest whose pods run a command of iosonde. Its image contains iosonde.

use crate::manifest::{AGENT_DIRECTORY, CONTAINER, DEVICE, JOB_DIRECTORY, RunSpec};
use iosonde_result::run_error::RunError;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, KeyToPath, PodSpec};
use std::collections::BTreeMap;

/// Directory for the files of iosonde in its pod. An image may have the program at `/iosonde`.
const CLIENT_DIRECTORY: &str = "/tmp";
/// Name of the volume with the files of the command.
const FILES_VOLUME: &str = "job";

/// A command of iosonde that the pods run on their volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedCommand {
    /// The command with its options and without its target, which comes last.
    pub words: Vec<String>,
    /// Files that the command reads, by their paths below [`RenderedCommand::FILES`].
    pub files: BTreeMap<String, String>,
    /// Environment variables that the files refer to.
    pub variables: BTreeMap<String, String>,
}

impl RenderedCommand {
    /// Directory of the files in the pod.
    pub const FILES: &'static str = JOB_DIRECTORY;

    /// Returns the data of the ConfigMap. Its keys cannot contain `/`, so they are numbers.
    pub(super) fn config_data(&self) -> BTreeMap<String, String> {
        let texts = self.files.values().cloned();
        texts
            .enumerate()
            .map(|(number, text)| (file_key(number), text))
            .collect()
    }

    fn key_paths(&self) -> Vec<KeyToPath> {
        let paths = self.files.keys().cloned();
        paths
            .enumerate()
            .map(|(number, path)| KeyToPath {
                key: file_key(number),
                path,
                mode: None,
            })
            .collect()
    }
}

fn file_key(number: usize) -> String {
    format!("file-{number}")
}

/// Returns the Job of the command.
///
/// # Errors
/// If the user's patch does not fit a pod.
pub(super) fn command_job(spec: &RunSpec<'_>, command: &RenderedCommand) -> Result<Job, RunError> {
    let mut job = spec.job()?;
    let pod = job.spec.as_mut().and_then(|job| job.template.spec.as_mut());
    if let Some(pod) = pod {
        mount_files(pod, command);
        let containers = pod.containers.iter_mut();
        for container in containers.filter(|container| container.name == CONTAINER) {
            run_command(container, spec, command);
        }
    }
    Ok(job)
}

/// Replaces the agent by the command.
fn run_command(container: &mut Container, spec: &RunSpec<'_>, command: &RenderedCommand) {
    // The entry point of the image is iosonde.
    container.command = None;
    container.args = Some(container_words(spec, command));
    container.working_dir = Some(CLIENT_DIRECTORY.to_owned());
    let environment = container.env.get_or_insert_default();
    let own = ["TMPDIR", "HOME"].map(|name| (name, CLIENT_DIRECTORY));
    let given = command.variables.iter();
    let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in given.chain(own) {
        environment.retain(|variable| variable.name != name);
        environment.push(EnvVar {
            name: name.to_owned(),
            value: Some(kubelet_escaped(value)),
            value_from: None,
        });
    }
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.retain(|mount| mount.name != FILES_VOLUME || !command.files.is_empty());
    for mount in mounts.iter_mut() {
        if mount.mount_path == AGENT_DIRECTORY {
            CLIENT_DIRECTORY.clone_into(&mut mount.mount_path);
        }
    }
}

/// Gives the files their paths, or removes their volume if the command reads none.
fn mount_files(pod: &mut PodSpec, command: &RenderedCommand) {
    let volumes = pod.volumes.get_or_insert_default();
    volumes.retain(|volume| volume.name != FILES_VOLUME || !command.files.is_empty());
    for volume in volumes
        .iter_mut()
        .filter(|volume| volume.name == FILES_VOLUME)
    {
        if let Some(source) = &mut volume.config_map {
            source.items = Some(command.key_paths());
        }
    }
}

/// Returns the arguments of iosonde: `k8s in-pod`, the volume, and the command.
fn container_words(spec: &RunSpec<'_>, command: &RenderedCommand) -> Vec<String> {
    let mut words = vec!["k8s".to_owned(), "in-pod".to_owned()];
    let target = spec.options.target.to_string();
    words.push(format!("--target={}", kubelet_escaped(&target)));
    words.push(match spec.is_block() {
        true => format!("--device={DEVICE}"),
        false => {
            let index = spec
                .is_one_of_several()
                .then_some("$(JOB_COMPLETION_INDEX)");
            format!("--scratch={}", spec.scratch(index))
        }
    });
    words.push("--".to_owned());
    words.extend(command.words.iter().map(|word| kubelet_escaped(word)));
    if spec.is_block() && spec.options.allow_overwrite {
        words.push(format!("--allow-overwrite={DEVICE}"));
    }
    if spec.is_block() && spec.is_shared() {
        words.push(format!("--allow-in-use={DEVICE}"));
    }
    words
}

/// Escapes a word for the kubelet, which replaces `$(NAME)` in arguments and in values of
/// environment variables, and `$$` by `$`.
fn kubelet_escaped(word: &str) -> String {
    word.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{ClusterOptions, PodPlacement, Pods, VolumeMode};
    use crate::render::{RenderedTask, Rendering};
    use serde_json::Value;

    const IMAGE: &str = "registry.example.com/iosonde:0.1.0";

    fn options(target: &str) -> ClusterOptions {
        ClusterOptions {
            image: Some(IMAGE.to_owned()),
            ..ClusterOptions::new(target.parse().unwrap())
        }
    }

    fn command(line: &str) -> RenderedCommand {
        RenderedCommand {
            words: line.split(' ').map(str::to_owned).collect(),
            ..RenderedCommand::default()
        }
    }

    /// Returns the objects of the manifest by their kinds.
    fn objects(options: &ClusterOptions, command: &RenderedCommand) -> BTreeMap<String, Value> {
        let task = RenderedTask::Command(command);
        let text = Rendering { options, task }.yaml().unwrap();
        let parts = text.split("---\n").skip(1);
        parts
            .map(|part| {
                let value: Value = serde_saphyr::from_str(part).unwrap();
                (value["kind"].as_str().unwrap().to_owned(), value)
            })
            .collect()
    }

    fn container(job: &Value) -> &Value {
        &job["spec"]["template"]["spec"]["containers"][0]
    }

    #[test]
    fn commands_are_rendered_as_jobs_of_iosonde() {
        for line in [
            "probe --quick",
            "sweep --axis=bs=4k,64k --exhaustive",
            "load --slo=p99=5ms",
            "pts --time-scale=0.01 iops",
            "run etcd",
        ] {
            let objects = objects(&options("sc://fast"), &command(line));
            let kinds: Vec<&str> = objects.keys().map(String::as_str).collect();
            assert_eq!(kinds, ["Job", "Role"], "{line}");
            let job = &objects["Job"];
            let id = job["metadata"]["labels"]["iosonde/rendered"]
                .as_str()
                .unwrap();
            let container = container(job);
            assert_eq!(container["image"], IMAGE);
            assert!(container.get("command").is_none(), "{container}");
            let words = container["args"].as_array().unwrap();
            let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
            let scratch = format!("--scratch=/data/.iosonde-{id}");
            let head = ["k8s", "in-pod", "--target=sc://fast", &scratch, "--"];
            assert_eq!(words[..5], head, "{line}");
            assert_eq!(words[5..].join(" "), line);
            let mounts = container["volumeMounts"].as_array().unwrap();
            let paths: Vec<&Value> = mounts.iter().map(|mount| &mount["mountPath"]).collect();
            assert_eq!(paths, ["/tmp", "/data"], "{line}");
            let pod = &job["spec"]["template"]["spec"];
            assert_eq!(pod["automountServiceAccountToken"], false);
            assert_eq!(pod["volumes"].as_array().map(Vec::len), Some(2));
        }
    }

    #[test]
    fn pods_of_a_job_have_directories_of_their_own() {
        let mut options = options("sc://nfs");
        options.pods = Some(Pods {
            count: Some(3),
            placement: PodPlacement::PerNode,
            shared: true,
            checks_shared_file: false,
        });
        let objects = objects(&options, &command("probe"));
        let job = &objects["Job"];
        assert_eq!(job["spec"]["completions"], 3);
        assert_eq!(job["spec"]["parallelism"], 3);
        let scratch = container(job)["args"][3].as_str().unwrap();
        assert!(scratch.ends_with("-$(JOB_COMPLETION_INDEX)"), "{scratch}");
        assert!(objects.contains_key("PersistentVolumeClaim"));
    }

    #[test]
    fn block_device_is_overwritten_only_with_consent() {
        let mut options = options("sc://fast");
        options.volume_mode = VolumeMode::Block;
        let words = |options: &ClusterOptions| {
            let objects = objects(options, &command("pts iops"));
            container(&objects["Job"])["args"].to_string()
        };
        let without = words(&options);
        assert!(without.contains(&format!("--device={DEVICE}")), "{without}");
        assert!(!without.contains("--allow-overwrite"), "{without}");
        options.allow_overwrite = true;
        let with = words(&options);
        assert!(
            with.contains(&format!("--allow-overwrite={DEVICE}")),
            "{with}"
        );
    }

    #[test]
    fn files_of_a_suite_are_mounted_by_their_paths() {
        let mut suite = command("run /job/suite.toml --var=a=$(HOME)");
        suite
            .files
            .insert("jobs/wal.fio".to_owned(), "[a]\n".to_owned());
        suite
            .files
            .insert("suite.toml".to_owned(), "# x\n".to_owned());
        let value = "1g$(HOME)$$".to_owned();
        suite.variables.insert("SIZE".to_owned(), value);
        let objects = objects(&options("pvc://data"), &suite);
        let data = &objects["ConfigMap"]["data"];
        assert_eq!(data["file-0"], "[a]\n");
        assert_eq!(data["file-1"], "# x\n");
        let job = &objects["Job"];
        let volumes = &job["spec"]["template"]["spec"]["volumes"];
        let items = &volumes[0]["configMap"]["items"];
        assert_eq!(items[0]["path"], "jobs/wal.fio");
        assert_eq!(items[1]["path"], "suite.toml");
        let container = container(job);
        assert_eq!(container["args"][7], "--var=a=$$(HOME)");
        let environment = container["env"].as_array().unwrap();
        let names: Vec<&Value> = environment
            .iter()
            .map(|variable| &variable["name"])
            .collect();
        assert_eq!(names, ["SIZE", "TMPDIR", "HOME"]);
        assert_eq!(environment[0]["value"], "1g$$(HOME)$$$$");
        assert_eq!(
            container["volumeMounts"][0]["mountPath"],
            RenderedCommand::FILES
        );
    }
}
