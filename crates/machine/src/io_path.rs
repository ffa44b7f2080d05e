//! Settings on the path of an I/O to a fast device: IOMMU, link, interrupts, idle states.

use super::block_device::BlockDevice;
use super::proc_root::System;
use iosonde_result::doctor::{
    DeviceIoPath, IdleState, InterruptAffinity, IoPathSettings, IommuGroup, NumaPlacement,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CPUS: &str = "/sys/devices/system/cpu";

/// CPUs whose idle states are read. All CPUs of a machine mostly have the same.
const IDLE_CPUS_MAX: usize = 16;

/// Idle states of a CPU, as in the kernel (`CPUIDLE_STATE_MAX`).
const IDLE_STATES_MAX: u32 = 10;

/// Members of a range of CPUs that are counted, beyond any machine.
const CPUS_MAX: usize = 1 << 16;

/// Returns the settings of the machine.
pub(crate) fn machine_settings(system: &System) -> IoPathSettings {
    let policy = system.text("/sys/module/pcie_aspm/parameters/policy");
    IoPathSettings {
        aspm_policy: policy.as_deref().and_then(chosen_policy),
        idle_states: idle_states(system),
        nvme_poll_queues: system.value("/sys/module/nvme/parameters/poll_queues"),
        seccomp_mode: status_field(system, "Seccomp:").and_then(|mode| mode.parse().ok()),
    }
}

/// Returns the settings of a whole disk whose controller is on this NUMA node.
pub(crate) fn device_settings(
    system: &System,
    node: &BlockDevice,
    numa_node: Option<u32>,
) -> DeviceIoPath {
    let queue = node.dir.join("queue");
    let controllers = nvme_controllers(system, node);
    // The controller nvmeN is the directory `nvme/nvmeN` of its PCI function.
    let function = controllers
        .first()
        .and_then(|first| first.ancestors().nth(2));
    DeviceIoPath {
        iommu: function.and_then(|function| iommu_group(system, function)),
        nomerges: system.value(queue.join("nomerges")),
        rq_affinity: system.value(queue.join("rq_affinity")),
        link_sleep_states: function.and_then(|function| link_sleep_states(system, function)),
        numa: numa_node.and_then(|number| numa_placement(system, number)),
        interrupts: interrupts(system, &controllers),
    }
}

/// Returns the policy in brackets of `[default] performance powersave powersupersave`.
fn chosen_policy(list: &str) -> Option<String> {
    let (_, rest) = list.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn status_field(system: &System, key: &str) -> Option<String> {
    let status = system.text("/proc/self/status")?;
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim().to_owned())
}

fn allowed_cpus(system: &System) -> BTreeSet<u32> {
    let list = status_field(system, "Cpus_allowed_list:").unwrap_or_default();
    cpus_of_list(&list)
}

/// Returns the members of a list such as `0-3,8`.
fn cpus_of_list(list: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            found.extend((first..=last).take(CPUS_MAX));
        }
    }
    found
}

/// Returns the idle states that the CPUs of this process may enter.
fn idle_states(system: &System) -> Vec<IdleState> {
    let machine_limit_us = latency_limit_us(system);
    let mut found: Vec<IdleState> = Vec::new();
    for cpu in allowed_cpus(system).into_iter().take(IDLE_CPUS_MAX) {
        let dir = PathBuf::from(format!("{CPUS}/cpu{cpu}"));
        let cpu_limit_us = cpu_latency_limit_us(system, &dir);
        let limit_us = machine_limit_us.into_iter().chain(cpu_limit_us).min();
        for state in states_of_cpu(system, &dir.join("cpuidle")) {
            let is_allowed = limit_us.is_none_or(|limit_us| state.exit_latency_us <= limit_us);
            if is_allowed && !found.contains(&state) {
                found.push(state);
            }
        }
    }
    found
}

