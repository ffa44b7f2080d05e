//! Lines of a name and a text with a hanging indent, as wide as a paragraph.

use crate::text_table::{columns, is_narrow, is_unbroken_pair};
use iosonde_job::escape_control_characters;
use iosonde_study::words;

/// Columns of the names, with the blanks after them.
const NAME_COLUMNS: usize = 11;
/// End of a text that is cut short.
const CUT: &str = " ...";

/// Lines of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HangingLines {
    pub(crate) lines: Vec<String>,
    /// Whether the text was cut short.
    pub(crate) is_cut: bool,
}

impl HangingLines {
    /// Wraps a text after its name and cuts it after `most` lines. Control characters in it are
    /// escaped.
    pub(crate) fn new(name: &str, text: &str, most: usize) -> HangingLines {
        HangingLines::ended_with(name, text, most, CUT)
    }

    /// As [`HangingLines::new`], but a text that is cut short ends with `ending`.
    pub(crate) fn ended_with(name: &str, text: &str, most: usize, ending: &str) -> HangingLines {
        let mut wrapped = wrapped_words(text, text_columns());
        let is_cut = wrapped.len() > most;
        wrapped.truncate(most);
        if let (true, Some(last)) = (is_cut, wrapped.last_mut()) {
            *last = truncate_with_ending(last, text_columns(), ending);
        }
        let line = |(index, text): (usize, &String)| {
            let name = if index == 0 { name } else { "" };
            format!("{name:<NAME_COLUMNS$}{text}")
        };
        HangingLines {
            lines: wrapped.iter().enumerate().map(line).collect(),
            is_cut,
        }
    }

    /// As [`HangingLines::ended_with`], but a text of several parts is cut before its last part,
    /// which has the conclusion or the remedy.
    pub(crate) fn with_conclusion(
        name: &str,
        text: &str,
        most: usize,
        ending: &str,
    ) -> HangingLines {
        let is_fit = |text: &str| wrapped_words(text, text_columns()).len() <= most;
        let ends = part_ends(text);
        let last = match ends.split_last() {
            Some((last, _)) if !is_fit(text) => *last,
            _ => return HangingLines::ended_with(name, text, most, ending),
        };
        let conclusion = match ending.ends_with('.') {
            true => text[last..].trim_start_matches('.'),
            false => &text[last..],
        };
        let before = ends.iter().rev().skip(1);
        let mut shorter = before.map(|end| format!("{}{ending}{conclusion}", &text[..*end]));
        match shorter.find(|text| is_fit(text.as_str())) {
            Some(text) => HangingLines {
                is_cut: true,
                ..HangingLines::ended_with(name, &text, most, ending)
            },
            None => HangingLines::ended_with(name, text, most, ending),
        }
    }

    /// As [`HangingLines::with_conclusion`], with the usual end of a text that is cut short.
    pub(crate) fn concluded(name: &str, text: &str, most: usize) -> HangingLines {
        HangingLines::with_conclusion(name, text, most, CUT)
    }
}

/// Columns of the texts.
pub(crate) fn text_columns() -> usize {
    columns() - NAME_COLUMNS
}

/// Where each sentence or part of a sentence before a semicolon ends.
fn part_ends(text: &str) -> Vec<usize> {
    let begins_sentence = |at: usize| {
        let next = text[at + 2..].chars().next();
        next.is_some_and(|next| !next.is_lowercase())
    };
    let is_end = |at: usize, sign: &str| sign == "; " || begins_sentence(at);
    let semicolons = text.match_indices("; ");
    let ends = semicolons.chain(text.match_indices(". "));
    let mut ends: Vec<usize> = ends
        .filter(|&(at, sign)| is_end(at, sign))
        .map(|(at, _)| at)
        .collect();
    ends.sort_unstable();
    ends
}

