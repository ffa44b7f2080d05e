//! `line-width`, `file-length`, `function-length`: limits on lines, files and functions.

use super::files::{SourceFile, extension, is_shell_script, is_test_target};
use super::finding::TidyFinding;
use super::lexer::{Token, TokenKind};
use super::rust_file::RustFile;
use std::collections::HashSet;

const WIDTH_COLUMNS: usize = 100;
const FILE_LINES: usize = 500;
/// For tests, and for tables of data.
const LONG_FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 70;

/// Folders of tables of data: rows of the same form.
const TABLES: &[&str] = &["crates/job/src/options/"];

/// Checks the lines of code and of scripts. `tokens` are those of a Rust file, else none.
///
/// Two kinds of lines cannot be broken and are left out: a comment that is one word, such as an
/// address, and the inside of a string that begins in an earlier line.
pub(crate) fn check_width(file: &SourceFile, tokens: &[Token<'_>]) -> Vec<TidyFinding> {
    let is_code = matches!(extension(&file.path), "rs" | "ts" | "go");
    if !is_code && !is_shell_script(&file.path, &file.text) {
        return Vec::new();
    }
    let inside_strings = lines_inside_strings(tokens);
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        // A character has one byte or more.
        if line.len() <= WIDTH_COLUMNS {
            continue;
        }
        let width = line.chars().count();
        let text = line.trim_start();
        let is_comment = text.starts_with("//") || text.starts_with('#');
        let is_one_word = text.split_whitespace().nth(2).is_none();
        let cannot_break = is_comment && is_one_word || inside_strings.contains(&(index + 1));
        if width > WIDTH_COLUMNS && !cannot_break {
            let text = format!("{width} columns");
            findings.push(TidyFinding::new("line-width", &file.path, index + 1, text));
        }
    }
    findings
}

/// Lines that a string fills from their first column, without a backslash that joins them to the
/// line before.
fn lines_inside_strings(tokens: &[Token<'_>]) -> HashSet<usize> {
    let mut inside = HashSet::new();
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Text) {
        let mut is_joined = true;
        for (index, line) in token.text.split('\n').enumerate() {
            if !is_joined {
                inside.insert(token.line + index);
            }
            is_joined = line.ends_with('\\') && !token.text.starts_with('r');
        }
    }
    inside
}

/// Checks the length of a Rust file.
pub(crate) fn check_file(file: &RustFile) -> Option<TidyFinding> {
    let is_long_kind = is_test_target(&file.path)
        || file.path.ends_with("/tests.rs")
        || file.path.ends_with("_tests.rs")
        || TABLES.iter().any(|folder| file.path.starts_with(folder));
    let most = if is_long_kind {
        LONG_FILE_LINES
    } else {
        FILE_LINES
    };
    let text = format!("{} lines, at most {most}", file.lines);
    (file.lines > most).then(|| TidyFinding::new("file-length", &file.path, 1, text))
}

/// Checks the functions of a Rust file. Closures and inner functions count with the function around
/// them.
pub(crate) fn check_functions(file: &RustFile) -> Vec<TidyFinding> {
    let long = file
        .functions
        .iter()
        .filter(|function| function.lines > FUNCTION_LINES);
    let finding = |function: &super::rust_file::Function| {
        let text = format!(
            "`{}` has {} lines, at most {FUNCTION_LINES}",
            function.name, function.lines
        );
        TidyFinding::new("function-length", &file.path, function.line, text)
    };
    long.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::super::syntax_reader::read_for_test;
    use super::*;

    fn wide_lines(path: &str, text: &str) -> Vec<usize> {
        let file = SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let tokens = if path.ends_with(".rs") {
            tokens(text)
        } else {
            Vec::new()
        };
        check_width(&file, &tokens)
            .into_iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn lines_over_the_width_are_reported() {
        let wide = format!("// {}é", "x ".repeat(49));
        let good = format!("// {}", "x ".repeat(48));
        assert_eq!(wide.chars().count(), 102);
        assert_eq!(
            wide_lines("crates/job/src/a.rs", &format!("{good}\n{wide}\n")),
            [2]
        );
        assert_eq!(wide_lines("web/src/a.ts", &wide), [1]);
        assert_eq!(wide_lines("test", &format!("#!/bin/bash\n# {wide}\n")), [2]);
        assert_eq!(wide_lines("docs/a.md", &wide), [0; 0]);
    }

    #[test]
    fn lines_that_cannot_be_broken_are_left_out() {
        let address = format!("/// <https://example.com/{}>\n", "x".repeat(100));
        assert_eq!(wide_lines("crates/job/src/a.rs", &address), [0; 0]);
        let expected = format!("let a = \"first\n{}\n\";\n", "x ".repeat(60));
        assert_eq!(wide_lines("crates/job/src/a.rs", &expected), [0; 0]);
        let joined = format!("let a = \"first \\\n{}\";\n", "x ".repeat(60));
        assert_eq!(wide_lines("crates/job/src/a.rs", &joined), [2]);
    }

    #[test]
    fn files_over_their_length_are_reported() {
        let lines =
            |path: &str, count: usize| check_file(&read_for_test(path, &"//\n".repeat(count)));
        assert!(lines("crates/job/src/a.rs", 500).is_none());
        assert!(lines("crates/job/src/a.rs", 501).is_some());
        assert!(lines("crates/job/src/options/a.rs", 700).is_none());
        assert!(lines("crates/job/src/a/tests.rs", 700).is_none());
        assert!(lines("crates/job/tests/a.rs", 701).is_some());
    }

    #[test]
    fn functions_over_their_length_are_reported() {
        let function =
            |lines: usize| format!("/// A.\n#[inline]\nfn a() {{{}}}\n", "\n".repeat(lines - 1));
        let found = |text: &str| check_functions(&read_for_test("crates/job/src/a.rs", text)).len();
        assert_eq!(found(&function(70)), 0);
        assert_eq!(found(&function(71)), 1);
        assert_eq!(found(&format!("impl A {{ {} }}", function(71))), 1);
        assert_eq!(found(&format!("trait A {{ {} }}", function(71))), 1);
    }
}
