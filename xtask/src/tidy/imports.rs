//! `import-circle`: modules that need each other can only be understood together.

use super::finding::TidyFinding;
use super::rust_file::{Import, RustFile};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Most re-exports that a path is followed through.
const MOST_REEXPORTS: usize = 8;

/// The children of one module as nodes: child, imported child, and the import that leads there.
type Edges<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, &'a Import)>>;

/// Checks the modules of each crate.
pub(crate) fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    let crates: BTreeSet<_> = files.iter().map(|file| file.krate.as_str()).collect();
    let mut findings = Vec::new();
    for krate in crates {
        let files: Vec<_> = files.iter().filter(|file| file.krate == krate).collect();
        check_crate(&Modules::of_crate(&files), &mut findings);
    }
    findings
}

/// The modules of a crate that have files of their own.
struct Modules<'a> {
    files: Vec<(&'a [String], &'a RustFile)>,
    /// Names that each module takes with `use`, and their paths.
    names: HashMap<&'a [String], HashMap<&'a str, &'a [String]>>,
}

impl<'a> Modules<'a> {
    fn of_crate(files: &[&'a RustFile]) -> Self {
        let tests: HashSet<&[String]> = files
            .iter()
            .flat_map(|file| &file.test_modules)
            .map(Vec::as_slice)
            .collect();
        let mut modules = Modules {
            files: Vec::new(),
            names: HashMap::new(),
        };
        for file in files {
            let Some(module) = file.module.as_deref() else {
                continue;
            };
            if (1..=module.len()).any(|length| tests.contains(&module[..length])) {
                continue;
            }
            modules.files.push((module, file));
            let names = modules.names.entry(module).or_default();
            for import in &file.imports {
                if let Some(name) = import.name.as_deref() {
                    names.insert(name, &import.path);
                }
            }
        }
        modules
    }

    /// The deepest module that a path leads into, through re-exports on its way.
    fn target(&self, path: &[String]) -> Vec<String> {
        let mut path = path.to_vec();
        for _ in 0..MOST_REEXPORTS {
            let mut length = path.len();
            while length > 0 && !self.names.contains_key(&path[..length]) {
                length -= 1;
            }
            let next = path
                .get(length)
                .and_then(|name| self.names.get(&path[..length])?.get(name.as_str()));
            let Some(next) = next.filter(|next| next[..] != path[..=length]) else {
                path.truncate(length);
                return path;
            };
            path = next.iter().chain(&path[length + 1..]).cloned().collect();
        }
        path
    }
}

fn check_crate(modules: &Modules<'_>, findings: &mut Vec<TidyFinding>) {
    let mut parents: BTreeMap<&[String], Edges<'_>> = BTreeMap::new();
    let targets: Vec<_> = modules
        .files
        .iter()
        .flat_map(|(module, file)| file.imports.iter().map(|import| (*module, *file, import)))
        .filter(|(_, _, import)| import.name.as_deref() != Some("*") || import.path.len() > 1)
        .map(|(module, file, import)| (module, file, import, modules.target(&import.path)))
        .collect();
    for (module, file, import, target) in &targets {
        let common = module
            .iter()
            .zip(target)
            .take_while(|(a, b)| a == b)
            .count();
        if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
            let edges = parents.entry(&module[..common]).or_default();
            edges
                .entry(from)
                .or_default()
                .entry(to)
                .or_insert((&file.path, import));
        }
    }
    for (parent, edges) in &parents {
        for child in edges.keys() {
            let Some(circle) = shortest_circle(edges, child) else {
                continue;
            };
            findings.push(finding(parent, edges, &circle));
        }
    }
}

/// The shortest way from a child back to it: `[a, b, a]`.
fn shortest_circle<'a>(edges: &Edges<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut before: HashMap<&str, &str> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in edges
            .get(node)?
            .keys()
            .filter(|next| edges.contains_key(*next))
        {
            if *next == start {
                let mut circle = vec![start, node];
                while let Some(previous) = before.get(circle[circle.len() - 1]) {
                    circle.push(previous);
                }
                circle.reverse();
                return Some(circle);
            }
            if !before.contains_key(next) {
                before.insert(next, node);
                queue.push_back(next);
            }
        }
    }
    None
}

fn finding(parent: &[String], edges: &Edges<'_>, circle: &[&str]) -> TidyFinding {
    let steps = circle.windows(2).map(|pair| {
        let (path, import) = edges[pair[0]][pair[1]];
        format!(
            "{} ({path}:{} uses {})",
            pair[1],
            import.line,
            import.path.join("::")
        )
    });
    let steps: Vec<_> = steps.collect();
    let (path, import) = edges[circle[0]][circle[1]];
    let parent = if parent.is_empty() {
        "crate".to_owned()
    } else {
        parent.join("::")
    };
    let text = format!("in {parent}: {} -> {}", circle[0], steps.join(" -> "));
    TidyFinding::new("import-circle", path, import.line, text)
}

#[cfg(test)]
mod tests {
    use super::super::syntax_reader::read_for_test;
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let read =
            |(path, text): &(&str, &str)| read_for_test(&format!("crates/job/src/{path}"), text);
        let files: Vec<_> = files.iter().map(read).collect();
        check(&files)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn modules_that_import_each_other_are_reported() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", ""),
            ("b/c.rs", "\nuse super::super::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ]);
        let wanted = "in crate: a -> b (crates/job/src/a.rs:1 uses b::B) \
             -> a (crates/job/src/b/c.rs:2 uses a::A)";
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], wanted);
    }

    #[test]
    fn imports_in_one_direction_are_no_circle() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; use a::A;"),
            ("a.rs", "use crate::b::B; use super::c::C;"),
            (
                "b.rs",
                "use crate::c::C;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
            ),
            ("c.rs", "use std::fmt;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn re_exports_lead_to_the_module_behind_them() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; pub use b::B;"),
            ("a.rs", "pub fn f(b: crate::B) {}"),
            ("b.rs", "fn g() { crate::a::f() }"),
        ]);
        assert_eq!(found.len(), 2);
        let through_two = circles(&[
            ("lib.rs", "mod a; mod b; mod c; pub use c::B;"),
            ("a.rs", "pub fn f(b: crate::B) {}"),
            ("b.rs", "fn g() { crate::a::f() }"),
            ("c.rs", "pub use crate::b::B;"),
        ]);
        assert_eq!(through_two.len(), 2, "a and b, not c");
    }
}
