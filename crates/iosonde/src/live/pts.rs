//! A test of the specification while it runs: one line that is redrawn on a terminal, and a line for each round.

use super::left::TimeLeft;
use super::set_message;
use crate::output::is_live_terminal;
use crate::report::pts::round_line;
use crate::signals::Stop;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosonde_result::observer::Progress;
use iosonde_study::probe::{ProbeTarget, TargetKind};
use iosonde_study::pts::{PtsAnnouncement, PtsWatcher, SeriesResult};
use iosonde_study::{TimeRange, words};

/// Where there is no terminal, a step that lasts is told of this often.
const LINE_EVERY_NS: u64 = 10_000_000_000;

/// Shows a test on standard error.
pub(crate) struct PtsLive {
    stop: Stop,
    bar: Option<ProgressBar>,
    title: String,
    planned_ns: Option<u64>,
    next_line_ns: u64,
    left: TimeLeft,
}

impl PtsLive {
    /// Shows it in the way that suits where standard error goes.
    pub(crate) fn new(stop: Stop) -> PtsLive {
        let bar = is_live_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
            // A template without colour: nothing is lost where colours are unwanted.
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

    /// Takes the redrawn line away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// A line above the one that is redrawn.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

impl PtsWatcher for PtsLive {
    fn begin(&mut self, target: &ProbeTarget, announcement: &PtsAnnouncement) {
        let name = &target.name;
        let size = words::bytes(announcement.bytes);
        match target.kind {
            TargetKind::Directory { .. } | TargetKind::Pool { .. } => self.line(&format!(
                "{name}: writes a working file of {size} and removes it at the end:\n{}",
                target.path
            )),
            TargetKind::Existing { .. } => {
                self.line(&format!("{name}: overwrites its first {size}"));
            }
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

    fn step(&mut self, title: &str, planned_ns: Option<u64>) {
        (self.title, self.planned_ns) = (title.to_owned(), planned_ns);
        self.next_line_ns = LINE_EVERY_NS;
        if let Some(bar) = &self.bar {
            bar.set_length(planned_ns.unwrap_or(0));
            bar.set_position(0);
            set_message(bar, title);
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
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

    fn round(&mut self, series: &SeriesResult) {
        // Those of write saturation come by the thousand.
        let count = series.rounds.len();
        if count <= 25
            || count.is_multiple_of(60)
            || series.steady.is_none() && count.is_multiple_of(10)
        {
            self.line(&round_line(series));
        }
    }

    fn note(&mut self, note: &str) {
        self.line(&format!("note: {note}"));
    }

    fn is_interrupted(&self) -> bool {
        self.stop.interrupt.is_requested()
    }
}

/// How long a test takes, as far as it is known beforehand.
fn length(announcement: &PtsAnnouncement) -> String {
    let rounds = match announcement.most_written_bytes {
        Some(bytes) => format!(
            "rounds until {} are written, {} at most",
            words::bytes(bytes),
            words::duration(announcement.rounds.most_ns as f64 / 1e9)
        ),
        None => format!(
            "{} of rounds, which end when five agree",
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
        false => format!("{rounds}; before them {}", before.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_names_rounds_purge_and_fill() {
        let latency = PtsAnnouncement {
            bytes: 1 << 30,
            purge_bytes: 0,
            fill_bytes: 2 << 30,
            rounds: TimeRange::of_steps(45, 225, 60_000_000_000),
            most_written_bytes: None,
        };
        assert_eq!(
            length(&latency),
            "45 min to 3 h 45 min of rounds, which end when five agree; before them 2 GiB are filled"
        );
        let purged = PtsAnnouncement {
            purge_bytes: 1 << 30,
            ..latency
        };
        assert_eq!(
            length(&purged),
            "45 min to 3 h 45 min of rounds, which end when five agree; before them 1 GiB are discarded and 2 GiB are filled"
        );
        let saturation = PtsAnnouncement {
            fill_bytes: 0,
            rounds: TimeRange::of_steps(1, 1440, 60_000_000_000),
            most_written_bytes: Some(4 << 30),
            ..latency
        };
        assert_eq!(
            length(&saturation),
            "rounds until 4 GiB are written, 24 h at most"
        );
    }
}
