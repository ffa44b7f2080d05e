//! The report as text and a table, for browsers whose scripts are off.

use super::document::{PageFigure, PageReport, PageRun, PageSweep};
use crate::suite::xml_element::XmlElement;
use iosonde_study::words;

/// Most rows of the table of figures.
const ROWS_MAX: usize = 200;

/// Longest text in characters. A longer text is cut.
const TEXT_CHARACTERS_MAX: usize = 600;

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
    elements.extend(report.expectations.iter().map(|each| {
        let (mark, verdict, target) = (each.mark, each.verdict, &each.target);
        let judged = format!("{} ({}): {}", each.expectation, each.figure, each.evidence);
        element("p", &format!("{mark} {verdict}, {target}: {judged}"))
    }));
    for study in &report.studies {
        let sentence = format!("{}: {}", study.target, study.sentence);
        elements.push(element("p", &sentence));
        let ceilings = study.ceilings.iter();
        elements.extend(ceilings.map(|text| element("p", &format!("Bottleneck: {text}"))));
        elements.extend(study.notes.iter().map(|note| element("p", note)));
    }
    for sweep in report.sweeps.iter().chain(&report.knees) {
        elements.extend(sweep_elements(sweep));
    }
    for load in &report.loads {
        elements.push(element("p", &load.headline));
        elements.extend(load.notes.iter().map(|note| element("p", note)));
    }
    elements.extend(figure_table(&report.runs));
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

/// Returns the table of all figures but those of preparations and grids, if there are any.
fn figure_table(runs: &[PageRun]) -> Option<String> {
    let measured = runs.iter().filter(|run| !run.preparation && !run.of_grid);
    let rows: Vec<String> = measured
        .flat_map(|run| {
            run.figures
                .iter()
                .map(move |figure| figure_row(run, figure))
        })
        .take(ROWS_MAX)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let titles: Vec<String> = COLUMNS.iter().map(|title| element("th", title)).collect();
    let head = XmlElement::new("tr").with_xml(&titles.concat());
    Some(XmlElement::new("table").with_xml(&[head, rows.concat()].concat()))
}

fn figure_row(run: &PageRun, figure: &PageFigure) -> String {
    let job = figure.job.as_ref().unwrap_or(&run.name);
    let percentile = |share: f64| {
        let marks = figure.latency.marks.iter();
        let mut marks = marks.filter(|mark| (mark.0 / share - 1.0).abs() < 1e-6);
        marks
            .next()
            .map_or_else(|| "-".to_owned(), |mark| words::latency(mark.1))
    };
    let cells = [
        run.place.clone(),
        format!("{job}, {}", figure.direction),
        figure.iodepth.to_string(),
        words::iops(figure.iops.mean),
        words::bandwidth(figure.bytes_per_s.mean),
        percentile(0.5),
        percentile(0.01),
    ];
    let cells: Vec<String> = cells.iter().map(|text| element("td", text)).collect();
    XmlElement::new("tr").with_xml(&cells.concat())
}

/// Returns an element around a text, which is escaped and cut to a legible length.
fn element(name: &'static str, text: &str) -> String {
    let cut: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
    XmlElement::new(name).with_text(&cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_hostile_text_is_cut_and_escaped() {
        let hostile = format!("</noscript><script>\u{202e}{}", "x".repeat(10_000));
        let html = element("p", &hostile);
        assert!(html.starts_with("<p>&lt;/noscript&gt;&lt;script&gt;\\u202ex"));
        assert!(html.len() < TEXT_CHARACTERS_MAX + 100, "{}", html.len());
    }

    #[test]
    fn table_without_figures_is_left_out() {
        assert_eq!(figure_table(&[]), None);
    }
}
