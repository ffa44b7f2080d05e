//! Tests that each rule reports its finding, and reports nothing if the facts are unknown.

use super::findings;
use crate::doctor::{
    ArrayState, DeviceCause, DeviceConditions, DeviceIoLimits, DeviceTraffic, Examination,
    ExaminedLeftover, ExaminedTarget, Finding, FindingCause, IoUringRefusal, LeftoverCause,
    LeftoverUser, MachineCause, MadeBy, Maintenance, Severity, TargetAccess, TargetCause,
};
use crate::host::{
    DeviceInfo, DeviceKind, DeviceNumber, FileSystemUsage, IoLimit, Locality, Mount, PathKind,
    PcieLink, Queue, TargetInfo,
};

fn only(examined: &Examination) -> Vec<(String, Severity)> {
    let each = findings(examined).into_iter();
    each.map(|finding| (finding.id, finding.severity)).collect()
}

/// Asserts that the changed empty examination has exactly this finding.
#[track_caller]
pub(super) fn finds(
    id: &str,
    severity: Severity,
    change: impl FnOnce(&mut Examination),
) -> Finding {
    let mut examined = Examination::default();
    change(&mut examined);
    assert_eq!(only(&examined), [(id.to_owned(), severity)]);
    findings(&examined).remove(0)
}

#[track_caller]
pub(super) fn finds_nothing(change: impl FnOnce(&mut Examination)) {
    let mut examined = Examination::default();
    change(&mut examined);
    assert_eq!(only(&examined), []);
}

/// Adds a target on one device.
pub(super) fn on_device(examined: &mut Examination, change: impl FnOnce(&mut DeviceInfo)) {
    let mut device = DeviceInfo {
        name: "sdx".into(),
        queue: Some(Queue::default()),
        ..DeviceInfo::default()
    };
    change(&mut device);
    let mut target = ExaminedTarget::default();
    target.info.devices.push(device);
    examined.targets.push(target);
}

/// Adds a target on one device, with activity of that device.
fn at_device(examined: &mut Examination, change: impl FnOnce(&mut DeviceConditions)) {
    on_device(examined, |_| {});
    let mut seen = DeviceConditions::default();
    change(&mut seen);
    examined.conditions.devices.push(seen);
    examined.conditions.watched_ns = 1_000_000_000;
}

/// Adds a target.
fn with_target(
    examined: &mut Examination,
    change: impl FnOnce(&mut TargetInfo, &mut TargetAccess),
) {
    let mut target = ExaminedTarget {
        name: "x".into(),
        ..ExaminedTarget::default()
    };
    change(&mut target.info, &mut target.access);
    examined.targets.push(target);
}

/// Adds a target on a mounted file system.
fn with_mount(examined: &mut Examination, fs_type: &str, locality: Locality, options: &[&str]) {
    with_target(examined, |info, _| {
        info.mount = Some(Mount {
            fs_type: fs_type.into(),
            mount_point: "/mnt".into(),
            locality,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            ..Mount::default()
        });
    });
}

use Severity::{Note, Problem, Warning};

#[test]
fn unknown_conditions_give_no_findings() {
    finds_nothing(|_| {});
    finds_nothing(|examined| examined.targets.push(ExaminedTarget::default()));
}

#[test]
fn slow_or_busy_processors_give_findings() {
    finds("cpu-governor", Warning, |examined| {
        examined.host.cpu.governor = Some("powersave".into())
    });
    finds("cpu-governor", Note, |examined| {
        examined.host.cpu.governor = Some("schedutil".into())
    });
    finds("cpu-governor", Warning, |examined| {
        examined.host.cpu.governor = Some("performance, powersave".into())
    });
    finds_nothing(|examined| examined.host.cpu.governor = Some("performance".into()));
    finds("on-battery", Warning, |examined| {
        examined.conditions.on_battery = Some(true)
    });
    finds_nothing(|examined| examined.conditions.on_battery = Some(false));
    finds("cpu-busy", Warning, |examined| {
        examined.conditions.cpu_busy_percent = Some(50.0)
    });
    finds_nothing(|examined| examined.conditions.cpu_busy_percent = Some(49.0));
    finds("cpu-steal", Warning, |examined| {
        examined.conditions.cpu_steal_percent = Some(2.0)
    });
    finds_nothing(|examined| examined.conditions.cpu_steal_percent = Some(1.9));
}

