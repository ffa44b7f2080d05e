//! A screen of a terminal as an SVG file.
//!
//! Each word has its own place and width on the grid of the terminal, so the columns line up in
//! every font. Bars and shades are drawn as rectangles, which are the same in every font too.

use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Width and height of a character in pixels, and the size of the font.
const CELL_WIDTH_PX: f64 = 8.4;
const CELL_HEIGHT_PX: f64 = 19.0;
const FONT_SIZE_PX: u32 = 14;
/// From the top of a line to its baseline, in pixels.
const BASELINE_PX: f64 = 14.0;
/// Room above a bar or shade, which separates those of neighbouring lines, in pixels.
const BLOCK_GAP_PX: f64 = 3.0;
/// Room around the text in pixels.
const MARGIN_PX: f64 = 16.0;
/// Columns of the terminal.
pub(super) const COLUMNS: usize = 80;

/// Colours of a terminal, those of the charts of `iosonde plot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenTheme {
    /// Dark on white.
    Light,
    /// Light on dark.
    Dark,
}

impl ScreenTheme {
    /// The theme as `iosonde plot --theme` and names of files have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            ScreenTheme::Light => "light",
            ScreenTheme::Dark => "dark",
        }
    }

    fn background(self) -> &'static str {
        match self {
            ScreenTheme::Light => "#ffffff",
            ScreenTheme::Dark => "#171c23",
        }
    }

    fn edge(self) -> &'static str {
        match self {
            ScreenTheme::Light => "#c9d1da",
            ScreenTheme::Dark => "#3a444f",
        }
    }

    fn ink(self, ink: ScreenInk) -> &'static str {
        match (self, ink) {
            (ScreenTheme::Light, ScreenInk::Text) => "#1b2430",
            (ScreenTheme::Light, ScreenInk::Prompt) => "#4d5966",
            (ScreenTheme::Light, ScreenInk::Red) => "#b3261e",
            (ScreenTheme::Light, ScreenInk::Green) => "#18743c",
            (ScreenTheme::Light, ScreenInk::Yellow) => "#8a5a00",
            (ScreenTheme::Dark, ScreenInk::Text) => "#e6ebf1",
            (ScreenTheme::Dark, ScreenInk::Prompt) => "#aab4c0",
            (ScreenTheme::Dark, ScreenInk::Red) => "#ff8a80",
            (ScreenTheme::Dark, ScreenInk::Green) => "#5fd38d",
            (ScreenTheme::Dark, ScreenInk::Yellow) => "#f0c05a",
        }
    }
}

/// Colour of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenInk {
    Text,
    Prompt,
    Red,
    Green,
    Yellow,
}

/// A line of the screen: its characters with their colours.
type ScreenLine = Vec<(char, ScreenInk)>;

