//! Words of findings about a cluster.

use super::cluster_cause::{CleanUp, ClusterCause};
use super::finding_words::FindingWords;
use crate::words::bytes;

/// Condition of a node whose disk is nearly full.
const DISK_PRESSURE: &str = "DiskPressure";

pub(super) fn describe(cause: &ClusterCause) -> FindingWords {
    match cause {
        ClusterCause::SeveralDefaultClasses => FindingWords::new(
            "several_default_classes",
            "several are the default one",
            "which of them a claim without a class gets is not for its author to say",
        )
        .remedy("leave the annotation storageclass.kubernetes.io/is-default-class to one"),
        ClusterCause::DriverOnNoNode { driver } => driver_on_no_node(driver),
        ClusterCause::ClassFails { error, action } => FindingWords::new(
            "class_does_not_work",
            error,
            "a claim of this class cannot be measured",
        )
        .remedy(action),
        ClusterCause::SharingNotTried { error, action } => FindingWords::new(
            "sharing_not_tried",
            format!("one pod tried the class, not two: {error}"),
            "no second pod has read the data of the first",
        )
        .remedy(action),
        ClusterCause::ClassRetains => FindingWords::new(
            "class_retains",
            "the class keeps the volumes of claims that are gone",
            "each run on it leaves a volume behind",
        )
        .remedy("after measuring: iosonde doctor --cluster --clean"),
        ClusterCause::ClassKeepsDirectory {
            parameter,
            remainder,
        } => kept_directories(parameter, remainder),
        ClusterCause::NoSharedClass { provisioners } => no_shared_class(provisioners),
        ClusterCause::NodeNotUsable => FindingWords::new(
            "node_not_usable",
            "the node is not ready, or closed to new pods",
            "volumes that only it reaches cannot be measured",
        )
        .remedy("see `kubectl describe node`"),
        ClusterCause::NodePressure { condition } => node_pressure(condition),
        ClusterCause::NoNvmeEphemeralStorage { version, needed } => {
            no_nvme_ephemeral_storage(version, needed)
        }
        ClusterCause::EphemeralStorageTooSmall {
            requested_bytes,
            allocatable_bytes,
        } => ephemeral_storage_too_small(*requested_bytes, *allocatable_bytes),
        ClusterCause::RunInCluster {
            run,
            created,
            is_running,
            clean_up,
        } => leftover_run(run, created, *is_running, clean_up),
        ClusterCause::RetainedVolume { size, clean_up } => FindingWords::new(
            "lost_volume",
            format!("the volume of a run ({size}) is still there: its class retains volumes"),
            "it takes room, and may cost money",
        )
        .remedy("remove it, with its data")
        .command(clean_up.command()),
        ClusterCause::EmptyNamespace { clean_up } => FindingWords::new(
            "lost_namespace",
            "the namespace was made for runs, and none is in it",
            "its client was killed, or could not remove it",
        )
        .remedy("remove it, unless something else is in it")
        .command(clean_up.command()),
    }
}

fn no_nvme_ephemeral_storage(version: &str, needed: &str) -> FindingWords {
    FindingWords::new(
        "no_nvme_ephemeral_storage",
        format!("the node runs {version}, older than {needed}"),
        "a node pool of this version cannot use NVMe local SSDs as ephemeral storage",
    )
    .remedy("upgrade the cluster and this node pool before a pool with local SSDs is made")
    .command("gcloud container clusters upgrade CLUSTER --node-pool=POOL --zone=ZONE")
}

fn ephemeral_storage_too_small(requested_bytes: u64, allocatable_bytes: u64) -> FindingWords {
    FindingWords::new(
        "ephemeral_storage_too_small",
        format!(
            "it allocates {} of ephemeral storage to pods, less than the {} to be requested",
            bytes(allocatable_bytes),
            bytes(requested_bytes)
        ),
        "a pod with this request is not placed on it",
    )
    .remedy("request less with --ephemeral-storage, or use nodes with more local disk")
}

fn driver_on_no_node(driver: &str) -> FindingWords {
    FindingWords::new(
        "driver_on_no_node",
        format!("its driver {driver} runs on no node"),
        "no volume of this class can be mounted",
    )
    .remedy("see the driver's pods: a DaemonSet, mostly in kube-system")
}

fn kept_directories(parameter: &str, remainder: &str) -> FindingWords {
    FindingWords::new(
        "class_keeps_directory",
        format!("each removed volume leaves {remainder} on the share ({parameter})"),
        "runs fill the share, although their volumes are removed",
    )
    .remedy(
        "remove the directories on the share after measuring, or measure on a class with \
         archiveOnDelete: \"false\" or onDelete: delete",
    )
}

fn no_shared_class(provisioners: &[String]) -> FindingWords {
    FindingWords::new(
        "no_shared_class",
        "no class has volumes that pods on several nodes write (ReadWriteMany)",
        "--shared works on one node only",
    )
    .remedy(ways_to_share(provisioners))
}

/// Returns the ways to a class with ReadWriteMany, first that of the provider.
pub(crate) fn ways_to_share(provisioners: &[String]) -> String {
    let any = |part: &str| provisioners.iter().any(|name| name.contains(part));
    let of_provider = if any("aws") {
        "Amazon EFS (efs.csi.aws.com), "
    } else if any("gke.io") || any("gce-pd") {
        "Filestore (filestore.csi.storage.gke.io), "
    } else if any("azure") {
        "Azure Files (file.csi.azure.com), "
    } else {
        ""
    };
    format!(
        "make one with {of_provider}an NFS server and nfs.csi.k8s.io or \
         nfs-subdir-external-provisioner, CephFS (cephfs.csi.ceph.com, e.g. by Rook), or Longhorn"
    )
}

fn node_pressure(condition: &str) -> FindingWords {
    let (id, effect) = match condition {
        DISK_PRESSURE => (
            "disk_pressure",
            "it takes no new pods, and evicts those that use its disk",
        ),
        _ => (
            "node_pressure",
            "pods on it may be evicted in the middle of a run",
        ),
    };
    FindingWords::new(id, format!("the node reports {condition}"), effect)
        .remedy("free space on it, or choose other nodes with --node-selector")
}

/// Returns the words of a run in the cluster, by its id and the time of its creation.
fn leftover_run(run: &str, created: &str, is_running: bool, clean_up: &CleanUp) -> FindingWords {
    let (evidence, effect) = match is_running {
        true => (
            "a run is in the cluster",
            "if it is not yours, or its client is gone, it disturbs what is measured beside it",
        ),
        false => (
            "a run that has ended is still in the cluster",
            "it is removed a minute after its end, unless something holds it",
        ),
    };
    FindingWords::new(
        "leftover_run",
        format!("{evidence}, since {created}"),
        effect,
    )
    .remedy(format!(
        "a fio job can be taken up: iosonde k8s attach {run}; else remove it"
    ))
    .command(clean_up.command())
}

impl CleanUp {
    /// Returns the command that removes the leftovers of the namespace.
    fn command(&self) -> String {
        let context = self.context.as_deref();
        let context = context.map_or(String::new(), |name| format!(" --context {name}"));
        let namespace = &self.namespace;
        format!("iosonde doctor --cluster --clean{context} -n {namespace}")
    }
}
