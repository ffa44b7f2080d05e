//! Parts of a promise that a probe did not measure, or not as promised, one sentence each.

use super::run;
use crate::probe::ProbeResult;
use crate::promise_check::CheckedFigure;
use crate::words;
use iosonde_limits::{Promise, PromiseVerdict, exact};
use iosonde_result::host::{DeviceInfo, DeviceKind, TargetInfo};

/// Largest relative difference of sizes that count as equal: partition tables, rounding.
const SAME_SIZE: f64 = 0.01;
const GIB: f64 = 1_073_741_824.0;

/// Returns the parts of a promise that were not measured, or not as promised.
pub(super) fn list_unchecked(
    promise: &Promise,
    probe: &ProbeResult,
    rows: &[CheckedFigure],
) -> Vec<String> {
    // A cache answered all I/O, so nothing is known of the volume except its size.
    if !rows.is_empty() && rows.iter().all(CheckedFigure::is_of_cache) {
        return volume(promise, probe).into_iter().collect();
    }
    let mut conditions = Vec::new();
    conditions.extend(not_measured(promise, probe, rows));
    if promise.shared.iops || promise.shared.bandwidth {
        conditions.push(
            "Reads and writes share one limit; they were not measured at the same time.".to_owned(),
        );
    }
    conditions.extend(rows.iter().filter_map(deeper));
    conditions.extend(extent(promise, probe, rows));
    conditions.extend(bursts(promise, rows));
    conditions.extend(machine(promise, probe));
    conditions.extend(volume(promise, probe));
    if let Some(method) = &promise.method {
        let method = method.trim_end_matches('.');
        conditions.push(format!("The method differs from the vendor's: {method}."));
    }
    conditions
}

fn not_measured(promise: &Promise, probe: &ProbeResult, rows: &[CheckedFigure]) -> Option<String> {
    let is_measured = |metric| rows.iter().any(|row| row.judged.promised.metric == metric);
    let missing: Vec<String> = promise
        .figures
        .iter()
        .filter(|figure| !is_measured(figure.metric))
        .map(|figure| figure.metric.to_string())
        .collect();
    let why = if missing.is_empty() {
        return None;
    } else if !probe.kind.is_writable() {
        ", because the target was only read"
    } else if probe.interrupted {
        ", because the probe was interrupted"
    } else {
        ""
    };
    Some(format!("Not measured: {}{why}.", missing.join(", ")))
}

/// Names the depth of a figure that is not that of its phase.
fn deeper(row: &CheckedFigure) -> Option<String> {
    let at = row.at?;
    let jobs = match at.jobs {
        1 => String::new(),
        jobs => format!(" in each of {jobs} jobs"),
    };
    Some(format!(
        "{}: measured at its maximum, with {} I/Os in flight{jobs}.",
        row.judged.metric, at.iodepth
    ))
}

/// Describes the duration of the measurement, and the part of the volume that was used.
fn extent(promise: &Promise, probe: &ProbeResult, rows: &[CheckedFigure]) -> Option<String> {
    let runs = rows.iter().filter_map(|row| run(probe, row.phase));
    let longest = runs
        .filter_map(|run| run.workers.iter().map(|worker| worker.runtime_ns).max())
        .max()?;
    let measured = probe.working_set.bytes;
    let promised = volume_gib(promise).filter(|gib| gib * GIB > measured as f64);
    let within = promised.map_or(String::new(), |gib| format!(" of {} GiB", exact(gib)));
    let delivery = promise.delivery.map_or(String::new(), |delivery| {
        let share = if delivery.share < 1.0 {
            format!("{} % of the limit", exact(delivery.share * 100.0))
        } else {
            "the limit".to_owned()
        };
        let time = exact(delivery.time * 100.0);
        format!("; the vendor aims to deliver {share} for {time} % of the time")
    });
    Some(format!(
        "Each figure was measured for at most {}, on {}{within}{delivery}.",
        words::whole_seconds_text(longest),
        words::bytes(measured),
    ))
}

/// Returns the size of all volumes of the promise together.
fn volume_gib(promise: &Promise) -> Option<f64> {
    let size = promise.query.size_gib?;
    Some(size * f64::from(promise.query.disks.unwrap_or(1)))
}

fn bursts(promise: &Promise, rows: &[CheckedFigure]) -> Vec<String> {
    let long = promise.bursts.iter().map(|burst| burst.seconds);
    let long = long.fold(0.0, f64::max);
    let lasts = if long > 0.0 {
        format!(" (a full bucket lasts {})", words::duration(long))
    } else {
        String::new()
    };
    let metrics_with = |verdict| -> Vec<String> {
        let rows = rows.iter().filter(|row| row.judged.verdict == verdict);
        rows.map(|row| row.judged.metric.to_string()).collect()
    };
    let mut sentences = Vec::new();
    let bursting = metrics_with(PromiseVerdict::Bursting);
    if !bursting.is_empty() {
        sentences.push(format!(
            "{}: the rate after the burst was not measured{lasts}.",
            bursting.join(", ")
        ));
    } else if rows.iter().any(|row| row.judged.burst_per_s.is_some()) {
        sentences.push(format!(
            "No burst above the sustained rate was measured{lasts}: the burst credits may have \
             been used up."
        ));
    }
    sentences
}

/// Checks that the measured machine is the promised one.
fn machine(promise: &Promise, probe: &ProbeResult) -> Option<String> {
    let meant = promise.machine()?;
    let host = &probe.runs.first()?.result.host;
    let name = promise.query.machine.as_deref().unwrap_or_default();
    if let Some(found) = &host.platform.instance_type {
        let is_it = found == name
            || found
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['-', '.']));
        let problem = format!("The promise is for {meant}; this machine reports {found}.");
        return (!is_it).then_some(problem);
    }
    match (promise.query.vcpus, host.cpu.online) {
        (Some(meant), Some(found)) if meant != found => Some(format!(
            "The promise is for a machine with {meant} vCPUs; this one has {found}."
        )),
        _ => Some(format!(
            "Not checked whether this machine is {meant}: the machine does not report its type."
        )),
    }
}

/// Returns the volumes of a target. A loop device counts instead of the devices below it.
fn volumes(target: &TargetInfo) -> Vec<&DeviceInfo> {
    let all = target.all_devices();
    let loops: Vec<&DeviceInfo> = all
        .into_iter()
        .filter(|device| device.kind == DeviceKind::Loop)
        .collect();
    match loops.is_empty() {
        true => target.bottom_devices(),
        false => loops,
    }
}

/// Checks that number and size of the measured volumes are those of the promise.
fn volume(promise: &Promise, probe: &ProbeResult) -> Option<String> {
    let target = probe
        .runs
        .iter()
        .rev()
        .find_map(|run| run.result.targets.first());
    let devices = target.map_or(Vec::new(), volumes);
    let disks = promise.query.disks.unwrap_or(1) as usize;
    if disks > devices.len().max(1) {
        return Some(format!(
            "The promise is for {disks} volumes together; one target was measured."
        ));
    }
    let promised = volume_gib(promise)?;
    let found = devices.iter().map(|device| device.size_bytes).sum::<u64>();
    let differs = (found as f64 / GIB / promised - 1.0).abs() > SAME_SIZE;
    (found > 0 && differs).then(|| {
        format!(
            "The promise is for {} GiB; the device has {}.",
            exact(promised),
            words::bytes(found)
        )
    })
}
