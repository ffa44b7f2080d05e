//! The release that `cargo xtask dist` builds: its version, its date and its two directories.

use super::architecture::{Architecture, Flavour};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One release of the program, built from the checkout at `root`.
pub(crate) struct Release {
    /// The repository.
    pub(crate) root: PathBuf,
    /// The directory of finished files: `target/dist`.
    pub(crate) directory: PathBuf,
    /// The version of the workspace, such as `0.1.0`.
    pub(crate) version: String,
    /// Seconds since 1970 of each file in each archive: SOURCE_DATE_EPOCH, or the last commit's.
    pub(crate) epoch: u64,
}

/// The unpacked files of one client, as an archive and a package hold them:
/// `bin/iosonde`, `share/man/man1/*.1`, `share/bash-completion/completions/iosonde`,
/// `share/zsh/site-functions/_iosonde`, `share/fish/vendor_completions.d/iosonde.fish`,
/// `share/elvish/lib/iosonde.elv`, and README.md, LICENSE-MIT, LICENSE-APACHE and THIRD-PARTY in
/// `share/doc/iosonde`.
pub(crate) struct Staged {
    pub(crate) architecture: Architecture,
    pub(crate) flavour: Flavour,
    /// The root of the tree: `target/dist/work/iosonde-VERSION-ARCHITECTURE-linux-FLAVOUR`.
    pub(crate) directory: PathBuf,
}

impl Release {
    /// Reads version and date from the checkout at `root`, and creates the directories.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let root = &root
            .canonicalize()
            .with_context(|| format!("cannot read {}", root.display()))?;
        let manifest = root.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let release = Self {
            root: root.to_owned(),
            directory: root.join("target/dist"),
            version: workspace_version(&text)?,
            epoch: match std::env::var("SOURCE_DATE_EPOCH") {
                Ok(given) => given
                    .parse()
                    .with_context(|| format!("SOURCE_DATE_EPOCH is no number: {given}"))?,
                Err(_) => commit_time(root)?,
            },
        };
        std::fs::create_dir_all(release.work())
            .with_context(|| format!("cannot create {}", release.work().display()))?;
        Ok(release)
    }

    /// Returns the directory of intermediate files: `target/dist/work`. Each module uses one of its
    /// own below it.
    pub(crate) fn work(&self) -> PathBuf {
        self.directory.join("work")
    }

    /// Returns the name of an archive and of its only top directory, without the suffix:
    /// `iosonde-0.1.0-x86_64-linux-gnu`.
    pub(crate) fn archive_name(&self, architecture: Architecture, flavour: Flavour) -> String {
        format!(
            "iosonde-{}-{}-linux-{}",
            self.version,
            architecture.rust(),
            flavour.name()
        )
    }
}

impl Staged {
    /// Returns the client's executable.
    pub(crate) fn program(&self) -> PathBuf {
        self.directory.join("bin/iosonde")
    }
}

/// Reads `workspace.package.version` of the workspace's manifest.
fn workspace_version(manifest: &str) -> Result<String> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml is no TOML")?;
    manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("version")?.as_str())
        .map(str::to_owned)
        .context("Cargo.toml has no workspace.package.version")
}

/// Returns the time of the last commit in seconds since 1970.
fn commit_time(root: &Path) -> Result<u64> {
    let output = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!("the last commit's time is unknown here: set SOURCE_DATE_EPOCH");
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    (printed.trim().parse()).with_context(|| format!("git printed no time: {}", printed.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_version_is_read_from_the_manifest() {
        let manifest = "[workspace.package]\nversion = \"1.2.3\"\n";
        assert_eq!(workspace_version(manifest).unwrap(), "1.2.3");
        assert!(workspace_version("[package]\nversion = \"1.2.3\"\n").is_err());
    }

    #[test]
    fn archive_name_holds_version_architecture_and_flavour() {
        let release = Release {
            root: PathBuf::from("/r"),
            directory: PathBuf::from("/r/target/dist"),
            version: "0.1.0".to_owned(),
            epoch: 0,
        };
        assert_eq!(
            release.archive_name(Architecture::Aarch64, Flavour::Static),
            "iosonde-0.1.0-aarch64-linux-static"
        );
    }
}
