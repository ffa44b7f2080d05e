use super::super::tests::{measured, options};
use super::super::{ShortSweep, table};
use super::*;
use crate::html::HtmlReportBuilder;
use crate::html::document::{PageCellTexts, PageReport};
use crate::known_digits::{BANDWIDTH_UNITS, RATE_UNITS};
use crate::plot::{ChartKind, PlotSource, PlotStyle, PlotTheme, svg};
use crate::text_style::TextStyle;
use iosonde_study::sweep::{SweepOptions, SweepResult};

/// A sweep with a measured, a predicted and a measured rate without interval, and a prediction that
/// could be off by more than 100 %.
fn sweep_of_all_kinds(blocks: &str) -> SweepResult {
    let every = SweepOptions {
        exhaustive: true,
        ..options()
    };
    let axes = [("bs", blocks), ("iodepth", "1,2,4,8")];
    let mut result = measured("nfs", &axes, &every);
    let block_bytes = result.curves[0].block_bytes as f64;
    let rates = [
        (CellBasis::Measured, 1_234.0, Some(2.0)),
        (CellBasis::Predicted, 2_346.0, Some(20.0)),
        (CellBasis::Measured, 3_456.0, None),
        (CellBasis::Predicted, 4_567.0, Some(5_000.0)),
    ];
    for (cell, (basis, mean, error)) in result.curves[0].cells.iter_mut().zip(rates) {
        cell.basis = basis;
        let iops = cell.iops.as_mut().unwrap();
        (iops.mean, iops.error) = (mean, error);
        cell.bytes_per_s = Some(mean * block_bytes);
    }
    result
}

/// Texts of the elements of the chart that `iosonde plot` writes.
fn texts_of_heat_map(results: HtmlReportBuilder) -> Vec<String> {
    let source = PlotSource::new(results, None);
    let data = source.chart(ChartKind::Heatmap).unwrap();
    let style = PlotStyle {
        theme: PlotTheme::Light,
        width: 960,
        height: 540,
    };
    let document = svg(&data, &style);
    let tree = roxmltree::Document::parse(&document).unwrap();
    let texts = tree.descendants().filter_map(|node| node.text());
    texts.map(|text| text.trim().to_owned()).collect()
}

fn results_of(result: &SweepResult) -> HtmlReportBuilder {
    let mut builder = HtmlReportBuilder::default();
    builder.sweep("file", result);
    builder
}

fn texts_of_page(page: &PageReport) -> Vec<PageCellTexts> {
    let curves = page.sweeps.iter().flat_map(|sweep| &sweep.curves);
    let cells = curves.flat_map(|curve| &curve.cells);
    cells.filter_map(|cell| cell.shown.clone()).collect()
}

#[test]
fn cell_of_sweep_reads_alike_on_all_screens() {
    let result = sweep_of_all_kinds("4k,16k");
    let cells = result.curves.iter().flat_map(|curve| &curve.cells);
    let rates: Vec<Option<String>> = cells.map(|cell| cell_rate(cell, RATE_UNITS)).collect();
    let known = ["1.23k", "(2.35k)", "~3.5k"].map(|text| Some(text.to_owned()));
    assert_eq!(rates[..3], known);
    assert_eq!(rates[3], None);
    let results = || results_of(&result);
    let page = results().into_page_report(None);
    let shown: Vec<Option<String>> = texts_of_page(&page)
        .into_iter()
        .map(|texts| texts.iops)
        .collect();
    assert_eq!(shown, rates);
    let html = results().html(None).unwrap();
    let short = ShortSweep::new(&result, (None, ""), TextStyle::PLAIN).text();
    let (details, chart) = (table(&result), texts_of_heat_map(results()));
    for rate in rates.iter().flatten() {
        for text in [&short, &details] {
            let mut words = text.split_whitespace();
            assert!(words.any(|word| word == rate), "{rate}: {text}");
        }
        assert!(html.contains(&format!("<td>{rate}</td>")), "{rate}");
        assert!(chart.contains(rate), "{rate}: {chart:?}");
    }
}

#[test]
fn bandwidth_of_sweep_has_the_same_digits_on_all_screens() {
    let result = sweep_of_all_kinds("64k,128k");
    let cells = result.curves[0].cells.iter();
    let known = cells.map(|cell| cell_bandwidth(cell, BANDWIDTH_UNITS));
    let known: Vec<Option<String>> = known.collect();
    let marks = ["77.1 MiB/s", "(147 MiB/s)", "~220 MiB/s"].map(|text| Some(text.to_owned()));
    assert_eq!(known[..3], marks);
    assert_eq!(known[3], None);
    let page = results_of(&result).into_page_report(None);
    let shown = texts_of_page(&page)
        .into_iter()
        .map(|texts| texts.bandwidth);
    let shown: Vec<Option<String>> = shown.take(known.len()).collect();
    assert_eq!(shown, known);
    let html = results_of(&result).html(None).unwrap();
    let short = ShortSweep::new(&result, (None, ""), TextStyle::PLAIN).text();
    let (details, chart) = (table(&result), texts_of_heat_map(results_of(&result)));
    for text in known.iter().flatten() {
        // The tables on a terminal are in MiB/s.
        let number = text.replace(" MiB/s", "");
        for table in [&short, &details] {
            let mut words = table.split_whitespace();
            assert!(words.any(|word| word == number), "{number}: {table}");
        }
        assert!(html.contains(&format!("<td>{text}</td>")), "{text}");
        assert!(chart.contains(text), "{text}: {chart:?}");
    }
}
