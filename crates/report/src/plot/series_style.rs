//! Colour and line style of a series.

use super::chart_data::{ChartSeries, PlotPoint, SeriesShape};

/// Most series of a chart: as many as there are colours.
pub(super) const SERIES_MAX: usize = 6;

/// Subject and workload of a series.
pub(super) type SeriesKey<'a> = (&'a str, &'a str);

/// Colour and line style of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeriesStyle {
    /// Index in the palette.
    pub(super) slot: usize,
    /// Index of the line style.
    pub(super) dash: usize,
}

impl SeriesStyle {
    /// The style with a number. Beyond the palette, colours recur with other line styles.
    pub(super) fn numbered(number: usize) -> SeriesStyle {
        SeriesStyle {
            slot: number % SERIES_MAX,
            dash: (number + number / SERIES_MAX) % SERIES_MAX,
        }
    }

    /// Creates a series of this style without intervals.
    pub(super) fn series(
        self,
        name: String,
        shape: SeriesShape,
        points: Vec<PlotPoint>,
    ) -> ChartSeries {
        ChartSeries {
            name,
            slot: self.slot,
            dash: self.dash,
            shape,
            points,
            band: Vec::new(),
        }
    }
}
