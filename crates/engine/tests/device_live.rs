//! Tests on loop devices: permission to write, bytes moved, and detection of a cache.

#[path = "common/loop_device.rs"]
mod loop_device;

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{
    BlockSize, BytesOrPercent, Engine, Job, PerDirection, Plan, ReadWrite, ReadWriteMode,
};
use iosonde_machine::cache::{ByteTraffic, moved, served_from_cache};
use iosonde_machine::consent::Consent;
use iosonde_machine::disk_util::disk_util;
use iosonde_machine::diskstats::Snapshot;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_machine::write_hold::DeviceHolds;
use iosonde_machine::write_obstacles::{Obstacle, Refusal, check_writable, overridden};
use iosonde_result::host::{DeviceKind, TargetInfo};
use iosonde_result::run::{VerdictKind, WorkerResult};
use iosonde_result::run_error::{IdentityChange, RunError, TargetProblem, WriteRefusal};
use iosonde_result::session::Session;
use loop_device::{Loop, run};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

fn refused(path: &Path) -> Vec<Obstacle> {
    match check_writable(path, &Consent::default()).unwrap_err() {
        Refusal::Obstacles { obstacles, .. } => obstacles,
        other => panic!("{other}"),
    }
}

#[test]
#[ignore = "needs root and loop devices"]
fn device_with_a_file_system_is_refused_without_consent() {
    let device = Loop::new(&[]);
    assert_eq!(
        check_writable(&device.device, &Consent::default()).unwrap(),
        []
    );
    run("mkfs.ext4", &["-q", "-L", "precious", device.path()]);
    let refusal = check_writable(&device.device, &Consent::default()).unwrap_err();
    let WriteRefusal::Obstacles { consent_name, .. } = refusal.cause() else {
        panic!("{refusal:?}");
    };
    assert_eq!(consent_name, device.path());
    let Refusal::Obstacles { path, obstacles } = &refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(*path, device.device);
    let [Obstacle::Carries(signature)] = &obstacles[..] else {
        panic!("{obstacles:?}");
    };
    assert_eq!(signature.kind, "ext4");
    assert_eq!(signature.label.as_deref(), Some("precious"));
}

#[test]
#[ignore = "needs root and loop devices"]
fn consent_by_any_name_covers_only_the_same_device() {
    let (device, other) = (Loop::new(&[]), Loop::new(&[]));
    run("mkswap", &[device.path()]);
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("by-id");
    std::os::unix::fs::symlink(&device.device, &link).unwrap();
    let overridden = check_writable(&device.device, &Consent::to_overwrite([link])).unwrap();
    assert!(matches!(&overridden[..], [Obstacle::Carries(signature)] if signature.kind == "swap"));
    assert!(check_writable(&device.device, &Consent::to_overwrite([&other.device])).is_err());
}

#[test]
#[ignore = "needs root and loop devices"]
fn mounted_device_is_refused_with_its_mount_point() {
    let device = Loop::new(&[]);
    run("mkfs.ext4", &["-q", device.path()]);
    let dir = tempfile::tempdir().unwrap();
    run("mount", &[device.path(), dir.path().to_str().unwrap()]);
    let obstacles = refused(&device.device);
    // Consent to overwrite does not change the refusal, and is not suggested.
    let consent = Consent::to_overwrite([&device.device]);
    let refusal = check_writable(&device.device, &consent).unwrap_err();
    assert_eq!(overridden(&device.device), None);
    let in_use = consent.and_in_use([&device.device]);
    let agreed = check_writable(&device.device, &in_use).unwrap();
    run("umount", &[dir.path().to_str().unwrap()]);
    let lost = overridden(&device.device).unwrap();
    assert!(lost.contains("an ext4 file system"), "{lost}");
    assert!(!refusal.remedy().contains("--allow"), "{refusal:?}");
    assert_eq!(agreed, obstacles);
    let mounted = Obstacle::Mounted {
        device: device.path().into(),
        mount_point: dir.path().canonicalize().unwrap(),
    };
    assert_eq!(obstacles[0], mounted);
    assert!(matches!(&obstacles[1..], [Obstacle::Carries(_)]));
}

