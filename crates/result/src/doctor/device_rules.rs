//! Findings about the devices under a target.

use super::finding_cause::{DeviceCause, FindingCause, RunningProgram};
use super::finding_text;
use crate::doctor::Severity::{Note, Problem, Warning};
use crate::doctor::{DeviceConditions, DeviceTraffic, Finding, MachineConditions, Severity};
use crate::host::{DeviceInfo, DeviceKind, TargetInfo};

fn found(severity: Severity, device: &DeviceInfo, cause: DeviceCause) -> Finding {
    finding_text::finding(severity, &device.name, FindingCause::Device(cause))
}

pub(super) fn findings(target: &TargetInfo, now: &MachineConditions) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for device in target.all_devices() {
        all.extend(persistent_findings(device));
        if let Some(seen) = now.devices.iter().find(|seen| seen.number == device.number) {
            all.extend(current_findings(device, seen));
        }
    }
    // In a stack only the lowest device stores data. I/O of other processes is reported there.
    all.extend(target.bottom_devices().into_iter().filter_map(write_cache));
    let busy = target.bottom_devices().into_iter().filter_map(|device| {
        let seen = now
            .devices
            .iter()
            .find(|seen| seen.number == device.number)?;
        other_io(device, seen.traffic.as_ref()?, now)
    });
    all.extend(busy);
    all
}

/// Reports properties of a device that persist until they are changed.
fn persistent_findings(device: &DeviceInfo) -> Vec<Finding> {
    let found = [
        memory(device),
        buffered_loop(device),
        thin_device_finding(device),
        scheduler(device),
        narrow_link(device),
        one_at_a_time(device),
        encrypted(device),
        uncounted(device),
    ];
    found.into_iter().flatten().collect()
}

/// Reports current activity and states of a device.
fn current_findings(device: &DeviceInfo, seen: &DeviceConditions) -> Vec<Finding> {
    let found = [
        synchronising(device, seen),
        degraded(device, seen),
        path_down(device, seen),
        hot_device_finding(device, seen),
    ];
    found.into_iter().flatten().collect()
}

fn memory(device: &DeviceInfo) -> Option<Finding> {
    let device_kind = device.kind;
    let is_memory = matches!(
        device_kind,
        DeviceKind::Zram | DeviceKind::Ram | DeviceKind::Null
    );
    is_memory.then(|| found(Warning, device, DeviceCause::MemoryDevice { device_kind }))
}

fn buffered_loop(device: &DeviceInfo) -> Option<Finding> {
    (device.kind == DeviceKind::Loop && device.direct_io == Some(false))
        .then(|| found(Warning, device, DeviceCause::BufferedLoop))
}

fn thin_device_finding(device: &DeviceInfo) -> Option<Finding> {
    (device.thin == Some(true)).then(|| found(Note, device, DeviceCause::Thin))
}

fn is_flash(device: &DeviceInfo) -> bool {
    let rotational = device.queue.as_ref().and_then(|queue| queue.rotational);
    device.kind == DeviceKind::Nvme || rotational == Some(false)
}

fn scheduler(device: &DeviceInfo) -> Option<Finding> {
    let scheduler = device.queue.as_ref()?.scheduler.as_deref()?;
    let severity = match scheduler {
        "bfq" | "cfq" => Warning,
        other if other != "none" && device.kind == DeviceKind::Nvme => Note,
        _ => return None,
    };
    let better = if is_flash(device) {
        "none"
    } else {
        "mq-deadline"
    };
    let cause = DeviceCause::Scheduler {
        scheduler: scheduler.to_owned(),
        better: better.to_owned(),
    };
    Some(found(severity, device, cause))
}

fn write_cache(device: &DeviceInfo) -> Option<Finding> {
    (device.queue.as_ref()?.volatile_write_cache == Some(true)).then(|| {
        let cause = DeviceCause::WriteCache {
            device_kind: device.kind,
            transport: device.transport,
        };
        found(Note, device, cause)
    })
}

fn narrow_link(device: &DeviceInfo) -> Option<Finding> {
    let link = device.link.as_ref()?;
    let narrow = link.max_width.is_some_and(|max| link.width < max);
    let slow = link
        .max_speed
        .as_deref()
        .and_then(link_gigatransfers)
        .zip(link_gigatransfers(&link.speed));
    let slow = slow.is_some_and(|(max, now)| now < max);
    let cause = || DeviceCause::PcieLink { link: link.clone() };
    (narrow || slow).then(|| found(Warning, device, cause()))
}

