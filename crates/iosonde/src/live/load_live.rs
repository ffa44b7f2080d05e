//! Progress of a load study: one line redrawn on a terminal, and a line per point.

use super::time_left::TimeLeft;
use super::{STOP_HINT, extent_line, overwrite_warning, set_message};
use crate::output::is_live_terminal;
use crate::signals::StopSignal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_report::load::{one_line, what};
use iosonde_result::observer::RunProgress;
use iosonde_study::load::{LoadAnnouncement, StepRange};
use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use iosonde_study::{
    Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep, TimeRange, words,
};

/// Interval of progress lines during layout if standard error is no terminal.
const LINE_EVERY_NS: u64 = 3_000_000_000;

/// Shows a load study on standard error.
pub(crate) struct LoadLive {
    stop: StopSignal,
    bar: Option<ProgressBar>,
    /// Title of the current step.
    title: String,
    is_layout: bool,
    number: u64,
    steps: StepRange,
    /// Announced time of all steps.
    planned: TimeRange,
    left: TimeLeft,
    planned_ns: Option<u64>,
    next_line_ns: u64,
}

impl LoadLive {
    /// Creates a display: a redrawn line if standard error is a terminal, otherwise lines only.
    pub(crate) fn new(stop: StopSignal) -> LoadLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // The template has no colours, so it needs no variant for terminals without colours.
            if let Ok(style) = ProgressStyle::with_template("{msg:66!} [{bar:8}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        LoadLive {
            stop,
            bar,
            title: String::new(),
            is_layout: false,
            number: 0,
            steps: StepRange::default(),
            planned: TimeRange::default(),
            left: TimeLeft::default(),
            planned_ns: None,
            next_line_ns: 0,
        }
    }

    /// Removes the redrawn line.
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

    fn title_of(&self, step: StudyStep<'_>) -> String {
        match step {
            StudyStep::Layout { .. } => "writing the working set".to_owned(),
            StudyStep::Capacity => format!("{} capacity", self.place()),
            StudyStep::OfferedLoad(offered) => {
                format!("{} offering {}", self.place(), what(offered))
            }
            _ => String::new(),
        }
    }

    /// `[3/14 to 26]`
    fn place(&self) -> String {
        format!("[{}/{}]", self.number, range(self.steps))
    }

    /// Text of the redrawn line: step, rate and remaining time.
    fn message(&self, rate: &str) -> String {
        format!("{}  {rate}{}", self.title, self.left.words())
    }
}

impl LoadLive {
    fn announce(&mut self, target: &StudyTarget, announcement: &LoadAnnouncement) {
        (self.steps, self.planned) = (announcement.steps, announcement.planned);
        let overwrites = matches!(target.kind, StudyTargetKind::Existing { consent: true, .. });
        self.line(&extent_line(target, announcement.bytes, overwrites));
        if overwrites && let Some(warning) = overwrite_warning(&target.path) {
            self.line(&warning);
        }
        self.line(&length(announcement));
        self.line(STOP_HINT);
    }

    fn begin(&mut self, step: StudyStep<'_>, planned_ns: Option<u64>) {
        self.is_layout = matches!(step, StudyStep::Layout { .. });
        if !self.is_layout {
            if self.number == 0 {
                self.left.announce(self.planned);
            }
            self.number += 1;
        }
        self.steps.least = self.steps.least.max(self.number);
        self.title = self.title_of(step);
        (self.planned_ns, self.next_line_ns) = (planned_ns, LINE_EVERY_NS);
        if let Some(bar) = &self.bar {
            bar.set_length(planned_ns.unwrap_or(0));
            bar.set_position(0);
            set_message(bar, &self.title);
        }
    }

    fn progress(&mut self, progress: &RunProgress<'_>) {
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
        let rate = match self.is_layout {
            true => words::bandwidth(bandwidth),
            false => format!("{} IOPS", words::iops(rate)),
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
        } else if self.is_layout && progress.at_ns >= self.next_line_ns {
            self.next_line_ns = progress.at_ns + LINE_EVERY_NS;
            self.line(&self.message(&rate));
        }
    }
}

impl StudyObserver for LoadLive {
    fn event(&mut self, event: &StudyEvent<'_>) {
        match event {
            StudyEvent::Announced(Announcement::Load { target, extent }) => {
                self.announce(target, extent);
            }
            StudyEvent::StepStarted { step, planned_ns } => self.begin(*step, *planned_ns),
            StudyEvent::TimeLeft(left) => {
                if let Some(line) = self.left.take(*left) {
                    self.line(&line);
                }
            }
            StudyEvent::Progress(progress) => self.progress(progress),
            StudyEvent::Found(StudyFinding::Capacity { iops }) => self.line(&format!(
                "capacity in closed loop: {} IOPS",
                words::iops(*iops)
            )),
            StudyEvent::Found(StudyFinding::Point(point)) => self.line(&one_line(point)),
            StudyEvent::Note(note) => self.line(&format!("note: {note}")),
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

/// Describes the number of steps and their time.
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
    fn load_length_is_a_range_if_searches_follow() {
        let announcement = |least, most, layout_bytes| LoadAnnouncement {
            bytes: 1 << 30,
            layout_bytes,
            steps: StepRange { least, most },
            planned: TimeRange::from_steps(least, most, 5_000_000_000),
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
