//! Collects the observations of a run from which the bottleneck verdict follows.

use super::RunMeasurements;
use super::series_sampler::MachineTotals;
use iosonde_job::plan::{Direction, Job, PerDirection, Plan};
use iosonde_machine::cache::ByteTraffic;
use iosonde_machine::diskstats::DiskCounters;
use iosonde_machine::identify::identify;
use iosonde_machine::proc_root::System;
use iosonde_machine::{cgroup, host};
use iosonde_result::bottleneck::{DeviceLoad, FileLocation, RunObservation, WorkerObservation};
use iosonde_result::host::{
    DeviceInfo, DeviceKind, IoLimit, Locality, Mount, ServiceClient, TargetInfo, Transport,
};
use iosonde_result::interval::{Interval, IntervalCounts, Intervals};
use iosonde_result::network::NetworkLoad;
use iosonde_result::run::WorkerResult;
use iosonde_result::verdict_cause::VerdictCause;
use std::borrow::Cow;
use std::time::Duration;

/// Returns the observations of a run, except for cache effects.
pub(super) fn observed(
    plan: &Plan,
    outcome: &RunMeasurements,
    targets: &[TargetInfo],
    counted: &MachineTotals,
    system: &System,
) -> RunObservation {
    let intervals = EvaluatedIntervals::select(&outcome.intervals);
    let mut own = PerDirection::<IntervalCounts>::default();
    let mut length_ns = 0;
    for interval in intervals.iter() {
        length_ns += interval.length_ns;
        for direction in Direction::ALL {
            own[direction].ios += interval.directions[direction].ios;
            own[direction].bytes += interval.directions[direction].bytes;
        }
    }
    // The devices moved the neighbours' data too, which are in no interval.
    for worker in &outcome.neighbours {
        for (direction, stats) in worker.directions.iter() {
            let share = length_ns as f64 / stats.runtime_ns.max(length_ns).max(1) as f64;
            own[direction].ios += (stats.total_ios as f64 * share) as u64;
            own[direction].bytes += (stats.io_bytes as f64 * share) as u64;
        }
    }
    let mut callers = callers(plan, &outcome.workers);
    callers.least_latency_ns = least(callers.least_latency_ns, &outcome.intervals);
    let virtual_machine = host::describe_host(system).platform.virtual_machine == Some(true);
    let buffered_writes = !callers.direct && own.write.bytes > 0;
    let device = busiest(targets, counted).map(|(info, moved)| DeviceLoad {
        rotational: turns(info) && !virtual_machine,
        plain: !buffered_writes
            && targets.iter().all(is_plain)
            && (own.write.bytes == 0 || !targets.iter().any(writes_more)),
        ..device_load(info, moved, counted.elapsed)
    });
    let quota = cgroup::limits(system).cpu_quota;
    let held = counted.cpu_throttled_ns.map(|ns| {
        let workers = callers.workers.max(1) as f64;
        ns as f64 / 1e9 / counted.elapsed.as_secs_f64().max(1e-9) / workers
    });
    RunObservation {
        seconds: length_ns as f64 / 1e9,
        network: carrying_interface(&own, length_ns, counted),
        own,
        flushes: outcome
            .workers
            .iter()
            .map(|worker| worker.sync.total_ios)
            .sum(),
        callers,
        job_limit: job_limit(plan, &outcome.workers),
        place: place(targets),
        device,
        limits: io_limits(targets),
        cpu: counted.cpu,
        cpu_throttled: held.zip(quota),
        rates: rates(&intervals, ramp_ends_ns(plan)),
        virtual_machine,
        ..RunObservation::default()
    }
}

/// Returns the busiest network interface, if it carried the I/O of the run.
fn carrying_interface(
    own: &PerDirection<IntervalCounts>,
    length_ns: u64,
    counted: &MachineTotals,
) -> Option<NetworkLoad> {
    let moved: u64 = own.iter().map(|(_, counts)| counts.bytes).sum();
    let bytes_per_s = moved as f64 * 1e9 / length_ns.max(1) as f64;
    counted.network_load(bytes_per_s)
}

