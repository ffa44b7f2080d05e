//! `unsafe-place`: unsafe code is in `sys` modules, and says why it is sound.

use super::finding::TidyFinding;
use super::lexer::{Token, TokenKind};
use super::rust_file::RustFile;
use std::path::Path;

const RULE: &str = "unsafe-place";

/// Least words of a SAFETY comment: fewer give no reason.
const LEAST_WORDS: usize = 5;

/// Checks the unsafe code of a file. Tests may have it anywhere, with a reason.
pub(crate) fn check(file: &RustFile, tokens: &[Token<'_>]) -> Vec<TidyFinding> {
    let is_sys = Path::new(&file.path)
        .iter()
        .any(|part| part == "sys" || part == "sys.rs");
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != TokenKind::Word || token.text != "unsafe" {
            continue;
        }
        let next = |count: usize| tokens.get(at + count).map_or("", |token| token.text);
        // An attribute `unsafe(...)`, or the type of a pointer to a function.
        let is_type = next(1) == "fn" && next(2) == "(" || next(1) == "extern" && next(4) == "(";
        if next(1) == "(" || is_type {
            continue;
        }
        if !is_sys && !file.is_test_line(token.line) {
            let text = "unsafe code outside of a module `sys`".to_owned();
            findings.push(TidyFinding::new(RULE, &file.path, token.line, text));
        }
        let words = words_of_reason(&tokens[..at]);
        if matches!(next(1), "{" | "impl") && words < LEAST_WORDS {
            let text = format!("the SAFETY comment has {words} words, at least {LEAST_WORDS}");
            findings.push(TidyFinding::new(RULE, &file.path, token.line, text));
        }
    }
    findings
}

/// Words of the SAFETY comment before the statement that the tokens end in.
fn words_of_reason(before: &[Token<'_>]) -> usize {
    let mut comments = Vec::new();
    for token in before.iter().rev() {
        match token.kind {
            TokenKind::Comment => comments.push(token.text),
            TokenKind::Mark if matches!(token.text, "{" | "}" | ";") => break,
            _ => {}
        }
    }
    comments.reverse();
    let text = comments.join("\n");
    let Some((_, reason)) = text.split_once("SAFETY:") else {
        return 0;
    };
    let words = reason.split_whitespace();
    words
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::super::syntax_reader::read_for_test;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, bool)> {
        let findings = check(&read_for_test(path, text), &tokens(text));
        findings
            .into_iter()
            .map(|f| (f.line, f.text.contains("SAFETY")))
            .collect()
    }

    const GOOD: &str = "\
fn f() {
    // SAFETY: the pointer is valid,
    // as the caller has promised.
    let a = g(unsafe { h() });
}
// SAFETY: all fields may be sent between threads.
#[allow(unsafe_code)]
unsafe impl Send for A {}
type Callback = unsafe extern \"C\" fn(i32);
";

    #[test]
    fn unsafe_with_its_reason_in_sys_is_good() {
        assert_eq!(found("crates/engine/src/sys/ring.rs", GOOD), []);
        assert_eq!(found("crates/engine/tests/ring.rs", GOOD), []);
    }

    #[test]
    fn unsafe_outside_of_sys_is_reported() {
        assert_eq!(
            found("crates/engine/src/ring.rs", GOOD),
            [(4, false), (8, false)]
        );
        assert_eq!(
            found("crates/engine/src/ring.rs", "unsafe fn f() {}"),
            [(1, false)]
        );
        let test = "\
#[cfg(test)]
mod tests {
    // SAFETY: one two three four five.
    const A: () = unsafe { b() };
}
";
        assert_eq!(found("crates/engine/src/ring.rs", test), []);
    }

    #[test]
    fn unsafe_without_a_reason_is_reported() {
        let path = "crates/engine/src/sys/ring.rs";
        assert_eq!(found(path, "fn f() { unsafe { g() } }"), [(1, true)]);
        let short = "fn f() {\n// SAFETY: as above.\nunsafe { g() }\n}";
        assert_eq!(found(path, short), [(3, true)]);
        let shared =
            "fn f() {\n// SAFETY: one two three four five.\nunsafe { g() }\nunsafe { h() }\n}";
        assert_eq!(found(path, shared), [(4, true)]);
    }
}
