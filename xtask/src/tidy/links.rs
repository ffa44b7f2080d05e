//! `broken-link`: the target of each relative link in a document exists, and each path in backticks
//! in the documents that list files.

use super::finding::TidyFinding;
use super::markdown::MarkdownFile;
use std::collections::{HashMap, HashSet};

/// Documents that list files, with paths in backticks from the root of the repository.
const LISTS_OF_FILES: &[&str] = &["ARCHITECTURE.md", "docs/where-to-look.md"];

/// Checks all documents. `exists` says whether a path from the root of the repository is a file or
/// a folder.
pub(crate) fn check(documents: &[MarkdownFile], exists: &dyn Fn(&str) -> bool) -> Vec<TidyFinding> {
    let anchors: HashMap<&str, &HashSet<String>> = documents
        .iter()
        .map(|document| (document.path.as_str(), &document.anchors))
        .collect();
    let mut findings = Vec::new();
    for document in documents {
        for (link, line) in document.links.iter().filter(|(link, _)| is_relative(link)) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = resolve(&document.path, target);
            let anchors = anchors.get(path.as_str());
            let fault = if !exists(&path) {
                format!("`{link}`: there is no {path}")
            } else if anchors.is_some_and(|anchors| !anchor.is_empty() && !anchors.contains(anchor))
            {
                format!("`{link}`: {path} has no heading `#{anchor}`")
            } else {
                continue;
            };
            findings.push(TidyFinding::new(
                "broken-link",
                &document.path,
                *line,
                fault,
            ));
        }
        if LISTS_OF_FILES.contains(&document.path.as_str()) {
            findings.extend(check_listed_paths(document, exists));
        }
    }
    findings
}

fn check_listed_paths(document: &MarkdownFile, exists: &dyn Fn(&str) -> bool) -> Vec<TidyFinding> {
    let spans = document.code.iter().filter(|code| !code.is_block);
    let missing = spans.filter(|code| is_path(&code.text) && !exists(&code.text));
    let finding = |path: &str, line| {
        let text = format!("`{path}` does not exist");
        TidyFinding::new("broken-link", &document.path, line, text)
    };
    missing.map(|code| finding(&code.text, code.line)).collect()
}

/// Calls of programs have spaces.
fn is_path(code: &str) -> bool {
    code.contains('/') && is_relative(code) && !code.contains(char::is_whitespace)
}

fn is_relative(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:")
}

/// The path of a link's target from the root of the repository.
fn resolve(from: &str, target: &str) -> String {
    if target.is_empty() {
        return from.to_owned();
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::files::SourceFile;
    use super::*;

    fn broken(text: &str) -> Vec<String> {
        broken_in("docs/a.md", text)
    }

    fn broken_in(path: &str, text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            file(path, text),
            file("docs/b.md", "# Part one\n"),
            file("R.md", ""),
        ];
        let documents: Vec<_> = files.iter().map(MarkdownFile::read).collect();
        let exists =
            |path: &str| ["docs", "docs/a.md", "docs/b.md", "R.md", "test"].contains(&path);
        check(&documents, &exists)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn links_to_missing_files_and_headings_are_reported() {
        assert_eq!(broken("[x](c.md)"), ["`c.md`: there is no docs/c.md"]);
        assert_eq!(
            broken("![x](../images/d.svg)"),
            ["`../images/d.svg`: there is no images/d.svg"]
        );
        assert_eq!(
            broken("[x](b.md#part-two)"),
            ["`b.md#part-two`: docs/b.md has no heading `#part-two`"]
        );
        assert_eq!(broken("# One\n[x](#two)").len(), 1);
        assert_eq!(broken("[x](../../outside.md)").len(), 1);
    }

    #[test]
    fn links_that_lead_somewhere_are_good() {
        let text = "# One\n[a](#one) [b](b.md#part-one) [c](../R.md) [d](../test#L3)\n\
            [e](https://x.org/y#z) [f](../docs)";
        assert_eq!(broken(text), Vec::<String>::new());
    }

    #[test]
    fn listed_paths_that_do_not_exist_are_reported() {
        let text = "| I/O | `docs/b.md`, `docs/c.md` |\n\n`no/d.rs`";
        let missing = ["`docs/c.md` does not exist", "`no/d.rs` does not exist"];
        for path in ["docs/where-to-look.md", "ARCHITECTURE.md"] {
            assert_eq!(broken_in(path, text), missing);
        }
        assert_eq!(broken_in("docs/a.md", text), Vec::<String>::new());
    }

    #[test]
    fn code_of_a_list_of_files_that_is_no_path_is_good() {
        let text = "`docs`, `due_ns`, `rbd://POOL/?size=1g`, `ls no/d.rs`\n\n    no/e.rs";
        assert_eq!(
            broken_in("docs/where-to-look.md", text),
            Vec::<String>::new()
        );
    }
}
