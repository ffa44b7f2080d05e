//! [`LiveView`]: lines that are redrawn at the end of a terminal, for all commands. Without a
//! terminal, and with `TERM=dumb`, a plain line is written every few seconds.
//!
//! A terminal shows one view at a time: [`crate::drawn_view`]. Other text of this process on
//! standard error appears above it.

use super::pod_rows::pod_table;
use super::view_lines::ViewLines;
use crate::drawn_view::{ROWS_OUTSIDE, draw_clock, draw_lines, remove_view};
use crate::output::{is_live_terminal, locale_style};
use crate::terminal_text::{self, TerminalSize, shortened, wrapped_table};
use iosonde_job::escape_control_characters;
use iosonde_report::text_style::TextStyle;
use iosonde_result::observer::PodProgress;
use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Width from which the running row has a bar.
const COLUMNS_WITH_BAR: usize = 76;
/// Width of the bar at 80 columns, and the most that a wider terminal adds to it.
const BAR_COLUMNS: usize = 12;
const BAR_COLUMNS_ADDED_MAX: usize = 28;
/// Largest width of a row's title, and the columns that its figure and its time need beside it.
const TITLE_COLUMNS: usize = 28;
const FIGURE_COLUMNS: usize = 22;
/// Columns of the name in the first line of a narrow view.
const NAME_COLUMNS_MIN: usize = 8;
/// Time between two redraws without news.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two plain lines.
const LINE_INTERVAL_NS: u64 = 3_000_000_000;

/// Number of views so far.
static VIEWS: AtomicU64 = AtomicU64::new(0);

/// Lines of one command on standard error.
pub(crate) struct LiveView {
    id: u64,
    /// Whether standard error can be redrawn.
    is_live: bool,
    /// Characters of the locale.
    style: TextStyle,
    /// Destination of plain lines. `None`: standard error.
    lines: Option<RefCell<Box<dyn Write + Send>>>,
    redrawn: Option<Instant>,
    /// Time of the current step at which the next plain line is due.
    next_line_ns: u64,
}

impl LiveView {
    /// Creates a view on standard error.
    pub(super) fn new() -> LiveView {
        LiveView::on(is_live_terminal(), locale_style(false), None)
    }

    /// Creates a view that writes plain lines in ASCII to `lines`.
    #[cfg(test)]
    pub(super) fn plain(lines: Box<dyn Write + Send>) -> LiveView {
        let ascii = TextStyle::for_locale("C", false);
        LiveView::on(false, ascii, Some(RefCell::new(lines)))
    }

    fn on(
        is_live: bool,
        style: TextStyle,
        lines: Option<RefCell<Box<dyn Write + Send>>>,
    ) -> LiveView {
        LiveView {
            id: VIEWS.fetch_add(1, Relaxed),
            is_live,
            style,
            lines,
            redrawn: None,
            next_line_ns: LINE_INTERVAL_NS,
        }
    }

