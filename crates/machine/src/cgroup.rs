//! Limits of control groups on this process, for cgroup v1 and v2.

use super::block_device::BlockDevice;
use super::mounts;
use super::proc_root::System;
use iosonde_result::host::{CgroupLimits, DeviceNumber, IoLimit, Mount, TargetInfo};
use std::path::{Path, PathBuf};

/// Version 1 writes a huge multiple of the page size for "no limit": at least this value.
const NO_MEMORY_BOUND: u64 = 1 << 62;

/// All limits on this process.
pub fn limits(system: &System) -> CgroupLimits {
    let mounts = mounts::mounts(system);
    let groups = groups(system, &mounts);
    let mut limits = CgroupLimits::default();
    for group in &groups {
        tighten(&mut limits.cpu_quota, cpu_quota(system, group));
        tighten(&mut limits.memory_bytes, memory_bound(system, group));
        tighten(&mut limits.memory_high_bytes, memory_high(system, group));
        limits.io.extend(io_limits(system, group));
    }
    limits.cpuset = allowed_processors(system);
    limits
}

/// The I/O limits that apply to a target: those on its disks.
pub(crate) fn limits_of(system: &System, mounts: &[Mount], target: &TargetInfo) -> Vec<IoLimit> {
    let numbers: Vec<DeviceNumber> = target
        .all_devices()
        .iter()
        .map(|device| device.number)
        .collect();
    let all = groups(system, mounts)
        .into_iter()
        .flat_map(|group| io_limits(system, &group));
    all.filter(|limit| numbers.contains(&limit.device))
        .collect()
}

/// The `cpu.stat` files of the groups of this process that limit its processor time.
pub fn cpu_stat_files(system: &System) -> Vec<PathBuf> {
    let mounts = mounts::mounts(system);
    let groups = groups(system, &mounts);
    let bounded = groups
        .iter()
        .filter(|group| cpu_quota(system, group).is_some());
    bounded
        .map(|group| group.dir.join("cpu.stat"))
        .filter(|file| system.exists(file))
        .collect()
}

/// Time in nanoseconds that the groups throttled their tasks for exceeding the CPU quota: the
/// maximum of these files. Tasks of other processes in the groups count too.
pub fn cpu_throttled_ns(system: &System, files: &[PathBuf]) -> Option<u64> {
    let held = files
        .iter()
        .filter_map(|file| throttled_ns(&system.text(file)?));
    held.max()
}

/// Parses `cpu.stat`. Version 2 counts microseconds, version 1 nanoseconds.
fn throttled_ns(text: &str) -> Option<u64> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse::<u64>().ok()
    };
    value("throttled_usec ")
        .map(|us| us * 1000)
        .or_else(|| value("throttled_time "))
}

fn tighten<T: PartialOrd + Copy>(bound: &mut Option<T>, other: Option<T>) {
    if let Some(other) = other {
        *bound = Some(match *bound {
            Some(known) if known <= other => known,
            _ => other,
        });
    }
}

/// A group of this process: its own or an ancestor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CgroupDir {
    dir: PathBuf,
    name: String,
}

/// The groups of this process in every hierarchy, from its own group upwards.
fn groups(system: &System, mounts: &[Mount]) -> Vec<CgroupDir> {
    let own = system.text("/proc/self/cgroup").unwrap_or_default();
    let mut found: Vec<CgroupDir> = Vec::new();
    for line in own.lines() {
        for group in groups_of_line(line, mounts) {
            // Version 1 may mount several controllers at one path.
            if !found.iter().any(|known| known.dir == group.dir) {
                found.push(group);
            }
        }
    }
    found
}

fn groups_of_line(line: &str, mounts: &[Mount]) -> Vec<CgroupDir> {
    // The line is hierarchy:controllers:path. Version 2 has hierarchy 0 and no controllers.
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
    else {
        return Vec::new();
    };
    let serves = |mount: &&Mount| match controllers {
        "" => mount.fs_type == "cgroup2",
        _ => {
            mount.fs_type == "cgroup"
                && controllers
                    .split(',')
                    .all(|one| mount.options.iter().any(|o| o == one))
        }
    };
    let Some(mount) = mounts.iter().find(serves) else {
        return Vec::new();
    };
    // In a container, the group of the process is the root of the mount.
    let below = Path::new(path)
        .strip_prefix(&mount.root)
        .ok()
        .filter(|below| !below.starts_with(".."));
    let below = below.unwrap_or(Path::new(""));
    let name = |below: &Path| Path::new("/").join(below).to_string_lossy().into_owned();
    below
        .ancestors()
        .map(|below| CgroupDir {
            dir: mount.mount_point.join(below),
            name: name(below),
        })
        .collect()
}

fn cpu_quota(system: &System, group: &CgroupDir) -> Option<f64> {
    if let Some(text) = system.text(group.dir.join("cpu.max")) {
        return parse_cpu_max(&text);
    }
    let quota = system.value(group.dir.join("cpu.cfs_quota_us"))?;
    let period = system.value(group.dir.join("cpu.cfs_period_us"))?;
    processors(quota, period)
}

fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    processors(quota.parse().ok()?, period.trim().parse().ok()?)
}

