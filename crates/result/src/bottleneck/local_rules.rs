//! Rules about workers, devices and processors of this machine, one function each.

use super::ceph_rules;
use super::cgroup_bounds::own_bound;
use super::verdict_text::verdict;
use super::{DeviceLoad, FileLocation, RunObservation};
use crate::run::Verdict;
use crate::verdict_cause::{
    BusyDevice, CgroupIoLimit, ForeignTraffic, IoRateLimit, QueueAboveDevice, VerdictCause,
};
use iosonde_job::plan::Direction;

/// Share of its time on a processor from which on a worker counts as CPU-bound.
const NO_TIME_TO_SPARE: f64 = 0.9;
/// Share of its time waiting for a processor from which on a worker is slowed down.
const WAITS_FOR_PROCESSORS: f64 = 0.2;
/// Share of busy time from which on a device may be saturated.
const DEVICE_BUSY: f64 = 0.85;
/// Share of a limit from which on the limit counts as reached.
const BOUND_REACHED: f64 = 0.9;
/// Share of throttled time from which on control groups slow down a process.
const HELD_BACK: f64 = 0.1;
/// Share of bytes that no device moved from which on the run measured a cache.
const MOSTLY_CACHE: f64 = 0.5;
/// Share of a busy device's bytes from which on other users are the bottleneck.
const MANY_OTHERS: f64 = 0.2;
/// A smaller share is the background activity of any machine.
const FEW_OTHERS: f64 = 0.05;
/// Multiple of the shortest latency from which on I/Os wait in a queue.
const IN_LINE: f64 = 2.0;
/// Largest variation of the rate between intervals under a throttle, as a share of the mean.
const FLAT: f64 = 0.01;
/// Share of their time in fsync from which on workers are limited by flushes.
const MOSTLY_FLUSHING: f64 = 0.5;
/// Intervals needed to call a rate constant.
const FLAT_INTERVALS: usize = 5;

/// Returns the bottleneck of the run.
pub(super) fn find_local_bottleneck(seen: &RunObservation) -> Option<Verdict> {
    if seen.phases {
        return Some(verdict(VerdictCause::DifferentTimes));
    }
    let questions: &[BottleneckRule] = &[
        job_limit,
        written_bound,
        processor_bound,
        locks_over_a_cache,
        ceph_rules::recovery,
    ];
    if let Some(verdict) = first(seen, questions) {
        return Some(verdict);
    }
    if seen.cached >= MOSTLY_CACHE {
        return None;
    }
    let questions: &[BottleneckRule] = &[
        processors,
        ceph_rules::slow_osd,
        ceph_rules::slow_osd_or_network,
        served,
        many_others,
        wait_above_device,
        flat_top,
        flushes,
        depth,
        device,
    ];
    first(seen, questions).or_else(|| Some(unclear(seen)))
}

type BottleneckRule = fn(&RunObservation) -> Option<Verdict>;

fn first(seen: &RunObservation, questions: &[BottleneckRule]) -> Option<Verdict> {
    questions.iter().find_map(|question| question(seen))
}

fn job_limit(seen: &RunObservation) -> Option<Verdict> {
    seen.job_limit.clone().map(verdict)
}

/// Returns the device in a cause.
fn busy_device(device: &DeviceLoad) -> BusyDevice {
    BusyDevice {
        name: device.name.clone(),
        busy_share: device.busy,
        queue: device.queue,
    }
}

/// Returns the share of the bytes that the busiest device moved, not a cache or other member.
fn share_of_device(seen: &RunObservation, direction: Direction) -> f64 {
    let asked = seen.own[direction].bytes;
    match &seen.device {
        Some(device) if asked > 0 => {
            let moved = device.bytes[direction as usize];
            (moved as f64 / asked as f64).min(1.0)
        }
        _ => 1.0,
    }
}

/// Checks limits of control groups (`io.max`, blkio.throttle), which apply per device.
fn written_bound(seen: &RunObservation) -> Option<Verdict> {
    for limit in &seen.limits {
        let sides = [
            (Direction::Read, limit.read_iops, limit.read_bytes_per_s),
            (Direction::Write, limit.write_iops, limit.write_bytes_per_s),
        ];
        for (direction, iops, bytes) in sides {
            let counts = seen.own[direction];
            let reaching = share_of_device(seen, direction);
            let per_s = |count: u64| reaching * count as f64 / seen.seconds;
            let reached = |done: f64, bound: Option<u64>| {
                bound.filter(|bound| done >= BOUND_REACHED * *bound as f64)
            };
            let (rate, reached_per_s) = if let Some(bound) = reached(per_s(counts.ios), iops) {
                (IoRateLimit::Iops(bound), per_s(counts.ios))
            } else if let Some(bound) = reached(per_s(counts.bytes), bytes) {
                (IoRateLimit::BytesPerS(bound), per_s(counts.bytes))
            } else {
                continue;
            };
            return Some(verdict(VerdictCause::CgroupIoReached {
                limit: CgroupIoLimit {
                    cgroup: limit.cgroup.clone(),
                    direction,
                    rate,
                },
                device: seen.device.as_ref().map(|device| device.name.clone()),
                reached_per_s,
            }));
        }
    }
    None
}

