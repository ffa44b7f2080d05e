//! Rates and latencies of a run over time.

use super::chart_data::{ChartAxis, ChartPanel, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{linear_axis, log_axis, seconds_axis};
use super::plot_input::{ChartParts, PlotInput};
use super::series_style::{SERIES_MAX, SeriesStyle};
use crate::axis_numbers::{log_bounds, without_end_zeros};
use crate::html::document::{PageRun, PageSeries, PageUnit, Track};
use crate::html::subject_names::is_measured;
use crate::probe::row::title_of_phase;
use crate::unique;

/// A last slice shorter than this share of the one before is not drawn.
const CUT_SHARE: f64 = 0.5;

/// Latencies that span more than this factor need a logarithmic axis.
const LATENCY_SPAN: f64 = 20.0;

/// Most events whose texts stand at the bottom. All events are drawn.
const EVENT_NOTES_MAX: usize = 3;

/// A run with a series.
pub(super) struct TimedRun<'a> {
    pub(super) run: &'a PageRun,
    pub(super) subject: &'a String,
    pub(super) series: &'a PageSeries,
}

/// The measured runs that have a series.
pub(super) fn timed_runs(input: &PlotInput) -> Vec<TimedRun<'_>> {
    let runs = input.report.runs.iter().zip(&input.subjects);
    let runs = runs.filter(|(run, _)| is_measured(run));
    let with_series = runs.filter_map(|(run, subject)| {
        Some(TimedRun {
            run,
            subject,
            series: own_series(run)?,
        })
    });
    with_series.collect()
}

/// IOPS, bandwidth and latency of the first run that has a series.
pub(super) fn timeline_plot(input: &PlotInput) -> Option<ChartParts> {
    let with_series = timed_runs(input);
    let &TimedRun {
        run,
        subject,
        series,
    } = with_series.first()?;
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
        title: timeline_title(run),
        x: seconds_axis("seconds since the start of the run", start, series.end_s),
        moments,
        panels: panels.collect(),
        notes,
        subjects: vec![subject.clone()],
    })
}

/// Title of a run over time: its phase with block size and depth, if it is one of a probe. The name
/// of another run is written as the user wrote it, after a word that starts with a capital.
pub(super) fn timeline_title(run: &PageRun) -> String {
    let depth = run.figures.first().map(|figure| figure.iodepth);
    let phase = run.phase.zip(depth);
    let title = phase.and_then(|(phase, depth)| title_of_phase(phase, depth));
    let title = title.unwrap_or_else(|| run.name.clone());
    match title.starts_with(char::is_lowercase) {
        true => format!("Run {title} over time"),
        false => format!("{title} over time"),
    }
}

/// End of the ramp and times of events.
pub(super) fn run_moments(run: &PageRun, series: &PageSeries) -> TimeMoments {
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
pub(super) fn own_series(run: &PageRun) -> Option<&PageSeries> {
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
    let lines = tracks.iter().enumerate();
    let slotted = lines.map(|(index, track)| (track_slot(&track.name, index), track));
    let lines = slotted.map(|(slot, track)| {
        let style = SeriesStyle { slot, dash: slot };
        let points = track_points(series, track);
        style.series(track.name.clone(), SeriesShape::Step, points)
    });
    ChartPanel::of_series(track_axis(group, unit, &values), lines.collect())
}

/// Vertical axis of the values of a track.
pub(super) fn track_axis(label: &str, unit: PageUnit, values: &[f64]) -> ChartAxis {
    let (min, max) = log_bounds(values);
    if unit == PageUnit::Ns && max > LATENCY_SPAN * min {
        log_axis(label, unit, values)
    } else {
        linear_axis(label, unit, values.iter().copied().fold(0.0, f64::max))
    }
}

/// Steps of a track, from its first slice to the end of the series.
pub(super) fn track_points(series: &PageSeries, track: &Track) -> Vec<PlotPoint> {
    let starts = series.at_s.iter().take(whole_slices(series));
    let mut points: Vec<PlotPoint> = starts
        .zip(&track.values)
        .map(|(at, value)| PlotPoint::new(*at, *value))
        .collect();
    let last = points.last().and_then(|point| point.y);
    points.push(PlotPoint::new(series.end_s, last));
    points
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

/// Number of slices to draw. A slice that the end of the run cut short is left out: its rate is not
/// that of a whole slice, and would look like a change at the end.
pub(super) fn whole_slices(series: &PageSeries) -> usize {
    let count = series.at_s.len();
    let &[.., before, begin] = series.at_s.as_slice() else {
        return count;
    };
    let is_cut = series.end_s - begin < CUT_SHARE * (begin - before);
    count - usize::from(is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::plot::tests::run;
    use iosonde_job::plan::ReadWriteMode;
    use iosonde_study::probe::ProbePhase;

    /// Starts of slices, the end of the last one, and the number of slices that charts draw. The
    /// tests of the page read the same file.
    const CASES: &str = include_str!("whole_slices.json");

    #[test]
    fn timeline_of_a_phase_has_title_of_the_phase() {
        let mut builder = HtmlReportBuilder::default();
        builder.run("file", run("random write", ReadWriteMode::Read, 8));
        let mut report = builder.into_page_report(None);
        let run = &mut report.runs[0];
        assert_eq!(timeline_title(run), "Run random write over time");
        run.phase = Some(ProbePhase::RandomRead);
        assert_eq!(timeline_title(run), "4k random read, depth 8 over time");
    }

    /// A slice of 24.5 ms halved the rate at the end of a chart whose other slices had 100 ms.
    #[test]
    fn last_slice_shorter_than_half_is_not_drawn() {
        let cases: Vec<(Vec<f64>, f64, usize)> = serde_json::from_str(CASES).unwrap();
        assert!(cases.iter().any(|(at_s, _, drawn)| *drawn < at_s.len()));
        for (at_s, end_s, drawn) in cases {
            let series = PageSeries {
                of: "run".to_owned(),
                at_s,
                end_s,
                ramp: 0,
                tracks: Vec::new(),
            };
            assert_eq!(whole_slices(&series), drawn, "{series:?}");
        }
    }
}
