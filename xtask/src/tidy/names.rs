//! `basename`, `type-name`, `function-name`, `test-name`: names are unique and say what an item is.

use super::finding::TidyFinding;
use super::lexer::{Token, TokenKind};
use super::phrases::PhraseRule;
use super::rust_file::{Function, RustFile, production_files};
use std::collections::BTreeMap;

/// Basenames that many folders have.
const COMMON_BASENAMES: &[&str] = &["tests.rs", "main.rs", "lib.rs", "build.rs"];

/// Type names that may be defined more than once, each with its reason.
const SHARED_TYPE_NAMES: &[(&str, &str)] = &[
    ("Args", "clap: the arguments of the one command in the file"),
    (
        "Arguments",
        "clap: the arguments of the one task in the file",
    ),
    (
        "Result",
        "the alias of std::result::Result with a crate's own error",
    ),
];

/// Least characters in the name of a free function. A shorter name has no room for a verb and its
/// object.
const LEAST_CHARACTERS: usize = 5;

/// Shorter names of free functions that readers know.
const SHORT_FUNCTION_NAMES: &[&str] = &["gcd", "main", "max", "min", "new", "run"];

/// Words that no name of a test begins with: articles, pronouns, question words, conjunctions.
const FIRST_WORDS: &[&str] = &[
    "a",
    "all",
    "an",
    "and",
    "any",
    "anything",
    "as",
    "both",
    "but",
    "each",
    "every",
    "everything",
    "few",
    "he",
    "her",
    "his",
    "how",
    "i",
    "if",
    "it",
    "its",
    "many",
    "most",
    "neither",
    "no",
    "nobody",
    "none",
    "nor",
    "nothing",
    "one",
    "or",
    "our",
    "she",
    "since",
    "so",
    "some",
    "somebody",
    "something",
    "such",
    "that",
    "the",
    "their",
    "them",
    "there",
    "these",
    "they",
    "this",
    "those",
    "though",
    "unless",
    "until",
    "we",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whoever",
    "whom",
    "whose",
    "why",
    "you",
    "your",
];

const LEAST_WORDS: usize = 3;

/// Checks that each basename is used once below a folder of sources of each crate. An integration
/// test may have the name of the module that it tests.
pub(crate) fn check_basenames<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<TidyFinding> {
    let mut by_name: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let mut findings = Vec::new();
    for path in paths.filter(|path| path.ends_with(".rs")) {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == "mod.rs" {
            let text = "a module is `foo.rs` beside the folder `foo`".to_owned();
            findings.push(TidyFinding::new("basename", path, 1, text));
        } else if !COMMON_BASENAMES.contains(&name) {
            by_name
                .entry((folder_of_sources(path), name))
                .or_default()
                .push(path);
        }
    }
    for ((_, name), paths) in by_name.iter().filter(|(_, paths)| paths.len() > 1) {
        for path in paths {
            let others: Vec<_> = paths
                .iter()
                .filter(|other| *other != path)
                .copied()
                .collect();
            let text = format!("`{name}` is also {}", others.join(", "));
            findings.push(TidyFinding::new("basename", path, 1, text));
        }
    }
    findings
}

/// `crates/job/src`, `fuzz/targets`; all of `tests` is one.
fn folder_of_sources(path: &str) -> &str {
    let parts = match path.split('/').next() {
        Some("crates") => 3,
        Some("tests") => 1,
        _ => 2,
    };
    path.match_indices('/')
        .nth(parts - 1)
        .map_or(path, |(at, _)| &path[..at])
}

/// Checks that each type name of production code is defined once in the workspace.
pub(crate) fn check_types(files: &[RustFile]) -> Vec<TidyFinding> {
    let mut by_name: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files {
        let types = file.types.iter().filter(|defined| !defined.is_test);
        for defined in types.filter(|defined| !is_shared(&defined.name)) {
            by_name
                .entry(&defined.name)
                .or_default()
                .push((&file.path, defined.line));
        }
    }
    let mut findings = Vec::new();
    for (name, places) in by_name.iter().filter(|(_, places)| places.len() > 1) {
        for (path, line) in places {
            let other = places.iter().find(|place| *place != &(*path, *line));
            let (other, at) = other.unwrap_or(&("the same line", 0));
            let text = format!(
                "`{name}` is defined {} times, also in {other}:{at}",
                places.len()
            );
            findings.push(TidyFinding::new("type-name", path, *line, text));
        }
    }
    findings
}

