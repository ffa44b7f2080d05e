//! Tests of the words of each cause, and of its stored form.

use super::cluster_cause::{CleanUp, ClusterCause};
use super::finding_cause::{
    DeviceCause, DeviceIoLimits, FindingCause, LeftoverCause, MachineCause, RunningProgram,
    TargetCause,
};
use super::finding_text::finding;
use super::io_path_cause::{IoPathCause, IoUringRefusal};
use super::io_path_settings::{IdleState, NumaPlacement};
use super::{Finding, Severity};
use crate::host::{DeviceKind, PathKind, PcieLink, Transport};

fn machine_causes() -> Vec<MachineCause> {
    vec![
        MachineCause::CpuGovernor {
            governor: "powersave".to_owned(),
            driver: Some("intel_pstate".to_owned()),
        },
        MachineCause::OnBattery,
        MachineCause::CpuBusy {
            busy_percent: 63.0,
            cpus: Some(8),
            load_average: Some(5.5),
        },
        MachineCause::CpuSteal { steal_percent: 2.5 },
        MachineCause::MemoryLow {
            available_bytes: 128 << 20,
            memory_bytes: 4 << 30,
        },
        MachineCause::SwapInUse {
            used_bytes: 64 << 20,
        },
        MachineCause::DirtyPages {
            dirty_bytes: 512 << 20,
        },
        MachineCause::IoUring {
            error: Some("Operation not permitted (EPERM)".to_owned()),
            disabled_level: Some(2),
            container: false,
            refusal: IoUringRefusal::Sysctl,
        },
        MachineCause::IoUring {
            error: Some("Operation not permitted (EPERM)".to_owned()),
            disabled_level: None,
            container: true,
            refusal: IoUringRefusal::SeccompFilter,
        },
        MachineCause::IoUring {
            error: Some("Function not implemented (ENOSYS)".to_owned()),
            disabled_level: None,
            container: false,
            refusal: IoUringRefusal::KernelWithout,
        },
    ]
}

fn kernel_causes() -> Vec<MachineCause> {
    vec![
        MachineCause::AioExhausted {
            reserved_requests: 65_000,
            limit_requests: 65_536,
        },
        MachineCause::Memlock {
            limit_bytes: 64 << 10,
        },
        MachineCause::OldKernel {
            release: "4.18.0".to_owned(),
            has_io_uring: false,
        },
        MachineCause::OldKernel {
            release: "5.15.0".to_owned(),
            has_io_uring: true,
        },
        MachineCause::SlowClock {
            clock: "hpet".to_owned(),
            better: Some("tsc".to_owned()),
        },
        MachineCause::SlowClock {
            clock: "acpi_pm".to_owned(),
            better: None,
        },
        MachineCause::CgroupCpu {
            limit_cpus: 0.5,
            cpus: 4,
        },
        MachineCause::CgroupMemory {
            limit_bytes: 256 << 20,
        },
        MachineCause::VirtualMachine {
            cloud: Some("aws".to_owned()),
        },
        MachineCause::VirtualMachine { cloud: None },
        MachineCause::Container,
        MachineCause::Maintenance {
            work: "fstrim".to_owned(),
            pid: 7,
        },
    ]
}

fn other_io(disturbs: bool, programs: Vec<RunningProgram>) -> DeviceCause {
    DeviceCause::OtherIo {
        read_iops: 10.0,
        write_iops: 0.0,
        read_bytes_per_s: 40960.0,
        write_bytes_per_s: 0.0,
        busy_percent: 3.0,
        watched_s: 1.0,
        disturbs,
        programs,
    }
}

