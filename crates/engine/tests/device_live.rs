//! Real loop devices: whether they may be written, what they moved, and whether a cache served the rest.

#[path = "common/loop_device.rs"]
mod loop_device;

use iosonde_engine::device::cache::{Traffic, moved, served_from_cache};
use iosonde_engine::device::disk_util::disk_util;
use iosonde_engine::device::diskstats::Snapshot;
use iosonde_engine::device::guard::{Obstacle, Refusal, check_writable, overridden};
use iosonde_engine::device::identify::identify;
use iosonde_engine::device::system::System;
use iosonde_result::host::{DeviceKind, TargetInfo};
use iosonde_result::run::VerdictKind;
use loop_device::{Loop, run};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

fn refused(path: &Path) -> Vec<Obstacle> {
    match check_writable(path, &[]).unwrap_err() {
        Refusal::Obstacles { obstacles, .. } => obstacles,
        other => panic!("{other}"),
    }
}

#[test]
#[ignore = "needs root and loop devices"]
fn an_empty_device_may_be_written_and_one_with_a_file_system_may_not() {
    let device = Loop::new(&[]);
    assert_eq!(check_writable(&device.device, &[]).unwrap(), []);
    run("mkfs.ext4", &["-q", "-L", "precious", device.path()]);
    let refusal = check_writable(&device.device, &[]).unwrap_err();
    let text = refusal.to_string();
    assert!(
        text.starts_with(&format!(
            "refusing to write {}: it carries an ext4 file system (label \"precious\"",
            device.path()
        )),
        "{text}"
    );
    assert!(
        refusal
            .remedy()
            .ends_with(&format!("--allow-overwrite={}", device.path()))
    );
}

#[test]
#[ignore = "needs root and loop devices"]
fn consent_to_the_device_by_any_name_is_enough_and_to_another_is_not() {
    let (device, other) = (Loop::new(&[]), Loop::new(&[]));
    run("mkswap", &[device.path()]);
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("by-id");
    std::os::unix::fs::symlink(&device.device, &link).unwrap();
    let overridden = check_writable(&device.device, &[link]).unwrap();
    assert!(matches!(&overridden[..], [Obstacle::Carries(signature)] if signature.kind == "swap"));
    assert!(check_writable(&device.device, std::slice::from_ref(&other.device)).is_err());
}

#[test]
#[ignore = "needs root and loop devices"]
fn a_mounted_device_is_refused_with_its_mount_point() {
    let device = Loop::new(&[]);
    run("mkfs.ext4", &["-q", device.path()]);
    let dir = tempfile::tempdir().unwrap();
    run("mount", &[device.path(), dir.path().to_str().unwrap()]);
    let obstacles = refused(&device.device);
    let overridden = overridden(&device.device).unwrap();
    run("umount", &[dir.path().to_str().unwrap()]);
    assert!(
        overridden.contains("is mounted at") && overridden.contains("an ext4 file system"),
        "{overridden}"
    );
    let mounted = Obstacle::Mounted {
        device: device.path().into(),
        mount_point: dir.path().canonicalize().unwrap(),
    };
    assert_eq!(obstacles[0], mounted);
    assert!(matches!(&obstacles[1..], [Obstacle::Carries(_)]));
}

#[test]
#[ignore = "needs root and loop devices"]
fn a_device_that_a_program_holds_is_refused() {
    use std::os::unix::fs::OpenOptionsExt;
    let device = Loop::new(&[]);
    let holder = File::options()
        .read(true)
        .custom_flags(libc::O_EXCL)
        .open(&device.device)
        .unwrap();
    assert_eq!(refused(&device.device), [Obstacle::Busy]);
    drop(holder);
    assert_eq!(check_writable(&device.device, &[]).unwrap(), []);
}

#[test]
#[ignore = "needs root and loop devices"]
fn a_program_that_lets_go_of_a_device_soon_does_not_use_it() {
    use std::os::unix::fs::OpenOptionsExt;
    let device = Loop::new(&[]);
    let alone = |path: &Path| {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_EXCL).open(path)
    };
    let looker = alone(&device.device).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(looker);
        });
        assert_eq!(check_writable(&device.device, &[]).unwrap(), []);
    });
}

