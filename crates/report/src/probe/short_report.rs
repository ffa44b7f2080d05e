//! Short report of probes: one screen per target. [`super::table`] has all details.

mod notable;
mod rate_table;
mod run_shape;
#[cfg(test)]
mod tests;
pub(crate) mod winner;

pub use winner::target_letter;

use super::device::devices;
use super::table;
use crate::hanging_lines::{HangingLines, details_command, fitted, line_with_command, result_line};
use crate::sweep::label;
use crate::text_style::{TextRole, TextStyle};
use crate::text_table::{SCREEN_LINES, columns, is_narrow, wrapped};
use iosonde_result::run::RunResult;
use iosonde_study::probe::{DeviceClass, PhaseFigure, ProbeResult};
use iosonde_study::promise_check::PromiseOutcome;
use iosonde_study::words;
use run_shape::{RunShape, rates};

/// Most lines of the report of one target, with the line that names the stored result.
const LINES_MAX: usize = 25;
/// Most lines of a brief report of one target, with the line that names the stored result.
const BRIEF_LINES: usize = 15;
/// Most lines of notes.
const NOTE_LINES: usize = 3;
/// Lines that are kept for notes: the first line, and the number of the others.
const NOTE_LINES_MIN: usize = 2;
/// Most lines of the maximum, if there are neither warnings nor promises.
const MAXIMUM_LINES: usize = 3;
/// Most lines of maximum and promises, each.
const SECTION_LINES: usize = 2;
/// Most lines of the verdict, if the screen has room. Else it has as many as a section.
const VERDICT_LINES: usize = 3;
/// Most lines of the bottleneck, if the screen has room: its cause, and evidence of several parts.
const BOTTLENECK_LINES: usize = 8;

/// Fewest columns of a target whose start is left out.
const TARGET_COLUMNS_MIN: usize = 12;

/// Returns the word for the course of a phase's rate: `steady`, `falling`.
pub(crate) fn shape_word(figure: &PhaseFigure, run: &RunResult) -> &'static str {
    RunShape::from_figure(figure, &rates(run, figure.phase)).word()
}

/// Report of all targets of a probe on one screen per target, or less.
#[derive(Debug, Clone, Copy)]
pub struct ShortReport<'a> {
    /// Results, one per target.
    pub results: &'a [ProbeResult],
    /// Id of each result in the history. `None`: it is not stored.
    pub ids: &'a [Option<String>],
    /// Options of the history that the next command needs, e.g. ` --store FILE`.
    pub store_options: &'a str,
    /// Whether to print only the table, the maximum and the verdict.
    pub brief: bool,
    /// Characters and colours of the destination.
    pub style: TextStyle,
}