fn is_shared(name: &str) -> bool {
    SHARED_TYPE_NAMES.iter().any(|(shared, _)| *shared == name)
}

/// Checks the names of the free functions of production code. Methods may be short: their receiver
/// is the object.
pub(crate) fn check_functions(files: &[RustFile]) -> Vec<TidyFinding> {
    let is_short = |function: &&Function| {
        let is_production = function.is_free && !function.is_test;
        let is_known = SHORT_FUNCTION_NAMES.contains(&function.name.as_str());
        is_production && !is_known && function.name.chars().count() < LEAST_CHARACTERS
    };
    let mut findings = Vec::new();
    // A fuzz target has the name of the input that it reads.
    let files = production_files(files).into_iter();
    for file in files.filter(|file| file.krate != "fuzz") {
        for function in file.functions.iter().filter(is_short) {
            let text = format!(
                "`{}` has fewer than {LEAST_CHARACTERS} characters: name the verb and its object",
                function.name
            );
            let (path, line) = (&file.path, function.line);
            findings.push(TidyFinding::new("function-name", path, line, text));
        }
    }
    findings
}

/// Checks the names of a file's tests, also of those within macros.
pub(crate) fn check_tests(
    path: &str,
    tokens: &[Token<'_>],
    phrases: &PhraseRule,
) -> Vec<TidyFinding> {
    let tests = names_of_tests(tokens);
    let findings = tests.into_iter().filter_map(|(name, line)| {
        let reason = fault_of_test_name(name, phrases)?;
        Some(TidyFinding::new(
            "test-name",
            path,
            line,
            format!("`{name}` {reason}"),
        ))
    });
    findings.collect()
}

/// The names that follow an attribute `#[test]`, or one whose path ends so.
fn names_of_tests<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let code: Vec<_> = tokens
        .iter()
        .filter(|token| token.kind != TokenKind::Comment)
        .collect();
    let mut names = Vec::new();
    for (at, window) in code.windows(3).enumerate() {
        let is_test = matches!(window[0].text, "[" | ":") && window[1].text == "test";
        if !is_test || window[2].text != "]" {
            continue;
        }
        let rest = &code[at..];
        let name = rest
            .iter()
            .position(|token| token.text == "fn")
            .and_then(|at| rest.get(at + 1));
        // A macro that makes tests has `$name` there.
        let name = name.filter(|token| token.kind == TokenKind::Word);
        names.extend(name.map(|token| (token.text, token.line)));
    }
    names
}

