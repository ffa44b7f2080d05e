//! What several targets say of one device: a fact about it is said once.

use iosonde_result::host::DeviceInfo;
use iosonde_study::probe::{DeviceClass, NOT_MEASURED, Phase, ProbeResult};

/// The devices at the bottom of a target, by name; none where they are not known.
fn devices(result: &ProbeResult) -> Vec<&str> {
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

/// One sentence for all targets of a device: what each of them says of it, where all say the same.
pub(super) fn shared_sentences(results: &[ProbeResult]) -> Vec<String> {
    let mut told: Vec<Vec<&str>> = Vec::new();
    let mut sentences = Vec::new();
    for result in results.iter().filter(|result| is_shared(result, results)) {
        let own = devices(result);
        if told.contains(&own) {
            continue;
        }
        let group = results.iter().filter(|other| devices(other) == own);
        let group: Vec<&ProbeResult> = group.collect();
        sentences.push(of_group(&group));
        told.push(own);
    }
    sentences
}

fn of_group(group: &[&ProbeResult]) -> String {
    let names: Vec<&str> = group.iter().map(|result| result.target.as_str()).collect();
    let found = &group[0].classification;
    // Results of older versions do not say it in words.
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
            " A cache answered reads of {}: their figures say nothing about it.",
            cached.join(", ")
        ),
    };
    format!(
        "{} share {device}.{cache} {}.",
        names.join(", "),
        suits(group)
    )
}

/// What targets of one device suit, where all of them say the same.
fn suits(group: &[&ProbeResult]) -> String {
    let mut found = group
        .iter()
        .map(|result| result.classification.durable_writes);
    let first = found.next().flatten();
    let is_measured = group
        .iter()
        .any(|result| result.figure(Phase::SyncedWrite).is_some());
    match first {
        _ if group[0].classification.class == DeviceClass::Memory => {
            "It suits scratch data: nothing on it survives a restart".to_owned()
        }
        _ if !is_measured => NOT_MEASURED.to_owned(),
        Some(durable) if found.all(|other| other == first) => {
            format!("It suits {}", durable.words())
        }
        _ => "What it suits is undecided; a longer --runtime on a quiet machine decides it"
            .to_owned(),
    }
}
