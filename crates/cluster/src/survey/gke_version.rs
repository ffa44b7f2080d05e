//! Versions of nodes of Google's Kubernetes service, such as `v1.25.3-gke.1800`.

/// First version whose node pools take NVMe local SSDs as ephemeral storage.
pub(super) const NVME_EPHEMERAL_STORAGE_SINCE: &str = "1.25.3-gke.1800";

/// Whether a kubelet is of this service and too old for NVMe local SSDs as ephemeral storage.
pub(super) fn lacks_nvme_ephemeral_storage(kubelet: &str) -> bool {
    let needed = parse(NVME_EPHEMERAL_STORAGE_SINCE);
    debug_assert!(needed.is_some(), "the needed version is one of the service");
    parse(kubelet).is_some_and(|version| Some(version) < needed)
}

/// Parses major, minor and patch version, and the build. `None`: a version of another service.
fn parse(version: &str) -> Option<[u64; 4]> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (kubernetes, build) = version.split_once("-gke.")?;
    let mut parts = kubernetes.split('.').map(|part| part.parse().ok());
    let mut next = || parts.next().flatten();
    let parsed = [next()?, next()?, next()?, build.parse().ok()?];
    parts.next().is_none().then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_older_versions_of_the_service_lack_nvme_ephemeral_storage() {
        for old in [
            "v1.25.3-gke.1799",
            "v1.25.2-gke.9000",
            "1.24.9-gke.1",
            "v1.9.7-gke.6",
        ] {
            assert!(lacks_nvme_ephemeral_storage(old), "{old}");
        }
        for other in [
            "v1.25.3-gke.1800",
            "v1.27.3-gke.100",
            "v1.24.9",
            "v1.24.9-eks-0a21954",
            "v1.24-gke.1",
            "",
        ] {
            assert!(!lacks_nvme_ephemeral_storage(other), "{other}");
        }
    }
}
