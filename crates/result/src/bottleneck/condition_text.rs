//! Words of verdicts on conditions that distort figures: caches, stops, clocks and fallbacks.

use crate::verdict_cause::VerdictCause;
use crate::words;
use iosonde_job::plan::Direction;

/// Returns the evidence of a condition, and an empty text for other causes.
pub(super) fn condition_evidence(cause: &VerdictCause) -> String {
    match cause {
        VerdictCause::ServedFromCache {
            direction,
            job_bytes,
            device_bytes,
        } => cache_evidence(*direction, *job_bytes, *device_bytes),
        VerdictCause::AcknowledgedByClientCache {
            policy,
            written_bytes,
        } => format!(
            "rbd_cache ({policy}) of this client acknowledged the writes ({}), so their figures \
             are those of the cache as long as it has room; CEPH_ARGS=--rbd-cache=false measures \
             the cluster",
            words::bytes(*written_bytes)
        ),
        VerdictCause::UnwrittenData {
            file,
            data_bytes,
            hole_bytes,
            unwritten_bytes,
        } => {
            let empty = hole_bytes + unwritten_bytes;
            let total = empty + data_bytes;
            format!(
                "{:.1} % of {file} was never written ({hole_bytes} bytes of holes, \
                 {unwritten_bytes} bytes of unwritten extents in {total}): reads there return \
                 zeros without I/O on the device",
                100.0 * empty as f64 / total as f64,
            )
        }
        VerdictCause::HypervisorSteal { steal_percent } => format!(
            "the hypervisor withheld {steal_percent:.0} % of this machine's CPU time (steal): \
             latencies may be too high and rates too low"
        ),
        VerdictCause::MachineSuspended { suspended_ns } => format!(
            "the machine was suspended for {} during the run, which affects I/Os in flight, caches \
             and the device's state; measure again",
            words::latency(*suspended_ns as f64)
        ),
        VerdictCause::ClockSet { step_ns } => {
            let way = if *step_ns > 0 { "forward" } else { "back" };
            format!(
                "the clock was set {way} by {} during the run: time stamps are affected, rates and \
                 latencies are not",
                words::latency(step_ns.unsigned_abs() as f64)
            )
        }
        VerdictCause::ProcessStopped { .. } => stop_evidence(cause),
        VerdictCause::EngineFallback { engine, reason } => format!("ran with {engine}: {reason}"),
        _ => String::new(),
    }
}

fn cache_evidence(direction: Direction, job_bytes: u64, device_bytes: u64) -> String {
    let (verb, all, rest) = match direction {
        Direction::Read => (
            "read",
            "a cache served the reads",
            "a cache served the rest",
        ),
        Direction::Write | Direction::Trim => (
            "wrote",
            "the data was still in a cache at the end",
            "the rest was still in a cache at the end",
        ),
    };
    let job = format!("the job {verb} {}", words::bytes(job_bytes));
    match device_bytes {
        0 => format!("{job}, but the device moved none of it: {all}"),
        _ => format!(
            "{job}, but the device moved only {} ({:.1} %): {rest}",
            words::bytes(device_bytes),
            100.0 * device_bytes as f64 / job_bytes as f64
        ),
    }
}

fn stop_evidence(cause: &VerdictCause) -> String {
    let VerdictCause::ProcessStopped {
        stops,
        stopped_ns,
        first_ns,
        was_suspended,
        is_excluded,
    } = cause
    else {
        return String::new();
    };
    let times = match stops {
        1 => String::new(),
        times => format!(" in {times} stops"),
    };
    let why = match was_suspended {
        true => "the machine was suspended",
        false => {
            "a stop signal or Ctrl-Z, a frozen control group, a debugger, or a paused virtual \
             machine"
        }
    };
    let counts = match is_excluded {
        true => {
            "the figures exclude that time and the latencies of the I/Os in flight then; the \
             storage may have done background work in that time"
        }
        false => "as with fio, the figures include that time",
    };
    format!(
        "this process did not run for {}{times}, first {} after its jobs were prepared ({why}): \
         {counts}",
        words::latency(*stopped_ns as f64),
        words::latency(*first_ns as f64),
    )
}
