//! Progress of a probe: a screen redrawn on a terminal, otherwise a line every few seconds. The
//! probes of several targets share one view.

#[cfg(test)]
mod report_tests;
pub(crate) mod run_number;
mod screen;
pub(crate) mod targets_view;

use super::activity::LiveActivity;
use super::overwrite_warning;
use super::view::LiveView;
use crate::signals::StopSignal;
use iosonde_job::quote_shell_word;
use iosonde_job::target_scheme::is_image_name;
use iosonde_report::probe::short_report::target_letter;
use iosonde_report::probe::{maximum_depth, row};
use iosonde_result::observer::RunProgress;
use iosonde_study::probe::{Knee, PhaseFigure, ProbeAnnouncement, ProbePhase, StudyTargetKind};
use iosonde_study::saturation::CurveCell;
use iosonde_study::{Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep, words};
use run_number::RunNumber;
use screen::Screen;
#[cfg(test)]
use std::io::Write;
use targets_view::TargetsView;

/// Shows the progress of a probe.
pub(crate) struct ProbeLive {
    stop: StopSignal,
    view: LiveView,
    /// Index of the target and the shared view if several targets are probed.
    together: Option<(usize, TargetsView)>,
    run: RunNumber,
    screen: Screen,
    activity: LiveActivity,
    /// Current phase, or the phase whose knee is searched.
    phase: ProbePhase,
    /// Whether the search for the pattern's knee runs, and the time measured in it.
    searching: bool,
    searched_ns: u64,
}

impl ProbeLive {
    /// Creates a display on standard error: a screen on a terminal, otherwise lines.
    pub(crate) fn new(stop: StopSignal) -> Self {
        ProbeLive::with(LiveView::new(), stop)
    }

    /// Creates a display for the target `index`, which takes turns with others: each line begins
    /// with the target's letter.
    pub(crate) fn of_several(index: usize, together: TargetsView, stop: StopSignal) -> Self {
        let mut live = ProbeLive::new(stop);
        live.together = Some((index, together));
        live
    }

    /// Shows the number of the run, and counts the runs that follow as time left.
    pub(crate) fn in_run(mut self, run: RunNumber) -> Self {
        self.run = run;
        self
    }

    /// Creates a display that writes lines to `lines`.
    #[cfg(test)]
    pub(crate) fn on(lines: Box<dyn Write + Send>, stop: StopSignal) -> Self {
        ProbeLive::with(LiveView::plain(lines), stop)
    }

    fn with(view: LiveView, stop: StopSignal) -> Self {
        ProbeLive {
            stop,
            view,
            together: None,
            run: RunNumber::default(),
            screen: Screen::default(),
            activity: LiveActivity::default(),
            phase: ProbePhase::Layout,
            searching: false,
            searched_ns: 0,
        }
    }

    /// Shows that the target failed: no run follows this one. A target that an interrupt ended has
    /// not failed.
    pub(crate) fn fail(&self) {
        if self.stop.interrupt.is_requested() {
            return;
        }
        if let Some((index, together)) = &self.together {
            together.fail(*index);
        }
    }

    /// Removes the screen.
    pub(crate) fn finish(&mut self) {
        self.view.clear();
        if let Some((index, together)) = &self.together {
            together.complete(*index);
        }
    }

    fn line(&self, text: &str) {
        let text = target_line(self.target_index(), text);
        let text = iosonde_job::escape_control_characters(&text);
        if self.view.is_live() {
            // The view wraps at the width of the terminal.
            return self.view.line(&text);
        }
        let wrapped = iosonde_report::text_table::wrapped(&text);
        self.view.line(wrapped.trim_end());
    }

    /// Index of the target among several. `None`: a single target.
    fn target_index(&self) -> Option<usize> {
        self.together.as_ref().map(|(index, _)| *index)
    }

    /// Whether the redrawn lines keep the results. Those of several targets show the last one only.
    fn keeps_results(&self) -> bool {
        self.view.is_live() && self.together.is_none()
    }

    fn draw(&mut self, is_news: bool) {
        let screen = &self.screen;
        match &self.together {
            Some((index, together)) => together.update(*index, screen, is_news),
            None => self.view.redraw(is_news, |room| screen.view(room.columns)),
        }
    }
}

impl ProbeLive {
    fn announce(&mut self, announcement: &ProbeAnnouncement<'_>) {
        self.screen = Screen::new(announcement, self.run);
        if self.view.is_live() {
            let target = announcement.target;
            let place = (target.name.as_str(), target.path.as_str(), &target.kind);
            self.activity = LiveActivity::observe([place]);
        }
        for text in announced(announcement, self.together.is_some(), self.run) {
            self.line(&text);
        }
    }

    fn begin(&mut self, phase: ProbePhase, searching: bool) {
        (self.phase, self.searching, self.searched_ns) = (phase, searching, 0);
        self.view.begin_step();
        self.screen.begin(phase, searching);
        let is_synced = phase == ProbePhase::SyncedWrite;
        self.activity.begin_direction(phase.direction(), is_synced);
        self.draw(true);
    }

    fn begin_cell(&mut self, jobs: u32, iodepth: u32) {
        self.screen
            .next_run(row::jobs_and_depth_text(jobs, iodepth));
        self.activity.begin();
    }

