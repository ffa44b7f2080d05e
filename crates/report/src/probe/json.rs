//! JSON: the whole result, or fio's format.

use super::side_by_side;
use crate::json_document::json_document;
use iosonde_result::compare::Comparison;
use iosonde_result::fio;
use iosonde_result::run::RunResult;
use iosonde_study::probe::ProbeResult;
use iosonde_study::probe::repetitions::ProbeRepetitions;
use serde::Serialize;

#[derive(Serialize)]
struct ProbesContent<'a> {
    probes: Vec<&'a ProbeResult>,
    /// The runs of each target that `--repeat` asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repetitions: Vec<ProbeRepetitions>,
    /// Comparison of each further target with the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparisons: Vec<ProbeComparison<'a>>,
}

#[derive(Serialize)]
struct ProbeComparison<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Returns iosonde's document: each run with its histograms and intervals.
pub(super) fn probe_json(results: &[ProbeResult]) -> serde_json::Result<String> {
    let content = ProbesContent {
        probes: results.iter().collect(),
        repetitions: Vec::new(),
        comparisons: side_by_side::comparisons(results)
            .into_iter()
            .map(|(other, comparison)| ProbeComparison {
                a: &results[0].target,
                b: &other.target,
                comparison,
            })
            .collect(),
    };
    json_document("probe", content)
}

/// Returns iosonde's document of repeated probes. The comparisons are of all runs of each target.
pub(super) fn repeated(
    probes: Vec<&ProbeResult>,
    repetitions: Vec<ProbeRepetitions>,
    comparisons: Vec<(&ProbeResult, &ProbeResult, Comparison)>,
) -> serde_json::Result<String> {
    let comparisons = comparisons.into_iter();
    let comparisons = comparisons.map(|(a, b, comparison)| ProbeComparison {
        a: &a.target,
        b: &b.target,
        comparison,
    });
    let content = ProbesContent {
        probes,
        repetitions,
        comparisons: comparisons.collect(),
    };
    json_document("probe", content)
}

/// Returns fio's document, with one job per measured phase.
pub(super) fn probe_fio_json<'a>(
    results: impl IntoIterator<Item = &'a ProbeResult>,
) -> serde_json::Result<String> {
    let Some(joined) = joined(results) else {
        return Ok("{}\n".to_owned());
    };
    let mut text = Vec::new();
    fio::write_json(&mut text, &fio::fio_json(&joined, false)).map_err(serde_json::Error::io)?;
    text.push(b'\n');
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Joins all phases to one run whose jobs follow each other.
fn joined<'a>(results: impl IntoIterator<Item = &'a ProbeResult>) -> Option<RunResult> {
    let runs: Vec<&RunResult> = results
        .into_iter()
        .flat_map(|result| &result.runs)
        .map(|run| &run.result)
        .collect();
    let mut joined = RunResult {
        elapsed_ns: 0,
        workers: Vec::new(),
        ..(*runs.first()?).clone()
    };
    joined.plan.jobs.clear();
    joined.disks.clear();
    joined.intervals.clear();
    joined.events.clear();
    joined.verdicts.clear();
    joined.notes.clear();
    joined.pods.clear();
    joined.nodes.clear();
    joined.nfs.clear();
    for run in runs {
        let group = joined.plan.jobs.len();
        joined.elapsed_ns += run.elapsed_ns;
        for job in &run.plan.jobs {
            let mut job = job.clone();
            job.groupid = group as u32;
            joined.plan.jobs.push(job);
        }
        for worker in &run.workers {
            let mut worker = worker.clone();
            worker.job += group;
            worker.groupid = group as u32;
            joined.workers.push(worker);
        }
        joined.verdicts.extend(run.verdicts.iter().cloned());
    }
    Some(joined)
}