    /// Whether lines are redrawn. If not, each result is written as a plain line.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Sign between a figure and half its interval, in the characters of the locale.
    pub(super) fn plus_minus(&self) -> &'static str {
        self.style.plus_minus()
    }

    /// Writes a line, above the view if there is one. A terminal wraps it at words. Errors are
    /// ignored: results come later.
    pub(super) fn line(&self, text: &str) {
        match &self.lines {
            Some(lines) => {
                let text = escape_control_characters(text);
                let _ = writeln!(lines.borrow_mut(), "{text}");
            }
            None => match terminal_text::columns(io::stderr()) {
                Some(columns) => eprintln!("{}", wrapped_table(text, columns, 0)),
                None => eprintln!("{text}"),
            },
        }
    }

    /// Redraws if there is news, or if the last redraw is some time ago. `lines` receives the width
    /// of the terminal and the number of lines that have room on it.
    pub(super) fn redraw(&mut self, is_news: bool, lines: impl FnOnce(TerminalSize) -> ViewLines) {
        let is_due = |at: Instant| at.elapsed() >= REDRAW_INTERVAL;
        if !self.is_live || !is_news && !self.redrawn.is_none_or(is_due) {
            return;
        }
        self.redrawn = Some(Instant::now());
        draw_lines(self.id, &escaped(room_of(TerminalSize::of_stderr()), lines));
    }

    /// Shows one line with the time since its first call. It is redrawn although nothing happens.
    pub(super) fn wait(&mut self, text: &str) {
        if self.is_live {
            let text = escape_control_characters(text).replace('\n', " ");
            draw_clock(self.id, text);
        }
    }

    /// Starts the wait for the first plain line of a step.
    pub(super) fn begin_step(&mut self) {
        self.next_line_ns = LINE_INTERVAL_NS;
    }

    /// Writes a plain line every few seconds, unless lines are redrawn. `at_ns`: time of the step.
    pub(super) fn plain_line(&mut self, at_ns: u64, text: impl FnOnce() -> String) {
        if !self.is_live && at_ns >= self.next_line_ns {
            self.next_line_ns = at_ns + LINE_INTERVAL_NS;
            self.line(&text());
        }
    }

    /// Removes the redrawn lines. The next redraw brings them back.
    pub(super) fn clear(&mut self) {
        self.redrawn = None;
        if self.is_live {
            remove_view(self.id);
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Width of the terminal, and the lines of a view that it has room for.
fn room_of(terminal: TerminalSize) -> TerminalSize {
    TerminalSize {
        rows: terminal.rows.saturating_sub(ROWS_OUTSIDE).max(1),
        ..terminal
    }
}

/// Lines that have room, with control characters escaped.
fn escaped(room: TerminalSize, lines: impl FnOnce(TerminalSize) -> ViewLines) -> Vec<String> {
    let escape = |line: &String| escape_control_characters(line).replace('\n', " ");
    let lines = lines(room).fitted(room.rows);
    lines.iter().map(escape).collect()
}

/// First line of a view: the object that is measured, and the time left. A long name gives way, in
/// a narrow terminal the whole name.
pub(super) fn head_line(name: &str, left: &str, columns: usize) -> String {
    const STOP: &str = "Ctrl-C stops early";
    let rest = match left.is_empty() {
        true => STOP.to_owned(),
        false => format!("{left} left, {STOP}"),
    };
    let room = columns.saturating_sub(rest.len() + 3).max(NAME_COLUMNS_MIN);
    let named = format!("{}  {rest}", shortened(name, room));
    let candidates = [named, rest, format!("{left} left, Ctrl-C stops")];
    let mut fitting = candidates.into_iter();
    let fits = |line: &String| line.chars().count() < columns;
    fitting.find(fits).unwrap_or_else(|| STOP.to_owned())
}

/// Last lines of a view: the last second, and a table of several pods.
pub(super) fn activity_lines(
    parts: &[String],
    pods: &[PodProgress],
    columns: usize,
) -> Vec<String> {
    let mut lines = vec![activity_line(parts, columns)];
    if !pods.is_empty() {
        lines.extend(pod_table(pods, &[], columns).lines().map(str::to_owned));
    }
    lines
}

/// The last second, as many parts as fit.
pub(super) fn activity_line(parts: &[String], columns: usize) -> String {
    let mut now = "now".to_owned();
    for (index, part) in parts.iter().enumerate() {
        let separator = if index == 0 { " " } else { ", " };
        if now.len() + separator.len() + part.len() < columns {
            now.push_str(separator);
            now.push_str(part);
        }
    }
    now
}

/// A step that has not begun, runs, or is complete.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepRow<'a> {
    pub(super) title: &'a str,
    /// The figure, or the mean so far.
    pub(super) rate: &'a str,
    /// Its interval, or details of the result.
    pub(super) known: &'a str,
}

impl StepRow<'_> {
    /// Row of a step that does not run.
    pub(super) fn resting(&self, columns: usize) -> String {
        self.text(' ', columns).trim_end().to_owned()
    }

    /// Row of a step that runs: `share` of it is done, and `left` is its time left.
    pub(super) fn running(&self, share: Option<f64>, left: &str, columns: usize) -> String {
        if columns < COLUMNS_WITH_BAR {
            let row = StepRow {
                known: left,
                ..*self
            };
            return row.text('>', columns).trim_end().to_owned();
        }
        let line = self.text('>', columns);
        let Some(share) = share else {
            return line.trim_end().to_owned();
        };
        let added = columns.saturating_sub(TerminalSize::USUAL.columns);
        let bar = BAR_COLUMNS + added.min(BAR_COLUMNS_ADDED_MAX);
        let full = "=".repeat((share.clamp(0.0, 1.0) * bar as f64).round() as usize);
        format!("{line:<55} [{full:<bar$}] {left}")
            .trim_end()
            .to_owned()
    }

    fn text(&self, mark: char, columns: usize) -> String {
        let StepRow { title, rate, known } = self;
        let width = columns
            .saturating_sub(FIGURE_COLUMNS)
            .clamp(8, TITLE_COLUMNS);
        let title = match columns < COLUMNS_WITH_BAR {
            true => shortened(title, width),
            false => (*title).to_owned(),
        };
        format!("{mark} {title:<width$} {rate:<12} {known}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: StepRow<'_> = StepRow {
        title: "4k random read, depth 64",
        rate: "84.2k IOPS",
        known: "+- 3.4 %",
    };

    #[test]
    fn running_row_shows_what_each_width_has_room_for() {
        let row = |columns| ROW.running(Some(0.5), "4 s", columns);
        assert_eq!(row(40), "> 4k random read, d~ 84.2k IOPS   4 s");
        let usual = "> 4k random read, depth 64     84.2k IOPS   +- 3.4 %    [======      ] 4 s";
        assert_eq!(row(80), usual);
        let bar = format!("[{}{}] 4 s", "=".repeat(20), " ".repeat(20));
        assert!(row(120).ends_with(&bar) && row(120).chars().count() < 120);
    }

    #[test]
    fn view_lines_fit_each_terminal_and_are_escaped() {
        for (columns, rows) in [(40, 10), (80, 24), (120, 40), (40, 1)] {
            let room = room_of(TerminalSize { columns, rows });
            let view = |room: TerminalSize| ViewLines {
                head: "a\x1b[31m\nb".to_owned(),
                steps: vec![ROW.running(Some(0.5), "4 s", room.columns); 50],
                ..ViewLines::default()
            };
            let lines = escaped(room, view);
            // A row of earlier text stays, and so does the empty one above the view.
            assert!(lines.len() + ROWS_OUTSIDE <= rows.max(3), "{lines:?}");
            assert!(!lines.concat().contains(['\x1b', '\n']), "{lines:?}");
            let row = lines.last().unwrap();
            assert!(row.contains("84.2k IOPS") && row.ends_with("4 s"), "{row}");
            assert!(row.chars().count() < columns, "{row}");
        }
    }

    #[test]
    fn head_line_begins_with_the_name_and_keeps_the_time() {
        let head = |name, columns| head_line(name, "about 5 s", columns);
        assert_eq!(
            head("/data", 80),
            "/data  about 5 s left, Ctrl-C stops early"
        );
        let narrow = head("/a/long/directory", 45);
        assert_eq!(narrow, "/a/long~  about 5 s left, Ctrl-C stops early");
        assert_eq!(head_line("/data", "", 80), "/data  Ctrl-C stops early");
        assert_eq!(head("/data", 40), "about 5 s left, Ctrl-C stops early");
        let lowest = head_line("/data", "26 s to 1 min 4 s", 40);
        assert_eq!(lowest, "26 s to 1 min 4 s left, Ctrl-C stops");
    }

    #[test]
    fn activity_line_drops_parts_that_do_not_fit() {
        let parts = ["84.2k IOPS", "329 MiB/s", "nvme0n1 98 % busy"].map(str::to_owned);
        assert_eq!(activity_line(&parts, 40), "now 84.2k IOPS, 329 MiB/s");
        assert!(activity_line(&parts, 80).ends_with("busy"));
    }

    #[test]
    fn plain_lines_keep_their_distance() {
        let mut view = LiveView::plain(Box::new(io::sink()));
        let second = 1_000_000_000;
        let mut due = Vec::new();
        for at_s in [1, 3, 4, 5, 6, 20] {
            view.plain_line(at_s * second, || {
                due.push(at_s);
                String::new()
            });
        }
        assert_eq!(due, [3, 6, 20]);
    }
}
