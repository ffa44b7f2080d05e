//! Conditions that would distort a measurement: the facts for `iosonde doctor`.

use super::activity::Activity;
use super::block_device::BlockDevice;
use super::host::kibibytes;
use super::io_path::{device_settings, machine_settings};
use super::proc_root::System;
use iosonde_result::doctor::{ArrayState, DeviceConditions, MachineConditions, Maintenance};
use iosonde_result::host::{DeviceInfo, TargetInfo};

/// The current conditions of the machine, and the activity while it was watched.
pub fn conditions(
    system: &System,
    targets: &[TargetInfo],
    activity: &Activity,
) -> MachineConditions {
    let meminfo = system.text("/proc/meminfo").unwrap_or_default();
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    MachineConditions {
        watched_ns: activity.watched.as_nanos() as u64,
        load_average: system
            .text("/proc/loadavg")
            .and_then(|text| load_average(&text)),
        cpu_busy_percent: activity
            .processors
            .map(|share| share.user + share.system + share.steal),
        cpu_steal_percent: activity.processors.map(|share| share.steal),
        dirty_bytes: kibibytes(&meminfo, "Dirty")
            .zip(kibibytes(&meminfo, "Writeback"))
            .map(|(dirty, writing)| dirty + writing),
        on_battery: on_battery(system),
        clock_sources: words(&system.text(clocks).unwrap_or_default()),
        // Only the engine can test io_uring.
        io_uring_error: None,
        io_uring_errno: None,
        io_uring_disabled: system.value("/proc/sys/kernel/io_uring_disabled"),
        aio_in_use: system.value("/proc/sys/fs/aio-nr"),
        aio_max: system.value("/proc/sys/fs/aio-max-nr"),
        locked_memory_bytes: locked_memory(system),
        devices: devices(system, targets, activity),
        busiest: activity.busiest.clone(),
        maintenance: maintenance(system),
        io_path: machine_settings(system),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut fields = text.split(' ').map(|field| field.parse().ok());
    Some([fields.next()??, fields.next()??, fields.next()??])
}

/// Whether the machine runs on battery. Batteries of mice and keyboards do not count.
fn on_battery(system: &System) -> Option<bool> {
    const SUPPLIES: &str = "/sys/class/power_supply";
    let supplies = system.names(SUPPLIES);
    let read = |name: &String, file: &str| system.text(format!("{SUPPLIES}/{name}/{file}"));
    let mut batteries = supplies.iter().filter(|name| {
        read(name, "type").as_deref() == Some("Battery")
            && read(name, "scope").as_deref() != Some("Device")
    });
    let first = batteries.next()?;
    let discharging = |name| read(name, "status").as_deref() == Some("Discharging");
    Some(discharging(first) || batteries.any(discharging))
}

/// Number of the capability that lifts the limit on locked memory.
const CAP_IPC_LOCK: u32 = 14;

fn locked_memory(system: &System) -> Option<u64> {
    let status = system.text("/proc/self/status").unwrap_or_default();
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if capabilities.is_some_and(|mask| mask >> CAP_IPC_LOCK & 1 == 1) {
        return None;
    }
    let limits = system.text("/proc/self/limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn devices(system: &System, targets: &[TargetInfo], activity: &Activity) -> Vec<DeviceConditions> {
    let mut found: Vec<DeviceConditions> = Vec::new();
    for device in targets.iter().flat_map(TargetInfo::all_devices) {
        if !found.iter().any(|known| known.number == device.number) {
            found.push(device_conditions(system, device, activity));
        }
    }
    found
}

fn device_conditions(
    system: &System,
    device: &DeviceInfo,
    activity: &Activity,
) -> DeviceConditions {
    let node = BlockDevice::from_number(system, device.number);
    // The `device` directory of a partition would be that of its disk.
    let node = node.filter(|node| !node.is_partition(system));
    let temperature = node.as_ref().and_then(|node| temperature(system, node));
    DeviceConditions {
        name: device.name.clone(),
        number: device.number,
        traffic: activity.device_traffic(device.number),
        array: node.as_ref().and_then(|node| array(system, node)),
        state: node
            .as_ref()
            .and_then(|node| system.text(node.dir.join("device/state"))),
        celsius: temperature.map(|(now, _)| now),
        celsius_limit: temperature.and_then(|(_, limit)| limit),
        io_path: node
            .as_ref()
            .map(|node| device_settings(system, node, device.numa_node))
            .unwrap_or_default(),
    }
}

fn array(system: &System, node: &BlockDevice) -> Option<ArrayState> {
    let read = |file: &str| system.text(node.dir.join("md").join(file));
    Some(ArrayState {
        // RAID levels without redundancy never synchronise.
        action: read("sync_action").or_else(|| read("level").map(|_| "idle".to_owned()))?,
        progress_percent: read("sync_completed").and_then(|text| progress(&text)),
        missing_members: read("degraded")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
    })
}

/// Parses `123456 / 976630464`, or `none`.
fn progress(text: &str) -> Option<f64> {
    let (done, all) = text.split_once('/')?;
    let (done, all): (f64, f64) = (done.trim().parse().ok()?, all.trim().parse().ok()?);
    (all > 0.0).then_some(100.0 * done / all)
}

/// The temperature from the disk driver's sensor, and the limit at which the device throttles
/// itself, in degrees Celsius.
fn temperature(system: &System, node: &BlockDevice) -> Option<(f64, Option<f64>)> {
    let device = node.dir.join("device");
    let nested = system.names(device.join("hwmon")).into_iter();
    let mut sensors = nested.map(|name| device.join("hwmon").join(name)).chain(
        system
            .names(&device)
            .into_iter()
            .filter(|name| name.starts_with("hwmon"))
            .map(|name| device.join(name)),
    );
    let sensor = sensors.find(|sensor| system.exists(sensor.join("temp1_input")))?;
    let celsius = |file: &str| {
        let thousandths: f64 = system.value(sensor.join(file))?;
        Some(thousandths / 1000.0)
    };
    Some((celsius("temp1_input")?, celsius("temp1_max")))
}

/// Programs and kernel threads that work on file systems or devices, by prefix of their names.
const MAINTENANCE: [(&str, &str); 9] = [
    ("fstrim", "fstrim, which discards free blocks"),
    (
        "ext4lazyinit",
        "ext4lazyinit, which initialises inode tables of an ext4 file system",
    ),
    ("e2scrub", "e2scrub, which checks an ext4 file system"),
    ("xfs_scrub", "xfs_scrub, which checks an XFS file system"),
    (
        "e4defrag",
        "e4defrag, which defragments an ext4 file system",
    ),
    ("xfs_fsr", "xfs_fsr, which defragments an XFS file system"),
    (
        "badblocks",
        "badblocks, which reads or writes a whole device",
    ),
    ("updatedb", "updatedb, which reads all directories"),
    (
        "duperemove",
        "duperemove, which reads files to find equal blocks",
    ),
];

fn maintenance(system: &System) -> Vec<Maintenance> {
    let ids = system.names("/proc").into_iter();
    ids.filter_map(|name| name.parse::<u32>().ok())
        .filter_map(|pid| {
            let what = maintenance_of(system, pid)?;
            Some(Maintenance { pid, what })
        })
        .collect()
}

fn maintenance_of(system: &System, pid: u32) -> Option<String> {
    let name = system.text(format!("/proc/{pid}/comm"))?;
    let known = MAINTENANCE
        .iter()
        .find(|(begin, _)| name.starts_with(begin));
    if let Some((_, what)) = known {
        return Some((*what).to_owned());
    }
    if name != "btrfs" {
        return None;
    }
    let line = system.text(format!("/proc/{pid}/cmdline"))?;
    let work = line
        .split('\0')
        .find(|word| ["scrub", "balance", "defragment"].contains(word))?;
    Some(format!("btrfs {work}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn load_average_and_progress_are_parsed() {
        assert_eq!(
            load_average("1.92 1.15 0.93 6/111 8799"),
            Some([1.92, 1.15, 0.93])
        );
        assert_eq!(progress("250 / 1000"), Some(25.0));
        assert_eq!(progress("none"), None);
        assert_eq!(progress("0 / 0"), None);
    }

    #[test]
    fn conditions_of_the_live_machine_are_read() {
        let system = System::live();
        let conditions = conditions(&system, &[], &Activity::default());
        assert!(conditions.load_average.is_some() && conditions.dirty_bytes.is_some());
        assert!(conditions.devices.is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_conditions_text_never_panics(text in "\\PC*") {
            load_average(&text);
            progress(&text);
        }
    }
}
