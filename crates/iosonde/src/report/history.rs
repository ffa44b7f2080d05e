//! Stored results: lists of them, and one of them.

use super::facts;
use super::figures::{self, quoted};
use super::probe::table::{pairs, plain, render, right, wrapped};
use crate::args::TextFormat;
use crate::store::{Document, Loaded, Summary};
use comfy_table::Cell;
use iosonde_result::compare::{Measure, Subject};
use iosonde_result::run::RunResult;
use iosonde_study::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::collections::BTreeMap;

/// A point in time as lists have it: `2026-11-21 03:01`.
pub(crate) fn time(ms: u64, zone: &TimeZone) -> String {
    let at = i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or("-".to_owned(), |at| {
        at.to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M")
            .to_string()
    })
}

fn labels(labels: &BTreeMap<String, String>) -> String {
    let each: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    each.join(" ")
}

/// The highest figure of all parts.
fn highest(study: &Summary, subject: Option<Subject>, measure: Measure) -> Option<f64> {
    let figures = study.parts.iter().flat_map(|part| &part.figures);
    let values = figures
        .filter(|figure| figure.measure == measure)
        .filter(|figure| subject.is_none_or(|subject| subject == figure.subject))
        .map(|figure| figure.value);
    values.reduce(f64::max)
}

fn what(study: &Summary) -> String {
    match study.finished_at_ms {
        Some(_) => study.kind.clone(),
        None => format!("{}, cut off", study.kind),
    }
}

/// Studies in a list, as `format` has it.
pub(crate) fn list(studies: &[Summary], format: TextFormat, zone: &TimeZone) -> String {
    match format {
        TextFormat::Table => list_table(studies, zone),
        TextFormat::Json => list_json(studies),
        TextFormat::Csv => list_csv(studies),
        TextFormat::Markdown => list_markdown(studies, zone),
    }
}

const HEAD: [&str; 7] = [
    "id", "started", "what", "target", "read/s", "write/s", "most",
];

fn row(study: &Summary, zone: &TimeZone) -> [String; 7] {
    let rate = |subject| {
        let iops = highest(study, Some(subject), Measure::Iops);
        iops.map_or("-".to_owned(), words::iops)
    };
    let most = highest(study, None, Measure::BytesPerS);
    [
        study.short_id.clone(),
        time(study.started_at_ms, zone),
        what(study),
        study.target.clone(),
        rate(Subject::Read),
        rate(Subject::Write),
        most.map_or("-".to_owned(), words::bandwidth),
    ]
}

