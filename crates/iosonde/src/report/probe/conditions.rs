//! What was really measured, and how: pairs of a name and a sentence.

use iosonde_job::plan::Engine;
use iosonde_result::host::{DeviceInfo, Host, IoLimit, Mount, TargetInfo};
use iosonde_result::run::RunResult;
use iosonde_study::probe::{Phase, ProbeResult};
use iosonde_study::words;

/// All that is known. What is not known is left out.
pub(super) fn of(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    let runs: Vec<&RunResult> = result.runs.iter().map(|run| &run.result).collect();
    let target = runs.iter().rev().find_map(|run| run.targets.first());
    if let Some(target) = target {
        pairs.push(("device", devices(target)));
        if let Some(mount) = &target.mount {
            pairs.push(("file system", file_system(mount)));
        }
        pairs.extend(queue(target).map(|text| ("queue", text)));
        if !target.limits.is_empty() {
            let limits: Vec<String> = target.limits.iter().map(limit).collect();
            pairs.push(("limits", limits.join("; ")));
        }
    }
    pairs.push(("I/O", how(result)));
    if let Some(run) = runs.first() {
        pairs.push(("machine", machine(&run.host)));
    }
    for verdict in verdicts(result) {
        pairs.push(("finding", verdict));
    }
    for note in &result.notes {
        pairs.push(("note", note.clone()));
    }
    pairs.retain(|(_, text)| !text.is_empty());
    pairs
}

fn devices(target: &TargetInfo) -> String {
    let bottom = target.bottom_devices();
    if bottom.is_empty() {
        return target.note.clone().unwrap_or_default();
    }
    let described: Vec<String> = bottom.into_iter().map(device).collect();
    described.join("; ")
}

fn device(device: &DeviceInfo) -> String {
    let size = words::bytes(device.size_bytes);
    let mut text = match &device.model {
        Some(model) => format!("{} ({model}), {size}", device.name),
        None => format!("{}, {size}", device.name),
    };
    if let Some(driver) = &device.driver {
        text.push_str(&format!(", driver {driver}"));
    }
    if device.queue.as_ref().and_then(|queue| queue.rotational) == Some(true) {
        text.push_str(", which says that it turns");
    }
    text
}

fn file_system(mount: &Mount) -> String {
    format!(
        "{} on {} ({})",
        mount.fs_type,
        mount.mount_point.display(),
        mount.source
    )
}

fn queue(target: &TargetInfo) -> Option<String> {
    let bottom = target.bottom_devices();
    let queue = bottom.first()?.queue.as_ref()?;
    let mut parts = Vec::new();
    if let Some(scheduler) = &queue.scheduler {
        parts.push(format!("scheduler {scheduler}"));
    }
    match queue.volatile_write_cache {
        Some(true) => parts.push("volatile write cache, flushed by fdatasync".to_owned()),
        Some(false) => parts.push("no volatile write cache is reported".to_owned()),
        None => {}
    }
    Some(parts.join(", "))
}

fn limit(limit: &IoLimit) -> String {
    let mut parts = Vec::new();
    let mut add = |value: Option<u64>, text: &dyn Fn(u64) -> String| parts.extend(value.map(text));
    add(limit.read_iops, &|iops| format!("{iops} reads/s"));
    add(limit.write_iops, &|iops| format!("{iops} writes/s"));
    add(limit.read_bytes_per_s, &|rate| {
        format!("reads {}", words::bandwidth(rate as f64))
    });
    add(limit.write_bytes_per_s, &|rate| {
        format!("writes {}", words::bandwidth(rate as f64))
    });
    format!("cgroup {}: {}", limit.cgroup, parts.join(", "))
}

/// Engines and O_DIRECT as they were in force, phase by phase where they differ.
fn how(result: &ProbeResult) -> String {
    let mut engines: Vec<(Engine, Vec<String>)> = Vec::new();
    for figure in &result.figures {
        let depth = figure.iodepth.to_string();
        match engines
            .iter_mut()
            .find(|(engine, _)| *engine == figure.engine)
        {
            Some((_, depths)) if !depths.contains(&depth) => depths.push(depth),
            Some(_) => {}
            None => engines.push((figure.engine, vec![depth])),
        }
    }
    let engines: Vec<String> = engines
        .into_iter()
        .map(|(engine, depths)| format!("{} (depth {})", engine.name(), depths.join(", ")))
        .collect();
    let is_direct = |figure: &&iosonde_study::probe::Figure| {
        figure.phase != Phase::SyncedWrite && figure.direct
    };
    let direct = if result.figures.iter().any(|figure| is_direct(&figure)) {
        "O_DIRECT, except before fdatasync"
    } else {
        "through the page cache, not O_DIRECT"
    };
    format!("{}; {direct}", engines.join(", "))
}

fn machine(host: &Host) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(host.hostname.clone());
    parts.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    parts.extend(host.cpu.online.map(|cpus| format!("{cpus} CPUs")));
    parts.extend(
        host.memory_bytes
            .map(|bytes| format!("{} of memory", words::bytes(bytes))),
    );
    if host.platform.virtual_machine == Some(true) {
        parts.push("virtual machine".to_owned());
    }
    if host.platform.container {
        parts.push("container".to_owned());
    }
    parts.join(", ")
}

/// The findings of all phases, each once, with the phases it was made in.
fn verdicts(result: &ProbeResult) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for run in &result.runs {
        for verdict in &run.result.verdicts {
            let title = run.phase.title();
            match found
                .iter_mut()
                .find(|(evidence, _)| *evidence == verdict.evidence)
            {
                Some((_, phases)) => phases.push(title),
                None => found.push((verdict.evidence.clone(), vec![title])),
            }
        }
    }
    let all = result.runs.len();
    found
        .into_iter()
        .map(|(evidence, phases)| match phases.len() {
            count if count == all => format!("all phases: {evidence}"),
            count if count > 2 => format!("{count} of {all} phases: {evidence}"),
            _ => format!("{}: {evidence}", phases.join("; ")),
        })
        .collect()
}
