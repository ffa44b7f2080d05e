//! A terminal of our own, to see what a person at one sees.

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

/// A program on a terminal, and what the terminal shows.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Shown>>,
    reader: Option<JoinHandle<()>>,
    deadline: Instant,
}

/// What has come to the terminal.
struct Shown {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parser.screen().contents())
    }
}

impl Invocation {
    /// Starts the program on a terminal of so many rows and columns: standard input, output and error.
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
        // Ctrl-C reaches whom the terminal belongs to.
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
        let shown = Arc::new(Mutex::new(Shown {
            parser: vt100::Parser::new(cells(rows), cells(columns), 1000),
            bytes: Vec::new(),
        }));
        let reader = {
            let mut from = keyboard.try_clone().expect("a copy of a file descriptor");
            let shown = Arc::clone(&shown);
            thread::spawn(move || {
                let mut some = [0; 4096];
                // When the last of the other end is closed, reading fails.
                while let Ok(count @ 1..) = from.read(&mut some) {
                    let mut shown = locked(&shown);
                    shown.parser.process(&some[..count]);
                    shown.bytes.extend_from_slice(&some[..count]);
                }
            })
        };
        Terminal {
            child,
            keyboard,
            shown,
            reader: Some(reader),
            deadline: Instant::now() + self.timeout,
        }
    }
}

impl Terminal {
    /// What is to be seen now, line by line.
    #[must_use]
    pub fn screen(&self) -> String {
        locked(&self.shown).parser.screen().contents()
    }

    /// Whether the cursor is shown.
    #[must_use]
    pub fn has_cursor(&self) -> bool {
        !locked(&self.shown).parser.screen().hide_cursor()
    }

    /// Everything that was sent, control sequences included.
    #[must_use]
    pub fn sent(&self) -> String {
        String::from_utf8_lossy(&locked(&self.shown).bytes).into_owned()
    }

    /// Waits until the screen is as wished; false when the program ended or its time ran out before.
    pub fn until(&mut self, mut wish: impl FnMut(&str) -> bool) -> bool {
        loop {
            if wish(&self.screen()) {
                return true;
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

    /// Makes the terminal larger or smaller, as a person does with a window.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        tcsetwinsize(&self.keyboard, size(rows, columns)).expect("a size");
        locked(&self.shown)
            .parser
            .screen_mut()
            .set_size(cells(rows), cells(columns));
    }

    /// Types something: `\x03` is Ctrl-C.
    pub fn types(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("a keyboard");
    }

    /// Waits for the end of the program, and of what it shows.
    ///
    /// # Panics
    /// When its time is over.
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

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
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
