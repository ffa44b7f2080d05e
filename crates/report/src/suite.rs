//! Report of a suite: its plan and its result, in each format.

mod beside_neighbour;
mod command_series;
mod junit;
mod pod_tables;
mod suite_plan;
pub(crate) mod xml_element;

pub use junit::{JunitHeader, junit};
pub use suite_plan::{list, plan};

use super::csv::csv_line;
use super::figures::value;
use super::intervals;
use super::json_document::json_document;
use super::markdown_table::MarkdownColumn::{Left, Right};
use super::markdown_table::{MarkdownColumn, markdown_table};
use super::sweep::{advice_lines, advice_text};
use crate::text_table::{plain, render, right, wrapped};
use comfy_table::{Cell, Table};
use iosonde_result::compare::{Measure, MeasuredResult, ResultPart, Subject, figure_of};
use iosonde_study::words;
use iosonde_suite::{ExpectationVerdict, FigureUnit, StudyFigure, StudyFigureKind, SuiteResult};
use serde::Serialize;

/// Returns the report as text of at most 80 columns.
pub fn table(result: &SuiteResult) -> String {
    let about = result
        .about
        .as_ref()
        .map_or(String::new(), |about| format!(": {about}"));
    let mut text = wrapped(&format!("{} on {}{about}", result.suite, result.target));
    if result.interrupted {
        text.push_str("interrupted: figures of the completed runs\n");
    }
    let rows = rows(result);
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", render(&figures(&rows))));
    }
    let found = found(result);
    if !found.is_empty() {
        text.push_str(&format!("\n{}", render(&studies(&found))));
    }
    text.push_str(&beside_neighbour::table(result));
    text.push_str(&command_series::table(result));
    text.push_str(&pod_tables::tables(result));
    for step in &result.steps {
        let advice = step.sweep.as_ref().map(|sweep| advice_text(sweep));
        if let Some(advice) = advice.filter(|advice| !advice.is_empty()) {
            text.push_str(&format!("\n{}: {advice}", step.name));
        }
    }
    if !result.judged.is_empty() {
        text.push_str(&format!("\n{}", render(&verdicts(result))));
    }
    for note in notes(result) {
        text.push_str(&format!("\n{}", wrapped(&note)));
    }
    text
}

