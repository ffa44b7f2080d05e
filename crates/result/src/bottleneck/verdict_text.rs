//! The kind and the words of a verdict, made from its cause.

use super::condition_text::condition_evidence;
use crate::network::NetworkLoad;
use crate::nodes::{server_evidence, server_kind};
use crate::run::{Verdict, VerdictKind};
use crate::verdict_cause::{
    BusyDevice, CgroupIoLimit, ForeignTraffic, IoRateLimit, OsdMeasure, QueueAboveDevice,
    VerdictCause,
};
use crate::words;
use iosonde_job::plan::Direction;

/// Returns the verdict of a cause.
pub fn verdict(cause: VerdictCause) -> Verdict {
    Verdict {
        kind: verdict_kind(&cause),
        evidence: evidence(&cause),
        cause: Some(cause),
    }
}

/// Returns the kind of verdict that a cause gives.
fn verdict_kind(cause: &VerdictCause) -> VerdictKind {
    use VerdictCause as Cause;
    match cause {
        Cause::DifferentTimes | Cause::NoLimitFound { .. } => VerdictKind::Unclear,
        Cause::JobRate { .. } | Cause::ThinkTime { .. } => VerdictKind::JobLimit,
        Cause::CgroupIoReached { .. } | Cause::QueuedAboveDevice { .. } => VerdictKind::Throttled,
        Cause::CgroupCpu { .. } | Cause::WorkerBusy { .. } | Cause::WorkerQueued { .. } => {
            VerdictKind::Generator
        }
        Cause::LocksOverCache { .. } | Cause::LocksAboveDevice { .. } => {
            VerdictKind::LockContention
        }
        Cause::Served { .. } | Cause::TimeOutsideOsds { .. } => VerdictKind::Network,
        Cause::OtherTraffic { .. } | Cause::SharedDevice { .. } => VerdictKind::Interference,
        Cause::FlatRate { .. } => VerdictKind::Allowance,
        Cause::Flushes {
            is_device_limit: true,
            ..
        }
        | Cause::DeviceBusy { .. } => VerdictKind::Device,
        Cause::Flushes { .. }
        | Cause::SynchronousEngine { .. }
        | Cause::OneIoInFlight { .. }
        | Cause::LowDepth { .. } => VerdictKind::QueueDepth,
        Cause::SlowOsd { .. } => VerdictKind::SlowOsd,
        Cause::TimeInOsds { .. } => VerdictKind::Osds,
        Cause::ClusterRecovery { .. } | Cause::ClusterScrub { .. } => VerdictKind::ClusterBusy,
        Cause::OsdsDown { .. } => VerdictKind::ClusterDegraded,
        Cause::ServedFromCache { .. } | Cause::AcknowledgedByClientCache { .. } => {
            VerdictKind::ServedFromCache
        }
        Cause::UnwrittenData { .. } => VerdictKind::UnwrittenData,
        Cause::HypervisorSteal { .. } => VerdictKind::Steal,
        Cause::MachineSuspended { .. } | Cause::ClockSet { .. } => VerdictKind::ClockDisturbed,
        Cause::ProcessStopped { .. } => VerdictKind::Stopped,
        Cause::EngineFallback { .. } => VerdictKind::Fallback,
        Cause::WatchedServer { server, .. } => server_kind(server),
    }
}

