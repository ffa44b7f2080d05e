//! Description of the machine and the targets of a run.
//!
//! A value that could not be read is `None` or an empty list, never a guess. Serial numbers and
//! other identifiers of one machine are left out, so that a result can be published.

use crate::property_values::PropertyValues;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod device;
mod target;

pub use device::{DeviceInfo, DeviceKind, MappedImage, PcieLink, Queue, Transport};
pub use target::{
    FileSystemUsage, Locality, Mount, MountService, PathKind, ServiceClient, TargetInfo,
};

/// Description of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Host {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Operating system: `PRETTY_NAME` of os-release.
    pub os: Option<String>,
    /// Identifier of the operating system: `ID` of os-release, e.g. `debian`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_id: Option<String>,
    /// Version of the operating system: `VERSION_ID` of os-release, e.g. `12`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
    /// Processor architecture for which this program was built, e.g. `x86_64`.
    pub architecture: String,
    /// Processors of the machine.
    pub cpu: Cpu,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory available without swapping at the start of the run, in bytes (`MemAvailable`).
    pub memory_available_bytes: Option<u64>,
    /// Swap space in bytes. 0 if there is none.
    pub swap_bytes: Option<u64>,
    /// Swap space in use at the start of the run, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// The kernel's clock source, e.g. `tsc`.
    pub clock_source: Option<String>,
    /// Hardware or virtual machine on which the system runs.
    pub platform: Platform,
    /// Limits of the control groups of this process.
    pub cgroup: CgroupLimits,
}

impl Host {
    /// Clears facts that select results where another machine of the same run has other ones.
    pub(crate) fn keep_common_facts(&mut self, other: &Host) {
        let (mine, theirs) = (&mut self.platform, &other.platform);
        for (mine, theirs) in [
            (&mut self.kernel, &other.kernel),
            (&mut self.os, &other.os),
            (&mut self.os_id, &other.os_id),
            (&mut self.os_version, &other.os_version),
            (&mut mine.instance_type, &theirs.instance_type),
            (&mut mine.region, &theirs.region),
            (&mut mine.zone, &theirs.zone),
        ] {
            if *mine != *theirs {
                *mine = None;
            }
        }
    }
}

/// Processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Logical processors that are online.
    pub online: Option<u32>,
    /// cpufreq governors, separated by commas, e.g. `performance`. Virtual machines have none.
    #[schemars(with = "Option<String>")]
    pub governor: Option<PropertyValues>,
    /// cpufreq driver, e.g. `intel_pstate`.
    pub frequency_driver: Option<String>,
}

/// Hardware, virtual machine or cloud instance on which a system runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Platform {
    /// Manufacturer, from the firmware.
    pub vendor: Option<String>,
    /// Product, from the firmware. On some clouds it is the instance type.
    pub product: Option<String>,
    /// Whether the machine is virtual. `None` if the processor does not report it.
    pub virtual_machine: Option<bool>,
    /// Hypervisor named by firmware, sysfs or the clock sources: `kvm`, `xen`, `hyperv`, ...
    pub hypervisor: Option<String>,
    /// Whether this process runs in a container.
    pub container: bool,
    /// Cloud, if the firmware names one: `aws`, `gcp`, `azure`, ...
    pub cloud: Option<String>,
    /// Instance type, if the firmware or a file on the machine names it.
    pub instance_type: Option<String>,
    /// Region of the cloud, if a file on the machine names it.
    pub region: Option<String>,
    /// Availability zone of the cloud, if a file on the machine names it.
    pub zone: Option<String>,
}

/// Limits of the control groups of this process: the tightest of its group and all parents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CgroupLimits {
    /// CPU quota in processors, e.g. 1.5.
    pub cpu_quota: Option<f64>,
    /// Number of processors on which this process may run.
    pub cpuset: Option<u32>,
    /// Memory limit in bytes.
    pub memory_bytes: Option<u64>,
    /// Limit in bytes above which memory is reclaimed and the process throttled (`memory.high`).
    pub memory_high_bytes: Option<u64>,
    /// I/O limits, one per device and group.
    pub io: Vec<IoLimit>,
}

/// I/O limits of a control group for one device (`io.max`, or blkio.throttle in version 1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IoLimit {
    /// The whole disk.
    pub device: DeviceNumber,
    /// Path of the control group within its hierarchy.
    pub cgroup: String,
    /// Read bandwidth in bytes per second.
    pub read_bytes_per_s: Option<u64>,
    /// Write bandwidth in bytes per second.
    pub write_bytes_per_s: Option<u64>,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
}

/// Major and minor number of a block device, written as `8:0` in JSON.
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
    /// Number of the driver.
    pub major: u32,
    /// Number of the device within its driver.
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
    fn host_keeps_facts_that_two_machines_share() {
        let host = |kernel: &str| Host {
            kernel: Some(kernel.to_owned()),
            os_id: Some("debian".to_owned()),
            ..Host::default()
        };
        let mut both = host("6.1.0");
        both.keep_common_facts(&host("6.1.0"));
        assert_eq!(both, host("6.1.0"));
        both.keep_common_facts(&host("6.8.0"));
        assert_eq!((both.kernel, both.os_id.as_deref()), (None, Some("debian")));
    }

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
