//! What several targets say of one device: a fact about it is said once.

use iosonde_result::host::DeviceInfo;
use iosonde_study::probe::ProbeResult;

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
        sentences.push(of_group(&own.join(", "), &group));
        told.push(own);
    }
    sentences
}

fn of_group(device: &str, group: &[&ProbeResult]) -> String {
    let names: Vec<&str> = group.iter().map(|result| result.target.as_str()).collect();
    let subject = format!("{device} ({})", names.join(", "));
    let found = |result: &&ProbeResult| {
        let found = &result.classification;
        (found.class, found.durable_writes)
    };
    let first = found(&group[0]);
    match group.iter().all(|result| found(result) == first) {
        true => format!("{subject}: {}", group[0].classification.sentence),
        false => format!(
            "{subject}: what it behaves like and what it suits is undecided, as its targets differ; a longer --runtime on a quiet machine decides it."
        ),
    }
}