#[test]
fn low_memory_gives_findings() {
    let with = |available: u64| {
        move |examined: &mut Examination| {
            examined.host.memory_bytes = Some(16 << 30);
            examined.host.memory_available_bytes = Some(available);
        }
    };
    finds("memory-low", Warning, with(700 << 20));
    finds_nothing(with(900 << 20));
    finds("swap-in-use", Note, |examined| {
        examined.host.swap_used_bytes = Some(64 << 20)
    });
    finds_nothing(|examined| examined.host.swap_used_bytes = Some(1 << 20));
    finds("dirty-pages", Warning, |examined| {
        examined.conditions.dirty_bytes = Some(1 << 30)
    });
    finds_nothing(|examined| examined.conditions.dirty_bytes = Some(1 << 20));
    finds("memlock", Note, |examined| {
        examined.conditions.locked_memory_bytes = Some(65536)
    });
    finds("cgroup-memory", Warning, |examined| {
        examined.host.cgroup.memory_high_bytes = Some(1 << 28)
    });
    finds_nothing(|examined| examined.host.cgroup.memory_bytes = Some(4 << 30));
}

#[test]
fn old_kernel_and_missing_io_uring_give_findings() {
    let kernel = |release: &str| {
        let release = Some(release.to_owned());
        move |examined: &mut Examination| examined.host.kernel = release
    };
    finds("old-kernel", Warning, kernel("4.18.0-553.el8.x86_64"));
    finds("old-kernel", Note, kernel("5.15.0-91-generic"));
    finds_nothing(kernel("6.1.0-31-cloud-amd64"));
    finds_nothing(kernel("6.18.44"));
    finds("io-uring", Warning, |examined| {
        examined.conditions.io_uring_error = Some("(EPERM)".into());
    });
    let disabled = finds("io-uring", Warning, |examined| {
        examined.conditions.io_uring_disabled = Some(2);
        examined.conditions.io_uring_error = Some("(EPERM)".into());
    });
    let cause = MachineCause::IoUring {
        error: Some("(EPERM)".to_owned()),
        disabled_level: Some(2),
        container: false,
        refusal: IoUringRefusal::Sysctl,
    };
    assert_eq!(disabled.cause, Some(FindingCause::Machine(cause)));
    // Level 1 applies only to unprivileged processes, and io_uring works here.
    finds_nothing(|examined| examined.conditions.io_uring_disabled = Some(1));
    // The old kernel explains it.
    finds("old-kernel", Warning, |examined| {
        examined.host.kernel = Some("4.19.0".into());
        examined.conditions.io_uring_error = Some("(ENOSYS)".into());
    });
    finds("aio-exhausted", Note, |examined| {
        examined.conditions.aio_in_use = Some(65_000);
        examined.conditions.aio_max = Some(65_536);
    });
}

#[test]
fn slow_clock_finding_names_the_better_clock() {
    let slow = finds("slow-clock", Warning, |examined| {
        examined.host.clock_source = Some("hpet".into());
        examined.conditions.clock_sources = vec!["tsc".into(), "hpet".into()];
    });
    let clock = |clock: &str, better: Option<&str>| {
        Some(FindingCause::Machine(MachineCause::SlowClock {
            clock: clock.to_owned(),
            better: better.map(str::to_owned),
        }))
    };
    assert_eq!(slow.cause, clock("hpet", Some("tsc")));
    let without = finds("slow-clock", Warning, |examined| {
        examined.host.clock_source = Some("acpi_pm".into());
    });
    assert_eq!(without.cause, clock("acpi_pm", None));
    finds_nothing(|examined| examined.host.clock_source = Some("kvm-clock".into()));
}

