//! Labels at the ends of lines.
//!
//! [`spread`], the limit of [`are_near_lines`] in heights of a line and [`lines_beneath`] are those
//! of `web/src/chart/labels.ts`. The page differs in two points: its lines are 15 pixels high, and
//! its labels may reach 4 pixels below the chart.

use super::chart_canvas::NAME_STEP;
use super::chart_data::{ChartAxis, ChartPanel, ChartSeries, PlotPoint};

/// A label that stands farther from the end of its line could belong to another line. Four lines
/// that end at one place have their labels within this distance.
const LABEL_SHIFT_MAX: f64 = 1.5 * NAME_STEP + 0.5;
/// Lines coincide if their points are nearer than this share of the vertical axis.
const COINCIDENCE_SHARE: f64 = 0.004;

/// Label of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndLabel {
    pub(super) text: String,
    /// Colour of the line.
    pub(super) slot: usize,
    /// Last point of the line, in the units of the axes.
    pub(super) end: (f64, f64),
}

/// Returns the labels of all lines that have points. Lines that coincide have a label each, because
/// the colour of a label says which line it belongs to.
pub(super) fn end_labels(panel: &ChartPanel) -> Vec<EndLabel> {
    let labels = panel.series.iter().filter_map(|series| {
        Some(EndLabel {
            text: series.name.clone(),
            slot: series.slot,
            end: last_point(series)?,
        })
    });
    labels.collect()
}

/// Number of lines that the line with an index would hide, or that would hide it: it is drawn on
/// top of them, and thinner by that number.
pub(super) fn lines_beneath(panel: &ChartPanel, index: usize) -> usize {
    let (before, others) = panel.series.split_at(index);
    let Some(series) = others.first() else {
        return 0;
    };
    let same = before.iter();
    same.filter(|other| coincide(other, series, &panel.y))
        .count()
}

/// Whether each label has room near the end of its line in a panel of this height.
pub(super) fn are_near_lines(labels: &[EndLabel], y: &ChartAxis, height: f64) -> bool {
    let ends = labels.iter().map(|label| 1.0 - y.position(label.end.1));
    let mut ends: Vec<f64> = ends.map(|share| share * height).collect();
    ends.sort_by(f64::total_cmp);
    let moved = spread(&ends, 0.0, height);
    let mut pairs = ends.iter().zip(&moved);
    pairs.all(|(end, label)| (end - label).abs() <= LABEL_SHIFT_MAX)
}

/// Labels that touch each other.
#[derive(Debug, Clone, Copy)]
struct LabelGroup {
    /// Sum of the heights that the first label would have if each label was at its line.
    first_heights: f64,
    count: usize,
}

impl LabelGroup {
    /// Height of the first label within the bounds.
    fn first(self, top: f64, bottom: f64) -> f64 {
        let mean = self.first_heights / self.count as f64;
        mean.max(top)
            .min(bottom - (self.count - 1) as f64 * NAME_STEP)
    }

    /// Joins this group and the one below it.
    fn joined(self, below: LabelGroup) -> LabelGroup {
        let shift = (self.count * below.count) as f64 * NAME_STEP;
        LabelGroup {
            first_heights: self.first_heights + below.first_heights - shift,
            count: self.count + below.count,
        }
    }
}

/// Moves sorted heights apart within the bounds. Labels that touch each other are centred on the
/// ends of their lines.
pub(super) fn spread(heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut groups: Vec<LabelGroup> = Vec::new();
    for height in heights {
        let mut group = LabelGroup {
            first_heights: *height,
            count: 1,
        };
        let touches = |above: LabelGroup, group: LabelGroup| {
            let end = above.first(top, bottom) + above.count as f64 * NAME_STEP;
            end > group.first(top, bottom)
        };
        while let Some(above) = groups.pop_if(|above| touches(*above, group)) {
            group = above.joined(group);
        }
        groups.push(group);
    }
    let moved = groups.iter().flat_map(|group| {
        let first = group.first(top, bottom);
        (0..group.count).map(move |index| first + index as f64 * NAME_STEP)
    });
    moved.collect()
}

fn last_point(series: &ChartSeries) -> Option<(f64, f64)> {
    let mut points = series.points.iter().rev();
    points.find_map(|point| Some((point.x, point.y?)))
}

