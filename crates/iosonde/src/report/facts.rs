//! What a target and a machine are, in a line or two for each fact: as `probe`, `show` and `doctor` print it.

use iosonde_result::ceph::CephSide;
use iosonde_result::host::{
    CgroupLimits, Cpu, DeviceInfo, DeviceKind, Host, IoLimit, Locality, MappedImage, Mount,
    PcieLink, Platform, Queue, Service, ServiceClient, Space, TargetInfo, TargetKind, Transport,
};
use iosonde_result::nfs::NfsSide;
use iosonde_result::run::RunResult;
use iosonde_result::storage::StorageUsed;
use iosonde_study::words;

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

/// What a Ceph cluster is, and how it was during a run.
pub(crate) fn ceph(side: &CephSide) -> Vec<Fact> {
    let osds = &side.osds;
    let mut facts = vec![(
        "cluster",
        format!(
            "{}, {} of {} OSDs up, {} in",
            side.health, osds.up, osds.total, osds.r#in
        ),
    )];
    for pool in side.pools() {
        let tier = pool.cache_tier.as_ref();
        let tier = tier.map_or(String::new(), |tier| format!(", cache tier {tier}"));
        let pool = format!("{}, {}, {} PGs{tier}", pool.name, pool.redundancy, pool.pgs);
        facts.push(("pool", pool));
    }
    if let Some(slowest) = side.osd_latency.first().filter(|osd| osd.ops > 0) {
        let latency = words::latency(slowest.op_ns);
        let mut value = format!("osd.{}, {latency} an operation", slowest.osd);
        // It is told in whole milliseconds.
        if let Some(commit_ns) = slowest.commit_ns.filter(|ns| *ns > 0) {
            value += &format!(", commit {}", words::latency(commit_ns as f64));
        }
        facts.push(("slowest OSD", value));
    }
    facts.extend(ceph_unknown(side));
    facts
}

/// The same in one sentence.
pub(crate) fn cluster(side: &CephSide) -> String {
    let facts = ceph(side).into_iter();
    let told: Vec<String> = facts
        .map(|(name, text)| match name {
            "cluster" => text,
            name => format!("{name} {text}"),
        })
        .collect();
    format!("Cluster: {}.", told.join("; "))
}

