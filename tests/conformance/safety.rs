//! A block device that carries something is not written without consent that names it.
//!
//! fio writes over any device that is not mounted, so most of these hold iosonde alone to its promise.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use iosonde_e2e::device::{Loop, tool};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::{Program, Scratch, ours, require};

const SIZE_BYTES: usize = 64 << 20;

/// An offset, and the bytes that a format keeps there.
type Mark<'a> = (u64, &'a [u8]);

/// Tries to write to a device; it must be refused with these words, and no byte may have changed.
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

/// Puts bytes where a format keeps its signature.
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
fn a_mounted_device_is_not_written() {
    require!(Root);
    let scratch = Scratch::shared();
    let device = blank(&scratch);
    let mount = Mount::ext4(scratch.out().join("mounted"), device.path());
    let line = format!(
        "--name=job --filename={} --rw=randwrite --bs=4k --io_size=1m",
        device.path().display()
    );
    let by_fio = Program::Fio.line(&scratch, &line).run();
    // fio refuses as well, with an exit status of success.
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
fn a_mounted_device_is_read() {
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
fn a_blank_device_is_written() {
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
    // mkfs.xfs wants 300 MB, which mkfs.ext4 and mkswap take as well.
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
fn the_consent_that_a_refusal_asks_for_is_enough_for_that_device_alone() {
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

#[test]
fn other_signatures_are_recognised() {
    require!(Root);
    ours!();
    // Offsets and bytes are those of the formats' own definitions.
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
fn a_device_that_another_program_holds_is_not_written() {
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
fn read_only_mode_lays_nothing_out() {
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
fn what_a_found_file_holds_is_left_when_it_is_made_larger() {
    // fio writes over all of it.
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
