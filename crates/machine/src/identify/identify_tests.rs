//! Descriptions of captured machines.

use super::{PathFacts, identify_in};
use crate::activity::Activity;
use crate::captured_machine::CapturedMachine;
use crate::conditions::conditions;
use crate::host::describe_host;
use iosonde_result::doctor::MachineConditions;
use iosonde_result::host::{
    DeviceInfo, DeviceKind, Locality, PathKind, ServiceClient, TargetInfo, Transport,
};
use std::path::{Path, PathBuf};

/// The description of a directory of a captured machine.
fn directory(machine: &CapturedMachine, path: &str, on: Option<&str>) -> TargetInfo {
    let on = on.map(|number| number.parse().unwrap());
    let facts = PathFacts {
        path: PathBuf::from(path),
        kind: PathKind::Directory,
        size_bytes: None,
        allocated_bytes: None,
        on,
        is: None,
    };
    identify_in(&machine.system(), &facts)
}

/// The description of a block device of a captured machine.
fn block_device(machine: &CapturedMachine, path: &str, number: &str) -> TargetInfo {
    let is = Some(number.parse().unwrap());
    let facts = PathFacts {
        path: PathBuf::from(path),
        kind: PathKind::BlockDevice,
        size_bytes: None,
        allocated_bytes: None,
        on: None,
        is,
    };
    identify_in(&machine.system(), &facts)
}

/// The names along one branch of a stack of devices.
fn branch(device: &DeviceInfo) -> Vec<(&str, DeviceKind)> {
    let mut names = vec![(device.name.as_str(), device.kind)];
    names.extend(device.below.first().map(branch).unwrap_or_default());
    names
}

#[test]
fn partition_leads_to_its_nvme_disk() {
    let machine = CapturedMachine::unpack("nvme-partition");
    let target = directory(&machine, "/srv/data/db", Some("259:2"));
    let mount = target.mount.as_ref().unwrap();
    assert_eq!(
        (mount.fs_type.as_str(), mount.root.as_str()),
        ("ext4", "/var/lib/pool")
    );
    assert!(mount.options.iter().any(|option| option == "discard"));
    let partition = &target.devices[0];
    assert_eq!(
        branch(partition),
        [
            ("nvme0n1p1", DeviceKind::Partition),
            ("nvme0n1", DeviceKind::Nvme)
        ]
    );
    assert_eq!(
        (partition.start_bytes, partition.size_bytes),
        (Some(262_144 * 512), 16_513_024 * 512)
    );
    assert_eq!(partition.queue, None);
    let disk = &partition.below[0];
    assert_eq!(disk.model.as_deref(), Some("Amazon Elastic Block Store"));
    assert_eq!(disk.firmware.as_deref(), Some("2.0"));
    assert_eq!(
        (disk.transport, disk.driver.as_deref()),
        (Some(Transport::Pcie), Some("nvme"))
    );
    assert_eq!(disk.driver_version.as_deref(), Some("1.0"));
    assert_eq!(partition.driver_version, None);
    assert_eq!(disk.size_bytes, 8 << 30);
    let queue = disk.queue.as_ref().unwrap();
    assert_eq!(
        (queue.logical_block_bytes, queue.physical_block_bytes),
        (Some(512), Some(4096))
    );
    assert_eq!(
        (queue.scheduler.as_deref(), queue.nr_requests),
        (Some("none"), Some(63))
    );
    assert_eq!(
        (queue.volatile_write_cache, queue.rotational),
        (Some(false), Some(false))
    );
    assert_eq!(
        (queue.max_request_bytes, queue.hardware_queues),
        (Some(256 << 10), Some(2))
    );
}

#[test]
fn block_device_target_has_no_mount() {
    let machine = CapturedMachine::unpack("nvme-partition");
    let target = block_device(&machine, "/dev/nvme0n1", "259:0");
    assert_eq!(
        (target.mount.clone(), target.size_bytes),
        (None, Some(8 << 30))
    );
    assert_eq!(target.devices[0].kind, DeviceKind::Nvme);
    let gone = block_device(&machine, "/dev/sdz", "65:144");
    assert!(gone.devices.is_empty() && gone.note.unwrap().contains("65:144"));
}