/// Returns the evidence of a cause, in one sentence.
pub(super) fn evidence(cause: &VerdictCause) -> String {
    use VerdictCause as Cause;
    match cause {
        Cause::DifferentTimes => {
            "the jobs ran at different times; run each job alone to find its bottleneck".to_owned()
        }
        Cause::JobRate { .. } | Cause::ThinkTime { .. } => job_limit_evidence(cause),
        Cause::CgroupIoReached { .. } | Cause::CgroupCpu { .. } => cgroup_evidence(cause),
        Cause::LocksOverCache { .. } | Cause::LocksAboveDevice { .. } => lock_evidence(cause),
        Cause::QueuedAboveDevice { queue, limit } => queued_evidence(queue, limit.as_ref()),
        Cause::WorkerBusy { .. } | Cause::WorkerQueued { .. } => worker_evidence(cause),
        Cause::OtherTraffic {
            traffic,
            busy_share,
        } => format!(
            "{}; the device was busy {} of the time",
            traffic_evidence(traffic),
            percent(*busy_share)
        ),
        Cause::SharedDevice { traffic } => format!(
            "other programs used the device: {}",
            traffic_evidence(traffic)
        ),
        Cause::Flushes { .. } => flush_evidence(cause),
        Cause::SynchronousEngine { .. } | Cause::OneIoInFlight { .. } | Cause::LowDepth { .. } => {
            depth_evidence(cause)
        }
        Cause::Served { .. } | Cause::FlatRate { .. } => latency_evidence(cause),
        Cause::DeviceBusy { device, request_ns } => format!(
            "{} was busy {} of the time with {} {} in flight, {} each",
            device.name,
            percent(device.busy_share),
            words::three_digits(device.queue),
            plural(device.queue.round() as u64, "request", "requests"),
            words::latency(*request_ns)
        ),
        Cause::NoLimitFound { .. } => unclear_evidence(cause),
        Cause::SlowOsd { .. } | Cause::TimeInOsds { .. } | Cause::TimeOutsideOsds { .. } => {
            osd_evidence(cause)
        }
        Cause::ClusterRecovery { activity } => activity.recovery_text(),
        Cause::ClusterScrub { activity } => activity.scrub_text(),
        Cause::OsdsDown { osds, checks } => osds.outage_text(checks),
        Cause::ServedFromCache { .. }
        | Cause::AcknowledgedByClientCache { .. }
        | Cause::UnwrittenData { .. }
        | Cause::HypervisorSteal { .. }
        | Cause::MachineSuspended { .. }
        | Cause::ClockSet { .. }
        | Cause::ProcessStopped { .. }
        | Cause::EngineFallback { .. } => condition_evidence(cause),
        Cause::WatchedServer { server, wait } => {
            let waited = wait.as_deref().map(evidence).unwrap_or_default();
            server_evidence(server, &waited)
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Returns the traffic of the network as the end of a sentence.
fn network_clause(network: Option<&NetworkLoad>) -> String {
    network.map_or(String::new(), |load| format!("; {}", load.evidence_text()))
}

fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

fn job_limit_evidence(cause: &VerdictCause) -> String {
    match cause {
        VerdictCause::JobRate {
            job,
            option,
            limit_per_s,
            reached_per_s,
        } => {
            format!("job {job} is limited by {option}={limit_per_s} and reached {reached_per_s:.0}")
        }
        VerdictCause::ThinkTime { job, paused_share } => format!(
            "thinktime paused job {job} for {} of the time",
            percent(*paused_share)
        ),
        _ => String::new(),
    }
}

fn direction_noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Trim => "trims",
    }
}

/// Returns what a limit allows: `500 reads/s`, or `writes of 80.0 MiB/s`.
fn allowed(limit: &CgroupIoLimit) -> String {
    let noun = direction_noun(limit.direction);
    match limit.rate {
        IoRateLimit::Iops(iops) => format!("{iops} {noun}/s"),
        IoRateLimit::BytesPerS(bytes) => format!("{noun} of {}", words::bandwidth(bytes as f64)),
    }
}

fn cgroup_evidence(cause: &VerdictCause) -> String {
    match cause {
        VerdictCause::CgroupIoReached {
            limit,
            device,
            reached_per_s,
        } => {
            let place = device.as_ref().map(|name| format!(" on {name}"));
            let reached = match limit.rate {
                IoRateLimit::Iops(_) => {
                    format!("{reached_per_s:.0} {}/s", direction_noun(limit.direction))
                }
                IoRateLimit::BytesPerS(_) => words::bandwidth(*reached_per_s),
            };
            format!(
                "cgroup {}{} allows {}; the job did {reached}",
                limit.cgroup,
                place.unwrap_or_default(),
                allowed(limit)
            )
        }
        VerdictCause::CgroupCpu {
            limit_cpus,
            throttled_share,
        } => format!(
            "the cgroup of this process allows {} CPUs and throttled it for {} of the time",
            words::three_digits(*limit_cpus),
            percent(*throttled_share)
        ),
        _ => String::new(),
    }
}

fn lock_evidence(cause: &VerdictCause) -> String {
    match cause {
        VerdictCause::LocksOverCache {
            workers,
            fs_type,
            asleep_share,
            device_busy_share,
        } => format!(
            "{workers} workers on {fs_type} slept {} of their time, while a cache took the data \
             and the device was busy only {} of the time: the workers waited for locks",
            percent(*asleep_share),
            percent(*device_busy_share)
        ),
        VerdictCause::LocksAboveDevice { queue, fs_type } => format!(
            "{}: the others waited for locks in {fs_type}",
            queue_evidence(queue)
        ),
        _ => String::new(),
    }
}

fn queue_evidence(queue: &QueueAboveDevice) -> String {
    format!(
        "{} I/Os were in flight and took {} each, but only {} of them were in {}, for {} each",
        words::three_digits(queue.in_flight),
        words::latency(queue.latency_ns),
        words::three_digits(queue.device_queue),
        queue.device,
        words::latency(queue.request_ns)
    )
}

fn queued_evidence(queue: &QueueAboveDevice, limit: Option<&CgroupIoLimit>) -> String {
    let holder = match limit {
        Some(limit) => format!("cgroup {}, which allows {}", limit.cgroup, allowed(limit)),
        None => "a cgroup limit that this process cannot read, or the I/O scheduler".to_owned(),
    };
    format!(
        "{}: the others were queued above the device by {holder}",
        queue_evidence(queue)
    )
}

fn worker_evidence(cause: &VerdictCause) -> String {
    let busiest = |workers: u64| match workers {
        1 => "the worker was".to_owned(),
        count => format!("the busiest of {count} workers was"),
    };
    let (evidence, memory) = match cause {
        VerdictCause::WorkerBusy {
            workers,
            user_share,
            system_share,
            memory_fs_type,
        } => {
            let evidence = format!(
                "{} on a CPU {} of the time ({} in user mode, {} in the kernel)",
                busiest(*workers),
                percent(user_share + system_share),
                percent(*user_share),
                percent(*system_share)
            );
            (evidence, memory_fs_type)
        }
        VerdictCause::WorkerQueued {
            workers,
            cpu_share,
            queued_share,
            machine_busy_share,
            memory_fs_type,
        } => {
            let evidence = format!(
                "{} on a CPU {} of the time and waited for a CPU {}; all CPUs together were {} \
                 busy",
                busiest(*workers),
                percent(*cpu_share),
                percent(*queued_share),
                percent(*machine_busy_share)
            );
            (evidence, memory_fs_type)
        }
        _ => return String::new(),
    };
    match memory {
        Some(fs_type) => format!("{evidence}; {fs_type} stores data in memory"),
        None => evidence,
    }
}

fn traffic_evidence(traffic: &ForeignTraffic) -> String {
    format!(
        "{} moved {} more than this job requested, {} of all its traffic",
        traffic.device,
        words::bandwidth(traffic.bytes_per_s),
        percent(traffic.traffic_share)
    )
}

fn latency_evidence(cause: &VerdictCause) -> String {
    match cause {
        VerdictCause::Served {
            service,
            device,
            latency_ns,
            in_flight,
            cpu_share,
            network,
        } => {
            let local = device.as_ref().map(|name| format!(", {name} included"));
            format!(
                "each I/O took {} with {} in flight, and the busiest worker used only {} of a \
                 CPU: the time was spent in {service}{}, or on the network{}",
                words::latency(*latency_ns),
                words::three_digits(*in_flight),
                percent(*cpu_share),
                local.unwrap_or_default(),
                network_clause(network.as_ref())
            )
        }
        VerdictCause::FlatRate {
            iops,
            variation_share,
            latency_ns,
            latency_ns_min,
        } => format!(
            "{} IOPS, constant to {:.1} % from interval to interval, while latency rose to {} from \
             {}; a throttle of the provider is an inference, because a device with a constant \
             service time looks the same; compare with the published limits (iosonde limits)",
            words::iops_text(*iops),
            100.0 * variation_share,
            words::latency(*latency_ns),
            words::latency(*latency_ns_min)
        ),
        _ => String::new(),
    }
}

fn flush_evidence(cause: &VerdictCause) -> String {
    let VerdictCause::Flushes {
        workers,
        flush_share,
        flush_ns,
        device,
        is_device_limit,
    } = cause
    else {
        return String::new();
    };
    let device = device.as_ref().map(|device| {
        format!(
            "; {} was busy {} of the time",
            device.name,
            percent(device.busy_share)
        )
    });
    let advice = match is_device_limit {
        true => "",
        false => "; more jobs may raise the rate, a higher iodepth does not",
    };
    let spent = match workers {
        1 => "the worker spent",
        _ => "workers spent",
    };
    format!(
        "{spent} {} of the time in fsync or fdatasync, {} each{}{advice}",
        percent(*flush_share),
        words::latency(*flush_ns),
        device.unwrap_or_default()
    )
}

fn depth_evidence(cause: &VerdictCause) -> String {
    let use_of = |device: &Option<BusyDevice>| match device {
        Some(device) => format!(
            "{} was busy {} of the time with {} in flight",
            device.name,
            percent(device.busy_share),
            words::three_digits(device.queue)
        ),
        None => "no device was busy".to_owned(),
    };
    match cause {
        VerdictCause::SynchronousEngine {
            engine,
            latency_ns,
            device,
        } => format!(
            "{engine} keeps one I/O in flight at any iodepth, {} each; {}; another ioengine or \
             more jobs may raise the rate",
            words::latency(*latency_ns),
            use_of(device)
        ),
        VerdictCause::OneIoInFlight {
            iodepth,
            latency_ns,
            device,
        } => format!(
            "{} in flight at a time, {} each; {}; a higher iodepth or more jobs may raise the rate",
            match iodepth {
                1 => "one I/O",
                _ => "about one I/O",
            },
            words::latency(*latency_ns),
            use_of(device)
        ),
        VerdictCause::LowDepth {
            in_flight,
            latency_ns,
            latency_ns_min,
            device,
        } => format!(
            "{} I/Os in flight took {} each, little longer than the shortest ({}); {}; a higher \
             iodepth or more jobs may raise the rate",
            words::three_digits(*in_flight),
            words::latency(*latency_ns),
            words::latency(*latency_ns_min),
            use_of(device)
        ),
        _ => String::new(),
    }
}

fn unclear_evidence(cause: &VerdictCause) -> String {
    let VerdictCause::NoLimitFound {
        device,
        cpu_share,
        in_flight,
    } = cause
    else {
        return String::new();
    };
    let mut parts = Vec::new();
    if let Some(device) = device {
        parts.push(format!(
            "{} was busy {} of the time",
            device.name,
            percent(device.busy_share)
        ));
    }
    parts.push(format!(
        "the busiest worker used {} of a CPU",
        percent(*cpu_share)
    ));
    parts.push(format!(
        "{} I/Os were in flight",
        words::three_digits(*in_flight)
    ));
    parts.join(", ")
}

fn osd_evidence(cause: &VerdictCause) -> String {
    let times = |latency_ns: f64, osds_ns: f64| {
        format!(
            "an I/O took {}, of which {} in the OSDs ({})",
            words::latency(latency_ns),
            words::latency(osds_ns),
            percent(osds_ns / latency_ns)
        )
    };
    match cause {
        VerdictCause::SlowOsd {
            osd,
            measured,
            latency_ns,
            others_ns,
        } => {
            let what = match measured {
                OsdMeasure::Operation => "per operation",
                OsdMeasure::Commit => "to commit a write",
            };
            format!(
                "osd.{osd} took {} {what}, the median of the other OSDs is {}: I/Os to objects of \
                 this OSD delay the others",
                words::latency(*latency_ns),
                words::latency(*others_ns)
            )
        }
        VerdictCause::TimeInOsds {
            latency_ns,
            osds_ns,
        } => times(*latency_ns, *osds_ns),
        VerdictCause::TimeOutsideOsds {
            latency_ns,
            osds_ns,
            network,
        } => format!(
            "{}; the rest on the network and in this client{}",
            times(*latency_ns, *osds_ns),
            network_clause(network.as_ref())
        ),
        _ => String::new(),
    }
}