/// Whether one line hides the other: each point of one is at a point of the other, and both end at
/// the same place.
fn coincide(one: &ChartSeries, other: &ChartSeries, y: &ChartAxis) -> bool {
    let is_near = |a: &PlotPoint, b: &PlotPoint| match (a.y, b.y) {
        (Some(a), Some(b)) => (y.position(a) - y.position(b)).abs() <= COINCIDENCE_SHARE,
        (None, None) => true,
        _ => false,
    };
    let is_at = |a: &PlotPoint, b: &PlotPoint| a.x.total_cmp(&b.x).is_eq() && is_near(a, b);
    let hides = |all: &ChartSeries, some: &ChartSeries| {
        let mut points = some.points.iter();
        points.all(|point| all.points.iter().any(|known| is_at(point, known)))
    };
    let ends = (one.points.last(), other.points.last());
    let is_same_end = matches!(ends, (Some(a), Some(b)) if is_at(a, b));
    is_same_end && (hides(one, other) || hides(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::document::PageUnit;
    use crate::plot::chart_data::SeriesShape;
    use crate::plot::chart_scales::linear_axis;

    fn series(name: &str, slot: usize, values: &[f64]) -> ChartSeries {
        let points = values.iter().enumerate();
        ChartSeries {
            name: name.to_owned(),
            slot,
            dash: slot,
            shape: SeriesShape::Dotted,
            points: points
                .map(|(index, value)| PlotPoint::new(index as f64, Some(*value)))
                .collect(),
            band: Vec::new(),
        }
    }

    fn panel(series: Vec<ChartSeries>) -> ChartPanel {
        ChartPanel {
            y: linear_axis("IOPS", PageUnit::Iops, 1000.0),
            series,
            cells: Vec::new(),
            limits: Vec::new(),
        }
    }

    #[test]
    fn coinciding_lines_have_labels_in_their_colours() {
        let panel = panel(vec![
            series("p99", 2, &[100.0, 900.0]),
            series("p50", 0, &[100.0, 500.0]),
            series("p99.9", 3, &[101.0, 901.0]),
        ]);
        let labels = end_labels(&panel);
        let labels = labels.iter().map(|label| (label.text.as_str(), label.slot));
        let labels: Vec<(&str, usize)> = labels.collect();
        assert_eq!(labels, [("p99", 2), ("p50", 0), ("p99.9", 3)]);
        let beneath = [0, 1, 2].map(|index| lines_beneath(&panel, index));
        assert_eq!(beneath, [0, 0, 1]);
    }

    #[test]
    fn line_that_meets_another_at_the_end_is_not_on_top() {
        let panel = panel(vec![
            series("p99", 0, &[100.0, 900.0]),
            series("p99.9", 1, &[500.0, 900.0]),
        ]);
        assert_eq!(lines_beneath(&panel, 1), 0);
    }

    #[test]
    fn crowded_labels_are_centred_on_their_lines_within_bounds() {
        assert_eq!(spread(&[10.0, 60.0], 0.0, 100.0), [10.0, 60.0]);
        assert_eq!(spread(&[50.0, 50.0, 50.0], 0.0, 100.0), [33.0, 50.0, 67.0]);
        assert_eq!(spread(&[90.0, 91.0, 92.0], 0.0, 100.0), [66.0, 83.0, 100.0]);
        assert_eq!(spread(&[1.0, 2.0, 90.0], 0.0, 100.0), [0.0, 17.0, 90.0]);
    }

    #[test]
    fn label_far_from_its_line_is_not_near() {
        let is_near = |values: &[f64]| {
            let lines = values.iter().enumerate();
            let lines =
                lines.map(|(slot, value)| series(&format!("p{slot}"), slot, &[0.0, *value]));
            let mut panel = panel(lines.collect());
            // Lines that end at one place differ in their first points.
            for (index, series) in panel.series.iter_mut().enumerate() {
                series.points[0].y = Some(100.0 * index as f64);
            }
            are_near_lines(&end_labels(&panel), &panel.y, 200.0)
        };
        assert!(is_near(&[500.0; 4]));
        assert!(!is_near(&[500.0; 5]));
        // The upper edge leaves no room above the lines.
        assert!(!is_near(&[1200.0; 4]));
        assert!(is_near(&[100.0, 300.0, 500.0, 700.0, 900.0]));
    }
}
