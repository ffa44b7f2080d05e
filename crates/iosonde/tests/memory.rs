//! How much memory a long run takes.

mod common;

use common::Scratch;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The most memory that a program has had until now; `None` once it has ended.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs a simulated job of so many seconds to its end, and gives the most memory that it has had.
fn peak_of_run_kib(seconds: u32) -> u64 {
    let scratch = Scratch::new(&format!("memory-{seconds}"));
    let words = "fio --name=a --ioengine=sim --size=1g --rw=randread --rate_iops=20 --time_based";
    let runtime = format!("--runtime={seconds}");
    let words: Vec<&str> = words.split(' ').chain([&*runtime]).collect();
    let mut command = scratch.command(&words);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    loop {
        peak = peak_kib(&child).map_or(peak, |kib| kib.max(peak));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Each interval had all buckets of its histogram, 36 KiB, and more than twice that when the run was stored.
#[test]
fn memory_of_a_long_run_grows_by_little_for_each_interval() {
    const SECONDS: u32 = 3600;
    const MOST_KIB_PER_INTERVAL: f64 = 2.0;
    let (short, long) = (peak_of_run_kib(1), peak_of_run_kib(SECONDS));
    let each = long.saturating_sub(short) as f64 / f64::from(SECONDS);
    assert!(
        each < MOST_KIB_PER_INTERVAL,
        "{each} KiB: {short} to {long}"
    );
}
