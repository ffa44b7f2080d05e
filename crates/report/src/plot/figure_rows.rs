//! Rows of the charts of single runs: one for each figure of each run, named as on the page
//! (`web/src/rows.ts`).

use super::plot_input::SEPARATOR;
use super::series_style::{SERIES_MAX, SeriesKey};
use crate::html::document::{PageFigure, PageReport, PageRun};
use crate::html::subject_names::is_measured;
use crate::listed_names::listed_names;
use crate::probe::row::title_of_phase;
use crate::unique;
use iosonde_job::plan::{ReadWrite, ReadWriteMode};
use iosonde_result::compare::Subject;
use iosonde_result::words;
use std::collections::HashMap;

/// Block size from which charts show bandwidth.
pub(super) const LARGE_BYTES: u64 = 64 << 10;

/// A figure of a run.
pub(super) struct PlotFigure<'a> {
    pub(super) figure: &'a PageFigure,
    pub(super) subject: &'a str,
    /// Unique name.
    pub(super) name: String,
    /// Name without the subject.
    pub(super) phase: String,
    /// The phase as the title of a chart names it, with block size and depth.
    title: String,
    /// Order in which rows are drawn if there is no room for all.
    rank: WorkloadRank,
}

/// Order in which workloads are drawn if there is no room for all, as `mainRows` of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WorkloadRank {
    /// The deepest one of its pattern.
    Main,
    /// The same pattern is measured at a higher depth.
    Shallow,
    /// Writes into the page cache, which flushes follow.
    PageCache,
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
    // Highest depth of each pattern of a subject.
    let mut deepest: HashMap<(&str, String), u32> = HashMap::new();
    for (_, subject, figure) in &figures {
        let most = deepest.entry((*subject, pattern(figure))).or_default();
        *most = total_depth(figure).max(*most);
    }
    let has_deeper = |subject: &'a str, figure: &PageFigure| {
        let most = deepest.get(&(subject, pattern(figure)));
        most.is_some_and(|most| *most > total_depth(figure))
    };
    let mut seen: HashMap<String, usize> = HashMap::new();
    figures
        .into_iter()
        .map(|(run, subject, figure)| {
            let mut phase = phase_name(run, figure);
            // The figure of one of several jobs or directions is a part of the phase.
            let is_whole = figure.job.is_none() && direction_of_several(run, figure).is_none();
            let title = run.phase.filter(|_| is_whole);
            let title = title.and_then(|phase| title_of_phase(phase, figure.iodepth));
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
                title: title.unwrap_or_else(|| phase.clone()),
                phase,
                rank: workload_rank(run, figure, has_deeper(subject, figure)),
            }
        })
        .collect()
}

/// Rows of a chart, and the names of those that it leaves out.
pub(super) struct DrawnRows<'a> {
    pub(super) rows: Vec<PlotFigure<'a>>,
    left_out: Vec<String>,
}

