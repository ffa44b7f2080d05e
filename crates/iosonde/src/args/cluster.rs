//! Which cluster, which volume, and what the pod is like.

use super::{seconds, size};
use clap::{Args, ValueEnum};
use iosonde_cluster::manifest::quantity;
use iosonde_cluster::options::pod::{self, NodeSelectorRequirement, PodOptions, Quantity};
use iosonde_cluster::options::{Toleration, toleration};
use iosonde_cluster::{ClusterOptions, Placement, Pods, VolumeMode};
use iosonde_job::Target;
use iosonde_machine::bounded_read;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Options of targets in a Kubernetes cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets in a Kubernetes cluster")]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; several compare clusters: A,B [default: the current one]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) context: Vec<String>,
    /// Namespace of the pod [default: the context's]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Make the namespace of --namespace where there is none; it goes with the last run in it
    #[arg(long, requires = "namespace")]
    pub(crate) create_namespace: bool,
    /// Size of the claim, or of the space that an emptyDir asks for [default: 5g]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) claim_size: Option<u64>,
    /// A file system, or a block device [default: filesystem]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) volume_mode: Option<Mode>,
    /// Image of the pod: any with `sh` [default: one that a node has, else busybox]
    #[arg(long, short, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Labels that the node must have, e.g. disk=ssd,zone=a; may be repeated
    #[arg(long, short = 'N', alias = "nodeselector", value_parser = label, value_delimiter = ',', value_name = "KEY=VALUE")]
    pub(crate) node_selector: Vec<(String, String)>,
    /// Taints of nodes to put up with: KEY, KEY=VALUE:EFFECT, or `*` for all; may be repeated
    #[arg(long = "toleration", value_parser = taint, value_delimiter = ',', value_name = "TAINT")]
    pub(crate) tolerations: Vec<Toleration>,
    /// How the claim is mounted [default: rwo]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) access_mode: Option<AccessMode>,
    /// Where an emptyDir is: on the node's disk, or in its memory [default: disk]
    #[arg(long, value_enum, value_name = "MEDIUM")]
    pub(crate) medium: Option<Medium>,
    /// What the pod asks of its node's disk; where an emptyDir is the target, its space instead of --claim-size
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) ephemeral_storage: Option<u64>,
    #[command(flatten)]
    pub(crate) pod: PodArgs,
    /// JSON that is merged into the pod's manifest (metadata and spec); @FILE reads it from a file
    #[arg(long, value_parser = json, value_name = "JSON")]
    pub(crate) pod_patch: Option<serde_json::Value>,
    /// Nodes whose disks to watch meanwhile, by a pod on each; `none` is none [default: the one that
    /// serves the volume]
    #[arg(long = "watch-node", value_delimiter = ',', value_name = "NODE")]
    pub(crate) watch_nodes: Vec<String>,
    /// User and group in the pod [default: 65532; root for block devices and hostPath]
    #[arg(long, value_name = "UID")]
    pub(crate) run_as: Option<i64>,
    /// How long the pod may take to run [default: 5m]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) timeout: Option<u64>,
    /// When the cluster ends the run by itself [default: 24h]
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) deadline: Option<u64>,
}

/// What clusters ask of pods.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PodArgs {
    /// What the node's labels must be, as a selector: 'zone in (a,b)', disk!=hdd, '!spot', 'cores>8'; may be repeated
    #[arg(long, value_parser = requirement, value_name = "SELECTOR")]
    pub(crate) node_affinity: Vec<NodeSelectorRequirement>,
    /// Priority class of the pod
    #[arg(long, value_name = "NAME")]
    pub(crate) priority_class: Option<String>,
    /// What the pod is given at least: cpu=500m,memory=1Gi
    #[arg(long, value_parser = resource, value_delimiter = ',', value_name = "NAME=AMOUNT")]
    pub(crate) requests: Vec<(String, Quantity)>,
    /// What the pod may have at most: cpu=2,memory=2Gi
    #[arg(long, value_parser = resource, value_delimiter = ',', value_name = "NAME=AMOUNT")]
    pub(crate) limits: Vec<(String, Quantity)>,
    /// Secret by which the image may be pulled; may be repeated
    #[arg(long = "image-pull-secret", value_name = "NAME")]
    pub(crate) image_pull_secrets: Vec<String>,
    /// Account that the pod runs under
    #[arg(long, value_name = "NAME")]
    pub(crate) service_account: Option<String>,
    /// Label of the pod; may be repeated
    #[arg(long = "pod-label", value_parser = label, value_name = "KEY=VALUE")]
    pub(crate) pod_labels: Vec<(String, String)>,
    /// Annotation of the pod; may be repeated
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
    /// Pods that run the job at the same time, each on a volume of its own
    #[arg(long, value_name = "N", group = "several", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pods: Option<u32>,
    /// One pod on each node that can take one
    #[arg(long, conflicts_with_all = ["pods", "placement"], group = "several")]
    pub(crate) per_node: bool,
    /// All pods on one claim (access mode rwx), each in a directory of its own
    #[arg(long, requires = "several")]
    pub(crate) shared: bool,
    /// On which nodes the pods are [default: any]
    #[arg(long, value_enum, requires = "several", value_name = "WHERE")]
    pub(crate) placement: Option<Where>,
}

