//! Rules about workers, devices and processors of this machine, one function each.

use super::ceph_rules;
use super::cgroup_bounds::own_bound;
use super::{DeviceLoad, Observed, Place};
use crate::run::{Verdict, VerdictKind};
use crate::words;
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
pub(super) fn main(seen: &Observed) -> Option<Verdict> {
    if seen.phases {
        let evidence =
            "the jobs ran at different times: what held each back shows when they run alone"
                .to_owned();
        return Some(verdict(VerdictKind::Unclear, evidence));
    }
    let questions: &[Question] = &[
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
    let questions: &[Question] = &[
        processors,
        ceph_rules::slow_osd,
        ceph_rules::where_time_goes,
        served,
        many_others,
        above_the_device,
        flat_top,
        flushes,
        depth,
        device,
    ];
    first(seen, questions).or_else(|| Some(unclear(seen)))
}

type Question = fn(&Observed) -> Option<Verdict>;

fn first(seen: &Observed, questions: &[Question]) -> Option<Verdict> {
    questions.iter().find_map(|question| question(seen))
}

pub(super) fn verdict(kind: VerdictKind, evidence: String) -> Verdict {
    Verdict { kind, evidence }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

fn job_limit(seen: &Observed) -> Option<Verdict> {
    let evidence = seen.job_limit.clone()?;
    Some(verdict(VerdictKind::JobLimit, evidence))
}

/// Returns the share of the bytes that the busiest device moved, not a cache or other member.
fn share_of_device(seen: &Observed, direction: Direction) -> f64 {
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
fn written_bound(seen: &Observed) -> Option<Verdict> {
    for limit in &seen.limits {
        let sides = [
            (
                Direction::Read,
                "reads",
                limit.read_iops,
                limit.read_bytes_per_s,
            ),
            (
                Direction::Write,
                "writes",
                limit.write_iops,
                limit.write_bytes_per_s,
            ),
        ];
        for (direction, noun, iops, bytes) in sides {
            let counts = seen.own[direction];
            let reaching = share_of_device(seen, direction);
            let per_s = |count: u64| reaching * count as f64 / seen.seconds;
            let reached = |done: f64, bound: Option<u64>| {
                bound.filter(|bound| done >= BOUND_REACHED * *bound as f64)
            };
            let evidence = if let Some(bound) = reached(per_s(counts.ios), iops) {
                format!(
                    "allows {bound} {noun}/s, and {:.0} were done",
                    per_s(counts.ios)
                )
            } else if let Some(bound) = reached(per_s(counts.bytes), bytes) {
                let done = words::bandwidth(per_s(counts.bytes));
                format!(
                    "allows {noun} of {}, and {done} was done",
                    words::bandwidth(bound as f64)
                )
            } else {
                continue;
            };
            let name = seen
                .device
                .as_ref()
                .map_or(String::new(), |device| format!(" on {}", device.name));
            let evidence = format!("cgroup {}{name} {evidence}", limit.cgroup);
            return Some(verdict(VerdictKind::Throttled, evidence));
        }
    }
    None
}

/// Checks the CPU limits of control groups (`cpu.max`).
fn processor_bound(seen: &Observed) -> Option<Verdict> {
    let (held, allowed) = seen.cpu_throttled.filter(|(held, _)| *held >= HELD_BACK)?;
    let evidence = format!(
        "this process's cgroup allows {} of a processor and held it back for {} of the time",
        words::three_digits(allowed),
        percent(held.min(1.0))
    );
    Some(verdict(VerdictKind::Generator, evidence))
}

fn file_system(seen: &Observed) -> Option<&str> {
    match &seen.place {
        Place::FileSystem(fs_type) => Some(fs_type),
        _ => None,
    }
}

fn processor_share(seen: &Observed) -> f64 {
    let (user, system) = seen.callers.busiest;
    user + system
}

/// Buffered I/O that reaches no device can only wait for locks.
fn locks_over_a_cache(seen: &Observed) -> Option<Verdict> {
    let fs_type = file_system(seen)?;
    let callers = &seen.callers;
    let device_busy = seen.device.as_ref().map_or(0.0, |device| device.busy);
    let cached = seen.cached >= MOSTLY_CACHE;
    let waits = cached && callers.workers > 1 && callers.asleep >= 0.4 && device_busy < 0.5;
    waits.then(|| {
        let evidence = format!(
            "{} workers slept {} of their time over {fs_type}, while a cache took the data and the device was busy only {} of the time: they waited for each other",
            callers.workers,
            percent(callers.asleep),
            percent(device_busy)
        );
        verdict(VerdictKind::LockContention, evidence)
    })
}

fn processors(seen: &Observed) -> Option<Verdict> {
    let callers = &seen.callers;
    if callers.polling {
        return None;
    }
    let (user, system) = callers.busiest;
    let of = match callers.workers {
        1 => "the worker was".to_owned(),
        count => format!("the busiest of {count} workers was"),
    };
    let machine = seen
        .cpu
        .map_or(0.0, |cpu| (cpu.user + cpu.system + cpu.steal) / 100.0);
    let evidence = if user + system >= NO_TIME_TO_SPARE {
        format!(
            "{of} on a processor {} of the time ({} in the program, {} in the kernel)",
            percent(user + system),
            percent(user),
            percent(system)
        )
    } else if callers.queued >= WAITS_FOR_PROCESSORS
        && (machine >= NO_TIME_TO_SPARE || user + system + callers.queued >= NO_TIME_TO_SPARE)
    {
        format!(
            "{of} on a processor {} of the time and waited for one {}; all processors together were {} busy",
            percent(user + system),
            percent(callers.queued),
            percent(machine)
        )
    } else {
        return None;
    };
    let evidence = match &seen.place {
        Place::Memory(fs_type) => format!("{evidence}; {fs_type} is memory"),
        _ => evidence,
    };
    Some(verdict(VerdictKind::Generator, evidence))
}

/// Checks network file systems, network block devices and FUSE file systems.
fn served(seen: &Observed) -> Option<Verdict> {
    let Place::Served(by) = &seen.place else {
        return None;
    };
    let local = match &seen.device {
        Some(device) => format!(", {} included", device.name),
        None => String::new(),
    };
    let evidence = format!(
        "the callers waited {} for each I/O with {} in flight, and their processor was busy only {} of the time: the time goes by in {by}{local}, or on the way there",
        words::latency(seen.callers.latency_ns),
        words::three_digits(seen.in_flight()),
        percent(processor_share(seen))
    );
    Some(verdict(VerdictKind::Network, evidence))
}

/// Returns the I/O of other users on the device: share of the bytes, and bytes per second.
fn others(seen: &Observed) -> Option<(f64, f64)> {
    let device = seen.device.as_ref().filter(|device| device.plain)?;
    let (read, written) = (seen.own.read.bytes, seen.own.write.bytes);
    // A file system writes metadata in addition to the data, and a journal for each flush.
    let allowance = match seen.place {
        Place::Device => 0,
        _ => written / 10 + seen.flushes * (64 << 10),
    };
    let more =
        device.bytes[0].saturating_sub(read) + device.bytes[1].saturating_sub(written + allowance);
    let all = device.bytes[0] + device.bytes[1];
    (all > 0).then(|| (more as f64 / all as f64, more as f64 / seen.seconds))
}

fn others_evidence(device: &DeviceLoad, share: f64, per_s: f64) -> String {
    format!(
        "{} moved {} more than this job asked for, {} of all that it moved",
        device.name,
        words::bandwidth(per_s),
        percent(share)
    )
}

fn many_others(seen: &Observed) -> Option<Verdict> {
    let device = seen.device.as_ref().filter(|device| device.busy >= 0.5)?;
    let (share, per_s) = others(seen).filter(|(share, _)| *share >= MANY_OTHERS)?;
    let evidence = format!(
        "{}; it was busy {} of the time",
        others_evidence(device, share, per_s),
        percent(device.busy)
    );
    Some(verdict(VerdictKind::Interference, evidence))
}

/// Reports I/O of other users as a finding, independent of the bottleneck.
pub(super) fn others_on_the_device(seen: &Observed) -> Option<Verdict> {
    let (share, per_s) = others(seen).filter(|(share, _)| *share >= FEW_OTHERS)?;
    let evidence = others_evidence(seen.device.as_ref()?, share, per_s);
    Some(verdict(
        VerdictKind::Interference,
        format!("others used the device: {evidence}"),
    ))
}

/// I/Os that spend their time above the device wait for locks, or for a throttle not visible here.
fn above_the_device(seen: &Observed) -> Option<Verdict> {
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
    let seen_at = format!(
        "{} I/Os were in flight and took {} each, but only {} of them were at {}, for {} each",
        words::three_digits(in_flight),
        words::latency(callers.latency_ns),
        words::three_digits(device.queue),
        device.name,
        words::latency(device.request_ns)
    );
    Some(match file_system(seen) {
        Some(fs_type) if seen.own.write.ios > 0 => verdict(
            VerdictKind::LockContention,
            format!("{seen_at}: the rest waited for each other in {fs_type}"),
        ),
        _ => {
            let holder = match own_bound(seen) {
                Some(bound) => bound,
                None => {
                    "the bound of a group that this process cannot see, or the scheduler".to_owned()
                }
            };
            verdict(
                VerdictKind::Throttled,
                format!("{seen_at}: the rest was held above the device, by {holder}"),
            )
        }
    })
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
fn flat_top(seen: &Observed) -> Option<Verdict> {
    let device = seen.device.as_ref()?;
    let (rate, varies) = variation(&seen.rates).filter(|(_, varies)| *varies <= FLAT)?;
    let callers = &seen.callers;
    let in_line = callers.latency_ns / callers.least_latency_ns.max(1.0);
    let bound = seen.virtual_machine
        && seen.in_flight() >= 2.0
        && in_line >= 2.0 * IN_LINE
        && device.busy >= DEVICE_BUSY;
    bound.then(|| {
        let evidence = format!(
            "{} IOPS, even to {:.1} % from interval to interval, while latency rose to {} from {}; that the provider holds it there is a guess, as a device that takes the same time for every I/O looks alike: see what is published for it (iosonde limits)",
            words::iops(rate),
            100.0 * varies,
            words::latency(callers.latency_ns),
            words::latency(callers.least_latency_ns)
        );
        verdict(VerdictKind::Allowance, evidence)
    })
}

/// Workers that wait for fsync have almost no I/O in flight, at any iodepth.
fn flushes(seen: &Observed) -> Option<Verdict> {
    let callers = &seen.callers;
    let (share, each_ns) = callers.flushing;
    if share < MOSTLY_FLUSHING {
        return None;
    }
    let workers = callers.workers as u64;
    let (kind, device) = match &seen.device {
        Some(device) => {
            let busy = workers > 1 && device.busy >= DEVICE_BUSY;
            let kind = if busy {
                VerdictKind::Device
            } else {
                VerdictKind::QueueDepth
            };
            (
                kind,
                format!(
                    "; {} was busy {} of the time",
                    device.name,
                    percent(device.busy)
                ),
            )
        }
        None => (VerdictKind::QueueDepth, String::new()),
    };
    let advice = match kind {
        VerdictKind::QueueDepth => ": more jobs at once may do more, a higher iodepth does not",
        _ => "",
    };
    let evidence = format!(
        "{} {} of the time in fsync or fdatasync, {} each{device}{advice}",
        plural(workers, "the worker spent", "workers spent"),
        percent(share),
        words::latency(each_ns)
    );
    Some(verdict(kind, evidence))
}

/// Checks whether I/Os took no longer than a single one: a higher depth would then complete more.
fn depth(seen: &Observed) -> Option<Verdict> {
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
    let device = match &seen.device {
        Some(device) => format!(
            "{} was busy {} of the time with {} at once",
            device.name,
            percent(device.busy),
            words::three_digits(device.queue)
        ),
        None => "no device was seen to be busy".to_owned(),
    };
    let took = words::latency(callers.latency_ns);
    let evidence = match callers.waiting_engine {
        Some(engine) => format!(
            "{engine} keeps one I/O in flight, whatever iodepth says, {took} each; {device}: another ioengine, or more jobs, may do more"
        ),
        None if alone => format!(
            "{} in flight at a time, {took} each; {device}: a higher iodepth or more jobs may do more",
            match callers.depth {
                1 => "one I/O",
                _ => "about one I/O",
            }
        ),
        None => format!(
            "{} I/Os in flight took {took} each, hardly longer than the shortest ({}); {device}: a higher iodepth or more jobs may do more",
            words::three_digits(in_flight),
            words::latency(callers.least_latency_ns)
        ),
    };
    Some(verdict(VerdictKind::QueueDepth, evidence))
}

fn device(seen: &Observed) -> Option<Verdict> {
    let device = seen
        .device
        .as_ref()
        .filter(|device| device.busy >= DEVICE_BUSY)?;
    let evidence = format!(
        "{} was busy {} of the time with {} {} in flight, {} each",
        device.name,
        percent(device.busy.min(1.0)),
        words::three_digits(device.queue),
        plural(device.queue.round() as u64, "request", "requests"),
        words::latency(device.request_ns)
    );
    Some(verdict(VerdictKind::Device, evidence))
}

fn unclear(seen: &Observed) -> Verdict {
    let mut parts = Vec::new();
    if let Some(device) = &seen.device {
        parts.push(format!(
            "{} was busy {} of the time",
            device.name,
            percent(device.busy)
        ));
    }
    parts.push(format!(
        "the busiest worker used {} of a processor",
        percent(processor_share(seen))
    ));
    parts.push(format!(
        "{} I/Os were in flight",
        words::three_digits(seen.in_flight())
    ));
    verdict(VerdictKind::Unclear, parts.join(", "))
}
