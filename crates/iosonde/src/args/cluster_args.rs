//! Options for a Kubernetes cluster, its volumes and pods.

use super::{parse_size, seconds};
use clap::{Args, ValueEnum};
use iosonde_cluster::manifest::quantity;
use iosonde_cluster::options::pod::{self, NodeSelectorRequirement, PodOptions, Quantity};
use iosonde_cluster::options::{Toleration, toleration};
use iosonde_cluster::{ClusterOptions, KeepOption, PodPlacement, Pods, VolumeMode};
use iosonde_job::TargetUri;
use iosonde_machine::bounded_read;
use iosonde_result::cache_state::ColdLayers;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Help of `--context` of a command that uses one cluster.
pub(crate) const ONE_CONTEXT_HELP: &str =
    "Context of the kubeconfig [default: the current context]";

/// Help of `--claim-size` of a command that only makes claims.
pub(crate) const CLAIM_SIZE_HELP: &str = "Size of each claim [default: 5g]";

/// Help of `--ephemeral-storage` of a command without an emptyDir.
pub(crate) const EPHEMERAL_STORAGE_HELP: &str =
    "Ephemeral storage that each pod requests on its node, e.g. 10g";

/// Options of targets in a Kubernetes cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets in a Kubernetes cluster")]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; several contexts, as in A,B, compare clusters [default: the
    /// current context]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) context: Vec<String>,
    /// Namespace of the pod [default: the namespace of the context]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Create the namespace of --namespace if it does not exist; the last run in it removes it
    #[arg(long, requires = "namespace")]
    pub(crate) create_namespace: bool,
    /// Size of the claim, or space that an emptyDir requests [default: 5g]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) claim_size: Option<u64>,
    /// Volume mode of the claim [default: filesystem]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) volume_mode: Option<VolumeModeArg>,
    /// Image of the pod, which must contain `sh` [default: an image that is present on a node, else
    /// busybox]
    #[arg(long, short, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Labels that the node must have, e.g. disk=ssd,zone=a; may be repeated
    #[arg(
        long,
        short = 'N',
        alias = "nodeselector",
        value_parser = label,
        value_delimiter = ',',
        value_name = "KEY=VALUE"
    )]
    pub(crate) node_selector: Vec<(String, String)>,
    /// Node taints that the pod tolerates: KEY, KEY=VALUE:EFFECT, or `*` for all; may be repeated
    #[arg(long = "toleration", value_parser = taint, value_delimiter = ',', value_name = "TAINT")]
    pub(crate) tolerations: Vec<Toleration>,
    /// Access mode of the claim [default: rwo]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) access_mode: Option<AccessMode>,
    /// Medium of an emptyDir [default: disk]
    #[arg(long, value_enum, value_name = "MEDIUM")]
    pub(crate) medium: Option<Medium>,
    /// Ephemeral storage that the pod requests on its node, e.g. 10g; for an emptyDir it replaces
    /// --claim-size
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) ephemeral_storage: Option<u64>,
    #[command(flatten)]
    pub(crate) pod: PodArgs,
    /// JSON to merge into the pod's manifest (metadata and spec); @FILE reads it from a file
    #[arg(long, value_parser = parse_json, value_name = "JSON")]
    pub(crate) pod_patch: Option<serde_json::Value>,
    /// Nodes whose disks and network iosonde watches during the run, with a pod in the network of
    /// each; `none` watches none [default: the disks of the node that serves the volume]
    #[arg(long = "watch-node", value_delimiter = ',', value_name = "NODE")]
    pub(crate) watch_nodes: Vec<String>,
    /// User ID and group ID in the pod [default: 65532; 0 for block devices and hostPath]
    #[arg(long, value_name = "UID")]
    pub(crate) run_as: Option<i64>,
    /// Maximum time until the pod runs; it does not limit the run [default: 5m]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) timeout: Option<u64>,
    /// Time after which the cluster ends the run, even if iosonde is gone [default: 24h]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) deadline: Option<u64>,
    /// Keep pod and volume if the pod does not start or is lost, for `kubectl describe` and
    /// `kubectl logs`; `iosonde doctor --cluster --clean` removes them
    #[arg(long = "keep")]
    pub(crate) keep_failed: bool,
}

