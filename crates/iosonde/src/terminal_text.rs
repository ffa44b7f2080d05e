//! Text for a terminal, wrapped at words to its width.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use unicode_width::UnicodeWidthStr;

/// Largest width of a line: longer lines are hard to read.
pub(crate) const COLUMNS_MAX: usize = 100;
/// Smallest width that text is wrapped to.
const COLUMNS_MIN: usize = 20;
/// First words of messages. Other lines, such as job files with carets, keep their layout.
const MESSAGE_STARTS: [&str; 4] = ["error: ", "warning: ", "help: ", "note: "];

/// Width and height of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl TerminalSize {
    /// Size of a terminal that reports none.
    pub(crate) const USUAL: TerminalSize = TerminalSize {
        columns: 80,
        rows: 24,
    };

    /// Size of the terminal of standard error. It is read each time, since terminals are resized.
    pub(crate) fn of_stderr() -> TerminalSize {
        let size = rustix::termios::tcgetwinsize(io::stderr());
        let (columns, rows) = size.map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let or_usual = |reported: u16, usual: usize| match reported {
            0 => usual,
            reported => usize::from(reported),
        };
        TerminalSize {
            columns: or_usual(columns, TerminalSize::USUAL.columns),
            rows: or_usual(rows, TerminalSize::USUAL.rows),
        }
    }
}

/// Columns of a text without control characters. Characters of East Asian scripts and pictographs
/// have two, accents that are combined with a letter none.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// Cuts a text without control characters to a width.
pub(crate) fn cut_to_columns(text: &str, columns: usize) -> String {
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if width_of(&kept) > columns {
            kept.pop();
            break;
        }
    }
    kept
}

/// Returns the width for text on a terminal, at most [`COLUMNS_MAX`]. `None`: it has none.
pub(crate) fn columns(terminal: impl AsFd) -> Option<usize> {
    whole_columns(terminal).map(|columns| columns.min(COLUMNS_MAX))
}

/// Returns the width of a terminal. `None`: it has none.
fn whole_columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    let columns = usize::from(size.ws_col);
    (columns >= COLUMNS_MIN).then_some(columns)
}

/// Returns the width for tables: the value of the variable `COLUMNS`, else the width of the
/// terminal. `None`: neither is known.
pub(crate) fn table_columns(variable: Option<OsString>, terminal: impl AsFd) -> Option<usize> {
    columns_of_variable(variable).or_else(|| whole_columns(terminal))
}

/// Returns the width for tables in files: the value of the variable `COLUMNS`, else the usual one.
pub(crate) fn file_columns(variable: Option<OsString>) -> usize {
    columns_of_variable(variable).unwrap_or(TerminalSize::USUAL.columns)
}

fn columns_of_variable(variable: Option<OsString>) -> Option<usize> {
    let value = variable?.to_str()?.parse::<usize>().ok();
    value.filter(|value| *value >= COLUMNS_MIN)
}

/// Wraps the lines that begin with `error:`, `warning:`, `help:` or `note:`.
pub(crate) fn wrapped_messages(text: &str, columns: usize) -> String {
    let wrap = |line: &str| {
        let visible = without_colors(line);
        match MESSAGE_STARTS
            .iter()
            .any(|start| visible.starts_with(start))
        {
            true => wrapped_line(line, columns, 0),
            false => line.to_owned(),
        }
    };
    let lines: Vec<String> = text.split('\n').map(wrap).collect();
    lines.join("\n")
}

/// Wraps all lines. The lines that continue one begin with `indent` blanks.
pub(crate) fn wrapped_table(text: &str, columns: usize, indent: usize) -> String {
    let lines = text.split('\n');
    let lines: Vec<String> = lines
        .map(|line| wrapped_line(line, columns, indent))
        .collect();
    lines.join("\n")
}

/// Breaks a line at blanks, except between backticks and after an option: a command and an option
/// with its value stay on one line, so that they can be copied. A word longer than a line is not
/// broken.
fn wrapped_line(line: &str, columns: usize, indent: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in unbroken_words(line) {
        let width = without_colors(word).chars().count();
        let blanks = word.chars().take_while(|letter| *letter == ' ').count();
        let is_first = used == 0;
        if !is_first && used + width > columns {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            text.push_str(&word[blanks..]);
            used = indent + width - blanks;
        } else {
            text.push_str(word);
            used += width;
        }
    }
    text
}

