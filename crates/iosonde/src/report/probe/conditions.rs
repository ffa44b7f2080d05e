//! What was really measured, and how: pairs of a name and a sentence.

use super::limits;
use crate::report::facts;
use iosonde_job::plan::Engine;
use iosonde_result::run::{RunResult, Verdict};
use iosonde_study::probe::{Phase, ProbeResult};

/// All that is known. What is not known is left out.
pub(super) fn of(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    let runs: Vec<&RunResult> = result.runs.iter().map(|run| &run.result).collect();
    let target = runs.iter().rev().find_map(|run| run.targets.first());
    if let Some(target) = target {
        pairs.extend(facts::target(target));
    }
    pairs.push(("I/O", how(result)));
    if let Some(run) = runs.first() {
        pairs.push(("machine", facts::machine(&run.host)));
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

/// The findings of all phases, each once, with the phases it was made in.
fn verdicts(result: &ProbeResult) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for run in &result.runs {
        let elsewhere = |verdict: &&Verdict| !limits::is_shown_here(run, verdict);
        for verdict in run.result.verdicts.iter().filter(elsewhere) {
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