/// Placement and security of pods, as clusters require it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PodArgs {
    /// Selector that the node's labels must match: 'zone in (a,b)', disk!=hdd, '!spot', 'cores>8';
    /// may be repeated
    #[arg(long, value_parser = requirement, value_name = "SELECTOR")]
    pub(crate) node_affinity: Vec<NodeSelectorRequirement>,
    /// PriorityClass of the pod, as `kubectl get priorityclasses` lists it [default: that of the
    /// cluster]
    #[arg(long, value_name = "NAME")]
    pub(crate) priority_class: Option<String>,
    /// Resource requests of the pod: cpu=500m,memory=1Gi
    #[arg(long, value_parser = resource, value_delimiter = ',', value_name = "NAME=AMOUNT")]
    pub(crate) requests: Vec<(String, Quantity)>,
    /// Resource limits of the pod: cpu=2,memory=2Gi
    #[arg(long, value_parser = resource, value_delimiter = ',', value_name = "NAME=AMOUNT")]
    pub(crate) limits: Vec<(String, Quantity)>,
    /// Secret with the credentials for the registry of --image; may be repeated
    #[arg(long = "image-pull-secret", value_name = "NAME")]
    pub(crate) image_pull_secrets: Vec<String>,
    /// ServiceAccount of the pod [default: default]
    #[arg(long, value_name = "NAME")]
    pub(crate) service_account: Option<String>,
    /// Label of the pod, e.g. team=storage; may be repeated
    #[arg(long = "pod-label", value_parser = label, value_name = "KEY=VALUE")]
    pub(crate) pod_labels: Vec<(String, String)>,
    /// Annotation of the pod, e.g. sidecar.istio.io/inject=false; may be repeated
    #[arg(long = "pod-annotation", value_parser = label, value_name = "KEY=VALUE")]
    pub(crate) pod_annotations: Vec<(String, String)>,
}

impl PodArgs {
    fn options(&self) -> PodOptions {
        PodOptions {
            node: None,
            node_affinity: self.node_affinity.clone(),
            priority_class: self.priority_class.clone(),
            requests: self.requests.iter().cloned().collect(),
            limits: self.limits.iter().cloned().collect(),
            image_pull_secrets: self.image_pull_secrets.clone(),
            service_account: self.service_account.clone(),
            labels: self.pod_labels.iter().cloned().collect(),
            annotations: self.pod_annotations.iter().cloned().collect(),
        }
    }
}

/// Options of several pods that start together.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Several pods")]
pub(crate) struct PodsArgs {
    /// Number of pods that run the job at the same time, each on a volume of its own
    #[arg(
        long,
        value_name = "N",
        group = "several",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub(crate) pods: Option<u32>,
    /// Run one pod on each schedulable node
    #[arg(long, conflicts_with_all = ["pods", "placement"], group = "several")]
    pub(crate) per_node: bool,
    /// Run all pods on one claim (access mode rwx) [default without WHAT: directory]
    #[arg(
        long,
        requires = "several",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "directory",
        value_name = "WHAT"
    )]
    pub(crate) shared: Option<SharedArg>,
    /// Placement of the pods on nodes [default: any]
    #[arg(long, value_enum, requires = "several", value_name = "WHERE")]
    pub(crate) placement: Option<Where>,
}

/// `--shared`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SharedArg {
    /// Each pod in a directory of its own
    Directory,
    /// Like directory, after a check of one file that all pods write and read
    File,
}

/// `--placement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Where {
    /// Any node that the scheduler selects
    Any,
    /// Spread evenly over the nodes
    Spread,
    /// All on one node
    Pack,
}

impl PodsArgs {
    /// Returns the options of several pods; `None`: one pod.
    pub(crate) fn pods(&self) -> Option<Pods> {
        let placement = match (self.per_node, self.placement) {
            (true, _) => PodPlacement::PerNode,
            (_, Some(Where::Spread)) => PodPlacement::Spread,
            (_, Some(Where::Pack)) => PodPlacement::Pack,
            _ => PodPlacement::Any,
        };
        (self.pods.is_some() || self.per_node).then_some(Pods {
            count: self.pods,
            placement,
            shared: self.shared.is_some(),
            checks_shared_file: self.shared == Some(SharedArg::File),
        })
    }
}

/// `--volume-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VolumeModeArg {
    /// A mounted file system
    Filesystem,
    /// A raw block device
    Block,
}

/// `--access-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessMode {
    /// ReadWriteOnce: by one node
    Rwo,
    /// ReadWriteMany: by many nodes
    Rwx,
    /// ReadWriteOncePod: by one pod
    Rwop,
}