/// Checks the CPU limits of control groups (`cpu.max`).
fn processor_bound(seen: &RunObservation) -> Option<Verdict> {
    let (held, limit_cpus) = seen.cpu_throttled.filter(|(held, _)| *held >= HELD_BACK)?;
    Some(verdict(VerdictCause::CgroupCpu {
        limit_cpus,
        throttled_share: held.min(1.0),
    }))
}

fn file_system(seen: &RunObservation) -> Option<&str> {
    match &seen.place {
        FileLocation::FileSystem(fs_type) => Some(fs_type),
        _ => None,
    }
}

fn processor_share(seen: &RunObservation) -> f64 {
    let (user, system) = seen.callers.busiest;
    user + system
}

/// Buffered I/O that reaches no device can only wait for locks.
fn locks_over_a_cache(seen: &RunObservation) -> Option<Verdict> {
    let fs_type = file_system(seen)?;
    let callers = &seen.callers;
    let device_busy = seen.device.as_ref().map_or(0.0, |device| device.busy);
    let cached = seen.cached >= MOSTLY_CACHE;
    let waits = cached && callers.workers > 1 && callers.asleep >= 0.4 && device_busy < 0.5;
    waits.then(|| {
        verdict(VerdictCause::LocksOverCache {
            workers: callers.workers as u64,
            fs_type: fs_type.to_owned(),
            asleep_share: callers.asleep,
            device_busy_share: device_busy,
        })
    })
}

fn processors(seen: &RunObservation) -> Option<Verdict> {
    let callers = &seen.callers;
    if callers.polling {
        return None;
    }
    let (user_share, system_share) = callers.busiest;
    let cpu_share = user_share + system_share;
    let workers = callers.workers as u64;
    let machine_busy_share = seen
        .cpu
        .map_or(0.0, |cpu| (cpu.user + cpu.system + cpu.steal) / 100.0);
    let memory_fs_type = match &seen.place {
        FileLocation::Memory(fs_type) => Some(fs_type.clone()),
        _ => None,
    };
    if cpu_share >= NO_TIME_TO_SPARE {
        return Some(verdict(VerdictCause::WorkerBusy {
            workers,
            user_share,
            system_share,
            memory_fs_type,
        }));
    }
    let is_queued = callers.queued >= WAITS_FOR_PROCESSORS
        && (machine_busy_share >= NO_TIME_TO_SPARE
            || cpu_share + callers.queued >= NO_TIME_TO_SPARE);
    is_queued.then(|| {
        verdict(VerdictCause::WorkerQueued {
            workers,
            cpu_share,
            queued_share: callers.queued,
            machine_busy_share,
            memory_fs_type,
        })
    })
}

/// Checks network file systems, network block devices and FUSE file systems.
fn served(seen: &RunObservation) -> Option<Verdict> {
    let FileLocation::Served(by) = &seen.place else {
        return None;
    };
    Some(verdict(VerdictCause::Served {
        service: by.clone(),
        device: seen.device.as_ref().map(|device| device.name.clone()),
        latency_ns: seen.callers.latency_ns,
        in_flight: seen.in_flight(),
        cpu_share: processor_share(seen),
        network: seen.network.clone(),
    }))
}

/// Returns the I/O of other users on the device: share of the bytes, and bytes per second.
fn others(seen: &RunObservation) -> Option<(f64, f64)> {
    let device = seen.device.as_ref().filter(|device| device.plain)?;
    let (read, written) = (seen.own.read.bytes, seen.own.write.bytes);
    // A file system writes metadata in addition to the data, and a journal for each flush.
    let allowance = match seen.place {
        FileLocation::Device => 0,
        _ => written / 10 + seen.flushes * (64 << 10),
    };
    let more =
        device.bytes[0].saturating_sub(read) + device.bytes[1].saturating_sub(written + allowance);
    let all = device.bytes[0] + device.bytes[1];
    (all > 0).then(|| (more as f64 / all as f64, more as f64 / seen.seconds))
}

fn foreign_traffic(device: &DeviceLoad, share: f64, per_s: f64) -> ForeignTraffic {
    ForeignTraffic {
        device: device.name.clone(),
        bytes_per_s: per_s,
        traffic_share: share,
    }
}

fn many_others(seen: &RunObservation) -> Option<Verdict> {
    let device = seen.device.as_ref().filter(|device| device.busy >= 0.5)?;
    let (share, per_s) = others(seen).filter(|(share, _)| *share >= MANY_OTHERS)?;
    Some(verdict(VerdictCause::OtherTraffic {
        traffic: foreign_traffic(device, share, per_s),
        busy_share: device.busy,
    }))
}

/// Reports I/O of other users as a finding, independent of the bottleneck.
pub(super) fn others_on_the_device(seen: &RunObservation) -> Option<Verdict> {
    let (share, per_s) = others(seen).filter(|(share, _)| *share >= FEW_OTHERS)?;
    let traffic = foreign_traffic(seen.device.as_ref()?, share, per_s);
    Some(verdict(VerdictCause::SharedDevice { traffic }))
}

