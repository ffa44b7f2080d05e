//! Words of findings about the path of an I/O to a fast device.

use super::finding_words::FindingWords;
use super::io_path_cause::IoPathCause;
use super::io_path_settings::{IdleState, NumaPlacement};
use crate::words;

/// Returns the words of a finding about the machine or the device of this name.
pub(super) fn describe(cause: &IoPathCause, device: &str) -> FindingWords {
    match cause {
        IoPathCause::IommuStrict { group, domain_type } => {
            iommu_strict(*group, domain_type.as_deref())
        }
        IoPathCause::NoPollQueues => no_poll_queues(),
        IoPathCause::QueueOverhead {
            nomerges,
            rq_affinity,
            counts_io,
        } => queue_overhead(device, (*nomerges, *rq_affinity), *counts_io),
        IoPathCause::LinkPowerSaving { policy, states } => {
            link_power_saving(policy.as_deref(), states)
        }
        IoPathCause::DeepIdle { states } => deep_idle(states),
        IoPathCause::RemoteCpus { placement } => remote_cpus(placement),
        IoPathCause::InterruptsOnOneCpu { cpu, irqs, cpus } => {
            interrupts_on_one_cpu(*cpu, irqs, *cpus)
        }
        IoPathCause::SmallLogicalBlocks {
            logical_bytes,
            physical_bytes,
        } => small_logical_blocks(device, *logical_bytes, *physical_bytes),
    }
}

fn iommu_strict(group: u32, domain_type: Option<&str>) -> FindingWords {
    let text = FindingWords::new(
        "iommu-strict",
        match domain_type {
            Some(name) => {
                format!("the IOMMU is in strict mode (type {name} of IOMMU group {group})")
            }
            None => format!("the IOMMU is in strict mode (IOMMU group {group})"),
        },
        "each I/O waits for a flush of the IOMMU's cache, which limits the rate of a fast device",
    );
    match domain_type {
        Some(_) => text
            .remedy(
                "use deferred flushes until the next boot, or iommu.strict=0 on the kernel \
                 command line",
            )
            .command(format!(
                "echo DMA-FQ | sudo tee /sys/kernel/iommu_groups/{group}/type"
            )),
        None => text.remedy("boot with iommu.strict=0 on the kernel command line"),
    }
}

fn no_poll_queues() -> FindingWords {
    FindingWords::new(
        "no-poll-queues",
        "the NVMe driver has no poll queues (poll_queues is 0)",
        "only jobs with hipri=1 need them: their threads spin until the interrupt, or newer \
         kernels refuse their I/O (EOPNOTSUPP)",
    )
    .remedy(
        "for such jobs, boot with nvme.poll_queues=4 on the kernel command line, or reload the \
         driver while no NVMe disk is in use",
    )
    .command("sudo modprobe -r nvme && sudo modprobe nvme poll_queues=4")
}

fn queue_overhead(
    device: &str,
    (nomerges, rq_affinity): (Option<u32>, Option<u32>),
    counts_io: bool,
) -> FindingWords {
    let mut evidence: Vec<String> = Vec::new();
    let mut commands: Vec<String> = Vec::new();
    let command = |value: u32, file: &str| {
        format!("echo {value} | sudo tee /sys/block/{device}/queue/{file}")
    };
    if let Some(value) = nomerges {
        evidence.push(format!(
            "nomerges is {value} (each I/O searches for requests to merge with)"
        ));
        commands.push(command(2, "nomerges"));
    }
    if let Some(value) = rq_affinity {
        evidence.push(format!(
            "rq_affinity is {value} (a completion on another CPU interrupts the submitting one)"
        ));
        commands.push(command(1, "rq_affinity"));
    }
    if counts_io {
        evidence.push("iostats is 1 (each I/O is counted and timed; iosonde needs this)".into());
    }
    debug_assert!(!commands.is_empty(), "a setting that costs CPU time");
    FindingWords::new(
        "queue-overhead",
        evidence.join("; "),
        "some CPU time per I/O, which limits the rate of a disk with a million IOPS",
    )
    .remedy("change this for random I/O at the highest rate")
    .command(commands.join("; "))
}

