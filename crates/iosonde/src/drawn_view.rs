//! The live view on the terminal, for text that is written above it, and for all that removes it.
//!
//! Each line of a view ends with a line break, not with blanks up to the last column: a terminal
//! that becomes wider would join lines that fill it.

use crate::terminal_text::{TerminalSize, cut_to_columns, width_of};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::env;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Time between two redraws of a clock.
const CLOCK_INTERVAL: Duration = Duration::from_millis(250);
/// Rows of a terminal that are no part of a view: the empty row above its first line, and a row of
/// the text before it.
pub(crate) const ROWS_OUTSIDE: usize = 2;

/// Control sequences that switch the wrapping of long lines off and on: a terminal that becomes
/// narrower while it is drawn to must not get more rows.
const NO_WRAPPING: &str = "\x1b[?7l";
const WRAPPING: &str = "\x1b[?7h";

/// The view on the terminal. Locked while it is redrawn.
static ON_TERMINAL: Mutex<Option<DrawnView>> = Mutex::new(None);

/// The view at the end of the terminal.
struct DrawnView {
    /// Number of the view that has drawn it.
    owner: u64,
    content: DrawnContent,
}

/// Content of a view.
enum DrawnContent {
    /// Lines that are narrower than the terminal was when they were drawn. The first one is empty:
    /// the `^C` that a terminal prints may wrap behind the last line, so that the first one stays
    /// when the view is removed.
    Lines(Vec<String>),
    /// One line with the time since its first call.
    Clock(ProgressBar),
}

impl DrawnView {
    /// Removes the view from the terminal.
    fn erase(&self) {
        match &self.content {
            DrawnContent::Lines(_) => write_to_terminal(&erasure(self.rows())),
            DrawnContent::Clock(bar) => bar.finish_and_clear(),
        }
    }

    /// Number of rows that the view has on the terminal now.
    fn rows(&self) -> usize {
        match &self.content {
            DrawnContent::Lines(lines) => {
                let columns = TerminalSize::of_stderr().columns;
                rows_of(lines, has_reflow().then_some(columns))
            }
            DrawnContent::Clock(_) => 1,
        }
    }
}

fn on_terminal() -> MutexGuard<'static, Option<DrawnView>> {
    ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws the lines of the view `owner` over those that it drew before. Lines beyond the size of the
/// terminal are cut.
pub(crate) fn draw_lines(owner: u64, lines: &[String]) {
    let mut on_terminal = on_terminal();
    let is_over = |drawn: &mut DrawnView| {
        drawn.owner != owner || matches!(drawn.content, DrawnContent::Clock(_))
    };
    if let Some(other) = on_terminal.take_if(is_over) {
        other.erase();
    }
    let rows = on_terminal.as_ref().map_or(0, DrawnView::rows);
    let lines = std::iter::once(String::new()).chain(lines.iter().cloned());
    let lines = fitted(lines.collect(), TerminalSize::of_stderr());
    write_to_terminal(&drawing(&lines, rows));
    *on_terminal = Some(DrawnView {
        owner,
        content: DrawnContent::Lines(lines),
    });
}

/// Draws one line of the view `owner` with the time since its first call. It is redrawn although
/// nothing happens.
pub(crate) fn draw_clock(owner: u64, text: String) {
    let mut on_terminal = on_terminal();
    let is_over = |drawn: &mut DrawnView| {
        drawn.owner != owner || matches!(drawn.content, DrawnContent::Lines(_))
    };
    if let Some(other) = on_terminal.take_if(is_over) {
        other.erase();
    }
    let drawn = on_terminal.get_or_insert_with(|| DrawnView {
        owner,
        content: DrawnContent::Clock(clock_bar()),
    });
    if let DrawnContent::Clock(bar) = &drawn.content {
        bar.set_message(text);
        bar.force_draw();
    }
}

fn clock_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(1));
    // The template has no colours, so that `NO_COLOR` needs no other.
    if let Ok(style) = ProgressStyle::with_template("{wide_msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(CLOCK_INTERVAL);
    bar
}

/// Removes the view if `owner` has drawn it.
pub(crate) fn remove_view(owner: u64) {
    if let Some(drawn) = on_terminal().take_if(|drawn| drawn.owner == owner) {
        drawn.erase();
    }
}

/// Writes whole lines to standard error, above the view if there is one.
pub(crate) fn write_above(write: impl FnOnce()) {
    let mut on_terminal = on_terminal();
    let Some(drawn) = &mut *on_terminal else {
        return write();
    };
    if let DrawnContent::Clock(bar) = &drawn.content {
        return bar.suspend(write);
    }
    drawn.erase();
    write();
    if let DrawnContent::Lines(lines) = &mut drawn.content {
        *lines = fitted(std::mem::take(lines), TerminalSize::of_stderr());
        write_to_terminal(&drawing(lines, 0));
    }
}

/// Removes the view and calls `wait`. The next redraw brings the view back.
pub(crate) fn leave_terminal(wait: impl FnOnce()) {
    let mut on_terminal = on_terminal();
    if let Some(drawn) = on_terminal.take() {
        drawn.erase();
    }
    wait();
}