impl AccessMode {
    fn name(self) -> &'static str {
        match self {
            AccessMode::Rwo => "ReadWriteOnce",
            AccessMode::Rwx => "ReadWriteMany",
            AccessMode::Rwop => "ReadWriteOncePod",
        }
    }
}

/// `--medium`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Medium {
    /// The node's disk
    Disk,
    /// The node's memory
    Memory,
}

impl ClusterArgs {
    /// Returns each cluster target once per context: `sc://fast` as `sc://fast@CONTEXT`.
    pub(crate) fn in_each_context(&self, targets: &[String]) -> Vec<String> {
        let spread = |name: &String| -> Vec<String> {
            let (plain, context) = self.split(name);
            let target: Result<TargetUri, _> = plain.parse();
            let is_in_cluster = target.is_ok_and(|target| target.is_in_cluster());
            if self.context.len() < 2 || !is_in_cluster || context.is_some() {
                return vec![name.clone()];
            }
            let within = |context: &String| format!("{name}@{context}");
            self.context.iter().map(within).collect()
        };
        targets.iter().flat_map(spread).collect()
    }

    /// Splits a target into its name and its context, if that is one of `--context`.
    pub(crate) fn split<'a>(&self, name: &'a str) -> (&'a str, Option<&String>) {
        let of = |context: &&String| name.strip_suffix(context.as_str())?.strip_suffix('@');
        match self.context.iter().find(|context| of(context).is_some()) {
            Some(context) => (of(&context).unwrap_or(name), Some(context)),
            None => (name, None),
        }
    }

    /// Converts the options for a target.
    pub(crate) fn options(&self, target: TargetUri) -> ClusterOptions {
        let usual = ClusterOptions::new(target);
        let time = |ns: Option<u64>, usual| ns.map_or(usual, Duration::from_nanos);
        let mut pod = self.pod.options();
        let is_node_space =
            usual.target == TargetUri::EmptyDir && self.medium != Some(Medium::Memory);
        let node_space = self.ephemeral_storage.filter(|_| is_node_space);
        if let (Some(bytes), None) = (self.ephemeral_storage, node_space) {
            let asked = ("ephemeral-storage".to_owned(), quantity(bytes));
            pod.requests.extend([asked]);
        }
        let claim_bytes = node_space.or(self.claim_size);
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.first().cloned(),
            namespace: self.namespace.clone(),
            create_namespace: self.create_namespace,
            target: usual.target,
            claim_bytes: claim_bytes.unwrap_or(usual.claim_bytes),
            volume_mode: match self.volume_mode {
                Some(VolumeModeArg::Block) => VolumeMode::Block,
                _ => VolumeMode::Filesystem,
            },
            image: self.image.clone(),
            node_selector: self
                .node_selector
                .iter()
                .cloned()
                .collect::<BTreeMap<_, _>>(),
            tolerations: self.tolerations.clone(),
            access_mode: self
                .access_mode
                .map_or(usual.access_mode, |mode| mode.name().to_owned()),
            in_memory: self.medium == Some(Medium::Memory),
            pod,
            pod_patch: self.pod_patch.clone(),
            run_as: self.run_as,
            timeout: time(self.timeout, usual.timeout),
            deadline: time(self.deadline, usual.deadline),
            watch_nodes: (!self.watch_nodes.is_empty()).then(|| {
                let named = self.watch_nodes.iter().filter(|node| *node != "none");
                named.cloned().collect()
            }),
            allow_overwrite: usual.allow_overwrite,
            pods: None,
            keep_failed: match self.keep_failed {
                true => KeepOption::Given,
                false => KeepOption::NotGiven,
            },
            removes_retained: usual.removes_retained,
            needed: None,
            cold: ColdLayers::default(),
            inspects_node: false,
        }
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn taint(text: &str) -> Result<Toleration, String> {
    toleration(text).ok_or_else(|| {
        "write KEY, KEY=VALUE or KEY=VALUE:EFFECT with NoSchedule, PreferNoSchedule or NoExecute"
            .to_owned()
    })
}

fn requirement(text: &str) -> Result<NodeSelectorRequirement, String> {
    pod::requirement(text).ok_or_else(|| {
        "write KEY, !KEY, KEY=VALUE, KEY!=VALUE, 'KEY in (A,B)', 'KEY notin (A,B)', 'KEY>NUMBER' \
         or 'KEY<NUMBER'"
            .to_owned()
    })
}

