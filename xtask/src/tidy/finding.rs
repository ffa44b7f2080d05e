//! A finding of a rule, and the counts that the baseline holds.

use std::collections::BTreeMap;

/// Each rule with one line about what it counts, in the order of the table.
pub(crate) const RULES: &[(&str, &str)] = &[
    ("line-width", "lines over 100 columns"),
    (
        "file-length",
        "files over 500 lines, tests and tables over 700",
    ),
    ("function-length", "functions over 70 lines"),
    ("phrases", "metaphors and banned phrases"),
    ("basename", "files of one name in a crate, and mod.rs"),
    ("type-name", "type names defined more than once"),
    ("function-name", "free functions of fewer than 5 characters"),
    ("test-name", "tests not named subject_condition_result"),
    ("crate-size", "hundreds of lines above a crate's target"),
    ("import-circle", "modules in an import circle"),
    ("unused-public", "public items that no other crate uses"),
    ("unsafe-place", "unsafe outside of sys, or without SAFETY"),
    (
        "assertion-density",
        "assertions missing to 3 per 1,000 lines",
    ),
    ("broken-link", "links and paths in documents to nothing"),
    ("unknown-command", "commands and options that do not exist"),
];

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    /// Name of the rule, one of [`RULES`].
    pub(crate) rule: &'static str,
    /// The crate, or `docs`, `web`, `root`.
    pub(crate) krate: String,
    /// Path below the root of the repository.
    pub(crate) path: String,
    /// The first line of a file is 1. A finding about a whole file or crate has line 1.
    pub(crate) line: usize,
    /// Amount that the finding adds to the count: 1, or the excess over a target.
    pub(crate) weight: usize,
    /// Description of the fault, in one line.
    pub(crate) text: String,
}

impl TidyFinding {
    /// A finding that counts once, in the crate that its file belongs to.
    pub(crate) fn new(rule: &'static str, path: &str, line: usize, text: String) -> Self {
        debug_assert!(RULES.iter().any(|(known, _)| *known == rule));
        TidyFinding {
            rule,
            krate: super::files::crate_of(path).to_owned(),
            path: path.to_owned(),
            line,
            weight: 1,
            text,
        }
    }
}

/// FindingCounts by rule, then by crate. Zero counts have no entry.
pub(crate) type FindingCounts = BTreeMap<String, BTreeMap<String, usize>>;

/// Adds up findings.
pub(crate) fn count(findings: &[TidyFinding]) -> FindingCounts {
    let mut counts = FindingCounts::new();
    for finding in findings {
        let crates = counts.entry(finding.rule.to_owned()).or_default();
        *crates.entry(finding.krate.clone()).or_default() += finding.weight;
    }
    for crates in counts.values_mut() {
        crates.retain(|_, count| *count > 0);
    }
    counts.retain(|_, crates| !crates.is_empty());
    counts
}
