//! Several runs of the same probe: per target, the mean of each workload and the outliers.

use super::side_by_side::{headline_comparison, measured};
use super::{json, probe_csv, row};
use crate::figures::UNKNOWN_LEGEND;
use crate::format::{Format, TextFormat};
use crate::hanging_lines::{HangingLines, result_line};
use crate::intervals::error_share;
use crate::known_digits::{
    RATE_UNITS, bandwidth_of_rate, digits_beside_interval, lacks_interval, with_interval,
};
use crate::markdown_table::markdown_table;
use crate::promise;
use crate::text_style::TextStyle;
use crate::text_table::{
    TableColumn, aligned_columns, fill_table, hide_columns, plain, render, set_gap, wrapped,
};
use iosonde_result::compare::{Comparison, MeasuredResult, compare};
use iosonde_study::probe::ProbeResult;
use iosonde_study::probe::repetitions::{OutlierRun, ProbeRepetitions, RepeatedWorkload, RunRate};
use iosonde_study::promise_check::{PromiseCheck, PromiseOutcome};
use iosonde_study::words;

/// Heading of each column of the table. Only the first is of text.
const HEAD: [&str; 6] = ["", "depth", "mean", "bandwidth", "lowest", "highest"];
/// Columns that a narrow terminal does not show, the least important first: bandwidth, highest,
/// lowest.
const LEAST_IMPORTANT: [usize; 3] = [3, 5, 4];
/// Explains the table.
const LEGEND: &str = "mean is the geometric mean of the runs with half its 95 % interval between \
                      runs; lowest and highest are single runs.";
/// The rule for outliers.
const OUTLIER_RULE: &str = "(beyond 3 scaled MAD from the median)";

/// The runs of one target, in order.
#[derive(Debug, Clone, Default)]
pub struct RepeatedTarget {
    /// Result of each run.
    pub runs: Vec<ProbeResult>,
    /// Id of each run in the history. `None`: it is not stored.
    pub ids: Vec<Option<String>>,
}

/// Report of a probe that was repeated on one or several targets.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedReport<'a> {
    /// The runs of each target. A target without a run is left out.
    pub targets: &'a [RepeatedTarget],
    /// Number of runs of each target that were asked for.
    pub planned: usize,
    /// Options of the history that the next command needs, e.g. ` --store FILE`.
    pub store_options: &'a str,
    /// Whether to print only the table, the outliers and the promises.
    pub brief: bool,
    /// Characters of the destination.
    pub style: TextStyle,
}

