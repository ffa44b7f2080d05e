//! Facts about a target and a machine, a line or two each, for `probe`, `show` and `doctor`.

use iosonde_result::cache_state::{LayerCache, describe_caches};
use iosonde_result::host::{
    DeviceInfo, DeviceKind, FileSystemUsage, IoLimit, Locality, MappedImage, Mount, MountService,
    PathKind, PcieLink, Queue, ServiceClient, TargetInfo, Transport,
};
use iosonde_result::nfs::NfsSide;
use iosonde_result::run::RunResult;
use iosonde_result::storage::StorageUsed;
use iosonde_study::words;

mod ceph;
mod machine;
mod shared_file;

pub(crate) use ceph::ceph_facts;
pub use ceph::{ceph_unknown, cluster};
pub(crate) use machine::machine_facts;
pub use machine::{bounds, machine};
pub use shared_file::shared_file;

/// Name and text of a fact. Unknown facts are left out.
pub type Fact = (&'static str, String);

/// Facts about a target.
pub fn target(target: &TargetInfo) -> Vec<Fact> {
    let mut facts = vec![("device", devices(target)), ("through", through(target))];
    if let Some(mount) = &target.mount {
        facts.push(("file system", file_system(mount, target.space.as_ref())));
        facts.push((
            "served by",
            mount.service.as_ref().map_or(String::new(), served_by),
        ));
    }
    facts.push(("queue", queue(target)));
    let limits: Vec<String> = target.limits.iter().map(limit).collect();
    facts.push(("limits", limits.join("; ")));
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

/// Describes the server of a mounted file system.
fn served_by(service: &MountService) -> String {
    let is_nfs = service.client == ServiceClient::Nfs;
    let servers = match (is_nfs, &service.servers[..]) {
        (_, []) => None,
        (true, [server, address]) => Some(format!("server {server} ({address})")),
        (true, servers) => Some(format!("server {}", servers.join(", "))),
        (false, servers) => Some(format!("monitors {}", servers.join(", "))),
    };
    let version = service.version.as_ref();
    let version = version.map_or(String::new(), |version| format!(" {version}"));
    let named =
        |what: &str, value: &Option<String>| value.as_ref().map(|value| format!("{what} {value}"));
    let path = named(if is_nfs { "export" } else { "path" }, &service.path);
    let parts = [
        Some(format!("{}{version}", service.client.words())),
        servers,
        path,
        named("file system", &service.file_system),
        named("cluster", &service.fsid),
        service.user.as_ref().map(|user| format!("client.{user}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Access path of a run to its storage, with its caches, if reports show it.
pub fn storage(result: &RunResult) -> Option<Fact> {
    let used = StorageUsed::from_run(result).filter(StorageUsed::is_news)?;
    Some(("storage", used.words()))
}

/// State of the caches of each layer at the start of the jobs.
pub fn caches(caches: &[LayerCache]) -> Option<Fact> {
    Some(("caches", describe_caches(caches)?))
}

/// Requests to NFS servers, a line per mount.
pub fn nfs_facts(sides: &[NfsSide]) -> Vec<Fact> {
    sides.iter().map(|side| ("NFS", nfs_side(side))).collect()
}

fn nfs_side(side: &NfsSide) -> String {
    const MOST: usize = 4;
    let busiest = side.busiest();
    let operations = busiest.iter().take(MOST).map(|(name, op)| {
        let (rtt, whole) = (
            words::latency(op.mean_rtt_ns()),
            words::latency(op.mean_execute_ns()),
        );
        format!("{} {name} (round trip {rtt}, {whole} in total)", op.ops)
    });
    let mut text = operations.collect::<Vec<_>>().join(", ");
    let others: u64 = busiest.iter().skip(MOST).map(|(_, op)| op.ops).sum();
    if others > 0 {
        text += &format!(", {others} others");
    }
    if text.is_empty() {
        "no requests to the server".clone_into(&mut text);
    }
    match side.retransmissions() {
        0 => text + "; no retransmissions",
        count => text + &format!("; {count} retransmissions"),
    }
}

/// Type and size of a path.
pub(crate) fn target_kind_text(target: &TargetInfo) -> String {
    let kind = match target.kind {
        PathKind::Missing => "does not exist yet",
        PathKind::Directory => "directory",
        PathKind::File => "file",
        PathKind::BlockDevice => "block device",
        PathKind::CharacterDevice => "character device",
        PathKind::Other => "neither file nor directory nor device",
    };
    // File servers and FUSE processes do not always count allocated blocks.
    let counts = |mount: &Mount| matches!(mount.locality, Locality::Block | Locality::Stacked);
    let counted = target.mount.as_ref().is_some_and(counts);
    match (target.size_bytes, target.allocated_bytes) {
        (Some(size), Some(allocated)) if allocated < size && counted => format!(
            "{kind} of {}, {} of it allocated",
            words::bytes(size),
            words::bytes(allocated)
        ),
        (Some(size), _) => format!("{kind} of {}", words::bytes(size)),
        (None, _) => kind.to_owned(),
    }
}

fn devices(target: &TargetInfo) -> String {
    let bottom = target.bottom_devices();
    if bottom.is_empty() {
        return target.note.clone().unwrap_or_default();
    }
    let described: Vec<String> = bottom.into_iter().map(device).collect();
    described.join("; ")
}

fn device(device: &DeviceInfo) -> String {
    let names: Vec<&str> = [&device.vendor, &device.model]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let firmware = device.firmware.as_ref();
    let firmware = firmware.map(|firmware| format!("firmware {firmware}"));
    let mut identity = names.join(" ");
    if let Some(firmware) = firmware {
        identity = if identity.is_empty() {
            firmware
        } else {
            format!("{identity}, {firmware}")
        };
    }
    if let Some(image) = &device.rbd {
        identity = mapped(image);
    }
    let mut parts = vec![match identity.as_str() {
        "" => device.name.clone(),
        identity => format!("{} ({identity})", device.name),
    }];
    parts.push(words::bytes(device.size_bytes));
    parts.extend(attached(device).map(str::to_owned));
    let version = device.driver_version.as_ref();
    let version = version.map_or(String::new(), |version| format!(" {version}"));
    let driver = device.driver.as_ref();
    parts.extend(driver.map(|driver| format!("driver {driver}{version}")));
    parts.extend(device.link.as_ref().map(pcie_link_text));
    if device.thin == Some(true) {
        parts.push("thinly provisioned".to_owned());
    }
    let mut text = parts.join(", ");
    if device.queue.as_ref().and_then(|queue| queue.rotational) == Some(true) {
        text.push_str(", reported as rotational");
    }
    text
}

/// Describes an image mapped by the kernel, in contrast to an image opened by librbd.
fn mapped(image: &MappedImage) -> String {
    let mut text = format!("mapped RBD image {image} (krbd)");
    if let Some(fsid) = &image.fsid {
        text += &format!(" of cluster {fsid}");
    }
    if let Some(client) = &image.client {
        text += &format!(" as {client}");
    }
    text
}

/// Transport of a device, unless its driver implies it.
fn attached(device: &DeviceInfo) -> Option<&'static str> {
    match device.transport? {
        Transport::Pcie | Transport::Virtio | Transport::Memory | Transport::Network => None,
        transport => Some(transport.words()),
    }
}

fn pcie_link_text(link: &PcieLink) -> String {
    format!(
        "PCIe {} x{}",
        link.speed.trim_end_matches(" PCIe"),
        link.width
    )
}

/// Devices between the target and those that hold its data, from the top down.
fn through(target: &TargetInfo) -> String {
    let above = target.all_devices().into_iter();
    let above: Vec<String> = above
        .filter(|device| !device.below.is_empty())
        .map(layer)
        .collect();
    above.join(" on ")
}

fn layer(device: &DeviceInfo) -> String {
    let detail = device.detail.as_deref().unwrap_or_default();
    let what = match device.kind {
        DeviceKind::Partition => "partition".to_owned(),
        DeviceKind::Lvm if device.thin == Some(true) => format!("thin LVM volume {detail}"),
        DeviceKind::Lvm => format!("LVM volume {detail}"),
        DeviceKind::Crypt => format!("encrypted {detail}"),
        DeviceKind::Multipath => format!("multipath {detail}"),
        DeviceKind::Md => format!("array {detail}"),
        DeviceKind::Loop => {
            let direct = if device.direct_io == Some(true) {
                ", direct I/O"
            } else {
                ""
            };
            let file = device.backing_file.as_ref();
            let file = file.map_or_else(|| "a file".into(), |file| file.display().to_string());
            format!("loop over {file}{direct}")
        }
        DeviceKind::Bcache => "bcache".to_owned(),
        DeviceKind::Drbd => "DRBD".to_owned(),
        _ => detail.to_owned(),
    };
    match what.trim() {
        "" => device.name.clone(),
        what => format!("{} ({what})", device.name),
    }
}

fn file_system(mount: &Mount, space: Option<&FileSystemUsage>) -> String {
    let mut source = mount.source.clone();
    if !mount.options.is_empty() {
        source = format!("{source}; {}", mount.options.join(","));
    }
    let mut text = format!(
        "{} on {} ({source})",
        mount.fs_type,
        mount.mount_point.display()
    );
    if let Some((space, available)) = space
        .filter(|space| space.total_bytes > 0)
        .and_then(|space| Some((space, space.available_bytes?)))
    {
        let (free, total) = (words::bytes(available), words::bytes(space.total_bytes));
        text.push_str(&format!(", {free} of {total} free"));
    }
    text
}

fn queue(target: &TargetInfo) -> String {
    let bottom = target.bottom_devices();
    let Some(queue) = bottom.first().and_then(|device| device.queue.as_ref()) else {
        return String::new();
    };
    let mut parts = Vec::new();
    parts.extend(
        queue
            .scheduler
            .as_ref()
            .map(|name| format!("scheduler {name}")),
    );
    parts.extend(depth(queue));
    parts.extend(blocks(queue));
    match queue.volatile_write_cache {
        Some(true) => parts.push("volatile write cache, flushed by fdatasync".to_owned()),
        Some(false) => parts.push("no volatile write cache reported".to_owned()),
        None => {}
    }
    parts.join(", ")
}

fn depth(queue: &Queue) -> Option<String> {
    let requests = queue.nr_requests?;
    let mut text = match queue.hardware_queues {
        Some(queues) if queues > 1 => format!("{requests} requests in each of {queues} queues"),
        _ => format!("{requests} requests"),
    };
    if let Some(depth) = queue.device_queue_depth {
        text.push_str(&format!(" (the device takes {depth})"));
    }
    Some(text)
}

fn blocks(queue: &Queue) -> Option<String> {
    let logical = queue.logical_block_bytes?;
    let physical = queue
        .physical_block_bytes
        .filter(|physical| *physical != logical);
    let mut text = match physical {
        Some(physical) => format!("blocks of {logical} B ({physical} B physical)"),
        None => format!("blocks of {logical} B"),
    };
    if let Some(optimal) = queue
        .optimal_io_bytes
        .filter(|bytes| *bytes > physical.unwrap_or(logical))
    {
        text.push_str(&format!(", best I/O {}", words::bytes(optimal)));
    }
    Some(text)
}

/// Describes an I/O limit of a control group.
pub fn limit(limit: &IoLimit) -> String {
    let mut parts = Vec::new();
    let mut add = |value: Option<u64>, text: &dyn Fn(u64) -> String| parts.extend(value.map(text));
    add(limit.read_iops, &|iops| format!("{iops} reads/s"));
    add(limit.write_iops, &|iops| format!("{iops} writes/s"));
    add(limit.read_bytes_per_s, &|rate| {
        format!("reads {}", words::bandwidth(rate as f64))
    });
    add(limit.write_bytes_per_s, &|rate| {
        format!("writes {}", words::bandwidth(rate as f64))
    });
    format!("cgroup {}: {}", limit.cgroup, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::nfs::NfsOp;

    #[test]
    fn file_system_server_is_one_line() {
        let mut service = MountService {
            client: ServiceClient::Nfs,
            version: Some("4.2".into()),
            servers: vec!["filer".into(), "10.0.0.5".into()],
            path: Some("/export".into()),
            ..MountService::default()
        };
        assert_eq!(
            served_by(&service),
            "NFS 4.2, server filer (10.0.0.5), export /export"
        );
        service = MountService {
            client: ServiceClient::CephFuse,
            servers: vec!["10.0.0.1:3300".into(), "10.0.0.2:3300".into()],
            path: Some("/vol".into()),
            file_system: Some("fs1".into()),
            fsid: Some("b7c4".into()),
            user: Some("me".into()),
            version: None,
        };
        assert_eq!(
            served_by(&service),
            "CephFS (ceph-fuse), monitors 10.0.0.1:3300, 10.0.0.2:3300, path /vol, \
             file system fs1, cluster b7c4, client.me"
        );
    }

    #[test]
    fn mapped_image_is_named_with_its_device() {
        let info = DeviceInfo {
            name: "rbd0".into(),
            size_bytes: 10 << 30,
            kind: DeviceKind::Rbd,
            transport: Some(Transport::Network),
            rbd: Some(MappedImage {
                pool: "fast".into(),
                image: "disk1".into(),
                fsid: Some("b7c4".into()),
                client: Some("client4123".into()),
                ..MappedImage::default()
            }),
            ..DeviceInfo::default()
        };
        assert_eq!(
            device(&info),
            "rbd0 (mapped RBD image fast/disk1 (krbd) of cluster b7c4 as client4123), 10 GiB"
        );
    }

    #[test]
    fn driver_is_named_with_its_version() {
        let info = DeviceInfo {
            name: "nvme0n1".into(),
            size_bytes: 375 << 30,
            driver: Some("nvme".into()),
            driver_version: Some("1.0".into()),
            ..DeviceInfo::default()
        };
        assert_eq!(device(&info), "nvme0n1, 375 GiB, driver nvme 1.0");
    }

    #[test]
    fn nfs_requests_are_one_line_with_busiest_first() {
        let op = |ops: u64, again: u64, rtt_ms: u64| NfsOp {
            ops,
            transmissions: ops + again,
            rtt_ms,
            execute_ms: rtt_ms * 2,
            ..NfsOp::default()
        };
        let mut side = NfsSide::default();
        assert_eq!(
            nfs_side(&side),
            "no requests to the server; no retransmissions"
        );
        for (name, op) in [
            ("READ", op(1000, 2, 1500)),
            ("WRITE", op(100, 0, 500)),
            ("COMMIT", op(10, 0, 400)),
            ("GETATTR", op(5, 0, 5)),
            ("ACCESS", op(3, 0, 1)),
        ] {
            side.ops.insert(name.into(), op);
        }
        assert_eq!(
            nfs_side(&side),
            "1000 READ (round trip 1.50 ms, 3.00 ms in total), 100 WRITE (round trip 5.00 ms, 10.0 \
             ms in total), 10 COMMIT (round trip 40.0 ms, 80.0 ms in total), 5 GETATTR (round trip \
             1.00 ms, 2.00 ms in total), 3 others; 2 retransmissions"
        );
    }
}
