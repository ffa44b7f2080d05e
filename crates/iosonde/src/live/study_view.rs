//! [`StudyView`]: the live view of a study. Each study contributes its steps and findings as
//! [`StudySteps`].

use super::activity::LiveActivity;
use super::time_left::TimeLeft;
use super::view::{LiveView, StepRow, activity_lines, head_line};
use super::view_lines::ViewLines;
use crate::signals::StopSignal;
use crate::terminal_text::TerminalSize;
use iosonde_result::observer::{PodProgress, RunProgress};
use iosonde_study::probe::StudyTarget;
use iosonde_study::{
    Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep, TimeRange, words,
};
use std::time::Instant;

/// A study before its first step.
pub(crate) struct StudyExtent {
    /// Lines to print.
    pub(super) lines: Vec<String>,
    /// Name of the target, or of all targets.
    pub(super) name: String,
    /// Devices below the targets.
    pub(super) activity: LiveActivity,
    /// Announced time of all steps.
    pub(super) planned: TimeRange,
}

impl StudyExtent {
    /// Extent of a study of one target.
    pub(super) fn of_target(target: &StudyTarget, lines: Vec<String>, planned: TimeRange) -> Self {
        let observed = (target.name.as_str(), target.path.as_str(), &target.kind);
        StudyExtent {
            lines,
            name: target.name.clone(),
            activity: LiveActivity::observe([observed]),
            planned,
        }
    }
}

/// Steps and findings of a kind of study.
pub(crate) trait StudySteps: Default {
    /// Returns the extent of a study of this kind. `is_live`: redrawn lines show the time left.
    fn announce(&mut self, announcement: &Announcement<'_>, is_live: bool) -> Option<StudyExtent>;

    /// Starts a step. Returns its title.
    fn begin(&mut self, step: StudyStep<'_>) -> String;

    /// Whether the current step is shown by its bandwidth.
    fn is_bandwidth(&self) -> bool;

    /// Whether the steps of the announced time have begun: the layout is not among them.
    fn is_timed(&self, step: StudyStep<'_>) -> bool {
        !matches!(step, StudyStep::Layout { .. })
    }

    /// Corrects an estimate of the time left. `elapsed_ns` counts from the first timed step.
    fn corrected(&self, left: TimeRange, elapsed_ns: u64) -> TimeRange {
        let _ = elapsed_ns;
        left
    }

    /// Records an event of a cell. Returns the title of a cell that starts.
    fn cell(&mut self, event: &StudyEvent<'_>) -> Option<String> {
        let _ = event;
        None
    }

    /// Returns the line about a finding.
    fn found(&mut self, finding: StudyFinding<'_>) -> Option<String>;

    /// Lines between the first line and the running step, as many as there is room for.
    fn rows(&self, room: TerminalSize) -> Vec<String> {
        let _ = room;
        Vec::new()
    }
}

/// Shows a study on standard error.
pub(crate) struct StudyView<S> {
    stop: StopSignal,
    view: LiveView,
    pub(super) steps: S,
    name: String,
    activity: LiveActivity,
    planned: TimeRange,
    left: TimeLeft,
    /// Start of the first timed step.
    began: Option<Instant>,
    running: RunningStep,
}

/// The step or cell that runs.
#[derive(Default)]
pub(super) struct RunningStep {
    pub(super) title: String,
    pub(super) planned_ns: Option<u64>,
    pub(super) at_ns: u64,
    /// Share that is done, if the run reports it.
    pub(super) done: Option<f64>,
    pub(super) rate: String,
    pub(super) known: String,
    pub(super) now: Vec<String>,
    pub(super) pods: Vec<PodProgress>,
}

impl RunningStep {
    /// Takes the progress of the run.
    pub(super) fn update(
        &mut self,
        progress: &RunProgress<'_>,
        activity: &mut LiveActivity,
        is_bandwidth: bool,
        plus_minus: &str,
    ) {
        let settling = activity.settling(progress, is_bandwidth, plus_minus);
        (self.rate, self.known) = settling.unwrap_or_default();
        (self.at_ns, self.done) = (progress.at_ns, progress.done);
        self.now = activity.words(progress);
        self.pods = progress.pods.to_vec();
    }

    /// Returns the step's row, the activity, and a table of several pods.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        if self.title.is_empty() {
            return Vec::new();
        }
        let of_time = |ns: u64| self.at_ns as f64 / ns.max(1) as f64;
        let share = self.planned_ns.map(of_time).or(self.done);
        let left = self
            .planned_ns
            .map(|ns| words::whole_seconds_text(ns.saturating_sub(self.at_ns)));
        let row = StepRow {
            title: &self.title,
            rate: &self.rate,
            known: &self.known,
        };
        let mut lines = vec![row.running(share, &left.unwrap_or_default(), columns)];
        lines.extend(activity_lines(&self.now, &self.pods, columns));
        lines
    }
}

impl<S: StudySteps> StudyView<S> {
    /// Creates a view: redrawn lines if standard error is a terminal, otherwise plain lines.
    pub(crate) fn new(stop: StopSignal) -> StudyView<S> {
        StudyView::with_steps(stop, S::default())
    }

    /// As [`StudyView::new`], with steps that know their study already.
    pub(crate) fn with_steps(stop: StopSignal, steps: S) -> StudyView<S> {
        StudyView {
            stop,
            view: LiveView::new(),
            steps,
            name: String::new(),
            activity: LiveActivity::default(),
            planned: TimeRange::default(),
            left: TimeLeft::default(),
            began: None,
            running: RunningStep::default(),
        }
    }

