//! `phrases`: metaphors in names, and banned phrases in comments, literals and documents.

use super::files::{SourceFile, extension, is_shell_script};
use super::finding::TidyFinding;
use super::lexer::{Token, TokenKind};
use super::markdown::MarkdownFile;
use super::phrase_table::{
    FUNCTION_NAMES, IDENTIFIER_WORDS, IDENTIFIERS, PHRASES, PhraseEntry, TYPE_NAMES,
};
use std::collections::{HashMap, HashSet};

const RULE: &str = "phrases";

/// Documents that are written from tables of the code, where their phrases are found.
const GENERATED: &[&str] = &["docs/fio-options.md", "docs/fio-examples.md"];

/// Files of this check whose subject are the words themselves.
const EXCLUDED: &[&str] = &["phrase_table.rs", "phrases.rs", "names.rs"];

/// The tables, arranged for look-ups.
pub(crate) struct PhraseRule {
    identifiers: HashMap<&'static str, &'static str>,
    type_names: HashMap<&'static str, &'static str>,
    function_names: HashMap<&'static str, &'static str>,
    identifier_words: HashMap<&'static str, &'static str>,
    /// Phrases by their first word; `^` counts as one.
    phrases: HashMap<&'static str, Vec<(Vec<&'static str>, PhraseEntry)>>,
}

/// A word of prose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProseWord {
    /// In lower case; `^` at the start of a sentence, `$` at a mark that ends a clause, `?` at the
    /// end of a question.
    pub(crate) word: String,
    pub(crate) line: usize,
}

/// Kind of an identifier, by the keyword before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum NameKind {
    /// The definition of a type.
    Type,
    /// The definition of a function.
    Function,
    /// Any other use.
    Other,
}

impl NameKind {
    fn after(keyword: &str) -> Self {
        match keyword {
            "struct" | "enum" | "trait" | "type" | "union" => NameKind::Type,
            "fn" => NameKind::Function,
            _ => NameKind::Other,
        }
    }
}

impl PhraseRule {
    pub(crate) fn new() -> Self {
        let map = |table: &[PhraseEntry]| table.iter().copied().collect();
        let mut phrases: HashMap<_, Vec<_>> = HashMap::new();
        for entry in PHRASES {
            let words: Vec<_> = entry.0.split(' ').collect();
            phrases.entry(words[0]).or_default().push((words, *entry));
        }
        // Of two phrases that begin alike, the longer one is reported.
        for group in phrases.values_mut() {
            group.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        }
        PhraseRule {
            identifiers: map(IDENTIFIERS),
            type_names: map(TYPE_NAMES),
            function_names: map(FUNCTION_NAMES),
            identifier_words: map(IDENTIFIER_WORDS),
            phrases,
        }
    }

    /// Whether the rule looks into the file.
    fn applies_to(path: &str) -> bool {
        !GENERATED.contains(&path)
            && !path
                .strip_prefix("xtask/src/tidy/")
                .is_some_and(|name| EXCLUDED.contains(&name))
    }

