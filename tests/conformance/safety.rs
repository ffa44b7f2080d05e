//! A block device with data is not written without consent that names it.
//!
//! fio overwrites any device that is not mounted, so most of these tests check iosonde alone.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use iosonde_e2e::device::{Loop, Swap, Zram, tool};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::process_state::is_stopped;
use iosonde_e2e::program::{Invocation, Run, Running, iosonde};
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours, require};
use rustix::process::Signal;

const SIZE_BYTES: usize = 64 << 20;

/// Offset and bytes of a format's signature.
type Mark<'a> = (u64, &'a [u8]);

/// Checks that a write to a device is refused with these words and changes no byte.
fn is_refused(scratch: &Scratch, device: &Loop, words: &[&str]) {
    let before = fs::read(device.path()).expect("a device to read");
    let line = format!(
        "--name=job --filename={} --rw=randwrite --bs=4k --io_size=1m --direct=1",
        device.path().display()
    );
    let run = Program::subject().line(scratch, &line).run();
    assert!(!run.status.success(), "{words:?} was not seen: {run}");
    let path = device.path().to_string_lossy();
    run.refused_with(&[&[path.as_ref()], words].concat());
    assert!(
        fs::read(device.path()).expect("a device to read") == before,
        "the device has changed"
    );
}

fn blank(scratch: &Scratch) -> Loop {
    let image = scratch.work().join("image");
    fs::write(&image, vec![0; SIZE_BYTES]).expect("an image");
    Loop::new(&image)
}

/// Writes bytes where a format has its signature.
fn sign(device: &Path, marks: &[Mark]) {
    let node = fs::OpenOptions::new()
        .write(true)
        .open(device)
        .expect("a device to write to");
    for (offset, bytes) in marks {
        node.write_all_at(bytes, *offset).expect("a signature");
    }
    node.sync_all().expect("a device that can be synced");
}

#[test]
fn mounted_device_is_not_written() {
    require!(Root);
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    let mount = Mount::ext4(scratch.out().join("mounted"), device.path());
    let line = format!(
        "--name=job --filename={} --rw=randwrite --bs=4k --io_size=1m",
        device.path().display()
    );
    let by_fio = Program::Fio.line(&scratch, &line).run();
    // fio refuses as well, but exits with 0.
    assert!(by_fio.stderr.contains("mounted"), "{by_fio}");
    ours!();
    let run = Program::subject().line(&scratch, &line).run();
    run.refused_with(&[
        "mounted",
        &device.path().to_string_lossy(),
        &mount.dir().to_string_lossy(),
    ]);
}

#[test]
fn mounted_device_is_read() {
    require!(Root);
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    let _mount = Mount::ext4(scratch.out().join("mounted"), device.path());
    for program in Program::both() {
        let line = format!(
            "--name=job --filename={} --rw=randread --bs=4k --io_size=1m --direct=1",
            device.path().display()
        );
        let document = program.line(&scratch, &line).json();
        assert_eq!(document["jobs"][0]["read"]["total_ios"], 256, "{program:?}");
    }
}

#[test]
fn blank_device_is_written() {
    require!(Root);
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    for program in Program::both() {
        let line = format!(
            "--name=job --filename={} --rw=randwrite --bs=4k --io_size=1m --direct=1",
            device.path().display()
        );
        let document = program.line(&scratch, &line).json();
        assert_eq!(
            document["jobs"][0]["write"]["total_ios"], 256,
            "{program:?}"
        );
    }
}

#[test]
fn file_systems_are_recognised() {
    require!(Root);
    ours!();
    // mkfs.xfs requires 300 MB; the others accept that size.
    for (make, name) in [
        (&["mkfs.ext4", "-q", "-F"][..], "ext4"),
        (&["mkfs.xfs", "-q", "-f"], "xfs"),
        (&["mkswap"], "swap"),
    ] {
        let scratch = Scratch::shared();
        let image = scratch.work().join("image");
        fs::File::create(&image)
            .and_then(|file| file.set_len(320 << 20))
            .expect("an image");
        let device = Loop::new(&image);
        tool(&[make, &[&device.path().to_string_lossy()]].concat());
        is_refused(&scratch, &device, &[name]);
    }
}

