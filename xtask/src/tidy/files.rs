//! Files that the rules check.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Path below the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Name suffixes of files that some rule reads. Shell scripts without a suffix are recognised by
/// their first line.
const EXTENSIONS: &[&str] = &["rs", "ts", "go", "sh", "md", "toml"];

/// Folders with built or recorded files.
const SKIPPED: &[&str] = &["target", "web/dist", "fuzz/corpus", "data", ".git"];

/// Reads all files below `root` that some rule checks, sorted by path. Files that git ignores are
/// left out.
pub(crate) fn read_files(root: &Path) -> Result<Vec<SourceFile>> {
    // Only the ignore lists of the repository count, so that the result is equal on each machine.
    let below = root.to_owned();
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .filter_entry(move |entry| {
            !is_skipped(entry.path().strip_prefix(&below).unwrap_or(Path::new("")))
        })
        .build();
    let mut files = Vec::new();
    for entry in walk {
        let entry = entry.context("listing the files of the repository")?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let path = entry
            .path()
            .strip_prefix(root)?
            .to_string_lossy()
            .into_owned();
        if !is_file || !may_be_read(&path) {
            continue;
        }
        let bytes = fs::read(entry.path()).with_context(|| format!("reading {path}"))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        if has_extension(&path) || is_shell_script(&path, &text) {
            files.push(SourceFile { path, text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn is_skipped(path: &Path) -> bool {
    SKIPPED.iter().any(|folder| path == Path::new(folder))
}

/// Whether the name alone does not exclude the file.
fn may_be_read(path: &str) -> bool {
    has_extension(path) || !path.rsplit('/').next().unwrap_or(path).contains('.')
}

fn has_extension(path: &str) -> bool {
    EXTENSIONS.contains(&extension(path))
}

/// The extension of the file's name; empty without a dot.
pub(crate) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Whether the file is a script of sh or bash.
pub(crate) fn is_shell_script(path: &str, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    extension(path) == "sh"
        || first.starts_with("#!") && (first.ends_with("bash") || first.ends_with("/sh"))
}

/// The crate of a file by its name in the baseline; `docs` for Markdown, else the first folder, or
/// `root`.
pub(crate) fn crate_of(path: &str) -> &str {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), _) => name,
        _ if extension(path) == "md" => "docs",
        (Some(folder), Some(_), _) if !folder.starts_with('.') => folder,
        _ => "root",
    }
}

/// Whether a Rust file belongs to an integration test, a bench or an example, by its folder.
pub(crate) fn is_test_target(path: &str) -> bool {
    let path = Path::new(path);
    path.iter()
        .any(|part| part == "tests" || part == "benches" || part == "examples")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crate_of_file_is_its_folder() {
        assert_eq!(crate_of("crates/job/src/lib.rs"), "job");
        assert_eq!(crate_of("xtask/src/main.rs"), "xtask");
        assert_eq!(crate_of("tests/harness/lib.rs"), "tests");
        assert_eq!(crate_of("docs/probe.md"), "docs");
        assert_eq!(crate_of("README.md"), "docs");
        assert_eq!(crate_of("test"), "root");
        assert_eq!(crate_of(".ci/run"), "root");
    }

    #[test]
    fn walk_skips_built_and_binary_files() {
        let root = tempfile::tempdir().unwrap();
        let files: [(&str, &[u8]); 7] = [
            ("src/a.rs", b"fn a() {}\n"),
            ("run", b"#!/usr/bin/env bash\n"),
            ("LICENSE", b"text\n"),
            ("target/b.rs", b"fn b() {}\n"),
            ("web/dist/c.ts", b"built\n"),
            ("ignored.rs", b"fn d() {}\n"),
            ("bad.rs", b"\xff\xfe"),
        ];
        for (path, bytes) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        fs::write(root.path().join(".gitignore"), "ignored.rs\n").unwrap();
        let found = read_files(root.path()).unwrap();
        let paths: Vec<_> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["run", "src/a.rs"]);
    }
}