impl<'a> RepeatedReport<'a> {
    /// Returns the report in a format.
    ///
    /// # Errors
    ///
    /// If a result has no JSON.
    pub fn document(&self, format: Format) -> serde_json::Result<String> {
        match format {
            Format::Table => Ok(self.text()),
            Format::Json => json::repeated(
                self.results().collect(),
                self.repetitions(),
                self.comparisons(),
            ),
            Format::FioJson => json::probe_fio_json(self.results()),
            Format::Csv => {
                let numbered = |target: &'a RepeatedTarget| {
                    let runs = target.runs.iter().zip(1..);
                    runs.map(|(result, run)| (result, Some(run)))
                };
                let runs = self.measured().flat_map(numbered);
                Ok(probe_csv::text_of_runs(&runs.collect::<Vec<_>>()))
            }
            Format::Markdown => Ok(self.markdown()),
        }
    }

    /// Targets with at least one run.
    fn measured(&self) -> impl Iterator<Item = &'a RepeatedTarget> {
        let targets = self.targets.iter();
        targets.filter(|target| !target.runs.is_empty())
    }

    /// Results of all runs, grouped by target.
    pub(super) fn results(&self) -> impl Iterator<Item = &'a ProbeResult> {
        self.measured().flat_map(|target| &target.runs)
    }

    /// The figures of all runs of each target.
    pub(super) fn repetitions(&self) -> Vec<ProbeRepetitions> {
        let targets = self.measured();
        targets.map(|target| self.repetitions_of(target)).collect()
    }

    fn repetitions_of(&self, target: &RepeatedTarget) -> ProbeRepetitions {
        ProbeRepetitions::from_runs(&target.runs, &target.ids, self.planned)
    }

    /// Compares the runs of each further target with those of the first. Each comparison follows
    /// the first run of both targets.
    pub(super) fn comparisons(&self) -> Vec<(&'a ProbeResult, &'a ProbeResult, Comparison)> {
        let mut targets = self.measured();
        let Some(first) = targets.next() else {
            return Vec::new();
        };
        let a = comparable_runs(first);
        let against = |other: &'a RepeatedTarget| {
            let comparison = compare(&a, &comparable_runs(other));
            (&first.runs[0], &other.runs[0], comparison)
        };
        targets.map(against).collect()
    }

    fn text(&self) -> String {
        let targets = self.measured().map(|target| self.text_of_target(target));
        let compared = self.comparison_texts(TextFormat::Table);
        let mut text = targets.chain(compared).collect::<Vec<_>>().join("\n");
        if !self.brief {
            text.push_str(&self.kept());
        }
        text
    }

    fn comparison_texts(&self, format: TextFormat) -> Vec<String> {
        let compared = self.comparisons().into_iter();
        let text = |(a, b, comparison)| headline_comparison((a, b), comparison, format);
        compared.map(text).collect()
    }

    fn text_of_target(&self, target: &RepeatedTarget) -> String {
        let repetitions = self.repetitions_of(target);
        let classification = &target.runs[0].classification;
        let device = match classification.device.as_str() {
            "" => classification.class.words(),
            device => device,
        };
        let head = format!(
            "{}: {device}; {}",
            repetitions.target,
            run_count(&repetitions)
        );
        let mut text = wrapped(&head) + "\n";
        let rows = table_rows(&repetitions, self.style.plus_minus());
        let mut table = fill_table(plain(), &table_columns(), rows);
        set_gap(&mut table, 2);
        hide_columns(&mut table, &LEAST_IMPORTANT);
        text.push_str(&render(&table));
        if !self.brief {
            text.push_str(&wrapped(LEGEND));
        }
        if has_unknown_interval(&repetitions) {
            text.push_str(&wrapped(UNKNOWN_LEGEND));
        }
        for (name, remark) in remarks(target, &repetitions) {
            let lines = HangingLines::new(name, &remark, usize::MAX).lines;
            text.push_str(&(lines.join("\n") + "\n"));
        }
        text
    }

    fn markdown(&self) -> String {
        let of_target = |target: &RepeatedTarget| {
            let repetitions = self.repetitions_of(target);
            let count = run_count(&repetitions);
            let rows = table_rows(&repetitions, "±");
            let table = markdown_table(&table_columns(), rows);
            let mut text = format!("## {}: {count}\n\n{table}", repetitions.target);
            if has_unknown_interval(&repetitions) {
                text.push_str(&format!("\n{UNKNOWN_LEGEND}\n"));
            }
            for (index, (name, remark)) in remarks(target, &repetitions).iter().enumerate() {
                let gap = if index == 0 { "\n" } else { "" };
                text.push_str(&format!("{gap}- {name}: {remark}\n"));
            }
            text
        };
        let targets = self.measured().map(of_target);
        let compared = self.comparison_texts(TextFormat::Markdown);
        targets.chain(compared).collect::<Vec<_>>().join("\n")
    }

    /// Names the stored results and the next command.
    fn kept(&self) -> String {
        let ids = self.measured().flat_map(|target| &target.ids);
        let stored: Vec<&str> = ids.filter_map(Option::as_deref).collect();
        let options = self.store_options;
        if stored.is_empty() {
            return result_line(None, options) + "\n";
        }
        let ids = stored.join(" ");
        format!("results    iosonde report {ids} -o report.html{options}\n")
    }
}

/// The runs of a target for a comparison: those of which neither a signal nor an I/O error cut a
/// phase short, if there are any.
fn comparable_runs(target: &RepeatedTarget) -> Vec<MeasuredResult> {
    let is_whole = |run: &&ProbeResult| !run.interrupted && run.failure().is_none();
    let whole: Vec<MeasuredResult> = target.runs.iter().filter(is_whole).map(measured).collect();
    match whole.is_empty() {
        true => target.runs.iter().map(measured).collect(),
        false => whole,
    }
}

/// `mean of 5 runs`, `mean of 3 runs of 5`.
fn run_count(repetitions: &ProbeRepetitions) -> String {
    let count = repetitions.ids.len();
    let runs = words::counted(count, "run");
    match count < repetitions.planned {
        true => format!("mean of {runs} of {}", repetitions.planned),
        false => format!("mean of {runs}"),
    }
}

fn table_columns() -> Vec<TableColumn<'static>> {
    aligned_columns(&HEAD, 1)
}

/// Rows in the order of reports.
fn table_rows(repetitions: &ProbeRepetitions, plus_minus: &str) -> Vec<Vec<String>> {
    let workloads = in_order(repetitions);
    let cells = workloads.map(|workload| table_cells(workload, plus_minus));
    cells.collect()
}

/// Whether a figure has the mark that [`UNKNOWN_LEGEND`] explains: the mean, whose interval is also
/// that of the bandwidth, or the rate of a single run.
fn has_unknown_interval(repetitions: &ProbeRepetitions) -> bool {
    in_order(repetitions).any(|workload| {
        let runs = [workload.lowest(), workload.highest()]
            .into_iter()
            .flatten();
        let mut runs = runs.map(|run| (run.iops, run.error));
        lacks_interval(workload.mean, workload.error())
            || runs.any(|(rate, error)| lacks_interval(rate, error))
    })
}

