//! Markdown tables for a report or an issue.

use super::words;
use iosonde_limits::{Listed, Promise};
use iosonde_report::markdown_table::markdown_table;
use iosonde_report::text_table::TableColumn::{Left, Right};

pub(super) fn promise(promise: &Promise) -> String {
    let mut text = format!("## {}: {}\n\n", promise.title, promise.subject());
    let columns = [
        Left(""),
        Right("promised"),
        Right("burst"),
        Left("limited by"),
        Left("next limit"),
    ];
    let rows = promise.figures.iter().map(|figure| {
        [
            figure.metric.to_string(),
            words::sustained(figure),
            words::burst(figure),
            figure.limited_by.to_string(),
            words::next_limit_text(figure),
        ]
    });
    text.push_str(&markdown_table(&columns, rows));
    let method = promise.method.iter().cloned();
    for lines in [
        words::remarks(promise),
        promise.notes.iter().cloned().chain(method).collect(),
        words::sources(promise),
    ] {
        if !lines.is_empty() {
            text.push('\n');
            text.extend(lines.iter().map(|line| format!("* {line}\n")));
        }
    }
    text
}

pub(super) fn products_markdown(products: &[Listed]) -> String {
    let columns = ["product", "description", "needs", "limits from"].map(Left);
    let rows = products.iter().map(|product| {
        [
            format!("`{}`", product.name),
            product.title.clone(),
            product.needs.join(" "),
            product.editions.join(", "),
        ]
    });
    markdown_table(&columns, rows)
}
