use super::*;
use crate::run::VerdictKind;

/// Returns eight seconds of random reads of 4 KiB at depth 16 on a saturated disk.
fn busy_disk() -> Observed {
    let mut seen = Observed {
        seconds: 8.0,
        callers: Callers {
            workers: 1,
            depth: 16,
            waiting_engine: None,
            latency_ns: 1_600_000.0,
            least_latency_ns: 120_000.0,
            busiest: (0.05, 0.2),
            queued: 0.01,
            asleep: 0.74,
            flushing: (0.0, 0.0),
            polling: false,
            direct: true,
        },
        place: Place::Device,
        device: Some(DeviceLoad {
            name: "nvme0n1".into(),
            busy: 0.997,
            queue: 15.8,
            request_ns: 1_580_000.0,
            requests: 80_000,
            bytes: [80_000 * 4096, 0],
            rotational: false,
            plain: true,
        }),
        rates: vec![
            9_800.0, 10_300.0, 9_900.0, 10_000.0, 10_100.0, 9_700.0, 10_200.0, 10_000.0,
        ],
        ..Observed::default()
    };
    seen.own.read = IntervalCounts {
        ios: 80_000,
        bytes: 80_000 * 4096,
    };
    seen
}

fn device(seen: &mut Observed) -> &mut DeviceLoad {
    seen.device.as_mut().unwrap()
}

fn is(seen: &Observed, kind: VerdictKind, words: &[&str]) {
    let (main, _) = classify(seen);
    let main = main.expect("a verdict");
    assert_eq!(main.kind, kind, "{}", main.evidence);
    for word in words {
        assert!(
            main.evidence.contains(word),
            "no {word:?} in {:?}",
            main.evidence
        );
    }
}

#[test]
fn a_busy_device_is_the_limit() {
    is(
        &busy_disk(),
        VerdictKind::Device,
        &["nvme0n1 was busy 100 % of the time with 15.8 requests in flight, 1.58 ms each"],
    );
    assert_eq!(classify(&busy_disk()).1, []);
}

#[test]
fn one_at_a_time_is_too_few_for_a_device_that_takes_many() {
    let mut seen = busy_disk();
    seen.callers.depth = 1;
    seen.callers.latency_ns = 98_000.0;
    seen.callers.least_latency_ns = 40_000.0;
    is(
        &seen,
        VerdictKind::QueueDepth,
        &["one I/O in flight at a time, 98.0 us each"],
    );
    seen.callers.waiting_engine = Some("psync");
    is(
        &seen,
        VerdictKind::QueueDepth,
        &[
            "psync keeps one I/O in flight, whatever iodepth says",
            "another ioengine",
        ],
    );
    seen.callers.waiting_engine = None;
    // A rotating disk serves one request at a time.
    device(&mut seen).rotational = true;
    is(&seen, VerdictKind::Device, &[]);
}

#[test]
fn latency_that_did_not_grow_leaves_room_for_more() {
    let mut seen = busy_disk();
    seen.callers.latency_ns = 150_000.0;
    is(
        &seen,
        VerdictKind::QueueDepth,
        &["took 150 us each, hardly longer than the shortest (120 us)"],
    );
}

#[test]
fn workers_that_wait_for_their_data_to_last() {
    let mut seen = busy_disk();
    (seen.callers.latency_ns, seen.callers.least_latency_ns) = (3_200.0, 1_000.0);
    seen.callers.flushing = (0.96, 280_000.0);
    is(
        &seen,
        VerdictKind::QueueDepth,
        &[
            "the worker spent 96 % of the time in fsync",
            "280 us each",
            "more jobs",
        ],
    );
    seen.callers.workers = 16;
    is(
        &seen,
        VerdictKind::Device,
        &["workers spent 96 %", "was busy 100 %"],
    );
    device(&mut seen).busy = 0.4;
    is(&seen, VerdictKind::QueueDepth, &["more jobs"]);
    seen.callers.flushing.0 = 0.1;
    let (main, _) = classify(&seen);
    assert!(!main.unwrap().evidence.contains("fsync"));
}

