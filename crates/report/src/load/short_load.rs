//! Short report of a load study: the objectives, the knee and the latency curve. [`super::table`]
//! has all details.

use super::knee_rate::{KneeRate, without_knee};
use super::latency_chart::LatencyChart;
use super::load_rates::curve;
use super::{FAILED_MARK, INTERRUPTED_MARK, headline, marked_notes, matrix, notes, objectives};
use crate::hanging_lines::{
    HangingLines, details_command, line_with_command, note_lines, result_line,
};
use crate::text_style::TextStyle;
use crate::text_table::{is_narrow, wrapped};
use iosonde_job::escape_control_characters;
use iosonde_result::device_class::memory_caution;
use iosonde_study::load::LoadResult;
use iosonde_study::words;

/// Most lines of a report with a chart and the table of all rates, with the line that names the
/// stored result.
const LINES_MAX: usize = 25;
/// Largest number of lines of the knee and of each objective on 80 columns. On a narrower terminal
/// they have all their lines, because their last words decide what they state.
pub(super) const SECTION_LINES: usize = 2;
/// Largest number of lines of notes without the caution on a target in memory, unless the first
/// note is longer.
const NOTE_LINES: usize = 4;
/// Lines of a report with a chart that has no room for the table, apart from the head, the answers,
/// the chart and the notes: an empty line, the line that counts the notes left out, and the lines
/// on the table and the stored result.
const LAST_LINES: usize = 4;

/// Returns the report as text, as wide as a paragraph. The answers precede the chart. Control
/// characters of names and notes are escaped. The table of all rates is left out if the report has
/// a chart and would exceed 25 lines. The last line names the result by its id, if it is stored,
/// and the next command with the options of the history that it needs.
#[must_use]
pub fn short(
    result: &LoadResult,
    (id, store_options): (Option<&str>, &str),
    style: TextStyle,
) -> String {
    let details = &details_command(id, store_options);
    let chart = LatencyChart::from_result(result);
    let knee = KneeRate::of_result(result);
    let head = wrapped(&escape_control_characters(&headline(result)));
    let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
    lines.extend(sections(result, knee.as_ref(), chart.is_some()));
    if let Some(chart) = &chart {
        lines.push(String::new());
        lines.extend(chart.lines(knee.as_ref(), style));
    }
    let table: Vec<String> = curve(result).lines().map(str::to_owned).collect();
    let caution_lines = caution_lines(result);
    // The marks of the notes refer to rows of the table.
    let marked = note_lines(&notes(result), NOTE_LINES + caution_lines, details);
    let count = lines.len() + marked.len() + table.len();
    // An empty line and the line of the stored result follow.
    let last_lines = match chart.is_none() || count + 2 <= LINES_MAX {
        true => {
            lines.extend(table);
            marked
        }
        false => {
            let room = LINES_MAX.saturating_sub(lines.len() + LAST_LINES);
            let most = NOTE_LINES.min(room) + caution_lines;
            let notes = marked_notes(result, ["", INTERRUPTED_MARK, FAILED_MARK]);
            let mut last_lines = note_lines(&notes, most, details);
            let rates = words::counted(result.points.len(), "rate");
            last_lines.push(line_with_command("table", &rates, details));
            last_lines
        }
    };
    if let Some(found) = &result.matrix {
        lines.push(String::new());
        lines.extend(matrix::matrix_text(found).lines().map(str::to_owned));
    }
    lines.push(String::new());
    lines.extend(last_lines);
    lines.push(result_line(id, store_options));
    lines.join("\n") + "\n"
}

/// Number of lines of the caution on a target in memory.
fn caution_lines(result: &LoadResult) -> usize {
    let caution = result.in_memory.as_deref().map(memory_caution);
    caution.map_or(0, |text| {
        HangingLines::new("note", &text, usize::MAX).lines.len()
    })
}

/// The objectives and the knee.
fn sections(result: &LoadResult, knee: Option<&KneeRate>, has_chart: bool) -> Vec<String> {
    let knee = match knee {
        Some(knee) => Some(knee.sentence(result.capacity_iops)),
        None => without_knee(result).filter(|_| has_chart),
    };
    let knee = knee.map(|text| ("knee", text));
    let objectives = objectives(result).into_iter();
    let objectives = objectives.map(|text| ("slo", text));
    let sections = objectives.chain(knee);
    let most = match is_narrow() {
        true => usize::MAX,
        false => SECTION_LINES,
    };
    sections
        .flat_map(|(name, text)| HangingLines::new(name, &text, most).lines)
        .collect()
}

#[cfg(test)]
mod tests;
