//! `cargo xtask dist`: builds all files of a release into `target/dist`, and checks them by
//! installing and running them. Two builds of one commit give the same bytes.

mod agent_check;
mod architecture;
mod archive;
mod audit_data;
mod build;
mod busybox;
mod check;
mod check_log;
mod check_scope;
mod crate_tree;
mod image;
mod image_check;
mod image_layer;
mod manifests;
mod package_check;
mod packages;
mod release;
mod release_files;
mod release_runner;
mod sbom;
mod site;
mod staging;
mod third_party;

use crate::repository::repository_root;
use anyhow::{Context, Result};
use architecture::ClientTarget;
use check_log::CheckLog;
use check_scope::CheckScope;
use clap::{Args, ValueEnum};
use release::Release;
use release_files::require_files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file with the checksums of all others.
const CHECKSUMS: &str = "SHA256SUMS";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Install and run the files that were built, instead of building them
    #[arg(long)]
    check: bool,
    /// Fail with status 1 if a part cannot be checked on this machine
    #[arg(long, requires = "check")]
    strict: bool,
    /// Build or check only this part; packages and image need the archives of an earlier run
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Build or check only this client; repeat it for several
    #[arg(long, value_name = "CLIENT")]
    target: Vec<ClientTarget>,
}

/// A part of the release.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Part {
    /// Clients with their documents: iosonde-VERSION-ARCHITECTURE-linux-{gnu,static}.tar.xz
    Archives,
    /// Packages: deb and rpm
    Packages,
    /// Container images, as OCI layouts
    Image,
    /// Manifests of krew, Homebrew and Helm, and install.sh
    Manifests,
    /// Site of the documents with search, built by mdBook
    Site,
}

/// Builds or checks the release. Returns false if a strict check leaves out a part.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let release = Release::read(&repository_root())?;
    if !arguments.check {
        build_parts(&release, arguments)?;
        return Ok(true);
    }
    let scope = CheckScope::new(arguments.only, &arguments.target);
    let log = check_parts(&release, &scope)?;
    print!("{}", log.summary());
    Ok(log.is_complete() || !arguments.strict)
}

fn build_parts(release: &Release, arguments: &Arguments) -> Result<()> {
    let targets = match arguments.target.as_slice() {
        [] => &ClientTarget::ALL[..],
        some => some,
    };
    if arguments.only.is_none() && arguments.target.is_empty() {
        remove_finished_files(&release.directory)?;
    }
    let is_wanted = |part| arguments.only.is_none_or(|only| only == part);
    let mut written = Vec::new();
    if is_wanted(Part::Site) {
        written.push(site::write(release)?);
    }
    let staged = match arguments.only {
        None | Some(Part::Archives) => staging::stage(release, targets)?,
        Some(Part::Packages | Part::Image) => staging::staged_before(release, targets)?,
        Some(Part::Manifests | Part::Site) => Vec::new(),
    };
    if is_wanted(Part::Archives) {
        written.extend(archive::write(release, &staged)?);
    }
    if is_wanted(Part::Packages) {
        written.extend(packages::write(release, &staged)?);
    }
    if is_wanted(Part::Image) {
        written.extend(image::write(release, &staged)?);
    }
    if arguments.only.is_none() {
        written.extend(sbom::write(release, &staged)?);
    }
    if is_wanted(Part::Manifests) {
        written.extend(manifests::write(release, &checksums(&release.directory)?)?);
    }
    written.push(write_checksums(release)?);
    for path in written {
        let bytes = std::fs::metadata(&path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .len();
        println!("{bytes:>10} {}", path.display());
    }
    Ok(())
}

fn check_parts(release: &Release, scope: &CheckScope) -> Result<CheckLog> {
    check_checksums(release)?;
    require_files(release, scope)?;
    let mut log = CheckLog::default();
    if scope.includes(Part::Archives) {
        agent_check::check(release, &mut log)?;
        check::check(release, scope, &mut log)?;
    }
    if scope.includes(Part::Packages) {
        package_check::check(release, scope, &mut log)?;
    }
    if scope.includes(Part::Image) {
        image_check::check(release, scope, &mut log)?;
    }
    if scope.only.is_none() {
        sbom::check(release, scope, &mut log)?;
    }
    if scope.includes(Part::Manifests) {
        manifests::check(release, scope, &mut log)?;
    }
    if scope.includes(Part::Site) {
        site::check(release, &mut log)?;
    }
    Ok(log)
}

/// Removes the files of an earlier build, which may be of another version: SHA256SUMS lists only
/// files of this one.
fn remove_finished_files(directory: &Path) -> Result<()> {
    for name in checksums(directory)?.into_keys() {
        let path = directory.join(name);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Returns the SHA-256 of each finished file by its name. Directories, such as OCI layouts and
/// intermediate files, have none.
fn checksums(directory: &Path) -> Result<BTreeMap<String, String>> {
    let listed = std::fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?;
    let mut sums = BTreeMap::new();
    for entry in listed {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && name != CHECKSUMS {
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            sums.insert(name.into_owned(), archive::sha256_hex(&bytes));
        }
    }
    Ok(sums)
}

/// Writes the file that `sha256sum --check` reads.
fn write_checksums(release: &Release) -> Result<PathBuf> {
    let path = release.directory.join(CHECKSUMS);
    std::fs::write(&path, checksum_lines(&checksums(&release.directory)?))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn checksum_lines(sums: &BTreeMap<String, String>) -> String {
    sums.iter()
        .map(|(name, sum)| format!("{sum}  {name}\n"))
        .collect()
}

/// Fails if a file has changed since it was built.
fn check_checksums(release: &Release) -> Result<()> {
    let path = release.directory.join(CHECKSUMS);
    let written = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {}: run `cargo xtask dist` first",
            path.display()
        )
    })?;
    let found = checksum_lines(&checksums(&release.directory)?);
    anyhow::ensure!(
        written == found,
        "{} does not match the files beside it",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_file_lists_finished_files_only() {
        let directory = tempfile::tempdir().unwrap();
        let release = Release {
            root: directory.path().to_owned(),
            directory: directory.path().to_owned(),
            version: "1.0.0".to_owned(),
            epoch: 0,
        };
        std::fs::create_dir(directory.path().join("work")).unwrap();
        std::fs::write(directory.path().join("b.tar.xz"), "").unwrap();
        std::fs::write(directory.path().join("a.deb"), "").unwrap();
        let written = std::fs::read_to_string(write_checksums(&release).unwrap()).unwrap();
        let names: Vec<&str> = written
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["a.deb", "b.tar.xz"]);
        assert!(check_checksums(&release).is_ok());
        std::fs::write(directory.path().join("a.deb"), "changed").unwrap();
        assert!(check_checksums(&release).is_err());
    }

    #[test]
    fn strict_without_check_is_refused() {
        use clap::Parser;

        #[derive(Debug, Parser)]
        struct DistLine {
            #[command(flatten)]
            arguments: Arguments,
        }
        assert!(DistLine::try_parse_from(["dist", "--strict"]).is_err());
        let line = DistLine::try_parse_from(["dist", "--check", "--strict"]).unwrap();
        assert!(line.arguments.strict);
    }

    #[test]
    fn files_of_an_earlier_build_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        std::fs::write(directory.path().join("iosonde-0.0.9.tar.xz"), "").unwrap();
        remove_finished_files(directory.path()).unwrap();
        assert!(checksums(directory.path()).unwrap().is_empty());
        assert!(directory.path().join("work").is_dir());
    }
}