#[test]
fn a_written_bound_that_is_reached_is_the_limit() {
    let mut seen = busy_disk();
    seen.limits = vec![IoLimit {
        cgroup: "/jobs".into(),
        read_iops: Some(10_000),
        ..IoLimit::default()
    }];
    is(
        &seen,
        VerdictKind::Throttled,
        &["cgroup /jobs on nvme0n1 allows 10000 reads/s, and 10000 were done"],
    );
    seen.limits[0].read_iops = Some(20_000);
    is(&seen, VerdictKind::Device, &[]);
    seen.limits[0].read_bytes_per_s = Some(41_000_000);
    is(
        &seen,
        VerdictKind::Throttled,
        &["allows reads of 39.1 MiB/s"],
    );
}

#[test]
fn a_bound_is_held_against_what_reaches_the_device() {
    let mut seen = busy_disk();
    seen.limits = vec![IoLimit {
        cgroup: "/jobs".into(),
        read_iops: Some(500),
        ..IoLimit::default()
    }];
    // The cache serves all I/O, so no limit is reached.
    device(&mut seen).bytes[0] = 0;
    seen.cached = 1.0;
    assert_eq!(classify(&seen).0, None);
    // One read in twenty reaches the device, which is the rate that the group allows.
    device(&mut seen).bytes[0] = 4_000 * 4096;
    seen.cached = 0.95;
    is(
        &seen,
        VerdictKind::Throttled,
        &["allows 500 reads/s, and 500 were done"],
    );
    // Each of two members of an array does half of the I/O.
    seen.limits[0].read_iops = Some(6_000);
    device(&mut seen).bytes[0] = 40_000 * 4096;
    seen.cached = 0.0;
    is(&seen, VerdictKind::Device, &[]);
}

#[test]
fn a_flat_rate_with_long_latency_in_a_virtual_machine_is_an_allowance() {
    let mut seen = busy_disk();
    seen.rates = vec![3000.0, 3001.0, 2999.0, 3000.0, 3000.0, 3002.0];
    is(&seen, VerdictKind::Device, &[]);
    seen.virtual_machine = true;
    is(
        &seen,
        VerdictKind::Allowance,
        &[
            "3.00k IOPS, even to 0.0 % from interval to interval, while latency rose to 1.60 ms from 120 us",
            "is a guess",
        ],
    );
    seen.rates[3] = 2500.0;
    is(&seen, VerdictKind::Device, &[]);
}

#[test]
fn workers_without_time_are_the_limit() {
    let mut seen = busy_disk();
    seen.callers.busiest = (0.12, 0.86);
    is(
        &seen,
        VerdictKind::Generator,
        &["on a processor 98 % of the time (12 % in the program, 86 % in the kernel)"],
    );
    seen.callers.polling = true;
    is(&seen, VerdictKind::Device, &[]);
    let mut waiting = busy_disk();
    waiting.callers.workers = 8;
    waiting.callers.busiest = (0.1, 0.3);
    waiting.callers.queued = 0.55;
    is(
        &waiting,
        VerdictKind::Generator,
        &["the busiest of 8 workers", "waited for one 55 %"],
    );
}

#[test]
fn workers_that_wait_for_a_busy_machine_are_not_taken_for_a_throttle() {
    let mut seen = busy_disk();
    (device(&mut seen).queue, device(&mut seen).request_ns) = (6.0, 600_000.0);
    is(&seen, VerdictKind::Throttled, &[]);
    seen.callers.queued = 0.49;
    seen.cpu = Some(CpuShares {
        user: 82.0,
        system: 17.0,
        ..CpuShares::default()
    });
    is(
        &seen,
        VerdictKind::Generator,
        &["waited for one 49 %; all processors together were 99 % busy"],
    );
}

#[test]
fn a_group_that_holds_the_process_back_is_told_from_a_slow_program() {
    let mut seen = busy_disk();
    seen.cpu_throttled = Some((0.76, 0.2));
    is(
        &seen,
        VerdictKind::Generator,
        &["allows 0.200 of a processor and held it back for 76 % of the time"],
    );
    seen.cpu_throttled = Some((0.02, 2.0));
    is(&seen, VerdictKind::Device, &[]);
}

#[test]
fn a_cache_has_its_own_verdict() {
    let mut seen = busy_disk();
    seen.cached = 0.97;
    device(&mut seen).busy = 0.02;
    assert_eq!(classify(&seen), (None, Vec::new()));
    // If workers sleep although a cache serves the I/O, they can only wait for each other.
    seen.callers.workers = 8;
    seen.place = Place::FileSystem("ext4".into());
    is(
        &seen,
        VerdictKind::LockContention,
        &["8 workers slept 74 % of their time over ext4"],
    );
}