/// Lines of the notes that fit into `most` lines, and the number of the others with `details`, the
/// command that shows them. A first note that is longer is shown as a whole.
pub(crate) fn note_lines(notes: &[String], most: usize, details: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut hidden = 0;
    for note in notes {
        let shown = HangingLines::new("note", note, usize::MAX).lines;
        if lines.is_empty() || lines.len() + shown.len() <= most {
            lines.extend(shown);
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        let more = words::counted(hidden, "more note");
        lines.push(line_with_command("", &more, details));
    }
    lines
}

/// Last line of a short report: the stored result with the next command. `store_options` are those
/// of the history, e.g. ` --store FILE`. On a narrow terminal, the command is on the next line.
pub(crate) fn result_line(id: Option<&str>, store_options: &str) -> String {
    match id {
        Some(id) => {
            let command = format!("iosonde report {id} -o report.html{store_options}");
            line_with_command("result", id, &command)
        }
        None => format!("{:NAME_COLUMNS$}not stored", "result"),
    }
}

/// A name, stored results and a command in one line. On a narrow terminal, the command is on the
/// next line without indent: it must paste as a whole.
pub(crate) fn line_with_command(name: &str, ids: &str, command: &str) -> String {
    match is_narrow() {
        true => format!("{name:NAME_COLUMNS$}{ids}\n{command}"),
        false => format!("{name:NAME_COLUMNS$}{ids}: {command}"),
    }
}

/// The command that shows the whole result. A result that is not stored needs an option.
pub(crate) fn details_command(id: Option<&str>, store_options: &str) -> String {
    match id {
        Some(id) => format!("iosonde show {id}{store_options}"),
        None => "add --details".to_owned(),
    }
}

/// Escapes the control characters of a text and cuts it to one line of `width` columns. A bracket
/// that would stay open is left out.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let text = escape_control_characters(text).replace(['\n', '\t'], " ");
    if text.chars().count() <= width {
        return text;
    }
    let line = truncate_with_ending(&text, width, CUT);
    match line.rfind('(') {
        Some(open) if open > 0 && !line[open..].contains(')') => {
            format!("{}{CUT}", line[..open].trim_end())
        }
        _ => line,
    }
}

/// Appends the ending of a text that is cut short. The text before it gives way. An ending that
/// needs more than half the line is replaced by the sign of a cut.
fn truncate_with_ending(text: &str, width: usize, ending: &str) -> String {
    let is_long = ending.chars().count() > width / 2;
    let ending = if is_long { CUT } else { ending };
    let room = width.saturating_sub(ending.chars().count());
    let kept: String = text.chars().take(room).collect();
    let is_inside_word = text.chars().nth(room).is_some_and(|next| next != ' ');
    let kept = match kept.rsplit_once(' ') {
        Some((words, _)) if is_inside_word => words,
        _ => kept.as_str(),
    };
    format!("{}{ending}", kept.trim_end())
}

