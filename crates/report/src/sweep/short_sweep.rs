//! Short report of a sweep: heat tables and a recommendation. [`super::table`] has all details.

use super::recommendation::{Recommendation, recommendations};
use super::{headline, heat_table, is_of_working_sets, notes, storage, table};
use crate::hanging_lines::{
    HangingLines, details_command, line_with_command, note_lines, result_line,
};
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::wrapped;
use iosonde_job::escape_control_characters;
use iosonde_study::sweep::SweepResult;
use iosonde_study::words;

/// Largest number of workloads with a recommendation.
const RECOMMENDATIONS_MAX: usize = 8;
/// Largest number of lines of one recommendation.
const RECOMMENDATION_LINES: usize = 3;
/// Largest number of lines about storage, each path and cluster.
const STORAGE_LINES: usize = 2;
/// Largest number of lines of notes, unless the first note is longer.
const NOTE_LINES: usize = 4;

/// Returns the report of a sweep on one screen, as wide as a paragraph. Control characters of names
/// and notes are escaped. A sweep over the working set is reported as by [`table`]. The last line
/// names the result by its id, if it is stored, and the next command with the options of the
/// history that it needs.
#[must_use]
pub fn short(
    result: &SweepResult,
    (id, store_options): (Option<&str>, &str),
    style: TextStyle,
) -> String {
    let last_line = result_line(id, store_options);
    if is_of_working_sets(result) {
        let text = escape_control_characters(&table(result)).into_owned();
        return format!("{text}\n{last_line}\n");
    }
    let details = details_command(id, store_options);
    let mut lines = Vec::new();
    for used in storage(result) {
        lines.extend(HangingLines::new("storage", &used, STORAGE_LINES).lines);
    }
    let advice = recommendations(result);
    let marked: Vec<_> = advice.iter().filter_map(Recommendation::address).collect();
    lines.extend(heat_table::lines(result, &marked, &details, style));
    if !advice.is_empty() {
        lines.push(String::new());
    }
    for found in advice.iter().take(RECOMMENDATIONS_MAX) {
        lines.extend(advice_lines(result, found, style));
    }
    let hidden = advice.len().saturating_sub(RECOMMENDATIONS_MAX);
    if hidden > 0 {
        let more = words::counted(hidden, "more workload");
        lines.push(line_with_command("", &more, &details));
    }
    lines.extend(note_lines(&notes(result), NOTE_LINES, &details));
    lines.push(last_line);
    let head = escape_control_characters(&headline(result)).into_owned();
    wrapped(&head) + &lines.join("\n") + "\n"
}

/// Lines of one recommendation.
fn advice_lines(result: &SweepResult, found: &Recommendation, style: TextStyle) -> Vec<String> {
    let role = match found.address() {
        Some(_) => TextRole::Good,
        None => TextRole::Unsure,
    };
    let sentence = found.sentence(result, style);
    let lines = HangingLines::new("advice", &sentence, RECOMMENDATION_LINES).lines;
    let lines = lines.iter().map(|line| style.paint(role, line));
    lines.collect()
}

#[cfg(test)]
mod tests;