#[test]
fn io_limits_of_all_parent_cgroups_apply_to_the_disk() {
    let machine = CapturedMachine::unpack("nvme-partition");
    let limits = directory(&machine, "/srv/data", None).limits;
    assert_eq!(
        limits.len(),
        2,
        "the bound on another disk is left out: {limits:?}"
    );
    assert_eq!(
        (limits[0].cgroup.as_str(), limits[0].read_iops),
        ("/user.slice/bench.scope", Some(500))
    );
    assert_eq!(
        (limits[1].cgroup.as_str(), limits[1].write_bytes_per_s),
        ("/user.slice", Some(50 << 20))
    );
    assert_eq!(
        limits[1].device.to_string(),
        "259:0",
        "a bound by a partition's number is the disk's"
    );
    let cgroup = describe_host(&machine.system()).cgroup;
    assert_eq!(
        (cgroup.cpu_quota, cgroup.memory_bytes, cgroup.cpuset),
        (Some(1.5), Some(4 << 30), Some(3))
    );
    assert_eq!(cgroup.io.len(), 3);
}

#[test]
fn host_describes_the_captured_machine() {
    let host = describe_host(&CapturedMachine::unpack("nvme-partition").system());
    assert_eq!(host.hostname.as_deref(), Some("ip-10-0-0-7"));
    assert_eq!(host.kernel.as_deref(), Some("6.1.0-31-cloud-amd64"));
    assert_eq!(host.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    assert_eq!(
        (host.os_id.as_deref(), host.os_version.as_deref()),
        (Some("debian"), Some("12"))
    );
    assert_eq!(
        (host.cpu.model.as_deref(), host.cpu.online),
        (Some("AMD EPYC 9R14"), Some(4))
    );
    assert_eq!(host.memory_bytes, Some(7_907_360 << 10));
    assert_eq!(
        (
            host.platform.cloud.as_deref(),
            host.platform.instance_type.as_deref()
        ),
        (Some("aws"), Some("m7a.large"))
    );
    assert_eq!(
        (host.platform.virtual_machine, host.platform.container),
        (Some(true), false)
    );
}

#[test]
fn ec2_arm_guest_is_known_by_its_product_name() {
    let machine = CapturedMachine::unpack("gcp");
    let is_guest = |product: &str| {
        machine.write(
            Path::new("/proc/cpuinfo"),
            "processor\t: 0\nFeatures\t: fp asimd\n",
        );
        machine.write(Path::new("/sys/class/dmi/id/sys_vendor"), "Amazon EC2\n");
        machine.write(Path::new("/sys/class/dmi/id/product_name"), product);
        machine.write(Path::new("/run/cloud-init/instance-data.json"), "{}");
        describe_host(&machine.system()).platform.virtual_machine
    };
    assert_eq!(is_guest("m7g.large\n"), Some(true));
    assert_eq!(is_guest("m7g.metal\n"), Some(false));
}

#[test]
fn loop_device_leads_to_the_disk_of_its_file() {
    let machine = CapturedMachine::unpack("loop-on-ext4");
    let target = directory(&machine, "/mnt/loop", Some("7:0"));
    let top = &target.devices[0];
    assert_eq!(
        branch(top),
        [
            ("loop0", DeviceKind::Loop),
            ("sda1", DeviceKind::Partition),
            ("sda", DeviceKind::Ata)
        ]
    );
    assert_eq!(
        top.backing_file,
        Some(PathBuf::from("/var/lib/disk images/one.img"))
    );
    assert_eq!(top.direct_io, Some(true));
    let disk = target.bottom_devices()[0];
    assert_eq!(
        (disk.vendor.as_deref(), disk.model.as_deref()),
        (None, Some("SAMSUNG MZ7LN512"))
    );
    assert_eq!(
        (disk.transport, disk.driver.as_deref()),
        (Some(Transport::Sata), Some("sd"))
    );
    assert_eq!(
        disk.queue.as_ref().unwrap().volatile_write_cache,
        Some(true)
    );
}

#[test]
fn cgroup_v1_limits_apply_to_each_level_of_the_stack() {
    let machine = CapturedMachine::unpack("loop-on-ext4");
    let limits = directory(&machine, "/mnt/loop", None).limits;
    assert_eq!(limits.len(), 2);
    assert_eq!(
        (limits[0].read_iops, limits[0].read_bytes_per_s),
        (Some(1000), Some(10 << 20))
    );
    assert_eq!(
        (limits[1].write_bytes_per_s, limits[1].cgroup.as_str()),
        (Some(2 << 20), "/")
    );
    let host = describe_host(&machine.system());
    assert_eq!(
        (host.cgroup.cpu_quota, host.cgroup.memory_bytes),
        (Some(0.5), Some(1 << 30))
    );
    assert_eq!(
        (host.platform.virtual_machine, host.platform.cloud),
        (Some(false), None)
    );
}

#[test]
fn volumes_on_encrypted_mirrors_lead_to_both_disks() {
    let machine = CapturedMachine::unpack("lvm-on-crypt-on-md");
    let target = directory(&machine, "/", Some("254:1"));
    let expected = [
        ("dm-1", DeviceKind::Lvm),
        ("dm-0", DeviceKind::Crypt),
        ("md0", DeviceKind::Md),
        ("sda", DeviceKind::Scsi),
    ];
    assert_eq!(branch(&target.devices[0]), expected);
    assert_eq!(target.devices[0].detail.as_deref(), Some("vg-data"));
    let bottom = target.bottom_devices();
    assert_eq!(
        bottom
            .iter()
            .map(|device| device.name.as_str())
            .collect::<Vec<_>>(),
        ["sda", "sdb"]
    );
    assert_eq!(
        (bottom[0].vendor.as_deref(), bottom[0].transport),
        (Some("SEAGATE"), Some(Transport::Sas))
    );
    let array = target
        .all_devices()
        .into_iter()
        .find(|device| device.name == "md0")
        .unwrap();
    assert_eq!(array.detail.as_deref(), Some("raid1"));
}

#[test]
fn pod_shows_devices_of_its_claim_but_not_of_its_root() {
    let machine = CapturedMachine::unpack("container");
    let root = directory(&machine, "/tmp", Some("0:300"));
    assert_eq!(root.mount.unwrap().locality, Locality::Stacked);
    assert!(
        root.note
            .unwrap()
            .contains("/var/lib/containerd/2/fs is not visible")
    );
    let claim = directory(&machine, "/data", Some("251:0"));
    assert_eq!(branch(&claim.devices[0]), [("rbd0", DeviceKind::Rbd)]);
    assert_eq!(claim.devices[0].detail.as_deref(), Some("kube/csi-vol-7"));
    assert_eq!(claim.devices[0].transport, Some(Transport::Network));
    let host = describe_host(&machine.system());
    assert!(host.platform.container);
    assert_eq!(
        (host.cgroup.cpu_quota, host.cgroup.memory_bytes),
        (Some(2.0), Some(512 << 20))
    );
}

/// Captured trees replace the kernel's Ceph and NFS clients, which the test machine need not have.
#[test]
fn mapped_rbd_image_names_pool_image_and_cluster() {
    let machine = CapturedMachine::unpack("krbd");
    let raw = block_device(&machine, "/dev/rbd0", "252:0");
    let image = raw.devices[0].rbd.clone().unwrap();
    assert_eq!(
        image.to_string(),
        "fast/team/disk1",
        "a head is no snapshot"
    );
    assert_eq!(
        (image.fsid.as_deref(), image.client.as_deref()),
        (
            Some("b7c4ad3e-0000-4000-8000-c2f1f6d0b7a1"),
            Some("client4123")
        )
    );
    let mounted = directory(&machine, "/mnt/snap/x", Some("252:16"));
    let image = mounted.devices[0].rbd.clone().unwrap();
    assert_eq!(image.to_string(), "fast/disk2@before-upgrade");
    let all = serde_json::to_string(&[raw, mounted]).unwrap();
    assert!(!all.contains("MustNotBeKept"), "{all}");
}

#[test]
fn mounted_services_name_their_servers_without_secrets() {
    let machine = CapturedMachine::unpack("krbd");
    let ceph = directory(&machine, "/mnt/cephfs/x", Some("0:50"));
    assert_eq!(
        ceph.note.as_deref(),
        Some("the data is in a Ceph cluster, accessed through CephFS (kernel client)")
    );
    let mount = ceph.mount.clone().unwrap();
    let service = mount.service.unwrap();
    assert_eq!(service.client, ServiceClient::CephKernel);
    assert_eq!(service.servers, ["10.0.0.1:6789", "10.0.0.2:6789"]);
    assert_eq!(service.path.as_deref(), Some("/vol"));
    assert!(mount.options.iter().any(|option| option == "acl"));
    let all = serde_json::to_string(&ceph).unwrap();
    assert!(!all.contains("MustNotBeKept"), "{all}");
    let nfs = directory(&machine, "/mnt/nfs/x", Some("0:51"));
    let service = nfs.mount.unwrap().service.unwrap();
    assert_eq!(service.servers, ["filer", "10.0.0.5"]);
    assert_eq!(service.version.as_deref(), Some("4.2"));
}

#[test]
fn file_systems_without_a_device_note_where_the_data_is() {
    let machine = CapturedMachine::unpack("container");
    let cases = [
        (
            "/shared claim/x",
            Locality::Remote,
            "the data is on filer:/export/a, accessed through nfs4",
        ),
        (
            "/scratch/x",
            Locality::Memory,
            "tmpfs stores its data in memory",
        ),
        (
            "/model",
            Locality::UserSpace,
            "a user-space process serves this file system (fuse.mountpoint-s3)",
        ),
    ];
    for (path, locality, note) in cases {
        let target = directory(&machine, path, None);
        assert_eq!(
            (target.mount.unwrap().locality, target.note.as_deref()),
            (locality, Some(note))
        );
        assert!(target.devices.is_empty());
    }
}

#[test]
fn overlay_on_btrfs_leads_to_all_disks() {
    let machine = CapturedMachine::unpack("overlay-on-btrfs");
    let target = directory(&machine, "/merged/dir", Some("0:61"));
    let names: Vec<&str> = target
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(names, ["vda", "vdb"]);
    assert_eq!(target.devices[0].kind, DeviceKind::Virtio);
    assert_eq!(
        (
            target.devices[0].vendor.as_deref(),
            target.devices[0].driver.as_deref()
        ),
        (None, Some("virtio_blk"))
    );
}

#[test]
fn gcp_machine_reports_zone_without_instance_type() {
    let machine = CapturedMachine::unpack("gcp");
    let platform = describe_host(&machine.system()).platform;
    assert_eq!(
        (platform.cloud.as_deref(), platform.hypervisor.as_deref()),
        (Some("gcp"), Some("kvm"))
    );
    assert_eq!(
        (platform.region.as_deref(), platform.zone.as_deref()),
        (Some("europe-west4"), Some("europe-west4-b"))
    );
    assert_eq!(platform.instance_type, None, "nothing here says it");
    let root = directory(&machine, "/", Some("8:1"));
    let disk = root.bottom_devices()[0];
    assert_eq!(
        (disk.model.as_deref(), disk.transport, disk.thin),
        (Some("PersistentDisk"), Some(Transport::Virtio), Some(true))
    );
    let queue = disk.queue.as_ref().unwrap();
    assert_eq!(
        (queue.device_queue_depth, queue.statistics),
        (Some(8192), Some(true))
    );
}

#[test]
fn azure_machine_reports_type_region_and_zone() {
    let machine = CapturedMachine::unpack("azure");
    let platform = describe_host(&machine.system()).platform;
    assert_eq!(
        (platform.cloud.as_deref(), platform.hypervisor.as_deref()),
        (Some("azure"), Some("hyperv"))
    );
    assert_eq!(
        [platform.instance_type, platform.region, platform.zone].map(Option::unwrap),
        ["Standard_E8bds_v5", "westeurope", "3"]
    );
    let root = directory(&machine, "/", Some("8:2"));
    assert_eq!(root.bottom_devices()[0].transport, Some(Transport::HyperV));
}

#[test]
fn multipath_disk_leads_to_each_path() {
    let machine = CapturedMachine::unpack("san");
    let target = directory(&machine, "/srv/db", Some("253:0"));
    assert_eq!(
        (target.devices[0].kind, target.devices[0].detail.as_deref()),
        (DeviceKind::Multipath, Some("mpatha"))
    );
    let paths: Vec<(&str, Option<Transport>)> = target
        .bottom_devices()
        .iter()
        .map(|path| (path.name.as_str(), path.transport))
        .collect();
    let fibre = Some(Transport::FibreChannel);
    assert_eq!(paths, [("sda", fibre), ("sdb", fibre)]);
    let host = describe_host(&machine.system());
    assert_eq!(
        (
            host.cpu.governor.clone(),
            host.cpu.frequency_driver.as_deref()
        ),
        (Some("powersave, performance".into()), Some("intel_pstate"))
    );
    assert_eq!(host.clock_source.as_deref(), Some("hpet"));
    assert_eq!(
        (host.platform.virtual_machine, host.platform.hypervisor),
        (Some(false), None)
    );
}

#[test]
fn nvme_namespace_with_several_controllers_is_one_disk() {
    let machine = CapturedMachine::unpack("san");
    let target = directory(&machine, "/srv/log", Some("259:4"));
    let disk = &target.devices[0];
    assert_eq!(
        (
            disk.kind,
            disk.transport,
            disk.model.as_deref(),
            disk.firmware.as_deref()
        ),
        (
            DeviceKind::Nvme,
            Some(Transport::NvmeTcp),
            Some("NetApp ONTAP Controller"),
            Some("9.12.1")
        )
    );
}

#[test]
fn multi_device_file_systems_list_devices_or_name_a_command() {
    let machine = CapturedMachine::unpack("san");
    let pool = directory(&machine, "/pool", Some("0:52"));
    let names: Vec<&str> = pool.devices.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["sdc", "sdd"]);
    let tank = directory(&machine, "/tank/vm", Some("0:51"));
    assert!(tank.devices.is_empty());
    assert!(tank.note.unwrap().ends_with("see `zpool status tank`"));
}

