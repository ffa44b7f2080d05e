//! Tables and paragraphs of 80 columns.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// Width of tables.
pub const COLUMNS: u16 = 80;

/// Returns an empty table without borders.
pub fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS);
    table
}

/// Renders a table without the trailing blanks of the last column.
pub fn render(table: &Table) -> String {
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Renders a table without left margin, with two blanks between columns.
pub fn render_left(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(table)
}

/// Returns a cell that is aligned to the right.
pub fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Table of facts with their names, of 80 columns.
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let mut table = plain();
    for (name, value) in pairs {
        table.add_row([*name, value]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    render(&table)
}

/// Blank at which no line breaks.
pub(crate) const UNBROKEN_BLANK: &str = "\u{a0}";

/// Wraps a paragraph at 80 columns. A command between backticks stays on one line.
pub fn wrapped(text: &str) -> String {
    let mut table = plain();
    table.add_row([unbroken_commands(text)]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    render(&table).replace(UNBROKEN_BLANK, " ")
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

#[cfg(test)]
mod tests {
    use super::*;

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
