//! Rate, or 99th percentile of latency, over the number of I/Os in flight.

use super::chart_data::{ChartAxis, ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{counts_axis, linear_axis, log_axis};
use super::depth_lines::{DepthLine, DepthValue, PlotDepthPoint, depth_lines};
use super::hollow_points::note_hollow_points;
use super::panel_styles::panel_styles;
use super::plot_input::{ChartParts, PlotInput, SEPARATOR};
use super::series_style::{SERIES_MAX, SeriesKey, SeriesStyle};
use crate::html::document::PageUnit;
use crate::listed_names::listed_names;
use crate::unique;

/// Rates that differ by more than this factor need a logarithmic axis.
const FAR: f64 = 40.0;

/// Vertical quantity of a chart over depth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DepthMeasure {
    Iops,
    Bandwidth,
    Tail,
}

impl DepthMeasure {
    fn title(self) -> &'static str {
        match self {
            DepthMeasure::Iops => "IOPS over depth",
            DepthMeasure::Bandwidth => "Bandwidth over depth",
            DepthMeasure::Tail => "99th percentile of latency over depth",
        }
    }

    fn label(self) -> &'static str {
        match self {
            DepthMeasure::Iops => "IOPS",
            DepthMeasure::Bandwidth => "bandwidth",
            DepthMeasure::Tail => "99th percentile of latency",
        }
    }

    fn unit(self) -> PageUnit {
        match self {
            DepthMeasure::Iops => PageUnit::Iops,
            DepthMeasure::Bandwidth => PageUnit::BytesPerS,
            DepthMeasure::Tail => PageUnit::Ns,
        }
    }

    fn value(self, point: &PlotDepthPoint) -> Option<DepthValue> {
        match self {
            DepthMeasure::Iops => point.iops,
            DepthMeasure::Bandwidth => point.bytes_per_s,
            DepthMeasure::Tail => point.tail_ns,
        }
    }

    fn values(self, line: &DepthLine) -> Vec<DepthValue> {
        let points = line.points.iter();
        points.filter_map(|point| self.value(point)).collect()
    }
}

/// Lines of a panel, and those that have no room in it.
struct DepthPanel {
    measure: DepthMeasure,
    lines: Vec<DepthLine>,
    left_out: Vec<DepthLine>,
}

/// IOPS of small I/Os and bandwidth of large I/Os over depth, each in a panel of its own.
pub(super) fn rate_over_depth(input: &PlotInput) -> Option<ChartParts> {
    let (small, large): (Vec<_>, Vec<_>) = depth_lines(input)
        .into_iter()
        .partition(|line| !line.is_large);
    let small = DepthPanel::choose(small, DepthMeasure::Iops);
    let large = DepthPanel::choose(large, DepthMeasure::Bandwidth);
    let panels: Vec<DepthPanel> = small.into_iter().chain(large).collect();
    depth_chart(input, &panels)
}

/// 99th percentile of latency over depth.
pub(super) fn tail_over_depth(input: &PlotInput) -> Option<ChartParts> {
    let panel = DepthPanel::choose(depth_lines(input), DepthMeasure::Tail)?;
    depth_chart(input, &[panel])
}

impl DepthPanel {
    /// Chooses the lines to draw. `None`: no line has the quantity.
    fn choose(mut lines: Vec<DepthLine>, measure: DepthMeasure) -> Option<DepthPanel> {
        lines.retain(|line| !measure.values(line).is_empty());
        let mut others = Vec::new();
        if lines.len() > SERIES_MAX && unique(lines.iter().map(|line| &line.subject)).len() > 1 {
            // Each pattern would need its own panel: the pattern of most subjects is drawn.
            let pattern = commonest_pattern(&lines)?.to_owned();
            (lines, others) = lines.into_iter().partition(|line| line.pattern == pattern);
        }
        let mut left_out = lines.split_off(lines.len().min(SERIES_MAX));
        left_out.append(&mut others);
        (!lines.is_empty()).then_some(DepthPanel {
            measure,
            lines,
            left_out,
        })
    }

    /// The pattern of all lines. `None`: they differ, or have no name.
    fn shared_pattern(&self) -> Option<&str> {
        let patterns = unique(self.lines.iter().map(|line| line.pattern.as_str()));
        match patterns.as_slice() {
            [pattern] if !pattern.is_empty() => Some(*pattern),
            _ => None,
        }
    }

