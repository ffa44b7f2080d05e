//! Lays a chart out: title, legend or names at the ends of lines, panels with axes, notes.
//!
//! The width of each text is measured, so that no text overlaps another one or is cut off.

use super::chart_axes::{draw_horizontal_axis, draw_vertical_axis, vertical_room};
use super::chart_canvas::{ChartCanvas, LABEL_SIZE, NAME_GAP, NAME_STEP, PlotArea};
use super::chart_data::{ChartData, ChartPanel, SeriesShape};
use super::chart_marks::{draw_cells, draw_limits, draw_moments, draw_series};
use super::drawing::{ChartDrawing, DASHES, Palette, Shape, TextAnchor};
use super::end_labels::{are_near_lines, end_labels, lines_beneath};
use super::end_names::draw_end_names;
use super::plot_font::PlotFont;
use iosonde_result::words;

/// Room at the edges of a chart.
const MARGIN: f64 = 24.0;
/// Font sizes.
const TITLE_SIZE: f64 = 21.0;
const SUBTITLE_SIZE: f64 = 13.0;
const NOTE_SIZE: f64 = 10.5;
/// Distance of the baselines of notes.
const NOTE_STEP: f64 = 15.0;
/// Most lines of notes. Notes that need more lines are counted.
const NOTE_LINES_MAX: usize = 4;
/// Notes take at most this share of the height, but at least a line.
const NOTE_SHARE_MAX: f64 = 0.12;
/// Most lines of the text on date, kernel and program.
const SOURCE_LINES_MAX: usize = 2;
/// Room above each panel for the name of its axis.
const PANEL_HEAD: f64 = 30.0;
/// Room below the last panel for tick labels and the name of the horizontal axis.
const AXIS_FOOT: f64 = 46.0;
/// Names at the ends of lines take at most this share of the width. Longer names need a legend.
const NAME_SHARE_MAX: f64 = 0.3;

/// Returns the shapes of a chart. Notes have the names of limits without room at their lines. Such
/// a note takes room from the panels, so that the chart is laid out anew until no further name is
/// without room.
pub(super) fn lay_out(
    data: &ChartData,
    palette: &Palette,
    font: &PlotFont,
    size: (f64, f64),
) -> ChartDrawing {
    let mut unnamed = Vec::new();
    loop {
        let count = unnamed.len();
        let drawing = draw_chart(data, palette, font, size, &mut unnamed);
        if unnamed.len() == count {
            return drawing;
        }
    }
}

/// Draws a chart with notes on the limits in `unnamed`. Adds further limits whose names have no
/// room.
fn draw_chart(
    data: &ChartData,
    palette: &Palette,
    font: &PlotFont,
    (width, height): (f64, f64),
    unnamed: &mut Vec<String>,
) -> ChartDrawing {
    let mut canvas = ChartCanvas {
        font,
        palette,
        shapes: vec![Shape::Rectangle {
            left: 0.0,
            top: 0.0,
            width,
            height,
            fill: palette.background,
        }],
    };
    let room = width - 2.0 * MARGIN;
    let title = (TITLE_SIZE, palette.text, TextAnchor::Start);
    canvas.text((MARGIN, 40.0), &data.title, room, title);
    let subtitle = (SUBTITLE_SIZE, palette.muted, TextAnchor::Start);
    canvas.text((MARGIN, 62.0), &data.subtitle, room, subtitle);
    let mut footer = data.footer.clone();
    let notes = unnamed.iter();
    footer.extend(notes.map(|name| format!("{name}: drawn without a name")));
    let foot = draw_notes(&mut canvas, &footer, (width, height));
    let count = data.panels.len().max(1) as f64;
    let name_room = end_name_room(
        data,
        font,
        width,
        (foot - 90.0 - AXIS_FOOT) / count - PANEL_HEAD,
    );
    let head = match name_room {
        Some(_) => 70.0,
        None => draw_legend(&mut canvas, data, 84.0, room),
    };
    let left = MARGIN + vertical_room(data, font, width * 0.3);
    // The last tick label is centred on the end of the axis.
    let last = data.x.ticks.last().map_or("", |tick| tick.text.as_str());
    let overhang = font.width(last, LABEL_SIZE) / 2.0 + 4.0;
    let right = width - overhang.max(MARGIN + name_room.unwrap_or_default());
    let step = (foot - AXIS_FOOT - head) / count;
    for (index, panel) in data.panels.iter().enumerate() {
        let area = PlotArea {
            left,
            right,
            top: head + step * index as f64 + PANEL_HEAD,
            bottom: head + step * (index + 1) as f64,
        };
        let is_last = index + 1 == data.panels.len();
        let placed = (is_last, name_room);
        draw_panel(&mut canvas, data, panel, area, placed, unnamed);
    }
    ChartDrawing {
        width,
        height,
        title: font.fitted(&data.title, TITLE_SIZE, room),
        shapes: canvas.shapes,
    }
}

