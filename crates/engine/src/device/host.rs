//! The machine: kernel, operating system, processors, memory, and what it runs on.

use super::cgroup;
use super::system::System;
use iosonde_result::host::{Cpu, Host, Platform};

/// Describes the machine.
pub fn host(system: &System) -> Host {
    let cpuinfo = system.text("/proc/cpuinfo").unwrap_or_default();
    let meminfo = system.text("/proc/meminfo").unwrap_or_default();
    Host {
        hostname: system.text("/proc/sys/kernel/hostname"),
        kernel: system.text("/proc/sys/kernel/osrelease"),
        os: ["/etc/os-release", "/usr/lib/os-release"]
            .iter()
            .find_map(|path| os_name(&system.text(path)?)),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: Cpu {
            model: cpu_model(system, &cpuinfo),
            online: online(system, &cpuinfo),
        },
        memory_bytes: kibibytes(&meminfo, "MemTotal"),
        memory_available_bytes: kibibytes(&meminfo, "MemAvailable"),
        platform: platform(system, &cpuinfo),
        cgroup: cgroup::limits(system),
    }
}

/// `PRETTY_NAME` of os-release(5), whose values may be quoted.
fn os_name(text: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(|c| c == '"' || c == '\'').to_owned())
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
    // arm64 names no model there, but boards say what they are.
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

/// A value of `/proc/meminfo` in bytes.
fn kibibytes(meminfo: &str, key: &str) -> Option<u64> {
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
    let dmi = |file: &str| system.text(format!("/sys/class/dmi/id/{file}"));
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let cloud = cloud(
        vendor.as_deref(),
        product.as_deref(),
        dmi("chassis_asset_tag").as_deref(),
    );
    let instance_type = match cloud {
        // The others say the same for every machine type.
        Some("aws" | "alibaba" | "hetzner" | "scaleway") => product.clone(),
        _ => None,
    };
    Platform {
        virtual_machine: virtual_machine(system, cpuinfo),
        container: in_container(system),
        cloud: cloud.map(str::to_owned),
        vendor,
        product,
        instance_type,
    }
}

fn virtual_machine(system: &System, cpuinfo: &str) -> Option<bool> {
    if system.exists("/sys/hypervisor/type") {
        return Some(true);
    }
    // Only x86 has the flag, so that its absence means something there alone.
    cpu_field(cpuinfo, "flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// Asset tag of the chassis of every Azure machine.
const AZURE_ASSET_TAG: &str = "7783-7084-3265-9085-8269-3286-77";

fn cloud(
    vendor: Option<&str>,
    product: Option<&str>,
    asset_tag: Option<&str>,
) -> Option<&'static str> {
    match (
        vendor.unwrap_or(""),
        product.unwrap_or(""),
        asset_tag.unwrap_or(""),
    ) {
        (_, _, AZURE_ASSET_TAG) => Some("azure"),
        (_, _, "OracleCloud.com") => Some("oracle"),
        ("Amazon EC2", ..) => Some("aws"),
        ("Google", "Google Compute Engine", _) => Some("gcp"),
        ("Alibaba Cloud", ..) => Some("alibaba"),
        ("DigitalOcean", ..) => Some("digitalocean"),
        ("Hetzner", ..) => Some("hetzner"),
        ("Scaleway", ..) => Some("scaleway"),
        ("Vultr", ..) => Some("vultr"),
        ("Akamai" | "Linode", ..) => Some("linode"),
        ("Tencent Cloud", ..) => Some("tencent"),
        ("Huawei Cloud", ..) => Some("huawei"),
        ("UpCloud", ..) => Some("upcloud"),
        ("Exoscale", ..) => Some("exoscale"),
        ("OpenStack Foundation" | "OpenStack", ..) => Some("openstack"),
        _ => None,
    }
}

fn in_container(system: &System) -> bool {
    let marked = [
        "/.dockerenv",
        "/run/.containerenv",
        "/run/systemd/container",
    ]
    .iter()
    .any(|path| system.exists(path));
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
    marked || service_account || grouped.iter().any(|part| group.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_the_kernels_texts() {
        assert_eq!(
            os_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n").unwrap(),
            "Debian GNU/Linux 12 (bookworm)"
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
    fn clouds_are_named_only_by_their_firmware() {
        assert_eq!(
            cloud(Some("Amazon EC2"), Some("m7i.large"), None),
            Some("aws")
        );
        assert_eq!(
            cloud(
                Some("Microsoft Corporation"),
                Some("Virtual Machine"),
                Some(AZURE_ASSET_TAG)
            ),
            Some("azure")
        );
        assert_eq!(
            cloud(Some("Microsoft Corporation"), Some("Virtual Machine"), None),
            None,
            "Hyper-V at home"
        );
        assert_eq!(
            cloud(Some("QEMU"), Some("Standard PC"), Some("OracleCloud.com")),
            Some("oracle")
        );
        assert_eq!(cloud(None, None, None), None);
    }

    #[test]
    fn this_machine_can_be_asked() {
        let host = host(&System::live());
        assert!(host.kernel.is_some() && host.memory_bytes.unwrap() > 0);
        assert!(host.cpu.online.unwrap() > 0 && host.cgroup.cpuset.unwrap() > 0);
    }
}
