//! Words of findings about devices.

use super::finding_cause::{DeviceCause, RunningProgram};
use super::finding_words::FindingWords;
use crate::host::{DeviceKind, PcieLink, Transport};
use crate::words;

/// Returns the words of a finding about the device of this name.
pub(super) fn describe(cause: &DeviceCause, device: &str) -> FindingWords {
    match cause {
        DeviceCause::MemoryDevice { device_kind } => memory_device(*device_kind),
        DeviceCause::BufferedLoop => buffered_loop(device),
        DeviceCause::Thin => thin_device(),
        DeviceCause::Scheduler { scheduler, better } => scheduler_text(device, scheduler, better),
        DeviceCause::WriteCache {
            device_kind,
            transport,
        } => write_cache(device, *device_kind, *transport),
        DeviceCause::PcieLink { link } => pcie_link(link),
        DeviceCause::QueueDepthOne { transport } => queue_depth_one(*transport),
        DeviceCause::Encrypted => encrypted(),
        DeviceCause::StatisticsOff => statistics_off(device),
        DeviceCause::ArraySync {
            action,
            progress_percent,
        } => array_sync(device, action, *progress_percent),
        DeviceCause::ArrayDegraded { missing_members } => array_degraded(device, *missing_members),
        DeviceCause::DeviceDown { state } => device_down(state),
        DeviceCause::Hot {
            celsius,
            limit_celsius,
        } => near_throttling(*celsius, *limit_celsius),
        DeviceCause::OtherIo { .. } => other_io(cause),
    }
}

fn memory_device(kind: DeviceKind) -> FindingWords {
    let what = match kind {
        DeviceKind::Zram => "compressed memory (zram)",
        DeviceKind::Ram => "memory (brd)",
        _ => "a null device, which stores nothing",
    };
    FindingWords::new(
        "memory-device",
        format!("the device is {what}"),
        "this would measure no storage",
    )
    .remedy("choose a real device, unless this is a test of iosonde")
}

fn buffered_loop(device: &str) -> FindingWords {
    FindingWords::new(
        "buffered-loop",
        "the loop device reads and writes its file through the page cache",
        "O_DIRECT has no effect below the loop device: the page cache serves its file",
    )
    .remedy("enable direct I/O on the loop device")
    .command(format!("sudo losetup --direct-io=on /dev/{device}"))
}

fn thin_device() -> FindingWords {
    FindingWords::new(
        "thin",
        "the device is thinly provisioned",
        "reads of blocks that were never written do not reach the medium, and the first write to \
         each block is slower",
    )
    .remedy(
        "write all blocks before reading them, as probe does with its file; write a raw device in \
         full first",
    )
}

fn scheduler_text(device: &str, scheduler: &str, better: &str) -> FindingWords {
    let effect = match scheduler {
        "bfq" | "cfq" => "it costs much CPU time per I/O, and may delay an I/O to wait for more",
        _ => "it takes a lock per I/O, which an NVMe disk does not need",
    };
    FindingWords::new(
        "scheduler",
        format!("the I/O scheduler is {scheduler}"),
        effect,
    )
    .remedy(format!(
        "use {better}, unless your application's machines use {scheduler} too"
    ))
    .command(format!(
        "echo {better} | sudo tee /sys/block/{device}/queue/scheduler"
    ))
}

fn write_cache(device: &str, kind: DeviceKind, transport: Option<Transport>) -> FindingWords {
    let text = FindingWords::new(
        "write-cache",
        "the device has a volatile write cache",
        format!(
            "writes without fsync complete in the cache until it is full: a power failure loses \
             them{}",
            power_loss_protection(kind, transport)
        ),
    );
    let remedy = "for durable writes, use the figures with fdatasync";
    let command = match kind {
        DeviceKind::Ata => Some(format!("sudo hdparm -W0 /dev/{device}")),
        DeviceKind::Scsi if transport == Some(Transport::Sas) => {
            Some(format!("sudo sdparm --clear=WCE /dev/{device}"))
        }
        DeviceKind::Nvme if transport == Some(Transport::Pcie) => {
            Some(format!("sudo nvme set-feature /dev/{device} -f 6 -V 0"))
        }
        _ => None,
    };
    match command {
        Some(command) => text
            .remedy(format!(
                "{remedy}; to measure without the cache, disable it"
            ))
            .command(command),
        None => text.remedy(remedy),
    }
}

/// Returns what is known of the power-loss protection of a volatile write cache.
fn power_loss_protection(kind: DeviceKind, transport: Option<Transport>) -> &'static str {
    match (kind, transport) {
        (DeviceKind::Nvme, Some(Transport::Pcie)) => {
            "; an NVMe disk whose capacitors protect the cache usually reports none"
        }
        (DeviceKind::Ata, _) | (DeviceKind::Scsi, Some(Transport::Sas)) => {
            ", unless the disk's capacitors protect it, which SATA and SAS do not report"
        }
        _ => "",
    }
}