fn verdicts(result: &SuiteResult) -> Table {
    let mut table = plain();
    for judged in &result.judged {
        let evidence = format!("{}: {}", judged.figure, judged.evidence);
        table.add_row([judged.verdict.words().to_owned(), evidence]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// `3 met, 1 missed`.
pub fn summary(result: &SuiteResult) -> String {
    let all = [
        ExpectationVerdict::Met,
        ExpectationVerdict::Missed,
        ExpectationVerdict::Undecided,
        ExpectationVerdict::NotMeasured,
    ];
    let count = |verdict| {
        result
            .judged
            .iter()
            .filter(|judged| judged.verdict == verdict)
            .count()
    };
    let given = all.into_iter().filter(|verdict| count(*verdict) > 0);
    let counts: Vec<String> = given
        .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
        .collect();
    counts.join(", ")
}

/// A line of figures: all repetitions of a part in one direction.
struct FigureRow {
    name: String,
    rw: String,
    bs: String,
    cells: Vec<Option<(Measure, f64)>>,
    sync_p99_ns: Option<f64>,
    mark: &'static str,
}

const COLUMNS: [Measure; 4] = [
    Measure::Iops,
    Measure::BytesPerS,
    Measure::LatP50,
    Measure::LatP99,
];

fn rows(result: &SuiteResult) -> Vec<FigureRow> {
    let most = result
        .steps
        .iter()
        .map(|step| step.repetition)
        .max()
        .unwrap_or(0);
    let of = |repetition| MeasuredResult {
        name: String::new(),
        machine: None,
        parts: result
            .steps
            .iter()
            .filter(|step| step.repetition == repetition)
            .flat_map(|step| step.parts.clone())
            .collect(),
    };
    let all: Vec<MeasuredResult> = (1..=most).map(of).collect();
    let mut rows: Vec<FigureRow> = Vec::new();
    let mut met: Vec<&str> = Vec::new();
    for part in all.iter().flat_map(|measured| &measured.parts) {
        if met.contains(&part.name.as_str()) || part.name == "layout" {
            continue;
        }
        met.push(&part.name);
        rows.extend(rows_of(part, &all));
    }
    rows
}

fn rows_of(part: &ResultPart, all: &[MeasuredResult]) -> Vec<FigureRow> {
    let of = |subject, measure| figure_of(all, &part.name, subject, measure);
    let sync = of(Subject::Sync, Measure::LatP99).map(|side| side.value);
    let subjects = [Subject::Read, Subject::Write, Subject::Trim, Subject::Mixed];
    let mut rows: Vec<FigureRow> = Vec::new();
    for subject in subjects {
        let Some(iops) = of(subject, Measure::Iops) else {
            continue;
        };
        let first = rows.is_empty();
        let cell = |measure: Measure| {
            let completion = Measure::ALL
                .into_iter()
                .find(|each| each.of_total() == Some(measure));
            let side = of(subject, measure).or_else(|| of(subject, completion?));
            side.map(|side| (measure, side.value))
        };
        let both = part.pattern.rw.ends_with("rw") || part.pattern.rw == "readwrite";
        rows.push(FigureRow {
            name: if first {
                part.name.clone()
            } else {
                String::new()
            },
            rw: if both {
                subject.name().to_owned()
            } else {
                part.pattern.rw.clone()
            },
            bs: part
                .pattern
                .bs
                .parse()
                .map_or(part.pattern.bs.clone(), iosonde_study::sweep::size_name),
            cells: COLUMNS.map(cell).to_vec(),
            sync_p99_ns: if subject == Subject::Read { None } else { sync },
            mark: if iops.unsettled { "*" } else { "" },
        });
    }
    rows
}

fn figures(rows: &[FigureRow]) -> Table {
    let mut table = plain();
    let with_sync = rows.iter().any(|row| row.sync_p99_ns.is_some());
    let mut header = vec![Cell::new(""), Cell::new("rw"), right("bs")];
    header.extend(["IOPS", "bandwidth", "p50", "p99"].map(right));
    header.extend(with_sync.then(|| right("sync p99")));
    table.set_header(header);
    for row in rows {
        let mut cells = vec![Cell::new(&row.name), Cell::new(&row.rw), right(&row.bs)];
        for (index, cell) in row.cells.iter().enumerate() {
            let shown = cell.map_or("-".to_owned(), |(measure, number)| value(measure, number));
            cells.push(right(format!(
                "{shown}{}",
                if index == 0 { row.mark } else { "" }
            )));
        }
        if with_sync {
            cells.push(right(row.sync_p99_ns.map_or(String::new(), words::latency)));
        }
        table.add_row(cells);
    }
    table
}

/// Figures found by studies, one per repetition.
fn found(result: &SuiteResult) -> Vec<&StudyFigure> {
    result.steps.iter().flat_map(|step| &step.found).collect()
}

pub(super) fn studies(found: &[&StudyFigure]) -> Table {
    let mut table = plain();
    table.set_header([
        Cell::new(""),
        Cell::new("found"),
        right(""),
        right("95 % interval"),
    ]);
    for one in found {
        let unit = unit(one.kind);
        let interval = intervals::ends(one.value, one.interval, |end| unit.show(end));
        table.add_row([
            Cell::new(&one.part),
            Cell::new(title(one.kind)),
            right(unit.show(one.value)),
            right(interval),
        ]);
    }
    table
}

fn title(kind: StudyFigureKind) -> &'static str {
    match kind {
        StudyFigureKind::MaxIops => "highest IOPS",
        StudyFigureKind::MaxBytesPerS => "highest bandwidth",
        StudyFigureKind::Knee => "depth at the knee",
        StudyFigureKind::Rate => "rate that keeps the objective",
        StudyFigureKind::Capacity => "IOPS at saturation",
        StudyFigureKind::CommandFigure => "figure of the command",
    }
}

fn unit(kind: StudyFigureKind) -> FigureUnit {
    match kind {
        StudyFigureKind::MaxIops | StudyFigureKind::Rate | StudyFigureKind::Capacity => {
            FigureUnit::PerSecond
        }
        StudyFigureKind::MaxBytesPerS => FigureUnit::BytesPerSecond,
        StudyFigureKind::Knee => FigureUnit::Depth,
        StudyFigureKind::CommandFigure => FigureUnit::OfCommand,
    }
}

/// Findings without duplicates, each with its workloads.
fn notes(result: &SuiteResult) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for step in &result.steps {
        let failed = step
            .failure
            .iter()
            .map(|failure| format!("failed: {failure}"));
        let interrupted = step.interrupted.then(|| {
            "interrupted: figures up to the interruption, not used for verdicts".to_owned()
        });
        let findings = step.findings.iter().cloned();
        for finding in findings.chain(failed).chain(interrupted) {
            match notes.iter_mut().find(|(text, _)| *text == finding) {
                Some((_, names)) if names.contains(&step.name.as_str()) => {}
                Some((_, names)) => names.push(&step.name),
                None => notes.push((finding, vec![&step.name])),
            }
        }
    }
    let all = notes.into_iter();
    all.map(|(text, names)| format!("{}: {text}", names.join(", ")))
        .collect()
}

#[derive(Serialize)]
struct SuitesContent<'a> {
    suites: &'a [SuiteResult],
}

