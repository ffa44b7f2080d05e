//! [`FakeSession`]: computes results instead of running plans, for tests of studies and of the code
//! that shows them.
//!
//! Rates and latencies vary around those of a [`FakeDevice`], by seeded random numbers. A run takes
//! no time. Tests of what a device does, such as queues and caches, simulate one with the crate
//! `iosonde_sim` instead.

use iosonde_job::plan::{BytesOrPercent, Direction, Engine, PerDirection, Plan};
use iosonde_result::histogram::Histogram;
use iosonde_result::host::{DeviceInfo, DeviceKind, Host, Mount, Queue, TargetInfo, Transport};
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::observer::{Control, Observer, RunProgress, WorkerProgress, WorkerState};
use iosonde_result::run::{
    BackendUsed, CpuUse, DirectionStats, FORMAT, IoFailure, RunResult, SyncStats, Verdict,
    WorkerResult,
};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_result::stats::{LatencyStats, Moments};

/// Properties of a fake device.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeDevice {
    /// Model name.
    pub model: &'static str,
    /// Whether the device is a hard disk.
    pub rotational: bool,
    /// 4 KiB random reads per second at any depth above 1.
    pub random_read_iops: f64,
    /// 4 KiB random writes per second at any depth above 1.
    pub random_write_iops: f64,
    /// Bandwidth of sequential reads.
    pub read_bytes_per_s: f64,
    /// Bandwidth of sequential writes.
    pub write_bytes_per_s: f64,
    /// Median latency of one read.
    pub read_ns: f64,
    /// Median latency of one write.
    pub write_ns: f64,
    /// Median latency of fdatasync.
    pub sync_ns: f64,
    /// Random variation of the rates, as a share: peak to peak.
    pub jitter: f64,
    /// Whether opening with O_DIRECT fails.
    pub refuses_direct: bool,
    /// Bytes after which writes fail with ENOSPC.
    pub full_after_bytes: Option<u64>,
    /// Verdicts added to every run.
    pub verdicts: Vec<Verdict>,
}

impl FakeDevice {
    /// A local flash drive.
    pub fn nvme() -> Self {
        FakeDevice {
            model: "Example NVMe 1T",
            rotational: false,
            random_read_iops: 412_000.0,
            random_write_iops: 238_000.0,
            read_bytes_per_s: 3.4e9,
            write_bytes_per_s: 2.1e9,
            read_ns: 82_000.0,
            write_ns: 16_000.0,
            sync_ns: 410_000.0,
            jitter: 0.02,
            refuses_direct: false,
            full_after_bytes: None,
            verdicts: Vec::new(),
        }
    }

    /// A hard disk.
    pub fn hard_disk() -> Self {
        FakeDevice {
            model: "Example Disk 8T",
            rotational: true,
            random_read_iops: 190.0,
            random_write_iops: 310.0,
            read_bytes_per_s: 181e6,
            write_bytes_per_s: 176e6,
            read_ns: 9_400_000.0,
            write_ns: 3_100_000.0,
            sync_ns: 21_000_000.0,
            jitter: 0.06,
            ..FakeDevice::nvme()
        }
    }
}

/// Runs plans on a [`FakeDevice`].
#[derive(Debug)]
pub struct FakeSession {
    device: FakeDevice,
    random: u64,
    /// Plans run so far, without trials.
    pub plans: Vec<Plan>,
}

impl FakeSession {
    /// Creates a session that returns the same results every time.
    pub fn new(device: FakeDevice) -> Self {
        FakeSession {
            device,
            random: 0x9E37_79B9_7F4A_7C15,
            plans: Vec::new(),
        }
    }

    /// Returns a uniform number in 0..1 (xorshift64*).
    fn uniform(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns latencies around a median, with a tail.
    fn latencies(&mut self, count: u64, median_ns: f64) -> LatencyStats {
        let mut stats = LatencyStats {
            histogram: Some(Histogram::default()),
            ..LatencyStats::default()
        };
        let drawn = count.clamp(1, 2000);
        for index in 0..drawn {
            let share = (self.uniform() + index as f64) / drawn as f64;
            let tail = if share > 0.99 { 3.0 } else { 0.0 };
            let value = median_ns * (0.8 + 0.4 * share + tail);
            let weight = count / drawn + u64::from(index < count % drawn);
            stats.moments.merge(&Moments {
                count: weight,
                min: value,
                max: value,
                mean: value,
                m2: 0.0,
            });
            if let Some(histogram) = &mut stats.histogram {
                histogram.record_n(value as u64, weight);
            }
        }
        stats
    }
}

/// Workload of a plan's only job.
struct FakeWorkload {
    direction: Direction,
    block: u64,
    iodepth: u32,
    synced: bool,
    direct: bool,
    size: u64,
}

impl FakeWorkload {
    fn from_plan(plan: &Plan) -> FakeWorkload {
        let job = &plan.jobs[0];
        let direction = if job.workload.rw.has(Direction::Read) {
            Direction::Read
        } else {
            Direction::Write
        };
        FakeWorkload {
            direction,
            block: job.workload.block_size[direction].max(),
            iodepth: job.io.iodepth,
            synced: job.workload.fdatasync_every > 0,
            direct: job.io.direct,
            size: match job.files.size {
                Some(BytesOrPercent::Bytes(bytes)) => bytes,
                _ => 1 << 30,
            },
        }
    }