    /// Removes the redrawn lines.
    pub(crate) fn finish(&mut self) {
        self.view.clear();
    }

    /// Prints a line above the redrawn lines.
    pub(crate) fn line(&self, text: &str) {
        self.view.line(text);
    }

    fn announce(&mut self, announcement: &Announcement<'_>) {
        if let Some(extent) = self.steps.announce(announcement, self.view.is_live()) {
            extent.lines.iter().for_each(|line| self.line(line));
            (self.name, self.planned) = (extent.name, extent.planned);
            self.activity = extent.activity;
        }
    }

    fn begin(&mut self, step: StudyStep<'_>, planned_ns: Option<u64>) {
        if self.steps.is_timed(step) && self.began.is_none() {
            self.began = Some(Instant::now());
            self.left.announce(self.planned);
        }
        let title = self.steps.begin(step);
        self.begin_run(title, planned_ns);
    }

    fn begin_run(&mut self, title: String, planned_ns: Option<u64>) {
        self.running = RunningStep {
            title,
            planned_ns,
            ..RunningStep::default()
        };
        self.activity.begin();
        self.view.begin_step();
        self.redraw(true);
    }

    fn estimate(&mut self, left: TimeRange) {
        let elapsed = self.began.map(|began| began.elapsed());
        let elapsed_ns = elapsed.map_or(0, |elapsed| elapsed.as_nanos() as u64);
        if let Some(line) = self.left.take(self.steps.corrected(left, elapsed_ns)) {
            self.line(&line);
        }
    }

    fn progress(&mut self, progress: &RunProgress<'_>) {
        let is_bandwidth = self.steps.is_bandwidth();
        let plus_minus = self.view.plus_minus();
        if self.view.is_live() {
            self.running
                .update(progress, &mut self.activity, is_bandwidth, plus_minus);
            return self.redraw(false);
        }
        let (activity, title, left) = (&self.activity, &self.running.title, &self.left);
        self.view.plain_line(progress.at_ns, || {
            let settling = activity.settling(progress, is_bandwidth, plus_minus);
            let (rate, known) = settling.unwrap_or_default();
            let left = left.words().map(|left| format!("{left} left"));
            let parts = [title.clone(), rate, known, left.unwrap_or_default()];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<String>>().join("  ")
        });
    }

    fn redraw(&mut self, is_news: bool) {
        let (steps, running) = (&self.steps, &self.running);
        let (name, left) = (&self.name, self.left.words().unwrap_or_default());
        self.view.redraw(is_news, |room| {
            study_lines(steps, running, head_line(name, &left, room.columns), room)
        });
    }
}

/// Lines of a study for a terminal with this room.
pub(super) fn study_lines<S: StudySteps>(
    steps: &S,
    running: &RunningStep,
    head: String,
    room: TerminalSize,
) -> ViewLines {
    let mut running = running.lines(room.columns);
    let left = room.rows.saturating_sub(running.len() + 1);
    let mut rows = steps.rows(TerminalSize { rows: left, ..room });
    let activity = running.split_off(running.len().min(1));
    rows.extend(running);
    ViewLines {
        head,
        current: rows.len().saturating_sub(1),
        steps: rows,
        activity,
    }
}

impl<S: StudySteps> StudyObserver for StudyView<S> {
    fn event(&mut self, event: &StudyEvent<'_>) {
        if let Some(title) = self.steps.cell(event) {
            let planned_ns = match event {
                StudyEvent::CellStarted { most_ns, .. } => Some(*most_ns),
                _ => None,
            };
            self.begin_run(title, planned_ns);
        }
        match *event {
            StudyEvent::Announced(announcement) => self.announce(&announcement),
            StudyEvent::StepStarted { step, planned_ns } => self.begin(step, planned_ns),
            StudyEvent::TimeLeft(left) => self.estimate(left),
            StudyEvent::Progress(progress) => self.progress(progress),
            StudyEvent::Interval(interval) => self.activity.interval(interval),
            StudyEvent::Confidence { relative_error } => self.activity.confidence(relative_error),
            StudyEvent::Found(finding) => {
                if let Some(line) = self.steps.found(finding) {
                    self.line(&line);
                }
                self.redraw(true);
            }
            StudyEvent::Note(note) => self.line(&format!("note: {note}")),
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> RunningStep {
        RunningStep {
            title: "[3/14 to 26] offering 40.0k reads/s".to_owned(),
            planned_ns: Some(10_000_000_000),
            at_ns: 5_000_000_000,
            rate: "39.9k IOPS".to_owned(),
            known: "+- 0.4 %".to_owned(),
            now: ["39.8k IOPS", "155 MiB/s", "p50 85.0 us", "p99 150 us"]
                .map(str::to_owned)
                .to_vec(),
            ..RunningStep::default()
        }
    }

    #[test]
    fn running_step_shows_rate_at_each_width() {
        for columns in [40, 80, 120] {
            let lines = running().lines(columns);
            assert!(lines[0].starts_with("> [3/14 to 26]"), "{lines:?}");
            assert!(lines[0].contains("39.9k IOPS"), "{lines:?}");
            assert!(
                lines[1].starts_with("now 39.8k IOPS, 155 MiB/s"),
                "{lines:?}"
            );
            assert_eq!(lines[0].contains("+- 0.4 %"), columns > 40, "{lines:?}");
            assert!(lines[0].ends_with("5 s"), "{lines:?}");
        }
    }

    #[test]
    fn step_without_a_title_shows_nothing() {
        assert!(RunningStep::default().lines(80).is_empty());
    }
}
