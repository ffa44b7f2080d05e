//! Arguments of `iosonde k8s`.

use super::output_file::{OutputFileKind, output_file, text_file};
use super::{
    CLAIM_SIZE_HELP, CSI_EXAMPLES, ClusterAccessArgs, ClusterArgs, ColdArgs, CsiArgs,
    EPHEMERAL_STORAGE_HELP, KeepArgs, LIFECYCLE_EXAMPLES, LIFECYCLE_TIMEOUT_HELP, LifecycleArgs,
    ONE_CONTEXT_HELP, UNUSED_BY_CSI, UNUSED_BY_LIFECYCLE, seconds,
};
use clap::{Args, Subcommand, ValueEnum};
use iosonde_cluster::image::carries_agent;
use iosonde_cluster::manifest::quantity_bytes;
use iosonde_result::fio::Formats;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `iosonde k8s`.
#[derive(Debug, Args)]
pub(crate) struct K8sArgs {
    #[command(subcommand)]
    pub(crate) command: K8sCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum K8sCommand {
    /// Run fio jobs on one or several storage classes, with kubestr's flags
    // Its own --size is that of the claim. Classes have no emptyDir, which --medium describes.
    #[command(
        after_help = K8S_FIO_EXAMPLES,
        mut_arg("claim_size", |size| size.hide(true)),
        mut_arg("medium", |medium| medium.hide(true))
    )]
    Fio(K8sFioArgs),
    /// Measure each stage in the life of volumes: provision, bind, attach, mount, first write,
    /// expand, detach, delete
    #[command(
        after_help = LIFECYCLE_EXAMPLES,
        mut_args(|option| match UNUSED_BY_LIFECYCLE.contains(&option.get_id().as_str()) {
            true => option.hide(true),
            false => option,
        }),
        mut_arg("context", |context| context.help(ONE_CONTEXT_HELP)),
        mut_arg("claim_size", |size| size.help(CLAIM_SIZE_HELP)),
        mut_arg("ephemeral_storage", |storage| storage.help(EPHEMERAL_STORAGE_HELP)),
        mut_arg("timeout", |timeout| timeout.help(LIFECYCLE_TIMEOUT_HELP))
    )]
    Lifecycle(LifecycleArgs),
    /// Measure data services of a class: snapshot, restore, clone, expansion; their data are
    /// compared by checksum, and the latency of an application around them is measured
    #[command(
        after_help = CSI_EXAMPLES,
        mut_args(|option| match UNUSED_BY_CSI.contains(&option.get_id().as_str()) {
            true => option.hide(true),
            false => option,
        }),
        mut_arg("context", |context| context.help(ONE_CONTEXT_HELP)),
        mut_arg("claim_size", |size| size.help(CLAIM_SIZE_HELP)),
        mut_arg("ephemeral_storage", |storage| storage.help(EPHEMERAL_STORAGE_HELP))
    )]
    Csi(CsiArgs),
    /// Attach to a run of `iosonde fio` that has lost its client, print its result and remove its
    /// objects
    #[command(after_help = K8S_ATTACH_EXAMPLES)]
    Attach(AttachArgs),
    /// Print and keep the results of pods from manifests of `--render`, and remove nothing
    #[command(after_help = K8S_COLLECT_EXAMPLES)]
    Collect(CollectArgs),
    /// Run a command in a pod of a rendered manifest, and write its result for `collect`
    #[command(hide = true)]
    InPod(InPodArgs),
    /// Write a container image of the agent, as an archive for a registry, without other tools
    #[command(after_help = K8S_IMAGE_EXAMPLES)]
    Image(ImageArgs),
}

/// The end of `iosonde k8s --help`.
pub(crate) const K8S_EXAMPLES: &str = "\
Examples:
  iosonde k8s fio -s local-path -z 20Gi            kubestr's default test
  iosonde k8s csi sc://fast                        snapshot, restore, clone and expansion
  iosonde k8s lifecycle sc://fast --count 1,10     durations of each stage in the life of volumes
  iosonde probe sc://fast                          how fast a volume of this class is

See docs/kubernetes.md.";

pub(crate) const K8S_FIO_EXAMPLES: &str = "\
Examples:
  iosonde k8s fio -s local-path -z 20Gi            kubestr's default test
  iosonde k8s fio -s local-path -s nfs-client -z 20Gi --separate
                                                   two classes, one job at a time
  iosonde k8s fio -s fast -z 4Gi -f job.fio -o json -e result.json";

