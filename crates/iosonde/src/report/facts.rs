//! What a target and a machine are, in a line or two for each fact: as `probe`, `show` and `doctor` print it.

use iosonde_result::ceph::CephSide;
use iosonde_result::host::{
    CgroupLimits, Cpu, DeviceInfo, DeviceKind, Host, IoLimit, Locality, Mount, PcieLink, Platform,
    Queue, Space, TargetInfo, TargetKind, Transport,
};
use iosonde_study::words;

/// A fact's name and what is known; what is not known is left out.
pub(crate) type Fact = (&'static str, String);

/// What a target is.
pub(crate) fn target(target: &TargetInfo) -> Vec<Fact> {
    let mut facts = vec![("device", devices(target)), ("through", through(target))];
    if let Some(mount) = &target.mount {
        facts.push(("file system", file_system(mount, target.space.as_ref())));
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
    if let Some(pool) = &side.pool {
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
    facts
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
