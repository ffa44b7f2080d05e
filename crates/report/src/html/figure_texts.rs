//! Texts of the page's figures, with the digits that their intervals support.

use super::document::{PageFigure, PageFigureTexts, PageSweep, PageSweepCell};
use crate::intervals::half_width;
use crate::known_digits::{
    BANDWIDTH_UNITS, LATENCY_UNITS, RATE_UNITS, bandwidth_of_rate, digits_beside_interval,
    figure_and_half, known_digits,
};
use iosonde_study::sweep::LARGE_BYTES;

/// Shares of slower I/Os of the percentiles 50, 99 and 99.9.
const SLOWER_SHARES: [f64; 3] = [0.5, 0.01, 0.001];

impl PageFigureTexts {
    /// Formats the rates and the percentiles of a figure.
    pub(super) fn from_figure(figure: &PageFigure) -> PageFigureTexts {
        let (rate, bytes) = (figure.iops, figure.bytes_per_s);
        let (iops, iops_half) = figure_and_half(rate.mean, rate.error, RATE_UNITS);
        let bandwidth = if rate.mean > 0.0 {
            bandwidth_of_rate(bytes.mean, rate.mean, rate.error)
        } else {
            digits_beside_interval(bytes.mean, bytes.error, BANDWIDTH_UNITS)
        };
        PageFigureTexts {
            iops,
            iops_half,
            bandwidth,
            percentiles: [0, 1, 2].map(|index| percentile(figure, index)),
        }
    }

    /// Returns the rate with its interval: `93.4k ±1.2k`.
    pub(super) fn rate(&self) -> String {
        match &self.iops_half {
            Some(half) => format!("{} {half}", self.iops),
            None => self.iops.clone(),
        }
    }
}

/// Formats the percentile of an index in [`SLOWER_SHARES`].
fn percentile(figure: &PageFigure, index: usize) -> Option<String> {
    let share = SLOWER_SHARES[index];
    let mut marks = figure.latency.marks.iter();
    let (_, ns) = marks.find(|(slower, _)| (slower / share - 1.0).abs() < 1e-6)?;
    let half = half_width(*ns, figure.percentile_bounds[index]);
    Some(known_digits(*ns, half, LATENCY_UNITS).replace(" us", " µs"))
}

/// Formats the rates of a sweep's cells.
pub(super) fn set_cell_texts(sweep: &mut PageSweep) {
    for curve in &mut sweep.curves {
        let is_large = curve.block_bytes >= LARGE_BYTES;
        for cell in &mut curve.cells {
            cell.shown = cell_text(cell, is_large);
        }
    }
}

/// Formats the rate of a cell, or its bandwidth. `None`: its interval is not known.
fn cell_text(cell: &PageSweepCell, is_large: bool) -> Option<String> {
    let rate = cell.iops.filter(|rate| rate.error.is_some())?;
    let bytes_per_s = cell.bytes_per_s.filter(|_| is_large);
    Some(match bytes_per_s {
        Some(bytes_per_s) => bandwidth_of_rate(bytes_per_s, rate.mean, rate.error),
        None => digits_beside_interval(rate.mean, rate.error, RATE_UNITS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::document::PageRate;
    use iosonde_study::sweep::CellBasis;

    #[test]
    fn cell_of_a_sweep_has_only_known_digits() {
        let mut cell = PageSweepCell {
            iodepth: 1,
            basis: CellBasis::Measured,
            iops: Some(PageRate::new(44_200.0, Some(38_000.0))),
            bytes_per_s: Some(44_200.0 * 4096.0),
            mean_ns: None,
            percentiles_ns: [None; 3],
            max_ns: None,
            shown: None,
        };
        assert_eq!(cell_text(&cell, false).as_deref(), Some("44k"));
        assert_eq!(cell_text(&cell, true).as_deref(), Some("170 MiB/s"));
        cell.iops = Some(PageRate::new(44_200.0, None));
        assert_eq!(cell_text(&cell, false), None);
    }
}
