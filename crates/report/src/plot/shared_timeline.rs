//! Rates and latencies of several results over time: one line per result.

use super::chart_data::{ChartPanel, ChartSeries, SeriesShape, TimeMoments};
use super::chart_scales::seconds_axis;
use super::panel_styles::series_styles;
use super::plot_input::{ChartParts, PlotInput};
use super::series_style::{SERIES_MAX, SeriesStyle};
use super::time_plot::{
    TimedRun, run_moments, timed_runs, timeline_title, track_axis, track_points,
};
use crate::html::document::{PageUnit, Track};
use crate::unique;

/// Percentile of latency that a line of a result shows.
const PERCENTILE: &str = "p99";

/// Draws the same run of several subjects. `None`: fewer than two subjects have it.
pub(super) fn shared_timeline(input: &PlotInput) -> Option<ChartParts> {
    let runs = timed_runs(input);
    let first = runs.first()?;
    let mut shared = same_runs(&runs);
    let total = shared.len();
    if total < 2 {
        return None;
    }
    shared.truncate(SERIES_MAX);
    let keys = shared.iter().map(|timed| (timed.subject.as_str(), ""));
    let styles = series_styles(input, keys.collect());
    let panels = wanted_tracks(first).into_iter();
    let panels = panels.map(|track| panel(&shared, &styles, track));
    let panels: Vec<ChartPanel> = panels.collect();
    let mut notes = Vec::new();
    if total < runs.len() {
        notes.push(format!("{} of {} runs", shared.len(), runs.len()));
    } else if shared.len() < total {
        notes.push(format!("{} of {total} results", shared.len()));
    }
    let moments: Vec<TimeMoments> = (shared.iter())
        .map(|timed| run_moments(timed.run, timed.series))
        .collect();
    let ramps = unique(
        moments
            .iter()
            .map(|moments| moments.ramp_end_s.map(f64::to_bits)),
    );
    let ramp_end_s = match ramps.as_slice() {
        [one] => one.map(f64::from_bits),
        _ => {
            notes.push("the ramps of the runs differ and are not shaded".to_owned());
            None
        }
    };
    let events: usize = moments.iter().map(|moments| moments.events_s.len()).sum();
    if events > 0 {
        notes.push("events are marked in the chart of a single result".to_owned());
    }
    let starts = shared.iter().filter_map(|timed| timed.series.at_s.first());
    let start = starts.copied().fold(f64::INFINITY, f64::min);
    let end = shared.iter().map(|timed| timed.series.end_s);
    let end = end.fold(0.0, f64::max);
    Some(ChartParts {
        title: timeline_title(first.run),
        x: seconds_axis("seconds since the start of the run", start.floor(), end),
        moments: TimeMoments {
            ramp_end_s,
            events_s: Vec::new(),
        },
        panels,
        notes,
        subjects: shared.iter().map(|timed| timed.subject.clone()).collect(),
    })
}

/// The run of each subject with the name of the first run. A subject with a single run has that
/// one. Runs with other directions than the first run are no part of the chart.
fn same_runs<'a>(runs: &'a [TimedRun<'a>]) -> Vec<&'a TimedRun<'a>> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let wanted = directions(first);
    let subjects = unique(runs.iter().map(|timed| timed.subject));
    let of_subject = |subject: &String| {
        let own: Vec<&TimedRun<'_>> = (runs.iter())
            .filter(|timed| timed.subject == subject)
            .collect();
        let mut named = own.iter().filter(|timed| timed.run.name == first.run.name);
        let same = named.find(|timed| directions(timed) == wanted);
        match (same, own.as_slice()) {
            (Some(same), _) => Some(*same),
            (None, [only]) if directions(only) == wanted => Some(*only),
            (None, _) => None,
        }
    };
    subjects.into_iter().filter_map(of_subject).collect()
}

/// The directions that a run has a rate of.
fn directions<'a>(timed: &TimedRun<'a>) -> Vec<&'a str> {
    let tracks = timed.series.tracks.iter();
    let rates = tracks.filter(|track| track.group == "IOPS");
    rates.map(|track| track.name.as_str()).collect()
}

/// Group and name of the tracks that have a panel: the rate of each direction, the bandwidth of a
/// single direction, and one percentile of latency.
fn wanted_tracks<'a>(first: &'a TimedRun<'_>) -> Vec<(&'a str, &'a str)> {
    let is_single = directions(first).len() == 1;
    let is_wanted = |track: &&Track| match track.group.as_str() {
        "latency" => track.name == PERCENTILE,
        "bandwidth" => is_single,
        _ => true,
    };
    let wanted = first.series.tracks.iter().filter(is_wanted);
    wanted
        .map(|track| (track.group.as_str(), track.name.as_str()))
        .collect()
}

/// The track of each result that has it.
fn panel(
    shared: &[&TimedRun<'_>],
    styles: &[SeriesStyle],
    (group, name): (&str, &str),
) -> ChartPanel {
    let mut unit = PageUnit::Count;
    let mut series: Vec<ChartSeries> = Vec::new();
    for (timed, style) in shared.iter().zip(styles) {
        let mut tracks = timed.series.tracks.iter();
        let Some(track) = tracks.find(|track| track.group == group && track.name == name) else {
            continue;
        };
        unit = track.unit;
        let points = track_points(timed.series, track);
        series.push(style.series(timed.subject.clone(), SeriesShape::Step, points));
    }
    let points = series.iter().flat_map(|series| &series.points);
    let values: Vec<f64> = points.filter_map(|point| point.y).collect();
    let y = track_axis(&format!("{group}, {name}"), unit, &values);
    ChartPanel::of_series(y, series)
}