    fn draw(&self, styles: Vec<SeriesStyle>, is_one_subject: bool) -> ChartPanel {
        let is_one_pattern = unique(self.lines.iter().map(|line| &line.pattern)).len() < 2;
        let series = self.lines.iter().zip(styles).map(|(line, style)| {
            let name = match (is_one_subject, is_one_pattern) {
                (true, _) => line.pattern.clone(),
                (false, true) => line.subject.clone(),
                (false, false) => line.full_name(),
            };
            convert_line(line, name, style, self.measure)
        });
        ChartPanel::of_series(self.y_axis(is_one_subject), series.collect())
    }

    /// Lines of several subjects are named by these, so the axis names their pattern.
    fn y_axis(&self, is_one_subject: bool) -> ChartAxis {
        let measure = self.measure;
        let label = match self.shared_pattern().filter(|_| !is_one_subject) {
            Some(pattern) => format!("{}, {pattern}", measure.label()),
            None => measure.label().to_owned(),
        };
        let values = self.lines.iter().flat_map(|line| measure.values(line));
        let values: Vec<DepthValue> = values.collect();
        let best = self.lines.iter().map(|line| highest(&measure.values(line)));
        let least = best
            .filter(|value| *value > 0.0)
            .fold(f64::INFINITY, f64::min);
        let most = highest(&values);
        let is_far = most > FAR * least;
        if measure == DepthMeasure::Tail || is_far {
            // An interval that the axis cut off would look like one that ends there.
            let ends = values.iter();
            let ends = ends.map(|value| value.between.map_or(value.mean, |(low, _)| low));
            let ends: Vec<f64> = ends.chain([most]).collect();
            return log_axis(&label, measure.unit(), &ends);
        }
        linear_axis(&label, measure.unit(), most)
    }
}

/// The pattern of most lines, the first one of several.
fn commonest_pattern(lines: &[DepthLine]) -> Option<&str> {
    let count = |pattern: &str| lines.iter().filter(|line| line.pattern == pattern).count();
    let patterns = unique(lines.iter().map(|line| line.pattern.as_str()));
    // Of equal counts, `max_by_key` returns the last one.
    let patterns = patterns.into_iter().rev();
    patterns.max_by_key(|pattern| count(pattern))
}

/// A chart of one or two panels over the depths of both.
fn depth_chart(input: &PlotInput, panels: &[DepthPanel]) -> Option<ChartParts> {
    let title = match panels {
        [] => return None,
        [panel] => panel.measure.title(),
        _ => "IOPS and bandwidth over depth",
    };
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    let subjects = unique(lines.map(|line| line.subject.clone()));
    let keys = panels.iter().map(|panel| {
        let lines = panel.lines.iter();
        lines
            .map(|line| (line.subject.as_str(), line.pattern.as_str()))
            .collect()
    });
    let keys: Vec<Vec<SeriesKey<'_>>> = keys.collect();
    let styles = panel_styles(input, &keys);
    let drawn = panels.iter().zip(styles);
    let drawn = drawn.map(|(panel, styles)| panel.draw(styles, subjects.len() < 2));
    let mut drawn: Vec<ChartPanel> = drawn.collect();
    let hollow = note_hollow_points(&mut drawn);
    let series = drawn.iter().flat_map(|panel| &panel.series);
    let points = series.flat_map(|series| &series.points);
    let depths = points.map(|point| point.x as u32).collect();
    Some(ChartParts {
        title: title.to_owned(),
        x: counts_axis("I/Os in flight", depths),
        moments: TimeMoments::default(),
        panels: drawn,
        notes: (search_note(panels).into_iter())
            .chain(hollow)
            .chain(left_out_note(panels))
            .collect(),
        subjects,
    })
}

/// Note on the lines that are searches of probes.
fn search_note(panels: &[DepthPanel]) -> Option<String> {
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    let searched = lines.filter(|line| line.is_search);
    let subjects = unique(searched.map(|line| &line.subject));
    let names = listed_names(&subjects, SEPARATOR);
    (!subjects.is_empty()).then(|| format!("points of {names} are short runs of a search"))
}

/// Note on the lines that have no room. A pattern without any line is named once.
fn left_out_note(panels: &[DepthPanel]) -> Option<String> {
    let drawn: Vec<&DepthLine> = panels.iter().flat_map(|panel| &panel.lines).collect();
    let left_out = panels.iter().flat_map(|panel| &panel.left_out);
    let left_out: Vec<&DepthLine> = left_out.collect();
    let names = left_out.iter().map(|line| {
        let mut shown = drawn.iter();
        match shown.any(|other| other.pattern == line.pattern) {
            true => line.full_name(),
            false => line.pattern.clone(),
        }
    });
    let names = listed_names(&unique(names), SEPARATOR);
    let total = drawn.len() + left_out.len();
    let is_cut = !left_out.is_empty();
    is_cut.then(|| format!("{} of {total} curves, without {names}", drawn.len()))
}

