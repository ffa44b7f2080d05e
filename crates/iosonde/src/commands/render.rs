//! `--render`: manifests whose pods run a command, instead of running it.

mod command_words;
mod suite_files;

use super::target_session::refuse_unused_medium;
use super::{cluster, limits, run};
use crate::args::{CliCommand, ClusterArgs, ColdArgs, PodsArgs, RunArgs, WrittenArgs};
use crate::failure::CommandError;
use crate::output::Output;
use command_words::command_words;
use iosonde_cluster::ClusterOptions;
use iosonde_cluster::image::carries_agent;
use iosonde_cluster::render::{RenderedCommand, RenderedTask, Rendering};
use iosonde_job::{TargetUri, quote_shell_word};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use suite_files::{SuiteFilesEnv, path_beside};

/// A command with `--render`.
pub(super) struct RenderRequest<'a> {
    /// Targets that the command line names.
    targets: &'a [String],
    cluster: &'a ClusterArgs,
    pods: &'a PodsArgs,
    /// Targets that may be overwritten.
    consent: &'a [PathBuf],
    is_cold: bool,
    /// File for the manifests.
    output: Option<&'a Path>,
    /// The suite of `iosonde run`.
    suite: Option<&'a RunArgs>,
}

impl<'a> RenderRequest<'a> {
    /// Returns the request of a command with `--render`.
    pub(super) fn from_command(command: &'a CliCommand) -> Option<RenderRequest<'a>> {
        let one = std::slice::from_ref;
        let (render, request) = match command {
            CliCommand::Probe(args) => {
                let consent = &args.consent.allow_overwrite;
                let request = RenderRequest::new(&args.targets, &args.cluster, &args.pods);
                let request = request.written(consent, args.output.as_deref());
                (args.render, request.with_cold(&args.cold))
            }
            CliCommand::Sweep(args) => {
                let request = RenderRequest::new(&args.targets, &args.cluster, &args.pods);
                (
                    args.render,
                    request.study(&args.written).with_cold(&args.cold),
                )
            }
            CliCommand::Load(args) => {
                let request = RenderRequest::new(one(&args.target), &args.cluster, &args.pods);
                (
                    args.render,
                    request.study(&args.written).with_cold(&args.cold),
                )
            }
            CliCommand::Pts(args) => {
                let request = RenderRequest::new(one(&args.target), &args.cluster, &args.pods);
                (args.render, request.study(&args.written))
            }
            CliCommand::Run(args) => {
                let request = RenderRequest::new(&args.targets, &args.cluster, &args.pods);
                let mut request = request.study(&args.written).with_cold(&args.cold);
                request.suite = Some(args);
                (args.render, request)
            }
            _ => return None,
        };
        render.render.then_some(request)
    }

    fn new(
        targets: &'a [String],
        cluster: &'a ClusterArgs,
        pods: &'a PodsArgs,
    ) -> RenderRequest<'a> {
        RenderRequest {
            targets,
            cluster,
            pods,
            consent: &[],
            is_cold: false,
            output: None,
            suite: None,
        }
    }

    fn written(self, consent: &'a [PathBuf], output: Option<&'a Path>) -> RenderRequest<'a> {
        RenderRequest {
            consent,
            output,
            ..self
        }
    }

    fn study(self, written: &'a WrittenArgs) -> RenderRequest<'a> {
        self.written(&written.consent.allow_overwrite, written.output.as_deref())
    }

    fn with_cold(self, cold: &ColdArgs) -> RenderRequest<'a> {
        RenderRequest {
            is_cold: !cold.cold.is_empty(),
            ..self
        }
    }

    /// Prints the manifests whose pods run the command of this command line.
    pub(super) fn render(&self, words: &[OsString]) -> Result<(), CommandError> {
        let text = self.manifests(words)?;
        Output::open(self.output)?.save_unchanged(text.as_bytes())
    }

    fn manifests(&self, words: &[OsString]) -> Result<String, CommandError> {
        let (name, target, args) = self.target()?;
        refuse_unused_medium(self.targets, self.cluster)?;
        let words = command_words(words)?;
        let command = match self.suite {
            Some(args) => suite_command(args, words)?,
            None => RenderedCommand {
                words,
                ..RenderedCommand::default()
            },
        };
        let options = cluster::options_of_pods(target, &args, self.pods.pods())?;
        let options = cluster::with_consent(options, name, self.consent);
        refuse_options_without_effect(&options, &args, self.is_cold)?;
        refuse_other_consent(name, self.consent)?;
        refuse_image_without_iosonde(options.image.as_deref())?;
        let rendering = Rendering {
            options: &options,
            task: RenderedTask::Command(&command),
        };
        Ok(rendering.yaml()?)
    }

    /// Returns the only target with its name and the options of its cluster.
    fn target(&self) -> Result<(&str, TargetUri, ClusterArgs), CommandError> {
        let [name] = self.targets else {
            return Err(CommandError::usage(
                format!(
                    "--render needs one target, but there are {}",
                    self.targets.len()
                ),
                "name one target in a Kubernetes cluster, e.g. sc://CLASS, and render each target \
                 separately",
            ));
        };
        match cluster::target_within(name, self.cluster)? {
            Some((target, args)) => Ok((name.as_str(), target, args)),
            None => Err(CommandError::usage(
                format!("--render makes manifests for Kubernetes, but {name} is not in a cluster"),
                "leave out --render, or name a volume: sc://CLASS, pvc://CLAIM",
            )),
        }
    }
}

