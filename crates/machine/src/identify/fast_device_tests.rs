//! Findings of `doctor` about fast devices of captured machines, with and without each cause.

use super::{PathFacts, identify_in};
use crate::activity::Activity;
use crate::captured_machine::CapturedMachine;
use crate::conditions::conditions;
use crate::host::describe_host;
use iosonde_result::doctor::{
    self, DeviceCause, Examination, ExaminedTarget, Finding, FindingCause, IdleState, IoPathCause,
    Severity,
};
use iosonde_result::host::{DeviceKind, PathKind, Transport};
use std::path::{Path, PathBuf};

const DISK: &str = "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0";
const QUEUE: &str = "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0/nvme/nvme0/nvme0n1/queue";

/// The findings about the root of a captured machine, which is on this device.
fn findings(machine: &CapturedMachine, on: &str) -> Vec<Finding> {
    let system = machine.system();
    let facts = PathFacts {
        path: PathBuf::from("/"),
        kind: PathKind::Directory,
        size_bytes: None,
        allocated_bytes: None,
        on: Some(on.parse().unwrap()),
        is: None,
    };
    let info = identify_in(&system, &facts);
    let targets = [info];
    let conditions = conditions(&system, &targets, &Activity::default());
    let [info] = targets;
    doctor::findings(&Examination {
        host: describe_host(&system),
        conditions,
        targets: vec![ExaminedTarget {
            info,
            ..ExaminedTarget::default()
        }],
        ..Examination::default()
    })
}

/// The finding with an identifier on the fast machine after these files were written.
fn finding_after(id: &str, changes: &[(&str, &str)]) -> Option<Finding> {
    let machine = CapturedMachine::unpack("fast-nvme");
    for (path, text) in changes {
        machine.write(Path::new(path), text);
    }
    let mut found = findings(&machine, "259:0").into_iter();
    found.find(|finding| finding.id == id)
}

/// Asserts that the fast machine has the finding, and has not after these files were written.
#[track_caller]
fn depends_on(id: &str, severity: Severity, changes: &[(&str, &str)]) -> Finding {
    let found = finding_after(id, &[]);
    let found = found.unwrap_or_else(|| panic!("no finding {id}"));
    assert_eq!(found.severity, severity);
    assert_eq!(finding_after(id, changes), None);
    found
}

