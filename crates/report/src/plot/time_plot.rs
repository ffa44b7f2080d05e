//! Rates and latencies of a run over time, and the write rate over the bytes written.

use super::chart_data::{ChartAxis, ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{linear_axis, log_axis, log_bounds, seconds_axis, without_end_zeros};
use super::figure_rows::SERIES_MAX;
use super::plot_input::{ChartParts, PlotInput};
use super::subject_names::is_measured;
use crate::html::document::{PageRun, PageSeries, PageUnit, Track};
use crate::probe::row::title_of_phase;
use crate::unique;
use iosonde_result::words;

/// A last slice shorter than this share of the one before is not drawn.
const CUT_SHARE: f64 = 0.2;

/// Latencies that span more than this factor need a logarithmic axis.
const LATENCY_SPAN: f64 = 20.0;

/// Most events whose texts stand at the bottom. All events are drawn.
const EVENT_NOTES_MAX: usize = 3;

/// IOPS, bandwidth and latency of the first run that has a series.
pub(super) fn timeline_plot(input: &PlotInput) -> Option<ChartParts> {
    let runs = input.report.runs.iter().zip(&input.subjects);
    let runs = runs.filter(|(run, _)| is_measured(run));
    let with_series = runs.filter_map(|(run, subject)| Some((run, subject, own_series(run)?)));
    let with_series: Vec<(&PageRun, &String, &PageSeries)> = with_series.collect();
    let (run, subject, series) = *with_series.first()?;
    let groups = unique(series.tracks.iter().map(|track| track.group.as_str()));
    let panels = groups.into_iter().map(|group| {
        let tracks = series.tracks.iter().filter(|track| track.group == group);
        time_panel(group, series, &tracks.collect::<Vec<_>>())
    });
    let mut notes = Vec::new();
    let moments = run_moments(run, series);
    if let Some(end) = moments.ramp_end_s {
        let end = without_end_zeros(&format!("{end:.1}"));
        notes.push(format!(
            "shaded: the ramp of {end} s, which no figure counts"
        ));
    }
    let events = shown_events(run, series).take(EVENT_NOTES_MAX);
    notes.extend(events.map(|(at_s, text)| format!("dotted at {at_s:.1} s: {text}")));
    if with_series.len() > 1 {
        notes.push(format!("1 of {} runs", with_series.len()));
    }
    let start = series.at_s.first().copied().unwrap_or_default().floor();
    Some(ChartParts {
        title: format!("{} over time", run_title(run)),
        x: seconds_axis("seconds since the start of the run", start, series.end_s),
        moments,
        panels: panels.collect(),
        notes,
        subjects: vec![subject.clone()],
    })
}

/// Name of a run: that of its phase with block size and depth, if it is one of a probe.
fn run_title(run: &PageRun) -> String {
    let depth = run.figures.first().map(|figure| figure.iodepth);
    let phase = depth.filter(|_| run.study.is_some());
    let title = phase.and_then(|depth| title_of_phase(&run.name, depth));
    title.unwrap_or_else(|| run.name.clone())
}

/// End of the ramp and times of events.
fn run_moments(run: &PageRun, series: &PageSeries) -> TimeMoments {
    let ramp_end = series.at_s.get(series.ramp).unwrap_or(&series.end_s);
    TimeMoments {
        ramp_end_s: (series.ramp > 0).then_some(*ramp_end),
        events_s: shown_events(run, series).map(|(at_s, _)| at_s).collect(),
    }
}

/// Events within the chart: time in seconds, and text. Facts have the time 0.
fn shown_events<'a>(
    run: &'a PageRun,
    series: &PageSeries,
) -> impl Iterator<Item = (f64, &'a str)> + use<'a> {
    let end_s = series.end_s;
    let events = run.events.iter().filter(|event| event.at_ns > 0);
    let events = events.map(|event| (event.at_ns as f64 / 1e9, event.message.as_str()));
    events.filter(move |(at_s, _)| *at_s <= end_s)
}

/// The series of a run's I/O.
fn own_series(run: &PageRun) -> Option<&PageSeries> {
    let mut series = run.series.iter();
    series.find(|series| series.of == "run" && !series.tracks.is_empty())
}

fn time_panel(group: &str, series: &PageSeries, tracks: &[&Track]) -> ChartPanel {
    let unit = tracks.first().map_or(PageUnit::Count, |track| track.unit);
    let whole = whole_slices(series);
    let shown = tracks
        .iter()
        .flat_map(|track| track.values.iter().take(whole));
    let values: Vec<f64> = shown.filter_map(|value| *value).collect();
    let (min, max) = log_bounds(&values);
    let y = if unit == PageUnit::Ns && max > LATENCY_SPAN * min {
        log_axis(group, unit, &values)
    } else {
        linear_axis(group, unit, values.iter().copied().fold(0.0, f64::max))
    };
    let lines = tracks.iter().enumerate();
    let lines = lines.map(|(index, track)| {
        let starts = series.at_s.iter().take(whole).zip(&track.values);
        let mut points: Vec<PlotPoint> = starts
            .map(|(at, value)| PlotPoint::new(*at, *value))
            .collect();
        let last = points.last().and_then(|point| point.y);
        points.push(PlotPoint::new(series.end_s, last));
        ChartSeries {
            name: track.name.clone(),
            slot: track_slot(&track.name, index),
            shape: SeriesShape::Step,
            points,
            band: Vec::new(),
        }
    });
    ChartPanel {
        y,
        series: lines.collect(),
        cells: Vec::new(),
    }
}

/// Colour of a track, which is the same in all charts over time.
fn track_slot(name: &str, index: usize) -> usize {
    match name {
        "read" => 0,
        "write" => 1,
        "trim" | "discard" => 2,
        "p99" => 3,
        "p50" => 4,
        "max" => 5,
        _ => index % SERIES_MAX,
    }
}

/// Number of slices to draw: a slice that the end of the run cut to almost nothing has no rate.
fn whole_slices(series: &PageSeries) -> usize {
    let count = series.at_s.len();
    let &[.., before, begin] = series.at_s.as_slice() else {
        return count;
    };
    let is_cut = series.end_s - begin < CUT_SHARE * (begin - before);
    count - usize::from(is_cut)
}

/// A run's write rate over the bytes written.
struct WrittenLine {
    name: String,
    subject: String,
    points: Vec<PlotPoint>,
}

/// Write rate over the bytes written so far: shows where a write cache ends.
pub(super) fn written_plot(input: &PlotInput) -> Option<ChartParts> {
    let written = |is_wanted: &dyn Fn(&PageRun) -> bool| -> Vec<WrittenLine> {
        let runs = input.report.runs.iter().zip(&input.subjects);
        let runs = runs.filter(|(run, _)| is_wanted(run));
        runs.filter_map(|(run, subject)| {
            let points = written_points(own_series(run)?)?;
            Some(WrittenLine {
                name: input.run_name(run, subject),
                subject: subject.clone(),
                points,
            })
        })
        .collect()
    };
    let mut lines = written(&is_measured);
    if lines.is_empty() {
        // The layout of a probe writes too.
        lines = written(&|run| run.preparation);
    }
    if lines.is_empty() {
        return None;
    }
    let total = lines.len();
    lines.truncate(SERIES_MAX);
    let all = || lines.iter().flat_map(|line| &line.points);
    let most_bytes = all().map(|point| point.x).fold(0.0, f64::max);
    let most = all().filter_map(|point| point.y).fold(0.0, f64::max);
    let y = linear_axis("write rate", PageUnit::BytesPerS, most);
    let notes = (lines.len() < total).then(|| format!("{} of {total} runs", lines.len()));
    let subjects = unique(lines.iter().map(|line| line.subject.clone()));
    let series = lines.into_iter().enumerate();
    let series = series.map(|(slot, line)| ChartSeries {
        name: line.name,
        slot,
        shape: SeriesShape::Step,
        points: line.points,
        band: Vec::new(),
    });
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: "Write rate over bytes written".to_owned(),
        x: bytes_axis("bytes written", most_bytes),
        panels: vec![ChartPanel {
            y,
            series: series.collect(),
            cells: Vec::new(),
        }],
        notes: notes.into_iter().collect(),
        subjects,
    })
}

