//! Data of a chart: axes, series and cells, without size and colours.

use crate::html::document::PageUnit;
use serde::Serialize;

/// The charts that `iosonde plot` draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Rate over the number of I/Os in flight.
    IopsOverDepth,
    /// Latency by percentile, over the offered rate, or over depth.
    Latency,
    /// Rates and latencies of a run over time.
    Timeline,
    /// Share of I/Os by latency.
    Histogram,
    /// A figure over two axes of a sweep or a load study.
    Heatmap,
    /// Write rate over the bytes written.
    Written,
}

impl ChartKind {
    /// All charts, in the order of the documentation.
    pub(super) const ALL: [ChartKind; 6] = [
        ChartKind::IopsOverDepth,
        ChartKind::Latency,
        ChartKind::Timeline,
        ChartKind::Histogram,
        ChartKind::Heatmap,
        ChartKind::Written,
    ];

    /// Returns the name on the command line, which is the name of the chart's file too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ChartKind::IopsOverDepth => "iops-over-depth",
            ChartKind::Latency => "latency",
            ChartKind::Timeline => "timeline",
            ChartKind::Histogram => "histogram",
            ChartKind::Heatmap => "heatmap",
            ChartKind::Written => "written",
        }
    }
}

/// All that a chart shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChartData {
    pub(super) chart: ChartKind,
    pub(super) title: String,
    /// Target, device and host.
    pub(super) subtitle: String,
    /// Date, program, and parts of the results that the chart leaves out.
    pub(super) footer: Vec<String>,
    pub(super) x: ChartAxis,
    pub(super) moments: TimeMoments,
    /// Panels from top to bottom, which share the horizontal axis.
    pub(super) panels: Vec<ChartPanel>,
}

impl ChartData {
    /// Returns the kind of the chart.
    #[must_use]
    pub fn kind(&self) -> ChartKind {
        self.chart
    }
}

/// Moments of a run on a horizontal axis of seconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(super) struct TimeMoments {
    /// End of the ramp, which no figure counts.
    pub(super) ramp_end_s: Option<f64>,
    /// Times of events. The notes at the bottom have their texts.
    pub(super) events_s: Vec<f64>,
}

/// One vertical axis with its series, or the cells of a heat map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChartPanel {
    pub(super) y: ChartAxis,
    pub(super) series: Vec<ChartSeries>,
    /// Cells of a heat map; the indexes are those of the ticks of both axes.
    pub(super) cells: Vec<HeatCell>,
    /// Horizontal lines at limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) limits: Vec<ChartLimit>,
}

impl ChartPanel {
    /// Creates a panel of lines.
    pub(super) fn of_series(y: ChartAxis, series: Vec<ChartSeries>) -> ChartPanel {
        ChartPanel {
            y,
            series,
            cells: Vec::new(),
            limits: Vec::new(),
        }
    }
}

/// A limit of the values of a panel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChartLimit {
    pub(super) name: String,
    /// The limit in the unit of the vertical axis.
    pub(super) value: f64,
}

/// An axis with its range and ticks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChartAxis {
    pub(super) label: String,
    pub(super) unit: PageUnit,
    pub(super) scale: AxisScale,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) ticks: Vec<AxisTick>,
}

/// How values are mapped to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AxisScale {
    /// Proportional to the value.
    Linear,
    /// Proportional to the logarithm of the value.
    Log,
    /// Names at equal distances.
    Names,
}

/// A labelled value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct AxisTick {
    pub(super) at: f64,
    pub(super) text: String,
}

/// A named line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChartSeries {
    pub(super) name: String,
    /// Index in the palette.
    pub(super) slot: usize,
    /// Index of the line style.
    pub(super) dash: usize,
    pub(super) shape: SeriesShape,
    pub(super) points: Vec<PlotPoint>,
    /// 95 % confidence intervals: horizontal position, lower and upper end.
    pub(super) band: Vec<(f64, f64, f64)>,
}

/// How the points of a series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SeriesShape {
    /// Straight lines between dots.
    Dotted,
    /// Straight lines.
    Line,
    /// A value lasts until the next point.
    Step,
    /// Steps with a tinted area below.
    Area,
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct PlotPoint {
    pub(super) x: f64,
    /// The value. `None` interrupts the line.
    pub(super) y: Option<f64>,
    /// Whether the dot is hollow: the target fell behind the offered rate, or the rate has no
    /// usable interval, unlike other rates of the chart.
    pub(super) hollow: bool,
}

impl PlotPoint {
    /// Creates a point with a filled dot.
    pub(super) fn new(x: f64, y: Option<f64>) -> PlotPoint {
        PlotPoint {
            x,
            y,
            hollow: false,
        }
    }
}

/// A cell of a heat map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct HeatCell {
    pub(super) column: usize,
    pub(super) row: usize,
    pub(super) value: Option<f64>,
    pub(super) text: String,
    /// Position between the lowest and the highest value, from 0 to 1. `None` if unknown.
    pub(super) share: Option<f64>,
    pub(super) predicted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn chart_kinds_are_all_listed_in_order() {
        assert_eq!(ChartKind::ALL, ChartKind::VARIANTS);
    }
}