/// Returns the command of a suite with the files that it reads.
fn suite_command(args: &RunArgs, mut words: Vec<String>) -> Result<RenderedCommand, CommandError> {
    let name = args.suite.as_deref().unwrap_or_default();
    let env = SuiteFilesEnv::default();
    let limits = limits::read_limits(args.limits_file.as_deref())?;
    let suite = run::read_suite(args, &limits, &env)?;
    if suite.pods.is_some() {
        return Err(CommandError::usage(
            format!("{name}: `pods` and `per_node` of a suite have no effect with --render"),
            "remove them from the suite, and use --pods N",
        ));
    }
    let (files, variables) = env.files_beside(name)?;
    // A built-in suite is no file.
    let path = path_beside(name, name).filter(|path| files.contains_key(path));
    words.push(match path {
        Some(path) => format!("{}/{path}", RenderedCommand::FILES),
        None => name.to_owned(),
    });
    Ok(RenderedCommand {
        words,
        files,
        variables,
    })
}

/// Refuses options that only an iosonde outside of the pods could carry out.
pub(super) fn refuse_options_without_effect(
    options: &ClusterOptions,
    args: &ClusterArgs,
    is_cold: bool,
) -> Result<(), CommandError> {
    if options.watch_nodes.iter().flatten().next().is_some() {
        return Err(CommandError::usage(
            "--watch-node has no effect with --render: only an iosonde that runs the jobs watches \
             nodes",
            "leave out --watch-node",
        ));
    }
    if matches!(options.target, TargetUri::Pods { .. }) {
        return Err(CommandError::usage(
            "--render makes manifests of new pods, but the target is pods that exist",
            "leave out --render, or name a volume: sc://CLASS, pvc://CLAIM",
        ));
    }
    if args.create_namespace {
        return Err(CommandError::usage(
            "--create-namespace has no effect with --render: only an iosonde that runs the jobs \
             creates a namespace",
            "leave out the option, and run `kubectl create namespace NAME` first",
        ));
    }
    if is_cold {
        return Err(CommandError::usage(
            "--cold has no effect with --render: only an iosonde that runs the jobs drops caches",
            "leave out --cold",
        ));
    }
    if args.keep_failed {
        return Err(CommandError::usage(
            "--keep has no effect with --render: only an iosonde that runs the jobs removes their \
             pods",
            "leave out --keep",
        ));
    }
    Ok(())
}

/// Refuses consent for anything but the target.
fn refuse_other_consent(name: &str, consent: &[PathBuf]) -> Result<(), CommandError> {
    match consent.iter().find(|path| path.as_os_str() != name) {
        None => Ok(()),
        Some(other) => Err(CommandError::usage(
            format!(
                "--allow-overwrite {} does not name the target",
                quote_shell_word(&other.to_string_lossy())
            ),
            format!(
                "write --allow-overwrite {}, or leave out --allow-overwrite",
                quote_shell_word(name)
            ),
        )),
    }
}

/// Refuses an image that has no iosonde for certain: none, or that of the agent.
fn refuse_image_without_iosonde(image: Option<&str>) -> Result<(), CommandError> {
    let problem = match image {
        None => "--render needs the name of an image that contains iosonde".to_owned(),
        Some(image) if carries_agent(image) => {
            format!("the image {image} has only the agent, which runs no command but fio")
        }
        Some(_) => return Ok(()),
    };
    Err(CommandError::usage(
        problem,
        "build one as docs/kubernetes.md shows, and name it: --image \
         registry.example.com/iosonde:0.1.0",
    ))
}

#[cfg(test)]
mod tests;
