//! Names of what a chart compares: labels that differ, else target and device. A result that occurs
//! twice is drawn once. The page has the same rules in `web/src/subjects.ts`.

use crate::html::document::{PageReport, PageRun};
use crate::html::page_target::{device_name, is_unnamed};
use crate::unique;
use iosonde_job::run_number::strip_run_number;
use std::collections::HashSet;

/// Removes repeated results.
pub(crate) fn remove_repetitions(report: &mut PageReport) {
    retain_first(&mut report.runs, run_key);
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

/// Returns a text that is the same for copies of a run.
pub(crate) fn run_key(run: &PageRun) -> serde_json::Result<String> {
    let plan = (&run.place, run.started_at_ms, run.elapsed_ns, run.plan);
    serde_json::to_string(&(plan, &run.labels, &run.figures))
}

/// Keeps the first value of each key, and values without a key.
fn retain_first<T>(values: &mut Vec<T>, key: impl Fn(&T) -> serde_json::Result<String>) {
    let mut met = HashSet::new();
    values.retain(|value| key(value).map_or(true, |key| met.insert(key)));
}

/// Returns the subject of each run.
pub(crate) fn run_subjects(report: &PageReport) -> Vec<String> {
    let runs = &report.runs;
    let names = unique(runs.iter().flat_map(|run| run.labels.keys()));
    let differing = names.into_iter().filter(|name| {
        let values = runs.iter().map(|run| run.labels.get(*name));
        values.collect::<HashSet<_>>().len() > 1
    });
    let differing: Vec<&String> = differing.collect();
    let is_labelled = |run: &PageRun| differing.iter().all(|name| run.labels.contains_key(*name));
    let is_each_labelled = runs.iter().all(is_labelled);
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
            } else if is_each_labelled {
                labels.join(", ")
            } else {
                format!("{} ({})", place_name(report, run), labels.join(", "))
            }
        })
        .collect();
    add_places(report, &mut subjects);
    number_results(runs, &mut subjects);
    subjects
}

/// Adds the places to subjects of one name that are on several places.
fn add_places(report: &PageReport, subjects: &mut [String]) {
    let runs = &report.runs;
    let before = subjects.to_vec();
    for shared in unique(&before) {
        let indexes = (0..runs.len()).filter(|index| before[*index] == *shared);
        let indexes: Vec<usize> = indexes.collect();
        let places = indexes
            .iter()
            .map(|index| strip_run_number(&runs[*index].place));
        if places.collect::<HashSet<_>>().len() < 2 {
            continue;
        }
        for index in indexes {
            let place = place_name(report, &runs[index]);
            if place != *shared {
                subjects[index] = format!("{place} ({shared})");
            }
        }
    }
}

/// Path and device of a run's target. A temporary file has the name of its device.
fn place_name(report: &PageReport, run: &PageRun) -> String {
    let targets = run.targets.and_then(|index| report.targets.get(index));
    let device = targets.and_then(|targets| targets.first()).map(device_name);
    let device = device.filter(|device| !device.is_empty());
    if is_unnamed(run) {
        return device.unwrap_or_else(|| machine_name(run));
    }
    match device {
        Some(device) if run.place.contains('/') => format!("{} on {device}", run.place),
        _ if run.place.is_empty() => run.program.clone(),
        _ => strip_run_number(&run.place).to_owned(),
    }
}

/// Name of a result whose target has none.
fn machine_name(run: &PageRun) -> String {
    let label = run.labels.values().next();
    label.unwrap_or(&run.program).clone()
}

