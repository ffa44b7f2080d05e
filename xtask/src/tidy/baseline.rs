//! The committed counts, which may only fall.

use super::finding::FindingCounts;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Path of the counts below the root of the repository.
pub(crate) const PATH: &str = "xtask/tidy-baseline.toml";

const HEAD: &str = "\
# Findings of `cargo xtask tidy` by rule and crate. A count may only fall.
# `cargo xtask tidy --lower` writes the file after a fall; see docs/testing.md.
";

/// Reads the file's text.
pub(crate) fn parse(text: &str) -> Result<FindingCounts> {
    toml::from_str(text).with_context(|| format!("reading {PATH}"))
}

/// The text of the file: one line for each rule and crate.
pub(crate) fn render(counts: &FindingCounts) -> String {
    let mut text = HEAD.to_owned();
    for (rule, crates) in counts {
        let _ = writeln!(text, "\n[{rule}]");
        for (krate, count) in crates.iter().filter(|(_, count)| **count > 0) {
            let _ = writeln!(text, "{krate} = {count}");
        }
    }
    text
}

/// A count that is not the baseline's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CountChange {
    pub(crate) rule: String,
    pub(crate) krate: String,
    pub(crate) before: usize,
    pub(crate) now: usize,
}

impl CountChange {
    pub(crate) fn is_rise(&self) -> bool {
        self.now > self.before
    }
}

/// Count of a rule in a crate.
pub(crate) fn count_of(counts: &FindingCounts, rule: &str, krate: &str) -> usize {
    let crates = counts.get(rule);
    crates
        .and_then(|crates| crates.get(krate))
        .copied()
        .unwrap_or(0)
}

/// Sum of a rule's counts over all crates.
pub(crate) fn sum_of(counts: &FindingCounts, rule: &str) -> usize {
    counts.get(rule).map_or(0, |crates| crates.values().sum())
}

/// All counts that differ, by rule and crate.
pub(crate) fn compare(baseline: &FindingCounts, now: &FindingCounts) -> Vec<CountChange> {
    let mut cells = BTreeSet::new();
    for counts in [baseline, now] {
        for (rule, crates) in counts {
            cells.extend(crates.keys().map(|krate| (rule, krate)));
        }
    }
    let changes = cells.into_iter().map(|(rule, krate)| CountChange {
        rule: rule.clone(),
        krate: krate.clone(),
        before: count_of(baseline, rule, krate),
        now: count_of(now, rule, krate),
    });
    changes
        .filter(|change| change.before != change.now)
        .collect()
}

/// The baseline with counts that fell. A count that rose stays as it was, except with `is_move`
/// where the sum of the rule over all crates has not risen: code that moves to another crate takes
/// its findings along.
pub(crate) fn lower(baseline: &FindingCounts, now: &FindingCounts, is_move: bool) -> FindingCounts {
    let mut lowered = baseline.clone();
    for change in compare(baseline, now) {
        let rule_fell = sum_of(now, &change.rule) <= sum_of(baseline, &change.rule);
        if !change.is_rise() || is_move && rule_fell {
            let crates = lowered.entry(change.rule).or_default();
            crates.insert(change.krate, change.now);
        }
    }
    for crates in lowered.values_mut() {
        crates.retain(|_, count| *count > 0);
    }
    lowered.retain(|_, crates| !crates.is_empty());
    lowered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(cells: &[(&str, &str, usize)]) -> FindingCounts {
        let mut counts = FindingCounts::new();
        for (rule, krate, count) in cells {
            let crates = counts.entry((*rule).to_owned()).or_default();
            crates.insert((*krate).to_owned(), *count);
        }
        counts
    }

    #[test]
    fn baseline_text_reads_back_as_written() {
        let before = counts(&[("line-width", "job", 3), ("phrases", "docs", 12)]);
        assert_eq!(parse(&render(&before)).unwrap(), before);
        assert!(parse("[line-width]\njob = \"three\"\n").is_err());
    }

    #[test]
    fn changed_counts_are_compared_both_ways() {
        let before = counts(&[("line-width", "job", 3), ("line-width", "study", 2)]);
        let now = counts(&[("line-width", "job", 4), ("phrases", "job", 1)]);
        let changes = compare(&before, &now);
        let rises: Vec<_> = changes
            .iter()
            .map(|c| (c.krate.as_str(), c.is_rise()))
            .collect();
        assert_eq!(rises, [("job", true), ("study", false), ("job", true)]);
        assert_eq!(compare(&before, &before), []);
    }

    #[test]
    fn lowered_baseline_keeps_counts_that_rose() {
        let before = counts(&[("line-width", "job", 3), ("line-width", "study", 2)]);
        let now = counts(&[("line-width", "job", 4)]);
        assert_eq!(
            lower(&before, &now, false),
            counts(&[("line-width", "job", 3)])
        );
    }

    #[test]
    fn moved_findings_are_accepted_while_their_sum_does_not_rise() {
        let before = counts(&[("line-width", "engine", 5), ("phrases", "engine", 1)]);
        let moved = counts(&[("line-width", "workload", 5), ("phrases", "workload", 2)]);
        let lowered = lower(&before, &moved, true);
        assert_eq!(lowered, counts(&[("line-width", "workload", 5)]));
        assert_eq!(compare(&lowered, &moved).len(), 1, "phrases rose");
    }
}
