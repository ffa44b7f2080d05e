//! Report of a suite: its plan and its result, in each format.

mod beside_neighbour;
mod command_series;
mod figure_table;
mod judged_text;
mod junit;
mod pod_tables;
mod suite_plan;
pub(crate) mod xml_element;

pub use judged_text::evidence;
pub use junit::{JunitHeader, junit};
pub use suite_plan::{builtin_suite_list, planned_runs_text};

use super::csv::csv_line;
use super::figures::known_figure;
use super::hanging_lines::{HangingLines, result_line};
use super::intervals;
use super::json_document::json_document;
use super::load::{markdown_of_step, rates_of_step};
use super::markdown_table::{markdown_paragraphs, markdown_table};
use super::sweep::{advice_lines, advice_text};
use super::text_table::TableColumn::Left;
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::{
    UNBROKEN_BLANK, aligned_columns, columns, fill_table, hide_columns, paragraphs, plain, render,
    wrapped, wrapped_figures,
};
use crate::{grouped, unique};
use comfy_table::Table;
use iosonde_result::compare::Measure;
use iosonde_result::device_class::memory_caution;
use iosonde_study::load::LoadResult;
use iosonde_study::words::counted;
use iosonde_suite::{
    ExpectationVerdict, FigureUnit, StepResult, StudyFigure, StudyFigureKind, SuiteResult,
};
use serde::Serialize;

/// Blanks after the words of a verdict, and fewest blanks after its evidence.
const VERDICT_GAP: usize = 2;
/// Index of the column of intervals in the table of studies. A narrow terminal does not show it.
const INTERVAL_COLUMN: usize = 3;

/// Returns the report as text of at most 80 columns, in the characters of `style`. The verdicts
/// come first and the notes last.
#[must_use]
pub fn table(result: &SuiteResult, style: TextStyle) -> String {
    let about = result
        .about
        .as_ref()
        .map_or(String::new(), |about| format!(": {about}"));
    let mut text = wrapped(&format!("{} on {}{about}", result.suite, result.target));
    if result.interrupted {
        text.push_str(&wrapped("interrupted: figures of the completed runs"));
    }
    text.push_str(&paragraphs(&cautions(result)));
    if !result.judged.is_empty() {
        text.push_str(&format!("\n{}", verdicts(result, style)));
    }
    text.push_str(&figure_table::table(result, style.plus_minus()));
    let found = found(result);
    if !found.is_empty() {
        let table = render(&studies(&found)).replace(UNBROKEN_BLANK, " ");
        text.push_str(&format!("\n{table}"));
    }
    for (name, load) in loads(result) {
        text.push_str(&rates_of_step(&name, load));
    }
    text.push_str(&beside_neighbour::table(result, style.plus_minus()));
    text.push_str(&command_series::table(result, style));
    text.push_str(&pod_tables::tables(result, style.plus_minus()));
    for step in &result.steps {
        let advice = step.sweep.as_ref().map(|sweep| advice_text(sweep));
        if let Some(advice) = advice.filter(|advice| !advice.is_empty()) {
            text.push_str(&format!("\n{}: {advice}", step.name));
        }
    }
    text + &paragraphs(&notes(result))
}

/// Limits of the verdicts, as those of `probe`: data in memory does not survive a restart.
pub(crate) fn cautions(result: &SuiteResult) -> Vec<String> {
    let steps = result.steps.iter();
    let in_memory = unique(steps.filter_map(|step| step.in_memory.as_ref()));
    let cautions = in_memory.into_iter();
    cautions.map(|device| memory_caution(device)).collect()
}

/// Returns the text of [`table`] and its [`last_lines`].
#[must_use]
pub fn table_with_id(
    result: &SuiteResult,
    (id, store_options): (Option<&str>, &str),
    style: TextStyle,
) -> String {
    let last = last_lines(result, id, store_options);
    format!("{}\n{last}", table(result, style))
}

/// Returns the text of [`table`] and the counts of its verdicts, for a result that is stored later.
#[must_use]
pub fn table_with_verdicts(result: &SuiteResult, style: TextStyle) -> String {
    let mut text = table(result, style);
    let counts = verdict_lines(&summary(result));
    if !counts.is_empty() {
        text.push('\n');
        text.push_str(&counts);
    }
    text
}