/// Number of processors of a quota and a period in microseconds. A quota of -1 is none.
fn processors(quota: i64, period: i64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

fn memory_bound(system: &System, group: &CgroupDir) -> Option<u64> {
    let files = ["memory.max", "memory.limit_in_bytes"];
    let bound: u64 = files
        .iter()
        .find_map(|file| system.value(group.dir.join(file)))?;
    (bound < NO_MEMORY_BOUND).then_some(bound)
}

/// Version 1 has no such limit. Its soft limit applies only when the machine is short of memory.
fn memory_high(system: &System, group: &CgroupDir) -> Option<u64> {
    system.value(group.dir.join("memory.high"))
}

fn io_limits(system: &System, group: &CgroupDir) -> Vec<IoLimit> {
    let mut limits = match system.text(group.dir.join("io.max")) {
        Some(text) => parse_io_max(&text),
        None => throttle_limits(system, group),
    };
    for limit in &mut limits {
        limit.cgroup.clone_from(&group.name);
        // A limit always applies to a whole disk, even if set with the number of a partition.
        let disk =
            BlockDevice::from_number(system, limit.device).and_then(|node| node.disk(system));
        limit.device = disk.map_or(limit.device, |disk| disk.number);
    }
    limits
}

/// Parses version 2's `io.max`: `259:0 rbps=1048576 wbps=max riops=120 wiops=max`.
fn parse_io_max(text: &str) -> Vec<IoLimit> {
    let parse_line = |line: &str| {
        let (number, values) = line.split_once(' ')?;
        let mut limit = IoLimit {
            device: number.parse().ok()?,
            ..IoLimit::default()
        };
        for (key, value) in values.split(' ').filter_map(|pair| pair.split_once('=')) {
            *field(&mut limit, key)? = value.parse().ok();
        }
        Some(limit)
    };
    text.lines()
        .filter_map(parse_line)
        .filter(is_bound)
        .collect()
}

fn field<'a>(limit: &'a mut IoLimit, key: &str) -> Option<&'a mut Option<u64>> {
    match key {
        "rbps" | "read_bps" => Some(&mut limit.read_bytes_per_s),
        "wbps" | "write_bps" => Some(&mut limit.write_bytes_per_s),
        "riops" | "read_iops" => Some(&mut limit.read_iops),
        "wiops" | "write_iops" => Some(&mut limit.write_iops),
        _ => None,
    }
}

fn is_bound(limit: &IoLimit) -> bool {
    let bounds = [
        limit.read_bytes_per_s,
        limit.write_bytes_per_s,
        limit.read_iops,
        limit.write_iops,
    ];
    bounds.iter().any(Option::is_some)
}

/// Parses version 1's files: one for each limit, with lines such as `259:0 1048576`.
fn throttle_limits(system: &System, group: &CgroupDir) -> Vec<IoLimit> {
    let mut limits: Vec<IoLimit> = Vec::new();
    for key in ["read_bps", "write_bps", "read_iops", "write_iops"] {
        let text = system
            .text(group.dir.join(format!("blkio.throttle.{key}_device")))
            .unwrap_or_default();
        for (number, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            let (Ok(device), Ok(value)) = (number.parse(), value.trim().parse()) else {
                continue;
            };
            let at = limits
                .iter()
                .position(|limit| limit.device == device)
                .unwrap_or_else(|| {
                    limits.push(IoLimit {
                        device,
                        ..IoLimit::default()
                    });
                    limits.len() - 1
                });
            if let Some(bound) = field(&mut limits[at], key) {
                *bound = Some(value);
            }
        }
    }
    limits
}

fn allowed_processors(system: &System) -> Option<u32> {
    let status = system.text("/proc/self/status")?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    count_list(list.trim())
}

/// Counts the members of a list such as `0-3,8`.
pub(super) fn count_list(list: &str) -> Option<u32> {
    list.split(',').try_fold(0u32, |count, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cgroup_v2_limits_are_parsed() {
        let limits = parse_io_max(
            "259:0 rbps=1048576 wbps=max riops=120 wiops=max\n\
             8:0 rbps=max wbps=max riops=max wiops=max\n",
        );
        assert_eq!(limits.len(), 1);
        assert_eq!(
            (limits[0].read_bytes_per_s, limits[0].write_bytes_per_s),
            (Some(1_048_576), None)
        );
        assert_eq!(
            (limits[0].read_iops, limits[0].write_iops),
            (Some(120), None)
        );
        assert_eq!(parse_cpu_max("150000 100000"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000"), None);
    }

    #[test]
    fn throttled_time_is_read_from_cgroup_v1_and_v2() {
        let version_2 = "usage_usec 5\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(throttled_ns(version_2), Some(1_500_000));
        let version_1 = "nr_periods 3\nnr_throttled 2\nthrottled_time 1500\n";
        assert_eq!(throttled_ns(version_1), Some(1500));
        assert_eq!(throttled_ns("usage_usec 5\n"), None);
    }

    #[test]
    fn container_cgroup_is_named_relative_to_its_root() {
        let mounts = mounts::parse_mountinfo(
            "30 23 0:26 /kubepods/pod1/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        );
        let names: Vec<String> = groups_of_line("0::/kubepods/pod1/c1/inner", &mounts)
            .into_iter()
            .map(|g| g.name)
            .collect();
        assert_eq!(names, ["/inner", "/"]);
        let outside = groups_of_line("0::/../other", &mounts);
        assert_eq!(outside.len(), 1);
        assert_eq!(outside[0].dir, Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(count_list("0-3,8"), Some(5));
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list("3-1"), None);
        assert_eq!(count_list(""), None);
    }

    proptest! {
        #[test]
        fn arbitrary_cgroup_files_never_panic(text in "\\PC*", list in "[0-9,-]*") {
            parse_io_max(&text);
            parse_cpu_max(&text);
            groups_of_line(&text, &[]);
            count_list(&list);
        }
    }
}
