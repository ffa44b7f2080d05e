//! Text tables of 80 columns.

use super::words;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use iosonde_limits::{Listed, Promise};

const COLUMNS: u16 = 80;

/// All about one product.
pub(super) fn promise(promise: &Promise) -> String {
    let subject = promise.subject();
    let mut text = wrapped(&format!("{}: {subject}", promise.title));
    text.push('\n');
    text.push_str(&figures(promise));
    let remarks = words::remarks(promise);
    if !remarks.is_empty() {
        text.push('\n');
        text.extend(remarks.iter().map(|remark| wrapped(remark)));
    }
    if !promise.commands.is_empty() {
        text.push_str("\nCreated with\n");
        // Commands are not wrapped, so that they can be copied.
        let lines = promise.commands.iter().flat_map(|command| command.lines());
        text.extend(lines.map(|line| format!("  {line}\n")));
    }
    for (title, lines) in [
        ("Fine print", promise.notes.clone()),
        (
            "Measured by the vendor",
            promise.method.iter().cloned().collect(),
        ),
        ("Sources", words::sources(promise)),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            text.extend(lines.iter().map(|line| indented(line)));
        }
    }
    text
}

fn figures(promise: &Promise) -> String {
    let mut table = plain();
    let bursts = promise.figures.iter().any(|figure| figure.burst.is_some());
    let mut head = vec![Cell::new(""), right("promised")];
    if bursts {
        head.push(right("burst"));
    }
    head.extend([Cell::new("limited by"), Cell::new("next limit")]);
    table.set_header(head);
    for figure in &promise.figures {
        let mut cells = vec![Cell::new(figure.metric), right(words::sustained(figure))];
        if bursts {
            cells.push(right(words::burst(figure)));
        }
        cells.push(Cell::new(&figure.limited_by));
        cells.push(Cell::new(words::next(figure)));
        table.add_row(cells);
    }
    render(table, 2)
}

/// Lists all products.
pub(super) fn list(products: &[Listed]) -> String {
    let mut table = plain();
    table.set_header(["product", "needs", "limits from"]);
    for product in products {
        table.add_row([
            product.name.clone(),
            product.needs.join(" "),
            known_for(product),
        ]);
    }
    for column in table.column_iter_mut().take(2) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    let mut text = render(table, 2);
    text.push('\n');
    text.push_str(&wrapped(
        "Parameters in brackets are optional. --as-of selects the limits of an earlier date.",
    ));
    text
}

/// The years of the product's editions.
fn known_for(product: &Listed) -> String {
    let mut years: Vec<&str> = product
        .editions
        .iter()
        .map(|edition| edition.get(..4).unwrap_or(edition))
        .collect();
    years.dedup();
    years.join(" ")
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS);
    table
}

/// comfy-table pads cells with blanks. Trims those of the last column.
fn render(mut table: Table, gap: u16) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, gap));
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A paragraph of at most 80 columns.
fn wrapped(text: &str) -> String {
    filled("", text)
}

/// A list item of at most 80 columns.
fn indented(text: &str) -> String {
    filled("- ", text)
}

/// Breaks lines at 80 columns. A longer word, such as a URL, stays whole.
fn filled(bullet: &str, text: &str) -> String {
    let indent = " ".repeat(bullet.len());
    let mut filled = String::new();
    let mut line = bullet.to_owned();
    for word in text.split_whitespace() {
        let begun = line.len() > indent.len();
        if begun && line.chars().count() + 1 + word.chars().count() > usize::from(COLUMNS) {
            filled.push_str(line.trim_end());
            filled.push('\n');
            line = indent.clone();
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    filled.push_str(&line);
    filled.push('\n');
    filled
}
