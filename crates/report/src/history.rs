//! Stored results: lists of results, and one result in full.

mod list_rates;

use super::csv::csv_line;
use super::facts;
use super::figures;
use crate::format::TextFormat;
use crate::json_document::json_document_without_program;
use crate::markdown_table::MarkdownColumn::{Left, Right};
use crate::markdown_table::markdown_table;
use crate::probe::row::title_of_part;
use crate::text_style::TextStyle;
use crate::text_table::{COLUMNS, pairs, plain, render, render_left, right, wrapped};
use comfy_table::{Cell, ContentArrangement};
use iosonde_history::{Loaded, RunDocument, StudySummary, TOGETHER};
use iosonde_result::compare::ResultPart;
use iosonde_result::pods::PodTotals;
use iosonde_result::run::RunResult;
use iosonde_study::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::collections::BTreeMap;

/// Formats a time for a list: `2026-11-21 03:01`.
pub fn time(ms: u64, zone: &TimeZone) -> String {
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
fn what(study: &StudySummary) -> String {
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
pub fn list(
    studies: &[StudySummary],
    format: TextFormat,
    zone: &TimeZone,
    style: TextStyle,
) -> String {
    match format {
        TextFormat::Table => list_table(studies, zone, style),
        TextFormat::Json => list_json(studies),
        TextFormat::Csv => list_csv(studies),
        TextFormat::Markdown => list_markdown(studies, zone),
    }
}

const HEAD: [&str; 7] = [
    "id", "started", "what", "target", "read/s", "write/s", "most",
];

fn row(study: &StudySummary, zone: &TimeZone) -> [String; 7] {
    let headline = &study.headline;
    let cell = |iops: Option<f64>, error| {
        iops.map_or("-".to_owned(), |iops| list_rates::rate(iops, error, "±"))
    };
    let bandwidth = list_rates::bandwidth(study);
    [
        study.short_id.clone(),
        time(study.started_at_ms, zone),
        what(study),
        study.target.clone(),
        cell(headline.read_iops, headline.read_iops_error),
        cell(headline.write_iops, headline.write_iops_error),
        bandwidth
            .or_else(|| headline.command.clone())
            .unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Row of the table for a terminal: the higher rate of both directions, or the figure of a command,
/// and the bandwidth. Both are the highest of all workloads.
fn table_row(study: &StudySummary, zone: &TimeZone, style: TextStyle) -> [String; 6] {
    let headline = &study.headline;
    let rates = [
        (headline.read_iops, headline.read_iops_error, "read"),
        (headline.write_iops, headline.write_iops_error, "write"),
    ];
    let rates = rates
        .into_iter()
        .filter_map(|(iops, error, name)| Some((iops?, error, name)));
    let plus_minus = style.plus_minus();
    let highest = rates.max_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let highest = highest
        .map(|(iops, error, name)| format!("{} {name}", list_rates::rate(iops, error, plus_minus)));
    let bandwidth = list_rates::bandwidth(study);
    [
        study.short_id.clone(),
        time(study.started_at_ms, zone),
        what(study),
        study.target.clone(),
        highest
            .or_else(|| headline.command.clone())
            .unwrap_or_else(|| "-".to_owned()),
        bandwidth.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Shortens a text to at most `most` characters by omitting its middle.
fn shortened(text: &str, most: usize, ellipsis: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(ellipsis.chars().count());
    // The end of a path identifies it better than its start.
    let (head, tail) = (kept / 2, kept - kept / 2);
    let end: String = letters[letters.len() - tail..].iter().collect();
    let start: String = letters[..head].iter().collect();
    format!("{start}{ellipsis}{end}")
}

/// Columns of the table for a terminal.
const TABLE_HEAD: [&str; 6] = ["id", "when", "what", "where", "highest", "bandwidth"];
/// Spaces between two columns.
const GAP: usize = 2;
/// States of an unfinished study, shown below its kind.
const CUT_OFF: &str = "cut off";
const RUNNING: &str = "running";
/// Indices of the columns for kind and target.
const WHAT: usize = 2;
const TARGET: usize = 3;

/// Width of a column, with the gap behind it.
fn width(rows: &[[String; 6]], column: usize) -> usize {
    let cells = rows.iter().map(|row| row[column].chars().count());
    cells.max().unwrap_or(0).max(TABLE_HEAD[column].len()) + GAP
}

/// Shortens targets to the width left over. Long labels and unfinished states are on lines below.
fn list_table(studies: &[StudySummary], zone: &TimeZone, style: TextStyle) -> String {
    const LEAST: usize = 12;
    let mut rows: Vec<[String; 6]> = studies
        .iter()
        .map(|study| table_row(study, zone, style))
        .collect();
    for (study, row) in studies.iter().zip(&mut rows) {
        row[WHAT].clone_from(&study.kind);
        if study.finished_at_ms.is_none() {
            row[WHAT] = format!("{:<1$}", study.kind, CUT_OFF.len());
        }
    }
    let others: usize = (0..TABLE_HEAD.len())
        .filter(|at| *at != TARGET)
        .map(|at| width(&rows, at))
        .sum();
    // The last column has no gap.
    let room = usize::from(COLUMNS).saturating_sub(others).max(LEAST);
    for row in &mut rows {
        row[TARGET] = shortened(&row[TARGET], room, style.ellipsis());
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
    table.set_header(
        TABLE_HEAD
            .map(str::to_owned)
            .into_iter()
            .enumerate()
            .map(cell),
    );
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(cell));
    }
    let text = render_left(&mut table);
    let mut lines = text.lines();
    let mut output = format!("{}\n", lines.next().unwrap_or_default());
    for (line, study) in lines.zip(studies) {
        output.push_str(&format!("{line}\n{}", below(study, indents)));
    }
    output
}

/// Lines below the line of a study.
fn below(study: &StudySummary, [what, target]: [usize; 2]) -> String {
    let mut lines = vec![" ".repeat(what)];
    if let Some(why) = unfinished(study) {
        lines[0].push_str(why);
        lines[0].push_str(&reached(study));
    }
    for (key, value) in shown_labels(&study.labels) {
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

fn list_markdown(studies: &[StudySummary], zone: &TimeZone) -> String {
    let column = |(index, header): (usize, &'static str)| match index <= TARGET {
        true => Left(header),
        false => Right(header),
    };
    let mut columns: Vec<_> = HEAD.into_iter().enumerate().map(column).collect();
    columns.push(Left("labels"));
    let rows = studies.iter().map(|study| {
        // Tildes strike text out.
        let escaped = row(study, zone).map(|cell| cell.replace('~', "\\~"));
        let mut cells = Vec::from(escaped);
        cells.push(labels(shown_labels(&study.labels)));
        cells
    });
    markdown_table(&columns, rows)
}

fn list_csv(studies: &[StudySummary]) -> String {
    let mut text =
        "id,started_at_ms,finished_at_ms,kind,target,machine,program,labels,imported_from,\
         read_iops,write_iops,bytes_per_s,command_figure\n"
            .to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
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
            number(headline.read_iops),
            number(headline.write_iops),
            number(headline.bytes_per_s),
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
    facts: &'a BTreeMap<String, String>,
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
pub fn show(loaded: &Loaded, zone: &TimeZone, style: TextStyle) -> String {
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
    pair("labels", &labels(summary.labels.iter()));
    pair(
        "imported from",
        summary.imported_from.as_deref().unwrap_or_default(),
    );
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = render(&table);
    let study = &loaded.study;
    let report = if let Some(probe) = study.probe(loaded.run) {
        super::probe::table::text(&probe)
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
        runs(loaded)
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

fn runs(loaded: &Loaded) -> String {
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
            let series = super::series::table(result);
            if !series.is_empty() {
                text.push_str(&format!("\n{series}"));
            }
            if !result.pods.is_empty() {
                text.push_str(&super::pods::text(&result.pods));
            }
            text.push_str(&super::nodes::text(&result.nodes));
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
    place.extend(result.ceph.as_ref().map(facts::ceph).unwrap_or_default());
    place.extend(facts::nfs(&result.nfs));
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
