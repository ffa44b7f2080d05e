//! A load study while it runs: one line that is redrawn on a terminal, and a line for each point.

use super::lost;
use crate::output::is_live_terminal;
use crate::report::load::{one_line, what};
use crate::signals::Stop;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_result::observer::Progress;
use iosonde_study::load::{LoadWatcher, Point, Step};
use iosonde_study::probe::{ProbeTarget, TargetKind};
use iosonde_study::words;
use std::io::Write;

/// Where there is no terminal, laying out is told of this often.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a load study on standard error.
pub(crate) struct LoadLive {
    stop: Stop,
    bar: Option<ProgressBar>,
    step: Option<Step>,
    number: usize,
    steps: usize,
    planned_ns: Option<u64>,
    next_line_ns: u64,
}

impl LoadLive {
    /// Shows it in the way that suits where standard error goes.
    pub(crate) fn new(stop: Stop) -> LoadLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // A template without colour: nothing is lost where colours are unwanted.
            if let Ok(style) = ProgressStyle::with_template("{msg:56!} [{bar:16}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        LoadLive {
            stop,
            bar,
            step: None,
            number: 0,
            steps: 0,
            planned_ns: None,
            next_line_ns: 0,
        }
    }

    /// Takes the redrawn line away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => {
                // Nobody to tell: the result will still be printed.
                let _ = writeln!(std::io::stderr(), "{text}");
            }
        }
    }

    fn title(&self) -> String {
        match self.step {
            None => String::new(),
            Some(Step::Layout) => "writing the working set".to_owned(),
            Some(Step::Capacity) => format!("[{}/{}] capacity", self.number, self.steps),
            Some(Step::Offer(offered)) => {
                format!(
                    "[{}/{}] offering {}",
                    self.number,
                    self.steps,
                    what(offered)
                )
            }
        }
    }
}

impl LoadWatcher for LoadLive {
    fn begin(&mut self, target: &ProbeTarget, bytes: u64, steps: usize, planned_ns: u64) {
        self.steps = steps;
        let name = &target.name;
        match target.kind {
            TargetKind::Directory { .. } | TargetKind::Pool { .. } => self.line(&format!(
                "{name}: writes a working file of {} and removes it at the end:\n{}",
                words::bytes(bytes),
                target.path
            )),
            TargetKind::Existing { consent: true, .. } => {
                self.line(&format!(
                    "{name}: overwrites its first {}",
                    words::bytes(bytes)
                ));
                lost(&target.path).inspect(|text| self.line(text));
            }
            TargetKind::Existing { .. } => self.line(&format!("{name}: is only read")),
            TargetKind::Simulated { .. } => self.line(&format!("{name}: a simulated device")),
        }
        self.line(&format!(
            "{}, {} beside layout and searches; Ctrl-C ends it early and prints what\nis known by then",
            words::counted(steps, "step"),
            words::wait(planned_ns)
        ));
    }

    fn step(&mut self, step: Step, planned_ns: Option<u64>) {
        self.number += usize::from(step != Step::Layout);
        // Searches add steps that nobody knows beforehand.
        self.steps = self.steps.max(self.number);
        (self.step, self.planned_ns, self.next_line_ns) = (Some(step), planned_ns, LINE_EVERY_NS);
        if let Some(bar) = &self.bar {
            bar.set_length(planned_ns.unwrap_or(0));
            bar.set_position(0);
            bar.set_message(self.title());
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let rate: f64 = progress
            .rate
            .iter()
            .map(|(_, counts)| counts.ios as f64)
            .sum();
        let bandwidth: f64 = progress
            .rate
            .iter()
            .map(|(_, counts)| counts.bytes as f64)
            .sum();
        let rate = match self.step {
            Some(Step::Layout) => words::bandwidth(bandwidth),
            _ => format!("{} IOPS", words::iops(rate)),
        };
        if let Some(bar) = &self.bar {
            bar.set_position(match (self.planned_ns, progress.done) {
                (Some(planned_ns), _) => progress.at_ns.min(planned_ns),
                (None, Some(done)) => {
                    bar.set_length(1000);
                    (done * 1000.0) as u64
                }
                (None, None) => 0,
            });
            bar.set_message(format!("{}  {rate}", self.title()));
        } else if self.step == Some(Step::Layout) && progress.at_ns >= self.next_line_ns {
            self.next_line_ns = progress.at_ns + LINE_EVERY_NS;
            self.line(&format!("{}  {rate}", self.title()));
        }
    }

    fn capacity(&mut self, iops: f64) {
        self.line(&format!(
            "capacity in closed loop: {} IOPS",
            words::iops(iops)
        ));
    }

    fn point(&mut self, point: &Point) {
        self.line(&one_line(point));
    }

    fn note(&mut self, note: &str) {
        self.line(&format!("note: {note}"));
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}