fn device_causes() -> Vec<DeviceCause> {
    let cache = |device_kind, transport| DeviceCause::WriteCache {
        device_kind,
        transport: Some(transport),
    };
    vec![
        DeviceCause::MemoryDevice {
            device_kind: DeviceKind::Zram,
        },
        DeviceCause::BufferedLoop,
        DeviceCause::Thin,
        DeviceCause::Scheduler {
            scheduler: "bfq".to_owned(),
            better: "mq-deadline".to_owned(),
        },
        DeviceCause::Scheduler {
            scheduler: "kyber".to_owned(),
            better: "none".to_owned(),
        },
        cache(DeviceKind::Ata, Transport::Sata),
        cache(DeviceKind::Scsi, Transport::Sas),
        cache(DeviceKind::Nvme, Transport::Pcie),
        cache(DeviceKind::Virtio, Transport::Virtio),
        DeviceCause::PcieLink {
            link: PcieLink {
                speed: "16.0 GT/s PCIe".to_owned(),
                width: 2,
                max_speed: Some("16.0 GT/s PCIe".to_owned()),
                max_width: Some(4),
            },
        },
        DeviceCause::QueueDepthOne {
            transport: Some(Transport::Usb),
        },
        DeviceCause::QueueDepthOne { transport: None },
        DeviceCause::Encrypted,
        DeviceCause::StatisticsOff,
        DeviceCause::ArraySync {
            action: "check".to_owned(),
            progress_percent: Some(12.6),
        },
        DeviceCause::ArraySync {
            action: "recover".to_owned(),
            progress_percent: None,
        },
        DeviceCause::ArrayDegraded { missing_members: 1 },
        DeviceCause::DeviceDown {
            state: "offline".to_owned(),
        },
        DeviceCause::Hot {
            celsius: 76.0,
            limit_celsius: 80.0,
        },
        other_io(false, Vec::new()),
        other_io(
            true,
            vec![RunningProgram {
                name: "tar".to_owned(),
                pid: 7,
            }],
        ),
    ]
}

fn access_causes() -> Vec<TargetCause> {
    let unreadable = |error: &str, errno, path_kind| TargetCause::Unreadable {
        error: error.to_owned(),
        errno: Some(errno),
        path_kind,
    };
    let unwritable = |path_kind, mount: Option<&str>| TargetCause::Unwritable {
        error: "Permission denied (EACCES)".to_owned(),
        path_kind,
        read_only_mount: mount.map(str::to_owned),
    };
    let no_room = |path_kind| TargetCause::NoRoom {
        bytes: 1 << 20,
        minimum_bytes: 16 << 20,
        path_kind,
    };
    vec![
        unreadable("Permission denied (EACCES)", 13, PathKind::BlockDevice),
        unreadable("Operation not permitted (EPERM)", 1, PathKind::BlockDevice),
        unreadable("Permission denied (EACCES)", 13, PathKind::File),
        TargetCause::ReadOnlyDevice {
            device: "sda".to_owned(),
        },
        unwritable(PathKind::Directory, None),
        unwritable(PathKind::File, Some("/mnt")),
        TargetCause::InUse {
            obstacles: vec!["it is mounted".to_owned(), "it is in use".to_owned()],
            action: Some("umount /mnt".to_owned()),
        },
        TargetCause::NoDirectIo,
        no_room(PathKind::Directory),
        no_room(PathKind::File),
    ]
}

fn file_system_causes() -> Vec<TargetCause> {
    let nearly_full = |mount: Option<&str>| TargetCause::NearlyFull {
        available_bytes: 1 << 30,
        total_bytes: 100 << 30,
        mount_point: mount.map(str::to_owned),
    };
    let limits = |device: &str, read_iops, write_bytes_per_s| DeviceIoLimits {
        device: device.to_owned(),
        read_iops,
        write_iops: None,
        read_bytes_per_s: None,
        write_bytes_per_s,
    };
    let (fs_type, mount_point) = ("ext4".to_owned(), "/mnt".to_owned());
    vec![
        nearly_full(Some("/mnt")),
        nearly_full(None),
        TargetCause::SparseFile {
            allocated_bytes: 1 << 29,
            size_bytes: 1 << 30,
        },
        TargetCause::CgroupIo {
            cgroups: vec!["/a/b".to_owned(), "/a".to_owned()],
            limits: vec![
                limits("sda", Some(500), Some(80 << 20)),
                limits("8:16", Some(70), None),
            ],
        },
        TargetCause::PseudoFileSystem {
            fs_type: "proc".to_owned(),
        },
        TargetCause::MemoryFileSystem {
            fs_type: "tmpfs".to_owned(),
        },
        TargetCause::NetworkFileSystem {
            fs_type: "nfs4".to_owned(),
            source: "server:/export".to_owned(),
        },
        TargetCause::UserSpaceFileSystem {
            fs_type: "fuse.x".to_owned(),
        },
        TargetCause::Overlay {
            fs_type: "overlay".to_owned(),
        },
        TargetCause::SyncMount {
            mount_point: mount_point.clone(),
        },
        TargetCause::Compression {
            fs_type,
            mount_point: mount_point.clone(),
            option: "compress=zstd:3".to_owned(),
        },
        TargetCause::OnlineDiscard { mount_point },
    ]
}