fn link_power_saving(policy: Option<&str>, states: &[String]) -> FindingWords {
    let policy = policy.map(|policy| format!("the ASPM policy is {policy}"));
    let states = (!states.is_empty())
        .then(|| format!("the PCI Express link may sleep in {}", states.join(", ")));
    let evidence: Vec<String> = [policy, states].into_iter().flatten().collect();
    debug_assert!(!evidence.is_empty(), "a policy or a state");
    FindingWords::new(
        "link-power-saving",
        evidence.join("; "),
        "an I/O after an idle time waits until the link is awake, 1 µs to more than 64 µs from \
         L1: latency at a low iodepth is higher and varies",
    )
    .remedy("keep the link awake while you measure; lspci -vv (LnkCap) has its exit latency")
    .command("echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy")
}

fn deep_idle(states: &[IdleState]) -> FindingWords {
    let named = states
        .iter()
        .map(|state| format!("{} ({} µs)", state.name, state.exit_latency_us));
    let named: Vec<String> = named.collect();
    debug_assert!(states.iter().all(|state| state.number < 10), "one digit");
    let numbers: String = states
        .iter()
        .map(|state| state.number.to_string())
        .collect();
    FindingWords::new(
        "deep-idle",
        format!(
            "idle CPUs may enter states with a long exit latency: {}",
            named.join(", ")
        ),
        "a CPU that waits for an I/O needs this time to wake up: latency at a low iodepth is \
         higher and varies",
    )
    .remedy("disable these states while you measure; echo 0 enables them again")
    .command(format!(
        "echo 1 | sudo tee /sys/devices/system/cpu/cpu*/cpuidle/state[{numbers}]/disable"
    ))
}

fn remote_cpus(placement: &NumaPlacement) -> FindingWords {
    let NumaPlacement {
        node,
        node_cpus,
        allowed_on_node,
        allowed_elsewhere,
    } = placement;
    let evidence = match allowed_on_node {
        0 => format!(
            "the device is on NUMA node {node}, but this process may run only on CPUs of other \
             nodes"
        ),
        _ => format!(
            "the device is on NUMA node {node}, and this process may also run on \
             {allowed_elsewhere} CPUs of other nodes"
        ),
    };
    FindingWords::new(
        "numa-node",
        evidence,
        "data and completions of a worker on another node cross the link between the nodes: \
         figures vary with the placement of the workers",
    )
    .remedy("let this shell and its programs run on the CPUs of the device's node")
    .command(format!("taskset -cp {node_cpus} $$"))
}

fn interrupts_on_one_cpu(cpu: u32, irqs: &[u32], cpus: u32) -> FindingWords {
    let effect = "this CPU completes all I/O of the device, which limits its rate";
    let [_, _, ..] = irqs else {
        return FindingWords::new(
            "irq-one-cpu",
            format!("the device has one I/O interrupt, on CPU {cpu} of {cpus}"),
            effect,
        )
        .remedy("keep other programs off this CPU; one queue cannot be spread");
    };
    let each: Vec<String> = irqs.iter().map(u32::to_string).collect();
    let each = each.join(" ");
    FindingWords::new(
        "irq-one-cpu",
        format!(
            "CPU {cpu} of {cpus} handles all {} I/O interrupts of the device",
            irqs.len()
        ),
        effect,
    )
    .remedy(
        "spread the interrupts; if the kernel refuses it (EIO), see isolcpus= and irqaffinity= on \
         the kernel command line",
    )
    .command(format!(
        "n=0; for i in {each}; do echo $((n % {cpus})) | sudo tee \
         /proc/irq/$i/smp_affinity_list; n=$((n+1)); done"
    ))
}

fn small_logical_blocks(device: &str, logical_bytes: u64, physical_bytes: u64) -> FindingWords {
    FindingWords::new(
        "logical-block-size",
        format!(
            "the namespace has logical blocks of {logical_bytes} B on physical blocks of {}",
            words::bytes(physical_bytes)
        ),
        "writes that are smaller or not aligned cost a read-modify-write in the device, and a \
         format with large blocks may be faster",
    )
    .remedy(
        "see which formats the namespace offers; `nvme format --lbaf=N` selects one and erases \
         all data",
    )
    .command(format!(
        "sudo nvme id-ns -H /dev/{device} | grep 'LBA Format'"
    ))
}