fn states_of_cpu(system: &System, dir: &Path) -> Vec<IdleState> {
    let names = system.names(dir).into_iter();
    names
        .filter_map(|name| {
            let number: u32 = name.strip_prefix("state")?.parse().ok()?;
            let state = dir.join(&name);
            let is_enabled = system.flag(state.join("disable")) == Some(false);
            if number >= IDLE_STATES_MAX || !is_enabled {
                return None;
            }
            Some(IdleState {
                number,
                name: system.text(state.join("name"))?,
                exit_latency_us: system.value(state.join("latency"))?,
            })
        })
        .collect()
}

/// Returns the latency limit that programs have set for all CPUs. Only root may read it.
fn latency_limit_us(system: &System) -> Option<u64> {
    let bytes = std::fs::read(system.at("/dev/cpu_dma_latency")).ok()?;
    let limit = i32::from_ne_bytes(bytes.try_into().ok()?);
    u64::try_from(limit).ok()
}

/// Returns the latency limit of one CPU: 0 means none, and `n/a` that no latency is allowed.
fn cpu_latency_limit_us(system: &System, dir: &Path) -> Option<u64> {
    match system
        .text(dir.join("power/pm_qos_resume_latency_us"))?
        .as_str()
    {
        "n/a" => Some(0),
        limit => limit.parse::<u64>().ok().filter(|limit_us| *limit_us > 0),
    }
}

/// Returns the directories of the controllers of an NVMe disk.
fn nvme_controllers(system: &System, node: &BlockDevice) -> Vec<PathBuf> {
    if !node.name.starts_with("nvme") {
        return Vec::new();
    }
    let Some(device) = system.follow(node.dir.join("device")) else {
        return Vec::new();
    };
    if system.exists(device.join("transport")) {
        return vec![device];
    }
    // With multipathing the namespace belongs to a subsystem, which contains the controllers.
    let names = system.names(&device).into_iter();
    names
        .filter(|name| is_controller_name(name))
        .filter_map(|name| system.follow(device.join(name)))
        .collect()
}

