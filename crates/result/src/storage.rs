//! Access path and caches between a run and its storage.
//!
//! The same data accessed by different paths gives different measurements: librbd and krbd, or
//! CephFS and NFS, use different code and different caches.

use crate::ceph::CephSide;
use crate::host::{
    DeviceInfo, DeviceKind, Locality, MappedImage, MountService, ServiceClient, TargetInfo,
};
use crate::run::{CephUsed, RunResult, WorkerResult};
use iosonde_job::plan::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Access path of a run to its storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageUsed {
    /// Kind of the access path.
    pub way: AccessPath,
    /// Name with access path: `rbd://pool/image (librbd)`, `mapped RBD image pool/image (krbd)`.
    pub name: String,
    /// Caches that served I/O without the storage, or could have, including disabled ones.
    pub caches: Vec<String>,
    /// Whether one of the caches is in use. `None` in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_cached: Option<bool>,
}

/// Kinds of access path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessPath {
    /// Objects of a Ceph pool, through librados.
    Librados,
    /// A Ceph image, through librbd.
    Librbd,
    /// A Ceph image mapped by krbd, the kernel client.
    Krbd,
    /// CephFS through the kernel client.
    CephKernel,
    /// CephFS, through ceph-fuse.
    CephFuse,
    /// NFS through the kernel client.
    Nfs,
    /// Any other storage of this machine.
    Local,
}

impl StorageUsed {
    /// Returns the access path of a run, that of the first target. `None` if it is unknown.
    pub fn from_run(result: &RunResult) -> Option<StorageUsed> {
        let through_a_library = |worker: &WorkerResult| worker.backend.ceph.clone();
        if let Some(ceph) = result.workers.iter().find_map(through_a_library) {
            return Some(in_a_cluster(&ceph, result));
        }
        let target = result.targets.first()?;
        let service = target
            .mount
            .as_ref()
            .and_then(|mount| mount.service.as_ref());
        let (way, name) = match (service, mapped(target)) {
            (Some(service), _) => (way_of(service), name_of(service)),
            (None, Some(image)) => (AccessPath::Krbd, format!("mapped RBD image {image} (krbd)")),
            (None, None) => (AccessPath::Local, local(target)),
        };
        let (caches, is_cached) = client_caches(result, way);
        Some(StorageUsed {
            way,
            name,
            caches,
            is_cached: Some(is_cached),
        })
    }

    /// Returns whether the storage is a service with a client, reachable by several access paths.
    pub fn is_service(&self) -> bool {
        self.way != AccessPath::Local
    }

    /// Returns whether reports show the access path, unlike that of a local disk without cache.
    pub fn is_news(&self) -> bool {
        self.is_service() || self.is_cached.unwrap_or(!self.caches.is_empty())
    }

    /// Returns the access path in one line: `rbd://pool/image (librbd); rbd_cache off`.
    pub fn words(&self) -> String {
        match self.caches.is_empty() {
            true => self.name.clone(),
            false => format!("{}; {}", self.name, self.caches.join(", ")),
        }
    }

    /// Returns the difference that a comparison must mention. `None` if both used the same path.
    pub fn difference(&self, other: &StorageUsed) -> Option<String> {
        if self.way != other.way {
            return Some(format!(
                "different access paths: A uses {}, B uses {}; the comparison includes their \
                 clients and caches, not the storage alone",
                self.name, other.name
            ));
        }
        (self.is_service() && self.caches != other.caches).then(|| {
            let describe_caches = |one: &StorageUsed| match one.caches.is_empty() {
                true => "no known cache".to_owned(),
                false => one.caches.join(", "),
            };
            format!(
                "different caches: A has {}; B has {}",
                describe_caches(self),
                describe_caches(other)
            )
        })
    }
}

fn in_a_cluster(ceph: &CephUsed, result: &RunResult) -> StorageUsed {
    let parts = [
        Some(ceph.pool.as_str()),
        ceph.namespace.as_deref(),
        ceph.image.as_deref(),
    ];
    let path: Vec<&str> = parts.into_iter().flatten().collect();
    let path = path.join("/");
    let (way, name) = match ceph.image {
        Some(_) => (AccessPath::Librbd, format!("rbd://{path} (librbd)")),
        None => (AccessPath::Librados, format!("rados://{path} (librados)")),
    };
    let mut caches = Vec::new();
    let mut is_cached = false;
    match ceph.cache.as_deref() {
        Some("off") => caches.push("rbd_cache off".to_owned()),
        Some(policy) => {
            caches.push(format!("rbd_cache on ({policy})"));
            is_cached = true;
        }
        None => {}
    }
    let tier = tier_before(&ceph.pool, result);
    is_cached |= tier.is_some();
    caches.extend(tier);
    StorageUsed {
        way,
        name,
        caches,
        is_cached: Some(is_cached),
    }
}