/// Returns the share of the requested bytes that the devices did not transfer.
pub(super) fn missing(asked: ByteTraffic, moved: ByteTraffic) -> f64 {
    let missing = asked.read_bytes.saturating_sub(moved.read_bytes)
        + asked.written_bytes.saturating_sub(moved.written_bytes);
    let all = asked.read_bytes + asked.written_bytes;
    if all == 0 {
        return 0.0;
    }
    missing as f64 / all as f64
}

/// The intervals to evaluate: those of the ramp only if there are no others.
struct EvaluatedIntervals<'a> {
    all: &'a Intervals,
    with_ramp: bool,
}

impl<'a> EvaluatedIntervals<'a> {
    fn select(all: &'a Intervals) -> EvaluatedIntervals<'a> {
        EvaluatedIntervals {
            all,
            with_ramp: all.iter().all(|each| each.ramp),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Cow<'a, Interval>> {
        let with_ramp = self.with_ramp;
        self.all.iter().filter(move |each| with_ramp || !each.ramp)
    }
}

/// Returns the start of the last job's measured time, since the start of the run.
fn ramp_ends_ns(plan: &Plan) -> u64 {
    let ramps = plan.jobs.iter().map(|job| job.schedule.ramp_time_ns);
    ramps.max().unwrap_or(0)
}

/// Returns I/Os per second of each whole interval: not of the ramp's end, and not the last (drain).
fn rates(intervals: &EvaluatedIntervals<'_>, ramp_ends_ns: u64) -> Vec<f64> {
    let (longest_ns, count) = intervals.iter().fold((0, 0), |(longest_ns, count), each| {
        (each.length_ns.max(longest_ns), count + 1)
    });
    let before_last = intervals.iter().take(usize::saturating_sub(count, 1));
    let whole = before_last.filter(|each| {
        each.start_ns >= ramp_ends_ns && each.length_ns > 0 && each.length_ns * 10 >= longest_ns * 9
    });
    let rate = |each: Cow<'_, Interval>| {
        let ios: u64 = each.directions.iter().map(|(_, counts)| counts.ios).sum();
        ios as f64 * 1e9 / each.length_ns as f64
    };
    whole.map(rate).collect()
}

fn callers(plan: &Plan, workers: &[WorkerResult]) -> WorkerObservation {
    let ran: Vec<&WorkerResult> = workers.iter().filter(|each| each.runtime_ns > 0).collect();
    let share = |worker: &WorkerResult, ns: u64| (ns as f64 / worker.runtime_ns as f64).min(1.0);
    let ready = |worker: &&&WorkerResult| {
        let cpu = &worker.cpu;
        cpu.user_ns + cpu.system_ns + cpu.queued_ns
    };
    let busiest = ran.iter().max_by_key(ready);
    let asleep = |worker: &&WorkerResult| 1.0 - share(worker, ready(&worker));
    let (latency_ns, least_latency_ns) = latency(&ran);
    let job = |worker: &WorkerResult| &plan.jobs[worker.job];
    let depth = |worker: &&WorkerResult| u64::from(super::backend_choice::depth(job(worker)));
    WorkerObservation {
        workers: ran.len(),
        depth: ran.iter().map(depth).sum(),
        waiting_engine: ran
            .iter()
            .map(|worker| {
                let waits = depth(worker) == 1 && job(worker).io.iodepth > 1;
                waits.then(|| worker.backend.engine.name())
            })
            .reduce(|one, other| one.and(other))
            .flatten(),
        latency_ns,
        least_latency_ns,
        busiest: busiest.map_or((0.0, 0.0), |worker| {
            let cpu = &worker.cpu;
            (share(worker, cpu.user_ns), share(worker, cpu.system_ns))
        }),
        queued: busiest.map_or(0.0, |worker| share(worker, worker.cpu.queued_ns)),
        asleep: ran.iter().map(asleep).sum::<f64>() / ran.len().max(1) as f64,
        flushing: flushing(&ran),
        polling: ran.iter().any(|worker| {
            let uring = &job(worker).io.uring;
            uring.hipri || uring.sqthread_poll
        }),
        direct: !ran.is_empty() && ran.iter().all(|worker| worker.backend.direct),
    }
}

/// Returns the mean and the minimum latency of all I/Os; 0 if none was measured.
fn latency(workers: &[&WorkerResult]) -> (f64, f64) {
    let mut all = iosonde_result::stats::Moments::default();
    for worker in workers {
        for (_, stats) in worker.directions.iter() {
            let total = &stats.lat.moments;
            let moments = if total.count > 0 {
                total
            } else {
                &stats.clat.moments
            };
            all.merge(moments);
        }
    }
    (all.mean, all.min)
}

/// Returns the share of the workers' time in syncs, and the mean time of a sync.
fn flushing(workers: &[&WorkerResult]) -> (f64, f64) {
    let mut all = iosonde_result::stats::Moments::default();
    let mut runtime_ns = 0;
    for worker in workers {
        all.merge(&worker.sync.lat.moments);
        runtime_ns += worker.runtime_ns;
    }
    let spent_ns = all.mean * all.count as f64;
    ((spent_ns / runtime_ns.max(1) as f64).min(1.0), all.mean)
}

/// Returns the minimum latency, ramp included: in a full queue only the first I/Os do not wait.
fn least(measured_ns: f64, intervals: &Intervals) -> f64 {
    let each = intervals
        .iter()
        .filter_map(|interval| interval.latency.percentile(0.0));
    each.map(|ns| ns as f64)
        .filter(|ns| *ns > 0.0)
        .fold(measured_ns, f64::min)
}

/// Returns a limit that the jobs set themselves, if all of them reached theirs.
fn job_limit(plan: &Plan, workers: &[WorkerResult]) -> Option<VerdictCause> {
    let ran = workers.iter().filter(|worker| worker.runtime_ns > 0);
    let reasons: Option<Vec<VerdictCause>> = ran
        .map(|worker| {
            rate_reached(&plan.jobs[worker.job], worker)
                .or_else(|| pauses(&plan.jobs[worker.job], worker))
        })
        .collect();
    reasons?.into_iter().next()
}

fn rate_reached(job: &Job, worker: &WorkerResult) -> Option<VerdictCause> {
    let seconds = worker.runtime_ns as f64 / 1e9;
    let schedule = &job.schedule;
    Direction::ALL.into_iter().find_map(|direction| {
        let stats = &worker.directions[direction];
        let sides = [
            ("rate", schedule.rate_bytes[direction], stats.io_bytes),
            ("rate_iops", schedule.rate_iops[direction], stats.total_ios),
        ];
        sides.into_iter().find_map(|(option, rate, done)| {
            let rate = rate.filter(|rate| done as f64 / seconds >= 0.95 * *rate as f64)?;
            Some(VerdictCause::JobRate {
                job: job.name.clone(),
                option: option.to_owned(),
                limit_per_s: rate,
                reached_per_s: done as f64 / seconds,
            })
        })
    })
}

fn pauses(job: &Job, worker: &WorkerResult) -> Option<VerdictCause> {
    let think = job.schedule.thinktime?;
    let ios: u64 = worker
        .directions
        .iter()
        .map(|(_, stats)| stats.total_ios)
        .sum();
    let paused_ns = think.pause_ns * (ios / u64::from(think.blocks.max(1)));
    let share = paused_ns as f64 / worker.runtime_ns as f64;
    (share >= 0.5).then(|| VerdictCause::ThinkTime {
        job: job.name.clone(),
        paused_share: share.min(1.0),
    })
}

fn io_limits(targets: &[TargetInfo]) -> Vec<IoLimit> {
    let mut limits: Vec<IoLimit> = Vec::new();
    for limit in targets.iter().flat_map(|target| &target.limits) {
        if !limits.contains(limit) {
            limits.push(limit.clone());
        }
    }
    limits
}

fn place(targets: &[TargetInfo]) -> FileLocation {
    targets.first().map_or(FileLocation::Nowhere, |target| {
        let remote = target.all_devices().into_iter().find_map(network_device);
        match (remote, &target.mount) {
            (Some(device), _) => FileLocation::Served(device),
            (None, Some(mount)) => place_of_mount(mount),
            (None, None) => target
                .all_devices()
                .iter()
                .find_map(|device| backing_server(device))
                .unwrap_or(FileLocation::Device),
        }
    })
}

fn place_of_mount(mount: &Mount) -> FileLocation {
    match mount.locality {
        Locality::Memory => FileLocation::Memory(mount.fs_type.clone()),
        Locality::Remote => FileLocation::Served(match &mount.service {
            Some(service) if service.client != ServiceClient::Nfs => {
                service.client.words().to_owned()
            }
            _ => format!("{} ({})", mount.source, mount.fs_type),
        }),
        Locality::UserSpace => FileLocation::Served(format!(
            "the process that serves {} ({})",
            mount.mount_point.display(),
            mount.fs_type
        )),
        Locality::Block | Locality::Stacked | Locality::Pseudo => {
            FileLocation::FileSystem(mount.fs_type.clone())
        }
    }
}

/// Returns the server of the file behind a loop device, if it is remote.
fn backing_server(device: &DeviceInfo) -> Option<FileLocation> {
    let backing = identify(device.backing_file.as_ref()?).ok()?;
    let place = place_of_mount(&backing.mount?);
    matches!(place, FileLocation::Served(_)).then_some(place)
}

fn network_device(device: &DeviceInfo) -> Option<String> {
    let by_kind = matches!(
        device.kind,
        DeviceKind::Nbd | DeviceKind::Rbd | DeviceKind::Drbd
    );
    let by_transport = matches!(
        device.transport,
        Some(Transport::NvmeTcp | Transport::NvmeRdma | Transport::Iscsi | Transport::Network)
    );
    (by_kind || by_transport).then(|| format!("the server behind {}", device.name))
}

/// Returns the device under the files that was busy longest; of equals, the lowest.
fn busiest<'a>(
    targets: &'a [TargetInfo],
    counted: &MachineTotals,
) -> Option<(&'a DeviceInfo, DiskCounters)> {
    let devices = targets.iter().flat_map(TargetInfo::all_devices);
    // A partition has no queue of its own.
    let whole = devices.filter(|device| device.kind != DeviceKind::Partition);
    let mut found: Option<(&DeviceInfo, DiskCounters)> = None;
    for info in whole {
        let Some(moved) = counted.disks.get(info.number) else {
            continue;
        };
        // Upper devices come first, and wait for lower ones.
        let least_ms = found.map_or(0, |(_, known)| known.busy_ms * 9 / 10);
        if moved.busy_ms >= least_ms {
            found = Some((info, *moved));
        }
    }
    found
}

