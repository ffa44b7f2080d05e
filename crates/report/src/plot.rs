//! `iosonde plot`: one chart as an SVG or PNG file, without a browser.
//!
//! [`PlotSource`] turns results into [`ChartData`]: axes, series, cells. It reads the document that
//! the page of `iosonde report` draws, so a chart shows the data, units and scales of the page.
//! [`chart_svg`] and [`chart_png`] draw the same shapes.

mod chart_axes;
mod chart_canvas;
mod chart_data;
mod chart_layout;
mod chart_marks;
mod chart_scales;
mod depth_lines;
mod depth_plot;
mod drawing;
mod end_labels;
mod end_names;
mod figure_rows;
mod heat_plot;
mod histogram_plot;
mod hollow_points;
mod latency_plot;
mod panel_styles;
mod plot_font;
mod plot_input;
mod plot_source;
mod png_file;
mod series_style;
mod shared_timeline;
mod svg_file;
#[cfg(test)]
pub(crate) mod tests;
mod time_plot;
mod workload_styles;
mod written_plot;

pub use chart_data::{ChartData, ChartKind};
pub use drawing::PlotTheme;
pub use plot_source::PlotSource;

use drawing::ChartDrawing;
use plot_font::PlotFont;
use std::io;

/// Size at which texts have their nominal size, in pixels.
const NOMINAL_SIZE: (f64, f64) = (960.0, 540.0);
/// Texts of small charts are not scaled below this factor, so that they stay legible.
const SCALE_MIN: f64 = 0.8;

/// How a chart looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlotStyle {
    /// Colours.
    pub theme: PlotTheme,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl PlotStyle {
    /// Lays the chart out. Larger charts have larger texts.
    fn drawing(&self, data: &ChartData, font: &PlotFont) -> ChartDrawing {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let scale = (width / NOMINAL_SIZE.0).min(height / NOMINAL_SIZE.1);
        let scale = scale.max(SCALE_MIN);
        let size = (width / scale, height / scale);
        chart_layout::lay_out(data, &self.theme.palette(), font, size)
    }
}

/// Returns a chart as an SVG document.
#[must_use]
pub fn chart_svg(data: &ChartData, style: &PlotStyle) -> String {
    let drawing = style.drawing(data, &PlotFont::new());
    svg_file::svg_document(&drawing, style.width, style.height)
}

/// Returns a chart as a PNG file. Fails if the image does not fit into memory.
pub fn chart_png(data: &ChartData, style: &PlotStyle) -> io::Result<Vec<u8>> {
    let font = PlotFont::new();
    let drawing = style.drawing(data, &font);
    png_file::png_document(&drawing, &font, style.width, style.height)
}
