//! `docs/fio-options.md`: every option with its support, compared with fio.

use crate::cmdline;
use crate::options::{self, OptionFamily, OptionRow, OptionSupport, engine_options};
use crate::plan::Engine;
use std::fmt::Write;

/// `UPDATE_SCHEMA=1 cargo test -p iosonde-job committed_options` rewrites the file.
#[test]
fn committed_options_are_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fio-options.md");
    let current = options_document();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/fio-options.md is out of date: \
         run UPDATE_SCHEMA=1 cargo test -p iosonde-job committed_options"
    );
}

#[test]
fn options_document_names_every_option() {
    let text = options_document();
    for row in options::list_options() {
        assert!(text.contains(&format!("`{}`", row.name)), "{}", row.name);
    }
}

/// Returns the document.
fn options_document() -> String {
    let mut text = String::from(
        "# Options of `iosonde fio`\n\n\
         Generated from the option table by \
         `UPDATE_SCHEMA=1 cargo test -p iosonde-job committed_options`; do not edit.\n\n\
         *yes*: as in fio 3.33. *read*: accepted, with the effect described here. *no*: refused \
         with an error.\n\
         Sizes take k, m, g, t, p with `kb_base`; times take d, h, m, s, ms, us, ns.\n",
    );
    for family in OptionFamily::ALL {
        let _ = write!(text, "\n## {}\n\n", family.title());
        text.push_str("| option | value | default | fio | effect |\n|---|---|---|---|---|\n");
        for row in options::family(family) {
            text.push_str(&markdown_row(row));
        }
    }
    text.push_str("\n## Options of the program\n\n| option | fio | effect |\n|---|---|---|\n");
    for option in cmdline::OPTIONS {
        let (status, note) = status(option.status);
        let doc = cell(&format!("{}{note}", option.doc));
        let _ = writeln!(text, "| `--{}` | {status} | {doc} |", option.name);
    }
    text.push_str("\n## Engines\n\n| engine | fio | effect |\n|---|---|---|\n");
    for (engine, doc) in engine_options::ENGINES {
        let status = match engine {
            Engine::Auto | Engine::Sim => "iosonde's own",
            _ => "yes",
        };
        let _ = writeln!(text, "| `{}` | {status} | {doc} |", engine.name());
    }
    for (names, reason, instead) in engine_options::REFUSED {
        let names = names.join("`, `");
        let nearest = nearest_way(instead);
        let _ = writeln!(text, "| `{names}` | no | {reason}.{nearest} |");
    }
    text
}

fn markdown_row(row: &OptionRow) -> String {
    let names: Vec<String> = row.names().map(|name| format!("`{name}`")).collect();
    let (status, note) = status(row.status);
    let engines = match row.engines {
        [] => String::new(),
        engines => format!(" ({})", engines.join(", ")),
    };
    let default = match row.default {
        "" => String::new(),
        default => format!("`{default}`"),
    };
    format!(
        "| {}{engines} | {} | {default} | {status} | {} |\n",
        names.join(", "),
        cell(&row.kind.describe()),
        cell(&format!("{}{note}", row.doc)),
    )
}

/// Escapes bars, which would end a cell of the table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn status(status: OptionSupport) -> (&'static str, String) {
    match status {
        OptionSupport::Supported => ("yes", String::new()),
        OptionSupport::Accepted(meaning) => ("read", format!(" *{meaning}*")),
        OptionSupport::Unsupported { reason, instead } => {
            let nearest = nearest_way(instead);
            ("no", format!(" *Refused: {reason}.{nearest}*"))
        }
    }
}

/// Returns a sentence that names the nearest alternative, if there is one.
fn nearest_way(instead: &str) -> String {
    match instead {
        "" => String::new(),
        _ => format!(" Alternative: {instead}."),
    }
}
