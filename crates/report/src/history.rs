//! Stored results: lists of results, and one result in full.

mod list_rates;
mod list_table;

use super::csv::csv_line;
use super::facts;
use super::figures;
use crate::format::TextFormat;
use crate::json_document::json_document_without_program;
use crate::markdown_table::{markdown_legends, markdown_table};
use crate::probe::row::title_of_part;
use crate::text_style::TextStyle;
use crate::text_table::TableColumn::Left;
use crate::text_table::{aligned_columns, pairs, wrapped};
use iosonde_history::{HeadlineRate, Loaded, RunDocument, StudySummary, TOGETHER};
use iosonde_result::compare::ResultPart;
use iosonde_result::pods::PodTotals;
use iosonde_result::property_values::PropertyValues;
use iosonde_result::run::RunResult;
use iosonde_study::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use list_rates::ListedRate;
use serde::Serialize;
use std::collections::BTreeMap;

/// Formats a time for a list: `2026-11-21 03:01`.
pub fn list_time_text(ms: u64, zone: &TimeZone) -> String {
    let at = i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or("-".to_owned(), |at| {
        at.to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M")
            .to_string()
    })
}

/// The labels that tables show. JSON and CSV have all.
fn shown_labels(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    labels.iter().filter(|(key, _)| *key != TOGETHER)
}

fn labels<'a>(labels: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let each: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    each.join(" ")
}

/// Kind and state of a study, in one cell.
fn study_kind_text(study: &StudySummary) -> String {
    match unfinished(study) {
        None => study.kind.clone(),
        Some(why) => format!("{}, {why}{}", study.kind, reached(study)),
    }
}

/// Progress of an unfinished run whose intervals were stored during the run.
fn reached(study: &StudySummary) -> String {
    let word = if study.is_running { "for" } else { "after" };
    study.reached_ns.map_or(String::new(), |ns| {
        format!(" {word} {}", words::duration(ns as f64 / 1e9))
    })
}

/// State of an unfinished study.
fn unfinished(study: &StudySummary) -> Option<&'static str> {
    match (study.finished_at_ms, study.is_running) {
        (Some(_), _) => None,
        (None, true) => Some(RUNNING),
        (None, false) => Some(CUT_OFF),
    }
}

/// Returns a list of studies in `format`. Only the table has a style.
#[must_use]
pub fn study_list(
    studies: &[StudySummary],
    format: TextFormat,
    zone: &TimeZone,
    style: TextStyle,
) -> String {
    match format {
        TextFormat::Table => list_table::list_table(studies, zone, style),
        TextFormat::Json => list_json(studies),
        TextFormat::Csv => list_csv(studies),
        TextFormat::Markdown => list_markdown(studies, zone),
    }
}

const HEAD: [&str; 7] = [
    "id", "started", "what", "target", "read/s", "write/s", "most",
];

fn study_row(study: &StudySummary, zone: &TimeZone) -> [String; 7] {
    let headline = &study.headline;
    let unknown = || "-".to_owned();
    let cell = |rate: Option<&HeadlineRate>| {
        rate.map_or_else(unknown, |rate| {
            ListedRate::from_iops(rate, "±").with_workload()
        })
    };
    let bandwidth = headline.bandwidth.as_ref().map(ListedRate::from_bandwidth);
    let bandwidth = bandwidth.map(|bandwidth| bandwidth.with_workload());
    [
        study.short_id.clone(),
        list_time_text(study.started_at_ms, zone),
        study_kind_text(study),
        study.target.clone(),
        cell(headline.read.as_ref()),
        cell(headline.write.as_ref()),
        bandwidth
            .or_else(|| headline.command.clone())
            .unwrap_or_else(unknown),
    ]
}

/// States of an unfinished study, shown below its kind.
const CUT_OFF: &str = "cut off";
const RUNNING: &str = "running";

fn list_markdown(studies: &[StudySummary], zone: &TimeZone) -> String {
    let mut columns = aligned_columns(&HEAD, list_table::TARGET + 1);
    columns.push(Left("labels"));
    let rows = studies.iter().map(|study| {
        let mut cells = Vec::from(study_row(study, zone));
        cells.push(labels(shown_labels(&study.labels)));
        cells
    });
    let headlines = studies.iter().map(|study| &study.headline);
    let rates = headlines.flat_map(|each| [&each.read, &each.write, &each.bandwidth]);
    let marks = rates
        .flatten()
        .map(|rate| ListedRate::from_iops(rate, "±").marks);
    let legends = list_rates::legends(marks);
    markdown_table(&columns, rows) + &markdown_legends(&legends)
}

