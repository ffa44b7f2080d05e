//! `unused-public`: public items of a library crate that no other crate names.

use super::finding::TidyFinding;
use super::rust_file::RustFile;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Crates of tests and development tasks. Their use of an item does not count as public use.
const TEST_CRATES: &[&str] = &["tests", "fuzz", "xtask"];

/// Checks the library crates below `crates/`. A name that occurs in another crate counts as used
/// there, even if it stands for another item.
pub(crate) fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    let mut users: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for file in files {
        for word in &file.words {
            users.entry(word).or_default().insert(&file.krate);
        }
    }
    let is_library =
        |file: &&RustFile| file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs");
    let mut findings = Vec::new();
    for library in files.iter().filter(is_library) {
        let is_source = |file: &&RustFile| file.krate == library.krate && file.module.is_some();
        let files: Vec<_> = files.iter().filter(is_source).collect();
        let names = UsedNames {
            krate: &library.krate,
            users: &users,
            renamed: files.iter().flat_map(|file| &file.renamed).collect(),
        };
        check_crate(&files, &names, &mut findings);
    }
    findings
}

/// Names of a crate by the crates that use them.
struct UsedNames<'a> {
    krate: &'a str,
    users: &'a HashMap<&'a str, BTreeSet<&'a str>>,
    /// Items that are public under other names.
    renamed: HashSet<&'a String>,
}

impl UsedNames<'_> {
    fn has(&self, name: &String) -> bool {
        let users = self.users.get(name.as_str()).into_iter().flatten();
        let mut others = users.filter(|user| **user != self.krate && !TEST_CRATES.contains(user));
        others.next().is_some() || self.renamed.contains(name)
    }

    /// Crates whose use does not count.
    fn test_crates(&self, name: &str) -> Vec<&str> {
        let users = self.users.get(name).into_iter().flatten().copied();
        users.filter(|user| TEST_CRATES.contains(user)).collect()
    }
}

fn check_crate(files: &[&RustFile], used: &UsedNames<'_>, findings: &mut Vec<TidyFinding>) {
    let kept = names_in_signatures(files, used);
    for file in files {
        for item in file.public_items.iter().filter(|item| item.line > 0) {
            // The items of an unused type go with it.
            let owner = item.owner.as_ref();
            let is_of_unused = owner.is_some_and(|owner| !used.has(owner) && !kept.contains(owner));
            let is_kept = item.owner.is_none() && kept.contains(&item.name);
            if used.has(&item.name) || is_kept || is_of_unused {
                continue;
            }
            let of_owner = owner.map(|owner| format!("{owner}::")).unwrap_or_default();
            let users = match used.test_crates(&item.name)[..] {
                [] => "no other crate uses it".to_owned(),
                ref crates => format!("only {} may use it", crates.join(" and ")),
            };
            let text = format!("`{of_owner}{}` is public, and {users}", item.name);
            findings.push(TidyFinding::new(
                "unused-public",
                &file.path,
                item.line,
                text,
            ));
        }
    }
}

/// Names in the signatures and public fields of used items, and of the items with these names.
fn names_in_signatures<'a>(files: &[&'a RustFile], used: &UsedNames<'_>) -> HashSet<&'a String> {
    let mut kept = HashSet::new();
    loop {
        let before = kept.len();
        for item in files.iter().flat_map(|file| &file.public_items) {
            let is_kept = |name: &String| used.has(name) || kept.contains(name);
            let is_reached = match &item.owner {
                Some(owner) if *owner == item.name => is_kept(owner),
                Some(owner) => is_kept(owner) && used.has(&item.name),
                None => is_kept(&item.name),
            };
            if is_reached {
                kept.extend(&item.mentions);
            }
        }
        if kept.len() == before {
            return kept;
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
        let found = unused(library, &[test, task]);
        assert_eq!(found, ["`used` is public, and only xtask may use it"]);
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
