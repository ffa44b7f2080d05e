//! The table of contents of the site, `docs/SUMMARY.md`, has each page of `docs`.

use super::files::{self, SourceFile};
use super::markdown::MarkdownFile;
use std::collections::BTreeSet;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Pages that the summary does not have, and links of the summary that occur twice.
fn faults(files: &[SourceFile]) -> Vec<String> {
    let is_page = |path: &&str| {
        path.starts_with("docs/") && files::extension(path) == "md" && *path != SUMMARY
    };
    let summary = files.iter().find(|file| file.path == SUMMARY);
    let summary = MarkdownFile::read(summary.expect("docs has a summary"));
    let mut listed = BTreeSet::new();
    let mut faults = Vec::new();
    for (link, line) in summary.links.iter().filter(|(link, _)| !link.is_empty()) {
        if !listed.insert(format!("docs/{link}")) {
            faults.push(format!("{SUMMARY}:{line}: {link} is listed twice"));
        }
    }
    let pages = files.iter().map(|file| file.path.as_str()).filter(is_page);
    let missing = pages.filter(|page| !listed.contains(*page));
    faults.extend(missing.map(|page| format!("{SUMMARY} does not have {page}")));
    faults
}

#[test]
fn summary_has_each_page_of_docs() {
    let files = files::read_files(&crate::repository::repository_root()).unwrap();
    assert_eq!(faults(&files), Vec::<String>::new());
}

#[test]
fn missing_and_repeated_pages_are_reported() {
    let file = |path: &str, text: &str| SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let files = [
        file(
            SUMMARY,
            "# Summary\n\n- [A](a.md)\n- [A again](a.md)\n- [Part]()\n",
        ),
        file("docs/a.md", "# A\n"),
        file("docs/parts/b.md", "# B\n"),
        file("README.md", "# R\n"),
    ];
    assert_eq!(
        faults(&files),
        [
            "docs/SUMMARY.md:4: a.md is listed twice",
            "docs/SUMMARY.md does not have docs/parts/b.md"
        ]
    );
}
