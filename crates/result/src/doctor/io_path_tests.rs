//! Tests that each rule about the path of an I/O reports its finding for fast devices only.

use super::tests::{finds, finds_nothing, on_device};
use crate::doctor::Severity::{Note, Warning};
use crate::doctor::{
    DeviceConditions, DeviceIoPath, Examination, FindingCause, IdleState, InterruptAffinity,
    IoUringRefusal, IommuGroup, MachineCause, NumaPlacement,
};
use crate::host::{DeviceInfo, DeviceKind, PcieLink, Queue, Transport};

/// Adds a target on one NVMe disk.
fn on_disk(examined: &mut Examination, change: impl FnOnce(&mut DeviceInfo)) {
    on_device(examined, |device| {
        device.name = "nvme0n1".to_owned();
        device.kind = DeviceKind::Nvme;
        device.transport = Some(Transport::Pcie);
        change(device);
    });
}

/// Adds a target on one NVMe disk with these settings.
fn with_settings(examined: &mut Examination, change: impl FnOnce(&mut DeviceIoPath)) {
    on_disk(examined, |_| {});
    let mut seen = DeviceConditions::default();
    change(&mut seen.io_path);
    examined.conditions.devices.push(seen);
}

fn idle_states(examined: &mut Examination, exit_latency_us: u64) {
    examined.conditions.io_path.idle_states = vec![IdleState {
        number: 1,
        name: "C6".to_owned(),
        exit_latency_us,
    }];
}

#[test]
fn deep_idle_states_matter_to_nvme_disks() {
    finds("deep-idle", Note, |examined| {
        on_disk(examined, |_| {});
        idle_states(examined, 20);
    });
    finds_nothing(|examined| {
        on_disk(examined, |_| {});
        idle_states(examined, 19);
    });
    finds_nothing(|examined| {
        on_device(examined, |_| {});
        idle_states(examined, 20);
    });
}

#[test]
fn poll_queues_are_missed_on_local_nvme_disks() {
    let disk = |polling, poll_queues, transport| {
        move |examined: &mut Examination| {
            on_disk(examined, |device| {
                device.transport = Some(transport);
                device.queue = Some(Queue {
                    polling: Some(polling),
                    ..Queue::default()
                });
            });
            examined.conditions.io_path.nvme_poll_queues = Some(poll_queues);
        }
    };
    finds("no-poll-queues", Note, disk(false, 0, Transport::Pcie));
    finds_nothing(disk(true, 0, Transport::Pcie));
    finds_nothing(disk(false, 4, Transport::Pcie));
    finds_nothing(disk(false, 0, Transport::NvmeTcp));
}

#[test]
fn small_logical_blocks_give_a_finding_on_hardware() {
    let disk = |logical, physical, is_virtual| {
        move |examined: &mut Examination| {
            on_disk(examined, |device| {
                device.queue = Some(Queue {
                    logical_block_bytes: Some(logical),
                    physical_block_bytes: Some(physical),
                    ..Queue::default()
                });
            });
            examined.host.platform.virtual_machine = Some(is_virtual);
        }
    };
    finds("logical-block-size", Note, disk(512, 4096, false));
    finds_nothing(disk(4096, 4096, false));
    finds_nothing(disk(512, 512, false));
    finds("virtual-machine", Note, disk(512, 4096, true));
}

#[test]
fn strict_iommu_gives_a_finding() {
    let group = |strict| {
        move |examined: &mut Examination| {
            with_settings(examined, |path| {
                path.iommu = Some(IommuGroup {
                    strict,
                    ..IommuGroup::default()
                });
            });
        }
    };
    finds("iommu-strict", Note, group(true));
    finds_nothing(group(false));
}

#[test]
fn queue_overhead_is_reported_on_fast_links() {
    let disk = |speed: &'static str, nomerges, rq_affinity| {
        move |examined: &mut Examination| {
            with_settings(examined, |path| {
                path.nomerges = Some(nomerges);
                path.rq_affinity = Some(rq_affinity);
            });
            examined.targets[0].info.devices[0].link = Some(PcieLink {
                speed: speed.to_owned(),
                width: 4,
                max_speed: None,
                max_width: None,
            });
        }
    };
    finds("queue-overhead", Note, disk("16.0 GT/s PCIe", 0, 1));
    finds("queue-overhead", Note, disk("32.0 GT/s PCIe", 2, 2));
    finds_nothing(disk("16.0 GT/s PCIe", 2, 1));
    finds_nothing(disk("8.0 GT/s PCIe", 0, 2));
}

