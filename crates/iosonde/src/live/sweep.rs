//! A sweep while it runs: one line that is redrawn on a terminal, and a line for each curve or cell.

use super::left::TimeLeft;
use super::set_message;
use crate::commands::sweep::journal::Journal;
use crate::commands::sweep::quiet::most_waited;
use crate::output::is_live_terminal;
use crate::report::sweep::{announced, found_line, unit_name};
use crate::signals::Stop;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_result::observer::Progress;
use iosonde_study::saturation::Record;
use iosonde_study::sweep::{Announcement, CurvePlan, Found, SweepResult, SweepWatcher};
use iosonde_study::{TimeRange, words};
use std::time::Instant;

/// Where there is no terminal, laying out is told of this often.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a sweep on standard error, and writes down what it finds.
pub(crate) struct SweepLive {
    stop: Stop,
    bar: Option<ProgressBar>,
    journal: Option<Journal>,
    /// What goes on, for the line that is redrawn.
    title: String,
    depth: Option<u32>,
    left: TimeLeft,
    /// Announced of all units.
    planned: TimeRange,
    /// Units that have ended since the first began, and those that are left.
    units_done: usize,
    units_left: usize,
    /// When the first unit began, and how many were done before.
    began: Option<(Instant, usize)>,
    most_ns: u64,
    next_line_ns: u64,
}

impl SweepLive {
    /// Shows it in the way that suits where standard error goes.
    pub(crate) fn new(stop: Stop) -> SweepLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // A template without colour: nothing is lost where colours are unwanted.
            if let Ok(style) = ProgressStyle::with_template("{msg:66!} [{bar:8}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        SweepLive {
            stop,
            bar,
            journal: None,
            title: String::new(),
            depth: None,
            left: TimeLeft::default(),
            planned: TimeRange::default(),
            units_done: 0,
            units_left: 0,
            began: None,
            most_ns: 0,
            next_line_ns: LINE_EVERY_NS,
        }
    }

    /// Where progress is written down.
    pub(crate) fn journal(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// Takes the redrawn line away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Forgets what was written down of a sweep that is complete.
    pub(crate) fn forget(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }

    /// Forgets it of a sweep that has ended without a result, if there is nothing in it.
    pub(crate) fn give_up(&mut self) {
        if let Some(journal) = self.journal.take_if(|journal| journal.is_empty()) {
            journal.remove();
        }
    }

    /// Where progress was written down.
    pub(crate) fn written_down(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// Forgets what was written down of a sweep that is complete; says how to go on with one that is not, or that has more to do
    /// for another reason.
    pub(crate) fn conclude(&mut self, result: &SweepResult, has_more: bool) {
        if !has_more && result.is_at_its_end() {
            return self.forget();
        }
        if self.journal.take().is_some_and(|journal| journal.is_kept()) {
            self.line("the same command with --resume goes on from here");
        }
    }

    /// A line above the one that is redrawn.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn message(&self, rate: &str) -> String {
        let depth = self
            .depth
            .map_or(String::new(), |depth| format!(" depth {depth}"));
        format!("{}{depth}  {rate}{}", self.title, self.left.words())
    }
}

impl SweepWatcher for SweepLive {
    fn begin(&mut self, announcement: &Announcement<'_>) {
        for line in announced(announcement) {
            self.line(&line);
        }
        let most_waited_ns = most_waited(announcement.planned.most_ns).as_nanos() as u64;
        self.planned = announcement.planned
            + TimeRange {
                least_ns: 0,
                most_ns: most_waited_ns,
            };
        self.line("Ctrl-C ends it and prints what is known by then; --resume goes on from there");
    }

    fn layout(&mut self, target: &str) {
        self.title = format!("{target}: writing the working set");
        self.next_line_ns = LINE_EVERY_NS;
    }

    fn unit(&mut self, done: usize, of: usize, plan: &CurvePlan) {
        self.title = format!("[{}/{of}] {}", done + 1, unit_name(&plan.values));
        if self.began.is_none() {
            self.left.announce(self.planned);
        }
        let (_, before) = *self.began.get_or_insert((Instant::now(), done));
        (self.units_done, self.units_left) = (done - before, of - done);
    }

    fn left(&mut self, left: TimeRange) {
        // What is between runs, waiting and preparing, takes time too.
        let elapsed_ns = self
            .began
            .map_or(0, |(at, _)| at.elapsed().as_nanos() as u64);
        let each_ns = elapsed_ns.checked_div(self.units_done as u64);
        let by_clock_ns = each_ns.map_or(0, |ns| ns * self.units_left as u64);
        let left = TimeRange {
            least_ns: left.least_ns.max(by_clock_ns),
            most_ns: left.most_ns.max(by_clock_ns),
        };
        if let Some(line) = self.left.take(left) {
            self.line(&line);
        }
    }

    fn cell(&mut self, iodepth: u32, most_ns: u64) {
        self.depth = Some(iodepth);
        self.most_ns = most_ns;
        if let Some(bar) = &self.bar {
            bar.set_length(most_ns);
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let sum = |count: fn(&iosonde_result::interval::IntervalCounts) -> u64| -> f64 {
            progress
                .rate
                .iter()
                .map(|(_, counts)| count(counts) as f64)
                .sum()
        };
        let rate = match self.depth {
            None => words::bandwidth(sum(|counts| counts.bytes)),
            Some(_) => format!("{} IOPS", words::iops(sum(|counts| counts.ios))),
        };
        if let Some(bar) = &self.bar {
            match (self.depth, progress.done) {
                (None, Some(done)) => {
                    bar.set_length(1000);
                    bar.set_position((done * 1000.0) as u64);
                }
                _ => bar.set_position(progress.at_ns.min(self.most_ns)),
            }
            set_message(bar, &self.message(&rate));
        } else if self.depth.is_none() && progress.at_ns >= self.next_line_ns {
            self.next_line_ns = progress.at_ns + LINE_EVERY_NS;
            self.line(&self.message(&rate));
        }
    }

    fn record(&mut self, curve: usize, record: &Record, spent_ns: u64) {
        let Some(mut journal) = self.journal.take() else {
            return;
        };
        journal.write(curve, record, spent_ns, &mut |note| self.line(note));
        self.journal = Some(journal);
    }

    fn done(&mut self, plan: &CurvePlan, found: &Found<'_>) {
        self.line(&found_line(plan, found));
    }

    fn note(&mut self, note: &str) {
        self.line(&format!("note: {note}"));
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}
