//! The shapes of a chart while it is laid out.

use super::drawing::{Palette, Rgb, Shape, TextAnchor};
use super::plot_font::PlotFont;

/// Font size of labels.
pub(super) const LABEL_SIZE: f64 = 12.5;
/// Distance of the baselines of names and of legend rows.
pub(super) const NAME_STEP: f64 = 17.0;
/// Distance of names from the ends of their lines.
pub(super) const NAME_GAP: f64 = 22.0;

/// Fonts, colours and the shapes drawn so far.
pub(super) struct ChartCanvas<'a> {
    pub(super) font: &'a PlotFont,
    pub(super) palette: &'a Palette,
    pub(super) shapes: Vec<Shape>,
}

/// The rectangle between the axes of a panel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlotArea {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl ChartCanvas<'_> {
    /// Draws a text, shortened to `room` pixels.
    pub(super) fn text(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        room: f64,
        style: (f64, Rgb, TextAnchor),
    ) {
        let (size, color, anchor) = style;
        let text = self.font.fitted(text, size, room);
        if !text.is_empty() {
            self.shapes.push(Shape::Text {
                x,
                y,
                text,
                size,
                color,
                anchor,
            });
        }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: Rgb) {
        self.shapes.push(Shape::Line {
            points: vec![from, to],
            color,
            width: 1.0,
            dash: &[],
        });
    }
}