#[test]
fn cgroup_limits_container_and_vm_give_findings() {
    let quota = |quota: f64| {
        move |examined: &mut Examination| {
            examined.host.cpu.online = Some(4);
            examined.host.cgroup.cpu_quota = Some(quota);
        }
    };
    finds("cgroup-cpu", Warning, quota(0.5));
    finds("cgroup-cpu", Note, quota(2.0));
    finds_nothing(quota(4.0));
    finds("container", Note, |examined| {
        examined.host.platform.container = true
    });
    finds("virtual-machine", Note, |examined| {
        examined.host.platform.virtual_machine = Some(true)
    });
    let bound = finds("cgroup-io", Warning, |examined| {
        let limit = IoLimit {
            cgroup: "/noisy".into(),
            read_iops: Some(500),
            ..IoLimit::default()
        };
        with_target(examined, |info, _| info.limits.push(limit));
    });
    let limits = |device: &str, read_iops, write_iops| DeviceIoLimits {
        device: device.to_owned(),
        read_iops,
        write_iops,
        read_bytes_per_s: None,
        write_bytes_per_s: None,
    };
    let noisy = TargetCause::CgroupIo {
        cgroups: vec!["/noisy".to_owned()],
        limits: vec![limits("0:0", Some(500), None)],
    };
    assert_eq!(bound.cause, Some(FindingCause::Target(noisy)));
    // A group is also subject to the limits of its parents. The strictest limit counts, for each
    // device separately.
    let nested = finds("cgroup-io", Warning, |examined| {
        let of = |cgroup: &str, minor, read_iops, write_iops| IoLimit {
            device: DeviceNumber { major: 8, minor },
            cgroup: cgroup.into(),
            read_iops,
            write_iops,
            ..IoLimit::default()
        };
        with_target(examined, |info, _| {
            info.limits = vec![
                of("/a/b", 0, Some(5_000), None),
                of("/a", 0, Some(1_000), Some(300)),
                of("/a", 16, Some(70), None),
            ];
        });
    });
    let cause = TargetCause::CgroupIo {
        cgroups: vec!["/a/b".to_owned(), "/a".to_owned()],
        limits: vec![
            limits("8:0", Some(1000), Some(300)),
            limits("8:16", Some(70), None),
        ],
    };
    assert_eq!(nested.cause, Some(FindingCause::Target(cause)));
    finds("maintenance", Warning, |examined| {
        examined.conditions.maintenance.push(Maintenance::default());
    });
}

#[test]
fn unusable_targets_give_problems() {
    let refused = Some("Permission denied (EACCES)".to_owned());
    let error = refused.clone();
    finds("unreadable", Problem, |examined| {
        with_target(examined, |info, access| {
            info.kind = PathKind::BlockDevice;
            access.read_error = error;
        });
    });
    let denied = finds("unreadable", Problem, |examined| {
        with_target(examined, |info, access| {
            info.kind = PathKind::BlockDevice;
            access.read_error = Some("Operation not permitted (EPERM)".to_owned());
            access.read_errno = Some(iosonde_job::errno::EPERM);
        });
    });
    assert!(matches!(
        denied.cause,
        Some(FindingCause::Target(TargetCause::Unreadable {
            errno: Some(iosonde_job::errno::EPERM),
            path_kind: PathKind::BlockDevice,
            ..
        }))
    ));
    let error = refused.clone();
    finds("unwritable", Problem, |examined| {
        with_target(examined, |info, access| {
            info.kind = PathKind::Directory;
            access.write_error = error;
        });
    });
    let mounted = finds("read-only", Problem, |examined| {
        with_mount(examined, "ext4", Locality::Block, &["ro"]);
        examined.targets[0].info.kind = PathKind::Directory;
        examined.targets[0].access.write_error = refused;
    });
    assert!(matches!(
        &mounted.cause,
        Some(FindingCause::Target(TargetCause::Unwritable {
            path_kind: PathKind::Directory,
            read_only_mount: Some(mount_point),
            ..
        })) if mount_point == "/mnt"
    ));
    finds("read-only", Problem, |examined| {
        on_device(examined, |device| device.read_only = true);
        examined.targets[0].info.kind = PathKind::BlockDevice;
    });
    let in_use = finds("in-use", Note, |examined| {
        with_target(examined, |_, access| {
            access.obstacles.push("it is mounted".into());
            access.remedy = Some("umount /mnt".into());
        });
    });
    let cause = TargetCause::InUse {
        obstacles: vec!["it is mounted".to_owned()],
        action: Some("umount /mnt".to_owned()),
    };
    assert_eq!(in_use.cause, Some(FindingCause::Target(cause)));
    finds("no-direct-io", Warning, |examined| {
        with_target(examined, |_, access| access.direct = Some(false));
    });
}