impl<'a> DrawnRows<'a> {
    /// Chooses the rows of the first main workload of several subjects, else the rows of the main
    /// workloads: as many as there are colours, in their order.
    pub(super) fn choose(rows: Vec<PlotFigure<'a>>) -> DrawnRows<'a> {
        let is_shared = |row: &&PlotFigure<'_>| {
            let mut others = rows.iter();
            others.any(|other| other.phase == row.phase && other.subject != row.subject)
        };
        let shared = rows.iter().filter(is_shared);
        let phase = shared.min_by_key(|row| row.rank);
        let phase = phase.map(|row| row.phase.clone());
        let is_wanted = |row: &PlotFigure<'_>| match &phase {
            Some(phase) => *phase == row.phase,
            None => true,
        };
        let wanted = (0..rows.len()).filter(|index| is_wanted(&rows[*index]));
        let mut chosen: Vec<usize> = wanted.collect();
        // The sort is stable: rows of one rank keep their order.
        chosen.sort_by_key(|index| rows[*index].rank);
        chosen.truncate(SERIES_MAX);
        let indexed = rows.into_iter().enumerate();
        let (drawn, others): (Vec<_>, Vec<_>) =
            indexed.partition(|(index, _)| chosen.contains(index));
        let shown: Vec<String> = drawn.iter().map(|(_, row)| row.phase.clone()).collect();
        // A workload without any line is named once, without its subjects.
        let left_out = others
            .into_iter()
            .map(|(_, row)| match shown.contains(&row.phase) {
                true => row.name,
                false => row.phase,
            });
        DrawnRows {
            left_out: left_out.collect(),
            rows: drawn.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// Note on the rows that have no colour left.
    pub(super) fn note(&self) -> Option<String> {
        let (drawn, others) = (self.rows.len(), self.left_out.len());
        let names = listed_names(&unique(&self.left_out), SEPARATOR);
        let total = drawn + others;
        (others > 0).then(|| format!("{drawn} of {total} workloads, without {names}"))
    }

    /// Subjects of the rows.
    pub(super) fn subjects(&self) -> Vec<String> {
        unique(self.rows.iter().map(|row| row.subject.to_owned()))
    }

    /// Subject and workload of each row.
    pub(super) fn keys(&self) -> Vec<SeriesKey<'_>> {
        let rows = self.rows.iter();
        rows.map(|row| (row.subject, row.phase.as_str())).collect()
    }
}

/// Names for a chart: only the subjects, if the rows are one workload of several subjects.
pub(super) fn chart_names(rows: &[PlotFigure]) -> Vec<String> {
    let is_shared = is_shared_workload(rows);
    let names = rows.iter().map(|row| match is_shared {
        true => row.subject.to_owned(),
        false => row.name.clone(),
    });
    names.collect()
}

/// Title of a chart of a quantity. It names the workload if [`chart_names`] do not.
pub(super) fn chart_title(quantity: &str, rows: &[PlotFigure]) -> String {
    let Some(first) = rows.first().filter(|_| is_shared_workload(rows)) else {
        return quantity.to_owned();
    };
    let has_title = |row: &PlotFigure| row.title == first.title;
    let workload = match rows.iter().all(has_title) {
        true => &first.title,
        false => &first.phase,
    };
    format!("{quantity}: {workload}")
}

/// Whether the rows are one workload of several subjects.
fn is_shared_workload(rows: &[PlotFigure]) -> bool {
    let is_same = rows.len() > 1 && rows.iter().all(|row| row.phase == rows[0].phase);
    is_same && unique(rows.iter().map(|row| row.subject)).len() == rows.len()
}

/// I/Os in flight over all workers.
pub(super) fn total_depth(figure: &PageFigure) -> u32 {
    figure.iodepth * figure.workers
}

/// Whether the writes of a run go to the page cache, and flushes follow.
pub(super) fn is_flushed(run: &PageRun) -> bool {
    let mut figures = run.figures.iter();
    figures.any(|figure| figure.direction == Subject::Sync)
}

fn workload_rank(run: &PageRun, figure: &PageFigure, has_deeper: bool) -> WorkloadRank {
    if figure.direction == Subject::Write && is_flushed(run) {
        return WorkloadRank::PageCache;
    }
    match has_deeper {
        true => WorkloadRank::Shallow,
        false => WorkloadRank::Main,
    }
}

fn phase_name(run: &PageRun, figure: &PageFigure) -> String {
    // The name of a run contains the names of all its jobs.
    let name = figure.job.as_ref().unwrap_or(&run.name);
    match direction_of_several(run, figure) {
        Some(direction) => format!("{name} · {direction}"),
        None => name.clone(),
    }
}

/// Name of the direction of a figure. `None`: the figures of the run have no other.
fn direction_of_several(run: &PageRun, figure: &PageFigure) -> Option<&'static str> {
    let mut directions = run.figures.iter().map(|other| other.direction);
    match figure.direction {
        Subject::Sync => Some("flush"),
        direction => directions
            .any(|other| other != direction)
            .then(|| direction.name()),
    }
}