fn device_load(info: &DeviceInfo, moved: DiskCounters, elapsed: Duration) -> DeviceLoad {
    let requests = moved.reads.ios + moved.writes.ios;
    let ticks_ms = moved.reads.ticks_ms + moved.writes.ticks_ms;
    DeviceLoad {
        name: info.name.clone(),
        busy: (moved.busy_percent(elapsed) / 100.0).min(1.0),
        queue: moved.in_queue_ms as f64 / 1e3 / elapsed.as_secs_f64().max(1e-9),
        request_ns: ticks_ms as f64 * 1e6 / requests.max(1) as f64,
        requests,
        bytes: [moved.read_bytes(), moved.written_bytes()],
        ..DeviceLoad::default()
    }
}

fn turns(info: &DeviceInfo) -> bool {
    let says_so = info.queue.as_ref().and_then(|queue| queue.rotational) == Some(true);
    says_so && matches!(info.kind, DeviceKind::Scsi | DeviceKind::Ata)
}

/// Whether the file system amplifies writes: by metadata for each block, or by data journalling.
fn writes_more(target: &TargetInfo) -> bool {
    const COPY_ON_WRITE: [&str; 5] = ["btrfs", "zfs", "bcachefs", "f2fs", "nilfs2"];
    target.mount.as_ref().is_some_and(|mount| {
        COPY_ON_WRITE.contains(&mount.fs_type.as_str())
            || mount.options.iter().any(|option| option == "data=journal")
    })
}