#[test]
fn thin_volume_and_narrow_pcie_link_are_reported() {
    let machine = CapturedMachine::unpack("laptop");
    let target = directory(&machine, "/home", Some("253:4"));
    assert_eq!(
        branch(&target.devices[0]),
        [
            ("dm-4", DeviceKind::Lvm),
            ("dm-3", DeviceKind::Lvm),
            ("nvme0n1p3", DeviceKind::Partition),
            ("nvme0n1", DeviceKind::Nvme)
        ]
    );
    assert_eq!(target.devices[0].thin, Some(true));
    assert_eq!(target.devices[0].below[0].thin, Some(false));
    let disk = target.bottom_devices()[0];
    let link = disk.link.as_ref().unwrap();
    assert_eq!(
        (link.width, link.max_width, disk.numa_node),
        (2, Some(4), None)
    );
    assert_eq!(disk.queue.as_ref().unwrap().statistics, Some(false));
    let host = describe_host(&machine.system());
    assert_eq!(
        (host.swap_bytes, host.swap_used_bytes),
        (Some(8_000_000 << 10), Some(2_000_000 << 10))
    );
}

#[test]
fn dockerenv_on_a_booted_machine_is_no_container() {
    let machine = CapturedMachine::unpack("gcp");
    machine.write(Path::new("/.dockerenv"), "");
    assert!(!describe_host(&machine.system()).platform.container);
    let root = "1 0 0:61 / / rw - overlay overlay rw,upperdir=/x\n";
    machine.write(Path::new("/proc/self/mountinfo"), root);
    assert!(describe_host(&machine.system()).platform.container);
}

