//! Latency by percentile, and latency over the offered rate.

use super::chart_data::{ChartLimit, ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{linear_axis, log_axis, nines_axis};
use super::depth_plot::tail_over_depth;
use super::figure_rows::{DrawnRows, chart_names, chart_title, figure_rows};
use super::panel_styles::series_styles;
use super::plot_input::{ChartParts, PlotInput};
use super::series_style::{SERIES_MAX, SeriesKey, SeriesStyle};
use crate::html::curve::curve_tails;
use crate::html::document::{LoadPoint, PageLatency, PageLoad, PageUnit, RateState};
use crate::load::objective_limits::{ObjectiveLimit, ScaleSide, scale_with_objectives};
use crate::unique;

/// Curves of a load study: name, and index of the percentile. The last curve is the maximum.
const LOAD_CURVES: [(&str, Option<usize>); 5] = [
    ("p50", Some(0)),
    ("p95", Some(1)),
    ("p99", Some(2)),
    ("p99.9", Some(3)),
    ("longest", None),
];

/// Percentile of the chart of several load studies, and its index in the points.
const TAIL_PERCENT: f64 = 99.0;
const TAIL_INDEX: usize = 2;

/// Note on hollow points.
const BEHIND_NOTE: &str = "hollow points fell behind the offered rate";

/// Latency by percentile of single runs, over the offered rate of load studies, or the 99th
/// percentile over depth of sweeps. Several load studies have one line each.
pub(super) fn latency_plot(input: &PlotInput) -> Option<ChartParts> {
    by_percentile(input)
        .or_else(|| tails_over_offered_rate(input))
        .or_else(|| over_offered_rate(input))
        .or_else(|| tail_over_depth(input))
}

fn by_percentile(input: &PlotInput) -> Option<ChartParts> {
    let mut rows = figure_rows(&input.report, &input.subjects);
    rows.retain(|row| percentile_points(&row.figure.latency).len() > 1);
    if rows.is_empty() {
        return None;
    }
    let drawn = DrawnRows::choose(rows);
    let curves = drawn.rows.iter();
    let curves = curves.map(|row| percentile_points(&row.figure.latency));
    let curves: Vec<Vec<(f64, f64)>> = curves.collect();
    let rarities: Vec<f64> = curves.iter().flatten().map(|(rarity, _)| *rarity).collect();
    let latencies: Vec<f64> = curves.iter().flatten().map(|(_, ns)| *ns).collect();
    let styles = series_styles(input, drawn.keys());
    let series = chart_names(&drawn.rows).into_iter().zip(curves).zip(styles);
    let series = series.map(|((name, curve), style)| {
        let points = curve.into_iter();
        let points = points.map(|(rarity, ns)| PlotPoint::new(rarity, Some(ns.max(1.0))));
        style.series(name, SeriesShape::Line, points.collect())
    });
    let y = log_axis("latency", PageUnit::Ns, &latencies);
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: chart_title("Latency by percentile", &drawn.rows),
        x: nines_axis(&rarities),
        panels: vec![ChartPanel::of_series(y, series.collect())],
        notes: drawn.note().into_iter().collect(),
        subjects: drawn.subjects(),
    })
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

/// The 99th percentile of each of several load studies over their offered rates. `None`: fewer than
/// two studies have it.
fn tails_over_offered_rate(input: &PlotInput) -> Option<ChartParts> {
    let lines = input.report.loads.iter().filter_map(|load| {
        let points = tail_points(load);
        (!points.is_empty()).then_some((load, points))
    });
    let mut lines: Vec<(&PageLoad, Vec<PlotPoint>)> = lines.collect();
    let total = lines.len();
    if total < 2 {
        return None;
    }
    lines.truncate(SERIES_MAX);
    let loads: Vec<&PageLoad> = lines.iter().map(|(load, _)| *load).collect();
    let subjects = loads
        .iter()
        .map(|load| input.subject_of_result(&load.source, &load.target));
    let subjects: Vec<String> = subjects.collect();
    let limits = loads.iter().flat_map(|load| &load.limits);
    let limits = limits.filter(|limit| limit.percentile.total_cmp(&TAIL_PERCENT).is_eq());
    let limits: Vec<&ObjectiveLimit> = limits.collect();
    let workloads = load_workloads(&loads, &subjects);
    let parts = || subjects.iter().zip(&workloads);
    let keys = parts().map(|(subject, workload)| (subject.as_str(), workload.as_str()));
    let keys: Vec<SeriesKey<'_>> = keys.collect();
    let styles = series_styles(input, keys);
    let names = parts().map(|(subject, workload)| format!("{subject}{workload}"));
    let series = names.zip(styles).zip(lines);
    let series =
        series.map(|((name, style), (_, points))| style.series(name, SeriesShape::Dotted, points));
    let series: Vec<ChartSeries> = series.collect();
    let drawn = series.len();
    let note = (drawn < total).then(|| format!("{drawn} of {total} load studies"));
    let title = "99th percentile of latency over offered rate";
    Some(offered_rate_chart(title, series, &limits, note, subjects))
}

