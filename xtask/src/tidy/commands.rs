//! `unknown-command`: commands and options that documents name exist.

use super::finding::TidyFinding;
use super::markdown::MarkdownFile;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// All commands of the program; a test of the crate `iosonde` writes the file and holds it to the
/// code.
const COMMANDS: &str = "docs/schema/commands.json";

/// All options of fio; a test of the crate `iosonde-job` writes the file and holds it to the code.
const FIO_OPTIONS: &str = "docs/fio-options.md";

/// The program as [`COMMANDS`] and [`FIO_OPTIONS`] describe it.
#[derive(Debug)]
pub(crate) struct DocumentedProgram {
    command: DocumentedCommand,
    /// Names without dashes.
    fio_options: HashSet<String>,
}

impl DocumentedProgram {
    /// Reads both files below the root of the repository.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let read = |path: &str| {
            fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
        };
        Self::parse(&read(COMMANDS)?, &read(FIO_OPTIONS)?)
    }

    fn parse(commands: &str, fio_options: &str) -> Result<Self> {
        let command = serde_json::from_str::<DocumentedCommand>(commands);
        Ok(Self {
            command: command.with_context(|| format!("reading {COMMANDS}"))?,
            fio_options: names_of_options(fio_options),
        })
    }

    fn has_option(&self, command: &DocumentedCommand, name: &str) -> bool {
        command.options.iter().any(|option| option == name)
            || command.takes_fio_options && self.fio_options.contains(name)
    }
}

/// The code in the first column of the tables before that of the engines.
fn names_of_options(document: &str) -> HashSet<String> {
    let tables = document.split("\n## Engines\n").next().unwrap_or_default();
    let rows = tables.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" |").next());
    let names = cells.flat_map(|cell| cell.split('`').step_by(2));
    names
        .map(|name| name.trim_start_matches("--").to_owned())
        .collect()
}

/// A command with its options.
#[derive(Debug, Deserialize)]
pub(crate) struct DocumentedCommand {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    /// Long names without dashes.
    options: Vec<String>,
    /// Whether fio's options are options of the command, too.
    #[serde(default)]
    takes_fio_options: bool,
    #[serde(default)]
    commands: Vec<DocumentedCommand>,
}

impl DocumentedCommand {
    fn child(&self, name: &str) -> Option<&DocumentedCommand> {
        self.commands.iter().find(|command| {
            command.name == name || command.aliases.iter().any(|alias| alias == name)
        })
    }
}

/// Checks the code of a document.
pub(crate) fn check(document: &MarkdownFile, program: &DocumentedProgram) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for code in &document.code {
        let text = if code.is_block {
            join_lines(&code.text)
        } else {
            code.text.clone()
        };
        for (index, line) in text.lines().enumerate() {
            for words in invocations(line, code.is_block) {
                if let Some(fault) = fault_of(&words, program) {
                    let text = format!("`{}`: {fault}", words.join(" "));
                    let line = code.line + index;
                    findings.push(TidyFinding::new(
                        "unknown-command",
                        &document.path,
                        line,
                        text,
                    ));
                }
            }
        }
    }
    findings
}

/// Puts a line that a backslash continues into one, and keeps the number of lines.
fn join_lines(text: &str) -> String {
    let mut joined = String::new();
    let mut gaps = 0;
    for line in text.lines() {
        if let Some(start) = line.strip_suffix('\\') {
            joined.push_str(start);
            gaps += 1;
        } else {
            joined.push_str(line);
            joined.push_str(&"\n".repeat(gaps + 1));
            gaps = 0;
        }
    }
    joined
}

/// The words behind `iosonde` for each call in a line of a shell.
fn invocations(line: &str, is_block: bool) -> Vec<Vec<&str>> {
    let line = line
        .trim()
        .trim_start_matches("$ ")
        .trim_start_matches("# ");
    let line = line.split(" #").next().unwrap_or_default();
    let mut found = Vec::new();
    for part in line.split(['|', ';', '&', '(', ')']) {
        let mut words = part
            .split_whitespace()
            .skip_while(|word| is_before_command(word));
        if words.next() == Some("iosonde") {
            found.push(words.collect());
        }
    }
    // Output in a block may begin with the program's name: `iosonde: error`. A span without more is
    // the name.
    found.retain(|words: &Vec<&str>| !words.is_empty() || !is_block);
    found
}

