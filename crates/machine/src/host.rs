//! Description of the machine: kernel, operating system, processors, memory, platform.

use super::cgroup;
use super::cloud::{self, Firmware};
use super::mounts;
use super::proc_root::System;
use iosonde_result::host::{Cpu, Host, Locality, Platform};
use iosonde_result::property_values::PropertyValues;
use std::path::Path;

/// Describes the machine.
pub fn describe_host(system: &System) -> Host {
    let cpuinfo = system.text("/proc/cpuinfo").unwrap_or_default();
    let meminfo = system.text("/proc/meminfo").unwrap_or_default();
    let os = OsRelease::read(system);
    Host {
        hostname: system.text("/proc/sys/kernel/hostname"),
        kernel: system.text("/proc/sys/kernel/osrelease"),
        os: os.name,
        os_id: os.id,
        os_version: os.version,
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: Cpu {
            model: cpu_model(system, &cpuinfo),
            online: online(system, &cpuinfo),
            governor: read_each_processor(system, "scaling_governor"),
            frequency_driver: read_each_processor(system, "scaling_driver").map(String::from),
        },
        memory_bytes: kibibytes(&meminfo, "MemTotal"),
        memory_available_bytes: kibibytes(&meminfo, "MemAvailable"),
        swap_bytes: kibibytes(&meminfo, "SwapTotal"),
        swap_used_bytes: swap_used(&meminfo),
        clock_source: system.text(format!("{CLOCK_SOURCE}/current_clocksource")),
        platform: platform(system, &cpuinfo),
        cgroup: cgroup::limits(system),
    }
}

/// Bytes of memory that this process may still allocate: the available memory or the limit of its
/// control group, whichever is smaller.
pub fn memory_to_take(system: &System) -> Option<u64> {
    let meminfo = system.text("/proc/meminfo").unwrap_or_default();
    let left = kibibytes(&meminfo, "MemAvailable");
    let bound = cgroup::limits(system).memory_bytes;
    left.into_iter().chain(bound).min()
}

/// Name, identifier and version of the operating system.
#[derive(Debug, Default, PartialEq, Eq)]
struct OsRelease {
    name: Option<String>,
    id: Option<String>,
    version: Option<String>,
}

impl OsRelease {
    /// Reads os-release(5), or the file that releases before it had, such as those of CentOS 6.
    fn read(system: &System) -> OsRelease {
        let current = ["/etc/os-release", "/usr/lib/os-release"]
            .iter()
            .filter_map(|path| Some(OsRelease::parse(&system.text(path)?)))
            .find(|found| found.name.is_some());
        let before = || OsRelease::parse_before(&system.text("/etc/redhat-release")?);
        current.or_else(before).unwrap_or_default()
    }

    /// Parses os-release(5). Values may be quoted.
    fn parse(text: &str) -> OsRelease {
        let field = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.trim().split_once('='));
            let (_, value) = lines.find(|(name, _)| *name == key)?;
            let value = value.trim_matches(|c| c == '"' || c == '\'');
            (!value.is_empty()).then(|| value.to_owned())
        };
        OsRelease {
            name: field("PRETTY_NAME"),
            id: field("ID"),
            version: field("VERSION_ID"),
        }
    }

    /// Parses `CentOS release 6.8 (Final)`. `None`: the text has another form.
    fn parse_before(text: &str) -> Option<OsRelease> {
        let (name, version) = text.lines().next()?.split_once(" release ")?;
        Some(OsRelease {
            name: Some(text.lines().next()?.trim().to_owned()),
            id: Some(name.split_whitespace().next()?.to_ascii_lowercase()),
            version: version.split_whitespace().next().map(str::to_owned),
        })
    }
}

/// The first value of a key in `/proc/cpuinfo`.
fn cpu_field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let matching = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    matching
        .into_iter()
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

fn cpu_model(system: &System, cpuinfo: &str) -> Option<String> {
    // arm64 has no model name there, but boards have one in the device tree.
    let named = ["model name", "cpu model", "cpu", "Model"]
        .iter()
        .find_map(|key| cpu_field(cpuinfo, key));
    named
        .map(str::to_owned)
        .or_else(|| system.text("/sys/firmware/devicetree/base/model"))
        .or_else(|| {
            let part = cpu_field(cpuinfo, "CPU part")?;
            Some(format!(
                "implementer {} part {part}",
                cpu_field(cpuinfo, "CPU implementer")?
            ))
        })
}

fn online(system: &System, cpuinfo: &str) -> Option<u32> {
    let listed = system
        .text("/sys/devices/system/cpu/online")
        .and_then(|list| cgroup::count_list(&list));
    listed.or_else(|| {
        let counted = cpuinfo
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count() as u32;
        (counted > 0).then_some(counted)
    })
}

/// The values in the frequency policies of the processors, without duplicates.
fn read_each_processor(system: &System, file: &str) -> Option<PropertyValues> {
    const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
    let policies = system.names(POLICIES).into_iter();
    let words = policies.filter_map(|policy| system.text(format!("{POLICIES}/{policy}/{file}")));
    let found: PropertyValues = words.collect();
    (!found.is_empty()).then_some(found)
}