#[test]
fn consent_is_limited_to_named_device() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    tool(&["mkfs.ext4", "-q", "-F", &device.path().to_string_lossy()]);
    let path = device.path().to_string_lossy();
    let line = format!("--name=job --filename={path} --rw=write --bs=4k --size=1m");
    let run = |consent: &str| {
        let line = format!("{consent}{line}");
        Program::subject().line(&scratch, &line).run()
    };
    let asked = format!("--allow-overwrite={path}");
    run("").refused_with(&[&asked]);
    run("--allow-overwrite=/dev/loop-control ").refused_with(&[&asked]);
    for consent in [format!("{asked} "), format!("--allow-overwrite {path} ")] {
        let done = run(&consent);
        assert!(done.status.success(), "{done}");
    }
}

/// The contents of a device, bypassing the cache of a file system on it.
fn stored(device: &Loop) -> Vec<u8> {
    let image = fs::OpenOptions::new().read(true).open(device.path());
    let mut bytes = vec![0; SIZE_BYTES];
    let image = image.expect("a device to read");
    image.read_exact_at(&mut bytes, 0).expect("all of it");
    bytes
}

#[test]
fn consent_to_overwrite_excludes_mounted_device() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    let mount = Mount::ext4(scratch.out().join("mounted"), device.path());
    tool(&["mount", "-o", "remount,ro", &mount.dir().to_string_lossy()]);
    let path = device.path().to_string_lossy().into_owned();
    let consent = format!("--allow-overwrite={path}");
    let line = format!("{consent} --name=job --filename={path} --rw=write --bs=64k --size=16m");
    let before = stored(&device);
    let run = Program::subject().line(&scratch, &line).run();
    run.refused_with(&["is mounted at", &mount.dir().to_string_lossy(), "umount"]);
    assert!(!run.stderr.contains("--allow-in-use"), "{run}");
    let study = format!("pts iops {path} --allow-overwrite {path} --time-scale 0.01");
    let study = Invocation::new(&scratch, vec![iosonde().into()])
        .and(&study)
        .run();
    study.refused_with(&["is mounted at", "umount"]);
    assert!(stored(&device) == before, "the device has changed");
    // `--allow-in-use` without `--allow-overwrite` is an error.
    let alone = line.replace("--allow-overwrite", "--allow-in-use");
    let alone = Program::subject().line(&scratch, &alone).run();
    alone.refused_with(&["--allow-in-use", &consent.replace('=', " ")]);
    let both = format!("--allow-in-use={path} {line}");
    let _ = Program::subject().line(&scratch, &both).ok();
    assert!(stored(&device) != before, "the device was not written");
}

/// Consent to overwrite does not include a device in use: nothing is written.
fn is_in_use_beside_consent(scratch: &Scratch, device: &Path, words: &[&str]) {
    let path = device.to_string_lossy();
    let line = format!(
        "--allow-overwrite={path} --name=job --filename={path} --rw=randwrite --bs=4k --io_size=1m"
    );
    let run = Program::subject().line(scratch, &line).run();
    run.refused_with(&[&[path.as_ref()], words].concat());
    assert!(!run.stderr.contains("--allow-in-use"), "{run}");
}

#[test]
fn swap_space_in_use_is_not_written_with_consent() {
    require!(Root, Zram);
    ours!();
    let scratch = Scratch::shared();
    let device = Zram::new(SIZE_BYTES);
    let _swap = Swap::on(device.path());
    is_in_use_beside_consent(&scratch, &device.path(), &["swap space", "swapoff"]);
}

/// /proc/mounts names only the first device of a file system.
#[test]
fn second_device_of_mounted_file_system_is_not_written() {
    require!(Root, Btrfs);
    ours!();
    let scratch = Scratch::shared();
    let [first, second] = ["first", "second"].map(|name| {
        let image = scratch.out().join(name);
        fs::File::create(&image)
            .and_then(|file| file.set_len(200 << 20))
            .expect("an image");
        Loop::new(&image)
    });
    let dir = scratch.out().join("mounted");
    let _mount = Mount::btrfs(dir, [first.path(), second.path()]);
    is_in_use_beside_consent(&scratch, second.path(), &["exclusively", "lsblk"]);
}