#[test]
fn time_above_the_device_is_spent_on_locks_or_under_a_throttle() {
    let mut seen = busy_disk();
    seen.place = Place::FileSystem("xfs".into());
    seen.callers.workers = 16;
    (device(&mut seen).queue, device(&mut seen).request_ns) = (0.98, 98_000.0);
    is(
        &seen,
        VerdictKind::Throttled,
        &["16.0 I/Os were in flight and took 1.60 ms each, but only 0.980"],
    );
    std::mem::swap(&mut seen.own.read, &mut seen.own.write);
    device(&mut seen).bytes.swap(0, 1);
    is(
        &seen,
        VerdictKind::LockContention,
        &["waited for each other in xfs"],
    );
    seen.place = Place::Device;
    is(
        &seen,
        VerdictKind::Throttled,
        &["held above the device", "cannot see"],
    );
    // A limit of this process's own groups is visible, even if it was not quite reached.
    seen.limits = vec![IoLimit {
        cgroup: "/jobs".into(),
        read_iops: Some(9),
        write_bytes_per_s: Some(80 << 20),
        ..IoLimit::default()
    }];
    let named = "by cgroup /jobs, which allows writes of 80.0 MiB/s";
    is(
        &seen,
        VerdictKind::Throttled,
        &["held above the device", named],
    );
}

#[test]
fn files_that_others_serve_are_waited_for() {
    let mut seen = busy_disk();
    seen.place = Place::Served("server:/export (nfs4)".into());
    seen.device = None;
    is(
        &seen,
        VerdictKind::Network,
        &[
            "waited 1.60 ms for each I/O with 16.0 in flight",
            "server:/export (nfs4)",
        ],
    );
    seen.callers.busiest = (0.9, 0.1);
    is(&seen, VerdictKind::Generator, &[]);
}

#[test]
fn others_on_the_device_are_counted() {
    let mut seen = busy_disk();
    device(&mut seen).bytes[1] = seen.own.read.bytes;
    is(
        &seen,
        VerdictKind::Interference,
        &["moved 39.1 MiB/s more than this job asked for, 50 % of all"],
    );
    // A small share is an additional finding, and none for volumes that keep copies.
    device(&mut seen).bytes[1] = seen.own.read.bytes / 9;
    is(&seen, VerdictKind::Device, &[]);
    assert_eq!(classify(&seen).1[0].kind, VerdictKind::Interference);
    device(&mut seen).plain = false;
    assert_eq!(classify(&seen).1, []);
}

#[test]
fn metadata_and_journals_are_no_others() {
    let mut seen = busy_disk();
    std::mem::swap(&mut seen.own.read, &mut seen.own.write);
    seen.place = Place::FileSystem("ext4".into());
    seen.flushes = 80_000;
    device(&mut seen).bytes = [0, 80_000 * 4096 * 4];
    is(&seen, VerdictKind::Device, &[]);
    assert_eq!(classify(&seen).1, []);
}

#[test]
fn what_the_job_asks_for_is_no_limit_of_the_device() {
    let mut seen = busy_disk();
    seen.job_limit = Some("rate_iops=500 is what j asks for, and 500 was done".into());
    is(&seen, VerdictKind::JobLimit, &["rate_iops=500"]);
}

#[test]
fn what_cannot_be_told_is_not_told() {
    let mut seen = busy_disk();
    device(&mut seen).busy = 0.4;
    device(&mut seen).queue = 6.0;
    seen.callers.latency_ns = 600_000.0;
    is(
        &seen,
        VerdictKind::Unclear,
        &[
            "nvme0n1 was busy 40 % of the time",
            "used 25 % of a processor",
        ],
    );
    seen.phases = true;
    is(
        &seen,
        VerdictKind::Unclear,
        &["the jobs ran at different times"],
    );
    seen.seconds = 0.1;
    assert_eq!(classify(&seen), (None, Vec::new()));
    assert_eq!(classify(&Observed::default()), (None, Vec::new()));
}

#[test]
fn latencies_that_are_not_measured_are_not_judged() {
    let mut seen = busy_disk();
    seen.callers.latency_ns = 0.0;
    seen.callers.least_latency_ns = 0.0;
    is(&seen, VerdictKind::Device, &[]);
}
