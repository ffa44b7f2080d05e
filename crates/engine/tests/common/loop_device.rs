//! Loop devices for tests that run as root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A loop device over its own file, detached in the drop.
pub(crate) struct Loop {
    /// Device node in `/dev`.
    pub(crate) device: PathBuf,
    file: tempfile::NamedTempFile,
}

impl Loop {
    /// Attaches a device of 16 MiB with these options of losetup.
    pub(crate) fn new(options: &[&str]) -> Self {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        file.as_file().set_len(16 << 20).unwrap();
        Self {
            device: attach(file.path(), options),
            file,
        }
    }

    /// Attaches a device over another one.
    pub(crate) fn over(lower: &Loop) -> Self {
        Self {
            device: attach(&lower.device, &[]),
            file: tempfile::NamedTempFile::new().unwrap(),
        }
    }

    /// Path of the device node.
    pub(crate) fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// Backing file.
    pub(crate) fn file(&self) -> &Path {
        self.file.path()
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

/// Runs a program that must succeed. Returns its standard output.
///
/// A test that starts a program inherits all open files to it until its exec, also those of an
/// exclusively opened device. A device that a test attaches anew may belong to another test program
/// meanwhile. So the command is retried for ten seconds while a device is busy.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    for tries_left in (0..200).rev() {
        let output = Command::new(program)
            .args(arguments)
            .env("PATH", &path)
            .output()
            .expect(program);
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let is_in_use = words.contains("in use") || words.contains("busy");
        assert!(
            is_in_use && tries_left > 0,
            "{program} {arguments:?}: {words}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    unreachable!("the last try returns or panics")
}
