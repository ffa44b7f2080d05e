//! Uses of the devices of captured machines.

use super::{Obstacle, device_in_use, file_in_use};
use crate::captured_machine::CapturedMachine;
use iosonde_result::host::DeviceNumber;
use std::path::Path;

fn in_use(machine: &CapturedMachine, number: &str) -> Vec<String> {
    let number: DeviceNumber = number.parse().unwrap();
    device_in_use(&machine.system(), number)
        .iter()
        .map(Obstacle::to_string)
        .collect()
}

#[test]
fn disk_is_in_use_by_its_partitions() {
    let machine = CapturedMachine::unpack("nvme-partition");
    let expected = [
        "/dev/nvme0n1p1 is mounted at /",
        "/dev/nvme0n1p1 is mounted at /srv/data",
    ];
    assert_eq!(in_use(&machine, "259:0"), expected);
    assert_eq!(in_use(&machine, "259:2"), expected);
}

#[test]
fn raid_member_is_in_use_by_all_volumes_above() {
    let machine = CapturedMachine::unpack("lvm-on-crypt-on-md");
    let found = in_use(&machine, "8:16");
    for expected in [
        "/dev/sdb is part of md0",
        "/dev/md0 is part of dm-0",
        "/dev/mapper/secret is part of dm-1",
        "/dev/mapper/vg-data is mounted at /",
        "/dev/mapper/vg-swap is in use as swap space",
    ] {
        assert!(
            found.iter().any(|sentence| sentence == expected),
            "{expected:?} is not in {found:#?}"
        );
    }
    assert_eq!(
        in_use(&machine, "254:2"),
        ["/dev/mapper/vg-swap is in use as swap space"]
    );
}

#[test]
fn btrfs_mount_is_found_by_its_source_device() {
    let machine = CapturedMachine::unpack("overlay-on-btrfs");
    assert_eq!(in_use(&machine, "254:0"), ["/dev/vda is mounted at /"]);
}

#[test]
fn backing_file_of_loop_device_is_in_use() {
    let machine = CapturedMachine::unpack("loop-on-ext4");
    let found = file_in_use(&machine.system(), Path::new("/var/lib/disk images/one.img"));
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string(),
        "/var/lib/disk images/one.img is part of loop0"
    );
    assert_eq!(
        file_in_use(&machine.system(), Path::new("/var/lib/other.img")),
        []
    );
}

#[test]
fn swap_file_is_in_use() {
    let machine = CapturedMachine::unpack("loop-on-ext4");
    machine.write(
        Path::new("/proc/swaps"),
        "Filename Type Size Used Priority\n/swapfile file 1024 0 -2\n",
    );
    let found = file_in_use(&machine.system(), Path::new("/swapfile"));
    assert_eq!(
        found,
        [Obstacle::Swap {
            device: "/swapfile".into()
        }]
    );
}
