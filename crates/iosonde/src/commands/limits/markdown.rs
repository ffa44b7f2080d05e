//! Tables for a report or an issue.

use super::words;
use iosonde_study::limits::{Listed, Promise};

pub(super) fn promise(promise: &Promise) -> String {
    let mut text = format!("## {}: {}\n\n", promise.title, promise.subject());
    text.push_str("| | promised | for a while | limited by | next limit |\n");
    text.push_str("| --- | ---: | ---: | --- | --- |\n");
    for figure in &promise.figures {
        text.push_str(&row(&[
            figure.metric.to_string(),
            words::sustained(figure),
            words::burst(figure),
            figure.limited_by.to_string(),
            words::next(figure),
        ]));
    }
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

pub(super) fn list(products: &[Listed]) -> String {
    let mut text = "| product | what it is | needs | known from |\n".to_owned();
    text.push_str("| --- | --- | --- | --- |\n");
    for product in products {
        text.push_str(&row(&[
            format!("`{}`", product.name),
            product.title.clone(),
            product.needs.join(" "),
            product.editions.join(", "),
        ]));
    }
    text
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}
