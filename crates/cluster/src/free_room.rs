//! Free room of the file system that holds a run's volumes, against what the run writes.
//!
//! The size of a claim does not reserve room on a share, or in a directory of a node's disk.

use crate::kept_directory::KeptDirectory;
use crate::options::ClusterOptions;
use crate::quantity::quantity;
use crate::refusal::refuse;
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError};
use k8s_openapi::api::storage::v1::StorageClass;

/// Parts of names of provisioners whose volumes are directories of one network share, or file
/// systems that many nodes mount.
const SHARES: [&str; 10] = [
    "nfs",
    "smb",
    "cephfs",
    "efs.csi.aws.com",
    "filestore",
    "file.csi.azure.com",
    "azure-file",
    "glusterfs",
    "juicefs",
    "fuseim.pri/ifs",
];
/// Names of provisioners whose volumes only one node can mount for writing.
const ONE_NODE: [&str; 12] = [
    "rancher.io/local-path",
    "kubernetes.io/no-provisioner",
    "ebs.csi.aws.com",
    "kubernetes.io/aws-ebs",
    "pd.csi.storage.gke.io",
    "kubernetes.io/gce-pd",
    "disk.csi.azure.com",
    "kubernetes.io/azure-disk",
    "hostpath.csi.k8s.io",
    "topolvm.io",
    "k8s.io/minikube-hostpath",
    "openebs.io/local",
];

/// Ends of names of provisioners whose volumes are plain directories: files may exceed the size of
/// the claim. Drivers of other shares set a quota, or a claim is a share of its own.
const UNENFORCED_SIZES: [&str; 11] = [
    "nfs.csi.k8s.io",
    "nfs-subdir-external-provisioner",
    "nfs-client-provisioner",
    "nfs-server-provisioner",
    "fuseim.pri/ifs",
    "smb.csi.k8s.io",
    "efs.csi.aws.com",
    "rancher.io/local-path",
    "k8s.io/minikube-hostpath",
    "microk8s.io/hostpath",
    "docker.io/hostpath",
];

/// Known facts about the share of a class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShareFacts {
    /// Whether all volumes of the class are on one share.
    pub(crate) is_share: bool,
    /// Whether files of a new volume may exceed the size of its claim.
    pub(crate) ignores_claim_size: bool,
    /// Data that the run leaves on the share, for people.
    pub(crate) remainder: Option<String>,
}

impl ShareFacts {
    /// Reads the facts from a class.
    pub(crate) fn of_class(class: &StorageClass) -> ShareFacts {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let remainder = KeptDirectory::of_class(class).map(|kept| {
            format!(
                "each volume of the class {name} leaves {} on the share ({}), until it is removed \
                 there",
                kept.remainder(),
                kept.parameter()
            )
        });
        ShareFacts {
            is_share: is_shared_by_nodes(&class.provisioner) == Some(true),
            ignores_claim_size: UNENFORCED_SIZES
                .iter()
                .any(|name| class.provisioner.ends_with(name)),
            remainder,
        }
    }
}

/// Whether volumes of a provisioner can be written by several nodes. `None`: it is not known here.
pub(crate) fn is_shared_by_nodes(provisioner: &str) -> Option<bool> {
    if SHARES.iter().any(|part| provisioner.contains(part)) {
        return Some(true);
    }
    let is_one = ONE_NODE.contains(&provisioner) || provisioner.ends_with("rbd.csi.ceph.com");
    is_one.then_some(false)
}

/// Holds the free room against what the jobs write. Returns a note for a share.
///
/// # Errors
/// If the files of the jobs cannot fit into a new volume. A volume that existed before may hold the
/// files already.
pub(crate) fn judge_free_room(
    options: &ClusterOptions,
    is_share: bool,
    pods: usize,
    free_bytes: u64,
) -> Result<Option<String>, RunError> {
    let Some(needed) = options.needed else {
        return Ok(None);
    };
    let writers = match is_share || options.is_one_volume() {
        true => pods as u64,
        false => 1,
    };
    let needed_bytes = needed.bytes.saturating_mul(writers);
    let is_new = matches!(
        options.target,
        TargetUri::StorageClass(_) | TargetUri::Ephemeral(_) | TargetUri::EmptyDir
    );
    if is_new && needed_bytes > free_bytes {
        return refuse(ClusterObstacle::ShareFull {
            free_bytes,
            needed_bytes,
        });
    }
    Ok(is_share.then(|| {
        format!(
            "the share has {} left, of which the jobs write {}",
            quantity(free_bytes >> 20 << 20).0,
            quantity(needed_bytes).0
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::NeededSpace;

    fn judge(target: &str, is_share: bool, free_gib: u64) -> Result<Option<String>, RunError> {
        let mut options = ClusterOptions::new(target.parse().unwrap());
        options.needed = Some(NeededSpace {
            bytes: 2 << 30,
            option: "--claim-size",
            gib_suffix: "g",
        });
        judge_free_room(&options, is_share, 3, free_gib << 30)
    }

    #[test]
    fn free_room_of_share_counts_all_pods() {
        let note = judge("sc://nfs", true, 8).unwrap().unwrap();
        assert_eq!(note, "the share has 8Gi left, of which the jobs write 6Gi");
        let full = judge("sc://nfs", true, 5).unwrap_err();
        let expected = ClusterObstacle::ShareFull {
            free_bytes: 5 << 30,
            needed_bytes: 6 << 30,
        };
        assert_eq!(full, RunError::from(expected));
        assert_eq!(judge("sc://disk", false, 5), Ok(None), "each has its own");
        assert_eq!(judge("pvc://data", false, 1), Ok(None), "may be there");
    }

    #[test]
    fn plain_directories_have_no_size_and_shares_with_quotas_do() {
        let ignores_claim_size = |provisioner: &str| {
            let class = StorageClass {
                provisioner: provisioner.to_owned(),
                ..StorageClass::default()
            };
            ShareFacts::of_class(&class).ignores_claim_size
        };
        assert!(ignores_claim_size("nfs.csi.k8s.io"));
        let subdir = "cluster.local/nfs-subdir-external-provisioner";
        assert!(ignores_claim_size(subdir) && ignores_claim_size("rancher.io/local-path"));
        assert!(!ignores_claim_size("rook-ceph.cephfs.csi.ceph.com"));
        assert!(!ignores_claim_size("file.csi.azure.com"));
        assert!(!ignores_claim_size("org.democratic-csi.nfs"));
        assert!(!ignores_claim_size("example.com/disk"));
    }

    #[test]
    fn provisioners_of_shares_are_known() {
        let known = [
            ("nfs.csi.k8s.io", Some(true)),
            ("rook-ceph.cephfs.csi.ceph.com", Some(true)),
            ("rook-ceph.rbd.csi.ceph.com", Some(false)),
            ("rancher.io/local-path", Some(false)),
            ("example.com/disk", None),
        ];
        for (provisioner, is_shared) in known {
            assert_eq!(is_shared_by_nodes(provisioner), is_shared, "{provisioner}");
        }
    }
}
