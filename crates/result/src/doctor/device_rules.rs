//! Findings about the devices under a target.

use super::{Remedied, found};
use crate::doctor::Severity::{Note, Problem, Warning};
use crate::doctor::{Conditions, DeviceConditions, Finding, Traffic};
use crate::host::{DeviceInfo, DeviceKind, TargetInfo, Transport};
use crate::words;

pub(super) fn findings(target: &TargetInfo, now: &Conditions) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for device in target.all_devices() {
        all.extend(lasting(device));
        if let Some(seen) = now.devices.iter().find(|seen| seen.number == device.number) {
            all.extend(passing(device, seen));
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
fn lasting(device: &DeviceInfo) -> Vec<Finding> {
    let found = [
        memory(device),
        buffered_loop(device),
        thin(device),
        scheduler(device),
        narrow_link(device),
        one_at_a_time(device),
        encrypted(device),
        uncounted(device),
    ];
    found.into_iter().flatten().collect()
}

/// Reports current activity and states of a device.
fn passing(device: &DeviceInfo, seen: &DeviceConditions) -> Vec<Finding> {
    let found = [
        synchronising(device, seen),
        degraded(device, seen),
        path_down(device, seen),
        hot(device, seen),
    ];
    found.into_iter().flatten().collect()
}

fn memory(device: &DeviceInfo) -> Option<Finding> {
    let what = match device.kind {
        DeviceKind::Zram => "compressed memory (zram)",
        DeviceKind::Ram => "memory (brd)",
        DeviceKind::Null => "a null device, which keeps nothing",
        _ => return None,
    };
    Some(
        found(
            Warning,
            "memory-device",
            &device.name,
            format!("it is {what}"),
            "no storage is measured",
        )
        .remedy("choose a real device, unless this is a trial"),
    )
}

fn buffered_loop(device: &DeviceInfo) -> Option<Finding> {
    (device.kind == DeviceKind::Loop && device.direct_io == Some(false)).then(|| {
        found(
            Warning,
            "buffered-loop",
            &device.name,
            "the loop device reads and writes its file through the page cache",
            "O_DIRECT ends at the loop device: its file is answered from memory",
        )
        .remedy("let it use direct I/O")
        .command(format!("sudo losetup --direct-io=on /dev/{}", device.name))
    })
}

fn thin(device: &DeviceInfo) -> Option<Finding> {
    (device.thin == Some(true)).then(|| {
        found(
            Note,
            "thin",
            &device.name,
            "it is thinly provisioned",
            "blocks that were never written are read without the medium, and the first write to each is slower",
        )
        .remedy("write all that is read, as probe does; write a raw device in full before it is timed")
    })
}

fn is_flash(device: &DeviceInfo) -> bool {
    let rotational = device.queue.as_ref().and_then(|queue| queue.rotational);
    device.kind == DeviceKind::Nvme || rotational == Some(false)
}

fn scheduler(device: &DeviceInfo) -> Option<Finding> {
    let scheduler = device.queue.as_ref()?.scheduler.as_deref()?;
    let (severity, effect) = match scheduler {
        "bfq" | "cfq" => (
            Warning,
            "it costs much processor time for each I/O, and may wait for more I/O where none comes",
        ),
        "mq-deadline" | "kyber" if device.kind == DeviceKind::Nvme => (
            Note,
            "it holds a lock for each I/O that an NVMe disk does not need",
        ),
        _ => return None,
    };
    let better = if is_flash(device) {
        "none"
    } else {
        "mq-deadline"
    };
    Some(
        found(
            severity,
            "scheduler",
            &device.name,
            format!("its I/O scheduler is {scheduler}"),
            effect,
        )
        .remedy(format!(
            "use {better}, unless your application's machines have the same"
        ))
        .command(format!(
            "echo {better} | sudo tee /sys/block/{}/queue/scheduler",
            device.name
        )),
    )
}

fn write_cache(device: &DeviceInfo) -> Option<Finding> {
    if device.queue.as_ref()?.volatile_write_cache != Some(true) {
        return None;
    }
    let finding = found(
        Note,
        "write-cache",
        &device.name,
        "it has a volatile write cache",
        "writes without fsync are answered from the cache until it is full: a power cut loses them",
    );
    let remedy = "for data that must last, look at the figures with fdatasync";
    let command = match device.kind {
        DeviceKind::Ata => Some(format!("sudo hdparm -W0 /dev/{}", device.name)),
        DeviceKind::Scsi if device.transport == Some(Transport::Sas) => {
            Some(format!("sudo sdparm --clear=WCE /dev/{}", device.name))
        }
        DeviceKind::Nvme if device.transport == Some(Transport::Pcie) => Some(format!(
            "sudo nvme set-feature /dev/{} -f 6 -V 0",
            device.name
        )),
        _ => None,
    };
    Some(match command {
        Some(command) => finding
            .remedy(format!(
                "{remedy}; to measure without the cache, switch it off"
            ))
            .command(command),
        None => finding.remedy(remedy),
    })
}

fn narrow_link(device: &DeviceInfo) -> Option<Finding> {
    let link = device.link.as_ref()?;
    let narrow = link.max_width.is_some_and(|max| link.width < max);
    let slow = link
        .max_speed
        .as_deref()
        .and_then(speed)
        .zip(speed(&link.speed));
    let slow = slow.is_some_and(|(max, now)| now < max);
    if !narrow && !slow {
        return None;
    }
    let lanes = |speed: &str, width: u32| format!("{} x{width}", speed.trim_end_matches(" PCIe"));
    let could = lanes(
        link.max_speed.as_deref().unwrap_or(&link.speed),
        link.max_width.unwrap_or(link.width),
    );
    Some(
        found(
            Warning,
            "pcie-link",
            &device.name,
            format!(
                "its PCI Express link is {}, where the controller could {could}",
                lanes(&link.speed, link.width)
            ),
            "bandwidth is that of the link",
        )
        .remedy("put it into a slot that has all its lanes, or switch off the link's power saving")
        .command("sudo lspci -vv | grep -E 'Non-Volatile|LnkCap|LnkSta'"),
    )
}

/// Parses a link speed such as `8.0 GT/s PCIe`.
fn speed(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

fn one_at_a_time(device: &DeviceInfo) -> Option<Finding> {
    if device.queue.as_ref()?.device_queue_depth != Some(1) {
        return None;
    }
    let remedy = match device.transport {
        Some(Transport::Usb) => "use an enclosure that speaks UAS, and a port of USB 3",
        _ => {
            "switch command queueing (NCQ) on, in the firmware's settings or the kernel's command line (libata.force)"
        }
    };
    Some(
        found(
            Warning,
            "queue-depth-one",
            &device.name,
            "the device takes one command at a time",
            "depth brings nothing but waiting",
        )
        .remedy(remedy),
    )
}

fn encrypted(device: &DeviceInfo) -> Option<Finding> {
    (device.kind == DeviceKind::Crypt).then(|| {
        found(
            Note,
            "encrypted",
            &device.name,
            "its data is encrypted by the processor (dm-crypt)",
            "each I/O costs processor time, and at high rates that is the limit",
        )
        .remedy("measure the processor's part")
        .command("cryptsetup benchmark")
    })
}

fn uncounted(device: &DeviceInfo) -> Option<Finding> {
    (device.queue.as_ref()?.statistics == Some(false)).then(|| {
        found(
            Note,
            "statistics-off",
            &device.name,
            "the kernel does not count its I/O (iostats is 0)",
            "it cannot be seen whether a cache served the reads, nor whether others use the device",
        )
        .remedy("have it counted")
        .command(format!(
            "echo 1 | sudo tee /sys/block/{}/queue/iostats",
            device.name
        ))
    })
}

fn synchronising(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let array = seen
        .array
        .as_ref()
        .filter(|array| !["idle", "frozen"].contains(&array.action.as_str()))?;
    let progress = array
        .progress_percent
        .map(|done| format!(", {done:.1} % done"))
        .unwrap_or_default();
    Some(
        found(
            Warning,
            "array-sync",
            &device.name,
            format!("the array {}{progress}", being(&array.action)),
            "its disks share their time with it",
        )
        .remedy("wait for its end; a check may be stopped and begun again later")
        .command(if array.action == "check" {
            format!(
                "echo idle | sudo tee /sys/block/{}/md/sync_action",
                device.name
            )
        } else {
            "cat /proc/mdstat".to_owned()
        }),
    )
}

/// Returns the sync action of an array in words.
fn being(action: &str) -> String {
    let what = match action {
        "resync" => "is being synchronised",
        "recover" => "is being rebuilt",
        "check" => "is being checked",
        "repair" => "is being repaired",
        "reshape" => "is being reshaped",
        _ => "is busy with itself",
    };
    format!("{what} ({action})")
}

fn degraded(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let missing = seen
        .array
        .as_ref()
        .map(|array| array.missing_members)
        .filter(|missing| *missing > 0)?;
    let plural = if missing == 1 { "" } else { "s" };
    Some(
        found(
            Warning,
            "array-degraded",
            &device.name,
            format!("the array lacks {missing} member{plural}"),
            "its figures are not those of the whole array",
        )
        .remedy("replace what is missing, and wait until it is rebuilt")
        .command(format!("sudo mdadm --detail /dev/{}", device.name)),
    )
}

/// States in which a SCSI disk or an NVMe controller serves I/O.
const SERVING: [&str; 3] = ["running", "live", "created"];

fn path_down(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let state = seen
        .state
        .as_deref()
        .filter(|state| !SERVING.contains(state))?;
    Some(
        found(
            Problem,
            "device-down",
            &device.name,
            format!("its state is {state}"),
            "I/O to it fails, or takes the paths that are left",
        )
        .remedy("see the kernel's log, and the state of all paths")
        .command("sudo dmesg | tail -n 30; sudo multipath -ll"),
    )
}

/// Distance to the device's limit that counts as near, in degrees Celsius.
const NEAR_CELSIUS: f64 = 5.0;

fn hot(device: &DeviceInfo, seen: &DeviceConditions) -> Option<Finding> {
    let (now, limit) = (seen.celsius?, seen.celsius_limit?);
    (limit > 0.0 && now >= limit - NEAR_CELSIUS).then(|| {
        found(
            Warning,
            "hot",
            &device.name,
            format!("it is at {now:.0} degrees Celsius; from {limit:.0} it protects itself"),
            "it slows down when it gets hotter, which a run does to it",
        )
        .remedy("cool it, and let it rest before you measure")
    })
}

/// Thresholds of traffic. Less than all of these is normal for an idle machine.
const HUM_IOPS: f64 = 10.0;
const HUM_BYTES_PER_S: f64 = 1_048_576.0;
const HUM_BUSY_PERCENT: f64 = 5.0;
/// From this rate on, traffic distorts figures even if the device is not busy.
const NOISE_IOPS: f64 = 50.0;
const NOISE_BYTES_PER_S: f64 = 16.0 * 1_048_576.0;

fn other_io(device: &DeviceInfo, traffic: &Traffic, now: &Conditions) -> Option<Finding> {
    let iops = traffic.read_iops + traffic.write_iops;
    let bytes = traffic.read_bytes_per_s + traffic.write_bytes_per_s;
    if iops < HUM_IOPS && bytes < HUM_BYTES_PER_S && traffic.busy_percent < HUM_BUSY_PERCENT {
        return None;
    }
    let seconds = now.watched_ns as f64 / 1e9;
    let disturbs = iops >= NOISE_IOPS
        || bytes >= NOISE_BYTES_PER_S
        || traffic.busy_percent >= HUM_BUSY_PERCENT;
    let sides = [
        ("reads", traffic.read_iops, traffic.read_bytes_per_s),
        ("writes", traffic.write_iops, traffic.write_bytes_per_s),
    ];
    let sides: Vec<String> = sides
        .into_iter()
        .filter(|(_, iops, bytes)| *iops > 0.0 || *bytes > 0.0)
        .map(|(noun, iops, bytes)| {
            let (iops, bytes) = (words::iops(iops), words::bandwidth(bytes));
            format!("{iops} {noun}/s ({bytes}), ")
        })
        .collect();
    let mut evidence = format!(
        "others do I/O on it: {}busy {:.0} % of {seconds:.1} s",
        sides.concat(),
        traffic.busy_percent,
    );
    // The processes may use other devices, so their names are only a hint.
    let names: Vec<String> = now
        .busiest
        .iter()
        .map(|one| format!("{} ({})", one.name, one.pid))
        .collect();
    if !names.is_empty() {
        evidence.push_str(&format!("; programs that do I/O now: {}", names.join(", ")));
    }
    Some(
        found(
            if disturbs { Warning } else { Note },
            "other-io",
            &device.name,
            evidence,
            match disturbs {
                true => "rates are too low and latencies too high, and they vary",
                false => "it is little: single I/Os may wait for it",
            },
        )
        .remedy("stop it, or measure when it is quiet")
        .command("sudo pidstat -d 1 5"),
    )
}
