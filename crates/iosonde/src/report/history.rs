//! Stored results: lists of them, and one of them.

use super::csv::text_cell;
use super::facts;
use super::figures;
use super::probe::table::{COLUMNS, pairs, plain, render, render_left, right, wrapped};
use crate::args::TextFormat;
use crate::store::{Document, Loaded, Summary};
use comfy_table::{Cell, ContentArrangement};
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

/// What it is, in one cell.
fn what(study: &Summary) -> String {
    match unfinished(study) {
        None => study.kind.clone(),
        Some(why) => format!("{}, {why}{}", study.kind, reached(study)),
    }
}

/// How far a run has come whose intervals are kept while it goes on.
fn reached(study: &Summary) -> String {
    let word = if study.is_running { "for" } else { "after" };
    study.reached_ns.map_or(String::new(), |ns| {
        format!(" {word} {}", words::duration(ns as f64 / 1e9))
    })
}

/// Why a study has no end.
fn unfinished(study: &Summary) -> Option<&'static str> {
    match (study.finished_at_ms, study.is_running) {
        (Some(_), _) => None,
        (None, true) => Some(RUNNING),
        (None, false) => Some(CUT_OFF),
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
    let rate = |iops: Option<f64>| iops.map_or("-".to_owned(), words::iops);
    let headline = study.headline;
    [
        study.short_id.clone(),
        time(study.started_at_ms, zone),
        what(study),
        study.target.clone(),
        rate(headline.read_iops),
        rate(headline.write_iops),
        headline
            .bytes_per_s
            .map_or("-".to_owned(), words::bandwidth),
    ]
}

/// A text in so many characters at most, the middle left out.
fn shortened(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    // The end tells more of a path than its beginning.
    let (head, tail) = (kept / 2, kept - kept / 2);
    let end = &letters[letters.len() - tail..];
    letters[..head].iter().chain(&['…']).chain(end).collect()
}

/// What stands between two columns.
const GAP: usize = 2;
/// Stands below what did not come to its end.
const CUT_OFF: &str = "cut off";
const RUNNING: &str = "running";
/// The columns of what it is, and of its target.
const WHAT: usize = 2;
const TARGET: usize = 3;

/// The width of a column, with the gap behind it.
fn width(rows: &[[String; 7]], column: usize) -> usize {
    let cells = rows.iter().map(|row| row[column].chars().count());
    cells.max().unwrap_or(0).max(HEAD[column].len()) + GAP
}

/// Targets are shortened to what the other columns leave. Below them stand labels, as they may be long, and what was cut off.
fn list_table(studies: &[Summary], zone: &TimeZone) -> String {
    const LEAST: usize = 12;
    let mut rows: Vec<[String; 7]> = studies.iter().map(|study| row(study, zone)).collect();
    for (study, row) in studies.iter().zip(&mut rows) {
        row[WHAT].clone_from(&study.kind);
        if study.finished_at_ms.is_none() {
            row[WHAT] = format!("{:<1$}", study.kind, CUT_OFF.len());
        }
    }
    let others: usize = (0..HEAD.len())
        .filter(|at| *at != TARGET)
        .map(|at| width(&rows, at))
        .sum();
    // There is no gap behind the last.
    let room = usize::from(COLUMNS).saturating_sub(others).max(LEAST);
    for row in &mut rows {
        row[TARGET] = shortened(&row[TARGET], room);
    }
    let indents = [WHAT, TARGET].map(|column| (0..column).map(|at| width(&rows, at)).sum());
    let mut table = plain();
    table.set_content_arrangement(ContentArrangement::Disabled);
    let cell = |(index, text): (usize, String)| {
        if index <= TARGET {
            Cell::new(text)
        } else {
            right(text)
        }
    };
    table.set_header(HEAD.map(str::to_owned).into_iter().enumerate().map(cell));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(cell));
    }
    let text = render_left(&mut table);
    let mut lines = text.lines();
    let mut told = format!("{}\n", lines.next().unwrap_or_default());
    for (line, study) in lines.zip(studies) {
        told.push_str(&format!("{line}\n{}", below(study, indents)));
    }
    told
}

/// The lines below a study's own.
fn below(study: &Summary, [what, target]: [usize; 2]) -> String {
    let mut lines = vec![" ".repeat(what)];
    if let Some(why) = unfinished(study) {
        lines[0].push_str(why);
        lines[0].push_str(&reached(study));
    }
    for (key, value) in &study.labels {
        let label = format!("{key}={value}");
        let last = lines.len() - 1;
        let begun = lines[last].chars().count();
        if begun <= target {
            lines[last] = format!("{:<target$}{label}", lines[last]);
        } else if begun + 1 + label.chars().count() <= usize::from(COLUMNS) {
            lines[last].push_str(&format!(" {label}"));
        } else {
            lines.push(format!("{:<target$}{label}", ""));
        }
    }
    let lines = lines.iter().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("{line}\n")).collect()
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
        "id,started_at_ms,finished_at_ms,kind,target,machine,program,labels,imported_from,read_iops,write_iops,bytes_per_s\n"
            .to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    for study in studies {
        let headline = study.headline;
        let fields = [
            text_cell(&study.id),
            study.started_at_ms.to_string(),
            study
                .finished_at_ms
                .map_or(String::new(), |ms| ms.to_string()),
            text_cell(&study.kind),
            text_cell(&study.target),
            text_cell(study.machine.as_deref().unwrap_or_default()),
            text_cell(&study.program),
            text_cell(&labels(&study.labels)),
            text_cell(study.imported_from.as_deref().unwrap_or_default()),
            number(headline.read_iops),
            number(headline.write_iops),
            number(headline.bytes_per_s),
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
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reached_ns: Option<u64>,
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
        running: study.is_running,
        reached_ns: study.reached_ns,
        imported_from: study.imported_from.as_deref(),
        labels: &study.labels,
        parts: &study.shown,
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
    let reached = reached(summary);
    let cut_off = match unfinished(summary) {
        None => "",
        Some(RUNNING) => ", running",
        Some(_) if reached.is_empty() => ", cut off before its end",
        Some(_) => ", cut off",
    };
    let what = format!("{} of {}{cut_off}{reached}", summary.kind, summary.target);
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
            text.push_str(&super::nodes::text(&result.nodes));
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
    place.extend(facts::storage(result));
    place.extend(result.ceph.as_ref().map(facts::ceph).unwrap_or_default());
    place.extend(facts::nfs(&result.nfs));
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
