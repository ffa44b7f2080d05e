//! Settings of the kernel and the hardware on the path of an I/O, which cost time on fast devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the machine on the path of an I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IoPathSettings {
    /// ASPM policy of the kernel: `default`, `performance`, `powersave` or `powersupersave`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspm_policy: Option<String>,
    /// Idle states that the CPUs of this process may enter, without those that a latency limit
    /// (PM QoS) excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// Poll queues that the NVMe driver was asked for (`poll_queues`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme_poll_queues: Option<u32>,
    /// Seccomp mode of this process: 0 none, 1 strict, 2 filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp_mode: Option<u32>,
}

impl IoPathSettings {
    /// Whether nothing could be read.
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// An idle state (C-state) of the CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IdleState {
    /// Number of the state: N in the directory `cpuidle/stateN` of a CPU.
    pub number: u32,
    /// Name of the state, e.g. `C6`.
    pub name: String,
    /// Time in microseconds that a CPU needs to leave the state.
    pub exit_latency_us: u64,
}

/// Settings of a device on the path of an I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceIoPath {
    /// IOMMU group of the controller. `None` without an IOMMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu: Option<IommuGroup>,
    /// Merging of requests (`nomerges`): 0 all merges, 1 only simple ones, 2 none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nomerges: Option<u32>,
    /// CPU that completes a request (`rq_affinity`): 0 that of the interrupt, 1 one of the
    /// submitting CPU's group, 2 the submitting CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rq_affinity: Option<u32>,
    /// ASPM states in which the PCI Express link may rest: `L1`, `L1.1`, `L1.2`. `None` if the
    /// kernel does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_sleep_states: Option<Vec<String>>,
    /// CPUs of this process, seen from the NUMA node of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<NumaPlacement>,
    /// Interrupts of the I/O queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptAffinity>,
}

impl DeviceIoPath {
    /// Whether nothing could be read.
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// IOMMU group of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct IommuGroup {
    /// Number of the group.
    pub number: u32,
    /// Type of the group's domain: `DMA`, `DMA-FQ`, `identity`, ... `None` before Linux 5.11.
    pub domain_type: Option<String>,
    /// Whether each unmapping waits until the IOMMU has flushed its cache.
    pub strict: bool,
}

/// CPUs on which this process may run, on the NUMA node of a device and elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NumaPlacement {
    /// NUMA node of the device.
    pub node: u32,
    /// CPUs of this node, as a list such as `0-15,32-47`.
    pub node_cpus: String,
    /// Number of CPUs of this node on which this process may run.
    pub allowed_on_node: u32,
    /// Number of CPUs of other nodes on which this process may run.
    pub allowed_elsewhere: u32,
}

/// CPUs that handle an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct InterruptAffinity {
    /// Number of the interrupt.
    pub irq: u32,
    /// CPUs that handle it, as a list such as `0-3`.
    pub cpus: String,
}
