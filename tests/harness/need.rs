//! Requirements of a test on the machine, and skips where one is missing.
//!
//! A skipped test appends its reason to the file named by `IOSONDE_SKIP_LOG`, where `./test` counts
//! it. With `CI=true` a missing requirement is a failure, so that no skip goes unnoticed.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, thread};

/// A capability that some machines or users lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The rights to mount, to make devices and to move processes between control groups.
    Root,
    /// Compressed memory disks.
    Zram,
    /// The file system btrfs, in the kernel and its tools.
    Btrfs,
    /// The block layer's throttle, in either generation of control groups.
    Throttle,
    /// File systems in user space, nbdkit and nbdfuse.
    Nbdfuse,
    /// File systems in user space, without nbdkit.
    Fuse,
    /// Bounds on processor time, in either generation of control groups.
    CpuQuota,
    /// Bounds on memory, in either generation of control groups.
    MemoryLimit,
    /// Control groups of the second generation, which can be frozen.
    Freezer,
    /// A hypervisor below this machine.
    VirtualMachine,
    /// sysstat's sar.
    Sar,
    /// strace, and the right to trace.
    Strace,
    /// Debian's example jobs for fio.
    FioExamples,
    /// fio-plot, which reads the files that sweeps export.
    FioPlot,
    /// A browser without windows.
    Chromium,
}

impl Need {
    /// The reason why the need is not met; `None` if it is met.
    fn lacking(self) -> Option<String> {
        let exists = |path: &str| Path::new(path).exists();
        let met = match self {
            Need::Root => rustix::process::geteuid().is_root(),
            Need::Zram => exists("/sys/class/zram-control/hot_add"),
            Need::Btrfs => has_btrfs() && on_path("mkfs.btrfs"),
            Need::Throttle => crate::throttle::hierarchy().is_some(),
            Need::Nbdfuse => exists("/dev/fuse") && on_path("nbdkit") && on_path("nbdfuse"),
            Need::Fuse => exists("/dev/fuse"),
            Need::CpuQuota => crate::throttle::cpu_hierarchy().is_some(),
            Need::MemoryLimit => crate::throttle::memory_hierarchy().is_some(),
            Need::Freezer => crate::throttle::freezer().is_some(),
            Need::VirtualMachine => has_hypervisor(),
            Need::Sar => on_path("sar"),
            Need::Strace => traces(),
            Need::FioExamples => fio_examples().is_dir(),
            Need::FioPlot => Path::new(&fio_plot()).is_file() || on_path("fio-plot"),
            Need::Chromium => on_path("chromium-headless-shell"),
        };
        (!met).then(|| format!("needs {}", self.description()))
    }

    fn description(self) -> &'static str {
        match self {
            Need::Root => "root",
            Need::Zram => "zram (kernel module zram)",
            Need::Btrfs => "btrfs in the kernel, and the package btrfs-progs",
            Need::Throttle => "block I/O throttling by control groups",
            Need::Nbdfuse => "/dev/fuse and the packages nbdkit and libnbd-bin",
            Need::Fuse => "/dev/fuse",
            Need::CpuQuota => "bounds on processor time by control groups",
            Need::MemoryLimit => "bounds on memory by control groups",
            Need::Freezer => "control groups of the second generation",
            Need::VirtualMachine => "a virtual machine",
            Need::Sar => "the package sysstat",
            Need::Strace => "the package strace, and the right to trace programs",
            Need::FioExamples => "the package fio-examples",
            Need::FioPlot => "fio-plot (pip install fio-plot; IOSONDE_FIO_PLOT names the program)",
            Need::Chromium => "the package chromium-headless-shell",
        }
    }
}

/// Directory of the job files of Debian's `fio-examples`; `IOSONDE_FIO_EXAMPLES` overrides it.
pub fn fio_examples() -> &'static Path {
    static DIR: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    DIR.get_or_init(|| {
        env::var_os("IOSONDE_FIO_EXAMPLES")
            .map_or_else(|| "/usr/share/doc/fio/examples".into(), Into::into)
    })
}

/// The program fio-plot; `IOSONDE_FIO_PLOT` overrides its path.
#[must_use]
pub fn fio_plot() -> String {
    env::var("IOSONDE_FIO_PLOT").unwrap_or_else(|_| "fio-plot".to_owned())
}

/// Whether all needs are met. If not, the calling test counts as skipped and must return.
///
/// # Panics
/// With `CI=true` if a need is not met.
#[must_use]
pub fn met(needs: &[Need]) -> bool {
    let Some(reason) = needs.iter().find_map(|need| need.lacking()) else {
        return true;
    };
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    assert!(
        env::var("CI").as_deref() != Ok("true"),
        "{test} must run in CI, but {reason}"
    );
    record_skip(&reason.to_string());
    false
}

/// Counts the calling test as skipped. It must return.
///
/// # Panics
/// If the log of skipped tests cannot be written.
pub fn record_skip(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test} {reason}\n");
    eprint!("SKIPPED {line}");
    if let Some(log) = env::var_os("IOSONDE_SKIP_LOG") {
        let mut log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(log)
            .expect("the log of skipped tests can be written");
        log.write_all(line.as_bytes())
            .expect("the log of skipped tests can be written");
    }
}

/// Whether `./test --full` runs, which includes the long tests.
#[must_use]
pub fn is_full() -> bool {
    env::var("IOSONDE_TEST_FULL").as_deref() == Ok("yes")
}

/// Whether the kernel supports btrfs.
fn has_btrfs() -> bool {
    fs::read_to_string("/proc/filesystems").is_ok_and(|known| known.contains("btrfs"))
}

/// Whether strace can trace a program.
fn traces() -> bool {
    let mut traced = Command::new("strace");
    traced.args(["-qq", "-e", "trace=none", "true"]);
    traced.status().is_ok_and(|status| status.success())
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Returns from a test as skipped unless all needs are met.
#[macro_export]
macro_rules! require {
    ($($need:ident),+ $(,)?) => {
        if !$crate::need::met(&[$($crate::Need::$need),+]) {
            return;
        }
    };
}

/// Returns from a test of behaviour that only iosonde has when fio is the program under test.
#[macro_export]
macro_rules! ours {
    () => {
        if $crate::Program::subject().is_fio() {
            eprintln!("not fio's promise");
            return;
        }
    };
}

fn has_hypervisor() -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}