fn convert_line(
    line: &DepthLine,
    name: String,
    style: SeriesStyle,
    measure: DepthMeasure,
) -> ChartSeries {
    let known = line.points.iter();
    let known = known.filter_map(|point| Some((f64::from(point.depth), measure.value(point)?)));
    let known: Vec<(f64, DepthValue)> = known.collect();
    let band = known.iter().filter_map(|(depth, value)| {
        let (low, high) = value.between?;
        Some((*depth, low.max(0.0), high))
    });
    let points = known.iter().map(|(depth, value)| PlotPoint {
        x: *depth,
        y: Some(value.mean),
        hollow: value.between.is_none(),
    });
    ChartSeries {
        band: band.collect(),
        ..style.series(name, SeriesShape::Dotted, points.collect())
    }
}

/// Highest end of the intervals.
fn highest(values: &[DepthValue]) -> f64 {
    let ends = values.iter();
    let ends = ends.map(|value| value.between.map_or(value.mean, |(_, high)| high));
    ends.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::document::PageRate;

    fn line(subject: &str, pattern: &str) -> DepthLine {
        let value = DepthValue {
            mean: 1000.0,
            between: Some((900.0, 1100.0)),
        };
        DepthLine {
            subject: subject.to_owned(),
            pattern: pattern.to_owned(),
            is_large: false,
            points: vec![PlotDepthPoint {
                depth: 8,
                iops: Some(value),
                bytes_per_s: None,
                tail_ns: None,
            }],
            is_search: false,
        }
    }

    #[test]
    fn bandwidth_has_the_relative_interval_of_its_rate() {
        let rate = PageRate::new(100.0, Some(10.0));
        let bandwidth = DepthValue::from_bandwidth(4e6, Some(rate));
        assert_eq!(bandwidth.between, Some((3.6e6, 4.4e6)));
        let wide = PageRate::new(100.0, Some(200.0));
        let bandwidth = DepthValue::from_bandwidth(4e6, Some(wide));
        assert_eq!(bandwidth.between, None);
    }

    #[test]
    fn point_without_interval_is_hollow() {
        let mut line = line("a", "read");
        line.points.push(PlotDepthPoint {
            depth: 16,
            iops: Some(DepthValue {
                mean: 2000.0,
                between: None,
            }),
            bytes_per_s: None,
            tail_ns: None,
        });
        let style = SeriesStyle::numbered(0);
        let series = convert_line(&line, "read".to_owned(), style, DepthMeasure::Iops);
        let hollow = series.points.iter().map(|point| point.hollow);
        assert_eq!(hollow.collect::<Vec<_>>(), [false, true]);
        assert_eq!(series.band, [(8.0, 900.0, 1100.0)]);
    }

    #[test]
    fn lines_of_a_search_have_a_note() {
        let mut lines = vec![line("a", "read"), line("b", "read")];
        lines[0].is_search = true;
        let panel = DepthPanel::choose(lines, DepthMeasure::Iops).unwrap();
        let note = search_note(&[panel]).unwrap();
        assert_eq!(note, "points of a are short runs of a search");
        let panel = DepthPanel::choose(vec![line("b", "read")], DepthMeasure::Iops);
        assert_eq!(search_note(&[panel.unwrap()]), None);
    }

    #[test]
    fn logarithmic_axis_contains_whole_intervals() {
        let mut line = line("a", "read");
        line.points[0].tail_ns = Some(DepthValue {
            mean: 180_000.0,
            between: Some((60_000.0, 300_000.0)),
        });
        let panel = DepthPanel::choose(vec![line], DepthMeasure::Tail).unwrap();
        let axis = panel.y_axis(true);
        assert_eq!((axis.min, axis.max), (50_000.0, 500_000.0));
    }

    #[test]
    fn crowded_panel_draws_the_pattern_of_most_subjects() {
        let subjects = ["a", "b", "c", "d"];
        let mut lines = vec![line("a", "mixed")];
        for pattern in ["read", "write"] {
            lines.extend(subjects.map(|subject| line(subject, pattern)));
        }
        let panel = DepthPanel::choose(lines, DepthMeasure::Iops).unwrap();
        assert_eq!(panel.shared_pattern(), Some("read"));
        assert_eq!(panel.y_axis(false).label, "IOPS, read");
        assert_eq!(panel.y_axis(true).label, "IOPS");
        let note = left_out_note(&[panel]).unwrap();
        assert_eq!(note, "4 of 9 curves, without mixed, write");
    }
}