/// `--placement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Where {
    /// As the scheduler likes
    Any,
    /// Evenly over the nodes
    Spread,
    /// All on one node
    Pack,
}

impl PodsArgs {
    /// These; `None` is one pod.
    pub(crate) fn pods(&self) -> Option<Pods> {
        let placement = match (self.per_node, self.placement) {
            (true, _) => Placement::PerNode,
            (_, Some(Where::Spread)) => Placement::Spread,
            (_, Some(Where::Pack)) => Placement::Pack,
            _ => Placement::Any,
        };
        (self.pods.is_some() || self.per_node).then_some(Pods {
            count: self.pods,
            placement,
            shared: self.shared,
        })
    }
}

/// `--volume-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Mounted
    Filesystem,
    /// Raw
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
    /// Targets as they are measured: those in a cluster once in each context, `sc://fast` as `sc://fast@CONTEXT`.
    pub(crate) fn in_each_context(&self, targets: &[String]) -> Vec<String> {
        let spread = |name: &String| -> Vec<String> {
            let (plain, context) = self.split(name);
            let target: Result<Target, _> = plain.parse();
            let is_in_cluster = target.is_ok_and(|target| target.is_in_cluster());
            if self.context.len() < 2 || !is_in_cluster || context.is_some() {
                return vec![name.clone()];
            }
            let within = |context: &String| format!("{name}@{context}");
            self.context.iter().map(within).collect()
        };
        targets.iter().flat_map(spread).collect()
    }

    /// A target's name without its context, and the context, if it has one of those that are given.
    pub(crate) fn split<'a>(&self, name: &'a str) -> (&'a str, Option<&String>) {
        let of = |context: &&String| name.strip_suffix(context.as_str())?.strip_suffix('@');
        match self.context.iter().find(|context| of(context).is_some()) {
            Some(context) => (of(&context).unwrap_or(name), Some(context)),
            None => (name, None),
        }
    }

    /// These, for a target.
    pub(crate) fn options(&self, target: Target) -> ClusterOptions {
        let usual = ClusterOptions::new(target);
        let time = |ns: Option<u64>, usual| ns.map_or(usual, Duration::from_nanos);
        let mut pod = self.pod.options();
        let is_node_space = usual.target == Target::EmptyDir && self.medium != Some(Medium::Memory);
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
                Some(Mode::Block) => VolumeMode::Block,
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
        "write KEY, !KEY, KEY=VALUE, KEY!=VALUE, 'KEY in (A,B)', 'KEY notin (A,B)', 'KEY>NUMBER' or 'KEY<NUMBER'"
            .to_owned()
    })
}

fn resource(text: &str) -> Result<(String, Quantity), String> {
    pod::resource(text)
        .ok_or_else(|| "write NAME=AMOUNT, such as cpu=500m or memory=1Gi".to_owned())
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    let read = match text.strip_prefix('@') {
        Some(path) => bounded_read::text(path).map_err(|error| format!("{path}: {error}"))?,
        None => text.to_owned(),
    };
    serde_json::from_str(&read).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_pods_share_needs_several_pods() {
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
    }

    #[test]
    fn nodes_are_watched_where_they_serve_the_volume_or_are_named() {
        let watched = |words: &[&str]| {
            let args = ClusterArgs {
                watch_nodes: words.iter().map(|word| (*word).to_owned()).collect(),
                ..ClusterArgs::default()
            };
            args.options(Target::EmptyDir).watch_nodes
        };
        assert_eq!(watched(&[]), None);
        assert_eq!(watched(&["none"]), Some(Vec::new()));
        assert_eq!(watched(&["n1", "n2"]), Some(vec!["n1".into(), "n2".into()]));
        assert_eq!(watched(&["none", "n1"]), Some(vec!["n1".into()]));
    }

    #[test]
    fn space_on_the_nodes_disk_is_that_of_an_empty_directory_or_asked_for_besides() {
        let args = ClusterArgs {
            ephemeral_storage: Some(200 << 30),
            ..ClusterArgs::default()
        };
        let empty = args.options(Target::EmptyDir);
        assert_eq!(empty.claim_bytes, 200 << 30);
        assert!(empty.pod.requests.is_empty(), "the manifest asks for it");
        let class = args.options(Target::StorageClass("fast".into()));
        assert_eq!(class.claim_bytes, ClusterOptions::CLAIM_BYTES);
        assert_eq!(class.pod.requests["ephemeral-storage"].0, "200Gi");
    }

    #[test]
    fn targets_in_a_cluster_are_measured_in_each_context() {
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