/// Parses a link speed such as `8.0 GT/s PCIe`.
pub(super) fn link_gigatransfers(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

fn one_at_a_time(device: &DeviceInfo) -> Option<Finding> {
    let transport = device.transport;
    (device.queue.as_ref()?.device_queue_depth == Some(1))
        .then(|| found(Warning, device, DeviceCause::QueueDepthOne { transport }))
}

fn encrypted(device: &DeviceInfo) -> Option<Finding> {
    (device.kind == DeviceKind::Crypt).then(|| found(Note, device, DeviceCause::Encrypted))
}

fn uncounted(device: &DeviceInfo) -> Option<Finding> {
    (device.queue.as_ref()?.statistics == Some(false))
        .then(|| found(Note, device, DeviceCause::StatisticsOff))
}

fn synchronising(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let array = seen
        .array
        .as_ref()
        .filter(|array| !["idle", "frozen"].contains(&array.action.as_str()))?;
    let cause = DeviceCause::ArraySync {
        action: array.action.clone(),
        progress_percent: array.progress_percent,
    };
    Some(found(Warning, device, cause))
}

fn degraded(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let missing_members = seen
        .array
        .as_ref()
        .map(|array| array.missing_members)
        .filter(|missing| *missing > 0)?;
    let cause = DeviceCause::ArrayDegraded { missing_members };
    Some(found(Warning, device, cause))
}

/// States in which a SCSI disk or an NVMe controller serves I/O.
const SERVING: [&str; 3] = ["running", "live", "created"];

fn path_down(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let state = seen
        .state
        .as_deref()
        .filter(|state| !SERVING.contains(state))?;
    let state = state.to_owned();
    Some(found(Problem, device, DeviceCause::DeviceDown { state }))
}

/// Distance to the device's limit that counts as near, in degrees Celsius.
const NEAR_CELSIUS: f64 = 5.0;

fn hot_device_finding(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let (celsius, limit_celsius) = (seen.celsius?, seen.celsius_limit?);
    (limit_celsius > 0.0 && celsius >= limit_celsius - NEAR_CELSIUS).then(|| {
        let cause = DeviceCause::Hot {
            celsius,
            limit_celsius,
        };
        found(Warning, device, cause)
    })
}

/// Thresholds of traffic. Less than all of these is normal for an idle machine.
const HUM_IOPS: f64 = 10.0;
const HUM_BYTES_PER_S: f64 = 1_048_576.0;
const HUM_BUSY_PERCENT: f64 = 5.0;
/// From this rate on, traffic distorts figures even if the device is not busy.
const NOISE_IOPS: f64 = 50.0;
const NOISE_BYTES_PER_S: f64 = 16.0 * 1_048_576.0;

fn other_io(
    device: &DeviceInfo,
    traffic: &DeviceTraffic,
    now: &MachineConditions,
) -> Option<Finding> {
    let iops = traffic.read_iops + traffic.write_iops;
    let bytes = traffic.read_bytes_per_s + traffic.write_bytes_per_s;
    if iops < HUM_IOPS && bytes < HUM_BYTES_PER_S && traffic.busy_percent < HUM_BUSY_PERCENT {
        return None;
    }
    let disturbs = iops >= NOISE_IOPS
        || bytes >= NOISE_BYTES_PER_S
        || traffic.busy_percent >= HUM_BUSY_PERCENT;
    let programs = now.busiest.iter().map(|one| RunningProgram {
        name: one.name.clone(),
        pid: one.pid,
    });
    let cause = DeviceCause::OtherIo {
        read_iops: traffic.read_iops,
        write_iops: traffic.write_iops,
        read_bytes_per_s: traffic.read_bytes_per_s,
        write_bytes_per_s: traffic.write_bytes_per_s,
        busy_percent: traffic.busy_percent,
        watched_s: now.watched_ns as f64 / 1e9,
        disturbs,
        programs: programs.collect(),
    };
    let severity = if disturbs { Warning } else { Note };
    Some(found(severity, device, cause))
}