fn draw_panel(
    canvas: &mut ChartCanvas,
    data: &ChartData,
    panel: &ChartPanel,
    area: PlotArea,
    (is_last, name_room): (bool, Option<f64>),
    unnamed: &mut Vec<String>,
) {
    let style = (LABEL_SIZE, canvas.palette.muted, TextAnchor::Start);
    let room = area.right - MARGIN;
    canvas.text((MARGIN, area.top - 12.0), &panel.y.label, room, style);
    draw_moments(canvas, data, area);
    draw_vertical_axis(canvas, &panel.y, area);
    draw_horizontal_axis(canvas, &data.x, area, is_last);
    draw_cells(canvas, panel, area, &data.x);
    for (index, series) in panel.series.iter().enumerate() {
        let beneath = lines_beneath(panel, index);
        draw_series(canvas, series, (&data.x, &panel.y), area, beneath);
    }
    draw_limits(canvas, panel, area, unnamed);
    if let Some(room) = name_room {
        draw_end_names(canvas, panel, &data.x, area, room - NAME_GAP);
    }
}

/// Room for names at the right of the lines, in panels of the height `panel`. `None` if the chart
/// needs a legend: a name would be too long, or too far from its line.
fn end_name_room(data: &ChartData, font: &PlotFont, width: f64, panel: f64) -> Option<f64> {
    let all = || data.panels.iter().flat_map(|panel| &panel.series);
    if all().next().is_none() {
        return Some(0.0);
    }
    let is_filled = all().any(|series| series.shape == SeriesShape::Area);
    let labels: Vec<_> = data.panels.iter().map(end_labels).collect();
    let most = labels.iter().map(Vec::len).max();
    let widths = labels.iter().flatten();
    let widths = widths.map(|label| font.width(&label.text, LABEL_SIZE));
    let room = widths.fold(0.0, f64::max) + NAME_GAP + 2.0;
    let is_fitting = most.unwrap_or_default() as f64 * NAME_STEP <= panel;
    let mut panels = data.panels.iter().zip(&labels);
    let is_fitting =
        is_fitting && panels.all(|(drawn, labels)| are_near_lines(labels, &drawn.y, panel));
    (!is_filled && is_fitting && room <= width * NAME_SHARE_MAX).then_some(room)
}

/// Draws the names of all series in rows, and returns where they end.
fn draw_legend(canvas: &mut ChartCanvas, data: &ChartData, top: f64, room: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top);
    let mut drawn: Vec<&str> = Vec::new();
    for series in data.panels.iter().flat_map(|panel| &panel.series) {
        if drawn.contains(&series.name.as_str()) {
            continue;
        }
        drawn.push(&series.name);
        let name = canvas.font.fitted(&series.name, LABEL_SIZE, room - 40.0);
        let width = canvas.font.width(&name, LABEL_SIZE);
        if x > MARGIN && x + 34.0 + width > MARGIN + room {
            (x, y) = (MARGIN, y + NAME_STEP);
        }
        canvas.shapes.push(Shape::Line {
            points: vec![(x, y - 4.0), (x + 26.0, y - 4.0)],
            color: canvas.palette.series[series.slot % DASHES.len()],
            width: 3.0,
            dash: DASHES[series.dash % DASHES.len()],
        });
        let style = (LABEL_SIZE, canvas.palette.text, TextAnchor::Start);
        canvas.text((x + 32.0, y), &name, width + 1.0, style);
        x += 32.0 + width + 22.0;
    }
    y + 6.0
}