/// A variable, or a program that runs another one.
fn is_before_command(word: &str) -> bool {
    const RUNNERS: &[&str] = &["sudo", "time", "exec", "env", "setsid", "-w", "nohup"];
    RUNNERS.contains(&word) || word.contains('=') && !word.starts_with('-')
}

/// The fault of a call's words, if there is one; words that stand for others, such as `TARGET`, are
/// not checked.
fn fault_of(words: &[&str], program: &DocumentedProgram) -> Option<String> {
    let mut command = &program.command;
    let mut path = vec!["iosonde"];
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let word = word.trim_matches(|c| matches!(c, '[' | ']' | '"' | '\'' | '`' | ','));
        if word == "--" {
            return None;
        }
        if let Some(option) = word.strip_prefix("--") {
            let name = option
                .split(['=', '[', ']', '|'])
                .next()
                .unwrap_or_default();
            let is_name = name.starts_with(|c: char| c.is_ascii_lowercase());
            if is_name && !program.has_option(command, name) {
                return Some(format!("`{}` has no option --{name}", path.join(" ")));
            }
            let has_value = !option.contains('=') && path.len() == 1;
            words.next_if(|_| has_value && matches!(name, "label" | "store"));
        } else if let Some(child) = command.child(word) {
            command = child;
            path.push(&child.name);
        } else if !command.commands.is_empty() && is_command_name(word) {
            return Some(format!("`{}` has no command {word}", path.join(" ")));
        }
    }
    None
}

/// `probe`, but not `COMMAND`, `...`, `-p` or `run|list`.
fn is_command_name(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && word.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::super::files::SourceFile;
    use super::*;

    const PROGRAM: &str = r#"{"name": "iosonde", "options": ["help", "label"], "commands": [
        {"name": "probe", "aliases": ["p"], "options": ["help", "size"]},
        {"name": "fio", "options": ["target"], "takes_fio_options": true},
        {"name": "rados", "options": ["pool"], "commands": [{"name": "bench", "options": []}]}
    ]}"#;

    const OPTIONS: &str = "| option | value |\n|---|---|\n| `rw`, `readwrite` (all) | `x` |\n\
        | `name` | text |\n| `--cmdhelp` | yes |\n\n## Engines\n\n| `psync` | yes |\n";

    fn faults(text: &str) -> Vec<(usize, String)> {
        let file = SourceFile {
            path: "docs/a.md".to_owned(),
            text: text.to_owned(),
        };
        let program = DocumentedProgram::parse(PROGRAM, OPTIONS).unwrap();
        let findings = check(&MarkdownFile::read(&file), &program);
        findings
            .into_iter()
            .map(|finding| (finding.line, finding.text))
            .collect()
    }

    #[test]
    fn unknown_commands_and_options_are_reported() {
        let found = faults("Use `iosonde prob /x` here,\nor `iosonde probe --sise 4k`.");
        let first = (1, "`prob /x`: `iosonde` has no command prob".to_owned());
        let second = (
            2,
            "`probe --sise 4k`: `iosonde probe` has no option --sise".to_owned(),
        );
        assert_eq!(found, [first, second]);
        let block = "\n```sh\n# iosonde rados\n$ FOO=1 iosonde rados bunch | cat\n```\n";
        assert_eq!(
            faults(block)
                .iter()
                .map(|(line, _)| *line)
                .collect::<Vec<_>>(),
            [4]
        );
        assert_eq!(
            faults("    iosonde probe \\\n      --sise=4\n    iosonde prob\n").len(),
            2
        );
    }

    #[test]
    fn engines_and_values_are_no_options() {
        assert_eq!(faults("`iosonde fio --psync`").len(), 1);
        assert_eq!(faults("`iosonde fio --x=1`").len(), 1);
    }

    #[test]
    fn commands_and_options_that_exist_are_good() {
        for good in [
            "`iosonde probe [TARGET]... --size 4k`",
            "`iosonde p --help`",
            "`iosonde fio --readwrite=read`",
            "`iosonde COMMAND --help`",
            "`iosonde --label a=b fio --name=x --rw=read --target sc://x --cmdhelp`",
            "`iosonde rados bench`",
            "`iosonde`",
            "`cargo run iosonde prob`",
            "    iosonde: prob failed\n",
            "    iosonde probe /x     # iosonde prob\n",
        ] {
            assert_eq!(faults(good), [], "{good}");
        }
    }
}
