//! Examinations of fixed machines, for tests of reports.

use iosonde_result::doctor::{
    ArrayState, DeviceConditions, DeviceTraffic, Examination, ExaminedTarget, IdleState,
    IoPathSettings, MachineConditions, Maintenance, ProcessTraffic, TargetAccess,
};
use iosonde_result::host::{
    CgroupLimits, Cpu, DeviceInfo, DeviceKind, DeviceNumber, FileSystemUsage, Host, IoLimit,
    Locality, Mount, PathKind, PcieLink, Platform, Queue, TargetInfo, Transport,
};

const GIB: u64 = 1 << 30;

fn number(major: u32, minor: u32) -> DeviceNumber {
    DeviceNumber { major, minor }
}

fn examined(
    host: Host,
    conditions: MachineConditions,
    targets: Vec<ExaminedTarget>,
) -> Examination {
    let mut examination = Examination {
        format: 1,
        kind: "doctor".into(),
        program: "iosonde 0.0.0".into(),
        examined_at_ms: 1_795_000_000_000,
        host,
        conditions,
        targets,
        leftovers: Vec::new(),
        findings: Vec::new(),
    };
    examination.findings = iosonde_result::doctor::findings(&examination);
    examination
}

/// A cloud machine without problems.
pub(super) fn server() -> Examination {
    let conditions = MachineConditions {
        watched_ns: 1_000_000_000,
        load_average: Some([0.08, 0.03, 0.01]),
        cpu_busy_percent: Some(0.6),
        cpu_steal_percent: Some(0.0),
        devices: vec![idle_disk()],
        ..MachineConditions::default()
    };
    examined(cloud_host(), conditions, vec![server_directory()])
}

fn cloud_host() -> Host {
    Host {
        hostname: Some("db-1".into()),
        kernel: Some("6.12.9".into()),
        os: Some("Debian GNU/Linux 13 (trixie)".into()),
        architecture: "x86_64".into(),
        cpu: Cpu {
            model: Some("AMD EPYC 9R14".into()),
            online: Some(8),
            ..Cpu::default()
        },
        memory_bytes: Some(32 * GIB),
        memory_available_bytes: Some(30 * GIB),
        swap_bytes: Some(0),
        swap_used_bytes: Some(0),
        clock_source: Some("tsc".into()),
        platform: Platform {
            vendor: Some("Amazon EC2".into()),
            product: Some("m7a.2xlarge".into()),
            virtual_machine: Some(true),
            hypervisor: Some("kvm".into()),
            cloud: Some("aws".into()),
            instance_type: Some("m7a.2xlarge".into()),
            region: Some("eu-west-1".into()),
            zone: Some("eu-west-1b".into()),
            ..Platform::default()
        },
        ..Host::default()
    }
}

fn elastic_block_store() -> DeviceInfo {
    DeviceInfo {
        name: "nvme1n1".into(),
        number: number(259, 1),
        kind: DeviceKind::Nvme,
        size_bytes: 500 * GIB,
        transport: Some(Transport::Pcie),
        driver: Some("nvme".into()),
        model: Some("Amazon Elastic Block Store".into()),
        firmware: Some("2.0".into()),
        queue: Some(Queue {
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            scheduler: Some("none".into()),
            nr_requests: Some(63),
            hardware_queues: Some(8),
            volatile_write_cache: Some(false),
            rotational: Some(false),
            ..Queue::default()
        }),
        ..DeviceInfo::default()
    }
}

/// An XFS file system on the disk of the server.
fn server_directory() -> ExaminedTarget {
    ExaminedTarget {
        name: "/srv".into(),
        info: TargetInfo {
            path: "/srv".into(),
            kind: PathKind::Directory,
            space: Some(FileSystemUsage {
                total_bytes: 490 * GIB,
                used_bytes: Some(90 * GIB),
                available_bytes: Some(400 * GIB),
            }),
            mount: Some(Mount {
                mount_point: "/srv".into(),
                root: "/".into(),
                fs_type: "xfs".into(),
                source: "/dev/nvme1n1".into(),
                options: vec!["rw".into(), "noatime".into()],
                device: number(259, 1),
                locality: Locality::Block,
                service: None,
            }),
            devices: vec![elastic_block_store()],
            ..TargetInfo::default()
        },
        access: TargetAccess {
            direct: Some(true),
            ..TargetAccess::default()
        },
    }
}