/// Draws the notes at the bottom, and returns where they begin.
fn draw_notes(canvas: &mut ChartCanvas, footer: &[String], (width, height): (f64, f64)) -> f64 {
    let style = (NOTE_SIZE, canvas.palette.muted, TextAnchor::Start);
    let room = width - 2.0 * MARGIN;
    let (source, notes) = match footer {
        [source, notes @ ..] => (source.as_str(), notes),
        [] => ("", footer),
    };
    let most = (height * NOTE_SHARE_MAX / NOTE_STEP) as usize;
    let most = most.clamp(1, NOTE_LINES_MAX);
    let mut lines = note_lines(canvas.font, notes, (room, most));
    let source_room = (room, SOURCE_LINES_MAX.min(most));
    lines.append(&mut cut_lines(canvas.font, source, "", source_room));
    let mut y = height - 14.0;
    for text in lines.iter().rev() {
        canvas.text((MARGIN, y), text, room, style);
        y -= NOTE_STEP;
    }
    y
}

/// Wraps the notes. Notes that need more than `most` lines are left out from the end and counted.
/// The first note is shortened if it needs more lines by itself.
fn note_lines(font: &PlotFont, notes: &[String], (room, most): (f64, usize)) -> Vec<String> {
    let Some(first) = notes.first() else {
        return Vec::new();
    };
    let counted = |others: usize| words::counted(others, "more note");
    for kept in (1..=notes.len()).rev() {
        let mut parts = notes[..kept].to_vec();
        if kept < notes.len() {
            parts.push(counted(notes.len() - kept));
        }
        let lines = font.wrapped(&parts.join("; "), NOTE_SIZE, room);
        if lines.len() <= most {
            return lines;
        }
    }
    let end = match notes.len() - 1 {
        0 => String::new(),
        others => format!("; {}", counted(others)),
    };
    cut_lines(font, first, &end, (room, most))
}

/// Wraps a text into at most `most` lines, of which the last one is shortened to its room before
/// `end`.
fn cut_lines(font: &PlotFont, text: &str, end: &str, (room, most): (f64, usize)) -> Vec<String> {
    let mut lines = font.wrapped(text, NOTE_SIZE, room);
    if lines.len() <= most && end.is_empty() {
        return lines;
    }
    let last = lines.split_off(lines.len().min(most).saturating_sub(1));
    let last_room = room - font.width(end, NOTE_SIZE);
    let last = font.fitted(&last.join(" "), NOTE_SIZE, last_room);
    lines.push(format!("{last}{end}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_wrap_and_others_are_counted() {
        let font = PlotFont::new();
        let notes = |count: usize| vec!["a note of seven or more short words".to_owned(); count];
        let room = (400.0, 4);
        assert_eq!(note_lines(&font, &notes(0), room), Vec::<String>::new());
        let lines = note_lines(&font, &notes(3), room);
        assert_eq!(lines.join(" "), notes(3).join("; "), "all words are kept");
        let crowded = note_lines(&font, &notes(30), room);
        assert_eq!(crowded.len(), 4);
        assert!(crowded.join(" ").ends_with(" more notes"), "{crowded:?}");
        for line in &crowded {
            assert!(font.width(line, NOTE_SIZE) <= room.0, "{line}");
        }
    }

    #[test]
    fn first_note_without_room_is_shortened() {
        let font = PlotFont::new();
        let long = || "a note of seven or more short words ".repeat(20);
        let alone = note_lines(&font, &[long()], (400.0, 2));
        assert_eq!(alone.len(), 2);
        assert!(
            alone[0].starts_with("a note") && alone[1].contains('…'),
            "{alone:?}"
        );
        let notes = [long(), "b".to_owned(), "c".to_owned()];
        let lines = note_lines(&font, &notes, (400.0, 1));
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert!(line.starts_with("a note") && line.contains('…'), "{line}");
        assert!(line.ends_with("; 2 more notes"), "{line}");
        assert!(font.width(line, NOTE_SIZE) <= 400.0, "{line}");
    }

    #[test]
    fn long_source_ends_with_an_ellipsis_in_its_last_line() {
        let font = PlotFont::new();
        let lines = cut_lines(&font, &"kernel and program ".repeat(40), "", (400.0, 2));
        assert_eq!(lines.len(), 2);
        assert!(lines[1].contains('…'), "{lines:?}");
        let short = cut_lines(&font, "program", "", (400.0, 2));
        assert_eq!(short, ["program"]);
        assert!(cut_lines(&font, "", "", (400.0, 2)).is_empty());
    }
}