/// The conditions of a captured machine, with the devices of a directory.
fn conditions_of(machine: &CapturedMachine, path: &str, on: Option<&str>) -> MachineConditions {
    let target = directory(machine, path, on);
    conditions(&machine.system(), &[target], &Activity::default())
}

#[test]
fn conditions_of_a_laptop_are_read() {
    let machine = CapturedMachine::unpack("laptop");
    let seen = conditions_of(&machine, "/home", Some("253:4"));
    assert_eq!(seen.on_battery, Some(true));
    assert_eq!(seen.load_average, Some([9.5, 4.1, 2.0]));
    assert_eq!(seen.dirty_bytes, Some(910_000 << 10));
    assert_eq!(seen.io_uring_disabled, Some(2));
    assert_eq!(
        (seen.aio_in_use, seen.aio_max),
        (Some(65_530), Some(65_536))
    );
    assert_eq!(seen.maintenance.len(), 1);
    assert_eq!(seen.maintenance[0].pid, 812);
    let disk = seen
        .devices
        .iter()
        .find(|one| one.name == "nvme0n1")
        .unwrap();
    assert_eq!(
        (disk.celsius, disk.celsius_limit),
        (Some(83.85), Some(83.85))
    );
    assert_eq!(disk.traffic, None, "nothing was counted");
}

#[test]
fn array_rebuild_is_reported_with_progress() {
    let machine = CapturedMachine::unpack("laptop");
    let seen = conditions_of(&machine, "/backup", Some("9:127"));
    let array = seen.devices[0].array.as_ref().unwrap();
    assert_eq!(
        (array.action.as_str(), array.missing_members),
        ("recover", 1)
    );
    assert!((array.progress_percent.unwrap() - 0.012_64).abs() < 1e-4);
}

#[test]
fn offline_multipath_path_is_reported() {
    let machine = CapturedMachine::unpack("san");
    let seen = conditions_of(&machine, "/srv/db", Some("253:0"));
    let states: Vec<_> = seen
        .devices
        .iter()
        .map(|one| one.state.as_deref())
        .collect();
    assert_eq!(states, [None, Some("running"), Some("offline")]);
    assert_eq!(seen.clock_sources, ["tsc", "hpet", "acpi_pm"]);
    assert_eq!(seen.on_battery, None, "it has none");
}