fn list_csv(studies: &[StudySummary]) -> String {
    let mut text =
        "id,started_at_ms,finished_at_ms,kind,target,machine,program,labels,imported_from,\
         read_iops,write_iops,bytes_per_s,command_figure\n"
            .to_owned();
    let number = |rate: Option<&HeadlineRate>| {
        rate.map_or(String::new(), |rate| format!("{:.3}", rate.per_s))
    };
    for study in studies {
        let headline = &study.headline;
        let cells = [
            study.id.clone(),
            study.started_at_ms.to_string(),
            study
                .finished_at_ms
                .map_or(String::new(), |ms| ms.to_string()),
            study.kind.clone(),
            study.target.clone(),
            study.machine.clone().unwrap_or_default(),
            study.program.clone(),
            labels(study.labels.iter()),
            study.imported_from.clone().unwrap_or_default(),
            number(headline.read.as_ref()),
            number(headline.write.as_ref()),
            number(headline.bandwidth.as_ref()),
            headline.command.clone().unwrap_or_default(),
        ];
        text.push_str(&csv_line(cells));
    }
    text
}

#[derive(Serialize)]
struct ListContent<'a> {
    results: Vec<ListEntry<'a>>,
}

#[derive(Serialize)]
struct ListEntry<'a> {
    id: &'a str,
    kind: &'a str,
    target: &'a str,
    machine: Option<&'a str>,
    program: &'a str,
    started_at_ms: u64,
    finished_at_ms: Option<u64>,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reached_ns: Option<u64>,
    imported_from: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    facts: &'a BTreeMap<String, PropertyValues>,
    parts: &'a [iosonde_result::compare::ResultPart],
}

fn list_json(studies: &[StudySummary]) -> String {
    let results = studies.iter().map(|study| ListEntry {
        id: &study.id,
        kind: &study.kind,
        target: &study.target,
        machine: study.machine.as_deref(),
        program: &study.program,
        started_at_ms: study.started_at_ms,
        finished_at_ms: study.finished_at_ms,
        running: study.is_running,
        reached_ns: study.reached_ns,
        imported_from: study.imported_from.as_deref(),
        labels: &study.labels,
        facts: &study.facts,
        parts: &study.shown,
    });
    let content = ListContent {
        results: results.collect(),
    };
    // Serialization of plain data cannot fail.
    json_document_without_program("list", content).unwrap_or_default()
}

/// Returns one stored result as text, in the characters of `style`.
#[must_use]
pub fn stored_result_text(loaded: &Loaded, zone: &TimeZone, style: TextStyle) -> String {
    let summary = &loaded.summary;
    let reached = reached(summary);
    let cut_off = match unfinished(summary) {
        None => "",
        Some(RUNNING) => ", running",
        Some(_) if reached.is_empty() => ", cut off before its end",
        Some(_) => ", cut off",
    };
    let what = format!("{} of {}{cut_off}{reached}", summary.kind, summary.target);
    let mut facts = vec![
        ("result", format!("{} ({})", loaded.name(), summary.id)),
        ("what", what),
        ("started", list_time_text(summary.started_at_ms, zone)),
        ("machine", summary.machine.clone().unwrap_or_default()),
        ("program", summary.program.clone()),
        ("labels", labels(summary.labels.iter())),
        (
            "imported from",
            summary.imported_from.clone().unwrap_or_default(),
        ),
    ];
    facts.retain(|(_, text)| !text.is_empty());
    let mut text = pairs(&facts);
    let study = &loaded.study;
    let report = if let Some(probe) = study.probe(loaded.run) {
        super::probe::table::probe_table(&probe)
    } else if let Some(sweep) = study.sweep(loaded.run) {
        format!("\n{}", super::sweep::table(&sweep))
    } else if let Some(load) = study.load(loaded.run) {
        format!("\n{}", super::load::table(&load))
    } else if let Some(pts) = study.pts(loaded.run) {
        format!("\n{}", super::pts::table(&pts))
    } else if let Some(lifecycle) = study.lifecycle(loaded.run) {
        format!("\n{}", super::lifecycle::table(&lifecycle))
    } else if let Some(csi) = study.csi(loaded.run) {
        format!("\n{}", super::csi::table(&csi))
    } else if let Some(suite) = study.suite(loaded.run) {
        format!("\n{}", super::suite::table(&suite, style))
    } else {
        study_runs_text(loaded, style)
    };
    text.push_str(&report);
    if KINDS_OF_POD_MEANS.contains(&summary.kind.as_str()) {
        text.push_str(&pods_of_runs(loaded));
    }
    text
}

