//! Progress of a SNIA test: the running step, and a line per round.

use super::study_view::{StudyExtent, StudySteps, StudyView};
use super::{STOP_HINT, extent_line};
use iosonde_report::pts::round_line;
use iosonde_study::pts::PtsAnnouncement;
use iosonde_study::{Announcement, StudyFinding, StudyStep, TimeRange, words};

/// Shows a test on standard error.
pub(crate) type PtsLive = StudyView<PtsSteps>;

/// Steps of a SNIA test.
#[derive(Default)]
pub(crate) struct PtsSteps;

impl StudySteps for PtsSteps {
    fn announce(&mut self, announcement: &Announcement<'_>, _is_live: bool) -> Option<StudyExtent> {
        let Announcement::Pts { target, extent } = announcement else {
            return None;
        };
        // A test writes to all targets.
        let target_line = extent_line(target, extent.bytes, true);
        let lines = vec![target_line, length(extent), STOP_HINT.to_owned()];
        let planned = TimeRange::default();
        Some(StudyExtent::of_target(target, lines, planned))
    }

    fn begin(&mut self, step: StudyStep<'_>) -> String {
        title(step)
    }

    fn is_bandwidth(&self) -> bool {
        true
    }

    /// The announced time excludes purges and fills, so the first estimate is printed.
    fn is_timed(&self, _step: StudyStep<'_>) -> bool {
        false
    }

    fn found(&mut self, finding: StudyFinding<'_>) -> Option<String> {
        let StudyFinding::Round(series) = finding else {
            return None;
        };
        // A write saturation test has thousands of rounds, so most of them print no line.
        let count = series.rounds.len();
        let is_shown = count <= 25
            || count.is_multiple_of(60)
            || series.steady.is_none() && count.is_multiple_of(10);
        is_shown.then(|| round_line(series))
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
