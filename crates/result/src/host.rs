//! Where a run took place: the machine, and what its targets are.
//!
//! Everything here is a fact that was read from the system. What could not be read is `None` (or an empty list) and
//! never a guess. Serial numbers and other marks of one particular machine are left out, so that a result can be shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod device;
mod target;

pub use device::{DeviceInfo, DeviceKind, MappedImage, PcieLink, Queue, Transport};
pub use target::{Locality, Mount, Service, ServiceClient, Space, TargetInfo, TargetKind};

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Host {
    /// Its name.
    pub hostname: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Operating system: `PRETTY_NAME` of os-release.
    pub os: Option<String>,
    /// Processor architecture that this program was built for, e.g. `x86_64`.
    pub architecture: String,
    /// The processors.
    pub cpu: Cpu,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that could be had without swapping when the run began, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap space in bytes; 0: there is none.
    pub swap_bytes: Option<u64>,
    /// Swap space in use when the run began, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// The kernel's clock source, e.g. `tsc`.
    pub clock_source: Option<String>,
    /// What the machine is made of: metal, a virtual machine, a cloud's instance.
    pub platform: Platform,
    /// Bounds that control groups put on this process.
    pub cgroup: CgroupLimits,
}

/// The processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Logical processors that are online.
    pub online: Option<u32>,
    /// What chooses their frequency, e.g. `performance`; several, where they differ, with commas. Virtual machines have none.
    pub governor: Option<String>,
    /// The driver that sets the frequency, e.g. `intel_pstate`.
    pub frequency_driver: Option<String>,
}

/// What a machine is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Platform {
    /// Manufacturer, as the firmware says.
    pub vendor: Option<String>,
    /// Product, as the firmware says; on some clouds the instance type.
    pub product: Option<String>,
    /// Whether a hypervisor is underneath; `None` where the processor does not tell.
    pub virtual_machine: Option<bool>,
    /// The hypervisor, where firmware, sysfs or the clocks that it offers name it: `kvm`, `xen`, `hyperv`, `vmware`, ...
    pub hypervisor: Option<String>,
    /// Whether this process runs in a container.
    pub container: bool,
    /// The cloud, where the firmware names one: `aws`, `gcp`, `azure`, ...
    pub cloud: Option<String>,
    /// The cloud's name of the machine type, where the firmware or a file on the machine gives it.
    pub instance_type: Option<String>,
    /// The cloud's region, where a file on the machine says so.
    pub region: Option<String>,
    /// The cloud's availability zone, where a file on the machine says so.
    pub zone: Option<String>,
}

/// Bounds that control groups put on this process; the tightest of its group and all groups above.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CgroupLimits {
    /// Processors' worth of time that may be used, e.g. 1.5.
    pub cpu_quota: Option<f64>,
    /// Processors that this process may run on.
    pub cpuset: Option<u32>,
    /// Memory bound in bytes.
    pub memory_bytes: Option<u64>,
    /// Bound above which memory is taken back and the process is slowed down, in bytes (`memory.high`).
    pub memory_high_bytes: Option<u64>,
    /// Bounds on I/O, one for each device and group that sets any.
    pub io: Vec<IoLimit>,
}

/// Bounds on the I/O of this process to one device (`io.max`, or blkio.throttle of version 1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IoLimit {
    /// The whole disk.
    pub device: DeviceNumber,
    /// The group that sets the bound, within its hierarchy.
    pub cgroup: String,
    /// Bytes per second read.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes per second written.
    pub write_bytes_per_s: Option<u64>,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
}

/// Major and minor number of a block device.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Default,
)]
#[serde(into = "String", try_from = "String")]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of the driver's devices.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl std::str::FromStr for DeviceNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |part: &str| part.parse::<u32>().ok();
        text.trim()
            .split_once(':')
            .and_then(|(major, minor)| {
                Some(Self {
                    major: parse(major)?,
                    minor: parse(minor)?,
                })
            })
            .ok_or_else(|| format!("{text:?} is not a device number (major:minor)"))
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> Self {
        number.to_string()
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_text_in_json() {
        let number = DeviceNumber {
            major: 259,
            minor: 3,
        };
        assert_eq!(serde_json::to_string(&number).unwrap(), "\"259:3\"");
        assert_eq!(
            serde_json::from_str::<DeviceNumber>("\"259:3\"").unwrap(),
            number
        );
        assert!(serde_json::from_str::<DeviceNumber>("\"259\"").is_err());
    }
}
