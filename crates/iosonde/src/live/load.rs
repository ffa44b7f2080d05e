//! A load study while it runs: one line that is redrawn on a terminal, and a line for each point.

use super::left::TimeLeft;
use super::lost;
use super::set_message;
use crate::output::is_live_terminal;
use crate::report::load::{one_line, what};
use crate::signals::Stop;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_result::observer::Progress;
use iosonde_study::load::{LoadAnnouncement, LoadWatcher, Point, Step, StepRange};
use iosonde_study::probe::{ProbeTarget, TargetKind};
use iosonde_study::{TimeRange, words};

/// Where there is no terminal, laying out is told of this often.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a load study on standard error.
pub(crate) struct LoadLive {
    stop: Stop,
    bar: Option<ProgressBar>,
    step: Option<Step>,
    number: u64,
    steps: StepRange,
    /// Announced of all steps.
    planned: TimeRange,
    left: TimeLeft,
    planned_ns: Option<u64>,
    next_line_ns: u64,
}

impl LoadLive {
    /// Shows it in the way that suits where standard error goes.
    pub(crate) fn new(stop: Stop) -> LoadLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // A template without colour: nothing is lost where colours are unwanted.
            if let Ok(style) = ProgressStyle::with_template("{msg:66!} [{bar:8}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        LoadLive {
            stop,
            bar,
            step: None,
            number: 0,
            steps: StepRange::default(),
            planned: TimeRange::default(),
            left: TimeLeft::default(),
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
            None => eprintln!("{text}"),
        }
    }

    fn title(&self) -> String {
        match self.step {
            None => String::new(),
            Some(Step::Layout) => "writing the working set".to_owned(),
            Some(Step::Capacity) => format!("{} capacity", self.place()),
            Some(Step::Offer(offered)) => format!("{} offering {}", self.place(), what(offered)),
        }
    }

    /// `[3/14 to 26]`
    fn place(&self) -> String {
        format!("[{}/{}]", self.number, range(self.steps))
    }

    /// What goes on, for the line that is redrawn.
    fn message(&self, rate: &str) -> String {
        format!("{}  {rate}{}", self.title(), self.left.words())
    }
}

impl LoadWatcher for LoadLive {
    fn begin(&mut self, target: &ProbeTarget, announcement: &LoadAnnouncement) {
        (self.steps, self.planned) = (announcement.steps, announcement.planned);
        let name = &target.name;
        let size = words::bytes(announcement.bytes);
        match target.kind {
            TargetKind::Directory { .. } | TargetKind::Pool { .. } => self.line(&format!(
                "{name}: writes a working file of {size} and removes it at the end:\n{}",
                target.path
            )),
            TargetKind::Existing { consent: true, .. } => {
                self.line(&format!("{name}: overwrites its first {size}"));
                lost(&target.path).inspect(|text| self.line(text));
            }
            TargetKind::Existing { .. } => self.line(&format!("{name}: is only read")),
            TargetKind::Simulated { .. } => self.line(&format!("{name}: a simulated device")),
        }
        self.line(&length(announcement));
        self.line("Ctrl-C ends it early and prints what is known by then");
    }

    fn left(&mut self, left: TimeRange) {
        if let Some(line) = self.left.take(left) {
            self.line(&line);
        }
    }

    fn step(&mut self, step: Step, planned_ns: Option<u64>) {
        if step != Step::Layout {
            if self.number == 0 {
                self.left.announce(self.planned);
            }
            self.number += 1;
        }
        self.steps.least = self.steps.least.max(self.number);
        (self.step, self.planned_ns, self.next_line_ns) = (Some(step), planned_ns, LINE_EVERY_NS);
        if let Some(bar) = &self.bar {
            bar.set_length(planned_ns.unwrap_or(0));
            bar.set_position(0);
            set_message(bar, &self.title());
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
            set_message(bar, &self.message(&rate));
        } else if self.step == Some(Step::Layout) && progress.at_ns >= self.next_line_ns {
            self.next_line_ns = progress.at_ns + LINE_EVERY_NS;
            self.line(&self.message(&rate));
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

/// How many steps there are and how long they take.
fn length(announcement: &LoadAnnouncement) -> String {
    let unit = match announcement.steps.most {
        1 => "step",
        _ => "steps",
    };
    let layout = match announcement.layout_bytes {
        0 => "",
        _ => ", plus layout",
    };
    format!(
        "{} {unit}, {}{layout}",
        range(announcement.steps),
        announcement.planned.words()
    )
}

/// `14`, or `14 to 26`.
fn range(steps: StepRange) -> String {
    match steps.least == steps.most {
        true => steps.most.to_string(),
        false => format!("{} to {}", steps.least, steps.most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_a_range_where_searches_follow() {
        let announcement = |least, most, layout_bytes| LoadAnnouncement {
            bytes: 1 << 30,
            layout_bytes,
            steps: StepRange { least, most },
            planned: TimeRange::of_steps(least, most, 5_000_000_000),
        };
        assert_eq!(
            length(&announcement(14, 26, 1 << 30)),
            "14 to 26 steps, 1 min 10 s to 2 min 10 s, plus layout"
        );
        assert_eq!(
            length(&announcement(14, 14, 0)),
            "14 steps, about 1 min 10 s"
        );
        assert_eq!(length(&announcement(1, 1, 0)), "1 step, about 5 s");
    }
}