/// Returns the counts of the verdicts, which may have left the screen, and the stored result by its
/// id with the next command. `store_options` are those of the history.
#[must_use]
pub fn last_lines(result: &SuiteResult, id: Option<&str>, store_options: &str) -> String {
    let counts = verdict_lines(&summary(result));
    format!("{counts}{}\n", result_line(id, store_options))
}

/// Returns the counts of the verdicts on several targets. Empty for a single target, whose
/// [`last_lines`] have them, and without expectations.
#[must_use]
pub fn verdicts_of_targets(results: &[SuiteResult]) -> String {
    let counts = verdict_counts(results);
    if results.len() < 2 || counts.is_empty() {
        return String::new();
    }
    let targets = counted(results.len(), "target");
    format!("\n{}", verdict_lines(&format!("{targets}: {counts}")))
}

/// The line `verdicts   3 met, 1 missed`, wrapped. Empty without counts.
fn verdict_lines(counts: &str) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let lines = HangingLines::new("verdicts", counts, usize::MAX).lines;
    lines.join("\n") + "\n"
}

/// The verdicts with their evidence: `✓ met     wal IOPS: ...`. ASCII has the words alone.
fn verdicts(result: &SuiteResult, style: TextStyle) -> String {
    let sign_and_words = |verdict: ExpectationVerdict| match style.utf8 {
        true => format!("{} {}", verdict_sign(verdict), verdict.words()),
        false => verdict.words().to_owned(),
    };
    let judged = result.judged.iter();
    let widths = judged.map(|judged| sign_and_words(judged.verdict).chars().count());
    let indent = widths.max().unwrap_or(0) + VERDICT_GAP;
    let mut text = String::new();
    for judged in &result.judged {
        let evidence = evidence(judged, style.plus_minus());
        let found = format!("{}: {evidence}", judged.figure);
        let words = sign_and_words(judged.verdict);
        // The width is that without colours.
        let blanks = " ".repeat(indent - words.chars().count());
        let painted = style.paint(verdict_role(judged.verdict), &words);
        let mut before = format!("{painted}{blanks}");
        for line in wrapped_figures(&found, columns() - indent - VERDICT_GAP) {
            text.push_str(&format!("{before}{line}\n"));
            before = " ".repeat(indent);
        }
    }
    text
}

/// Sign of a verdict on all screens.
pub(crate) fn verdict_sign(verdict: ExpectationVerdict) -> char {
    match verdict {
        ExpectationVerdict::Met => '✓',
        ExpectationVerdict::Undecided => '?',
        ExpectationVerdict::Missed | ExpectationVerdict::NotMeasured => '✗',
    }
}

fn verdict_role(verdict: ExpectationVerdict) -> TextRole {
    match verdict {
        ExpectationVerdict::Met => TextRole::Good,
        ExpectationVerdict::Undecided => TextRole::Unsure,
        ExpectationVerdict::Missed | ExpectationVerdict::NotMeasured => TextRole::Bad,
    }
}

/// `3 met, 1 missed`.
pub fn summary(result: &SuiteResult) -> String {
    verdict_counts(std::slice::from_ref(result))
}

fn verdict_counts(results: &[SuiteResult]) -> String {
    let all = [
        ExpectationVerdict::Met,
        ExpectationVerdict::Missed,
        ExpectationVerdict::Undecided,
        ExpectationVerdict::NotMeasured,
    ];
    let judged = || results.iter().flat_map(|result| &result.judged);
    let count = |verdict| judged().filter(|judged| judged.verdict == verdict).count();
    let given = all.into_iter().filter(|verdict| count(*verdict) > 0);
    let counts: Vec<String> = given
        .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
        .collect();
    counts.join(", ")
}

/// Load studies with the names of their steps.
fn loads(result: &SuiteResult) -> Vec<(String, &LoadResult)> {
    result.steps.iter().filter_map(load_of_step).collect()
}

/// Load study of a step with the name of the step: `queries, repetition 2`. `None`: no rate was
/// measured.
pub(crate) fn load_of_step(step: &StepResult) -> Option<(String, &LoadResult)> {
    let load = step
        .load
        .as_deref()
        .filter(|load| !load.points.is_empty())?;
    let name = match step.repetition {
        1 => step.name.clone(),
        repetition => format!("{}, repetition {repetition}", step.name),
    };
    Some((name, load))
}