fn pcie_link(link: &PcieLink) -> FindingWords {
    let lanes = |speed: &str, width: u32| format!("{} x{width}", speed.trim_end_matches(" PCIe"));
    let could = lanes(
        link.max_speed.as_deref().unwrap_or(&link.speed),
        link.max_width.unwrap_or(link.width),
    );
    FindingWords::new(
        "pcie-link",
        format!(
            "the PCI Express link is {}, but the controller supports {could}",
            lanes(&link.speed, link.width)
        ),
        "the link limits the bandwidth",
    )
    .remedy("use a slot with all lanes, or disable power saving of the link")
    .command("sudo lspci -vv | grep -E 'Non-Volatile|LnkCap|LnkSta'")
}

fn queue_depth_one(transport: Option<Transport>) -> FindingWords {
    let remedy = match transport {
        Some(Transport::Usb) => "use an enclosure with UAS and a USB 3 port",
        _ => {
            "enable command queueing (NCQ) in the firmware settings or on the kernel command line \
             (libata.force)"
        }
    };
    FindingWords::new(
        "queue-depth-one",
        "the device accepts one command at a time",
        "a higher iodepth adds latency and no throughput",
    )
    .remedy(remedy)
}

fn encrypted() -> FindingWords {
    FindingWords::new(
        "encrypted",
        "the CPU encrypts its data (dm-crypt)",
        "encryption costs CPU time per I/O, which limits high rates",
    )
    .remedy("measure the speed of encryption")
    .command("cryptsetup benchmark")
}

fn statistics_off(device: &str) -> FindingWords {
    FindingWords::new(
        "statistics-off",
        "the kernel does not count its I/O (iostats is 0)",
        "unknown whether a cache served the reads, and whether other programs use the device",
    )
    .remedy("enable the counters")
    .command(format!(
        "echo 1 | sudo tee /sys/block/{device}/queue/iostats"
    ))
}

fn array_sync(device: &str, action: &str, progress_percent: Option<f64>) -> FindingWords {
    let progress = progress_percent
        .map(|done| format!(", {done:.1} % done"))
        .unwrap_or_default();
    FindingWords::new(
        "array-sync",
        format!("the array {}{progress}", sync_action_words(action)),
        "this work uses part of the disks' time",
    )
    .remedy("wait until it ends; a check may be stopped and restarted later")
    .command(if action == "check" {
        format!("echo idle | sudo tee /sys/block/{device}/md/sync_action")
    } else {
        "cat /proc/mdstat".to_owned()
    })
}

/// Returns the sync action of an array in words.
fn sync_action_words(action: &str) -> String {
    let what = match action {
        "resync" => "is being synchronised",
        "recover" => "is being rebuilt",
        "check" => "is being checked",
        "repair" => "is being repaired",
        "reshape" => "is being reshaped",
        _ => "is busy with internal work",
    };
    format!("{what} ({action})")
}

fn array_degraded(device: &str, missing: u32) -> FindingWords {
    let plural = if missing == 1 { "" } else { "s" };
    FindingWords::new(
        "array-degraded",
        format!("the array lacks {missing} member{plural}"),
        "the figures are not those of the complete array",
    )
    .remedy("replace the missing members, and wait until the array is rebuilt")
    .command(format!("sudo mdadm --detail /dev/{device}"))
}

fn device_down(state: &str) -> FindingWords {
    FindingWords::new(
        "device-down",
        format!("the state of the device is {state}"),
        "I/O to it fails, or uses the remaining paths",
    )
    .remedy("see the kernel log and the state of all paths")
    .command("sudo dmesg | tail -n 30; sudo multipath -ll")
}

fn near_throttling(now: f64, limit: f64) -> FindingWords {
    FindingWords::new(
        "hot",
        format!("the temperature is {now:.0} °C; the device throttles from {limit:.0} °C"),
        "a run heats the device further, and it slows down",
    )
    .remedy("cool the device, and let it idle before you measure")
}

fn other_io(cause: &DeviceCause) -> FindingWords {
    let DeviceCause::OtherIo {
        read_iops,
        write_iops,
        read_bytes_per_s,
        write_bytes_per_s,
        busy_percent,
        watched_s,
        disturbs,
        programs,
    } = cause
    else {
        return FindingWords::new("other-io", "", "");
    };
    let sides = [
        ("reads", *read_iops, *read_bytes_per_s),
        ("writes", *write_iops, *write_bytes_per_s),
    ];
    let sides: Vec<String> = sides
        .into_iter()
        .filter(|(_, iops, bytes)| *iops > 0.0 || *bytes > 0.0)
        .map(|(noun, iops, bytes)| {
            let (iops, bytes) = (words::iops_text(iops), words::bandwidth(bytes));
            format!("{iops} {noun}/s ({bytes}), ")
        })
        .collect();
    let evidence = format!(
        "other programs do I/O on it: {}busy {busy_percent:.0} % of {watched_s:.1} s{}",
        sides.concat(),
        program_names(programs)
    );
    FindingWords::new(
        "other-io",
        evidence,
        match disturbs {
            true => "rates are too low, latencies are too high, and both vary",
            false => "light load; some I/Os may queue behind it",
        },
    )
    .remedy("stop these programs, or measure later")
    .command("sudo pidstat -d 1 5")
}

/// Names programs as a hint, since they may use other devices.
fn program_names(programs: &[RunningProgram]) -> String {
    let names: Vec<String> = programs
        .iter()
        .map(|one| format!("{} ({})", one.name, one.pid))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; programs that do I/O now: {}", names.join(", "))
}