/// Clones of a job that start together look at their device at the same time, each for itself alone.
#[test]
#[ignore = "needs root and loop devices"]
fn looking_at_a_device_does_not_disturb_others_that_look() {
    let device = Loop::new(&[]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(check_writable(&device.device, &[]).unwrap(), []);
                }
            });
        }
    });
}

#[test]
#[ignore = "needs root and loop devices"]
fn a_device_and_a_file_under_a_loop_device_are_refused() {
    let lower = Loop::new(&[]);
    let upper = Loop::over(&lower);
    let name = upper
        .device
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let held = Obstacle::Held {
        device: lower.path().into(),
        holder: name,
    };
    assert!(refused(&lower.device).contains(&held));
    drop(upper);
    assert!(matches!(
        &refused(lower.file())[..],
        [Obstacle::Held { .. }]
    ));
}

#[test]
#[ignore = "needs root and loop devices"]
fn consent_does_not_make_a_read_only_device_writable() {
    let device = Loop::new(&["--read-only"]);
    let refusal = check_writable(&device.device, std::slice::from_ref(&device.device)).unwrap_err();
    assert_eq!(refusal.found(), "it is read-only");
}

const SIZE: u64 = 16 << 20;

/// A loop device full of data, as a target.
fn filled(options: &[&str]) -> (Loop, TargetInfo) {
    let device = Loop::new(options);
    run(
        "dd",
        &[
            "if=/dev/urandom",
            &format!("of={}", device.path()),
            "bs=1M",
            "count=16",
            "oflag=direct",
            "status=none",
        ],
    );
    run("blockdev", &["--flushbufs", device.path()]);
    let target = identify(&device.device).unwrap();
    (device, target)
}

fn read(device: &Loop, flags: &[&str]) {
    let mut arguments = vec!["of=/dev/null", "bs=1M", "status=none"];
    let source = format!("if={}", device.path());
    arguments.push(&source);
    arguments.extend(flags);
    run("dd", &arguments);
}

fn during(work: impl FnOnce()) -> Snapshot {
    let before = Snapshot::take(&System::live());
    work();
    Snapshot::take(&System::live()).since(&before)
}

#[test]
#[ignore = "needs root and loop devices"]
fn direct_reads_reach_the_device() {
    let (device, target) = filled(&["--direct-io=on"]);
    assert_eq!(
        (target.devices[0].kind, target.size_bytes),
        (DeviceKind::Loop, Some(SIZE))
    );
    // udev looks at a device that was written, a moment later.
    let snapshot = (0..10)
        .map(|_| during(|| read(&device, &["iflag=direct"])))
        .find(|snapshot| {
            moved(std::slice::from_ref(&target), snapshot)
                .unwrap()
                .read_bytes
                == SIZE
        })
        .expect("a time when nobody else reads");
    let asked = Traffic {
        read_bytes: SIZE,
        written_bytes: 0,
    };
    assert_eq!(
        served_from_cache(
            asked,
            moved(std::slice::from_ref(&target), &snapshot).unwrap()
        ),
        []
    );
    let disks = disk_util(&[target], &snapshot, Duration::from_secs(1));
    assert_eq!(
        disks.len(),
        1,
        "the disk under the file is no part of fio's list"
    );
    assert_eq!((disks[0].sectors[0] * 512, disks[0].ios[1]), (SIZE, 0));
}

#[test]
#[ignore = "needs root and loop devices"]
fn buffered_reads_of_the_same_data_are_caught() {
    let (device, target) = filled(&[]);
    let snapshot = during(|| {
        read(&device, &[]);
        read(&device, &[]);
    });
    let asked = Traffic {
        read_bytes: 2 * SIZE,
        written_bytes: 0,
    };
    let moved = moved(&[target], &snapshot).unwrap();
    assert!(moved.read_bytes <= SIZE, "{moved:?}");
    let verdicts = served_from_cache(asked, moved);
    assert_eq!(
        verdicts
            .iter()
            .map(|verdict| verdict.kind)
            .collect::<Vec<_>>(),
        [VerdictKind::ServedFromCache]
    );
}
