//! Axes of a panel: grid lines, and tick labels that do not overlap.

use super::chart_canvas::{ChartCanvas, LABEL_SIZE, PlotArea};
use super::chart_data::{AxisScale, ChartAxis, ChartData};
use super::drawing::TextAnchor;
use super::plot_font::PlotFont;

/// Least distance of two tick labels of the horizontal axis.
const LABEL_GAP: f64 = 10.0;
/// Least distance of two tick labels of the vertical axis.
const LABEL_STEP: f64 = 16.0;
/// Distance of tick labels from the vertical axis.
const TICK_GAP: f64 = 9.0;

impl PlotArea {
    /// Horizontal position of a value.
    pub(super) fn x(&self, axis: &ChartAxis, value: f64) -> f64 {
        self.left + axis.position(value) * (self.right - self.left)
    }

    /// Vertical position of a value. Names run from top to bottom.
    pub(super) fn y(&self, axis: &ChartAxis, value: f64) -> f64 {
        let height = self.bottom - self.top;
        match axis.scale {
            AxisScale::Names => self.top + axis.position(value) * height,
            AxisScale::Linear | AxisScale::Log => self.bottom - axis.position(value) * height,
        }
    }
}

/// Room at the left for the tick labels of all panels, at most `most`.
pub(super) fn vertical_room(data: &ChartData, font: &PlotFont, most: f64) -> f64 {
    let ticks = data.panels.iter().flat_map(|panel| &panel.y.ticks);
    let widths = ticks.map(|tick| font.width(&tick.text, LABEL_SIZE));
    (widths.fold(12.0, f64::max) + TICK_GAP + 1.0).min(most)
}

/// Draws grid lines and tick labels of a vertical axis.
pub(super) fn draw_vertical_axis(canvas: &mut ChartCanvas, axis: &ChartAxis, area: PlotArea) {
    let is_names = axis.scale == AxisScale::Names;
    let color = match is_names {
        true => canvas.palette.text,
        false => canvas.palette.muted,
    };
    let faint = canvas.palette.faint;
    let mut last = f64::INFINITY;
    for tick in &axis.ticks {
        let y = area.y(axis, tick.at);
        if !is_names {
            canvas.line((area.left, y), (area.right, y), faint);
        }
        // Values run upwards and names downwards.
        if (last - y).abs() < LABEL_STEP {
            continue;
        }
        last = y;
        let style = (LABEL_SIZE, color, TextAnchor::End);
        let room = area.left - TICK_GAP - 4.0;
        canvas.text((area.left - TICK_GAP, y + 4.5), &tick.text, room, style);
    }
}

/// Draws the line of a horizontal axis. The last panel has the labels.
pub(super) fn draw_horizontal_axis(
    canvas: &mut ChartCanvas,
    axis: &ChartAxis,
    area: PlotArea,
    is_last: bool,
) {
    let (line, muted) = (canvas.palette.line, canvas.palette.muted);
    canvas.line((area.left, area.bottom), (area.right, area.bottom), line);
    if !is_last {
        return;
    }
    for (x, text) in shown_labels(canvas.font, axis, area) {
        canvas.line((x, area.bottom), (x, area.bottom + 4.0), line);
        let style = (LABEL_SIZE, muted, TextAnchor::Middle);
        canvas.text((x, area.bottom + 18.0), &text, f64::INFINITY, style);
    }
    let style = (LABEL_SIZE, muted, TextAnchor::Middle);
    let middle = (area.left + area.right) / 2.0;
    let room = area.right - area.left;
    canvas.text((middle, area.bottom + 38.0), &axis.label, room, style);
}

/// Positions and texts of the labels that do not overlap. The last label is the most useful one, so
/// others make room for it.
fn shown_labels(font: &PlotFont, axis: &ChartAxis, area: PlotArea) -> Vec<(f64, String)> {
    let room = match axis.scale {
        AxisScale::Names => (area.right - area.left) / axis.ticks.len().max(1) as f64 - LABEL_GAP,
        AxisScale::Linear | AxisScale::Log => f64::INFINITY,
    };
    let labels = axis.ticks.iter().map(|tick| {
        let text = font.fitted(&tick.text, LABEL_SIZE, room.max(20.0));
        let half = font.width(&text, LABEL_SIZE) / 2.0;
        (area.x(axis, tick.at), half, text)
    });
    let labels: Vec<(f64, f64, String)> = labels.collect();
    let count = labels.len();
    let last_start = labels.last().map_or(f64::INFINITY, |(x, half, _)| x - half);
    let mut end = f64::NEG_INFINITY;
    let mut shown = Vec::new();
    for (index, (x, half, text)) in labels.into_iter().enumerate() {
        let is_last = index + 1 == count;
        let is_in_the_way = !is_last && x + half + LABEL_GAP > last_start;
        if x - half < end + LABEL_GAP || is_in_the_way {
            continue;
        }
        end = x + half;
        shown.push((x, text));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::chart_scales::{counts_axis, nines_axis};

    fn area(width: f64) -> PlotArea {
        PlotArea {
            left: 0.0,
            right: width,
            top: 0.0,
            bottom: 100.0,
        }
    }

    #[test]
    fn narrow_axis_of_percentiles_names_first_and_last_nine() {
        let axis = nines_axis(&[3_000_000.0]);
        let shown = shown_labels(&PlotFont::new(), &axis, area(200.0));
        let texts: Vec<&str> = shown.iter().map(|(_, text)| text.as_str()).collect();
        assert!(texts.len() < axis.ticks.len(), "{texts:?}");
        assert_eq!(texts.first(), Some(&"0 %"));
        assert_eq!(texts.last(), Some(&"99.9999 %"));
    }

    #[test]
    fn crowded_labels_are_left_out_but_the_last() {
        let font = PlotFont::new();
        let axis = counts_axis("I/Os in flight", (1..=64).collect());
        let shown = shown_labels(&font, &axis, area(300.0));
        assert_eq!(shown.last().unwrap().1, "64");
        for pair in shown.windows(2) {
            let half = |label: &(f64, String)| font.width(&label.1, LABEL_SIZE) / 2.0;
            let gap = pair[1].0 - half(&pair[1]) - pair[0].0 - half(&pair[0]);
            assert!(gap >= LABEL_GAP - 1e-6, "{pair:?}");
        }
    }
}
