//! Devices shared by several targets: a fact about a device is reported once.

use iosonde_result::device_class::MEMORY_DATA_LOSS;
use iosonde_result::host::DeviceInfo;
use iosonde_study::probe::{DeviceClass, NOT_MEASURED, ProbePhase, ProbeResult};

/// Fact of a result: its node, the nodes of its pods, or the name of its machine.
const NODE_FACT: &str = "node";

/// Names of the devices at the bottom of a target. Empty if unknown.
pub(super) fn devices(result: &ProbeResult) -> Vec<&str> {
    let targets = result.runs.iter().rev();
    let target = targets.filter_map(|run| run.result.targets.first()).next();
    let devices: Vec<&DeviceInfo> = target.map_or(Vec::new(), |target| target.bottom_devices());
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Whether two targets are on the same devices of one machine. Nodes of a cluster have devices of
/// the same names.
fn are_on_one_device(a: &ProbeResult, b: &ProbeResult) -> bool {
    let node = |result: &ProbeResult| {
        let last = result.runs.last();
        last.and_then(|run| run.result.facts().remove(NODE_FACT))
    };
    !devices(a).is_empty() && devices(a) == devices(b) && node(a) == node(b)
}

/// Whether another of these targets is on the same devices.
pub(super) fn is_shared(result: &ProbeResult, results: &[ProbeResult]) -> bool {
    let same = results
        .iter()
        .filter(|other| are_on_one_device(result, other));
    same.count() > 1
}

/// Indices of the targets of each device that several targets share.
pub(super) fn shared_groups(results: &[ProbeResult]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let is_known = groups.iter().any(|group| group.contains(&index));
        if is_known || !is_shared(result, results) {
            continue;
        }
        let is_same = |other: &usize| are_on_one_device(result, &results[*other]);
        groups.push((0..results.len()).filter(is_same).collect());
    }
    groups
}

/// One sentence for all targets of a device, with the facts on which they agree.
pub fn shared_sentences(results: &[ProbeResult]) -> Vec<String> {
    let groups = shared_groups(results).into_iter();
    let sentence = |group: Vec<usize>| {
        let group: Vec<&ProbeResult> = group.iter().map(|index| &results[*index]).collect();
        of_group(&group)
    };
    groups.map(sentence).collect()
}

fn of_group(group: &[&ProbeResult]) -> String {
    let names: Vec<&str> = group.iter().map(|result| result.target.as_str()).collect();
    let found = &group[0].classification;
    // Results of older versions have no description of the device.
    let device = match found.device.as_str() {
        "" => found.class.words(),
        words => words,
    };
    let cached = group
        .iter()
        .filter(|result| result.classification.served_from_cache);
    let cached: Vec<&str> = cached.map(|result| result.target.as_str()).collect();
    let cache = match cached.is_empty() {
        true => String::new(),
        false => format!(
            " A cache served the reads of {}: their figures do not describe the device.",
            cached.join(", ")
        ),
    };
    format!(
        "{} share {device}.{cache} {}.",
        names.join(", "),
        suits(group)
    )
}

/// Uses that the device suits, if all its targets agree.
fn suits(group: &[&ProbeResult]) -> String {
    let mut found = group
        .iter()
        .map(|result| result.classification.durable_writes);
    let first = found.next().flatten();
    let is_measured = group
        .iter()
        .any(|result| result.figure(ProbePhase::SyncedWrite).is_some());
    match first {
        _ if group[0].classification.class == DeviceClass::Memory => {
            format!("They suit scratch data: the {MEMORY_DATA_LOSS}")
        }
        _ if !is_measured => NOT_MEASURED.to_owned(),
        Some(durable) if found.all(|other| other == first) => {
            format!("They suit {}", durable.words())
        }
        _ => "Suitability is undecided: use a longer --runtime on an idle machine".to_owned(),
    }
}