fn swap_used(meminfo: &str) -> Option<u64> {
    kibibytes(meminfo, "SwapTotal")?.checked_sub(kibibytes(meminfo, "SwapFree")?)
}

/// A value of `/proc/meminfo` in bytes.
pub(super) fn kibibytes(meminfo: &str, key: &str) -> Option<u64> {
    let value = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value
        .trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()
        .map(|count| count * 1024)
}

fn platform(system: &System, cpuinfo: &str) -> Platform {
    let firmware = Firmware::read(system);
    let cloud = cloud::facts(system);
    let flagged = virtual_machine(system, cpuinfo).or_else(|| {
        let is_metal = |instance: &String| instance.contains("metal");
        let is_guest = cloud.cloud.is_some() || hypervisor(system, &firmware).is_some();
        is_guest.then(|| !cloud.instance_type.as_ref().is_some_and(is_metal))
    });
    Platform {
        virtual_machine: flagged,
        // Firmware of a bare-metal machine may have the name of a hypervisor vendor.
        hypervisor: match flagged {
            Some(false) => None,
            _ => hypervisor(system, &firmware),
        },
        container: in_container(system),
        vendor: firmware.vendor,
        product: firmware.product,
        cloud: cloud.cloud,
        instance_type: cloud.instance_type,
        region: cloud.region,
        zone: cloud.zone,
    }
}

fn virtual_machine(system: &System, cpuinfo: &str) -> Option<bool> {
    if system.exists("/sys/hypervisor/type") {
        return Some(true);
    }
    // Only x86 has the flag, so its absence means something only there.
    cpu_field(cpuinfo, "flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// The hypervisor, from `/sys/hypervisor`, the clock sources of its guests, or the firmware.
fn hypervisor(system: &System, firmware: &Firmware) -> Option<String> {
    let own = system.text("/sys/hypervisor/type");
    let clocks = system
        .text(format!("{CLOCK_SOURCE}/available_clocksource"))
        .unwrap_or_default();
    let by_clock = clocks.split(' ').find_map(|clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        clock if clock.starts_with("hyperv") => Some("hyperv"),
        _ => None,
    });
    let by_firmware = match firmware.vendor.as_deref() {
        Some("QEMU" | "Google") => Some("kvm"),
        Some("VMware, Inc.") => Some("vmware"),
        Some("innotek GmbH") => Some("virtualbox"),
        Some("Xen") => Some("xen"),
        Some("Parallels Software International Inc." | "Parallels International GmbH.") => {
            Some("parallels")
        }
        Some("Microsoft Corporation") => {
            (firmware.product.as_deref() == Some("Virtual Machine")).then_some("hyperv")
        }
        _ => None,
    };
    own.or_else(|| by_clock.or(by_firmware).map(str::to_owned))
}

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

fn in_container(system: &System) -> bool {
    let marked = ["/run/.containerenv", "/run/systemd/container"]
        .iter()
        .any(|path| system.exists(path));
    // A machine booted from a container's disk image has Docker's mark, but a root of its own.
    let docker = system.exists("/.dockerenv") && !has_root_of_its_own(system);
    let service_account = system.exists("/var/run/secrets/kubernetes.io/serviceaccount");
    let group = system.text("/proc/self/cgroup").unwrap_or_default();
    let grouped = [
        "/kubepods",
        "/docker/",
        "/docker-",
        "/libpod-",
        "/lxc/",
        "cri-containerd",
    ];
    marked || docker || service_account || grouped.iter().any(|part| group.contains(part))
}

/// Whether `/` is the root of a file system on a block device, as on a booted machine.
fn has_root_of_its_own(system: &System) -> bool {
    let mounts = mounts::mounts(system);
    let root = mounts
        .iter()
        .rfind(|mount| mount.mount_point == Path::new("/"));
    root.is_some_and(|root| root.locality == Locality::Block && root.root == "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_name_memory_and_cpu_fields_are_parsed() {
        let debian = OsRelease::parse(concat!(
            "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
            "VERSION_ID='12'\nID=debian\nVARIANT_ID=\n"
        ));
        let text = |text: &str| Some(text.to_owned());
        let expected = OsRelease {
            name: text("Debian GNU/Linux 12 (bookworm)"),
            id: text("debian"),
            version: text("12"),
        };
        assert_eq!(debian, expected);
        let centos = OsRelease {
            name: text("CentOS release 6.8 (Final)"),
            id: text("centos"),
            version: text("6.8"),
        };
        assert_eq!(
            OsRelease::parse_before("CentOS release 6.8 (Final)\n"),
            Some(centos)
        );
        assert_eq!(
            kibibytes(
                "MemTotal:       16 kB\nMemAvailable: 8 kB\n",
                "MemAvailable"
            ),
            Some(8192)
        );
        assert_eq!(kibibytes("MemTotal: 16 kB", "Mem"), None);
        assert_eq!(
            cpu_field("processor\t: 0\nmodel name\t: X 1\n", "model name"),
            Some("X 1")
        );
    }

    #[test]
    fn host_of_the_live_machine_is_read() {
        let host = describe_host(&System::live());
        assert!(host.kernel.is_some() && host.memory_bytes.unwrap() > 0);
        assert!(host.cpu.online.unwrap() > 0 && host.cgroup.cpuset.unwrap() > 0);
    }
}