fn in_order(repetitions: &ProbeRepetitions) -> impl Iterator<Item = &RepeatedWorkload> {
    let phases = row::ORDER.into_iter();
    phases.flat_map(move |phase| {
        let workloads = repetitions.workloads.iter();
        workloads.filter(move |workload| workload.phase == phase)
    })
}

fn table_cells(workload: &RepeatedWorkload, plus_minus: &str) -> Vec<String> {
    let rate = |rate: Option<&RunRate>| {
        let digits = |rate: &RunRate| digits_beside_interval(rate.iops, rate.error, RATE_UNITS);
        rate.map_or("-".to_owned(), digits)
    };
    let (mean, error) = (workload.mean, workload.error());
    vec![
        row::short_name(workload.phase, workload.block_bytes),
        workload.iodepth.to_string(),
        with_interval(mean, error, RATE_UNITS, plus_minus),
        bandwidth_of_rate(mean * workload.block_bytes as f64, mean, error),
        rate(workload.lowest()),
        rate(workload.highest()),
    ]
}

/// Outliers, outcomes of promises, and workloads that not all runs have, each with its name.
fn remarks(target: &RepeatedTarget, repetitions: &ProbeRepetitions) -> Vec<(&'static str, String)> {
    let mut remarks: Vec<(&'static str, String)> = Vec::new();
    let found = outlier_words(repetitions);
    if !found.is_empty() {
        remarks.push(("outliers", format!("{} {OUTLIER_RULE}", found.join("; "))));
    }
    let promises = promise_words(target).into_iter();
    remarks.extend(promises.map(|words| ("promise", words)));
    let runs = target.runs.len();
    for workload in in_order(repetitions).filter(|workload| workload.rates.len() < runs) {
        let count = words::counted(workload.rates.len(), "run");
        let name = workload_name(workload);
        remarks.push(("note", format!("{name}: mean of {count}")));
    }
    remarks
}

fn workload_name(workload: &RepeatedWorkload) -> String {
    row::pattern(workload.phase, workload.block_bytes, workload.iodepth)
}

fn outlier_words(repetitions: &ProbeRepetitions) -> Vec<String> {
    let of_workload = |workload: &RepeatedWorkload| -> Vec<String> {
        let name = workload_name(workload);
        let outliers = workload.outliers.iter();
        outliers
            .map(|outlier| format!("{name}: {}", outlier_in_words(outlier)))
            .collect()
    };
    in_order(repetitions).flat_map(of_workload).collect()
}

/// `run 3 (46013f) is 48 % below the median`, with the cause if it is known.
fn outlier_in_words(outlier: &OutlierRun) -> String {
    let id = outlier.id.as_ref();
    let id = id.map_or(String::new(), |id| format!(" ({id})"));
    let side = if outlier.of_median < 1.0 {
        "below"
    } else {
        "above"
    };
    let share = error_share((outlier.of_median - 1.0).abs());
    let cause = outlier.cause.as_ref().map_or(String::new(), |cause| {
        format!(", {}", cause.evidence.trim_end_matches('.'))
    });
    format!(
        "run {}{id} is {share} {side} the median{cause}",
        outlier.run
    )
}

/// `aws-gp3: kept in runs 1, 2, 4; broken in run 3`, for each promise.
fn promise_words(target: &RepeatedTarget) -> Vec<String> {
    let count = target.runs.iter().map(|run| run.expected.len()).max();
    let words = |index: usize| {
        let checks = target.runs.iter().map(|run| run.expected.get(index));
        let checks: Vec<Option<&PromiseCheck>> = checks.collect();
        let first = checks.iter().flatten().next()?;
        let runs_with = |outcome: PromiseOutcome| -> Vec<String> {
            let has =
                |check: &Option<&PromiseCheck>| check.is_some_and(|check| check.outcome == outcome);
            let runs = (1..).zip(&checks).filter(|(_, check)| has(check));
            runs.map(|(run, _): (usize, _)| run.to_string()).collect()
        };
        let in_words = |(outcome, word): (PromiseOutcome, &str)| {
            let runs = runs_with(outcome);
            let noun = if runs.len() == 1 { "run" } else { "runs" };
            (!runs.is_empty()).then(|| format!("{word} in {noun} {}", runs.join(", ")))
        };
        let outcomes = [
            (PromiseOutcome::Kept, "kept"),
            (PromiseOutcome::Broken, "broken"),
            (PromiseOutcome::Unclear, "unclear"),
        ];
        let outcomes: Vec<String> = outcomes.into_iter().filter_map(in_words).collect();
        let title = promise::title(&first.promise);
        Some(format!("{title}: {}", outcomes.join("; ")))
    };
    (0..count.unwrap_or(0)).filter_map(words).collect()
}

#[cfg(test)]
mod tests;