#[test]
fn file_system_kinds_and_options_give_findings() {
    let mounted = |fs_type: &'static str, locality, options: &'static [&'static str]| {
        move |examined: &mut Examination| with_mount(examined, fs_type, locality, options)
    };
    finds(
        "pseudo-file-system",
        Problem,
        mounted("proc", Locality::Pseudo, &["rw"]),
    );
    finds(
        "memory-file-system",
        Warning,
        mounted("tmpfs", Locality::Memory, &["rw"]),
    );
    finds(
        "network-file-system",
        Note,
        mounted("nfs4", Locality::Remote, &["rw"]),
    );
    finds(
        "user-space-file-system",
        Note,
        mounted("fuse.x", Locality::UserSpace, &["rw"]),
    );
    finds(
        "overlay",
        Note,
        mounted("overlay", Locality::Stacked, &["rw"]),
    );
    finds(
        "sync-mount",
        Warning,
        mounted("ext4", Locality::Block, &["rw", "sync"]),
    );
    finds(
        "compression",
        Note,
        mounted("btrfs", Locality::Block, &["compress=zstd:3"]),
    );
    finds_nothing(mounted("btrfs", Locality::Block, &["rw", "compress=no"]));
    finds(
        "online-discard",
        Note,
        mounted("ext4", Locality::Block, &["discard"]),
    );
    finds_nothing(mounted("ext4", Locality::Block, &["rw", "relatime"]));
}

#[test]
fn full_file_systems_and_sparse_files_give_findings() {
    let space = |available: u64| {
        move |examined: &mut Examination| {
            with_target(examined, |info, _| {
                info.space = Some(FileSystemUsage {
                    total_bytes: 1000 << 20,
                    used_bytes: None,
                    available_bytes: Some(available << 20),
                });
            });
        }
    };
    finds("nearly-full", Warning, space(99));
    // Studies refuse less than 16 MiB of free space. A file system with little space is also nearly
    // full.
    let room = |free_bytes: u64| {
        move |examined: &mut Examination| {
            with_target(examined, |info, _| {
                info.kind = PathKind::Directory;
                info.space = Some(FileSystemUsage {
                    total_bytes: 20 << 20,
                    used_bytes: None,
                    available_bytes: Some(free_bytes),
                });
            });
        }
    };
    finds("no-room", Problem, room((16 << 20) - 1));
    finds_nothing(room(16 << 20));
    finds_nothing(space(100));
    let file = |allocated: u64, locality: Locality| {
        move |examined: &mut Examination| {
            with_mount(examined, "some", locality, &[]);
            let info = &mut examined.targets[0].info;
            (info.size_bytes, info.allocated_bytes) = (Some(1 << 30), Some(allocated));
        }
    };
    finds("sparse-file", Warning, file(1 << 29, Locality::Block));
    finds_nothing(file(1 << 30, Locality::Block));
    // A server that does not count blocks gives no information on holes.
    finds("user-space-file-system", Note, file(0, Locality::UserSpace));
}

