//! Setup and removal of a pod: one line redrawn on a terminal, otherwise a line per step.

use super::view::LiveView;
use iosonde_cluster::SetupEvent;
use std::cell::RefCell;
use std::rc::Rc;

/// Shows on standard error the event that a pod session waits for.
pub(crate) struct PodLive {
    name: String,
    view: LiveView,
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
            view: LiveView::new(),
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
                    None => self.view.line(&format!("note: {note}")),
                }
            }
            SetupEvent::Over => self.clear(),
        }
    }

    /// Shows a text that changes often. Does nothing if standard error is no terminal.
    pub(crate) fn redraw(&mut self, text: &str) {
        if self.view.is_live() {
            self.wait(&format!("{}: {text}", self.name));
        }
    }

    fn wait(&mut self, text: &str) {
        self.view.wait(text);
        if !self.view.is_live() && self.collected.is_none() {
            self.view.line(text);
        }
    }

    fn clear(&mut self) {
        self.last.clear();
        self.view.clear();
    }
}
