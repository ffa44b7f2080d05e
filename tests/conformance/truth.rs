//! Speed, latency and errors on targets with known behaviour.

use std::thread;
use std::time::Duration;

use iosonde_e2e::device::{self, Zram};
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::throttle::{Caps, Throttle};
use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, is_full, one_good_try, require};

const MIB: usize = 1 << 20;

/// Runs a job on a throttled zram disk. The member at `pointer` must be within 1 % of `cap` with
/// the subject, and with `./test --full` also with fio.
///
/// An idle group gets 100 ms of its rate in advance; the ramp keeps that out of the measurement.
fn measures_the_cap(caps: Caps, job: &str, pointer: &str, cap: f64) {
    require!(Root, Zram, Throttle);
    let scratch = Scratch::calm();
    let disk = Zram::new(64 * MIB);
    let throttle = Throttle::new(&device::number(&disk.path()), caps);
    let line = format!(
        "--name=job --filename={} --direct=1 --time_based --runtime=6 --ramp_time=1 {job}",
        disk.path().display()
    );
    for program in Program::both() {
        if program.is_fio() && !is_full() {
            continue;
        }
        one_good_try(|| {
            let run = program.line(&scratch, &line).throttled(&throttle).urgent();
            let figure = number(&run.json(), pointer);
            ensure((figure - cap).abs() <= cap * 0.01, || {
                format!("{program:?} measured {figure} where the cap is {cap}: {job}")
            })
        });
    }
}

#[test]
fn read_iops_cap_is_measured_at_depth_16() {
    let caps = Caps {
        read_iops: Some(500),
        ..Caps::default()
    };
    measures_the_cap(
        caps,
        "--rw=randread --bs=4k --ioengine=io_uring --iodepth=16",
        "/jobs/0/read/iops",
        500.0,
    );
}

#[test]
fn read_iops_cap_is_measured_at_depth_1() {
    let caps = Caps {
        read_iops: Some(500),
        ..Caps::default()
    };
    measures_the_cap(
        caps,
        "--rw=randread --bs=4k --ioengine=psync",
        "/jobs/0/read/iops",
        500.0,
    );
}

#[test]
fn high_read_iops_cap_is_measured() {
    let caps = Caps {
        read_iops: Some(5000),
        ..Caps::default()
    };
    measures_the_cap(
        caps,
        "--rw=randread --bs=4k --ioengine=libaio --iodepth=16",
        "/jobs/0/read/iops",
        5000.0,
    );
}

#[test]
fn write_iops_cap_is_measured() {
    let caps = Caps {
        write_iops: Some(1000),
        ..Caps::default()
    };
    measures_the_cap(
        caps,
        "--rw=randwrite --bs=4k --ioengine=libaio --iodepth=8",
        "/jobs/0/write/iops",
        1000.0,
    );
}

#[test]
fn read_bandwidth_cap_is_measured() {
    let caps = Caps {
        read_bytes: Some(10_000_000),
        ..Caps::default()
    };
    measures_the_cap(
        caps,
        "--rw=read --bs=4k --ioengine=io_uring --iodepth=4",
        "/jobs/0/read/bw_bytes",
        10_000_000.0,
    );
}

#[test]
fn device_counters_equal_result() {
    require!(Root, Zram);
    let scratch = Scratch::shared();
    let disk = Zram::new(16 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=libaio --iodepth=8 \
         --number_ios=2000 --norandommap",
        disk.path().display()
    );
    // udev reads a new device, too.
    one_good_try(|| {
        let (reads_before, writes_before) = disk.completed();
        let document = Program::subject().line(&scratch, &line).json();
        let (reads, writes) = disk.completed();
        let claimed = number(&document, "/jobs/0/read/total_ios");
        assert_eq!((claimed, writes - writes_before), (2000.0, 0));
        let reads = reads - reads_before;
        assert!(reads >= 2000, "only {reads} reads");
        // Opening and probing a device reads a few blocks.
        ensure(reads <= 2016, || {
            format!("{reads} reads, where 2000 were asked for")
        })
    });
}

/// Each request takes 10 ms more, so the minimum and the median are slightly above 10 ms. The
/// excess depends on the machine, which must wake the server; fio measures the same at that time.
fn finds_ten_milliseconds(job: &str, kind: &str) {
    require!(Root, Nbdfuse);
    let scratch = Scratch::calm();
    let file = FuseFile::serve(
        &scratch,
        "slow",
        16 << 20,
        &Behaviour::plain().delayed(Duration::from_millis(10)),
    );
    let line = format!(
        "--name=job --filename={} --direct=1 --bs=4k --size=16m --time_based --runtime=1 {job}",
        file.path().display()
    );
    let latencies = |program: Program| {
        let document = program.line(&scratch, &line).urgent().json();
        let latency =
            |member: &str| number(&document, &format!("/jobs/0/{kind}/clat_ns/{member}")) / 1e6;
        let (least, median) = (latency("min"), latency("percentile/50.000000"));
        assert!(least >= 10.0, "{program:?}: least latency {least} ms");
        (least, median)
    };
    one_good_try(|| {
        let (fio, ours) = thread::scope(|scope| {
            let fio = scope.spawn(|| latencies(Program::Fio));
            let ours = latencies(Program::subject());
            (fio.join().expect("fio's latencies"), ours)
        });
        let (least, median) = ours;
        let at_most = (1.1 * fio.1).max(11.5);
        ensure(least < 11.0 && (least..at_most).contains(&median), || {
            format!("latencies of {least} ms at least, {median} ms in the median; fio's {fio:?}")
        })
    });
}

#[test]
fn delay_is_median_latency_of_reads() {
    finds_ten_milliseconds("--rw=randread --ioengine=psync", "read");
}

#[test]
fn delay_is_median_latency_of_writes() {
    finds_ten_milliseconds("--rw=randwrite --ioengine=libaio", "write");
}

#[test]
fn delay_is_median_latency_with_io_uring() {
    finds_ten_milliseconds("--rw=randread --ioengine=io_uring", "read");
}

/// Each tenth read fails: the error count must equal that of the target.
#[test]
fn injected_errors_are_counted() {
    require!(Root, Nbdfuse);
    for program in Program::both() {
        let scratch = Scratch::shared();
        let file = FuseFile::serve(
            &scratch,
            "broken",
            16 << 20,
            &Behaviour::plain().failing("pread", "EIO", "10%"),
        );
        let line = format!(
            "--name=job --filename={} --direct=1 --bs=4k --size=16m --rw=randread \
             --continue_on_error=all",
            file.path().display()
        );
        let (document, run) = program.line(&scratch, &line).json_and_run();
        assert_eq!(
            number(&document, "/jobs/0/first_error"),
            5.0,
            "{program:?}: {run}"
        );
        let requests = file.requests();
        assert_eq!(
            requests.reads.len(),
            4096,
            "{program:?} must read each block once, whatever fails"
        );
        assert!(
            requests.failures > 100,
            "the target was to fail every tenth read: {}",
            requests.failures
        );
        assert_eq!(
            number(&document, "/jobs/0/total_err"),
            requests.failures as f64,
            "{program:?}"
        );
    }
}
