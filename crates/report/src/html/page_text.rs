//! The report as text and a table, for browsers whose scripts are off.

use super::comparison_text::{pivot_elements, promise_elements, spread_elements};
use super::document::{
    LoadPoint, PageCellTexts, PageFigure, PageLoad, PageReport, PageRun, PageStudy, PageSweep,
    PageSweepCell,
};
use super::page_header::conditions;
use super::page_winner::NAMES;
use super::text_elements::{element, hidden_items_text, short_name, table, table_row};
use crate::unique;
use iosonde_study::words;
use std::collections::HashSet;

/// Most findings of runs.
const FINDINGS_MAX: usize = 20;

/// Columns of the table of a load study.
const LOAD_COLUMNS: [&str; 8] = [
    "offered/s",
    "done/s",
    "kept up",
    "p50",
    "p95",
    "p99",
    "p99.9",
    "longest",
];

/// Columns of the table of a sweep after those of its axes.
const SWEEP_COLUMNS: [&str; 4] = ["IOPS", "bandwidth", "p50", "p99"];

/// Columns of the table of figures.
const COLUMNS: [&str; 7] = [
    "target",
    "workload",
    "depth",
    "IOPS",
    "bandwidth",
    "p50",
    "p99",
];

/// Returns the HTML elements of the text.
pub(super) fn page_text(report: &PageReport) -> String {
    let mut elements = vec![element("h1", &report.title)];
    let conditions = conditions(report);
    if !conditions.is_empty() {
        elements.push(element("p", &conditions));
    }
    for suite in &report.suites {
        let (name, target) = (short_name(&suite.name), short_name(&suite.target));
        let verdict = &suite.verdict;
        elements.push(element("p", &format!("Suite {name}, {target}: {verdict}")));
        elements.extend(suite.cautions.iter().map(|text| element("p", text)));
    }
    elements.extend(report.expectations.iter().map(|each| {
        let (mark, verdict, target) = (each.mark, each.verdict, short_name(&each.target));
        let judged = format!("{} ({}): {}", each.expectation, each.figure, each.evidence);
        element("p", &format!("{mark} {verdict}, {target}: {judged}"))
    }));
    elements.extend(winner_elements(report));
    // A result may be given twice.
    let studies = unique(&report.studies);
    for study in studies.iter().copied() {
        let sentence = format!("{}: {}", study_name(&studies, study), study.sentence);
        elements.push(element("p", &sentence));
        let ceilings = study.ceilings.iter();
        elements.extend(ceilings.map(|text| element("p", &format!("Bottleneck: {text}"))));
        elements.extend(study.notes.iter().map(|note| element("p", note)));
    }
    for sweep in &report.sweeps {
        elements.extend(sweep_elements(sweep));
        elements.extend(table(&sweep_columns(sweep), sweep_rows(sweep)));
    }
    elements.extend(report.knees.iter().flat_map(sweep_elements));
    elements.extend(report.loads.iter().flat_map(load_elements));
    elements.extend(report.pivots.iter().flat_map(pivot_elements));
    elements.extend(report.promises.iter().flat_map(promise_elements));
    elements.extend(figure_table(&report.runs));
    elements.extend(spread_elements(&report.spreads));
    elements.extend(finding_elements(&report.runs));
    let charts = "The charts need JavaScript, which is off in this browser. The file is complete: \
                  it loads nothing.";
    elements.push(element("p", charts));
    elements.concat()
}

fn sweep_elements(sweep: &PageSweep) -> Vec<String> {
    let sentences = sweep
        .curves
        .iter()
        .filter_map(|curve| curve.sentence.as_ref());
    [&sweep.headline]
        .into_iter()
        .chain(sentences)
        .chain(&sweep.notes)
        .map(|text| element("p", text))
        .collect()
}

/// The target of a study. If others have the same one, its result is added, or its number.
fn study_name(studies: &[&PageStudy], study: &PageStudy) -> String {
    let target = short_name(&study.target);
    let same: Vec<&&PageStudy> = (studies.iter())
        .filter(|other| other.target == study.target)
        .collect();
    let of_source = same.iter().filter(|other| other.source == study.source);
    match (same.len(), of_source.count()) {
        (0 | 1, _) => target,
        (_, 1) => format!("{target} ({})", short_name(&study.source)),
        _ => {
            let position = same.iter().position(|other| **other == study);
            format!("{target} #{}", position.map_or(1, |index| index + 1))
        }
    }
}

/// Replaces the placeholders of both targets. A name that holds a placeholder stays as it is.
fn with_names(text: &str, names: [&str; 2]) -> String {
    let mut named = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, found) = rest.split_at(at);
        named.push_str(before);
        let mut pairs = NAMES.into_iter().zip(names);
        let replaced = pairs.find_map(|(placeholder, name)| {
            let after = found.strip_prefix(placeholder)?;
            Some((name, after))
        });
        let (name, after) = replaced.unwrap_or(found.split_at(1));
        named.push_str(name);
        rest = after;
    }
    named + rest
}

