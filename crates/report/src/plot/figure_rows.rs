//! Rows of the charts of single runs: one for each figure of each run, named as on the page
//! (`web/src/rows.ts`).

use super::subject_names::is_measured;
use crate::html::document::{PageFigure, PageReport, PageRun};
use crate::unique;
use iosonde_result::words;
use std::collections::HashMap;

/// Block size from which charts show bandwidth.
pub(super) const LARGE_BYTES: u64 = 64 << 10;

/// Most series of a chart: as many as there are colours.
pub(super) const SERIES_MAX: usize = 6;

/// A figure of a run.
pub(super) struct PlotFigure<'a> {
    pub(super) figure: &'a PageFigure,
    pub(super) subject: &'a str,
    /// Unique name.
    pub(super) name: String,
    /// Name without the subject.
    pub(super) phase: String,
}

/// Returns the rows of all measured runs. `subjects` are those of all runs.
pub(super) fn figure_rows<'a>(
    report: &'a PageReport,
    subjects: &'a [String],
) -> Vec<PlotFigure<'a>> {
    let measured = report.runs.iter().zip(subjects);
    let measured = measured.filter(|(run, _)| is_measured(run));
    let figures: Vec<(&PageRun, &str, &PageFigure)> = measured
        .flat_map(|(run, subject)| {
            let figures = run.figures.iter();
            figures.map(move |figure| (run, subject.as_str(), figure))
        })
        .collect();
    let is_comparison = figures
        .iter()
        .any(|(_, subject, _)| *subject != figures[0].1);
    // Runs with the same name and different workloads are distinguished by these.
    let mut workloads: HashMap<(&str, String), Vec<String>> = HashMap::new();
    for (run, subject, figure) in &figures {
        let key = (*subject, phase_name(run, figure));
        workloads.entry(key).or_default().push(workload(figure));
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    figures
        .into_iter()
        .map(|(run, subject, figure)| {
            let mut phase = phase_name(run, figure);
            let same = workloads.get(&(subject, phase.clone()));
            if same.is_some_and(|same| unique(same).len() > 1) {
                phase = format!("{phase}: {}", workload(figure));
            }
            let mut name = match is_comparison {
                true => format!("{subject}: {phase}"),
                false => phase.clone(),
            };
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                name = format!("{name} #{times}");
            }
            PlotFigure {
                figure,
                subject,
                name,
                phase,
            }
        })
        .collect()
}

/// Returns the rows of the first workload of several subjects, else the first rows: as many as
/// there are colours. The second value is the number of rows to choose from.
pub(super) fn drawn_rows(rows: Vec<PlotFigure<'_>>) -> (Vec<PlotFigure<'_>>, usize) {
    let total = rows.len();
    let shared = rows.iter().find(|row| {
        let mut others = rows.iter();
        others.any(|other| other.phase == row.phase && other.subject != row.subject)
    });
    let phase = shared.map(|row| row.phase.clone());
    let mut drawn: Vec<PlotFigure> = rows
        .into_iter()
        .filter(|row| phase.as_ref().is_none_or(|phase| *phase == row.phase))
        .collect();
    drawn.truncate(SERIES_MAX);
    (drawn, total)
}

/// Names for a chart: only the subjects, if the rows are one workload of several subjects.
pub(super) fn chart_names(rows: &[PlotFigure]) -> Vec<String> {
    let is_same = rows.len() > 1 && rows.iter().all(|row| row.phase == rows[0].phase);
    let subjects = rows.iter().map(|row| row.subject.to_owned());
    let subjects: Vec<String> = subjects.collect();
    if is_same && unique(subjects.iter()).len() == rows.len() {
        return subjects;
    }
    rows.iter().map(|row| row.name.clone()).collect()
}

fn phase_name(run: &PageRun, figure: &PageFigure) -> String {
    // The name of a run contains the names of all its jobs.
    let name = figure.job.as_ref().unwrap_or(&run.name);
    let mut directions = run.figures.iter().map(|other| other.direction);
    let is_several = directions.any(|direction| direction != figure.direction);
    match figure.direction {
        "sync" => format!("{name} · flush"),
        direction if is_several => format!("{name} · {direction}"),
        _ => name.clone(),
    }
}

/// The access pattern: `random read 4 KiB`.
pub(super) fn pattern(figure: &PageFigure) -> String {
    let order = match figure.rw.as_str() {
        "" => "",
        rw if rw.starts_with("rand") => "random ",
        _ => "sequential ",
    };
    if figure.direction == "sync" {
        return format!("flush after {order}writes");
    }
    let order = if figure.direction == "mixed" {
        ""
    } else {
        order
    };
    let mixed = if figure.rw.ends_with("rw") {
        " of a mix"
    } else {
        ""
    };
    let [smallest, largest] = figure.block_bytes;
    let blocks = match (smallest, largest) {
        (_, 0) => String::new(),
        (from, to) if from == to => words::bytes(from),
        (from, to) => format!("{} to {}", words::bytes(from), words::bytes(to)),
    };
    let text = format!("{order}{}{mixed} {blocks}", figure.direction);
    text.trim_end().to_owned()
}

fn workload(figure: &PageFigure) -> String {
    let workers = workers_suffix(figure);
    match figure.iodepth {
        0 => format!("{}, {} workers", pattern(figure), figure.workers),
        depth => format!("{}, depth {depth}{workers}", pattern(figure)),
    }
}

/// Number of workers after a pattern or depth, if there are several.
pub(super) fn workers_suffix(figure: &PageFigure) -> String {
    match figure.workers {
        0 | 1 => String::new(),
        workers => format!(" × {workers} workers"),
    }
}
