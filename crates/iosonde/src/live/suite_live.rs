//! Progress of a suite: one line redrawn on a terminal, and a line when a step starts.

use super::set_message;
use crate::output::is_live_terminal;
use crate::signals::StopSignal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_study::words;

/// Shows a suite on standard error.
pub(crate) struct SuiteLive {
    stop: StopSignal,
    bar: Option<ProgressBar>,
    title: String,
    planned_ns: Option<u64>,
}

impl SuiteLive {
    /// Creates a display; [`SuiteLive::begin`] adds the redrawn line on a terminal.
    pub(crate) fn new(stop: StopSignal) -> SuiteLive {
        SuiteLive {
            stop,
            bar: None,
            title: String::new(),
            planned_ns: None,
        }
    }

    /// Prints the title of jobs that start and take at most `planned_ns`.
    pub(crate) fn begin(&mut self, title: &str, planned_ns: Option<u64>) {
        (self.title, self.planned_ns) = (title.to_owned(), planned_ns);
        self.line(title);
        self.bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // The template has no colours, so it needs no variant for terminals without colours.
            if let Ok(style) = ProgressStyle::with_template("{msg:56!} [{bar:16}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
    }

    /// Removes the redrawn line after the jobs have ended.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Prints a line above the redrawn line.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Whether the user has requested to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

impl Observer for SuiteLive {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        if let Some(bar) = &self.bar {
            let ios: u64 = progress.rate.iter().map(|(_, counts)| counts.ios).sum();
            let bytes: u64 = progress.rate.iter().map(|(_, counts)| counts.bytes).sum();
            bar.set_length(1000);
            bar.set_position(match (progress.done, self.planned_ns) {
                (Some(done), _) => (done * 1000.0) as u64,
                (None, Some(planned_ns)) => {
                    progress.at_ns.min(planned_ns) * 1000 / planned_ns.max(1)
                }
                (None, None) => 0,
            });
            let (iops, bandwidth) = (words::iops(ios as f64), words::bandwidth(bytes as f64));
            set_message(bar, &format!("{}  {iops} IOPS  {bandwidth}", self.title));
        }
        match self.is_over() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}
