//! `cargo xtask dependencies`: checks licences, duplicates and sources of all crates by deny.toml.
//!
//! This is the part of cargo-deny that needs no database and no installation. The rules are read
//! from cargo-deny's own file, so that both decide by the same lists.

use crate::spdx::LicenceExpression;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

const RULES: &str = "deny.toml";

/// The read part of deny.toml.
#[derive(Debug, Deserialize)]
struct DenyRules {
    graph: GraphRules,
    licenses: LicenceRules,
    bans: DuplicateRules,
    sources: SourceRules,
}

#[derive(Debug, Deserialize)]
struct GraphRules {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct LicenceRules {
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct DuplicateRules {
    /// Crates that may have several versions.
    skip: Vec<SkippedCrate>,
}

#[derive(Debug, Deserialize)]
struct SkippedCrate {
    #[serde(rename = "crate")]
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SourceRules {
    allow_registry: Vec<String>,
}

/// Output of `cargo metadata`, as far as it is read.
#[derive(Debug, Deserialize)]
struct PackageListing {
    packages: Vec<ListedPackage>,
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
struct ListedPackage {
    name: String,
    version: String,
    license: Option<String>,
    /// None for packages of the workspace.
    source: Option<String>,
}

/// A violation of the rules.
#[derive(Clone, Debug, Eq, PartialEq)]
enum DependencyFinding {
    /// No choice of its licences is allowed, or it names none that can be read.
    Licence {
        package: String,
        licence: String,
    },
    Duplicate {
        name: String,
        versions: Vec<String>,
    },
    /// A crate may have several versions, and has one.
    UnusedSkip {
        name: String,
    },
    Source {
        package: String,
        source: String,
    },
}

impl std::fmt::Display for DependencyFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Licence { package, licence } => {
                write!(f, "licence: {package}: {licence} is not allowed by {RULES}")
            }
            Self::Duplicate { name, versions } => write!(
                f,
                "duplicate: {name} has the versions {}: align them, or add it to bans.skip",
                versions.join(", ")
            ),
            Self::UnusedSkip { name } => {
                write!(
                    f,
                    "duplicate: {name} has one version: remove it from bans.skip"
                )
            }
            Self::Source { package, source } => {
                write!(
                    f,
                    "source: {package} is from {source}, which {RULES} does not list"
                )
            }
        }
    }
}

/// Checks the dependencies. True if no rule is violated.
///
/// # Errors
/// If deny.toml or the output of cargo cannot be read.
pub(crate) fn run() -> Result<bool> {
    let root = crate::repository::repository_root();
    let text = fs::read_to_string(root.join(RULES)).with_context(|| format!("no {RULES}"))?;
    let rules: DenyRules = toml::from_str(&text).with_context(|| format!("{RULES} is invalid"))?;
    let packages = list_packages(&root, &rules.graph.targets)?;
    let findings = check(&rules, &packages);
    for finding in &findings {
        println!("{finding}");
    }
    println!("{} packages, {} findings", packages.len(), findings.len());
    Ok(findings.is_empty())
}

/// Returns the packages that are built for any of the targets, tests included.
fn list_packages(root: &Path, targets: &[String]) -> Result<BTreeSet<ListedPackage>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .args(["metadata", "--format-version", "1", "--locked"]);
    for target in targets {
        cargo.args(["--filter-platform", target]);
    }
    let output = cargo.output().context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listing: PackageListing = serde_json::from_slice(&output.stdout)?;
    Ok(listing.packages.into_iter().collect())
}

fn check(rules: &DenyRules, packages: &BTreeSet<ListedPackage>) -> Vec<DependencyFinding> {
    let mut findings = check_licences(&rules.licenses, packages);
    findings.extend(check_duplicates(&rules.bans, packages));
    findings.extend(check_sources(&rules.sources, packages));
    findings
}

fn check_licences(
    rules: &LicenceRules,
    packages: &BTreeSet<ListedPackage>,
) -> Vec<DependencyFinding> {
    let is_allowed = |package: &&ListedPackage| {
        let licence = package.license.as_deref().map(LicenceExpression::parse);
        let Some(Ok(licence)) = licence else {
            return false;
        };
        licence.is_satisfied(&|name| rules.allow.contains(name))
    };
    let refused = packages.iter().filter(|package| !is_allowed(package));
    refused
        .map(|package| DependencyFinding::Licence {
            package: package.name_and_version(),
            licence: package
                .license
                .clone()
                .unwrap_or_else(|| "no licence".to_owned()),
        })
        .collect()
}

