//! A pod while it is made and removed: a line that is redrawn on a terminal, else a line for each step.

use super::set_message;
use crate::output::is_live_terminal;
use indicatif::{ProgressBar, ProgressStyle};
use iosonde_cluster::Told;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Shows what is waited for, on standard error.
pub(crate) struct PodLive {
    name: String,
    is_terminal: bool,
    line: Option<ProgressBar>,
    last: String,
    /// Notes that the caller prints. `None`: they are printed at once, and so are steps where there is no terminal.
    collected: Option<Collected>,
}

/// Notes of a [`PodLive`] that its caller prints, which can be taken while a session still tells of itself.
#[derive(Clone, Default)]
pub(crate) struct Collected(Rc<RefCell<Vec<String>>>);

impl Collected {
    /// Takes the notes that there are.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

impl PodLive {
    /// For a target.
    pub(crate) fn new(name: &str) -> PodLive {
        PodLive {
            name: name.to_owned(),
            is_terminal: is_live_terminal(),
            line: None,
            last: String::new(),
            collected: None,
        }
    }

    /// As [`PodLive::new`], for a caller whose standard error stays empty: steps are shown on a terminal only.
    pub(crate) fn collecting(name: &str) -> (PodLive, Collected) {
        let mut live = PodLive::new(name);
        let collected = Collected::default();
        live.collected = Some(collected.clone());
        (live, collected)
    }

    /// Shows one thing.
    pub(crate) fn tell(&mut self, told: Told<'_>) {
        match told {
            Told::Waiting(what) if what != self.last => {
                self.last = what.to_owned();
                self.wait(&format!("{}: waiting for {what}", self.name));
            }
            Told::Waiting(_) => {}
            Told::Note(note) => {
                self.clear();
                match &self.collected {
                    Some(notes) => notes.0.borrow_mut().push(note.to_owned()),
                    None => say(&format!("note: {note}")),
                }
            }
            Told::Over => self.clear(),
        }
    }

    /// Shows what changes all the time: only where a line can be redrawn.
    pub(crate) fn redraw(&mut self, text: &str) {
        if self.is_terminal {
            self.wait(&format!("{}: {text}", self.name));
        }
    }

    fn wait(&mut self, text: &str) {
        if !self.is_terminal {
            if self.collected.is_none() {
                say(text);
            }
            return;
        }
        let line = self.line.get_or_insert_with(|| {
            let line = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{wide_msg} {elapsed}") {
                line.set_style(style);
            }
            line.enable_steady_tick(Duration::from_millis(250));
            line
        });
        set_message(line, text);
    }

    fn clear(&mut self) {
        self.last.clear();
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

impl Drop for PodLive {
    fn drop(&mut self) {
        self.clear();
    }
}

fn say(text: &str) {
    eprintln!("{text}");
}