/// Whether each device is on a single lower device, so that no array or copy amplifies writes.
fn is_plain(target: &TargetInfo) -> bool {
    target.devices.len() == 1
        && target.all_devices().iter().all(|device| {
            device.below.len() <= 1 && device.kind != DeviceKind::Md && !has_snapshots(device)
        })
}

/// Whether a volume copies overwritten data: LVM names the data below it `*-real`.
fn has_snapshots(device: &DeviceInfo) -> bool {
    let name = device.detail.as_deref().unwrap_or_default();
    device.kind == DeviceKind::Lvm && name.ends_with("-real")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_cover_only_complete_intervals() {
        let second = |start_ns: u64, length_ns: u64, ios: u64| {
            let mut interval = Interval {
                start_ns,
                length_ns,
                ..Interval::default()
            };
            interval.directions.read.ios = ios;
            interval
        };
        let all = [
            second(2_000_000, 1_100_000_000, 900),
            second(1_102_000_000, 1_000_000_000, 500),
            second(2_102_000_000, 1_000_000_000, 500),
            second(3_102_000_000, 990_000_000, 475),
        ];
        let rates = |all: &[Interval], ramp_ends_ns| {
            rates(
                &EvaluatedIntervals::select(&all.to_vec().into()),
                ramp_ends_ns,
            )
        };
        assert_eq!(rates(&all, 1_000_000_000), [500.0, 500.0]);
        assert_eq!(rates(&all[1..], 0), [500.0, 500.0]);
        assert_eq!(rates(&[], 0), [0.0; 0]);
    }

    #[test]
    fn write_amplifying_targets_hide_io_of_others() {
        let on = |fs_type: &str, options: &[&str]| TargetInfo {
            mount: Some(Mount {
                fs_type: fs_type.into(),
                options: options.iter().map(|option| (*option).to_owned()).collect(),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        assert!(writes_more(&on("btrfs", &["rw"])));
        assert!(writes_more(&on("ext4", &["rw", "data=journal"])));
        assert!(!writes_more(&on("ext4", &["rw", "data=ordered"])));
        assert!(!writes_more(&TargetInfo::default()));
        let volume = |detail: &str| {
            let disk = DeviceInfo {
                kind: DeviceKind::Lvm,
                detail: Some(detail.into()),
                ..DeviceInfo::default()
            };
            let devices = vec![disk];
            is_plain(&TargetInfo {
                devices,
                ..TargetInfo::default()
            })
        };
        assert!(volume("vg/data") && volume("vg/really"));
        assert!(!volume("vg-data-real"), "its origin has snapshots");
    }

    #[test]
    fn shortest_latency_includes_the_ramp() {
        let mut ramp = Interval {
            ramp: true,
            ..Interval::default()
        };
        ramp.latency.record(200);
        ramp.latency.record(31_000_000);
        let mut measured = Interval::default();
        measured.latency.record(30_000_000);
        assert_eq!(least(30_000_000.0, &vec![ramp, measured].into()), 200.0);
        assert_eq!(
            least(30_000_000.0, &vec![Interval::default()].into()),
            30_000_000.0
        );
    }
}
