//! A probe while it runs: one screen that is redrawn on a terminal, else a line every few seconds.

mod moment;
mod screen;

use super::{lost, set_message};
use crate::output::is_live_terminal;
use crate::report::probe::{row, table};
use crate::signals::Stop;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_job::escape_control_characters;
use iosonde_result::interval::{Interval, IntervalCounts};
use iosonde_result::observer::Progress;
use iosonde_study::probe::{Announcement, Figure, Knee, Phase, TargetKind, Watcher};
use iosonde_study::saturation::Cell;
use iosonde_study::words;
use moment::Moment;
use screen::{Screen, USUAL_COLUMNS};
use std::io::Write;

/// Where there is no terminal, a line is written this often at most.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a probe.
pub(crate) struct ProbeLive {
    stop: Stop,
    /// On a terminal: what is drawn, and where.
    bar: Option<ProgressBar>,
    screen: Screen,
    moment: Moment,
    lines: Box<dyn Write>,
    /// Stands before each line, where several targets are probed.
    prefix: String,
    /// When the next line of the phase is due, and how well its rate is known by now.
    next_line_ns: u64,
    known: Option<f64>,
    /// Whether the knee of its pattern is being searched, and for how long it has been.
    searching: bool,
    searched_ns: u64,
}

impl ProbeLive {
    /// Shows it on standard error, in the way that suits where that goes.
    pub(crate) fn new(stop: Stop) -> Self {
        let mut live = ProbeLive::on(Box::new(std::io::stderr()), stop);
        if is_live_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            // A template without colour: nothing is lost where colours are unwanted.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            live.bar = Some(bar);
        }
        live
    }

    /// Shows one of several that take turns: in lines that say by its number which one they are about.
    pub(crate) fn of_several(number: usize, stop: Stop) -> Self {
        let mut live = ProbeLive::on(Box::new(std::io::stderr()), stop);
        live.prefix = format!("{number}: ");
        live
    }

    /// Writes lines to this.
    pub(crate) fn on(lines: Box<dyn Write>, stop: Stop) -> Self {
        ProbeLive {
            stop,
            bar: None,
            lines,
            prefix: String::new(),
            screen: Screen::default(),
            moment: Moment::default(),
            next_line_ns: 0,
            known: None,
            searching: false,
            searched_ns: 0,
        }
    }

    /// Takes the screen away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&mut self, text: &str) {
        let text = format!("{}{text}", self.prefix);
        let wrapped = table::wrapped(&escape_control_characters(&text));
        let text = wrapped.trim_end();
        match &self.bar {
            // A bar draws nothing on what is no terminal any more; the line is lost then, as the terminal is.
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => {
                // Nobody to tell: the result will still be printed.
                let _ = writeln!(self.lines, "{text}");
            }
        }
    }
}

impl ProbeLive {
    fn draw(&self) {
        if let Some(bar) = &self.bar {
            // Asked each time: terminals are resized.
            set_message(bar, &self.screen.lines(columns()).join("\n"));
        }
    }

    /// What there is to say in between, where nothing is drawn.
    fn provisional(&mut self, phase: Phase, at_ns: u64, rate: &str) {
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

impl Watcher for ProbeLive {
    fn begin(&mut self, announcement: &Announcement<'_>) {
        self.screen = Screen::of(announcement);
        if self.bar.is_some() {
            self.moment = Moment::of(announcement.target);
        }
        for text in announced(announcement, !self.prefix.is_empty()) {
            self.line(&text);
        }
    }

    fn phase(&mut self, phase: Phase, _planned_ns: u64) {
        self.next_line_ns = LINE_EVERY_NS;
        self.known = None;
        self.searching = false;
        self.screen.begin(phase, false);
        self.moment.begin();
        self.draw();
    }

    fn progress(&mut self, phase: Phase, progress: &Progress<'_>) {
        let rate = rate_now(phase, progress);
        if self.bar.is_some() {
            let now = self.moment.words(&progress.rate[phase.direction()]);
            self.screen.progress(progress, rate, now);
            self.draw();
        } else if let Some(rate) = rate.filter(|_| !self.searching) {
            self.provisional(phase, progress.at_ns, &rate);
        }
    }

    fn interval(&mut self, phase: Phase, interval: &Interval) {
        if self.bar.is_some() {
            self.moment.interval(phase, interval);
        }
    }

    fn confidence(&mut self, _phase: Phase, relative_error: f64) {
        self.known = Some(relative_error);
        self.screen.confidence(relative_error);
    }

    fn figure(&mut self, figure: &Figure) {
        self.screen.figure(figure);
        if self.bar.is_none() {
            self.line(&row::one_line(figure));
        }
        self.draw();
    }

    fn search(&mut self, phase: Phase, _planned_ns: u64) {
        self.next_line_ns = LINE_EVERY_NS;
        self.searching = true;
        self.searched_ns = 0;
        self.screen.begin(phase, true);
        self.moment.begin();
    }

    fn cell_begins(&mut self, _phase: Phase, jobs: u32, iodepth: u32, _most_ns: u64) {
        self.screen.next_run(row::cell(jobs, iodepth));
    }

    fn cell(&mut self, phase: Phase, cell: &Cell) {
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
            self.line(&format!("{}: most {}", knee.phase.title(), row::knee(knee)));
        }
        self.draw();
    }

    fn note(&mut self, note: &str) {
        self.line(&format!("note: {note}"));
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

impl Drop for ProbeLive {
    fn drop(&mut self) {
        self.end();
    }
}

/// What will be written, and how long it will take.
fn announced(announcement: &Announcement<'_>, is_in_turns: bool) -> Vec<String> {
    let target = announcement.target;
    let (name, size) = (&target.name, words::bytes(announcement.bytes));
    let what = match &target.kind {
        TargetKind::Directory { .. } | TargetKind::Pool { .. } => {
            format!(
                "{name}: writes a working file of up to {size} and removes it at the end: {}",
                target.path
            )
        }
        TargetKind::Existing { consent: true, .. } => {
            format!("{name}: OVERWRITES the first {size}, as --allow-overwrite says")
        }
        TargetKind::Existing { device, .. } => {
            let kind = if *device { "block device" } else { "file" };
            format!(
                "{name}: only reads this {kind} of {size}; --allow-overwrite {name} would write to it"
            )
        }
        TargetKind::Simulated { .. } => format!("{name}: simulated, nothing is written"),
    };
    let (phases, budget) = (announcement.phases, announcement.budget);
    let total = budget.total_time(phases).words();
    // The layout measures nothing.
    let measured = phases
        .iter()
        .filter(|phase| **phase != Phase::Layout)
        .count();
    let searches = phases.iter().filter(|phase| budget.searches(**phase));
    let steps = match searches.count() {
        0 => format!("{measured} phases"),
        1 => format!("{measured} phases and the search for the best depth"),
        more => format!("{measured} phases and {more} searches for the best depth"),
    };
    let overwrites = matches!(target.kind, TargetKind::Existing { consent: true, .. });
    let lost = overwrites.then(|| lost(&target.path)).flatten();
    let others = match is_in_turns {
        true => " beside the turns of the others",
        false => "",
    };
    let end =
        format!("{steps}, {total}{others}; Ctrl-C ends it early and prints what is known by then");
    [what].into_iter().chain(lost).chain([end]).collect()
}

/// Columns of the terminal.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    match size.map_or(0, |size| usize::from(size.ws_col)) {
        0 => USUAL_COLUMNS,
        columns => columns,
    }
}

/// The rate at this moment; `None` while nothing moves.
fn rate_now(phase: Phase, progress: &Progress<'_>) -> Option<String> {
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
