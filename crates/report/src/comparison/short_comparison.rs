//! A comparison on one screen: the verdict, then the rows that differ, the largest first.

use super::ComparisonDocument;
use super::advantage::{advantage, certainty_of, differs, doubt_of, range_of_advantages};
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::{SCREEN_LINES, wrapped};
use crate::unique;
use iosonde_job::escape_control_characters;
use iosonde_result::compare::{Comparison, ComparisonRow, ComparisonVerdict};
use iosonde_study::words;

/// Most rows that the table shows.
const ROWS_MAX: usize = 12;

/// Rows of each direction that the table shows if there are as many.
const DIRECTION_ROWS_MIN: usize = 3;

/// Ratio from which the figures of an undecided row count as different.
const LOOKS_DIFFERENT_RATIO_MIN: f64 = 1.05;

/// The verdict in one sentence, whose start has a colour.
struct VerdictSentence {
    start: &'static str,
    /// `None`: the sentence has no colour.
    meaning: Option<TextRole>,
    rest: String,
}

/// Returns the verdict, the names of the sides, the rows that differ, and the count of the others.
/// If the verdict leaves the screen, it is repeated at the end, with a doubt but no confidence.
pub(super) fn short_comparison_text(document: &ComparisonDocument<'_>, style: TextStyle) -> String {
    let comparison = document.comparison;
    let paragraph = |text: &str| wrapped(&escape_control_characters(text));
    let certainty = certainty_of(comparison);
    let mut text = verdict(comparison, Some(certainty)).text(style);
    text.push('\n');
    text.push_str(&paragraph(&format!("A  {}", document.a)));
    text.push_str(&paragraph(&format!("B  {}", document.b)));
    let rows = largest(comparison);
    if !rows.is_empty() {
        let table = document.rows(&rows, style);
        text.push_str(&format!("\n{table}"));
    }
    let rest = hidden_rows_text(comparison, &rows);
    let notes = document.notes();
    if rest.is_some() || !notes.is_empty() {
        text.push('\n');
    }
    for line in rest.iter().chain(&notes) {
        text.push_str(&paragraph(line));
    }
    for expected in &document.expected {
        let table = expected.table();
        text.push_str(&format!("\n{}", escape_control_characters(&table)));
    }
    if text.lines().count() > SCREEN_LINES {
        let repeated = verdict(comparison, doubt_of(comparison)).text(style);
        text.push_str(&format!("\n{repeated}"));
    }
    text
}

/// Returns the rows with the largest differences, some of each direction, and the rows of each part
/// together.
fn largest(comparison: &Comparison) -> Vec<ComparisonRow> {
    let differing = comparison.rows.iter().filter(|row| differs(row));
    let mut all: Vec<&ComparisonRow> = differing.collect();
    all.sort_by(|a, b| advantage(b.ratio.value).total_cmp(&advantage(a.ratio.value)));
    // A direction whose differences are small would be missing.
    let is_needed = |index: &usize| {
        let before = all[..*index].iter();
        let same = before.filter(|row| row.verdict == all[*index].verdict);
        same.count() < DIRECTION_ROWS_MIN
    };
    let (needed, others): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(is_needed);
    let mut chosen: Vec<usize> = needed.into_iter().chain(others).take(ROWS_MAX).collect();
    chosen.sort_unstable();
    let mut rows: Vec<&ComparisonRow> = chosen.into_iter().map(|index| all[index]).collect();
    let parts = unique(rows.iter().copied().map(|row| row.part.as_str()));
    rows.sort_by_key(|row| parts.iter().position(|part| *part == row.part));
    rows.into_iter().cloned().collect()
}

