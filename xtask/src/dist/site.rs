//! The documents as a site with search: mdBook builds it from `book.toml` and `docs`.

use super::archive::{compress, tar_of_directory};
use super::build::{output, run};
use super::check_log::CheckLog;
use super::packages::fresh_directory;
use super::release::Release;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of mdBook, so that each machine builds the same pages.
const MDBOOK: &str = "mdbook@0.5.4";
/// Table of contents below the root of the repository.
const SUMMARY: &str = "docs/SUMMARY.md";
/// First page of the site, which mdBook makes of the first chapter.
const FIRST_PAGE: &str = "index.html";
/// Begins the name of the file with the words of all pages.
const SEARCH_INDEX: &str = "searchindex";

/// Returns the name of the packed site.
pub(crate) fn file_name(release: &Release) -> String {
    format!("{}.tar.xz", top_directory(release))
}

fn top_directory(release: &Release) -> String {
    format!("iosonde-site-{}", release.version)
}

/// Builds the site and packs it.
///
/// # Errors
/// If mdBook cannot be installed, or refuses a page.
pub(crate) fn write(release: &Release) -> Result<PathBuf> {
    let mdbook = installed_mdbook(&release.root)?;
    let pages = fresh_directory(&release.work().join("site"))?;
    run(Command::new(mdbook)
        .current_dir(&release.root)
        .args(["build", "--dest-dir"])
        .arg(&pages)
        .arg(&release.root))?;
    let tar = tar_of_directory(&pages, &top_directory(release), release.epoch)?;
    let path = release.directory.join(file_name(release));
    fs::write(&path, compress(&tar)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Installs mdBook below `target` if it is missing. One of the machine is not used: another version
/// builds other pages.
fn installed_mdbook(root: &Path) -> Result<PathBuf> {
    let directory = root.join("target").join(MDBOOK);
    let program = directory.join("bin/mdbook");
    if !program.is_file() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        run(Command::new(cargo)
            .args(["install", "--quiet", "--locked", MDBOOK])
            .args(["--no-default-features", "--features", "search", "--root"])
            .arg(&directory)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("CARGO_BUILD_TARGET"))?;
    }
    Ok(program)
}

/// Unpacks the site and looks for a page of each chapter, the first page, and the search index.
///
/// # Errors
/// If one of them is missing.
pub(crate) fn check(release: &Release, log: &mut CheckLog) -> Result<()> {
    let path = release.directory.join(file_name(release));
    let listed = output(Command::new("tar").arg("-tJf").arg(&path))?;
    let listed = String::from_utf8_lossy(&listed);
    let prefix = format!("{}/", top_directory(release));
    let files: BTreeSet<&str> = (listed.lines())
        .filter_map(|line| line.strip_prefix(&prefix))
        .collect();
    let summary = release.root.join(SUMMARY);
    let summary = fs::read_to_string(&summary)
        .with_context(|| format!("cannot read {}", summary.display()))?;
    let missing = missing_files(&files, &summary);
    ensure!(
        missing.is_empty(),
        "{} lacks {}",
        path.display(),
        missing.join(", ")
    );
    log.add_checked(path.display());
    Ok(())
}

/// Returns the files that a site of this table of contents must have, and has not.
fn missing_files(files: &BTreeSet<&str>, summary: &str) -> Vec<String> {
    let chapters = summary.split("](").skip(1);
    let chapters = chapters.filter_map(|rest| rest.split_once(".md)").map(|(name, _)| name));
    let pages = chapters.map(|name| format!("{name}.html"));
    let mut missing: Vec<String> = std::iter::once(FIRST_PAGE.to_owned())
        .chain(pages)
        .filter(|page| !files.contains(page.as_str()))
        .collect();
    if !files.iter().any(|name| name.starts_with(SEARCH_INDEX)) {
        missing.push(format!("{SEARCH_INDEX}*.js"));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAPTERS: &str = "# Summary\n\n- [A](a.md)\n- [Parts]()\n  - [B](parts/b.md)\n";

    #[test]
    fn site_without_page_or_index_is_refused() {
        let files = BTreeSet::from(["index.html", "a.html"]);
        assert_eq!(
            missing_files(&files, CHAPTERS),
            ["parts/b.html", "searchindex*.js"]
        );
        let files = BTreeSet::from([
            "a.html",
            "index.html",
            "parts/b.html",
            "searchindex-12ab.js",
        ]);
        assert_eq!(missing_files(&files, CHAPTERS), Vec::<String>::new());
    }

    #[test]
    fn book_of_the_repository_has_search_and_the_documents() {
        let text =
            fs::read_to_string(crate::repository::repository_root().join("book.toml")).unwrap();
        let book: toml::Table = text.parse().unwrap();
        assert_eq!(book["book"]["src"].as_str(), Some("docs"));
        assert_eq!(
            book["output"]["html"]["search"]["enable"].as_bool(),
            Some(true)
        );
        assert_eq!(book["build"]["create-missing"].as_bool(), Some(false));
    }
}