/// The winner of each comparison with its notes, with the names of the targets.
fn winner_elements(report: &PageReport) -> Vec<String> {
    let studies = unique(&report.studies);
    let name = |index: usize| {
        let study = report.studies.get(index);
        study.map_or_else(String::new, |study| study_name(&studies, study))
    };
    let winners = report.winners.iter().flat_map(|winner| {
        let (first, second) = (name(winner.first), name(winner.second));
        let named = |text: &str| with_names(text, [&first, &second]);
        let sentence = named(&winner.sentence);
        let sentence = format!("{first} and {second}, winner: {sentence}");
        let notes = winner.notes.iter().map(|note| named(note));
        let texts = std::iter::once(sentence).chain(notes);
        texts
            .map(|text| element("p", &text))
            .collect::<Vec<String>>()
    });
    winners.collect()
}

fn load_elements(load: &PageLoad) -> Vec<String> {
    let mut elements = vec![element("p", &load.headline)];
    elements.push(element("p", &format!("Knee: {}", load.knee)));
    let sentences = load.objectives.iter().chain(&load.notes);
    elements.extend(sentences.map(|text| element("p", text)));
    elements.extend(table(
        &LOAD_COLUMNS,
        load.points.iter().map(load_row).collect(),
    ));
    elements
}

fn load_row(point: &LoadPoint) -> String {
    let mut cells = vec![
        words::iops_text(point.offered_per_s),
        words::iops_text(point.achieved_per_s),
        point.state.word().to_owned(),
    ];
    cells.extend(point.shown.clone());
    // Past saturation, no I/O may have been measured.
    cells.push(point.max_ns.map_or_else(|| "-".to_owned(), latency_text));
    table_row(&cells)
}

fn latency_text(ns: f64) -> String {
    words::latency_with_micro_sign(ns)
}

fn sweep_columns(sweep: &PageSweep) -> Vec<&str> {
    let axes = sweep.axes.iter().map(|axis| axis.name.as_str());
    axes.chain(SWEEP_COLUMNS).collect()
}

/// The cells of a sweep with a figure.
fn sweep_rows(sweep: &PageSweep) -> Vec<String> {
    let cells = sweep
        .curves
        .iter()
        .flat_map(|curve| curve.cells.iter().map(move |cell| (&curve.values, cell)));
    let rows = cells.filter_map(|(values, cell)| {
        let texts = match &cell.shown {
            Some(texts) => texts.clone(),
            None => texts_of_round(cell),
        };
        texts.iops.as_ref()?;
        let figures = [texts.iops, texts.bandwidth, texts.p50, texts.p99];
        let mut cells = values.clone();
        cells.push(cell.iodepth.to_string());
        cells.extend(figures.map(|text| text.unwrap_or_else(|| "-".to_owned())));
        Some(table_row(&cells))
    });
    rows.collect()
}

/// Figures of a round of a PTS test, which have three digits as in the tables of the test.
fn texts_of_round(cell: &PageSweepCell) -> PageCellTexts {
    let latency = |ns: Option<u64>| ns.map(|ns| latency_text(ns as f64));
    let [p50, p99, _] = cell.percentiles_ns.map(latency);
    PageCellTexts {
        iops: cell.iops.map(|rate| words::iops_text(rate.mean)),
        bandwidth: cell.bytes_per_s.map(words::bandwidth),
        mean: cell.mean_ns.map(latency_text),
        p50,
        p99,
        ..PageCellTexts::default()
    }
}

/// Verdicts of runs, such as the bottleneck, and errors. Notes have those of grids.
fn finding_elements(runs: &[PageRun]) -> Vec<String> {
    let measured = runs.iter().filter(|run| !run.preparation && !run.of_grid);
    let findings = measured.flat_map(|run| {
        let verdicts = run.verdicts.iter().map(|verdict| &verdict.evidence);
        let texts = run.failures.iter().chain(verdicts);
        let (place, name) = (short_name(&run.place), short_name(&run.name));
        texts.map(move |text| element("p", &format!("{place}, {name}: {text}")))
    });
    let mut findings: Vec<String> = findings.collect();
    let hidden = findings.len().saturating_sub(FINDINGS_MAX);
    findings.truncate(FINDINGS_MAX);
    findings.extend(hidden_items_text(hidden, "more finding"));
    findings
}

/// Returns the table of all figures but those of preparations and grids, if there are any. A run
/// that was given twice has one row.
fn figure_table(runs: &[PageRun]) -> Option<String> {
    let measured = runs.iter().filter(|run| !run.preparation && !run.of_grid);
    let rows = measured.flat_map(|run| {
        let time = (run.started_at_ms, run.elapsed_ns);
        let rows = run.figures.iter().map(|figure| figure_row(run, figure));
        rows.map(move |row| (time, row)).collect::<Vec<_>>()
    });
    let mut seen = HashSet::new();
    let distinct = rows.filter(|row| seen.insert(row.clone()));
    table(&COLUMNS, distinct.map(|(_, row)| row).collect())
}