/// What a Ceph cluster would not tell, as a client of few rights finds. Of what each OSD refused, one stands for all.
pub(crate) fn ceph_unknown(side: &CephSide) -> Option<Fact> {
    let (first, others) = side.notes.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    Some(("not known", format!("{first}{more}")))
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
    parts.extend(attached(device));
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
fn attached(device: &DeviceInfo) -> Option<String> {
    let text = match device.transport? {
        Transport::Pcie | Transport::Virtio | Transport::Memory | Transport::Network => {
            return None;
        }
        Transport::NvmeTcp => "NVMe over TCP",
        Transport::NvmeRdma => "NVMe over RDMA",
        Transport::NvmeFc => "NVMe over Fibre Channel",
        Transport::NvmeLoop => "NVMe to this machine itself",
        Transport::Sata => "SATA",
        Transport::Sas => "SAS",
        Transport::Usb => "USB",
        Transport::Iscsi => "iSCSI",
        Transport::FibreChannel => "Fibre Channel",
        Transport::HyperV => "Hyper-V",
        Transport::Xen => "Xen",
    };
    Some(text.to_owned())
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

/// A machine in one line.
pub(crate) fn machine(host: &Host) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(host.hostname.clone());
    parts.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    parts.extend(host.os.clone());
    parts.extend(processors(&host.cpu));
    parts.extend(
        host.memory_bytes
            .map(|bytes| format!("{} of memory", words::bytes(bytes))),
    );
    parts.extend(platform(&host.platform));
    parts.join(", ")
}

/// A machine in full.
pub(crate) fn machine_facts(host: &Host) -> Vec<Fact> {
    let system = [
        host.hostname.clone(),
        host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")),
        host.os.clone(),
    ];
    let mut processors: Vec<String> = processors(&host.cpu).into_iter().collect();
    processors.extend(affinity(host));
    processors.extend(
        host.cpu
            .governor
            .as_ref()
            .map(|governor| format!("governor {governor}")),
    );
    processors.extend(
        host.cpu
            .frequency_driver
            .as_ref()
            .map(|driver| format!("driver {driver}")),
    );
    let mut facts = vec![
        (
            "system",
            system.into_iter().flatten().collect::<Vec<_>>().join(", "),
        ),
        ("platform", made_of(&host.platform)),
        ("processor", processors.join(", ")),
        ("memory", memory(host)),
        ("clock", host.clock_source.clone().unwrap_or_default()),
        ("cgroup", cgroup(&host.cgroup)),
    ];
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

fn processors(cpu: &Cpu) -> Option<String> {
    let count = cpu.online?;
    let plural = if count == 1 { "" } else { "s" };
    Some(match &cpu.model {
        Some(model) => format!("{count} CPU{plural} ({model})"),
        None => format!("{count} CPU{plural}"),
    })
}

/// Firmware's words and what follows from them.
fn made_of(platform: &Platform) -> String {
    let firmware: Vec<&str> = [&platform.vendor, &platform.product]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let mut parts = self::platform(platform);
    if parts.is_empty() && platform.virtual_machine == Some(false) {
        parts.push("no virtual machine".to_owned());
    }
    if !firmware.is_empty() {
        parts.push(firmware.join(" "));
    }
    parts.join(", ")
}

fn platform(platform: &Platform) -> Vec<String> {
    let mut parts = Vec::new();
    if platform.virtual_machine == Some(true) {
        parts.push(match &platform.hypervisor {
            Some(hypervisor) => format!("virtual machine ({hypervisor})"),
            None => "virtual machine".to_owned(),
        });
    }
    if platform.container {
        parts.push("container".to_owned());
    }
    let place = platform.zone.as_ref().or(platform.region.as_ref());
    let cloud: Vec<&str> = [&platform.cloud, &platform.instance_type]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    match (cloud.is_empty(), place) {
        (true, _) => {}
        (false, Some(place)) => parts.push(format!("{} in {place}", cloud.join(" "))),
        (false, None) => parts.push(cloud.join(" ")),
    }
    parts
}

fn memory(host: &Host) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(host.memory_bytes.map(words::bytes));
    let available = host.memory_available_bytes;
    parts.extend(available.map(|bytes| format!("{} available", words::bytes(bytes))));
    match (host.swap_bytes, host.swap_used_bytes) {
        (Some(0), _) => parts.push("no swap".to_owned()),
        (Some(total), Some(used)) => parts.push(format!(
            "{} of {} swap in use",
            words::bytes(used),
            words::bytes(total)
        )),
        _ => {}
    }
    parts.join(", ")
}

/// Bounds on what a run may use; nothing where there are none.
pub(crate) fn bounds(host: &Host) -> Option<Fact> {
    let mut parts: Vec<String> = affinity(host).into_iter().collect();
    parts.extend(cgroup_bounds(&host.cgroup));
    (!parts.is_empty()).then(|| ("bounds", parts.join("; ")))
}

/// Processors that this process may not use, whoever says so.
fn affinity(host: &Host) -> Option<String> {
    let (some, all) = (host.cgroup.cpuset?, host.cpu.online?);
    (some < all).then(|| format!("may run on {some} of {all} CPUs"))
}

fn cgroup(limits: &CgroupLimits) -> String {
    let parts = cgroup_bounds(limits);
    if parts.is_empty() {
        return "sets no bounds".to_owned();
    }
    parts.join("; ")
}

fn cgroup_bounds(limits: &CgroupLimits) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(
        limits
            .cpu_quota
            .map(|quota| format!("{} CPUs' time", (quota * 100.0).round() / 100.0)),
    );
    parts.extend(
        limits
            .memory_bytes
            .map(|bytes| format!("{} of memory", words::bytes(bytes))),
    );
    let high = limits.memory_high_bytes;
    parts.extend(high.map(|bytes| format!("memory.high {}", words::bytes(bytes))));
    parts.extend(
        limits
            .io
            .iter()
            .map(|bound| format!("device {}: {}", bound.device, limit(bound))),
    );
    parts
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
