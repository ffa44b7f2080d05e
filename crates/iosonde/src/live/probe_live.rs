//! Progress of a probe: a screen redrawn on a terminal, otherwise a line every few seconds.

mod probe_activity;
#[cfg(test)]
mod report_tests;
mod screen;

use super::{overwrite_warning, set_message};
use crate::output::is_live_terminal;
use crate::signals::StopSignal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_job::escape_control_characters;
use iosonde_report::probe::row;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::observer::RunProgress;
use iosonde_study::probe::{Knee, PhaseFigure, ProbeAnnouncement, ProbePhase, StudyTargetKind};
use iosonde_study::saturation::CurveCell;
use iosonde_study::{Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep, words};
use probe_activity::ProbeActivity;
use screen::{Screen, USUAL_COLUMNS};
use std::io::Write;

/// Minimum time between two lines if standard error is no terminal.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows the progress of a probe.
pub(crate) struct ProbeLive {
    stop: StopSignal,
    /// Bar that draws the screen. `None` if standard error is no terminal.
    bar: Option<ProgressBar>,
    screen: Screen,
    activity: ProbeActivity,
    lines: Box<dyn Write>,
    /// Prefix of each line: the target's number if several targets are probed.
    prefix: String,
    /// Time of the phase at which the next line is due, and the relative error of its rate so far.
    next_line_ns: u64,
    known: Option<f64>,
    /// Current phase, or the phase whose knee is searched.
    phase: ProbePhase,
    /// Whether the search for the pattern's knee runs, and the time measured in it.
    searching: bool,
    searched_ns: u64,
}

impl ProbeLive {
    /// Creates a display on standard error: a screen on a terminal, otherwise lines.
    pub(crate) fn new(stop: StopSignal) -> Self {
        let mut live = ProbeLive::on(Box::new(std::io::stderr()), stop);
        if is_live_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            // The template has no colours, so it needs no variant for terminals without colours.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            live.bar = Some(bar);
        }
        live
    }

    /// Creates a display for a target that takes turns: each line begins with the target's number.
    pub(crate) fn of_several(number: usize, stop: StopSignal) -> Self {
        let mut live = ProbeLive::on(Box::new(std::io::stderr()), stop);
        live.prefix = format!("{number}: ");
        live
    }

    /// Creates a display that writes lines to `lines`.
    pub(crate) fn on(lines: Box<dyn Write>, stop: StopSignal) -> Self {
        ProbeLive {
            stop,
            bar: None,
            lines,
            prefix: String::new(),
            screen: Screen::default(),
            activity: ProbeActivity::default(),
            next_line_ns: 0,
            known: None,
            phase: ProbePhase::Layout,
            searching: false,
            searched_ns: 0,
        }
    }

    /// Removes the screen.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&mut self, text: &str) {
        let text = format!("{}{text}", self.prefix);
        let wrapped = iosonde_report::text_table::wrapped(&escape_control_characters(&text));
        let text = wrapped.trim_end();
        match &self.bar {
            // If the terminal is gone, the bar draws nothing and the line is lost.
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => {
                // Errors are ignored: the result is printed later.
                let _ = writeln!(self.lines, "{text}");
            }
        }
    }
}

impl ProbeLive {
    fn draw(&self) {
        if let Some(bar) = &self.bar {
            // The width is read each time, since terminals are resized. The `^C` that a terminal
            // prints wraps behind the last line, so that the first line stays when the view is
            // removed: it is empty.
            let lines = self.screen.lines(columns()).join("\n");
            set_message(bar, &format!("\n{lines}"));
        }
    }

    /// Writes a provisional rate if a line is due and no screen is drawn.
    fn provisional(&mut self, phase: ProbePhase, at_ns: u64, rate: &str) {
        if at_ns < self.next_line_ns {
            return;
        }
        self.next_line_ns = at_ns + LINE_EVERY_NS;
        let known = self.known.map_or(String::new(), |error| {
            format!(", {} so far", row::within(error))
        });
        self.line(&format!("{:<28} {rate}, provisional{known}", phase.title()));
    }
}

impl ProbeLive {
    fn announce(&mut self, announcement: &ProbeAnnouncement<'_>) {
        self.screen = Screen::new(announcement);
        if self.bar.is_some() {
            self.activity = ProbeActivity::observe_target(announcement.target);
        }
        for text in announced(announcement, !self.prefix.is_empty()) {
            self.line(&text);
        }
    }