    /// Returns the I/Os per second, and the median latency in nanoseconds.
    fn truth(&self, device: &FakeDevice) -> (f64, f64) {
        let read = self.direction == Direction::Read;
        let (one, random, stream) = if read {
            (
                device.read_ns,
                device.random_read_iops,
                device.read_bytes_per_s,
            )
        } else {
            (
                device.write_ns,
                device.random_write_iops,
                device.write_bytes_per_s,
            )
        };
        if self.synced {
            return (1e9 / (device.sync_ns * 1.02 + 4_000.0), 4_000.0);
        }
        let large = self.block > 4096;
        if self.iodepth == 1 && !large {
            return (1e9 / (one * 1.02), one);
        }
        let rate = if large {
            stream / self.block as f64
        } else {
            random
        };
        (rate, f64::from(self.iodepth) * 1e9 / rate)
    }
}

/// Time between progress calls, in nanoseconds.
const PROGRESS_NS: u64 = 100_000_000;

impl Session for FakeSession {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        if plan.jobs[0].name == "trial" {
            return self.trial(plan);
        }
        self.plans.push(plan.clone());
        let asked = FakeWorkload::from_plan(plan);
        if asked.direct && self.device.refuses_direct {
            return Err(RunError::DirectRefused {
                path: "target".to_owned(),
                errno: iosonde_job::errno::EINVAL,
            });
        }
        let (rate, latency_ns) = asked.truth(&self.device);
        let job = &plan.jobs[0];
        let mut left = if job.schedule.time_based {
            u64::MAX
        } else {
            asked.size / asked.block
        };
        let mut error = None;
        if let Some(full) = self
            .device
            .full_after_bytes
            .filter(|full| *full < asked.size)
        {
            left = left.min(full / asked.block);
            error = Some(enospc(job.files.filenames[0].as_str(), full));
        }
        let mut intervals = Vec::new();
        let mut at_ns = job.schedule.ramp_time_ns;
        let end_ns = at_ns + job.schedule.runtime_ns;
        while at_ns < end_ns && left > 0 {
            let length_ns = (end_ns - at_ns)
                .min(observer.interval_ns(plan))
                .min((left as f64 / rate * 1e9).ceil() as u64);
            let (mut ios, mut done_ns, mut stop) = (0, 0, Control::Continue);
            while done_ns < length_ns && stop == Control::Continue {
                let part_ns = PROGRESS_NS.min(length_ns - done_ns);
                let jitter = 1.0 + self.device.jitter * (self.uniform() - 0.5);
                let most = (rate * jitter).max(1.0);
                let of_part = ((most * part_ns as f64 / 1e9).round() as u64).min(left);
                left -= of_part;
                ios += of_part;
                done_ns += part_ns;
                let part = interval(at_ns, part_ns, &asked, of_part);
                stop = report(observer, &part, at_ns + done_ns, end_ns);
            }
            let interval = interval(at_ns, done_ns, &asked, ios);
            at_ns += done_ns;
            if observer.interval(&interval) == Control::Stop {
                stop = Control::Stop;
            }
            intervals.push(interval);
            if stop == Control::Stop || ios == 0 {
                break;
            }
        }
        let latency = |session: &mut Self, ios| session.latencies(ios, latency_ns);
        Ok(self.result(plan, &asked, intervals, error, latency))
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

impl FakeSession {
    /// Runs a trial, which draws no random numbers of this session and is not recorded in `plans`.
    fn trial(&self, plan: &Plan) -> Result<RunResult, RunError> {
        let mut other = FakeSession::new(self.device.clone());
        let mut plan = plan.clone();
        plan.jobs[0].name = "tried".to_owned();
        Session::run(&mut other, &plan, &mut ())
    }

    fn result(
        &mut self,
        plan: &Plan,
        asked: &FakeWorkload,
        intervals: Vec<Interval>,
        error: Option<IoFailure>,
        latency: impl Fn(&mut Self, u64) -> LatencyStats,
    ) -> RunResult {
        let ios: u64 = intervals
            .iter()
            .map(|interval| interval.directions[asked.direction].ios)
            .sum();
        let runtime_ns = intervals.iter().map(|interval| interval.length_ns).sum();
        let mut directions = PerDirection::<DirectionStats>::default();
        let clat = latency(self, ios);
        directions[asked.direction] = DirectionStats {
            io_bytes: ios * asked.block,
            total_ios: ios,
            runtime_ns,
            lat: clat.clone(),
            clat,
            ..DirectionStats::default()
        };
        let sync = if asked.synced {
            SyncStats {
                total_ios: ios,
                other_than_fsync: 0,
                lat: self.latencies(ios, self.device.sync_ns),
            }
        } else {
            SyncStats::default()
        };
        RunResult {
            format: FORMAT,
            program: "iosonde (fake)".into(),
            started_at_ms: 1_795_226_283_000,
            elapsed_ns: runtime_ns,
            plan: plan.clone(),
            host: example_host(),
            targets: vec![self.target(plan)],
            labels: Default::default(),
            workers: vec![worker(plan, directions, sync, runtime_ns, error)],
            neighbours: Vec::new(),
            disks: Vec::new(),
            intervals: intervals.into(),
            series: Default::default(),
            pods: Vec::new(),
            shared_file: None,
            nodes: Vec::new(),
            ceph: None,
            nfs: Vec::new(),
            caches: Vec::new(),
            events: Vec::new(),
            verdicts: self.device.verdicts.clone(),
            notes: Vec::new(),
        }
    }

