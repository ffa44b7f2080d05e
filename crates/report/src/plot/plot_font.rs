//! The embedded font: widths of texts, and outlines for PNG.
//!
//! The font is Arimo, whose widths are those of Arial, Helvetica and Liberation Sans. A viewer of
//! an SVG file therefore needs the same room for a text as the layout has measured.

use iosonde_job::escape_control_characters;
use tiny_skia::PathBuilder;
use ttf_parser::{Face, OutlineBuilder};

/// Latin, Greek and Cyrillic letters of Arimo. `data/fonts/README.md` has source and licence.
static FONT: &[u8] = include_bytes!("../../../../data/fonts/Arimo-Latin.ttf");

/// Families for SVG, all of the same widths.
pub(super) const FAMILIES: &str = "Arimo, 'Liberation Sans', Arial, Helvetica, sans-serif";

/// Width of a character that the font does not have, as a share of the font size.
const UNKNOWN_WIDTH: f64 = 1.0;

/// Stands for the part of a text that is left out.
const ELLIPSIS: &[char] = &['…'];

/// Longest text in characters, before it is shortened to its room.
const TEXT_CHARACTERS_MAX: usize = 400;

/// The font, parsed.
pub(super) struct PlotFont {
    face: Option<Face<'static>>,
}

impl PlotFont {
    /// Parses the embedded font. A test proves that this succeeds.
    pub(super) fn new() -> PlotFont {
        PlotFont {
            face: Face::parse(FONT, 0).ok(),
        }
    }

    /// Width of a text in pixels.
    pub(super) fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|sign| self.advance(sign)).sum::<f64>() * size
    }

    /// Width of a character as a share of the font size.
    fn advance(&self, sign: char) -> f64 {
        let Some(face) = &self.face else {
            return UNKNOWN_WIDTH;
        };
        let glyph = face.glyph_index(sign);
        let units = glyph.and_then(|glyph| face.glyph_hor_advance(glyph));
        let em = f64::from(face.units_per_em());
        units.map_or(UNKNOWN_WIDTH, |units| f64::from(units) / em)
    }

    /// Shortens a text in the middle to a width, as names mostly differ at the end. Control
    /// characters and marks that turn the text around are written out.
    pub(super) fn fitted(&self, text: &str, size: f64, room: f64) -> String {
        let visible = escape_control_characters(text).replace(['\n', '\t'], " ");
        let signs: Vec<char> = visible.chars().collect();
        if signs.len() <= TEXT_CHARACTERS_MAX && self.width(&visible, size) <= room {
            return visible;
        }
        let cut = |kept: usize| {
            let head = kept / 3;
            let tail = &signs[signs.len() - (kept - head)..];
            let signs = signs[..head].iter().chain(ELLIPSIS).chain(tail);
            signs.collect::<String>()
        };
        let most = signs.len().min(TEXT_CHARACTERS_MAX);
        let mut lengths = (1..most).rev().map(cut);
        let fitting = lengths.find(|text| self.width(text, size) <= room);
        fitting.unwrap_or_else(|| "…".to_owned())
    }

    /// Breaks a text between words into lines of at most `room` pixels. A word that is longer has a
    /// line of its own.
    pub(super) fn wrapped(&self, text: &str, size: f64, room: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if self.width(&format!("{line} {word}"), size) <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines
    }

    /// Adds the outlines of a text that starts at `(x, y)` on the baseline.
    pub(super) fn outline(
        &self,
        text: &str,
        size: f64,
        (x, y): (f64, f64),
        path: &mut PathBuilder,
    ) {
        let Some(face) = &self.face else {
            return;
        };
        let scale = (size / f64::from(face.units_per_em())) as f32;
        let mut left = x;
        for sign in text.chars() {
            // U+FFFD stands for characters that the font does not have.
            let glyph = face
                .glyph_index(sign)
                .or_else(|| face.glyph_index('\u{fffd}'));
            if let Some(glyph) = glyph {
                let mut outline = GlyphOutline {
                    path: &mut *path,
                    scale,
                    left: left as f32,
                    baseline: y as f32,
                };
                // A space has no outline.
                let _ = face.outline_glyph(glyph, &mut outline);
            }
            left += self.advance(sign) * size;
        }
    }
}

/// Adds a glyph to a path.
struct GlyphOutline<'a> {
    path: &'a mut PathBuilder,
    scale: f32,
    left: f32,
    baseline: f32,
}

impl GlyphOutline<'_> {
    /// Converts font units, whose vertical axis points upwards.
    fn point(&self, x: f32, y: f32) -> (f32, f32) {
        (self.left + x * self.scale, self.baseline - y * self.scale)
    }
}

impl OutlineBuilder for GlyphOutline<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.point(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.point(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.point(x1, y1), self.point(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2)) = (self.point(x1, y1), self.point(x2, y2));
        let (x, y) = self.point(x, y);
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_font_has_the_widths_of_arial() {
        let font = PlotFont::new();
        // In units of 1/2048 em: 1139 for a digit, 1366 for A.
        assert!((font.width("0", 2048.0) - 1139.0).abs() < 0.5);
        assert!((font.width("A", 2048.0) - 1366.0).abs() < 0.5);
        let face = font.face.unwrap();
        for sign in "µ±×·–…\u{fffd}éßж".chars() {
            assert!(face.glyph_index(sign).is_some(), "{sign}");
        }
    }

    #[test]
    fn long_hostile_names_fit_their_room() {
        let font = PlotFont::new();
        let name = format!("\u{202e}start{}end", "x".repeat(10_000));
        let fitted = font.fitted(&name, 12.0, 100.0);
        assert!(font.width(&fitted, 12.0) <= 100.0);
        assert!(
            fitted.ends_with("end") && !fitted.contains('\u{202e}'),
            "{fitted}"
        );
        assert_eq!(font.fitted("short", 12.0, 100.0), "short");
    }

    #[test]
    fn outline_of_text_covers_its_width() {
        let font = PlotFont::new();
        let mut path = PathBuilder::new();
        font.outline("iosonde", 20.0, (10.0, 30.0), &mut path);
        let bounds = path.finish().unwrap().bounds();
        let end = 10.0 + font.width("iosonde", 20.0) as f32;
        assert!(bounds.left() >= 9.0 && bounds.right() <= end + 1.0);
        assert!(bounds.bottom() <= 31.0 && bounds.top() > 10.0);
    }
}
