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

/// Report of a sweep on one screen.
#[derive(Debug, Clone, Copy)]
pub struct ShortSweep<'a> {
    result: &'a SweepResult,
    /// Id of the result in the history. `None`: it is not stored.
    id: Option<&'a str>,
    /// Options of the history that the next command needs, e.g. ` --store FILE`.
    store_options: &'a str,
    style: TextStyle,
}

impl<'a> ShortSweep<'a> {
    /// Creates the report of a result with its id, if it is stored, and with the options of the
    /// history that the next command needs. `style` is that of the destination.
    #[must_use]
    pub fn new(
        result: &'a SweepResult,
        (id, store_options): (Option<&'a str>, &'a str),
        style: TextStyle,
    ) -> ShortSweep<'a> {
        ShortSweep {
            result,
            id,
            store_options,
            style,
        }
    }

    /// Returns the report as text, as wide as a paragraph. Control characters of names and notes
    /// are escaped. A sweep over the working set is reported as by [`table`].
    #[must_use]
    pub fn text(&self) -> String {
        let (result, style) = (self.result, self.style);
        if is_of_working_sets(result) {
            let text = escape_control_characters(&table(result)).into_owned();
            return format!("{text}\n{}\n", self.kept());
        }
        let details = self.details();
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
            lines.extend(self.advice(found));
        }
        let hidden = advice.len().saturating_sub(RECOMMENDATIONS_MAX);
        if hidden > 0 {
            let more = words::counted(hidden, "more workload");
            lines.push(line_with_command("", &more, &details));
        }
        lines.extend(note_lines(&notes(result), NOTE_LINES, &details));
        lines.push(self.kept());
        let head = escape_control_characters(&headline(result)).into_owned();
        wrapped(&head) + &lines.join("\n") + "\n"
    }

    /// Lines of one recommendation.
    fn advice(&self, found: &Recommendation) -> Vec<String> {
        let role = match found.address() {
            Some(_) => TextRole::Good,
            None => TextRole::Unsure,
        };
        let sentence = found.sentence(self.result, self.style);
        let lines = HangingLines::new("advice", &sentence, RECOMMENDATION_LINES).lines;
        let lines = lines.iter().map(|line| self.style.paint(role, line));
        lines.collect()
    }

    /// The command or the option that shows what is left out.
    fn details(&self) -> String {
        details_command(self.id, self.store_options)
    }

    /// Names the stored result and the next command.
    fn kept(&self) -> String {
        result_line(self.id, self.store_options)
    }
}

#[cfg(test)]
mod tests;
