//! Facts about a machine, and limits on the resources of a run.

use super::{Fact, limit};
use iosonde_result::host::{CgroupLimits, Cpu, Host, Platform};
use iosonde_study::words;

/// Describes a machine in one line.
pub fn machine(host: &Host) -> String {
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

/// Describes a machine in full.
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

/// Names reported by the firmware, and the platform derived from them.
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

/// Limits on the resources of a run. `None` if there are none.
pub fn bounds(host: &Host) -> Option<Fact> {
    let mut parts: Vec<String> = affinity(host).into_iter().collect();
    parts.extend(cgroup_bounds(&host.cgroup));
    (!parts.is_empty()).then(|| ("limits", parts.join("; ")))
}

/// CPUs that affinity and cpuset allow this process, if not all.
fn affinity(host: &Host) -> Option<String> {
    let (some, all) = (host.cgroup.cpuset?, host.cpu.online?);
    (some < all).then(|| format!("may run on {some} of {all} CPUs"))
}

fn cgroup(limits: &CgroupLimits) -> String {
    let parts = cgroup_bounds(limits);
    if parts.is_empty() {
        return "no limits".to_owned();
    }
    parts.join("; ")
}

fn cgroup_bounds(limits: &CgroupLimits) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(
        limits
            .cpu_quota
            .map(|quota| format!("time of {} CPUs", (quota * 100.0).round() / 100.0)),
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