/// Bytes written before each slice, and the rate within it. `None` if nothing was written.
fn written_points(series: &PageSeries) -> Option<Vec<PlotPoint>> {
    let mut tracks = series.tracks.iter();
    let track = tracks.find(|track| track.group == "bandwidth" && track.name == "write")?;
    let whole = whole_slices(series);
    let ends = series.at_s.iter().skip(1).chain([&series.end_s]);
    let slices = series.at_s.iter().zip(ends).zip(&track.values);
    let mut bytes = 0.0;
    let mut points = Vec::new();
    for ((start, end), rate) in slices.take(whole) {
        points.push(PlotPoint::new(bytes, *rate));
        bytes += rate.unwrap_or_default() * (end - start);
    }
    let last = points.last()?.y;
    points.push(PlotPoint::new(bytes, last));
    (bytes > 0.0).then_some(points)
}

/// An axis of bytes, which has the ticks of an axis of bytes per second.
fn bytes_axis(label: &str, most: f64) -> ChartAxis {
    let mut axis = linear_axis(label, PageUnit::BytesPerS, most);
    axis.unit = PageUnit::Count;
    for tick in &mut axis.ticks {
        if tick.at > 0.0 {
            tick.text = without_end_zeros(&words::bytes(tick.at as u64));
        }
    }
    axis
}
