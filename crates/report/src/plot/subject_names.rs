//! Names of what a chart compares: labels that differ, else target and device. A result that occurs
//! twice is drawn once. The page has the same rules in `web/src/subjects.ts`.

use crate::html::document::{PageReport, PageRun};
use crate::unique;
use iosonde_result::host::TargetInfo;
use std::collections::HashSet;

/// Removes repeated results.
pub(super) fn remove_repetitions(report: &mut PageReport) {
    retain_first(&mut report.runs, |run| {
        let plan = (&run.place, run.started_at_ms, run.elapsed_ns, run.plan);
        serde_json::to_string(&(plan, &run.labels, &run.figures))
    });
    let sweeps = [&mut report.sweeps, &mut report.knees];
    for sweeps in sweeps {
        retain_first(sweeps, |sweep| {
            serde_json::to_string(&(&sweep.headline, &sweep.axes, &sweep.curves))
        });
    }
    retain_first(&mut report.loads, |load| {
        serde_json::to_string(&(&load.headline, &load.points))
    });
}

/// Keeps the first value of each key, and values without a key.
fn retain_first<T>(values: &mut Vec<T>, key: impl Fn(&T) -> serde_json::Result<String>) {
    let mut met = HashSet::new();
    values.retain(|value| key(value).map_or(true, |key| met.insert(key)));
}

/// Returns the subject of each run.
pub(super) fn run_subjects(report: &PageReport) -> Vec<String> {
    let runs = &report.runs;
    let names = unique(runs.iter().flat_map(|run| run.labels.keys()));
    let differing = names.into_iter().filter(|name| {
        let values = runs.iter().map(|run| run.labels.get(*name));
        values.collect::<HashSet<_>>().len() > 1
    });
    let differing: Vec<&String> = differing.collect();
    let mut subjects: Vec<String> = runs
        .iter()
        .map(|run| {
            let labels = differing.iter().filter_map(|name| {
                let value = run.labels.get(*name)?;
                Some(format!("{name}={value}"))
            });
            let labels: Vec<String> = labels.collect();
            if labels.is_empty() {
                place_name(report, run)
            } else if labels.len() == differing.len() {
                labels.join(", ")
            } else {
                format!("{} ({})", place_name(report, run), labels.join(", "))
            }
        })
        .collect();
    number_results(runs, &mut subjects);
    subjects
}

/// Path and device of a run's target.
fn place_name(report: &PageReport, run: &PageRun) -> String {
    let targets = run.targets.and_then(|index| report.targets.get(index));
    let device = targets.and_then(|targets| targets.first()).map(device_name);
    match device.filter(|device| !device.is_empty()) {
        Some(device) if run.place.contains('/') => format!("{} on {device}", run.place),
        _ if run.place.is_empty() => run.program.clone(),
        _ => simulated_target(&run.place).to_owned(),
    }
}

/// Runs of a grid on a simulated device have a number each, which is no part of their target.
pub(super) fn simulated_target(place: &str) -> &str {
    match place.rsplit_once(",run=") {
        Some((target, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => target,
        _ => place,
    }
}

/// Devices and file system of a target: `nvme0n1, ext4`.
pub(super) fn device_name(target: &TargetInfo) -> String {
    let names = target.devices.iter().map(|device| device.name.as_str());
    let devices = names.take(3).collect::<Vec<_>>().join(" and ");
    let mount = target.mount.as_ref();
    let source = match devices.is_empty() {
        true => mount.map_or("", |mount| mount.source.as_str()),
        false => devices.as_str(),
    };
    let parts = [source, mount.map_or("", |mount| mount.fs_type.as_str())];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Numbers the results of one subject that measured the same workload.
fn number_results(runs: &[PageRun], subjects: &mut [String]) {
    for subject in unique(subjects.to_vec()) {
        let indexes = (0..runs.len()).filter(|index| subjects[*index] == subject);
        let indexes: Vec<usize> = indexes.collect();
        let measured = indexes.iter().filter(|index| is_measured(&runs[**index]));
        let workloads: Vec<_> = measured
            .map(|index| (workload_key(&runs[*index]), &runs[*index].source))
            .collect();
        let is_repeated = workloads.iter().any(|(workload, source)| {
            let mut others = workloads.iter();
            others.any(|(other, from)| other == workload && from != source)
        });
        if !is_repeated {
            continue;
        }
        let sources = unique(indexes.iter().map(|index| runs[*index].source.clone()));
        for index in indexes {
            let number = sources
                .iter()
                .position(|source| *source == runs[index].source);
            subjects[index] = format!("{subject} #{}", number.unwrap_or_default() + 1);
        }
    }
}

/// Whether charts draw the run by itself.
pub(super) fn is_measured(run: &PageRun) -> bool {
    !run.preparation && !run.of_grid
}

fn workload_key(run: &PageRun) -> String {
    let figures = run.figures.iter().map(|figure| {
        let depth = (figure.iodepth, figure.workers);
        format!("{}{:?}{depth:?}", figure.rw, figure.block_bytes)
    });
    [run.name.clone()].into_iter().chain(figures).collect()
}
