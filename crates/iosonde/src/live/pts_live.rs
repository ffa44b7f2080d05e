//! Progress of a SNIA test: one line redrawn on a terminal, and a line per round.

use super::time_left::TimeLeft;
use super::{STOP_HINT, extent_line, set_message};
use crate::output::is_live_terminal;
use crate::signals::StopSignal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_report::pts::round_line;
use iosonde_result::observer::RunProgress;
use iosonde_study::probe::StudyTarget;
use iosonde_study::pts::{PtsAnnouncement, SeriesResult};
use iosonde_study::{Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep, words};

/// Interval of progress lines of a long step if standard error is no terminal.
const LINE_EVERY_NS: u64 = 10_000_000_000;

/// Shows a test on standard error.
pub(crate) struct PtsLive {
    stop: StopSignal,
    bar: Option<ProgressBar>,
    title: String,
    planned_ns: Option<u64>,
    next_line_ns: u64,
    left: TimeLeft,
}

impl PtsLive {
    /// Creates a display: a redrawn line if standard error is a terminal, otherwise lines only.
    pub(crate) fn new(stop: StopSignal) -> PtsLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // The template has no colours, so it needs no variant for terminals without colours.
            if let Ok(style) = ProgressStyle::with_template("{msg:60!} [{bar:14}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        PtsLive {
            stop,
            bar,
            title: String::new(),
            planned_ns: None,
            next_line_ns: 0,
            left: TimeLeft::default(),
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
}

impl PtsLive {
    fn announce(&self, target: &StudyTarget, extent: &PtsAnnouncement) {
        // A test writes to all targets.
        self.line(&extent_line(target, extent.bytes, true));
        self.line(&length(extent));
        self.line(STOP_HINT);
    }

    fn begin(&mut self, step: StudyStep<'_>, planned_ns: Option<u64>) {
        (self.title, self.planned_ns) = (title(step), planned_ns);
        self.next_line_ns = LINE_EVERY_NS;
        if let Some(bar) = &self.bar {
            bar.set_length(planned_ns.unwrap_or(0));
            bar.set_position(0);
            set_message(bar, &self.title);
        }
    }

    fn progress(&mut self, progress: &RunProgress<'_>) {
        let bytes: f64 = progress
            .rate
            .iter()
            .map(|(_, counts)| counts.bytes as f64)
            .sum();
        let rate = words::bandwidth(bytes);
        let message = format!("{}  {rate}{}", self.title, self.left.words());
        if let Some(bar) = &self.bar {
            match (self.planned_ns, progress.done) {
                (Some(planned_ns), _) => bar.set_position(progress.at_ns.min(planned_ns)),
                (None, Some(done)) => {
                    bar.set_length(1000);
                    bar.set_position((done * 1000.0) as u64);
                }
                (None, None) => {}
            }
            set_message(bar, &message);
        } else if self.planned_ns.is_none() && progress.at_ns >= self.next_line_ns {
            self.next_line_ns = progress.at_ns + LINE_EVERY_NS;
            self.line(&message);
        }
    }

    fn round(&self, series: &SeriesResult) {
        // A write saturation test has thousands of rounds, so most of them print no line.
        let count = series.rounds.len();
        if count <= 25
            || count.is_multiple_of(60)
            || series.steady.is_none() && count.is_multiple_of(10)
        {
            self.line(&round_line(series));
        }
    }
}

impl StudyObserver for PtsLive {
    fn event(&mut self, event: &StudyEvent<'_>) {
        match event {
            StudyEvent::Announced(Announcement::Pts { target, extent }) => {
                self.announce(target, extent);
            }
            StudyEvent::StepStarted { step, planned_ns } => self.begin(*step, *planned_ns),
            StudyEvent::TimeLeft(left) => {
                if let Some(line) = self.left.take(*left) {
                    self.line(&line);
                }
            }
            StudyEvent::Progress(progress) => self.progress(progress),
            StudyEvent::Found(StudyFinding::Round(series)) => self.round(series),
            StudyEvent::Note(note) => self.line(&format!("note: {note}")),
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

/// Returns the title of a step.
fn title(step: StudyStep<'_>) -> String {
    match step {
        StudyStep::Purge => "discarding everything".to_owned(),
        StudyStep::Fill { done_percent } => format!("filling, {done_percent:.0} % of it done"),
        StudyStep::Workload {
            round,
            number,
            workloads,
        } => format!("round {round}, workload {number} of {workloads}"),
        _ => String::new(),
    }
}

/// Describes the length of a test, as known before it starts.
fn length(announcement: &PtsAnnouncement) -> String {
    let rounds = match announcement.most_written_bytes {
        Some(bytes) => format!(
            "rounds until {} are written, at most {}",
            words::bytes(bytes),
            words::duration(announcement.rounds.most_ns as f64 / 1e9)
        ),
        None => format!(
            "{} of rounds, until five in a row are in steady state",
            announcement.rounds.words()
        ),
    };
    let parts = [
        (announcement.purge_bytes, "discarded"),
        (announcement.fill_bytes, "filled"),
    ];
    let before = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
    let before: Vec<String> = before
        .map(|(bytes, how)| format!("{} are {how}", words::bytes(bytes)))
        .collect();
    match before.is_empty() {
        true => rounds,
        false => format!("{rounds}; first {}", before.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_study::TimeRange;

    #[test]
    fn length_names_rounds_purge_and_fill() {
        let latency = PtsAnnouncement {
            bytes: 1 << 30,
            purge_bytes: 0,
            fill_bytes: 2 << 30,
            rounds: TimeRange::from_steps(45, 225, 60_000_000_000),
            most_written_bytes: None,
        };
        assert_eq!(
            length(&latency),
            "45 min to 3 h 45 min of rounds, until five in a row are in steady state; first 2 GiB \
             are filled"
        );
        let purged = PtsAnnouncement {
            purge_bytes: 1 << 30,
            ..latency
        };
        assert_eq!(
            length(&purged),
            "45 min to 3 h 45 min of rounds, until five in a row are in steady state; first 1 GiB \
             are discarded and 2 GiB are filled"
        );
        let saturation = PtsAnnouncement {
            fill_bytes: 0,
            rounds: TimeRange::from_steps(1, 1440, 60_000_000_000),
            most_written_bytes: Some(4 << 30),
            ..latency
        };
        assert_eq!(
            length(&saturation),
            "rounds until 4 GiB are written, at most 24 h"
        );
    }
}