/// Splits a line into words, each with the blanks before it.
fn unbroken_words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut is_command, mut has_letters) = (0, false, false);
    for (index, letter) in line.char_indices() {
        match letter {
            ' ' if has_letters && !is_command && !ends_with_option(&line[start..index]) => {
                words.push(&line[start..index]);
                (start, has_letters) = (index, false);
            }
            ' ' => {}
            _ => {
                has_letters = true;
                is_command ^= letter == '`';
            }
        }
    }
    words.push(&line[start..]);
    words
}

/// Whether the text ends with an option, whose value may follow.
fn ends_with_option(text: &str) -> bool {
    let last = text.rsplit(' ').next();
    last.is_some_and(|word| word.starts_with('-'))
}

/// Removes colours: `ESC [ ... m`.
fn without_colors(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut visible = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        visible.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    visible
}

/// Cuts a text to `most` characters, the last of which is `~` then.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['~']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_of_tables_comes_from_the_variable_first() {
        let file = || std::fs::File::open("/dev/null").unwrap();
        let width = |value: &str| table_columns(Some(value.into()), file());
        assert_eq!(width("60"), Some(60));
        // No width: a file is no terminal.
        for value in ["", "0", "wide", "-5"] {
            assert_eq!(width(value), None, "{value}");
        }
        assert_eq!(table_columns(None, file()), None);
        assert_eq!(file_columns(Some("60".into())), 60);
        assert_eq!(file_columns(Some("wide".into())), 80);
        assert_eq!(file_columns(None), 80);
    }

    #[test]
    fn text_is_cut_at_its_columns() {
        assert_eq!(cut_to_columns("abcdef", 4), "abcd");
        assert_eq!(cut_to_columns("abc", 4), "abc");
        // The second character of two columns would exceed the width.
        assert_eq!(cut_to_columns("a\u{6570}\u{636e}", 4), "a\u{6570}");
        assert_eq!(width_of("a\u{6570}\u{2588}"), 4);
        // An accent needs no column, and a heart becomes a pictograph of two.
        assert_eq!(cut_to_columns("e\u{301}bc", 2), "e\u{301}b");
        assert_eq!(width_of("\u{2764}\u{fe0f}"), 2);
    }

    #[test]
    fn long_messages_break_between_words() {
        let text =
            "warning: figures may be noisy: other programs use 99 % of the time\n  kept as it";
        assert_eq!(
            wrapped_messages(text, 40),
            "warning: figures may be noisy: other\nprograms use 99 % of the time\n  kept as it"
        );
        let colored = "\x1b[1;31merror\x1b[0m: 1234567890 1234567890 1234567890";
        assert_eq!(
            wrapped_messages(colored, 30),
            "\x1b[1;31merror\x1b[0m: 1234567890 1234567890\n1234567890"
        );
        let source = "   | --rw=read --bs=4k --runtime=60 --size=1g --filename=/data/file";
        assert_eq!(wrapped_messages(source, 30), source);
    }

    #[test]
    fn commands_in_backticks_stay_on_one_line() {
        let text = "help: run `iosonde probe /data --size 1g --runtime 2m` on an idle machine";
        assert_eq!(
            wrapped_messages(text, 40),
            "help: run\n`iosonde probe /data --size 1g --runtime 2m`\non an idle machine"
        );
    }

    #[test]
    fn options_stay_with_their_values() {
        let text = "help: permit it with --allow-overwrite /dev/sda";
        assert_eq!(
            wrapped_messages(text, 40),
            "help: permit it with\n--allow-overwrite /dev/sda"
        );
    }

    #[test]
    fn table_rows_continue_below_their_text() {
        let text = "  --output=FILE  the file that results go to\n";
        assert_eq!(
            wrapped_table(text, 34, 17),
            "  --output=FILE  the file that\n                 results go to\n"
        );
    }
}
