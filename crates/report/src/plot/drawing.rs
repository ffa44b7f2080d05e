//! Shapes that a chart is made of, and its colours. SVG and PNG draw the same shapes.

use std::fmt;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rgb(pub(super) u8, pub(super) u8, pub(super) u8);

impl Rgb {
    /// Colour between this one (share 0) and another one (share 1).
    pub(super) fn mixed(self, other: Rgb, share: f64) -> Rgb {
        let mix = |from: u8, to: u8| {
            (f64::from(from) + (f64::from(to) - f64::from(from)) * share.clamp(0.0, 1.0)).round()
                as u8
        };
        Rgb(
            mix(self.0, other.0),
            mix(self.1, other.1),
            mix(self.2, other.2),
        )
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Colours of charts, those of the page (`web/src/theme.ts` and `HEAT` in `web/src/chart/svg.ts`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotTheme {
    /// Dark on white: paper, light slides.
    Light,
    /// Light on dark slides.
    Dark,
}

/// The colours of a theme.
pub(super) struct Palette {
    pub(super) background: Rgb,
    pub(super) text: Rgb,
    pub(super) muted: Rgb,
    pub(super) line: Rgb,
    pub(super) faint: Rgb,
    pub(super) series: [Rgb; 6],
    /// Colours of the lowest and the highest value of a heat map.
    pub(super) heat: [Rgb; 2],
    /// Colour of texts on these colours and all between them.
    pub(super) heat_text: Rgb,
}

impl PlotTheme {
    pub(super) fn palette(self) -> Palette {
        match self {
            PlotTheme::Light => Palette {
                background: Rgb(0xff, 0xff, 0xff),
                text: Rgb(0x1b, 0x24, 0x30),
                muted: Rgb(0x4d, 0x59, 0x66),
                line: Rgb(0x8a, 0x96, 0xa3),
                faint: Rgb(0xe3, 0xe8, 0xee),
                series: [
                    Rgb(0x1d, 0x5f, 0xd0),
                    Rgb(0xe0, 0x6a, 0x00),
                    Rgb(0x0a, 0x9f, 0x82),
                    Rgb(0xc7, 0x6b, 0xc9),
                    Rgb(0x6a, 0x2a, 0x08),
                    Rgb(0x10, 0x14, 0x2c),
                ],
                heat: [Rgb(0xee, 0xf5, 0xfd), Rgb(0x5b, 0x9f, 0xe3)],
                heat_text: Rgb(0x10, 0x18, 0x20),
            },
            PlotTheme::Dark => Palette {
                background: Rgb(0x17, 0x1c, 0x23),
                text: Rgb(0xe6, 0xeb, 0xf1),
                muted: Rgb(0xaa, 0xb4, 0xc0),
                line: Rgb(0x6f, 0x7b, 0x88),
                faint: Rgb(0x2c, 0x34, 0x3e),
                series: [
                    Rgb(0x3d, 0x8b, 0xff),
                    Rgb(0xff, 0x9a, 0x57),
                    Rgb(0x2f, 0xc7, 0xa0),
                    Rgb(0xe5, 0x8b, 0xe0),
                    Rgb(0xf0, 0xe0, 0x5a),
                    Rgb(0xe6, 0xeb, 0xf1),
                ],
                heat: [Rgb(0x1d, 0x2b, 0x3d), Rgb(0x2f, 0x6d, 0xb0)],
                heat_text: Rgb(0xff, 0xff, 0xff),
            },
        }
    }
}

/// Dashes of the series, so that they differ without colour too.
pub(super) const DASHES: [&[f64]; 6] = [
    &[],
    &[7.0, 4.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[12.0, 4.0],
    &[5.0, 2.0, 1.0, 2.0],
];

/// Side of a text that its position names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// A shape. Coordinates are pixels from the upper left corner.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// A filled rectangle.
    Rectangle {
        left: f64,
        top: f64,
        width: f64,
        height: f64,
        fill: Rgb,
    },
    /// A line through points.
    Line {
        points: Vec<(f64, f64)>,
        color: Rgb,
        width: f64,
        dash: &'static [f64],
    },
    /// A filled polygon.
    Area {
        points: Vec<(f64, f64)>,
        color: Rgb,
        opacity: f64,
    },
    /// A circle with an edge.
    Circle {
        center: (f64, f64),
        radius: f64,
        fill: Rgb,
        edge: Rgb,
    },
    /// A text on a baseline.
    Text {
        x: f64,
        y: f64,
        text: String,
        size: f64,
        color: Rgb,
        anchor: TextAnchor,
    },
}

/// All shapes of a chart, from back to front.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChartDrawing {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Title, for readers who do not see the chart.
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as the Web Content Accessibility Guidelines define it.
    fn luminance(color: Rgb) -> f64 {
        let linear = |channel: u8| {
            let share = f64::from(channel) / 255.0;
            match share <= 0.04045 {
                true => share / 12.92,
                false => ((share + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2)
    }

    /// Contrast ratio of two colours, from 1 to 21.
    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn text_on_each_cell_has_enough_contrast() {
        let black_on_white = contrast(Rgb(255, 255, 255), Rgb(0, 0, 0));
        assert!((black_on_white - 21.0).abs() < 1e-9);
        for theme in [PlotTheme::Light, PlotTheme::Dark] {
            let palette = theme.palette();
            let [low, high] = palette.heat;
            for percent in 0..=100 {
                let fill = low.mixed(high, f64::from(percent) / 100.0);
                let contrast = contrast(fill, palette.heat_text);
                assert!(contrast >= 4.5, "{theme:?} {percent} %: {contrast}");
            }
            let unknown = contrast(palette.faint, palette.text);
            assert!(unknown >= 4.5, "{theme:?}: {unknown}");
        }
    }
}
