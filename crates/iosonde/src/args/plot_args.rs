//! Arguments of `iosonde plot`.

use super::StoreArgs;
use clap::{Args, ValueEnum};
use iosonde_report::plot::{ChartKind, PlotTheme};
use std::path::PathBuf;

/// The end of `iosonde plot --help`.
pub(crate) const PLOT_EXAMPLES: &str = "\
Examples:
  iosonde plot --chart iops-over-depth -o depth.svg
  iosonde plot 3f2a 81c0 --chart latency -o latency.png --theme dark

A chart shows the data, units and scales of the page of `iosonde report`. See docs/report.md.";

/// Smallest and largest width and height of a chart in pixels.
const WIDTH_RANGE: std::ops::RangeInclusive<u32> = 400..=8000;
const HEIGHT_RANGE: std::ops::RangeInclusive<u32> = 300..=8000;

#[derive(Debug, Args)]
pub(crate) struct PlotArgs {
    /// Stored results by ID, `latest` or `latest~1`; labels or facts KEY=VALUE; or JSON files of
    /// iosonde or fio; `-` is standard input [default: latest]
    #[arg(value_name = "RESULT")]
    pub(crate) runs: Vec<String>,
    /// Chart to draw
    #[arg(long, value_enum)]
    pub(crate) chart: ChartChoice,
    /// File to write, whose name ends in .svg or .png, instead of an SVG on standard output; with
    /// `--chart all` a directory, which is created in an existing one
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Colours of the chart and of its background
    #[arg(long, value_enum, default_value_t = ThemeChoice::Light)]
    pub(crate) theme: ThemeChoice,
    /// Width and height in pixels
    #[arg(long, value_name = "WxH", default_value = "1200x675", value_parser = plot_size)]
    pub(crate) size: PlotSize,
    /// Title of the chart [default: the kind of chart]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Print the data of the chart instead of drawing it
    #[arg(long, value_enum, hide = true)]
    pub(crate) format: Option<PlotFormat>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// The charts, as users name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChartChoice {
    /// Rate over the I/Os in flight, with 95 % intervals
    IopsOverDepth,
    /// Latency by percentile, over the offered rate of a load study, or over depth
    Latency,
    /// IOPS, bandwidth and latency of a run over time
    Timeline,
    /// Share of I/Os by latency
    Histogram,
    /// A figure over two axes of a sweep, or over read and write rate
    Heatmap,
    /// Write rate over the bytes written, which shows where a write cache ends
    Written,
    /// All charts that the results have data for, each as .svg and .png
    All,
}

impl ChartChoice {
    /// The chart. `None`: all charts.
    pub(crate) fn kind(self) -> Option<ChartKind> {
        match self {
            ChartChoice::IopsOverDepth => Some(ChartKind::IopsOverDepth),
            ChartChoice::Latency => Some(ChartKind::Latency),
            ChartChoice::Timeline => Some(ChartKind::Timeline),
            ChartChoice::Histogram => Some(ChartKind::Histogram),
            ChartChoice::Heatmap => Some(ChartKind::Heatmap),
            ChartChoice::Written => Some(ChartKind::Written),
            ChartChoice::All => None,
        }
    }
}

/// Colours of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeChoice {
    /// Dark on white
    Light,
    /// Light on a dark background
    Dark,
}

impl From<ThemeChoice> for PlotTheme {
    fn from(choice: ThemeChoice) -> PlotTheme {
        match choice {
            ThemeChoice::Light => PlotTheme::Light,
            ThemeChoice::Dark => PlotTheme::Dark,
        }
    }
}

/// How the data of a chart is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotFormat {
    /// Axes, series and cells
    Json,
}

/// Size of a chart in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlotSize {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

fn plot_size(text: &str) -> Result<PlotSize, String> {
    let sides = text.split_once(['x', 'X']);
    let size = sides.and_then(|(width, height)| {
        Some(PlotSize {
            width: width.parse().ok()?,
            height: height.parse().ok()?,
        })
    });
    let size = size.ok_or("write width and height in pixels, e.g. 1200x675")?;
    if WIDTH_RANGE.contains(&size.width) && HEIGHT_RANGE.contains(&size.height) {
        return Ok(size);
    }
    Err("write a size from 400x300 to 8000x8000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plot_size_accepts_pixels_within_bounds() {
        let size = PlotSize {
            width: 1600,
            height: 900,
        };
        assert_eq!(plot_size("1600x900"), Ok(size));
        for text in ["1600", "x", "100x100", "9000x900", "-1x5", "axb"] {
            assert!(plot_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn chart_choices_have_the_names_of_the_charts() {
        for choice in ChartChoice::value_variants() {
            let value = choice.to_possible_value().unwrap();
            let name = choice.kind().map_or("all", ChartKind::name);
            assert_eq!(value.get_name(), name);
        }
    }
}