#[test]
fn device_kinds_give_findings() {
    let device =
        |change: fn(&mut DeviceInfo)| move |examined: &mut Examination| on_device(examined, change);
    finds(
        "memory-device",
        Warning,
        device(|device| device.kind = DeviceKind::Zram),
    );
    finds(
        "encrypted",
        Note,
        device(|device| device.kind = DeviceKind::Crypt),
    );
    finds("thin", Note, device(|device| device.thin = Some(true)));
    finds_nothing(device(|device| device.thin = Some(false)));
    finds(
        "buffered-loop",
        Warning,
        device(|device| (device.kind, device.direct_io) = (DeviceKind::Loop, Some(false))),
    );
    finds_nothing(device(|device| {
        (device.kind, device.direct_io) = (DeviceKind::Loop, Some(true))
    }));
}

#[test]
fn queue_settings_and_links_give_findings() {
    let queue = |change: fn(&mut Queue)| {
        move |examined: &mut Examination| {
            on_device(examined, |device| {
                device.kind = DeviceKind::Nvme;
                change(device.queue.as_mut().unwrap());
            });
        }
    };
    finds(
        "scheduler",
        Warning,
        queue(|queue| queue.scheduler = Some("bfq".into())),
    );
    finds(
        "scheduler",
        Note,
        queue(|queue| queue.scheduler = Some("mq-deadline".into())),
    );
    finds_nothing(queue(|queue| queue.scheduler = Some("none".into())));
    finds_nothing(|examined: &mut Examination| {
        on_device(examined, |device| {
            device.queue.as_mut().unwrap().scheduler = Some("mq-deadline".into());
        });
    });
    finds(
        "write-cache",
        Note,
        queue(|queue| queue.volatile_write_cache = Some(true)),
    );
    finds_nothing(queue(|queue| queue.volatile_write_cache = Some(false)));
    finds(
        "queue-depth-one",
        Warning,
        queue(|queue| queue.device_queue_depth = Some(1)),
    );
    finds(
        "statistics-off",
        Note,
        queue(|queue| queue.statistics = Some(false)),
    );
    let link = |width: u32| {
        move |examined: &mut Examination| {
            on_device(examined, |device| {
                device.link = Some(PcieLink {
                    speed: "16.0 GT/s PCIe".into(),
                    width,
                    max_speed: Some("16.0 GT/s PCIe".into()),
                    max_width: Some(4),
                });
            });
        }
    };
    finds("pcie-link", Warning, link(2));
    finds_nothing(link(4));
}

#[test]
fn write_cache_finding_names_the_lowest_device() {
    let cached = |name: &str, minor: u32| DeviceInfo {
        name: name.into(),
        number: DeviceNumber { major: 8, minor },
        queue: Some(Queue {
            volatile_write_cache: Some(true),
            ..Queue::default()
        }),
        ..DeviceInfo::default()
    };
    let found = finds("write-cache", Note, |examined| {
        on_device(examined, |device| {
            *device = cached("dm-0", 0);
            device.below.push(cached("sdx", 1));
        });
    });
    assert_eq!(found.subject, "sdx");
}