fn idle_disk() -> DeviceConditions {
    DeviceConditions {
        name: "nvme1n1".into(),
        number: number(259, 1),
        traffic: Some(DeviceTraffic {
            write_iops: 2.0,
            write_bytes_per_s: 8192.0,
            busy_percent: 0.3,
            ..DeviceTraffic::default()
        }),
        state: Some("live".into()),
        ..DeviceConditions::default()
    }
}

/// A laptop with many problems: a thin volume on an encrypted NVMe disk, and a backup on an array.
pub(super) fn laptop() -> Examination {
    let host = Host {
        hostname: Some("traveller".into()),
        kernel: Some("5.15.0-91-generic".into()),
        os: Some("Ubuntu 22.04.3 LTS".into()),
        os_id: None,
        os_version: None,
        architecture: "x86_64".into(),
        cpu: Cpu {
            model: Some("13th Gen Intel(R) Core(TM) i7-1365U".into()),
            online: Some(12),
            governor: Some("powersave".into()),
            frequency_driver: Some("intel_pstate".into()),
        },
        memory_bytes: Some(16 * GIB),
        memory_available_bytes: Some(GIB / 2),
        swap_bytes: Some(8 * GIB),
        swap_used_bytes: Some(2 * GIB),
        clock_source: Some("hpet".into()),
        platform: Platform {
            vendor: Some("LENOVO".into()),
            product: Some("21HDCTO1WW".into()),
            virtual_machine: Some(false),
            ..Platform::default()
        },
        cgroup: CgroupLimits {
            cpu_quota: Some(0.5),
            memory_high_bytes: Some(GIB / 4),
            ..CgroupLimits::default()
        },
    };
    let conditions = MachineConditions {
        watched_ns: 1_002_000_000,
        load_average: Some([9.5, 4.1, 2.0]),
        cpu_busy_percent: Some(71.4),
        cpu_steal_percent: Some(3.2),
        dirty_bytes: Some(GIB),
        on_battery: Some(true),
        clock_sources: vec!["tsc".into(), "hpet".into(), "acpi_pm".into()],
        io_uring_error: Some("Operation not permitted (EPERM)".into()),
        io_uring_errno: Some(iosonde_job::errno::EPERM),
        io_uring_disabled: Some(2),
        aio_in_use: Some(65_530),
        aio_max: Some(65_536),
        locked_memory_bytes: Some(8 << 20),
        devices: vec![busy_disk(), rebuilt_array()],
        busiest: vec![ProcessTraffic {
            pid: 4711,
            name: "baloo_file".into(),
            read_bytes_per_s: 48e6,
            write_bytes_per_s: 1e6,
        }],
        maintenance: vec![Maintenance {
            pid: 812,
            what: "fstrim, which discards free blocks".into(),
        }],
        io_path: IoPathSettings {
            aspm_policy: Some("powersave".into()),
            idle_states: vec![IdleState {
                number: 3,
                name: "C10".into(),
                exit_latency_us: 890,
            }],
            ..IoPathSettings::default()
        },
    };
    examined(host, conditions, vec![home(), backup()])
}

fn busy_disk() -> DeviceConditions {
    DeviceConditions {
        name: "nvme0n1".into(),
        number: number(259, 0),
        traffic: Some(DeviceTraffic {
            read_iops: 1200.0,
            write_iops: 31.0,
            read_bytes_per_s: 48e6,
            write_bytes_per_s: 1e6,
            busy_percent: 63.0,
        }),
        celsius: Some(81.9),
        celsius_limit: Some(83.8),
        ..DeviceConditions::default()
    }
}

fn rebuilt_array() -> DeviceConditions {
    DeviceConditions {
        name: "md127".into(),
        number: number(9, 127),
        array: Some(ArrayState {
            action: "recover".into(),
            progress_percent: Some(12.6),
            missing_members: 1,
        }),
        ..DeviceConditions::default()
    }
}

