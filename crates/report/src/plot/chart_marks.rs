//! Marks of a panel: lines with their intervals, limits, and cells.

use super::chart_canvas::{ChartCanvas, LABEL_SIZE, NAME_STEP, PlotArea};
use super::chart_data::{ChartAxis, ChartData, ChartLimit, ChartPanel, ChartSeries};
use super::chart_data::{PlotPoint, SeriesShape};
use super::drawing::{DASHES, Rgb, Shape, TextAnchor};

const LINE_WIDTH: f64 = 2.2;
const DOT_RADIUS: f64 = 3.2;
/// Opacity of confidence bands, and of the areas below steps.
const BAND_OPACITY: f64 = 0.18;
const AREA_OPACITY: f64 = 0.12;
/// Dashes of a limit, and the distance of its name from the left edge and from the line.
const LIMIT_DASH: &[f64] = &[6.0, 3.0];
const LIMIT_NAME_GAP: f64 = 5.0;
/// Share of the line colour in the colour of the ramp.
const RAMP_SHARE: f64 = 0.18;
/// Gap between the cells of a heat map.
const CELL_GAP: f64 = 2.0;
/// Smallest font in a cell. A text that is still too wide is shortened.
const CELL_SIZE_MIN: f64 = 8.0;

/// Shades the ramp, and draws a dotted line at the time of each event.
pub(super) fn draw_moments(canvas: &mut ChartCanvas, data: &ChartData, area: PlotArea) {
    if let Some(end) = data.moments.ramp_end_s {
        canvas.shapes.push(Shape::Rectangle {
            left: area.left,
            top: area.top,
            width: (area.x(&data.x, end) - area.left).max(0.0),
            height: area.bottom - area.top,
            fill: canvas
                .palette
                .background
                .mixed(canvas.palette.line, RAMP_SHARE),
        });
    }
    for at in &data.moments.events_s {
        let x = area.x(&data.x, *at);
        canvas.shapes.push(Shape::Line {
            points: vec![(x, area.top), (x, area.bottom)],
            color: canvas.palette.muted,
            width: 1.2,
            dash: &[2.0, 3.0],
        });
    }
}

/// Draws a line with its band and dots. `axes` are the horizontal and the vertical one. A line on
/// top of `beneath` others that it coincides with is thinner, so that all of them are visible.
pub(super) fn draw_series(
    canvas: &mut ChartCanvas,
    series: &ChartSeries,
    axes: (&ChartAxis, &ChartAxis),
    area: PlotArea,
    beneath: usize,
) {
    let thinner = 1.0 + beneath as f64;
    let color = canvas.palette.series[series.slot % DASHES.len()];
    draw_band(canvas, series, color, axes, area);
    let is_step = matches!(series.shape, SeriesShape::Step | SeriesShape::Area);
    for run in series.points.split(|point| point.y.is_none()) {
        let points = line_points(run, is_step, axes, area);
        if let (SeriesShape::Area, [first, .., last]) = (series.shape, points.as_slice()) {
            let ends = [(last.0, area.bottom), (first.0, area.bottom)];
            canvas.shapes.push(Shape::Area {
                points: points.iter().copied().chain(ends).collect(),
                color,
                opacity: AREA_OPACITY,
            });
        }
        if points.len() > 1 {
            canvas.shapes.push(Shape::Line {
                points,
                color,
                width: LINE_WIDTH / thinner,
                dash: DASHES[series.dash % DASHES.len()],
            });
        }
    }
    if series.shape != SeriesShape::Dotted {
        return;
    }
    for point in &series.points {
        if let Some(value) = point.y {
            canvas.shapes.push(Shape::Circle {
                center: (area.x(axes.0, point.x), area.y(axes.1, value)),
                radius: DOT_RADIUS / thinner.sqrt(),
                fill: if point.hollow {
                    canvas.palette.background
                } else {
                    color
                },
                edge: color,
            });
        }
    }
}

/// Draws the 95 % intervals: as a band, or as a vertical line where neighbours have none. A band
/// ends with a vertical line before a point without an interval.
fn draw_band(
    canvas: &mut ChartCanvas,
    series: &ChartSeries,
    color: Rgb,
    axes: (&ChartAxis, &ChartAxis),
    area: PlotArea,
) {
    let end = |x: f64, value: f64| (area.x(axes.0, x), area.y(axes.1, value));
    let ends = [series.points.first(), series.points.last()];
    let is_inner = |x: f64| {
        !ends
            .iter()
            .flatten()
            .any(|point| point.x.total_cmp(&x).is_eq())
    };
    for run in interval_runs(series) {
        let lower = run.iter().map(|(x, low, _)| end(*x, *low));
        let upper = run.iter().rev().map(|(x, _, high)| end(*x, *high));
        let points: Vec<(f64, f64)> = lower.chain(upper).collect();
        match points.as_slice() {
            [] => {}
            [low, high] => canvas.line(*low, *high, color),
            _ => canvas.shapes.push(Shape::Area {
                points,
                color,
                opacity: BAND_OPACITY,
            }),
        }
        if run.len() < 2 {
            continue;
        }
        for (x, low, high) in run.first().into_iter().chain(run.last()) {
            if is_inner(*x) {
                canvas.line(end(*x, *low), end(*x, *high), color);
            }
        }
    }
}

