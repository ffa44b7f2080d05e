//! Progress of a sweep: one line redrawn on a terminal, and a line per curve or cell.

use super::set_message;
use super::time_left::TimeLeft;
use crate::journal::sweep_journal::SweepJournal;
use crate::output::is_live_terminal;
use crate::signals::StopSignal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_report::sweep::{announced, cell_line, curve_line, unit_name};
use iosonde_result::observer::RunProgress;
use iosonde_study::saturation::CellRecord;
use iosonde_study::sweep::{SweepAnnouncement, SweepResult, quiet_wait_max};
use iosonde_study::{
    Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep, TimeRange, words,
};
use std::time::Instant;

/// Interval of progress lines during layout if standard error is no terminal.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a sweep on standard error, and records its results in the journal.
pub(crate) struct SweepLive {
    stop: StopSignal,
    bar: Option<ProgressBar>,
    journal: Option<SweepJournal>,
    /// Current unit, for the redrawn line.
    title: String,
    depth: Option<u32>,
    left: TimeLeft,
    /// Announced time of all units.
    planned: TimeRange,
    /// Number of units that ended since the first one started here, and number of those left.
    units_done: usize,
    units_left: usize,
    /// Start of the first unit, and number of units that were complete before.
    began: Option<(Instant, usize)>,
    most_ns: u64,
    next_line_ns: u64,
}

impl SweepLive {
    /// Creates a display: a redrawn line if standard error is a terminal, otherwise lines only.
    pub(crate) fn new(stop: StopSignal) -> SweepLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // The template has no colours, so it needs no variant for terminals without colours.
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

    /// Sets the journal that records progress.
    pub(crate) fn journal(&mut self, journal: SweepJournal) {
        self.journal = Some(journal);
    }

    /// Removes the redrawn line.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Removes the journal of a complete sweep.
    pub(crate) fn forget(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }

    /// Removes the journal of a sweep that ended without a result, if the journal is empty.
    pub(crate) fn give_up(&mut self) {
        if let Some(journal) = self.journal.take_if(|journal| journal.is_empty()) {
            journal.remove();
        }
    }

    /// Takes the journal.
    pub(crate) fn written_down(&mut self) -> Option<SweepJournal> {
        self.journal.take()
    }

    /// Removes the journal of a complete sweep. If the sweep is incomplete, or has more to do for
    /// another reason, prints how to resume it.
    pub(crate) fn conclude(&mut self, result: &SweepResult, has_more: bool) {
        if !has_more && result.is_at_its_end() {
            return self.forget();
        }
        if self.journal.take().is_some_and(|journal| journal.is_kept()) {
            self.line("to continue, run the same command with --resume");
        }
    }

    /// Prints a line above the redrawn line.
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

impl SweepLive {
    fn announce(&mut self, announcement: &SweepAnnouncement<'_>) {
        for line in announced(announcement, &crate::live::overwrite_warning) {
            self.line(&line);
        }
        let most_waited_ns = quiet_wait_max(announcement.planned.most_ns).as_nanos() as u64;
        self.planned = announcement.planned
            + TimeRange {
                least_ns: 0,
                most_ns: most_waited_ns,
            };
        self.line("Ctrl-C stops and prints the results so far; --resume continues from there");
    }

    fn begin(&mut self, step: StudyStep<'_>) {
        match step {
            StudyStep::Layout { target } => {
                self.title = format!("{target}: writing the working set");
                self.next_line_ns = LINE_EVERY_NS;
            }
            StudyStep::Unit { done, units, plan } => {
                self.title = format!("[{}/{units}] {}", done + 1, unit_name(&plan.values));
                if self.began.is_none() {
                    self.left.announce(self.planned);
                }
                let (_, before) = *self.began.get_or_insert((Instant::now(), done));
                (self.units_done, self.units_left) = (done - before, units - done);
            }
            _ => {}
        }
    }

    fn estimate(&mut self, left: TimeRange) {
        // The mean time per unit includes preparation and waiting between runs.
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

    fn begin_cell(&mut self, iodepth: u32, most_ns: u64) {
        self.depth = Some(iodepth);
        self.most_ns = most_ns;
        if let Some(bar) = &self.bar {
            bar.set_length(most_ns);
        }
    }

    fn progress(&mut self, progress: &RunProgress<'_>) {
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

    fn record(&mut self, curve: usize, record: &CellRecord, spent_ns: u64) {
        let Some(mut journal) = self.journal.take() else {
            return;
        };
        journal.write(curve, record, spent_ns, &mut |note| self.line(note));
        self.journal = Some(journal);
    }
}

impl StudyObserver for SweepLive {
    fn event(&mut self, event: &StudyEvent<'_>) {
        match *event {
            StudyEvent::Announced(Announcement::Sweep(extent)) => self.announce(&extent),
            StudyEvent::StepStarted { step, .. } => self.begin(step),
            StudyEvent::TimeLeft(left) => self.estimate(left),
            StudyEvent::CellStarted {
                iodepth, most_ns, ..
            } => self.begin_cell(iodepth, most_ns),
            StudyEvent::Progress(progress) => self.progress(progress),
            StudyEvent::Recorded {
                curve,
                record,
                spent_ns,
            } => self.record(curve, record, spent_ns),
            StudyEvent::Found(StudyFinding::Curve { plan, saturation }) => {
                self.line(&curve_line(plan, saturation));
            }
            StudyEvent::Found(StudyFinding::Cell { plan, record }) => {
                self.line(&cell_line(plan, record));
            }
            StudyEvent::Note(note) => self.line(&format!("note: {note}")),
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}
