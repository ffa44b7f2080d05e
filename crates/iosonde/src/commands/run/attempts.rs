//! Journal lines of a suite, and the runs of interrupted attempts that follow from them.

use iosonde_suite::StepOutcome;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A journal line: the outcome of a repetition of a step, or earlier, its first run in the history.
#[derive(Serialize, Deserialize)]
pub(super) struct SuiteJournalLine {
    pub(super) target: usize,
    pub(super) step: usize,
    /// From 1. 0 if the line only names the study.
    pub(super) repetition: u32,
    /// Id of the study in the history.
    pub(super) study: Option<String>,
    /// Number of the first run in the study, written before the run is stored.
    #[serde(default)]
    pub(super) first_run: Option<u32>,
    #[serde(default)]
    pub(super) outcome: Option<StepOutcome>,
}

impl SuiteJournalLine {
    /// The target, step and repetition of the line.
    pub(super) fn step_key(&self) -> StepKey {
        (self.target, self.step, self.repetition)
    }
}

/// Indexes of a target and a step, and the repetition.
pub(super) type StepKey = (usize, usize, u32);

/// Numbers of the runs of a step's interrupted attempts in a study of the history. `next_run` is
/// the number after the last run. Without `next_run` there are none.
pub(super) fn begun(
    known: &[SuiteJournalLine],
    step_key: StepKey,
    study: Option<&str>,
    next_run: Option<u32>,
) -> Vec<Range<u32>> {
    let mut attempts: Vec<(StepKey, u32)> = Vec::new();
    let mut current: Option<&str> = None;
    let mut unnamed: Option<(StepKey, u32)> = None;
    for line in known.iter().filter(|line| line.target == step_key.0) {
        let first = line.first_run.map(|first| (line.step_key(), first));
        let nameless = unnamed.take();
        let Some(of_line) = line.study.as_deref() else {
            unnamed = first;
            continue;
        };
        // Each study numbers its runs from 1. The line of its first run directly precedes that of
        // its id; otherwise the run was not stored.
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
    // Numbers of removed runs are reused, so an attempt ends where any later one begins.
    for (attempt, first) in attempts.into_iter().rev() {
        if attempt == step_key && first < end {
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

    const A: StepKey = (0, 0, 1);
    const B: StepKey = (0, 1, 1);
    /// Key of a line that names the study.
    const NAME: StepKey = (0, 0, 0);

    fn line(step_key: StepKey, study: Option<&str>, first_run: Option<u32>) -> SuiteJournalLine {
        let (target, step, repetition) = step_key;
        SuiteJournalLine {
            target,
            step,
            repetition,
            study: study.map(str::to_owned),
            first_run,
            outcome: None,
        }
    }

    fn lines(firsts: &[(StepKey, u32)]) -> Vec<SuiteJournalLine> {
        let lines = firsts.iter();
        let lines = lines.map(|(step_key, first)| line(*step_key, Some("s"), Some(*first)));
        lines.collect()
    }

    /// Each range as its start and end.
    fn taken(
        known: &[SuiteJournalLine],
        step_key: StepKey,
        study: Option<&str>,
        next_run: Option<u32>,
    ) -> Vec<(u32, u32)> {
        let ranges = begun(known, step_key, study, next_run).into_iter();
        ranges.map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn attempt_ends_where_next_begins() {
        let mut known = vec![line(A, None, Some(1)), line(NAME, Some("s"), None)];
        known.extend(lines(&[(B, 3), (A, 5)]));
        assert_eq!(taken(&known, A, Some("s"), Some(8)), [(1, 3), (5, 8)]);
        assert_eq!(taken(&known, B, Some("s"), Some(8)), [(3, 5)]);
        assert!(taken(&known, (0, 1, 2), Some("s"), Some(8)).is_empty());
        assert!(taken(&known, (1, 0, 1), Some("s"), Some(8)).is_empty());
        assert!(taken(&known, A, Some("another"), Some(8)).is_empty());
        assert!(taken(&known, A, None, Some(8)).is_empty());
    }

    /// A failed write ends the history. Later attempts have no runs in it.
    #[test]
    fn attempt_without_history_has_no_runs() {
        let mut known = lines(&[(A, 4)]);
        known.push(line(B, Some("s"), None));
        assert!(taken(&known, B, Some("s"), Some(4)).is_empty());
        assert!(taken(&known, A, Some("s"), Some(4)).is_empty());
        assert_eq!(taken(&known, A, Some("s"), Some(6)), [(4, 6)]);
        // The number after the last run is unknown.
        assert!(taken(&known, A, Some("s"), None).is_empty());
    }

    /// Runs of steps that ended without a history are the first of the study that resumes them.
    #[test]
    fn unstored_attempt_is_in_no_later_study() {
        let mut known = vec![line(A, None, Some(1)), line(B, None, None)];
        known.extend(lines(&[(A, 2)]));
        known.push(line(NAME, Some("s"), None));
        assert_eq!(taken(&known, A, Some("s"), Some(3)), [(2, 3)]);
        // The program ended before the study had an id. Another study resumed the journal.
        let mut known = vec![line(A, None, Some(1))];
        known.extend(lines(&[(B, 2)]));
        assert!(taken(&known, A, Some("s"), Some(3)).is_empty());
        let known = [line(A, None, Some(1)), line(B, Some("s"), None)];
        assert!(taken(&known, A, Some("s"), Some(3)).is_empty());
        // Another study continues the journal.
        let mut known = lines(&[(A, 1)]);
        known.push(line(B, Some("t"), Some(2)));
        assert!(taken(&known, A, Some("t"), Some(3)).is_empty());
        assert_eq!(taken(&known, B, Some("t"), Some(3)), [(2, 3)]);
    }

    /// Numbers of removed runs are reused.
    #[test]
    fn attempt_ends_before_reused_run_numbers() {
        let known = lines(&[(A, 5), (B, 7), (B, 5)]);
        assert!(taken(&known, A, Some("s"), Some(9)).is_empty());
        assert_eq!(taken(&known, B, Some("s"), Some(9)), [(5, 9)]);
        let known = lines(&[(B, 5), (A, 7), (B, 9), (A, 3)]);
        assert!(taken(&known, B, Some("s"), Some(12)).is_empty());
        assert_eq!(taken(&known, A, Some("s"), Some(12)), [(3, 12)]);
        // The history ends before the later attempt.
        let known = lines(&[(A, 5), (B, 7)]);
        assert_eq!(taken(&known, A, Some("s"), Some(6)), [(5, 6)]);
        assert!(taken(&known, B, Some("s"), Some(6)).is_empty());
    }
}
