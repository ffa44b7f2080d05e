//! Tests that each rule reports its finding, and reports nothing if the facts are unknown.

use super::findings;
use crate::doctor::{
    Access, ArrayState, DeviceConditions, Examination, ExaminedTarget, Finding, Holder, Leftover,
    MadeBy, Maintenance, Severity, Traffic,
};
use crate::host::{
    DeviceInfo, DeviceKind, DeviceNumber, IoLimit, Locality, Mount, PcieLink, Queue, Space,
    TargetInfo, TargetKind, Transport,
};

fn only(examined: &Examination) -> Vec<(String, Severity)> {
    let each = findings(examined).into_iter();
    each.map(|finding| (finding.id, finding.severity)).collect()
}

/// Asserts that the changed empty examination has exactly this finding.
#[track_caller]
fn finds(id: &str, severity: Severity, change: impl FnOnce(&mut Examination)) -> Finding {
    let mut examined = Examination::default();
    change(&mut examined);
    assert_eq!(only(&examined), [(id.to_owned(), severity)]);
    findings(&examined).remove(0)
}

#[track_caller]
fn finds_nothing(change: impl FnOnce(&mut Examination)) {
    let mut examined = Examination::default();
    change(&mut examined);
    assert_eq!(only(&examined), []);
}

/// Adds a target on one device.
fn on_device(examined: &mut Examination, change: impl FnOnce(&mut DeviceInfo)) {
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
fn with_target(examined: &mut Examination, change: impl FnOnce(&mut TargetInfo, &mut Access)) {
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
fn where_nothing_is_known_nothing_is_found() {
    finds_nothing(|_| {});
    finds_nothing(|examined| examined.targets.push(ExaminedTarget::default()));
}

#[test]
fn processors_that_are_slow_or_taken() {
    let slow = finds("cpu-governor", Warning, |examined| {
        examined.host.cpu.governor = Some("powersave".into())
    });
    assert!(slow.command.unwrap().contains("scaling_governor"));
    finds("cpu-governor", Note, |examined| {
        examined.host.cpu.governor = Some("schedutil".into())
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
fn memory_that_is_short() {
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
fn kernels_that_lack_something() {
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
    assert_eq!(
        disabled.command.as_deref(),
        Some("sudo sysctl -w kernel.io_uring_disabled=0")
    );
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
fn a_slow_clock_and_the_better_one() {
    let slow = finds("slow-clock", Warning, |examined| {
        examined.host.clock_source = Some("hpet".into());
        examined.conditions.clock_sources = vec!["tsc".into(), "hpet".into()];
    });
    assert!(slow.command.unwrap().starts_with("echo tsc |"));
    let without = finds("slow-clock", Warning, |examined| {
        examined.host.clock_source = Some("acpi_pm".into());
    });
    assert_eq!(without.command, None);
    finds_nothing(|examined| examined.host.clock_source = Some("kvm-clock".into()));
}

#[test]
fn walls_around_this_process() {
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
    assert!(
        bound.evidence.contains("/noisy") && bound.evidence.ends_with(": 500 reads/s"),
        "{bound:?}"
    );
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
    assert_eq!(
        nested.evidence,
        "control group /a/b and /a bounds I/O to 8:0: 1000 reads/s, 300 writes/s; 8:16: 70 reads/s"
    );
    finds("maintenance", Warning, |examined| {
        examined.conditions.maintenance.push(Maintenance::default());
    });
}

#[test]
fn targets_that_cannot_be_used() {
    let refused = Some("Permission denied (EACCES)".to_owned());
    let error = refused.clone();
    let device = finds("unreadable", Problem, |examined| {
        with_target(examined, |info, access| {
            info.kind = TargetKind::BlockDevice;
            access.read_error = error;
        });
    });
    assert!(device.remedy.contains("root"), "{device:?}");
    let error = refused.clone();
    finds("unwritable", Problem, |examined| {
        with_target(examined, |info, access| {
            info.kind = TargetKind::Directory;
            access.write_error = error;
        });
    });
    let mounted = finds("read-only", Problem, |examined| {
        with_mount(examined, "ext4", Locality::Block, &["ro"]);
        examined.targets[0].info.kind = TargetKind::Directory;
        examined.targets[0].access.write_error = refused;
    });
    assert_eq!(
        mounted.command.as_deref(),
        Some("sudo mount -o remount,rw /mnt")
    );
    finds("read-only", Problem, |examined| {
        on_device(examined, |device| device.read_only = true);
        examined.targets[0].info.kind = TargetKind::BlockDevice;
    });
    let in_use = finds("in-use", Note, |examined| {
        with_target(examined, |_, access| {
            access.obstacles.push("it is mounted".into());
            access.remedy = Some("umount /mnt".into());
        });
    });
    assert_eq!(in_use.remedy, "umount /mnt");
    finds("no-direct-io", Warning, |examined| {
        with_target(examined, |_, access| access.direct = Some(false));
    });
}

#[test]
fn file_systems_that_answer_for_the_device() {
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
    let space = |available: u64| {
        move |examined: &mut Examination| {
            with_target(examined, |info, _| {
                info.space = Some(Space {
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
                info.kind = TargetKind::Directory;
                info.space = Some(Space {
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
fn devices_that_are_not_what_they_seem() {
    let device =
        |change: fn(&mut DeviceInfo)| move |examined: &mut Examination| on_device(examined, change);
    let queue = |change: fn(&mut Queue)| {
        move |examined: &mut Examination| {
            on_device(examined, |device| {
                device.kind = DeviceKind::Nvme;
                change(device.queue.as_mut().unwrap());
            });
        }
    };
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
    finds_nothing(device(|device| {
        device.queue.as_mut().unwrap().scheduler = Some("mq-deadline".into())
    }));
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
fn of_a_stack_the_lowest_device_has_the_write_cache() {
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
fn root_that_is_kept_from_a_device_is_not_told_to_become_root() {
    let refused = |error: &'static str| {
        finds("unreadable", Problem, |examined| {
            with_target(examined, |info, access| {
                info.kind = TargetKind::BlockDevice;
                access.read_error = Some(error.to_owned());
            });
        })
    };
    assert!(
        refused("Permission denied (EACCES)")
            .remedy
            .contains("as root")
    );
    let kept = refused("Operation not permitted (EPERM)").remedy;
    assert!(
        kept.contains("control group") && !kept.contains("as root"),
        "{kept}"
    );
}

#[test]
fn a_write_cache_is_switched_off_by_the_devices_own_tool() {
    let command = |kind, transport| {
        finds("write-cache", Note, |examined| {
            on_device(examined, |device| {
                (device.kind, device.transport) = (kind, transport);
                device.queue.as_mut().unwrap().volatile_write_cache = Some(true);
            });
        })
        .command
        .unwrap_or_default()
    };
    assert!(command(DeviceKind::Ata, Some(Transport::Sata)).contains("hdparm -W0 /dev/sdx"));
    assert!(command(DeviceKind::Nvme, Some(Transport::Pcie)).contains("nvme set-feature"));
    assert!(command(DeviceKind::Scsi, Some(Transport::Sas)).contains("sdparm"));
    assert_eq!(command(DeviceKind::Virtio, Some(Transport::Virtio)), "");
}

#[test]
fn what_goes_on_at_a_device() {
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
    assert!(
        sync.evidence
            .ends_with("is being checked (check), 12.6 % done")
    );
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
                seen.traffic = Some(Traffic {
                    read_iops,
                    ..Traffic::default()
                })
            });
        }
    };
    finds("other-io", Warning, reads(50.0));
    let hum = finds("other-io", Note, reads(10.0));
    let told = "on it: 10 reads/s (0.00 B/s), busy 0 %";
    assert!(hum.evidence.contains(told), "{hum:?}");
    assert!(hum.effect.contains("it is little"), "{hum:?}");
    finds_nothing(reads(9.0));
}

#[test]
fn what_runs_have_left_and_runs_that_go_on() {
    let made = |holder, made_by| {
        move |examined: &mut Examination| {
            examined.leftovers.push(Leftover {
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
        let elsewhere = finds("leftover", Note, made(Holder::Nobody, made_by));
        assert!(
            elsewhere.evidence.contains("changed 2 h ago"),
            "{elsewhere:?}"
        );
        let command = elsewhere.command.as_deref();
        assert_eq!(command, Some("iosonde doctor --clean /data"));
    }
    let dead = finds("leftover", Note, left(Holder::Nobody));
    assert!(dead.evidence.contains("1 GiB"), "{dead:?}");
    finds("another-run", Warning, left(Holder::Process));
    let unknown = finds("leftover", Note, left(Holder::Unknown));
    assert!(unknown.evidence.contains("cannot be told"), "{unknown:?}");
}

#[test]
fn the_worst_comes_first_and_nothing_twice() {
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
fn the_docs_list_every_finding() {
    let docs = include_str!("../../../../docs/doctor.md");
    let tests: String = include_str!("tests.rs").split_whitespace().collect();
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
