//! What a target and a machine are, in a line or two for each fact: as `probe`, `show` and `doctor` print it.

use iosonde_result::host::{
    DeviceInfo, DeviceKind, IoLimit, Locality, MappedImage, Mount, PcieLink, Queue, Service,
    ServiceClient, Space, TargetInfo, TargetKind, Transport,
};
use iosonde_result::nfs::NfsSide;
use iosonde_result::run::RunResult;
use iosonde_result::storage::StorageUsed;
use iosonde_study::words;

mod ceph;
mod machine;

pub(crate) use ceph::{ceph, ceph_unknown, cluster};
pub(crate) use machine::{bounds, machine, machine_facts};

/// A fact's name and what is known; what is not known is left out.
pub(crate) type Fact = (&'static str, String);

/// What a target is.
pub(crate) fn target(target: &TargetInfo) -> Vec<Fact> {
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

/// Who serves a mounted file system.
fn served_by(service: &Service) -> String {
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
        named("client.", &service.user).map(|user| user.replacen(". ", ".", 1)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The way by which a run came to its storage, with the caches on it.
pub(crate) fn storage(result: &RunResult) -> Option<Fact> {
    let used = StorageUsed::of(result).filter(StorageUsed::is_news)?;
    Some(("storage", used.words()))
}

/// What was asked of NFS servers, a line for each mount.
pub(crate) fn nfs(sides: &[NfsSide]) -> Vec<Fact> {
    sides.iter().map(|side| ("NFS", nfs_side(side))).collect()
}

fn nfs_side(side: &NfsSide) -> String {
    const MOST: usize = 4;
    let busiest = side.busiest();
    let told = busiest.iter().take(MOST).map(|(name, op)| {
        let (rtt, whole) = (
            words::latency(op.mean_rtt_ns()),
            words::latency(op.mean_execute_ns()),
        );
        format!("{} {name} ({rtt} to the answer, {whole} in all)", op.ops)
    });
    let mut text = told.collect::<Vec<_>>().join(", ");
    let others: u64 = busiest.iter().skip(MOST).map(|(_, op)| op.ops).sum();
    if others > 0 {
        text += &format!(", {others} others");
    }
    if text.is_empty() {
        "the server was not asked".clone_into(&mut text);
    }
    match side.retransmissions() {
        0 => text + "; none sent again",
        count => text + &format!("; {count} sent again"),
    }
}

/// What kind of thing a path is, and how large.
pub(crate) fn kind(target: &TargetInfo) -> String {
    let kind = match target.kind {
        TargetKind::Missing => "does not exist yet",
        TargetKind::Directory => "directory",
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::CharacterDevice => "character device",
        TargetKind::Other => "neither file nor directory nor device",
    };
    // Servers and processes that serve files do not always count blocks.
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
    parts.extend(
        device
            .driver
            .as_ref()
            .map(|driver| format!("driver {driver}")),
    );
    parts.extend(device.link.as_ref().map(link));
    if device.thin == Some(true) {
        parts.push("thinly provisioned".to_owned());
    }
    let mut text = parts.join(", ");
    if device.queue.as_ref().and_then(|queue| queue.rotational) == Some(true) {
        text.push_str(", reported as rotational");
    }
    text
}

/// An image that the kernel has mapped, which is not the image as librbd has it.
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

/// How a device is attached, where its driver does not say the same.
fn attached(device: &DeviceInfo) -> Option<&'static str> {
    match device.transport? {
        Transport::Pcie | Transport::Virtio | Transport::Memory | Transport::Network => None,
        transport => Some(transport.words()),
    }
}

fn link(link: &PcieLink) -> String {
    format!(
        "PCIe {} x{}",
        link.speed.trim_end_matches(" PCIe"),
        link.width
    )
}

/// The devices between the target and those that hold its data, from the top down.
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

fn file_system(mount: &Mount, space: Option<&Space>) -> String {
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
        Some(false) => parts.push("no volatile write cache is reported".to_owned()),
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

/// A bound on I/O that a control group sets.
pub(crate) fn limit(limit: &IoLimit) -> String {
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
    fn who_serves_a_file_system_is_said_in_one_line() {
        let mut service = Service {
            client: ServiceClient::Nfs,
            version: Some("4.2".into()),
            servers: vec!["filer".into(), "10.0.0.5".into()],
            path: Some("/export".into()),
            ..Service::default()
        };
        assert_eq!(
            served_by(&service),
            "NFS 4.2, server filer (10.0.0.5), export /export"
        );
        service = Service {
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
            "CephFS (ceph-fuse), monitors 10.0.0.1:3300, 10.0.0.2:3300, path /vol, file system fs1, cluster b7c4, client.me"
        );
    }

    #[test]
    fn a_mapped_image_is_called_so_before_its_device() {
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
    fn what_nfs_was_asked_is_a_line_with_the_busiest_first() {
        let op = |ops: u64, again: u64, rtt_ms: u64| NfsOp {
            ops,
            transmissions: ops + again,
            rtt_ms,
            execute_ms: rtt_ms * 2,
            ..NfsOp::default()
        };
        let mut side = NfsSide::default();
        assert_eq!(nfs_side(&side), "the server was not asked; none sent again");
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
            "1000 READ (1.50 ms to the answer, 3.00 ms in all), 100 WRITE (5.00 ms to the answer, 10.0 ms in all), \
             10 COMMIT (40.0 ms to the answer, 80.0 ms in all), 5 GETATTR (1.00 ms to the answer, 2.00 ms in all), \
             3 others; 2 sent again"
        );
    }
}