/// Intervals of neighbouring points. A point without an interval separates two runs.
fn interval_runs(series: &ChartSeries) -> Vec<Vec<(f64, f64, f64)>> {
    let interval_at = |x: f64| {
        let mut intervals = series.band.iter().copied();
        intervals.find(|(at, _, _)| at.total_cmp(&x).is_eq())
    };
    let points = series.points.iter();
    let intervals: Vec<Option<(f64, f64, f64)>> =
        points.map(|point| interval_at(point.x)).collect();
    let runs = intervals.split(Option::is_none);
    runs.map(|run| run.iter().copied().flatten().collect())
        .collect()
}

/// Positions of points without gaps. A value of a step lasts until the next point.
fn line_points(
    run: &[PlotPoint],
    is_step: bool,
    axes: (&ChartAxis, &ChartAxis),
    area: PlotArea,
) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in run {
        let Some(value) = point.y else {
            continue;
        };
        let at = (area.x(axes.0, point.x), area.y(axes.1, value));
        if let (true, Some(last)) = (is_step, points.last()) {
            points.push((at.0, last.1));
        }
        points.push(at);
    }
    points
}

/// Draws a dashed line at each limit. Its name stands above the line, or below it where the name
/// above would leave the panel or cover another name. Adds names without room to `unnamed`, and
/// does not draw the names in it.
pub(super) fn draw_limits(
    canvas: &mut ChartCanvas,
    panel: &ChartPanel,
    area: PlotArea,
    unnamed: &mut Vec<String>,
) {
    let mut named: Vec<f64> = Vec::new();
    let mut limits: Vec<&ChartLimit> = panel.limits.iter().collect();
    // From the top down, so that a name below its line is below the names placed before.
    limits.sort_by(|a, b| b.value.total_cmp(&a.value));
    for limit in limits {
        let y = area.y(&panel.y, limit.value);
        canvas.shapes.push(Shape::Line {
            points: vec![(area.left, y), (area.right, y)],
            color: canvas.palette.text,
            width: 1.2,
            dash: LIMIT_DASH,
        });
        if unnamed.contains(&limit.name) {
            continue;
        }
        let baselines = [y - LIMIT_NAME_GAP, y + LABEL_SIZE + LIMIT_NAME_GAP / 2.0];
        let is_free = |baseline: &f64| {
            let is_inside = baseline - LABEL_SIZE >= area.top && *baseline < area.bottom;
            let mut others = named.iter();
            is_inside && others.all(|other| (other - baseline).abs() >= NAME_STEP)
        };
        let Some(baseline) = baselines.into_iter().find(is_free) else {
            unnamed.push(limit.name.clone());
            continue;
        };
        named.push(baseline);
        let style = (LABEL_SIZE, canvas.palette.text, TextAnchor::Start);
        let left = area.left + LIMIT_NAME_GAP;
        canvas.text((left, baseline), &limit.name, area.right - left, style);
    }
}

/// Draws the cells of a heat map with their values.
pub(super) fn draw_cells(
    canvas: &mut ChartCanvas,
    panel: &ChartPanel,
    area: PlotArea,
    columns: &ChartAxis,
) {
    let width = (area.right - area.left) / columns.ticks.len().max(1) as f64;
    let height = (area.bottom - area.top) / panel.y.ticks.len().max(1) as f64;
    let [low, high] = canvas.palette.heat;
    for cell in &panel.cells {
        let left = area.left + width * cell.column as f64;
        let top = area.top + height * cell.row as f64;
        let (fill, color) = match cell.share {
            Some(share) => (low.mixed(high, share), canvas.palette.heat_text),
            None => (canvas.palette.faint, canvas.palette.text),
        };
        canvas.shapes.push(Shape::Rectangle {
            left,
            top,
            width: (width - CELL_GAP).max(1.0),
            height: (height - CELL_GAP).max(1.0),
            fill,
        });
        let room = width - CELL_GAP - 4.0;
        let needed = canvas.font.width(&cell.text, LABEL_SIZE);
        let size = (LABEL_SIZE * room / needed.max(1.0)).clamp(CELL_SIZE_MIN, LABEL_SIZE);
        let middle = (
            (left + (width - CELL_GAP) / 2.0),
            top + (height - CELL_GAP) / 2.0,
        );
        let style = (size, color, TextAnchor::Middle);
        canvas.text((middle.0, middle.1 + size * 0.36), &cell.text, room, style);
    }
}
