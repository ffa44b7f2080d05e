//! Loop devices for tests that run as root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A loop device over a file of its own; detached at the end.
pub(crate) struct Loop {
    /// Its node in `/dev`.
    pub(crate) device: PathBuf,
    file: tempfile::NamedTempFile,
}

impl Loop {
    /// A device of 16 MiB; `options` are losetup's.
    pub(crate) fn new(options: &[&str]) -> Self {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        file.as_file().set_len(16 << 20).unwrap();
        Self {
            device: attach(file.path(), options),
            file,
        }
    }

    /// A device over another one.
    pub(crate) fn over(lower: &Loop) -> Self {
        Self {
            device: attach(&lower.device, &[]),
            file: tempfile::NamedTempFile::new().unwrap(),
        }
    }

    /// Its node as text.
    pub(crate) fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// The file behind it.
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

/// Runs a program that must succeed; its standard output.
///
/// Another test that starts a program keeps copies of all open files for a moment, also of one that holds a device for itself alone.
/// So a device that seems to be in use is tried again.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    for tries_left in (0..20).rev() {
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
