//! Devices shared by several targets: a fact about a device is reported once.

use iosonde_result::device_class::MEMORY_DATA_LOSS;
use iosonde_result::host::DeviceInfo;
use iosonde_study::probe::{DeviceClass, NOT_MEASURED, ProbePhase, ProbeResult};

/// Names of the devices at the bottom of a target. Empty if unknown.
pub(super) fn devices(result: &ProbeResult) -> Vec<&str> {
    let targets = result.runs.iter().rev();
    let target = targets.filter_map(|run| run.result.targets.first()).next();
    let devices: Vec<&DeviceInfo> = target.map_or(Vec::new(), |target| target.bottom_devices());
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Whether another of these targets is on the same devices.
pub(super) fn is_shared(result: &ProbeResult, results: &[ProbeResult]) -> bool {
    let own = devices(result);
    let same = results.iter().filter(|other| devices(other) == own);
    !own.is_empty() && same.count() > 1
}

/// One sentence for all targets of a device, with the facts on which they agree.
pub fn shared_sentences(results: &[ProbeResult]) -> Vec<String> {
    let mut described: Vec<Vec<&str>> = Vec::new();
    let mut sentences = Vec::new();
    for result in results.iter().filter(|result| is_shared(result, results)) {
        let own = devices(result);
        if described.contains(&own) {
            continue;
        }
        let group = results.iter().filter(|other| devices(other) == own);
        let group: Vec<&ProbeResult> = group.collect();
        sentences.push(of_group(&group));
        described.push(own);
    }
    sentences
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