/// Returns the whole result as JSON.
pub fn json(results: &[SuiteResult]) -> serde_json::Result<String> {
    json_document("suite", SuitesContent { suites: results })
}

/// CSV with one line per figure.
pub fn csv(results: &[SuiteResult]) -> String {
    let mut text =
        "target,workload,repetition,part,rw,bs,iodepth,numjobs,subject,measure,value,low,high\n"
            .to_owned();
    for result in results {
        for step in &result.steps {
            let head = [
                result.target.clone(),
                step.workload.clone(),
                step.repetition.to_string(),
            ];
            for part in &step.parts {
                let pattern = &part.pattern;
                let of = [
                    part.name.clone(),
                    pattern.rw.clone(),
                    pattern.bs.clone(),
                    pattern.iodepth.to_string(),
                    pattern.numjobs.to_string(),
                ];
                for figure in &part.figures {
                    let [low, high] = ends(figure.bounds.map(|b| (b.low, b.high)));
                    let cells = [
                        figure.subject.name().to_owned(),
                        figure.measure.name().to_owned(),
                        figure.value.to_string(),
                        low,
                        high,
                    ];
                    text.push_str(&csv_line(head.iter().chain(&of).chain(&cells)));
                }
            }
            for found in &step.found {
                let name = match found.kind {
                    StudyFigureKind::MaxIops => "max_iops",
                    StudyFigureKind::MaxBytesPerS => "max_bytes_per_s",
                    StudyFigureKind::Knee => "knee",
                    StudyFigureKind::Rate => "rate",
                    StudyFigureKind::Capacity => "capacity",
                    StudyFigureKind::CommandFigure => "figure",
                };
                let [low, high] = ends(found.interval);
                let cells = [
                    found.part.clone(),
                    found.rw.clone(),
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                    name.to_owned(),
                    found.value.to_string(),
                    low,
                    high,
                ];
                text.push_str(&csv_line(head.iter().chain(&cells)));
            }
        }
    }
    text
}

/// Cells of an interval, empty if unknown.
fn ends(interval: Option<(f64, f64)>) -> [String; 2] {
    interval.map_or_else(Default::default, |(low, high)| {
        [low.to_string(), high.to_string()]
    })
}

const FIGURE_COLUMNS: [MarkdownColumn<'_>; 8] = [
    Left(""),
    Left("rw"),
    Right("bs"),
    Right("IOPS"),
    Right("bandwidth"),
    Right("p50"),
    Right("p99"),
    Right("sync p99"),
];

/// Returns Markdown tables for a report or an issue.
pub fn markdown(results: &[SuiteResult]) -> String {
    let mut text = String::new();
    for result in results {
        text.push_str(&format!("## {} on {}\n\n", result.suite, result.target));
        let rows = rows(result);
        let has_rows = !rows.is_empty();
        let rows = rows.into_iter().map(|row| {
            let mut cells = vec![row.name, row.rw, row.bs];
            for cell in row.cells {
                cells.push(cell.map_or("-".to_owned(), |(measure, number)| value(measure, number)));
            }
            cells.push(row.sync_p99_ns.map_or(String::new(), words::latency));
            cells
        });
        if has_rows {
            text.push_str(&markdown_table(&FIGURE_COLUMNS, rows));
        }
        text.push_str(&beside_neighbour::markdown(result));
        for found in found(result) {
            text.push_str(&format!(
                "- {}: {} {}\n",
                found.part,
                title(found.kind),
                unit(found.kind).show(found.value)
            ));
        }
        for sweep in result.steps.iter().filter_map(|step| step.sweep.as_ref()) {
            let lines = advice_lines(sweep).into_iter();
            lines.for_each(|line| text.push_str(&format!("- {line}\n")));
        }
        if !result.judged.is_empty() {
            let rows = result.judged.iter().map(|judged| {
                [
                    judged.verdict.words().to_owned(),
                    format!("`{}`", judged.expectation),
                    format!("{}: {}", judged.figure, judged.evidence),
                ]
            });
            let table = markdown_table(&["verdict", "expected", "found"].map(Left), rows);
            text.push_str(&format!("\n{}:\n\n{table}", summary(result)));
        }
        text.push('\n');
    }
    text
}