#[test]
fn device_cannot_be_mounted_during_write() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    tool(&["mkfs.ext4", "-q", "-F", &device.path().to_string_lossy()]);
    let path = device.path().to_string_lossy().into_owned();
    let dir = scratch.out().join("mounted");
    fs::create_dir(&dir).expect("a directory to mount on");
    let mount = || {
        let mut mount = Command::new("mount");
        mount.arg(device.path()).arg(&dir);
        mount.output().expect("mount starts")
    };
    // Beyond the first blocks of the file system; several workers share the exclusive open.
    let line = format!(
        "--allow-overwrite={path} --name=job --filename={path} --rw=randwrite --bs=4k --offset=63m \
         --size=512k --numjobs=3 --rate_iops=200 --time_based --runtime=600"
    );
    let mut running = Program::subject().line(&scratch, &line).start();
    let stat = format!("/sys/block/{}/stat", path.trim_start_matches("/dev/"));
    let written = || {
        let counters = fs::read_to_string(&stat).expect("counters");
        let writes = counters.split_whitespace().nth(4).map(str::to_owned);
        writes
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let before = written();
    running.must_reach("writes", |_| written() > before + 50);
    let refused = mount();
    running.signal(Signal::INT);
    let run = running.wait();
    let reason = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "it was mounted: {run}");
    assert!(
        reason.contains("already mounted or") || reason.contains("busy"),
        "{reason}"
    );
    let mounted = mount();
    assert!(mounted.status.success(), "{mounted:?}");
    tool(&["umount", &dir.to_string_lossy()]);
}

#[test]
fn device_mounted_before_later_job_is_not_written() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    let path = device.path().to_string_lossy().into_owned();
    let waiting = write_wait_script(&scratch, "mounted-now");
    let first = ["--name=first", "--filename=file", "--size=1m", "--rw=read"].map(str::to_owned);
    let waits = [format!("--exec_postrun={waiting}")];
    let second = format!("--name=second --stonewall --filename={path} --size=16m --rw=write");
    let second = second.split(' ').map(str::to_owned);
    let words = first.into_iter().chain(waits).chain(second);
    let mut running = Program::subject().args(&scratch, words).start();
    // The second job is checked before the layout of the first.
    let file = scratch.work().join("file");
    running.must_reach("the first job", |_| {
        fs::metadata(&file).is_ok_and(|file| file.len() == 1 << 20)
    });
    let mount = Mount::ext4(scratch.out().join("mounted"), device.path());
    tool(&["mount", "-o", "remount,ro", &mount.dir().to_string_lossy()]);
    let before = stored(&device);
    scratch.write("mounted-now", "");
    let run = running.wait();
    run.refused_with(&["is mounted at", &mount.dir().to_string_lossy()]);
    assert!(stored(&device) == before, "the device has changed");
}

#[test]
fn only_discarding_character_devices_are_written() {
    require!(Root);
    let scratch = Scratch::shared();
    for program in Program::both() {
        let size = "--size=64k --bs=4k";
        let write = format!("--name=job --filename=/dev/null --rw=write {size}");
        let document = program.line(&scratch, &write).json();
        assert_eq!(document["jobs"][0]["write"]["total_ios"], 16, "{program:?}");
        let read = format!("--name=job --filename=/dev/zero --rw=read {size}");
        let document = program.line(&scratch, &read).json();
        assert_eq!(document["jobs"][0]["read"]["total_ios"], 16, "{program:?}");
    }
    ours!();
    // A write to it would be harmless.
    let write = "--name=job --filename=/dev/random --rw=write --size=64k --bs=4k";
    let run = Program::subject().line(&scratch, write).run();
    run.refused_with(&["character device", "--allow-overwrite=/dev/random"]);
    let agreed = format!("--allow-overwrite=/dev/random {write}");
    let document = Program::subject().line(&scratch, &agreed).json();
    assert_eq!(document["jobs"][0]["write"]["total_ios"], 16);
}

#[test]
fn other_signatures_are_recognised() {
    require!(Root);
    ours!();
    // Offsets and bytes follow the definitions of the formats.
    let mut partition = [0_u8; 16];
    partition[4] = 0x83;
    partition[8] = 1;
    partition[12] = 200;
    let cases: [(&str, Vec<Mark>); 6] = [
        (
            "partition table",
            vec![(446, &partition), (510, &[0x55, 0xaa])],
        ),
        (
            "partition table",
            vec![(510, &[0x55, 0xaa]), (512, b"EFI PART\0\0\x01\0\x5c\0\0\0")],
        ),
        (
            "LVM",
            vec![(512, b"LABELONE\x01\0\0\0\0\0\0\0"), (536, b"LVM2 001")],
        ),
        (
            "RAID",
            vec![
                (4096, &[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]),
                (4096 + 144, &[8, 0, 0, 0, 0, 0, 0, 0]),
            ],
        ),
        ("LUKS", vec![(0, b"LUKS\xba\xbe\0\x01")]),
        ("Ceph", vec![(0, b"bluestore block device\n")]),
    ];
    for (name, marks) in cases {
        let scratch = Scratch::shared();
        let device = blank(&scratch);
        sign(device.path(), &marks);
        is_refused(&scratch, &device, &[name]);
    }
}

