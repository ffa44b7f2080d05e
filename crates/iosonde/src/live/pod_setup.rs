//! Setup and removal of a pod: one line redrawn on a terminal, otherwise a line per step.

use super::set_message;
use crate::output::is_live_terminal;
use indicatif::{ProgressBar, ProgressStyle};
use iosonde_cluster::SetupEvent;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Shows on standard error the event that a pod session waits for.
pub(crate) struct PodLive {
    name: String,
    is_terminal: bool,
    line: Option<ProgressBar>,
    last: String,
    /// Notes for the caller. `None`: prints notes at once, and steps too if there is no terminal.
    collected: Option<CollectedNotes>,
}

/// Notes of a [`PodLive`] that its caller prints. They can be taken while a session still reports.
#[derive(Clone, Default)]
pub(crate) struct CollectedNotes(Rc<RefCell<Vec<String>>>);

impl CollectedNotes {
    /// Takes the notes collected so far.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

impl PodLive {
    /// Creates a display for a target.
    pub(crate) fn new(name: &str) -> PodLive {
        PodLive {
            name: name.to_owned(),
            is_terminal: is_live_terminal(),
            line: None,
            last: String::new(),
            collected: None,
        }
    }

    /// Like [`PodLive::new`], but keeps standard error empty: steps are only shown on a terminal.
    pub(crate) fn collecting(name: &str) -> (PodLive, CollectedNotes) {
        let mut live = PodLive::new(name);
        let collected = CollectedNotes::default();
        live.collected = Some(collected.clone());
        (live, collected)
    }

    /// Shows a setup event.
    pub(crate) fn show_event(&mut self, event: SetupEvent<'_>) {
        match event {
            SetupEvent::Waiting(what) if what != self.last => {
                self.last = what.to_owned();
                self.wait(&format!("{}: waiting for {what}", self.name));
            }
            SetupEvent::Waiting(_) => {}
            SetupEvent::Note(note) => {
                self.clear();
                match &self.collected {
                    Some(notes) => notes.0.borrow_mut().push(note.to_owned()),
                    None => say(&format!("note: {note}")),
                }
            }
            SetupEvent::Over => self.clear(),
        }
    }

    /// Shows a text that changes often. Does nothing if standard error is no terminal.
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