fn home() -> ExaminedTarget {
    let limit = IoLimit {
        device: number(259, 0),
        cgroup: "/user.slice".into(),
        read_iops: Some(500),
        write_bytes_per_s: Some(50 << 20),
        ..IoLimit::default()
    };
    ExaminedTarget {
        name: "data.img".into(),
        info: TargetInfo {
            path: "/home/ann/data.img".into(),
            kind: PathKind::File,
            size_bytes: Some(64 * GIB),
            allocated_bytes: Some(GIB),
            space: Some(FileSystemUsage {
                total_bytes: 460 * GIB,
                used_bytes: Some(449 * GIB),
                available_bytes: Some(11 * GIB),
            }),
            mount: Some(Mount {
                mount_point: "/home".into(),
                root: "/".into(),
                fs_type: "btrfs".into(),
                source: "/dev/mapper/vg-home".into(),
                options: ["rw", "relatime", "compress=zstd:3", "discard"]
                    .map(String::from)
                    .into(),
                device: number(0, 41),
                locality: Locality::Block,
                service: None,
            }),
            devices: vec![thin_volume()],
            limits: vec![limit],
            ..TargetInfo::default()
        },
        access: TargetAccess {
            direct: Some(true),
            ..TargetAccess::default()
        },
    }
}

/// A thin volume on an encrypted partition of an NVMe disk.
fn thin_volume() -> DeviceInfo {
    let partition = DeviceInfo {
        name: "nvme0n1p3".into(),
        number: number(259, 3),
        kind: DeviceKind::Partition,
        size_bytes: 500_000_000_000,
        below: vec![laptop_disk()],
        ..DeviceInfo::default()
    };
    let crypt = DeviceInfo {
        name: "dm-0".into(),
        number: number(253, 0),
        kind: DeviceKind::Crypt,
        size_bytes: 500_000_000_000,
        detail: Some("nvme0n1p3_crypt".into()),
        below: vec![partition],
        ..DeviceInfo::default()
    };
    DeviceInfo {
        name: "dm-4".into(),
        number: number(253, 4),
        kind: DeviceKind::Lvm,
        size_bytes: 460 * GIB,
        detail: Some("vg-home".into()),
        thin: Some(true),
        below: vec![crypt],
        ..DeviceInfo::default()
    }
}

fn laptop_disk() -> DeviceInfo {
    DeviceInfo {
        name: "nvme0n1".into(),
        number: number(259, 0),
        kind: DeviceKind::Nvme,
        size_bytes: 512_110_190_592,
        transport: Some(Transport::Pcie),
        driver: Some("nvme".into()),
        model: Some("WD PC SN740 SDDPNQD-512G".into()),
        firmware: Some("73110000".into()),
        link: Some(PcieLink {
            speed: "8.0 GT/s PCIe".into(),
            width: 2,
            max_speed: Some("16.0 GT/s PCIe".into()),
            max_width: Some(4),
        }),
        queue: Some(Queue {
            scheduler: Some("bfq".into()),
            nr_requests: Some(256),
            volatile_write_cache: Some(true),
            rotational: Some(false),
            statistics: Some(false),
            ..Queue::default()
        }),
        ..DeviceInfo::default()
    }
}

fn backup() -> ExaminedTarget {
    let member = DeviceInfo {
        name: "sda".into(),
        number: number(8, 0),
        kind: DeviceKind::Scsi,
        size_bytes: 1_000_204_886_016,
        transport: Some(Transport::Usb),
        driver: Some("sd".into()),
        vendor: Some("WD".into()),
        model: Some("Elements 25A2".into()),
        firmware: Some("1021".into()),
        queue: Some(Queue {
            scheduler: Some("mq-deadline".into()),
            nr_requests: Some(2),
            device_queue_depth: Some(1),
            rotational: Some(true),
            ..Queue::default()
        }),
        ..DeviceInfo::default()
    };
    let array = DeviceInfo {
        name: "md127".into(),
        number: number(9, 127),
        kind: DeviceKind::Md,
        size_bytes: 1_000_069_595_136,
        detail: Some("raid1".into()),
        below: vec![member],
        ..DeviceInfo::default()
    };
    ExaminedTarget {
        name: "/dev/md127".into(),
        info: TargetInfo {
            path: "/dev/md127".into(),
            kind: PathKind::BlockDevice,
            size_bytes: Some(1_000_069_595_136),
            devices: vec![array],
            ..TargetInfo::default()
        },
        access: TargetAccess {
            read_error: Some("Permission denied (EACCES)".into()),
            read_errno: Some(iosonde_job::errno::EACCES),
            write_error: Some("Permission denied (EACCES)".into()),
            direct: None,
            atomic_writes: None,
            obstacles: vec!["/dev/md127 is mounted at /backup".into()],
            remedy: Some("if the file system is not needed, unmount it: umount /backup".into()),
        },
    }
}
