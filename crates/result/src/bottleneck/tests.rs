use super::*;
use crate::network::InterfaceRates;
use crate::run::VerdictKind;
use crate::verdict_cause::{CgroupIoLimit, ForeignTraffic, IoRateLimit, QueueAboveDevice};
use iosonde_job::plan::Direction;

/// Returns eight seconds of random reads of 4 KiB at depth 16 on a saturated disk.
fn busy_disk() -> RunObservation {
    let mut seen = RunObservation {
        seconds: 8.0,
        callers: WorkerObservation {
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
        place: FileLocation::Device,
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
        ..RunObservation::default()
    };
    seen.own.read = IntervalCounts {
        ios: 80_000,
        bytes: 80_000 * 4096,
    };
    seen
}

fn device(seen: &mut RunObservation) -> &mut DeviceLoad {
    seen.device.as_mut().unwrap()
}

/// Returns the cause of the bottleneck, which has this kind.
#[track_caller]
fn is(seen: &RunObservation, kind: VerdictKind) -> VerdictCause {
    let (main, _) = classify(seen);
    let main = main.expect("a verdict");
    assert_eq!(main.kind, kind, "{main:?}");
    main.cause.expect("a cause")
}

/// Asserts that the bottleneck has this kind and a cause of this pattern.
macro_rules! is_caused {
    ($seen:expr, $kind:ident, $($cause:tt)+) => {
        let cause = is($seen, VerdictKind::$kind);
        assert!(matches!(&cause, $($cause)+), "{cause:?}");
    };
}

#[test]
fn busy_device_is_the_bottleneck() {
    is_caused!(
        &busy_disk(),
        Device,
        VerdictCause::DeviceBusy { device, request_ns: 1_580_000.0 }
        if device.name == "nvme0n1" && device.queue == 15.8 && device.busy_share == 0.997
    );
    assert_eq!(classify(&busy_disk()).1, []);
}

#[test]
fn single_io_in_flight_gives_queue_depth_verdict() {
    let mut seen = busy_disk();
    seen.callers.depth = 1;
    seen.callers.latency_ns = 98_000.0;
    seen.callers.least_latency_ns = 40_000.0;
    is_caused!(
        &seen,
        QueueDepth,
        VerdictCause::OneIoInFlight {
            iodepth: 1,
            latency_ns: 98_000.0,
            ..
        }
    );
    seen.callers.waiting_engine = Some("psync");
    is_caused!(
        &seen,
        QueueDepth,
        VerdictCause::SynchronousEngine { engine, .. } if engine == "psync"
    );
    seen.callers.waiting_engine = None;
    // A rotating disk serves one request at a time.
    device(&mut seen).rotational = true;
    is(&seen, VerdictKind::Device);
}

#[test]
fn latency_near_minimum_gives_queue_depth_verdict() {
    let mut seen = busy_disk();
    seen.callers.latency_ns = 150_000.0;
    is_caused!(
        &seen,
        QueueDepth,
        VerdictCause::LowDepth {
            latency_ns: 150_000.0,
            latency_ns_min: 120_000.0,
            ..
        }
    );
}

#[test]
fn workers_waiting_in_fsync_give_queue_depth_verdict() {
    let mut seen = busy_disk();
    (seen.callers.latency_ns, seen.callers.least_latency_ns) = (3_200.0, 1_000.0);
    seen.callers.flushing = (0.96, 280_000.0);
    is_caused!(
        &seen,
        QueueDepth,
        VerdictCause::Flushes {
            workers: 1,
            flush_share: 0.96,
            flush_ns: 280_000.0,
            is_device_limit: false,
            ..
        }
    );
    seen.callers.workers = 16;
    is_caused!(
        &seen,
        Device,
        VerdictCause::Flushes {
            workers: 16,
            is_device_limit: true,
            device: Some(_),
            ..
        }
    );
    device(&mut seen).busy = 0.4;
    is_caused!(
        &seen,
        QueueDepth,
        VerdictCause::Flushes {
            is_device_limit: false,
            ..
        }
    );
    seen.callers.flushing.0 = 0.1;
    let cause = classify(&seen).0.unwrap().cause;
    assert!(!matches!(cause, Some(VerdictCause::Flushes { .. })));
}

#[test]
fn reached_cgroup_limit_gives_throttled_verdict() {
    let mut seen = busy_disk();
    seen.limits = vec![IoLimit {
        cgroup: "/jobs".into(),
        read_iops: Some(10_000),
        ..IoLimit::default()
    }];
    let reached = |rate, reached_per_s| VerdictCause::CgroupIoReached {
        limit: CgroupIoLimit {
            cgroup: "/jobs".to_owned(),
            direction: Direction::Read,
            rate,
        },
        device: Some("nvme0n1".to_owned()),
        reached_per_s,
    };
    assert_eq!(
        is(&seen, VerdictKind::Throttled),
        reached(IoRateLimit::Iops(10_000), 10_000.0)
    );
    seen.limits[0].read_iops = Some(20_000);
    is(&seen, VerdictKind::Device);
    seen.limits[0].read_bytes_per_s = Some(41_000_000);
    assert_eq!(
        is(&seen, VerdictKind::Throttled),
        reached(IoRateLimit::BytesPerS(41_000_000), 40_960_000.0)
    );
}

#[test]
fn cgroup_limit_is_compared_with_io_of_the_device() {
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
    is_caused!(
        &seen,
        Throttled,
        VerdictCause::CgroupIoReached { limit, reached_per_s, .. }
        if limit.rate == IoRateLimit::Iops(500) && limit.direction == Direction::Read
            && (reached_per_s - 500.0).abs() < 1e-6
    );
    // Each of two members of an array does half of the I/O.
    seen.limits[0].read_iops = Some(6_000);
    device(&mut seen).bytes[0] = 40_000 * 4096;
    seen.cached = 0.0;
    is(&seen, VerdictKind::Device);
}

#[test]
fn flat_rate_with_long_latency_in_vm_gives_allowance_verdict() {
    let mut seen = busy_disk();
    seen.rates = vec![3000.0, 3001.0, 2999.0, 3000.0, 3000.0, 3002.0];
    is(&seen, VerdictKind::Device);
    seen.virtual_machine = true;
    is_caused!(
        &seen,
        Allowance,
        VerdictCause::FlatRate {
            iops,
            variation_share,
            latency_ns: 1_600_000.0,
            latency_ns_min: 120_000.0,
        } if (iops - 18_002.0 / 6.0).abs() < 1e-6 && (variation_share - 344e-6).abs() < 1e-6
    );
    seen.rates[3] = 2500.0;
    is(&seen, VerdictKind::Device);
}

#[test]
fn busy_workers_give_generator_verdict() {
    let mut seen = busy_disk();
    seen.callers.busiest = (0.12, 0.86);
    is_caused!(
        &seen,
        Generator,
        VerdictCause::WorkerBusy {
            user_share: 0.12,
            system_share: 0.86,
            ..
        }
    );
    seen.callers.polling = true;
    is(&seen, VerdictKind::Device);
    let mut waiting = busy_disk();
    waiting.callers.workers = 8;
    waiting.callers.busiest = (0.1, 0.3);
    waiting.callers.queued = 0.55;
    is_caused!(
        &waiting,
        Generator,
        VerdictCause::WorkerQueued {
            workers: 8,
            queued_share: 0.55,
            ..
        }
    );
}

#[test]
fn workers_on_a_busy_machine_give_no_throttled_verdict() {
    let mut seen = busy_disk();
    (device(&mut seen).queue, device(&mut seen).request_ns) = (6.0, 600_000.0);
    is(&seen, VerdictKind::Throttled);
    seen.callers.queued = 0.49;
    seen.cpu = Some(CpuShares {
        user: 82.0,
        system: 17.0,
        ..CpuShares::default()
    });
    is_caused!(
        &seen,
        Generator,
        VerdictCause::WorkerQueued {
            queued_share: 0.49,
            machine_busy_share: 0.99,
            ..
        }
    );
}

#[test]
fn cpu_quota_of_cgroup_gives_generator_verdict() {
    let mut seen = busy_disk();
    seen.cpu_throttled = Some((0.76, 0.2));
    is_caused!(
        &seen,
        Generator,
        VerdictCause::CgroupCpu {
            limit_cpus: 0.2,
            throttled_share: 0.76
        }
    );
    seen.cpu_throttled = Some((0.02, 2.0));
    is(&seen, VerdictKind::Device);
}

#[test]
fn cached_io_is_not_blamed_on_the_device() {
    let mut seen = busy_disk();
    seen.cached = 0.97;
    device(&mut seen).busy = 0.02;
    assert_eq!(classify(&seen), (None, Vec::new()));
    // If workers sleep although a cache serves the I/O, they can only wait for each other.
    seen.callers.workers = 8;
    seen.place = FileLocation::FileSystem("ext4".into());
    is_caused!(
        &seen,
        LockContention,
        VerdictCause::LocksOverCache { workers: 8, fs_type, asleep_share: 0.74, .. }
        if fs_type == "ext4"
    );
}

#[test]
fn time_above_the_device_is_spent_on_locks_or_under_a_throttle() {
    let mut seen = busy_disk();
    seen.place = FileLocation::FileSystem("xfs".into());
    seen.callers.workers = 16;
    (device(&mut seen).queue, device(&mut seen).request_ns) = (0.98, 98_000.0);
    let queue = || QueueAboveDevice {
        in_flight: 16.0,
        latency_ns: 1_600_000.0,
        device: "nvme0n1".to_owned(),
        device_queue: 0.98,
        request_ns: 98_000.0,
    };
    let queued = |limit| VerdictCause::QueuedAboveDevice {
        queue: queue(),
        limit,
    };
    assert_eq!(is(&seen, VerdictKind::Throttled), queued(None));
    std::mem::swap(&mut seen.own.read, &mut seen.own.write);
    device(&mut seen).bytes.swap(0, 1);
    let locks = VerdictCause::LocksAboveDevice {
        queue: queue(),
        fs_type: "xfs".to_owned(),
    };
    assert_eq!(is(&seen, VerdictKind::LockContention), locks);
    seen.place = FileLocation::Device;
    assert_eq!(is(&seen, VerdictKind::Throttled), queued(None));
    // A limit of this process's own groups is visible, even if it was not quite reached.
    seen.limits = vec![IoLimit {
        cgroup: "/jobs".into(),
        read_iops: Some(9),
        write_bytes_per_s: Some(80 << 20),
        ..IoLimit::default()
    }];
    let limit = CgroupIoLimit {
        cgroup: "/jobs".to_owned(),
        direction: Direction::Write,
        rate: IoRateLimit::BytesPerS(80 << 20),
    };
    assert_eq!(is(&seen, VerdictKind::Throttled), queued(Some(limit)));
}

#[test]
fn latency_on_a_served_file_gives_network_verdict() {
    let mut seen = busy_disk();
    seen.place = FileLocation::Served("server:/export (nfs4)".into());
    seen.device = None;
    let load = NetworkLoad {
        interface: "eth0".to_owned(),
        rates: InterfaceRates::default(),
        tcp: None,
        protocols: Vec::new(),
    };
    seen.network = Some(load.clone());
    let served = VerdictCause::Served {
        service: "server:/export (nfs4)".to_owned(),
        device: None,
        latency_ns: 1_600_000.0,
        in_flight: 16.0,
        cpu_share: 0.25,
        network: Some(load.clone()),
    };
    assert_eq!(is(&seen, VerdictKind::Network), served);
    seen.callers.busiest = (0.9, 0.1);
    is(&seen, VerdictKind::Generator);
}

#[test]
fn io_of_other_programs_gives_interference_verdict() {
    let mut seen = busy_disk();
    device(&mut seen).bytes[1] = seen.own.read.bytes;
    let other = VerdictCause::OtherTraffic {
        traffic: ForeignTraffic {
            device: "nvme0n1".to_owned(),
            bytes_per_s: 40_960_000.0,
            traffic_share: 0.5,
        },
        busy_share: 0.997,
    };
    assert_eq!(is(&seen, VerdictKind::Interference), other);
    // A small share is an additional finding, and none for volumes that keep copies.
    device(&mut seen).bytes[1] = seen.own.read.bytes / 9;
    is(&seen, VerdictKind::Device);
    assert_eq!(classify(&seen).1[0].kind, VerdictKind::Interference);
    device(&mut seen).plain = false;
    assert_eq!(classify(&seen).1, []);
}

#[test]
fn metadata_and_journal_writes_are_no_interference() {
    let mut seen = busy_disk();
    std::mem::swap(&mut seen.own.read, &mut seen.own.write);
    seen.place = FileLocation::FileSystem("ext4".into());
    seen.flushes = 80_000;
    device(&mut seen).bytes = [0, 80_000 * 4096 * 4];
    is(&seen, VerdictKind::Device);
    assert_eq!(classify(&seen).1, []);
}

#[test]
fn job_rate_limit_gives_job_limit_verdict() {
    let mut seen = busy_disk();
    seen.job_limit = Some(VerdictCause::JobRate {
        job: "j".to_owned(),
        option: "rate_iops".to_owned(),
        limit_per_s: 500,
        reached_per_s: 500.0,
    });
    is_caused!(
        &seen,
        JobLimit,
        VerdictCause::JobRate {
            limit_per_s: 500,
            ..
        }
    );
}

#[test]
fn ambiguous_measurements_give_unclear_or_no_verdict() {
    let mut seen = busy_disk();
    device(&mut seen).busy = 0.4;
    device(&mut seen).queue = 6.0;
    seen.callers.latency_ns = 600_000.0;
    is_caused!(
        &seen,
        Unclear,
        VerdictCause::NoLimitFound { device: Some(device), cpu_share: 0.25, .. }
        if device.busy_share == 0.4
    );
    seen.phases = true;
    is_caused!(&seen, Unclear, VerdictCause::DifferentTimes);
    seen.seconds = 0.1;
    assert_eq!(classify(&seen), (None, Vec::new()));
    assert_eq!(classify(&RunObservation::default()), (None, Vec::new()));
}

#[test]
fn latencies_that_are_not_measured_are_not_judged() {
    let mut seen = busy_disk();
    seen.callers.latency_ns = 0.0;
    seen.callers.least_latency_ns = 0.0;
    is(&seen, VerdictKind::Device);
}