/// A chart of these latencies over the offered rate.
fn offered_rate_chart(
    title: &str,
    series: Vec<ChartSeries>,
    limits: &[&ObjectiveLimit],
    note: Option<String>,
    subjects: Vec<String>,
) -> ChartParts {
    let points = || series.iter().flat_map(|series| &series.points);
    let mut latencies: Vec<f64> = points().filter_map(|point| point.y).collect();
    let (limits, beyond) = lines_and_notes(limits, &latencies);
    latencies.extend(limits.iter().map(|limit| limit.value));
    let most = points().map(|point| point.x).fold(0.0, f64::max);
    let is_behind = points().any(|point| point.hollow);
    let behind = is_behind.then(|| BEHIND_NOTE.to_owned());
    ChartParts {
        moments: TimeMoments::default(),
        title: title.to_owned(),
        x: linear_axis("I/Os offered per second", PageUnit::Iops, most),
        panels: vec![ChartPanel {
            limits,
            ..ChartPanel::of_series(log_axis("latency", PageUnit::Ns, &latencies), series)
        }],
        notes: behind.into_iter().chain(beyond).chain(note).collect(),
        subjects,
    }
}

/// Lines at the objectives that the scale of the drawn `latencies_ns` contains, and notes on the
/// others. Studies with the same objective share a line.
fn lines_and_notes(
    limits: &[&ObjectiveLimit],
    latencies_ns: &[f64],
) -> (Vec<ChartLimit>, Vec<String>) {
    let objectives_ns = limits.iter().map(|limit| limit.latency_ns);
    let scale_ns = scale_with_objectives(latencies_ns.iter().copied(), objectives_ns);
    let Some(scale_ns) = scale_ns else {
        return (Vec::new(), Vec::new());
    };
    let (mut lines, mut notes): (Vec<ChartLimit>, Vec<String>) = (Vec::new(), Vec::new());
    for limit in limits {
        match ScaleSide::of_latency(limit.latency_ns, scale_ns) {
            Some(side) => notes.push(side.note(&limit.name)),
            None if lines.iter().any(|line| line.name == limit.name) => {}
            None => lines.push(ChartLimit {
                name: limit.name.clone(),
                value: limit.latency_ns,
            }),
        }
    }
    (lines, unique(notes))
}

/// The 99th percentile at each offered rate, in ascending order.
fn tail_points(load: &PageLoad) -> Vec<PlotPoint> {
    let points = drawn_points(load).into_iter();
    let points =
        points.filter_map(|point| Some(latency_point(point, point.percentiles_ns[TAIL_INDEX]?)));
    points.collect()
}

/// The rates whose latencies charts draw, in ascending order.
fn drawn_points(load: &PageLoad) -> Vec<&LoadPoint> {
    let points = load.points.iter().filter(|point| point.state.is_drawn());
    let mut points: Vec<&LoadPoint> = points.collect();
    points.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    points
}

/// A latency at the rate that was offered.
fn latency_point(point: &LoadPoint, ns: f64) -> PlotPoint {
    PlotPoint {
        x: point.offered_per_s,
        y: Some(ns),
        hollow: point.state == RateState::FellBehind,
    }
}

/// Ends of the names of load studies after their subjects, which make the names unique. Studies of
/// one subject are named by their steps too, if they are steps of a suite.
fn load_workloads(loads: &[&PageLoad], subjects: &[String]) -> Vec<String> {
    let mut known: Vec<(&str, String)> = Vec::new();
    for (index, (load, subject)) in loads.iter().zip(subjects).enumerate() {
        let is_shared = subjects.iter().filter(|other| *other == subject).count() > 1;
        let mut workload = match &load.step {
            Some(step) if is_shared => format!(": {step}"),
            _ => String::new(),
        };
        if known.contains(&(subject.as_str(), workload.clone())) {
            workload.push_str(&format!(" #{}", index + 1));
        }
        known.push((subject.as_str(), workload));
    }
    known.into_iter().map(|(_, workload)| workload).collect()
}

