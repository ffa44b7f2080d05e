//! A chart as a PNG file.

use super::drawing::{ChartDrawing, Rgb, Shape, TextAnchor};
use super::plot_font::PlotFont;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write};
use tiny_skia::{
    Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};

/// First bytes of each PNG file.
const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];

/// Bytes of a pixel: red, green and blue. Charts are opaque.
const PIXEL_BYTES: usize = 3;

/// Returns the PNG file of a drawing, `width` x `height` pixels large.
pub(super) fn png_document(
    drawing: &ChartDrawing,
    font: &PlotFont,
    width: u32,
    height: u32,
) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("no image has {width}x{height} pixels"));
    let mut image = Pixmap::new(width, height).ok_or_else(too_large)?;
    image.fill(Color::WHITE);
    let across = f64::from(width) / drawing.width;
    let down = f64::from(height) / drawing.height;
    let mut canvas = PngCanvas {
        image,
        font,
        transform: Transform::from_scale(across as f32, down as f32),
    };
    for shape in &drawing.shapes {
        canvas.draw(shape);
    }
    encode(&canvas.image)
}

/// The image, and how coordinates become pixels.
struct PngCanvas<'a> {
    image: Pixmap,
    font: &'a PlotFont,
    transform: Transform,
}

impl PngCanvas<'_> {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rectangle {
                left,
                top,
                width,
                height,
                fill,
            } => {
                let (left, top) = (*left as f32, *top as f32);
                let rect = Rect::from_xywh(left, top, *width as f32, *height as f32);
                let path = rect.map(PathBuilder::from_rect);
                self.fill(path, &paint(*fill, 1.0));
            }
            Shape::Line {
                points,
                color,
                width,
                dash,
            } => {
                let dash = dash.iter().map(|length| *length as f32).collect();
                self.stroke(
                    line_path(points, false),
                    *color,
                    *width,
                    StrokeDash::new(dash, 0.0),
                );
            }
            Shape::Area {
                points,
                color,
                opacity,
            } => self.fill(line_path(points, true), &paint(*color, *opacity)),
            Shape::Circle {
                center,
                radius,
                fill,
                edge,
            } => {
                let circle =
                    PathBuilder::from_circle(center.0 as f32, center.1 as f32, *radius as f32);
                self.fill(circle.clone(), &paint(*fill, 1.0));
                self.stroke(circle, *edge, 1.5, None);
            }
            Shape::Text {
                x,
                y,
                text,
                size,
                color,
                anchor,
            } => {
                let width = self.font.width(text, *size);
                let left = match anchor {
                    TextAnchor::Start => *x,
                    TextAnchor::Middle => x - width / 2.0,
                    TextAnchor::End => x - width,
                };
                let mut path = PathBuilder::new();
                self.font.outline(text, *size, (left, *y), &mut path);
                self.fill(path.finish(), &paint(*color, 1.0));
            }
        }
    }

    /// Fills a path. A path without extent has nothing to fill.
    fn fill(&mut self, path: Option<Path>, paint: &Paint<'_>) {
        if let Some(path) = path {
            let rule = FillRule::Winding;
            self.image
                .fill_path(&path, paint, rule, self.transform, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, color: Rgb, width: f64, dash: Option<StrokeDash>) {
        let stroke = Stroke {
            width: width as f32,
            line_join: LineJoin::Round,
            dash,
            ..Stroke::default()
        };
        if let Some(path) = path {
            let paint = paint(color, 1.0);
            self.image
                .stroke_path(&path, &paint, &stroke, self.transform, None);
        }
    }
}

fn paint(color: Rgb, opacity: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    let alpha = (opacity * 255.0).round() as u8;
    paint.set_color_rgba8(color.0, color.1, color.2, alpha);
    paint
}

fn line_path(points: &[(f64, f64)], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, (x, y)) in points.iter().enumerate() {
        match index {
            0 => path.move_to(*x as f32, *y as f32),
            _ => path.line_to(*x as f32, *y as f32),
        }
    }
    if is_closed {
        path.close();
    }
    path.finish()
}

/// Encodes an opaque image: 8 bits per channel, no filter, one data chunk.
fn encode(image: &Pixmap) -> io::Result<Vec<u8>> {
    let mut lines = ZlibEncoder::new(Vec::new(), Compression::best());
    let row_pixels = image.width() as usize;
    let mut row = Vec::with_capacity(1 + row_pixels * PIXEL_BYTES);
    for pixels in image.pixels().chunks(row_pixels) {
        row.clear();
        // Filter type 0: bytes are stored as they are.
        row.push(0);
        for pixel in pixels {
            row.extend_from_slice(&[pixel.red(), pixel.green(), pixel.blue()]);
        }
        lines.write_all(&row)?;
    }
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&image.width().to_be_bytes());
    header.extend_from_slice(&image.height().to_be_bytes());
    // Bits per channel, colour type RGB, compression, filter and interlace method.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    let mut file = SIGNATURE.to_vec();
    push_chunk(&mut file, *b"IHDR", &header)?;
    push_chunk(&mut file, *b"IDAT", &lines.finish()?)?;
    push_chunk(&mut file, *b"IEND", &[])?;
    Ok(file)
}

/// Adds a chunk: length, type, data, and the CRC-32 of type and data.
fn push_chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(io::Error::other)?;
    let mut checksum = Crc::new();
    checksum.update(&kind);
    checksum.update(data);
    file.extend_from_slice(&length.to_be_bytes());
    file.extend_from_slice(&kind);
    file.extend_from_slice(data);
    file.extend_from_slice(&checksum.sum().to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read;

    #[test]
    fn png_has_the_requested_size_and_pixels() {
        let drawing = ChartDrawing {
            width: 4.0,
            height: 2.0,
            title: String::new(),
            shapes: vec![Shape::Rectangle {
                left: 0.0,
                top: 0.0,
                width: 2.0,
                height: 2.0,
                fill: Rgb(10, 20, 30),
            }],
        };
        let file = png_document(&drawing, &PlotFont::new(), 8, 4).unwrap();
        assert_eq!(file[..8], SIGNATURE);
        assert_eq!(&file[12..16], b"IHDR");
        assert_eq!(file[16..24], [0, 0, 0, 8, 0, 0, 0, 4]);
        let length = u32::from_be_bytes(file[33..37].try_into().unwrap()) as usize;
        let mut rows = Vec::new();
        let mut decoder = ZlibDecoder::new(&file[41..41 + length]);
        decoder.read_to_end(&mut rows).unwrap();
        assert_eq!(rows.len(), 4 * (1 + 8 * PIXEL_BYTES));
        // Half of each row is filled, the other half is white.
        assert_eq!(rows[1..4], [10, 20, 30]);
        assert_eq!(rows[1 + 7 * 3..1 + 8 * 3], [255, 255, 255]);
    }
}
