//! Draws the names of lines: beside the end of a line, or at the right edge of the chart.

use super::chart_canvas::{ChartCanvas, LABEL_SIZE, NAME_GAP, NAME_STEP, PlotArea};
use super::chart_data::{ChartAxis, ChartPanel, ChartSeries, SeriesShape};
use super::drawing::{DASHES, Shape, TextAnchor};
use super::end_labels::{EndLabel, end_labels, spread};

/// Width of the slanted part of the leader from a line to its name. The name of a line that ends
/// farther from the right edge stands beside its end, if it has room there.
const LEADER_SLANT_PX: f64 = 60.0;
/// Width of a leader: it is thinner than any line of data, solid and grey.
const LEADER_WIDTH: f64 = 0.8;
/// Distance of a name from the end of its line, if it stands beside it.
const BESIDE_GAP: f64 = 9.0;
/// Distance of the baseline of a name from the height of the line's end.
const BASELINE_DROP: f64 = 4.5;

/// Draws the names of the lines. Those at the right edge are moved apart where they would overlap,
/// and a leader leads to each of them from the end of its line.
pub(super) fn draw_end_names(
    canvas: &mut ChartCanvas,
    panel: &ChartPanel,
    x_axis: &ChartAxis,
    area: PlotArea,
    room: f64,
) {
    let at = |(x, value): (f64, f64)| (area.x(x_axis, x), area.y(&panel.y, value));
    let ends = end_labels(panel).into_iter();
    let ends = ends.map(|label| {
        let end = at(label.end);
        (label, end)
    });
    let lines = panel.series.iter().map(|line| positions(line, at));
    let limits = panel.limits.iter();
    let limits = limits.map(|limit| area.y(&panel.y, limit.value));
    let names = NameRoom {
        area,
        lines: lines.filter(|line| !line.is_empty()).collect(),
        limits: limits.collect(),
    };
    let font = canvas.font;
    let indexed = ends.enumerate();
    let (beside, at_edge): (Vec<_>, Vec<_>) = indexed.partition(|(index, (label, _))| {
        names.has_room_beside(*index, font.width(&label.text, LABEL_SIZE))
    });
    for (_, (label, end)) in beside {
        let color = canvas.palette.series[label.slot % DASHES.len()];
        let left = end.0 + BESIDE_GAP;
        let style = (LABEL_SIZE, color, TextAnchor::Start);
        let place = (left, end.1 + BASELINE_DROP);
        canvas.text(place, &label.text, area.right - left, style);
    }
    let at_edge = at_edge.into_iter().map(|(_, named)| named).collect();
    draw_names_at_edge(canvas, at_edge, area, room);
}

/// Draws names at the right edge with their leaders.
fn draw_names_at_edge(
    canvas: &mut ChartCanvas,
    mut ends: Vec<(EndLabel, (f64, f64))>,
    area: PlotArea,
    room: f64,
) {
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let heights: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    let heights = spread(&heights, area.top, area.bottom);
    for ((label, end), y) in ends.into_iter().zip(heights) {
        canvas.shapes.push(Shape::Line {
            points: leader_points(end, (area.right + NAME_GAP - 6.0, y), area.right),
            color: canvas.palette.line,
            width: LEADER_WIDTH,
            dash: &[],
        });
        let color = canvas.palette.series[label.slot % DASHES.len()];
        let style = (LABEL_SIZE, color, TextAnchor::Start);
        let place = (area.right + NAME_GAP, y + BASELINE_DROP);
        canvas.text(place, &label.text, room, style);
    }
}

/// Positions of the points of a line that have values, and of the corners of its steps.
fn positions(line: &ChartSeries, at: impl Fn((f64, f64)) -> (f64, f64)) -> Vec<(f64, f64)> {
    let is_step = matches!(line.shape, SeriesShape::Step | SeriesShape::Area);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in &line.points {
        let Some(value) = point.y else {
            continue;
        };
        let position = at((point.x, value));
        if let (true, Some(last)) = (is_step, points.last()) {
            points.push((position.0, last.1));
        }
        points.push(position);
    }
    points
}

/// Points between the end of a line and its name. Far from the name they stay at the height of the
/// end, because a slanted line across the chart would look like data.
fn leader_points(end: (f64, f64), name: (f64, f64), right: f64) -> Vec<(f64, f64)> {
    let bend = (end.0.max(right - LEADER_SLANT_PX), end.1);
    vec![end, bend, name]
}

/// The marks that a name beside the end of a line must not touch, in pixels.
struct NameRoom {
    area: PlotArea,
    /// Points of the lines that have points, in the order of their labels.
    lines: Vec<Vec<(f64, f64)>>,
    /// Heights of limits.
    limits: Vec<f64>,
}