fn io_path_causes() -> Vec<IoPathCause> {
    let strict = |domain_type: Option<&str>| IoPathCause::IommuStrict {
        group: 17,
        domain_type: domain_type.map(str::to_owned),
    };
    let sleeping = |policy: &str, states: &[&str]| IoPathCause::LinkPowerSaving {
        policy: Some(policy.to_owned()),
        states: states.iter().map(|state| (*state).to_owned()).collect(),
    };
    let state = |number, name: &str, exit_latency_us| IdleState {
        number,
        name: name.to_owned(),
        exit_latency_us,
    };
    let placed = |allowed_on_node| IoPathCause::RemoteCpus {
        placement: NumaPlacement {
            node: 1,
            node_cpus: "16-31".to_owned(),
            allowed_on_node,
            allowed_elsewhere: 16,
        },
    };
    let on_one_cpu = |irqs: &[u32]| IoPathCause::InterruptsOnOneCpu {
        cpu: 0,
        irqs: irqs.to_vec(),
        cpus: 8,
    };
    vec![
        strict(Some("DMA")),
        strict(None),
        IoPathCause::NoPollQueues,
        IoPathCause::QueueOverhead {
            nomerges: Some(0),
            rq_affinity: Some(2),
            counts_io: true,
        },
        sleeping("default", &["L1", "L1.2"]),
        sleeping("powersave", &[]),
        IoPathCause::DeepIdle {
            states: vec![state(2, "C6", 133), state(3, "C8", 300)],
        },
        placed(0),
        placed(16),
        on_one_cpu(&[41, 42]),
        on_one_cpu(&[41]),
        IoPathCause::SmallLogicalBlocks {
            logical_bytes: 512,
            physical_bytes: 4096,
        },
    ]
}

fn refused_io_uring_causes() -> Vec<MachineCause> {
    let refused = |errno: &str, container, refusal| MachineCause::IoUring {
        error: Some(errno.to_owned()),
        disabled_level: None,
        container,
        refusal,
    };
    vec![
        refused("EPERM", false, IoUringRefusal::SeccompFilter),
        refused("EACCES", false, IoUringRefusal::SecurityModule),
        refused("EMFILE", false, IoUringRefusal::Unknown),
    ]
}

fn leftover_causes() -> Vec<LeftoverCause> {
    let (bytes, age_s) = (1 << 30, Some(7200));
    let elsewhere = |is_boot_known| LeftoverCause::AnotherHost {
        bytes,
        age_s,
        is_boot_known,
        directory: "/data".to_owned(),
    };
    vec![
        LeftoverCause::KilledRun { bytes, age_s },
        elsewhere(true),
        elsewhere(false),
        LeftoverCause::AnotherRun,
        LeftoverCause::UnknownUse { bytes, age_s: None },
    ]
}