/// Counts the rows that the table does not show. `None` if it shows all, or no row differs.
fn hidden_rows_text(comparison: &Comparison, shown: &[ComparisonRow]) -> Option<String> {
    if comparison.rows.is_empty() {
        return None;
    }
    if shown.is_empty() {
        return Some("`--details` prints all figures.".to_owned());
    }
    let hidden = |verdict| {
        let shown = shown.iter().filter(|row| row.verdict == verdict).count();
        comparison.count(verdict).saturating_sub(shown)
    };
    let counts = [
        (hidden(ComparisonVerdict::Slower), "slower"),
        (hidden(ComparisonVerdict::Faster), "faster"),
        (
            hidden(ComparisonVerdict::NoDifferenceShown),
            "no difference shown",
        ),
        (hidden(ComparisonVerdict::Undecided), "undecided"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{}: {what}", words::counted(count, "more figure")))
        .collect();
    let all = counts.join("; ");
    (!all.is_empty()).then(|| format!("{all}. `--details` prints all figures."))
}

/// Returns which side is faster, by how much, in how many rows, and how certain that is, if
/// `certainty` has words for it. A row is a figure of both sides.
fn verdict(comparison: &Comparison, certainty: Option<String>) -> VerdictSentence {
    let rows = &comparison.rows;
    let count = |verdict| comparison.count(verdict);
    let (faster, slower) = (
        count(ComparisonVerdict::Faster),
        count(ComparisonVerdict::Slower),
    );
    let all = words::counted(rows.len(), "figure");
    let by = |verdict| range_of_advantages(rows.iter().filter(|row| row.verdict == verdict));
    let (start, meaning, rest) = match (faster, slower) {
        (0, 0) => return without_difference(comparison),
        (_, 0) => (
            "B is faster",
            TextRole::Good,
            format!(
                " than A: {} as fast in {faster} of {all}",
                by(ComparisonVerdict::Faster)
            ),
        ),
        (0, _) => (
            "B is slower",
            TextRole::Bad,
            format!(
                " than A: A is {} as fast in {slower} of {all}",
                by(ComparisonVerdict::Slower)
            ),
        ),
        _ => (
            "Neither is faster in all figures",
            TextRole::Unsure,
            format!(
                ": B is {} as fast in {faster} of {all}, A {} in {slower}",
                by(ComparisonVerdict::Faster),
                by(ComparisonVerdict::Slower)
            ),
        ),
    };
    VerdictSentence {
        start,
        meaning: Some(meaning),
        rest: match certainty {
            Some(certainty) => format!("{rest}; {certainty}."),
            None => format!("{rest}."),
        },
    }
}

/// The verdict on sides of which no row differs.
fn without_difference(comparison: &Comparison) -> VerdictSentence {
    let all = words::counted(comparison.rows.len(), "figure");
    let undecided = comparison.count(ComparisonVerdict::Undecided);
    if let Some(rest) = apparent_difference(comparison) {
        return VerdictSentence {
            start: "Undecided",
            meaning: Some(TextRole::Unsure),
            rest,
        };
    }
    let (start, meaning, rest) = match (comparison.rows.len(), undecided) {
        (0, _) => (
            "A and B have no common figure",
            Some(TextRole::Unsure),
            ".".to_owned(),
        ),
        (_, 0) => ("No difference shown", None, format!(" in {all}.")),
        _ => (
            "No difference shown",
            Some(TextRole::Unsure),
            format!(": {undecided} of {all} undecided."),
        ),
    };
    VerdictSentence {
        start,
        meaning,
        rest,
    }
}

/// Returns which side looks faster in undecided rows. `None` if their figures are alike.
fn apparent_difference(comparison: &Comparison) -> Option<String> {
    let looks_different = |row: &&ComparisonRow| {
        row.verdict == ComparisonVerdict::Undecided
            && advantage(row.ratio.value) >= LOOKS_DIFFERENT_RATIO_MIN
    };
    let different = comparison.rows.iter().filter(looks_different);
    let (slower, faster): (Vec<_>, Vec<_>) = different.partition(|row| row.slower_by() > 0.0);
    let all = words::counted(comparison.rows.len(), "figure");
    let by = |rows: &[&ComparisonRow]| range_of_advantages(rows.iter().copied());
    let apparent = match (faster.len(), slower.len()) {
        (0, 0) => return None,
        (count, 0) => format!(
            "B looks faster than A: {} as fast in {count} of {all}",
            by(&faster)
        ),
        (0, count) => format!(
            "B looks slower than A: A is {} as fast in {count} of {all}",
            by(&slower)
        ),
        (faster_count, slower_count) => format!(
            "B looks {} as fast in {faster_count} of {all}, A {} in {slower_count}",
            by(&faster),
            by(&slower)
        ),
    };
    Some(format!(
        ". {apparent}, but their intervals are missing or too wide."
    ))
}

impl VerdictSentence {
    /// Returns the wrapped sentence with its line end.
    fn text(&self, style: TextStyle) -> String {
        let text = wrapped(&format!("{}{}", self.start, self.rest));
        let Some(meaning) = self.meaning else {
            return text;
        };
        // The start is shorter than the narrowest line, so that it is not wrapped.
        let (start, rest) = text.split_at(self.start.len());
        debug_assert_eq!(start, self.start);
        format!("{}{rest}", style.paint(meaning, start))
    }
}

#[cfg(test)]
mod tests;