/// Figures found by studies, one per repetition.
fn found(result: &SuiteResult) -> Vec<&StudyFigure> {
    result.steps.iter().flat_map(|step| &step.found).collect()
}

pub(super) fn studies(found: &[&StudyFigure]) -> Table {
    let rows = found.iter().map(|one| {
        let unit = figure_unit(one.kind);
        let known = match one.kind {
            StudyFigureKind::MaxIops => known_figure(Measure::Iops, one.value, one.interval),
            StudyFigureKind::MaxBytesPerS => {
                known_figure(Measure::BytesPerS, one.value, one.interval)
            }
            _ => unit.show(one.value),
        };
        let interval = intervals::interval_text(one.value, one.interval, |end| unit.show(end));
        [
            one.part.clone(),
            title(one.kind).to_owned(),
            known.replace(' ', UNBROKEN_BLANK),
            interval,
        ]
    });
    let head = ["", "found", "", "95 % interval"];
    let mut table = fill_table(plain(), &aligned_columns(&head, 2), rows);
    hide_columns(&mut table, &[INTERVAL_COLUMN]);
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

fn figure_unit(kind: StudyFigureKind) -> FigureUnit {
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
    let of_step = |step: &StepResult| {
        let failed = step
            .failure
            .iter()
            .map(|failure| format!("failed: {failure}"));
        let interrupted = step.interrupted.then(|| {
            "interrupted: figures up to the interruption, not used for verdicts".to_owned()
        });
        let findings = step.findings.iter().cloned();
        let all = findings.chain(failed).chain(interrupted);
        let named = all.map(|finding| (finding, step.name.clone()));
        named.collect::<Vec<(String, String)>>()
    };
    let notes = grouped(result.steps.iter().flat_map(of_step)).into_iter();
    notes
        .map(|(text, names)| format!("{}: {text}", unique(names).join(", ")))
        .collect()
}

#[derive(Serialize)]
struct SuitesContent<'a> {
    suites: &'a [SuiteResult],
}

/// Returns the whole result as JSON.
pub fn suite_json(results: &[SuiteResult]) -> serde_json::Result<String> {
    json_document("suite", SuitesContent { suites: results })
}

/// CSV with one line per figure.
pub fn suite_csv(results: &[SuiteResult]) -> String {
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
                    let [low, high] = interval_end_cells(figure.bounds.map(|b| (b.low, b.high)));
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
                let [low, high] = interval_end_cells(found.interval);
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
fn interval_end_cells(interval: Option<(f64, f64)>) -> [String; 2] {
    interval.map_or_else(Default::default, |(low, high)| {
        [low.to_string(), high.to_string()]
    })
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(results: &[SuiteResult]) -> String {
    let mut text = String::new();
    for result in results {
        text.push_str(&format!("## {} on {}\n", result.suite, result.target));
        text.push_str(&markdown_paragraphs(&cautions(result)));
        text.push_str(&markdown_verdicts(result));
        text.push_str(&format!("\n{}", figure_table::markdown(result)));
        text.push_str(&beside_neighbour::markdown(result));
        for found in found(result) {
            text.push_str(&format!(
                "- {}: {} {}\n",
                found.part,
                title(found.kind),
                figure_unit(found.kind).show(found.value)
            ));
        }
        for (name, load) in loads(result) {
            text.push_str(&markdown_of_step(&name, load));
        }
        for sweep in result.steps.iter().filter_map(|step| step.sweep.as_ref()) {
            let lines = advice_lines(sweep).into_iter();
            lines.for_each(|line| text.push_str(&format!("- {line}\n")));
        }
        text.push('\n');
    }
    text
}

/// The verdicts below their counts. Empty without expectations.
fn markdown_verdicts(result: &SuiteResult) -> String {
    if result.judged.is_empty() {
        return String::new();
    }
    let rows = result.judged.iter().map(|judged| {
        [
            judged.verdict.words().to_owned(),
            format!("`{}`", judged.expectation),
            format!("{}: {}", judged.figure, evidence(judged, "±")),
        ]
    });
    let table = markdown_table(&["verdict", "expected", "found"].map(Left), rows);
    format!("\n{}:\n\n{table}", summary(result))
}

#[cfg(test)]
mod tests;