fn cluster_causes() -> Vec<ClusterCause> {
    let clean_up = |context: Option<&str>| CleanUp {
        context: context.map(str::to_owned),
        namespace: "lab".to_owned(),
    };
    let run = |is_running, context| ClusterCause::RunInCluster {
        run: "3f2a9c00".to_owned(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        is_running,
        clean_up: clean_up(context),
    };
    let pressure = |condition: &str| ClusterCause::NodePressure {
        condition: condition.to_owned(),
    };
    vec![
        ClusterCause::SeveralDefaultClasses,
        ClusterCause::DriverOnNoNode {
            driver: "example.com/disk".to_owned(),
        },
        ClusterCause::ClassFails {
            error: "never bound".to_owned(),
            action: "look".to_owned(),
        },
        ClusterCause::SharingNotTried {
            error: "no node takes the pod".to_owned(),
            action: "add a node".to_owned(),
        },
        ClusterCause::ClassRetains,
        ClusterCause::ClassKeepsDirectory {
            parameter: "archiveOnDelete: true".to_owned(),
            remainder: "a directory archived-* with all its data".to_owned(),
        },
        ClusterCause::NoSharedClass {
            provisioners: vec!["ebs.csi.aws.com".to_owned()],
        },
        ClusterCause::NodeNotUsable,
        pressure("DiskPressure"),
        pressure("MemoryPressure"),
        ClusterCause::NoNvmeEphemeralStorage {
            version: "v1.24.9-gke.1".to_owned(),
            needed: "1.25.3-gke.1800".to_owned(),
        },
        ClusterCause::EphemeralStorageTooSmall {
            requested_bytes: 200 << 30,
            allocatable_bytes: 90 << 30,
        },
        run(true, None),
        run(false, Some("prod")),
        ClusterCause::RetainedVolume {
            size: "5Gi".to_owned(),
            clean_up: clean_up(None),
        },
        ClusterCause::EmptyNamespace {
            clean_up: clean_up(None),
        },
    ]
}

/// Returns a finding of each cause on `x`.
fn all_findings() -> Vec<Finding> {
    let machine = machine_causes().into_iter().chain(kernel_causes());
    let machine = machine.map(FindingCause::Machine);
    let device = device_causes().into_iter().map(FindingCause::Device);
    let target = access_causes().into_iter().chain(file_system_causes());
    let target = target.map(FindingCause::Target);
    let leftover = leftover_causes().into_iter().map(FindingCause::Leftover);
    let cluster = cluster_causes().into_iter().map(FindingCause::Cluster);
    let causes = machine.chain(device).chain(target).chain(leftover);
    let io_path = io_path_causes().into_iter().map(FindingCause::IoPath);
    let refused = refused_io_uring_causes();
    let refused = refused.into_iter().map(FindingCause::Machine);
    let causes = causes.chain(cluster).chain(io_path).chain(refused);
    causes
        .map(|cause| finding(Severity::Note, "x", cause))
        .collect()
}

#[test]
fn finding_causes_have_their_words() {
    let words = |found: &Finding| {
        let command = found.command.as_deref().unwrap_or("-");
        let remedy = &found.remedy;
        format!(
            "{}\n  {}\n  {}\n  {remedy}\n  {command}",
            found.id, found.evidence, found.effect
        )
    };
    let all: Vec<String> = all_findings().iter().map(words).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn commands_of_findings_quote_names_with_blanks() {
    let sparse = FindingCause::Target(TargetCause::SparseFile {
        allocated_bytes: 0,
        size_bytes: 7,
    });
    let left = FindingCause::Leftover(LeftoverCause::AnotherHost {
        bytes: 7,
        age_s: None,
        is_boot_known: true,
        directory: "/my data".to_owned(),
    });
    for (cause, word) in [(sparse, "'--filename=/my data'"), (left, "'/my data'")] {
        let command = finding(Severity::Note, "/my data", cause).command;
        assert!(command.unwrap().contains(word), "{word}");
    }
}

#[test]
fn finding_json_has_its_words_and_cause() {
    for found in all_findings() {
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["evidence"], *found.evidence);
        assert!(json["cause"]["kind"].is_string(), "{json}");
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), found);
    }
    let cause = FindingCause::Machine(MachineCause::SwapInUse { used_bytes: 7 });
    let json = serde_json::to_value(finding(Severity::Note, "machine", cause)).unwrap();
    let cause = serde_json::json!({ "kind": "swap_in_use", "used_bytes": 7 });
    assert_eq!(json["cause"], cause);
}

#[test]
fn finding_without_cause_is_read_and_written() {
    let old = r#"{"id":"thin","severity":"note","subject":"sda","evidence":"a","effect":"b","#
        .to_owned()
        + r#""remedy":"c","command":null}"#;
    let found: Finding = serde_json::from_str(&old).unwrap();
    assert_eq!((found.id.as_str(), &found.cause), ("thin", &None));
    assert_eq!(serde_json::to_string(&found).unwrap(), old);
}

#[test]
fn finding_with_an_unknown_cause_is_read_without_it() {
    for cause in [
        r#"{"kind":"of_2030","heat":7}"#,
        r#"{"kind":"swap_in_use"}"#,
    ] {
        let newer = r#"{"id":"thin","severity":"note","subject":"sda","evidence":"a","#.to_owned()
            + r#""effect":"b","remedy":"c","command":null,"cause":"#
            + cause
            + "}";
        let found: Finding = serde_json::from_str(&newer).unwrap();
        assert_eq!((found.evidence.as_str(), found.cause), ("a", None));
    }
}
