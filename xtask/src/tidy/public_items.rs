//! `unused-public`: public items of a library crate that no other crate names.

use super::finding::TidyFinding;
use super::rust_file::RustFile;
use std::collections::{HashMap, HashSet};

/// Checks the library crates below `crates/`. A name that occurs in another crate counts as used
/// there, whatever it stands for.
pub(crate) fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    let mut users: HashMap<&str, HashSet<&str>> = HashMap::new();
    let members = || files.iter().filter(|file| file.path.starts_with("crates/"));
    for file in members() {
        let words = file.words.iter().map(String::as_str);
        for word in words {
            users.entry(word).or_default().insert(&file.krate);
        }
    }
    let libraries = members().filter(|file| file.path.ends_with("/src/lib.rs"));
    let mut findings = Vec::new();
    for library in libraries {
        let files: Vec<_> = members()
            .filter(|file| file.krate == library.krate && file.module.is_some())
            .collect();
        let renamed: HashSet<_> = files.iter().flat_map(|file| &file.renamed).collect();
        let is_used = |name: &String| {
            let is_elsewhere = |users: &HashSet<&str>| users.iter().any(|k| *k != library.krate);
            renamed.contains(name) || users.get(name.as_str()).is_some_and(is_elsewhere)
        };
        check_crate(&files, &is_used, &mut findings);
    }
    findings
}

fn check_crate(
    files: &[&RustFile],
    is_used: &dyn Fn(&String) -> bool,
    findings: &mut Vec<TidyFinding>,
) {
    let items = || files.iter().flat_map(|file| &file.public_items);
    let mut kept = HashSet::new();
    // Each round adds the types that occur in what is kept, until nothing is added.
    loop {
        let before = kept.len();
        for item in items() {
            let owner_is_kept = |owner: &String| is_used(owner) || kept.contains(owner);
            let is_reached = match &item.owner {
                Some(owner) if *owner == item.name => owner_is_kept(owner),
                Some(owner) => owner_is_kept(owner) && is_used(&item.name),
                None => owner_is_kept(&item.name),
            };
            if is_reached {
                kept.extend(item.mentions.iter().cloned());
            }
        }
        if kept.len() == before {
            break;
        }
    }
    for file in files {
        for item in file.public_items.iter().filter(|item| item.line > 0) {
            // The items of an unused type go with it.
            let owner = item.owner.as_ref();
            let goes_with_owner =
                owner.is_some_and(|owner| !is_used(owner) && !kept.contains(owner));
            let is_kept = item.owner.is_none() && kept.contains(&item.name);
            if is_used(&item.name) || is_kept || goes_with_owner {
                continue;
            }
            let name = owner.map_or_else(
                || item.name.clone(),
                |owner| format!("{owner}::{}", item.name),
            );
            let text = format!("`{name}` is public, and no other crate uses it");
            findings.push(TidyFinding::new(
                "unused-public",
                &file.path,
                item.line,
                text,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::syntax_reader::read_for_test;
    use super::*;

    fn unused(library: &str, others: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![read_for_test("crates/job/src/lib.rs", library)];
        files.extend(others.iter().map(|(path, text)| read_for_test(path, text)));
        check(&files)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn public_items_that_no_crate_names_are_reported() {
        let library = "\
pub struct Plan { pub jobs: Vec<Job>, secret: Hidden }
pub struct Job;
pub struct Hidden;
pub const LIMIT: u32 = 1;
impl Plan { pub fn run(&self) {} pub fn walk(&self) {} fn inner(&self) {} }
impl Hidden { pub fn peek(&self) {} }
pub(crate) fn local() {}
";
        let user = ("crates/iosonde/src/main.rs", "fn main() { Plan::run() }");
        let found = unused(library, &[user]);
        let text = |name: &str| format!("`{name}` is public, and no other crate uses it");
        assert_eq!(found, [text("Hidden"), text("LIMIT"), text("Plan::walk")]);
    }

    #[test]
    fn uses_by_tests_and_tasks_do_not_count() {
        let library = "pub fn used() {}\n#[cfg(test)]\npub fn fake() {}\n";
        let test = ("crates/job/tests/plan.rs", "fn t() { used() }");
        let task = ("xtask/src/main.rs", "fn t() { used() }");
        assert_eq!(unused(library, &[test, task]).len(), 1);
        let crate_of_another = ("crates/study/src/lib.rs", "fn t() { used() }");
        assert_eq!(unused(library, &[crate_of_another]), Vec::<String>::new());
    }

    #[test]
    fn types_in_signatures_of_used_items_are_kept() {
        let library = "\
pub fn open() -> Session { Session }
pub struct Session;
impl Study for Session { type Outcome = Outcome; }
pub struct Outcome;
pub fn unused() -> Lonely { Lonely }
pub struct Lonely;
";
        let user = ("crates/iosonde/src/main.rs", "fn main() { open(); }");
        assert_eq!(unused(library, &[user]).len(), 2, "unused and Lonely");
    }
}