/// kubestr's flags, and those of all targets in a cluster.
#[derive(Debug, Args)]
pub(crate) struct K8sFioArgs {
    /// Storage class; several classes are measured one after the other
    #[arg(
        short,
        long = "storageclass",
        required = true,
        value_delimiter = ',',
        value_name = "CLASS"
    )]
    pub(crate) storage_classes: Vec<String>,
    /// Size of each claim, as a Kubernetes quantity: 4Gi, or 4G for 4 x 10^9 bytes
    #[arg(
        short = 'z',
        long,
        default_value = "100Gi",
        value_parser = claim_bytes,
        value_name = "QUANTITY"
    )]
    pub(crate) size: u64,
    /// Built-in test
    #[arg(short, long, value_enum, default_value_t = KubestrTest::DefaultFio, value_name = "TEST")]
    pub(crate) testname: KubestrTest,
    /// fio job file to run instead of a built-in test
    #[arg(short, long, conflicts_with_all = ["testname", "separate"], value_name = "FILE")]
    pub(crate) fiofile: Option<PathBuf>,
    /// Run the jobs of the test one after the other, so that they do not share the volume's rate
    #[arg(long)]
    pub(crate) separate: bool,
    /// Output format
    #[arg(
        short = 'o',
        long = "format",
        visible_alias = "output",
        value_enum,
        default_value_t = K8sFioFormat::Text,
        value_name = "FORMAT"
    )]
    pub(crate) format: K8sFioFormat,
    /// File to write the result to, instead of standard output
    #[arg(short = 'e', long, value_name = "FILE", value_parser = text_file())]
    pub(crate) outfile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cold: ColdArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// `--testname`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KubestrTest {
    /// Four jobs: random reads and random writes, of 4k and of 128k
    DefaultFio,
    /// Random I/O of 4k, 75 % reads
    Randrw,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum K8sFioFormat {
    /// Text for people
    Text,
    /// fio's JSON for each class, for programs
    Json,
}

fn claim_bytes(text: &str) -> Result<u64, String> {
    quantity_bytes(&iosonde_cluster::manifest::Quantity(text.to_owned()))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "write a Kubernetes quantity, e.g. 100Gi or 4G".to_owned())
}

const K8S_ATTACH_EXAMPLES: &str = "\
Examples:
  iosonde k8s attach 3f2a9c00                      a run that `iosonde doctor --cluster` lists
  iosonde k8s attach 3f2a9c00 --output-format json -o result.json";

/// Arguments of `iosonde k8s attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// ID of the run, which `iosonde doctor --cluster` lists
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Output formats of fio: normal, terse, json, json+
    #[arg(long, default_value = "normal", value_name = "FORMATS")]
    pub(crate) output_format: Formats,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterAccessArgs,
}

const K8S_COLLECT_EXAMPLES: &str = "\
Examples:
  iosonde k8s collect                              the only run in the namespace
  iosonde k8s collect 3f2a9c00 -n test             the run of a manifest
  iosonde k8s collect --output-format json -o result.json";

/// Arguments of `iosonde k8s collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// ID of the run, from its manifest [default: the only run in the namespace]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Output formats of fio: normal, terse, json, json+; of other commands: normal, json
    #[arg(long, default_value = "normal", value_name = "FORMATS")]
    pub(crate) output_format: Formats,
    /// File to write the result to, instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = text_file())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterAccessArgs,
    /// Maximum time in which no pod runs or ends [default: 5m]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) timeout: Option<u64>,
}

/// Arguments of `iosonde k8s in-pod`, which rendered manifests contain.
#[derive(Debug, Args)]
pub(crate) struct InPodArgs {
    /// Target of the manifest, which the result names
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: String,
    /// Directory of the volume to measure, created at the start and removed at the end
    #[arg(long, value_name = "DIR", required_unless_present = "device")]
    pub(crate) scratch: Option<PathBuf>,
    /// Block device to measure
    #[arg(long, value_name = "PATH", conflicts_with = "scratch")]
    pub(crate) device: Option<PathBuf>,
    /// Command with its options and without its target
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

pub(crate) const K8S_IMAGE_EXAMPLES: &str = "\
Examples:
  iosonde k8s image registry.example.com/iosonde-agent:0.1.0 -o agent.tar
  skopeo copy docker-archive:agent.tar docker://registry.example.com/iosonde-agent:0.1.0
  docker load -i agent.tar                     or load into docker, and push from there
  ctr -n k8s.io images import agent.tar        or import on a node, without a registry
  iosonde fio --target sc://fast --image registry.example.com/iosonde-agent:0.1.0 job.fio";

/// Arguments of `iosonde k8s image`.
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// Name of the image, e.g. registry.example/tools/iosonde-agent:1
    #[arg(
        value_name = "IMAGE",
        default_value = concat!("iosonde-agent:", env!("CARGO_PKG_VERSION")),
        value_parser = reference
    )]
    pub(crate) image: String,
    /// File to write the archive to
    #[arg(
        long,
        short,
        value_name = "FILE",
        value_parser = output_file(OutputFileKind::Archive)
    )]
    pub(crate) output: PathBuf,
}

/// Parses an image name. Other commands recognise an image with the agent by its name.
fn reference(text: &str) -> Result<String, String> {
    match carries_agent(text) && !text.contains('@') {
        true => Ok(text.to_owned()),
        false => {
            Err("the last path component must be iosonde-agent, with or without a tag".to_owned())
        }
    }
}