#[test]
fn device_state_heat_and_traffic_give_findings() {
    let array = |action: &str, missing_members| {
        let action = action.to_owned();
        move |examined: &mut Examination| {
            at_device(examined, |seen| {
                seen.array = Some(ArrayState {
                    action,
                    progress_percent: Some(12.6),
                    missing_members,
                });
            });
        }
    };
    let sync = finds("array-sync", Warning, array("check", 0));
    let check = DeviceCause::ArraySync {
        action: "check".to_owned(),
        progress_percent: Some(12.6),
    };
    assert_eq!(sync.cause, Some(FindingCause::Device(check)));
    finds("array-degraded", Warning, array("idle", 1));
    finds_nothing(array("idle", 0));
    finds("device-down", Problem, |examined| {
        at_device(examined, |seen| seen.state = Some("offline".into()))
    });
    finds_nothing(|examined| at_device(examined, |seen| seen.state = Some("running".into())));
    let degrees = |celsius: f64| {
        move |examined: &mut Examination| {
            at_device(examined, |seen| {
                (seen.celsius, seen.celsius_limit) = (Some(celsius), Some(80.0))
            });
        }
    };
    finds("hot", Warning, degrees(75.0));
    finds_nothing(degrees(60.0));
    let reads = |read_iops: f64| {
        move |examined: &mut Examination| {
            at_device(examined, |seen| {
                seen.traffic = Some(DeviceTraffic {
                    read_iops,
                    ..DeviceTraffic::default()
                })
            });
        }
    };
    finds("other-io", Warning, reads(50.0));
    let hum = finds("other-io", Note, reads(10.0));
    assert!(matches!(
        hum.cause,
        Some(FindingCause::Device(DeviceCause::OtherIo {
            read_iops: 10.0,
            disturbs: false,
            ..
        }))
    ));
    finds_nothing(reads(9.0));
}

#[test]
fn leftovers_and_other_runs_give_findings() {
    let made = |holder, made_by| {
        move |examined: &mut Examination| {
            examined.leftovers.push(ExaminedLeftover {
                path: "/data/.iosonde-probe-7-0".into(),
                bytes: 1 << 30,
                holder,
                made_by,
                age_s: Some(7200),
            });
        }
    };
    let left = |holder| made(holder, MadeBy::ThisBoot);
    for made_by in [MadeBy::AnotherBoot, MadeBy::Unknown] {
        let elsewhere = finds("leftover", Note, made(LeftoverUser::NoProcess, made_by));
        let cause = LeftoverCause::AnotherHost {
            bytes: 1 << 30,
            age_s: Some(7200),
            is_boot_known: made_by == MadeBy::AnotherBoot,
            directory: "/data".to_owned(),
        };
        assert_eq!(elsewhere.cause, Some(FindingCause::Leftover(cause)));
    }
    let dead = finds("leftover", Note, left(LeftoverUser::NoProcess));
    let killed = LeftoverCause::KilledRun {
        bytes: 1 << 30,
        age_s: Some(7200),
    };
    assert_eq!(dead.cause, Some(FindingCause::Leftover(killed)));
    finds("another-run", Warning, left(LeftoverUser::Process));
    let unknown = finds("leftover", Note, left(LeftoverUser::Unknown));
    assert!(matches!(
        unknown.cause,
        Some(FindingCause::Leftover(LeftoverCause::UnknownUse { .. }))
    ));
}

#[test]
fn findings_are_sorted_by_severity_without_duplicates() {
    let mut examined = Examination::default();
    examined.host.platform.container = true;
    examined.conditions.on_battery = Some(true);
    for _ in 0..2 {
        at_device(&mut examined, |seen| seen.state = Some("offline".into()));
    }
    let ids: Vec<String> = only(&examined).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["device-down", "on-battery", "container"]);
}

/// Checks both directions: documented findings are tested, and tested findings are documented.
#[test]
fn findings_of_docs_and_tests_are_equal() {
    let docs = include_str!("../../../../docs/doctor.md");
    let tests = [include_str!("tests.rs"), include_str!("io_path_tests.rs")].concat();
    let tests: String = tests.split_whitespace().collect();
    let is_id =
        |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let mut found: Vec<&str> = tests
        .split("finds(\"")
        .filter_map(|rest| rest.split('"').next())
        .filter(is_id)
        .collect();
    let mut documented: Vec<&str> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    for ids in [&mut found, &mut documented] {
        ids.sort_unstable();
        ids.dedup();
    }
    assert_eq!(found, documented);
}