/// A hold prevents mounts. The workers of a run share it, and it ends with the last of them.
#[test]
#[ignore = "needs root and loop devices"]
fn device_hold_prevents_mounts_until_the_last_worker_ends() {
    let device = Loop::new(&[]);
    run("mkfs.ext4", &["-q", device.path()]);
    let dir = tempfile::tempdir().unwrap();
    let mount = || {
        let mut mount = std::process::Command::new("mount");
        let mount = mount.args([device.path(), dir.path().to_str().unwrap()]);
        mount.output().unwrap().status.success()
    };
    let consent = Consent::to_overwrite([&device.device]);
    let holds = DeviceHolds::default();
    let (overridden, one) = holds.hold(&device.device, &consent, false).unwrap();
    assert!(matches!(&overridden[..], [Obstacle::Carries(_)]));
    let (_, two) = holds.hold(&device.device, &consent, false).unwrap();
    drop(one);
    // Another run has holds of its own.
    let other = DeviceHolds::default();
    assert!(other.hold(&device.device, &consent, false).is_err());
    assert!(!mount());
    drop(two);
    assert!(mount());
    run("umount", &[dir.path().to_str().unwrap()]);
}

/// The kernel allows a claim on a disk or on its partition, not both. One run may write both.
#[test]
#[ignore = "needs root and loop devices"]
fn run_on_disk_and_partition_holds_the_first_opened() {
    let device = Loop::new(&["--partscan"]);
    // By the kernel alone, which needs no partition table for that.
    for (number, start) in [("1", "2048"), ("2", "12288")] {
        run("addpart", &[device.path(), number, start, "10240"]);
    }
    let part = |number: u32| std::path::PathBuf::from(format!("{}p{number}", device.path()));
    assert!(part(1).exists() && part(2).exists());
    let consent = Consent::to_overwrite([device.device.clone(), part(1), part(2)]);
    let holds = DeviceHolds::default();
    let (_, one) = holds.hold(&part(1), &consent, false).unwrap();
    let (_, two) = holds.hold(&part(2), &consent, false).unwrap();
    let (_, disk) = holds.hold(&device.device, &consent, false).unwrap();
    drop((one, two, disk));
    // A partition may be written while another partition of the disk is in use.
    run("mkfs.ext4", &["-q", part(1).to_str().unwrap()]);
    let dir = tempfile::tempdir().unwrap();
    run(
        "mount",
        &[part(1).to_str().unwrap(), dir.path().to_str().unwrap()],
    );
    let held = holds
        .hold(&part(2), &consent, false)
        .map(|(found, _)| found);
    let whole = holds
        .hold(&device.device, &consent, false)
        .map(|(found, _)| found);
    run("umount", &[dir.path().to_str().unwrap()]);
    assert_eq!(held.unwrap(), []);
    let Err(Refusal::Obstacles { obstacles, .. }) = &whole else {
        panic!("{whole:?}");
    };
    assert!(
        obstacles
            .iter()
            .any(|obstacle| matches!(obstacle, Obstacle::Mounted { .. })),
        "{obstacles:?}"
    );
}

#[test]
#[ignore = "needs root and loop devices"]
fn consent_to_a_disk_excludes_its_replacement() {
    let device = Loop::new(&[]);
    run("mkswap", &[device.path()]);
    let consent = Consent::to_overwrite([&device.device]);
    assert!(check_writable(&device.device, &consent).is_ok());
    run("losetup", &["--detach", device.path()]);
    let file = device.file().to_str().unwrap();
    run("losetup", &[device.path(), file]);
    let refusal = check_writable(&device.device, &consent).unwrap_err();
    let cause = refusal.cause();
    let is_replaced = matches!(
        cause,
        WriteRefusal::OtherDisk {
            change: IdentityChange::Replaced,
            ..
        }
    );
    assert!(is_replaced, "{cause:?}");
    let anew = Consent::to_overwrite([&device.device]);
    assert!(check_writable(&device.device, &anew).is_ok());
}