#[test]
fn exclusively_opened_device_is_not_written() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    let exclusively = i32::try_from(rustix::fs::OFlags::EXCL.bits()).expect("a flag");
    let _holder = fs::OpenOptions::new()
        .read(true)
        .custom_flags(exclusively)
        .open(device.path())
        .expect("a device to hold");
    is_refused(&scratch, &device, &[]);
}

#[test]
fn read_only_mode_writes_nothing() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let run = program
            .line(&scratch, "--readonly --name=job --size=64k --rw=write")
            .run();
        run.refused_with(&["read"]);
        assert_eq!(scratch.files(), Vec::<String>::new(), "{program:?}");
    }
}

#[test]
fn read_only_mode_refuses_layout() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let user = scratch.work().join("user");
        fs::write(&user, "precious data").expect("a file");
        let small = "--readonly --name=job --filename=user --size=64k --rw=randread";
        program.line(&scratch, small).run().refused_with(&["read"]);
        let missing = "--readonly --name=job --filename=absent --size=64k --rw=randread";
        program
            .line(&scratch, missing)
            .run()
            .refused_with(&["read"]);
        assert_eq!(scratch.files(), ["user"], "{program:?}");
        assert_eq!(
            fs::read(&user).expect("the file"),
            b"precious data",
            "{program:?}"
        );
    }
}

#[test]
fn extended_file_keeps_its_contents() {
    // fio overwrites all of it.
    ours!();
    let scratch = Scratch::shared();
    let user = scratch.work().join("user");
    fs::write(&user, "precious data").expect("a file");
    let line = "--name=job --filename=user --size=5m --bs=64k --rw=randread";
    let _ = Program::subject().line(&scratch, line).ok();
    let now = fs::read(&user).expect("the file");
    assert_eq!((now.len(), &now[..13]), (5 << 20, &b"precious data"[..]));
    let holes = now[13..]
        .chunks(4096)
        .filter(|block| block.iter().all(|byte| *byte == 0));
    assert_eq!(holes.count(), 0, "the rest is data");
}

/// Writes a script that waits until a file exists, for at most ten minutes. Returns the command
/// that runs it.
fn write_wait_script(scratch: &Scratch, name: &str) -> String {
    let script = format!("for i in $(seq 6000); do test -e {name} && exit; sleep 0.1; done\n");
    scratch.write("wait.sh", script);
    "sh wait.sh".to_owned()
}

/// Waits until the first job of a run has created `a`.
fn wait_for_first_file(scratch: &Scratch, running: &mut Running) {
    let first = scratch.work().join("a");
    running.must_reach("the first file", |_| first.exists());
}

/// Checks that a run was refused because another program had created `b`, which is unchanged.
fn check_kept_file(scratch: &Scratch, run: &Run) {
    run.refused_with(&[
        "b: another program created a file of this name",
        "use another file",
    ]);
    let appeared = fs::read(scratch.work().join("b")).expect("the file of others");
    assert_eq!(appeared, b"precious");
}

/// Starts a run, and stops it while it has created `a` but not `b`. Then another program creates
/// `b`, and the run goes on.
fn run_beside_new_file(line: &str) -> Result<(Scratch, Run), String> {
    let scratch = Scratch::shared();
    let mut running = Program::subject().line(&scratch, line).start();
    wait_for_first_file(&scratch, &mut running);
    // On a busy machine the run may create the other file first.
    running.signal(Signal::STOP);
    let is_in_time =
        running.until(|running| is_stopped(running.pid())) && !scratch.work().join("b").exists();
    ensure(is_in_time, || "the run has created both files".to_owned())?;
    scratch.write("b", "precious");
    running.signal(Signal::CONT);
    let run = running.wait();
    Ok((scratch, run))
}

#[test]
fn file_created_during_layout_is_kept() {
    ours!();
    let line = "--rw=read --bs=64k --name=a --filename=a --size=1g --name=b --filename=b --size=1m";
    one_good_try(|| {
        let (scratch, run) = run_beside_new_file(line)?;
        check_kept_file(&scratch, &run);
        assert_eq!(
            scratch.files(),
            ["b"],
            "the file that was laid out is removed"
        );
        Ok(())
    });
}

#[test]
fn file_created_before_open_is_kept() {
    ours!();
    let line = "--rw=write --bs=64k --size=1m --create_on_open=1 --name=a --filename=a --rate=512k \
                --name=b --filename=b --stonewall";
    one_good_try(|| {
        let (scratch, run) = run_beside_new_file(line)?;
        check_kept_file(&scratch, &run);
        Ok(())
    });
}
