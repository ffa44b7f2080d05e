//! How `./test` cleans up after killed tests.

use std::fs;
use std::mem::ManuallyDrop;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use iosonde_e2e::device::{Loop, tool};
use iosonde_e2e::{Scratch, require};

fn clean_up(dir: &Path) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clean-up.sh");
    let status = Command::new(script).arg(dir).status();
    status.expect("the script starts").success()
}

#[test]
fn leftovers_of_killed_tests_are_removed() {
    require!(Root);
    let scratch = Scratch::shared();
    let dir = scratch.out().join("iosonde-test.killed");
    let mounted = dir.join("deep/mounted");
    fs::create_dir_all(&mounted).expect("a directory");
    tool(&[
        "mount",
        "-t",
        "tmpfs",
        "iosonde-e2e",
        &mounted.to_string_lossy(),
    ]);
    let inner = mounted.join("inner");
    fs::create_dir(&inner).expect("a directory");
    tool(&[
        "mount",
        "-t",
        "tmpfs",
        "iosonde-e2e",
        &inner.to_string_lossy(),
    ]);
    let image = dir.join("image");
    fs::write(&image, vec![0; 1 << 20]).expect("an image");
    // A killed test does not detach its device.
    let device = ManuallyDrop::new(Loop::new(&image));
    assert!(clean_up(&dir));
    assert!(!dir.exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    assert!(!mounts.contains("iosonde-test.killed"), "{mounts}");
    let loops = tool(&[
        "losetup",
        "--list",
        "--noheadings",
        "--output",
        "NAME,BACK-FILE",
    ]);
    let device = device.path().display();
    assert!(!loops.contains("iosonde-test.killed"), "{device}: {loops}");
}

#[test]
fn processes_of_killed_tests_are_killed() {
    let scratch = Scratch::shared();
    let dir = scratch.out().join("iosonde-test.running");
    let below = dir.join("below");
    fs::create_dir_all(&below).expect("a directory");
    // `timeout` makes a process group of its own.
    let mut started = [&dir, &below].map(|temporary| {
        let mut command = Command::new("timeout");
        command.args(["600", "sleep", "600"]);
        command.env("TMPDIR", temporary).spawn().expect("it starts")
    });
    assert!(clean_up(&dir));
    for child in &mut started {
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "{status}");
    }
    assert!(!dir.exists());
}

#[test]
fn foreign_directory_is_not_removed() {
    let scratch = Scratch::shared();
    scratch.write("data", "kept");
    assert!(!clean_up(&scratch.work()));
    assert_eq!(scratch.files(), ["data"]);
}