/// A study runs its cells in one session, over hours.
#[test]
#[ignore = "needs root and loop devices"]
fn session_does_not_write_the_next_disk_of_a_name() {
    let device = Loop::new(&[]);
    run("mkswap", &[device.path()]);
    let mut job = Job::new("cell");
    job.files.filenames = vec![device.path().to_owned()];
    job.files.size = Some(BytesOrPercent::Bytes(1 << 20));
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::Write,
        random: false,
    };
    let plan = Plan {
        jobs: vec![job],
        ..Plan::default()
    };
    let mut session = LocalRunner {
        consent: Consent::to_overwrite([&device.device]),
        ..LocalRunner::default()
    }
    .open();
    session.run(&plan, &mut ()).unwrap();
    session.run(&plan, &mut ()).unwrap();
    run("losetup", &["--detach", device.path()]);
    let other = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    other.as_file().set_len(16 << 20).unwrap();
    run("losetup", &[device.path(), other.path().to_str().unwrap()]);
    let refused = session.run(&plan, &mut ());
    assert!(
        matches!(
            &refused,
            Err(RunError::NoWriteConsent { cause, .. }) if matches!(
                **cause,
                WriteRefusal::OtherDisk {
                    change: IdentityChange::Replaced,
                    ..
                }
            )
        ),
        "{refused:?}"
    );
    assert!(
        std::fs::read(other.path())
            .unwrap()
            .iter()
            .all(|byte| *byte == 0)
    );
}

#[test]
#[ignore = "needs root and loop devices"]
fn device_opened_exclusively_is_refused() {
    use std::os::unix::fs::OpenOptionsExt;
    let device = Loop::new(&[]);
    let holder = File::options()
        .read(true)
        .custom_flags(libc::O_EXCL)
        .open(&device.device)
        .unwrap();
    assert_eq!(refused(&device.device), [Obstacle::Busy]);
    drop(holder);
    assert_eq!(
        check_writable(&device.device, &Consent::default()).unwrap(),
        []
    );
}

#[test]
#[ignore = "needs root and loop devices"]
fn briefly_held_device_is_accepted() {
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
        assert_eq!(
            check_writable(&device.device, &Consent::default()).unwrap(),
            []
        );
    });
}

/// Clones of a job that start together open their device exclusively at the same time.
#[test]
#[ignore = "needs root and loop devices"]
fn concurrent_device_checks_do_not_conflict() {
    let device = Loop::new(&[]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(
                        check_writable(&device.device, &Consent::default()).unwrap(),
                        []
                    );
                }
            });
        }
    });
}

#[test]
#[ignore = "needs root and loop devices"]
fn device_and_file_below_a_loop_device_are_refused() {
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
    let refusal =
        check_writable(&device.device, &Consent::to_overwrite([&device.device])).unwrap_err();
    assert_eq!(refusal.found(), "the device is read-only");
}

const SIZE: u64 = 16 << 20;