    /// Checks names, comments and literals of a Rust file.
    pub(crate) fn check_rust(&self, path: &str, tokens: &[Token<'_>]) -> Vec<TidyFinding> {
        if !Self::applies_to(path) {
            return Vec::new();
        }
        let mut findings = self.check_names(path, tokens);
        let mut prose = Vec::new();
        let mut last_comment = None;
        for token in tokens {
            match token.kind {
                TokenKind::Comment => {
                    // A comment of several lines is one text.
                    let follows = last_comment.is_some_and(|line| line + 1 == token.line);
                    add_comment(&mut prose, token.text, token.line, !follows);
                    last_comment = Some(token.line);
                }
                TokenKind::Text => {
                    add_literal(&mut prose, token.text, token.line);
                    last_comment = None;
                }
                _ => last_comment = None,
            }
        }
        findings.extend(self.check_prose(path, &prose));
        findings
    }

    /// Checks comments of scripts and of other languages: lines that begin with a mark of a
    /// comment.
    pub(crate) fn check_lines(&self, file: &SourceFile) -> Vec<TidyFinding> {
        let marks: &[&str] = match extension(&file.path) {
            "ts" | "go" => &["//", "/*", "*"],
            "toml" => &["#"],
            _ if is_shell_script(&file.path, &file.text) => &["#"],
            _ => return Vec::new(),
        };
        let mut prose = Vec::new();
        let mut last_comment = None;
        for (line, text) in file.text.lines().enumerate() {
            let text = text.trim_start();
            if marks.iter().any(|mark| text.starts_with(mark)) && !text.starts_with("#!") {
                let starts = last_comment.is_none_or(|last| last + 1 < line);
                add_comment(&mut prose, text, line + 1, starts);
                last_comment = Some(line);
            }
        }
        self.check_prose(&file.path, &prose)
    }

    /// Checks the prose of a document.
    pub(crate) fn check_markdown(&self, document: &MarkdownFile) -> Vec<TidyFinding> {
        if !Self::applies_to(&document.path) {
            return Vec::new();
        }
        let mut prose = Vec::new();
        for (text, line) in &document.prose {
            add_words(&mut prose, text, *line);
        }
        self.check_prose(&document.path, &prose)
    }

    /// The first word of a name, in snake case, that no identifier may have.
    pub(crate) fn word_in_name(&self, name: &str) -> Option<(String, &'static str)> {
        self.metaphor_in(name).or_else(|| {
            let words = words_of_identifier(name).into_iter();
            let prose: Vec<_> = words.map(|word| ProseWord { word, line: 1 }).collect();
            let found = (0..prose.len()).find_map(|at| self.phrase_at(&prose, at));
            found.map(|((phrase, advice), _)| (phrase.to_owned(), advice))
        })
    }

    /// One finding for each name of the file, where it is first.
    fn check_names(&self, path: &str, tokens: &[Token<'_>]) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        let (mut checked, mut reported) = (HashSet::new(), HashSet::new());
        let mut before = "";
        for token in tokens
            .iter()
            .filter(|token| token.kind != TokenKind::Comment)
        {
            let kind = NameKind::after(std::mem::replace(&mut before, token.text));
            if token.kind != TokenKind::Word || !checked.insert((kind, token.text)) {
                continue;
            }
            if let Some((word, advice)) = self.fault_of_name(kind, token.text)
                && reported.insert(token.text)
            {
                let text = format!("name `{}`: for `{word}` write {advice}", token.text);
                findings.push(TidyFinding::new(RULE, path, token.line, text));
            }
        }
        findings
    }

    /// The metaphor in a name, and what to write instead.
    fn fault_of_name(&self, kind: NameKind, name: &str) -> Option<(String, &'static str)> {
        let defined = match kind {
            NameKind::Type => self.type_names.get(name),
            NameKind::Function => self.function_names.get(name),
            NameKind::Other => None,
        };
        let advice = defined.or_else(|| self.identifiers.get(name));
        let whole = advice.map(|advice| (name.to_owned(), *advice));
        whole.or_else(|| self.metaphor_in(name))
    }

    fn metaphor_in(&self, name: &str) -> Option<(String, &'static str)> {
        words_of_identifier(name).into_iter().find_map(|word| {
            let advice = self.identifier_words.get(word.as_str())?;
            Some((word, *advice))
        })
    }

    fn check_prose(&self, path: &str, prose: &[ProseWord]) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        let mut at = 0;
        while at < prose.len() {
            let found = self.phrase_at(prose, at);
            let Some(((phrase, advice), length)) = found.filter(|_| !is_question(&prose[at..]))
            else {
                at += 1;
                continue;
            };
            let shown = phrase.trim_start_matches("^ ").trim_end_matches(" $");
            let place = if phrase.starts_with('^') {
                " at the start of a sentence"
            } else {
                ""
            };
            let text = format!("\"{shown}\"{place}: {advice}");
            let first = at + usize::from(phrase.starts_with('^'));
            findings.push(TidyFinding::new(RULE, path, prose[first].line, text));
            at += length;
        }
        findings
    }

    /// The phrase that begins at a word, and its number of words.
    fn phrase_at(&self, prose: &[ProseWord], at: usize) -> Option<(PhraseEntry, usize)> {
        let group = self.phrases.get(prose[at].word.as_str())?;
        group.iter().find_map(|(words, entry)| {
            let rest = prose.get(at..at + words.len())?;
            let is_same = rest
                .iter()
                .zip(words)
                .all(|(prose, word)| prose.word == *word);
            is_same.then_some((*entry, words.len()))
        })
    }
}

/// Whether the words begin with a sentence that is a question, which has a question word first.
fn is_question(prose: &[ProseWord]) -> bool {
    let mut words = prose.iter().map(|prose| prose.word.as_str());
    words.next() == Some("^") && words.find(|word| matches!(*word, "^" | "?")) == Some("?")
}

/// `CrewBook` and `crew_book` as `crew` and `book`.
fn words_of_identifier(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in name.chars() {
        if (c == '_' || c.is_uppercase())
            && !word.is_empty()
            && !word.chars().all(char::is_uppercase)
        {
            words.push(std::mem::take(&mut word).to_lowercase());
        }
        if c == '_' {
            words.push(std::mem::take(&mut word).to_lowercase());
        } else {
            word.push(c);
        }
    }
    words.push(word.to_lowercase());
    words.retain(|word| !word.is_empty());
    words
}

/// Adds the words of a comment, or of the next line of one.
fn add_comment(prose: &mut Vec<ProseWord>, text: &str, line: usize, starts: bool) {
    for (index, text) in text.lines().enumerate() {
        let inner = text.trim_start_matches([' ', '\t', '/', '!', '*', '#']);
        let is_new = starts && index == 0;
        if is_new || inner.trim().is_empty() || inner.starts_with(['-', '*']) {
            end_clause(prose, line + index);
            start_sentence(prose, line + index);
        }
        add_words_of_line(prose, inner, line + index, true);
    }
}

/// Adds the words of a literal. A sentence that begins in one may be a question to the user, so
/// that starts are not noted.
fn add_literal(prose: &mut Vec<ProseWord>, text: &str, line: usize) {
    end_clause(prose, line);
    // The name of the user, or of a flag.
    if text.contains(' ') {
        for (index, text) in text.lines().enumerate() {
            let text = without_placeholders(text.trim_end_matches('\\'));
            add_words_of_line(prose, &text, line + index, false);
        }
    }
    end_clause(prose, line);
}

/// Replaces the `{name}` of a format string, which is a name of the code, with `{}`.
fn without_placeholders(text: &str) -> String {
    let mut kept = String::new();
    let mut is_inside = false;
    for c in text.chars() {
        is_inside &= c != '}';
        if !is_inside {
            kept.push(c);
        }
        is_inside |= c == '{';
    }
    kept
}

/// Adds a paragraph of a document.
fn add_words(prose: &mut Vec<ProseWord>, text: &str, line: usize) {
    end_clause(prose, line);
    for (index, text) in text.lines().enumerate() {
        add_words_of_line(prose, text, line + index, false);
    }
    end_clause(prose, line);
}

fn end_clause(prose: &mut Vec<ProseWord>, line: usize) {
    if prose.last().is_some_and(|last| last.word != "$") {
        prose.push(ProseWord {
            word: "$".to_owned(),
            line,
        });
    }
}

fn start_sentence(prose: &mut Vec<ProseWord>, line: usize) {
    prose.push(ProseWord {
        word: "^".to_owned(),
        line,
    });
}

/// Adds the words of a line without what is in backticks. `has_starts` notes where sentences begin.
fn add_words_of_line(prose: &mut Vec<ProseWord>, text: &str, line: usize, has_starts: bool) {
    for (index, text) in text.split('`').enumerate() {
        if index % 2 == 1 {
            end_clause(prose, line);
            continue;
        }
        let mut word = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let is_inner =
                matches!(c, '\'' | '-') && chars.peek().is_some_and(|next| next.is_alphanumeric());
            if c.is_alphanumeric() || c == '_' || is_inner && !word.is_empty() {
                word.extend(c.to_lowercase());
                continue;
            }
            add_word(prose, &mut word, line);
            let is_end = matches!(c, '.' | '?' | '!');
            if c == '?' {
                prose.push(ProseWord {
                    word: "?".to_owned(),
                    line,
                });
            }
            if is_end && has_starts && chars.peek().is_none_or(|next| *next == ' ') {
                end_clause(prose, line);
                start_sentence(prose, line);
            } else if !c.is_whitespace() {
                end_clause(prose, line);
            }
        }
        add_word(prose, &mut word, line);
    }
}