fn resource(text: &str) -> Result<(String, Quantity), String> {
    pod::resource(text).ok_or_else(|| "write NAME=AMOUNT, e.g. cpu=500m or memory=1Gi".to_owned())
}

fn parse_json(text: &str) -> Result<serde_json::Value, String> {
    let read = match text.strip_prefix('@') {
        Some(path) => bounded_read::read_text(path)
            .map_err(|error| format!("{path}: {}", iosonde_job::errno::describe(&error)))?,
        None => text.to_owned(),
    };
    serde_json::from_str(&read).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_sharing_options_require_several_pods() {
        use clap::Parser;
        #[derive(Debug, Parser)]
        struct Words {
            #[command(flatten)]
            pods: PodsArgs,
        }
        let read =
            |line: &str| Words::try_parse_from(line.split(' ')).map(|words| words.pods.pods());
        for line in ["x --shared", "x --placement spread"] {
            assert!(read(line).is_err(), "{line}");
        }
        for line in [
            "x --pods 2 --shared --placement pack",
            "x --per-node --shared",
        ] {
            assert!(read(line).is_ok_and(|pods| pods.is_some()), "{line}");
        }
        let checks = |line| read(line).unwrap().map(|pods| pods.checks_shared_file);
        assert_eq!(checks("x --pods 2 --shared"), Some(false));
        assert_eq!(checks("x --pods 2 --shared=directory"), Some(false));
        assert_eq!(checks("x --pods 2 --shared=file"), Some(true));
        assert!(read("x --pods 2 --shared=volume").is_err());
    }

    #[test]
    fn watched_nodes_serve_the_volume_or_are_named() {
        let watched = |words: &[&str]| {
            let args = ClusterArgs {
                watch_nodes: words.iter().map(|word| (*word).to_owned()).collect(),
                ..ClusterArgs::default()
            };
            args.options(TargetUri::EmptyDir).watch_nodes
        };
        assert_eq!(watched(&[]), None);
        assert_eq!(watched(&["none"]), Some(Vec::new()));
        assert_eq!(watched(&["n1", "n2"]), Some(vec!["n1".into(), "n2".into()]));
        assert_eq!(watched(&["none", "n1"]), Some(vec!["n1".into()]));
    }

    #[test]
    fn keep_is_offered_until_it_is_given() {
        let kept = |keep_failed| {
            let args = ClusterArgs {
                keep_failed,
                ..ClusterArgs::default()
            };
            args.options(TargetUri::EmptyDir).keep_failed
        };
        assert_eq!(kept(false), KeepOption::NotGiven);
        assert_eq!(kept(true), KeepOption::Given);
    }

    #[test]
    fn ephemeral_storage_sizes_emptydir_or_is_requested() {
        let args = ClusterArgs {
            ephemeral_storage: Some(200 << 30),
            ..ClusterArgs::default()
        };
        let empty = args.options(TargetUri::EmptyDir);
        assert_eq!(empty.claim_bytes, 200 << 30);
        assert!(empty.pod.requests.is_empty(), "the manifest asks for it");
        let class = args.options(TargetUri::StorageClass("fast".into()));
        assert_eq!(class.claim_bytes, ClusterOptions::CLAIM_BYTES);
        assert_eq!(class.pod.requests["ephemeral-storage"].0, "200Gi");
    }

    #[test]
    fn cluster_targets_repeat_for_each_context() {
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let args = ClusterArgs {
            context: words(&["lab", "admin@prod"]),
            ..ClusterArgs::default()
        };
        let targets = words(&[
            "/mnt/a@lab",
            "rados://p",
            "sc://fast",
            "hostpath:///a@b@lab",
        ]);
        let expected = [
            "/mnt/a@lab",
            "rados://p",
            "sc://fast@lab",
            "sc://fast@admin@prod",
            "hostpath:///a@b@lab",
        ];
        assert_eq!(args.in_each_context(&targets), expected);
        let (name, context) = args.split("sc://fast@admin@prod");
        assert_eq!(
            (name, context.map(String::as_str)),
            ("sc://fast", Some("admin@prod"))
        );
        assert_eq!(args.split("hostpath:///a@b"), ("hostpath:///a@b", None));
        let one = ClusterArgs {
            context: words(&["lab"]),
            ..ClusterArgs::default()
        };
        assert_eq!(one.in_each_context(&targets), targets);
    }
}