/// I/Os that spend their time above the device wait for locks, or for a throttle not visible here.
fn wait_above_device(seen: &RunObservation) -> Option<Verdict> {
    let (device, callers) = (seen.device.as_ref()?, &seen.callers);
    let in_flight = seen.in_flight();
    let waits = callers.direct
        && device.requests > 0
        && callers.asleep >= 0.3
        // Otherwise completed I/Os wait for their worker.
        && callers.queued < WAITS_FOR_PROCESSORS / 2.0
        && in_flight >= 1.8
        && device.queue <= in_flight / 2.0
        && device.request_ns <= callers.latency_ns / 2.0;
    if !waits {
        return None;
    }
    let queue = QueueAboveDevice {
        in_flight,
        latency_ns: callers.latency_ns,
        device: device.name.clone(),
        device_queue: device.queue,
        request_ns: device.request_ns,
    };
    Some(verdict(match file_system(seen) {
        Some(fs_type) if seen.own.write.ios > 0 => VerdictCause::LocksAboveDevice {
            queue,
            fs_type: fs_type.to_owned(),
        },
        _ => VerdictCause::QueuedAboveDevice {
            queue,
            limit: own_bound(seen),
        },
    }))
}

/// Returns the mean of the rates, and their standard deviation as a share of the mean.
fn variation(rates: &[f64]) -> Option<(f64, f64)> {
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (rates.len() >= FLAT_INTERVALS && mean > 0.0)
        .then(|| (mean, (squares / (n - 1.0)).sqrt() / mean))
}

/// Infers a provider's throttle: the rate is constant while I/Os wait in a queue. A device with a
/// constant service time looks the same, so the evidence calls the verdict a guess.
fn flat_top(seen: &RunObservation) -> Option<Verdict> {
    let device = seen.device.as_ref()?;
    let (rate, varies) = variation(&seen.rates).filter(|(_, varies)| *varies <= FLAT)?;
    let callers = &seen.callers;
    let in_line = callers.latency_ns / callers.least_latency_ns.max(1.0);
    let bound = seen.virtual_machine
        && seen.in_flight() >= 2.0
        && in_line >= 2.0 * IN_LINE
        && device.busy >= DEVICE_BUSY;
    bound.then(|| {
        verdict(VerdictCause::FlatRate {
            iops: rate,
            variation_share: varies,
            latency_ns: callers.latency_ns,
            latency_ns_min: callers.least_latency_ns,
        })
    })
}

/// Workers that wait for fsync have almost no I/O in flight, at any iodepth.
fn flushes(seen: &RunObservation) -> Option<Verdict> {
    let callers = &seen.callers;
    let (flush_share, flush_ns) = callers.flushing;
    if flush_share < MOSTLY_FLUSHING {
        return None;
    }
    let workers = callers.workers as u64;
    let is_busy = |device: &DeviceLoad| workers > 1 && device.busy >= DEVICE_BUSY;
    Some(verdict(VerdictCause::Flushes {
        workers,
        flush_share,
        flush_ns,
        device: seen.device.as_ref().map(busy_device),
        is_device_limit: seen.device.as_ref().is_some_and(is_busy),
    }))
}

/// Checks whether I/Os took no longer than a single one: a higher depth would then complete more.
fn depth(seen: &RunObservation) -> Option<Verdict> {
    let callers = &seen.callers;
    if callers.latency_ns == 0.0 {
        return None;
    }
    let in_flight = seen.in_flight();
    let one_by_one = seen.device.as_ref().is_some_and(|device| device.rotational);
    let alone = callers.depth == 1 || in_flight <= 1.2;
    let not_in_line = callers.latency_ns < IN_LINE * callers.least_latency_ns;
    if one_by_one || !(alone || not_in_line) {
        return None;
    }
    let device = seen.device.as_ref().map(busy_device);
    let latency_ns = callers.latency_ns;
    Some(verdict(match callers.waiting_engine {
        Some(engine) => VerdictCause::SynchronousEngine {
            engine: engine.to_owned(),
            latency_ns,
            device,
        },
        None if alone => VerdictCause::OneIoInFlight {
            iodepth: callers.depth,
            latency_ns,
            device,
        },
        None => VerdictCause::LowDepth {
            in_flight,
            latency_ns,
            latency_ns_min: callers.least_latency_ns,
            device,
        },
    }))
}

fn device(seen: &RunObservation) -> Option<Verdict> {
    let device = seen
        .device
        .as_ref()
        .filter(|device| device.busy >= DEVICE_BUSY)?;
    Some(verdict(VerdictCause::DeviceBusy {
        device: BusyDevice {
            busy_share: device.busy.min(1.0),
            ..busy_device(device)
        },
        request_ns: device.request_ns,
    }))
}

fn unclear(seen: &RunObservation) -> Verdict {
    verdict(VerdictCause::NoLimitFound {
        device: seen.device.as_ref().map(busy_device),
        cpu_share: processor_share(seen),
        in_flight: seen.in_flight(),
    })
}
