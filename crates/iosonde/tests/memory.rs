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

/// Runs the program to its end, and gives the most memory that it has had.
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

/// Runs a simulated job of so many seconds at a rate to its end, and gives the most memory that it has had.
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

/// Each interval had all buckets of its histogram, 36 KiB, and more than twice that when the run was stored. The history's own memory
/// is the same for the shorter one.
#[test]
fn memory_of_a_long_run_grows_by_little_for_each_interval() {
    const MOST_BYTES_PER_INTERVAL: f64 = 256.0;
    let (short, long) = (3600, 6 * 3600);
    let grown_kib = peak_of_run_kib(long, 20).saturating_sub(peak_of_run_kib(short, 20));
    let each = grown_kib as f64 * 1024.0 / f64::from(long - short);
    assert!(each < MOST_BYTES_PER_INTERVAL, "{each} bytes");
}

/// A step of a load study held all intervals of its run at once, 170 bytes each.
#[test]
fn memory_of_a_long_load_grows_by_little_for_each_interval() {
    const MOST_BYTES_PER_INTERVAL: f64 = 80.0;
    const DEVICE: &str = "sim:read_us=500,read_dist=exp,parallel=4,seed=3";
    let peak_kib = |hours: u32| {
        let scratch = Scratch::new(&format!("memory-load-{hours}"));
        let runtime = format!("{hours}h");
        let words = ["load", DEVICE, "--rates", "2", "--size", "64m", "--no-save"];
        peak_of_command_kib(&scratch, &[&words[..], &["--runtime", &runtime]].concat())
    };
    let (short, long) = (1, 24);
    let grown_kib = peak_kib(long).saturating_sub(peak_kib(short));
    let each = grown_kib as f64 * 1024.0 / (f64::from(long - short) * 3600.0);
    assert!(each < MOST_BYTES_PER_INTERVAL, "{each} bytes");
}

/// What a machine has room for, whatever the length of the run.
#[test]
#[ignore = "simulates weeks, which takes minutes: ./test --full"]
fn week_at_one_second_intervals_takes_64_mib_at_most() {
    const WEEK_S: u32 = 7 * 24 * 3600;
    const MOST_KIB: u64 = 64 << 10;
    for rate_iops in [20, 200] {
        let peak = peak_of_run_kib(WEEK_S, rate_iops);
        assert!(peak <= MOST_KIB, "{rate_iops} IOPS: {peak} KiB");
    }
}
