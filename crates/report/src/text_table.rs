//! Tables of 80 columns, and those tables and paragraphs that fit a narrower terminal. Sparklines,
//! charts and lists use more columns of a wider one.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Width of tables, and of paragraphs unless the terminal is narrower.
const COLUMNS_MAX: usize = 80;
/// Most columns of sparklines, charts and lists on a wide terminal.
const WIDE_COLUMNS_MAX: usize = 120;
/// Most lines of a text whose start a terminal of 24 lines still shows, above the prompt.
pub(crate) const SCREEN_LINES: usize = 23;
/// Smallest width that texts are fitted to.
const COLUMNS_MIN: usize = 40;

thread_local! {
    static TERMINAL_COLUMNS: std::cell::Cell<usize> = const { std::cell::Cell::new(COLUMNS_MAX) };
}

/// Sets the width of the texts that this thread writes: that of the terminal, from 40 to 80
/// columns. Sparklines, charts and lists have up to 120.
pub fn set_columns(terminal_columns: usize) {
    let columns = terminal_columns.clamp(COLUMNS_MIN, WIDE_COLUMNS_MAX);
    TERMINAL_COLUMNS.with(|cell| cell.set(columns));
}

/// Width of paragraphs and of tables that hide columns: 80, unless the terminal is narrower.
#[must_use]
pub fn columns() -> usize {
    wide_columns().min(COLUMNS_MAX)
}

/// Width of lists, and of tables with sparklines: that of the terminal, at most 120.
pub(crate) fn wide_columns() -> usize {
    TERMINAL_COLUMNS.with(std::cell::Cell::get)
}

/// Columns beyond 80 that sparklines and charts may use.
pub(crate) fn added_columns() -> usize {
    wide_columns().saturating_sub(COLUMNS_MAX)
}

/// Lets a table with sparklines be as wide as the terminal.
pub(crate) fn set_wide(table: &mut Table) {
    table.set_width(width_in_characters(wide_columns()));
}

/// Whether the terminal is narrower than 80 columns.
#[must_use]
pub fn is_narrow() -> bool {
    columns() < COLUMNS_MAX
}

/// Hides columns of a table until it fits a terminal narrower than 80 columns. `least_important`
/// has the indices of the columns that may be hidden, in this order. The other columns stay whole.
pub fn hide_columns(table: &mut Table, least_important: &[usize]) {
    let widths = table.column_max_content_widths();
    let with_padding = |(width, column): (&u16, &comfy_table::Column)| {
        usize::from(*width) + usize::from(column.padding_width())
    };
    let columns_of_table = widths.iter().zip(table.column_iter());
    let widths: Vec<usize> = columns_of_table.map(with_padding).collect();
    table.set_width(width_in_characters(columns()));
    for index in hidden_columns(&widths, least_important, columns()) {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
}

/// Columns to hide so that the others fit into `room`. `widths` include the blanks after columns.
/// 80 columns and more hide none: a file and a pipe get all figures.
pub(crate) fn hidden_columns(
    widths: &[usize],
    least_important: &[usize],
    room: usize,
) -> Vec<usize> {
    let mut used: usize = widths.iter().sum();
    let mut hidden = Vec::new();
    if room >= COLUMNS_MAX {
        return hidden;
    }
    for index in least_important.iter().copied() {
        if used <= room {
            break;
        }
        used -= widths.get(index).copied().unwrap_or(0);
        hidden.push(index);
    }
    hidden
}

/// Widths of columns without the blanks between them.
pub(crate) fn column_widths<'a, const N: usize>(
    rows: impl IntoIterator<Item = &'a [String; N]>,
) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

fn width_in_characters(columns: usize) -> u16 {
    u16::try_from(columns).unwrap_or(u16::MAX)
}

/// Returns an empty table without borders, of 80 columns. Cells would break in the middle of a
/// figure if it was narrower.
pub fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width_in_characters(COLUMNS_MAX));
    table
}

/// Returns an empty table whose texts are wrapped, as wide as a paragraph.
pub(crate) fn wrapped_table() -> Table {
    let mut table = plain();
    table.set_width(width_in_characters(columns()));
    table
}