    fn begin_phase(&mut self, phase: ProbePhase) {
        self.phase = phase;
        self.next_line_ns = LINE_EVERY_NS;
        self.known = None;
        self.searching = false;
        self.screen.begin(phase, false);
        self.activity.begin();
        self.draw();
    }

    fn progress(&mut self, progress: &RunProgress<'_>) {
        let phase = self.phase;
        let rate = rate_now(phase, progress);
        if self.bar.is_some() {
            let now = self.activity.words(&progress.rate[phase.direction()]);
            self.screen.progress(progress, rate, now);
            self.draw();
        } else if let Some(rate) = rate.filter(|_| !self.searching) {
            self.provisional(phase, progress.at_ns, &rate);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        // A search measures other depths.
        if self.bar.is_some() && !self.searching {
            self.activity.interval(self.phase, interval);
        }
    }

    fn confidence(&mut self, relative_error: f64) {
        self.known = Some(relative_error);
        self.screen.confidence(relative_error);
    }

    fn figure(&mut self, figure: &PhaseFigure) {
        self.screen.figure(figure);
        if self.bar.is_none() {
            self.line(&row::one_line(figure));
        }
        self.draw();
    }

    fn begin_search(&mut self, phase: ProbePhase) {
        self.phase = phase;
        self.next_line_ns = LINE_EVERY_NS;
        self.searching = true;
        self.searched_ns = 0;
        self.screen.begin(phase, true);
        self.activity.begin();
    }

    fn cell(&mut self, cell: &CurveCell) {
        let phase = self.phase;
        self.searched_ns += cell.measured_ns;
        if self.bar.is_none() && self.searched_ns >= self.next_line_ns {
            self.next_line_ns = self.searched_ns + LINE_EVERY_NS;
            let at = format!("{}, {}", phase.title(), row::cell(cell.jobs, cell.iodepth));
            self.line(&format!("{at:<28} {}", row::rate(phase, cell.iops.mean)));
        }
    }

    fn knee(&mut self, knee: &Knee) {
        self.screen.knee(knee);
        if self.bar.is_none() {
            self.line(&format!(
                "{}: maximum {}",
                knee.phase.title(),
                row::knee(knee)
            ));
        }
        self.draw();
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
                StudyStep::Phase(phase) => self.begin_phase(phase),
                StudyStep::KneeSearch(phase) => self.begin_search(phase),
                _ => {}
            },
            StudyEvent::Progress(progress) => self.progress(progress),
            StudyEvent::Interval(interval) => self.interval(interval),
            StudyEvent::Confidence { relative_error } => self.confidence(relative_error),
            StudyEvent::CellStarted { jobs, iodepth, .. } => {
                self.screen.next_run(row::cell(jobs, iodepth));
            }
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

/// Describes the bytes that the probe writes, and its length.
fn announced(announcement: &ProbeAnnouncement<'_>, is_in_turns: bool) -> Vec<String> {
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
                true if name.starts_with("rbd://") => "image",
                true => "block device",
                false => "file",
            };
            format!(
                "{name}: only reads this {kind} of {size}; --allow-overwrite {name} permits writing"
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
    let end = format!("{steps}, {total}{others}; Ctrl-C stops early and prints the results so far");
    [what].into_iter().chain(lost).chain([end]).collect()
}

/// Whether the target is a snapshot of a Ceph image, which no consent makes writable.
fn is_snapshot(target: &str) -> bool {
    target.starts_with("rbd://") && target.contains('@')
}

/// Columns of the terminal.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    match size.map_or(0, |size| usize::from(size.ws_col)) {
        0 => USUAL_COLUMNS,
        columns => columns,
    }
}

/// Returns the current rate, or `None` if no I/O completes.
fn rate_now(phase: ProbePhase, progress: &RunProgress<'_>) -> Option<String> {
    let now = progress.rate[phase.direction()];
    if now == IntervalCounts::default() {
        return None;
    }
    Some(if phase.block_bytes() >= 1 << 20 {
        words::bandwidth(now.bytes as f64)
    } else {
        format!("{} IOPS", words::iops(now.ios as f64))
    })
}