/// Erases the view when a thread panics, so that the message starts on a line of its own and the
/// cursor is visible.
pub(crate) fn erase_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The panicking thread itself may hold the lock.
        let drawn = match ON_TERMINAL.try_lock() {
            Ok(mut on_terminal) => on_terminal.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(drawn) = drawn {
            // indicatif draws nothing in a thread that panics.
            write_to_terminal(&erasure(drawn.rows()));
        }
        report(panic);
    }));
}

/// Writes to standard error. Errors are ignored: a measurement must continue.
fn write_to_terminal(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the terminal wraps lines anew when it becomes narrower, as most do. xterm, the console
/// and GNU Screen cut them.
fn has_reflow() -> bool {
    let is_console = env::var_os("TERM").is_some_and(|term| term == "linux");
    let is_set = |name| env::var_os(name).is_some();
    !is_console && !is_set("XTERM_VERSION") && !is_set("STY")
}

/// Rows of lines on a terminal. `columns`: width of a terminal that wraps lines anew. If it became
/// narrower, how it wraps is not certain: the first row, which is empty, is left rather than the
/// text above it erased.
fn rows_of(lines: &[String], columns: Option<usize>) -> usize {
    let rows = |line: &String| match columns {
        Some(columns) => width_of(line).div_ceil(columns.max(1)).max(1),
        None => 1,
    };
    let rows: usize = lines.iter().map(rows).sum();
    rows - usize::from(rows > lines.len())
}

/// Cuts lines to the terminal. Some terminals wrap in the last column. The first lines give way.
fn fitted(lines: Vec<String>, size: TerminalSize) -> Vec<String> {
    let hidden = lines.len().saturating_sub(size.rows);
    let shown = lines.into_iter().skip(hidden);
    let cut = |line: String| cut_to_columns(&line, size.columns.saturating_sub(1));
    shown.map(cut).collect()
}

/// Control sequence to the start of the first of `rows` rows, the last of which holds the cursor.
fn start_of(rows: usize) -> String {
    match rows {
        0 => String::new(),
        1 => "\r".to_owned(),
        rows => format!("\r\x1b[{}A", rows - 1),
    }
}

/// Text that draws lines over `rows` rows, the last of which holds the cursor.
fn drawing(lines: &[String], rows: usize) -> String {
    let mut text = NO_WRAPPING.to_owned() + &start_of(rows);
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            text.push_str("\r\n");
        }
        text.push_str(line);
        text.push_str("\x1b[K");
    }
    // Rows below, of an earlier view.
    text.push_str("\x1b[J");
    text.push_str(WRAPPING);
    text
}

/// Control sequence that erases `rows` rows, the last of which holds the cursor, and shows it. Long
/// lines wrap again, also after a drawing that was cut short.
fn erasure(rows: usize) -> String {
    format!("{}\x1b[J{WRAPPING}\x1b[?25h", start_of(rows.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn panic_erases_all_rows_and_shows_cursor() {
        assert_eq!(erasure(3), "\r\x1b[2A\x1b[J\x1b[?7h\x1b[?25h");
        assert_eq!(erasure(1), "\r\x1b[J\x1b[?7h\x1b[?25h");
    }

    #[test]
    fn lines_are_drawn_over_rows_of_last_drawing() {
        let two = lines(&["", "now 5"]);
        let drawn = "\x1b[K\r\nnow 5\x1b[K\x1b[J\x1b[?7h";
        assert_eq!(drawing(&two, 0), format!("\x1b[?7l{drawn}"));
        assert_eq!(drawing(&two, 3), format!("\x1b[?7l\r\x1b[2A{drawn}"));
    }

    #[test]
    fn narrower_terminal_wraps_drawn_lines_into_more_rows() {
        let drawn = lines(&["", &"x".repeat(79), "now 5"]);
        assert_eq!(rows_of(&drawn, Some(80)), 3);
        // Of the four and six rows, the empty first one is left.
        assert_eq!(rows_of(&drawn, Some(40)), 3);
        assert_eq!(rows_of(&drawn, Some(20)), 5);
        // A wider terminal joins no lines.
        assert_eq!(rows_of(&drawn, Some(200)), 3);
        assert_eq!(rows_of(&drawn, None), 3);
    }

    #[test]
    fn drawn_lines_never_exceed_the_terminal() {
        let drawn: Vec<String> = (0..50)
            .map(|row| format!("{row}{}", "x".repeat(200)))
            .collect();
        for (columns, rows) in [(40, 10), (80, 24), (120, 40), (1, 1)] {
            let shown = fitted(drawn.clone(), TerminalSize { columns, rows });
            assert_eq!(shown.len(), rows);
            assert!(shown.iter().all(|line| line.len() < columns), "{shown:?}");
            assert_eq!(rows_of(&shown, Some(columns)), rows);
        }
        let shown = fitted(drawn, TerminalSize::USUAL);
        assert!(shown[23].starts_with("49"), "{shown:?}");
    }
}
