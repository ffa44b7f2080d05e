//! Texts of the page's figures, with the digits that their intervals support.

use super::document::{PageCellTexts, PageFigure, PageFigureTexts, PageLatencyKind, PageRate};
use crate::intervals::half_width;
use crate::known_digits::{
    BANDWIDTH_UNITS, LATENCY_UNITS_UTF8, RATE_UNITS, bandwidth_and_half_of_rate, figure_and_half,
    half_of_known_digits, known_digits,
};
use crate::sweep::cell_text::{cell_bandwidth, cell_mean_latency, cell_percentiles, cell_rate};
use iosonde_result::compare::{Figure, Measure, ResultPart, Subject, informative_interval};
use iosonde_study::sweep::{CellBasis, SweepCell};

/// Shares of slower I/Os of the percentiles 50, 99 and 99.9.
const SLOWER_SHARES: [f64; 3] = [0.5, 0.01, 0.001];

impl PageFigureTexts {
    /// Formats the rates and the percentiles of a figure. A mean latency that the figure has as
    /// text is kept; without one, its interval is not known.
    pub(super) fn from_figure(figure: &PageFigure) -> PageFigureTexts {
        let (rate, bytes) = (figure.iops, figure.bytes_per_s);
        let (iops, iops_half) = figure_and_half(rate.mean, rate.error, RATE_UNITS);
        let (bandwidth, bandwidth_half) = if rate.mean > 0.0 {
            bandwidth_and_half_of_rate(bytes.mean, rate.mean, rate.error)
        } else {
            figure_and_half(bytes.mean, bytes.error, BANDWIDTH_UNITS)
        };
        PageFigureTexts {
            iops,
            iops_half,
            bandwidth,
            bandwidth_half,
            doubt: rate.doubt(),
            mean: figure.shown.mean.clone().or_else(|| {
                let mean_ns = figure.latency.mean_ns;
                (mean_ns > 0.0).then(|| latency_text(mean_ns, None))
            }),
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

/// Formats the mean latency of a part. `kind` is that of [`PageFigure::latency_kind`]. `None`: it
/// was not measured.
pub(super) fn mean_latency(
    part: &ResultPart,
    subject: Subject,
    kind: PageLatencyKind,
) -> Option<String> {
    let figure = mean_figure(part, subject, kind)?;
    let between = figure.bounds.map(|bounds| (bounds.low, bounds.high));
    Some(latency_text(
        figure.value,
        half_width(figure.value, between),
    ))
}

/// Returns the informative interval of the mean latency that [`mean_latency`] formats.
pub(super) fn mean_bounds(
    part: &ResultPart,
    subject: Subject,
    kind: PageLatencyKind,
) -> Option<(f64, f64)> {
    let figure = mean_figure(part, subject, kind)?;
    let bounds = figure.bounds?;
    informative_interval(figure.value, (bounds.low, bounds.high))
}

fn mean_figure(part: &ResultPart, subject: Subject, kind: PageLatencyKind) -> Option<&Figure> {
    let measure = match kind {
        PageLatencyKind::Total => Measure::LatMean,
        PageLatencyKind::Completion => Measure::ClatMean,
    };
    part.figure(subject, measure)
}

fn latency_text(ns: f64, half: Option<f64>) -> String {
    known_digits(ns, half, LATENCY_UNITS_UTF8)
}

/// Formats the percentile of an index in [`SLOWER_SHARES`].
fn percentile(figure: &PageFigure, index: usize) -> Option<String> {
    let share = SLOWER_SHARES[index];
    let mut marks = figure.latency.marks.iter();
    let (_, ns) = marks.find(|(slower, _)| (slower / share - 1.0).abs() < 1e-6)?;
    let half = half_width(*ns, figure.percentile_bounds[index]);
    Some(latency_text(*ns, half))
}

impl PageCellTexts {
    /// Formats the figures of a sweep's cell.
    pub(super) fn from_cell(cell: &SweepCell) -> PageCellTexts {
        let [p50, p99] = cell_percentiles(cell, LATENCY_UNITS_UTF8);
        let rate = cell.iops.filter(|_| cell.basis == CellBasis::Measured);
        let half = |value: f64, units| {
            let rate = rate?;
            let error = rate.error? * value / rate.mean.max(f64::MIN_POSITIVE);
            half_of_known_digits(value, Some(error), units)
        };
        PageCellTexts {
            iops: cell_rate(cell, RATE_UNITS),
            iops_half: rate.and_then(|rate| half(rate.mean, RATE_UNITS)),
            bandwidth: cell_bandwidth(cell, BANDWIDTH_UNITS),
            bandwidth_half: (cell.bytes_per_s).and_then(|bytes| half(bytes, BANDWIDTH_UNITS)),
            doubt: rate.and_then(|rate| PageRate::new(rate.mean, rate.error).doubt()),
            mean: cell_mean_latency(cell, LATENCY_UNITS_UTF8),
            p50,
            p99,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{Bounds, IntervalBasis, IoPattern};
    use iosonde_study::sweep::CellRate;

    #[test]
    fn mean_latency_has_only_known_digits() {
        let part = |measure, half: Option<f64>| ResultPart {
            name: "randread".to_owned(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure,
                value: 22_624.0,
                bounds: half.map(|half| Bounds {
                    low: 22_624.0 - half,
                    high: 22_624.0 + half,
                    freedom: 10.0,
                    repeat_factor: 1.0,
                    basis: IntervalBasis::Series,
                }),
                settled: None,
            }],
            role: Default::default(),
        };
        let text = |half, kind| mean_latency(&part(Measure::LatMean, half), Subject::Read, kind);
        assert_eq!(
            text(Some(20.0), PageLatencyKind::Total).as_deref(),
            Some("22.6 µs")
        );
        assert_eq!(
            text(None, PageLatencyKind::Total).as_deref(),
            Some("~23 µs")
        );
        assert_eq!(text(Some(20.0), PageLatencyKind::Completion), None);
        let completion = part(Measure::ClatMean, Some(20.0));
        let shown = mean_latency(&completion, Subject::Read, PageLatencyKind::Completion);
        assert_eq!(shown.as_deref(), Some("22.6 µs"));
        let bounds = |half| {
            mean_bounds(
                &part(Measure::LatMean, half),
                Subject::Read,
                PageLatencyKind::Total,
            )
        };
        assert_eq!(bounds(Some(20.0)), Some((22_604.0, 22_644.0)));
        assert_eq!(bounds(Some(30_000.0)), None);
        assert_eq!(bounds(None), None);
    }

    #[test]
    fn cell_of_a_sweep_has_only_known_digits() {
        let with = |basis, error| SweepCell {
            iodepth: 1,
            basis,
            iops: Some(CellRate {
                mean: 44_200.0,
                error,
            }),
            bytes_per_s: Some(44_200.0 * 4096.0),
            mean_latency_ns: Some(22_624.0),
            latency: None,
            measured_ns: 0,
            warmup: None,
        };
        let texts = |basis, error| {
            let texts = PageCellTexts::from_cell(&with(basis, error));
            assert_eq!((texts.p50, texts.p99), (None, None));
            [texts.iops, texts.bandwidth, texts.mean].map(Option::unwrap_or_default)
        };
        let halves = |basis, error| {
            let texts = PageCellTexts::from_cell(&with(basis, error));
            (texts.iops_half, texts.bandwidth_half, texts.doubt)
        };
        let known = ("±0.1k".to_owned(), "±1 MiB/s".to_owned());
        let exact = halves(CellBasis::Measured, Some(40.0));
        assert_eq!(exact, (Some(known.0), Some(known.1), None));
        let unknown = halves(CellBasis::Measured, None);
        assert_eq!(unknown, (None, None, Some("interval not known")));
        let wide = halves(CellBasis::Measured, Some(90_000.0));
        assert_eq!(wide, (None, None, Some("±100 % or more")));
        assert_eq!(halves(CellBasis::Predicted, Some(40.0)), (None, None, None));
        let exact = texts(CellBasis::Measured, Some(40.0));
        assert_eq!(exact, ["44.2k", "173 MiB/s", "22.6 µs"]);
        let unknown = texts(CellBasis::Measured, None);
        assert_eq!(unknown, ["~44k", "~170 MiB/s", "~23 µs"]);
        let predicted = texts(CellBasis::Predicted, Some(40.0));
        assert_eq!(predicted, ["(44.2k)", "(173 MiB/s)", "(22.6 µs)"]);
        let anything = texts(CellBasis::Predicted, Some(50_000.0));
        assert_eq!(anything, ["", "", ""]);
    }
}