/// Returns the SVG document of a command and its output, which may contain colours.
pub(super) fn terminal_svg(command: &str, output: &str, theme: ScreenTheme) -> Result<String> {
    let prompt = format!("$ {command}");
    let mut lines: Vec<ScreenLine> = vec![
        prompt
            .chars()
            .map(|sign| (sign, ScreenInk::Prompt))
            .collect(),
    ];
    lines.extend(screen_lines(output)?);
    if let Some(long) = lines.iter().find(|line| line.len() > COLUMNS) {
        let text: String = long.iter().map(|(sign, _)| sign).collect();
        bail!("a line of `{command}` is longer than {COLUMNS} columns: {text}");
    }
    let width = COLUMNS as f64 * CELL_WIDTH_PX + 2.0 * MARGIN_PX;
    let height = lines.len() as f64 * CELL_HEIGHT_PX + 2.0 * MARGIN_PX;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-size=\"{FONT_SIZE_PX}\" \
         font-family=\"'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace\">\n\
         <title>{}</title>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\" fill=\"{}\" \
         stroke=\"{}\"/>\n",
        escaped(&prompt),
        width - 1.0,
        height - 1.0,
        theme.background(),
        theme.edge(),
    );
    for (index, line) in lines.iter().enumerate() {
        let top = MARGIN_PX + index as f64 * CELL_HEIGHT_PX;
        add_line(&mut svg, line, top, theme).context("writing a line")?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Takes the colours out of a text. Other control sequences are refused.
fn screen_lines(output: &str) -> Result<Vec<ScreenLine>> {
    let mut ink = ScreenInk::Text;
    let mut lines = Vec::new();
    for text in output.trim_end().lines() {
        let mut line = ScreenLine::new();
        let mut rest = text.trim_end();
        while let Some(sign) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                let (code, after) = sequence
                    .split_once('m')
                    .with_context(|| format!("a control sequence is no colour: {text:?}"))?;
                ink = match code {
                    "0" => ScreenInk::Text,
                    "31" => ScreenInk::Red,
                    "32" => ScreenInk::Green,
                    "33" => ScreenInk::Yellow,
                    _ => bail!("the colour {code} is not known: {text:?}"),
                };
                rest = after;
                continue;
            }
            if sign.is_control() {
                bail!("a control character is no colour: {text:?}");
            }
            line.push((sign, ink));
            rest = &rest[sign.len_utf8()..];
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Adds the words and rectangles of a line.
fn add_line(
    svg: &mut String,
    line: &[(char, ScreenInk)],
    top: f64,
    theme: ScreenTheme,
) -> std::fmt::Result {
    let mut start = 0;
    while start < line.len() {
        let (first, ink) = line[start];
        let length = line[start..]
            .iter()
            .take_while(|&&(sign, other)| other == ink && continues(first, sign))
            .count();
        let end = start + length.max(1);
        let left = MARGIN_PX + start as f64 * CELL_WIDTH_PX;
        let width = (end - start) as f64 * CELL_WIDTH_PX;
        let fill = theme.ink(ink);
        if let Some(block) = ScreenBlock::for_character(first) {
            let height = block.height * (CELL_HEIGHT_PX - BLOCK_GAP_PX);
            let opacity = block.opacity;
            let y = top + CELL_HEIGHT_PX - height;
            writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 fill=\"{fill}\" fill-opacity=\"{opacity}\"/>",
            )?;
        } else if first != ' ' {
            let text: String = line[start..end].iter().map(|(sign, _)| sign).collect();
            let (y, text) = (top + BASELINE_PX, escaped(&text));
            writeln!(
                svg,
                "<text x=\"{left:.1}\" y=\"{y:.1}\" fill=\"{fill}\" textLength=\"{width:.1}\" \
                 lengthAdjust=\"spacingAndGlyphs\">{text}</text>",
            )?;
        }
        start = end;
    }
    Ok(())
}

/// Whether a character belongs to the piece that another one starts. Characters beyond ASCII may
/// have other widths than the font, so only equal ones share a piece.
fn continues(first: char, sign: char) -> bool {
    sign == first || (first.is_ascii_graphic() && sign.is_ascii_graphic())
}

/// A character of bars and shades: its height as a share of the highest bar, and its opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScreenBlock {
    height: f64,
    opacity: f64,
}

impl ScreenBlock {
    fn for_character(sign: char) -> Option<ScreenBlock> {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const SHADES: [(char, f64); 3] = [('░', 0.25), ('▒', 0.5), ('▓', 0.75)];
        if let Some(index) = BARS.iter().position(|bar| *bar == sign) {
            let height = (index + 1) as f64 / BARS.len() as f64;
            return Some(ScreenBlock {
                height,
                opacity: 1.0,
            });
        }
        let (_, opacity) = SHADES.into_iter().find(|(shade, _)| *shade == sign)?;
        Some(ScreenBlock {
            height: 1.0,
            opacity,
        })
    }
}

/// Returns a text with the marks of XML written out.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_words_keep_their_columns() {
        let output = "rate  \x1b[32m5 < 6\x1b[0m\r\n\n";
        let svg = terminal_svg("iosonde list", output, ScreenTheme::Light).unwrap();
        let texts: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<text"))
            .collect();
        let word = concat!(
            r##"<text x="16.0" y="49.0" fill="#1b2430" textLength="33.6" "##,
            r#"lengthAdjust="spacingAndGlyphs">rate</text>"#,
        );
        assert_eq!(texts.len(), 3 + 4, "{svg}");
        assert_eq!(texts[3], word);
        assert!(texts[4].contains(r#"x="66.4""#) && texts[4].contains("#18743c"));
        assert!(texts[5].contains("&lt;"), "{svg}");
    }

    #[test]
    fn bars_and_shades_become_rectangles() {
        let svg = terminal_svg("x", "▄▄ ░", ScreenTheme::Dark).unwrap();
        let blocks: Vec<&str> = svg
            .lines()
            .filter(|line| line.contains("opacity"))
            .collect();
        let bar = concat!(
            r##"<rect x="16.0" y="46.0" width="16.8" height="8.0" fill="#e6ebf1" "##,
            r#"fill-opacity="1"/>"#,
        );
        assert_eq!(blocks[0], bar);
        assert!(blocks[1].contains(r#"fill-opacity="0.25""#));
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn screen_with_unknown_controls_is_refused() {
        for output in ["\x1b[2K", "\x1b[35mx", "\x1bc", "a\rb", &"x".repeat(81)] {
            let drawn = terminal_svg("x", output, ScreenTheme::Light);
            assert!(drawn.is_err(), "{output:?}");
        }
    }
}
