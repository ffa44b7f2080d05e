//! A probe while it runs: one line that is redrawn on a terminal, else a line every few seconds.

use crate::output::is_live_terminal;
use crate::report::probe::{row, table};
use crate::signals::Stop;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_result::interval::IntervalCounts;
use iosonde_result::observer::Progress;
use iosonde_study::probe::{Announcement, Figure, Phase, TargetKind, Watcher};
use iosonde_study::words;
use std::io::Write;

/// Where there is no terminal, a line is written this often at most.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a probe.
pub(crate) struct ProbeLive {
    stop: Stop,
    bar: Option<ProgressBar>,
    lines: Box<dyn Write>,
    /// Stands before each line, where several targets are probed.
    prefix: String,
    /// The phase that runs: its number, how many there are, and when its next line is due.
    number: usize,
    phases: usize,
    next_line_ns: u64,
    /// Time that the phases before take at most, and the one that runs.
    before_ns: u64,
    planned_ns: u64,
}

impl ProbeLive {
    /// Shows it on standard error, in the way that suits where that goes.
    pub(crate) fn new(stop: Stop) -> Self {
        let mut live = ProbeLive::on(Box::new(std::io::stderr()), stop);
        if is_live_terminal() {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // A template without colour: nothing is lost where colours are unwanted.
            if let Ok(style) = ProgressStyle::with_template("{msg:46!} [{bar:16}] {prefix}") {
                bar.set_style(style.progress_chars("=> "));
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
            number: 0,
            phases: 0,
            next_line_ns: 0,
            before_ns: 0,
            planned_ns: 0,
        }
    }

    /// Takes the redrawn line away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&mut self, text: &str) {
        let wrapped = table::wrapped(&format!("{}{text}", self.prefix));
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

impl Watcher for ProbeLive {
    fn begin(&mut self, announcement: &Announcement<'_>) {
        self.phases = announcement.phases.len();
        if let Some(bar) = &self.bar {
            bar.set_length(announcement.total_ns);
        }
        for text in announced(announcement) {
            self.line(&text);
        }
    }

    fn phase(&mut self, phase: Phase, planned_ns: u64) {
        self.before_ns += self.planned_ns;
        self.number += 1;
        self.planned_ns = planned_ns;
        self.next_line_ns = LINE_EVERY_NS;
        if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "[{}/{}] {}",
                self.number,
                self.phases,
                phase.title()
            ));
        }
    }

    fn progress(&mut self, phase: Phase, progress: &Progress<'_>) {
        let rate = rate_now(phase, progress);
        if let Some(bar) = &self.bar {
            let position = self.before_ns + progress.at_ns.min(self.planned_ns);
            let left = bar.length().unwrap_or(0).saturating_sub(position);
            bar.set_position(position);
            bar.set_prefix(format!("{} left", words::wait(left)));
            let (number, phases, title) = (self.number, self.phases, phase.title());
            bar.set_message(format!(
                "[{number}/{phases}] {title}  {}",
                rate.unwrap_or_default()
            ));
            return;
        }
        if let Some(rate) = rate
            && progress.at_ns >= self.next_line_ns
        {
            self.next_line_ns = progress.at_ns + LINE_EVERY_NS;
            self.line(&format!("{:<28} {rate}, provisional", phase.title()));
        }
    }

    fn figure(&mut self, figure: &Figure) {
        self.line(&row::one_line(figure));
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
fn announced(announcement: &Announcement<'_>) -> Vec<String> {
    let target = announcement.target;
    let (name, size) = (&target.name, words::bytes(announcement.bytes));
    let what = match &target.kind {
        TargetKind::Directory { .. } => {
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
    let phases = announcement.phases.len();
    let total = words::wait(announcement.total_ns);
    vec![
        what,
        format!(
            "{phases} phases, {total} at most; Ctrl-C ends it early and prints what is known by then"
        ),
    ]
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
