//! Memory use of long runs.

#[path = "program/common.rs"]
mod common;

use common::Scratch;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Returns the peak memory of a process so far; `None`: it has ended.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs the program to its end, and returns its peak memory.
fn peak_of_command_kib(scratch: &Scratch, words: &[&str]) -> u64 {
    let mut child = scratch
        .command(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    loop {
        peak = peak_kib(&child).map_or(peak, |kib| kib.max(peak));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{words:?}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Maximum over several measurements. The last sample of a run can precede the last growth, which
/// would make a short run appear smaller than it is.
fn max_peak_kib(peak_kib: impl Fn() -> u64) -> u64 {
    (0..3).map(|_| peak_kib()).max().unwrap_or(0)
}

/// Runs a simulated job of this duration and rate, and returns the peak memory.
fn peak_of_run_kib(seconds: u32, rate_iops: u32) -> u64 {
    let scratch = Scratch::new(&format!("memory-{seconds}-{rate_iops}"));
    let words = "fio --name=a --ioengine=sim --size=1g --rw=randread --iodepth=8 --time_based";
    let (runtime, rate) = (
        format!("--runtime={seconds}"),
        format!("--rate_iops={rate_iops}"),
    );
    let words: Vec<&str> = words.split(' ').chain([&*runtime, &*rate]).collect();
    peak_of_command_kib(&scratch, &words)
}

/// With all buckets of its histogram an interval takes 36 KiB, and more than twice that when
/// stored. The shorter run has the same memory for the history, so the difference excludes it.
#[test]
fn run_memory_grows_little_per_interval() {
    const MOST_BYTES_PER_INTERVAL: f64 = 256.0;
    let (short, long) = (3600, 6 * 3600);
    let short_kib = max_peak_kib(|| peak_of_run_kib(short, 20));
    let grown_kib = peak_of_run_kib(long, 20).saturating_sub(short_kib);
    let each = grown_kib as f64 * 1024.0 / f64::from(long - short);
    assert!(each < MOST_BYTES_PER_INTERVAL, "{each} bytes");
}

/// Intervals must be spilled during a step: in memory each takes 170 bytes.
#[test]
fn load_memory_grows_little_per_interval() {
    const MOST_BYTES_PER_INTERVAL: f64 = 80.0;
    const DEVICE: &str = "sim:read_us=500,read_dist=exp,parallel=4,seed=3";
    let peak_kib = |hours: u32| {
        let scratch = Scratch::new(&format!("memory-load-{hours}"));
        let runtime = format!("{hours}h");
        let words = ["load", DEVICE, "--rates", "2", "--size", "64m", "--no-save"];
        peak_of_command_kib(&scratch, &[&words[..], &["--runtime", &runtime]].concat())
    };
    let (short, long) = (1, 24);
    let short_kib = max_peak_kib(|| peak_kib(short));
    let grown_kib = peak_kib(long).saturating_sub(short_kib);
    let each = grown_kib as f64 * 1024.0 / (f64::from(long - short) * 3600.0);
    assert!(each < MOST_BYTES_PER_INTERVAL, "{each} bytes");
}

/// The memory bound does not depend on the length of the run.
#[test]
#[ignore = "simulates weeks, which takes minutes: ./test --full"]
fn week_at_one_second_intervals_takes_at_most_64_mib() {
    const WEEK_S: u32 = 7 * 24 * 3600;
    const MOST_KIB: u64 = 64 << 10;
    for rate_iops in [20, 200] {
        let peak = peak_of_run_kib(WEEK_S, rate_iops);
        assert!(peak <= MOST_KIB, "{rate_iops} IOPS: {peak} KiB");
    }
}