    fn progress(&mut self, progress: &RunProgress<'_>) {
        let (phase, index) = (self.phase, self.target_index());
        let is_bandwidth = phase.block_bytes() >= 1 << 20;
        let plus_minus = self.view.plus_minus();
        let settling = (self.activity).settling(progress, is_bandwidth, plus_minus);
        if self.view.is_live() {
            let now = self.activity.words(progress);
            self.screen
                .progress(progress, settling.unwrap_or_default(), now);
            self.draw(false);
        } else if let Some((rate, known)) = settling.filter(|_| !self.searching) {
            self.view.plain_line(progress.at_ns, || {
                let line = format!("{:<28} {rate:<12} {known}", phase.title());
                target_line(index, &format!("{} so far", line.trim_end()))
            });
        }
    }

    fn figure(&mut self, figure: &PhaseFigure) {
        let plus_minus = self.view.plus_minus();
        self.screen.figure(figure, plus_minus);
        if let Some((index, together)) = &self.together {
            together.figure(*index, figure);
        }
        if !self.keeps_results() {
            self.line(&row::one_line(figure, plus_minus));
        }
        self.draw(true);
    }

    fn cell(&mut self, cell: &CurveCell) {
        self.searched_ns += cell.measured_ns;
        let (phase, index) = (self.phase, self.target_index());
        self.view.plain_line(self.searched_ns, || {
            let at = format!(
                "{}, {}",
                phase.title(),
                row::jobs_and_depth_text(cell.jobs, cell.iodepth)
            );
            let rate = row::phase_rate_text(phase, cell.iops);
            target_line(index, &format!("{at:<28} {rate}"))
        });
    }

    fn knee(&mut self, knee: &Knee) {
        let plus_minus = self.view.plus_minus();
        self.screen.knee(knee, plus_minus);
        if !self.keeps_results() {
            let maximum = maximum_depth::knee_text(knee, plus_minus);
            self.line(&format!("{}: maximum {maximum}", knee.phase.title()));
        }
        self.draw(true);
    }

    /// Prints a note.
    pub(crate) fn note(&mut self, note: &str) {
        self.line(&format!("note: {note}"));
    }
}

impl StudyObserver for ProbeLive {
    fn event(&mut self, event: &StudyEvent<'_>) {
        match *event {
            StudyEvent::Announced(Announcement::Probe(extent)) => self.announce(&extent),
            StudyEvent::StepStarted { step, .. } => match step {
                StudyStep::Phase(phase) => self.begin(phase, false),
                StudyStep::KneeSearch(phase) => self.begin(phase, true),
                _ => {}
            },
            StudyEvent::Progress(progress) => self.progress(progress),
            StudyEvent::Interval(interval) => self.activity.interval(interval),
            StudyEvent::Confidence { relative_error } => self.activity.confidence(relative_error),
            StudyEvent::CellStarted { jobs, iodepth, .. } => self.begin_cell(jobs, iodepth),
            StudyEvent::CellMeasured(cell) => self.cell(cell),
            StudyEvent::Found(StudyFinding::Figure(figure)) => self.figure(figure),
            StudyEvent::Found(StudyFinding::Knee(knee)) => self.knee(knee),
            StudyEvent::Note(note) => self.note(note),
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

impl Drop for ProbeLive {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A line of a target, after its letter if there are several targets.
fn target_line(index: Option<usize>, text: &str) -> String {
    match index {
        Some(index) => format!("{}: {text}", target_letter(index)),
        None => text.to_owned(),
    }
}

/// Describes the bytes that the probe writes, and the length of one run.
fn announced(
    announcement: &ProbeAnnouncement<'_>,
    is_in_turns: bool,
    run: RunNumber,
) -> Vec<String> {
    let target = announcement.target;
    let (name, size) = (&target.name, words::bytes(announcement.bytes));
    let what = match &target.kind {
        StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. } => {
            format!(
                "{name}: writes a working file of up to {size} and removes it at the end: {}",
                target.path
            )
        }
        StudyTargetKind::Existing { consent: true, .. } => {
            format!("{name}: OVERWRITES the first {size}")
        }
        StudyTargetKind::Existing { .. } if is_snapshot(name) => {
            format!("{name}: only reads this snapshot of {size}")
        }
        StudyTargetKind::Existing { device, .. } => {
            let kind = match *device {
                true if is_image_name(name) => "image",
                true => "block device",
                false => "file",
            };
            format!(
                "{name}: only reads this {kind} of {size}; --allow-overwrite {} permits writing",
                quote_shell_word(name)
            )
        }
        StudyTargetKind::Simulated { .. } => format!("{name}: a simulated device"),
    };
    let (phases, budget) = (announcement.phases, announcement.budget);
    let total = budget.total_time(phases).words();
    // The layout measures nothing.
    let measured = phases
        .iter()
        .filter(|phase| **phase != ProbePhase::Layout)
        .count();
    let searches = phases.iter().filter(|phase| budget.searches(**phase));
    let steps = match searches.count() {
        0 => format!("{measured} phases"),
        1 => format!("{measured} phases and the search for the best depth"),
        more => format!("{measured} phases and {more} searches for the best depth"),
    };
    let overwrites = matches!(target.kind, StudyTargetKind::Existing { consent: true, .. });
    let lost = overwrites
        .then(|| overwrite_warning(&target.path))
        .flatten();
    let others = match is_in_turns {
        true => ", plus the turns of the other targets",
        false => "",
    };
    let run = run.words();
    let end =
        format!("{steps}, {total}{others}{run}; Ctrl-C stops early and prints the results so far");
    [what].into_iter().chain(lost).chain([end]).collect()
}

/// Whether the target is a snapshot of a Ceph image, which no consent makes writable.
fn is_snapshot(target: &str) -> bool {
    is_image_name(target) && target.contains('@')
}
