//! For programs: everything, or as fio would say it.

use super::side_by_side;
use crate::failure::Failure;
use iosonde_result::compare::Comparison;
use iosonde_result::fio;
use iosonde_result::run::RunResult;
use iosonde_study::probe::ProbeResult;
use serde::Serialize;

/// Version of this document; counts up when a member changes its meaning.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    kind: &'static str,
    program: &'static str,
    probes: &'a [ProbeResult],
    /// Each target but the first, held against the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparisons: Vec<Beside<'a>>,
}

#[derive(Serialize)]
struct Beside<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Our own document: every run with its histograms and seconds.
pub(super) fn own(results: &[ProbeResult]) -> Result<String, Failure> {
    let document = Document {
        format: FORMAT,
        kind: "probe",
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")),
        probes: results,
        comparisons: side_by_side::comparisons(results)
            .into_iter()
            .map(|(other, comparison)| Beside {
                a: &results[0].target,
                b: &other.target,
                comparison,
            })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
    text.push('\n');
    Ok(text)
}

/// fio's document, with one job for each phase that measured.
pub(super) fn fio(results: &[ProbeResult]) -> Result<String, Failure> {
    let Some(joined) = joined(results) else {
        return Ok("{}\n".to_owned());
    };
    let mut text = Vec::new();
    fio::write_json(&mut text, &fio::json(&joined, false)).map_err(anyhow::Error::from)?;
    text.push(b'\n');
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// All phases as one run whose jobs followed each other.
fn joined(results: &[ProbeResult]) -> Option<RunResult> {
    let runs: Vec<&RunResult> = results
        .iter()
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