#[track_caller]
fn io_path_cause(found: Finding) -> IoPathCause {
    match found.cause {
        Some(FindingCause::IoPath(cause)) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn strict_iommu_is_found_by_domain_type() {
    let file = "/sys/kernel/iommu_groups/17/type";
    let found = depends_on("iommu-strict", Severity::Note, &[(file, "DMA-FQ\n")]);
    assert_eq!(found.subject, "nvme0n1");
    let command = "echo DMA-FQ | sudo tee /sys/kernel/iommu_groups/17/type";
    assert_eq!(found.command.as_deref(), Some(command));
    let cause = IoPathCause::IommuStrict {
        group: 17,
        domain_type: Some("DMA".to_owned()),
    };
    assert_eq!(io_path_cause(found), cause);
}

#[test]
fn old_kernel_shows_strict_iommu_by_its_command_line() {
    let old = ("/proc/sys/kernel/osrelease", "5.10.0-28-amd64\n");
    let lazy = ("/proc/cmdline", "ro iommu.strict=0\n");
    assert!(finding_after("iommu-strict", &[old]).is_some());
    assert_eq!(finding_after("iommu-strict", &[old, lazy]), None);
    assert!(finding_after("iommu-strict", &[lazy]).is_some());
}

#[test]
fn missing_poll_queues_are_found_by_module_parameter() {
    let parameter = "/sys/module/nvme/parameters/poll_queues";
    depends_on("no-poll-queues", Severity::Note, &[(parameter, "4\n")]);
    let polled = format!("{QUEUE}/io_poll");
    assert_eq!(
        finding_after("no-poll-queues", &[(polled.as_str(), "1\n")]),
        None
    );
}

#[test]
fn queue_overhead_is_found_on_fast_links_only() {
    let (merges, affinity) = (format!("{QUEUE}/nomerges"), format!("{QUEUE}/rq_affinity"));
    let cheap = [(merges.as_str(), "2\n"), (affinity.as_str(), "1\n")];
    let found = depends_on("queue-overhead", Severity::Note, &cheap);
    let cause = |nomerges, rq_affinity| IoPathCause::QueueOverhead {
        nomerges,
        rq_affinity,
        counts_io: true,
    };
    assert_eq!(io_path_cause(found), cause(Some(0), Some(2)));
    let found = finding_after("queue-overhead", &cheap[..1]).unwrap();
    assert_eq!(io_path_cause(found), cause(None, Some(2)));
    let speed = format!("{DISK}/current_link_speed");
    let slow = [(speed.as_str(), "8.0 GT/s PCIe\n")];
    assert_eq!(finding_after("queue-overhead", &slow), None);
}

#[test]
fn sleeping_link_is_found_by_its_aspm_states() {
    let l1 = format!("{DISK}/link/l1_aspm");
    let awake = [(l1.as_str(), "0\n")];
    let found = depends_on("link-power-saving", Severity::Warning, &awake);
    let cause = IoPathCause::LinkPowerSaving {
        policy: Some("powersave".to_owned()),
        states: vec!["L1".to_owned()],
    };
    assert_eq!(io_path_cause(found), cause);
    let policy = "/sys/module/pcie_aspm/parameters/policy";
    let default = [(policy, "[default] performance powersave powersupersave\n")];
    let found = finding_after("link-power-saving", &default).unwrap();
    assert_eq!(
        found.severity,
        Severity::Note,
        "the firmware has enabled it"
    );
}

#[test]
fn deep_idle_states_are_found_unless_disabled_or_limited() {
    const CPU: &str = "/sys/devices/system/cpu/cpu0";
    let disabled = format!("{CPU}/cpuidle/state2/disable");
    let found = depends_on("deep-idle", Severity::Note, &[(disabled.as_str(), "1\n")]);
    let state = IdleState {
        number: 2,
        name: "C2".to_owned(),
        exit_latency_us: 400,
    };
    let command = "echo 1 | sudo tee /sys/devices/system/cpu/cpu*/cpuidle/state[2]/disable";
    assert_eq!(found.command.as_deref(), Some(command));
    let states = vec![state];
    assert_eq!(io_path_cause(found), IoPathCause::DeepIdle { states });
    let limit = format!("{CPU}/power/pm_qos_resume_latency_us");
    assert_eq!(
        finding_after("deep-idle", &[(limit.as_str(), "10\n")]),
        None
    );
    // A program keeps this file open with a limit of 10 µs, a 32-bit number.
    let of_program = ("/dev/cpu_dma_latency", "\n\0\0\0");
    assert_eq!(finding_after("deep-idle", &[of_program]), None);
}

#[test]
fn cpus_of_another_numa_node_are_found() {
    const STATUS: &str = "/proc/self/status";
    let allowed = |list: &str| format!("Name:\tiosonde\nCpus_allowed_list:\t{list}\n");
    let (on_node, elsewhere) = (allowed("2-3"), allowed("0"));
    let found = depends_on("numa-node", Severity::Note, &[(STATUS, on_node.as_str())]);
    assert_eq!(found.command.as_deref(), Some("taskset -cp 2-3 $$"));
    let IoPathCause::RemoteCpus { placement } = io_path_cause(found) else {
        panic!("another cause");
    };
    assert_eq!((placement.node, placement.node_cpus.as_str()), (1, "2-3"));
    assert_eq!(
        (placement.allowed_on_node, placement.allowed_elsewhere),
        (2, 2)
    );
    let found = finding_after("numa-node", &[(STATUS, elsewhere.as_str())]).unwrap();
    assert_eq!(found.severity, Severity::Warning);
}

#[test]
fn interrupts_on_one_cpu_are_found() {
    let spread = [("/proc/irq/42/effective_affinity_list", "1\n")];
    let found = depends_on("irq-one-cpu", Severity::Warning, &spread);
    let cause = IoPathCause::InterruptsOnOneCpu {
        cpu: 0,
        irqs: vec![41, 42],
        cpus: 4,
    };
    assert_eq!(io_path_cause(found), cause);
}

#[test]
fn small_logical_blocks_are_found_outside_of_virtual_machines() {
    let size = format!("{QUEUE}/logical_block_size");
    let large = [(size.as_str(), "4096\n")];
    depends_on("logical-block-size", Severity::Note, &large);
    let guest = [("/proc/cpuinfo", "flags\t\t: fpu hypervisor sse2\n")];
    assert_eq!(finding_after("logical-block-size", &guest), None);
}

#[test]
fn scheduler_governor_and_write_cache_of_fast_disk_are_found() {
    let none = format!("{QUEUE}/scheduler");
    let none = [(none.as_str(), "[none] mq-deadline kyber\n")];
    depends_on("scheduler", Severity::Note, &none);
    let governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    depends_on(
        "cpu-governor",
        Severity::Note,
        &[(governor, "performance\n")],
    );
    let cache = format!("{QUEUE}/write_cache");
    let cache = [(cache.as_str(), "write through\n")];
    let found = depends_on("write-cache", Severity::Note, &cache);
    let cause = DeviceCause::WriteCache {
        device_kind: DeviceKind::Nvme,
        transport: Some(Transport::Pcie),
    };
    assert_eq!(found.cause, Some(FindingCause::Device(cause)));
}

#[test]
fn namespace_of_a_subsystem_has_the_settings_of_its_controller() {
    let machine = CapturedMachine::unpack("fast-nvme");
    let head = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    let controller = format!("{DISK}/nvme/nvme0");
    machine.write(Path::new(&format!("{head}/nvme0n1/dev")), "259:7\n");
    for (link, target) in [
        (format!("{head}/nvme0n1/device"), head),
        (format!("{head}/nvme0"), controller.as_str()),
    ] {
        machine.link(Path::new(&link), Path::new(target));
    }
    let number = Path::new("/sys/dev/block/259:7");
    machine.link(number, Path::new(&format!("{head}/nvme0n1")));
    let root = "28 1 259:7 / / rw,relatime - ext4 /dev/nvme0n1 rw\n";
    machine.write(Path::new("/proc/self/mountinfo"), root);
    let ids: Vec<String> = findings(&machine, "259:7")
        .into_iter()
        .map(|finding| finding.id)
        .collect();
    for id in ["iommu-strict", "irq-one-cpu", "link-power-saving"] {
        assert!(ids.iter().any(|found| found == id), "{id}: {ids:?}");
    }
}

/// A virtual disk on the same machine hides all these costs.
#[test]
fn slow_devices_get_no_io_path_findings() {
    let machine = CapturedMachine::unpack("fast-nvme");
    let disk = "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda";
    machine.write(Path::new(&format!("{disk}/dev")), "254:0\n");
    machine.write(Path::new(&format!("{disk}/queue/nomerges")), "0\n");
    machine.write(Path::new(&format!("{disk}/queue/io_poll")), "0\n");
    let number = Path::new("/sys/dev/block/254:0");
    machine.link(number, Path::new(disk));
    let root = "28 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
    machine.write(Path::new("/proc/self/mountinfo"), root);
    let found = findings(&machine, "254:0");
    let is_io_path = |finding: &Finding| matches!(finding.cause, Some(FindingCause::IoPath(_)));
    assert!(!found.iter().any(is_io_path), "{found:?}");
}
