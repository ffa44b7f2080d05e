//! The live view on the terminal, for text that is written above it, and for all that removes it.

use indicatif::ProgressBar;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The view on the terminal. Locked while it is redrawn.
static ON_TERMINAL: Mutex<Option<DrawnView>> = Mutex::new(None);

/// Lines at the end of the terminal.
pub(crate) struct DrawnView {
    /// Number of the view that has drawn it.
    pub(crate) owner: u64,
    pub(crate) bar: ProgressBar,
    /// Number of its lines on the terminal.
    pub(crate) rows: usize,
}

/// Locks the view on the terminal.
pub(crate) fn on_terminal() -> MutexGuard<'static, Option<DrawnView>> {
    ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes whole lines to standard error, above the view if there is one.
pub(crate) fn write_above(write: impl FnOnce()) {
    match &*on_terminal() {
        Some(drawn) => drawn.bar.suspend(write),
        None => write(),
    }
}

/// Removes the view and calls `wait`. The next redraw brings the view back.
pub(crate) fn leave_terminal(wait: impl FnOnce()) {
    let mut on_terminal = on_terminal();
    if let Some(drawn) = on_terminal.take() {
        drawn.bar.finish_and_clear();
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
            let _ = io::stderr().write_all(erasure(drawn.rows).as_bytes());
        }
        report(panic);
    }));
}

/// Control sequence that erases `rows` lines, the last of which holds the cursor, and shows it.
fn erasure(rows: usize) -> String {
    let up = match rows {
        0 | 1 => String::new(),
        rows => format!("\x1b[{}A", rows - 1),
    };
    format!("\r{up}\x1b[J\x1b[?25h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_erases_all_rows_and_shows_cursor() {
        assert_eq!(erasure(3), "\r\x1b[2A\x1b[J\x1b[?25h");
        assert_eq!(erasure(1), "\r\x1b[J\x1b[?25h");
    }
}