    fn target(&self, plan: &Plan) -> TargetInfo {
        let queue = Queue {
            rotational: Some(self.device.rotational),
            scheduler: Some("none".into()),
            volatile_write_cache: Some(true),
            ..Queue::default()
        };
        let (name, kind, transport) = match self.device.rotational {
            true => ("sda", DeviceKind::Ata, Transport::Sata),
            false => ("nvme0n1", DeviceKind::Nvme, Transport::Pcie),
        };
        TargetInfo {
            path: plan.jobs[0].files.filenames[0].as_str().into(),
            mount: Some(Mount {
                mount_point: "/data".into(),
                fs_type: "ext4".into(),
                source: "/dev/nvme0n1".into(),
                ..Mount::default()
            }),
            devices: vec![DeviceInfo {
                name: name.into(),
                kind,
                transport: Some(transport),
                model: Some(self.device.model.into()),
                size_bytes: 1_000_204_886_016,
                queue: Some(queue),
                ..DeviceInfo::default()
            }],
            ..TargetInfo::default()
        }
    }
}

fn example_host() -> Host {
    Host {
        hostname: Some("example".into()),
        kernel: Some("6.1.0".into()),
        os: Some("Debian GNU/Linux 12 (bookworm)".into()),
        architecture: "x86_64".into(),
        ..Host::default()
    }
}

fn enospc(file: &str, offset: u64) -> IoFailure {
    IoFailure {
        errno: 28,
        operation: "write".into(),
        file: Some(file.into()),
        offset: Some(offset),
        message: format!("{file}: ENOSPC at offset {offset}: use a smaller size="),
    }
}

fn interval(start_ns: u64, length_ns: u64, asked: &FakeWorkload, ios: u64) -> Interval {
    let mut directions = PerDirection::<IntervalCounts>::default();
    directions[asked.direction] = IntervalCounts {
        ios,
        bytes: ios * asked.block,
    };
    Interval {
        start_ns,
        length_ns,
        directions,
        ..Interval::default()
    }
}

fn report(observer: &mut dyn Observer, interval: &Interval, at_ns: u64, end_ns: u64) -> Control {
    let worker = WorkerProgress {
        state: WorkerState::Running,
        job: 0,
        open_files: 1,
        counts: interval.directions,
    };
    let progress = RunProgress {
        at_ns,
        workers: &[worker],
        rate: PerDirection::from_fn(|direction| per_second(interval, direction)),
        left_ns: Some(end_ns - at_ns),
        done: Some(at_ns as f64 / end_ns as f64),
        pods: &[],
    };
    observer.progress(&progress)
}

fn per_second(interval: &Interval, direction: Direction) -> IntervalCounts {
    let scaled = |count: u64| (count as f64 * 1e9 / interval.length_ns as f64).round() as u64;
    let counts = interval.directions[direction];
    IntervalCounts {
        ios: scaled(counts.ios),
        bytes: scaled(counts.bytes),
    }
}

fn worker(
    plan: &Plan,
    directions: PerDirection<DirectionStats>,
    sync: SyncStats,
    runtime_ns: u64,
    error: Option<IoFailure>,
) -> WorkerResult {
    let job = &plan.jobs[0];
    let engine = match job.io.engine {
        Engine::Auto => Engine::IoUring,
        named => named,
    };
    WorkerResult {
        job: 0,
        clone: 0,
        groupid: 0,
        tid: 4242,
        backend: BackendUsed {
            engine,
            asked: job.io.engine,
            reason: None,
            direct: job.io.direct,
            registered_files: engine == Engine::IoUring,
            fixed_buffers: engine == Engine::IoUring,
            flags: Vec::new(),
            ceph: None,
        },
        started_at_ms: 1_795_226_283_000,
        start_delay_ns: 0,
        runtime_ns,
        elapsed_ns: runtime_ns,
        directions,
        sync,
        cpu: CpuUse::default(),
        iodepth_level: [0; 7],
        iodepth_submit: [0; 7],
        iodepth_complete: [0; 7],
        latency_depth: job.io.iodepth,
        steady_state: None,
        error,
        total_errors: 0,
        first_error: 0,
        only_ramp: None,
    }
}