/// The access pattern: `random read 4 KiB`.
pub(super) fn pattern(figure: &PageFigure) -> String {
    let rw = ReadWrite::from_rw(&figure.rw);
    let order = match rw {
        Some(rw) if rw.random => "random ",
        Some(_) => "sequential ",
        None => "",
    };
    if figure.direction == Subject::Sync {
        return format!("flush after {order}writes");
    }
    let order = match figure.direction {
        Subject::Mixed => "",
        _ => order,
    };
    let is_mix = rw.is_some_and(|rw| rw.mode == ReadWriteMode::ReadWrite);
    let mixed = if is_mix { " of a mix" } else { "" };
    let [smallest, largest] = figure.block_bytes;
    let blocks = match (smallest, largest) {
        (_, 0) => String::new(),
        (from, to) if from == to => words::bytes(from),
        (from, to) => format!("{} to {}", words::bytes(from), words::bytes(to)),
    };
    let text = format!("{order}{}{mixed} {blocks}", figure.direction.name());
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

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;
    use crate::html::HtmlReportBuilder;
    use serde::Deserialize;

    /// The tests of the page read the same file.
    const CASES: &str = include_str!("workload_ranks.json");

    /// Runs of one subject, and the names of the rows that a chart of six colours draws.
    #[derive(Deserialize)]
    struct RankCase(Vec<CaseRun>, Vec<String>);

    /// Name and figures of a run.
    #[derive(Deserialize)]
    struct CaseRun(String, Vec<CaseFigure>);

    /// Direction, `rw`, bytes per I/O, depth and workers of a figure.
    #[derive(Deserialize)]
    struct CaseFigure(String, String, u64, u32, u32);

    impl CaseFigure {
        fn page_figure(&self, like: &PageFigure) -> PageFigure {
            PageFigure {
                job: None,
                direction: self.0.parse().unwrap(),
                rw: self.1.clone(),
                block_bytes: [self.2; 2],
                iodepth: self.3,
                workers: self.4,
                ..like.clone()
            }
        }
    }

    /// The report of a case.
    fn report_of(runs: &[CaseRun]) -> PageReport {
        let result = run("run", ReadWriteMode::Read, 1);
        let mut builder = HtmlReportBuilder::default();
        for index in 0..runs.len() {
            builder.run(&format!("result{index}"), result.clone());
        }
        let mut report = builder.into_page_report(None);
        assert_eq!(report.runs.len(), runs.len());
        for (page_run, CaseRun(name, figures)) in report.runs.iter_mut().zip(runs) {
            let like = page_run.figures[0].clone();
            page_run.name.clone_from(name);
            page_run.figures = figures.iter().map(|each| each.page_figure(&like)).collect();
        }
        report
    }

    #[test]
    fn pattern_of_a_mix_is_known_by_every_name_of_fio() {
        let case = CaseFigure("read".to_owned(), "randrw".to_owned(), 4096, 1, 1);
        let report = report_of(&[CaseRun("mix".to_owned(), vec![case])]);
        let mut figure = report.runs[0].figures[0].clone();
        assert_eq!(pattern(&figure), "random read of a mix 4 KiB");
        for rw in ["rw", "readwrite", "readwrite:4k"] {
            figure.rw = rw.to_owned();
            assert_eq!(pattern(&figure), "sequential read of a mix 4 KiB", "{rw}");
        }
    }

    #[test]
    fn rows_without_colour_give_way_in_order_of_their_ranks() {
        let cases: Vec<RankCase> = serde_json::from_str(CASES).unwrap();
        let mut left_out = 0;
        for RankCase(runs, names) in &cases {
            let report = report_of(runs);
            let subjects = vec!["device".to_owned(); runs.len()];
            let rows = figure_rows(&report, &subjects);
            left_out += rows.len() - names.len();
            let drawn = DrawnRows::choose(rows);
            let drawn: Vec<&str> = drawn.rows.iter().map(|row| row.name.as_str()).collect();
            assert_eq!(drawn, *names);
        }
        assert!(left_out > 0, "nothing is tested");
    }
}
