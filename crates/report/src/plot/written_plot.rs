//! Write rate over the bytes written, of the main write workloads of each subject.

use super::chart_data::{ChartAxis, ChartPanel, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::linear_axis;
use super::figure_rows::{is_flushed, total_depth};
use super::panel_styles::series_styles;
use super::plot_input::{ChartParts, PlotInput, SEPARATOR};
use super::series_style::{SERIES_MAX, SeriesKey};
use super::time_plot::{own_series, whole_slices};
use crate::axis_numbers::without_end_zeros;
use crate::html::document::{PageRun, PageSeries, PageUnit};
use crate::html::subject_names::is_measured;
use crate::listed_names::listed_names;
use crate::unique;
use iosonde_result::words;

/// A run's write rate over the bytes written.
struct WrittenLine {
    subject: String,
    /// Name of the run.
    run: String,
    /// Order in which the lines of a subject are drawn: those of the page cache last, and before
    /// these single I/Os.
    order: (bool, bool),
    points: Vec<PlotPoint>,
}

/// Write rate over the bytes written so far: shows where a write cache ends.
pub(super) fn written_plot(input: &PlotInput) -> Option<ChartParts> {
    let mut lines = written_lines(input, is_measured);
    if lines.is_empty() {
        // The layout of a probe writes too.
        lines = written_lines(input, |run| run.preparation);
    }
    if lines.is_empty() {
        return None;
    }
    let (lines, others) = choose_lines(lines);
    let points = lines.iter().flat_map(|line| &line.points);
    let most_bytes = points.clone().map(|point| point.x).fold(0.0, f64::max);
    let most = points.filter_map(|point| point.y).fold(0.0, f64::max);
    let subjects = unique(lines.iter().map(|line| line.subject.clone()));
    let is_several = subjects.len() > 1;
    let shared = shared_run(&lines).filter(|_| is_several);
    // Lines of one workload are named by their subjects, so the axis names the workload.
    let label = match shared {
        Some(run) => format!("write rate, {run}"),
        None => "write rate".to_owned(),
    };
    let keys: Vec<SeriesKey<'_>> = lines
        .iter()
        .map(|line| (line.subject.as_str(), line.run.as_str()))
        .collect();
    let styles = series_styles(input, keys);
    let names = lines.iter().map(|line| match (shared, is_several) {
        (Some(_), _) => line.subject.clone(),
        (None, true) => format!("{}: {}", line.subject, line.run),
        (None, false) => line.run.clone(),
    });
    let series = lines.iter().zip(names).zip(styles);
    let series = series
        .map(|((line, name), style)| style.series(name, SeriesShape::Step, line.points.clone()));
    let y = linear_axis(&label, PageUnit::BytesPerS, most);
    Some(ChartParts {
        moments: TimeMoments::default(),
        title: "Write rate over bytes written".to_owned(),
        x: bytes_axis("bytes written", most_bytes),
        panels: vec![ChartPanel::of_series(y, series.collect())],
        notes: left_out_note(&lines, &others).into_iter().collect(),
        subjects,
    })
}

fn written_lines(input: &PlotInput, is_wanted: impl Fn(&PageRun) -> bool) -> Vec<WrittenLine> {
    let runs = input.report.runs.iter().zip(&input.subjects);
    let runs = runs.filter(|(run, _)| is_wanted(run));
    let lines = runs.filter_map(|(run, subject)| {
        Some(WrittenLine {
            subject: subject.clone(),
            run: run.name.clone(),
            order: drawing_order(run),
            points: written_points(own_series(run)?)?,
        })
    });
    lines.collect()
}

/// Whether the page cache takes the writes, and whether the run has single I/Os.
fn drawing_order(run: &PageRun) -> (bool, bool) {
    let mut figures = run.figures.iter();
    (
        is_flushed(run),
        figures.all(|figure| total_depth(figure) <= 1),
    )
}

/// Chooses the lines to draw in rounds: each round has one run of each subject. A round that does
/// not fit is left out, so each subject has as many lines as the others. The second value has the
/// other lines.
fn choose_lines(lines: Vec<WrittenLine>) -> (Vec<WrittenLine>, Vec<WrittenLine>) {
    let subjects = unique(lines.iter().map(|line| line.subject.as_str()));
    let ordered = subjects.into_iter().map(|subject| {
        let own = (0..lines.len()).filter(|index| lines[*index].subject == subject);
        let mut own: Vec<usize> = own.collect();
        own.sort_by_key(|index| lines[*index].order);
        own
    });
    let ordered: Vec<Vec<usize>> = ordered.collect();
    let mut chosen: Vec<usize> = Vec::new();
    for round in 0..lines.len() {
        let next = ordered.iter().filter_map(|own| own.get(round));
        let next: Vec<usize> = next.copied().collect();
        if round > 0 && chosen.len() + next.len() > SERIES_MAX {
            break;
        }
        chosen.extend(next);
    }
    chosen.truncate(SERIES_MAX);
    let indexed = lines.into_iter().enumerate();
    let (drawn, others): (Vec<_>, Vec<_>) = indexed.partition(|(index, _)| chosen.contains(index));
    let lines = |indexed: Vec<(usize, WrittenLine)>| -> Vec<WrittenLine> {
        indexed.into_iter().map(|(_, line)| line).collect()
    };
    (lines(drawn), lines(others))
}

/// Name of the run of all lines. `None`: they differ.
fn shared_run(lines: &[WrittenLine]) -> Option<&str> {
    let runs = unique(lines.iter().map(|line| line.run.as_str()));
    match runs.as_slice() {
        [run] => Some(*run),
        _ => None,
    }
}

/// Note on the runs that are left out, with the names of those that no subject draws.
fn left_out_note(drawn: &[WrittenLine], others: &[WrittenLine]) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let is_drawn = |run: &str| drawn.iter().any(|line| line.run == run);
    let names = others.iter().map(|line| line.run.clone());
    let names: Vec<String> = names.filter(|run| !is_drawn(run)).collect();
    let total = drawn.len() + others.len();
    let count = format!("{} of {total} runs", drawn.len());
    Some(match names.is_empty() {
        true => count,
        false => format!(
            "{count}, without {}",
            listed_names(&unique(names), SEPARATOR)
        ),
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
    for (index, ((start, end), rate)) in slices.enumerate() {
        if index < whole {
            points.push(PlotPoint::new(bytes, *rate));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::document::Track;

    fn line(subject: &str, run: &str, order: (bool, bool)) -> WrittenLine {
        WrittenLine {
            subject: subject.to_owned(),
            run: run.to_owned(),
            order,
            points: Vec::new(),
        }
    }

    /// The write runs of a probe in their order.
    fn probe(subject: &str) -> Vec<WrittenLine> {
        vec![
            line(subject, "single write", (false, true)),
            line(subject, "flushed write", (true, true)),
            line(subject, "random write", (false, false)),
            line(subject, "sequential write", (false, false)),
        ]
    }

    fn names(lines: &[WrittenLine]) -> Vec<String> {
        let names = lines.iter();
        names
            .map(|line| format!("{} {}", line.subject, line.run))
            .collect()
    }

    #[test]
    fn written_lines_of_many_subjects_are_their_main_workload() {
        let all = ["a", "b", "c", "d"].map(probe).into_iter().flatten();
        let (drawn, others) = choose_lines(all.collect());
        let expected = ["a", "b", "c", "d"].map(|subject| format!("{subject} random write"));
        assert_eq!(names(&drawn), expected);
        assert_eq!(shared_run(&drawn), Some("random write"));
        assert_eq!(
            left_out_note(&drawn, &others).unwrap(),
            "4 of 16 runs, without single write, flushed write, sequential write"
        );
    }

    /// The rate ended with a cliff, because the last slice was a quarter of a full one.
    #[test]
    fn short_last_slice_adds_bytes_and_no_rate() {
        let track = Track {
            group: "bandwidth".to_owned(),
            name: "write".to_owned(),
            unit: PageUnit::BytesPerS,
            values: vec![Some(1000.0), Some(1000.0), Some(400.0)],
        };
        let series = PageSeries {
            of: "run".to_owned(),
            at_s: vec![0.0, 1.0, 2.0],
            end_s: 2.25,
            ramp: 0,
            tracks: vec![track],
        };
        let points = written_points(&series).unwrap();
        assert!(points.iter().all(|point| point.y == Some(1000.0)));
        let bytes: Vec<f64> = points.iter().map(|point| point.x).collect();
        assert_eq!(bytes, [0.0, 1000.0, 2100.0]);
    }

    #[test]
    fn written_lines_of_two_subjects_are_chosen_alike() {
        let all = probe("a").into_iter().chain(probe("b"));
        let (drawn, others) = choose_lines(all.collect());
        assert_eq!(drawn.len(), 6);
        let others = names(&others);
        assert_eq!(others, ["a flushed write", "b flushed write"]);
    }
}
