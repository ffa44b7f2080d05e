//! A pseudoterminal, which records the screen that a user sees.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::Invocation;

/// A program on a terminal, and the terminal's screen.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen_text: Arc<Mutex<ScreenText>>,
    reader: Option<JoinHandle<()>>,
    deadline: Instant,
}

/// Output received by the terminal.
struct ScreenText {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for ScreenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text_of(&rows_of(self.parser.screen())))
    }
}

impl Invocation {
    /// Starts the program on a terminal of this size: standard input, output and error.
    #[must_use]
    pub fn on_terminal(self, rows: u16, columns: u16) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a pseudoterminal");
        grantpt(&master).expect("rights to a pseudoterminal");
        unlockpt(&master).expect("a pseudoterminal that is open");
        let name = ptsname(&master, Vec::new()).expect("the name of a pseudoterminal");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = File::from(open(&name, flags, Mode::empty()).expect("the terminal's other end"));
        tcsetwinsize(&master, size(rows, columns)).expect("a size");
        let copy = || line.try_clone().expect("a copy of a file descriptor");
        // setsid makes this the controlling terminal, so that Ctrl-C reaches the program.
        let child = Command::new("setsid")
            .arg("--ctty")
            .args(&self.words)
            .env("TERM", "xterm-256color")
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.dir)
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .expect("setsid starts");
        let keyboard = File::from(master);
        let screen_text = Arc::new(Mutex::new(ScreenText {
            parser: vt100::Parser::new(cells(rows), cells(columns), 1000),
            bytes: Vec::new(),
        }));
        let reader = {
            let mut from = keyboard.try_clone().expect("a copy of a file descriptor");
            let screen_text = Arc::clone(&screen_text);
            thread::spawn(move || {
                let mut some = [0; 4096];
                // Reading fails when the last descriptor of the other end is closed.
                while let Ok(count @ 1..) = from.read(&mut some) {
                    let mut screen_text = locked(&screen_text);
                    screen_text.parser.process(&some[..count]);
                    screen_text.bytes.extend_from_slice(&some[..count]);
                }
            })
        };
        Terminal {
            child,
            keyboard,
            screen_text,
            reader: Some(reader),
            deadline: Instant::now() + self.timeout,
        }
    }
}

impl Terminal {
    /// The current screen, row by row. A line that wraps has several rows, and rows that are as
    /// wide as the terminal stay apart.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        rows_of(locked(&self.screen_text).parser.screen())
    }

    /// The rows of the current screen as lines of a text, without the empty ones at its end.
    #[must_use]
    pub fn screen(&self) -> String {
        text_of(&self.rows())
    }

    /// Whether the cursor is shown.
    #[must_use]
    pub fn has_cursor(&self) -> bool {
        !locked(&self.screen_text).parser.screen().hide_cursor()
    }

    /// All bytes sent to the terminal, including control sequences.
    #[must_use]
    pub fn sent(&self) -> String {
        String::from_utf8_lossy(&locked(&self.screen_text).bytes).into_owned()
    }

    /// Waits until the screen is as required; false if the program ends or times out first. The
    /// screen is examined after each output only, since in a debug build that takes milliseconds.
    pub fn until(&mut self, mut wish: impl FnMut(&str) -> bool) -> bool {
        let mut examined_bytes = None;
        loop {
            let sent_bytes = locked(&self.screen_text).bytes.len();
            if examined_bytes != Some(sent_bytes) {
                examined_bytes = Some(sent_bytes);
                if wish(&self.screen()) {
                    return true;
                }
            }
            let ended = self
                .child
                .try_wait()
                .expect("a child to wait for")
                .is_some();
            if ended || Instant::now() > self.deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Resizes the terminal, as a user resizes a window.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        tcsetwinsize(&self.keyboard, size(rows, columns)).expect("a size");
        locked(&self.screen_text)
            .parser
            .screen_mut()
            .set_size(cells(rows), cells(columns));
    }

    /// Types keys: `\x03` is Ctrl-C.
    pub fn types(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("a keyboard");
    }

    /// Waits until the program exits and its output has been read.
    ///
    /// # Panics
    /// If the program times out.
    pub fn wait(&mut self) -> ExitStatus {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child to wait for") {
                break status;
            }
            assert!(
                Instant::now() < self.deadline,
                "did not end in time: {self:?}"
            );
            thread::sleep(Duration::from_millis(5));
        };
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader that ends");
        }
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn rows_of(screen: &vt100::Screen) -> Vec<String> {
    let (_, columns) = screen.size();
    let rows = screen.rows(0, columns.get());
    rows.map(|row| row.trim_end().to_owned()).collect()
}

fn text_of(rows: &[String]) -> String {
    rows.join("\n").trim_end().to_owned()
}

fn locked(screen_text: &Mutex<ScreenText>) -> MutexGuard<'_, ScreenText> {
    screen_text.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a terminal that is not empty")
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_as_wide_as_terminal_stay_apart() {
        let mut parser = vt100::Parser::new(cells(4), cells(5), 0);
        // The second row begins because the first one is full, not after a line break.
        parser.process(b"1234567890\r\nabc");
        let rows = rows_of(parser.screen());
        assert_eq!(rows, ["12345", "67890", "abc", ""]);
        assert_eq!(text_of(&rows), "12345\n67890\nabc");
        assert!(parser.screen().contents().starts_with("1234567890"));
    }
}