fn over_offered_rate(input: &PlotInput) -> Option<ChartParts> {
    let loads = &input.report.loads;
    let mut drawn = loads.iter().map(|load| (load, drawn_points(load)));
    let (load, points) =
        drawn.find(|(_, points)| points.iter().any(|point| point.max_ns.is_some()))?;
    let series = LOAD_CURVES.iter().enumerate();
    let series: Vec<ChartSeries> = series
        .map(|(number, (name, percentile))| {
            let style = SeriesStyle::numbered(number);
            let known = points.iter().filter_map(|point| {
                let ns = match percentile {
                    Some(index) => point.percentiles_ns[*index]?,
                    None => point.max_ns?,
                };
                Some(latency_point(point, ns))
            });
            style.series((*name).to_owned(), SeriesShape::Dotted, known.collect())
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let subject = input.subject_of_result(&load.source, &load.target);
    let total = loads.len();
    let note = (total > 1).then(|| format!("1 of {total} load studies: {subject}"));
    let title = "Latency over offered rate";
    let limits: Vec<&ObjectiveLimit> = load.limits.iter().collect();
    Some(offered_rate_chart(
        title,
        series,
        &limits,
        note,
        vec![subject],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::load::tests::{at, measured};
    use crate::plot::{ChartKind, PlotSource};
    use iosonde_result::run::IoFailure;
    use iosonde_study::load::{LoadLatency, LoadOptions, LoadResult};

    /// A load study with its rates in ascending order.
    fn study_of(rates: &[f64]) -> LoadResult {
        let options = LoadOptions {
            rates: rates.to_vec(),
            ..at(0.0, &[])
        };
        let mut result = measured("net-iops-cap", &options);
        let points = &mut result.points;
        points.sort_by(|a, b| a.offered.total().total_cmp(&b.offered.total()));
        result
    }

    /// The rates that the chart of a study draws, and whether they are hollow. Empty without a
    /// chart.
    fn drawn_rates(result: &LoadResult) -> Vec<(f64, bool)> {
        let mut builder = HtmlReportBuilder::default();
        builder.load("one", result);
        let chart = PlotSource::new(builder, None).chart(ChartKind::Latency);
        let panels = chart.iter().flat_map(|chart| &chart.panels);
        let points = panels.flat_map(|panel| &panel.series);
        let points = points.flat_map(|series| &series.points);
        let mut rates: Vec<(f64, bool)> = points.map(|point| (point.x, point.hollow)).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        rates.dedup();
        rates
    }

    #[test]
    fn interrupted_and_failed_rates_are_not_drawn() {
        let mut result = study_of(&[500.0, 1000.0, 1500.0, 2000.0, 9000.0]);
        result.points[1].interrupted = true;
        (result.points[2].interrupted, result.points[2].kept_up) = (true, false);
        result.points[3].kept_up = false;
        result.points[3].failure = Some(IoFailure {
            errno: 5,
            operation: "read".to_owned(),
            file: None,
            offset: None,
            message: "EIO".to_owned(),
        });
        assert_eq!(drawn_rates(&result), [(500.0, false), (9000.0, true)]);
        for point in &mut result.points {
            point.interrupted = true;
        }
        assert_eq!(drawn_rates(&result), []);
    }

    #[test]
    fn rate_without_measured_io_has_no_point() {
        let mut result = study_of(&[500.0, 9000.0]);
        assert_eq!(drawn_rates(&result), [(500.0, false), (9000.0, true)]);
        let behind = result.points[1].read.as_mut().unwrap();
        behind.latency = LoadLatency::default();
        assert_eq!(drawn_rates(&result), [(500.0, false)]);
    }

    #[test]
    fn objectives_near_the_drawn_series_are_lines() {
        let points = [(500.0, 5e5), (1000.0, 1e6)].map(|(x, ns)| PlotPoint::new(x, Some(ns)));
        let series = ChartSeries {
            name: "one".to_owned(),
            slot: 0,
            dash: 0,
            shape: SeriesShape::Dotted,
            points: points.to_vec(),
            band: Vec::new(),
        };
        // The longest latency of the study, which this chart does not draw, is near 100 ms.
        let limits = [10.0, 11.0, 100.0].map(|ms| ObjectiveLimit {
            percentile: TAIL_PERCENT,
            latency_ns: ms * 1e6,
            name: format!("{ms} ms"),
            beyond: None,
        });
        let limits = limits.each_ref();
        let parts = offered_rate_chart("", vec![series], &limits, None, Vec::new());
        let panel = &parts.panels[0];
        let lines: Vec<&str> = panel.limits.iter().map(|line| line.name.as_str()).collect();
        assert_eq!((lines, panel.y.max), (vec!["10 ms", "11 ms"], 2e7));
        assert_eq!(parts.notes, ["100 ms: above the scale"]);
    }
}