/// Returns the cache tier in front of a pool.
fn tier_before(pool: &str, result: &RunResult) -> Option<String> {
    let mut pools = result.ceph.iter().flat_map(CephSide::pools);
    let tier = pools
        .find(|known| known.name == pool)?
        .cache_tier
        .as_ref()?;
    Some(format!("cache tier {tier}"))
}

fn way_of(service: &MountService) -> AccessPath {
    match service.client {
        ServiceClient::Nfs => AccessPath::Nfs,
        ServiceClient::CephKernel => AccessPath::CephKernel,
        ServiceClient::CephFuse => AccessPath::CephFuse,
    }
}

/// Returns the name of a service: `NFS 4.2 filer:/export`, `CephFS (ceph-fuse) 10.0.0.1:/`.
pub fn name_of(service: &MountService) -> String {
    let mut text = service.client.words().to_owned();
    if let Some(version) = &service.version {
        text += &format!(" {version}");
    }
    // NFS: the server as named in the mount. CephFS: the servers are monitors of one cluster.
    let servers = match service.client {
        ServiceClient::Nfs => service.servers.first().cloned().unwrap_or_default(),
        _ => service.servers.join(","),
    };
    match (&service.path, servers.is_empty()) {
        (Some(path), false) => format!("{text} {servers}:{path}"),
        (Some(path), true) => format!("{text} {path}"),
        (None, false) => format!("{text} {servers}"),
        (None, true) => text,
    }
}

/// Returns the mapped image that holds all data of a target.
fn mapped(target: &TargetInfo) -> Option<&MappedImage> {
    let bottom = target.bottom_devices();
    let is_mapped = |device: &&DeviceInfo| device.kind == DeviceKind::Rbd;
    match bottom.iter().all(is_mapped) {
        true => bottom.first()?.rbd.as_ref(),
        false => None,
    }
}

fn local(target: &TargetInfo) -> String {
    match (&target.mount, target.devices.first()) {
        (Some(mount), _) if mount.locality == Locality::Remote => {
            format!("{} ({})", mount.source, mount.fs_type)
        }
        (Some(mount), _) => format!("{} on this machine", mount.fs_type),
        (None, Some(device)) => format!("the device {}", device.name),
        (None, None) => "on this machine".to_owned(),
    }
}