impl ShortReport<'_> {
    /// Returns the text. Control characters of names and notes are escaped.
    #[must_use]
    pub fn text(&self) -> String {
        debug_assert_eq!(self.results.len(), self.ids.len());
        let mut lines = winner::lines(self.results, self.style);
        for (result, id) in self.results.iter().zip(self.ids) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(match self.brief {
                true => self.brief_lines(result, id.as_deref()),
                false => self.lines(result, id.as_deref()),
            });
        }
        let verdicts = winner::verdict_lines(self.results, true);
        let kept = self.kept();
        let all = lines.len() + kept.lines().count();
        if !verdicts.is_empty() && all > SCREEN_LINES {
            // The first lines have left the screen.
            lines.push(String::new());
            lines.extend(verdicts);
        }
        lines.push(kept);
        lines.join("\n") + "\n"
    }

    /// Lines of one target. The notes give way to bottleneck and verdict.
    fn lines(&self, result: &ProbeResult, id: Option<&str>) -> Vec<String> {
        let ending = self.ending(id);
        let mut lines = vec![report_heading(result)];
        let warning = self.warning(result, SECTION_LINES);
        let warning_lines = warning.len();
        let note_lines = NOTE_LINES - warning_lines;
        let promises = self.promises(result, SECTION_LINES, id);
        let maximum_lines = match warning.is_empty() && promises.is_empty() {
            true => MAXIMUM_LINES,
            false => SECTION_LINES,
        };
        lines.extend(warning);
        lines.push(String::new());
        lines.extend(rate_table::lines(result, self.style));
        let sync_legend = rate_table::sync_legend(result);
        // Beside both warnings and promises there is no line left for it.
        let has_room = warning_lines == 0 || promises.is_empty();
        let legend = [rate_table::legend(result), sync_legend.filter(|_| has_room)];
        let legend: Vec<&str> = legend.into_iter().flatten().collect();
        if !legend.is_empty() {
            let text = wrapped(&legend.join(" "));
            lines.extend(text.lines().map(str::to_owned));
        }
        lines.push(String::new());
        lines.extend(self.maximum(result, maximum_lines, &ending));
        let found = notable::notes(result);
        // The last line names the stored result.
        let room = LINES_MAX.saturating_sub(lines.len() + promises.len() + 1);
        let for_notes = if found.is_empty() { 0 } else { NOTE_LINES_MIN };
        let long = bottleneck_and_verdict(result, room.saturating_sub(for_notes), &ending);
        let note_lines = note_lines.min(room.saturating_sub(long.len() + 1)).max(1);
        lines.extend(long);
        lines.extend(promises);
        lines.extend(notes(&found, &self.details(id), note_lines));
        lines
    }

    /// The command or the option that shows the whole result.
    fn details(&self, id: Option<&str>) -> String {
        details_command(id, self.store_options)
    }

    /// End of a text that is cut short: ` … (iosonde show ID)`.
    fn ending(&self, id: Option<&str>) -> String {
        format!(" {} ({})", self.style.ellipsis(), self.details(id))
    }

    /// Table, maximum and verdict of one target.
    fn brief_lines(&self, result: &ProbeResult, id: Option<&str>) -> Vec<String> {
        let ending = self.ending(id);
        let mut lines = vec![report_heading(result)];
        lines.extend(self.warning(result, 1));
        lines.extend(rate_table::lines(result, self.style));
        let legend = rate_table::legend(result).map(wrapped);
        lines.extend(legend.map(|text| text.trim_end().to_owned()));
        // The last line names the stored result.
        let mut room = BRIEF_LINES.saturating_sub(lines.len() + 1);
        let promises = self.promises(result, 1, id);
        let verdict = notable::verdict(result);
        room = room.saturating_sub(promises.len() + 1);
        let maximum = self.maximum(result, room.clamp(1, SECTION_LINES), &ending);
        room = room.saturating_sub(maximum.len());
        lines.extend(maximum);
        let most = room.min(1) + 1;
        lines.extend(HangingLines::ended_with("verdict", verdict, most, &ending).lines);
        lines.extend(promises);
        lines
    }

    /// The maximum of each pattern, at most `most` lines. The shares at knees give way, so that
    /// each pattern has its maximum.
    fn maximum(&self, result: &ProbeResult, most: usize, ending: &str) -> Vec<String> {
        let lines = |has_shares: bool| {
            let text = notable::maximum(result, has_shares, self.style)?;
            Some(HangingLines::ended_with("maximum", &text, most, ending))
        };
        let whole = lines(true).filter(|shown| !shown.is_cut);
        let shown = whole.or_else(|| lines(false));
        shown.map_or(Vec::new(), |shown| shown.lines)
    }

    /// Warns if something else than the device answered the reads. A brief report has no notes, so
    /// its warning names everything that makes figures wrong.
    fn warning(&self, result: &ProbeResult, most: usize) -> Vec<String> {
        let warning = match self.brief {
            true => notable::brief_warning(result),
            false => table::answered_instead(result),
        };
        let warning = warning.map(|text| HangingLines::new("warning", &text, most).lines);
        let lines = warning.unwrap_or_default().into_iter();
        lines
            .map(|line| self.style.paint(TextRole::Bad, &line))
            .collect()
    }

    /// Outcomes of the promises, at most `most` lines. A shortened line ends with the command that
    /// shows all.
    fn promises(&self, result: &ProbeResult, most: usize, id: Option<&str>) -> Vec<String> {
        let ending = &self.ending(id);
        let checks = notable::promises(result);
        let is_single = checks.len() == 1;
        let shown = if checks.len() > most { most - 1 } else { most };
        let mut lines = Vec::new();
        for check in checks.iter().take(shown) {
            let text = notable::promise_in_words(check, is_single);
            let room = if is_single { most } else { 1 };
            let meaning = match check.outcome {
                PromiseOutcome::Kept => TextRole::Good,
                PromiseOutcome::Unclear => TextRole::Unsure,
                PromiseOutcome::Broken => TextRole::Bad,
            };
            let text = HangingLines::ended_with("promise", &text, room, ending).lines;
            lines.extend(
                text.into_iter()
                    .map(|line| self.style.paint(meaning, &line)),
            );
        }
        let hidden = || checks.iter().skip(shown);
        if hidden().next().is_some() {
            let broken = hidden().filter(|check| check.outcome == PromiseOutcome::Broken);
            let noun = if shown == 0 {
                "promise"
            } else {
                "more promise"
            };
            let text = format!(
                "{}, {} of them broken: {}",
                words::counted(hidden().count(), noun),
                broken.count(),
                self.details(id)
            );
            lines.extend(HangingLines::new("promise", &text, 1).lines);
        }
        lines
    }

    /// Names the stored results and the next command.
    fn kept(&self) -> String {
        let ids: Option<Vec<&str>> = self.ids.iter().map(Option::as_deref).collect();
        let options = self.store_options;
        match ids.as_deref() {
            None => result_line(None, options),
            Some([first, second]) => {
                let command = format!("iosonde compare {first} {second}{options}");
                line_with_command("result", &format!("{first} {second}"), &command)
            }
            Some([id]) => result_line(Some(id), options),
            Some(ids) => {
                let ids = ids.join(" ");
                format!("results    iosonde report {ids} -o report.html{options}")
            }
        }
    }
}