fn add_word(prose: &mut Vec<ProseWord>, word: &mut String, line: usize) {
    if let Some(owner) = word.strip_suffix("'s") {
        *word = owner.to_owned();
    }
    if !word.is_empty() {
        prose.push(ProseWord {
            word: std::mem::take(word),
            line,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let findings = PhraseRule::new().check_rust("crates/job/src/a.rs", &tokens(text));
        findings
            .into_iter()
            .map(|finding| (finding.line, finding.text))
            .collect()
    }

    fn is_found(text: &str) -> bool {
        !found(text).is_empty()
    }

    #[test]
    fn metaphors_in_names_are_reported_once_with_their_advice() {
        let text = "struct Estate;\nfn f(a: Estate) -> Estate { a }\n";
        let advice = "name `Estate`: for `Estate` write CephResources".to_owned();
        assert_eq!(found(text), [(1, advice)]);
        assert!(is_found("let crew_size = 1;"));
        assert!(is_found("struct MyCrew;"));
        assert!(is_found("const NOBODY: u32 = 1;"));
        assert!(!is_found("let screw = Coordinator::new();"));
    }

    #[test]
    fn names_of_types_and_functions_are_reported_where_they_are_defined() {
        assert!(is_found("struct Found;"));
        assert!(!is_found("let a = Entry::Found;"));
        assert!(is_found("fn look() {}"));
        assert!(!is_found("a.look();"));
    }

    #[test]
    fn phrases_are_found_across_lines_and_not_across_clauses() {
        assert_eq!(found("// The kernel is\n// told of it.")[0].0, 2);
        assert!(is_found("let a = \"waits in \\\n vain\";"));
        assert!(is_found("/// It leaves it at that.\nfn f() {}"));
        assert!(!is_found("/// It stops at that offset.\nfn f() {}"));
        assert!(!is_found("/// It waits in, vain."));
        assert!(!is_found("/// The user `nobody` has no rights."));
        assert!(!is_found("let user = \"nobody\";"));
        assert!(!is_found("let text = format!(\"{told} was {heard}\");"));
        assert!(is_found("let text = format!(\"{a} was told {b}\");"));
        assert!(is_found("// After a look at it."));
        assert!(is_found("// That is nobody's."));
        assert!(!is_found("// After a look-up of it."));
    }

    #[test]
    fn sentences_of_comments_begin_with_a_noun() {
        assert!(is_found("/// What the worker did.\nfn f() {}"));
        assert!(is_found(
            "/// The result. Who waits is a thread.\nfn f() {}"
        ));
        assert!(!is_found("/// Reports what the worker did.\nfn f() {}"));
        assert!(!is_found("let question = \"What was promised?\";"));
        assert!(!is_found(
            "/// What was promised, and kept? The limits of a vendor."
        ));
        assert!(is_found("/// What was promised. Is it kept?"));
    }

    #[test]
    fn comments_of_scripts_are_read() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let rule = PhraseRule::new();
        let script = file("tests/a.sh", "#!/bin/sh\n# waits in\n# vain\necho nobody\n");
        let lines: Vec<_> = rule.check_lines(&script).iter().map(|f| f.line).collect();
        assert_eq!(lines, [2]);
        assert_eq!(
            rule.check_lines(&file("web/src/a.ts", "// in vain\n"))
                .len(),
            1
        );
        assert_eq!(
            rule.check_lines(&file("web/src/a.ts", "const nobody = 1;\n"))
                .len(),
            0
        );
    }

    #[test]
    fn words_of_identifiers_are_split() {
        assert_eq!(words_of_identifier("CrewBook"), ["crew", "book"]);
        assert_eq!(words_of_identifier("crew_book2"), ["crew", "book2"]);
        assert_eq!(words_of_identifier("MAX_CREW"), ["max", "crew"]);
    }
}
