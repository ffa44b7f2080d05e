//! Records programs instead of running them: the machines of the tests have no rbd module. The
//! files of the kernel, in a directory of the test, change as the programs would change them.

use super::program_runner::{ProgramCall, ProgramFailure, ProgramRunner};
use iosonde_machine::proc_root::System;
use iosonde_result::run_error::ProgramEnding;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A machine without programs.
pub(super) struct FakePrograms {
    root: PathBuf,
    /// Image of the pool `fast` that `rbd map` maps to /dev/rbd0.
    pub(super) image: &'static str,
    /// Namespace of the image.
    pub(super) namespace: Option<&'static str>,
    /// Command lines so far.
    pub(super) calls: Vec<String>,
    /// Start of the command lines that fail, and how often. A failing `rbd map` maps the image.
    pub(super) failing: Option<(&'static str, u32)>,
    /// How they end.
    pub(super) ending: ProgramEnding,
    /// A program that is not installed.
    pub(super) missing: Option<&'static str>,
    /// Number of pauses.
    pub(super) pauses: u32,
}

impl FakePrograms {
    /// A machine with an empty `/proc` and `/sys` in a directory of this name.
    pub(super) fn new(name: &str) -> FakePrograms {
        let name = format!("iosonde-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("proc/self")).unwrap();
        FakePrograms {
            root,
            image: "disk",
            namespace: None,
            calls: Vec::new(),
            failing: None,
            ending: ProgramEnding::Status(16),
            missing: None,
            pauses: 0,
        }
    }

    /// Directory of the test.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn system(&self) -> System {
        System::captured(&self.root)
    }

    /// Loads the kernel's module.
    pub(super) fn load_module(&self) {
        fs::create_dir_all(self.root.join("sys/bus/rbd/devices")).unwrap();
    }

    fn device(&self) -> PathBuf {
        self.root.join("sys/bus/rbd/devices/0")
    }

    fn set_mount(&self, mount_point: Option<&str>) {
        let line = mount_point.map(|mount_point| {
            format!("23 22 252:0 / {mount_point} rw,nosuid,nodev - ext4 /dev/rbd0 rw\n")
        });
        let mountinfo = self.root.join("proc/self/mountinfo");
        fs::write(mountinfo, line.unwrap_or_default()).unwrap();
    }

    fn map(&self) {
        fs::create_dir_all(self.device()).unwrap();
        let files = [
            ("pool", "fast"),
            ("name", self.image),
            ("current_snap", "-"),
            ("cluster_fsid", "f1"),
            ("client_id", "client4123"),
        ];
        for (file, value) in files {
            fs::write(self.device().join(file), format!("{value}\n")).unwrap();
        }
        if let Some(namespace) = self.namespace {
            fs::write(self.device().join("pool_ns"), format!("{namespace}\n")).unwrap();
        }
    }
}

impl Drop for FakePrograms {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl ProgramRunner for FakePrograms {
    fn is_installed(&self, program: &str) -> bool {
        self.missing != Some(program)
    }

    fn run(&mut self, call: &ProgramCall) -> Result<String, ProgramFailure> {
        let line = call.to_string();
        self.calls.push(line.clone());
        let is_map = line.starts_with("rbd map ");
        if is_map {
            self.map();
        }
        if let Some((start, times @ 1..)) = self.failing
            && line.starts_with(start)
        {
            self.failing = Some((start, times - 1));
            return Err(ProgramFailure {
                ending: self.ending.clone(),
                said: "busy".to_owned(),
            });
        }
        match call.program {
            "modprobe" => self.load_module(),
            "mount" => self.set_mount(call.arguments.last().map(String::as_str)),
            "umount" => self.set_mount(None),
            "rbd" if !is_map => fs::remove_dir_all(self.device()).unwrap(),
            _ => {}
        }
        match is_map {
            true => Ok("/dev/rbd0\n".to_owned()),
            false => Ok(String::new()),
        }
    }

    fn pause(&mut self, _time: Duration) {
        self.pauses += 1;
    }
}
