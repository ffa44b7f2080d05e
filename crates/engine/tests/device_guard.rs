//! Whether devices may be written: on captured machines, and on real loop devices.

#[path = "common/machine.rs"]
mod machine;

use iosonde_engine::device::guard::{
    Obstacle, Refusal, check_writable, device_in_use, file_in_use,
};
use iosonde_result::host::DeviceNumber;
use machine::Machine;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

fn in_use(machine: &Machine, number: &str) -> Vec<String> {
    let number: DeviceNumber = number.parse().unwrap();
    device_in_use(&machine.system(), number)
        .iter()
        .map(Obstacle::to_string)
        .collect()
}

#[test]
fn a_disk_is_in_use_by_its_partitions() {
    let machine = Machine::unpack("nvme-partition");
    let expected = [
        "/dev/nvme0n1p1 is mounted at /",
        "/dev/nvme0n1p1 is mounted at /srv/data",
    ];
    assert_eq!(in_use(&machine, "259:0"), expected);
    assert_eq!(in_use(&machine, "259:2"), expected);
}

#[test]
fn a_member_is_in_use_by_all_that_is_made_of_it() {
    let machine = Machine::unpack("lvm-on-crypt-on-md");
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
fn a_file_system_with_a_number_of_its_own_is_known_by_its_source() {
    let machine = Machine::unpack("overlay-on-btrfs");
    assert_eq!(in_use(&machine, "254:0"), ["/dev/vda is mounted at /"]);
}

#[test]
fn the_file_of_a_loop_device_is_in_use() {
    let machine = Machine::unpack("loop-on-ext4");
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
fn a_swap_file_is_in_use() {
    let machine = Machine::unpack("loop-on-ext4");
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

/// A loop device over a sparse file; detached at the end.
struct Loop {
    device: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn new(options: &[&str]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(16 << 20).unwrap();
        Self {
            device: attach(file.path(), options),
            _file: file,
        }
    }

    fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", self.path()]);
    }
}

fn attach(file: &Path, options: &[&str]) -> PathBuf {
    let mut arguments = vec!["--find", "--show"];
    arguments.extend(options);
    arguments.push(file.to_str().unwrap());
    PathBuf::from(run("losetup", &arguments).trim())
}

fn run(program: &str, arguments: &[&str]) -> String {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", path)
        .output()
        .expect(program);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

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
    run("umount", &[dir.path().to_str().unwrap()]);
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
fn a_device_and_a_file_under_a_loop_device_are_refused() {
    let lower = Loop::new(&[]);
    let upper = Loop {
        device: attach(&lower.device, &[]),
        _file: tempfile::NamedTempFile::new().unwrap(),
    };
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
        &refused(lower._file.path())[..],
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