/// Studies whose results combine the pods of each run. Reports of other studies have the pods.
const KINDS_OF_POD_MEANS: [&str; 4] = ["probe", "sweep", "load", "pts"];

/// Returns the means of each pod over all runs, or an empty text.
fn pods_of_runs(loaded: &Loaded) -> String {
    let mut totals = PodTotals::default();
    for run in &loaded.study.runs {
        if let RunDocument::Run(result) = &run.document {
            totals.add(&result.pods);
        }
    }
    super::pods::totals_text(&totals)
}

fn study_runs_text(loaded: &Loaded, style: TextStyle) -> String {
    let mut text = String::new();
    let mut shown: Vec<Vec<facts::Fact>> = Vec::new();
    for run in &loaded.study.runs {
        let parts = figures::table(&titled_parts(loaded, &run.parts));
        text.push_str(&format!(
            "\n{}",
            if parts.is_empty() {
                "(no I/O)\n"
            } else {
                &parts
            }
        ));
        if let RunDocument::Run(result) = &run.document {
            findings(result)
                .iter()
                .for_each(|line| text.push_str(&wrapped(line)));
            let series = super::series_table::table(result, style);
            if !series.is_empty() {
                text.push_str(&format!("\n{series}"));
            }
            if !result.pods.is_empty() {
                text.push_str(&super::pods::pods_table(&result.pods));
            }
            text.push_str(&super::nodes::nodes_text(&result.nodes));
            // The runs of a study mostly use the same target and machine.
            let place = place(result);
            if !shown.contains(&place) {
                text.push_str(&format!("\n{}", pairs(&place)));
                shown.push(place);
            }
        }
    }
    text
}

/// Parts of a run. Those of a probe have the titles of its reports instead of their keys.
fn titled_parts(loaded: &Loaded, parts: &[ResultPart]) -> Vec<ResultPart> {
    let mut titled = parts.to_vec();
    if loaded.summary.kind == "probe" {
        for part in &mut titled {
            if let Some(title) = title_of_part(&part.name, part.pattern.iodepth) {
                part.name = title;
            }
        }
    }
    titled
}

/// Facts about a run's machine and first target. Further targets are often similar: only counted.
fn place(result: &RunResult) -> Vec<facts::Fact> {
    let target = result.targets.first();
    let mut place = target.map(facts::target).unwrap_or_default();
    if result.targets.len() > 1 {
        let count = result.targets.len() - 1;
        place.push(("files", format!("{count} more")));
    }
    place.extend(facts::storage(result));
    place.extend(facts::caches(&result.caches));
    place.extend(
        result
            .ceph
            .as_ref()
            .map(facts::ceph_facts)
            .unwrap_or_default(),
    );
    place.extend(facts::nfs_facts(&result.nfs));
    place.extend(result.shared_file.iter().flat_map(facts::shared_file));
    place.push(("machine", facts::machine(&result.host)));
    place.extend(facts::bounds(&result.host));
    place.retain(|(_, text)| !text.is_empty());
    place
}

fn findings(result: &RunResult) -> Vec<String> {
    let advice = result.findings().into_iter();
    let advice = advice.chain(result.notes.iter().cloned());
    let advice = advice.map(|sentence| format!("note: {sentence}"));
    let failures = result
        .workers
        .iter()
        .filter_map(|worker| worker.error.as_ref());
    let failures = failures.map(|failure| format!("error: {}", failure.message));
    advice.chain(failures).collect()
}

#[cfg(test)]
mod tests;