/// Target, device, working set and time in one line, or in two on a narrow terminal.
fn report_heading(result: &ProbeResult) -> String {
    let size = words::bytes(result.working_set.bytes);
    let runs = result.runs.iter().map(|run| run.result.elapsed_ns);
    let searches = result.knees.iter().map(|knee| knee.spent_ns());
    let spent_ns: u64 = runs.chain(searches).sum();
    let is_simulated = result.classification.class == DeviceClass::Simulated;
    let simulated = if is_simulated { " simulated" } else { "" };
    let time = words::whole_seconds_text(spent_ns);
    let facts = format!("; {size} working set, {time}{simulated}");
    let device = match result.classification.device.as_str() {
        "" => result.classification.class.words(),
        device => device,
    };
    let targets = result.runs.iter().rev();
    let target = targets.filter_map(|run| run.result.targets.first()).next();
    let file_system = target.and_then(|target| target.mount.as_ref());
    let file_system = file_system.map_or(String::new(), |mount| format!("{} on ", mount.fs_type));
    let mut descriptions = vec![format!("{file_system}{device}")];
    if is_simulated {
        // The target names the model.
        descriptions.push(result.classification.class.words().to_owned());
    }
    let names = devices(result).join(", ");
    if !names.is_empty() {
        let class = result.classification.class.words();
        descriptions.push(format!("{file_system}{class} ({names})"));
        descriptions.push(format!("{file_system}{names}"));
    }
    if is_narrow() {
        let device = named_device(&result.target, &descriptions, columns());
        let mut facts = facts.trim_start_matches("; ").to_owned();
        if facts.chars().count() > columns() {
            facts = format!("{size} working set, {time}");
        }
        return format!("{device}\n{facts}");
    }
    let room = columns().saturating_sub(facts.chars().count());
    let device = named_device(&result.target, &descriptions, room);
    format!("{device}{facts}")
}

/// Target and device in `room` columns. `descriptions` are those of the device, the shortest last:
/// the name of a device must not be cut. The start of a long target gives way.
fn named_device(target: &str, descriptions: &[String], room: usize) -> String {
    let named = |device: &String| format!("{target}: {device}");
    let mut texts = descriptions.iter().map(named);
    if let Some(text) = texts.find(|text| text.chars().count() <= room) {
        return fitted(&text, room);
    }
    let shortest = descriptions.last().map_or("", String::as_str);
    let columns = room.saturating_sub(shortest.chars().count() + ": ".len());
    match columns >= TARGET_COLUMNS_MIN {
        true => fitted(&format!("{}: {shortest}", label(target, columns)), room),
        false => fitted(&format!("{target}: {shortest}"), room),
    }
}

/// Bottleneck and verdict in at most `room` lines, but each may have two. The verdict comes first
/// if only one of them can have more.
fn bottleneck_and_verdict(result: &ProbeResult, room: usize, ending: &str) -> Vec<String> {
    let bottleneck = notable::bottleneck(result).filter(|text| !text.is_empty());
    let for_bottleneck = bottleneck.as_ref().map_or(0, |_| SECTION_LINES);
    let lines = |name: &str, text: &str, room: usize, longest: usize| {
        if text.is_empty() {
            return Vec::new();
        }
        let most = room.clamp(SECTION_LINES, longest);
        HangingLines::with_conclusion(name, text, most, ending).lines
    };
    let room_of_verdict = room.saturating_sub(for_bottleneck);
    let suitability = notable::verdict(result);
    let verdict = lines("verdict", suitability, room_of_verdict, VERDICT_LINES);
    let room_of_bottleneck = room.saturating_sub(verdict.len());
    let text = bottleneck.as_deref().unwrap_or_default();
    let mut all = lines("bottleneck", text, room_of_bottleneck, BOTTLENECK_LINES);
    all.extend(verdict);
    all
}

/// The first notes, and the number of the others with `details`, the command that shows them. A
/// single note is whole if it needs no more lines than the cut note with that command.
fn notes(notes: &[String], details: &str, most: usize) -> Vec<String> {
    if let [note] = notes {
        let whole = HangingLines::new("note", note, most + 1);
        if !whole.is_cut {
            return whole.lines;
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let (mut hidden, mut is_cut) = (0, false);
    for note in notes {
        let shown = HangingLines::concluded("note", note, most - lines.len());
        if shown.is_cut && !lines.is_empty() {
            hidden += 1;
            continue;
        }
        is_cut |= shown.is_cut;
        lines.extend(shown.lines);
    }
    let more = match (hidden, is_cut) {
        (0, false) => return lines,
        (0, true) => "the whole note".to_owned(),
        _ => words::counted(hidden, "more note"),
    };
    lines.push(line_with_command("", &more, details));
    lines
}