/// Numbers the results of one subject that measured the same workload.
fn number_results(runs: &[PageRun], subjects: &mut [String]) {
    for subject in unique(subjects.to_vec()) {
        let indexes = (0..runs.len()).filter(|index| subjects[*index] == subject);
        let indexes: Vec<usize> = indexes.collect();
        // Runs of a grid count too: two sweeps of a target would have one name.
        let measured = indexes.iter().filter(|index| !runs[**index].preparation);
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
pub(crate) fn is_measured(run: &PageRun) -> bool {
    !run.preparation && !run.of_grid
}

/// Name of a run, and of each figure the workload, the sizes, the depth and the number of workers.
type WorkloadKey<'a> = (&'a str, Vec<(&'a str, [u64; 2], u32, u32)>);

fn workload_key(run: &PageRun) -> WorkloadKey<'_> {
    let figures = run.figures.iter().map(|figure| {
        let (rw, block_bytes) = (figure.rw.as_str(), figure.block_bytes);
        (rw, block_bytes, figure.iodepth, figure.workers)
    });
    (run.name.as_str(), figures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::plot::tests::run;
    use iosonde_job::plan::ReadWriteMode;
    use iosonde_result::host::{Mount, TargetInfo};
    use serde::Deserialize;
    use std::collections::BTreeMap;

    /// The tests of the page read the same file.
    const CASES: &str = include_str!("target_names.json");

    /// Target and source of a run, whether it is one of a study or of a grid, whether the device
    /// `/dev/vda1` with `ext4` is known, and the name of the target. The program is `fio-3.33`.
    #[derive(Deserialize)]
    struct NameCase(String, String, bool, bool, bool, String);

    /// Target of a run of `result.json`, whether it is one of a grid, its labels and its name.
    #[derive(Deserialize)]
    struct LabelledRun(String, bool, BTreeMap<String, String>, String);

    /// Runs that are alone in a report, and reports of runs whose labels may differ.
    #[derive(Deserialize)]
    struct NameCases {
        single: Vec<NameCase>,
        labelled: Vec<Vec<LabelledRun>>,
    }

    #[test]
    fn sweeps_of_one_target_are_numbered_if_they_share_a_workload() {
        let subjects = |depths: [u32; 2]| {
            let mut builder = HtmlReportBuilder::default();
            for (source, depth) in ["monday", "tuesday"].into_iter().zip(depths) {
                builder.of_grid(source, run("randread", ReadWriteMode::Read, depth));
            }
            run_subjects(&builder.into_page_report(None))
        };
        let same = subjects([4, 4]);
        assert!(
            same[0].ends_with(" #1") && same[1].ends_with(" #2"),
            "{same:?}"
        );
        let other = subjects([4, 8]);
        assert_eq!(other[0], other[1]);
    }

    #[test]
    fn targets_have_the_names_of_the_page() {
        let mut builder = HtmlReportBuilder::default();
        builder.run("result.json", run("randread", ReadWriteMode::Read, 1));
        let mut report = builder.into_page_report(None);
        let mount = Mount {
            fs_type: "ext4".to_owned(),
            source: "/dev/vda1".to_owned(),
            ..Mount::default()
        };
        report.targets = vec![vec![TargetInfo {
            mount: Some(mount),
            ..TargetInfo::default()
        }]];
        let cases: NameCases = serde_json::from_str(CASES).unwrap();
        for NameCase(place, source, is_of_study, of_grid, has_device, name) in cases.single {
            let run = &mut report.runs[0];
            run.labels.clear();
            run.program = "fio-3.33".to_owned();
            (run.place, run.source, run.of_grid) = (place.clone(), source, of_grid);
            run.study = is_of_study.then_some(0);
            run.targets = has_device.then_some(0);
            assert_eq!(run_subjects(&report), [name], "{place}");
        }
    }

    #[test]
    fn labels_shared_by_several_places_have_the_names_of_the_page() {
        let cases: NameCases = serde_json::from_str(CASES).unwrap();
        let one = run("randread", ReadWriteMode::Read, 1);
        for runs in cases.labelled {
            let mut builder = HtmlReportBuilder::default();
            for _ in &runs {
                builder.run("result.json", one.clone());
            }
            let mut report = builder.into_page_report(None);
            let mut names = Vec::new();
            for (run, case) in report.runs.iter_mut().zip(runs) {
                let LabelledRun(place, of_grid, labels, name) = case;
                (run.place, run.of_grid, run.labels) = (place, of_grid, labels);
                run.targets = None;
                names.push(name);
            }
            assert_eq!(run_subjects(&report), names);
        }
    }
}
