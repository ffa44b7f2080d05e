//! Latency by percentile, latency over the offered rate, and histograms of latency.

use super::chart_data::{ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{linear_axis, log_axis, nines_axis};
use super::depth_plot::tail_over_depth;
use super::figure_rows::{PlotFigure, chart_names, drawn_rows, figure_rows};
use super::plot_input::{ChartParts, PlotInput};
use crate::html::curve::{bucket_range, curve_tails};
use crate::html::document::{LoadPoint, PageLatency, PageUnit};
use crate::unique;

/// Curves of a load study: name, and index of the percentile. The last curve is the maximum.
const LOAD_CURVES: [(&str, Option<usize>); 5] = [
    ("p50", Some(0)),
    ("p95", Some(1)),
    ("p99", Some(2)),
    ("p99.9", Some(3)),
    ("longest", None),
];

/// Latency by percentile of single runs, over the offered rate of load studies, or the 99th
/// percentile over depth of sweeps.
pub(super) fn latency_plot(input: &PlotInput) -> Option<ChartParts> {
    by_percentile(input)
        .or_else(|| over_offered_rate(input))
        .or_else(|| tail_over_depth(input))
}

fn by_percentile(input: &PlotInput) -> Option<ChartParts> {
    let (mut rows, total) = drawn_rows(figure_rows(&input.report, &input.subjects));
    rows.retain(|row| percentile_points(&row.figure.latency).len() > 1);
    if rows.is_empty() {
        return None;
    }
    let curves = rows
        .iter()
        .map(|row| percentile_points(&row.figure.latency));
    let curves: Vec<Vec<(f64, f64)>> = curves.collect();
    let rarities: Vec<f64> = curves.iter().flatten().map(|(rarity, _)| *rarity).collect();
    let latencies: Vec<f64> = curves.iter().flatten().map(|(_, ns)| *ns).collect();
    let series = chart_names(&rows).into_iter().zip(curves).enumerate();
    let series = series.map(|(slot, (name, curve))| ChartSeries {
        name,
        slot,
        shape: SeriesShape::Line,
        points: curve
            .into_iter()
            .map(|(rarity, ns)| PlotPoint::new(rarity, Some(ns.max(1.0))))
            .collect(),
        band: Vec::new(),
    });
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: "Latency by percentile".to_owned(),
        x: nines_axis(&rarities),
        panels: vec![ChartPanel {
            y: log_axis("latency", PageUnit::Ns, &latencies),
            series: series.collect(),
            cells: Vec::new(),
        }],
        notes: left_out(&rows, total),
        subjects: drawn_subjects(&rows),
    })
}

/// Note on rows that have no colour left.
fn left_out(rows: &[PlotFigure], total: usize) -> Vec<String> {
    let is_cut = rows.len() < total;
    let note = is_cut.then(|| format!("{} of {total} workloads", rows.len()));
    note.into_iter().collect()
}

fn drawn_subjects(rows: &[PlotFigure]) -> Vec<String> {
    unique(rows.iter().map(|row| row.subject.to_owned()))
}

/// Rarity (1 divided by the share of slower I/Os) and latency. The curve ends at the maximum.
fn percentile_points(latency: &PageLatency) -> Vec<(f64, f64)> {
    if latency.curve_ns.is_empty() {
        let marks = latency.marks.iter();
        return marks.map(|(tail, ns)| (1.0 / tail, *ns)).collect();
    }
    let sampled = curve_tails().zip(&latency.curve_ns);
    let sampled = sampled.map(|(tail, ns)| (1.0 / tail, *ns as f64));
    let count = latency.count as f64;
    if latency.count <= 1 {
        return sampled.collect();
    }
    let inner = sampled.filter(|(rarity, _)| *rarity < count * 0.999);
    inner.chain([(count, latency.max_ns)]).collect()
}

fn over_offered_rate(input: &PlotInput) -> Option<ChartParts> {
    let loads = &input.report.loads;
    let load = loads.iter().find(|load| !load.points.is_empty())?;
    let mut points: Vec<&LoadPoint> = load.points.iter().collect();
    points.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    let series = LOAD_CURVES.iter().enumerate();
    let series: Vec<ChartSeries> = series
        .map(|(slot, (name, percentile))| {
            let known = points.iter().filter_map(|point| {
                let ns = match percentile {
                    Some(index) => point.percentiles_ns[*index]?,
                    None => point.max_ns,
                };
                Some(PlotPoint {
                    x: point.offered_per_s,
                    y: Some(ns),
                    hollow: !point.kept_up,
                })
            });
            ChartSeries {
                name: (*name).to_owned(),
                slot,
                shape: SeriesShape::Dotted,
                points: known.collect(),
                band: Vec::new(),
            }
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let all = series.iter().flat_map(|series| &series.points);
    let latencies: Vec<f64> = all.filter_map(|point| point.y).collect();
    let most = points.last()?.offered_per_s;
    let mut notes = Vec::new();
    if points.iter().any(|point| !point.kept_up) {
        notes.push("hollow points fell behind the offered rate".to_owned());
    }
    let subject = input.subject_of_result(&load.source, &load.target);
    if loads.len() > 1 {
        notes.push(format!("1 of {} load studies: {subject}", loads.len()));
    }
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: "Latency over offered rate".to_owned(),
        x: linear_axis("I/Os offered per second", PageUnit::Iops, most),
        panels: vec![ChartPanel {
            y: log_axis("latency", PageUnit::Ns, &latencies),
            series,
            cells: Vec::new(),
        }],
        notes,
        subjects: vec![subject],
    })
}

/// Share of the I/Os in each bucket of latency.
pub(super) fn histogram_plot(input: &PlotInput) -> Option<ChartParts> {
    let (mut rows, total) = drawn_rows(figure_rows(&input.report, &input.subjects));
    rows.retain(|row| row.figure.latency.count > 0 && !row.figure.latency.buckets.is_empty());
    let used = rows.iter().flat_map(|row| &row.figure.latency.buckets);
    let used: Vec<usize> = used.map(|(index, _)| *index).collect();
    // One bucket more on either side, where all lines are zero.
    let first = used.iter().min()?.saturating_sub(1);
    let last = used.iter().max()? + 1;
    let start = |index: usize| (bucket_range(index).0 as f64).max(1.0);
    let series = chart_names(&rows).into_iter().zip(&rows).enumerate();
    let series: Vec<ChartSeries> = series
        .map(|(slot, (name, row))| {
            let latency = &row.figure.latency;
            let points = (first..=last).map(|index| {
                let mut buckets = latency.buckets.iter();
                let count = buckets.find(|(bucket, _)| *bucket == index);
                let count = count.map_or(0, |(_, count)| *count);
                let share = 100.0 * count as f64 / latency.count as f64;
                PlotPoint::new(start(index), Some(share))
            });
            ChartSeries {
                name,
                slot,
                shape: SeriesShape::Area,
                points: points.collect(),
                band: Vec::new(),
            }
        })
        .collect();
    let shares = series.iter().flat_map(|series| &series.points);
    let most = shares.filter_map(|point| point.y).fold(0.0, f64::max);
    let ends = [start(first), bucket_range(last).1 as f64];
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: "Histogram of latency".to_owned(),
        x: log_axis("latency", PageUnit::Ns, &ends),
        panels: vec![ChartPanel {
            y: linear_axis("share of I/Os", PageUnit::Percent, most),
            series,
            cells: Vec::new(),
        }],
        notes: left_out(&rows, total),
        subjects: drawn_subjects(&rows),
    })
}
