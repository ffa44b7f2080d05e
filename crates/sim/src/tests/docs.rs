//! `docs/sim.md` lists all presets and keys.

use super::*;
use std::fmt::Write as _;

fn table(head: &str, rows: impl Iterator<Item = [String; 3]>) -> String {
    let mut text = format!("{head}\n| --- | --- | --- |\n");
    for [first, second, third] in rows {
        let _ = writeln!(text, "| {first} | {second} | {third} |");
    }
    text
}

fn presets() -> String {
    let rows = presets::PRESETS.iter().map(|preset| {
        let values = preset.text.replace(',', ", ");
        [
            format!("`{}`", preset.name),
            preset.doc.to_owned(),
            format!("`{values}`"),
        ]
    });
    table("| preset | stands for | is |", rows)
}

fn keys() -> String {
    let default = SimSpec::default();
    let rows = keys::KEYS.iter().map(|key| {
        let name = format!("`{}`", key.name);
        let meaning = format!("{} (default: {})", key.doc, key.format_value(&default));
        [name, key.grammar.to_owned(), meaning]
    });
    table("| key | value | meaning |", rows)
}

/// Replaces the text after the comment that begins with `marker`, up to `<!-- end -->`, by `table`.
fn put(text: &str, marker: &str, table: &str) -> String {
    let start = text
        .find(&format!("<!-- {marker}:"))
        .expect("the marker is there");
    let start = start + text[start..].find('\n').expect("a line") + 1;
    let end = start
        + text[start..]
            .find("<!-- end -->")
            .expect("the end is marked");
    format!("{}{table}{}", &text[..start], &text[end..])
}

#[test]
fn docs_list_every_preset_and_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sim.md");
    let found = std::fs::read_to_string(path).unwrap();
    let right = put(&put(&found, "presets", &presets()), "keys", &keys());
    if std::env::var_os("IOSONDE_UPDATE").is_some() {
        std::fs::write(path, &right).unwrap();
        return;
    }
    assert!(
        found == right,
        "docs/sim.md is out of date: run this test with IOSONDE_UPDATE=1"
    );
}
