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

/// Wraps a paragraph at 80 columns.
pub fn wrapped(text: &str) -> String {
    let mut table = plain();
    table.add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    render(&table)
}