impl NameRoom {
    /// Whether a name has room beside the end of the line with this index.
    fn has_room_beside(&self, index: usize, width: f64) -> bool {
        let Some(end) = self.lines.get(index).and_then(|line| line.last()) else {
            return false;
        };
        let right = end.0 + BESIDE_GAP + width;
        if right > self.area.right - LEADER_SLANT_PX {
            return false;
        }
        let is_far = |y: &f64| (y - end.1).abs() >= 2.0 * NAME_STEP;
        let others = self.lines.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != index);
        self.limits.iter().all(is_far) && others.all(|(_, line)| is_clear(line, *end, right))
    }
}

/// Whether a line, and the leader from its end, stay a step away from a name that reaches from
/// `end` to `right`.
fn is_clear(line: &[(f64, f64)], end: (f64, f64), right: f64) -> bool {
    let is_away = |y: f64| (y - end.1).abs() >= NAME_STEP;
    let is_last_away = |last: &(f64, f64)| last.0 > right || is_away(last.1);
    let height = |(from, to): ((f64, f64), (f64, f64)), x: f64| {
        // A vertical part reaches its end at once.
        let share = match x < to.0 {
            true => (x.max(from.0) - from.0) / (to.0 - from.0).max(1e-9),
            false => 1.0,
        };
        from.1 + share * (to.1 - from.1)
    };
    let mut pairs = line.windows(2).map(|pair| (pair[0], pair[1]));
    let are_away = pairs.all(|(from, to)| {
        if to.0 < end.0 || from.0 > right {
            return true;
        }
        let (a, b) = (height((from, to), end.0), height((from, to), right));
        is_away(a) && is_away(b) && (a > end.1) == (b > end.1)
    });
    are_away && line.last().is_none_or(is_last_away)
}

#[cfg(test)]
mod tests {
    use super::super::chart_data::PlotPoint;
    use super::super::series_style::SeriesStyle;
    use super::*;

    const AREA: PlotArea = PlotArea {
        left: 0.0,
        right: 500.0,
        top: 0.0,
        bottom: 300.0,
    };

    #[test]
    fn leader_of_a_short_curve_is_level_across_the_chart() {
        let name = (516.0, 80.0);
        let level = leader_points((100.0, 20.0), name, 500.0);
        assert_eq!(level, [(100.0, 20.0), (440.0, 20.0), name]);
        let direct = leader_points((490.0, 20.0), name, 500.0);
        assert_eq!(direct, [(490.0, 20.0), (490.0, 20.0), name]);
    }

    #[test]
    fn name_of_a_short_line_stands_beside_its_end_if_clear() {
        let short = vec![(0.0, 200.0), (200.0, 100.0)];
        let has_room = |other: [(f64, f64); 2], limits: &[f64], width: f64| {
            let names = NameRoom {
                area: AREA,
                lines: vec![short.clone(), other.to_vec()],
                limits: limits.to_vec(),
            };
            names.has_room_beside(0, width)
        };
        let above = [(0.0, 50.0), (500.0, 50.0)];
        assert!(has_room(above, &[], 100.0));
        assert!(!has_room(above, &[], 300.0), "the name is too long");
        assert!(!has_room(above, &[110.0], 100.0), "a limit crosses it");
        let crossing = [(0.0, 0.0), (500.0, 200.0)];
        assert!(!has_room(crossing, &[], 100.0));
        let same_end = [(0.0, 250.0), (200.0, 105.0)];
        assert!(!has_room(same_end, &[], 100.0));
        let leader = [(0.0, 95.0), (50.0, 95.0)];
        assert!(!has_room(leader, &[], 100.0), "its leader crosses the name");
    }

    #[test]
    fn name_that_a_step_crosses_stands_at_the_edge() {
        let has_room = |values: [(f64, f64); 2]| {
            let points = values.map(|(x, y)| PlotPoint::new(x, Some(y))).to_vec();
            let style = SeriesStyle::numbered(0);
            let other = style.series("write".to_owned(), SeriesShape::Step, points);
            let names = NameRoom {
                area: AREA,
                lines: vec![
                    vec![(0.0, 200.0), (200.0, 100.0)],
                    positions(&other, |at| at),
                ],
                limits: Vec::new(),
            };
            names.has_room_beside(0, 100.0)
        };
        assert!(has_room([(0.0, 20.0), (400.0, 200.0)]));
        assert!(!has_room([(0.0, 20.0), (250.0, 200.0)]), "the step falls");
        assert!(!has_room([(190.0, 95.0), (500.0, 3000.0)]), "it is level");
    }

    #[test]
    fn name_of_a_line_that_reaches_the_edge_stands_there() {
        let names = NameRoom {
            area: AREA,
            lines: vec![vec![(0.0, 10.0), (495.0, 100.0)]],
            limits: Vec::new(),
        };
        assert!(!names.has_room_beside(0, 5.0));
    }
}
