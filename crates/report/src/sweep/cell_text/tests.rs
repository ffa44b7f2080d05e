use super::super::tests::{measured, options};
use super::super::{markdown, short, table};
use super::*;
use crate::html::HtmlReportBuilder;
use crate::html::document::{PageCellTexts, PageReport};
use crate::known_digits::RATE_UNITS;
use crate::plot::{ChartKind, PlotSource, PlotStyle, PlotTheme, chart_svg};
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
    let document = chart_svg(&data, &style);
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
    let short = short(&result, (None, ""), TextStyle::PLAIN);
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
    let short = short(&result, (None, ""), TextStyle::PLAIN);
    let (details, chart) = (table(&result), texts_of_heat_map(results_of(&result)));
    for text in known.iter().flatten() {
        // The tables on a terminal have the unit in their headers.
        let number = text.replace(" MiB/s", "");
        for table in [&short, &details] {
            let mut words = table.split_whitespace();
            assert!(words.any(|word| word == number), "{number}: {table}");
        }
        assert!(html.contains(&format!("<td>{text}</td>")), "{text}");
        assert!(chart.contains(text), "{text}: {chart:?}");
    }
}

/// A sweep over two depths with these bandwidths in MiB/s. Each block size is a column.
fn sweep_of_bandwidths(columns: [[f64; 2]; 2]) -> SweepResult {
    let every = SweepOptions {
        exhaustive: true,
        ..options()
    };
    let axes = [("bs", "64k,128k"), ("iodepth", "1,2")];
    let mut result = measured("nfs", &axes, &every);
    for (curve, column) in result.curves.iter_mut().zip(columns) {
        for (cell, mebibytes) in curve.cells.iter_mut().zip(column) {
            let bytes = mebibytes * 1_048_576.0;
            let iops = cell.iops.as_mut().unwrap();
            iops.mean = bytes / curve.block_bytes as f64;
            iops.error = Some(0.001 * iops.mean);
            cell.bytes_per_s = Some(bytes);
        }
    }
    result
}

/// Words of the first line of a text that begins with this word.
fn words_of_line<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    let lines = text.lines().map(|line| line.split_whitespace());
    let mut lines = lines.map(|words| words.collect::<Vec<&str>>());
    let line = lines.find(|words| words.first() == Some(&first));
    line.unwrap_or_else(|| panic!("no line {first:?}: {text}"))
}

#[test]
fn column_of_bandwidths_has_unit_of_its_largest_figure() {
    let result = sweep_of_bandwidths([[77.1, 3276.8], [77.1, 500.0]]);
    let text = table(&result);
    let header = words_of_line(&text, "iodepth");
    assert_eq!(header[1..], ["GiB/s", "latency", "MiB/s", "latency"]);
    // A latency is two words.
    let row = |depth: &str| {
        let words = words_of_line(&text, depth);
        [words[1], words[4]]
    };
    assert_eq!((row("1"), row("2")), (["0.075", "77.1"], ["3.20", "500"]));
    let text = markdown(&result);
    let header = "| iodepth | 64k GiB/s | latency | 128k MiB/s | latency |";
    assert!(text.contains(header), "{text}");
    assert!(text.contains("| 1 | 0.075 | "), "{text}");
    assert!(text.contains("| 2 | 3.20 | "), "{text}");
    let small = table(&sweep_of_bandwidths([[0.1, 0.5], [77.1, 999.0]]));
    let header = words_of_line(&small, "iodepth");
    assert_eq!(header[1..], ["KiB/s", "latency", "MiB/s", "latency"]);
}

#[test]
fn heat_table_has_unit_of_its_largest_bandwidth() {
    let short = |result: &SweepResult| short(result, (None, ""), TextStyle::PLAIN);
    let text = short(&sweep_of_bandwidths([[77.1, 3276.8], [77.1, 500.0]]));
    assert!(text.contains("\nGiB/s\n"), "{text}");
    let row = |depth: &str| {
        let words = words_of_line(&text, depth);
        [words[1], words[3]]
    };
    assert_eq!((row("1"), row("2")), (["0.075"; 2], ["3.20", "0.488"]));
    let text = short(&sweep_of_bandwidths([[77.1, 320.0], [77.1, 500.0]]));
    assert!(text.contains("\nMiB/s\n"), "{text}");
    assert_eq!(words_of_line(&text, "2")[1], "320");
}

#[test]
fn column_without_known_bandwidth_is_in_mebibytes() {
    let unit = bandwidth_unit(std::iter::empty());
    assert_eq!(rate_header(Some(unit)), "MiB/s");
    assert_eq!(rate_header(None), "IOPS");
}
