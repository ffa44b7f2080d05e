//! Findings about the path of an I/O to an NVMe disk behind PCI Express.
//!
//! Slower devices hide these costs: a virtio disk or a SATA disk gets none of these findings.

use super::device_rules::link_gigatransfers;
use super::finding_cause::FindingCause;
use super::finding_text;
use super::io_path_cause::IoPathCause;
use super::io_path_settings::DeviceIoPath;
use crate::doctor::Severity::{Note, Warning};
use crate::doctor::{Examination, Finding, MachineConditions, Severity};
use crate::host::{DeviceInfo, DeviceKind, Host, Transport};

fn found(severity: Severity, subject: &str, cause: IoPathCause) -> Finding {
    finding_text::finding(severity, subject, FindingCause::IoPath(cause))
}

pub(super) fn findings(examined: &Examination) -> Vec<Finding> {
    let (host, now) = (&examined.host, &examined.conditions);
    let targets = examined.targets.iter();
    let devices = targets.flat_map(|target| target.info.all_devices());
    let disks: Vec<&DeviceInfo> = devices.filter(|device| is_fast(device)).collect();
    let mut all: Vec<Finding> = Vec::new();
    if !disks.is_empty() {
        all.extend(deep_idle(now));
    }
    for disk in disks {
        all.extend(no_poll_queues(disk, now));
        all.extend(small_logical_blocks(disk, host));
        if let Some(seen) = now.devices.iter().find(|seen| seen.number == disk.number) {
            all.extend(settings_findings(disk, &seen.io_path, examined));
        }
    }
    all
}

fn settings_findings(
    disk: &DeviceInfo,
    path: &DeviceIoPath,
    examined: &Examination,
) -> Vec<Finding> {
    let policy = examined.conditions.io_path.aspm_policy.as_deref();
    let found = [
        iommu_strict(disk, path),
        queue_overhead(disk, path),
        link_power_saving(disk, path, policy),
        remote_cpus(disk, path),
        interrupts_on_one_cpu(disk, path, examined.host.cpu.online),
    ];
    found.into_iter().flatten().collect()
}

fn is_fast(device: &DeviceInfo) -> bool {
    device.kind == DeviceKind::Nvme && device.transport == Some(Transport::Pcie)
}

/// Exit latency in microseconds that is large beside a read of an NVMe disk.
const DEEP_IDLE_EXIT_US: u64 = 20;

fn deep_idle(now: &MachineConditions) -> Option<Finding> {
    let states = now.io_path.idle_states.iter();
    let states: Vec<_> = states
        .filter(|state| state.exit_latency_us >= DEEP_IDLE_EXIT_US)
        .cloned()
        .collect();
    (!states.is_empty()).then(|| found(Note, "machine", IoPathCause::DeepIdle { states }))
}

fn no_poll_queues(disk: &DeviceInfo, now: &MachineConditions) -> Option<Finding> {
    let polling = disk.queue.as_ref()?.polling?;
    let without = !polling && now.io_path.nvme_poll_queues == Some(0);
    without.then(|| found(Note, &disk.name, IoPathCause::NoPollQueues))
}

/// Physical block size from which on a logical block size of 512 bytes is small.
const LARGE_BLOCK_BYTES: u64 = 4096;

fn small_logical_blocks(disk: &DeviceInfo, host: &Host) -> Option<Finding> {
    // The namespace of a virtual machine has one format, that of its hypervisor.
    if host.platform.virtual_machine == Some(true) {
        return None;
    }
    let queue = disk.queue.as_ref()?;
    let (logical_bytes, physical_bytes) = (queue.logical_block_bytes?, queue.physical_block_bytes?);
    (logical_bytes == 512 && physical_bytes >= LARGE_BLOCK_BYTES).then(|| {
        let cause = IoPathCause::SmallLogicalBlocks {
            logical_bytes,
            physical_bytes,
        };
        found(Note, &disk.name, cause)
    })
}

fn iommu_strict(disk: &DeviceInfo, path: &DeviceIoPath) -> Option<Finding> {
    let group = path.iommu.as_ref().filter(|group| group.strict)?;
    let cause = IoPathCause::IommuStrict {
        group: group.number,
        domain_type: group.domain_type.clone(),
    };
    Some(found(Note, &disk.name, cause))
}

/// Speed in GT/s and lanes of a link (PCI Express 4.0 x4) whose disks reach a million IOPS.
const VERY_FAST_LINK: (f64, u32) = (16.0, 4);

fn is_very_fast(disk: &DeviceInfo) -> bool {
    disk.link.as_ref().is_some_and(|link| {
        let speed = link_gigatransfers(&link.speed);
        speed.is_some_and(|speed| speed >= VERY_FAST_LINK.0) && link.width >= VERY_FAST_LINK.1
    })
}

fn queue_overhead(disk: &DeviceInfo, path: &DeviceIoPath) -> Option<Finding> {
    let nomerges = path.nomerges.filter(|merges| *merges == 0);
    let rq_affinity = path.rq_affinity.filter(|affinity| *affinity == 2);
    // iosonde itself needs the counters, so they are no finding of their own.
    if !is_very_fast(disk) || (nomerges.is_none() && rq_affinity.is_none()) {
        return None;
    }
    let statistics = disk.queue.as_ref().and_then(|queue| queue.statistics);
    let cause = IoPathCause::QueueOverhead {
        nomerges,
        rq_affinity,
        counts_io: statistics == Some(true),
    };
    Some(found(Note, &disk.name, cause))
}

fn link_power_saving(
    disk: &DeviceInfo,
    path: &DeviceIoPath,
    policy: Option<&str>,
) -> Option<Finding> {
    let saves = matches!(policy, Some("powersave" | "powersupersave"));
    let states = path.link_sleep_states.clone();
    // Without the states of the link, only the policy shows that it may sleep.
    let sleeps = states.as_ref().map_or(saves, |states| !states.is_empty());
    let cause = IoPathCause::LinkPowerSaving {
        policy: policy.map(str::to_owned),
        states: states.unwrap_or_default(),
    };
    let severity = if saves { Warning } else { Note };
    sleeps.then(|| found(severity, &disk.name, cause))
}

fn remote_cpus(disk: &DeviceInfo, path: &DeviceIoPath) -> Option<Finding> {
    let placement = path.numa.as_ref()?;
    if placement.allowed_elsewhere == 0 {
        return None;
    }
    let severity = if placement.allowed_on_node == 0 {
        Warning
    } else {
        Note
    };
    let placement = placement.clone();
    Some(found(
        severity,
        &disk.name,
        IoPathCause::RemoteCpus { placement },
    ))
}

fn interrupts_on_one_cpu(
    disk: &DeviceInfo,
    path: &DeviceIoPath,
    online: Option<u32>,
) -> Option<Finding> {
    let cpus = online.filter(|cpus| *cpus > 1)?;
    let first = path.interrupts.first()?;
    // A list of several CPUs is no number.
    let cpu: u32 = first.cpus.parse().ok()?;
    if path.interrupts.iter().any(|each| each.cpus != first.cpus) {
        return None;
    }
    let irqs: Vec<u32> = path.interrupts.iter().map(|each| each.irq).collect();
    // A disk with one queue has one interrupt, which cannot be spread.
    let severity = if irqs.len() > 1 { Warning } else { Note };
    let cause = IoPathCause::InterruptsOnOneCpu { cpu, irqs, cpus };
    Some(found(severity, &disk.name, cause))
}
