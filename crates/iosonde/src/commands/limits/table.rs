//! Text tables of at most 80 columns. Commands and URLs may be longer.

use super::words;
use comfy_table::{Cell, ColumnConstraint};
use iosonde_limits::{Listed, Promise};
use iosonde_report::text_table::{
    columns, hide_columns, is_narrow, plain, render, render_left, right, wrapped,
};

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
        let indent = if is_narrow() { "" } else { "  " };
        let lines = promise.commands.iter().flat_map(|command| command.lines());
        text.extend(lines.map(|line| format!("{indent}{line}\n")));
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
        cells.push(Cell::new(words::next_limit_text(figure)));
        table.add_row(cells);
    }
    // A narrow terminal shows the promised figures.
    let least_important: &[usize] = match bursts {
        true => &[4, 3, 2],
        false => &[3, 2],
    };
    hide_columns(&mut table, least_important);
    render_left(&mut table)
}

/// Lists all products.
pub(super) fn products_table(products: &[Listed]) -> String {
    let mut table = plain();
    table.set_header(["product", "needs", "limits from"]);
    for product in products {
        table.add_row([
            product.name.clone(),
            product.needs.join(" "),
            known_for(product),
        ]);
    }
    let (gap, whole_columns) = if is_narrow() { (1, 1) } else { (2, 2) };
    for column in table.column_iter_mut() {
        column.set_padding((0, gap));
    }
    // A narrow terminal shows products and their needs. Names of products are not wrapped.
    hide_columns(&mut table, &[2]);
    for column in table.column_iter_mut().take(whole_columns) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    let mut text = render(&table);
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

/// A list item with a hanging indent, as wide as a paragraph. A URL stays whole, so that it can be
/// copied.
fn indented(text: &str) -> String {
    const BULLET: &str = "- ";
    const INDENT: &str = "  ";
    let mut filled = String::new();
    let mut line = BULLET.to_owned();
    for part in text.split_whitespace().flat_map(parts_of_word) {
        let begun = line.len() > INDENT.len();
        if begun && line.chars().count() + 1 + part.chars().count() > columns() {
            filled.push_str(line.trim_end());
            filled.push('\n');
            line = INDENT.to_owned();
        } else if begun {
            line.push(' ');
        }
        line.push_str(&part);
    }
    filled.push_str(&line);
    filled.push('\n');
    filled
}

/// Splits a word that is wider than a line of a list item, unless it is a URL.
fn parts_of_word(word: &str) -> Vec<String> {
    if word.contains("://") {
        return vec![word.to_owned()];
    }
    let letters: Vec<char> = word.chars().collect();
    let parts = letters.chunks(columns() - 2);
    parts.map(|part| part.iter().collect()).collect()
}