#[test]
fn sleeping_link_is_a_warning_if_the_policy_saves_power() {
    let link = |policy: &'static str, states: Option<&'static str>| {
        move |examined: &mut Examination| {
            with_settings(examined, |path| {
                let listed = |list: &str| list.split_terminator(' ').map(str::to_owned).collect();
                path.link_sleep_states = states.map(listed);
            });
            examined.conditions.io_path.aspm_policy = Some(policy.to_owned());
        }
    };
    finds("link-power-saving", Note, link("default", Some("L1 L1.2")));
    finds("link-power-saving", Warning, link("powersave", Some("L1")));
    finds("link-power-saving", Warning, link("powersupersave", None));
    finds_nothing(link("powersave", Some("")));
    finds_nothing(link("default", None));
}

#[test]
fn cpus_of_other_nodes_give_a_finding() {
    let allowed = |allowed_on_node, allowed_elsewhere| {
        move |examined: &mut Examination| {
            with_settings(examined, |path| {
                path.numa = Some(NumaPlacement {
                    node: 1,
                    node_cpus: "4-7".to_owned(),
                    allowed_on_node,
                    allowed_elsewhere,
                });
            });
        }
    };
    finds("numa-node", Warning, allowed(0, 4));
    finds("numa-node", Note, allowed(4, 4));
    finds_nothing(allowed(4, 0));
}

#[test]
fn interrupts_on_one_cpu_give_a_finding() {
    let handled = |lists: &'static [&'static str]| {
        move |examined: &mut Examination| {
            with_settings(examined, |path| {
                let interrupts = (41..).zip(lists).map(|(irq, cpus)| InterruptAffinity {
                    irq,
                    cpus: (*cpus).to_owned(),
                });
                path.interrupts = interrupts.collect();
            });
            examined.host.cpu.online = Some(8);
        }
    };
    finds("irq-one-cpu", Warning, handled(&["3", "3"]));
    finds("irq-one-cpu", Note, handled(&["3"]));
    finds_nothing(handled(&["3", "4"]));
    finds_nothing(handled(&["0-7", "0-7"]));
    finds_nothing(handled(&[]));
    finds_nothing(|examined| {
        handled(&["0", "0"])(examined);
        examined.host.cpu.online = Some(1);
    });
}

/// The refusal of io_uring with this errno, seccomp mode and `kernel.io_uring_disabled`.
fn io_uring_refusal(errno: i32, seccomp_mode: u32, disabled: Option<u32>) -> IoUringRefusal {
    let found = finds("io-uring", Warning, |examined| {
        examined.host.kernel = Some("6.8.0".to_owned());
        examined.conditions.io_uring_error = Some("refused".to_owned());
        examined.conditions.io_uring_errno = Some(errno);
        examined.conditions.io_uring_disabled = disabled;
        examined.conditions.io_path.seccomp_mode = Some(seccomp_mode);
    });
    match found.cause {
        Some(FindingCause::Machine(MachineCause::IoUring { refusal, .. })) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn io_uring_refusals_have_distinct_origins() {
    use iosonde_job::errno::{EACCES, EMFILE, ENOSYS, EPERM};
    let cases = [
        ((EPERM, 0, Some(2)), IoUringRefusal::Sysctl),
        ((EPERM, 2, Some(1)), IoUringRefusal::Sysctl),
        ((EPERM, 2, Some(0)), IoUringRefusal::SeccompFilter),
        ((ENOSYS, 2, Some(0)), IoUringRefusal::SeccompFilter),
        ((ENOSYS, 2, None), IoUringRefusal::KernelWithout),
        ((ENOSYS, 0, None), IoUringRefusal::KernelWithout),
        ((EPERM, 0, Some(0)), IoUringRefusal::SecurityModule),
        ((EACCES, 2, Some(0)), IoUringRefusal::SecurityModule),
        ((EMFILE, 2, Some(0)), IoUringRefusal::Unknown),
    ];
    for ((errno, mode, disabled), refusal) in cases {
        let found = io_uring_refusal(errno, mode, disabled);
        assert_eq!(found, refusal, "{errno} {mode} {disabled:?}");
    }
}

#[test]
fn seccomp_profile_of_docs_allows_io_uring() {
    let text = include_str!("../../../../docs/seccomp/io-uring.json");
    let profile: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ALLOW");
    let rules = profile["syscalls"].as_array().unwrap();
    let refused = rules.iter().flat_map(|rule| {
        assert_eq!(rule["action"], "SCMP_ACT_ERRNO");
        rule["names"].as_array().unwrap()
    });
    let refused: Vec<&str> = refused.filter_map(serde_json::Value::as_str).collect();
    assert!(refused.contains(&"bpf") && refused.contains(&"mount"));
    assert!(!refused.iter().any(|name| name.starts_with("io_uring")));
}
