//! Results made by hand, for tests.

use crate::histogram::Histogram;
use crate::host::Host;
use crate::interval::{Interval, IntervalCounts};
use crate::run::*;
use crate::stats::{LatencyStats, Moments};
use iosonde_job::plan::*;
use std::collections::BTreeMap;

/// Latencies of `values`.
pub(crate) fn latency(values: impl IntoIterator<Item = u64>) -> LatencyStats {
    let mut moments = Moments::default();
    let mut histogram = Histogram::default();
    for value in values {
        moments.record(value as f64);
        histogram.record(value);
    }
    LatencyStats {
        moments,
        histogram: Some(histogram),
    }
}

fn samples(values: &[f64]) -> Moments {
    let mut moments = Moments::default();
    values.iter().for_each(|value| moments.record(*value));
    moments
}

/// `ios` of 4 KiB in two seconds, with latencies that rise from `fastest_ns` in steps of 10 ns.
pub(crate) fn direction(ios: u64, fastest_ns: u64) -> DirectionStats {
    let rate = ios as f64 / 2.0;
    DirectionStats {
        io_bytes: ios * 4096,
        total_ios: ios,
        short_ios: 0,
        drop_ios: 0,
        runtime_ns: 2_000_300_000,
        slat: latency((0..ios).map(|i| 1000 + i)),
        clat: latency((0..ios).map(|i| fastest_ns + i * 10)),
        lat: latency((0..ios).map(|i| fastest_ns + 1000 + i * 11)),
        started_lat: None,
        bw: samples(&[rate * 3.0, rate * 4.0, rate * 5.0]),
        iops: samples(&[rate * 0.75, rate, rate * 1.25]),
        by_priority: Vec::new(),
    }
}

/// A worker of job `job` that did `directions`.
pub(crate) fn worker(
    job: usize,
    clone: u32,
    directions: PerDirection<DirectionStats>,
) -> WorkerResult {
    let ios: u64 = directions.iter().map(|(_, each)| each.total_ios).sum();
    WorkerResult {
        job,
        clone,
        groupid: 0,
        tid: 4242 + clone,
        backend: BackendUsed {
            engine: Engine::Libaio,
            asked: Engine::IoUring,
            reason: Some("io_uring is blocked here".into()),
            direct: true,
            registered_files: false,
            fixed_buffers: false,
            flags: Vec::new(),
            ceph: None,
        },
        started_at_ms: 1_795_225_508_000,
        start_delay_ns: 0,
        runtime_ns: 2_000_300_000,
        elapsed_ns: 2_100_000_000,
        directions,
        sync: SyncStats::default(),
        cpu: CpuUse {
            user_ns: 40_000_000,
            system_ns: 400_000_000,
            queued_ns: 0,
            context_switches: 1000,
            major_faults: 0,
            minor_faults: 13,
        },
        iodepth_level: [0, 0, 0, ios, 0, 0, 0],
        iodepth_submit: [0, ios, 0, 0, 0, 0, 0],
        iodepth_complete: [0, ios.saturating_sub(1), 1, 0, 0, 0, 0],
        latency_depth: 8,
        steady_state: None,
        error: None,
        total_errors: 0,
        first_error: 0,
        only_ramp: None,
    }
}

/// A result of `jobs` and `workers`.
pub(crate) fn result(jobs: Vec<Job>, workers: Vec<WorkerResult>) -> RunResult {
    RunResult {
        format: FORMAT,
        program: "iosonde 0.0.0-test".into(),
        started_at_ms: 1_795_225_508_000,
        elapsed_ns: 2_200_000_000,
        plan: Plan {
            jobs,
            global_options: vec![GivenOption {
                name: "direct".into(),
                value: "1".into(),
            }],
        },
        host: Host::default(),
        targets: Vec::new(),
        labels: BTreeMap::from([("node".into(), "n1".into())]),
        workers,
        neighbours: Vec::new(),
        disks: vec![disk(
            "dm-0",
            vec![disk("sda", Vec::new()), disk("sdb", Vec::new())],
        )],
        intervals: vec![Interval {
            start_ns: 0,
            length_ns: 1_000_000_000,
            directions: PerDirection::from_value(IntervalCounts {
                ios: 10,
                bytes: 40_960,
            }),
            latency: latency([10_000, 20_000]).histogram.unwrap(),
            sync_latency: Some(latency([3_000_000]).histogram.unwrap()),
            ramp: false,
            stopped_ns: 0,
            in_flight: None,
        }]
        .into(),
        series: Default::default(),
        pods: Vec::new(),
        shared_file: None,
        nodes: Vec::new(),
        ceph: None,
        nfs: Vec::new(),
        caches: Vec::new(),
        events: vec![RunEvent {
            at_ns: 5,
            message: "layout began".into(),
        }],
        verdicts: vec![Verdict {
            kind: VerdictKind::Fallback,
            evidence: "io_uring is blocked here; libaio ran".into(),
            cause: None,
        }],
        notes: Vec::new(),
    }
}

fn disk(name: &str, below: Vec<DiskUtil>) -> DiskUtil {
    let scale = name.len() as u64;
    DiskUtil {
        name: name.into(),
        ios: [100 * scale, 200],
        merges: [1, 2],
        ticks_ms: [10 * scale, 20],
        in_queue_ms: 30,
        sectors: [800, 1600],
        util_percent: 94.589_178,
        below,
    }
}
