//! Tests of the words of each cause, and of its stored form.

use super::verdict_text::{evidence, verdict};
use crate::ceph::{CephActivity, OsdCounts};
use crate::network::{InterfaceRates, NetworkLoad};
use crate::run::{Verdict, VerdictKind};
use crate::verdict_cause::{
    BusyDevice, CgroupIoLimit, DiskLimit, ForeignTraffic, IoRateLimit, OsdMeasure,
    QueueAboveDevice, ServerNode, VerdictCause,
};
use iosonde_job::plan::Direction;

/// A cause, the kind of its verdict, and its evidence.
type CauseRow = (VerdictCause, VerdictKind, &'static str);

fn device() -> BusyDevice {
    BusyDevice {
        name: "sda".to_owned(),
        busy_share: 0.997,
        queue: 15.8,
    }
}

fn traffic() -> ForeignTraffic {
    ForeignTraffic {
        device: "sda".to_owned(),
        bytes_per_s: 41e6,
        traffic_share: 0.5,
    }
}

fn queue() -> QueueAboveDevice {
    QueueAboveDevice {
        in_flight: 16.0,
        latency_ns: 1_600_000.0,
        device: "sda".to_owned(),
        device_queue: 0.98,
        request_ns: 98_000.0,
    }
}

fn limit(rate: IoRateLimit) -> CgroupIoLimit {
    CgroupIoLimit {
        cgroup: "/jobs".to_owned(),
        direction: Direction::Write,
        rate,
    }
}

fn job_and_cgroup_causes() -> Vec<CauseRow> {
    vec![
        (
            VerdictCause::DifferentTimes,
            VerdictKind::Unclear,
            "the jobs ran at different times; run each job alone to find its bottleneck",
        ),
        (
            VerdictCause::JobRate {
                job: "j".to_owned(),
                option: "rate_iops".to_owned(),
                limit_per_s: 500,
                reached_per_s: 499.7,
            },
            VerdictKind::JobLimit,
            "job j is limited by rate_iops=500 and reached 500",
        ),
        (
            VerdictCause::ThinkTime {
                job: "j".to_owned(),
                paused_share: 0.8,
            },
            VerdictKind::JobLimit,
            "thinktime paused job j for 80 % of the time",
        ),
        (
            VerdictCause::CgroupIoReached {
                limit: limit(IoRateLimit::Iops(500)),
                device: Some("sda".to_owned()),
                reached_per_s: 498.0,
            },
            VerdictKind::Throttled,
            "cgroup /jobs on sda allows 500 writes/s; the job did 498 writes/s",
        ),
        (
            VerdictCause::CgroupIoReached {
                limit: limit(IoRateLimit::BytesPerS(80 << 20)),
                device: None,
                reached_per_s: 41e6,
            },
            VerdictKind::Throttled,
            "cgroup /jobs allows writes of 80.0 MiB/s; the job did 39.1 MiB/s",
        ),
        (
            VerdictCause::CgroupCpu {
                limit_cpus: 0.2,
                throttled_share: 0.76,
            },
            VerdictKind::Generator,
            "the cgroup of this process allows 0.200 CPUs and throttled it for 76 % of the time",
        ),
    ]
}

fn worker_causes() -> Vec<CauseRow> {
    vec![
        (
            VerdictCause::WorkerBusy {
                workers: 1,
                user_share: 0.12,
                system_share: 0.86,
                memory_fs_type: Some("tmpfs".to_owned()),
            },
            VerdictKind::Generator,
            "the worker was on a CPU 98 % of the time (12 % in user mode, 86 % in the kernel); \
             tmpfs stores data in memory",
        ),
        (
            VerdictCause::WorkerQueued {
                workers: 8,
                cpu_share: 0.4,
                queued_share: 0.55,
                machine_busy_share: 0.99,
                memory_fs_type: None,
            },
            VerdictKind::Generator,
            "the busiest of 8 workers was on a CPU 40 % of the time and waited for a CPU 55 %; all \
             CPUs together were 99 % busy",
        ),
    ]
}

fn queue_causes() -> Vec<CauseRow> {
    vec![
        (
            VerdictCause::LocksOverCache {
                workers: 8,
                fs_type: "ext4".to_owned(),
                asleep_share: 0.74,
                device_busy_share: 0.02,
            },
            VerdictKind::LockContention,
            "8 workers on ext4 slept 74 % of their time, while a cache took the data and the \
             device was busy only 2 % of the time: the workers waited for locks",
        ),
        (
            VerdictCause::LocksAboveDevice {
                queue: queue(),
                fs_type: "xfs".to_owned(),
            },
            VerdictKind::LockContention,
            "16.0 I/Os were in flight and took 1.60 ms each, but only 0.980 of them were in sda, \
             for 98.0 us each: the others waited for locks in xfs",
        ),
        (
            VerdictCause::QueuedAboveDevice {
                queue: queue(),
                limit: None,
            },
            VerdictKind::Throttled,
            "16.0 I/Os were in flight and took 1.60 ms each, but only 0.980 of them were in sda, \
             for 98.0 us each: the others were queued above the device by a cgroup limit that \
             this process cannot read, or the I/O scheduler",
        ),
        (
            VerdictCause::QueuedAboveDevice {
                queue: queue(),
                limit: Some(limit(IoRateLimit::BytesPerS(80 << 20))),
            },
            VerdictKind::Throttled,
            "16.0 I/Os were in flight and took 1.60 ms each, but only 0.980 of them were in sda, \
             for 98.0 us each: the others were queued above the device by cgroup /jobs, which \
             allows writes of 80.0 MiB/s",
        ),
    ]
}

fn rate_causes() -> Vec<CauseRow> {
    vec![
        (
            VerdictCause::Served {
                service: "server:/export (nfs4)".to_owned(),
                device: Some("nbd0".to_owned()),
                latency_ns: 1_600_000.0,
                in_flight: 16.0,
                cpu_share: 0.25,
                network: None,
            },
            VerdictKind::Network,
            "each I/O took 1.60 ms with 16.0 in flight, and the busiest worker used only 25 % of a \
             CPU: the time was spent in server:/export (nfs4), nbd0 included, or on the network",
        ),
        (
            VerdictCause::OtherTraffic {
                traffic: traffic(),
                busy_share: 0.9,
            },
            VerdictKind::Interference,
            "sda moved 39.1 MiB/s more than this job requested, 50 % of all its traffic; the \
             device was busy 90 % of the time",
        ),
        (
            VerdictCause::SharedDevice { traffic: traffic() },
            VerdictKind::Interference,
            "other programs used the device: sda moved 39.1 MiB/s more than this job requested, \
             50 % of all its traffic",
        ),
        (
            VerdictCause::FlatRate {
                iops: 3_000.0,
                variation_share: 0.0004,
                latency_ns: 1_600_000.0,
                latency_ns_min: 120_000.0,
            },
            VerdictKind::Allowance,
            "3.00k IOPS, constant to 0.0 % from interval to interval, while latency rose to 1.60 \
             ms from 120 us; a throttle of the provider is an inference, because a device with a \
             constant service time looks the same; compare with the published limits (iosonde \
             limits)",
        ),
    ]
}

fn depth_causes() -> Vec<CauseRow> {
    let flushes = |workers, is_device_limit| VerdictCause::Flushes {
        workers,
        flush_share: 0.96,
        flush_ns: 280_000.0,
        device: Some(device()),
        is_device_limit,
    };
    vec![
        (
            flushes(1, false),
            VerdictKind::QueueDepth,
            "the worker spent 96 % of the time in fsync or fdatasync, 280 us each; sda was busy \
             100 % of the time; more jobs may raise the rate, a higher iodepth does not",
        ),
        (
            flushes(16, true),
            VerdictKind::Device,
            "workers spent 96 % of the time in fsync or fdatasync, 280 us each; sda was busy 100 % \
             of the time",
        ),
        (
            VerdictCause::SynchronousEngine {
                engine: "psync".to_owned(),
                latency_ns: 98_000.0,
                device: None,
            },
            VerdictKind::QueueDepth,
            "psync keeps one I/O in flight at any iodepth, 98.0 us each; no device was busy; \
             another ioengine or more jobs may raise the rate",
        ),
        (
            VerdictCause::OneIoInFlight {
                iodepth: 1,
                latency_ns: 98_000.0,
                device: Some(device()),
            },
            VerdictKind::QueueDepth,
            "one I/O in flight at a time, 98.0 us each; sda was busy 100 % of the time with 15.8 \
             in flight; a higher iodepth or more jobs may raise the rate",
        ),
        (
            VerdictCause::OneIoInFlight {
                iodepth: 4,
                latency_ns: 98_000.0,
                device: None,
            },
            VerdictKind::QueueDepth,
            "about one I/O in flight at a time, 98.0 us each; no device was busy; a higher iodepth \
             or more jobs may raise the rate",
        ),
    ]
}

fn device_causes() -> Vec<CauseRow> {
    vec![
        (
            VerdictCause::LowDepth {
                in_flight: 1.5,
                latency_ns: 150_000.0,
                latency_ns_min: 120_000.0,
                device: None,
            },
            VerdictKind::QueueDepth,
            "1.50 I/Os in flight took 150 us each, little longer than the shortest (120 us); no \
             device was busy; a higher iodepth or more jobs may raise the rate",
        ),
        (
            VerdictCause::DeviceBusy {
                device: device(),
                request_ns: 1_580_000.0,
            },
            VerdictKind::Device,
            "sda was busy 100 % of the time with 15.8 requests in flight, 1.58 ms each",
        ),
        (
            VerdictCause::NoLimitFound {
                device: Some(device()),
                cpu_share: 0.25,
                in_flight: 6.0,
            },
            VerdictKind::Unclear,
            "sda was busy 100 % of the time, the busiest worker used 25 % of a CPU, 6.00 I/Os were \
             in flight",
        ),
    ]
}

fn ceph_causes() -> Vec<CauseRow> {
    let slow = |measured| VerdictCause::SlowOsd {
        osd: 1,
        measured,
        latency_ns: 12e6,
        others_ns: 1e6,
    };
    vec![
        (
            slow(OsdMeasure::Operation),
            VerdictKind::SlowOsd,
            "osd.1 took 12.0 ms per operation, the median of the other OSDs is 1.00 ms: I/Os to \
             objects of this OSD delay the others",
        ),
        (
            slow(OsdMeasure::Commit),
            VerdictKind::SlowOsd,
            "osd.1 took 12.0 ms to commit a write, the median of the other OSDs is 1.00 ms: I/Os \
             to objects of this OSD delay the others",
        ),
        (
            VerdictCause::TimeInOsds {
                latency_ns: 5e6,
                osds_ns: 4.2e6,
            },
            VerdictKind::Osds,
            "an I/O took 5.00 ms, of which 4.20 ms in the OSDs (84 %)",
        ),
        (
            VerdictCause::TimeOutsideOsds {
                latency_ns: 5e6,
                osds_ns: 5e5,
                network: Some(NetworkLoad {
                    interface: "eth0".to_owned(),
                    rates: InterfaceRates {
                        sent_bytes_s: 1_048_576.0,
                        ..InterfaceRates::default()
                    },
                    tcp: None,
                    protocols: Vec::new(),
                }),
            },
            VerdictKind::Network,
            "an I/O took 5.00 ms, of which 500 us in the OSDs (10 %); the rest on the network and \
             in this client; eth0 received 0.00 B/s and sent 1.00 MiB/s (no known link speed), \
             with 0.00 drops/s and 0.00 errors/s",
        ),
    ]
}

fn cluster_causes() -> Vec<CauseRow> {
    let activity = CephActivity {
        looks: 6,
        recovering: 4,
        scrubbing: 2,
        recovery_bytes_per_s: 50 << 20,
        degraded_objects: 120,
        ..CephActivity::default()
    };
    vec![
        (
            VerdictCause::ClusterRecovery {
                activity: activity.clone(),
            },
            VerdictKind::ClusterBusy,
            "the cluster was moving data (recovery or backfill) in 4 of 6 samples, at up to 50.0 \
             MiB/s, and up to 120 copies of objects were missing",
        ),
        (
            VerdictCause::ClusterScrub { activity },
            VerdictKind::ClusterBusy,
            "the cluster scrubbed placement groups, which reads from its disks, in 2 of 6 samples",
        ),
        (
            VerdictCause::OsdsDown {
                osds: OsdCounts {
                    total: 3,
                    up: 2,
                    r#in: 3,
                },
                checks: vec!["OSD_DOWN: 1 osds down".to_owned()],
            },
            VerdictKind::ClusterDegraded,
            "1 of the cluster's 3 OSDs were down for at least a part of the run (OSD_DOWN: 1 osds \
             down)",
        ),
        (
            VerdictCause::WatchedServer {
                server: ServerNode {
                    node: "n1".to_owned(),
                    serves_volume: false,
                    disk: None,
                    limit: DiskLimit::Unknown,
                    network: None,
                },
                wait: Some(Box::new(VerdictCause::DifferentTimes)),
            },
            VerdictKind::Network,
            "the jobs ran at different times; run each job alone to find its bottleneck; no disk \
             of n1, which was watched, had I/O",
        ),
    ]
}

fn condition_causes() -> Vec<CauseRow> {
    let cached = |direction, device_bytes| VerdictCause::ServedFromCache {
        direction,
        job_bytes: 100 << 20,
        device_bytes,
    };
    vec![
        (
            cached(Direction::Read, 25 << 20),
            VerdictKind::ServedFromCache,
            "the job read 100 MiB, but the device moved only 25 MiB (25.0 %): a cache served the \
             rest",
        ),
        (
            cached(Direction::Write, 0),
            VerdictKind::ServedFromCache,
            "the job wrote 100 MiB, but the device moved none of it: the data was still in a cache \
             at the end",
        ),
        (
            VerdictCause::AcknowledgedByClientCache {
                policy: "writearound".to_owned(),
                written_bytes: 8 << 20,
            },
            VerdictKind::ServedFromCache,
            "rbd_cache (writearound) of this client acknowledged the writes (8 MiB), so their \
             figures are those of the cache as long as it has room; CEPH_ARGS=--rbd-cache=false \
             measures the cluster",
        ),
        (
            VerdictCause::UnwrittenData {
                file: "/data/f".to_owned(),
                data_bytes: 750,
                hole_bytes: 200,
                unwritten_bytes: 50,
            },
            VerdictKind::UnwrittenData,
            "25.0 % of /data/f was never written (200 bytes of holes, 50 bytes of unwritten \
             extents in 1000): reads there return zeros without I/O on the device",
        ),
        (
            VerdictCause::HypervisorSteal {
                steal_percent: 20.0,
            },
            VerdictKind::Steal,
            "the hypervisor withheld 20 % of this machine's CPU time (steal): latencies may be too \
             high and rates too low",
        ),
    ]
}

fn stop_causes() -> Vec<CauseRow> {
    let stopped = |stops, was_suspended, is_excluded| VerdictCause::ProcessStopped {
        stops,
        stopped_ns: 4_000_000_000,
        first_ns: 1_000_000_000,
        was_suspended,
        is_excluded,
    };
    vec![
        (
            VerdictCause::MachineSuspended {
                suspended_ns: 90_000_000_000,
            },
            VerdictKind::ClockDisturbed,
            "the machine was suspended for 90.0 s during the run, which affects I/Os in flight, \
             caches and the device's state; measure again",
        ),
        (
            VerdictCause::ClockSet {
                step_ns: -3_600_000_000_000,
            },
            VerdictKind::ClockDisturbed,
            "the clock was set back by 3600 s during the run: time stamps are affected, rates and \
             latencies are not",
        ),
        (
            stopped(2, false, true),
            VerdictKind::Stopped,
            "this process did not run for 4.00 s in 2 stops, first 1.00 s after its jobs were \
             prepared (a stop signal or Ctrl-Z, a frozen control group, a debugger, or a paused \
             virtual machine): the figures exclude that time and the latencies of the I/Os in \
             flight then; the storage may have done background work in that time",
        ),
        (
            stopped(1, true, false),
            VerdictKind::Stopped,
            "this process did not run for 4.00 s, first 1.00 s after its jobs were prepared (the \
             machine was suspended): as with fio, the figures include that time",
        ),
        (
            VerdictCause::EngineFallback {
                engine: "libaio".to_owned(),
                reason: "io_uring is blocked here".to_owned(),
            },
            VerdictKind::Fallback,
            "ran with libaio: io_uring is blocked here",
        ),
    ]
}

fn all_causes() -> Vec<CauseRow> {
    [
        condition_causes(),
        stop_causes(),
        job_and_cgroup_causes(),
        worker_causes(),
        queue_causes(),
        rate_causes(),
        depth_causes(),
        device_causes(),
        ceph_causes(),
        cluster_causes(),
    ]
    .concat()
}

#[test]
fn verdict_causes_have_their_words() {
    for (cause, _, text) in all_causes() {
        assert_eq!(evidence(&cause), text);
    }
}

#[test]
fn verdict_causes_have_their_kinds() {
    for (cause, kind, text) in all_causes() {
        assert_eq!(verdict(cause).kind, kind, "{text}");
    }
}

#[test]
fn verdict_json_has_kind_evidence_and_cause() {
    for (cause, _, text) in all_causes() {
        let verdict = verdict(cause);
        let json = serde_json::to_value(&verdict).unwrap();
        assert_eq!(json["evidence"], text);
        assert!(json["kind"].is_string() && json["cause"]["kind"].is_string());
        assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
    }
    let json = serde_json::to_value(verdict(VerdictCause::ThinkTime {
        job: "j".to_owned(),
        paused_share: 0.5,
    }));
    let cause = serde_json::json!({ "kind": "think_time", "job": "j", "paused_share": 0.5 });
    assert_eq!(json.unwrap()["cause"], cause);
}

#[test]
fn verdict_without_cause_is_read_and_written() {
    let old = r#"{"kind":"device","evidence":"sda was busy"}"#;
    let verdict: Verdict = serde_json::from_str(old).unwrap();
    assert_eq!(verdict.kind, VerdictKind::Device);
    assert_eq!(verdict.cause, None);
    assert_eq!(serde_json::to_string(&verdict).unwrap(), old);
}

#[test]
fn verdict_with_an_unknown_cause_is_read_without_it() {
    let newer = r#"{"kind":"device","evidence":"sda","cause":{"kind":"of_2030","heat":7}}"#;
    let verdict: Verdict = serde_json::from_str(newer).unwrap();
    assert_eq!((&*verdict.evidence, verdict.cause), ("sda", None));
    let mut json = all_causes()
        .into_iter()
        .map(|(cause, _, _)| serde_json::to_value(&cause).unwrap())
        .find(|json| json["kind"] == "watched_server")
        .unwrap();
    json["wait"] = serde_json::json!({ "kind": "of_2030" });
    let cause: VerdictCause = serde_json::from_value(json).unwrap();
    assert!(
        matches!(cause, VerdictCause::WatchedServer { wait: None, .. }),
        "{cause:?}"
    );
}
