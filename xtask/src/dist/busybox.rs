//! Debian's static busybox of any architecture, for images that need a shell.

use super::architecture::Architecture;
use super::build::output;
use super::release::Release;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "busybox-static";
/// Licence text that the package refers to. Each Debian has it.
const LICENCE: &str = "/usr/share/common-licenses/GPL-2";

/// An unpacked package.
pub(crate) struct Busybox {
    /// Version of the Debian package.
    pub(crate) version: String,
    /// The static executable.
    pub(crate) program: PathBuf,
    /// Copyright of the package, and its licence.
    pub(crate) copyright: String,
}

impl Busybox {
    /// Downloads the package from the sources of this machine's apt, once per release directory.
    ///
    /// # Errors
    /// If apt fails or has no such package.
    pub(crate) fn fetch(release: &Release, architecture: Architecture) -> Result<Self> {
        let directory = release.work().join("busybox").join(architecture.debian());
        let package = match downloaded_package(&directory)? {
            Some(package) => package,
            None => download(&directory, architecture)?,
        };
        let root = directory.join("root");
        output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
        let version = output(
            Command::new("dpkg-deb")
                .arg("-f")
                .arg(&package)
                .arg("Version"),
        )?;
        let program = installed_program(&root)?;
        let notice = root.join(format!("usr/share/doc/{PACKAGE}/copyright"));
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        Ok(Self {
            copyright: format!(
                "Source: Debian's source package of {PACKAGE} {version}, \
                 https://snapshot.debian.org/binary/{PACKAGE}/\n\n{}\n{}",
                read_text(&notice)?,
                read_text(Path::new(LICENCE))?
            ),
            version,
            program,
        })
    }
}

/// Lets apt download the package with package lists of its own, so that the machine's lists stay as
/// they are and the machine does not need the foreign architecture.
fn download(directory: &Path, architecture: Architecture) -> Result<PathBuf> {
    let state = directory.join("apt");
    for name in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(state.join(name))?;
    }
    fs::write(state.join("status"), "")?;
    let state = state.canonicalize()?;
    let name = architecture.debian();
    let options = [
        format!("APT::Architecture={name}"),
        format!("APT::Architectures={name}"),
        format!("Dir::State::Lists={}/lists", state.display()),
        format!("Dir::State::status={}/status", state.display()),
        format!("Dir::Cache={}", state.display()),
        "Dir::Cache::pkgcache=".to_owned(),
        "Dir::Cache::srcpkgcache=".to_owned(),
        "Acquire::Languages=none".to_owned(),
        // The unprivileged user of apt cannot write into this directory.
        "APT::Sandbox::User=root".to_owned(),
    ];
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.arg("-qq").current_dir(directory);
        for option in &options {
            apt.args(["-o", option]);
        }
        apt.args(arguments);
        apt
    };
    output(&mut apt(&["update"]))?;
    output(&mut apt(&["download", PACKAGE]))?;
    downloaded_package(directory)?.with_context(|| format!("apt downloaded no {PACKAGE}"))
}

/// Returns the newest package in the directory by name, if there is one.
fn downloaded_package(directory: &Path) -> Result<Option<PathBuf>> {
    if !directory.exists() {
        return Ok(None);
    }
    let mut packages = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            packages.push(path);
        }
    }
    Ok(packages.into_iter().max())
}

/// Returns the executable below the root of the package: newer Debians have it in /usr.
fn installed_program(root: &Path) -> Result<PathBuf> {
    let paths = ["bin/busybox", "usr/bin/busybox"].map(|path| root.join(path));
    let existing = paths.into_iter().find(|path| path.is_file());
    existing.with_context(|| format!("{PACKAGE} has no busybox"))
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_found_in_both_layouts_of_debian() {
        let root = tempfile::tempdir().unwrap();
        assert!(installed_program(root.path()).is_err());
        for directory in ["usr/bin", "bin"] {
            let directory = root.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("busybox"), "").unwrap();
            assert_eq!(
                installed_program(root.path()).unwrap(),
                directory.join("busybox")
            );
        }
    }

    #[test]
    fn downloaded_package_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        assert!(downloaded_package(directory.path()).unwrap().is_none());
        fs::write(directory.path().join("busybox-static_1_arm64.deb"), "").unwrap();
        fs::write(directory.path().join("status"), "").unwrap();
        let package = downloaded_package(directory.path()).unwrap().unwrap();
        assert!(package.ends_with("busybox-static_1_arm64.deb"));
        assert!(
            downloaded_package(Path::new("/no/such/directory"))
                .unwrap()
                .is_none()
        );
    }
}
