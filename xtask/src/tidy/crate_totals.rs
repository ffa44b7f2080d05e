//! `crate-size` and `assertion-density`: sums over the production lines of a crate.

use super::finding::TidyFinding;
use super::rust_file::{RustFile, production_files};
use std::collections::BTreeMap;

/// Most production lines of each crate. A crate that has become larger does more than one thing.
const TARGET_LINES: &[(&str, usize)] = &[
    ("agent", 1_200),
    ("ceph", 4_500),
    ("cluster", 7_600),
    ("engine", 13_000),
    ("history", 2_700),
    ("iosonde", 11_400),
    ("job", 10_200),
    ("limits", 3_500),
    ("machine", 5_900),
    ("report", 9_600),
    ("result", 10_400),
    ("sim", 3_100),
    ("statistics", 1_400),
    ("study", 11_300),
    ("suite", 3_500),
    ("workload", 3_700),
];

/// An excess counts by this many lines, so that a few lines more or less do not change the
/// baseline.
const STEP_LINES: usize = 100;

/// Crates whose invariants have to be asserted. `statistics` has the computations of `result`, so
/// these two are judged by their sum.
const ASSERTED: &[&[&str]] = &[
    &["cluster"],
    &["engine"],
    &["result", "statistics"],
    &["workload"],
];
const ASSERTIONS_PER_1000_LINES: usize = 3;

#[derive(Default)]
struct Total {
    lines: usize,
    assertions: usize,
}

/// Checks all crates.
pub(crate) fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    let totals = totals(files);
    let mut findings = Vec::new();
    for (krate, target) in TARGET_LINES {
        let lines = totals.get(krate).map_or(0, |total| total.lines);
        let text = format!("{krate} has {lines} production lines, its target is {target}");
        let excess = lines.saturating_sub(*target).div_ceil(STEP_LINES);
        findings.extend(finding("crate-size", krate, excess, text));
    }
    for crates in ASSERTED {
        let of_crates = || crates.iter().filter_map(|krate| totals.get(krate));
        let lines: usize = of_crates().map(|total| total.lines).sum();
        let assertions: usize = of_crates().map(|total| total.assertions).sum();
        let wanted = (lines * ASSERTIONS_PER_1000_LINES).div_ceil(1000);
        let missing = wanted.saturating_sub(assertions);
        let text = format!(
            "{}: {assertions} assertions in {lines} production lines, {missing} are missing",
            crates.join(" and ")
        );
        findings.extend(finding("assertion-density", crates[0], missing, text));
    }
    findings
}

fn finding(rule: &'static str, krate: &str, weight: usize, text: String) -> Option<TidyFinding> {
    let path = format!("crates/{krate}/Cargo.toml");
    let finding = TidyFinding {
        weight,
        ..TidyFinding::new(rule, &path, 1, text)
    };
    (weight > 0).then_some(finding)
}

/// Sums by crate over the production files.
fn totals(files: &[RustFile]) -> BTreeMap<&str, Total> {
    let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
    let production = production_files(files).into_iter();
    for file in production.filter(|file| file.path.starts_with("crates/")) {
        let total = totals.entry(&file.krate).or_default();
        total.lines += file.production_lines();
        total.assertions += file.assertions.len();
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::super::syntax_reader::read_for_test;
    use super::*;

    fn weights(files: &[(&str, String)]) -> Vec<(&'static str, usize)> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| read_for_test(path, text))
            .collect();
        check(&files)
            .into_iter()
            .map(|finding| (finding.rule, finding.weight))
            .collect()
    }

    #[test]
    fn excess_over_the_target_counts_in_hundreds() {
        let agent = |lines: usize| [("crates/agent/src/a.rs", "//\n".repeat(lines))];
        assert_eq!(weights(&agent(1_200)), []);
        assert_eq!(weights(&agent(1_201)), [("crate-size", 1)]);
        assert_eq!(weights(&agent(1_301)), [("crate-size", 2)]);
    }

    #[test]
    fn test_modules_do_not_count_as_production() {
        let library = "#[cfg(test)]\nmod fake;\n".to_owned() + &"//\n".repeat(1_200);
        let fake = ("crates/agent/src/fake.rs", "//\n".repeat(9_000));
        let tests = ("crates/agent/src/b/tests.rs", "//\n".repeat(9_000));
        let other = ("crates/agent/tests/c.rs", "//\n".repeat(9_000));
        let library = ("crates/agent/src/lib.rs", library);
        assert_eq!(weights(&[library, fake, tests, other]), []);
    }

    #[test]
    fn missing_assertions_are_counted() {
        let workload = |assertions: usize| {
            let text = format!("fn f() {{\n{}}}\n", "assert!(a);\n".repeat(assertions));
            let tests = "#[cfg(test)]\nmod tests { fn t() { assert!(a); } }\n";
            let filled = 1_000 - text.lines().count();
            [(
                "crates/workload/src/lib.rs",
                text + tests + &"//\n".repeat(filled),
            )]
        };
        assert_eq!(weights(&workload(1)), [("assertion-density", 2)]);
        assert_eq!(weights(&workload(3)), []);
    }

    #[test]
    fn assertions_of_statistics_count_for_result() {
        let crates = |assertions: usize| {
            let text = format!("fn f() {{\n{}}}\n", "assert!(a);\n".repeat(assertions));
            [
                ("crates/result/src/lib.rs", "//\n".repeat(900)),
                ("crates/statistics/src/lib.rs", text),
            ]
        };
        assert_eq!(weights(&crates(2)), [("assertion-density", 1)]);
        assert_eq!(weights(&crates(3)), []);
    }
}
