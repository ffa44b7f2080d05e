//! What is written down while a suite runs, and what follows from it when the suite goes on.

use iosonde_study::suite::StepOutcome;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What is written down of a repetition of a step that has ended, and before, what of it is in the history.
#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) target: usize,
    pub(super) step: usize,
    /// From 1; 0 where it is about the study alone.
    pub(super) repetition: u32,
    /// The study in the history that it is part of.
    pub(super) study: Option<String>,
    /// The number that its first run has there, written down before it is kept.
    #[serde(default)]
    pub(super) first_run: Option<u32>,
    #[serde(default)]
    pub(super) outcome: Option<StepOutcome>,
}

impl Line {
    /// Which repetition of which step on which target it is about.
    pub(super) fn about(&self) -> About {
        (self.target, self.step, self.repetition)
    }
}

/// A target, a step, and a repetition of it.
pub(super) type About = (usize, usize, u32);

/// The runs in a study of the history, by their numbers, that are of a step's attempts that did not come to their end.
/// `next_run` is behind the last of them; where it is not known, nothing is.
pub(super) fn begun(
    known: &[Line],
    about: About,
    study: Option<&str>,
    next_run: Option<u32>,
) -> Vec<Range<u32>> {
    let mut attempts: Vec<(About, u32)> = Vec::new();
    let mut current: Option<&str> = None;
    let mut unnamed: Option<(About, u32)> = None;
    for line in known.iter().filter(|line| line.target == about.0) {
        let first = line.first_run.map(|first| (line.about(), first));
        let nameless = unnamed.take();
        let Some(of_line) = line.study.as_deref() else {
            unnamed = first;
            continue;
        };
        // In another study numbers begin anew. Its first run is before its name, which follows at once: else it was not kept.
        if current != Some(of_line) {
            current = Some(of_line);
            attempts.clear();
            attempts.extend(nameless.filter(|_| line.repetition == 0));
        }
        attempts.extend(first);
    }
    let Some(mut end) = next_run.filter(|_| study.is_some() && current == study) else {
        return Vec::new();
    };
    let mut ranges = Vec::new();
    // Numbers of runs that were taken back are given again: an attempt ends where any later one begins.
    for (attempt, first) in attempts.into_iter().rev() {
        if attempt == about && first < end {
            ranges.push(first..end);
        }
        end = end.min(first);
    }
    ranges.reverse();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: About = (0, 0, 1);
    const B: About = (0, 1, 1);
    /// About the study alone.
    const NAME: About = (0, 0, 0);

    fn line(about: About, study: Option<&str>, first_run: Option<u32>) -> Line {
        let (target, step, repetition) = about;
        Line {
            target,
            step,
            repetition,
            study: study.map(str::to_owned),
            first_run,
            outcome: None,
        }
    }

    /// Lines of one study.
    fn lines(firsts: &[(About, u32)]) -> Vec<Line> {
        let lines = firsts.iter();
        let lines = lines.map(|(about, first)| line(*about, Some("s"), Some(*first)));
        lines.collect()
    }

    /// The first number of each range, and the one behind it.
    fn taken(
        known: &[Line],
        about: About,
        study: Option<&str>,
        next_run: Option<u32>,
    ) -> Vec<(u32, u32)> {
        let ranges = begun(known, about, study, next_run).into_iter();
        ranges.map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn an_attempt_lasts_until_the_next_begins() {
        let mut known = vec![line(A, None, Some(1)), line(NAME, Some("s"), None)];
        known.extend(lines(&[(B, 3), (A, 5)]));
        assert_eq!(taken(&known, A, Some("s"), Some(8)), [(1, 3), (5, 8)]);
        assert_eq!(taken(&known, B, Some("s"), Some(8)), [(3, 5)]);
        assert!(taken(&known, (0, 1, 2), Some("s"), Some(8)).is_empty());
        assert!(taken(&known, (1, 0, 1), Some("s"), Some(8)).is_empty());
        assert!(taken(&known, A, Some("another"), Some(8)).is_empty());
        assert!(taken(&known, A, None, Some(8)).is_empty());
    }

    /// After a write that failed nothing more is kept: what begins then takes nothing back.
    #[test]
    fn what_began_without_a_history_has_no_runs() {
        let mut known = lines(&[(A, 4)]);
        known.push(line(B, Some("s"), None));
        assert!(taken(&known, B, Some("s"), Some(4)).is_empty());
        assert!(taken(&known, A, Some("s"), Some(4)).is_empty());
        assert_eq!(taken(&known, A, Some("s"), Some(6)), [(4, 6)]);
        // The history cannot tell what is its last.
        assert!(taken(&known, A, Some("s"), None).is_empty());
    }

    /// The runs of steps that ended without a history are the first of the study that takes them up.
    #[test]
    fn what_was_not_kept_is_in_no_later_study() {
        let mut known = vec![line(A, None, Some(1)), line(B, None, None)];
        known.extend(lines(&[(A, 2)]));
        known.push(line(NAME, Some("s"), None));
        assert_eq!(taken(&known, A, Some("s"), Some(3)), [(2, 3)]);
        // The program ended before the study had its name; another took up what there was.
        let mut known = vec![line(A, None, Some(1))];
        known.extend(lines(&[(B, 2)]));
        assert!(taken(&known, A, Some("s"), Some(3)).is_empty());
        let known = [line(A, None, Some(1)), line(B, Some("s"), None)];
        assert!(taken(&known, A, Some("s"), Some(3)).is_empty());
        // One that was gone on with in another study.
        let mut known = lines(&[(A, 1)]);
        known.push(line(B, Some("t"), Some(2)));
        assert!(taken(&known, A, Some("t"), Some(3)).is_empty());
        assert_eq!(taken(&known, B, Some("t"), Some(3)), [(2, 3)]);
    }

    /// Numbers are given again once the runs that had them are taken back.
    #[test]
    fn an_attempt_does_not_reach_into_what_began_later() {
        let known = lines(&[(A, 5), (B, 7), (B, 5)]);
        assert!(taken(&known, A, Some("s"), Some(9)).is_empty());
        assert_eq!(taken(&known, B, Some("s"), Some(9)), [(5, 9)]);
        let known = lines(&[(B, 5), (A, 7), (B, 9), (A, 3)]);
        assert!(taken(&known, B, Some("s"), Some(12)).is_empty());
        assert_eq!(taken(&known, A, Some("s"), Some(12)), [(3, 12)]);
        // What is there ends before.
        let known = lines(&[(A, 5), (B, 7)]);
        assert_eq!(taken(&known, A, Some("s"), Some(6)), [(5, 6)]);
        assert!(taken(&known, B, Some("s"), Some(6)).is_empty());
    }
}
