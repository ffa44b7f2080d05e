//! Histograms of latency. All bins have the same width on the logarithmic axis.
//!
//! The buckets of a result double their width in ns at each power of two. On a logarithmic axis,
//! the first bucket after a power of two is therefore 1.8 times as wide as the one before. Shares
//! of buckets would jump there. Each bucket is spread over the bins that it overlaps.

use super::chart_data::{ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{linear_axis, log_axis};
use super::figure_rows::{DrawnRows, chart_names, chart_title, figure_rows};
use super::panel_styles::series_styles;
use super::plot_input::{ChartParts, PlotInput};
use crate::html::curve::bucket_range;
use crate::html::document::{PageLatency, PageUnit};
use std::collections::BTreeMap;

/// Bins of a power of two, as in `web/src/chart/histogram.ts`. A bin spans a factor of 1.149. From
/// 8 ns, a bucket spans at most 9/8: bins that are narrower than a bucket would show no more.
const BINS_PER_OCTAVE: f64 = 5.0;

/// Label of the vertical axis: its values depend on the width of a bin.
const SHARE_LABEL: &str = "share of I/Os per factor of 1.15 in latency";

/// Share of the I/Os in each bin of latency.
pub(super) fn histogram_plot(input: &PlotInput) -> Option<ChartParts> {
    let mut rows = figure_rows(&input.report, &input.subjects);
    rows.retain(|row| row.figure.latency.count > 0 && !row.figure.latency.buckets.is_empty());
    let drawn = DrawnRows::choose(rows);
    let rows = drawn.rows.iter();
    let binned = rows.map(|row| bin_shares(&row.figure.latency));
    let binned: Vec<BTreeMap<i32, f64>> = binned.collect();
    let used = || binned.iter().flat_map(BTreeMap::keys);
    // One bin more on either side, where all lines are zero.
    let first = (used().min()? - 1).max(0);
    let last = used().max()? + 1;
    let styles = series_styles(input, drawn.keys());
    let series = chart_names(&drawn.rows)
        .into_iter()
        .zip(&binned)
        .zip(styles);
    let series = series.map(|((name, shares), style)| {
        let points = (first..=last).map(|bin| {
            let share = shares.get(&bin).copied().unwrap_or_default();
            PlotPoint::new(bin_start_ns(bin), Some(share))
        });
        style.series(name, SeriesShape::Area, points.collect())
    });
    let series: Vec<ChartSeries> = series.collect();
    let most = binned.iter().flat_map(BTreeMap::values);
    let most = most.copied().fold(0.0, f64::max);
    let ends = [bin_start_ns(first), bin_start_ns(last + 1)];
    let y = linear_axis(SHARE_LABEL, PageUnit::Percent, most);
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: chart_title("Histogram of latency", &drawn.rows),
        x: log_axis("latency", PageUnit::Ns, &ends),
        panels: vec![ChartPanel::of_series(y, series)],
        notes: drawn.note().into_iter().collect(),
        subjects: drawn.subjects(),
    })
}

/// Shares of the I/Os in percent by bin. A bucket is spread evenly over its part of the axis.
fn bin_shares(latency: &PageLatency) -> BTreeMap<i32, f64> {
    let mut shares: BTreeMap<i32, f64> = BTreeMap::new();
    for (index, count) in &latency.buckets {
        let share = 100.0 * *count as f64 / latency.count as f64;
        let (from_ns, to_ns) = bucket_range(*index);
        let (from, to) = (bin_position(from_ns), bin_position(to_ns));
        if to <= from {
            // The bucket of 0 ns has no place on a logarithmic axis.
            *shares.entry(from as i32).or_default() += share;
            continue;
        }
        for bin in from.floor() as i32..to.ceil() as i32 {
            let overlap = to.min(f64::from(bin + 1)) - from.max(f64::from(bin));
            *shares.entry(bin).or_default() += share * overlap / (to - from);
        }
    }
    shares
}

/// Position of a latency on the axis, in bins from 1 ns.
fn bin_position(ns: u64) -> f64 {
    BINS_PER_OCTAVE * (ns.max(1) as f64).log2()
}

/// Lower end of a bin.
fn bin_start_ns(bin: i32) -> f64 {
    (f64::from(bin) / BINS_PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;
    use crate::html::HtmlReportBuilder;
    use iosonde_job::plan::ReadWriteMode;

    /// Shares of the chart of a latency whose buckets have these counts.
    fn drawn_shares(buckets: Vec<(usize, u64)>) -> Vec<f64> {
        let mut builder = HtmlReportBuilder::default();
        builder.run("one", run("randread", ReadWriteMode::Read, 1));
        let mut report = builder.into_page_report(None);
        let latency = &mut report.runs[0].figures[0].latency;
        latency.count = buckets.iter().map(|(_, count)| count).sum();
        latency.buckets = buckets;
        let subjects = vec!["device".to_owned()];
        let chart = histogram_plot(&PlotInput { report, subjects }).unwrap();
        let points = chart.panels[0].series[0].points.iter();
        points.filter_map(|point| point.y).collect()
    }

    /// Buckets from 1 µs to 1 s with counts in proportion to a density per octave.
    fn buckets_of(density: impl Fn(f64) -> f64) -> Vec<(usize, u64)> {
        let all = (0..).map(|index| (index, bucket_range(index)));
        let all = all.skip_while(|(_, (from, _))| *from < 1024);
        let all = all.take_while(|(_, (from, _))| *from < 1 << 30);
        let counted = all.map(|(index, (from, to))| {
            let (from, to) = ((from as f64).log2(), (to as f64).log2());
            let count = 1e12 * (to - from) * density((from + to) / 2.0);
            (index, count as u64)
        });
        counted.collect()
    }

    #[test]
    fn log_uniform_latency_has_level_shares() {
        let shares = drawn_shares(buckets_of(|_| 1.0));
        // 20 octaves from a bin's start to another's, and an empty bin on either side.
        let [0.0, inner @ .., 0.0] = shares.as_slice() else {
            panic!("{shares:?}");
        };
        assert_eq!(inner.len(), 100);
        for share in inner {
            assert!((share - 1.0).abs() < 1e-6, "{shares:?}");
        }
    }

    #[test]
    fn smooth_peak_of_latency_has_no_second_peak() {
        let peak = |octave: f64| (-((octave - 20.3) / 6.0).powi(2)).exp();
        let shares = drawn_shares(buckets_of(peak));
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6);
        let rises: Vec<bool> = shares.windows(2).map(|pair| pair[1] > pair[0]).collect();
        let turns = rises.windows(2).filter(|pair| pair[0] != pair[1]);
        assert_eq!(turns.count(), 1, "{shares:?}");
    }

    #[test]
    fn latency_of_zero_is_in_the_first_bin() {
        let shares = drawn_shares(vec![(0, 3), (1, 5)]);
        assert!((shares[0] - 50.0).abs() < 1e-9, "{shares:?}");
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-9);
    }
}
