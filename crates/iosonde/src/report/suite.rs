//! A suite: what it would run, and what it found, in each format.

mod junit;

pub(crate) use junit::{Ran, junit};

use super::csv::text_cell;
use super::figures::value;
use super::intervals;
use super::probe::table::{plain, render, right, wrapped};
use super::sweep::{advice_lines, advice_text};
use crate::commands::sweep::quiet::most_waited;
use crate::failure::Failure;
use comfy_table::{Cell, Table};
use iosonde_result::compare::{Measure, Measured, Part, Subject, figure_of};
use iosonde_study::suite::{
    BUILTIN, Found, FoundKind, Suite, SuiteResult, SuiteTarget, Unit, Verdict, What,
};
use iosonde_study::{TimeRange, words};
use serde::Serialize;
use std::time::Duration;

/// Version of the JSON document; counts up when a member changes its meaning.
const FORMAT: u32 = 1;

/// The suites that come with the program.
pub(crate) fn list() -> String {
    let mut table = plain();
    for suite in BUILTIN {
        table.add_row([suite.name.to_owned(), about(suite.text)]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(&table)
}

/// The sentence of a built-in suite, which is the first line of its own.
fn about(text: &str) -> String {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("about = \""));
    line.map_or_else(String::new, |rest| rest.trim_end_matches('"').to_owned())
}

/// What would be run, and how long it takes.
pub(crate) fn plan(suite: &Suite, targets: &[SuiteTarget]) -> String {
    let mut text = String::new();
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    text.push_str(&wrapped(&format!("{} on {}", suite.name, names.join(", "))));
    let mut table = plain();
    let mut total = Some(TimeRange::default());
    // Workloads with many combinations are one line each.
    let mut workloads: Vec<(&str, usize, u32, Option<TimeRange>)> = Vec::new();
    for step in &suite.steps {
        let time = step.planned_time();
        let times = u64::from(step.repetitions) * targets.len() as u64;
        total = total
            .zip(time)
            .map(|(total, time)| total + time.times(times));
        match workloads.last_mut() {
            Some((name, count, _, all)) if *name == step.workload => {
                *count += 1;
                *all = all.zip(time).map(|(all, time)| all + time);
            }
            _ => workloads.push((&step.workload, 1, step.repetitions, time)),
        }
    }
    for (name, count, repetitions, time) in workloads {
        let runs = if count == 1 {
            "1 run".to_owned()
        } else {
            format!("{count} runs")
        };
        let times = if repetitions == 1 {
            String::new()
        } else {
            format!("{repetitions} times")
        };
        table.add_row([
            Cell::new(format!("  {name}")),
            right(runs),
            right(times),
            right(time.map_or("until all data is written".to_owned(), |time| {
                let times = u64::from(repetitions) * targets.len() as u64;
                time.times(times).words()
            })),
        ]);
    }
    text.push_str(&render(&table));
    let total = match total {
        Some(total) => format!(
            "{} in all, plus layout{}",
            total.words(),
            waiting(suite, targets)
        ),
        None => "duration depends on the data".to_owned(),
    };
    let expectations = match suite.expectations.len() {
        0 => "nothing is expected".to_owned(),
        1 => "1 expectation".to_owned(),
        count => format!("{count} expectations"),
    };
    text.push_str(&format!("{total}; {expectations}\n"));
    text
}

/// How long its sweeps wait for idle devices at most; nothing where they wait for none.
fn waiting(suite: &Suite, targets: &[SuiteTarget]) -> String {
    let is_real = |target: &&SuiteTarget| !target.name.starts_with("sim:");
    let real = targets.iter().filter(is_real).count() as u32;
    let waits = suite.steps.iter().filter_map(|step| match &step.what {
        What::Sweep(sweep) => Some(most_waited(sweep.planned.most_ns) * step.repetitions * real),
        _ => None,
    });
    let most: Duration = waits.sum();
    match most.is_zero() {
        true => String::new(),
        false => format!(
            " and at most {} of waiting for an idle device",
            words::duration(most.as_secs_f64())
        ),
    }
}

/// For people, within 80 columns.
pub(crate) fn table(result: &SuiteResult) -> String {
    let about = result
        .about
        .as_ref()
        .map_or(String::new(), |about| format!(": {about}"));
    let mut text = wrapped(&format!("{} on {}{about}", result.suite, result.target));
    if result.interrupted {
        text.push_str("interrupted: the figures are of what had ended\n");
    }
    let rows = rows(result);
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", render(&figures(&rows))));
    }
    let found = found(result);
    if !found.is_empty() {
        text.push_str(&format!("\n{}", render(&studies(&found))));
    }
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
        let told = format!("{}: {}", judged.figure, judged.evidence);
        table.add_row([judged.verdict.words().to_owned(), told]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// `3 met, 1 missed`.
pub(crate) fn summary(result: &SuiteResult) -> String {
    let all = [
        Verdict::Met,
        Verdict::Missed,
        Verdict::Undecided,
        Verdict::NotMeasured,
    ];
    let count = |verdict| {
        result
            .judged
            .iter()
            .filter(|judged| judged.verdict == verdict)
            .count()
    };
    let told = all.into_iter().filter(|verdict| count(*verdict) > 0);
    let told: Vec<String> = told
        .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
        .collect();
    told.join(", ")
}

/// One line of figures: of all repetitions of a part, in one direction.
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
    let of = |repetition| Measured {
        name: String::new(),
        machine: None,
        parts: result
            .steps
            .iter()
            .filter(|step| step.repetition == repetition)
            .flat_map(|step| step.parts.clone())
            .collect(),
    };
    let all: Vec<Measured> = (1..=most).map(of).collect();
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

fn rows_of(part: &Part, all: &[Measured]) -> Vec<FigureRow> {
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

/// What studies found, each once for every repetition.
fn found(result: &SuiteResult) -> Vec<&Found> {
    result.steps.iter().flat_map(|step| &step.found).collect()
}

pub(super) fn studies(found: &[&Found]) -> Table {
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

fn title(kind: FoundKind) -> &'static str {
    match kind {
        FoundKind::MaxIops => "highest IOPS",
        FoundKind::MaxBytesPerS => "highest bandwidth",
        FoundKind::Knee => "depth at the knee",
        FoundKind::Rate => "rate that keeps the objective",
        FoundKind::Capacity => "IOPS at saturation",
    }
}

fn unit(kind: FoundKind) -> Unit {
    match kind {
        FoundKind::MaxIops | FoundKind::Rate | FoundKind::Capacity => Unit::PerSecond,
        FoundKind::MaxBytesPerS => Unit::BytesPerSecond,
        FoundKind::Knee => Unit::Depth,
    }
}

/// Each finding once, with the workloads that have it.
fn notes(result: &SuiteResult) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for step in &result.steps {
        let failed = step
            .failure
            .iter()
            .map(|failure| format!("failed: {failure}"));
        let interrupted = step
            .interrupted
            .then(|| "interrupted: what ran until then, which nothing is judged by".to_owned());
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
struct Document<'a> {
    format: u32,
    kind: &'static str,
    program: &'static str,
    suites: &'a [SuiteResult],
}

/// For programs: everything.
pub(crate) fn json(results: &[SuiteResult]) -> Result<String, Failure> {
    let document = Document {
        format: FORMAT,
        kind: "suite",
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")),
        suites: results,
    };
    let text = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}

/// One line for each figure.
pub(crate) fn csv(results: &[SuiteResult]) -> String {
    let mut text =
        "target,workload,repetition,part,rw,bs,iodepth,numjobs,subject,measure,value,low,high\n"
            .to_owned();
    for result in results {
        for step in &result.steps {
            let head = format!(
                "{},{},{}",
                text_cell(&result.target),
                text_cell(&step.workload),
                step.repetition
            );
            for part in &step.parts {
                let pattern = &part.pattern;
                let of = format!(
                    "{},{},{},{},{}",
                    text_cell(&part.name),
                    text_cell(&pattern.rw),
                    text_cell(&pattern.bs),
                    pattern.iodepth,
                    pattern.numjobs
                );
                for figure in &part.figures {
                    let ends = figure
                        .bounds
                        .map_or(",".to_owned(), |b| format!("{},{}", b.low, b.high));
                    text.push_str(&format!(
                        "{head},{of},{},{},{},{ends}\n",
                        figure.subject.name(),
                        figure.measure.name(),
                        figure.value
                    ));
                }
            }
            for found in &step.found {
                let name = match found.kind {
                    FoundKind::MaxIops => "max_iops",
                    FoundKind::MaxBytesPerS => "max_bytes_per_s",
                    FoundKind::Knee => "knee",
                    FoundKind::Rate => "rate",
                    FoundKind::Capacity => "capacity",
                };
                let ends = found
                    .interval
                    .map_or(",".to_owned(), |(low, high)| format!("{low},{high}"));
                text.push_str(&format!(
                    "{head},{},{},,,,,{name},{},{ends}\n",
                    text_cell(&found.part),
                    text_cell(&found.rw),
                    found.value
                ));
            }
        }
    }
    text
}

/// Tables for a report or an issue.
pub(crate) fn markdown(results: &[SuiteResult]) -> String {
    let mut text = String::new();
    for result in results {
        text.push_str(&format!("## {} on {}\n\n", result.suite, result.target));
        let rows = rows(result);
        if !rows.is_empty() {
            text.push_str("| | rw | bs | IOPS | bandwidth | p50 | p99 | sync p99 |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        }
        for row in rows {
            let mut cells = vec![row.name, row.rw, row.bs];
            for cell in row.cells {
                cells.push(cell.map_or("-".to_owned(), |(measure, number)| value(measure, number)));
            }
            cells.push(row.sync_p99_ns.map_or(String::new(), words::latency));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
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
            text.push_str(&format!(
                "\n{}:\n\n| verdict | expected | found |\n| --- | --- | --- |\n",
                summary(result)
            ));
        }
        for judged in &result.judged {
            text.push_str(&format!(
                "| {} | `{}` | {}: {} |\n",
                judged.verdict.words(),
                judged.expectation,
                judged.figure,
                judged.evidence
            ));
        }
        text.push('\n');
    }
    text
}