/// Labels stand below, as they may be long.
fn list_table(studies: &[Summary], zone: &TimeZone) -> String {
    let mut table = plain();
    let cell = |(index, text): (usize, String)| {
        if index < 4 {
            Cell::new(text)
        } else {
            right(text)
        }
    };
    table.set_header(HEAD.map(str::to_owned).into_iter().enumerate().map(cell));
    for study in studies {
        table.add_row(row(study, zone).into_iter().enumerate().map(cell));
        if !study.labels.is_empty() {
            let mut cells = vec![String::new(); 3];
            cells.push(labels(&study.labels));
            table.add_row(cells);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(&table)
}

fn list_markdown(studies: &[Summary], zone: &TimeZone) -> String {
    let mut text = format!("| {} | labels |\n", HEAD.join(" | "));
    text.push_str("| --- | --- | --- | --- | ---: | ---: | ---: | --- |\n");
    for study in studies {
        let cells = row(study, zone).map(|cell| cell.replace('|', "\\|"));
        let labels = labels(&study.labels).replace('|', "\\|");
        text.push_str(&format!("| {} | {labels} |\n", cells.join(" | ")));
    }
    text
}

fn list_csv(studies: &[Summary]) -> String {
    let mut text =
        "id,started_at_ms,finished_at_ms,kind,target,machine,program,labels,imported_from\n"
            .to_owned();
    for study in studies {
        let fields = [
            study.id.clone(),
            study.started_at_ms.to_string(),
            study
                .finished_at_ms
                .map_or(String::new(), |ms| ms.to_string()),
            study.kind.clone(),
            quoted(&study.target),
            quoted(study.machine.as_deref().unwrap_or_default()),
            quoted(&study.program),
            quoted(&labels(&study.labels)),
            quoted(study.imported_from.as_deref().unwrap_or_default()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// Version of the list as JSON; counts up when a member changes its meaning.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct ListDocument<'a> {
    format: u32,
    kind: &'static str,
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
    imported_from: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    parts: &'a [iosonde_result::compare::Part],
}

fn list_json(studies: &[Summary]) -> String {
    let results = studies.iter().map(|study| ListEntry {
        id: &study.id,
        kind: &study.kind,
        target: &study.target,
        machine: study.machine.as_deref(),
        program: &study.program,
        started_at_ms: study.started_at_ms,
        finished_at_ms: study.finished_at_ms,
        imported_from: study.imported_from.as_deref(),
        labels: &study.labels,
        parts: &study.parts,
    });
    let document = ListDocument {
        format: FORMAT,
        kind: "list",
        results: results.collect(),
    };
    // Plain data: there is nothing in it that could fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// One stored result, for people.
pub(crate) fn show(loaded: &Loaded, zone: &TimeZone) -> String {
    let summary = &loaded.summary;
    let mut table = plain();
    let mut pair = |name: &str, value: &str| {
        if !value.is_empty() {
            table.add_row([name, value]);
        }
    };
    pair("result", &format!("{} ({})", loaded.name(), summary.id));
    let cut_off = match summary.finished_at_ms {
        Some(_) => "",
        None => ", cut off before its end",
    };
    let what = format!("{} of {}{cut_off}", summary.kind, summary.target);
    pair("what", &what);
    pair("started", &time(summary.started_at_ms, zone));
    pair("machine", summary.machine.as_deref().unwrap_or_default());
    pair("program", &summary.program);
    pair("labels", &labels(&summary.labels));
    pair(
        "imported from",
        summary.imported_from.as_deref().unwrap_or_default(),
    );
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = render(&table);
    let study = &loaded.study;
    let told = if let Some(probe) = study.probe(loaded.run) {
        super::probe::table::text(&probe)
    } else if let Some(sweep) = study.sweep(loaded.run) {
        format!("\n{}", super::sweep::table(&sweep))
    } else if let Some(load) = study.load(loaded.run) {
        format!("\n{}", super::load::table(&load))
    } else if let Some(pts) = study.pts(loaded.run) {
        format!("\n{}", super::pts::table(&pts))
    } else if let Some(suite) = study.suite(loaded.run) {
        format!("\n{}", super::suite::table(&suite))
    } else {
        runs(loaded)
    };
    text.push_str(&told);
    text
}

fn runs(loaded: &Loaded) -> String {
    let mut text = String::new();
    let mut told: Vec<Vec<facts::Fact>> = Vec::new();
    for run in &loaded.study.runs {
        let parts = figures::table(&run.parts);
        text.push_str(&format!(
            "\n{}",
            if parts.is_empty() {
                "(moved nothing)\n"
            } else {
                &parts
            }
        ));
        if let Document::Run(result) = &run.document {
            findings(result)
                .iter()
                .for_each(|line| text.push_str(&wrapped(line)));
            let series = super::series::table(result);
            if !series.is_empty() {
                text.push_str(&format!("\n{series}"));
            }
            // The runs of one study mostly have one place.
            let place = place(result);
            if !told.contains(&place) {
                text.push_str(&format!("\n{}", pairs(&place)));
                told.push(place);
            }
        }
    }
    text
}

/// Where a run took place: its first target, for there may be many files in one place, and the machine.
fn place(result: &RunResult) -> Vec<facts::Fact> {
    let target = result.targets.first();
    let mut place = target.map(facts::target).unwrap_or_default();
    if result.targets.len() > 1 {
        let count = result.targets.len() - 1;
        place.push(("files", format!("{count} more")));
    }
    place.push(("machine", facts::machine(&result.host)));
    place.retain(|(_, text)| !text.is_empty());
    place
}

fn findings(result: &RunResult) -> Vec<String> {
    let verdicts = result.findings().into_iter();
    let verdicts = verdicts.map(|finding| format!("note: {finding}"));
    let failures = result
        .workers
        .iter()
        .filter_map(|worker| worker.error.as_ref());
    let failures = failures.map(|failure| format!("error: {}", failure.message));
    verdicts.chain(failures).collect()
}