fn is_controller_name(name: &str) -> bool {
    let number = name.strip_prefix("nvme");
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn iommu_group(system: &System, function: &Path) -> Option<IommuGroup> {
    let group = system.follow(function.join("iommu_group"))?;
    let number = group.file_name()?.to_str()?.parse().ok()?;
    let domain_type = system.text(group.join("type"));
    let asked = || {
        let line = system.text("/proc/cmdline").unwrap_or_default();
        requests_strict_iommu(&line)
    };
    let strict = match domain_type.as_deref() {
        // Before Linux 5.15, the type DMA had deferred flushes too.
        Some("DMA") => !kernel_is_before(system, (5, 15)) || asked(),
        Some(_) => false,
        None => asked(),
    };
    Some(IommuGroup {
        number,
        domain_type,
        strict,
    })
}

/// Whether the kernel command line asks for strict mode.
fn requests_strict_iommu(line: &str) -> bool {
    line.split_ascii_whitespace().any(|word| {
        let Some((key, value)) = word.split_once('=') else {
            return false;
        };
        match key {
            "iommu.strict" => ["1", "y", "Y", "on"].contains(&value),
            "intel_iommu" => value.split(',').any(|option| option == "strict"),
            _ => false,
        }
    })
}

/// Whether the kernel is older than this version. An unknown one counts as old.
fn kernel_is_before(system: &System, version: (u32, u32)) -> bool {
    let release = system
        .text("/proc/sys/kernel/osrelease")
        .unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    number()
        .zip(number())
        .is_none_or(|running| running < version)
}

/// Files of the ASPM states of a link, and their names. L0s has no exit latency worth a finding.
const LINK_STATES: [(&str, &str); 3] = [
    ("l1_aspm", "L1"),
    ("l1_1_aspm", "L1.1"),
    ("l1_2_aspm", "L1.2"),
];

fn link_sleep_states(system: &System, function: &Path) -> Option<Vec<String>> {
    let states = LINK_STATES.map(|(file, name)| {
        let enabled = system.flag(function.join("link").join(file));
        enabled.map(|enabled| (name, enabled))
    });
    if states.iter().all(Option::is_none) {
        return None;
    }
    let enabled = states.into_iter().flatten().filter(|(_, enabled)| *enabled);
    Some(enabled.map(|(name, _)| name.to_owned()).collect())
}

fn numa_placement(system: &System, number: u32) -> Option<NumaPlacement> {
    let node_cpus = system.text(format!("/sys/devices/system/node/node{number}/cpulist"))?;
    let on_node = cpus_of_list(&node_cpus);
    let allowed = allowed_cpus(system);
    if allowed.is_empty() {
        return None;
    }
    let shared = allowed.intersection(&on_node).count() as u32;
    Some(NumaPlacement {
        node: number,
        node_cpus,
        allowed_on_node: shared,
        allowed_elsewhere: allowed.len() as u32 - shared,
    })
}

fn interrupts(system: &System, controllers: &[PathBuf]) -> Vec<InterruptAffinity> {
    let names = controllers
        .iter()
        .filter_map(|dir| dir.file_name()?.to_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Vec::new();
    }
    let text = system.text("/proc/interrupts").unwrap_or_default();
    let irqs = text.lines().filter_map(|line| io_interrupt(line, &names));
    irqs.filter_map(|irq| {
        let read = |file: &str| system.text(format!("/proc/irq/{irq}/{file}"));
        let cpus = read("effective_affinity_list").or_else(|| read("smp_affinity_list"))?;
        Some(InterruptAffinity { irq, cpus })
    })
    .collect()
}

/// Returns the number of an interrupt of an I/O queue, such as `nvme0q1`. Queue 0 has no I/O.
fn io_interrupt(line: &str, controllers: &[&str]) -> Option<u32> {
    let (irq, rest) = line.split_once(':')?;
    let irq = irq.trim().parse().ok()?;
    let is_io = rest.split_ascii_whitespace().any(|word| {
        // Queues that share an interrupt are separated by commas.
        let parts = word.trim_end_matches(',').split_once('q');
        parts.is_some_and(|(controller, queue)| {
            let is_queue = queue.parse::<u32>().is_ok_and(|queue| queue > 0);
            is_queue && controllers.contains(&controller)
        })
    });
    is_io.then_some(irq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists_and_kernel_words_are_parsed() {
        let cpus = |list: &str| cpus_of_list(list).into_iter().collect::<Vec<u32>>();
        assert_eq!(cpus("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpus(""), [0u32; 0]);
        assert_eq!(cpus("3-1"), [0u32; 0]);
        let policy = chosen_policy("default performance [powersave] powersupersave");
        assert_eq!(policy.as_deref(), Some("powersave"));
        assert!(requests_strict_iommu("quiet iommu.strict=1"));
        assert!(requests_strict_iommu("intel_iommu=on,strict"));
        assert!(!requests_strict_iommu(
            "iommu.strict=0 intel_iommu=on strict"
        ));
    }

    #[test]
    fn interrupts_of_other_devices_and_admin_queues_are_skipped() {
        let irq = |line: &str| io_interrupt(line, &["nvme0"]);
        assert_eq!(
            irq(" 41: 7 0 PCI-MSIX-0000:01:00.0 1-edge nvme0q1"),
            Some(41)
        );
        assert_eq!(irq(" 40: 7 0 PCI-MSI 0-edge nvme0q0, nvme0q1"), Some(40));
        assert_eq!(irq(" 40: 7 0 PCI-MSIX-0000:01:00.0 0-edge nvme0q0"), None);
        assert_eq!(irq(" 42: 7 0 PCI-MSIX-0000:02:00.0 1-edge nvme01q1"), None);
        assert_eq!(
            irq(" 36: 0 7 PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0"),
            None
        );
        assert_eq!(irq("NMI: 0 0 Non-maskable interrupts"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_io_path_text_never_panics(text in "\\PC*", list in "[0-9,-]{0,40}") {
            cpus_of_list(&list);
            chosen_policy(&text);
            requests_strict_iommu(&text);
            io_interrupt(&text, &["nvme0"]);
        }
    }
}