/// A loop device full of data, and its description.
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
    // udev reads a written device a moment later.
    let snapshot = (0..10)
        .map(|_| during(|| read(&device, &["iflag=direct"])))
        .find(|snapshot| {
            moved(std::slice::from_ref(&target), snapshot)
                .unwrap()
                .read_bytes
                == SIZE
        })
        .expect("a time without other reads");
    let asked = ByteTraffic {
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
fn repeated_buffered_reads_give_served_from_cache() {
    let (device, target) = filled(&[]);
    let snapshot = during(|| {
        read(&device, &[]);
        read(&device, &[]);
    });
    let asked = ByteTraffic {
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

/// Bytes that a device has discarded.
fn discarded_bytes(device: &Loop) -> u64 {
    let name = device.path().trim_start_matches("/dev/").to_owned();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let sectors = stat.split_whitespace().nth(13).unwrap();
    sectors.parse::<u64>().unwrap() * 512
}

/// Runs 256 trims or pairs of trim and write on a device. Returns the result of the worker.
fn trim(device: &Loop, mode: ReadWriteMode, engine: Engine) -> WorkerResult {
    let mut job = Job::new("trim");
    job.files.filenames = vec![device.path().to_owned()];
    job.files.size = Some(BytesOrPercent::Bytes(16 << 20));
    job.workload.rw = ReadWrite { mode, random: true };
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(64 << 10));
    (job.io.engine, job.io.iodepth, job.io.direct) = (engine, 16, true);
    let plan = Plan {
        jobs: vec![job],
        ..Plan::default()
    };
    let mut session = LocalRunner {
        consent: Consent::to_overwrite([&device.device]),
        ..LocalRunner::default()
    }
    .open();
    let mut workers = session.run(&plan, &mut ()).unwrap().workers;
    assert_eq!(workers[0].error, None);
    workers.remove(0)
}

#[test]
#[ignore = "needs root and loop devices"]
fn trims_by_the_ring_reach_the_device_at_depth() {
    let device = Loop::new(&[]);
    let before = discarded_bytes(&device);
    let worker = trim(&device, ReadWriteMode::Trim, Engine::IoUring);
    assert_eq!(worker.directions.trim.total_ios, 256);
    assert_eq!(worker.directions.trim.io_bytes, 16 << 20);
    assert_eq!(discarded_bytes(&device) - before, 16 << 20);
    let flags = &worker.backend.flags;
    let by_ring = flags.iter().any(|flag| flag == "uring_discard");
    let reason = worker.backend.reason.as_deref().unwrap_or_default();
    let by_call = reason.contains("blocking discards");
    assert_ne!(by_ring, by_call, "{:?}", worker.backend);
    // 16 and more in flight have the fifth class (16 to 31).
    assert!(worker.iodepth_level[4] > 0, "{:?}", worker.iodepth_level);
    let other = trim(&device, ReadWriteMode::Trim, Engine::Libaio);
    assert_eq!(other.directions.trim.total_ios, 256);
}

#[test]
#[ignore = "needs root and loop devices"]
fn trimwrite_by_the_ring_keeps_the_written_data() {
    let device = Loop::new(&["--direct-io=on"]);
    let worker = trim(&device, ReadWriteMode::TrimWrite, Engine::IoUring);
    let (trims, writes) = (&worker.directions.trim, &worker.directions.write);
    assert_eq!(
        (trims.io_bytes, trims.total_ios),
        (writes.io_bytes, writes.total_ios)
    );
    assert!(writes.total_ios > 0);
    let data = std::fs::read(&device.device).unwrap();
    let blocks = data.chunks(64 << 10);
    let written = blocks.filter(|block| block.iter().any(|byte| *byte != 0));
    assert_eq!(
        written.count() as u64,
        writes.total_ios,
        "no trim follows its write"
    );
}

#[test]
#[ignore = "needs root and loop devices"]
fn device_without_atomic_writes_is_refused_before_the_run() {
    let device = Loop::new(&[]);
    let mut job = Job::new("atomic");
    job.files.filenames = vec![device.path().to_owned()];
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::Write,
        random: false,
    };
    (job.io.engine, job.io.direct, job.io.atomic) = (Engine::IoUring, true, true);
    let plan = Plan {
        jobs: vec![job],
        ..Plan::default()
    };
    let mut session = LocalRunner {
        consent: Consent::to_overwrite([&device.device]),
        ..LocalRunner::default()
    }
    .open();
    let refused = session.run(&plan, &mut ());
    assert!(
        matches!(
            &refused,
            Err(RunError::UnusableTarget { cause, .. })
                if matches!(**cause, TargetProblem::NoAtomicWrites { .. })
        ),
        "{refused:?}"
    );
    let data = std::fs::read(&device.device).unwrap();
    assert!(data.iter().all(|byte| *byte == 0));
}