/// Words of a text, with a command between backticks as one word: it must paste as one line. A
/// number and its unit are one word too.
fn unbroken_words(text: &str) -> Vec<String> {
    let has_pairs = text.matches('`').count().is_multiple_of(2);
    let (mut words, mut is_command) = (Vec::<String>::new(), false);
    for word in text.split_whitespace() {
        let is_joined = |before: &&mut String| {
            let last = before.rsplit(' ').next();
            (is_command && has_pairs) || last.is_some_and(|last| is_unbroken_pair(last, word))
        };
        match words.last_mut().filter(is_joined) {
            Some(before) => {
                before.push(' ');
                before.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
        is_command ^= !word.matches('`').count().is_multiple_of(2);
    }
    words
}

/// Words of a text in lines. A word that is wider than a line is broken.
fn wrapped_words(text: &str, width: usize) -> Vec<String> {
    let text = escape_control_characters(text);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in unbroken_words(&text) {
        let mut characters: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + characters.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while characters.len() > width {
            let rest = characters.split_off(width);
            lines.push(String::new());
            let before = lines.len() - 2;
            lines[before] = characters.into_iter().collect();
            characters = rest;
        }
        let blank = if used > 0 { " " } else { "" };
        used += blank.len() + characters.len();
        if let Some(line) = lines.last_mut() {
            line.push_str(blank);
            line.extend(characters);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_and_cut_at_words() {
        let text = "word ".repeat(40);
        let all = HangingLines::new("note", &text, 9);
        assert!(!all.is_cut);
        assert!(all.lines[0].starts_with("note       word word"));
        assert!(all.lines[1].starts_with("           word word"));
        assert!(all.lines.iter().all(|line| line.chars().count() <= 80));
        let count = all.lines.join(" ").matches("word").count();
        assert_eq!(count, 40);
        let cut = HangingLines::new("note", &text, 2);
        assert_eq!(cut.lines.len(), 2);
        assert!(cut.is_cut && cut.lines[1].ends_with("word ..."), "{cut:?}");
        assert!(cut.lines[1].chars().count() <= 80);
    }

    #[test]
    fn narrow_terminal_wraps_texts_and_keeps_commands_whole() {
        let command = "iosonde report 46013f -o report.html";
        let line = |id| result_line(id, "");
        assert_eq!(
            line(Some("46013f")),
            format!("result     46013f: {command}")
        );
        crate::text_table::set_columns(40);
        assert_eq!(
            line(Some("46013f")),
            format!("result     46013f\n{command}")
        );
        assert_eq!(line(None), "result     not stored");
        let lines = HangingLines::new("note", &"word ".repeat(40), 9).lines;
        assert!(lines.iter().all(|line| line.chars().count() <= 40));
        assert!(lines.len() > 5, "{lines:?}");
    }

    #[test]
    fn command_between_backticks_stays_on_one_line() {
        let text = format!(
            "{}run `iosonde probe /data --runtime 13`.",
            "word ".repeat(13)
        );
        let lines = HangingLines::new("verdict", &text, 9).lines;
        assert!(lines[0].ends_with("word run"), "{lines:?}");
        assert_eq!(lines[1], "           `iosonde probe /data --runtime 13`.");
    }

    #[test]
    fn number_stays_on_the_line_of_its_unit() {
        let text = format!("{} busy 91 % of the time", "x".repeat(60));
        let lines = HangingLines::new("bottleneck", &text, 9).lines;
        assert!(lines[0].ends_with("x busy"), "{lines:?}");
        assert_eq!(lines[1], "           91 % of the time");
    }

    #[test]
    fn long_words_and_control_characters_stay_in_their_lines() {
        let text = format!("a {} \u{1b}[31m b", "x".repeat(200));
        let lines = HangingLines::new("", &text, 9).lines;
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        let joined = lines.join("");
        assert_eq!(joined.matches('x').count(), 200);
        assert!(!joined.contains('\u{1b}'), "{joined}");
        assert_eq!(fitted("short", 80), "short");
        assert_eq!(
            fitted(&"y".repeat(100), 20),
            format!("{} ...", "y".repeat(16))
        );
    }

    #[test]
    fn text_that_is_cut_ends_with_its_ending() {
        let text = "word ".repeat(40);
        let ending = " ... (iosonde show 460130)";
        let cut = HangingLines::ended_with("bottleneck", &text, 2, ending);
        assert!(cut.is_cut);
        assert!(
            cut.lines[1].ends_with("word ... (iosonde show 460130)"),
            "{cut:?}"
        );
        assert!(cut.lines[1].chars().count() <= 80);
        let whole = HangingLines::ended_with("bottleneck", "word", 2, ending);
        assert_eq!(whole.lines, ["bottleneck word"]);
        let long = format!(" ... (iosonde show 460130 --store {})", "x".repeat(60));
        let cut = HangingLines::ended_with("bottleneck", &text, 2, &long);
        assert!(cut.lines[1].ends_with("word ..."), "{cut:?}");
    }

    #[test]
    fn cut_text_keeps_its_conclusion() {
        let text = format!(
            "{}; {}; {}; a throttle limits them",
            "word ".repeat(10).trim_end(),
            "middle ".repeat(9).trim_end(),
            "middle ".repeat(9).trim_end()
        );
        let lines = HangingLines::with_conclusion("bottleneck", &text, 2, " ... (show 4)");
        assert!(lines.is_cut && lines.lines.len() == 2, "{lines:?}");
        let joined = lines.lines.join(" ");
        let joined = joined.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!joined.contains("middle"), "{joined}");
        assert!(joined.contains("word ... (show 4); a throttle"), "{joined}");
        assert!(joined.ends_with("limits them"), "{joined}");
        let whole = HangingLines::with_conclusion("bottleneck", &text, 9, " ...");
        assert_eq!(whole, HangingLines::new("bottleneck", &text, 9));
        let single = "word ".repeat(40);
        let cut = HangingLines::concluded("note", &single, 2);
        assert_eq!(cut, HangingLines::new("note", &single, 2));
        assert_eq!(part_ends("e.g. this. Use `x`; or y"), [9, 18]);
    }

    #[test]
    fn bracket_that_would_stay_open_is_left_out() {
        let text = "ext4 on a virtual disk (vda, 100 GiB)";
        assert_eq!(fitted(text, 34), "ext4 on a virtual disk ...");
        assert_eq!(fitted(text, 80), text);
        assert_eq!(fitted("a disk (vda) behind others", 20), "a disk (vda) ...");
    }

    #[test]
    fn notes_beyond_the_room_are_counted() {
        let notes: Vec<String> = (0..4).map(|each| format!("note {each}")).collect();
        let lines = note_lines(&notes, 2, "iosonde show 8ee054");
        assert_eq!(lines[..2], ["note       note 0", "note       note 1"]);
        assert_eq!(lines[2..], ["           2 more notes: iosonde show 8ee054"]);
        let long = [format!("ended by an error: {}", "word ".repeat(60))];
        let text = note_lines(&long, 2, "").join(" ");
        assert_eq!(text.matches("word").count(), 60);
        assert_eq!(note_lines(&[], 2, ""), [""; 0]);
    }
}