fn fault_of_test_name(name: &str, phrases: &PhraseRule) -> Option<String> {
    let words: Vec<_> = name.split('_').filter(|word| !word.is_empty()).collect();
    let first = words.first().copied().unwrap_or_default();
    if words.len() < LEAST_WORDS {
        return Some("has less than three words: subject_condition_result".to_owned());
    }
    if FIRST_WORDS.contains(&first) {
        return Some(format!("begins with `{first}`, not with its subject"));
    }
    let (word, advice) = phrases.word_in_name(name)?;
    Some(format!("holds \"{word}\": {advice}"))
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::super::syntax_reader::read_for_test;
    use super::*;

    #[test]
    fn basenames_used_twice_in_a_crate_are_reported() {
        let found = |paths: &[&str]| check_basenames(paths.iter().copied()).len();
        assert_eq!(
            found(&["crates/job/src/a/x.rs", "crates/job/src/b/x.rs"]),
            2
        );
        assert_eq!(found(&["crates/job/src/x.rs", "crates/study/src/x.rs"]), 0);
        assert_eq!(found(&["crates/job/src/x.rs", "crates/job/tests/x.rs"]), 0);
        assert_eq!(
            found(&["crates/job/src/a/tests.rs", "crates/job/src/b/tests.rs"]),
            0
        );
        assert_eq!(found(&["tests/kube/x.rs", "tests/ceph/x.rs"]), 2);
        assert_eq!(found(&["crates/job/src/a/mod.rs"]), 1);
    }

    #[test]
    fn type_names_defined_twice_are_reported() {
        let job = "pub struct Plan;\nmod a { enum Plan {} }\ntype Result = ();\nstruct Job;\n";
        let study = "trait Plan {}\ntype Result = ();\n#[cfg(test)]\nmod t { struct Job; }\n";
        let files = [
            read_for_test("crates/job/src/lib.rs", job),
            read_for_test("crates/study/src/lib.rs", study),
        ];
        let findings = check_types(&files);
        let places: Vec<_> = findings
            .iter()
            .map(|f| (f.krate.as_str(), f.line))
            .collect();
        assert_eq!(places, [("job", 1), ("job", 2), ("study", 1)]);
        assert_eq!(check_types(&files[..0]), []);
    }

    #[test]
    fn short_names_of_free_functions_are_reported() {
        let text = "\
fn text() {}
pub fn read<T>() {
    fn at() {}
}
mod inner { const fn row() {} }
fn value() {}
fn main() {}
pub(crate) fn run() {}
";
        let found = |path: &str, text: &str| -> Vec<usize> {
            let files = [
                read_for_test("crates/job/src/lib.rs", "#[cfg(test)]\nmod fake;\n"),
                read_for_test(path, text),
            ];
            let findings = check_functions(&files).into_iter();
            findings.map(|finding| finding.line).collect()
        };
        assert_eq!(found("crates/job/src/a.rs", text), [1, 2, 3, 5]);
        assert_eq!(found("xtask/src/a.rs", text), [1, 2, 3, 5]);
        for test in [
            "crates/job/src/fake.rs",
            "crates/job/src/a/tests.rs",
            "crates/job/tests/a.rs",
            "fuzz/src/a.rs",
        ] {
            assert_eq!(found(test, text), [0; 0], "{test}");
        }
        let in_test = "#[cfg(test)]\nmod tests { fn text() {} }\n#[cfg(test)]\nfn row() {}\n";
        assert_eq!(found("crates/job/src/a.rs", in_test), [0; 0]);
    }

    #[test]
    fn short_names_of_methods_are_not_reported() {
        let text = "\
impl Span { fn end(&self) {} }
trait Table { fn rows(&self); fn row(&self) {} }
impl Table for Span { fn rows(&self) {} }
";
        let file = read_for_test("crates/job/src/a.rs", text);
        assert_eq!(check_functions(&[file]), []);
    }

    #[test]
    fn test_names_without_subject_are_reported() {
        let phrases = PhraseRule::new();
        let fault = |name: &str| fault_of_test_name(name, &phrases);
        assert_eq!(fault("ring_drop_waits_for_inflight"), None);
        assert!(fault("ring_drop").unwrap().contains("three words"));
        assert!(fault("what_is_seen_counts").unwrap().contains("`what`"));
        assert!(
            fault("run_ends_for_whoever_asks")
                .unwrap()
                .contains("whoever")
        );
        assert!(fault("job_waits_in_vain").unwrap().contains("vain"));
        assert!(
            fault("end_of_run_it_is_said_of")
                .unwrap()
                .contains("is said")
        );
    }

    #[test]
    fn tests_are_found_by_their_attribute() {
        let text = "\
#[test]
#[ignore = \"long\"]
fn one() {}
proptest! { #[test] fn two(a in b()) {} }
#[tokio::test]
async fn three() {}
#[cfg(test)]
fn four() {}
macro_rules! made { ($name:ident) => { #[test] fn $name() {} } }
";
        let tokens = tokens(text);
        let names: Vec<_> = names_of_tests(&tokens)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["one", "two", "three"]);
        let found = check_tests("crates/job/src/a.rs", &tokens, &PhraseRule::new());
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [3, 4, 6]);
    }
}