fn check_duplicates(
    rules: &DuplicateRules,
    packages: &BTreeSet<ListedPackage>,
) -> Vec<DependencyFinding> {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in packages {
        versions
            .entry(&package.name)
            .or_default()
            .push(package.version.clone());
    }
    versions.retain(|_, versions| versions.len() > 1);
    let skipped: BTreeSet<&str> = rules.skip.iter().map(|skip| skip.name.as_str()).collect();
    let unused = skipped.iter().filter(|name| !versions.contains_key(*name));
    let mut findings: Vec<DependencyFinding> = unused
        .map(|name| DependencyFinding::UnusedSkip {
            name: (*name).to_owned(),
        })
        .collect();
    for (name, versions) in versions {
        if !skipped.contains(name) {
            let name = name.to_owned();
            findings.push(DependencyFinding::Duplicate { name, versions });
        }
    }
    findings
}

fn check_sources(
    rules: &SourceRules,
    packages: &BTreeSet<ListedPackage>,
) -> Vec<DependencyFinding> {
    let mut findings = Vec::new();
    for package in packages {
        // A package without a source is in the workspace.
        let Some(source) = &package.source else {
            continue;
        };
        let registry = source.strip_prefix("registry+").unwrap_or(source);
        if !rules
            .allow_registry
            .iter()
            .any(|allowed| allowed == registry)
        {
            findings.push(DependencyFinding::Source {
                package: package.name_and_version(),
                source: source.clone(),
            });
        }
    }
    findings
}

impl ListedPackage {
    fn name_and_version(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

    fn rules() -> DenyRules {
        toml::from_str(
            r#"
            [graph]
            targets = []
            [licenses]
            allow = ["MIT"]
            [bans]
            skip = [{ crate = "moving", reason = "it moves" }]
            [sources]
            allow-registry = ["https://github.com/rust-lang/crates.io-index"]
            "#,
        )
        .unwrap()
    }

    fn package(name: &str, version: &str, licence: &str) -> ListedPackage {
        ListedPackage {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(licence.to_owned()),
            source: Some(INDEX.to_owned()),
        }
    }

    fn findings(packages: impl IntoIterator<Item = ListedPackage>) -> Vec<DependencyFinding> {
        let moving = [
            package("moving", "1.0.0", "MIT"),
            package("moving", "2.0.0", "MIT"),
        ];
        check(&rules(), &packages.into_iter().chain(moving).collect())
    }

    #[test]
    fn allowed_package_gives_no_finding() {
        let local = ListedPackage {
            source: None,
            ..package("own", "0.1.0", "MIT OR Apache-2.0")
        };
        let found = findings([local, package("other", "1.0.0", "GPL-3.0 OR MIT")]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn forbidden_or_unreadable_licence_is_a_finding() {
        let silent = ListedPackage {
            license: None,
            ..package("silent", "1.0.0", "")
        };
        let found = findings([
            package("copyleft", "1.0.0", "GPL-3.0"),
            package("odd", "1.0.0", "MIT OR"),
            silent,
        ]);
        let licences: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            licences,
            [
                "licence: copyleft 1.0.0: GPL-3.0 is not allowed by deny.toml",
                "licence: odd 1.0.0: MIT OR is not allowed by deny.toml",
                "licence: silent 1.0.0: no licence is not allowed by deny.toml",
            ]
        );
    }

    #[test]
    fn second_version_of_a_crate_is_a_finding() {
        let found = findings([
            package("twice", "1.0.0", "MIT"),
            package("twice", "2.0.0", "MIT"),
        ]);
        assert_eq!(
            found,
            [DependencyFinding::Duplicate {
                name: "twice".to_owned(),
                versions: vec!["1.0.0".to_owned(), "2.0.0".to_owned()],
            }]
        );
    }

    #[test]
    fn skip_without_a_duplicate_is_a_finding() {
        let packages = BTreeSet::from([package("moving", "1.0.0", "MIT")]);
        assert_eq!(
            check(&rules(), &packages),
            [DependencyFinding::UnusedSkip {
                name: "moving".to_owned()
            }]
        );
    }

    #[test]
    fn package_of_another_source_is_a_finding() {
        let forked = ListedPackage {
            source: Some("git+https://example.com/forked#0123".to_owned()),
            ..package("forked", "1.0.0", "MIT")
        };
        assert_eq!(
            findings([forked]),
            [DependencyFinding::Source {
                package: "forked 1.0.0".to_owned(),
                source: "git+https://example.com/forked#0123".to_owned(),
            }]
        );
    }
}