/// Returns the caches of this machine, which O_DIRECT bypasses, and whether one is in use.
fn client_caches(result: &RunResult, way: AccessPath) -> (Vec<String>, bool) {
    let mut workers = result.workers.iter();
    let has_files = |worker: &&WorkerResult| {
        worker.backend.engine.has_paths() && worker.directions != Default::default()
    };
    let moved: Vec<&WorkerResult> = workers.by_ref().filter(has_files).collect();
    let Some(first) = moved.first() else {
        return (Vec::new(), false);
    };
    let is_direct = |worker: &WorkerResult| {
        // mmap always uses the page cache, with any `direct` option.
        worker.backend.direct && worker.backend.engine != Engine::Mmap
    };
    let caches = match way {
        AccessPath::CephFuse => "page cache and cache of ceph-fuse",
        AccessPath::CephKernel => "page cache of the kernel's CephFS",
        AccessPath::Nfs => "page cache of the kernel's NFS",
        _ => "page cache",
    };
    let is_same = |worker: &&WorkerResult| is_direct(worker) == is_direct(first);
    let (state, is_cached) = match moved.iter().all(is_same) {
        true if is_direct(first) => ("off (O_DIRECT)", false),
        true => ("on", true),
        false => ("on for some jobs", true),
    };
    (vec![format!("{caches} {state}")], is_cached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Mount;

    fn used(way: AccessPath, name: &str, caches: &[&str]) -> StorageUsed {
        StorageUsed {
            way,
            name: name.to_owned(),
            caches: caches.iter().map(|cache| (*cache).to_owned()).collect(),
            is_cached: None,
        }
    }

    fn target(mount: Option<Mount>, devices: Vec<DeviceInfo>) -> TargetInfo {
        TargetInfo {
            mount,
            devices,
            ..TargetInfo::default()
        }
    }

    #[test]
    fn local_storage_is_news_only_with_a_cache_in_use() {
        let local = |is_cached| StorageUsed {
            is_cached,
            ..used(AccessPath::Local, "ext4 on this machine", &["page cache"])
        };
        assert!(local(Some(true)).is_news());
        assert!(!local(Some(false)).is_news());
        // Results of older versions do not say.
        assert!(local(None).is_news());
        let nfs = used(AccessPath::Nfs, "NFS filer:/export", &[]);
        assert!(nfs.is_news());
        let old = r#"{"way":"local","name":"ext4 on this machine","caches":[]}"#;
        let old: StorageUsed = serde_json::from_str(old).unwrap();
        assert_eq!((old.is_cached, old.is_news()), (None, false));
    }

    #[test]
    fn mapped_image_differs_from_librbd_image() {
        let krbd = used(AccessPath::Krbd, "mapped RBD image p/i (krbd)", &[]);
        let librbd = used(AccessPath::Librbd, "rbd://p/i (librbd)", &[]);
        let note = krbd.difference(&librbd).unwrap();
        assert!(
            note.contains("A uses mapped RBD image p/i (krbd), B uses rbd://p/i (librbd)"),
            "{note}"
        );
        assert_eq!(krbd.difference(&krbd), None);
    }

    #[test]
    fn cache_difference_is_reported_only_for_services() {
        let on = used(
            AccessPath::Librbd,
            "rbd://p/i (librbd)",
            &["rbd_cache on (writearound)"],
        );
        let off = used(AccessPath::Librbd, "rbd://p/i (librbd)", &["rbd_cache off"]);
        assert_eq!(
            on.difference(&off).unwrap(),
            "different caches: A has rbd_cache on (writearound); B has rbd_cache off"
        );
        let local = |cache| used(AccessPath::Local, "ext4 on this machine", &[cache]);
        assert_eq!(local("page cache on").difference(&local("x")), None);
        assert!(local("page cache on").difference(&on).is_some());
    }

    #[test]
    fn mapped_image_is_found_only_as_the_sole_device() {
        let rbd = |image: &str| DeviceInfo {
            kind: DeviceKind::Rbd,
            name: image.to_owned(),
            number: crate::host::DeviceNumber {
                major: 250,
                minor: image.len() as u32,
            },
            rbd: Some(MappedImage {
                pool: "p".into(),
                image: image.into(),
                namespace: Some("ns".into()),
                snapshot: Some("s1".into()),
                ..MappedImage::default()
            }),
            ..DeviceInfo::default()
        };
        let on_it = target(Some(Mount::default()), vec![rbd("i")]);
        assert_eq!(mapped(&on_it).unwrap().to_string(), "p/ns/i@s1");
        let disk = DeviceInfo {
            name: "sda".into(),
            ..DeviceInfo::default()
        };
        assert_eq!(mapped(&target(None, vec![rbd("i"), disk])), None);
    }

    #[test]
    fn remote_file_system_is_not_named_local() {
        let mount = |fs_type: &str, source: &str, locality| Mount {
            fs_type: fs_type.into(),
            source: source.into(),
            locality,
            ..Mount::default()
        };
        let name = |mount| local(&target(Some(mount), Vec::new()));
        assert_eq!(
            name(mount("cifs", "//filer/share", Locality::Remote)),
            "//filer/share (cifs)"
        );
        assert_eq!(
            name(mount("fuse.sshfs", "me@host:/data", Locality::Remote)),
            "me@host:/data (fuse.sshfs)"
        );
        assert_eq!(
            name(mount("ext4", "/dev/sda1", Locality::Block)),
            "ext4 on this machine"
        );
    }

    #[test]
    fn service_name_holds_protocol_servers_and_path() {
        let mut service = MountService {
            client: ServiceClient::Nfs,
            version: Some("4.2".into()),
            servers: vec!["filer".into(), "10.0.0.5".into()],
            path: Some("/export".into()),
            ..MountService::default()
        };
        assert_eq!(name_of(&service), "NFS 4.2 filer:/export");
        (service.client, service.version) = (ServiceClient::CephFuse, None);
        assert_eq!(
            name_of(&service),
            "CephFS (ceph-fuse) filer,10.0.0.5:/export"
        );
        service.servers.clear();
        assert_eq!(name_of(&service), "CephFS (ceph-fuse) /export");
    }
}