fn figure_row(run: &PageRun, figure: &PageFigure) -> String {
    let job = figure.job.as_ref().unwrap_or(&run.name);
    let shown = &figure.shown;
    let [p50, p99, _] = shown.percentiles.clone();
    let percentile = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = [
        short_name(&run.place),
        format!("{}, {}", short_name(job), figure.direction.name()),
        figure.iodepth.to_string(),
        shown.rate(),
        shown.bandwidth.clone(),
        percentile(p50),
        percentile(p99),
    ];
    table_row(&cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::html::document::{PageRate, PageSuite, SweepCurve};
    use iosonde_result::host::Host;
    use iosonde_study::sweep::CellBasis;

    #[test]
    fn long_names_leave_room_for_the_answers() {
        let mut report = HtmlReportBuilder::default().into_page_report(None);
        report.studies = vec![PageStudy {
            source: "file".to_owned(),
            target: format!("begin-{}-end", "x".repeat(10_000)),
            sentence: "This is a fast disk.".to_owned(),
            ceilings: Vec::new(),
            notes: Vec::new(),
            unknown_maxima: Vec::new(),
            interrupted: false,
            working_set_bytes: 0,
        }];
        report.suites = vec![PageSuite {
            name: "y".repeat(10_000),
            target: "z".repeat(10_000),
            verdict: "passed: 2 met".to_owned(),
            passed: Some(true),
            cautions: Vec::new(),
        }];
        let html = page_text(&report);
        assert!(html.contains("-end: This is a fast disk.</p>"), "{html}");
        assert!(html.contains(": passed: 2 met</p>"), "{html}");
        assert!(html.len() < 2000, "{html}");
    }

    #[test]
    fn conditions_follow_the_title() {
        let mut report = HtmlReportBuilder::default().into_page_report(Some("A disk"));
        let text = page_text(&report);
        assert!(text.starts_with("<h1>A disk</h1><p>The charts"), "{text}");
        report.hosts = vec![Host {
            hostname: Some("<host>".to_owned()),
            architecture: "x86_64".to_owned(),
            ..Host::default()
        }];
        let text = page_text(&report);
        assert!(
            text.starts_with("<h1>A disk</h1><p>&lt;host&gt;</p>"),
            "{text}"
        );
    }

    #[test]
    fn sweep_table_has_texts_of_all_screens() {
        let shown = |iops: &str| PageCellTexts {
            iops: Some(iops.to_owned()),
            p50: Some("500 µs".to_owned()),
            ..PageCellTexts::default()
        };
        let cell = |iodepth, shown| PageSweepCell {
            iodepth,
            basis: CellBasis::Predicted,
            iops: Some(PageRate::new(2000.0, None)),
            bytes_per_s: None,
            mean_ns: None,
            percentiles_ns: [Some(500_000), None, None],
            p99_between_ns: None,
            max_ns: None,
            shown,
        };
        let sweep = PageSweep {
            source: String::new(),
            target: String::new(),
            headline: String::new(),
            axes: Vec::new(),
            curves: vec![SweepCurve {
                values: vec!["<b>".to_owned()],
                block_bytes: 4096,
                sentence: None,
                knee: None,
                notes: Vec::new(),
                cells: vec![
                    cell(1, Some(shown("~2.0k"))),
                    cell(2, Some(PageCellTexts::default())),
                    cell(3, None),
                ],
            }],
            notes: Vec::new(),
        };
        let row = |depth, rate, p50: &str| {
            format!(
                "<tr><td>&lt;b&gt;</td><td>{depth}</td><td>{rate}</td><td>-</td><td>{p50}</td>\
                 <td>-</td></tr>"
            )
        };
        // A cell whose rate is not known is left out.
        let round = row(3, "2.00k", "500 µs");
        assert_eq!(sweep_rows(&sweep), [row(1, "~2.0k", "500 µs"), round]);
    }

    #[test]
    fn names_with_placeholders_are_replaced_once() {
        let names = ["a[second]", "b"];
        let text = with_names("[first] beats [second] in [x] of [", names);
        assert_eq!(text, "a[second] beats b in [x] of [");
    }

    #[test]
    fn results_of_one_target_have_distinct_names() {
        let study = |source: &str, sentence: &str| PageStudy {
            source: source.to_owned(),
            target: "/data".to_owned(),
            sentence: sentence.to_owned(),
            ceilings: Vec::new(),
            notes: Vec::new(),
            unknown_maxima: Vec::new(),
            interrupted: false,
            working_set_bytes: 0,
        };
        let names = |studies: &[PageStudy]| -> Vec<String> {
            let studies = unique(studies);
            let names = studies.iter().map(|study| study_name(&studies, study));
            names.collect()
        };
        let (old, new) = (study("old.json", "slow"), study("new.json", "fast"));
        assert_eq!(names(&[study("a", "same"), study("a", "same")]), ["/data"]);
        assert_eq!(names(&[old, new]), ["/data (old.json)", "/data (new.json)"]);
        let numbered = names(&[study("a", "slow"), study("a", "fast")]);
        assert_eq!(numbered, ["/data #1", "/data #2"]);
    }

    #[test]
    fn table_without_figures_is_left_out() {
        assert_eq!(figure_table(&[]), None);
    }
}
