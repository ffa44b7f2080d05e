//! Trials of several storage classes at the same time: one line redrawn on a terminal, otherwise a
//! line per step of each class.

use super::view::LiveView;
use iosonde_cluster::SetupEvent;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shows on standard error the events that the trials wait for.
pub(crate) struct TrialsLive(Mutex<TrialRows>);

struct TrialRows {
    view: LiveView,
    /// In the order of the classes.
    rows: Vec<TrialRow>,
}

struct TrialRow {
    name: String,
    step: TrialStep,
}

/// Progress of a trial.
#[derive(Debug, PartialEq, Eq)]
enum TrialStep {
    /// It has not begun, or its pods run.
    Silent,
    /// It waits for this event.
    Waiting(String),
    /// It has ended.
    Done,
}

impl TrialsLive {
    /// Creates the display of trials on the targets with these names.
    pub(crate) fn new(names: Vec<String>) -> TrialsLive {
        TrialsLive::on(LiveView::new(), names)
    }

    fn on(view: LiveView, names: Vec<String>) -> TrialsLive {
        let row = |name| TrialRow {
            name,
            step: TrialStep::Silent,
        };
        let rows = names.into_iter().map(row).collect();
        TrialsLive(Mutex::new(TrialRows { view, rows }))
    }

    fn lock(&self) -> MutexGuard<'_, TrialRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a setup event of the trial `index`.
    pub(crate) fn show_event(&self, index: usize, event: SetupEvent<'_>) {
        let mut trials = self.lock();
        let TrialRows { view, rows } = &mut *trials;
        let Some(row) = rows.get_mut(index) else {
            return;
        };
        match event {
            SetupEvent::Waiting(what) => {
                let step = TrialStep::Waiting(what.to_owned());
                if row.step != step && !view.is_live() {
                    view.line(&format!("{}: waiting for {what}", row.name));
                }
                row.step = step;
            }
            SetupEvent::Note(note) => view.line(&format!("note: {}: {note}", row.name)),
            SetupEvent::Over => row.step = TrialStep::Silent,
        }
        view.wait(&progress_line(rows));
    }

    /// Shows that the next trial waits for a quota that counts objects of other trials.
    pub(crate) fn show_quota_wait(&self) {
        const WAIT: &str = "waiting for a quota to release the objects of other trials";
        let mut trials = self.lock();
        if !trials.view.is_live() {
            trials.view.line(WAIT);
        }
        trials.view.wait(WAIT);
    }

    /// Shows that the trial `index` has ended.
    pub(crate) fn finish(&self, index: usize) {
        let mut trials = self.lock();
        let TrialRows { view, rows } = &mut *trials;
        if let Some(row) = rows.get_mut(index) {
            row.step = TrialStep::Done;
        }
        match rows.iter().all(|row| row.step == TrialStep::Done) {
            true => view.clear(),
            false => view.wait(&progress_line(rows)),
        }
    }
}

/// Describes the progress of all trials.
fn progress_line(rows: &[TrialRow]) -> String {
    let done = rows.iter().filter(|row| row.step == TrialStep::Done);
    let mut line = format!("{} of {} classes tried", done.count(), rows.len());
    for row in rows {
        if let TrialStep::Waiting(what) = &row.step {
            line.push_str(&format!("; {}: waiting for {what}", row.name));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::Arc;

    /// Lines written so far.
    #[derive(Clone, Default)]
    struct WrittenLines(Arc<Mutex<Vec<u8>>>);

    impl Write for WrittenLines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn live_on(lines: &WrittenLines) -> TrialsLive {
        let view = LiveView::plain(Box::new(lines.clone()));
        let names = ["sc://fast", "sc://slow"].map(str::to_owned);
        TrialsLive::on(view, names.to_vec())
    }

    #[test]
    fn progress_line_names_what_each_class_waits_for() {
        let live = live_on(&WrittenLines::default());
        let line = || progress_line(&live.lock().rows);
        assert_eq!(line(), "0 of 2 classes tried");
        live.show_event(1, SetupEvent::Waiting("the claim"));
        live.show_event(0, SetupEvent::Waiting("the pod"));
        let both = "0 of 2 classes tried; sc://fast: waiting for the pod; sc://slow: waiting for \
                    the claim";
        assert_eq!(line(), both);
        live.show_event(1, SetupEvent::Over);
        live.finish(0);
        assert_eq!(line(), "1 of 2 classes tried");
    }

    #[test]
    fn step_of_each_class_is_a_line_without_a_terminal() {
        let lines = WrittenLines::default();
        let live = live_on(&lines);
        for (index, event) in [
            (1, SetupEvent::Waiting("the claim")),
            (0, SetupEvent::Waiting("the claim")),
            (1, SetupEvent::Waiting("the claim")),
            (0, SetupEvent::Note("left behind")),
            (0, SetupEvent::Over),
        ] {
            live.show_event(index, event);
        }
        live.finish(0);
        live.finish(1);
        live.show_quota_wait();
        let written = lines.0.lock().unwrap().clone();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "sc://slow: waiting for the claim\nsc://fast: waiting for the claim\n\
             note: sc://fast: left behind\n\
             waiting for a quota to release the objects of other trials\n"
        );
    }
}