/// Header and alignment of a column.
#[derive(Debug, Clone, Copy)]
pub enum TableColumn<'a> {
    /// Column of text.
    Left(&'a str),
    /// Column of numbers.
    Right(&'a str),
}

impl TableColumn<'_> {
    pub(crate) fn header(&self) -> &str {
        match self {
            TableColumn::Left(header) | TableColumn::Right(header) => header,
        }
    }

    fn cell(&self, text: &str) -> Cell {
        match self {
            TableColumn::Left(_) => Cell::new(text),
            TableColumn::Right(_) => right(text),
        }
    }
}

/// Returns columns with these headers. The first `left` ones are of text, the others of numbers.
pub(crate) fn aligned_columns<'a>(headers: &[&'a str], left: usize) -> Vec<TableColumn<'a>> {
    let column = |(index, header): (usize, &'a str)| match index < left {
        true => TableColumn::Left(header),
        false => TableColumn::Right(header),
    };
    headers.iter().copied().enumerate().map(column).collect()
}

/// Adds headers and rows to an empty table. Each row has one cell per column.
pub(crate) fn fill_table<R>(mut table: Table, columns: &[TableColumn<'_>], rows: R) -> Table
where
    R: IntoIterator,
    R::Item: AsRef<[String]>,
{
    table.set_header(columns.iter().map(|column| column.cell(column.header())));
    for row in rows {
        let cells = columns.iter().zip(row.as_ref());
        table.add_row(cells.map(|(column, text)| column.cell(text)));
    }
    table
}

/// Keeps each cell on one line. The rendered text has [`UNBROKEN_BLANK`] for blanks.
pub(crate) fn keep_whole(cells: &mut [String]) {
    for cell in cells {
        *cell = cell.replace(' ', UNBROKEN_BLANK);
    }
}

/// Sets the number of blanks between columns. The table has no left margin.
pub(crate) fn set_gap(table: &mut Table, blanks: u16) {
    for column in table.column_iter_mut() {
        column.set_padding((0, blanks));
    }
}

/// Renders a table without the trailing blanks of the last column.
pub fn render(table: &Table) -> String {
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Renders a table without left margin, with two blanks between columns.
pub fn render_left(table: &mut Table) -> String {
    set_gap(table, 2);
    render(table)
}

/// Returns a cell that is aligned to the right.
pub fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Table of facts with their names, as wide as a paragraph.
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let mut table = wrapped_table();
    for (name, value) in pairs {
        table.add_row([*name, &unbroken_figures(value)]);
    }
    render_left(&mut table).replace(UNBROKEN_BLANK, " ")
}

/// Wraps the lines of a text that are wider than a narrow terminal. The lines that continue them
/// have two more blanks of indent. At 80 columns the text stays as it is.
#[must_use]
pub fn fit_lines(text: &str) -> String {
    match is_narrow() {
        true => {
            let lines: String = text.lines().map(fit_line).collect();
            lines.replace(UNBROKEN_BLANK, " ")
        }
        false => text.to_owned(),
    }
}

/// Wraps a line at its blanks. A word that is wider than a line is broken.
fn fit_line(line: &str) -> String {
    let words = line.trim_start_matches(' ');
    let before = &line[..line.len() - words.len()];
    let indent = format!("{before}  ");
    let room = columns().saturating_sub(indent.len()).max(1);
    let (mut text, mut current, mut is_begun) = (String::new(), before.to_owned(), false);
    for word in words.split_inclusive(' ') {
        let letters: Vec<char> = word.chars().collect();
        for part in letters.chunks(room) {
            let part: String = part.iter().collect();
            let width = part.trim_end_matches(' ').chars().count();
            if is_begun && current.chars().count() + width > columns() {
                text.push_str(current.trim_end_matches(' '));
                text.push('\n');
                current.clone_from(&indent);
            }
            current.push_str(&part);
            is_begun = true;
        }
    }
    text.push_str(current.trim_end_matches(' '));
    text.push('\n');
    text
}

/// Blank at which no line breaks.
pub(crate) const UNBROKEN_BLANK: &str = "\u{a0}";

/// Wraps a paragraph at 80 columns, or at the width of a narrower terminal. A command between
/// backticks stays on one line, and so does a number with its unit.
pub fn wrapped(text: &str) -> String {
    let mut table = wrapped_table();
    table.add_row([unbroken_figures(&unbroken_commands(text))]);
    set_gap(&mut table, 0);
    render(&table).replace(UNBROKEN_BLANK, " ")
}

/// Wraps a text into lines of at most `width` columns. A number stays with its unit.
pub(crate) fn wrapped_figures(text: &str, width: usize) -> Vec<String> {
    let mut table = plain();
    table.set_width(width_in_characters(width));
    table.add_row([unbroken_figures(text)]);
    set_gap(&mut table, 0);
    let rendered = render(&table).replace(UNBROKEN_BLANK, " ");
    rendered.lines().map(str::to_owned).collect()
}

/// Wraps each text into a paragraph after an empty line.
pub(crate) fn paragraphs(texts: &[String]) -> String {
    let each = texts.iter().map(|text| format!("\n{}", wrapped(text)));
    each.collect()
}

/// Replaces the blanks of commands between backticks.
fn unbroken_commands(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A single backtick begins no command.
    if parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let command = |(index, part): (usize, &&str)| match index % 2 {
        1 => part.replace(' ', UNBROKEN_BLANK),
        _ => (*part).to_owned(),
    };
    let parts: Vec<String> = parts.iter().enumerate().map(command).collect();
    parts.join("`")
}

/// Units that stand after a number and a blank.
const UNITS: [&str; 19] = [
    "%", "ns", "us", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "B/s", "KiB/s",
    "MiB/s", "GiB/s", "TiB/s", "IOPS",
];

/// Whether a line may not break between two words, as they are a number and its unit, or half its
/// interval: `91` and `%`, `±0.1k` and `IOPS,`, `68.9k` and `±0.1k`.
///
/// This is a rule of line breaking, like those of UAX #14 for numbers. It holds for all prose, also
/// of stored results and of other programs. Nothing but the break depends on it.
pub(crate) fn is_unbroken_pair(number: &str, unit: &str) -> bool {
    let digits = number.trim_start_matches(['(', '~', '±', '+', '-', '<', '>', '=']);
    let is_of_number = |c: char| c.is_ascii_digit() || ".,-kMG".contains(c);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(is_of_number)
        && !digits.ends_with(['.', ',', '-']);
    let is_half = unit.starts_with('±') || unit.starts_with("+-");
    let is_unit = UNITS.contains(&unit.trim_end_matches(['.', ',', ';', ':', ')']));
    is_number && (is_half || is_unit)
}

/// Replaces the blanks between numbers and their units.
pub(crate) fn unbroken_figures(text: &str) -> String {
    let (mut unbroken, mut before) = (String::new(), None);
    for word in text.split(' ') {
        unbroken.push_str(match before {
            None => "",
            Some(number) if is_unbroken_pair(number, word) => UNBROKEN_BLANK,
            Some(_) => " ",
        });
        unbroken.push_str(word);
        before = Some(word);
    }
    unbroken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_hidden_in_their_order_until_the_rest_fits() {
        let widths = [12, 7, 12, 12];
        assert_eq!(hidden_columns(&widths, &[2, 1], 43), [0usize; 0]);
        assert_eq!(hidden_columns(&widths, &[2, 1], 42), [2]);
        assert_eq!(hidden_columns(&widths, &[2, 1], 30), [2, 1]);
        // The other columns are never hidden.
        assert_eq!(hidden_columns(&widths, &[2, 1], 5), [2, 1]);
        // From 80 columns on, wide tables keep their columns.
        assert_eq!(hidden_columns(&[60, 60], &[1], 79), [1]);
        assert_eq!(hidden_columns(&[60, 60], &[1], 80), [0usize; 0]);
    }

    #[test]
    fn table_that_hides_no_column_has_80_columns_on_a_narrow_terminal() {
        let figures = || {
            let mut table = plain();
            table.add_row(["123456789012345678901234"; 3]);
            render_left(&mut table)
        };
        let wide = figures();
        set_columns(40);
        assert_eq!(figures(), wide);
        assert_eq!(wide.lines().count(), 1, "{wide}");
    }

    #[test]
    fn narrow_terminal_wraps_paragraphs_and_hides_columns() {
        let texts = ["4k random read", "93.4k +-1.2k", "365 MiB/s", "1.36 ms"];
        let table = || {
            let mut table = plain();
            table.set_header(["", "rate", "bandwidth", "p99"]);
            table.add_row(texts);
            for column in table.column_iter_mut() {
                column.set_padding((0, 2));
            }
            hide_columns(&mut table, &[2, 3]);
            render(&table)
        };
        assert!(texts.iter().all(|text| table().contains(text)));
        set_columns(40);
        assert!(is_narrow());
        let narrow = table();
        let lines = wrapped(&"word ".repeat(30)) + &narrow;
        assert!(lines.lines().all(|line| line.len() <= 40), "{lines}");
        assert!(!narrow.contains("bandwidth"), "{narrow}");
        assert!(narrow.contains("93.4k +-1.2k  1.36 ms"), "{narrow}");
        assert_eq!(narrow.lines().count(), 2, "{narrow}");
        set_columns(200);
        assert_eq!(columns(), 80);
        assert_eq!((wide_columns(), added_columns()), (120, 40));
        set_columns(100);
        assert_eq!((columns(), added_columns()), (80, 20));
        set_columns(60);
        assert_eq!((wide_columns(), added_columns()), (60, 0));
        set_columns(10);
        assert_eq!(columns(), 40);
    }

    #[test]
    fn long_lines_are_wrapped_with_their_indent_on_a_narrow_terminal() {
        let figures = "latency: avg=30.2\u{a0}ms p50=31.1\u{a0}ms p99=31.1\u{a0}ms";
        let text = format!("read:\n  {figures}\n\n{}\n", "x".repeat(90));
        assert_eq!(fit_lines(&text), text);
        set_columns(40);
        let wrapped = format!(
            "read:\n  latency: avg=30.2 ms p50=31.1 ms\n    p99=31.1 ms\n\n{x}\n  {x}\n  {end}\n",
            x = "x".repeat(38),
            end = "x".repeat(14),
        );
        assert_eq!(fit_lines(&text), wrapped);
        // Blanks within a line are kept.
        assert_eq!(fit_lines("sh -c 'a  b'\n"), "sh -c 'a  b'\n");
        assert_eq!(fit_lines(""), "");
    }

    #[test]
    fn number_keeps_its_unit_in_wrapped_texts() {
        for figure in [
            "91 %",
            "(~1.5 ms)",
            "68.9k ±0.1k IOPS,",
            "3.20 GiB/s;",
            "4 KiB.",
        ] {
            let text = format!("{}{figure} word", "x".repeat(78 - figure.len() / 2) + " ");
            let text = wrapped(&text);
            let second = text.lines().nth(1).unwrap();
            assert_eq!(second, format!("{figure} word"), "{text}");
        }
        for length in 55..75 {
            let facts = format!("{} 91 % of the time", "x".repeat(length));
            let text = pairs(&[("finding", facts)]);
            assert!(text.contains("91 %"), "{text}");
        }
        for (number, unit) in [
            ("depth", "%"),
            ("64,", "s"),
            ("4k", "random"),
            ("", "%"),
            ("-", "%"),
        ] {
            assert!(!is_unbroken_pair(number, unit), "{number} {unit}");
        }
    }

    #[test]
    fn command_between_backticks_is_not_wrapped() {
        let text = format!(
            "{}run `iosonde probe /data --runtime 13`.",
            "word ".repeat(13)
        );
        let lines = wrapped(&text);
        assert!(
            lines.contains("run\n`iosonde probe /data --runtime 13`."),
            "{lines}"
        );
    }
}
