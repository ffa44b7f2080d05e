//! Causes of findings about the path of an I/O to a fast device.

use super::io_path_settings::{IdleState, NumaPlacement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings that cost time per I/O of a fast device, or must be known to interpret its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IoPathCause {
    /// The IOMMU flushes its cache at each unmapping.
    IommuStrict {
        /// Number of the device's IOMMU group.
        group: u32,
        /// Type of the group's domain, if the kernel reports it.
        domain_type: Option<String>,
    },
    /// The device has no queues for polled completions.
    NoPollQueues,
    /// Settings of the request queue cost CPU time per I/O.
    QueueOverhead {
        /// Value of `nomerges`, if it costs CPU time.
        nomerges: Option<u32>,
        /// Value of `rq_affinity`, if it costs CPU time.
        rq_affinity: Option<u32>,
        /// Whether the kernel counts the I/Os (`iostats`).
        counts_io: bool,
    },
    /// The PCI Express link sleeps when it is idle.
    LinkPowerSaving {
        /// ASPM policy of the kernel, if it is known.
        policy: Option<String>,
        /// ASPM states that are enabled. Empty if the kernel does not report them.
        states: Vec<String>,
    },
    /// Idle CPUs enter states with a long exit latency.
    DeepIdle {
        /// The states with a long exit latency.
        states: Vec<IdleState>,
    },
    /// This process may run on CPUs of another NUMA node than the device's.
    RemoteCpus {
        /// NUMA node of the device, and the CPUs of this process.
        placement: NumaPlacement,
    },
    /// One CPU handles all interrupts of the device.
    InterruptsOnOneCpu {
        /// Number of the CPU.
        cpu: u32,
        /// Numbers of the interrupts.
        irqs: Vec<u32>,
        /// CPUs of the machine.
        cpus: u32,
    },
    /// The namespace has small logical blocks on larger physical ones.
    SmallLogicalBlocks {
        /// Size of a logical block.
        logical_bytes: u64,
        /// Size of a physical block.
        physical_bytes: u64,
    },
}

/// Origin of the refusal of io_uring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum IoUringRefusal {
    /// `kernel.io_uring_disabled`.
    Sysctl,
    /// A seccomp filter, such as the profile of a container runtime.
    SeccompFilter,
    /// A security module of the kernel, such as SELinux.
    SecurityModule,
    /// The kernel was built without io_uring.
    KernelWithout,
    /// Another error, or an unknown origin.
    #[default]
    Unknown,
}
