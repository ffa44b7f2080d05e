//! Short report of a sweep: heat tables and a recommendation. [`super::table`] has all details.

use super::recommendation::{Recommendation, recommendations};
use super::{headline, heat_table, is_of_working_sets, notes, storage, table};
use crate::probe::short_report::hanging_lines::{HangingLines, NAME_COLUMNS, note_lines};
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::wrapped;
use iosonde_job::escape_control_characters;
use iosonde_study::sweep::SweepResult;
use iosonde_study::words;

/// Largest number of workloads with a recommendation.
const RECOMMENDATIONS_MAX: usize = 8;
/// Largest number of lines of one recommendation.
const RECOMMENDATION_LINES: usize = 2;
/// Largest number of lines about storage, each path and cluster.
const STORAGE_LINES: usize = 2;
/// Largest number of lines of notes, unless the first note is longer.
const NOTE_LINES: usize = 4;

/// Returns the report as text of at most 80 columns. Control characters of names and notes are
/// escaped. A sweep over the working set is reported as by [`table`]. `details` is the command or
/// the option that shows what is left out.
#[must_use]
pub fn short(result: &SweepResult, details: &str, style: TextStyle) -> String {
    if is_of_working_sets(result) {
        return escape_control_characters(&table(result)).into_owned();
    }
    let mut lines = Vec::new();
    for used in storage(result) {
        lines.extend(HangingLines::new("storage", &used, STORAGE_LINES).lines);
    }
    let advice = recommendations(result);
    let marked: Vec<_> = advice.iter().filter_map(Recommendation::address).collect();
    lines.extend(heat_table::lines(result, &marked, details, style));
    if !advice.is_empty() {
        lines.push(String::new());
    }
    for found in advice.iter().take(RECOMMENDATIONS_MAX) {
        let meaning = match found.address() {
            Some(_) => TextRole::Good,
            None => TextRole::Unsure,
        };
        let sentence = found.sentence(result, style);
        let text = HangingLines::new("advice", &sentence, RECOMMENDATION_LINES).lines;
        lines.extend(text.iter().map(|line| style.paint(meaning, line)));
    }
    let hidden = advice.len().saturating_sub(RECOMMENDATIONS_MAX);
    if hidden > 0 {
        let more = words::counted(hidden, "more workload");
        lines.push(format!("{:NAME_COLUMNS$}{more}: {details}", ""));
    }
    lines.extend(note_lines(&notes(result), NOTE_LINES, details));
    let head = escape_control_characters(&headline(result)).into_owned();
    wrapped(&head) + &lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
